/* What was read of a session's log, on its way to the store, to the row and to the screen. */
#ifndef CCT_JOBS_SESSION_OUT_H
#define CCT_JOBS_SESSION_OUT_H

#include "session_priv.h"

/* --- session_order.c ------------------------------------------------------------- */

/* Messages, and ends of runs that printed nothing, stand at the first byte with a large index
 * while there is nothing else: what comes later at that byte stands behind them. */
bool session_before_output(uint64_t offset, uint32_t index);
bool session_key_reaches(const struct session_key *k, uint64_t offset, uint32_t index);
bool session_key_newer(struct session_key *last, const struct agent_event *ev);

/* --- session_out.c --------------------------------------------------------------- */
void session_out_init(struct session *s);
void session_out_release(struct session *s);
void session_out_close(struct session *s); /* forget the run; open it again later */
void session_out_feed(struct session *s, const char *data, size_t len);
void session_out_exit(struct session *s, const struct session_run_end *e);
/* What the agent says of its own session; other events are left alone. */
void session_out_session(struct session *s, const struct agent_event *ev);
/* The run is known and the decoder stands at its place: what waited for that. */
void session_out_opened(struct session *s);
/* An event of our own between two bytes of the log, stored with it. */
void session_out_echo(struct session *s, uint64_t at, const char *text, const char *key);
/* The index is the one of a message, and not of the end of a run. */
bool session_out_is_message(uint32_t index);
/* An event of our own with its place given. */
void session_out_note(struct session *s, const struct agent_event *ev);
/* Show the line that has not ended yet; its end will take its place. */
void session_out_partial(struct session *s);
void session_out_row(struct session *s);                  /* row soon */
void session_out_row_now(struct session *s); /* what is due, at once */
/* Each event once, in order: what it says of usage goes into the sums. */
void session_out_usage(struct session *s, const struct agent_event *from);
void session_out_unsum(struct session *s); /* the run is read once more: count anew */
void session_out_event(void *ctx, const struct agent_event *ev); /* the decoder's sink */
void session_out_follow(struct session *s, const struct agent_event *ev); /* row, state */

/* --- session_keep.c -------------------------------------------------------------- */
void session_keep_flush(struct session *s); /* what was decoded goes to the store now */
void session_keep_soon(struct session *s);
void session_keep_drop(struct session *s); /* what was not handed over yet */
bool session_keep_lags(struct session *s);

/* --- session_items.c ------------------------------------------------------------- */
void session_items_put(struct session *s, struct item *it); /* local item; moved from */
/* key: of the message that it echoes, or NULL */
void session_items_event(struct session *s, const struct agent_event *ev, const char *key);
void session_items_soon(struct session *s); /* there are lines for the screen */
void session_items_drop(struct session *s); /* drop the batch for the screen */
void session_items_loaded(struct session *s); /* the load is out: now what came meanwhile */

/* --- session_lines.c ------------------------------------------------------------- */
bool session_lines(void *ctx, const struct agent_lines *l); /* the decoder's other sink */
void session_lines_settle(struct session *s, struct ev_items *into); /* those for the screen */
void session_lines_drop(struct session *s);

/* --- session_price.c ------------------------------------------------------------- */
void session_price(struct session *s, struct agent_event *ev); /* each event before it is kept */
/* What it adds to the ledger; of a USAGE or of the end of a process. */
struct st_use *session_use(struct session *s, const struct agent_event *ev);

#endif
