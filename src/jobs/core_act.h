/* An action whose answer is under way: core_actions.c keeps them, core_messages.c and
 * core_pause.c start them. */
#ifndef CCT_JOBS_CORE_ACT_H
#define CCT_JOBS_CORE_ACT_H

#include "core_priv.h"

/* Never cancelled, so it frees itself. */
struct act {
    struct jobs *j;
    uint64_t req_id, row, message;
    bool wait, now, second;
    int seconds;
    int64_t asked_end; /* server time */
    /* a pause or a resume whose answer leaves open what became of it */
    enum sb_state want;
    struct err why;
    uint64_t timer;
    int looks;
};

struct act *act_new(struct jobs *j, const struct cmd *c);
/* Answers its request, e NULL or without a code: it worked. */
void act_end(struct act *a, const struct err *e);

#endif
