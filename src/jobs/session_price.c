/* Tools that tell tokens and no cost: the list price of the model they were started with. It
 * is put into the event, so that what was counted once keeps its price. And what an event
 * adds to the ledger. */
#include "session_out.h"
#include "session_pair.h"
#include "session_priv.h"

#include <cct/config/models.h>
#include <cct/util/xalloc.h>
#include <math.h>

#define AHEAD_MS 60000 /* a time stamp of a CLI further ahead is not believed */

static const char *model_of(const struct session *s, const struct agent_event *ev)
{
    const char *model = s->out.model ? s->out.model : s->fo.p.model;

    if (ev->name)
        return ev->name;
    if (s->pair)
        return session_pair_model(s, ev->role);
    return !model && s->tool ? s->tool->model : model;
}

void session_price(struct session *s, struct agent_event *ev)
{
    s->out.by_list = ev->kind == AGENT_USAGE && isnan(ev->cost_usd) && s->j->o.models;
    if (s->out.by_list)
        ev->cost_usd = models_cost(s->j->o.models, model_of(s, ev), ev->in_tokens,
                                   ev->cache_read, ev->cache_write, ev->out_tokens);
}

struct st_use *session_use(struct session *s, const struct agent_event *ev)
{
    const char *model = model_of(s, ev);
    const struct model_info *info =
        s->out.by_list && !isnan(ev->cost_usd) ? models_find(s->j->o.models, model) : NULL;
    bool ends = ev->kind != AGENT_USAGE, total = ev->scope == AGENT_SCOPE_SESSION_TOTAL;
    int64_t now = jobs_now(s->j);
    struct st_use *u = xcalloc(1, sizeof(*u));

    u->ends = ends;
    u->role = xstrdup(ev->role);
    u->total = xstrdup(ends ? AGENT_PROCESS_TOTAL : !total ? NULL : ev->id ? ev->id : "");
    if (ends)
        return u;
    u->model = xstrdup(model);
    u->rate_date = xstrdup(info ? info->date : NULL);
    u->time_ms = ev->time_ms > 0 && ev->time_ms < now + AHEAD_MS ? ev->time_ms : now;
    u->in_tokens = ev->in_tokens;
    u->cache_read = ev->cache_read;
    u->cache_write = ev->cache_write;
    u->out_tokens = ev->out_tokens;
    u->cost_usd = ev->cost_usd;
    return u;
}
