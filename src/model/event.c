/* Messages that change the model: making and freeing them. */
#include <cct/model/event.h>

#include <cct/model/filter.h>
#include <cct/model/ledger.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

static void free_sandboxes(struct msg *m)
{
    struct ev_sandboxes *ev = (struct ev_sandboxes *)m;
    for (size_t i = 0; i < ev->n; i++)
        sandbox_release(&ev->v[i]);
    free(ev->v);
    free(ev);
}

static void free_items(struct msg *m)
{
    struct ev_items *ev = (struct ev_items *)m;
    for (size_t i = 0; i < ev->n; i++)
        item_release(&ev->v[i]);
    free(ev->v);
    free(ev->op);
    free(ev);
}

static void free_message(struct msg *m)
{
    message_release(&((struct ev_message *)m)->msg);
    free(m);
}

static void free_link(struct msg *m)
{
    struct ev_link *ev = (struct ev_link *)m;
    free(ev->text);
    free(ev->account);
    free(ev);
}

static void free_event(struct msg *m)
{
    free(((struct ev_event *)m)->text);
    free(m);
}

static void free_targets(struct kill_target *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(v[i].sandbox_id);
        free(v[i].name);
        free(v[i].reason);
    }
    free(v);
}

static void free_kill(struct msg *m)
{
    struct ev_kill *ev = (struct ev_kill *)m;
    free_targets(ev->v, ev->n);
    free_targets(ev->newcomers, ev->n_newcomers);
    free(ev->project);
    free(ev->account);
    free(ev->text);
    free(ev);
}

static void free_done(struct msg *m)
{
    struct ev_done *ev = (struct ev_done *)m;
    free(ev->sandbox_id);
    free(ev->text);
    free(ev);
}

static void free_procs(struct msg *m)
{
    procs_release(&((struct ev_procs *)m)->p);
    free(m);
}

void receipt_release(struct receipt *r)
{
    free(r->name);
    free(r->error);
    memset(r, 0, sizeof(*r));
}

static void free_broadcast(struct msg *m)
{
    struct ev_broadcast *ev = (struct ev_broadcast *)m;
    for (size_t i = 0; i < ev->n; i++)
        receipt_release(&ev->v[i]);
    free(ev->v);
    free(ev);
}

static void free_builds(struct msg *m)
{
    struct ev_builds *ev = (struct ev_builds *)m;
    for (size_t i = 0; i < ev->n; i++)
        tbuild_release(&ev->v[i]);
    free(ev->v);
    free(ev);
}

static void free_usage(struct msg *m)
{
    ledger_report_free(((struct ev_usage *)m)->report);
    free(m);
}

static void free_hits(struct msg *m)
{
    struct ev_hits *ev = (struct ev_hits *)m;
    for (size_t i = 0; i < ev->n; i++) {
        free(ev->v[i].name);
        free(ev->v[i].sandbox_id);
        free(ev->v[i].who);
        free(ev->v[i].text);
    }
    free(ev->v);
    free(ev);
}

static void free_vault(struct msg *m)
{
    free(((struct ev_vault *)m)->locked);
    free(m);
}

static void free_projects(struct msg *m)
{
    struct ev_projects *ev = (struct ev_projects *)m;
    for (size_t i = 0; i < ev->n; i++)
        project_release(&ev->v[i]);
    free(ev->v);
    saved_filters_free(ev->filters, ev->n_filters);
    free(ev);
}

static void free_asks(struct msg *m)
{
    struct ev_asks *ev = (struct ev_asks *)m;
    for (size_t i = 0; i < ev->n; i++)
        question_release(&ev->v[i]);
    free(ev->v);
    free(ev);
}

void *ev_new(enum ev_type t)
{
    static const struct {
        size_t size;
        void (*free_fn)(struct msg *);
    } kinds[] = {
        [EV_SANDBOXES] = {sizeof(struct ev_sandboxes), free_sandboxes},
        [EV_ITEMS] = {sizeof(struct ev_items), free_items},
        [EV_MESSAGE] = {sizeof(struct ev_message), free_message},
        [EV_LINK] = {sizeof(struct ev_link), free_link},
        [EV_EVENT] = {sizeof(struct ev_event), free_event},
        [EV_KILL] = {sizeof(struct ev_kill), free_kill},
        [EV_DONE] = {sizeof(struct ev_done), free_done},
        [EV_LOADED] = {sizeof(struct msg), NULL},
        [EV_PROCS] = {sizeof(struct ev_procs), free_procs},
        [EV_BROADCAST] = {sizeof(struct ev_broadcast), free_broadcast},
        [EV_BUILDS] = {sizeof(struct ev_builds), free_builds},
        [EV_USAGE] = {sizeof(struct ev_usage), free_usage},
        [EV_HITS] = {sizeof(struct ev_hits), free_hits},
        [EV_PROJECTS] = {sizeof(struct ev_projects), free_projects},
        [EV_VIEW] = {sizeof(struct ev_view), NULL},
        [EV_VAULT] = {sizeof(struct ev_vault), free_vault},
        [EV_ASKS] = {sizeof(struct ev_asks), free_asks},
    };
    if (t < EV_SANDBOXES || (size_t)t >= sizeof(kinds) / sizeof(kinds[0]))
        BUG("no such event: %d", (int)t);
    struct msg *m = xcalloc(1, kinds[t].size);
    msg_init(m, t, kinds[t].size, kinds[t].free_fn);
    if (t == EV_DONE) {
        struct ev_done *d = (struct ev_done *)m;
        d->exit_code = -1;
    }
    return m;
}

/* Room grows at the powers of two, so its size needs no field. */
struct item *ev_items_add(struct ev_items *ev, enum item_op op)
{
    size_t n = ev->n;
    if ((n & (n - 1)) == 0) {
        size_t room = n ? 2 * n : 1;
        ev->v = xrealloc(ev->v, room * sizeof(*ev->v));
        ev->op = xrealloc(ev->op, room);
    }
    memset(&ev->v[n], 0, sizeof(ev->v[n]));
    ev->op[n] = (uint8_t)op;
    ev->n = n + 1;
    return &ev->v[n];
}
