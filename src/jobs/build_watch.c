/* Following template builds. */
#include <cct/jobs/build_watch.h>

#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/hash.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum {
    PACE_MS = 1000,
    QUIET_STEP_MS = 30000,   /* silence is told in such steps */
    RETRY_MAX_MS = 30000,
    LOST_MS = 90000,         /* the client of a call was replaced: no answer comes */
    KEPT_LINES = 5000,       /* for who comes later */
    KEPT_BYTES = 8 << 20,
    KEPT_WATCHES = 32,       /* without a viewer */
    REFUSALS_MAX = 3,        /* in a row: the build is not there */
};

struct viewer {
    uint64_t id;
    struct build_viewer v;
};
struct watch {
    struct builds *all;
    char *key, *template_id, *build_id;
    ARR(struct viewer) viewers;
    uint64_t timer;
    bool asking;
    int64_t asked_at, line_at; /* mono; line_at: of the last new line */
    int64_t offset;            /* entries had, as the service counts */
    int attempt, refusals;
    int64_t told_quiet;
    /* what is known */
    char *status, *reason, *reason_step;
    enum build_end end;
    struct build_phase phase;
    struct err err;
    ARR(struct e2b_log) kept;
    size_t kept_bytes, lines, dropped;
    uint64_t last_page;        /* mark of its content */
};
struct builds {
    struct net *net;
    struct e2b **client;
    int64_t pace_ms;
    struct map *watches; /* "template/build" -> struct watch */
    uint64_t next_viewer;
};

int64_t builds_pace(int64_t base_ms, int64_t quiet_ms)
{
    return quiet_ms < 15000 ? base_ms : quiet_ms < 60000 ? 2 * base_ms : 5 * base_ms;
}

/* --- telling ------------------------------------------------------------------------ */

static int64_t quiet_of(const struct watch *w)
{
    return clock_mono_ms() - w->line_at;
}

static void tell_one(struct watch *w, const struct build_viewer *v)
{
    struct build_state s = {.template_id = w->template_id,
                            .build_id = w->build_id,
                            .status = w->status,
                            .end = w->end,
                            .phase = w->phase,
                            .reason = w->reason,
                            .reason_step = w->reason_step,
                            .quiet_ms = quiet_of(w),
                            .lines = w->lines,
                            .dropped = w->dropped,
                            .err = w->err};

    v->state(v->ctx, &s);
}

static void tell_all(struct watch *w)
{
    w->told_quiet = quiet_of(w) / QUIET_STEP_MS;
    for (size_t i = w->viewers.n; i-- > 0;) /* from the end: one may go with its last word */
        if (i < w->viewers.n) {
            struct build_viewer v = w->viewers.v[i].v;
            tell_one(w, &v);
        }
}

static size_t line_size(const struct e2b_log *l)
{
    return sizeof(*l) + strlen(l->message);
}

static void keep_line(struct watch *w, const struct e2b_log *l)
{
    size_t too_many = 0;

    *ARR_PUSH(&w->kept) = (struct e2b_log){.time_ms = l->time_ms,
                                           .level = xstrdup(l->level),
                                           .message = xstrdup(l->message),
                                           .step = xstrdup(l->step)};
    w->kept_bytes += line_size(l);
    while (w->kept.n - too_many > KEPT_LINES ||
           (w->kept_bytes > KEPT_BYTES && w->kept.n - too_many > 1)) {
        w->kept_bytes -= line_size(&w->kept.v[too_many]);
        e2b_log_clear(&w->kept.v[too_many++]);
    }
    if (!too_many)
        return;
    memmove(w->kept.v, w->kept.v + too_many, (w->kept.n - too_many) * sizeof(*w->kept.v));
    w->kept.n -= too_many;
    w->dropped += too_many;
}

static void add_line(struct watch *w, const struct e2b_log *l)
{
    struct build_phase p;

    if (build_phase_parse(l->message, &p) ||
        (w->phase.kind == PHASE_NONE && build_phase_of_step(l->step, &p)))
        w->phase = p;
    w->lines++;
    w->line_at = clock_mono_ms();
    keep_line(w, l);
    for (size_t i = 0; i < w->viewers.n; i++)
        w->viewers.v[i].v.line(w->viewers.v[i].v.ctx, l);
}

