/* A sandbox whose processes somebody looks at: asked where it is once, then its list every
 * few seconds for as long as it is seen. */
#include "foreign_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_MS = 150, LIST_MS = 5000, GIVE_UP_MS = 8000 };

static void list_now(void *ctx);

/* --- telling --------------------------------------------------------------------- */

void foreign_post(struct foreign *f)
{
    struct ev_procs *ev = ev_new(EV_PROCS);

    ev->sandbox = f->row;
    ev->p.state = f->p.state;
    ev->p.text = xstrdup(f->p.text);
    ev->p.n = f->p.n;
    ev->p.more = f->p.more;
    ev->p.v = xcalloc(f->p.n + 1, sizeof(*ev->p.v));
    for (size_t i = 0; i < f->p.n; i++)
        proc_copy(&ev->p.v[i], &f->p.v[i]);
    livewatch_fill(f->watch, &ev->p);
    jobs_post(f->j, ev);
}

static bool same_list(const struct procs *p, const struct proc_list *l)
{
    if (p->state != PROCS_LISTED || p->n != l->n || p->more != l->more)
        return false;
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].pid != l->v[i].pid || p->v[i].ident != l->v[i].ident ||
            !str_eq(p->v[i].cwd, l->v[i].cwd) || !str_eq(p->v[i].tag, l->v[i].tag))
            return false;
    return true;
}

static void answer(struct foreign *f, const struct err *e)
{
    for (size_t i = 0; i < f->asked.n; i++)
        jobs_done(f->j, f->asked.v[i], e, f->row);
    ARR_CLEAR(&f->asked);
}

static void again(struct foreign *f, int64_t ms)
{
    net_timer_cancel(f->j->o.net, f->timer);
    f->timer = f->looked ? net_timer(f->j->o.net, ms, list_now, f) : 0;
}

/* The next one comes right after a complete list of the sandboxes: what we know of this one
 * is fresh then, and one that somebody has paused is not woken by our asking. */
static void rest(struct foreign *f)
{
    f->due = clock_mono_ms() + LIST_MS;
}

/* What was listed goes: it may be wrong by now. */
static void cannot(struct foreign *f, const struct err *e)
{
    if (f->p.state != PROCS_CANNOT || !str_eq(f->p.text, e->text)) {
        procs_release(&f->p);
        f->p.state = PROCS_CANNOT;
        core_row_set(&f->p.text, e->text);
        foreign_post(f);
    }
    answer(f, e);
    rest(f);
}

/* --- the list -------------------------------------------------------------------- */

static void on_list(void *ctx, const struct envd_result *r)
{
    struct foreign *f = ctx;
    struct proc_list l;
    struct err e = r->err;

    f->call = 0;
    if (!e.code)
        proc_list_parse(&l, r->body, r->len, 0, &e);
    if (e.code) { /* next time it is asked where it is, so that nothing wakes it */
        if (e.sys == 502)
            core_poll_soon(f->j, 0);
        envd_free(f->envd);
        f->envd = NULL;
        cannot(f, &e);
        return;
    }
    f->listed_at = clock_mono_ms();
    if (same_list(&f->p, &l)) {
        proc_list_release(&l);
        if (f->asked.n)
            foreign_post(f);
    } else {
        procs_release(&f->p);
        f->p.state = PROCS_LISTED;
        f->p.v = l.v;
        f->p.n = l.n;
        f->p.more = l.more;
        foreign_post(f);
    }
    answer(f, NULL);
    rest(f);
}

static void on_reached(void *ctx, struct envd *take, const struct err *e)
{
    struct foreign *f = ctx;

    if (!take) {
        cannot(f, e);
        return;
    }
    f->envd = take;
    f->call = envd_list(take, on_list, f);
}

static void list_now(void *ctx)
{
    struct foreign *f = ctx;
    const struct sandbox *row = jobs_row(f->j, f->row);
    struct err e = {0};

    f->timer = 0;
    f->due = 0;
    if (f->call || f->reach.call)
        return;
    if (reach_refusal(row, &e)) {
        envd_free(f->envd);
        f->envd = NULL;
        cannot(f, &e);
    } else if (f->envd) {
        f->call = envd_list(f->envd, on_list, f);
    } else if (reach_ask(&f->reach, f->j, f->row, f->asked.n ? GIVE_UP_MS : 0, on_reached, f,
                         &e)) {
        cannot(f, &e);
    }
}

static void stop_list(struct foreign *f)
{
    net_timer_cancel(f->j->o.net, f->timer);
    f->timer = 0;
    reach_cancel(&f->reach);
    envd_free(f->envd); /* its calls end without an answer */
    f->envd = NULL;
    f->call = 0;
}

