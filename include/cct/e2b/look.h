/* What the control plane tells about sandboxes beyond the list: load, the system's own
 * logs, what happened to them, and figures of the team. Net thread only. */
#ifndef CCT_E2B_LOOK_H
#define CCT_E2B_LOOK_H

#include <cct/e2b.h>

/* Unknown figures are -1 (cpu_pct too), an unknown time is 0. Bytes. */
struct e2b_metric {
    char *sandbox_id;
    int64_t time_ms;
    int cpu_count;
    double cpu_pct; /* 0..100 over all cores */
    int64_t mem_used, mem_total, mem_cache, disk_used, disk_total;
};
/* The newest sample of each (metrics); those without one are missing. Any number of
 * ids: asked for by the hundred, one request after the other. */
uint64_t e2b_metrics(struct e2b *c, const char *const *ids, size_t n,
                     const struct e2b_call_opts *o, e2b_fn fn, void *ctx);
/* One sandbox's samples between two times (wall ms, 0 = open), in order of arrival. */
uint64_t e2b_metrics_of(struct e2b *c, const char *id, int64_t from_ms, int64_t to_ms,
                        const struct e2b_call_opts *o, e2b_fn fn, void *ctx);

/* A line of a log, of sandboxes and of builds, in the order it came. */
struct e2b_log {
    int64_t time_ms; /* 0: it has none that makes sense */
    char *level;     /* as sent; "" when missing */
    char *message;   /* never NULL */
    char *step;      /* builds: "base", "3", "finalize"; or NULL */
    char *fields;    /* JSON text of an object, or NULL */
};
/* Free what it holds, not the struct itself. */
void e2b_log_clear(struct e2b_log *l);
struct e2b_log_query {
    int64_t from_ms;     /* 0 = from the begin, or with backward from the end */
    int limit;           /* 1..1000, builds 1..100; 0 = what the service gives */
    bool backward;       /* newest first */
    const char *level;   /* this and what is graver; or NULL */
    const char *search;  /* text in the message; or NULL; not with the old route */
};
/* Logs of the sandbox's system, not of its commands (logs). Falls back to the old
 * route, whose lines are taken apart. */
uint64_t e2b_logs(struct e2b *c, const char *id, const struct e2b_log_query *q,
                  const struct e2b_call_opts *o, e2b_fn fn, void *ctx);

/* "sandbox.lifecycle.killed" and the like. */
struct e2b_event {
    char *id, *type, *sandbox_id, *template_id, *build_id, *team_id, *execution_id;
    int64_t time_ms;
    char *data;              /* JSON text of eventData, or NULL */
    /* of the run that ended, where the event tells: -1 unknown */
    int64_t run_started_ms, run_ms;
    int cpu_count, memory_mb;
};
struct e2b_event_query {
    const char *sandbox_id; /* NULL: of all */
    const char *const *types; /* ends with NULL, or NULL: all */
    int offset, limit;      /* limit 1..100, 0 = 100 */
    bool oldest_first;
};
/* Kept 7 days by the service; one page (events). ERR_NOTFOUND or ERR_PROTO where a
 * service has no such route. */
uint64_t e2b_events(struct e2b *c, const struct e2b_event_query *q,
                    const struct e2b_call_opts *o, e2b_fn fn, void *ctx);

struct e2b_team_metric {
    int64_t time_ms;
    int64_t sandboxes; /* at once; -1 unknown */
    double start_rate; /* per second */
    double value;      /* of e2b_team_max */
};
/* The team must be the key's own. Times in wall ms, 0 = the service's choice (team). */
uint64_t e2b_team_metrics(struct e2b *c, const char *team_id, int64_t from_ms, int64_t to_ms,
                          const struct e2b_call_opts *o, e2b_fn fn, void *ctx);
/* The most there was: of the sandboxes at once, or of the start rate (one in team). */
uint64_t e2b_team_max(struct e2b *c, const char *team_id, bool start_rate,
                      const struct e2b_call_opts *o, e2b_fn fn, void *ctx);

#endif
