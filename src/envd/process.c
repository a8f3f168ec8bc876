/* Processes in a sandbox: start or join one and read its events, and the small calls
 * about it. The stream answers 200 even when the call failed; the truth is in its
 * last envelope, and a stream without that one was cut. */
#include "envd_priv.h"
#include "event.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <cct/wire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A stream is over with its last envelope: its connection gets so long to say so, too, and to serve
 * the next one. */
enum { REFUSAL_MAX = 64 << 10, CLOSE_MS = 1000 };

struct stream {
    struct op op;
    struct net *net;
    uint64_t closing;    /* timer, 0 = its last envelope has not come */
    const char *what;
    struct envd_proc_cb cb;
    struct wire_env wire;
    struct buf refusal;  /* body of an answer that is no stream */
    struct envd_end end; /* what is known so far */
    char *status;
    int http;
    bool trailer;
};

static void stream_free(struct op *op)
{
    struct stream *s = (struct stream *)op;

    net_timer_cancel(s->net, s->closing);
    wire_env_release(&s->wire);
    buf_release(&s->refusal);
    free(s->status);
    free(s);
}

static void on_late(void *ctx);

static void take_trailer(struct stream *s, const char *json, size_t len)
{
    struct cJSON *j = json_parse(json, len, NULL);
    const struct cJSON *error = json_get(j, "error");
    const char *code = json_str(error, "code", "unknown");

    s->trailer = true;
    if (!s->closing)
        s->closing = net_timer(s->net, CLOSE_MS, on_late, s);
    if (!j && len)
        err_set(&s->end.err, ERR_PROTO, "cannot %s: the end of the stream is not readable", s->what);
    else if (error)
        err_set(&s->end.err, envd_code(code), "cannot %s: the sandbox ended the stream: %.40s: %.200s",
                s->what, code, json_str(error, "message", "no reason given"));
    for (char *p = s->end.err.text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    json_free(j);
}

static void take_end(struct stream *s, const struct proc_event *ev)
{
    s->end.ended = true;
    s->end.exited = ev->exited;
    s->end.exit_code = ev->exit_code;
    str_set(&s->status, ev->status);
}

/* False when the stream must stop; then it may be gone already. */
static bool on_envelope(void *ctx, uint8_t flags, const char *json, size_t len)
{
    struct stream *s = ctx;
    struct proc_event ev;
    struct envd *c = s->op.envd;
    uint64_t id = s->op.id;
    bool go_on = true;

    if (flags & WIRE_END) {
        take_trailer(s, json, len);
        return true;
    }
    if (proc_event_parse(json, len, &ev) != 0) {
        err_set(&s->end.err, ERR_PROTO, "cannot %s: the sandbox sent an event that makes no sense",
                s->what);
        return false;
    }
    switch (ev.kind) {
    case PROC_START:
        if (s->cb.on_start)
            s->cb.on_start(s->cb.ctx, ev.pid);
        break;
    case PROC_DATA:
        if (s->cb.on_data)
            go_on = s->cb.on_data(s->cb.ctx, ev.stream, ev.data, ev.len);
        break;
    case PROC_END:
        take_end(s, &ev);
        break;
    case PROC_OTHER:
        break;
    }
    proc_event_release(&ev);
    if (!map_get_id(c->ops, id)) /* closed by the callback */
        return false;
    if (!go_on)
        envd_cancel(c, id);
    return go_on;
}

static void on_head(void *ctx, int status)
{
    ((struct stream *)ctx)->http = status;
    ((struct stream *)ctx)->op.answered = true;
}

static bool on_body(void *ctx, const char *data, size_t len)
{
    struct stream *s = ctx;
    struct envd *c = s->op.envd;
    uint64_t id = s->op.id;
    struct err e = {0};
    int rc;

    if (s->http != 200) {
        buf_add(&s->refusal, data, len); /* the part that fits is enough */
        return true;
    }
    envd_hold(c);
    rc = wire_env_feed(&s->wire, data, len, on_envelope, s, &e);
    if (rc && map_get_id(c->ops, id) && !s->end.err.code) {
        s->end.err = e;
        err_wrap(&s->end.err, "cannot %s", s->what);
    }
    envd_let_go(c);
    return rc == 0;
}

static void judge(struct stream *s, const struct net_result *n)
{
    struct err *e = &s->end.err;

    if (e->code)
        return;
    if (n->status && n->status != 200) {
        envd_refusal(e, s->what, n->status, s->refusal.p, s->refusal.len);
    } else if (s->trailer) {
        if (!s->end.ended)
            err_set(e, ERR_PROTO, "cannot %s: the stream ended without a result", s->what);
    } else if (n->err.code) {
        *e = n->err;
        s->end.silent = e->code == ERR_TIMEOUT;
        err_wrap(e, "cannot %s: connection lost", s->what);
        if (e->code != ERR_INVALID && e->code != ERR_UNSUPPORTED)
            e->code = ERR_NETWORK; /* a silent one too: the process may live on */
    } else {
        err_set(e, ERR_NETWORK, "cannot %s: connection lost: the stream broke off", s->what);
    }
}

static void on_done(void *ctx, const struct net_result *n)
{
    struct stream *s = ctx;

    op_leave(&s->op);
    judge(s, n);
    s->end.status = s->status;
    if (s->cb.on_end)
        s->cb.on_end(s->cb.ctx, &s->end);
    stream_free(&s->op);
}

static void on_late(void *ctx)
{
    struct stream *s = ctx;
    struct net_result n = {.status = s->http};

    s->closing = 0;
    net_cancel(s->net, s->op.request);
    on_done(s, &n);
}

static uint64_t open_stream(struct envd *c, const char *path, struct buf *json, const char *user,
                            int timeout_ms, int keepalive_s, const char *what,
                            const struct envd_proc_cb *cb)
{
    struct stream *s = xcalloc(1, sizeof(*s));
    struct net_req *q = envd_request(c, "POST", path);
    int ping = keepalive_s > 0 ? keepalive_s : c->keepalive_s;
    char num[16];

    s->what = what;
    s->net = c->net;
    s->cb = *cb;
    wire_env_init(&s->wire);
    buf_init(&s->refusal, REFUSAL_MAX);
    s->op.stream = true;
    op_start(c, &s->op, stream_free);
    net_req_header(q, "Connect-Protocol-Version", "1");
    net_req_header(q, "Content-Type", "application/connect+json");
    snprintf(num, sizeof(num), "%d", ping);
    net_req_header(q, "Keepalive-Ping-Interval", num);
    if (timeout_ms > 0) {
        snprintf(num, sizeof(num), "%d", timeout_ms);
        net_req_header(q, "Connect-Timeout-Ms", num);
    }
    if (user) {
        char *pair = xasprintf("%s:", user), *b64 = b64_encode(pair, strlen(pair));
        char *value = xasprintf("Basic %s", b64);
        net_req_header(q, "Authorization", value);
        free(value);
        free(b64);
        free(pair);
    }
    wire_env_add(&q->body, 0, json->p, json->len);
    secret_wipe(json->p, json->cap);
    buf_release(json);
    q->stream = true;
    q->idle_ms = ping * 2500;
    q->on_head = on_head;
    q->on_body = on_body;
    q->on_done = on_done;
    q->ctx = s;
    s->op.request = net_submit(c->net, q);
    return s->op.id;
}

static size_t spec_room(const struct envd_proc_spec *p)
{
    size_t n = 512 + 6 * strlen(p->cmd) + (p->cwd ? 6 * strlen(p->cwd) : 0);

    for (const char *const *a = p->args; a && *a; a++)
        n += 6 * strlen(*a) + 8;
    for (const struct kv *v = p->env; v && v->k; v++)
        n += 6 * (strlen(v->k) + strlen(v->v ? v->v : "")) + 16;
    return n;
}

uint64_t envd_start(struct envd *c, const struct envd_proc_spec *p, const struct envd_proc_cb *cb)
{
    struct buf b = BUF_INIT;
    struct jw w;

    buf_reserve(&b, spec_room(p)); /* at once: growing would leave copies behind */
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_obj(&w, "process");
    jw_str(&w, "cmd", p->cmd);
    jw_arr(&w, "args");
    for (const char *const *a = p->args; a && *a; a++)
        jw_str(&w, NULL, *a);
    jw_end(&w);
    jw_obj(&w, "envs");
    for (const struct kv *v = p->env; v && v->k; v++)
        jw_str(&w, v->k, v->v ? v->v : "");
    jw_end(&w);
    if (p->cwd)
        jw_str(&w, "cwd", p->cwd);
    jw_end(&w);
    if (p->pty_cols > 0 && p->pty_rows > 0) {
        jw_obj(&w, "pty");
        jw_obj(&w, "size");
        jw_i64(&w, "cols", p->pty_cols);
        jw_i64(&w, "rows", p->pty_rows);
        jw_end(&w);
        jw_end(&w);
    } else {
        jw_bool(&w, "stdin", p->stdin_open);
    }
    jw_end(&w);
    return open_stream(c, "/process.Process/Start", &b, p->user, p->timeout_ms, p->keepalive_s,
                       "run a command in the sandbox", cb);
}

static void put_pid(struct buf *b, int pid, const char *rest)
{
    buf_addf(b, "{\"process\":{\"pid\":%d}%s", pid, rest);
}

uint64_t envd_connect(struct envd *c, int pid, int keepalive_s, const struct envd_proc_cb *cb)
{
    struct buf b = BUF_INIT;

    put_pid(&b, pid, "}");
    return open_stream(c, "/process.Process/Connect", &b, NULL, 0, keepalive_s,
                       "follow a process in the sandbox", cb);
}

static uint64_t send_bytes(struct envd *c, int pid, const char *kind, const char *data,
                           size_t len, envd_fn fn, void *ctx)
{
    char *b64 = b64_encode(data, len);
    size_t n = strlen(b64);
    struct buf b = BUF_INIT;

    buf_reserve(&b, n + 128);
    put_pid(&b, pid, ",\"input\":{\"");
    buf_addf(&b, "%s\":\"", kind);
    buf_add(&b, b64, n);
    buf_adds(&b, "\"}}");
    secret_wipe(b64, n);
    free(b64);
    return envd_unary(c, "/process.Process/SendInput", &b, false, "send input to the process", fn,
                      ctx);
}

uint64_t envd_send_input(struct envd *c, int pid, const char *data, size_t len, envd_fn fn,
                         void *ctx)
{
    return send_bytes(c, pid, "stdin", data, len, fn, ctx);
}

uint64_t envd_send_pty(struct envd *c, int pid, const char *data, size_t len, envd_fn fn,
                       void *ctx)
{
    return send_bytes(c, pid, "pty", data, len, fn, ctx);
}

uint64_t envd_close_stdin(struct envd *c, int pid, envd_fn fn, void *ctx)
{
    struct buf b = BUF_INIT;

    put_pid(&b, pid, "}");
    return envd_unary(c, "/process.Process/CloseStdin", &b, true, "end the input of the process",
                      fn, ctx);
}

uint64_t envd_resize(struct envd *c, int pid, int cols, int rows, envd_fn fn, void *ctx)
{
    struct buf b = BUF_INIT;

    put_pid(&b, pid, "");
    buf_addf(&b, ",\"pty\":{\"size\":{\"cols\":%d,\"rows\":%d}}}", cols, rows);
    return envd_unary(c, "/process.Process/Update", &b, true, "tell the size of the terminal", fn,
                      ctx);
}

uint64_t envd_signal(struct envd *c, int pid, bool kill, envd_fn fn, void *ctx)
{
    struct buf b = BUF_INIT;

    put_pid(&b, pid, kill ? ",\"signal\":\"SIGNAL_SIGKILL\"}" : ",\"signal\":\"SIGNAL_SIGTERM\"}");
    return envd_unary(c, "/process.Process/SendSignal", &b, true, "signal the process", fn, ctx);
}

uint64_t envd_list(struct envd *c, envd_fn fn, void *ctx)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, "{}");
    return envd_unary(c, "/process.Process/List", &b, true, "list the processes of the sandbox", fn,
                      ctx);
}
