/* The list: the truth about state. One call at a time, a pace that follows
 * attention, back-off with jitter; whoever asked for a list, the answer is applied here. */
#include "core_priv.h"

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SLOW_MS 2000
#define MAX_WAIT_MS 60000
#define GIVE_UP_MS 8000
#define SUSPEND_MS 2000
#define FAR_S ((time_t)1 << 34)

struct waiter { /* refresh: answered by a list that was asked for after it */
    uint64_t req_id, turn;
};
struct lister {
    uint64_t call, timer;
    struct e2b *client; /* of the call */
    uint64_t turn;      /* lists asked for */
    int64_t due;        /* mono, of the timer */
    int64_t sent_at, changed_at;
    int attempt;
    size_t lists;
    int empties;        /* suspicious empty answers in a row */
    int64_t empty_since;
    bool again, active, listed;
    int clock_fd;       /* readable when the clock was set, as after a suspend */
    int64_t asleep;     /* boot minus monotonic */
    ARR(struct waiter) waiters;
    ARR(uint64_t) settled; /* requests answered as soon as new rows have their ids */
    struct map *warned; /* row id -> warning given + 1 */
};

/* --- pure parts ----------------------------------------------------------------- */

int64_t poll_interval(int64_t base_ms, bool active, int64_t quiet_ms)
{
    if (!active)
        return base_ms * 5 > 15000 ? base_ms * 5 : 15000;
    return quiet_ms > 120000 ? base_ms * 2 : base_ms;
}

bool poll_suspicious(size_t listed, size_t known_up, int empties, int64_t empty_ms)
{
    return listed == 0 && known_up >= 2 && (empties < 3 || empty_ms < 30000);
}

int poll_warning(int64_t left_ms)
{
    return left_ms <= 0 ? 0 : left_ms <= 120000 ? 2 : left_ms <= 300000 ? 1 : 0;
}

/* Date has whole seconds, so less than that is no difference. */
int64_t poll_offset(int64_t date_ms, int64_t wall_ms)
{
    int64_t off = date_ms ? date_ms + 500 - wall_ms : 0;

    return off > -1500 && off < 1500 ? 0 : off;
}

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

static size_t count_up(const struct jobs *j)
{
    size_t n = 0;

    for (size_t i = 0; i < j->table.n; i++)
        n += j->table.v[i].sandbox_id && core_row_live(&j->table.v[i]);
    return n;
}

static void one_changed(struct jobs *j, const struct change *c)
{
    struct sandbox *row = &j->table.v[c->at];

    if (!row->account)
        row->account = xstrdup(j->priv->place);
    if (c->is_new) {
        core_row_insert(j, row, NULL, NULL);
        return;
    }
    jobs_row_changed(j, row);
    core_row_state(j, row);
    if (row->state == SB_KILLED && row->gone == GONE_EARLY)
        jobs_say(j, 1, row->id, "%s ended before its time; it was not killed from here",
                 row->name ? row->name : row->sandbox_id);
    else if (row->state == SB_KILLED && row->gone == GONE_TIMEOUT)
        jobs_say(j, 1, row->id, "%s has ended: its time was up",
                 row->name ? row->name : row->sandbox_id);
}

/* Rows of an earlier run of the program that the list only confirms are no change; the
 * first list still says that they live, and their streams are opened. */
static void first_list(struct jobs *j)
{
    for (size_t i = 0; i < j->table.n; i++)
        if (j->table.v[i].id)
            core_row_state(j, &j->table.v[i]);
}

/* "ends in 5 min" when that line is crossed while we look on. */
static void warn_ends(struct jobs *j)
{
    struct map *warned = j->priv->poll->warned;
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
            jobs_say(j, 1, row->id, "%s ends in %d min (t extends)", row->name,
                     level == 2 ? 2 : 5);
    }
}

static void set_offset(struct jobs *j, int64_t date_ms)
{
    int64_t off = poll_offset(date_ms, clock_wall_ms());
    int64_t diff = off - j->server_offset_ms;

    if (date_ms && (diff > 1500 || diff < -1500))
        j->server_offset_ms = off;
}

