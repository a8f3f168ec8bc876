/* Kills that were confirmed and whose end was not seen: the program was ended in the
 * middle of them, or the answer to a create was lost. They name ids and marks, nothing
 * else is killed by them; what they name goes as soon as a list shows it. */
#include "core_priv.h"

#include <cct/util/clock.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAILURES_MAX 3
#define MARK_MS (10 * 60000)  /* a create that was not seen in that time made nothing */
#define OWNER_MS (10 * 60000) /* no kill-all lasts so long: whoever has the pid is another */

char *kill_scope(const char *place, const char *project)
{
    return xasprintf("%s/%s", place, project ? project : "");
}

static bool is_of_place(const struct st_intent *in, const char *place)
{
    size_t n = place ? strlen(place) : 0;

    return !in->project ||
           (n && strncmp(in->project, place, n) == 0 && in->project[n] == '/');
}

/* One of the words: an id, or "m:" and a mark. */
static bool names(const char *words, const char *prefix, const char *what)
{
    size_t p = strlen(prefix), n = what ? strlen(what) : 0;

    for (const char *w = n ? words : NULL; w && *w; w += strcspn(w, " "), w += *w == ' ')
        if (strcspn(w, " ") == p + n && memcmp(w, prefix, p) == 0 && memcmp(w + p, what, n) == 0)
            return true;
    return false;
}

bool kill_intent_covers(const struct st_intent *in, const struct sandbox *row)
{
    if (!core_row_live(row) || row->protect || !row->account ||
        !is_of_place(in, row->account))
        return false;
    return names(in->target, "", row->sandbox_id) || names(in->target, "m:", row->mark);
}

/* --- whose --------------------------------------------------------------------------- */