/* --- answers ------------------------------------------------------------------------- */

static void schedule(struct watch *w, int64_t ms);

static bool is_last_word(const char *status)
{
    return str_eq(status, "ready") || str_eq(status, "error");
}

static uint64_t mark_of(const struct e2b_log *l, size_t n)
{
    uint64_t h = HASH_BEGIN;

    for (size_t i = 0; i < n; i++) {
        h = hash_add(h, &l[i].time_ms, sizeof(l[i].time_ms));
        h = hash_add(h, l[i].message, strlen(l[i].message) + 1);
    }
    return h;
}

static bool is_kept(const struct watch *w, const struct e2b_log *l)
{
    for (size_t i = w->kept.n; i-- > 0;)
        if (w->kept.v[i].time_ms == l->time_ms && str_eq(w->kept.v[i].message, l->message))
            return true;
    return false;
}

/* What explains a failure may stand in the reason alone. */
static void end_watch(struct watch *w, const struct e2b_result *r)
{
    for (size_t i = 0; i < r->n_reason_logs; i++)
        if (!is_kept(w, &r->reason_logs[i]))
            add_line(w, &r->reason_logs[i]);
    w->end = str_eq(w->status, "ready") ? BUILD_READY : BUILD_FAILED;
}

static void take_status(struct watch *w, const struct e2b_result *r)
{
    const struct e2b_build *b = &r->builds[0];
    uint64_t mark = mark_of(r->logs, r->n_logs);
    bool last = is_last_word(b->status);
    /* a service that counts otherwise than asked must not keep us here for ever */
    bool again = last && r->n_logs && mark == w->last_page && is_last_word(w->status);
    bool changed = !str_eq(w->status, b->status) || w->err.code;
    size_t before = w->lines;

    w->attempt = w->refusals = 0;
    err_clear(&w->err);
    str_set(&w->status, b->status);
    str_set(&w->reason, b->reason);
    str_set(&w->reason_step, b->reason_step);
    for (size_t i = 0; i < r->n_logs && !again; i++)
        add_line(w, &r->logs[i]);
    w->offset += again ? 0 : (int64_t)r->n_logs;
    w->last_page = mark;
    if (last && (again || !r->n_logs))
        end_watch(w, r);
    if (changed || w->lines != before || w->end || quiet_of(w) / QUIET_STEP_MS != w->told_quiet)
        tell_all(w);
    if (!w->end)
        schedule(w, builds_pace(w->all->pace_ms, quiet_of(w)));
}

static bool is_refusal(int code)
{
    return code == ERR_NOTFOUND || code == ERR_INVALID || code == ERR_AUTH || code == ERR_PROTO;
}

static void take_trouble(struct watch *w, const struct e2b_result *r)
{
    int64_t wait = net_backoff_ms(w->attempt++, w->all->pace_ms * 4 / 3, RETRY_MAX_MS);
    bool changed = w->err.code != r->err.code;

    w->refusals = is_refusal(r->err.code) ? w->refusals + 1 : 0;
    w->err = r->err;
    if (w->refusals >= REFUSALS_MAX)
        w->end = BUILD_UNKNOWN;
    if (changed || w->end || quiet_of(w) / QUIET_STEP_MS != w->told_quiet)
        tell_all(w);
    if (!w->end)
        schedule(w, r->retry_after_ms > wait ? r->retry_after_ms : wait);
}

static void on_status(void *ctx, const struct e2b_result *r)
{
    struct watch *w = ctx;

    w->asking = false;
    net_timer_cancel(w->all->net, w->timer);
    w->timer = 0;
    if (r->err.code || !r->n_builds)
        take_trouble(w, r);
    else
        take_status(w, r);
}

/* --- asking --------------------------------------------------------------------------- */

