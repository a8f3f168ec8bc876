/* Time as it was asked for, and as the service gives it: a plan's limit cuts it without a
 * word, so what it grants is read from its own answers and a difference is told. */
#include "core_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>

enum { SLACK_MS = 10000 };

bool time_is_cut(int64_t asked_end, int64_t end_at)
{
    return end_at > 0 && asked_end - end_at > SLACK_MS;
}

void core_time_given(struct jobs *j, const struct sandbox *row, int64_t asked_end)
{
    int64_t now = jobs_now(j);
    char wanted[16], given[16];

    if (!time_is_cut(asked_end, row->end_at))
        return;
    clock_format_span(wanted, sizeof(wanted), asked_end - now + 500);
    clock_format_span(given, sizeof(given), row->end_at > now ? row->end_at - now + 500 : 0);
    jobs_say(j, 1, row->id, "%s: %s was asked for, the service gives %s; a plan has a longest time",
             row->name ? row->name : row->sandbox_id, wanted, given);
}

void core_time_asked(struct jobs *j, uint64_t row, int seconds)
{
    int64_t now = jobs_now(j);

    *ARR_PUSH(&j->priv->asked) = (struct asked){row, now, now + seconds * INT64_C(1000)};
}

/* The first list that has it tells. */
void core_time_listed(struct jobs *j)
{
    size_t keep = 0;

    for (size_t i = 0; i < j->priv->asked.n; i++) {
        struct asked a = j->priv->asked.v[i];
        const struct sandbox *row = jobs_row(j, a.row);

        if (!row || !core_row_live(row))
            continue;
        if (row->seen_at <= a.at)
            j->priv->asked.v[keep++] = a;
        else if (row->state != SB_PAUSED)
            core_time_given(j, row, a.end);
    }
    j->priv->asked.n = keep;
}

void core_times_release(struct jobs *j)
{
    ARR_RELEASE(&j->priv->asked);
}
