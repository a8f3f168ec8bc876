/* The live output of one process. What is put out while nobody is connected is lost, so
 * each loss is told with its times. After one the control plane is asked first: a request
 * to a paused sandbox may wake it. Then the list: the same pid with another command line is
 * another process. A process that is not listed any more is connected to all the same, for
 * envd keeps its end for a while. */
#include "foreign_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The stream is called dead after so long without a byte or a ping (see envd). */
enum { KEEPALIVE_S = 15, SILENT_MS = 38000, GIVE_UP_MS = 8000, PAUSED_MS = 5000,
       BACKOFF_MS = 200, BACKOFF_MAX_MS = 15000 };

struct procwatch {
    struct jobs *j;
    uint64_t row;
    int pid;
    uint64_t ident;
    struct procwatch_cb cb;
    const struct envd_proc_spec *launch; /* to be started, or being started */
    struct reach reach;
    struct envd *envd;
    struct proc_list list;  /* the entry that is connected to is in it */
    uint64_t call, stream, timer;
    int attempt;
    bool listed, live, seen; /* seen: it was live once */
    bool held;               /* not read at the moment */
    bool told_lost, paused;
    int64_t byte_at, lost_at; /* wall ms */
};

static void go(void *ctx);

static void close_calls(struct procwatch *w)
{
    net_timer_cancel(w->j->o.net, w->timer);
    w->timer = 0;
    reach_cancel(&w->reach);
    envd_free(w->envd);
    w->envd = NULL;
    w->call = w->stream = 0;
    w->live = false;
}

static void wait(struct procwatch *w, int64_t ms)
{
    net_timer_cancel(w->j->o.net, w->timer);
    w->timer = net_timer(w->j->o.net, ms, go, w);
}

/* We are not connected; remember since when. */
static void unconnected(struct procwatch *w)
{
    int64_t now = clock_wall_ms();

    if (w->live && !w->lost_at)
        w->lost_at = w->byte_at > now - SILENT_MS ? w->byte_at : now - SILENT_MS;
    close_calls(w);
}

static void over(struct procwatch *w, const struct proc_end *end)
{
    close_calls(w);
    w->cb.on_end(w->cb.ctx, end); /* may free it */
}

static void over_err(struct procwatch *w, int code, const char *text)
{
    struct proc_end end = {.exit_code = -1};

    err_set(&end.err, code, "%s", text);
    over(w, &end);
}

static void lost(struct procwatch *w, const struct err *e)
{
    struct err copy = *e;

    if (w->launch) { /* it may run or not: nothing is started twice */
        over_err(w, copy.code, copy.text);
        return;
    }
    unconnected(w);
    if (e->code == ERR_NETWORK || e->code == ERR_NOTFOUND)
        core_poll_soon(w->j, 0);
    wait(w, net_backoff_ms(w->attempt++, BACKOFF_MS, BACKOFF_MAX_MS));
    if (w->told_lost)
        return;
    w->told_lost = true;
    w->cb.on_lost(w->cb.ctx, &copy, false);
}

static void pause_it(struct procwatch *w)
{
    struct err e = {0};

    if (w->launch) {
        over_err(w, ERR_CONFLICT, "the sandbox is paused: resume it first");
        return;
    }
    unconnected(w);
    wait(w, PAUSED_MS); /* asks the control plane alone */
    if (w->paused)
        return;
    w->paused = w->told_lost = true;
    err_set(&e, ERR_CONFLICT, "the sandbox is paused: resume it first");
    w->cb.on_lost(w->cb.ctx, &e, true);
}

/* --- the stream ------------------------------------------------------------------ */

/* Its command line as the sandbox tells it: by that it is known again after a loss. */
static void on_ident(void *ctx, const struct envd_result *r)
{
    struct procwatch *w = ctx;
    struct proc_list l = {0};
    const struct proc *p;
    struct err e = {0};

    w->call = 0;
    if (r->err.code || proc_list_parse(&l, r->body, r->len, w->pid, &e) != 0)
        return;
    p = proc_list_find(&l, w->pid);
    if (p)
        w->ident = p->ident;
    proc_list_release(&l);
}

static void launched(struct procwatch *w, int pid)
{
    w->launch = NULL;
    w->pid = pid;
    w->live = w->seen = w->listed = true;
    w->call = envd_list(w->envd, on_ident, w);
    w->cb.on_started(w->cb.ctx, pid);
}

static void on_start(void *ctx, int pid)
{
    struct procwatch *w = ctx;
    int64_t lost_at = w->lost_at;

    w->byte_at = clock_wall_ms();
    if (w->launch) {
        launched(w, pid);
        return;
    }
    if (!w->listed)
        return; /* its end comes next */
    w->live = w->seen = true;
    w->told_lost = w->paused = false;
    w->attempt = 0;
    w->lost_at = 0;
    w->cb.on_live(w->cb.ctx, proc_list_find(&w->list, w->pid), lost_at);
}

static bool on_data(void *ctx, enum envd_stream s, const char *data, size_t len)
{
    struct procwatch *w = ctx;

    w->byte_at = clock_wall_ms();
    w->cb.on_data(w->cb.ctx, s, data, len);
    return true;
}

static void on_end(void *ctx, const struct envd_end *end)
{
    struct procwatch *w = ctx;
    char *status = end->status ? xstrdup(end->status) : NULL;
    struct proc_end out = {.known = true, .status = status};

    w->stream = 0;
    if (end->ended) {
        out.sig = end->exited ? 0 : proc_end_signal(end->status);
        out.exit_code = end->exited ? end->exit_code : -1;
        over(w, &out);
    } else if (end->err.code == ERR_NOTFOUND && !w->launch) {
        over_err(w, 0, "");
    } else {
        lost(w, &end->err);
    }
    free(status);
}

