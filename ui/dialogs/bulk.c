/* What can be done to all marked sandboxes at once. Each line says to how many of them it
 * applies; what destroys asks again. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum bulk_item { IT_BROADCAST, IT_INTERRUPT, IT_PAUSE, IT_RESUME, IT_TIME, IT_KILL, IT_FORGET,
            IT_UNMARK, IT_COUNT };
enum { BULK_CELLS = 62 };

static const struct {
    enum action key; /* whose key of the list does it */
    const char *text, *doing;
} items[IT_COUNT] = {
    [IT_BROADCAST] = {ACT_BULK, "broadcast a message", NULL},
    [IT_INTERRUPT] = {ACT_INTERRUPT, "interrupt the agent", "interrupting"},
    [IT_PAUSE] = {ACT_PAUSE, "pause", "pausing"},
    [IT_RESUME] = {ACT_RESUME, "resume; restart a dead agent", "resuming"},
    [IT_TIME] = {ACT_SET_TIME, "set the time left", NULL},
    [IT_KILL] = {ACT_KILL, "kill (asks)", NULL},
    [IT_FORGET] = {ACT_FORGET, "take ended rows off the list", "taking off"},
    [IT_UNMARK] = {ACT_UNMARK_ALL, "unmark all", NULL},
};

struct bulk {
    ARR(uint64_t) ids; /* of the marks, or the cursor's row */
    enum bulk_item at;
};

static bool is_up(const struct sandbox *s)
{
    return s->state == SB_RUNNING || (s->state == SB_ERROR && s->vm_up);
}

static bool applies(enum bulk_item it, const struct sandbox *s)
{
    switch (it) {
    case IT_BROADCAST:
        return s->session && !s->foreign && (is_up(s) || s->state == SB_CREATING);
    case IT_INTERRUPT:
        return is_up(s) && (s->agent == AG_WORKING || s->agent == AG_ASKS);
    case IT_PAUSE:
        return is_up(s);
    case IT_RESUME:
        return s->state == SB_PAUSED || (s->session && s->state == SB_ERROR && s->vm_up);
    case IT_TIME:
        return is_up(s);
    case IT_KILL:
        return s->state != SB_KILLED && (s->state != SB_ERROR || s->vm_up);
    case IT_FORGET:
        return s->state == SB_KILLED || (s->state == SB_ERROR && !s->vm_up);
    default:
        return true;
    }
}

/* Those that it applies to, in `to`. */
static size_t pick(const struct ui *ui, const struct bulk *b, enum bulk_item it, uint64_t *to)
{
    size_t n = 0;
    for (size_t i = 0; i < b->ids.n; i++) {
        const struct sandbox *s = model_sandbox(ui->model, b->ids.v[i]);
        if (s && applies(it, s))
            to[n++] = s->id;
    }
    return n;
}

static void act(struct ui *ui, enum bulk_item it, uint64_t id)
{
    const struct sandbox *s = model_sandbox(ui->model, id);
    switch (it) {
    case IT_INTERRUPT:
        app_interrupt(ui->app, id);
        break;
    case IT_PAUSE:
        app_pause(ui->app, id);
        break;
    case IT_RESUME:
        if (s->state == SB_PAUSED)
            app_resume(ui->app, id, 0);
        else
            app_restart_agent(ui->app, id);
        break;
    default:
        app_forget(ui->app, id);
        break;
    }
}

static void go(struct ui *ui, const struct bulk *b, enum bulk_item it)
{
    uint64_t *to = xcalloc(b->ids.n + 1, sizeof(*to));
    size_t n = pick(ui, b, it, to);
    char names[160];
    marks_names(ui, to, n, names, sizeof(names));
    if (it == IT_UNMARK)
        marks_clear(ui);
    else if (!n)
        ui_status(ui, 0, "nothing was done: none of them can do that now");
    else if (it == IT_BROADCAST)
        overlay_broadcast(ui, b->ids.v, b->ids.n);
    else if (it == IT_TIME)
        overlay_time_several(ui, to, n);
    else if (it == IT_KILL)
        overlay_kill_several(ui, to, n);
    else {
        ui_status(ui, 0, "%s %zu: %s", items[it].doing, n, names);
        for (size_t i = 0; i < n; i++)
            act(ui, it, to[i]);
    }
    free(to);
}

