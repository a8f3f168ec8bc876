/* A list becomes rows: cleaned, held against what we know, and what follows from it. */
#include "core_priv.h"

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* --- a list becomes `listed` ---------------------------------------------------- */

struct foreign { /* cleaned texts and metadata, freed together */
    ARR(char *) texts;
    ARR(struct kv *) metas;
};

static const char *clean(struct foreign *f, const char *s)
{
    const unsigned char *p = (const unsigned char *)s;

    while (p && *p >= 0x20 && *p < 0x7f)
        p++;
    if (!p || !*p)
        return s;
    return *ARR_PUSH(&f->texts) = clean_line_dup(s, 0);
}

static const struct kv *clean_meta(struct foreign *f, const struct kv *m)
{
    size_t n = 0;
    struct kv *out;

    while (m && m[n].k)
        n++;
    if (!n)
        return NULL;
    out = *ARR_PUSH(&f->metas) = xcalloc(n + 1, sizeof(*out));
    for (size_t i = 0; i < n; i++) {
        out[i].k = (char *)clean(f, m[i].k);
        out[i].v = (char *)clean(f, m[i].v ? m[i].v : "");
    }
    return out;
}

static void foreign_release(struct foreign *f)
{
    for (size_t i = 0; i < f->texts.n; i++)
        free(f->texts.v[i]);
    for (size_t i = 0; i < f->metas.n; i++)
        free(f->metas.v[i]);
    ARR_RELEASE(&f->texts);
    ARR_RELEASE(&f->metas);
}

static struct listed as_listed(struct foreign *f, const struct e2b_sandbox *v)
{
    return (struct listed){.sandbox_id = clean(f, v->sandbox_id),
                           .template_id = clean(f, v->template_id),
                           .alias = clean(f, v->alias),
                           .state_text = clean(f, v->state),
                           .started_at = v->started_at,
                           .end_at = v->end_at,
                           .cpu_count = v->cpu_count,
                           .memory_mb = v->memory_mb,
                           .disk_mb = v->disk_mb,
                           .meta = clean_meta(f, v->meta),
                           .not_isolated = v->not_isolated};
}

/* The old route hides paused ones: what we knew as paused is taken as still there. */
static struct listed as_before(const struct sandbox *row)
{
    return (struct listed){.sandbox_id = row->sandbox_id,
                           .template_id = row->template_id,
                           .alias = row->alias,
                           .state_text = "paused",
                           .started_at = row->started_at,
                           .end_at = row->end_at,
                           .cpu_count = row->cpu_count,
                           .memory_mb = row->memory_mb,
                           .disk_mb = row->disk_mb,
                           .meta = row->meta,
                           .not_isolated = row->not_isolated};
}

/* --- the service's clock ---------------------------------------------------------- */

/* Date has whole seconds and was written before the answer came: near is right. */
int64_t poll_server_time(int64_t date_ms, int64_t believed_ms)
{
    int64_t off = date_ms + 500 - believed_ms;

    return !date_ms || (off > -5000 && off < 1500) ? believed_ms : date_ms + 500;
}

static void set_clock(struct jobs *j, int64_t date_ms)
{
    int64_t believed = jobs_now(j), now = poll_server_time(date_ms, believed);

    if (date_ms && (now != believed || !j->clock.server_ms))
        j->clock = (struct server_clock){now, clock_boot_ms()};
}

/* --- reconciling ---------------------------------------------------------------- */

struct change {
    size_t at;
    bool is_new;
};
struct changes {
    struct jobs *j;
    ARR(struct change) v;
};

static void on_change(void *ctx, struct sandbox *row, bool is_new)
{
    struct changes *c = ctx;

    *ARR_PUSH(&c->v) = (struct change){(size_t)(row - c->j->table.v), is_new};
}

size_t core_listed_up(const struct jobs *j)
{
    size_t n = 0;

    for (size_t i = 0; i < j->table.n; i++)
        n += j->table.v[i].sandbox_id && core_row_live(&j->table.v[i]);
    return n;
}

