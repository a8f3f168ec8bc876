/* Connect envelopes. A whole envelope inside one piece of input is handed on where
 * it lies; only what a border cuts is copied, and memory grows with the bytes that
 * came, never with the length that was announced. */
#include <cct/util/limits.h>
#include <cct/wire.h>
#include <string.h>

enum { HEAD = 5, KEEP_BYTES = 4 << 10 };

void wire_env_init(struct wire_env *w)
{
    buf_init(&w->part, (size_t)LIM_FRAME_BYTES + HEAD);
    w->ended = false;
}

void wire_env_release(struct wire_env *w)
{
    buf_release(&w->part);
    w->ended = false;
}

static size_t payload_len(const char *head)
{
    const unsigned char *h = (const unsigned char *)head;

    return (size_t)h[1] << 24 | (size_t)h[2] << 16 | (size_t)h[3] << 8 | h[4];
}

static int check_head(const struct wire_env *w, const char *head, struct err *e)
{
    uint8_t flags = (uint8_t)head[0];

    if (w->ended)
        return err_set(e, ERR_PROTO, "stream is broken: bytes after its end");
    if (flags & WIRE_COMPRESSED)
        return err_set(e, ERR_PROTO, "stream is broken: a compressed message, none was asked for");
    if (flags & ~(unsigned)WIRE_END)
        return err_set(e, ERR_PROTO, "stream is broken: unknown flags 0x%02x", flags);
    if (payload_len(head) > LIM_FRAME_BYTES)
        return err_set(e, ERR_LIMIT, "stream is broken: a message of %zu bytes, at most %u are taken",
                       payload_len(head), LIM_FRAME_BYTES);
    return 0;
}

/* Hand one envelope out. After a `false` the owner may be gone: touch nothing. */
static int emit(struct wire_env *w, const char *head, wire_env_fn fn, void *ctx, struct err *e)
{
    if (head[0] & WIRE_END)
        w->ended = true;
    if (!fn(ctx, (uint8_t)head[0], head + HEAD, payload_len(head)))
        return err_set(e, ERR_CANCELLED, "stream was stopped by its reader");
    return 0;
}

/* Complete the envelope a border cut; `*used` says how much of data it took. */
static int feed_part(struct wire_env *w, const char *data, size_t len, size_t *used,
                     wire_env_fn fn, void *ctx, struct err *e)
{
    size_t want = HEAD, n;
    int rc;

    *used = 0;
    if (w->part.len < HEAD) {
        n = HEAD - w->part.len;
        n = n < len ? n : len;
        buf_add(&w->part, data, n);
        *used = n;
        if (w->part.len < HEAD)
            return 0;
    }
    rc = check_head(w, w->part.p, e);
    if (rc)
        return rc;
    want = HEAD + payload_len(w->part.p);
    n = want - w->part.len;
    n = n < len - *used ? n : len - *used;
    rc = buf_add(&w->part, data + *used, n);
    if (rc)
        return err_set(e, rc, "stream is broken: a message is too long");
    *used += n;
    if (w->part.len < want)
        return 0;
    rc = emit(w, w->part.p, fn, ctx, e);
    if (rc)
        return rc;
    if (w->part.cap > KEEP_BYTES)
        buf_release(&w->part);
    else
        buf_clear(&w->part);
    return 0;
}

int wire_env_feed(struct wire_env *w, const char *data, size_t len, wire_env_fn fn, void *ctx,
                  struct err *e)
{
    int rc;

    while (len > 0) {
        size_t used;
        if (w->ended)
            return err_set(e, ERR_PROTO, "stream is broken: bytes after its end");
        if (w->part.len || len < HEAD) {
            rc = feed_part(w, data, len, &used, fn, ctx, e);
        } else {
            rc = check_head(w, data, e);
            if (rc)
                return rc;
            used = HEAD + payload_len(data);
            if (used > len)
                rc = feed_part(w, data, len, &used, fn, ctx, e);
            else
                rc = emit(w, data, fn, ctx, e);
        }
        if (rc)
            return rc;
        data += used;
        len -= used;
    }
    return 0;
}

int wire_env_add(struct buf *out, uint8_t flags, const char *payload, size_t len)
{
    char head[HEAD] = {(char)flags, (char)(len >> 24), (char)(len >> 16), (char)(len >> 8),
                       (char)len};

    if (len > LIM_FRAME_BYTES)
        return ERR_LIMIT;
    if (buf_add(out, head, HEAD))
        return ERR_LIMIT;
    return buf_add(out, payload, len);
}