/* The first word of a kill-all's is who runs it; it may still be at work. */
static bool owner_lives(const struct st_intent *in)
{
    const char *by = in->target && str_starts(in->target, "by:") ? in->target + 3 : NULL;
    long pid = by ? strtol(by, NULL, 10) : 0;
    int64_t age = clock_wall_ms() - in->time_ms;

    if (pid <= 0 || pid == (long)getpid() || age > OWNER_MS || age < -OWNER_MS)
        return false;
    return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

/* --- life ------------------------------------------------------------------------------ */

static void order_release(struct order *o)
{
    free(o->in.project);
    free(o->in.target);
}

static struct order *order_new(struct jobs *j)
{
    struct order *o = ARR_PUSH(&j->priv->orders);

    o->key = ++j->priv->order_key;
    o->since = clock_mono_ms();
    return o;
}

static struct order *find(struct jobs *j, uint64_t key)
{
    for (size_t i = 0; i < j->priv->orders.n; i++)
        if (j->priv->orders.v[i].key == key)
            return &j->priv->orders.v[i];
    return NULL;
}

static bool have(const struct jobs *j, uint64_t id)
{
    for (size_t i = 0; i < j->priv->orders.n; i++)
        if (j->priv->orders.v[i].in.id == id)
            return true;
    return false;
}

static void on_loaded(void *ctx, struct st_reply *r)
{
    struct jobs *j = ctx;

    for (size_t i = 0; i < r->n_intents; i++) {
        if (have(j, r->intents[i].id) ||
            (j->priv->ka && j->priv->ka->intent == r->intents[i].id))
            continue;
        order_new(j)->in = r->intents[i];
        r->intents[i] = (struct st_intent){0};
    }
}

void core_orders_load(struct jobs *j)
{
    store_intents(j->o.store, jobs_store(j, on_loaded, j, j));
}

void core_orders_release(struct jobs *j)
{
    for (size_t i = 0; i < j->priv->orders.n; i++)
        order_release(&j->priv->orders.v[i]);
    ARR_RELEASE(&j->priv->orders);
}

static void on_stored(void *ctx, struct st_reply *r)
{
    struct jobs *j = ctx;

    if (r->err.code)
        log_warn("a kill on sight is not stored: %s", r->err.text);
    for (size_t i = 0; i < r->n_intents && !r->err.code; i++)
        for (size_t k = 0; k < j->priv->orders.n; k++) {
            struct order *o = &j->priv->orders.v[k];
            if (!o->in.id && str_eq(o->in.target, r->intents[i].target))
                o->in.id = r->intents[i].id;
        }
}

void core_order_mark(struct jobs *j, const char *mark)
{
    char *scope = kill_scope(j->priv->place, NULL), *words = xasprintf("m:%s", mark ? mark : "");
    struct order *o;

    for (size_t i = 0; i < j->priv->orders.n; i++)
        if (names(j->priv->orders.v[i].in.target, "m:", mark))
            mark = NULL;
    if (mark) {
        o = order_new(j);
        o->said = true;
        o->in.time_ms = clock_wall_ms();
        o->in.project = xstrdup(scope);
        o->in.target = xstrdup(words);
        store_intent_add(j->o.store, false, scope, words, jobs_store(j, on_stored, j, j));
    }
    free(scope);
    free(words);
}

/* --- at work ----------------------------------------------------------------------------- */

static void on_killed(struct jobs *j, uint64_t key, const char *id, const struct err *e)
{
    struct order *o = find(j, key);

    if (e)
        jobs_say(j, 2, 0, "a confirmed kill of %s could not be finished: %s", id, e->text);
    if (o)
        o->running--;
    if (o && e)
        o->failures++;
    else if (o)
        o->told++;
    core_poll_soon(j, 500);
}

/* What it names and is up, or may still come up. */
static size_t pursue(struct jobs *j, struct order *o, size_t *fresh)
{
    struct st_intent in = o->in; /* the array may grow meanwhile */
    uint64_t key = o->key;
    size_t open = 0;

    for (size_t i = 0; i < j->table.n; i++) {
        const struct sandbox *row = &j->table.v[i];

        if (!kill_intent_covers(&in, row))
            continue;
        open++;
        if (!row->sandbox_id || row->unlisted || row->pending || core_kill_runs(j, row))
            continue;
        ++*fresh;
        core_kill_at_once(j, row, on_killed, key);
    }
    return open;
}

/* Marks of creates that no list has shown: they may come yet. */
static bool awaits(struct jobs *j, const struct order *o)
{
    const char *w = o->in.target;
    int64_t age = clock_wall_ms() - o->in.time_ms;

    if (age > MARK_MS || clock_mono_ms() - o->since > MARK_MS)
        return false;
    for (; w && *w; w += strcspn(w, " "), w += *w == ' ') {
        bool seen = false;
        for (size_t i = 0; str_starts(w, "m:") && i < j->table.n; i++) {
            const struct sandbox *row = &j->table.v[i];
            size_t n = row->mark ? strlen(row->mark) : 0;
            seen |= row->sandbox_id && n && strncmp(w + 2, row->mark, n) == 0 &&
                    strcspn(w, " ") == n + 2;
        }
        if (str_starts(w, "m:") && !seen)
            return true;
    }
    return false;
}

static void close_order(struct jobs *j, size_t i)
{
    struct order *o = &j->priv->orders.v[i];

    if (o->failures >= FAILURES_MAX)
        jobs_say(j, 2, 0, "a confirmed kill was cut short and cannot be finished: what is left "
                 "has to be killed again");
    else if (o->told && o->by_other)
        jobs_say(j, 0, 0, "the kill that was cut short is finished: %zu ended", o->told);
    if (o->in.id)
        store_intent_done(j->o.store, o->in.id, (struct st_to){NULL, 0});
    order_release(o);
    ARR_REMOVE(&j->priv->orders, i);
}

static void one(struct jobs *j, size_t i)
{
    struct order *o = &j->priv->orders.v[i];
    uint64_t key = o->key;
    size_t fresh = 0, open;

    if (o->failures >= FAILURES_MAX && !o->running) {
        close_order(j, i);
        return;
    }
    open = pursue(j, o, &fresh);
    o = find(j, key);
    o->running += fresh;
    if (fresh && !o->said) {
        o->said = o->by_other = true;
        if (j->o.follow_all)
            jobs_say(j, 1, 0, "a confirmed kill was cut short: finishing it for %zu sandboxes",
                     fresh);
        else /* a command does not stay to see it through */
            jobs_say(j, 1, 0, "a confirmed kill was cut short and %zu of its sandboxes are up: "
                     "'cc-tui kill' or an open cc-tui ends them", fresh);
    }
    if (!open && !o->running && !awaits(j, o))
        close_order(j, i);
}

/* What was confirmed for another place waits until that is in force again. One whose
 * process was still at work is read anew when that has ended: it may have finished. */
void core_kill_intents(struct jobs *j)
{
    struct jobs_priv *p = j->priv;
    bool reload = false;

    if (p->look_only)
        return;
    for (size_t i = p->orders.n; i-- > 0;) {
        struct order *o = &p->orders.v[i];
        bool busy = owner_lives(&o->in);

        if (!is_of_place(&o->in, p->place))
            continue;
        if (busy) {
            o->waited = true;
        } else if (o->waited) {
            order_release(o);
            ARR_REMOVE(&p->orders, i);
            reload = true;
        } else {
            one(j, i);
        }
    }
    if (reload)
        core_orders_load(j);
}
