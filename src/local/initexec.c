/* A command run through the process service of a sandbox's init: one Start
 * request, and its answer taken apart as it comes (head, chunks, envelopes). No
 * more than one envelope is ever held. */
#include <cct/local/connect_json.h>
#include <cct/local/http_head.h>
#include <cct/local/initexec.h>
#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ENVELOPE_MAX (256u << 10) /* the init's own pieces are much smaller */
#define PING_S 20                 /* asked of the init while all is quiet */
#define SILENCE_S 90              /* after this it is taken for gone */
#define LATE_MS 5000              /* the init itself ends what takes too long */

enum body { BODY_HEAD, BODY_CHUNKED, BODY_PLAIN };

struct initexec {
    struct bufferevent *bev;
    struct event *timer;
    initexec_out out;
    initexec_end end;
    void (*begun)(void *arg, int pid);
    void *arg;
    enum body body;
    struct buf head, frame; /* unfinished ones */
    struct http_chunks chunks;
    bool exited;     /* the end event was there ... */
    int exit_code;   /* ... and what it said */
    char why[256];   /* reason of a -1 */
    bool over;       /* nothing more is of interest: tell `end` */
    bool busy, gone; /* in a callback; cancelled in there */
};

static void destroy(struct initexec *x)
{
    event_free(x->timer);
    bufferevent_free(x->bev);
    buf_release(&x->head);
    buf_release(&x->frame);
    free(x);
}

void initexec_cancel(struct initexec *x)
{
    if (!x)
        return;
    if (x->busy)
        x->gone = true;
    else
        destroy(x);
}

/* Tell the end, unless somebody looked away meanwhile. */
static void finish(struct initexec *x)
{
    if (!x->gone) {
        bool clean = x->exited && x->exit_code >= 0;
        x->busy = true; /* `end` may cancel what is over anyway */
        if (!clean && !x->why[0])
            str_copy(x->why, sizeof(x->why), "the sandbox is gone");
        x->end(x->arg, clean ? x->exit_code : -1, clean ? NULL : x->why);
    }
    destroy(x);
}

static void give_up(struct initexec *x, const char *why)
{
    if (!x->why[0])
        str_copy(x->why, sizeof(x->why), why);
    x->over = true;
}

/* --- messages ----------------------------------------------------------------- */

static void take_data(struct initexec *x, const struct cJSON *data)
{
    static const struct {
        const char *name;
        enum initexec_stream s;
    } streams[] = {{"stdout", INITEXEC_STDOUT}, {"stderr", INITEXEC_STDERR}};
    for (size_t i = 0; i < 2; i++) {
        const char *b64 = json_str(data, streams[i].name, NULL);
        size_t len = 0;
        char *p = b64 ? b64_decode(b64, strlen(b64), &len) : NULL;
        if (b64 && !p)
            give_up(x, "the sandbox sent damaged output");
        if (p && len > 0 && x->out && !x->gone)
            x->out(x->arg, streams[i].s, p, len);
        free(p);
    }
}

static void take_end(struct initexec *x, const struct cJSON *end)
{
    bool exited = json_bool(end, "exited", false);
    x->exited = true;
    x->exit_code = exited ? (int)json_i64(end, "exitCode", 0) : -1;
    if (!exited)
        str_copy(x->why, sizeof(x->why), json_str(end, "status", "the command was ended"));
}

/* The last envelope: {} or {"error":{"code","message"}}. */
static void take_trailer(struct initexec *x, const struct cJSON *j)
{
    const struct cJSON *error = json_get(j, "error");
    const char *code = json_str(error, "code", "unknown");
    if (error && strcmp(code, "deadline_exceeded") == 0)
        str_copy(x->why, sizeof(x->why), "the command took too long and was ended");
    else if (error)
        str_copy(x->why, sizeof(x->why), json_str(error, "message", code));
    x->over = true;
}

