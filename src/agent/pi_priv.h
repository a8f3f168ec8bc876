/* State of one pi decoder, shared by pi.c (lines, text, turns) and pi_rpc.c (questions,
 * answers to commands, what goes in). */
#ifndef CCT_PI_PRIV_H
#define CCT_PI_PRIV_H

#include "agent_priv.h"

struct pi {
    struct agent_calls calls;
    struct agent_ids counted; /* answers whose usage went out in this turn */
    struct agent_asks asks;   /* open questions */
    struct buf id;
    struct agent_half half;
    uint64_t message; /* place of the line in which the message at hand began */
    bool in_message;
    bool settles; /* this version ends a turn with agent_settled */
    char *stop, *error; /* of the last answer: stopReason, errorMessage */
};

void pi_begin_turn(struct pi *p, struct agent_dec *d);
/* Ends the turn as the last answer says. */
void pi_end_turn(struct pi *p, struct agent_dec *d, bool aborted);

/* pi_rpc.c */
void pi_response(struct pi *p, struct agent_dec *d, const struct cJSON *j);
void pi_ui_request(struct pi *p, struct agent_dec *d, const struct cJSON *j);
int pi_message(const char *text, size_t len, struct buf *out, struct err *e);
int pi_steer(const char *text, size_t len, struct buf *out, struct err *e);
int pi_interrupt(const char *request_id, struct buf *out);
int pi_answer(const struct agent_answer *a, struct buf *out, struct err *e);

#endif
