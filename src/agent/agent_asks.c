/* Questions that are open, as the stream opens and ends them. An agent may ask very many at
 * once (each of its calls may need a word): all are known until they end, and finding one
 * does not depend on their number. */
#include "agent_priv.h"

#include <cct/util/limits.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

struct open_ask {
    char *id, *call; /* of the question; of the tool call that it is about, or NULL */
};

static void forget(struct agent_asks *a, struct open_ask *o)
{
    map_del(a->ids, o->id);
    if (o->call && map_get(a->calls, o->call) == o)
        map_del(a->calls, o->call);
    free(o->id);
    free(o->call);
    free(o);
}

bool agent_asks_open(struct agent_asks *a, struct agent_dec *d, const char *id, const char *call)
{
    struct open_ask *o;

    if (!id || (a->ids && map_get(a->ids, id)))
        return false;
    if (a->ids && map_count(a->ids) >= LIM_ASKS) {
        if (!a->full)
            agent_line_notice(d, AGENT_WARN, "the agent asks more questions at once than are "
                              "kept: answer those that are shown, or interrupt it");
        a->full = true;
        return false;
    }
    a->full = false;
    if (!a->ids) {
        a->ids = map_new();
        a->calls = map_new();
    }
    o = xcalloc(1, sizeof(*o));
    o->id = xstrdup(id);
    o->call = xstrdup(call);
    map_put(a->ids, id, o);
    if (call)
        map_put(a->calls, call, o);
    return true;
}

static bool end(struct agent_asks *a, struct agent_dec *d, struct open_ask *o, const char *how)
{
    struct agent_event ev = AGENT_EVENT(AGENT_ASK);

    if (!o)
        return false;
    ev.id = o->id;
    ev.text = (char *)how;
    ev.final = true;
    agent_dec_emit(d, &ev);
    forget(a, o);
    return true;
}

bool agent_asks_close(struct agent_asks *a, struct agent_dec *d, const char *id, const char *how)
{
    return a->ids && id && end(a, d, map_get(a->ids, id), how);
}

bool agent_asks_call_ended(struct agent_asks *a, struct agent_dec *d, const char *call)
{
    return a->calls && call && end(a, d, map_get(a->calls, call), NULL);
}

void agent_asks_end(struct agent_asks *a, struct agent_dec *d)
{
    struct open_ask *o;

    for (size_t it = 0; a->ids && (o = map_next(a->ids, &it, NULL, NULL)) != NULL;)
        end(a, d, o, NULL);
    agent_asks_clear(a);
}

void agent_asks_clear(struct agent_asks *a)
{
    struct open_ask *o;

    for (size_t it = 0; a->ids && (o = map_next(a->ids, &it, NULL, NULL)) != NULL;)
        forget(a, o);
    map_free(a->ids, NULL);
    map_free(a->calls, NULL);
    *a = (struct agent_asks){NULL, NULL, false};
}
