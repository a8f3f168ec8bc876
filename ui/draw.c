/* The whole picture: header, panes with their rules, overlays, hints. */
#include "draw_priv.h"

#include <cct/ui/ui.h>

#include <cct/text/width.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <stdio.h>
#include <string.h>

enum { HELP_CELLS = 16 /* " : cmd  ? help " */ };

static const char *link_words(const struct model *m)
{
    switch (m->link) {
    case LINK_CONNECTING:
        return "connecting";
    case LINK_OK:
        return m->local ? "local ok" : "e2b ok";
    case LINK_SLOW:
        return "slow";
    case LINK_DOWN:
        return "no link";
    case LINK_AUTH:
        return "key refused";
    case LINK_LIMITED:
        return "rate limited";
    }
    return "?";
}

/* How old what is shown is, where there is no list. */
static void add_age(const struct ui *ui, char *words, size_t size)
{
    char span[16];
    int64_t age = ui_server_now(ui, ui->now) - ui->model->listed_at;
    size_t n = strlen(words);
    if (!model_is_stale(ui->model) || !ui->model->listed_at || age < 60000)
        return;
    clock_format_span(span, sizeof(span), age / 60000 * 60000);
    snprintf(words + n, size - n, " for %s", span);
}

enum theme_role ui_link_role(const struct model *m)
{
    if (m->link == LINK_OK)
        return ROLE_STATUS;
    return m->link == LINK_CONNECTING ? ROLE_HINT
           : m->link == LINK_SLOW     ? ROLE_STATUS_WARN
                                      : ROLE_STATUS_BAD;
}

struct piece {
    const char *glyph, *word;
    enum theme_role role;
    size_t n;
};

/* One piece of the header at x; returns the cells it takes. Without a canvas it only
 * measures. Counts are `digits` wide, so that a change of one moves nothing behind it. */
static int piece(struct canvas *c, int x, const struct piece *p, bool wide, int digits)
{
    char text[48];
    if (p->n == 0)
        return 0;
    if (wide)
        snprintf(text, sizeof(text), "%s %*zu %s", p->glyph, digits, p->n, p->word);
    else
        snprintf(text, sizeof(text), "%s%zu", p->glyph, p->n);
    if (c)
        canvas_text(c, 0, x, -1, p->role, text);
    return (int)strlen(text) + (wide ? 3 : 1);
}

/* Where calls go, in front of the state, when it is not E2B's own service. */
static void service_words(const struct model *m, char *dst, size_t size)
{
    const char *words = link_words(m), *url = m->account ? strstr(m->account, " at http") : NULL;
    const char *host = url ? strstr(url, "://") : NULL;
    int n = host ? (int)strcspn(host + 3, "/, ") : 0;

    if (n > 0)
        snprintf(dst, size, "%.*s %s", n < 30 ? n : 30, host + 3,
                 str_starts(words, "e2b ") ? words + 4 : words);
    else
        str_copy(dst, size, words);
}

/* A word of the header, if it ends before `right`; returns where the next one starts. */
static int word(struct canvas *c, int x, int right, enum theme_role role, const char *s)
{
    int w = (int)text_width(s, strlen(s));
    if (x + w >= right)
        return x;
    canvas_text(c, 0, x, w, role, s);
    return x + w + 2;
}

