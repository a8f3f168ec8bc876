/* One-shot timers in a binary heap, and the pace of retries. */
#include "net_priv.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

static bool before(const struct timer *a, const struct timer *b)
{
    return a->due != b->due ? a->due < b->due : a->id < b->id;
}

static void place(struct net *n, size_t i, struct timer *t)
{
    n->heap.v[i] = t;
    t->at = i;
}

static void sift_up(struct net *n, size_t i)
{
    struct timer *t = n->heap.v[i];

    while (i > 0 && before(t, n->heap.v[(i - 1) / 2])) {
        place(n, i, n->heap.v[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place(n, i, t);
}

static void sift_down(struct net *n, size_t i)
{
    struct timer *t = n->heap.v[i];

    for (size_t kid = 2 * i + 1; kid < n->heap.n; kid = 2 * i + 1) {
        if (kid + 1 < n->heap.n && before(n->heap.v[kid + 1], n->heap.v[kid]))
            kid++;
        if (!before(n->heap.v[kid], t))
            break;
        place(n, i, n->heap.v[kid]);
        i = kid;
    }
    place(n, i, t);
}

static void unheap(struct net *n, struct timer *t)
{
    size_t i = t->at;
    struct timer *last = n->heap.v[--n->heap.n];

    if (last == t)
        return;
    place(n, i, last);
    sift_up(n, i);
    sift_down(n, last->at);
}

uint64_t net_timer(struct net *n, int64_t ms, void (*fn)(void *ctx), void *ctx)
{
    struct timer *t = xcalloc(1, sizeof(*t));

    THREAD_ASSERT(THREAD_NET);
    *t = (struct timer){clock_mono_ms() + (ms > 0 ? ms : 0), ++n->next_id, n->heap.n, fn, ctx};
    *ARR_PUSH(&n->heap) = t;
    sift_up(n, t->at);
    map_put_id(n->timers, t->id, t);
    return t->id;
}

void net_timer_cancel(struct net *n, uint64_t id)
{
    struct timer *t = id ? map_del_id(n->timers, id) : NULL;

    if (!t)
        return;
    unheap(n, t);
    free(t);
}

/* Timers made by a callback wait for the next turn, or a chain of zero-length
 * ones would starve the sockets. */
void timers_run(struct net *n)
{
    int64_t now = clock_mono_ms();
    uint64_t newest = n->next_id;

    while (n->heap.n && n->heap.v[0]->due <= now && n->heap.v[0]->id <= newest) {
        struct timer t = *n->heap.v[0];
        net_timer_cancel(n, t.id);
        t.fn(t.ctx);
        xfers_settle(n);
    }
}

int64_t timers_due(const struct net *n)
{
    return n->heap.n ? n->heap.v[0]->due : -1;
}

void timers_free(struct net *n)
{
    for (size_t i = 0; i < n->heap.n; i++)
        free(n->heap.v[i]);
    ARR_RELEASE(&n->heap);
    map_free(n->timers, NULL);
    n->timers = NULL;
}

int64_t net_backoff_ms(int attempt, int64_t base_ms, int64_t max_ms)
{
    int64_t ms = base_ms;
    uint32_t r;

    while (attempt-- > 0 && ms < max_ms)
        ms *= 2;
    if (ms > max_ms)
        ms = max_ms;
    rand_bytes(&r, sizeof(r));
    return ms * 3 / 4 + (ms / 2) * (int64_t)(r >> 8) / (1 << 24);
}
