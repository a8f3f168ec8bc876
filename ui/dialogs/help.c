/* Help, drawn from the live key table; / finds a key or a word. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/util/arr.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct help_row {
    char left[20];
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
    snprintf(r->left, sizeof(r->left), "%s", left);
    r->right = right;
    r->head = head;
}

static bool wanted(const struct help *h, const char *keys, const char *help)
{
    const char *f = h->find.text.len ? h->find.text.p : "";
    return !*f || strcasestr(keys, f) || strcasestr(help, f);
}

static void fill(struct ui *ui, struct help *h)
{
    ARR_CLEAR(&h->rows);
    for (int k = -1; k < SCOPE_COUNT; k++) {
        int scope = k < 0 ? (int)h->here : k; /* where you are comes first */
        bool head = false;
        if (k == (int)h->here)
            continue;
        for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
            const char *keys = keymap_keys(ui->keys, (enum action)a);
            if ((int)action_scope((enum action)a) != scope || !*keys ||
                !wanted(h, keys, action_help((enum action)a)))
                continue;
            if (!head)
                add_row(h, true, scope_head((enum key_scope)scope), "");
            head = true;
            add_row(h, false, keys, action_help((enum action)a));
        }
    }
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
    struct rect in = box_draw(c, screen, rows + 3, w, "help", "/ find\tEsc close");
    h->page = in.h - 1;
    int most = rows > h->page ? rows - h->page : 0;
    h->top = h->top > most ? most : h->top < 0 ? 0 : h->top;
    for (int y = 0; y < h->page && h->top + y < rows; y++) {
        const struct help_row *r = &h->rows.v[h->top + y];
        int left = in.w >= 60 ? 18 : 14;
        canvas_text(c, in.y + y, in.x, left, r->head ? ROLE_TITLE : ROLE_PROMPT, r->left);
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
        canvas_textf(c, y, in.x, in.w, ROLE_HINT, "j k scroll, rows %d to %d of %d", h->top + 1,
                     h->top + h->page, rows);
    }
}

static int find_key(struct help *h, key_code k)
{
    if (k == K_ENTER) {
        h->finding = false;
    } else if (k == K_ESC) {
        h->finding = false;
        inputline_set(&h->find, "");
    } else {
        inputline_key(&h->find, k);
        h->top = 0;
    }
    return UI_HANDLED;
}

static int help_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct help *h = state;
    bool pending;
    (void)paste;
    (void)len;
    if (h->finding)
        return find_key(h, k);
    switch (keymap_find(ui->keys, SCOPE_NAV, k, &pending)) {
    case ACT_DOWN:
        h->top++;
        break;
    case ACT_UP:
        h->top--;
        break;
    case ACT_PAGE_DOWN:
    case ACT_HALF_DOWN:
        h->top += h->page;
        break;
    case ACT_PAGE_UP:
    case ACT_HALF_UP:
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
    case ACT_BACK:
        if (!h->find.text.len)
            return UI_CLOSE;
        inputline_set(&h->find, "");
        break;
    case ACT_QUIT:
    case ACT_HELP:
        return UI_CLOSE;
    default:
        break;
    }
    return UI_HANDLED;
}

static const struct overlay_ops help_ops = {
    .name = "help", .mode = "HELP", .scope = SCOPE_DIALOG, .close = help_close, .draw = help_draw,
    .key = help_key};

void overlay_help(struct ui *ui)
{
    struct help *h = xcalloc(1, sizeof(*h));
    h->here = ui->panes[ui->focus].ops->scope;
    inputline_init(&h->find, false, 64);
    ui_overlay_push(ui, &help_ops, h);
}
