/* The log of a build: followed while it is looked at, by levels, searched; of a failed one the
 * step that failed and its last lines stay at the foot. */
#include "builds_priv.h"

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEPT = 5000, TIME_W = 9, PIN_MOST = 22 };

struct line {
    int64_t time_ms;
    char *text;       /* cleaned, one line */
    bool head, warn;  /* a phase begins; a warning or an error */
};
struct build_log {
    uint64_t of, req; /* build; the request that follows it */
    ARR(struct line) v;
    size_t dropped;
    size_t back;      /* rows scrolled up from the end */
    bool only_warn, ended;
    int page;
    struct inputline find;
    bool finding;
    char *pattern;
    char title[160], note[80];
    uint64_t rev, seen;
};

static struct build_log *log_of(struct ui *ui)
{
    return ui->panes[PANE_BUILD_LOG].state;
}

static void *log_open(struct ui *ui)
{
    struct build_log *l = xcalloc(1, sizeof(*l));

    (void)ui;
    inputline_init(&l->find, false, 200);
    return l;
}

static void drop_lines(struct build_log *l)
{
    for (size_t i = 0; i < l->v.n; i++)
        free(l->v.v[i].text);
    l->v.n = 0;
    l->dropped = 0;
    l->back = 0;
    l->ended = false;
}

static void log_close(void *state)
{
    struct build_log *l = state;

    drop_lines(l);
    ARR_RELEASE(&l->v);
    inputline_release(&l->find);
    free(l->pattern);
    free(l);
}

/* --- lines ------------------------------------------------------------------------------ */

static bool shown(const struct build_log *l, const struct line *v)
{
    return v->warn || !l->only_warn;
}

static void add_text(struct build_log *l, const struct cJSON *j, const char *phase)
{
    const char *level = json_str(j, "level", "");
    struct line *v;
    char *text = phase ? xasprintf("%s  %s%s", phase, json_bool(j, "cached", false) ? "(cached) " : "",
                                   json_str(j, "title", ""))
                       : xstrdup(tbuild_output(json_str(j, "message", "")));

    if (l->v.n >= KEPT) {
        free(l->v.v[0].text);
        ARR_REMOVE(&l->v, 0);
        l->dropped++;
    }
    v = ARR_PUSH(&l->v);
    v->text = clean_line_dup(text, 0);
    v->head = phase != NULL;
    v->warn = str_eq(level, "warn") || str_eq(level, "error");
    clock_parse_rfc3339(json_str(j, "timestamp", ""), &v->time_ms);
    if (l->back && shown(l, v))
        l->back++; /* what is looked at stays where it is */
    free(text);
}

static void take_line(struct build_log *l, const char *line, size_t len)
{
    struct cJSON *j = json_parse(line, len, NULL);

    if (str_eq(json_str(j, "type", ""), "log"))
        add_text(l, j, json_str(j, "phase", NULL));
    else if (json_str(j, "end", NULL))
        l->ended = true;
    json_free(j);
}

static void on_lines(void *ctx, const char *json, size_t len)
{
    struct build_log *l = ctx;
    const char *nl;

    for (; len && (nl = memchr(json, '\n', len)); json = nl + 1) {
        take_line(l, json, (size_t)(nl - json));
        len -= (size_t)(nl + 1 - json);
    }
    l->rev++;
}

void build_log_leave(struct ui *ui)
{
    struct build_log *l = log_of(ui);

    if (l->req && !l->ended)
        app_build_unfollow(ui->app, l->req);
    l->req = 0;
    l->of = 0;
}

void build_log_of(struct ui *ui, const struct tbuild *b)
{
    struct build_log *l = log_of(ui);
    char *which;

    if (b && l->of == b->id && (l->req || !b->build_id))
        return;
    build_log_leave(ui);
    drop_lines(l);
    l->of = b ? b->id : 0;
    if (!b || !b->template_id || !b->build_id)
        return;
    which = xasprintf("%s:%s", b->template_id, b->build_id);
    l->req = app_build_follow(ui->app, which, on_lines, l);
    free(which);
}

bool builds_done(struct ui *ui, const struct ev_done *d)
{
    struct build_log *l = log_of(ui);

    if (!l->req || d->m.req_id != l->req)
        return false;
    l->ended = true; /* how, stands in its row */
    l->rev++;
    return true;
}

/* --- export ------------------------------------------------------------------------------- */

