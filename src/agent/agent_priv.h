/* What the decoder's core offers to adapters beyond the public header. */
#ifndef CCT_AGENT_PRIV_H
#define CCT_AGENT_PRIV_H

#include <cct/agent.h>
#include <cct/util/arr.h>
#include <cct/util/json.h>

extern const struct agent_adapter agent_claude, agent_codex, agent_opencode,
    agent_opencode_serve, agent_pi,
    agent_pi_json, agent_gemini, agent_qwen, agent_shell, agent_pair;

/* --- agent.c --------------------------------------------------------------------- */

bool agent_dec_cut(
    const struct agent_dec *d); /* the current line has no LF: the stream ended in it */
/* Time stamp of the events that follow in this line. */
void agent_dec_set_time(struct agent_dec *d, int64_t ms);
/* Adapters that split lines themselves say where the current one begins. */
void agent_dec_place(struct agent_dec *d, uint64_t offset);
/* ... and how far they have read of what they were given (agent_dec_offset()). */
void agent_dec_read_to(struct agent_dec *d, uint64_t offset);
/* The same in the middle of a line: what came before is an event already, and what is said to the
 * agent now stands behind it. The number of the line stays. */
void agent_dec_place_within(struct agent_dec *d, uint64_t offset);
/* Whole lines of plain text, at the begin of a line: handed on as one when there are many
 * of them and somebody takes them so. */
bool agent_dec_takes_lines(const struct agent_dec *d);
bool agent_dec_emit_lines(struct agent_dec *d, const char *s, size_t len, size_t n);
/* Use up one index without an event: what depends on earlier lines must not
 * move the indexes of what follows, a resumed decoder has not seen them. */
void agent_dec_skip(struct agent_dec *d);
/* A line over the limit was left out, this is how it began: the adapter's own word about it,
 * as its `dropped` says. */
bool agent_dec_dropped(struct agent_dec *d, const char *head, size_t len);
/* The events from here on are those of the process' end. */
void agent_dec_place_exit(struct agent_dec *d);
/* A turn_end when a turn is open, then exit. */
void agent_end_default(struct agent_dec *d, int code, int sig, const char *stderr_tail);
/* The same, with the agent's own last word about what went wrong; it is believed before
 * stderr. NULL: none. */
void agent_end_error(struct agent_dec *d, int code, int sig, const char *stderr_tail,
                     const char *error, int http_status);

/* --- agent_line.c: lines of JSON ------------------------------------------------- */

/* A line that is no JSON: shown as it is, but half an object at the end is only said to be
 * one. */
void agent_line_plain(struct agent_dec *d, const char *s, size_t len);
/* The object on a line, json_free(). NULL: the line was empty, or it was no JSON and went
 * out as plain text (half an object at the end of the stream is only said to be one). */
struct cJSON *agent_line_json(struct agent_dec *d, const char *s, size_t len);
/* A character that a provider's stream was cut in the middle of: the first half of its
 * surrogate pair ends one piece, the second begins the next. */
struct agent_half {
    char unit[7]; /* the escape that waits; "" = none */
    struct buf line;
};
/* The line to parse, s or borrowed from h: in the string behind `key` (with its quotes and
 * colon: "\"text\":\"") a half at the end is taken off, the one that waited put before its
 * other half. One that no other follows is given up. */
const char *agent_half_join(struct agent_half *h, const char *key, const char *s, size_t *len);
void agent_half_release(struct agent_half *h);
/* TURN_BEGIN unless a turn is open; true when one began. */
bool agent_line_begin_turn(struct agent_dec *d);
/* before + `text` as a JSON string + after + LF, all of it or nothing. */
int agent_line_message(const char *before, const char *text, size_t len, const char *after,
                       struct buf *out, struct err *e);
