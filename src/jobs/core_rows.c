/* The table of sandboxes: the one place where rows change. A row is known to others by
 * the id the store gives it; until then it is only in the table. */
#include "core_priv.h"

#include <cct/text/clean.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL_IDS CORE_LOCAL_IDS
#define POST 1u
#define PERSIST 2u
#define FIGURES 4u

struct insert {
    struct jobs *j;
    struct sandbox row; /* as handed over: finds it again in the table */
    core_row_fn fn;
    void *ctx;
};

void core_rows_init(struct jobs *j)
{
    j->priv->dirty = map_new();
    j->priv->places = map_new();
    j->priv->inserts = map_new();
    j->priv->local_ids = LOCAL_IDS;
}

static void insert_free(void *p)
{
    struct insert *in = p;

    sandbox_release(&in->row);
    free(in);
}

void core_rows_release(struct jobs *j)
{
    map_free(j->priv->inserts, insert_free);
    for (size_t i = 0; i < j->table.n; i++)
        sandbox_release(&j->table.v[i]);
    ARR_RELEASE(&j->table);
    map_free(j->priv->dirty, NULL);
    map_free(j->priv->places, NULL);
}

/* Where a row was when it was looked for last, plus 1. Rows move when one is taken out,
 * so a place is only a guess that is held against the row. */
static struct sandbox *guessed(struct jobs *j, void *hint)
{
    size_t at = (uintptr_t)hint;

    return at && at <= j->table.n ? &j->table.v[at - 1] : NULL;
}

static void *place_of(size_t at)
{
    return (void *)(uintptr_t)(at + 1);
}

struct sandbox *jobs_row(struct jobs *j, uint64_t id)
{
    struct sandbox *row = id ? guessed(j, map_get_id(j->priv->places, id)) : NULL;

    if (row && row->id == id)
        return row;
    for (size_t i = 0; id && i < j->table.n; i++)
        if (j->table.v[i].id == id) {
            map_put_id(j->priv->places, id, place_of(i));
            return &j->table.v[i];
        }
    return NULL;
}

struct sandbox *core_row_of_vm(struct jobs *j, const char *sandbox_id)
{
    struct sandbox *row = guessed(j, map_get(j->priv->places, sandbox_id));

    if (row && str_eq(row->sandbox_id, sandbox_id))
        return row;
    for (size_t i = 0; i < j->table.n; i++)
        if (str_eq(j->table.v[i].sandbox_id, sandbox_id)) {
            map_put(j->priv->places, sandbox_id, place_of(i));
            return &j->table.v[i];
        }
    return NULL;
}

const char *core_row_name(const struct sandbox *row)
{
    return row->name ? row->name : row->sandbox_id ? row->sandbox_id : "the sandbox";
}

bool core_row_live(const struct sandbox *row)
{
    return row->state == SB_RUNNING || row->state == SB_PAUSED || row->state == SB_CREATING ||
           (row->state == SB_ERROR && row->vm_up);
}

void core_row_step_over(struct sandbox *row)
{
    row->step = STEP_NONE;
    free(row->step_text);
    row->step_text = NULL;
}

bool core_is_plain(const char *s)
{
    while (*s >= ' ' && *s < 0x7F)
        s++;
    return !*s;
}

void core_row_set(char **field, const char *value)
{
    /* a reason may hold words of the service or of a sandbox: here is the model's edge */
    char *copy = !value || core_is_plain(value) ? xstrdup(value) : clean_line_dup(value, 0);

    free(*field);
    *field = copy;
}

/* --- telling and persisting ----------------------------------------------------- */

static void copy_row(const struct jobs *j, struct sandbox *dst, const struct sandbox *row)
{
    sandbox_snapshot(dst, row);
    dst->usd_per_s = core_usage_rate(j, row);
}

static void post_rows(struct jobs *j, const uint64_t *ids, size_t n, bool figures)
{
    struct ev_sandboxes *ev;

    if (!n)
        return;
    ev = ev_new(EV_SANDBOXES);
    ev->figures = figures;
    ev->v = xcalloc(n, sizeof(*ev->v));
    for (size_t i = 0; i < n; i++) {
        const struct sandbox *row = jobs_row(j, ids[i]);
        if (row)
            copy_row(j, &ev->v[ev->n++], row);
    }
    jobs_post(j, ev);
}

