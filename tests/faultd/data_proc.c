/* process.Process: the methods, the events, and who listens. */
#include "proc.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORGET_MS = 30000, KEEPALIVE_S = 90 };

/* ---- events ---- */

static void hold(struct proc *p, bool on)
{
    if (p->held == on || p->done)
        return;
    p->held = on;
    if (p->built_in)
        lines_hold(p, on);
    else
        run_hold(p, on);
}

static bool send_all(struct proc *p, const char *json, size_t len)
{
    bool room = true;

    for (size_t i = 0; i < p->subs.n; i++) {
        struct sub *s = p->subs.v[i];
        room &= rpc_send(s->x, json, len);
        if (s->keepalive_ms)
            loop_timer(&s->keepalive, s->keepalive_ms);
    }
    return room;
}

bool proc_emit(struct proc *p, const char *name, const void *bytes, size_t len)
{
    char *b64 = b64_encode(bytes, len);
    static struct buf b;
    bool room;

    buf_clear(&b);
    buf_addf(&b, "{\"event\":{\"data\":{\"%s\":\"%s\"}}}", name, b64);
    free(b64);
    room = send_all(p, b.p, b.len);
    if (!room) /* one slow listener stops the process, as in a real sandbox */
        hold(p, true);
    return room;
}

static char *end_event(int status)
{
    struct buf b = BUF_INIT;
    char text[64], *at;
    struct jw w;

    if (WIFSIGNALED(status)) {
        snprintf(text, sizeof(text), "signal: %s", sigdescr_np(WTERMSIG(status)));
        for (at = text; *at; at++)
            *at = (char)(*at >= 'A' && *at <= 'Z' ? *at + 32 : *at);
    } else {
        snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(status));
    }
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_obj(&w, "event");
    jw_obj(&w, "end");
    if (WIFSIGNALED(status) || WEXITSTATUS(status))
        jw_i64(&w, "exitCode", WIFSIGNALED(status) ? -1 : WEXITSTATUS(status));
    if (!WIFSIGNALED(status))
        jw_bool(&w, "exited", true);
    jw_str(&w, "status", text);
    if (status)
        jw_str(&w, "error", text);
    jw_end(&w);
    jw_end(&w);
    jw_end(&w);
    return buf_detach(&b, NULL);
}

/* ---- listeners ---- */

static void on_gone(struct exchange *x)
{
    struct sub *s = x->owner;
    struct proc *p = s->proc;

    x->gone = NULL;
    x->drained = NULL;
    loop_timer_stop(&s->keepalive);
    loop_timer_stop(&s->deadline);
    for (size_t i = 0; i < p->subs.n; i++)
        if (p->subs.v[i] == s) {
            ARR_REMOVE(&p->subs, i);
            break;
        }
    free(s);
    if (p->held)
        hold(p, false); /* it may have been the slow one; else it is held again soon */
}

static void on_drained(struct exchange *x)
{
    struct sub *s = x->owner;

    for (size_t i = 0; i < s->proc->subs.n; i++)
        if (s->proc->subs.v[i]->x->full)
            return;
    hold(s->proc, false);
}

static void on_keepalive(struct timer *t)
{
    struct sub *s = OWNER_OF(t, struct sub, keepalive);

    rpc_keepalive(s->x);
    loop_timer(&s->keepalive, s->keepalive_ms);
}

static void give_up(struct sub *s)
{
    struct exchange *x = s->x;

    on_gone(x);
    rpc_close(x, "deadline_exceeded", "the operation timed out");
}

/* Of a Connect: the stream ends. */
static void on_sub_deadline(struct timer *t)
{
    give_up(OWNER_OF(t, struct sub, deadline));
}

/* Of a Start: the process ends too, whoever listens by now. */
static void on_deadline(struct timer *t)
{
    struct proc *p = OWNER_OF(t, struct proc, deadline);

    for (size_t i = p->subs.n; i-- > 0;)
        if (p->subs.v[i]->starter)
            give_up(p->subs.v[i]);
    if (p->done)
        return;
    if (p->built_in) {
        proc_done(p, SIGKILL);
    } else if (!p->exited) {
        p->killed = true;
        jail_signal(p->data->jail, p->pid, SIGKILL);
    }
}

