/* What things cost, kept: intervals in which sandboxes ran, and what agents used in each turn
 * or call. Pure rules: how the word of the service moves intervals on, and sums over both.
 * Times are the service's, ms. Unknown costs are NaN and counted as unpriced, never as 0. */
#ifndef CCT_MODEL_LEDGER_H
#define CCT_MODEL_LEDGER_H

#include <cct/model/sandbox.h>

/* --- intervals ------------------------------------------------------------------------- */

enum span_how { SPAN_OPEN, SPAN_PAUSED, SPAN_GONE };
struct span {
    int64_t start, end; /* open: end is when it was last known to run */
    enum span_how how;
    bool estimate;      /* one of its ends is only the best that is known */
};
/* What is known of a sandbox at one moment. */
struct sighting {
    bool up, paused, known; /* known false: says nothing about running */
    enum sb_gone gone;
    int64_t started_at, end_at, ended_at, now;
};
struct sighting ledger_sighting(const struct sandbox *s, int64_t now);
enum { LEDGER_LAST = 1, LEDGER_NEXT = 2 };
/* The sandbox's last interval (have false: there is none) after a sighting. What changed, as
 * bits: *last was amended, *next is a new one behind it. The same sighting again changes
 * nothing but an open end. */
unsigned ledger_follow(struct span *last, bool have, const struct sighting *s, struct span *next);

/* What the service has told of a sandbox's life. */
enum life_kind { LIFE_BEGAN, LIFE_PAUSED, LIFE_ENDED };
struct life {
    enum life_kind kind;
    int64_t at, run_started; /* run_started: of the run that ended; 0 = not told */
};
/* Runs that have ended, as told by `v` (repeats count once): exact ones, oldest first. One
 * whose begin is not told is left out. v is sorted by time; what has the same time keeps its
 * order. Returns how many are in `out`, which has room for n. */
size_t ledger_life(struct life *v, size_t n, struct span *out);
/* Do these tell of the same run? */
bool ledger_same_run(int64_t start_a, int64_t start_b);

/* --- sums ------------------------------------------------------------------------------- */

