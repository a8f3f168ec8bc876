/* Reading a session's log: where it is, how far it was read, what ended in it. */
#ifndef CCT_JOBS_SESSION_FOLLOW_H
#define CCT_JOBS_SESSION_FOLLOW_H

#include "session_priv.h"

/* --- session_follow.c ------------------------------------------------------------ */
void session_follow_stop(struct session *s, enum follow_state st);
void session_follow_ended(struct session *s); /* FO_ENDED, and a look now and then */
/* Look again now: the runner's stream ended, a restart happened. */
void session_follow_again(struct session *s);
/* Bytes at the decoder's place, and those that waited for the end of a run. */
void session_follow_feed(struct session *s, const char *data, size_t len);
void session_follow_held(struct session *s);
void session_follow_drained(struct session *s); /* the store has taken some */
/* The store does not go with us: begin at what it has. */
void session_follow_reset(struct session *s);

void session_follow_read(struct session *s); /* the backlog, then the live end */
void session_follow_lost(struct session *s, const struct err *e);
void session_follow_wait(struct session *s, int64_t ms); /* then look again */

/* --- session_look.c -------------------------------------------------------------- */
void session_look(struct session *s);
/* Ends of runs that lie at the decoder's place are decoded; where the next one lies. */
void session_look_ends(struct session *s);
uint64_t session_look_next_end(const struct session *s);
void session_look_finish(struct session *s); /* the CLI is gone and all was read */

/* --- session_quiet.c ------------------------------------------------------------- */
void session_quiet_heard(struct session *s); /* output came, or a turn begins */
void session_quiet_close(struct session *s);

/* --- session_runs.c -------------------------------------------------------------- */
/* For tools that run once per message: where runs begin and end, as it happens. */
void session_runs_follow(struct session *s);
void session_runs_close(struct session *s);
/* Of the file of runs, as it grows; and what of it had to wait. */
void session_runs_feed(struct session *s, const char *data, size_t len);
void session_runs_go(struct session *s);
/* The run that ended with a status (fo.runs_end): its stderr, NULL: it cannot be had. */
void session_runs_ended(struct session *s, const char *err, size_t len);

/* --- session_sum.c --------------------------------------------------------------- */
void session_sum_add(struct session *s, const char *data, size_t len); /* before they are fed */
void session_sum_range(struct session *s, char from[32], char len[32]);
/* The sandbox's sum of that range; false: it is not what we have. */
bool session_sum_agrees(struct session *s, const char *text);
void session_sum_close(struct session *s);

/* --- session_life.c -------------------------------------------------------------- */
/* Hold the stream of the folder's runner: it ends with the keeper, and its pid takes the
 * wake lines. One is started when there is none; it never starts a CLI. */
void session_life(struct session *s);
void session_life_close(struct session *s);
/* Start the runner that starts the CLI; env ends with k NULL. */
void session_life_start(struct session *s, const struct kv *env);
/* Tell the runner to look into the inbox. */
void session_life_wake(struct session *s);

/* --- session_open.c -------------------------------------------------------------- */
/* Open the run of an epoch, bring the decoder to where the store is; then `done`. */
void session_open(struct session *s, int64_t epoch, void (*done)(struct session *s));

#endif