static void draw_header(struct ui *ui)
{
    if (ui->opts.replay) {
        ui_replay_header(ui);
        return;
    }
    struct canvas *c = &ui->canvas;
    const struct model *m = ui->model;
    size_t st[SB_STATE_COUNT], asks, working, idle;
    model_counts(m, st, &asks, &working, &idle);
    const struct piece pieces[] = {{"?", "asks you", ROLE_ASKS, asks},
                                   {"*", "working", ROLE_WORKING, working},
                                   {".", "idle", ROLE_IDLE, idle},
                                   {"=", "paused", ROLE_PAUSED, st[SB_PAUSED]},
                                   {"~", "creating", ROLE_CREATING, st[SB_CREATING]},
                                   {"!", "error", ROLE_ERROR, st[SB_ERROR]}};
    const size_t n = sizeof(pieces) / sizeof(pieces[0]);
    int digits = snprintf(NULL, 0, "%zu", m->n_sandboxes);
    canvas_fill(c, (struct rect){0, 0, 1, c->w}, ROLE_HEADER, " ");
    char words[64];
    service_words(m, words, sizeof(words));
    add_age(ui, words, sizeof(words));
    int right = c->w - (int)strlen(words) - 1, x = 1, need = 0;
    canvas_text(c, 0, right, -1, ui_link_role(m), words);
    x = word(c, x, right, ROLE_HEADER, "cc-tui");
    if (m->project && *m->project && c->w >= UI_LIST_ONLY_W) {
        char project[160], more[40] = "";
        size_t used, len = text_fit(m->project, strlen(m->project), 24, &used);
        size_t elsewhere = model_elsewhere(m); /* out of view, but not out of mind */
        if (elsewhere)
            snprintf(more, sizeof(more), " +%zu elsewhere", elsewhere);
        snprintf(project, sizeof(project), "%s%.*s%s%s", m->all_projects ? "all (" : "", (int)len,
                 m->project, m->all_projects ? ")" : "", more);
        x = word(c, x, right, ROLE_TITLE, project);
    }
    if (m->unsafe)
        x = word(c, x, right, ROLE_DANGER, "NOT ISOLATED");
    for (size_t i = 0; i < n; i++)
        need += piece(NULL, 0, &pieces[i], true, digits);
    bool wide = x + need + 10 < right;
    for (size_t i = 0; i < n; i++)
        if (x + piece(NULL, 0, &pieces[i], wide, digits) < right)
            x += piece(c, x, &pieces[i], wide, digits);
    if (ui_header_rows(ui) > 1) { /* money has a row of its own */
        ui_draw_sums(ui, 1);
        return;
    }
    char money[64];
    enum theme_role role;
    money_burn(m, money, sizeof(money));
    x = word(c, x + !wide, right, ROLE_HEADER, money);
    money_today(m, money, sizeof(money), &role);
    if (*money)
        word(c, x, right, role, money);
}

static void draw_rule(struct ui *ui, struct pane *p)
{
    struct canvas *c = &ui->canvas;
    enum pane_id id = (enum pane_id)(p - ui->panes);
    if (p->r.y < 2 && id == PANE_LIST)
        return; /* right below the header */
    bool focused = ui->focus == id;
    const char *title = p->ops->title ? p->ops->title(ui, p->state) : p->ops->name;
    const char *note = p->ops->note ? p->ops->note(ui, p->state) : NULL;
    canvas_rule(c, p->r.y - 1, p->r.x, p->r.w, focused ? ROLE_RULE_FOCUS : ROLE_RULE, title,
                note, focused);
}

/* One rule between columns where panes stand side by side. */
static void draw_column_rules(struct ui *ui)
{
    struct canvas *c = &ui->canvas;
    for (int i = 0; i < PANE_COUNT; i++) {
        const struct rect *r = &ui->panes[i].r;
        int x = r->x + r->w;
        if (ui->panes[i].visible && x < c->w - 1)
            canvas_fill(c, (struct rect){r->y - 1, x, r->h + 1, 1}, ROLE_RULE, "|");
    }
}

static void draw_panes(struct ui *ui)
{
    for (int i = 0; i < PANE_COUNT; i++) {
        struct pane *p = &ui->panes[i];
        if (!p->visible)
            continue;
        draw_rule(ui, p);
        struct rect old = canvas_clip(&ui->canvas, p->r);
        p->ops->draw(ui, p->state, &ui->canvas, p->r, (int)ui->focus == i, ui->now);
        canvas_unclip(&ui->canvas, old);
    }
    draw_column_rules(ui);
}

static void add_hint(struct ui *ui, struct buf *b, enum action a, int room)
{
    if (ui->opts.readonly && ui_changes_things(a))
        return;
    const char *hint = action_hint(a), *keys = keymap_keys(ui->keys, a);
    size_t n = strcspn(keys, " ");
    if (!*hint || !n)
        return;
    char text[64];
    if (strncmp(hint, keys, n) == 0 && hint[n] == ' ') /* "/ find" names its key already */
        snprintf(text, sizeof(text), " %s ", hint);
    else
        snprintf(text, sizeof(text), " %.*s %s ", (int)n, keys, hint);
    if ((int)(b->len + strlen(text)) <= room)
        buf_adds(b, text);
}

