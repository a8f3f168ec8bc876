/* Items of a transcript to rows. Pure: the same item, width and folding give the same
 * rows. */
#include "output_priv.h"

#include <cct/model/agent_event.h>
#include <cct/text/width.h>
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <stdio.h>
#include <string.h>

enum { WHO_CELLS = 8, TIME_CELLS = 11, NARROW = 60, FOLD_LINES = 3 };

bool rows_foldable(const struct item *it)
{
    return (it->kind == ITEM_TOOL || it->kind == ITEM_THINKING) && it->text_len > 0;
}

bool rows_blank(const struct item *it)
{
    return it->kind == ITEM_TURN_END && it->state == AGENT_OK;
}

bool rows_folded_by_default(const struct item *it)
{
    if (it->kind == ITEM_THINKING)
        return true;
    if (it->kind != ITEM_TOOL || it->state == AGENT_TOOL_RUNNING)
        return false;
    size_t lines = 0;
    for (const char *p = it->text; p && *p && lines <= FOLD_LINES; p++)
        lines += *p == '\n';
    return lines >= FOLD_LINES;
}

static bool has_stamp(const struct row_style *st)
{
    return st->times && st->w >= NARROW;
}

/* Where the text of an item begins. */
static int base_indent(const struct item *it, const struct row_style *st)
{
    int time = has_stamp(st) ? TIME_CELLS : 0;
    switch (it->kind) {
    case ITEM_RAW:
        return 0;
    case ITEM_TOOL:
        return time + 4;
    case ITEM_USER:
    case ITEM_TEXT:
    case ITEM_SYSTEM:
        return st->w >= NARROW ? time + WHO_CELLS : 2;
    default:
        return time + 2;
    }
}

static bool own_head(const struct item *it, const struct row_style *st)
{
    /* on narrow screens who speaks stands on a row of its own */
    bool speaks = it->kind == ITEM_USER || it->kind == ITEM_TEXT || it->kind == ITEM_SYSTEM;
    return it->kind == ITEM_TOOL || it->kind == ITEM_ASK || (speaks && st->w < NARROW) ||
           it->kind == ITEM_THINKING;
}

static void add_row(struct rows *out, enum row_part part, size_t from, size_t to, int indent)
{
    struct row *r = ARR_PUSH(out);
    r->part = part;
    r->from = (uint32_t)from;
    r->to = (uint32_t)to;
    r->indent = indent;
    r->first = out->n == 1;
}

static void add_text_rows(const struct item *it, const struct row_style *st, struct rows *out)
{
    int indent = base_indent(it, st);
    size_t cells = st->w > indent + 8 ? (size_t)(st->w - indent) : 8;
    size_t len = it->text_len;
    while (len > 0 && it->text[len - 1] == '\n')
        len--;
    if (len == 0)
        add_row(out, ROW_TEXT, 0, 0, indent);
    for (size_t line = 0; line < len;) {
        const char *nl = memchr(it->text + line, '\n', len - line);
        size_t end = nl ? (size_t)(nl - it->text) : len, at = line;
        do {
            size_t next = end - line, stop = next;
            if (st->wrap)
                stop = text_wrap(it->text + line, end - line, at - line, cells, &next);
            add_row(out, ROW_TEXT, at, line + stop, indent);
            at = line + next;
        } while (at < end);
        line = end + 1;
    }
}

void rows_make(const struct item *it, const struct row_style *st, bool folded, struct rows *out)
{
    out->n = 0;
    if (rows_blank(it)) {
        add_row(out, ROW_BLANK, 0, 0, 0);
        return;
    }
    if (own_head(it, st))
        add_row(out, ROW_HEAD, 0, 0, 0);
    if (it->kind == ITEM_ASK) {
        if (it->text_len && !it->state)
            add_text_rows(it, st, out);
        add_row(out, ROW_ANSWER, 0, 0, base_indent(it, st));
        return;
    }
    if (rows_foldable(it) && folded)
        add_row(out, ROW_FOLD, 0, 0, base_indent(it, st));
    else if (it->text_len > 0 || !out->n)
        add_text_rows(it, st, out);
}