static void look(struct foreign *f, bool on)
{
    int64_t since = clock_mono_ms() - f->listed_at;

    if (f->looked == on)
        return;
    f->looked = on;
    if (!on) {
        if (!f->asked.n)
            stop_list(f);
        return;
    }
    if (f->p.state == PROCS_UNKNOWN) {
        f->p.state = PROCS_ASKING;
        foreign_post(f);
    }
    /* whoever only passes by with the cursor asks nothing */
    if (f->p.state != PROCS_LISTED || since >= LIST_MS)
        again(f, FIRST_MS);
    else
        f->due = f->listed_at + LIST_MS;
}

void foreign_list_soon(struct jobs *j, uint64_t row)
{
    struct foreign *f = foreign_find(j, row);

    if (f && f->looked && !f->call && !f->reach.call)
        again(f, FIRST_MS);
}

/* --- life ------------------------------------------------------------------------ */

struct foreign *foreign_find(struct jobs *j, uint64_t row)
{
    return map_get_id(j->priv->foreign, row);
}

struct foreign *foreign_of(struct jobs *j, uint64_t row)
{
    struct foreign *f = foreign_find(j, row);

    if (f)
        return f;
    f = xcalloc(1, sizeof(*f));
    f->j = j;
    f->row = row;
    map_put_id(j->priv->foreign, row, f);
    return f;
}

static void foreign_free(void *p)
{
    struct foreign *f = p;
    struct err e = {0};

    err_set(&e, ERR_CANCELLED, "its processes are not asked for any more");
    answer(f, &e);
    stop_list(f);
    livewatch_free(f->watch);
    procs_release(&f->p);
    ARR_RELEASE(&f->asked);
    free(f);
}

void core_foreign_init(struct jobs *j)
{
    j->priv->foreign = map_new();
}

void core_foreign_stop(struct jobs *j)
{
    prockill_release(j);
    adopt_release(j);
    map_free(j->priv->foreign, foreign_free);
    j->priv->foreign = map_new();
}

void core_foreign_release(struct jobs *j)
{
    map_free(j->priv->foreign, NULL); /* empty since the stop */
    ARR_RELEASE(&j->priv->watches);
}

void core_foreign_drop(struct jobs *j, uint64_t row)
{
    struct foreign *f = map_del_id(j->priv->foreign, row);

    if (f)
        foreign_free(f);
}

void core_foreign_state(struct jobs *j, const struct sandbox *row)
{
    struct foreign *f = foreign_find(j, row->id);

    struct err e;
    bool refused = reach_refusal(row, &e) != 0;

    procwatch_row_state(j, row);
    if (f && f->looked && !f->call && !f->reach.call && refused != (f->p.state == PROCS_CANNOT))
        again(f, 0); /* says "paused", or lists again */
}

void core_foreign_relocate(struct jobs *j)
{
    size_t it = 0;
    struct foreign *f;

    procwatch_relocate(j);
    while ((f = map_next(j->priv->foreign, &it, NULL, NULL))) {
        stop_list(f);
        if (f->looked || f->asked.n)
            f->timer = net_timer(j->o.net, FIRST_MS, list_now, f);
    }
}

void core_foreign_listed(struct jobs *j)
{
    int64_t now = clock_mono_ms();
    size_t it = 0;
    struct foreign *f;

    while ((f = map_next(j->priv->foreign, &it, NULL, NULL)))
        if (f->looked && f->due && f->due <= now && !f->timer)
            list_now(f);
    adopt_refresh(j);
}

void core_foreign_shown(struct jobs *j, uint64_t row, bool on)
{
    foreign_of(j, row)->shown = on;
}

/* --- commands -------------------------------------------------------------------- */

static void list_once(struct foreign *f, uint64_t req_id)
{
    *ARR_PUSH(&f->asked) = req_id;
    if (!f->call && !f->reach.call) {
        net_timer_cancel(f->j->o.net, f->timer);
        list_now(f);
    }
}

void core_foreign_action(struct jobs *j, const struct cmd *c)
{
    struct foreign *f = foreign_of(j, c->sandbox);

    switch ((enum cmd_type)c->m.type) {
    case CMD_PROCS:
        look(f, c->on);
        break;
    case CMD_PROC_LIST:
        list_once(f, c->m.req_id);
        break;
    case CMD_PROC_WATCH:
        livewatch_start(f, c->m.req_id, (int)c->n, c->id, c->on);
        break;
    case CMD_PROC_KILL:
        prockill_start(j, c);
        break;
    case CMD_ADOPT:
        adopt_start(j, c);
        break;
    default:
        adopt_undo(j, c);
        break;
    }
}
