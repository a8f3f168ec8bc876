/* One row of the list: what each column says about a sandbox. */
#include "list_priv.h"

#include <cct/model/pair.h>
#include <cct/text/width.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct look {
    const char *glyph;
    enum theme_role role;
};

static struct look look_of(const struct sandbox *s)
{
    switch (s->state) {
    case SB_CREATING:
        return (struct look){"~", ROLE_CREATING};
    case SB_PAUSED:
        return (struct look){"=", ROLE_PAUSED};
    case SB_KILLED:
        return (struct look){"x", ROLE_KILLED};
    case SB_ERROR:
        return (struct look){"!", ROLE_ERROR};
    default:
        break;
    }
    if (s->agent == AG_ASKS)
        return (struct look){"?", ROLE_ASKS};
    if (s->agent == AG_WORKING || s->agent == AG_STARTING)
        return (struct look){"*", ROLE_WORKING};
    return (struct look){".", ROLE_IDLE};
}

enum theme_role list_role(const struct sandbox *s)
{
    return look_of(s).role;
}

const char *list_glyph(const struct sandbox *s)
{
    return look_of(s).glyph;
}

/* How long a working agent has put nothing out; false: it has. */
static bool quiet_text(const struct sandbox *s, int64_t now, char *dst, size_t size)
{
    if (s->agent != AG_WORKING || s->adopted || !s->quiet_since || now - s->quiet_since < 60000)
        return false;
    clock_format_span(dst, size, (now - s->quiet_since) / 60000 * 60000);
    return true;
}

/* A pair at work, or where it stands once nobody works; false when the agent's own state
 * says more. In few cells the role has a shorter name, or the rounds go. */
static bool pair_doing_text(const struct sandbox *s, int w, char *dst, size_t size)
{
    const struct pair *p = s->pair;
    bool works = s->agent == AG_WORKING || s->agent == AG_STARTING;

    if (!p || s->agent == AG_ASKS || (p->state != PAIR_RUNNING && works))
        return false;
    pair_doing(p, dst, size);
    if (w >= (int)strlen(dst))
        return true;
    if (p->state == PAIR_RUNNING)
        snprintf(dst, size, "%s %d/%d", p->role == PAIR_DESIGNER ? "work" : "check", p->round,
                 p->rounds);
    else
        str_copy(dst, size, pair_state_name(p->state));
    return true;
}

void list_doing(const struct sandbox *s, int w, int64_t now, char *dst, size_t size)
{
    char span[16] = "";
    if (s->state == SB_KILLED) {
        str_copy(dst, size, s->gone == GONE_TIMEOUT ? "timed out"
                            : s->gone == GONE_EARLY ? "vanished"
                                                    : "-");
        return;
    }
    if (s->state == SB_CREATING && s->step) {
        snprintf(dst, size, "step %d/%d", (int)s->step, (int)STEP_LAST);
        return;
    }
    if (s->pending) {
        str_copy(dst, size, s->changing ? "changing" : "ending");
        return;
    }
    if (s->unlisted) {
        str_copy(dst, size, "unlisted");
        return;
    }
    if (s->state == SB_ERROR) {
        str_copy(dst, size, s->vm_up ? "VM runs" : "-");
        return;
    }
    if (s->state == SB_PAUSED || s->agent == AG_NONE) {
        str_copy(dst, size, "-");
        return;
    }
    if (pair_doing_text(s, w, dst, size))
        return;
    if (s->agent == AG_IDLE && s->agent_since && now - s->agent_since >= 60000)
        clock_format_span(span, sizeof(span), (now - s->agent_since) / 60000 * 60000);
    if (s->adopted && s->agent == AG_WORKING) { /* what it does, nobody tells us */
        str_copy(dst, size, "runs");
        return;
    }
    if (quiet_text(s, now, span, sizeof(span))) {
        snprintf(dst, size, "quiet %s", span);
        return;
    }
    snprintf(dst, size, "%s%s%s", s->agent == AG_ASKS ? "ASKS YOU" : sb_agent_name(s->agent),
             *span ? " " : "", span);
}

