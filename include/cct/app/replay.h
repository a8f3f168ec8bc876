/* A recorded run, played again at its own pace or another: an agent's events with the times at
 * which they came. It is fed to an application that only shows (app_new_shown()) or handed out one
 * by one; nothing is started, asked or stored. A thread of its own reads the file a piece at a
 * time, once to know the times and then as it is played: memory does not grow with it, and nobody
 * waits for a file that does not answer. Main thread. */
#ifndef CCT_APP_REPLAY_H
#define CCT_APP_REPLAY_H

#include <cct/model/agent_event.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct app;
struct agent_adapter;
struct replay;
/* name: what is played, as it is shown; tool: whose stream it is, or NULL. The file holds an
 * agent's stream as it was recorded; with a NULL lines of events as agent_event_to_json() writes
 * them, of one run after the other. Lines that are no events are left out. */
struct replay *replay_new(const char *name, const char *tool, int take_fd,
                          const struct agent_adapter *a);
/* The same of a file that is still to be opened, which may take its time, too. */
struct replay *replay_open(const char *path, const char *tool, const struct agent_adapter *a);
void replay_free(struct replay *r);
/* Readable when there may be news of what was asked for: look, feed or hand out again then. -1:
 * nothing is waited for. */
int replay_fd(const struct replay *r);
/* How the look through the recording is: 1 = it goes on, 0 = it is ready: known is when each event
 * comes. Times that the agent did not say lie between those that it said; where it said none, a
 * short while passes from one to the next. Negative with *e: there is nothing in it that could be
 * played: ERR_NOTFOUND nothing at all, ERR_INVALID no events, ERR_IO nothing that can be read, or
 * why it cannot be opened. */
int replay_look(struct replay *r, struct err *e);
bool replay_is_ready(const struct replay *r);
int replay_looked(const struct replay *r); /* percent */
/* What the user has not been told of it yet: lines that were left out (ERR_INVALID), bytes that
 * could not be read (ERR_IO). Ask after each look that came to its end and each time that events
 * were handed out; false: nothing new. */
bool replay_trouble(struct replay *r, struct err *e);

const char *replay_name(const struct replay *r);
const char *replay_tool(const struct replay *r);
size_t replay_count(const struct replay *r);     /* events that were looked through */
int64_t replay_length(const struct replay *r);   /* ms */

/* A time of it as people read it: 1:05, 75:00. */
void replay_time_text(char *dst, size_t size, int64_t ms);

/* `now`: ms of a steady clock. It begins paused, at 0. */
enum { REPLAY_MAX = 0 }; /* as a speed: at once */
int64_t replay_at(const struct replay *r, int64_t now);  /* ms of the recording */
bool replay_is_over(const struct replay *r);             /* all events were handed out */
bool replay_is_paused(const struct replay *r);
void replay_pause(struct replay *r, int64_t now, bool on);
int replay_speed(const struct replay *r);                /* percent, or REPLAY_MAX */
void replay_set_speed(struct replay *r, int64_t now, int percent);
/* Faster or slower by a step: 25 % to 6400 %, then at once. */
void replay_change_speed(struct replay *r, int64_t now, bool faster);
bool replay_parse_speed(const char *text, int *percent); /* "4", "0.5", "4x", "max" */
/* To that time of the recording. */
void replay_seek(struct replay *r, int64_t now, int64_t to);
/* So far on or back, but at least to the next event, or the one before. */
void replay_skip(struct replay *r, int64_t now, int64_t by);
/* ms until something is due; -1: nothing is known that will be. */
int64_t replay_wait(const struct replay *r, int64_t now);
/* Hand out what is due and has been read, at most a good deal at once; at: ms of the recording. */
void replay_due(struct replay *r, int64_t now,
                void (*fn)(void *ctx, const struct agent_event *ev, int64_t at), void *ctx);
/* Feed the same to an application; after a step back from the begin. The row has the id
 * REPLAY_ROW. */
enum { REPLAY_ROW = 1 };
void replay_feed(struct replay *r, int64_t now, struct app *a);

#endif
