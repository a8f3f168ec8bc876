/* What runs for nothing: sandboxes that are paid for while their agents wait. */
#include "usage_priv.h"

#include <cct/util/clock.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IDLE_MS = 60000, LOOK_MOST = 500, LOOK_MS = 1000 };

bool usage_is_hidden(const struct usage_pane *u, uint64_t sandbox, int64_t now)
{
    for (size_t i = 0; i < u->hidden.n; i++)
        if (u->hidden.v[i].sandbox == sandbox && now < u->hidden.v[i].until &&
            u->hidden.v[i].until - now <= USAGE_HIDE_MS)
            return true;
    return false;
}

/* The dearest first: so far, not per hour. */
static double wasted(const struct sandbox *s, int64_t now)
{
    return sandbox_usd_per_hour(s) * (double)(now - s->agent_since);
}

/* All rows are looked at: of many not for each picture. */
static bool looked_lately(const struct ui *ui, const struct usage_pane *u)
{
    int64_t since = ui->now - u->idle_at;
    return ui->model->n_sandboxes > LOOK_MOST && u->idle_at && since >= 0 && since < LOOK_MS &&
           u->idle_shape == ui->model->shape_rev;
}

static void look(struct ui *ui, struct usage_pane *u, int64_t server)
{
    const struct model *m = ui->model;
    const struct sandbox *out[USAGE_MANY_IDLE];
    size_t n = 0;
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *s = &m->sandboxes[i];
        size_t at = n < USAGE_MANY_IDLE ? n : USAGE_MANY_IDLE;
        if (!sandbox_idles(s) || s->pending || server - s->agent_since < IDLE_MS ||
            usage_is_hidden(u, s->id, ui->now))
            continue;
        while (at > 0 && wasted(out[at - 1], server) < wasted(s, server)) {
            if (at < USAGE_MANY_IDLE)
                out[at] = out[at - 1];
            at--;
        }
        if (at < USAGE_MANY_IDLE)
            out[at] = s;
        n++;
    }
    u->n_idle = n;
    u->idle_at = ui->now;
    u->idle_shape = m->shape_rev;
    for (size_t i = 0; i < n && i < USAGE_MANY_IDLE; i++)
        u->idle_ids[i] = out[i]->id;
}

size_t usage_idle_ones(struct ui *ui, struct usage_pane *u, const struct sandbox **out,
                       int64_t server)
{
    size_t shown = 0, kept;
    if (!looked_lately(ui, u))
        look(ui, u, server);
    kept = u->n_idle < USAGE_MANY_IDLE ? u->n_idle : USAGE_MANY_IDLE;
    for (size_t i = 0; i < kept; i++) {
        const struct sandbox *s = model_sandbox(ui->model, u->idle_ids[i]);
        if (s && sandbox_idles(s))
            out[shown++] = s;
    }
    return shown == kept ? u->n_idle : shown;
}

void usage_draw_idle(struct ui *ui, const struct sandbox *s, bool first, size_t others,
                     struct canvas *c, int y, struct rect r, int64_t server)
{
    char span[16], usd[32], more[32] = "", keys[80] = "";
    const char *p = keymap_keys(ui->keys, ACT_USAGE_PAUSE), *x = keymap_keys(ui->keys, ACT_USAGE_HIDE);
    clock_format_span(span, sizeof(span), (server - s->agent_since) / 60000 * 60000);
    if (first && ui->focus == PANE_USAGE && !ui->opts.readonly)
        snprintf(keys, sizeof(keys), "   %.*s pause it   %.*s hide 1 h", (int)strcspn(p, " "), p,
                 (int)strcspn(x, " "), x);
    if (others)
        snprintf(more, sizeof(more), r.w < 60 ? " +%zu" : " and %zu more", others);
    snprintf(usd, sizeof(usd), isnan(s->usd_per_s) ? "unpriced" : "$%.2f/h", sandbox_usd_per_hour(s));
    canvas_textf(c, y, r.x + 1, r.w - 1, ROLE_STATUS_WARN, "idle but running: %s %s (%s)%s%s",
                 s->name ? s->name : "-", span, usd, more, keys);
}
