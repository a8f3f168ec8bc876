/* Killing one sandbox: looked at again first, then deleted ahead of other traffic. And
 * the kills that were confirmed in an earlier life and cut short. */
#include "core_priv.h"

#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 10000
#define KILL_MS 30000
#define SAME_START_MS 2000

struct kill {
    struct jobs *j;
    uint64_t req_id, row;
    char *sandbox_id;
};

void core_kill_gone(struct jobs *j, uint64_t id)
{
    struct sandbox *row = jobs_row(j, id);

    if (!row)
        return;
    reconcile_gone(row, GONE_HERE, jobs_now(j));
    jobs_row_changed(j, row);
    core_row_state(j, row);
}

static void end(struct kill *k, const struct err *e)
{
    struct sandbox *row = jobs_row(k->j, k->row);

    if (row && row->pending && e) {
        row->pending = false;
        jobs_row_changed(k->j, row);
    }
    core_rows_flush(k->j);
    jobs_done(k->j, k->req_id, e, k->row);
    for (size_t i = 0; i < k->j->priv->kills.n; i++)
        if (k->j->priv->kills.v[i] == k) {
            ARR_REMOVE(&k->j->priv->kills, i);
            break;
        }
    free(k->sandbox_id);
    free(k);
}

static struct kill *kill_new(struct jobs *j, uint64_t req_id, const struct sandbox *row)
{
    struct kill *k = xcalloc(1, sizeof(*k));

    k->j = j;
    k->req_id = req_id;
    k->row = row->id;
    k->sandbox_id = xstrdup(row->sandbox_id);
    *ARR_PUSH(&j->priv->kills) = k;
    return k;
}

void core_kill_release(struct jobs *j)
{
    for (size_t i = 0; i < j->priv->kills.n; i++) {
        free(j->priv->kills.v[i]->sandbox_id);
        free(j->priv->kills.v[i]);
    }
    ARR_RELEASE(&j->priv->kills);
}

static void say_killed(const struct kill *k)
{
    const struct sandbox *row = jobs_row(k->j, k->row);

    if (row)
        jobs_say(k->j, 0, k->row, "%s was killed", row->name ? row->name : k->sandbox_id);
}

static void on_deleted(void *ctx, const struct e2b_result *r)
{
    struct kill *k = ctx;

    if (r->err.code && r->err.code != ERR_NOTFOUND) {
        struct err e = r->err;
        err_wrap(&e, "\"%s\" was not killed", k->sandbox_id);
        jobs_say(k->j, 2, k->row, "%s", e.text);
        end(k, &e);
        return;
    }
    core_kill_gone(k->j, k->row);
    say_killed(k);
    core_poll_soon(k->j, 500); /* a 204 is a promise, the list is the proof */
    end(k, NULL);
}

static void delete_it(struct kill *k)
{
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = KILL_MS};

    e2b_kill(k->j->e2b, k->sandbox_id, &o, on_deleted, k);
}

static const char *meta_of(const struct kv *meta, const char *key)
{
    for (; meta && meta->k; meta++)
        if (str_eq(meta->k, key))
            return meta->v;
    return NULL;
}

/* Is what answers to the id still what the row shows? */
static bool is_same(const struct sandbox *row, const struct e2b_sandbox *v)
{
    const char *mark = meta_of(v->meta, "cc-tui-mark");
    int64_t diff = v->started_at - row->started_at;

    if (row->mark)
        return str_eq(row->mark, mark);
    if (row->state != SB_RUNNING || !row->started_at || !v->started_at)
        return true; /* resuming starts a new run of the same sandbox */
    return diff > -SAME_START_MS && diff < SAME_START_MS;
}

static void on_looked(void *ctx, const struct e2b_result *r)
{
    struct kill *k = ctx;
    struct sandbox *row = jobs_row(k->j, k->row);
    struct err e = {0};

    if (r->err.code == ERR_NOTFOUND) {
        core_kill_gone(k->j, k->row);
        end(k, NULL);
    } else if (r->err.code || !r->n) {
        e = r->err;
        err_wrap(&e, "\"%s\" was not killed", k->sandbox_id);
        end(k, &e);
    } else if (row && !is_same(row, &r->v[0])) {
        err_set(&e, ERR_CONFLICT, "\"%s\" was not killed: it was started anew since it was "
                "listed; look again", k->sandbox_id);
        core_poll_soon(k->j, 0);
        end(k, &e);
    } else {
        delete_it(k);
    }
}

