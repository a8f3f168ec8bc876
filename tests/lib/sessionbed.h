/* Durable sessions under test against a real local provider: what tests of them look at and
 * have done. Names are short, for they are the words of those tests. */
#ifndef CCT_TESTS_SESSIONBED_H
#define CCT_TESTS_SESSIONBED_H

#include "../../src/jobs/session_priv.h"
#include "jobsbed.h"
#include "localbed.h"

#define LONG_MS 60000

extern struct localbed *session_local;
extern char *session_db; /* folder of the database of the test at hand */

/* First and last thing of main(); false: sessionbed_none() says why, for main to return. */
bool sessionbed_begin(void);
int sessionbed_none(const char *what);
int sessionbed_end(int rc);
/* Set up and tear down of a test: a database of its own. */
int new_db(void **state);
int drop_db(void **state);
struct jobsbed *open_bed(const char *owner);
/* A sandbox with an agent, shown; its row. */
uint64_t start(struct jobsbed *b, const char *tool, const char *command, const char *prompt);

/* --- looking at the model; those with a ctx (a struct look) are for jobsbed_wait() -- */
struct look {
    struct jobsbed *b;
    uint64_t row;
    const char *text;
    int what, n;
};
const struct item *look_item(const struct look *l, enum item_kind kind, const char *text);
int look_count(const struct look *l, enum item_kind kind, const char *text);
bool look_text(void *ctx);
bool look_tool(void *ctx);
bool wait_agent(struct jobsbed *b, uint64_t row, enum sb_agent a);
bool wait_state(struct jobsbed *b, uint64_t row, enum sb_state st);
bool wait_message(struct jobsbed *b, uint64_t id, enum msg_state st);
bool wait_text(struct jobsbed *b, uint64_t row, const char *text);

/* --- doing things on the net thread: act(b, do_..., row, request) ------------------- */
struct act {
    struct jobsbed *b;
    uint64_t row, req;
    bool follow;
    int64_t from;
};
void act(struct jobsbed *b, void (*fn)(void *ctx), uint64_t row, uint64_t req);
void do_show(void *ctx);
void do_follow(void *ctx);
void do_interrupt(void *ctx);
void do_restart(void *ctx);
void do_raw(void *ctx);
void do_raw_end(void *ctx); /* the reader that `req` is */

#endif