void build_log_export(struct ui *ui)
{
    struct build_log *l = log_of(ui);
    const struct tbuild *b = model_build(ui->model, l->of);
    time_t now = (time_t)(ui->now / 1000);
    struct buf text = BUF_INIT;
    char day[32], *name;
    struct tm tm;

    if (!b || !l->v.n) {
        ui_status(ui, 0, "there is no log here to write");
        return;
    }
    gmtime_r(&now, &tm);
    strftime(day, sizeof(day), "%Y%m%d-%H%M%S", &tm);
    for (size_t i = 0; i < l->v.n; i++) {
        char at[32] = "-";

        if (l->v.v[i].time_ms)
            clock_format_rfc3339(at, sizeof(at), l->v.v[i].time_ms);
        buf_addf(&text, "%s %s%s\n", at, l->v.v[i].head ? "" : "  ", l->v.v[i].text);
    }
    name = xasprintf("cc-tui-build-%.*s-%s.log", (int)strcspn(b->name, ":"), b->name, day);
    ui->export_req = app_build_export(ui->app, name, buf_str(&text));
    ui_status(ui, 0, "writing %s", name);
    buf_release(&text);
    free(name);
}

/* --- drawing -------------------------------------------------------------------------------- */

static size_t count_shown(const struct build_log *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->v.n; i++)
        n += shown(l, &l->v.v[i]);
    return n;
}

static void draw_line(const struct build_log *l, const struct line *v, struct canvas *c, int y,
                      struct rect r)
{
    enum theme_role role = v->warn ? ROLE_NOTICE : v->head ? ROLE_TITLE : ROLE_TEXT;
    int x = r.x + TIME_W + (v->head ? 0 : 2);
    const char *hit = l->pattern ? strcasestr(v->text, l->pattern) : NULL;
    char at[16] = "";

    if (v->time_ms)
        clock_format_hms(at, sizeof(at), v->time_ms);
    canvas_text(c, y, r.x, TIME_W - 1, ROLE_HINT, at);
    canvas_text(c, y, x, r.x + r.w - x, role, v->text);
    if (hit) {
        int before = canvas_textn(c, y, x, r.x + r.w - x, role, v->text, (size_t)(hit - v->text));

        canvas_textn(c, y, x + before, r.x + r.w - x - before, ROLE_MATCH, hit, strlen(l->pattern));
    }
}

/* Of a failed build: the step, why, and its last lines. Rows used at the foot. */
static int draw_pinned(const struct tbuild *b, struct canvas *c, struct rect r)
{
    const char *line[PIN_MOST], *p = b->tail ? b->tail : "";
    int n = 0, most = r.h * 2 / 3 - 1, y;

    if (b->state != TB_ERROR || r.h < 4)
        return 0;
    for (; *p && n < PIN_MOST; p += strcspn(p, "\n"), p += *p == '\n')
        line[n++] = p;
    most = n < most ? n : most;
    y = r.y + r.h - most - 1;
    canvas_rule(c, y, r.x, r.w, ROLE_ERROR, b->phase ? b->phase : "failed", NULL, false);
    canvas_textf(c, y, r.x + 4 + (int)strlen(b->phase ? b->phase : "failed"), r.w, ROLE_ERROR, " %s ",
                 b->error ? b->error : "");
    for (int i = 0; i < most; i++)
        canvas_textn(c, y + 1 + i, r.x + 2, r.w - 2, ROLE_TEXT, line[n - most + i],
                     strcspn(line[n - most + i], "\n"));
    return most + 1;
}

static const char *instead(const struct build_log *l, const struct tbuild *b)
{
    if (!b)
        return "builds that were begun here have their log here";
    if (b->state == TB_CANCELLED && !l->v.n)
        return b->error ? b->error : "called off";
    if (l->v.n || b->state == TB_ERROR)
        return NULL;
    return l->req ? "nothing in the log yet" : "the service has not begun with it";
}

static void log_draw(struct ui *ui, void *state, struct canvas *c, struct rect r, bool focused,
                     int64_t now)
{
    struct build_log *l = state;
    const struct tbuild *b = model_build(ui->model, l->of);
    struct rect old = canvas_clip(c, r);
    const char *say = instead(l, b);
    size_t n = count_shown(l), skip;
    int y, rows;

    (void)now;
    rows = r.h - (b ? draw_pinned(b, c, r) : 0) - l->finding;
    rows = rows > 0 ? rows : 0;
    l->page = rows > 0 ? rows : 1;
    if (l->back + (size_t)rows > n)
        l->back = n > (size_t)rows ? n - (size_t)rows : 0;
    skip = n - l->back > (size_t)rows ? n - l->back - (size_t)rows : 0;
    y = r.y;
    for (size_t i = 0; i < l->v.n && y < r.y + rows; i++) {
        if (!shown(l, &l->v.v[i]))
            continue;
        if (skip) {
            skip--;
            continue;
        }
        draw_line(l, &l->v.v[i], c, y++, r);
    }
    if (say)
        canvas_text(c, r.y, r.x + 2, r.w - 3, ROLE_HINT, say);
    if (l->finding) {
        y = r.y + rows;
        canvas_fill(c, (struct rect){y, r.x, 1, r.w}, ROLE_TEXT, " ");
        y = canvas_text(c, y, r.x + 1, -1, ROLE_PROMPT, "find: ") + 1;
        inputline_draw(&l->find, c, (struct rect){r.y + rows, r.x + y, 1, r.w - y}, ROLE_INPUT, focused);
    }
    canvas_unclip(c, old);
}

