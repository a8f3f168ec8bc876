/* A recording as a file: its events one after the other, any number of times from its begin, with
 * little of it in memory. Private to app; one thread, which waits for the file. */
#ifndef APP_RECORDING_H
#define APP_RECORDING_H

#include <cct/model/agent_event.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>

struct agent_adapter;
struct recording;
/* a: whose stream it is; NULL: lines of events. What the file grows by from now on is not read. */
struct recording *recording_new(int take_fd, const struct agent_adapter *a);
void recording_free(struct recording *r);
/* From the begin once more. */
void recording_rewind(struct recording *r);
/* Read a piece, events may come of it. False: there was none left, or *e: it cannot be read on,
 * or (ERR_INVALID) it is none, as none of its many first lines is an event. It ends there from
 * then on. */
bool recording_read(struct recording *r, struct err *e);
/* The oldest event that was read and not taken: the taker's from now on. False: there is none. */
bool recording_take(struct recording *r, struct agent_event *dst);
/* Of the texts that one holds. */
size_t recording_event_bytes(const struct agent_event *ev);
int recording_percent(const struct recording *r);  /* of it, that was read since the begin */
/* Lines that are no events, of what was read since the begin: they are left out. */
struct recording_left {
    size_t lines, first; /* how many; the number of the first one, from 1 */
    bool cut;            /* and the last line, which has no end */
};
struct recording_left recording_left(const struct recording *r);

#endif
