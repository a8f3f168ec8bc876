/* Help, drawn from the live key table; / finds a key or a word. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/util/arr.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct help_row {
    const char *left;
    const char *right;
    const char *was; /* keys before the configuration changed them, or NULL */
    bool head;
};
struct help {
    ARR(struct help_row) rows;
    int top, page;
    bool finding;
    enum key_scope here; /* of the pane that was focused */
    struct inputline find;
};

static void add_row(struct help *h, bool head, const char *left, const char *right)
{
    struct help_row *r = ARR_PUSH(&h->rows);
    r->left = left;
    r->right = right;
    r->head = head;
}

static bool wanted(const struct help *h, const char *keys, const char *help)
{
    const char *f = h->find.text.len ? h->find.text.p : "";
    return !*f || strcasestr(keys, f) || strcasestr(help, f);
}

static void add_scope(struct ui *ui, struct help *h, enum key_scope scope)
{
    bool head = false;
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
        const char *keys = keymap_keys(ui->keys, (enum action)a);
        if (action_scope((enum action)a) != scope || !*keys ||
            !wanted(h, keys, action_help((enum action)a)))
            continue;
        if (!head)
            add_row(h, true, scope_head(scope), "");
        head = true;
        add_row(h, false, keys, action_help((enum action)a));
    }
}

/* Where you are comes first, then whose keys count there as well. */
static void fill(struct ui *ui, struct help *h)
{
    ARR_CLEAR(&h->rows);
    for (enum key_scope s = h->here; s != SCOPE_NONE; s = scope_under(s))
        add_scope(ui, h, s);
    for (int s = 0; s < SCOPE_COUNT; s++)
        if (!scope_counts(h->here, (enum key_scope)s))
            add_scope(ui, h, (enum key_scope)s);
    bool changed = false;
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
        const char *keys = keymap_keys(ui->keys, (enum action)a), *was = action_keys((enum action)a);
        if (strcmp(keys, was) == 0 || !wanted(h, keys, action_name((enum action)a)))
            continue;
        if (!changed)
            add_row(h, true, "CHANGED BY YOU", "");
        changed = true;
        add_row(h, false, *keys ? keys : "(none)", action_name((enum action)a));
        h->rows.v[h->rows.n - 1].was = was;
    }
    if (!h->find.text.len) {
        add_row(h, true, "SIGNS", "");
        add_row(h, false, "~ creating", "our request is under way");
        add_row(h, false, "* working", "the agent works");
        add_row(h, false, "? asks you", "the agent waits for your answer");
        add_row(h, false, ". idle", "the agent waits for a message");
        add_row(h, false, "= paused", "state kept, costs nothing");
        add_row(h, false, "! error", "the reason stands in the last column");
        add_row(h, false, "x killed", "ended: by you, by its timeout, or elsewhere");
    }
}

static void help_close(void *state)
{
    struct help *h = state;
    ARR_RELEASE(&h->rows);
    inputline_release(&h->find);
    free(h);
}

static void help_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                      int64_t now)
{
    struct help *h = state;
    (void)now;
    fill(ui, h);
    int w = screen.w < 74 ? screen.w : 74, rows = (int)h->rows.n;
    struct rect in = box_draw(c, screen, rows + 3, w, "help",
                              ui_keys(ui, "{search} find\t{back} close"));
    h->page = in.h - 1;
    int most = rows > h->page ? rows - h->page : 0;
    h->top = h->top > most ? most : h->top < 0 ? 0 : h->top;
    for (int y = 0; y < h->page && h->top + y < rows; y++) {
        const struct help_row *r = &h->rows.v[h->top + y];
        int left = in.w >= 60 ? 18 : 14;
        canvas_text(c, in.y + y, in.x, r->head ? in.w : left, r->head ? ROLE_TITLE : ROLE_PROMPT, r->left);
        int used = canvas_text(c, in.y + y, in.x + left + 1, in.w - left - 1, ROLE_DIALOG, r->right);
        if (r->was)
            canvas_textf(c, in.y + y, in.x + left + 2 + used, in.w - left - used - 2, ROLE_HINT,
                         "(was %s)", r->was);
    }
    int y = in.y + in.h - 1;
    if (h->finding || h->find.text.len) {
        int x = in.x + canvas_text(c, y, in.x, -1, ROLE_PROMPT, "/");
        inputline_draw(&h->find, c, (struct rect){y, x, 1, in.w - 1}, ROLE_INPUT, h->finding);
    } else if (most) {
        canvas_text(c, y, in.x, in.w, ROLE_HINT,
                    ui_keys(ui, "{down} {up} scroll, rows %d to %d of %d", h->top + 1,
                            h->top + h->page, rows));
    }
}

static int help_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct help *h = state;
    if (!h->finding)
        return UI_HANDLED;
    ui_line_key(ui, &h->find, k, paste, len);
    h->top = 0;
    return UI_HANDLED;
}

/* Esc ends the search first. */
static int back(struct help *h)
{
    if (!h->find.text.len && !h->finding)
        return UI_CLOSE;
    h->finding = false;
    inputline_set(&h->find, "");
    return UI_HANDLED;
}

static int help_action(struct ui *ui, void *state, enum action a)
{
    struct help *h = state;
    (void)ui;
    switch (a) {
    case ACT_DOWN:
    case ACT_LINE_DOWN:
        h->top++;
        break;
    case ACT_UP:
    case ACT_LINE_UP:
        h->top--;
        break;
    case ACT_PAGE_DOWN:
    case ACT_HALF_DOWN:
    case ACT_LINE_PGDN:
        h->top += h->page;
        break;
    case ACT_PAGE_UP:
    case ACT_HALF_UP:
    case ACT_LINE_PGUP:
        h->top -= h->page;
        break;
    case ACT_TOP:
        h->top = 0;
        break;
    case ACT_BOTTOM:
        h->top = (int)h->rows.n;
        break;
    case ACT_SEARCH:
        h->finding = true;
        break;
    case ACT_TAKE_LINE:
        h->finding = false;
        break;
    case ACT_LEAVE_LINE:
    case ACT_BACK:
    case ACT_BACK_TWICE:
        return back(h);
    case ACT_QUIT:
    case ACT_HELP:
        return UI_CLOSE;
    default:
        return UI_IGNORED;
    }
    return UI_HANDLED;
}

/* It is looked at like a pane. */
static enum key_scope help_scope(void *state)
{
    const struct help *h = state;
    return h->finding ? SCOPE_ASK : SCOPE_NAV;
}

static const char *help_hints(struct ui *ui, void *state)
{
    const struct help *h = state;
    return h->finding ? ui_keys(ui, " {take-line} keep it  {leave-line} leave")
                      : ui_keys(ui, " {down} {up} scroll  {page-down} page  {search} find  {back} close");
}

static const struct overlay_ops help_ops = {
    .name = "help", .mode = "HELP", .scope = SCOPE_NAV, .scope_now = help_scope,
    .close = help_close, .draw = help_draw, .action = help_action, .key = help_key,
    .takes_paste = true, .hints = help_hints};

void overlay_help(struct ui *ui)
{
    struct help *h = xcalloc(1, sizeof(*h));
    h->here = ui->opts.replay ? SCOPE_REPLAY : ui_scope(ui, ui->focus);
    inputline_init(&h->find, false, 64);
    ui_overlay_push(ui, &help_ops, h);
}