void core_poll_apply(struct jobs *j, const struct e2b_result *r)
{
    struct lister *p = j->priv->poll;
    bool old_route = r->err.text[0] != 0;
    ARR(struct listed) l = ARR_INIT;
    struct foreign f = {0};
    struct changes ch = {.j = j};
    struct reconcile_opts o = {0};
    size_t up = count_up(j);
    int64_t mono = clock_mono_ms();

    set_offset(j, r->date_ms);
    for (size_t i = 0; i < r->n; i++)
        *ARR_PUSH(&l) = as_listed(&f, &r->v[i]);
    for (size_t i = 0; old_route && i < j->table.n; i++)
        if (j->table.v[i].state == SB_PAUSED)
            *ARR_PUSH(&l) = as_before(&j->table.v[i]);
    o.now = jobs_now(j);
    if (l.n)
        p->empties = 0;
    else if (!p->empties)
        p->empty_since = mono;
    /* our own provider knows what it has */
    o.suspicious_empty = !e2b_account_of(j->e2b)->local &&
                         poll_suspicious(l.n, up, p->empties, mono - p->empty_since);
    p->empties += l.n == 0;
    p->lists = o.suspicious_empty ? 0 : p->lists + 1;
    reconcile(&j->table, l.v, l.n, &o, on_change, &ch);
    for (size_t i = 0; i < ch.v.n; i++)
        one_changed(j, &ch.v.v[i]);
    if (ch.v.n)
        p->changed_at = mono;
    if (!p->listed)
        first_list(j);
    p->listed = true;
    ARR_RELEASE(&ch.v);
    ARR_RELEASE(&l);
    foreign_release(&f);
    warn_ends(j);
    core_create_listed(j);
    core_kill_intents(j);
    core_killall_listed(j);
    core_foreign_listed(j);
}

/* --- asking --------------------------------------------------------------------- */

static void poll_now(void *ctx);

static void arm(struct jobs *j, int64_t ms)
{
    struct lister *p = j->priv->poll;

    net_timer_cancel(j->o.net, p->timer);
    p->due = clock_mono_ms() + ms;
    p->timer = net_timer(j->o.net, ms, poll_now, j);
}

static void answer(struct jobs *j, const struct err *e)
{
    struct lister *p = j->priv->poll;
    size_t keep = 0;

    core_rows_flush(j);
    for (size_t i = 0; i < p->waiters.n; i++) {
        if (p->waiters.v[i].turn > p->turn)
            p->waiters.v[keep++] = p->waiters.v[i];
        else if (e)
            jobs_done(j, p->waiters.v[i].req_id, e, 0);
        else
            *ARR_PUSH(&p->settled) = p->waiters.v[i].req_id;
    }
    p->waiters.n = keep;
    p->again |= keep > 0;
    core_poll_settled(j);
}

/* Who asked for a list also sees the rows that are new in it. */
void core_poll_settled(struct jobs *j)
{
    struct lister *p = j->priv->poll;

    if (!p || map_count(j->priv->inserts) > 0 || p->settled.n == 0)
        return;
    core_rows_flush(j);
    for (size_t i = 0; i < p->settled.n; i++)
        jobs_done(j, p->settled.v[i], NULL, 0);
    ARR_CLEAR(&p->settled);
}

static void on_failed(struct jobs *j, const struct e2b_result *r)
{
    struct lister *p = j->priv->poll;
    int64_t wait = net_backoff_ms(p->attempt++, j->o.poll_ms, MAX_WAIT_MS);

    core_link_err(j, &r->err);
    answer(j, &r->err);
    arm(j, r->retry_after_ms > wait ? r->retry_after_ms : p->again ? 0 : wait);
    p->again = false;
    if (r->err.code == ERR_NETWORK || r->err.code == ERR_AUTH || r->err.code == ERR_TIMEOUT)
        core_account_lost(j);
}

static void on_list(void *ctx, const struct e2b_result *r)
{
    struct jobs *j = ctx;
    struct lister *p = j->priv->poll;
    bool first = !p->listed;
    int64_t now = clock_mono_ms(), running = r->total_running;

    p->call = 0;
    if (r->err.code) {
        on_failed(j, r);
        return;
    }
    p->attempt = 0;
    if (!p->changed_at)
        p->changed_at = now;
    core_poll_apply(j, r);
    if (running != j->priv->link.total_running)
        j->priv->link.told = false;
    j->priv->link.total_running = running;
    if (r->err.text[0])
        core_link(j, LINK_OK, r->err.text);
    else
        core_link(j, now - p->sent_at > SLOW_MS ? LINK_SLOW : LINK_OK, NULL);
    answer(j, NULL);
    arm(j, p->again ? 0
                    : net_backoff_ms(0, poll_interval(j->o.poll_ms, p->active, now - p->changed_at),
                                     MAX_WAIT_MS));
    p->again = false;
    if (first)
        core_create_demo(j);
}