size_t rows_count(const struct item *it, const struct row_style *st, bool folded)
{
    struct rows r = {NULL, 0, 0};
    rows_make(it, st, folded, &r);
    size_t n = r.n;
    ARR_RELEASE(&r);
    return n;
}

/* --- drawing ------------------------------------------------------------------- */

static enum theme_role who_role(const struct item *it)
{
    switch (it->kind) {
    case ITEM_USER:
        return ROLE_YOU;
    case ITEM_SYSTEM:
        return it->state == AGENT_ERROR ? ROLE_ERROR : ROLE_SYSTEM;
    case ITEM_THINKING:
        return ROLE_THINKING;
    case ITEM_TOOL:
        return it->state == AGENT_TOOL_FAILED || it->state == AGENT_TOOL_DENIED ? ROLE_ERROR
                                                                              : ROLE_TOOL;
    case ITEM_ASK:
        return ROLE_ASKS;
    case ITEM_NOTICE:
        return it->state == AGENT_ERROR ? ROLE_ERROR : ROLE_NOTICE;
    case ITEM_TURN_END:
        return ROLE_ERROR;
    default:
        return ROLE_AGENT;
    }
}

static enum theme_role text_role(const struct item *it)
{
    switch (it->kind) {
    case ITEM_THINKING:
        return ROLE_THINKING;
    case ITEM_NOTICE:
    case ITEM_TURN_END:
    case ITEM_SYSTEM:
        return who_role(it);
    case ITEM_TOOL:
        return ROLE_DIM;
    default:
        return ROLE_TEXT;
    }
}

static void tool_end(const struct item *it, char *dst, size_t size)
{
    switch (it->state) {
    case AGENT_TOOL_RUNNING:
        snprintf(dst, size, "running");
        break;
    case AGENT_TOOL_DENIED:
        snprintf(dst, size, "denied");
        break;
    case AGENT_TOOL_UNKNOWN:
        snprintf(dst, size, "end unknown");
        break;
    default:
        if (it->exit_code >= 0)
            snprintf(dst, size, "exit %d", it->exit_code);
        else
            snprintf(dst, size, "%s", it->state == AGENT_TOOL_OK ? "ok" : "failed");
    }
}

static void draw_tool_head(struct canvas *c, int y, int x, int w, const struct item *it)
{
    char end[32];
    tool_end(it, end, sizeof(end));
    bool shell = it->who && (strcmp(it->who, "Bash") == 0 || strcmp(it->who, "run") == 0);
    int end_w = (int)strlen(end);
    int room = w - end_w - 5;
    canvas_text(c, y, x, 1, who_role(it), shell ? "$" : "+");
    int used = 2;
    if (!shell && it->who)
        used += canvas_text(c, y, x + used, room - used, ROLE_TOOL, it->who) + 1;
    if (it->title && used < room)
        canvas_text(c, y, x + used, room - used, ROLE_TEXT, it->title);
    bool bad = it->state == AGENT_TOOL_FAILED || it->state == AGENT_TOOL_DENIED;
    canvas_text(c, y, x + w - end_w - 1, end_w, bad ? ROLE_ERROR : ROLE_HINT, end);
}

static size_t count_lines(const struct item *it)
{
    size_t n = it->text_len > 0;
    for (size_t i = 0; i + 1 < it->text_len; i++)
        n += it->text[i] == '\n';
    return n;
}

static void draw_stamp(struct canvas *c, int y, int x, const struct item *it)
{
    char hms[16];
    if (!it->time_ms)
        return;
    clock_format_hms(hms, sizeof(hms), it->time_ms);
    canvas_textf(c, y, x, TIME_CELLS, ROLE_HINT, "[%s]", hms);
}

static const char *user_note(struct ui *ui, const struct item *it)
{
    switch (it->state) {
    case MSG_QUEUED:
        return " (queued)";
    case MSG_SENT:
        return " (sent)";
    case MSG_CANCELLED:
        return " (taken back, not sent)";
    case MSG_FAILED:
        return ui_keys(ui, " (not sent; {resend} in the input sends it again)");
    case MSG_UNCONFIRMED:
        return ui_keys(ui, " (unconfirmed: the agent died; {resend} in the input sends it again)");
    default:
        return "";
    }
}

