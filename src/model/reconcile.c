/* The provider's list against our records. */
#include <cct/model/reconcile.h>

#include <cct/model/project.h>
#include <cct/util/arr.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A sandbox that ended this close to its planned end timed out: what is believed to be the
 * service's time may lag by a second and a half, and the Date that it is held against has
 * whole seconds. */
enum { END_SLACK_MS = 2000, VOUCH_MS = 60000 };

static bool set_str(char **field, const char *value)
{
    if (str_eq(*field, value))
        return false;
    str_set(field, value);
    return true;
}

#define SET(field, value) ((field) != (value) ? ((field) = (value), true) : false)

static bool same_meta(const struct kv *a, const struct kv *b)
{
    for (;; a++, b++) {
        bool ea = !a || !a->k, eb = !b || !b->k;
        if (ea || eb)
            return ea && eb;
        if (!str_eq(a->k, b->k) || !str_eq(a->v, b->v))
            return false;
    }
}

static void set_meta(struct sandbox *s, const struct kv *meta)
{
    struct sandbox tmp = {.meta = (struct kv *)meta}, copy;
    sandbox_copy(&copy, &tmp);
    struct kv *old = s->meta;
    s->meta = copy.meta;
    copy.meta = old;
    sandbox_release(&copy);
}

/* Rows by what a listed sandbox is known by: places in the table, from 1. */
struct index {
    struct map *ids;
    struct map *marks; /* of those without an id */
};

static void index_row(struct index *x, const struct sandbox_table *t, size_t i)
{
    const struct sandbox *s = &t->v[i];
    struct map *m = s->sandbox_id ? x->ids : x->marks;
    const char *key = s->sandbox_id ? s->sandbox_id : s->mark;
    if (key && !map_get(m, key))
        map_put(m, key, (void *)(uintptr_t)(i + 1));
}

static struct index index_new(const struct sandbox_table *t)
{
    struct index x = {map_new(), map_new()};
    for (size_t i = 0; i < t->n; i++)
        index_row(&x, t, i);
    return x;
}

static struct sandbox *find_row(const struct index *x, struct sandbox_table *t,
                                const struct listed *l)
{
    uintptr_t place = (uintptr_t)map_get(x->ids, l->sandbox_id);
    if (place)
        return &t->v[place - 1];
    /* the answer of this create has not come yet, or was lost: our mark proves it */
    const char *mark = kv_get(l->meta, "cc-tui-mark");
    place = mark ? (uintptr_t)map_get(x->marks, mark) : 0;
    return place && !t->v[place - 1].sandbox_id ? &t->v[place - 1] : NULL;
}

static void fill_new(struct sandbox *s, const struct listed *l)
{
    const char *session = kv_get(l->meta, "cc-tui-session");
    s->sandbox_id = xstrdup(l->sandbox_id);
    s->foreign = !session;
    s->session = xstrdup(session);
    const char *name = kv_get(l->meta, "cc-tui-name");
    s->name = xstrdup(name ? name : l->sandbox_id);
    s->tool = xstrdup(kv_get(l->meta, "cc-tui-tool"));
    s->project = project_of_meta(kv_get(l->meta, "cc-tui-project"),
                                 kv_get(l->meta, "cc-tui-project-name"));
    s->mark = xstrdup(kv_get(l->meta, "cc-tui-mark"));
    s->agent = session ? AG_UNKNOWN : AG_NONE;
    s->state = SB_RUNNING;
    s->created_at = l->started_at;
}

/* State of a listed one. An error of ours stays an error: only its VM is up again. */
static bool apply_state(struct sandbox *s, const struct listed *l)
{
    bool changed = false;
    bool paused = str_eq(l->state_text, "paused");
    if (s->state == SB_ERROR) {
        changed |= SET(s->vm_up, !paused);
    } else if (s->state == SB_CREATING && s->sandbox_id && s->pending) {
        /* provisioning is still at work on it: it says when it runs */
    } else {
        enum sb_state st = paused ? SB_PAUSED : SB_RUNNING;
        if (s->state == SB_KILLED)
            changed |= SET(s->gone, GONE_NONE), s->ended_at = 0;
        changed |= SET(s->state, st);
        bool known = paused || str_eq(l->state_text, "running");
        const char *word = l->state_text && *l->state_text ? l->state_text : "?";
        changed |= set_str(&s->odd, known ? NULL : word);
        changed |= set_str(&s->reason, NULL);
    }
    changed |= SET(s->unlisted, false);
    s->vouched_at = 0;
    return changed;
}

