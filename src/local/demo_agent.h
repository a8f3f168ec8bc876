/* The demo agent's parts; private to demo_agent*.c. */
#ifndef LOCAL_DEMO_AGENT_H
#define LOCAL_DEMO_AGENT_H

#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes of a command's output that are shown: escaped they still fit one line. */
#define DEMO_OUTPUT_MAX (1 << 20)

/* demo_agent_out.c, its mouth: Claude's stream-json dialect, one line per event. */
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

/* demo_agent.c */
struct demo {
    struct demo_out out;
    struct buf in; /* bytes of stdin not yet cut into lines */
    bool eof;
    bool interrupted; /* the running turn is to end */
    bool busy;
    size_t queued_bytes;
    ARR(char *) queue; /* lines that wait for their turn */
};

/* Read what stdin has now; call when it is readable. Interrupts act at once. */
void demo_input_read(struct demo *d);
bool demo_input_wanted(const struct demo *d);

/* demo_agent_cmd.c: a shell command with a group of its own. */
struct demo_cmd {
    pid_t pid;
    int fd, pidfd; /* output; readable when it ended */
    struct buf output;
    size_t total;
    int status;
};

int demo_cmd_start(struct demo_cmd *c, const char *cmd); /* 0, or -1 with errno */
/* Until it ends or is interrupted; stdin is served meanwhile. */
void demo_cmd_wait(struct demo *d, struct demo_cmd *c);
/* One read of c->fd into the bounded output; true while there may be more. */
bool demo_cmd_read(struct demo_cmd *c);

#endif
