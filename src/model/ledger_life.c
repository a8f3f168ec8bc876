/* Runs of a sandbox from what its service tells of its life. */
#include <cct/model/ledger.h>

#define SAME_MS 10000 /* what tells of a begin differs by no more than that */

bool ledger_same_run(int64_t a, int64_t b)
{
    return (a > b ? a - b : b - a) <= SAME_MS;
}

/* Few, and nearly in order. */
static void sort(struct life *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct life one = v[i];
        size_t k = i;

        for (; k > 0 && v[k - 1].at > one.at; k--)
            v[k] = v[k - 1];
        v[k] = one;
    }
}

static enum span_how how_of(const struct life *l)
{
    return l->kind == LIFE_PAUSED ? SPAN_PAUSED : SPAN_GONE;
}

size_t ledger_life(struct life *v, size_t n, struct span *out)
{
    int64_t open = 0;
    size_t k = 0;

    sort(v, n);
    for (size_t i = 0; i < n; i++) {
        const struct life *l = &v[i];
        int64_t start = l->run_started > 0 ? l->run_started : open;

        if (l->kind == LIFE_BEGAN) {
            if (!open || !ledger_same_run(open, l->at))
                open = l->at;
            continue;
        }
        open = 0;
        if (!start || l->at <= start)
            continue;
        if (k && start < out[k - 1].end) {
            if (ledger_same_run(start, out[k - 1].start) || l->at <= out[k - 1].end)
                continue; /* told twice, or ended while it was paused: no other run */
            start = out[k - 1].end;
        }
        out[k++] = (struct span){start, l->at, how_of(l), false};
    }
    return k;
}