static bool log_update(struct ui *ui, void *state)
{
    struct build_log *l = state;
    uint64_t rev = l->rev + ui->model->builds_rev;
    bool changed = rev != l->seen;

    l->seen = rev;
    return changed;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* The next line with the pattern, up (older) or down from the lowest one that is seen. */
static void find(struct ui *ui, struct build_log *l, bool up)
{
    size_t n = count_shown(l), at = 0, low = n - l->back, best = SIZE_MAX;

    if (!l->pattern)
        return;
    for (size_t i = 0; i < l->v.n; i++) {
        if (!shown(l, &l->v.v[i]))
            continue;
        at++; /* number of this row, from 1 */
        if (!strcasestr(l->v.v[i].text, l->pattern))
            continue;
        if (up && at < low)
            best = at;
        else if (!up && at > low && best == SIZE_MAX)
            best = at;
    }
    if (best == SIZE_MAX)
        ui_status(ui, 0, "no %s match for '%.60s'", up ? "earlier" : "later", l->pattern);
    else
        l->back = n - best;
}

static int scroll(struct build_log *l, enum action a)
{
    size_t page = (size_t)l->page;
    size_t up = a == ACT_UP ? 1 : a == ACT_HALF_UP ? (page + 1) / 2 : a == ACT_PAGE_UP ? page : 0;
    size_t down = a == ACT_DOWN ? 1 : a == ACT_HALF_DOWN ? (page + 1) / 2 : a == ACT_PAGE_DOWN ? page : 0;

    if (a == ACT_TOP)
        l->back = l->v.n;
    else if (a == ACT_BOTTOM || a == ACT_BUILD_FOLLOW)
        l->back = 0;
    else if (up)
        l->back += up;
    else if (down)
        l->back = l->back > down ? l->back - down : 0;
    else
        return UI_IGNORED;
    return UI_HANDLED | UI_REDRAW;
}

static int log_action(struct ui *ui, void *state, enum action a)
{
    struct build_log *l = state;

    if (a == ACT_SEARCH) {
        l->finding = true;
        inputline_set(&l->find, l->pattern ? l->pattern : "");
    } else if (a == ACT_BUILD_LEVEL) {
        l->only_warn = !l->only_warn;
        l->back = 0;
    } else if (a == ACT_BUILD_FIND_NEXT || a == ACT_BUILD_FIND_PREV) {
        find(ui, l, a == ACT_BUILD_FIND_PREV);
    } else if (scroll(l, a) == UI_IGNORED) {
        return builds_do(ui, a);
    }
    return UI_HANDLED | UI_REDRAW;
}

static int log_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct build_log *l = state;

    if (ui->found == ACT_LEAVE_LINE) {
        l->finding = false;
    } else if (ui->found == ACT_TAKE_LINE) {
        l->finding = false;
        free(l->pattern);
        l->pattern = *inputline_text(&l->find) ? xstrdup(inputline_text(&l->find)) : NULL;
        l->back = 0;
        find(ui, l, true);
    } else {
        ui_line_key(ui, &l->find, k, paste, len);
    }
    return UI_HANDLED | UI_REDRAW;
}

static const char *log_typing(struct ui *ui, void *state)
{
    const struct build_log *l = state;

    return l->finding ? ui_keys(ui, " {take-line} find  {leave-line} leave") : NULL;
}

static const char *log_title(struct ui *ui, void *state)
{
    struct build_log *l = state;
    const struct tbuild *b = model_build(ui->model, l->of);

    snprintf(l->title, sizeof(l->title), "build log%s%.100s", b ? ": " : "", b ? b->name : "");
    return l->title;
}

static const char *log_note(struct ui *ui, void *state)
{
    struct build_log *l = state;

    (void)ui;
    snprintf(l->note, sizeof(l->note), "%s%sfollow %s  %s", l->pattern ? l->pattern : "",
             l->pattern ? "  " : "", l->back ? "off" : "ON", l->only_warn ? "WARN+" : "INFO+");
    return l->note;
}

const struct pane_ops pane_build_log = {
    .name = "build-log",
    .scope = SCOPE_BUILD_LOG,
    .open = log_open,
    .close = log_close,
    .update = log_update,
    .draw = log_draw,
    .action = log_action,
    .key = log_key,
    .typing = log_typing,
    .title = log_title,
    .note = log_note,
};
