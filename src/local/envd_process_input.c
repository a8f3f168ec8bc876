/* Input of processes: SendInput, and StreamInput, whose messages take effect as they
 * arrive. A process that does not read stops the stream, not the init's memory. */
#include "envd_process.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define FEED_HIGH_WATER (256u << 10) /* input waiting for a process: read no more */

enum connect_code proc_input_apply(struct proc *p, const struct cJSON *input, struct buf *why)
{
    const char *text = json_str(input, "stdin", NULL);
    const char *pty = json_str(input, "pty", NULL);
    if (text == NULL && pty == NULL)
        return CONNECT_OK; /* an empty message: bytes of length zero are left out */
    if ((text != NULL) == p->pty) {
        buf_adds(why, p->pty ? "the process has a pty: send pty input"
                             : "the process has no pty: send stdin input");
        return CONNECT_INTERNAL;
    }
    const char *b64 = text != NULL ? text : pty;
    size_t len;
    void *data = b64_decode(b64, strlen(b64), &len);
    enum connect_code code = CONNECT_OK;
    if (data == NULL) {
        buf_adds(why, "the input is no base64");
        code = CONNECT_INVALID_ARGUMENT;
    } else if (!p->stdin_open || p->stdin_closing) {
        buf_adds(why, "stdin is not enabled or is closed");
        code = CONNECT_INTERNAL;
    } else if (!proc_input(p, data, len)) {
        buf_addf(why, "%zu bytes of input wait already; the process does not read", p->inq.len);
        code = CONNECT_RESOURCE_EXHAUSTED;
    }
    free(data);
    return code;
}

/* --- StreamInput ----------------------------------------------------------- */

/* One call. */
struct feed {
    struct feed *next; /* of the same process */
    struct envd *e;
    struct http_req *req;
    struct proc *p; /* once a start message named it; NULL again when forgotten */
    struct buf in;  /* not yet a whole message, or not yet wanted */
    bool waits;     /* for the process to read */
    bool all_came;
};

static void feed_detach(struct feed *f)
{
    if (f->p == NULL)
        return;
    struct feed **at = &f->p->feeds;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    f->p = NULL;
    f->waits = false;
}

static void feed_free(struct feed *f)
{
    feed_detach(f);
    buf_release(&f->in);
    free(f);
}

static void feed_answer(struct feed *f, enum connect_code code, const char *why)
{
    static const char ok[] = "\0\0\0\0\2{}\2\0\0\0\2{}";
    struct http_req *req = f->req;
    feed_free(f);
    if (code != CONNECT_OK)
        envd_stream_error(req, code, "%s", why);
    else
        http_reply_bytes(req, 200, ENVD_STREAM_TYPE, ok, sizeof(ok) - 1);
}

static enum connect_code feed_message(struct feed *f, const struct cJSON *in, struct buf *why)
{
    enum connect_code code = CONNECT_OK;
    const struct cJSON *start = json_get(in, "start"), *data = json_get(in, "data");
    if (start != NULL) {
        feed_detach(f);
        f->p = proc_find(f->e, start, false, &code, why);
        if (f->p != NULL) {
            f->next = f->p->feeds;
            f->p->feeds = f;
        }
    } else if (data != NULL && f->p == NULL) {
        buf_adds(why, "the first message must name a process that is there");
        code = CONNECT_INVALID_ARGUMENT;
    } else if (data != NULL) {
        code = proc_input_apply(f->p, json_get(data, "input"), why);
        f->waits = f->p != NULL && f->p->inq.len > FEED_HIGH_WATER;
    }
    return code;
}

/* Take what is whole and wanted; f may be gone afterwards. */
static void feed_work(struct feed *f)
{
    enum connect_code code = CONNECT_OK;
    struct buf why = BUF_INIT;
    bool over = false;
    size_t at = 0;
    while (code == CONNECT_OK && !over && !f->waits) {
        struct connect_frame m;
        struct err err = {0};
        size_t left = f->in.len - at;
        long used = connect_frame_parse(buf_str(&f->in) + at, left, ENVD_BODY_MAX, &m);
        if (used == 0 && left > 0 && f->all_came)
            used = -1;
        if (used == 0)
            break;
        over = used > 0 && (m.flags & CONNECT_FLAG_END) != 0;
        struct cJSON *in = used > 0 && m.flags == 0 ? json_parse(m.body, m.len, &err) : NULL;
        if (in != NULL) {
            code = feed_message(f, in, &why);
            at += (size_t)used;
        } else if (!over) {
            buf_addf(&why, "a message of the stream is damaged %s", err.text);
            code = CONNECT_INVALID_ARGUMENT;
        }
        json_free(in);
    }
    buf_consume(&f->in, at);
    if (code != CONNECT_OK || over || (f->all_came && !f->waits))
        feed_answer(f, code, buf_str(&why));
    else if (f->waits && !f->all_came)
        http_body_pause(f->req);
    else if (!f->all_came)
        http_body_resume(f->req);
    buf_release(&why);
}

static void feed_piece(void *arg, const char *p, size_t len)
{
    struct feed *f = arg;
    buf_add(&f->in, p, len);
    if (!f->waits)
        feed_work(f);
}

static void feed_end(void *arg)
{
    struct feed *f = arg;
    f->all_came = true;
    if (!f->waits)
        feed_work(f);
}

static void feed_cut(void *arg)
{
    feed_free(arg);
}

static const struct http_body_ops feed_ops = {feed_piece, feed_end, feed_cut};

void envd_process_stream_input(struct envd *e, struct http_req *req)
{
    struct feed *f = xcalloc(1, sizeof(*f));
    f->e = e;
    f->req = req;
    buf_init(&f->in, 0);
    http_body_take(req, &feed_ops, f);
}

void proc_feeds_go_on(struct proc *p)
{
    while (p->inq.len <= FEED_HIGH_WATER) {
        struct feed *f = p->feeds;
        while (f != NULL && !f->waits)
            f = f->next;
        if (f == NULL)
            return;
        f->waits = false;
        feed_work(f); /* others may be gone after it */
    }
}

void proc_feeds_drop(struct proc *p)
{
    while (p->feeds != NULL) {
        struct feed *f = p->feeds;
        bool waited = f->waits;
        feed_detach(f);
        if (waited)
            feed_work(f);
    }
}
