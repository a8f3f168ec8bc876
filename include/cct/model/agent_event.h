/* The common event model of all agents, as plain data. Adapters
 * make these (cct/agent.h); the model turns them into transcript items. */
#ifndef CCT_MODEL_AGENT_EVENT_H
#define CCT_MODEL_AGENT_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum agent_kind {
    AGENT_SESSION, AGENT_TURN_BEGIN, AGENT_TEXT, AGENT_THINKING, AGENT_TOOL,
    AGENT_USER_ECHO, AGENT_ASK, AGENT_NOTICE, AGENT_USAGE, AGENT_TURN_END,
    AGENT_EXIT, AGENT_RAW, /* RAW: text of a tool without a protocol */
    AGENT_KIND_COUNT
};
enum agent_text_mode { AGENT_APPEND, AGENT_REPLACE };
enum agent_tool_state { AGENT_TOOL_RUNNING, AGENT_TOOL_OK, AGENT_TOOL_FAILED, AGENT_TOOL_DENIED,
                        AGENT_TOOL_UNKNOWN };
enum agent_level { AGENT_INFO, AGENT_WARN, AGENT_ERROR };
/* Id of the totals of one process, which begin anew with the next: an EXIT ends them. */
#define AGENT_PROCESS_TOTAL "process"
enum agent_usage_scope { AGENT_SCOPE_CALL, AGENT_SCOPE_TURN, AGENT_SCOPE_SESSION_TOTAL };
enum agent_outcome { AGENT_OK, AGENT_FAILED, AGENT_INTERRUPTED, AGENT_TRUNCATED };
enum agent_error_class { AGENT_ERR_NONE, AGENT_ERR_AUTH, AGENT_ERR_RATE, AGENT_ERR_OVERLOAD,
                         AGENT_ERR_BILLING, AGENT_ERR_MODEL, AGENT_ERR_NETWORK, AGENT_ERR_OTHER };

/* The words of these, in stored events and in exports; "?" for what is none. */
extern const char *const agent_tool_state_words[AGENT_TOOL_UNKNOWN + 1],
    *const agent_outcome_words[AGENT_TRUNCATED + 1];
const char *agent_tool_state_name(enum agent_tool_state s);
const char *agent_outcome_name(enum agent_outcome o);

/* What the kinds mean beyond their names:
 * - SESSION comes with every announcement of the CLI, once per turn with claude;
 *   the same id again is no new session.
 * - RAW is one line without its end; final = the line ended there. A piece that
 *   is not final is continued by the next RAW unless another kind follows.
 * - NOTICE of a retry: text is the reason alone, the numbers are fields.
 * - TURN_END has no text when all went well. It and TURN_BEGIN have an id where the stream
 *   says which message the turn is about; USER_ECHO a name where it says who sent it.
 * - ASK opens a question; the same id again with final = true ends it (answered, taken
 *   back by the CLI, or its turn or process ended). A decoder ends what it opened.
 * - USAGE with scope SESSION_TOTAL carries what the CLI counted since its session began
 *   (id = agent_session_id): whoever adds up keeps the last one per session and adds what
 *   it grew by, so that a decoder that begins in the middle needs no memory. Fields that
 *   the source does not total are 0, the cost NaN (model/usage_sum.h does it).
 *
 * One event. Strings are owned by the event (NULL = not given), foreign and not
 * yet cleaned for the screen: the model's edge does that (cct/text/clean.h). */
struct agent_event {
    enum agent_kind kind;
    /* place in the stream: byte offset of the line's first byte in the run's raw
     * log, and the number of the event within that line; the key of its row */
    uint64_t offset;
    uint32_t index;
    uint64_t raw_line; /* line number, from 1 */
    int64_t time_ms;   /* the CLI's own time stamp when it has one, else 0 */

    char *id;        /* text, thinking: block_id; tool: call_id; ask: ask_id;
                        session: agent_session_id */
    char *text;      /* text, thinking, echo, notice, turn_end, raw; exit: stderr tail;
                        ask that ends: the answer, NULL when there was none */
    char *name;      /* tool: name; session: model; ask: tool */
    char *title;     /* tool, ask: one line; session: tool_version */
    char *input;     /* tool, ask: JSON text */
    char *output;    /* tool: whole output so far (replaces) */
    char *parent;    /* call_id of the parent tool for a subagent's events, or NULL */
    char *choices;   /* ask: the labels in their order, LF between them; NULL: any text */
    char *role;      /* who of several agents in one session this is about, or NULL */
    enum agent_text_mode mode;
    bool final;
    enum agent_tool_state state;
    int exit_code;   /* tool, exit, turn_end of a shell command; -1 unknown */
    int signal;      /* exit: 0 = none */
    enum agent_level level;
    int retry_attempt, retry_max;
    double retry_delay_ms;
    /* usage: tokens; input excludes cache_read. Scope CALL and TURN: deltas ready to be
     * added; SESSION_TOTAL: see above. name: the model, where the source says it. */
    int64_t in_tokens, cache_read, cache_write, out_tokens;
    double cost_usd; /* NaN unknown */
    enum agent_usage_scope scope;
    enum agent_outcome outcome;
    enum agent_error_class error_class;
    int http_status;
};

#endif