static void poll_now(void *ctx)
{
    struct jobs *j = ctx;
    struct lister *p = j->priv->poll;
    struct e2b_call_opts o = {.give_up_ms = p->waiters.n ? GIVE_UP_MS : 0};

    p->timer = 0;
    if (p->call || !j->e2b || !j->priv->rows_loaded)
        return;
    p->turn++;
    p->sent_at = clock_mono_ms();
    p->client = j->e2b;
    p->call = e2b_list(j->e2b, &o, on_list, j);
}

/* The machine slept, or its clock was set: what we hold may be old. */
static void on_clock(void *ctx, int fd)
{
    struct jobs *j = ctx;
    struct lister *p = j->priv->poll;
    struct itimerspec far = {.it_value.tv_sec = FAR_S};
    int64_t asleep = clock_boot_ms() - clock_mono_ms();
    uint64_t n;
    bool set = read(fd, &n, sizeof(n)) < 0 && errno == ECANCELED;

    timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
    if (!set && asleep - p->asleep < SUSPEND_MS)
        return;
    p->asleep = asleep;
    p->attempt = 0;
    core_poll_soon(j, 0);
}

static void watch_clock(struct jobs *j)
{
    struct lister *p = j->priv->poll;
    struct itimerspec far = {.it_value.tv_sec = FAR_S};

    p->asleep = clock_boot_ms() - clock_mono_ms();
    p->clock_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (p->clock_fd < 0)
        return; /* then the next regular list brings the news */
    timerfd_settime(p->clock_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
    net_watch(j->o.net, p->clock_fd, on_clock, j);
}

void core_poll_init(struct jobs *j)
{
    struct lister *p = j->priv->poll = xcalloc(1, sizeof(*p));

    p->active = true;
    p->warned = map_new();
    watch_clock(j);
}

void core_poll_release(struct jobs *j)
{
    struct lister *p = j->priv->poll;

    if (!p)
        return;
    if (p->clock_fd >= 0) {
        net_unwatch(j->o.net, p->clock_fd);
        close(p->clock_fd);
    }
    net_timer_cancel(j->o.net, p->timer);
    core_call_cancel(j, p->client, p->call);
    ARR_RELEASE(&p->waiters);
    ARR_RELEASE(&p->settled);
    map_free(p->warned, NULL);
    free(p);
    j->priv->poll = NULL;
}

void core_poll_start(struct jobs *j)
{
    if (!j->priv->poll->call && j->priv->rows_loaded && j->e2b)
        arm(j, core_killall_lists(j) ? j->o.poll_ms : 0);
}

void core_poll_yield(struct jobs *j)
{
    struct lister *p = j->priv->poll;

    if (p->listed || p->waiters.n)
        return;
    core_call_cancel(j, p->client, p->call);
    p->call = 0;
    arm(j, j->o.poll_ms);
}

void core_poll_reset(struct jobs *j)
{
    struct lister *p = j->priv->poll;

    for (size_t i = 0; i < p->waiters.n; i++)
        core_done_err(j, p->waiters.v[i].req_id, 0, ERR_CANCELLED,
                      "the account has changed meanwhile; look again");
    ARR_CLEAR(&p->waiters);
    core_call_cancel(j, p->client, p->call);
    net_timer_cancel(j->o.net, p->timer);
    p->call = p->timer = 0;
    p->listed = p->again = false;
    p->lists = 0;
    p->empties = p->attempt = 0;
    p->changed_at = 0;
}

size_t core_poll_lists(const struct jobs *j)
{
    return j->priv->poll->lists;
}

void core_poll_soon(struct jobs *j, int64_t ms)
{
    struct lister *p = j->priv->poll;

    if (p->call)
        p->again = true;
    else if (!p->timer || p->due > clock_mono_ms() + ms)
        arm(j, ms);
}

void core_poll_refresh(struct jobs *j, uint64_t req_id)
{
    struct lister *p = j->priv->poll;

    if (!j->e2b) {
        jobs_done(j, req_id, &j->priv->account_err, 0);
        return;
    }
    /* the first list of this life is fresh enough for anybody */
    *ARR_PUSH(&p->waiters) = (struct waiter){req_id, p->turn + !(p->call && !p->listed)};
    if (!p->call)
        arm(j, 0);
}

void core_poll_active(struct jobs *j, bool active)
{
    struct lister *p = j->priv->poll;

    if (active && !p->active && p->attempt == 0)
        core_poll_soon(j, 0);
    p->active = active;
}
