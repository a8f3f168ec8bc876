/* A session alone: nothing answers for its sandbox, and the test says what it would have heard. */
#ifndef CCT_TESTS_ALONEBED_H
#define CCT_TESTS_ALONEBED_H

#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_priv.h"
#include "jobsbed.h"

#define ALONE_MS 20000 /* for anything that must come */

struct alone {
    struct jobsbed *b;
    uint64_t row;
    int epoch;
    bool done;        /* what the test wants to know */
    const char *text; /* of the last alone_run() */
};
/* With claude's session of a row opened, as if it were followed and the agent waited for a
 * message. dir NULL: a database in memory. Ends with jobsbed_free(). */
struct alone alone_bed(const char *dir);
struct session *alone_session(const struct alone *q);
/* fn(q) on the net thread. */
void alone_run(struct alone *q, void (*fn)(void *ctx), const char *text);
void alone_wait(const struct alone *q); /* until what jobsbed_expect() promised came */

/* On the net thread, ctx is the bed: open the run of its epoch; be at the live end. */
void alone_open(void *ctx);
void alone_at_live_end(void *ctx);

#endif
