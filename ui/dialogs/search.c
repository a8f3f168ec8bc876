/* Search in all that was ever said: what is typed is looked for at once, newest first;
 * Enter goes there. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/text/width.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HITS = 200, WORDS_BYTES = 400 };

struct search {
    struct inputline words;
    uint64_t req;      /* of the newest question, 0 = none */
    uint64_t seen_rev; /* of the model's hits */
    size_t at, top, page;
};

/* The answer to the newest question, or to the one before while that is under way. */
static const struct ev_hits *hits_of(struct ui *ui, const struct search *s)
{
    return s->words.text.len && s->req ? ui->model->hits : NULL;
}

static size_t count(struct ui *ui, const struct search *s)
{
    const struct ev_hits *h = hits_of(ui, s);

    return h ? h->n : 0;
}

static void ask(struct ui *ui, struct search *s)
{
    s->req = app_search(ui->app, inputline_text(&s->words), 0, HITS, 0, false);
}

static void search_close(void *state)
{
    struct search *s = state;

    inputline_release(&s->words);
    free(s);
}

static bool search_update(struct ui *ui, void *state)
{
    struct search *s = state;
    const struct ev_hits *h = ui->model->hits;

    if (s->seen_rev == ui->model->hits_rev)
        return false;
    s->seen_rev = ui->model->hits_rev;
    if (h && h->m.req_id == s->req && !h->complete)
        ask(ui, s); /* the index has got further meanwhile */
    if (s->at >= count(ui, s))
        s->at = count(ui, s) ? count(ui, s) - 1 : 0;
    return true;
}

/* --- drawing ------------------------------------------------------------------------ */

static void draw_text(struct canvas *c, int y, int x, int max, const char *text, bool here)
{
    enum theme_role role = here ? ROLE_CURSOR : ROLE_DIALOG;

    for (const char *s = text; *s && max > 0;) {
        bool match = *s == 2;
        size_t len = strcspn(s + (match || *s == 3), "\x02\x03\n");
        int used;

        s += match || *s == 3;
        used = canvas_textn(c, y, x, max, match ? ROLE_MATCH : role, s, len);
        s += len;
        if (*s == '\n') {
            s++;
            used += canvas_text(c, y, x + used, max - used, role, " ");
        }
        x += used;
        max -= used;
    }
}

static void draw_hit(struct canvas *c, struct rect r, const struct found *f, bool here)
{
    char when[32];
    time_t t = (time_t)(f->time_ms / 1000);
    struct tm tm;
    enum theme_role role = here ? ROLE_CURSOR : ROLE_DIALOG;
    int used;

    localtime_r(&t, &tm);
    strftime(when, sizeof(when), r.w >= 100 ? "%Y-%m-%d %H:%M " : "%m-%d %H:%M ", &tm);
    canvas_fill(c, r, role, " ");
    used = canvas_text(c, r.y, r.x, r.w, role, when);
    used += canvas_textf(c, r.y, r.x + used, 14, role, "%-13.13s ", f->name ? f->name : "-");
    used += canvas_textf(c, r.y, r.x + used, 7, role, "%-5.5s ", f->who);
    draw_text(c, r.y, r.x + used, r.w - used, f->text, here);
}

static void draw_foot(struct ui *ui, struct canvas *c, struct rect r, const struct search *s)
{
    const struct ev_hits *h = hits_of(ui, s);
    const char *text = "words, \"a phrase\", -without, in:NAME";

    if (h && !h->n)
        text = h->complete ? "nothing was said like that" : "looking: the index is being made";
    else if (h && !h->complete)
        text = "the index is being made: older places may be missing";
    else if (h && h->more)
        text = "the newest places; more words find older ones";
    canvas_text(c, r.y, r.x, r.w, ROLE_HINT, text);
}

static void search_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                        int64_t now)
{
    struct search *s = state;
    const struct ev_hits *h = hits_of(ui, s);
    int w = screen.w < 140 ? screen.w : 140, height = screen.h < 40 ? screen.h : 40;
    struct rect in = box_draw(c, screen, height, w, "search what was said",
                              ui_keys(ui, "{take-line} go there\t{leave-line} close"));
    int x = in.x + canvas_text(c, in.y, in.x, -1, ROLE_PROMPT, "> ");

    (void)now;
    inputline_draw(&s->words, c, (struct rect){in.y, x, 1, in.w - 2}, ROLE_INPUT, true);
    s->page = in.h > 3 ? (size_t)in.h - 3 : 1;
    s->top = box_first_row(s->top, s->at, s->page);
    for (size_t i = 0; h && i < s->page && s->top + i < h->n; i++)
        draw_hit(c, (struct rect){in.y + 2 + (int)i, in.x, 1, in.w}, &h->v[s->top + i],
                 s->top + i == s->at);
    if (in.h > 2)
        draw_foot(ui, c, (struct rect){in.y + in.h - 1, in.x, 1, in.w}, s);
}

/* --- keys --------------------------------------------------------------------------- */

static int go_there(struct ui *ui, const struct search *s)
{
    const struct ev_hits *h = hits_of(ui, s);
    const struct found *f = h && s->at < h->n ? &h->v[s->at] : NULL;

    if (!f)
        return UI_HANDLED;
    if (!model_sandbox(ui->model, f->sandbox)) {
        ui_status(ui, 1, "%s is not in the list of this account: 'cc-tui export' has its transcript",
                  f->name ? f->name : "that sandbox");
        return UI_HANDLED;
    }
    ui_select(ui, f->sandbox);
    ui_focus(ui, PANE_OUTPUT);
    output_go_to(ui, f->sandbox, f->offset, f->index);
    return UI_HANDLED | UI_CLOSE | UI_LAYOUT;
}

static int search_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct search *s = state;
    size_t n = count(ui, s);

    switch (ui->found) {
    case ACT_LEAVE_LINE:
        return UI_CLOSE;
    case ACT_TAKE_LINE:
        return go_there(ui, s);
    case ACT_LINE_DOWN:
        s->at += s->at + 1 < n;
        return UI_HANDLED;
    case ACT_LINE_UP:
        s->at -= s->at > 0;
        return UI_HANDLED;
    case ACT_LINE_PGDN:
        s->at = s->at + s->page < n ? s->at + s->page : n ? n - 1 : 0;
        return UI_HANDLED;
    case ACT_LINE_PGUP:
        s->at = s->at > s->page ? s->at - s->page : 0;
        return UI_HANDLED;
    default:
        break;
    }
    if (!ui_line_key(ui, &s->words, k, paste, len))
        return UI_HANDLED;
    s->at = s->top = 0;
    ask(ui, s);
    return UI_HANDLED;
}

static const struct overlay_ops search_ops = {
    .name = "search", .scope = SCOPE_ASK, .close = search_close, .update = search_update,
    .draw = search_draw, .key = search_key, .takes_paste = true};

void overlay_search(struct ui *ui)
{
    struct search *s = xcalloc(1, sizeof(*s));

    inputline_init(&s->words, false, WORDS_BYTES);
    s->seen_rev = ui->model->hits_rev;
    ui_overlay_push(ui, &search_ops, s);
}