/* A scope without a row in hinted(): what its table hints at, then the way out. */
static const enum action *hints_of(enum key_scope scope, enum action *room)
{
    static const enum action after[] = {ACT_PANE_LIST, ACT_ZOOM, ACT_QUIT, ACT_NONE};
    enum action *at = room;
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++)
        if (action_scope((enum action)a) == scope && *action_hint((enum action)a))
            *at++ = (enum action)a;
    memcpy(at, after, sizeof(after));
    return room;
}

enum { HINTS_MOST = ACT_COUNT + 4 };

/* Actions that are hinted at in a scope, ending with ACT_NONE; the least needed stand last.
 * `room` holds HINTS_MOST. */
static const enum action *hinted(const struct ui *ui, enum key_scope scope, enum action *room)
{
    static const enum action nav[] = {ACT_OPEN, ACT_INPUT, ACT_NEW, ACT_KILL, ACT_KILL_ALL,
                                      ACT_SET_TIME, ACT_SEARCH, ACT_DETAILS, ACT_ZOOM,
                                      ACT_QUIT, ACT_CHANGES, ACT_SHELL, ACT_FILES, ACT_BULK,
                                      ACT_MARK, ACT_NEXT_ASKING, ACT_NONE};
    static const enum action marked[] = {ACT_BULK, ACT_MARK, ACT_UNMARK_ALL, ACT_KILL,
                                         ACT_KILL_ALL, ACT_OPEN, ACT_INPUT, ACT_SEARCH, ACT_QUIT,
                                         ACT_NONE};
    static const enum action out[] = {ACT_INPUT, ACT_FOLD, ACT_FOLLOW, ACT_SEARCH, ACT_ZOOM,
                                      ACT_KILL, ACT_KILL_ALL, ACT_QUIT, ACT_NONE};
    static const enum action other[] = {ACT_PANE_LIST, ACT_PANE_OUTPUT, ACT_INPUT, ACT_KILL,
                                        ACT_KILL_ALL, ACT_ZOOM, ACT_QUIT, ACT_NONE};
    static const enum action in[] = {ACT_SEND, ACT_NEWLINE, ACT_LEAVE, ACT_NONE};
    static const enum action form[] = {ACT_FIELD_NEXT, ACT_SUBMIT, ACT_FORM_CANCEL, ACT_NONE};
    static const enum action none[] = {ACT_NEW, ACT_REFRESH, ACT_QUIT, ACT_NONE};
    static const enum action procs[] = {ACT_PROC_WATCH, ACT_PROC_END, ACT_ADOPT, ACT_PROCESSES,
                                        ACT_ZOOM, ACT_KILL, ACT_KILL_ALL, ACT_QUIT, ACT_NONE};
    static const enum action wall[] = {ACT_OPEN, ACT_INPUT, ACT_NEXT_ASKING, ACT_MARK, ACT_BULK,
                                       ACT_KILL, ACT_KILL_ALL, ACT_NEW, ACT_WALL, ACT_QUIT,
                                       ACT_NONE};
    static const enum action replay[] = {ACT_PLAY, ACT_QUIT, ACT_FASTER, ACT_SLOWER, ACT_SKIP_BACK,
                                         ACT_SKIP_ON, ACT_FOLD, ACT_FOLLOW, ACT_SEARCH, ACT_NONE};
    static const enum action select[] = {ACT_COPY_LINES, ACT_SELECT_END, ACT_KILL, ACT_KILL_ALL,
                                         ACT_NONE};
    static const enum action usage[] = {ACT_USAGE_LONGER, ACT_USAGE_NEXT, ACT_USAGE_PAUSE,
                                        ACT_USAGE_EXPORT, ACT_PANE_LIST, ACT_KILL_ALL, ACT_QUIT,
                                        ACT_NONE};
    if (!scope_counts(scope, SCOPE_NAV) && scope != SCOPE_INPUT)
        scope = scope_counts(scope, SCOPE_FORM) ? SCOPE_FORM : SCOPE_DIALOG;
    switch (scope) {
    case SCOPE_USAGE:
        return usage;
    case SCOPE_WALL:
        return wall;
    case SCOPE_SELECT:
        return select;
    case SCOPE_INPUT:
        return in;
    case SCOPE_FORM:
        return form;
    case SCOPE_PROCS:
        return procs;
    case SCOPE_REPLAY:
        return replay;
    case SCOPE_OUTPUT:
        return out;
    case SCOPE_NAV:
        return other;
    case SCOPE_DIALOG: /* boxes have theirs inside */
        return none + sizeof(none) / sizeof(none[0]) - 1;
    case SCOPE_LIST:
        return !ui->model->n_sandboxes ? none : ui->marks.n ? marked : nav;
    default:
        return hints_of(scope, room);
    }
}