/* For tools whose input is the message itself. */
int agent_line_stdin(const char *text, size_t len, struct buf *out, struct err *e);
/* A count from outside: at least 0, and 0 when it is none. */
int64_t agent_line_count(const struct cJSON *j, const char *name);
int agent_line_int(const struct cJSON *j, const char *name);
/* A count without `part` of it: what came from a cache is told inside the input. */
int64_t agent_line_without(const struct cJSON *j, const char *name, int64_t part);
/* The line's own time stamp, where it has one, holds for its events. */
void agent_line_stamp(struct agent_dec *d, const struct cJSON *j);
/* The question that is answered, as it came; json_free(), NULL when it is none. */
struct cJSON *agent_line_asked(const struct agent_answer *a);
/* One label more of a question's choices: its first line, cut to a title's length. */
void agent_line_label(struct buf *labels, const char *label);
/* A notice of the agent or about it, in words alone. */
void agent_line_notice(struct agent_dec *d, enum agent_level level, const char *text);

/* Ids met in the turn at hand. */
struct agent_ids {
    ARR(char *) v;
};
/* True when it is new there. NULL is always new. */
bool agent_ids_add(struct agent_ids *ids, const char *id);
bool agent_ids_has(const struct agent_ids *ids, const char *id);
/* True when it was there. */
bool agent_ids_remove(struct agent_ids *ids, const char *id);
void agent_ids_clear(struct agent_ids *ids);

/* --- agent_asks.c: questions that are open --------------------------------------- */

struct agent_asks {
    struct map *ids, *calls;
    bool full; /* which was said */
};
/* False: it has no id, is open already, or is one too many (which is said once). call: of
 * the tool that it is about, or NULL. */
bool agent_asks_open(struct agent_asks *a, struct agent_dec *d, const char *id, const char *call);
/* It ends, by the answer `how` or (NULL) without one; false when it was not open. */
bool agent_asks_close(struct agent_asks *a, struct agent_dec *d, const char *id, const char *how);
bool agent_asks_call_ended(struct agent_asks *a, struct agent_dec *d, const char *call);
/* Nobody waits for an answer to them any more: each ends, the oldest first. */
void agent_asks_end(struct agent_asks *a, struct agent_dec *d);
void agent_asks_clear(struct agent_asks *a); /* all are forgotten, nothing is told */

/* --- agent_calls.c: tools that were called --------------------------------------- */

struct agent_call {
    char *id, *name, *parent;
    enum agent_tool_state state;
    size_t shown, skipped; /* bytes of output let out, and held back since */
    bool titled;
};
struct agent_calls {
    ARR(struct agent_call) v;
};
void agent_calls_release(struct agent_calls *c);
/* The record of a call; a new one, running, when it is not known. */
struct agent_call *agent_calls_at(struct agent_calls *c, const char *id);
/* NULL: as it was. */
void agent_call_set(struct agent_call *t, const char *name, const char *parent);
/* Let ev out as an event about t. */
void agent_call_emit(struct agent_dec *d, const struct agent_call *t, struct agent_event *ev);
/* A call began: its record is made and told, with its input. A NULL id is none. */
void agent_calls_begin(struct agent_calls *c, struct agent_dec *d, const char *id,
                       const char *name, const char *parent, const struct cJSON *input);
/* Is a running call's output, which is said whole each time, worth an event (or its title,
 * for the first time)? Letting all out would be the square of it: a big one waits until it
 * has grown by a quarter or, where it does not grow (a window that moves), until eight times
 * its size went by. */
bool agent_call_news(struct agent_call *t, const char *output, const char *title);
/* What still runs will not be heard of again. */
void agent_calls_close(struct agent_calls *c, struct agent_dec *d);
/* One line that says what a tool does; new string or NULL. */
char *agent_calls_title(const struct cJSON *input, const char *fallback);
/* Its first line, cut to a title's length; new string. */
char *agent_calls_line(const char *s);
/* Text of a result: a string, or blocks of which the text is kept; new string. */
char *agent_calls_text(const struct cJSON *content);

/* --- agent_words.c: what errors say ---------------------------------------------- */

/* The words of an error for people, as a new string: JSON inside is opened, keys that it
 * quotes are masked. *status: the HTTP status it names, when it is 0 before. */
char *agent_words(const char *text, int *status);
/* Replace what looks like a provider key by its last four characters, in place. */
void agent_words_mask(char *text);

#endif
