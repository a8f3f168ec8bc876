/* State of one claude decoder, shared by claude.c (lines, text) and
 * claude_turn.c (tools, usage, the end of a turn). */
#ifndef CCT_CLAUDE_PRIV_H
#define CCT_CLAUDE_PRIV_H

#include "agent_priv.h"

#include <cct/util/arr.h>
#include <cct/util/json.h>

/* The message at hand of the main agent (parent NULL) or of a subagent. */
struct claude_stream {
    char *parent, *msg;
    int next; /* index of the next block that is not being streamed */
    int open;   /* index of the block being streamed, -1 none */
    int closed; /* of one that was streamed and whose whole is still to come, -1 none */
};

struct claude {
    bool qwen; /* its dialect is spoken */
    ARR(struct claude_stream) streams;
    struct agent_calls tools;
    struct agent_asks asks; /* open questions */
    struct buf id;
    struct agent_half half;
    char *error;      /* code of the CLI's last error message in this turn */
    bool spoke;       /* text of the main agent came in this turn */
    bool interrupted; /* the CLI said so in this turn */
    char *last_result; /* its uuid */
};

/* A tool_result block, a refusal (system line or an entry of permission_denials). */
void claude_tool_result(struct claude *c, struct agent_dec *d, const struct cJSON *block,
                        const char *parent);
void claude_denied(struct claude *c, struct agent_dec *d, const struct cJSON *j, bool notice);
/* --- claude_ask.c: questions. A request; taken back by the CLI; answered, as it repeats. */
void claude_ask(struct claude *c, struct agent_dec *d, const struct cJSON *j);
void claude_ask_cancel(struct claude *c, struct agent_dec *d, const struct cJSON *j);
void claude_ask_answered(struct claude *c, struct agent_dec *d, const struct cJSON *response);
int claude_answer(const struct agent_answer *a, struct buf *out, struct err *e);

void claude_retry(struct agent_dec *d, const struct cJSON *j);
void claude_qwen_retry(struct agent_dec *d, const struct cJSON *j);
void claude_result(struct claude *c, struct agent_dec *d, const struct cJSON *j);
/* Class from the status, else from the CLI's error code, else from the text. */
enum agent_error_class claude_error_class(int status, const char *code, const char *text);

#endif