static void listen_to(struct proc *p, struct exchange *x, bool starter)
{
    struct sub *s = xcalloc(1, sizeof(*s));
    char text[64], start[64];
    int64_t n = KEEPALIVE_S;

    s->proc = p;
    s->x = x;
    x->owner = s;
    x->gone = on_gone;
    x->drained = on_drained;
    s->keepalive.fire = on_keepalive;
    s->deadline.fire = on_sub_deadline;
    s->starter = starter;
    *ARR_PUSH(&p->subs) = s;
    if (header_value(x->req.head, "Keepalive-Ping-Interval", text, sizeof(text)))
        str_to_i64(text, 1, 86400, &n);
    s->keepalive_ms = n * 1000;
    loop_timer(&s->keepalive, s->keepalive_ms);
    if (header_value(x->req.head, "Connect-Timeout-Ms", text, sizeof(text)) &&
        str_to_i64(text, 0, INT32_MAX, &n))
        loop_timer(starter ? &p->deadline : &s->deadline, n);
    rpc_open(x);
    snprintf(start, sizeof(start), "{\"event\":{\"start\":{\"pid\":%d}}}", p->pid);
    rpc_send(x, start, strlen(start));
}

static void leave_all(struct proc *p, const char *event, bool cut)
{
    while (p->subs.n) {
        struct exchange *x = p->subs.v[p->subs.n - 1]->x;
        on_gone(x);
        if (cut) {
            exchange_break(x, END_STREAM);
            continue;
        }
        rpc_send(x, event, strlen(event));
        rpc_close(x, NULL, NULL);
    }
}

/* ---- life ---- */

static void proc_free(struct proc *p)
{
    struct proc **at = &p->data->procs;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    leave_all(p, "", true);
    loop_timer_stop(&p->forget);
    loop_timer_stop(&p->deadline);
    loop_timer_stop(&p->lines.tick);
    if (!p->built_in)
        run_release(p);
    ARR_RELEASE(&p->subs);
    free(p->config);
    free(p->tag);
    free(p->end);
    loop_bury(p);
}

static void on_forget(struct timer *t)
{
    proc_free(OWNER_OF(t, struct proc, forget));
}

void proc_done(struct proc *p, int status)
{
    if (p->done)
        return;
    p->done = true;
    p->end = end_event(status);
    loop_timer_stop(&p->lines.tick);
    leave_all(p, p->end, false);
    loop_timer(&p->forget, FORGET_MS);
}

void proc_exited(void *data, int pid, int status)
{
    struct data *d = data;

    for (struct proc *p = d->procs; p; p = p->next)
        if (p->pid == pid && !p->built_in && !p->exited) {
            run_exited(p, status);
            return;
        }
}

void proc_free_all(struct data *d)
{
    while (d->procs)
        proc_free(d->procs);
}

void proc_cut_all(struct data *d)
{
    for (struct proc *p = d->procs; p; p = p->next)
        leave_all(p, "", true);
}

static struct proc *find(struct data *d, const struct cJSON *selector)
{
    int64_t pid = json_i64(selector, "pid", 0);
    const char *tag = json_str(selector, "tag", NULL);

    for (struct proc *p = d->procs; p; p = p->next)
        if (tag ? str_eq(tag, p->tag) : p->pid == pid)
            return p;
    return NULL;
}

/* ---- methods ---- */

static void start(struct data *d, struct exchange *x)
{
    struct cJSON *j = rpc_message(x, true);
    const struct cJSON *config = json_get(j, "process");
    struct proc *p;
    bool ok;

    if (!json_str(config, "cmd", NULL)) {
        rpc_refuse(x, "invalid_argument", "a command is needed");
        json_free(j);
        return;
    }
    p = xcalloc(1, sizeof(*p));
    p->data = d;
    p->next = d->procs;
    d->procs = p;
    p->forget.fire = on_forget;
    p->deadline.fire = on_deadline;
    p->in.fd = -1;
    p->config = json_text(config);
    p->tag = xstrdup(json_str(j, "tag", NULL));
    p->built_in = str_eq(json_str(config, "cmd", ""), "faultd-lines");
    ok = p->built_in ? lines_start(p, config) : run_start(p, j, x);
    if (ok)
        listen_to(p, x, true);
    else if (!x->stream)
        rpc_refuse(x, "invalid_argument", "faultd-lines RATE COUNT [SEED]");
    if (!ok)
        proc_free(p);
    json_free(j);
}

