/* A sandbox that is being made: core_create.c asks for it, core_created.c has what became of
 * that. */
#ifndef CCT_JOBS_CORE_CREATE_H
#define CCT_JOBS_CORE_CREATE_H

#include "core_priv.h"

struct create {
    struct jobs *j;
    struct cmd_create *q;
    uint64_t req_id, row, call, timer;
    struct e2b *client;  /* of the call */
    char *mark;
    enum sb_step step;   /* at which it stands, or failed */
    struct kv *vm_env;   /* of the sandbox: the project's variables, the user's; no key */
    struct kv *env;      /* of the agent: keys, too */
    char *own_names;     /* core_env_own_names() */
    struct core_repo_key repo_key;
    struct start_lease lease;
    bool lost;           /* posted, but no answer */
    bool killing, deleting;
    int lists;           /* that did not show it */
    int64_t lost_at;
    core_kill_fn kill_fn;
    void *kill_ctx;
};

/* --- core_created.c ------------------------------------------------------------- */
/* The row says where it stands; the agent's part tells more by itself. */
void create_step(struct create *c, enum sb_step step, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void create_answered(void *ctx, const struct e2b_result *r); /* the POST's answer, or none */
/* Nothing was made, or nothing that could be found; frees it. */
void create_give_up(struct create *c, const struct err *why);
void create_free(struct create *c); /* one that is in no list yet */

#endif
