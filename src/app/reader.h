/* A recording read on a thread of its own, for main waits for no disk: once as a whole for its
 * times, then event after event, any number of times from its begin. What was read ahead has a
 * bound; the thread sleeps until some of it is taken. Private to app; main thread. */
#ifndef APP_READER_H
#define APP_READER_H

#include "recording.h"
#include "survey.h"

struct reader;
/* path: opened by the thread; with a NULL take_fd is read. a: whose stream it is; NULL: lines of
 * events. */
struct reader *reader_new(const char *path, int take_fd, const struct agent_adapter *a);
/* One whose file does not answer is left behind with what it holds. */
void reader_free(struct reader *r);
/* Readable when there may be news. */
int reader_fd(const struct reader *r);

/* What came of the look through all of it. */
struct reader_found {
    struct survey survey; /* ended; the taker's */
    struct recording_left left;
    bool unopened;
    struct err err;       /* why it cannot be opened, or not be read on */
};
/* True once, when it is there. */
bool reader_take_found(struct reader *r, struct reader_found *dst);
int reader_percent(const struct reader *r); /* of it, that was looked through as far as is known */

/* From the begin (once more). */
void reader_rewind(struct reader *r);
/* The next event, borrowed until it is dropped; NULL: none has come yet, or it is over. */
const struct agent_event *reader_event(struct reader *r);
void reader_drop(struct reader *r);
bool reader_is_over(const struct reader *r);
/* Why it ended before its end, once. */
bool reader_trouble(struct reader *r, struct err *e);

#endif
