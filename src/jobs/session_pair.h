/* The session of a pair: designer and checker take turns. */
#ifndef CCT_JOBS_SESSION_PAIR_H
#define CCT_JOBS_SESSION_PAIR_H

#include "session_priv.h"

#include <cct/model/pair.h>

/* A wish of the user's about a pair that is not carried out yet. */
struct pair_wish {
    struct pair_event ev;
    char *text;         /* of ev */
    struct pair *fresh; /* PAIR_BEGIN: roles and task of a new one; else NULL */
    uint64_t req_id;
};
struct session_pair {
    struct pair *p;       /* as stored; NULL: there is none */
    bool loaded, busy;    /* it was read; the store is asked or told */
    struct pair_act act;  /* of the step under way */
    bool wished;          /* which the user asked for */
    ARR(struct pair_wish) wishes;
    /* the turn at hand, as decoded: its message, its CLI's session and model, its words so
     * far */
    char *message, *session, *answer_id, *model;
    struct buf answer;
    struct { /* the last one that ended; message NULL: none since we came */
        char *message, *text;
        enum agent_outcome outcome;
        char *session; /* to go on with; NULL: none, or taken over */
        int role;
        bool stored; /* it was read once more: perhaps of an earlier pair */
    } end;
    struct pair_side sums[PAIR_ROLES]; /* tokens and cost; and sessions to go on with */
    struct pair_side now;              /* tokens and cost of the turn at hand */
    uint64_t timer;
    int int_turn;     /* that is to end; 0: none */
    uint64_t int_req; /* the wish that waits for it */
    int int_tries, int_next;
};

/* --- session_pair.c, session_pair_run.c ------------------------------------------ */
void session_pair_init(struct session *s); /* when its tool is one */
void session_pair_release(struct session *s);
bool session_pair_ready(const struct session *s); /* a message may be relayed */
/* The script that runs the turn of message m, known as `id` in the sandbox. */
int session_pair_script(struct session *s, const struct message *m, const char *id,
                        struct buf *out, struct err *e);
/* Each event, also of bytes that are read once more. */
void session_pair_event(struct session *s, const struct agent_event *ev);
/* What a usage event adds to what its role has used. */
void session_pair_usage(struct session *s, const struct agent_event *ev, const struct usage *g);
void session_pair_cost(struct session *s, const struct agent_event *end);
/* The model of the turn at hand, which is of that role; borrowed, NULL: not known. */
const char *session_pair_model(const struct session *s, const char *role);
void session_pair_unsum(struct session *s);
void session_pair_go(struct session *s); /* something changed: look what is to be done */

#endif
