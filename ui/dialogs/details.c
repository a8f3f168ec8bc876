/* The details of a sandbox in a box; any key closes it. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

enum { BOX_CELLS = 72 };

struct details {
    uint64_t sandbox; /* the text is made anew at each drawing */
    int scroll, page; /* page 0: all of it is seen */
    uint64_t seen;    /* figures */
};

static void box_close(void *state)
{
    free(state);
}

static void box_show(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                     int64_t now)
{
    struct details *b = state;
    struct buf text = BUF_INIT;
    const struct sandbox *s = model_sandbox(ui->model, b->sandbox);
    if (s)
        details_text(ui, s, &text, now);
    else
        buf_adds(&text, "it is gone");
    while (text.len && text.p[text.len - 1] == '\n')
        buf_truncate(&text, text.len - 1);
    int w = screen.w < BOX_CELLS ? screen.w : BOX_CELLS;
    int rows = box_text_rows(buf_str(&text), w - 4);
    bool all = rows + 2 <= screen.h;
    struct rect in = box_draw(c, screen, rows + 4, w, "details",
                              all ? "any key closes"
                                  : ui_keys(ui, "{box-down} {box-up} scroll\t{close} close"));
    if (in.h >= rows + 2) { /* air above and below, where there is room */
        in.y++;
        in.h -= 2;
    }
    int most = rows > in.h ? rows - in.h : 0;
    b->scroll = b->scroll > most ? most : b->scroll < 0 ? 0 : b->scroll;
    b->page = most ? in.h : 0;
    struct rect old = canvas_clip(c, in);
    box_text(c, (struct rect){in.y - b->scroll, in.x, rows, in.w}, ROLE_DIALOG, buf_str(&text));
    canvas_unclip(c, old);
    buf_release(&text);
}

static int box_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct details *b = state;
    int by = ui->found == ACT_BOX_DOWN   ? 1
             : ui->found == ACT_BOX_UP   ? -1
             : ui->found == ACT_BOX_PGDN ? b->page
             : ui->found == ACT_BOX_PGUP ? -b->page
                                         : 0;
    (void)k;
    (void)paste;
    (void)len;
    if (!b->page || !by)
        return UI_CLOSE;
    b->scroll += by;
    return UI_HANDLED;
}

/* Who opened it watches: here figures come at once. */
static bool box_update(struct ui *ui, void *state)
{
    struct details *b = state;
    bool changed = b->seen != ui->model->figures_rev;
    b->seen = ui->model->figures_rev;
    return changed;
}

static const struct overlay_ops box_ops = {
    .name = "details", .scope = SCOPE_DIALOG, .close = box_close, .update = box_update,
    .draw = box_show,
    .key = box_key};

void overlay_details(struct ui *ui, uint64_t sandbox)
{
    struct details *b = xcalloc(1, sizeof(*b));
    b->sandbox = sandbox;
    b->seen = ui->model->figures_rev;
    ui_overlay_push(ui, &box_ops, b);
}