static void ask(void *ctx)
{
    struct watch *w = ctx;
    struct e2b *client = *w->all->client;

    w->timer = 0;
    if (!w->viewers.n || w->end || (w->asking && clock_mono_ms() - w->asked_at < LOST_MS))
        return;
    w->asking = false;
    if (!client) { /* the account is being found */
        schedule(w, w->all->pace_ms);
        return;
    }
    w->asking = true;
    w->asked_at = clock_mono_ms();
    w->timer = net_timer(w->all->net, LOST_MS, ask, w);
    e2b_build_status(client, w->template_id, w->build_id, w->offset, NULL, on_status, w);
}

static void schedule(struct watch *w, int64_t ms)
{
    if (w->viewers.n && !w->timer && !w->asking && !w->end)
        w->timer = net_timer(w->all->net, ms, ask, w);
}

/* --- viewers --------------------------------------------------------------------------- */

static void watch_free(void *p)
{
    struct watch *w = p;

    net_timer_cancel(w->all->net, w->timer);
    for (size_t i = 0; i < w->kept.n; i++)
        e2b_log_clear(&w->kept.v[i]);
    ARR_RELEASE(&w->kept);
    ARR_RELEASE(&w->viewers);
    free(w->key);
    free(w->template_id);
    free(w->build_id);
    free(w->status);
    free(w->reason);
    free(w->reason_step);
    free(w);
}

struct builds *builds_new(struct net *n, struct e2b **client, int pace_ms)
{
    struct builds *b = xcalloc(1, sizeof(*b));

    b->net = n;
    b->client = client;
    b->pace_ms = pace_ms > 0 ? pace_ms : PACE_MS;
    b->watches = map_new();
    return b;
}

/* Requests under way end with their client, which has no callback for us any more. */
void builds_free(struct builds *b)
{
    if (!b)
        return;
    map_free(b->watches, watch_free);
    free(b);
}

/* The oldest that nobody looks at go when there are too many. */
static void make_room(struct builds *b)
{
    size_t it = 0;
    struct watch *w;

    if (map_count(b->watches) < KEPT_WATCHES)
        return;
    while ((w = map_next(b->watches, &it, NULL, NULL)))
        if (!w->viewers.n && !w->asking) {
            map_del(b->watches, w->key);
            watch_free(w);
            return;
        }
}

static struct watch *find_or_make(struct builds *b, const char *template_id, const char *build_id)
{
    char *key = xasprintf("%s/%s", template_id, build_id);
    struct watch *w = map_get(b->watches, key);

    if (w) {
        free(key);
        return w;
    }
    make_room(b);
    w = xcalloc(1, sizeof(*w));
    w->all = b;
    w->key = key;
    w->template_id = xstrdup(template_id);
    w->build_id = xstrdup(build_id);
    w->status = xstrdup("");
    w->line_at = clock_mono_ms();
    w->asked_at = w->line_at - b->pace_ms;
    map_put(b->watches, key, w);
    return w;
}

uint64_t builds_open(struct builds *b, const char *template_id, const char *build_id,
                     const struct build_viewer *v)
{
    struct watch *w = find_or_make(b, template_id, build_id);
    struct viewer new = {++b->next_viewer, *v};
    int64_t since = clock_mono_ms() - w->asked_at;

    for (size_t i = 0; i < w->kept.n; i++)
        v->line(v->ctx, &w->kept.v[i]);
    if (w->lines || w->status[0] || w->end)
        tell_one(w, v);
    *ARR_PUSH(&w->viewers) = new;
    schedule(w, since >= b->pace_ms ? 0 : b->pace_ms - since);
    return new.id;
}

void builds_close(struct builds *b, uint64_t viewer)
{
    size_t it = 0;
    struct watch *w;

    while ((w = map_next(b->watches, &it, NULL, NULL)))
        for (size_t i = 0; i < w->viewers.n; i++)
            if (w->viewers.v[i].id == viewer) {
                ARR_REMOVE(&w->viewers, i);
                if (!w->viewers.n && !w->asking) {
                    net_timer_cancel(b->net, w->timer);
                    w->timer = 0;
                }
                return;
            }
}
