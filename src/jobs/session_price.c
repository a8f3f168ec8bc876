/* Tools that tell tokens and no cost: the list price of the model they were started with. It
 * is put into the event, so that what was counted once keeps its price. */
#include "session_priv.h"

#include <cct/config/models.h>
#include <math.h>

void session_price(struct session *s, struct agent_event *ev)
{
    const char *model = s->fo.p.model;

    if (ev->kind != AGENT_USAGE || !isnan(ev->cost_usd) || !s->j->o.models)
        return;
    if (!model && s->tool)
        model = s->tool->model;
    if (s->out.model)
        model = s->out.model;
    ev->cost_usd = models_cost(s->j->o.models, ev->name ? ev->name : model, ev->in_tokens,
                               ev->cache_read, ev->cache_write, ev->out_tokens);
}
