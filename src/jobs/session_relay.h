/* Messages to a session's agent, and its answers to them. */
#ifndef CCT_JOBS_SESSION_RELAY_H
#define CCT_JOBS_SESSION_RELAY_H

#include "session_priv.h"

/* --- session_relay.c ------------------------------------------------------------- */
void session_relay_release(struct session *s);
/* Another one's, which never told the store so. */
void session_relay_was_sent(struct session *s, uint64_t id);
void session_relay_delivered(struct session *s, uint64_t id);
/* How the ids of a message in the sandbox begin. */
void session_relay_id(char *dst, size_t size, const char *key);
void session_relay_stop(struct session *s, bool gone, const char *why);
void session_relay_leave(struct session *s); /* we stop soon */
void session_relay_ended(struct session *s); /* the CLI is gone */
void session_relay_turn(struct session *s, const struct agent_event *ev);
/* From one state to the other, if it is in the first one. */
void session_relay_state(struct session *s, uint64_t id, enum msg_state from, enum msg_state to,
                         const char *error);
void session_relay_free_slot(struct session *s); /* none is in flight */
/* Of the one in flight: it never left, or may have arrived. */
void session_relay_failed(struct session *s, const char *why);
void session_relay_unconfirmed(struct session *s, const char *why);

/* --- session_publish.c ----------------------------------------------------------- */
void session_publish(struct session *s); /* the one in flight */
/* What became of the message that went to an adopted process's input. */
enum session_input { INPUT_TAKEN, INPUT_REFUSED, INPUT_UNKNOWN };
void session_relay_input(struct session *s, enum session_input how, const char *why);

/* --- session_taken.c ------------------------------------------------------------- */
void session_taken_check(void *ctx); /* a timer's, of the session: ask the sandbox */
int64_t session_taken_delay(const struct session *s); /* ms until that is due */
/* The one in flight was read by the agent's program, which has ended or not; from: where its
 * turn is, 0: not known. */
void session_relay_taken(struct session *s, bool ended, uint64_t from);

/* --- session_interrupt.c --------------------------------------------------------- */
void session_interrupt_done(struct session *s, const struct err *e); /* err NULL: it worked */
void session_hurry_go(struct session *s); /* the queue waits for the agent */

/* --- session_turn.c -------------------------------------------------------------- */
void session_turn_release(struct session *s);
/* Each live event, before it is shown; returns the key of the message it echoes (borrowed
 * until the next call) or NULL. */
const char *session_turn_event(struct session *s, const struct agent_event *ev);
/* Each event of bytes that were stored before. */
void session_turn_again(struct session *s, const struct agent_event *ev);
/* Echo in bytes that were stored before: the state of its message may lag behind. */
void session_turn_old_echo(struct session *s, const char *text, bool fresh);
/* A run began with this message as its input. */
void session_turn_run(struct session *s, const struct session_run_line *run);
/* The sandbox says that it was taken in, and its turn is not read yet: that one is its
 * answer, not the end of an earlier one that we read late. */
void session_turn_due(struct session *s, uint64_t message);

/* --- session_wait.c -------------------------------------------------------------- */
void session_wait_release(struct session *s);
void session_wait_stop(struct session *s); /* the way to the sandbox is given up */
void session_wait_fail(struct session *s, uint64_t message, const struct err *e);
void session_wait_fail_all(struct session *s, const struct err *e);
/* Of messages that were not handed over yet. */
void session_wait_fail_queued(struct session *s, const struct err *e);
void session_wait_over(struct session *s); /* the agent has ended */
/* No agent was ever started there, as far as the last look told: nobody answers. */
void session_wait_missing(struct session *s);
/* Its log got shorter, or is read anew: who waits for an answer is told so. */
void session_wait_lost(struct session *s);
/* The place of what is decoded now, as session_wait.c says. */
uint64_t session_wait_place(const struct session *s);
/* Its turn is the one at hand, or else the next. */
void session_wait_delivered(struct session *s, uint64_t message);
/* Its turn is the first that ends at that place or behind; true: that one has not ended. */
bool session_wait_placed(struct session *s, uint64_t message, uint64_t from);
/* A run began with the message of that id. */
void session_wait_run(struct session *s, const char *id, uint64_t run);
/* Taken in without an echo that we knew: its turn may be over. */
void session_wait_missed(struct session *s, uint64_t message);
void session_wait_turn_ended(struct session *s, int outcome, int exit_code, const char *text);
void session_wait_state(struct session *s, const struct message *m); /* it has that state now */
void session_wait_look(struct session *s); /* what state have the messages? */

#endif
