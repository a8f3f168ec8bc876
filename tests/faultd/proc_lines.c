/* A process that needs no process: numbered lines at a rate, cheap by the thousand.
 * Line N (from 1) is "N:HHHHHHHHHHHHHHHH" where H is a hash of SEED and N, so that a
 * reader can tell a line that was changed, doubled or left out; with a SEED other than 0
 * up to 63 dots follow. RATE 0 is as fast as it is read, COUNT 0 for ever. */
#include "proc.h"
#include <cct/util/str.h>
#include <stdio.h>
#include <string.h>

enum { BURST = 64, RATE_MAX = 1000000 };

static bool put_line(struct proc *p)
{
    static const char dots[] =
        "...............................................................";
    const struct lines *l = &p->lines;
    uint64_t key = l->seed ^ (uint64_t)l->next << 20, h = text_random(&key);
    char text[128];
    int n = snprintf(text, sizeof(text), "%lld:%016llx%.*s\n", (long long)l->next,
                     (unsigned long long)h, l->seed ? (int)(h % 64) : 0, dots);

    return proc_emit(p, "stdout", text, (size_t)n);
}

static int64_t due(const struct lines *l)
{
    return l->rate ? l->base_ms + l->next * 1000 / l->rate : 0;
}

static void on_tick(struct timer *t)
{
    struct proc *p = OWNER_OF(t, struct proc, lines.tick);
    struct lines *l = &p->lines;

    for (int i = 0; i < BURST && due(l) <= loop_now(); i++) {
        if (l->count && l->next > l->count) {
            proc_done(p, 0);
            return;
        }
        bool room = put_line(p);
        l->next++;
        if (!room)
            return; /* held: lines_hold(p, false) goes on */
    }
    loop_timer(t, due(l) - loop_now());
}

void lines_hold(struct proc *p, bool hold)
{
    struct lines *l = &p->lines;

    loop_timer_stop(&l->tick);
    if (hold)
        return;
    if (l->rate) /* the time it stood still does not count */
        l->base_ms = loop_now() - l->next * 1000 / l->rate;
    loop_timer(&l->tick, 0);
}

bool lines_start(struct proc *p, const struct cJSON *config)
{
    struct lines *l = &p->lines;
    int64_t v[3] = {0};
    int n = 0;

    for (const struct cJSON *a = json_first(json_get(config, "args")); a; a = json_next(a), n++)
        if (n == 3 || !str_to_i64(json_str_of(a), 0, n ? INT64_MAX : RATE_MAX, &v[n]))
            return false;
    if (n < 2)
        return false;
    *l = (struct lines){.rate = v[0], .count = v[1], .next = 1, .seed = (uint64_t)v[2]};
    p->pid = p->data->next_fake++;
    l->base_ms = loop_now();
    l->tick.fire = on_tick;
    loop_timer(&l->tick, due(l) - loop_now());
    return true;
}
