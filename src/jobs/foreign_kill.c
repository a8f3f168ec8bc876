/* A signal to one process: what has its number now is looked up just before, and whether
 * it has ended just after. */
#include "foreign_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

enum { GIVE_UP_MS = 10000, LOOK_MS = 150, ENDS_MS = 2000 };

struct prockill {
    struct jobs *j;
    uint64_t row, req_id, ident, timer;
    int pid;
    bool hard;      /* SIGKILL */
    bool sent;
    int64_t until;  /* mono: so long its end is waited for */
    struct reach reach;
    struct envd *envd;
};

static void prockill_free(struct prockill *k)
{
    net_timer_cancel(k->j->o.net, k->timer);
    reach_cancel(&k->reach);
    envd_free(k->envd);
    free(k);
}

static const char *signal_name(const struct prockill *k)
{
    return k->hard ? "SIGKILL" : "SIGTERM";
}

static void finish(struct prockill *k, const struct err *e)
{
    struct jobs *j = k->j;

    if (!e)
        jobs_say(j, 0, k->row, "process %d was ended by %s", k->pid, signal_name(k));
    jobs_done(j, k->req_id, e, k->row);
    foreign_list_soon(j, k->row);
    for (size_t i = 0; i < j->priv->prockills.n; i++)
        if (j->priv->prockills.v[i] == k) {
            ARR_REMOVE(&j->priv->prockills, i);
            break;
        }
    prockill_free(k);
}

static void on_list(void *ctx, const struct envd_result *r);

static void list_again(void *ctx)
{
    struct prockill *k = ctx;

    k->timer = 0;
    envd_list(k->envd, on_list, k);
}

static void on_signalled(void *ctx, const struct envd_result *r)
{
    struct prockill *k = ctx;
    struct err e = r->err;

    if (e.code && e.code != ERR_NOTFOUND) {
        err_wrap(&e, "process %d may still run", k->pid);
        finish(k, &e);
        return;
    }
    k->sent = true;
    k->until = clock_mono_ms() + ENDS_MS;
    k->timer = net_timer(k->j->o.net, LOOK_MS, list_again, k);
}

/* The signal is out: does it still run? */
static void judge(struct prockill *k, const struct proc *p)
{
    struct err e = {0};

    if (!p || p->ident != k->ident) {
        finish(k, NULL);
    } else if (clock_mono_ms() < k->until) {
        k->timer = net_timer(k->j->o.net, LOOK_MS, list_again, k);
    } else {
        err_set(&e, ERR_CONFLICT, "process %d got %s and still runs%s", k->pid, signal_name(k),
                k->hard ? "; kill the sandbox" : "; SIGKILL ends it for certain");
        finish(k, &e);
    }
}

static void strike(struct prockill *k, const struct proc *p)
{
    struct err e = {0};

    if (!p)
        err_set(&e, ERR_NOTFOUND, "nothing was done: no process %d runs there", k->pid);
    else if (k->ident && p->ident != k->ident)
        err_set(&e, ERR_CONFLICT, "nothing was done: process %d is another one by now: %.200s",
                k->pid, p->command);
    if (e.code) {
        finish(k, &e);
        return;
    }
    k->ident = p->ident;
    envd_signal(k->envd, k->pid, k->hard, on_signalled, k);
}

static void on_list(void *ctx, const struct envd_result *r)
{
    struct prockill *k = ctx;
    struct proc_list l = {0};
    struct err e = r->err;

    if (!e.code)
        proc_list_parse(&l, r->body, r->len, k->pid, &e);
    if (e.code && k->sent)
        err_wrap(&e, "process %d got %s, but whether it ended is not known", k->pid,
                 signal_name(k));
    else if (e.code)
        err_wrap(&e, "nothing was done to process %d", k->pid);
    if (e.code)
        finish(k, &e);
    else if (k->sent)
        judge(k, proc_list_find(&l, k->pid));
    else
        strike(k, proc_list_find(&l, k->pid));
    proc_list_release(&l);
}

static void on_reached(void *ctx, struct envd *take, const struct err *why)
{
    struct prockill *k = ctx;
    struct err e;

    if (take) {
        k->envd = take;
        envd_list(take, on_list, k);
        return;
    }
    e = *why;
    err_wrap(&e, "nothing was done to process %d", k->pid);
    finish(k, &e);
}

void prockill_start(struct jobs *j, const struct cmd *c)
{
    struct prockill *k = xcalloc(1, sizeof(*k));
    struct err e = {0};

    *k = (struct prockill){.j = j, .row = c->sandbox, .req_id = c->m.req_id, .ident = c->id,
                           .pid = (int)c->n, .hard = c->on};
    *ARR_PUSH(&j->priv->prockills) = k;
    if (reach_ask(&k->reach, j, k->row, GIVE_UP_MS, on_reached, k, &e)) {
        err_wrap(&e, "nothing was done to process %d", k->pid);
        finish(k, &e);
    }
}

void prockill_release(struct jobs *j)
{
    for (size_t i = 0; i < j->priv->prockills.n; i++)
        prockill_free(j->priv->prockills.v[i]);
    ARR_RELEASE(&j->priv->prockills);
}
