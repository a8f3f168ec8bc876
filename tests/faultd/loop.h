/* One thread's event loop: descriptors (epoll), timers (a heap), work for the end of a
 * turn, and memory that may be freed only when no event of this turn can name it. */
#ifndef CCT_TESTS_FAULTD_LOOP_H
#define CCT_TESTS_FAULTD_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The structure that holds `member` at `p`. */
#define OWNER_OF(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

struct watch {
    int fd;
    uint32_t events;
    bool added;
    void (*ready)(struct watch *w, uint32_t events);
};
struct timer {
    int64_t due;
    size_t at; /* place in the heap, 0 = not set */
    void (*fire)(struct timer *t);
};
struct later {
    struct later *next;
    bool queued;
    void (*run)(struct later *l);
};

int64_t loop_now(void); /* monotonic ms, as of the beginning of this turn */
void loop_watch(struct watch *w, uint32_t events); /* EPOLLIN ...; 0 keeps only errors */
void loop_unwatch(struct watch *w);                /* the descriptor stays open */
/* w->ready is called for connections to this port of 127.0.0.1 (AF_INET) or ::1 (AF_INET6);
 * 0: any port. The port; dies when it cannot be had. */
int loop_listen(struct watch *w, int family, int port);
void loop_timer(struct timer *t, int64_t in_ms);   /* set or set anew */
void loop_timer_stop(struct timer *t);
void loop_later(struct later *l); /* once, before the loop sleeps again */
void loop_later_stop(struct later *l);
void loop_bury(void *p); /* free() at the end of the turn */
void loop_run(void);     /* until loop_stop() */
void loop_stop(void);

#endif