static void post_all(struct jobs *j)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);

    ev->full = true;
    ev->v = xcalloc(j->table.n + 1, sizeof(*ev->v));
    for (size_t i = 0; i < j->table.n; i++)
        if (j->table.v[i].id)
            copy_row(j, &ev->v[ev->n++], &j->table.v[i]);
    jobs_post(j, ev);
}

static void on_put(void *ctx, struct st_reply *r)
{
    struct jobs *j = ctx;

    if (r->err.code && !j->priv->said_unstored)
        jobs_say(j, 2, 0, "cannot keep the list of sandboxes: %s; it is right on the screen, but "
                          "is not stored", r->err.text);
    j->priv->said_unstored = r->err.code != 0;
}

void core_rows_flush(struct jobs *j)
{
    struct map *dirty = j->priv->dirty;
    size_t it = 0, n = 0, n_figures = 0;
    uint64_t id, *ids, *figures;
    void *what;

    net_timer_cancel(j->o.net, j->priv->flush_timer);
    j->priv->flush_timer = 0;
    if (!map_count(dirty))
        return;
    j->priv->dirty = map_new();
    ids = xcalloc(map_count(dirty), sizeof(*ids));
    figures = xcalloc(map_count(dirty), sizeof(*figures));
    while ((what = map_next(dirty, &it, NULL, &id))) {
        const struct sandbox *row = jobs_row(j, id);

        if (!row)
            continue;
        if ((uintptr_t)what == FIGURES)
            figures[n_figures++] = id;
        else
            ids[n++] = id;
        if (!((uintptr_t)what & PERSIST) || id >= LOCAL_IDS)
            continue;
        store_put_sandbox(j->o.store, row, jobs_store(j, on_put, j, j));
        core_usage_row(j, row);
    }
    post_rows(j, ids, n, false);
    post_rows(j, figures, n_figures, true);
    free(ids);
    free(figures);
    map_free(dirty, NULL);
}

static void flush_now(void *ctx)
{
    struct jobs *j = ctx;

    j->priv->flush_timer = 0;
    core_rows_flush(j);
}

static void mark(struct jobs *j, uint64_t id, unsigned what)
{
    struct jobs_priv *p = j->priv;
    uintptr_t old;

    if (!id)
        return; /* told when the store has given it an id */
    old = (uintptr_t)map_get_id(p->dirty, id);
    map_put_id(p->dirty, id, (void *)(old | what));
    if (!p->flush_timer && !p->stopping)
        p->flush_timer = net_timer(j->o.net, 0, flush_now, j);
}

void jobs_row_changed(struct jobs *j, struct sandbox *row)
{
    THREAD_ASSERT(THREAD_NET);
    row->rev++;
    mark(j, row->id, POST | PERSIST);
}

void core_row_shown(struct jobs *j, struct sandbox *row)
{
    row->rev++;
    mark(j, row->id, POST);
}

void core_row_figures(struct jobs *j, struct sandbox *row)
{
    row->rev++;
    mark(j, row->id, FIGURES);
}

void jobs_row_error(struct jobs *j, struct sandbox *row, bool vm_up, const char *text)
{
    char *reason = NULL;
    bool said;

    core_row_set(&reason, text);
    said = row->state == SB_ERROR && str_eq(row->reason, reason);
    free(row->reason);
    row->reason = reason;
    if (said && row->vm_up == vm_up && !row->pending)
        return;
    row->state = SB_ERROR;
    row->vm_up = vm_up;
    row->pending = row->changing = false;
    core_row_step_over(row);
    jobs_row_changed(j, row);
    if (!said)
        jobs_say(j, 2, row->id, "%s: %s%s", row->name ? row->name : "sandbox", reason,
                 vm_up ? " (the VM still runs and bills)" : "");
}

void core_row_state(struct jobs *j, struct sandbox *row)
{
    uint64_t id = row->id;
    bool up = row->state == SB_RUNNING || (row->state == SB_ERROR && row->vm_up);
    struct session *s = id ? map_get_id(j->sessions, id) : NULL;

    if (id)
        core_foreign_state(j, row);
    if (!s && up && j->o.follow_all && !row->foreign && id && j->e2b)
        s = session_of(j, id);
    if (!s)
        return;
    session_vm_state(s, up ? SB_RUNNING : row->state == SB_ERROR ? SB_KILLED : row->state);
    if (up && j->o.follow_all && row->sandbox_id)
        session_follow(s);
}

/* --- ids ------------------------------------------------------------------------ */

