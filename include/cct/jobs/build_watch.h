/* Following template builds: one watcher a build, shared by all who look at it. It asks at
 * most once a second, less often while nothing new comes, and goes on after the last word
 * of the status until the log is empty. Left by its last viewer it stops asking, but keeps
 * its place, so that it can be taken up again. Net thread only. */
#ifndef CCT_JOBS_BUILD_WATCH_H
#define CCT_JOBS_BUILD_WATCH_H

#include <cct/e2b/build.h>

/* Where a build stands, from the headers that open its phases. No percentage exists. */
enum build_phase_kind { PHASE_NONE, PHASE_BASE, PHASE_STEP, PHASE_RESIZE, PHASE_FINALIZE,
                        PHASE_OPTIMIZE };
struct build_phase {
    enum build_phase_kind kind;
    int step, steps;   /* PHASE_STEP: 3 of 10; steps 0: not known */
    bool cached;
    char title[160];   /* "RUN npm i"; foreign */
};
/* Is the message such a header, and not the output of a phase? */
bool build_phase_parse(const char *message, struct build_phase *p);
/* The name of a log entry's step ("base", "3", "finalize"): weaker, it has no total. */
bool build_phase_of_step(const char *step, struct build_phase *p);
/* "step 3 of 10", "base", "finalize"; "" for none. */
void build_phase_text(const struct build_phase *p, char *dst, size_t size);

enum build_end { BUILD_GOES_ON, BUILD_READY, BUILD_FAILED, BUILD_UNKNOWN /* err says why */ };
struct build_state {
    const char *template_id, *build_id;
    const char *status;          /* as sent, "" = not heard yet; foreign */
    enum build_end end;          /* not BUILD_GOES_ON: the log is complete, nothing follows */
    struct build_phase phase;
    const char *reason, *reason_step; /* of a failure, or NULL; foreign */
    int64_t quiet_ms;            /* since the last new line of the log, or since we look */
    size_t lines, dropped;       /* shown so far; of them not kept any more */
    struct err err;              /* trouble in asking, tried again; code 0 = none */
};
/* state() may close viewers, its own too; line() may not. */
struct build_viewer {
    void (*line)(void *ctx, const struct e2b_log *l);
    void (*state)(void *ctx, const struct build_state *s); /* it changed, or half a minute
                                                              more has passed in silence */
    void *ctx;
};

struct builds;
/* *client is read for each request: it may be replaced, or be NULL for a while. pace_ms:
 * least time between two requests, 0 = 1000; tests have less of it. */
struct builds *builds_new(struct net *n, struct e2b **client, int pace_ms);
void builds_free(struct builds *b); /* no callback comes after */
/* Shows what is known already, then what comes. Viewer id. */
uint64_t builds_open(struct builds *b, const char *template_id, const char *build_id,
                     const struct build_viewer *v);
void builds_close(struct builds *b, uint64_t viewer);
/* Wait before the next request, after so long without a new line. Pure. */
int64_t builds_pace(int64_t base_ms, int64_t quiet_ms);

#endif
