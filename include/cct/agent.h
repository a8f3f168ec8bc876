/* Agents: what the CLIs print becomes common events; what the user says becomes
 * the CLI's input. Decoders are pure functions of bytes: no clock, no socket,
 * no global; any slicing of the input gives the same events.
 * One decoder belongs to one thread. */
#ifndef CCT_AGENT_H
#define CCT_AGENT_H

#include <cct/model/agent_event.h>
#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An event with nothing known but its kind. */
#define AGENT_EVENT(k)                                                                         \
    ((struct agent_event){.kind = (k), .exit_code = -1, .cost_usd = (double)NAN})

void agent_event_release(struct agent_event *ev);
/* Deep copy (strings duplicated). */
void agent_event_copy(struct agent_event *dst, const struct agent_event *src);
/* One JSON object, with short field names, no newline; the
 * form `cc-tui decode` prints and the store keeps. */
void agent_event_to_json(const struct agent_event *ev, struct buf *out);
/* The reverse; 0 or ERR_INVALID. */
int agent_event_from_json(struct agent_event *ev, const char *json, size_t len, struct err *e);
const char *agent_kind_name(enum agent_kind k);

/* --- adapters ------------------------------------------------------------- */

/* How the keeper in the sandbox drives the CLI: one process for all messages, a line of a
 * protocol each; a process per message with the message as its stdin, which then ends; as
 * the first, but the CLI answers each line with a response of its own. */
enum agent_mode { AGENT_PERSISTENT, AGENT_ONE_RUN, AGENT_RPC };

/* The user's answer to a question (AGENT_ASK); all borrowed. */
struct agent_answer {
    const char *ask_id;
    const char *tool;  /* the question's name, or NULL */
    const char *input; /* as the question had it, or NULL */
    int choice;        /* place in its choices from 0 on; -1: text alone */
    const char *text;  /* what was typed; NULL or "" = nothing */
};

struct agent_dec; /* a decoder with its state */
/* Events are borrowed for the call. */
typedef void (*agent_event_fn)(void *ctx, const struct agent_event *ev);

struct agent_adapter {
    const char *name;  /* "claude", "shell"; `demo` shares claude's decoder */
    enum agent_mode mode;
    bool echoes;       /* the stream itself shows that a message was taken in;
                          else delivery is read from the runner's `taken` file */
    bool pty;          /* runs on a pty (raw text tools) */
    const char *hello; /* line that each new process gets first; NULL: none */
    void *(*state_new)(void);
    void (*state_free)(void *state);
    /* One whole line (without its LF); with `pty` any piece of the stream. */
    void (*line)(void *state, struct agent_dec *d, const char *s, size_t len);
    /* A line over the limit was left out, this is how it began. True: it would not have been
     * shown, or was understood by that; else a notice says it. May be NULL. */
    bool (*dropped)(void *state, struct agent_dec *d, const char *head, size_t len);
    /* What a terminal would show of a line that has not ended (borrowed; NULL: nothing);
     * may be NULL. Where it stands is where its end will stand. */
    const char *(*rest)(void *state);
    /* The CLI ended: emit what is still open (tools -> unknown), a turn_end when
     * none came since the last turn_begin, then exit. May be NULL (default). */
    void (*end)(void *state, struct agent_dec *d, int code, int sig, const char *stderr_tail);
    /* Append the bytes for the inbox that say `text` to the CLI: for line
     * protocols exactly one line with one LF. */
    int (*encode_message)(const char *text, size_t len, struct buf *out, struct err *e);
    /* Append the bytes that interrupt the running turn; NULL: signal the group. */
    int (*encode_interrupt)(const char *request_id, struct buf *out);
    /* Append the line that answers a question. NULL: this CLI asks nothing. ERR_INVALID
     * when that is no answer to such a question: words alone are one, or are not, whatever
     * they are. When the CLI shows that it took the answer in, the ASK that ends the
     * question has as its text the label of the choice, or the words. */
    int (*encode_answer)(const struct agent_answer *a, struct buf *out, struct err *e);
    /* A message while a turn runs: NULL when the CLI takes the ordinary one then. */
    int (*encode_steer)(const char *text, size_t len, struct buf *out, struct err *e);
};

/* NULL when unknown. The table is compiled in; which tool uses which adapter is
 * the tool registry's business (cct/config/tools.h). */
const struct agent_adapter *agent_adapter_find(const char *name);
const struct agent_adapter *agent_adapter_at(size_t i); /* NULL past the end */

/* `offset`: byte offset in the raw log of the first byte fed (0, or the start of
 * the turn a resumed decoder begins at; must be a line start). */
struct agent_dec *agent_dec_new(const struct agent_adapter *a, uint64_t offset,
                                agent_event_fn fn, void *ctx);
void agent_dec_free(struct agent_dec *d);
/* Whole lines of plain text that came together from a tool without a protocol: `len` bytes
 * as they came, n LFs among them, the last byte is one. Each stands for an AGENT_RAW event,
 * its offset that of the line, its index 0. Borrowed for the call. */
struct agent_lines {
    uint64_t offset, raw_line; /* of the first */
    const char *text;
    size_t len, n;
};
/* Many such lines go to fn instead of an event each; false: it wants the events. */
typedef bool (*agent_lines_fn)(void *ctx, const struct agent_lines *l);
void agent_dec_lines(struct agent_dec *d, agent_lines_fn fn);
/* The text of one of them as it is shown: without its end, NULs left out. Appended. */
void agent_line_text(const char *line, size_t len, struct buf *out);
/* Feed bytes; events come out synchronously. Lines over LIM_LINE_BYTES are
 * dropped up to the next LF and leave a warn notice. */
void agent_dec_feed(struct agent_dec *d, const char *data, size_t len);
/* The line at hand as far as it goes, as the event that its end will be (AGENT_RAW, same
 * place, not final; text borrowed). False when there is nothing to show. */
bool agent_dec_partial(struct agent_dec *d, struct agent_event *ev);
/* The process is gone (code -1 and sig 0: unknown); feeds a last line without LF. */
void agent_dec_exit(struct agent_dec *d, int code, int sig, const char *stderr_tail);
/* A turn is open: it began and has not ended. */
bool agent_dec_busy(const struct agent_dec *d);
/* Offset of the begin of the line in which the current turn began (where a later
 * decoder may resume), and of the next unread byte. */
uint64_t agent_dec_turn_offset(const struct agent_dec *d);
uint64_t agent_dec_offset(const struct agent_dec *d);
/* Offset of the line at hand: of the next unread byte when none has begun. */
uint64_t agent_dec_line(const struct agent_dec *d);
/* From here on the indexes of events at a process's end: beyond what one line can hold. They
 * stand at the last byte it printed, so behind its last line and before a later run's first. */
#define AGENT_EXIT_INDEX (1u << 24)
/* For adapters: fill kind and fields, place is added here. Strings borrowed. */
void agent_dec_emit(struct agent_dec *d, struct agent_event *ev);

/* Class of an error from its HTTP status (0 = unknown) and text (may be NULL). */
enum agent_error_class agent_classify(int http_status, const char *text);

#endif
