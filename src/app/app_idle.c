/* What is done to all that are idle. */
#include <cct/app.h>

static bool is_idle_for(const struct sandbox *s, int64_t now, int64_t ms)
{
    return s->state == SB_RUNNING && s->agent == AG_IDLE && !s->foreign && s->agent_since &&
           now - s->agent_since > ms;
}

size_t app_pause_idle(struct app *a, int64_t now, int64_t seconds)
{
    const struct model *m = app_model(a);
    size_t n = 0;

    for (size_t i = 0; i < m->n_sandboxes; i++)
        if (model_in_view(m, &m->sandboxes[i]) && is_idle_for(&m->sandboxes[i], now, seconds * 1000)) {
            app_pause(a, m->sandboxes[i].id);
            n++;
        }
    return n;
}
