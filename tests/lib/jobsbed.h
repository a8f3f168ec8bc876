/* Sessions under test: net thread, store and model, and a small stand-in for the core
 * of the jobs that knows rows and passes answers on, nothing more. */
#ifndef CCT_TESTS_JOBSBED_H
#define CCT_TESTS_JOBSBED_H

#include <cct/jobs/session.h>
#include <cct/model/model.h>

struct jobsbed_done {
    uint64_t req_id;
    struct err err;
    char *text;
    int outcome, exit_code;
};
struct jobsbed {
    struct jobs j;
    struct model *model;       /* what the screen would hold */
    struct jobsbed_done *done; /* answers that came */
    size_t n_done;
    struct buf chunks; /* what `logs` got */
    void (*on_session)(struct session *s); /* before the agent is started; may be NULL */
    struct jobsbed_priv *priv;
};

/* dir NULL: a database in memory. account NULL: none (net calls cannot be made). */
struct jobsbed *jobsbed_new(const char *dir, const char *owner,
                            const struct e2b_account *account);
void jobsbed_free(struct jobsbed *b);
/* fn(ctx) on the net thread; back when it returned. */
void jobsbed_run(struct jobsbed *b, void (*fn)(void *ctx), void *ctx);
/* Apply what came to the model; true as soon as ok(ctx) says so, false after ms. */
bool jobsbed_wait(struct jobsbed *b, bool (*ok)(void *ctx), void *ctx, int ms);
/* One thing that happens on the net thread, for jobsbed_wait(): expect, come (there), came. */
void jobsbed_expect(void);
void jobsbed_come(void);
bool jobsbed_came(void *ctx);
void jobsbed_opened(struct session *s); /* comes, as the last argument of session_open() */
/* Open the run of that epoch; false: not within ms. */
bool jobsbed_open(struct jobsbed *b, uint64_t row, int64_t epoch, int ms);
/* Another account, as after a restart of the local provider. */
void jobsbed_account(struct jobsbed *b, const struct e2b_account *account);
/* A row of ours; with sandbox_id NULL there is no VM. Stored; its id. */
uint64_t jobsbed_row(struct jobsbed *b, const char *tool, const char *sandbox_id);
/* The rows that the store has, as after a restart. */
void jobsbed_load(struct jobsbed *b);
/* Create a VM of the local provider, give it a row and start the agent: the row's id, 0
 * with *e. */
struct jobsbed_start {
    const char *tool, *command, *prompt;
    const struct kv *env;
    const char *model, *system_prompt, *skills, *repo, *branch, *ask;
    size_t skills_len;
};
uint64_t jobsbed_create(struct jobsbed *b, const struct jobsbed_start *q, struct err *e);
/* Commit a message and relay it; its id. wait_req: send --wait. */
uint64_t jobsbed_send(struct jobsbed *b, uint64_t row, const char *text, uint64_t wait_req);
const struct jobsbed_done *jobsbed_answer(struct jobsbed *b, uint64_t req_id,
                                          int ms); /* or NULL */

#endif
