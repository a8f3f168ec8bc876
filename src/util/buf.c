/* The growing byte buffer: every growth in the program is bounded here. */
#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_run.h"

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf)BUF_INIT_MAX(max);
}

void buf_release(struct buf *b)
{
    free(b->p);
    buf_init(b, b->max);
}

/* One huge paste, page or picture does not stay in memory for the rest of the day. */
enum { BUF_KEPT = 64 << 10 };

void buf_clear(struct buf *b)
{
    if (b->cap > BUF_KEPT && b->len < b->cap / 4) {
        buf_release(b);
        return;
    }
    b->len = 0;
    b->over = false;
    if (b->p)
        b->p[0] = '\0';
}

/* Room for n more bytes and the NUL. */
static bool grow(struct buf *b, size_t n)
{
    if (n < b->cap - b->len && b->cap > b->len)
        return true;
    if (n > SIZE_MAX / 4 - b->len ||
        (b->max && n > b->max - (b->len < b->max ? b->len : b->max))) {
        b->over = true;
        return false;
    }
    size_t need = b->len + n + 1, cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap *= 2;
    if (b->max && cap > b->max + 1)
        cap = b->max + 1;
    b->p = xrealloc(b->p, cap);
    b->cap = cap;
    return true;
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (!grow(b, n))
        return NULL;
    return b->p + b->len;
}

int buf_add(struct buf *b, const void *data, size_t len)
{
    if (!grow(b, len))
        return ERR_LIMIT;
    if (len)
        memcpy(b->p + b->len, data, len);
    b->len += len;
    b->p[b->len] = '\0';
    return 0;
}

int buf_addc(struct buf *b, char c)
{
    if (!grow(b, 1))
        return ERR_LIMIT;
    b->p[b->len++] = c;
    b->p[b->len] = '\0';
    return 0;
}

int buf_adds(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s));
}

int buf_addi(struct buf *b, int64_t v)
{
    char text[24], *p = text + sizeof(text);
    uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;

    do
        *--p = (char)('0' + left % 10);
    while (left /= 10);
    if (v < 0)
        *--p = '-';
    return buf_add(b, p, (size_t)(text + sizeof(text) - p));
}

int buf_addv(struct buf *b, const char *fmt, va_list ap)
{
    size_t room = b->cap > b->len ? b->cap - b->len : 0;
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(room ? b->p + b->len : NULL, room, fmt, again);
    va_end(again);
    if (n < 0)
        BUG("format '%.40s' failed", fmt);
    if ((size_t)n >= room) {
        if (room)
            b->p[b->len] = '\0';
        if (!grow(b, (size_t)n))
            return ERR_LIMIT;
        vsnprintf(b->p + b->len, (size_t)n + 1, fmt, ap);
    }
    b->len += (size_t)n;
    return 0;
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = buf_addv(b, fmt, ap);
    va_end(ap);
    return rc;
}

void buf_consume(struct buf *b, size_t n)
{
    if (n > b->len)
        BUG("%zu bytes consumed of %zu", n, b->len);
    if (n == 0)
        return;
    memmove(b->p, b->p + n, b->len - n);
    b->len -= n;
    b->p[b->len] = '\0';
}

void buf_truncate(struct buf *b, size_t len)
{
    if (len >= b->len)
        return;
    b->len = len;
    b->p[len] = '\0';
}

const char *buf_str(struct buf *b)
{
    if (!b->p)
        return "";
    b->p[b->len] = '\0'; /* the filler of a reserve does not write it */
    return b->p;
}

char *buf_detach(struct buf *b, size_t *len)
{
    char *p = b->p ? b->p : xcalloc(1, 1);
    p[b->len] = '\0';
    if (len)
        *len = b->len;
    buf_init(b, b->max);
    return p;
}

/* One character that cannot stand as it is; returns the bytes it took. */
static size_t add_escaped(struct buf *b, const char *s, size_t len)
{
    uint32_t cp;
    size_t used = utf8_decode(s, len, &cp);

    if (used == 0) { /* cut off at the end of the text */
        used = 1;
        cp = UTF8_BAD;
    }
    if (cp == UTF8_BAD)
        buf_add(b, "\xEF\xBF\xBD", 3);
    else if (cp == '"' || cp == '\\')
        buf_add(b, (char[2]){'\\', (char)cp}, 2);
    else if (cp == '\n' || cp == '\t' || cp == '\r')
        buf_add(b, cp == '\n' ? "\\n" : cp == '\t' ? "\\t" : "\\r", 2);
    else if (cp < 0x20 || (cp >= 0x7F && cp < 0xA0)) /* C0, DEL, C1 */
        buf_addf(b, "\\u%04x", (unsigned)cp);
    else
        buf_add(b, s, used);
    return used;
}

int buf_add_json(struct buf *b, const char *s, size_t len)
{
    size_t start = b->len;
    bool over = b->over;

    b->over = false;
    buf_addc(b, '"');
    while (len > 0 && !b->over) {
        size_t n = json_run(s, len);

        if (n > 0)
            buf_add(b, s, n);
        else
            n = add_escaped(b, s, len);
        s += n;
        len -= n;
    }
    buf_addc(b, '"');
    if (b->over) {
        buf_truncate(b, start);
        return ERR_LIMIT;
    }
    b->over = over;
    return 0;
}

static bool unreserved(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

int buf_add_urlenc(struct buf *b, const char *s, size_t len)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t need = 0;

    for (size_t i = 0; i < len; i++)
        need += unreserved((unsigned char)s[i]) ? 1 : 3;
    char *p = buf_reserve(b, need);
    if (!p)
        return ERR_LIMIT;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (unreserved(c)) {
            *p++ = (char)c;
        } else {
            *p++ = '%';
            *p++ = hex[c >> 4];
            *p++ = hex[c & 15];
        }
    }
    b->len += need;
    b->p[b->len] = '\0';
    return 0;
}