/* One interval and one turn as they are kept; strings borrowed, NULL = unknown. */
struct ledger_place {
    const char *sandbox_id, *name, *project, *tool, *template_id;
};
struct ledger_span {
    struct ledger_place at;
    struct span s;
    int cpu_count, memory_mb;
    double usd_per_s; /* NaN: unpriced */
};
struct ledger_turn {
    struct ledger_place at;
    const char *model;
    int64_t time_ms, in_tokens, cache_read, cache_write, out_tokens;
    double cost_usd; /* NaN: unpriced */
    /* It stands for so many, at about that time: cost_usd is of those with a price. 0: it is one. */
    size_t turns, unpriced;
};
struct ledger_sums {
    int64_t run_ms, vcpu_ms, mib_ms;
    int64_t in_tokens, cache_read, cache_write, out_tokens;
    double sandbox_usd, agent_usd; /* of what has a price */
    size_t spans, turns;
    size_t unpriced_spans, unpriced_turns, estimates;
};
enum ledger_by { BY_PROJECT, BY_AGENT, BY_MODEL, BY_TEMPLATE, BY_SANDBOX, LEDGER_BYS };
const char *ledger_by_name(enum ledger_by b); /* "project" ... */
struct ledger_group {
    char *name;  /* "" = none known */
    char *label; /* BY_SANDBOX: its name, the id is `name`; else NULL */
    struct ledger_sums sums;
};
/* The calendar's day, week (from Monday) and month of q.now. */
enum ledger_period { PERIOD_DAY, PERIOD_WEEK, PERIOD_MONTH, LEDGER_PERIODS };
const char *ledger_period_name(enum ledger_period p);  /* "day" ... */
const char *ledger_period_words(enum ledger_period p); /* "today", "this week", "this month" */
struct ledger_time {
    int64_t from, to; /* to: not within any more */
};
enum { LEDGER_HOURS = 24 };
struct ledger_query {
    int64_t from, to, now;
    struct ledger_time period[LEDGER_PERIODS];
    bool by_hour; /* sums of each hour of [from, to) too */
};
struct ledger_hour {
    int64_t at; /* its begin */
    struct ledger_sums sums;
};
struct ledger_budget {
    double usd[LEDGER_PERIODS]; /* 0 = none */
};
enum usage_action { USAGE_NONE, USAGE_NOTIFY, USAGE_PAUSE_IDLE };
/* What the user wants to be told of, or done. */
struct usage_limits {
    struct ledger_budget budget;
    int warn_pct;             /* told from here on; 0 = 80 */
    enum usage_action action; /* when a budget is used up */
};
/* How far a budget is used, percent rounded down; -1: there is none. */
int ledger_budget_pct(double usd, double budget);
/* What a project has cost in each period. */
struct ledger_spend {
    char *project; /* "" = none known */
    double usd[LEDGER_PERIODS];
    struct ledger_budget budget;
};
struct ledger_work;
struct ledger_report {
    struct ledger_query q;
    struct ledger_sums all, period[LEDGER_PERIODS];
    struct {
        struct ledger_group *v;
        size_t n;
    } by[LEDGER_BYS];              /* dearest first */
    struct ledger_hour *hours;     /* q.by_hour: those in which something was, in order */
    size_t n_hours;
    struct ledger_spend *spend;
    size_t n_spend;
    double hour[LEDGER_HOURS];     /* USD, the last one is q.now's */
    int64_t hour_from;             /* begin of the first */
    double recent_usd;             /* of the last 3 hours */
    double forecast_usd;           /* at q.to, if they go on so; of `all` when q.to is past */
    size_t most;                   /* sandboxes that ran at the same moment of [from, to) */
    char *rate_date, *rate_text;   /* of the sandboxes' price in force; may be NULL */
    struct usage_limits limits;    /* in force */
    struct ledger_work *work;      /* while rows are added */
};
/* How sums are asked for: bits. */
enum usage_how { USAGE_KEEP = 1, /* the screen gets this time's again when they change */
                 USAGE_BY_HOUR = 2 };
/* Rows from here on are wanted. */
int64_t ledger_first(const struct ledger_query *q);
/* Moments at which sums of q begin or end, beside those on the hours of its days. */
enum { LEDGER_CUTS = 3 + 2 * LEDGER_PERIODS };
size_t ledger_cuts(const struct ledger_query *q, int64_t out[LEDGER_CUTS]);
struct ledger_report *ledger_report_new(const struct ledger_query *q);
void ledger_report_free(struct ledger_report *r);
void ledger_report_span(struct ledger_report *r, const struct ledger_span *s);
void ledger_report_turn(struct ledger_report *r, const struct ledger_turn *t);
void ledger_report_end(struct ledger_report *r); /* no more rows */
double ledger_usd(const struct ledger_sums *s);  /* sandboxes and agents */
size_t ledger_unpriced(const struct ledger_sums *s); /* intervals and turns without a price */
/* Is there anything, and has none of it a price? */
bool ledger_all_unpriced(const struct ledger_sums *s);
/* "$2.87", "$2.87+?" where `unpriced` of them have no price, "unpriced" where all have none. */
void ledger_usd_text(char *dst, size_t size, double usd, size_t unpriced, size_t of);
void ledger_sums_text(char *dst, size_t size, const struct ledger_sums *s);
/* A table with a head, a line for each group of `by` (enum ledger_by, or one of these; hours:
 * where the report has them). */
enum { LEDGER_BY_HOUR = LEDGER_BYS, LEDGER_ALL_BYS };
struct buf;
void ledger_csv(const struct ledger_report *r, int by, struct buf *out);
/* "day", "week", "month", "all", YYYY-MM-DD, or DATE..DATE (the last one within), in this
 * machine's time zone; fills all of *q but by_hour. */
int ledger_range(const char *text, int64_t now, struct ledger_query *q, struct err *e);

#endif