void core_row_say_gone(struct jobs *j, const struct sandbox *row)
{
    const char *name = row->name ? row->name : row->sandbox_id;

    if (row->state != SB_KILLED)
        return;
    if (row->gone == GONE_EARLY)
        jobs_say(j, 1, row->id, "%s is gone before its time; it was not killed from here", name);
    else if (row->gone == GONE_TIMEOUT)
        jobs_say(j, 1, row->id, "%s has ended: its time was up", name);
}

static void one_changed(struct jobs *j, const struct change *c, bool suspicious)
{
    struct sandbox *row = &j->table.v[c->at];

    if (!row->account)
        row->account = xstrdup(j->priv->place);
    if (c->is_new) {
        char *project = core_project_of_meta(j, row->meta); /* as it is called now */
        core_row_set(&row->project, project);
        free(project);
        core_row_insert(j, row, NULL, NULL);
        return;
    }
    jobs_row_changed(j, row);
    core_row_state(j, row);
    core_row_say_gone(j, row);
    if (row->unlisted && !suspicious)
        core_row_vanished(j, row);
}

/* Rows of an earlier run of the program that the list only confirms are no change; the
 * first list still says that they live, and their streams are opened. */
static void first_list(struct jobs *j)
{
    for (size_t i = 0; i < j->table.n; i++)
        if (j->table.v[i].id)
            core_row_state(j, &j->table.v[i]);
}

int poll_warning(int64_t left_ms)
{
    return left_ms <= 0 ? 0 : left_ms <= 120000 ? 2 : left_ms <= 300000 ? 1 : 0;
}

/* "ends in 5 min" when that line is crossed while we look on. */
static void warn_ends(struct jobs *j)
{
    struct map *warned = j->priv->warned;
    int64_t now = jobs_now(j);

    for (size_t i = 0; i < j->table.n; i++) {
        const struct sandbox *row = &j->table.v[i];
        int level, before;

        if (!row->id || row->foreign || row->state != SB_RUNNING || !row->end_at)
            continue;
        level = poll_warning(row->end_at - now);
        before = (int)(uintptr_t)map_get_id(warned, row->id);
        if (level + 1 == before)
            continue;
        map_put_id(warned, row->id, (void *)(uintptr_t)(level + 1));
        if (before && level + 1 > before)
            jobs_say(j, 1, row->id, "%s ends in %d min", row->name,
                     level == 2 ? 2 : 5);
    }
}

bool core_listed(struct jobs *j, const struct e2b_result *r, bool suspicious, bool first)
{
    bool old_route = r->err.text[0] != 0, changed;
    ARR(struct listed) l = ARR_INIT;
    struct foreign f = {0};
    struct changes ch = {.j = j};
    struct reconcile_opts o = {.suspicious_empty = suspicious};

    set_clock(j, r->date_ms);
    for (size_t i = 0; i < r->n; i++)
        *ARR_PUSH(&l) = as_listed(&f, &r->v[i]);
    for (size_t i = 0; old_route && i < j->table.n; i++)
        if (j->table.v[i].state == SB_PAUSED)
            *ARR_PUSH(&l) = as_before(&j->table.v[i]);
    o.now = j->priv->link.listed_at = jobs_now(j);
    o.time_unknown = !j->clock.server_ms;
    reconcile(&j->table, l.v, l.n, &o, on_change, &ch);
    for (size_t i = 0; i < ch.v.n; i++)
        one_changed(j, &ch.v.v[i], suspicious);
    if (first)
        first_list(j);
    changed = ch.v.n > 0;
    ARR_RELEASE(&ch.v);
    ARR_RELEASE(&l);
    foreign_release(&f);
    warn_ends(j);
    return changed;
}

void core_row_vouch(struct jobs *j, struct sandbox *row, const struct e2b_sandbox *v)
{
    struct foreign f = {0};
    struct listed l = as_listed(&f, v);

    reconcile_vouch(row, &l, jobs_now(j));
    jobs_row_changed(j, row);
    core_row_state(j, row);
    foreign_release(&f);
}
