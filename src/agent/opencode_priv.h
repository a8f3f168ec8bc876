/* OpenCode's parts, as `run` prints them and `serve` tells them: shared by opencode.c and
 * opencode_serve.c. */
#ifndef CCT_OPENCODE_PRIV_H
#define CCT_OPENCODE_PRIV_H

#include "agent_priv.h"

struct opencode {
    struct agent_calls calls;
    struct agent_ids counted; /* steps whose usage went out */
    char *session;
    char *error;
    int http_status;
    enum agent_error_class cls;
    char *reason; /* of the last step's end */
    bool aborted;

    /* serve alone */
    struct agent_ids users;    /* messages of the user */
    struct agent_ids echoed;   /* their parts that went out */
    struct agent_ids thinking; /* parts that are no text */
    struct agent_asks asks;    /* open questions */
    bool works;                /* the server said so in this turn */
    unsigned owed;             /* idles of an aborted turn that may still come */
};

void opencode_reset_turn(struct opencode *o);
/* A tool's part; parent: of a session below the main one, or NULL. */
void opencode_tool(struct opencode *o, struct agent_dec *d, const struct cJSON *part,
                   const char *parent);
void opencode_step_finish(struct opencode *o, struct agent_dec *d, const struct cJSON *part,
                          const char *parent);
/* Kept for the end of the turn: there may be several. */
void opencode_error(struct opencode *o, const struct cJSON *e);
void opencode_end_turn(struct opencode *o, struct agent_dec *d);

#endif