static void connect_it(struct procwatch *w)
{
    struct envd_proc_cb cb = {on_start, on_data, on_end, w};

    w->stream = envd_connect(w->envd, w->pid, KEEPALIVE_S, &cb);
    envd_pause(w->envd, w->stream, w->held);
}

static void start_it(struct procwatch *w)
{
    struct envd_proc_cb cb = {on_start, on_data, on_end, w};

    w->stream = envd_start(w->envd, w->launch, &cb);
}

/* --- is it there? ---------------------------------------------------------------- */

static void on_list(void *ctx, const struct envd_result *r)
{
    struct procwatch *w = ctx;
    struct err e = r->err;
    const struct proc *p;
    char text[80];

    w->call = 0;
    proc_list_release(&w->list);
    if (!e.code)
        proc_list_parse(&w->list, r->body, r->len, w->pid, &e);
    if (e.code) {
        lost(w, &e);
        return;
    }
    p = proc_list_find(&w->list, w->pid);
    w->listed = p && (!w->ident || p->ident == w->ident);
    if (w->listed) {
        w->ident = p->ident;
        connect_it(w);
    } else if (p) {
        over_err(w, w->seen ? 0 : ERR_CONFLICT, "its number belongs to another process now");
    } else if (w->ident) {
        connect_it(w);
    } else {
        snprintf(text, sizeof(text), "no process %d runs in the sandbox", w->pid);
        over_err(w, ERR_NOTFOUND, text);
    }
}

static void on_reached(void *ctx, struct envd *take, const struct err *e)
{
    struct procwatch *w = ctx;

    if (!take && e->code == ERR_CONFLICT) {
        pause_it(w);
    } else if (!take) {
        lost(w, e);
    } else if (w->launch) {
        w->envd = take;
        start_it(w);
    } else {
        w->envd = take;
        w->call = envd_list(take, on_list, w);
    }
}

static void go(void *ctx)
{
    struct procwatch *w = ctx;
    const struct sandbox *row = jobs_row(w->j, w->row);
    struct err e = {0};
    int rc = reach_refusal(row, &e);

    w->timer = 0;
    close_calls(w);
    if (w->j->leaving)
        return;
    if (rc && w->launch)
        over_err(w, rc, e.text);
    else if (rc == ERR_NOTFOUND)
        over_err(w, ERR_CONFLICT, e.text);
    else if (rc && row->state == SB_PAUSED && !w->paused)
        pause_it(w);
    else if (rc || reach_ask(&w->reach, w->j, w->row, GIVE_UP_MS, on_reached, w, &e)) {
        if (w->launch)
            over_err(w, e.code, e.text);
        else
            wait(w, PAUSED_MS);
    }
}

/* --- from outside ---------------------------------------------------------------- */

struct procwatch *procwatch_new(struct jobs *j, uint64_t row, int pid, uint64_t ident,
                                const struct procwatch_cb *cb)
{
    struct procwatch *w = xcalloc(1, sizeof(*w));

    w->j = j;
    w->row = row;
    w->pid = pid;
    w->ident = ident;
    w->cb = *cb;
    *ARR_PUSH(&j->priv->watches) = w;
    wait(w, 0);
    return w;
}

struct procwatch *procwatch_start(struct jobs *j, uint64_t row, const struct envd_proc_spec *spec,
                                  const struct procwatch_cb *cb)
{
    struct procwatch *w = procwatch_new(j, row, 0, 0, cb);

    w->launch = spec;
    return w;
}

struct envd *procwatch_envd(const struct procwatch *w)
{
    return w->live ? w->envd : NULL;
}

uint64_t procwatch_ident(const struct procwatch *w)
{
    return w->ident;
}

void procwatch_pause(struct procwatch *w, bool pause)
{
    w->held = pause;
    if (w->stream)
        envd_pause(w->envd, w->stream, pause);
}

void procwatch_free(struct procwatch *w)
{
    if (!w)
        return;
    close_calls(w);
    for (size_t i = 0; i < w->j->priv->watches.n; i++)
        if (w->j->priv->watches.v[i] == w) {
            ARR_REMOVE(&w->j->priv->watches, i);
            break;
        }
    proc_list_release(&w->list);
    free(w);
}

void procwatch_row_state(struct jobs *j, const struct sandbox *row)
{
    struct err e = {0};
    int rc = reach_refusal(row, &e);

    for (size_t i = j->priv->watches.n; i-- > 0;) {
        struct procwatch *w = j->priv->watches.v[i];

        if (w->row != row->id || !(rc ? w->envd || w->reach.call || rc == ERR_NOTFOUND
                                      : w->paused && !w->reach.call && !w->envd))
            continue;
        unconnected(w);
        wait(w, 0);
    }
}

void procwatch_relocate(struct jobs *j)
{
    for (size_t i = j->priv->watches.n; i-- > 0;) {
        struct procwatch *w = j->priv->watches.v[i];

        unconnected(w);
        if (w->launch)
            over_err(w, ERR_CONFLICT, "the account changed while the process was being started");
        else
            wait(w, BACKOFF_MS);
    }
}

void procwatch_gap(struct buf *out, int64_t from, int64_t to)
{
    char a[16], b[16];

    clock_format_hms(a, sizeof(a), from);
    clock_format_hms(b, sizeof(b), to);
    buf_addf(out, "output between %s and %s was not seen", a, b);
}
