/* Agents' streams: any bytes, any slicing, the same events; every event survives
 * its JSON form, and the keys of its rows grow (tape.c looks). */
#include "../lib/tape.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void both_ways(const struct agent_adapter *a, const char *s, size_t len, size_t chunk)
{
    struct tape whole, cut;

    tape_run(&whole, a, s, len, len + 1, 1, 0, s[0] ? "stderr" : NULL);
    tape_run(&cut, a, s, len, chunk, 1, 0, s[0] ? "stderr" : NULL);
    if (whole.json.len != cut.json.len ||
        memcmp(buf_str(&whole.json), buf_str(&cut.json), cut.json.len) != 0)
        abort();
    tape_release(&whole);
    tape_release(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *s = (const char *)data;
    const struct agent_adapter *a;
    struct agent_event ev;

    if (!size)
        return 0;
    /* some of them, others for another size: all for each would take too long */
    for (size_t i = 0; (a = agent_adapter_at(i)); i++)
        if ((i + size) % 4 == 0)
            both_ways(a, s, size, 1 + size % (a->pty ? 7 : 61));
    if (agent_event_from_json(&ev, s, size, NULL) == 0)
        agent_event_release(&ev);
    agent_event_release(&ev);
    return 0;
}
