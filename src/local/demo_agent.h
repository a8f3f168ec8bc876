/* The demo agent's mouth: Claude's stream-json dialect, one line per event.
 * Private to demo_agent*.c. */
#ifndef LOCAL_DEMO_AGENT_H
#define LOCAL_DEMO_AGENT_H

#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <stdbool.h>
#include <stdint.h>

struct demo_out {
    int fd;
    char session[40];
    char message[40]; /* id of the message being spoken */
    int block;        /* index of its next block */
    int nmessages;    /* in this turn */
    int results;      /* turns so far */
    unsigned serial;  /* of messages and tools */
    int64_t turn_mono;
    struct buf last; /* last text: the turn's result */
};

void demo_out_start(struct demo_out *o, int fd);
void demo_out_release(struct demo_out *o);
/* system/init: before every turn, always the same session. */
void demo_out_init(struct demo_out *o);
/* The user's line comes back with isReplay, as --replay-user-messages does. */
void demo_out_echo(struct demo_out *o, const struct cJSON *line);
void demo_out_message_begin(struct demo_out *o);
void demo_out_message_end(struct demo_out *o, const char *stop_reason);
/* One block of the open message: deltas, then the whole. */
void demo_out_text(struct demo_out *o, const char *text);
/* `id` gets the tool call's id (>= 40 bytes); input is JSON text. */
void demo_out_tool(struct demo_out *o, char *id, const char *name, const char *input);
/* `extra` is the JSON of tool_use_result. */
void demo_out_tool_result(struct demo_out *o, const char *id, const char *text, size_t len,
                          bool is_error, const char *extra);
void demo_out_interrupted(struct demo_out *o);
/* End of the turn; aborted gives the ending of an interrupted one. */
void demo_out_result(struct demo_out *o, bool aborted);
/* Answer to a control_request: error NULL = success. */
void demo_out_control(struct demo_out *o, const char *request_id, const char *error);

#endif