static void on_create_killed(void *ctx, const struct err *e, bool gone)
{
    (void)gone;
    end(ctx, e);
}

void core_kill(struct jobs *j, uint64_t req_id, uint64_t id)
{
    struct sandbox *row = jobs_row(j, id);
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = LOOK_MS};
    struct kill *k;

    if (!core_row_live(row)) {
        core_done_err(j, req_id, id, ERR_CONFLICT, "\"%s\" is gone already",
                      row->name ? row->name : "the sandbox");
        return;
    }
    if (row->pending && row->state != SB_CREATING) {
        core_done_err(j, req_id, id, ERR_BUSY, "\"%s\" is being worked on already", row->name);
        return;
    }
    k = kill_new(j, req_id, row);
    if (row->mark && !row->sandbox_id)
        store_intent_add(j->o.store, false, NULL, row->mark, (struct st_to){NULL, 0});
    if (core_create_kill(j, id, on_create_killed, k))
        return;
    if (!row->sandbox_id) { /* of an earlier life, never seen in a list */
        core_kill_gone(j, id);
        end(k, NULL);
        return;
    }
    row->pending = true;
    jobs_row_changed(j, row);
    core_rows_flush(j);
    e2b_get(j->e2b, k->sandbox_id, &o, on_looked, k);
}

/* --- open intents --------------------------------------------------------------- */

char *kill_scope(const char *place, const char *project)
{
    return xasprintf("%s/%s", place, project ? project : "");
}

static bool is_of_place(const struct st_intent *in, const char *place)
{
    size_t n = place ? strlen(place) : 0;

    return n && in->project && strncmp(in->project, place, n) == 0 && in->project[n] == '/';
}

bool kill_intent_covers(const struct st_intent *in, const struct sandbox *row)
{
    int64_t since = row->created_at && !row->foreign ? row->created_at : row->started_at;

    if (!core_row_live(row) || row->protect)
        return false;
    if (in->target)
        return str_eq(in->target, row->mark) || str_eq(in->target, row->sandbox_id);
    if (since > in->time_ms)
        return false; /* made after the word was given */
    if (!is_of_place(in, row->account))
        return false;
    return in->account ||
           (!row->foreign && str_eq(in->project + strlen(row->account) + 1, row->project));
}

static void on_finished(void *ctx, const struct e2b_result *r)
{
    struct kill *k = ctx;

    if (r->err.code == 0 || r->err.code == ERR_NOTFOUND)
        core_kill_gone(k->j, k->row);
    else
        jobs_say(k->j, 2, k->row, "an interrupted kill could not be finished: %s", r->err.text);
    end(k, NULL);
}

static bool finish_kill(struct jobs *j, const struct sandbox *row)
{
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = KILL_MS};
    struct kill *k;

    if (!row->id || !row->sandbox_id || row->unlisted || row->pending)
        return false;
    k = kill_new(j, 0, row);
    e2b_kill(j->e2b, k->sandbox_id, &o, on_finished, k);
    return true;
}

/* What was confirmed for another place waits until that is in force again. */
void core_kill_intents(struct jobs *j)
{
    struct jobs_priv *p = j->priv;
    size_t n = 0, keep = 0;

    if (!p->intents.n || p->look_only)
        return;
    for (size_t i = 0; i < p->intents.n; i++) {
        struct st_intent *in = &p->intents.v[i];

        if (!in->target && !is_of_place(in, p->place)) {
            p->intents.v[keep++] = *in;
            continue;
        }
        in->time_ms += j->server_offset_ms; /* rows have the service's times */
        for (size_t r = 0; r < j->table.n; r++)
            if (kill_intent_covers(in, &j->table.v[r]))
                n += finish_kill(j, &j->table.v[r]);
        store_intent_done(j->o.store, in->id, (struct st_to){NULL, 0});
        free(in->project);
        free(in->target);
    }
    p->intents.n = keep;
    if (n)
        jobs_say(j, 1, 0, "a confirmed kill was cut short: finishing it for %zu sandboxes", n);
}