/* What the keys do here; what does not fit falls off, the palette and help never do. */
static void draw_hints(struct ui *ui, int y)
{
    const struct pane *p = &ui->panes[ui->focus];
    const struct overlay *top = ui->n_overlays ? &ui->overlays[ui->n_overlays - 1] : NULL;
    const char *typing = p->ops->typing ? p->ops->typing(ui, p->state) : NULL;
    const char *own = top && top->ops->hints ? top->ops->hints(ui, top->state) : top ? NULL : typing;
    if (own) {
        canvas_text(&ui->canvas, y, 0, -1, ROLE_HINT, own);
        return;
    }
    enum key_scope scope = top ? overlay_scope(top) : ui_scope(ui, ui->focus);
    struct buf b = BUF_INIT;
    bool help = scope_counts(scope, SCOPE_NAV);
    int most = ui->canvas.w - (help ? HELP_CELLS : 0);
    if (help && model_ask(ui->model, ui->selected))
        add_hint(ui, &b, ACT_ANSWER, most);
    enum action room[HINTS_MOST];
    for (const enum action *a = hinted(ui, scope, room); *a; a++)
        add_hint(ui, &b, *a, most);
    if (help) {
        add_hint(ui, &b, ACT_COMMAND, ui->canvas.w - 8);
        add_hint(ui, &b, ACT_HELP, ui->canvas.w);
    }
    canvas_text(&ui->canvas, y, 0, -1, ROLE_HINT, buf_str(&b));
    buf_release(&b);
}

static void draw_bare(struct ui *ui)
{
    struct pane *p = &ui->panes[PANE_OUTPUT];
    p->ops->draw(ui, p->state, &ui->canvas, p->r, false, ui->now);
}

void ui_draw(struct ui *ui, int64_t now)
{
    struct canvas *c = &ui->canvas;
    if (ui->frozen && ui->still)
        return; /* the canvas holds the picture */
    ui->still = ui->frozen;
    ui->now = now;
    if (!ui->shown_at)
        ui->shown_at = now;
    ui->drawn_figures = ui->model->figures_rev;
    ui->moved = false;
    ui->hidden = ui->tiny;
    canvas_erase(c, ROLE_TEXT);
    if (c->h < 1 || c->w < 1)
        return;
    if (ui->tiny) {
        canvas_textf(c, c->h / 2, 0, c->w, ROLE_STATUS_WARN, "needs %dx%d or more", UI_MIN_W, UI_MIN_H);
        canvas_text(c, c->h / 2 + 1, 0, c->w, ROLE_STATUS_WARN, ui_keys(ui, "{quit} twice quits"));
        return;
    }
    if (ui->bare) {
        draw_bare(ui);
        return;
    }
    draw_header(ui);
    draw_panes(ui);
    draw_hints(ui, c->h - 2);
    ui_draw_status(ui, c->h - 1);
    for (int i = 0, top = ui_header_rows(ui); i < ui->n_overlays; i++) {
        c->cursor_y = c->cursor_x = -1;
        ui->overlays[i].ops->draw(ui, ui->overlays[i].state, c,
                                  (struct rect){top, 0, c->h - 2 - top, c->w}, now);
    }
}
