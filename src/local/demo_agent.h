/* The demo agent's parts; private to demo_agent*.c. It speaks as several CLIs do: what it
 * does is one thing (demo_agent_do.c, demo_agent_play.c), how it says so another
 * (struct demo_dialect, a file each). */
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
#define DEMO_MODEL "demo"

struct demo_usage {
    int64_t in, cached, out; /* tokens; in excludes cached */
};
double demo_cost(const struct demo_usage *u); /* USD */
void demo_usage_add(struct demo_usage *sum, const struct demo_usage *u);

/* demo_agent_mem.c: what was said in a session, kept below $HOME for a later --resume. */
struct demo_memory {
    char id[64];
    char *path; /* NULL: nothing is kept */
    ARR(char *) said;
    struct demo_usage used; /* since the session began */
    int steps;
};
/* A new session with this id, or one that goes on: false when there is no such. */
void demo_memory_new(struct demo_memory *m, const char *id);
bool demo_memory_resume(struct demo_memory *m, const char *id);
void demo_memory_said(struct demo_memory *m, const char *text);
void demo_memory_used(struct demo_memory *m, const struct demo_usage *u);
void demo_memory_release(struct demo_memory *m);

/* demo_agent_out.c, Claude's stream-json, one line per event. */
struct demo_out {
    int fd;
    char session[64];
    char message[40]; /* id of the message being spoken */
    int block;        /* index of its next block */
    int nmessages;    /* in this turn */
    int results;      /* turns so far */
    unsigned serial;  /* of messages and tools */
    int64_t turn_mono;
    struct demo_usage turn; /* of this turn; all zero when nothing has a price */
    double cost;            /* of this process */
    bool streaming;         /* an abort fell into text */
    struct buf last;        /* last text: the turn's result */
};

/* One line to whoever listens; releases b. Nobody to talk to is the end of the agent. */
void demo_out_emit(struct demo_out *o, struct buf *b);
/* A line of any dialect: {"type":... up to its own fields, and its end, which lets it out. */
void demo_line_begin(struct jw *w, struct buf *b, const char *type);
void demo_line_end(struct demo_out *o, struct jw *w, struct buf *b);
void demo_out_start(struct demo_out *o, int fd, const char *session);
void demo_out_release(struct demo_out *o);
/* system/init: before every turn, always the same session. */
void demo_out_init(struct demo_out *o);
/* The user's line comes back with isReplay, as --replay-user-messages does. */
void demo_out_echo(struct demo_out *o, const struct cJSON *line);
void demo_out_message_begin(struct demo_out *o);
void demo_out_message_end(struct demo_out *o, const char *stop_reason);
/* One block of the open message: deltas, then the whole. */
void demo_out_text_begin(struct demo_out *o);
void demo_out_text_delta(struct demo_out *o, const char *text, size_t len);
void demo_out_text_end(struct demo_out *o, const char *whole);
void demo_out_tool(struct demo_out *o, const char *id, const char *name, const char *input);
/* `extra` is the JSON of tool_use_result. */
void demo_out_tool_result(struct demo_out *o, const char *id, const char *text, size_t len,
                          bool is_error, const char *extra);
void demo_out_interrupted(struct demo_out *o);
/* End of the turn; aborted gives the ending of an interrupted one. */
void demo_out_result(struct demo_out *o, bool aborted);
/* What the CLI itself says of an error, and the result that repeats it. */
void demo_out_failed(struct demo_out *o, int status, const char *code, const char *text);
void demo_out_retry(struct demo_out *o, int attempt, int max, int status, const char *code);
void demo_out_ask(struct demo_out *o, const char *request_id, const char *tool,
                  const char *input, const char *call_id);
void demo_out_ask_cancelled(struct demo_out *o, const char *request_id);
/* Answer to a control_request: error NULL = success. */
void demo_out_control(struct demo_out *o, const char *request_id, const char *error);

/* demo_agent.c */
struct demo_dialect;
struct demo_args {
    const char *as, *resume, *prompt;
    bool rpc, asks;
    bool print, stream; /* -p; its stdin is a protocol of lines */
};
struct demo {
    const struct demo_dialect *as;
    struct demo_args args;
    struct demo_out out;
    struct demo_memory mem;
    struct demo_usage step; /* of the step at hand */
    struct buf in;          /* bytes of stdin not yet cut into lines */
    bool eof;
    bool interrupted; /* the running turn is to end */
    bool busy;
    size_t queued_bytes;
    ARR(char *) queue; /* lines that wait for their turn */
    ARR(char *) steer; /* what is to be taken into the running turn */
    char asked[64];    /* id of the question that is open, "" none */
    char *answer;      /* JSON of its answer */
    int exit_status;
    struct buf said; /* text of the step at hand */
};

