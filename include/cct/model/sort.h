/* Orders of the list. Pure. */
#ifndef CCT_MODEL_SORT_H
#define CCT_MODEL_SORT_H

#include <cct/model/sandbox.h>

/* X(ID, "word", "which come first") */
#define SORTS(X)                                                                               \
    X(MADE, "made", "in the order in which they were made")                                    \
    X(NAME, "name", "by name")                                                                 \
    X(AGENT, "agent", "by agent")                                                              \
    X(STATE, "state", "running, creating, paused, error")                                      \
    X(DOING, "doing", "those that ask you, then failed, idle, working")                        \
    X(LEFT, "left", "the least time left")                                                     \
    X(AGE, "age", "the youngest")                                                              \
    X(COST, "cost", "the most expensive")

enum sort {
#define SORT_ENUM(id, word, help) SORT_##id,
    SORTS(SORT_ENUM)
#undef SORT_ENUM
        SORT_COUNT
};
const char *sort_word(enum sort s);
const char *sort_help(enum sort s);
int sort_parse(const char *word); /* or -1 */
/* < 0: a comes before b; 0: they are alike there, and keep the order in which they were made.
 * What is unknown comes last, inverted too. */
int sort_compare(enum sort by, bool inverted, const struct sandbox *a, const struct sandbox *b);

#endif
