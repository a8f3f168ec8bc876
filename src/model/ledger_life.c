/* Runs of a sandbox from what its service tells of its life. */
#include <cct/model/ledger.h>

#include <stdlib.h>

#define SAME_MS 10000 /* what tells of a begin differs by no more than that */

bool ledger_same_run(int64_t a, int64_t b)
{
    return (a > b ? a - b : b - a) <= SAME_MS;
}

static int by_time(const void *a, const void *b)
{
    const struct life *x = a, *y = b;

    if (x->at != y->at)
        return x->at > y->at ? 1 : -1;
    return (int)y->kind - (int)x->kind; /* an end before the begin of the next */
}

static enum span_how how_of(const struct life *l)
{
    return l->kind == LIFE_PAUSED ? SPAN_PAUSED : SPAN_GONE;
}

size_t ledger_life(struct life *v, size_t n, struct span *out)
{
    int64_t open = 0;
    size_t k = 0;

    if (n)
        qsort(v, n, sizeof(*v), by_time);
    for (size_t i = 0; i < n; i++) {
        const struct life *l = &v[i];
        int64_t start = l->run_started > 0 ? l->run_started : open;

        if (l->kind == LIFE_BEGAN) {
            if (!open || !ledger_same_run(open, l->at))
                open = l->at;
            continue;
        }
        open = 0;
        if (!start || l->at < start)
            continue;
        if (k && (ledger_same_run(start, out[k - 1].start) || l->at <= out[k - 1].end))
            continue; /* told twice, or ended while it was paused: no other run */
        if (k && start < out[k - 1].end)
            start = out[k - 1].end;
        out[k++] = (struct span){start, l->at, how_of(l), false};
    }
    return k;
}