/* A tool's outcome. */
struct demo_answer {
    const char *id, *name, *input;
    struct buf *text;
    bool failed;
    int exit; /* -1: no command */
};
/* How a turn ends. `what` is set when it failed. */
struct demo_end {
    enum { DEMO_OK, DEMO_ABORTED, DEMO_FAILED, DEMO_CUT } how;
    int status;
    const char *what;
};
/* A way to speak. A turn is begin, steps, end; a step is step, text..., then either call
 * and answer, or stop. */
struct demo_dialect {
    const char *name;
    bool lines; /* stdin is a protocol of lines; else it is the message, whole */
    void (*new_id)(char *id, size_t size);
    void (*open)(struct demo *d); /* the process began */
    void (*lost)(struct demo *d); /* there is no session like args.resume */
    void (*begin)(struct demo *d, const char *text, const struct cJSON *line);
    void (*step)(struct demo *d);
    void (*text)(struct demo *d, const char *text, int ms); /* ms: a pause after each word */
    void (*call)(struct demo *d, const char *id, const char *name, const char *input);
    void (*answer)(struct demo *d, const struct demo_answer *a);
    void (*stop)(struct demo *d, bool cut); /* cut: at the limit of its length */
    void (*retry)(struct demo *d, int attempt, int max, int status);
    void (*end)(struct demo *d, const struct demo_end *e);
    /* With `lines`: a line came; acts at once or puts it into the queue. Takes it. */
    void (*arrived)(struct demo *d, char *line);
    /* The text of a queued line, as a new string, and its JSON, if it is any. */
    char *(*text_of)(struct demo *d, const char *line, struct cJSON **j);
    /* The user's word on a tool, as JSON of the dialect's (borrowed); NULL: none asked. */
    const char *(*ask)(struct demo *d, const char *id, const char *name, const char *input);
};
/* once: claude's -p alone and pi's --mode json, where stdin is the message. */
extern const struct demo_dialect demo_claude, demo_claude_once, demo_codex, demo_opencode, demo_pi,
    demo_pi_once;

/* Read what stdin has now; call when it is readable. Interrupts act at once. */
void demo_input_read(struct demo *d);
bool demo_input_wanted(const struct demo *d);
/* Wait for ms (-1: for input) and serve stdin meanwhile; true when the turn is to end. */
bool demo_pause(struct demo *d, int ms);
void demo_enqueue(struct demo *d, char *line); /* takes it */
/* Bytes of the first piece of a text: it ends between characters, never inside one; word: at
 * the end of a word, else as soon as it is long enough. */
size_t demo_piece(const char *s, size_t len, bool word);
/* Text in pieces as a model gives it, word by word with a pause if ms > 0. What was said
 * when it ended or was interrupted, as a new string. NULL piece: nothing is to be seen of
 * it before it is whole. */
char *demo_stream(struct demo *d, const char *text, int ms,
                  void (*piece)(struct demo *d, const char *text, size_t len));
/* For dialects: an id of a session or a question; one of a call; what the step at hand has
 * used; a tool's name in small letters (dst). */
void demo_new_uuid(char *id, size_t size);
void demo_new_call(struct demo *d, char *id, size_t size);
struct demo_usage demo_step_usage(const struct demo *d);
const char *demo_lower(const char *name, char *dst, size_t size);

/* demo_agent_do.c: commands. One with its tool call and what it came to; nothing when the
 * text is none. */
void demo_do(struct demo *d, char *text, char *conclusion, size_t size);
bool demo_is_command(const char *text);
/* A step that says one thing. */
void demo_say(struct demo *d, const char *text);
/* A step with a shell command, and text before it (may be NULL). */
void demo_run(struct demo *d, const char *lead, const char *cmd, char *conclusion, size_t size);
/* demo_agent_play.c: [[case:NAME]] in the text; false when there is none. How the turn
 * ends goes to *end. */
bool demo_play(struct demo *d, const char *text, struct demo_end *end);

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
