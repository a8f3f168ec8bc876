/* A sandbox's transcript, from the store, run after run, as pieces for a command or into a
 * file. The file's pages are written here: small, to a file of this machine, one page for
 * each answer of the store. */
#include "core_priv.h"

#include <cct/agent.h>
#include <cct/model/export.h>
#include <cct/util/fs.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_EVENTS 500
#define FULL_MS 50

struct export {
    struct jobs *j;
    uint64_t req_id, row, timer;
    struct exporter *x; /* NULL: the events themselves */
    struct store_run *runs;
    size_t n, at;
    uint64_t offset;
    uint32_t index;
    char *path, *temp; /* NULL: pieces */
    int fd;
    struct buf out;
};

static void next_page(struct export *x);

static void export_drop(struct export *x)
{
    struct jobs_priv *p = x->j->priv;

    for (size_t i = 0; i < p->exports.n; i++)
        if (p->exports.v[i] == x) {
            ARR_REMOVE(&p->exports, i);
            break;
        }
    jobs_store_forget(x->j, x);
    if (x->timer)
        net_timer_cancel(x->j->o.net, x->timer);
    if (x->fd >= 0)
        close(x->fd);
    if (x->temp)
        unlink(x->temp);
    export_free(x->x);
    buf_release(&x->out);
    free(x->runs);
    free(x->path);
    free(x->temp);
    free(x);
}

static void end(struct export *x, const struct err *e)
{
    struct ev_done *d = ev_new(EV_DONE);

    d->m.req_id = x->req_id;
    d->sandbox = x->row;
    d->text = xstrdup(x->path);
    if (e)
        d->err = *e;
    jobs_post(x->j, d);
    export_drop(x);
}

static int write_out(struct export *x, struct err *e)
{
    int rc = fs_write_all(x->fd, x->out.p, x->out.len);

    buf_clear(&x->out);
    return rc == 0 ? 0
                   : err_sys(e, ERR_IO, "the transcript cannot be written to '%s'", x->path);
}

static int hand_out(struct export *x, struct err *e)
{
    size_t len;

    if (!x->out.len)
        return 0;
    if (x->path)
        return write_out(x, e);
    char *text = buf_detach(&x->out, &len);
    jobs_chunk(x->j, x->req_id, 0, text, len);
    return 0;
}

/* The name appears with the whole file under it; one that is there already stays. */
static int publish(struct export *x, struct err *e)
{
    if (!x->path)
        return 0;
    if (fsync(x->fd) != 0)
        return err_sys(e, ERR_IO, "the transcript cannot be written to '%s'", x->path);
    if (link(x->temp, x->path) != 0)
        return errno == EEXIST
                   ? err_set(e, ERR_CONFLICT, "'%s' is there already: choose another name",
                             x->path)
                   : err_sys(e, ERR_IO, "the transcript cannot be named '%s'", x->path);
    return 0;
}

static void finish(struct export *x)
{
    struct err e = {0};

    if (x->x)
        export_end(x->x, &x->out);
    if (hand_out(x, &e) == 0)
        publish(x, &e);
    end(x, e.code ? &e : NULL);
}

static void add_event(struct export *x, const struct agent_event *ev)
{
    if (x->x) {
        export_event(x->x, ev, &x->out);
        return;
    }
    agent_event_to_json(ev, &x->out);
    buf_addc(&x->out, '\n');
}

static void on_page(void *ctx, struct st_reply *r)
{
    struct export *x = ctx;
    struct err e = {0};

    if (r->err.code) {
        end(x, &r->err);
        return;
    }
    if (r->n_events) {
        x->offset = r->events[r->n_events - 1].offset;
        x->index = r->events[r->n_events - 1].index + 1;
    }
    session_put_in_order(r->events, r->n_events);
    for (size_t i = 0; i < r->n_events; i++) {
        struct agent_event ev;

        if (session_stored_event(&ev, &r->events[i]) == 0) {
            add_event(x, &ev);
            agent_event_release(&ev);
        }
    }
    if (r->n_events < PAGE_EVENTS) {
        x->at++;
        x->offset = x->index = 0;
    }
    if (hand_out(x, &e) != 0)
        end(x, &e);
    else
        next_page(x);
}