static void bulk_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                      int64_t now)
{
    struct bulk *b = state;
    char names[240], title[48];
    int w = screen.w < BULK_CELLS ? screen.w : BULK_CELLS;
    uint64_t *to = xcalloc(b->ids.n + 1, sizeof(*to));
    (void)now;
    marks_names(ui, b->ids.v, b->ids.n, names, sizeof(names));
    int head = box_text_rows(names, w - 4), room = screen.h - 3 - IT_COUNT;
    head = head < 1 ? 1 : head > room ? (room > 0 ? room : 0) : head;
    if (ui->marks.n)
        snprintf(title, sizeof(title), "%zu marked sandbox%s", b->ids.n,
                 b->ids.n == 1 ? "" : "es");
    else
        snprintf(title, sizeof(title), "this sandbox (none is marked)");
    struct rect in = box_draw(c, screen, head + 1 + IT_COUNT + 2, w, title, ui_keys(ui, "{close} cancel"));
    struct rect old = canvas_clip(c, in);
    box_text(c, (struct rect){in.y, in.x, head, in.w}, ROLE_DIALOG, names);
    /* on a low screen the line at hand is kept in view */
    int first = in.y + head + (in.h > head + IT_COUNT), rows = in.y + in.h - first;
    int skip = (int)b->at >= rows ? (int)b->at - rows + 1 : 0;
    for (int i = skip; i < IT_COUNT; i++) {
        size_t n = pick(ui, b, (enum bulk_item)i, to);
        bool here = (int)b->at == i;
        enum theme_role role = here ? ROLE_FIELD_FOCUS : n ? ROLE_DIALOG : ROLE_DIM;
        int y = first + i - skip, x = in.x;
        const char *keys = keymap_keys(ui->keys, items[i].key);
        canvas_textf(c, y, x, in.w, role, "%-6.*s %-30s", (int)strcspn(keys, " "), keys, items[i].text);
        if (i != IT_UNMARK)
            canvas_textf(c, y, x + 38, in.w - 38, n ? ROLE_DIALOG : ROLE_DIM, "%zu of %zu", n,
                         b->ids.n);
    }
    canvas_unclip(c, old);
    free(to);
}

static int do_it(struct ui *ui, struct bulk *b, enum bulk_item it)
{
    go(ui, b, it);
    return UI_CLOSE;
}

static int bulk_action(struct ui *ui, void *state, enum action a)
{
    struct bulk *b = state;
    switch (a) {
    case ACT_CLOSE:
        return UI_CLOSE;
    case ACT_BOX_DOWN:
        b->at = (enum bulk_item)((b->at + 1) % IT_COUNT);
        return UI_HANDLED;
    case ACT_BOX_UP:
        b->at = (enum bulk_item)((b->at + IT_COUNT - 1) % IT_COUNT);
        return UI_HANDLED;
    case ACT_CHOOSE:
        return do_it(ui, b, b->at);
    default:
        return UI_HANDLED;
    }
}

/* What the key does in the list, to all of them. */
static int bulk_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    bool pending;
    enum action a = keymap_find(ui->keys, SCOPE_LIST, k, &pending);
    (void)paste;
    (void)len;
    keymap_reset(ui->keys);
    for (int i = 0; a && i < IT_COUNT; i++)
        if (items[i].key == a)
            return do_it(ui, state, (enum bulk_item)i);
    return UI_HANDLED;
}

static void bulk_close(void *state)
{
    struct bulk *b = state;
    ARR_RELEASE(&b->ids);
    free(b);
}

static const struct overlay_ops bulk_ops = {
    .name = "bulk", .scope = SCOPE_DIALOG, .close = bulk_close, .draw = bulk_draw,
    .action = bulk_action, .key = bulk_key};

void overlay_bulk(struct ui *ui)
{
    struct bulk *b = xcalloc(1, sizeof(*b));
    for (size_t i = 0; i < ui->marks.n; i++)
        *ARR_PUSH(&b->ids) = ui->marks.v[i];
    if (!b->ids.n && ui->selected)
        *ARR_PUSH(&b->ids) = ui->selected;
    ui_overlay_push(ui, &bulk_ops, b);
}