void list_left(const struct ui *ui, const struct sandbox *s, int64_t now, char *dst, size_t size,
               bool *warn)
{
    *warn = false;
    bool runs = s->state == SB_RUNNING || (s->state == SB_ERROR && s->vm_up);
    if (!runs || !s->end_at) {
        str_copy(dst, size, "-");
        return;
    }
    int64_t left = s->end_at - now;
    *warn = left <= ui->opts.warn_left_ms;
    if (left < 60000) {
        str_copy(dst, size, left > 0 ? "<1m!" : "now!");
        return;
    }
    char span[16];
    clock_format_span(span, sizeof(span), left / 60000 * 60000);
    snprintf(dst, size, "%s%s", span, *warn ? "!" : "");
}

static void age_text(const struct sandbox *s, int64_t now, char *dst, size_t size)
{
    int64_t from = s->created_at ? s->created_at : s->started_at;
    if (!from || now < from) {
        str_copy(dst, size, "-");
        return;
    }
    if (now - from < 60000)
        str_copy(dst, size, "<1m");
    else
        clock_format_span(dst, size, (now - from) / 60000 * 60000);
}

/* What the provider calls it; "?" behind it: as of the last list, there is none since. */
static void state_text(const struct ui *ui, const struct sandbox *s, char *dst, size_t size)
{
    bool old = model_is_stale(ui->model) && s->state != SB_KILLED && s->state != SB_CREATING &&
               (s->state != SB_ERROR || s->vm_up);
    const char *word = s->odd ? s->odd : sb_state_name(s->state);
    size_t cells, n = text_fit(word, strlen(word), 12, &cells);
    snprintf(dst, size, "%.*s%s", (int)n, word, old ? "?" : "");
}

static void cost_text(const struct sandbox *s, char *dst, size_t size)
{
    if (isnan(s->cost_usd) || s->foreign || s->adopted)
        str_copy(dst, size, "-");
    else
        snprintf(dst, size, "%.2f", s->cost_usd);
}

/* USD an hour, as it runs now. */
static void rate_text(const struct ui *ui, const struct sandbox *s, char *dst, size_t size)
{
    if (ui->model->local || s->state == SB_KILLED)
        str_copy(dst, size, "-");
    else if (sandbox_is_unpriced(s))
        str_copy(dst, size, "?");
    else
        snprintf(dst, size, "%.2f", sandbox_usd_per_hour(s));
}

/* Column widths at the width at hand; 0 = left out. */
struct columns {
    int name, tool, state, doing, left, age, rate, cost, last;
};
enum { LEAST_LAST = 12, BEFORE_NAME = 5 };

static struct columns columns_for(int w)
{
    struct columns c = {.name = 13, .tool = 9, .state = 9, .doing = 10, .left = 6};
    if (w < 60) {
        c.tool = 0;
        c.left = w >= 44 ? 6 : 0;
    }
    if (w >= 72) {
        c.name = 15;
        c.age = 5;
        c.cost = 6;
    }
    if (w >= 150)
        c.name = 20, c.doing = 14, c.tool = 11, c.rate = 6;
    c.last = w - BEFORE_NAME - c.name - c.tool - c.state - c.doing - c.left - c.age - c.rate - c.cost;
    if (c.last < LEAST_LAST) { /* too narrow to say anything: the name takes it */
        c.name += c.last > 0 ? c.last : 0;
        c.last = 0;
    }
    return c;
}

static const char *last_words(const struct sandbox *s)
{
    if (s->not_isolated)
        return "NOT ISOLATED";
    if (s->state == SB_ERROR && s->reason)
        return s->reason;
    if (s->state == SB_CREATING && s->step_text)
        return s->step_text;
    if (s->state == SB_KILLED && !s->last_line)
        return sb_gone_text(s->gone);
    if (s->last_line)
        return s->last_line + strspn(s->last_line, " ");
    if (s->reason)
        return s->reason;
    return s->foreign ? "not made by cc-tui" : s->adopted ? "adopted" : "";
}

/* "#wip #ui " in front of the last line, a third of its cells at most. */
static int draw_tags(struct canvas *c, int y, int x, int w, const char *tags)
{
    int used = 0;
    for (const char *at = tags ? tags : ""; *at && used < w / 3;) {
        size_t n = strcspn(at, " ");
        used += canvas_textf(c, y, x + used, w / 3 - used, ROLE_MARKED, "#%.*s", (int)n, at) + 1;
        at += n + (at[n] == ' ');
    }
    return used;
}

