/* The list, the truth about state: when it is asked for. One call at a time, a pace that
 * follows attention and what the service asks for, back-off with jitter; whoever asked for
 * a list, the answer is applied here. */
#include "core_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SLOW_MS 2000
#define TRY_MS 8000       /* of one page */
#define NETWORK_MS 10000  /* a line that is down is tried so often while somebody looks */
#define MAX_WAIT_MS 60000
#define PATIENCE_MS 8000  /* who waits for a list is told then that there is none */
#define APART_MS 2000     /* from the begin of one list to the next */
#define PAGE_MS 400       /* ... and more when it is long */
#define TRIM_MS 30000     /* memory that was freed goes back */
#define LOOK_MS 10000     /* did the machine sleep? */
#define SUSPEND_MS 2000
#define FAR_S ((time_t)1 << 34)

struct waiter { /* refresh: answered by a list that was asked for after it */
    uint64_t req_id, turn;
    int64_t until; /* mono */
};
struct lister {
    uint64_t call, timer;
    struct e2b *client; /* of the call */
    uint64_t turn;      /* lists asked for */
    int64_t due;        /* mono, of the next list */
    int64_t sent_at, changed_at, trimmed_at;
    int pages;          /* of the last list */
    int attempt;
    size_t lists;
    int empties;        /* suspicious empty answers in a row */
    int64_t empty_since;
    bool again, active, listed;
    int clock_fd;       /* readable when the clock was set, as after a suspend */
    int64_t asleep;     /* boot minus monotonic */
    ARR(struct waiter) waiters;
    ARR(uint64_t) settled; /* requests answered as soon as new rows have their ids */
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

/* Tests ask for more than a service is asked for. */
int64_t poll_apart(int64_t base_ms, int pages)
{
    int64_t least = base_ms < APART_MS ? base_ms : APART_MS;

    return pages * PAGE_MS > APART_MS ? pages * PAGE_MS : least;
}

int64_t poll_backoff(const struct err *e, int attempt, int64_t base_ms, bool active)
{
    bool line = e->code == ERR_NETWORK || e->code == ERR_TIMEOUT;

    return net_backoff_ms(attempt, base_ms, line && active ? NETWORK_MS : MAX_WAIT_MS);
}

/* --- a list is there --------------------------------------------------------------- */

static void poll_tick(void *ctx);

void core_poll_apply(struct jobs *j, const struct e2b_result *r)
{
    struct lister *p = j->priv->poll;
    size_t up = core_listed_up(j);
    int64_t mono = clock_mono_ms();
    bool suspicious;

    core_pace_list(j, r->pages);
    p->pages = r->pages;
    if (r->n)
        p->empties = 0;
    else if (!p->empties)
        p->empty_since = mono;
    /* our own provider knows what it has */
    suspicious = !e2b_account_of(j->e2b)->local &&
                 poll_suspicious(r->n, up, p->empties, mono - p->empty_since);
    p->empties += r->n == 0;
    p->lists = suspicious ? 0 : p->lists + 1;
    if (core_listed(j, r, suspicious, !p->listed) || !p->changed_at)
        p->changed_at = mono;
    core_usage_listed(j, !p->listed);
    p->listed = true;
    core_time_listed(j);
    core_create_listed(j);
    core_kill_intents(j);
    core_killall_listed(j);
    core_foreign_listed(j);
}

/* --- asking --------------------------------------------------------------------- */

/* A list in so many ms, but not sooner than the service bears. The timer is cut into
 * pieces: it stands still while the machine sleeps, and that must not go unnoticed. */
static void arm(struct jobs *j, int64_t ms)
{
    struct lister *p = j->priv->poll;
    int64_t now = clock_mono_ms();
    int64_t least = p->sent_at ? p->sent_at + poll_apart(j->o.poll_ms, p->pages) : now;

    least = j->priv->quiet_until > least ? j->priv->quiet_until : least;
    p->due = now + ms > least ? now + ms : least;
    net_timer_cancel(j->o.net, p->timer);
    p->timer = net_timer(j->o.net, p->due - now < LOOK_MS ? p->due - now : LOOK_MS, poll_tick, j);
}

/* Those whose list this is; with an error also those who will not wait for the next. */
static void answer(struct jobs *j, const struct err *e)
{
    struct lister *p = j->priv->poll;
    bool passing = e && (e->code == ERR_NETWORK || e->code == ERR_TIMEOUT ||
                         e->code == ERR_SERVER || e->code == ERR_BUSY);
    size_t keep = 0;

    core_rows_flush(j);
    for (size_t i = 0; i < p->waiters.n; i++) {
        if (p->waiters.v[i].turn > p->turn || (passing && p->waiters.v[i].until > p->due))
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

static bool slept(struct jobs *j)
{
    return clock_boot_ms() - clock_mono_ms() - j->priv->poll->asleep >= SUSPEND_MS;
}

/* What we hold may be old, and so is every connection. */
static void woke(struct jobs *j)
{
    struct lister *p = j->priv->poll;
    struct session *s;
    size_t it = 0;

    p->asleep = clock_boot_ms() - clock_mono_ms();
    p->attempt = 0;
    net_renew(j->o.net); /* ends the list under way, if there is one */
    if (!p->call)
        arm(j, 0);
    while ((s = map_next(j->sessions, &it, NULL, NULL)))
        session_woke(s);
}

static void on_failed(struct jobs *j, const struct e2b_result *r)
{
    struct lister *p = j->priv->poll;
    int64_t wait = poll_backoff(&r->err, p->attempt++, j->o.poll_ms, p->active);

    core_pace_hold(j, r->retry_after_ms);
    core_link_err(j, &r->err);
    if (p->waiters.n && wait > APART_MS)
        wait = APART_MS; /* somebody stands there and waits */
    arm(j, p->again ? 0 : wait);
    p->again = false;
    answer(j, &r->err);
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
    core_metrics_listed(j);
    core_builds_listed(j);
    if (j->o.follow_all && now - p->trimmed_at >= TRIM_MS) {
        p->trimmed_at = now;
        xtrim(); /* what lives long stands between what does not: that leaves holes */
    }
    if (first)
        core_create_demo(j);
}

static void poll_tick(void *ctx)
{
    struct jobs *j = ctx;
    struct lister *p = j->priv->poll;
    struct e2b_call_opts o = {.try_ms = TRY_MS};

    p->timer = 0;
    if (slept(j)) {
        woke(j);
        return;
    }
    if (clock_mono_ms() < p->due) {
        arm(j, p->due - clock_mono_ms());
        return;
    }
    if (p->call || !j->e2b || !j->priv->rows_loaded)
        return;
    p->turn++;
    p->sent_at = clock_mono_ms();
    p->client = j->e2b;
    p->call = e2b_list(j->e2b, &o, on_list, j);
}

/* The machine slept, or its clock was set. The service's clock goes by another one, but
 * who sets a clock may have moved the machine. */
static void on_clock(void *ctx, int fd)
{
    struct jobs *j = ctx;
    struct lister *p = j->priv->poll;
    struct itimerspec far = {.it_value.tv_sec = FAR_S};
    uint64_t n;
    bool set = read(fd, &n, sizeof(n)) < 0 && errno == ECANCELED;

    timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
    if (slept(j)) {
        woke(j);
    } else if (set) {
        p->attempt = 0;
        core_poll_soon(j, 0);
    }
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
    j->priv->warned = map_new();
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
    map_free(j->priv->warned, NULL);
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

/* The service asked for more patience than anybody has at the keys. */
static void must_wait(struct jobs *j)
{
    struct lister *p = j->priv->poll;
    struct err e = {0};
    int64_t ms = j->priv->quiet_until - clock_mono_ms();

    err_set(&e, ERR_BUSY, "the list is not asked for now: the service wants to be left alone for "
            "%lld s", (long long)(ms + 999) / 1000);
    for (size_t i = 0; i < p->waiters.n; i++)
        jobs_done(j, p->waiters.v[i].req_id, &e, 0);
    p->waiters.n = 0;
}

void core_poll_refresh(struct jobs *j, uint64_t req_id)
{
    struct lister *p = j->priv->poll;

    if (!j->e2b) {
        jobs_done(j, req_id, &j->priv->account_err, 0);
        return;
    }
    /* the first list of this life is fresh enough for anybody */
    *ARR_PUSH(&p->waiters) = (struct waiter){req_id, p->turn + !(p->call && !p->listed),
                                             clock_mono_ms() + PATIENCE_MS};
    if (p->call)
        return;
    if (j->priv->quiet_until > clock_mono_ms() + PATIENCE_MS) {
        must_wait(j);
        return;
    }
    p->attempt = 0;
    arm(j, 0);
}

void core_poll_active(struct jobs *j, bool active)
{
    struct lister *p = j->priv->poll;

    if (active && !p->active)
        core_poll_soon(j, 0);
    p->active = active;
}