static bool apply_listed(struct sandbox *s, const struct listed *l, int64_t now)
{
    bool changed = false;
    if (!s->sandbox_id)
        changed |= set_str(&s->sandbox_id, l->sandbox_id);
    changed |= apply_state(s, l);
    changed |= SET(s->started_at, l->started_at);
    changed |= SET(s->end_at, l->end_at);
    if (l->cpu_count)
        changed |= SET(s->cpu_count, l->cpu_count);
    if (l->memory_mb)
        changed |= SET(s->memory_mb, l->memory_mb);
    if (l->disk_mb)
        changed |= SET(s->disk_mb, l->disk_mb);
    if (l->template_id)
        changed |= set_str(&s->template_id, l->template_id);
    if (l->alias)
        changed |= set_str(&s->alias, l->alias);
    changed |= SET(s->not_isolated, l->not_isolated);
    if (!same_meta(s->meta, l->meta)) {
        set_meta(s, l->meta);
        changed = true;
    }
    s->seen_at = now; /* no change worth telling */
    return changed;
}

void reconcile_gone(struct sandbox *s, enum sb_gone why, int64_t now)
{
    /* run time stops at the last sighting, or at the planned end if that was earlier */
    int64_t end = why == GONE_HERE ? now : s->seen_at ? s->seen_at : now;
    if (why == GONE_TIMEOUT && s->end_at && s->end_at <= now)
        end = s->end_at;
    s->vm_up = false;
    s->pending = s->changing = false;
    s->unlisted = false;
    s->vouched_at = 0;
    set_str(&s->odd, NULL);
    s->ended_at = end;
    if (s->state == SB_ERROR)
        return; /* keeps its text */
    s->state = SB_KILLED;
    s->gone = why;
    if (s->agent != AG_NONE)
        s->agent = AG_EXITED;
    free(s->reason);
    s->reason = NULL;
}

void reconcile_vouch(struct sandbox *s, const struct listed *l, int64_t now)
{
    apply_listed(s, l, now);
    s->unlisted = true;
    s->vouched_at = now;
}

static bool is_past(const struct sandbox *s, const struct reconcile_opts *o)
{
    return s->state != SB_PAUSED && s->end_at && o->now >= s->end_at - END_SLACK_MS;
}

/* Nobody's clock but the service's says that a time is up. */
static bool is_over(const struct sandbox *s, const struct reconcile_opts *o)
{
    return !o->time_unknown && is_past(s, o);
}

enum sb_gone reconcile_why(const struct sandbox *s, const struct reconcile_opts *o)
{
    if (s->pending && !s->changing)
        return GONE_HERE;
    if (is_over(s, o))
        return GONE_TIMEOUT;
    if (s->state == SB_PAUSED || s->foreign || !s->end_at || is_past(s, o))
        return GONE_ELSEWHERE;
    return GONE_EARLY;
}

/* What is absent from a complete list; one absence may be a slip of the service. */
static bool apply_absent(struct sandbox *s, const struct reconcile_opts *o)
{
    bool up =
        s->state == SB_RUNNING || s->state == SB_PAUSED || (s->state == SB_ERROR && s->vm_up);
    bool killing = s->pending && !s->changing;
    if (!up || !s->sandbox_id)
        return false;
    bool slip = o->suspicious_empty || (!s->unlisted && (killing || !is_over(s, o)));
    if (slip)
        return SET(s->unlisted, true);
    if (s->vouched_at && !is_over(s, o)) {
        if (o->now - s->vouched_at < VOUCH_MS)
            return false;
        s->vouched_at = 0; /* who is told of it looks again */
        return true;
    }
    reconcile_gone(s, reconcile_why(s, o), o->now);
    return true;
}

void reconcile(struct sandbox_table *t, const struct listed *l, size_t n,
               const struct reconcile_opts *o, reconcile_fn fn, void *ctx)
{
    size_t known = t->n;
    bool *seen = xcalloc(known + 1, sizeof(*seen));
    struct index x = index_new(t);
    for (size_t i = 0; i < n; i++) {
        if (!l[i].sandbox_id || !*l[i].sandbox_id)
            continue;
        struct sandbox *s = find_row(&x, t, &l[i]);
        bool is_new = !s;
        if (is_new) {
            s = ARR_PUSH(t);
            fill_new(s, &l[i]);
            index_row(&x, t, t->n - 1);
        } else if (s < t->v + known) {
            seen[s - t->v] = true;
        }
        bool changed = apply_listed(s, &l[i], o->now);
        if (is_new || changed)
            fn(ctx, s, is_new);
    }
    for (size_t i = 0; i < known; i++)
        if (!seen[i] && apply_absent(&t->v[i], o))
            fn(ctx, &t->v[i], false);
    map_free(x.ids, NULL);
    map_free(x.marks, NULL);
    free(seen);
}