static void take_envelope(struct initexec *x, const struct connect_frame *f)
{
    struct cJSON *j = json_parse(f->body, f->len, NULL);
    const struct cJSON *event = json_get(j, "event");
    if (!j || f->flags & CONNECT_FLAG_COMPRESSED)
        give_up(x, "the sandbox sent a damaged message");
    else if (f->flags & CONNECT_FLAG_END)
        take_trailer(x, j);
    else if (json_get(event, "start") && x->begun)
        x->begun(x->arg, (int)json_i64(json_get(event, "start"), "pid", 0));
    else if (json_get(event, "data"))
        take_data(x, json_get(event, "data"));
    else if (json_get(event, "end"))
        take_end(x, json_get(event, "end"));
    json_free(j);
}

/* A piece of the body, of any size. */
static bool take_body(void *arg, const char *p, size_t len)
{
    struct initexec *x = arg;
    while (len > 0 && !x->over && !x->gone) {
        size_t n = len < ENVELOPE_MAX ? len : ENVELOPE_MAX;
        if (buf_add(&x->frame, p, n) != 0) {
            give_up(x, "the sandbox sent too large a message");
            break;
        }
        p += n;
        len -= n;
        struct connect_frame f;
        size_t at = 0;
        long used = 0;
        while (!x->over && !x->gone &&
               (used = connect_frame_parse(x->frame.p + at, x->frame.len - at, ENVELOPE_MAX,
                                           &f)) > 0) {
            take_envelope(x, &f);
            at += (size_t)used;
        }
        if (used < 0)
            give_up(x, "the sandbox sent too large a message");
        buf_consume(&x->frame, at);
    }
    return !x->over && !x->gone;
}

/* --- the answer --------------------------------------------------------------- */

static bool head_says(const char *head, const char *field)
{
    return strcasestr(head, field) != NULL;
}

/* Look for the end of the head; what follows is in *rest. */
static bool take_head(struct initexec *x, const char *p, size_t len, struct buf *rest)
{
    if (buf_add(&x->head, p, len) != 0) {
        give_up(x, "the sandbox sent too large a head");
        return false;
    }
    char *end = strstr(buf_str(&x->head), "\r\n\r\n");
    if (!end)
        return false;
    size_t used = (size_t)(end - x->head.p) + 4;
    buf_add(rest, x->head.p + used, x->head.len - used);
    buf_truncate(&x->head, used);
    int status = 0;
    if (str_starts(x->head.p, "HTTP/1.") && used > 12)
        status = (int)strtol(x->head.p + 9, NULL, 10);
    if (status != 200) {
        char text[64];
        snprintf(text, sizeof(text), "the sandbox answered with status %d", status);
        give_up(x, text);
        return false;
    }
    x->body =
        head_says(x->head.p, "\r\nTransfer-Encoding: chunked") ? BODY_CHUNKED : BODY_PLAIN;
    http_chunks_init(&x->chunks);
    return true;
}

static void take_bytes(struct initexec *x, const char *p, size_t len)
{
    struct buf rest = BUF_INIT;
    if (x->body == BODY_HEAD) {
        if (!take_head(x, p, len, &rest))
            len = 0;
        else
            len = rest.len;
        p = rest.p;
    }
    if (len > 0 && x->body == BODY_PLAIN) {
        take_body(x, p, len);
    } else if (len > 0 && x->body == BODY_CHUNKED) {
        size_t used;
        int rc = http_chunks_scan(&x->chunks, p, len, &used, take_body, x);
        if (rc != 0 && !x->over && !x->gone)
            give_up(x, rc < 0 ? "the sandbox sent a damaged answer"
                              : "the sandbox ended its answer early");
    }
    buf_release(&rest);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct initexec *x = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    char tmp[16384];
    x->busy = true;
    while (!x->over && !x->gone) {
        int n = evbuffer_remove(in, tmp, sizeof(tmp));
        if (n <= 0)
            break;
        take_bytes(x, tmp, (size_t)n);
    }
    x->busy = false;
    if (x->over || x->gone)
        finish(x);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct initexec *x = arg;
    if (what & BEV_EVENT_TIMEOUT)
        give_up(x, "the sandbox does not answer");
    else if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        give_up(x, "the sandbox is gone");
    (void)bev;
    if (x->over)
        finish(x);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    give_up(arg, "the sandbox does not answer");
    finish(arg);
}

