/* The configuration as it changes while the screen is open. */
#include <cct/ui/ui.h>

#include <cct/util/str.h>
#include <stdio.h>
#include <string.h>

/* What counts at once; the rest is told to wait for the next start. */
static const char *const live[] = {"screen.theme",     "screen.wrap",     "screen.time_stamps",
                                   "screen.sort",      "screen.warn_left", "sandbox.timeout",
                                   "sandbox.at_end",   "sandbox.tool",
                                   "sandbox.kill_all_confirm", NULL};

static bool is_live(const char *name)
{
    for (size_t i = 0; live[i]; i++)
        if (str_eq(live[i], name))
            return true;
    return false;
}

struct change {
    size_t n, later;
    char first[64], first_later[64];
};

static void note_change(struct change *c, const char *section, const char *name)
{
    char full[64];
    snprintf(full, sizeof(full), "%s.%s", section, name);
    bool now = is_live(full);
    if (now && !c->n++)
        str_copy(c->first, sizeof(c->first), full);
    else if (!now && !c->later++)
        str_copy(c->first_later, sizeof(c->first_later), full);
}

static struct change changes(const struct config *old, const struct config *new)
{
    struct change c = {0};
    const char *section, *name, *help;
    enum option_source src;
    char was[512], is[512];
    for (size_t i = 0; old && config_at(old, i, &section, &name, was, sizeof(was), &src, &help); i++)
        if (config_at(new, i, &section, &name, is, sizeof(is), &src, &help) && !str_eq(was, is))
            note_change(&c, section, name);
    return c;
}

static bool same_keys(const struct config *a, const struct config *b)
{
    bool same = a && a->n_keys == b->n_keys;
    for (size_t i = 0; same && i < b->n_keys; i++)
        same = str_eq(a->keys[i].action, b->keys[i].action) && str_eq(a->keys[i].keys, b->keys[i].keys);
    return same;
}

static void take_keys(struct ui *ui)
{
    keymap_free(ui->keys);
    ui->keys = keymap_new();
    keymap_bind_all(ui->keys, ui->opts.keys, ui->opts.n_keys, NULL, NULL);
}

static void tell(struct ui *ui, const struct config *c, const struct change *d, bool keys)
{
    for (size_t i = 0; i < c->n_notes; i++)
        app_event_add(ui->app, 1, 0, c->notes[i]);
    if (c->n_notes == 1)
        ui_status(ui, 1, "%s", c->notes[0]);
    else if (c->n_notes)
        ui_status(ui, 1, "%zu mistakes in the configuration: 5 shows them", c->n_notes);
    else if (d->later)
        ui_status(ui, 0, "%s%s counts from the next start", d->first_later,
                  d->later > 1 ? " and more" : "");
    else if (d->n)
        ui_status(ui, 0, "%s%s changed", d->first, d->n > 1 || keys ? " and more" : "");
    else
        ui_status(ui, 0, keys ? "keys changed: ? shows them" : "nothing in the configuration changed");
    ui->said = true;
}

/* Also when its file alone is another one. */
static void take_theme(struct ui *ui, const struct theme *t)
{
    const struct theme *now = *ui->theme.name ? &ui->theme : ui->opts.theme;
    if (!*t->name || (now && memcmp(now, t, sizeof(*t)) == 0))
        return;
    ui->theme = *t;
    ui->theme_changed = true;
}

void ui_take_settings(struct ui *ui, struct settings *s)
{
    const struct config *old = ui->opts.config, *c = &s->config;
    bool wrap = ui->opts.wrap, times = ui->opts.time_stamps, keys = !same_keys(old, c);
    struct change d = changes(old, c);
    const char *sort = old ? old->o.sort : NULL;
    ui->opts.fill(&ui->opts, c);
    if (!ui->opts.warn_left_ms)
        ui->opts.warn_left_ms = UI_WARN_LEFT_MS;
    ui->opts.config = c;
    *ARR_PUSH(&ui->settings) = s;
    take_theme(ui, &s->theme);
    if (keys)
        take_keys(ui);
    if (ui->opts.wrap != wrap || ui->opts.time_stamps != times)
        output_style(ui, ui->opts.wrap, ui->opts.time_stamps);
    int by = ui->opts.sort ? sort_parse(ui->opts.sort) : -1;
    if (by >= 0 && !str_eq(sort, ui->opts.sort))
        list_sort(ui, (enum sort)by, false);
    tell(ui, c, &d, keys);
}

void ui_set_option(struct ui *ui, const char *name, const char *value)
{
    const char *section, *word, *help;
    enum option_source src;
    char now[8], full[64];
    bool known = false;
    for (size_t i = 0; ui->opts.config && config_at(ui->opts.config, i, &section, &word, now,
                                                    sizeof(now), &src, &help); i++) {
        snprintf(full, sizeof(full), "%s.%s", section, word);
        known |= str_eq(full, name) || str_eq(word, name);
    }
    if (!ui->reload)
        ui_status(ui, 1, "no option can be changed here");
    else if (!known)
        ui_status(ui, 1, "there is no option '%.60s': 'cc-tui config show' lists them", name);
    else {
        reload_set(ui->reload, name, value);
        ui_status(ui, 0, "%s is to be %s, until cc-tui ends", name, *value ? value : "empty");
    }
}
