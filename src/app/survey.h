/* When what comes in a recording, by the times that some of its events say: all of them are seen
 * once, then the time of each is known in their order. Little of it stays in memory, however long
 * the recording is. Private to app; one thread at a time. */
#ifndef APP_SURVEY_H
#define APP_SURVEY_H

#include <cct/model/agent_event.h>
#include <cct/util/arr.h>
#include <stdint.h>

struct survey_mark {
    uint64_t index; /* of an event whose time the agent said */
    int64_t ms;     /* its time; since the begin once all was seen */
};
struct survey {
    ARR(struct survey_mark) marks; /* a part of the times that were said: memory has an end */
    struct survey_mark said;       /* the last one */
    uint64_t step;                 /* so many events are from one mark to the next, at least */
    int64_t rest;                  /* ms that pass after it */
    uint64_t count;                /* events */
    int64_t length;                /* ms, once all was seen */
};
void survey_init(struct survey *s);
void survey_release(struct survey *s);
void survey_see(struct survey *s, const struct agent_event *ev);
/* All was seen: each time is one since the begin from now on. */
void survey_end(struct survey *s);

/* Where somebody is who goes through it once more; zeroed: at the begin. */
struct survey_pos {
    uint64_t next; /* event */
    size_t mark;   /* where it lies among the marks */
    int64_t ms;    /* its time, once that was asked for */
};
/* Of the next event, asked once for each. Untimed ones lie evenly over the time between those
 * that were timed. */
int64_t survey_time(const struct survey *s, struct survey_pos *p, const struct agent_event *ev);

#endif
