/* Adding up what agents say they have used. Some say what is new, some what it comes to in
 * all since their session began, some what their process has cost so far: each event becomes
 * what it adds. Events are given once each, in their order. Plain data, one owner. */
#ifndef CCT_MODEL_USAGE_SUM_H
#define CCT_MODEL_USAGE_SUM_H

#include <cct/model/agent_event.h>
#include <stddef.h>

struct usage {
    int64_t in_tokens, cache_read, cache_write, out_tokens;
    double cost_usd; /* NaN: not known */
};

struct usage_total; /* the last total of one session of an agent */
struct usage_sum {
    struct usage all; /* cost: of what had one; NaN when nothing had */
    struct usage_total *totals;
    size_t n_totals;
};

#define USAGE_SUM_INIT                        \
    {                                         \
        {0, 0, 0, 0, (double)NAN}, NULL, 0    \
    }

void usage_sum_init(struct usage_sum *u);
void usage_sum_release(struct usage_sum *u); /* empty and usable again */
/* What a USAGE event adds to what came before, none of it below zero: a total that shrank (a
 * conversation that went back to an earlier point) adds nothing until it is exceeded. Its
 * cost is NaN where nothing is known of it; whoever knows a price may put it in. Other kinds
 * of events add nothing, but EXIT must be given too: the next process counts anew. */
struct usage usage_sum_growth(struct usage_sum *u, const struct agent_event *ev);
void usage_sum_add(struct usage_sum *u, const struct usage *growth);

#endif