static const char *mark_of(const struct item *it)
{
    switch (it->kind) {
    case ITEM_NOTICE:
        return it->state == AGENT_INFO ? "-" : "!";
    case ITEM_ASK:
        return "?";
    case ITEM_TURN_END:
        return it->state == AGENT_INTERRUPTED ? "-" : "!";
    default:
        return "";
    }
}

static const char *turn_end_words(const struct item *it)
{
    return it->state == AGENT_INTERRUPTED ? "interrupted"
           : it->state == AGENT_TRUNCATED ? "the answer was cut short"
                                          : "the turn failed, without a word why";
}

/* What stands before the text of an item's first row. */
static void draw_begin(struct canvas *c, int y, int x, const struct item *it,
                       const struct row_style *st)
{
    if (it->kind == ITEM_RAW)
        return;
    int time = has_stamp(st) ? TIME_CELLS : 0;
    bool speaks = it->kind == ITEM_USER || it->kind == ITEM_TEXT || it->kind == ITEM_SYSTEM;
    if (time && speaks)
        draw_stamp(c, y, x, it);
    if (speaks) {
        const char *who = it->kind == ITEM_SYSTEM ? "system" : it->who ? it->who : "agent";
        if (st->w >= NARROW && strcmp(who, "designer") == 0)
            who = "design"; /* the one name of ours that does not fit */
        int used = canvas_text(c, y, x + time, st->w >= NARROW ? WHO_CELLS - 1 : st->w / 2,
                               who_role(it), who);
        if (st->w < NARROW && it->kind == ITEM_USER)
            canvas_text(c, y, x + time + used, -1, ROLE_NOTICE, user_note(st->ui, it));
    } else if (it->kind == ITEM_THINKING) {
        canvas_text(c, y, x + time, -1, ROLE_THINKING, "thinking");
    } else if (it->kind == ITEM_ASK) {
        int used = canvas_text(c, y, x + time, -1, ROLE_ASKS, "? ");
        canvas_text(c, y, x + time + used, -1, ROLE_ASKS, it->title ? it->title : "");
    } else {
        canvas_text(c, y, x + time, 1, who_role(it), mark_of(it));
        if (it->kind == ITEM_TURN_END && !it->text_len)
            canvas_text(c, y, x + time + 2, -1, who_role(it), turn_end_words(it));
    }
}

void rows_draw(struct canvas *c, int y, int x, const struct item *it, const struct row *r,
               const struct row_style *st, int pan, int64_t now)
{
    (void)now;
    int time = has_stamp(st) ? TIME_CELLS : 0;
    if (r->part == ROW_BLANK)
        return;
    if (r->part == ROW_HEAD && it->kind == ITEM_TOOL) {
        draw_tool_head(c, y, x + time, st->w - time, it);
        return;
    }
    if (r->first)
        draw_begin(c, y, x, it, st);
    if (r->part == ROW_HEAD)
        return;
    if (r->part == ROW_FOLD) {
        size_t n = count_lines(it);
        canvas_text(c, y, x + r->indent, -1, ROLE_HINT,
                    ui_keys(st->ui, "[%zu line%s folded - {fold} to open]", n, n == 1 ? "" : "s"));
        return;
    }
    if (r->part == ROW_ANSWER) {
        if (it->state)
            canvas_textf(c, y, x + r->indent, -1, ROLE_HINT, "%s%s",
                         it->input && *it->input ? "answered: " : "closed without an answer",
                         it->input ? it->input : "");
        else
            canvas_text(c, y, x + r->indent, -1, ROLE_ASKS, ui_keys(st->ui, "waits for you   {answer}: answer here"));
        return;
    }
    size_t from = r->from, skipped = 0;
    if (!st->wrap && pan > 0)
        from += text_fit(it->text + from, r->to - from, (size_t)pan, &skipped);
    int used = canvas_runs(c, y, x + r->indent, st->w - r->indent, text_role(it),
                           it->text + from, r->to - from, it->runs, it->n_runs, from);
    if (it->kind == ITEM_USER && r->to >= it->text_len && st->w >= NARROW)
        canvas_text(c, y, x + r->indent + used, -1, ROLE_NOTICE, user_note(st->ui, it));
}
