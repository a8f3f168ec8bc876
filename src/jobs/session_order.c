/* The order of what stands in a run's log, by offset and index. */
#include "session_out.h"
#include "session_priv.h"

#include <string.h>

bool session_before_output(uint64_t offset, uint32_t index)
{
    return offset == 0 && index >= AGENT_EXIT_INDEX && index < SESSION_SAY_INDEX;
}

void session_put_in_order(struct st_event *v, size_t n)
{
    size_t at = 0;

    while (at < n && v[at].offset == 0 && !session_before_output(0, v[at].index))
        at++;
    for (size_t first = 0; at < n && session_before_output(v[at].offset, v[at].index); at++) {
        struct st_event e = v[at];

        memmove(v + first + 1, v + first, (at - first) * sizeof(*v));
        v[first++] = e;
    }
}

bool session_key_reaches(const struct session_key *k, uint64_t offset, uint32_t index)
{
    bool before = session_before_output(offset, index);

    if (!k->any)
        return false;
    if (session_before_output(k->offset, k->index) != before)
        return before;
    return offset < k->offset || (offset == k->offset && index <= k->index);
}

/* Keys only grow: false when this one or a later one was taken before. */
bool session_key_newer(struct session_key *last, const struct agent_event *ev)
{
    if (session_key_reaches(last, ev->offset, ev->index))
        return false;
    *last = (struct session_key){ev->offset, ev->index, true};
    return true;
}