/* --- the request -------------------------------------------------------------- */

static void write_message(struct buf *b, const struct initexec_spec *s)
{
    struct jw w;
    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_obj(&w, "process");
    jw_str(&w, "cmd", "/bin/bash");
    jw_arr(&w, "args");
    jw_str(&w, NULL, "-l");
    jw_str(&w, NULL, "-c");
    jw_str(&w, NULL, s->command);
    jw_end(&w);
    if (s->cwd)
        jw_str(&w, "cwd", s->cwd);
    if (s->env) {
        char *text = json_text(s->env);
        jw_raw(&w, "envs", text);
        free(text);
    }
    jw_end(&w);
    if (s->tag)
        jw_str(&w, "tag", s->tag);
    jw_bool(&w, "stdin", false);
    jw_end(&w);
}

static void write_request(struct evbuffer *out, const char *token,
                          const struct initexec_spec *s)
{
    struct buf json = BUF_INIT;
    unsigned char head[CONNECT_HEAD_BYTES];
    write_message(&json, s);
    connect_head(head, 0, json.len);
    evbuffer_add_printf(out,
                        "POST /process.Process/Start HTTP/1.1\r\nHost: localhost\r\n"
                        "Connection: close\r\nConnect-Protocol-Version: 1\r\n"
                        "Content-Type: application/connect+json\r\n"
                        "Keepalive-Ping-Interval: %d\r\n"
                        "X-Access-Token: %s\r\nX-CC-Control: %s\r\n",
                        PING_S, token, token);
    if (s->user) {
        char *plain = xasprintf("%s:", s->user);
        char *b64 = b64_encode(plain, strlen(plain));
        evbuffer_add_printf(out, "Authorization: Basic %s\r\n", b64);
        free(b64);
        free(plain);
    }
    if (s->timeout_ms > 0)
        evbuffer_add_printf(out, "Connect-Timeout-Ms: %lld\r\n", (long long)s->timeout_ms);
    evbuffer_add_printf(out, "Content-Length: %zu\r\n\r\n", sizeof(head) + json.len);
    evbuffer_add(out, head, sizeof(head));
    evbuffer_add(out, json.p, json.len);
    buf_release(&json);
}

struct initexec *initexec_start(struct event_base *base, const char *sock, const char *token,
                                const struct initexec_spec *s, initexec_out out,
                                initexec_end end, void *arg)
{
    struct initexec *x = xcalloc(1, sizeof(*x));
    x->out = out;
    x->end = end;
    x->begun = s->begun;
    x->arg = arg;
    buf_init(&x->head, HTTP_HEAD_MAX);
    buf_init(&x->frame, 2 * ENVELOPE_MAX + CONNECT_HEAD_BYTES);
    x->timer = evtimer_new(base, on_timer, x);
    x->bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (!x->timer || !x->bev)
        die("libevent is out of memory");
    bufferevent_setcb(x->bev, on_read, NULL, on_event, x);
    struct timeval silence = {SILENCE_S, 0};
    bufferevent_set_timeouts(x->bev, &silence, &silence);
    bufferevent_setwatermark(x->bev, EV_READ, 0, ENVELOPE_MAX);
    int64_t late = s->timeout_ms + LATE_MS;
    struct timeval tv = {late / 1000, late % 1000 * 1000};
    bool armed = s->timeout_ms > 0;
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (!str_copy(sa.sun_path, sizeof(sa.sun_path), sock) ||
        bufferevent_socket_connect(x->bev, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
        tv = (struct timeval){0, 0}; /* the failure is told from the loop */
        armed = true;
    }
    if (armed)
        event_add(x->timer, &tv);
    bufferevent_enable(x->bev, EV_READ | EV_WRITE);
    write_request(bufferevent_get_output(x->bev), token, s);
    return x;
}