void list_draw_row(struct ui *ui, struct canvas *c, int y, struct rect r,
                       const struct sandbox *s, int64_t now)
{
    struct columns col = columns_for(r.w);
    struct look look = look_of(s);
    char text[64];
    now = ui_server_now(ui, now);
    bool warn;
    int x = r.x + 3;
    canvas_text(c, y, x, 1, look.role, look.glyph);
    x += 2;
    canvas_name(c, y, x, col.name - (s->protect ? 3 : 1),
                s->state == SB_KILLED ? ROLE_DIM : ROLE_TEXT, s->name);
    if (s->protect)
        canvas_text(c, y, x + col.name - 2, 1, ROLE_MARKED, "P");
    x += col.name;
    if (col.tool)
        canvas_text(c, y, x, col.tool - 1, ROLE_DIM, s->tool ? s->tool : "-");
    x += col.tool;
    /* running is the rule: only what differs is coloured, and an agent that begins or
     * ends its turn changes one cell less */
    state_text(ui, s, text, sizeof(text));
    canvas_text(c, y, x, col.state - 1, s->state == SB_RUNNING ? ROLE_TEXT : look.role, text);
    x += col.state;
    list_doing(s, col.doing - 1, now, text, sizeof(text));
    canvas_text(c, y, x, col.doing - 1, strcmp(text, "-") == 0 ? ROLE_TEXT : look.role, text);
    x += col.doing;
    if (col.left) {
        list_left(ui, s, now, text, sizeof(text), &warn);
        canvas_right(c, y, x, col.left - 1, warn ? ROLE_STATUS_WARN : ROLE_TEXT, text);
        x += col.left;
    }
    if (col.age) {
        age_text(s, now, text, sizeof(text));
        canvas_right(c, y, x, col.age - 1, ROLE_TEXT, text);
        x += col.age;
    }
    if (col.rate) {
        rate_text(ui, s, text, sizeof(text));
        canvas_right(c, y, x, col.rate - 1, ROLE_TEXT, text);
        x += col.rate;
    }
    if (col.cost) {
        cost_text(s, text, sizeof(text));
        canvas_right(c, y, x, col.cost - 1, ROLE_TEXT, text);
        x += col.cost;
    }
    if (!col.last)
        return;
    x += draw_tags(c, y, x, r.x + r.w - x, s->tags);
    if (s->state == SB_RUNNING && quiet_text(s, now, text, sizeof(text))) {
        char *quiet = xasprintf("no output for %s | ", text);

        x += canvas_text(c, y, x, r.x + r.w - x, ROLE_STATUS_WARN, quiet);
        free(quiet);
    }
    canvas_text(c, y, x, r.x + r.w - x, s->state == SB_ERROR ? ROLE_ERROR : ROLE_DIM,
                last_words(s));
}

/* A column's word, marked when it is the one that rows are sorted by. */
static void head(struct canvas *c, int y, int x, int right, const char *word, enum sort column,
                 const struct order *o)
{
    char text[16];
    bool here = o->by == column && column != SORT_MADE;
    snprintf(text, sizeof(text), "%s%s", word, !here ? "" : o->inverted ? "v" : "^");
    if (right)
        canvas_right(c, y, x, right, here ? ROLE_TITLE : ROLE_HINT, text);
    else
        canvas_text(c, y, x, -1, here ? ROLE_TITLE : ROLE_HINT, text);
}

void list_draw_head(struct canvas *c, struct rect r, const struct order *o)
{
    struct columns col = columns_for(r.w);
    int x = r.x + 3, y = r.y;
    canvas_text(c, y, x, -1, ROLE_HINT, "S");
    x += 2;
    head(c, y, x, 0, "NAME", SORT_NAME, o);
    x += col.name;
    if (col.tool)
        head(c, y, x, 0, "AGENT", SORT_AGENT, o);
    x += col.tool;
    head(c, y, x, 0, "STATE", SORT_STATE, o);
    x += col.state;
    head(c, y, x, 0, "DOING", SORT_DOING, o);
    x += col.doing;
    if (col.left)
        head(c, y, x, col.left - 1, "LEFT", SORT_LEFT, o);
    x += col.left;
    if (col.age)
        head(c, y, x, col.age - 1, "AGE", SORT_AGE, o);
    x += col.age;
    if (col.rate)
        canvas_right(c, y, x, col.rate - 1, ROLE_HINT, "$/H");
    x += col.rate;
    if (col.cost)
        head(c, y, x, col.cost - 1, "$", SORT_COST, o);
    x += col.cost;
    if (col.last)
        canvas_text(c, y, x, -1, ROLE_HINT, "LAST LINE");
}
