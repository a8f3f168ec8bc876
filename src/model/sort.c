/* Orders of the list. */
#include <cct/model/sort.h>

#include <cct/util/str.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *word, *help;
} sorts[SORT_COUNT] = {
#define SORT_ROW(id, word, help) {word, help},
    SORTS(SORT_ROW)
#undef SORT_ROW
};

const char *sort_word(enum sort s)
{
    return sorts[s].word;
}

const char *sort_help(enum sort s)
{
    return sorts[s].help;
}

int sort_parse(const char *word)
{
    for (int i = 0; i < SORT_COUNT; i++)
        if (str_eq(word, sorts[i].word))
            return i;
    return -1;
}

static int state_rank(const struct sandbox *s)
{
    static const int rank[SB_STATE_COUNT] = {
        [SB_RUNNING] = 0, [SB_CREATING] = 1, [SB_PAUSED] = 2, [SB_ERROR] = 3, [SB_KILLED] = 4};
    return rank[s->state];
}

/* By how much it wants somebody. */
static int doing_rank(const struct sandbox *s)
{
    if (s->state != SB_RUNNING)
        return s->state == SB_ERROR ? 1 : 6;
    switch (s->agent) {
    case AG_ASKS:
        return 0;
    case AG_FAILED:
        return 1;
    case AG_IDLE:
        return 2;
    case AG_EXITED:
        return 3;
    case AG_WORKING:
    case AG_STARTING:
        return 4;
    default:
        return 5;
    }
}

/* The figure to go by, the least first; NaN: unknown. */
static double figure(enum sort by, const struct sandbox *s)
{
    int64_t born = s->created_at ? s->created_at : s->started_at;
    switch (by) {
    case SORT_STATE:
        return state_rank(s);
    case SORT_DOING:
        return doing_rank(s);
    case SORT_LEFT:
        return s->state == SB_RUNNING && s->end_at ? (double)s->end_at : (double)NAN;
    case SORT_AGE:
        return born ? -(double)born : (double)NAN;
    case SORT_COST:
        return s->foreign ? (double)NAN : -s->cost_usd;
    default:
        return 0;
    }
}

int sort_compare(enum sort by, bool inverted, const struct sandbox *a, const struct sandbox *b)
{
    int sign = inverted ? -1 : 1;
    if (by == SORT_NAME)
        return sign * strcasecmp(a->name ? a->name : "", b->name ? b->name : "");
    if (by == SORT_AGENT && (!a->tool || !b->tool))
        return !a->tool - !b->tool;
    if (by == SORT_AGENT)
        return sign * strcasecmp(a->tool, b->tool);
    double x = figure(by, a), y = figure(by, b);
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    return x < y ? -sign : x > y ? sign : 0;
}