static void on_timer(void *ctx)
{
    struct export *x = ctx;

    x->timer = 0;
    next_page(x);
}

static void next_page(struct export *x)
{
    if (x->at == x->n)
        finish(x);
    else if (!x->path && mq_full(x->j->o.events))
        x->timer = net_timer(x->j->o.net, FULL_MS, on_timer, x);
    else
        store_events(x->j->o.store, x->runs[x->at].id, x->offset, x->index, false, PAGE_EVENTS,
                     jobs_store(x->j, on_page, x, x));
}

static void on_runs(void *ctx, struct st_reply *r)
{
    struct export *x = ctx;
    const struct sandbox *row = jobs_row(x->j, x->row);

    if (r->err.code) {
        end(x, &r->err);
        return;
    }
    x->runs = r->runs;
    x->n = r->n_runs;
    r->runs = NULL;
    r->n_runs = 0;
    if (row && x->x)
        export_begin(x->x, row, &x->out);
    next_page(x);
}

static int open_file(struct export *x, struct err *e)
{
    /* two at once to one name do not take each other's */
    x->temp = xasprintf("%s.part-%ld-%llu", x->path, (long)getpid(),
                        (unsigned long long)x->req_id);
    unlink(x->temp);
    x->fd = open(x->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (x->fd < 0) {
        int rc = err_sys(e, ERR_IO, "cannot make '%s'", x->path);

        free(x->temp);
        x->temp = NULL;
        return rc;
    }
    return 0;
}

void core_export(struct jobs *j, struct cmd *c, const struct sandbox *row)
{
    struct export *x = xcalloc(1, sizeof(*x));
    struct err e = {0};

    *x = (struct export){.j = j, .req_id = c->m.req_id, .row = c->sandbox, .fd = -1};
    if (c->n != EXPORT_EVENTS)
        x->x = export_new((enum export_format)c->n, row->tool);
    x->path = c->text;
    c->text = NULL;
    *ARR_PUSH(&j->priv->exports) = x;
    if (x->path && open_file(x, &e) != 0) {
        end(x, &e);
        return;
    }
    store_runs(j->o.store, x->row, jobs_store(j, on_runs, x, x));
}

/* --- search: one question, one answer ------------------------------------------------ */

struct search {
    struct jobs *j;
    uint64_t req_id;
};

static void search_drop(struct search *q)
{
    struct jobs_priv *p = q->j->priv;

    for (size_t i = 0; i < p->searches.n; i++)
        if (p->searches.v[i] == q) {
            ARR_REMOVE(&p->searches, i);
            break;
        }
    jobs_store_forget(q->j, q);
    free(q);
}

static void on_hits(void *ctx, struct st_reply *r)
{
    struct search *q = ctx;
    struct ev_hits *ev = ev_new(EV_HITS);

    ev->m.req_id = q->req_id;
    ev->complete = r->got;
    ev->more = r->more_before;
    ev->v = xcalloc(r->n_hits + 1, sizeof(*ev->v));
    for (size_t i = 0; i < r->n_hits; i++) {
        struct st_hit *h = &r->hits[i];

        ev->v[ev->n++] =
            (struct found){h->id,      h->sandbox, h->run,        h->offset, h->index,
                           h->time_ms, h->name,    h->sandbox_id, h->who,    h->text};
        h->name = h->sandbox_id = h->who = h->text = NULL;
    }
    jobs_post(q->j, ev);
    jobs_done(q->j, q->req_id, r->err.code ? &r->err : NULL, 0);
    search_drop(q);
}

void core_search(struct jobs *j, struct cmd *c)
{
    struct search *q = *ARR_PUSH(&j->priv->searches) = xcalloc(1, sizeof(*q));

    *q = (struct search){j, c->m.req_id};
    store_search(j->o.store, c->text ? c->text : "", c->sandbox, (size_t)c->n, c->id, c->on,
                 jobs_store(j, on_hits, q, q));
}

void core_exports_release(struct jobs *j)
{
    while (j->priv->exports.n)
        export_drop(j->priv->exports.v[0]);
    ARR_RELEASE(&j->priv->exports);
    while (j->priv->searches.n)
        search_drop(j->priv->searches.v[0]);
    ARR_RELEASE(&j->priv->searches);
}
