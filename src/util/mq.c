/* Message queue. The poster that finds the queue empty writes the eventfd, and
 * only after it let go of the lock; the reader clears the eventfd before it
 * takes the list. A post between the two leaves a wake too many, never one too
 * few. */
#include <cct/util/clock.h>
#include <cct/util/mq.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct lane {
    struct msg *first, **end;
};

struct mq {
    pthread_mutex_t lock;
    struct lane lanes[2];
    size_t bytes, max_bytes;
    bool closed;
    int fd;
};

void msg_init(struct msg *m, uint32_t type, size_t bytes, void (*free_fn)(struct msg *))
{
    *m = (struct msg){.type = type,
                      .bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
                      .free_fn = free_fn};
}

void msg_free(struct msg *m)
{
    if (!m)
        return;
    if (m->free_fn)
        m->free_fn(m);
    else
        free(m);
}

static void lane_reset(struct lane *l)
{
    l->first = NULL;
    l->end = &l->first;
}

struct mq *mq_new(size_t max_bytes)
{
    struct mq *q = xcalloc(1, sizeof(*q));

    pthread_mutex_init(&q->lock, NULL);
    lane_reset(&q->lanes[MQ_URGENT]);
    lane_reset(&q->lanes[MQ_NORMAL]);
    q->max_bytes = max_bytes;
    q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (q->fd < 0)
        die("cannot make a queue: %s", strerror(errno));
    return q;
}

void mq_free(struct mq *q)
{
    if (!q)
        return;
    for (struct msg *m = mq_take(q), *next; m; m = next) {
        next = m->next;
        msg_free(m);
    }
    close(q->fd);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static bool waiting(const struct mq *q)
{
    return q->lanes[MQ_URGENT].first || q->lanes[MQ_NORMAL].first;
}

/* EAGAIN means that 2^64-2 wakes are pending: the reader is awake enough. */
static void wake(struct mq *q)
{
    while (eventfd_write(q->fd, 1) != 0 && errno == EINTR)
        ;
}

void mq_wake(struct mq *q)
{
    wake(q);
}

static void clear_wake(struct mq *q)
{
    eventfd_t n;
    while (eventfd_read(q->fd, &n) != 0 && errno == EINTR)
        ;
}

bool mq_post(struct mq *q, enum mq_lane lane, struct msg *take)
{
    bool was_empty;

    take->next = NULL;
    pthread_mutex_lock(&q->lock);
    if (q->closed) {
        pthread_mutex_unlock(&q->lock);
        msg_free(take);
        return false;
    }
    was_empty = !waiting(q);
    *q->lanes[lane].end = take;
    q->lanes[lane].end = &take->next;
    q->bytes += take->bytes;
    pthread_mutex_unlock(&q->lock);
    if (was_empty)
        wake(q);
    return true;
}

bool mq_full(struct mq *q)
{
    pthread_mutex_lock(&q->lock);
    bool full = q->bytes > q->max_bytes;
    pthread_mutex_unlock(&q->lock);
    return full;
}

int mq_fd(const struct mq *q)
{
    return q->fd;
}

struct msg *mq_take(struct mq *q)
{
    clear_wake(q);
    pthread_mutex_lock(&q->lock);
    struct lane *urgent = &q->lanes[MQ_URGENT], *normal = &q->lanes[MQ_NORMAL];
    *urgent->end = normal->first;
    struct msg *first = urgent->first;
    lane_reset(urgent);
    lane_reset(normal);
    q->bytes = 0;
    pthread_mutex_unlock(&q->lock);
    return first;
}

bool mq_wait(struct mq *q, int ms)
{
    int64_t until = ms < 0 ? INT64_MAX : clock_mono_ms() + ms;

    for (;;) {
        pthread_mutex_lock(&q->lock);
        bool some = waiting(q), closed = q->closed;
        pthread_mutex_unlock(&q->lock);
        if (some || closed)
            return some;
        int64_t left = ms < 0 ? -1 : until - clock_mono_ms();
        if (ms >= 0 && left <= 0)
            return false;
        struct pollfd p = {.fd = q->fd, .events = POLLIN};
        if (poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left) < 0 && errno != EINTR)
            die("cannot wait on a queue: %s", strerror(errno));
        /* A wake whose message was taken before must not spin here. A message
         * that arrives just now is seen by the look at the lanes above. */
        if (p.revents & POLLIN)
            clear_wake(q);
    }
}

void mq_close(struct mq *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_mutex_unlock(&q->lock);
    wake(q);
}

bool mq_closed(struct mq *q)
{
    pthread_mutex_lock(&q->lock);
    bool closed = q->closed;
    pthread_mutex_unlock(&q->lock);
    return closed;
}