static void connect_to(struct data *d, struct exchange *x)
{
    struct cJSON *j = rpc_message(x, true);
    struct proc *p = find(d, json_get(j, "process"));

    json_free(j);
    if (!p) {
        rpc_refuse(x, "not_found", "no such process");
        return;
    }
    listen_to(p, x, false);
    if (p->done)
        leave_all(p, p->end, false);
}

static void list(struct data *d, struct exchange *x)
{
    struct jw w;

    x->a.status = 200;
    jw_init(&w, &x->a.body);
    jw_obj(&w, NULL);
    jw_arr(&w, "processes");
    for (struct proc *p = d->procs; p; p = p->next) {
        if (p->done)
            continue;
        jw_obj(&w, NULL);
        jw_raw(&w, "config", p->config);
        jw_i64(&w, "pid", p->pid);
        if (p->tag)
            jw_str(&w, "tag", p->tag);
        jw_end(&w);
    }
    jw_end(&w);
    jw_end(&w);
}

static void send_input(struct proc *p, const struct cJSON *j, struct exchange *x)
{
    const char *text = json_str(json_get(j, "input"), p->tty ? "pty" : "stdin", NULL);
    size_t len;
    char *bytes;

    if (!text) {
        rpc_error(x, "internal", "this input is not for this kind of process");
        return;
    }
    bytes = b64_decode(text, strlen(text), &len);
    if (!bytes) {
        rpc_error(x, "invalid_argument", "the input is no base64");
        return;
    }
    if (!p->built_in)
        run_input(p, bytes, len);
    free(bytes);
    rpc_answer(x, "{}");
}

static void send_signal(struct proc *p, const struct cJSON *j, struct exchange *x)
{
    const char *name = json_str(j, "signal", "");
    int sig = str_eq(name, "SIGNAL_SIGKILL")   ? SIGKILL
              : str_eq(name, "SIGNAL_SIGTERM") ? SIGTERM
                                               : 0;

    if (!sig) {
        rpc_error(x, "unimplemented", "no such signal");
        return;
    }
    rpc_answer(x, "{}");
    if (p->built_in) {
        proc_done(p, sig);
    } else if (!p->exited) {
        p->killed = true;
        jail_signal(p->data->jail, p->pid, sig);
    }
}

static void about_one(struct data *d, struct exchange *x, const char *method)
{
    struct cJSON *j = rpc_message(x, false);
    struct proc *p = find(d, json_get(j, "process"));
    const struct cJSON *size = json_path(j, "pty.size");

    if (!p || p->done) {
        rpc_error(x, "not_found", "no such process");
    } else if (str_eq(method, "SendInput")) {
        send_input(p, j, x);
    } else if (str_eq(method, "SendSignal")) {
        send_signal(p, j, x);
    } else if (str_eq(method, "CloseStdin")) {
        if (p->tty) {
            rpc_error(x, "unknown", "a terminal's input is not closed: send byte 4");
        } else {
            run_close_input(p);
            rpc_answer(x, "{}");
        }
    } else {
        run_resize(p, (int)json_i64(size, "cols", 0), (int)json_i64(size, "rows", 0));
        rpc_answer(x, "{}");
    }
    json_free(j);
}

void proc_route(struct data *d, struct exchange *x, const char *method)
{
    static const char *const unary[] = {"SendInput", "SendSignal", "CloseStdin", "Update"};

    if (str_eq(method, "Start")) {
        start(d, x);
    } else if (str_eq(method, "Connect")) {
        connect_to(d, x);
    } else if (str_eq(method, "List")) {
        list(d, x);
    } else {
        for (size_t i = 0; i < sizeof(unary) / sizeof(unary[0]); i++)
            if (str_eq(method, unary[i])) {
                about_one(d, x, method);
                return;
            }
        rpc_error(x, "unimplemented", "%s is not served here", method);
    }
}
