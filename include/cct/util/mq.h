/* Message queue between threads: many posters, one reader, two lanes, bounded
 * in bytes. The lock is a leaf: nothing is called while it is held. The reader
 * is woken by an eventfd it can put in poll/epoll, or by mq_wait(). */
#ifndef CCT_UTIL_MQ_H
#define CCT_UTIL_MQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mq_lane { MQ_URGENT, MQ_NORMAL };

/* First member of every message. The poster fills it (msg_init) and gives the
 * whole message away; the reader ends it with msg_free(). */
struct msg {
    struct msg *next;
    uint32_t type;                 /* the module's own enum */
    uint32_t bytes;                /* what it counts against the bound */
    uint64_t req_id;               /* request it belongs to, or 0 */
    void (*free_fn)(struct msg *); /* frees payload and message; NULL: free() */
};

void msg_init(struct msg *m, uint32_t type, size_t bytes, void (*free_fn)(struct msg *));
void msg_free(struct msg *m); /* NULL is fine */

struct mq;
struct mq *mq_new(size_t max_bytes);
void mq_free(struct mq *q); /* frees what was never read; posters are gone by then */
/* Post; never blocks. False only after mq_close() (the message is freed). The
 * byte bound is advisory: see mq_full(). Wakes only on empty -> non-empty. */
bool mq_post(struct mq *q, enum mq_lane lane, struct msg *take);
/* True while more than max_bytes wait: a producer of bulk data stops then and
 * goes on when the reader drained (it polls mq_full on its own turn). */
bool mq_full(struct mq *q);
/* eventfd, readable when something waits. Owned by the queue. */
int mq_fd(const struct mq *q);
/* Make the descriptor readable again: the reader left something it took undone. */
void mq_wake(struct mq *q);
/* Clear the wake, then take everything: urgent lane first, each in order.
 * Returns a list linked by `next`, or NULL. Reader only. */
struct msg *mq_take(struct mq *q);
/* Block until something waits or ms passed (-1 = for ever). False: time is over,
 * or the queue was closed and nothing is left. Reader only. */
bool mq_wait(struct mq *q, int ms);
/* No more posts; wakes the reader. */
void mq_close(struct mq *q);
bool mq_closed(struct mq *q);

#endif
