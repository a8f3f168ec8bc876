/* A sandbox's system log, page by page, and on with what comes. The service knows a
 * cursor in milliseconds and hands out the lines of that millisecond again: as many as
 * were seen are left out, so that a line which really came twice is shown twice. */
#include "looks_priv.h"

#include <cct/util/clock.h>
#include <cct/util/xalloc.h>

enum { PAGE = 1000, POLL_MS = 1000, POLL_MAX_MS = 5000, GIVE_UP_MS = 20000 };
#define WEEK_MS (7LL * 86400000) /* older ones are not kept */

static void ask(void *ctx);

static bool is_over(const struct look *l)
{
    const struct sandbox *row = jobs_row(l->j, l->row);

    return !row || row->state == SB_KILLED;
}

/* Lines without a usable time are counted like those of the cursor's: they come again
 * with it. How many were new. */
static size_t take_lines(struct look *l, const struct e2b_result *r)
{
    size_t fresh = 0, skip = l->seen;

    for (size_t i = 0; i < r->n_logs; i++) {
        const struct e2b_log *line = &r->logs[i];

        if (skip && line->time_ms <= l->from_ms) {
            skip--;
            continue;
        }
        if (line->time_ms > l->from_ms) {
            l->from_ms = line->time_ms;
            l->seen = skip = 0;
        }
        l->seen++;
        json_log(&l->out, NULL, line);
        fresh++;
    }
    return fresh;
}

static void on_logs(void *ctx, const struct e2b_result *r)
{
    struct look *l = ctx;
    int64_t now = clock_mono_ms();
    size_t fresh;

    l->call = 0;
    if (r->err.code) {
        bool gone = r->err.code == ERR_NOTFOUND && l->attempt > 0;
        look_end(l, gone ? NULL : &r->err);
        return;
    }
    l->attempt++;
    fresh = take_lines(l, r);
    look_flush(l);
    if (fresh)
        l->quiet_since = now;
    if (!fresh && r->n_logs >= PAGE) { /* more in one millisecond than a page holds */
        l->from_ms++;
        l->seen = 0;
    }
    if (r->n_logs >= PAGE) {
        ask(l);
    } else if (!l->follow || is_over(l)) {
        look_end(l, NULL);
    } else {
        int64_t quiet = (now - l->quiet_since) / 8;
        l->timer = net_timer(l->j->o.net, quiet < POLL_MS ? POLL_MS
                                          : quiet > POLL_MAX_MS ? POLL_MAX_MS : quiet, ask, l);
    }
}

static void ask(void *ctx)
{
    struct look *l = ctx;
    static const struct e2b_call_opts o = {.give_up_ms = GIVE_UP_MS};
    struct e2b_log_query q = {.from_ms = l->from_ms, .limit = PAGE};

    l->timer = 0;
    if (!l->j->e2b) {
        look_end(l, &l->j->priv->account_err);
        return;
    }
    l->client = l->j->e2b;
    l->call = e2b_logs(l->client, l->sandbox_id, &q, &o, on_logs, l);
}

void look_logs(struct look *l)
{
    l->from_ms = jobs_now(l->j) - WEEK_MS + 60000;
    l->quiet_since = clock_mono_ms();
    ask(l);
}