/* The row in the table that this insert was for. */
static struct sandbox *find_inserted(struct jobs *j, const struct sandbox *want)
{
    struct sandbox *vm = want->sandbox_id ? core_row_of_vm(j, want->sandbox_id) : NULL;

    if (vm && !vm->id)
        return vm;
    for (size_t i = 0; i < j->table.n; i++) {
        struct sandbox *row = &j->table.v[i];
        if (row->id)
            continue;
        if (want->sandbox_id ? str_eq(row->sandbox_id, want->sandbox_id)
                             : str_eq(row->mark, want->mark))
            return row;
    }
    return NULL;
}

/* Another instance's row of the same sandbox: what its user said of it. */
static void take_stored(struct sandbox *row, const struct sandbox *stored)
{
    row->protect |= stored->protect;
    if (stored->name)
        core_row_set(&row->name, stored->name);
    if (stored->tags)
        core_row_set(&row->tags, stored->tags);
    if (!stored->adopted)
        return;
    row->foreign = false;
    row->adopted = true;
    core_row_set(&row->project, stored->project);
    core_row_set(&row->session, stored->session);
    core_row_set(&row->tool, stored->tool);
}

static void on_inserted(void *ctx, struct st_reply *r)
{
    struct insert *in = ctx;
    struct jobs *j = in->j;
    bool ok = r->err.code == 0 && r->n_sandboxes == 1 && r->sandboxes[0].id;
    uint64_t id = ok ? r->sandboxes[0].id : ++j->priv->local_ids;
    struct sandbox *row = find_inserted(j, &in->row);

    if (!ok)
        on_put(j, r);
    if (row && ok && jobs_row(j, id)) { /* another instance's row of it came first */
        sandbox_release(row);
        ARR_REMOVE(&j->table, row - j->table.v);
    } else if (row) {
        bool changed = row->rev != in->row.rev;

        row->id = id;
        core_usage_row(j, row);
        if (ok)
            take_stored(row, &r->sandboxes[0]);
        mark(j, id, changed ? POST | PERSIST : POST);
        core_row_state(j, row);
    }
    map_del_id(j->priv->inserts, (uintptr_t)in);
    if (in->fn)
        in->fn(in->ctx, j, id, ok ? NULL : &r->err);
    insert_free(in);
    core_poll_settled(j);
}

void core_row_insert(struct jobs *j, const struct sandbox *row, core_row_fn fn, void *ctx)
{
    struct insert *in = xcalloc(1, sizeof(*in));

    in->j = j;
    in->fn = fn;
    in->ctx = ctx;
    sandbox_copy(&in->row, row);
    if (row->sandbox_id && row >= j->table.v && row < j->table.v + j->table.n)
        map_put(j->priv->places, row->sandbox_id, place_of((size_t)(row - j->table.v)));
    map_put_id(j->priv->inserts, (uintptr_t)in, in);
    store_put_sandbox(j->o.store, row, jobs_store(j, on_inserted, in, in));
}

void core_row_remove(struct jobs *j, uint64_t id)
{
    struct sandbox *row = jobs_row(j, id);

    if (!row)
        return;
    session_free(map_get_id(j->sessions, id));
    core_foreign_drop(j, id);
    sandbox_release(row);
    ARR_REMOVE(&j->table, row - j->table.v);
    map_del_id(j->priv->dirty, id);
    if (id < LOCAL_IDS)
        store_del_sandbox(j->o.store, id, (struct st_to){NULL, 0});
    core_rows_flush(j);
    post_all(j);
}

void core_rows_clear(struct jobs *j)
{
    for (size_t i = 0; i < j->table.n; i++)
        sandbox_release(&j->table.v[i]);
    ARR_CLEAR(&j->table);
    post_all(j);
}

void core_rows_load(struct jobs *j, struct st_reply *r)
{
    if (r->err.code)
        jobs_say(j, 2, 0, "cannot read the stored sandboxes: %s", r->err.text);
    for (size_t i = 0; i < r->n_sandboxes; i++) {
        struct sandbox *row;

        if (r->sandboxes[i].account && !str_eq(r->sandboxes[i].account, j->priv->place))
            continue; /* this account's list says nothing about it */
        row = ARR_PUSH(&j->table);
        *row = r->sandboxes[i];
        memset(&r->sandboxes[i], 0, sizeof(*row));
        row->pending = false; /* what was under way ended with that process */
    }
    post_all(j);
}
