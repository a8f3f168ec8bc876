/* Usage: deltas are added, of totals the growth. */
#include <cct/model/usage_sum.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TOTALS 256 /* sessions of agents in one sandbox; the oldest goes */

struct usage_total {
    char *id, *role;
    struct usage last;
};

void usage_sum_init(struct usage_sum *u)
{
    memset(u, 0, sizeof(*u));
    u->all.cost_usd = (double)NAN;
}

static void drop(struct usage_sum *u, size_t i)
{
    free(u->totals[i].id);
    free(u->totals[i].role);
    memmove(&u->totals[i], &u->totals[i + 1], (u->n_totals - i - 1) * sizeof(*u->totals));
    u->n_totals--;
}

void usage_sum_release(struct usage_sum *u)
{
    while (u->n_totals)
        drop(u, u->n_totals - 1);
    free(u->totals);
    usage_sum_init(u);
}

static struct usage_total *total_of(struct usage_sum *u, const char *id, const char *role)
{
    struct usage_total *t;

    for (size_t i = 0; i < u->n_totals; i++)
        if (str_eq(u->totals[i].id, id) && str_eq(u->totals[i].role, role))
            return &u->totals[i];
    if (u->n_totals == MAX_TOTALS)
        drop(u, 0);
    u->totals = xrealloc(u->totals, (u->n_totals + 1) * sizeof(*u->totals));
    t = &u->totals[u->n_totals++];
    *t = (struct usage_total){.id = xstrdup(id), .role = xstrdup(role)};
    return t;
}

static int64_t grown(int64_t *last, int64_t now)
{
    int64_t by = now > *last ? now - *last : 0;

    *last += by;
    return by;
}

static struct usage growth_of(struct usage_total *t, const struct agent_event *ev)
{
    struct usage g = {
        .in_tokens = grown(&t->last.in_tokens, ev->in_tokens),
        .cache_read = grown(&t->last.cache_read, ev->cache_read),
        .cache_write = grown(&t->last.cache_write, ev->cache_write),
        .out_tokens = grown(&t->last.out_tokens, ev->out_tokens),
        .cost_usd = ev->cost_usd,
    };

    if (!isnan(ev->cost_usd)) {
        g.cost_usd = fmax(0, ev->cost_usd - t->last.cost_usd);
        t->last.cost_usd = fmax(ev->cost_usd, t->last.cost_usd);
    }
    return g;
}

static void process_ended(struct usage_sum *u, const char *role)
{
    for (size_t i = u->n_totals; i-- > 0;)
        if (str_eq(u->totals[i].id, AGENT_PROCESS_TOTAL) && str_eq(u->totals[i].role, role))
            drop(u, i);
}

struct usage usage_sum_growth(struct usage_sum *u, const struct agent_event *ev)
{
    struct usage none = {.cost_usd = (double)NAN};

    if (ev->kind == AGENT_EXIT)
        process_ended(u, ev->role);
    if (ev->kind != AGENT_USAGE)
        return none;
    if (ev->scope == AGENT_SCOPE_SESSION_TOTAL)
        return growth_of(total_of(u, ev->id, ev->role), ev);
    return (struct usage){ev->in_tokens, ev->cache_read, ev->cache_write, ev->out_tokens,
                          ev->cost_usd};
}

static void add(int64_t *sum, int64_t n)
{
    if (n > 0 && *sum < INT64_MAX - n)
        *sum += n;
}

void usage_sum_add(struct usage_sum *u, const struct usage *growth)
{
    struct usage *a = &u->all;

    add(&a->in_tokens, growth->in_tokens);
    add(&a->cache_read, growth->cache_read);
    add(&a->cache_write, growth->cache_write);
    add(&a->out_tokens, growth->out_tokens);
    if (!isnan(growth->cost_usd))
        a->cost_usd = (isnan(a->cost_usd) ? 0 : a->cost_usd) + growth->cost_usd;
}
