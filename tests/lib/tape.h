/* Run bytes through an agent's decoder and look at what comes out. */
#ifndef CCT_TEST_TAPE_H
#define CCT_TEST_TAPE_H

#include <cct/agent.h>
#include <cct/util/arr.h>

struct tape {
    ARR(struct agent_event) ev; /* copies, in order */
    struct buf json;            /* the same as JSON lines */
};

#define TAPE_NO_EXIT (-1000)

/* Decode `data` in chunks of `chunk` bytes, then the exit (unless code is
 * TAPE_NO_EXIT). Aborts when an event does not survive its JSON form or when the
 * keys (offset, index) do not grow. */
void tape_run(struct tape *t, const struct agent_adapter *a, const char *data, size_t len,
              size_t chunk, int code, int sig, const char *stderr_tail);
void tape_release(struct tape *t);
/* The first event of a kind from index `from` on, or NULL. */
const struct agent_event *tape_find(const struct tape *t, enum agent_kind kind, size_t from);
size_t tape_count(const struct tape *t, enum agent_kind kind);
/* Text of all blocks that stand at the end (append and replace applied), those of
 * subagents left out, joined by '|'. New string. */
char *tape_texts(const struct tape *t, enum agent_kind kind);
/* Last state of every tool as "name:state:exit", joined by ' '. New string. */
char *tape_tools(const struct tape *t);

/* Whether two JSON line texts are the same but for line numbers ("raw"), which a
 * resumed decoder counts anew. */
bool tape_same_but_line(const char *a, const char *b);

#endif
