/* Events in their order become headings, paragraphs and fenced blocks. */
#include <cct/model/export.h>

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct exporter {
    enum export_format f;
    char *who;
    char *speaker;   /* of the last heading, NULL = none */
    struct buf part; /* text of part_id that is not whole yet */
    char *part_id, *part_who;
};

static const char *const names[EXPORT_FORMATS] = {"md", "text", "jsonl"};

const char *export_format_name(enum export_format f)
{
    return f < EXPORT_FORMATS ? names[f] : "?";
}

int export_format_parse(const char *name)
{
    static const struct {
        const char *name;
        enum export_format f;
    } more[] = {{"markdown", EXPORT_MARKDOWN}, {"txt", EXPORT_TEXT}, {"json", EXPORT_JSON}};

    for (int i = 0; i < EXPORT_FORMATS; i++)
        if (str_eq(name, names[i]))
            return i;
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        if (str_eq(name, more[i].name))
            return (int)more[i].f;
    return -1;
}

struct exporter *export_new(enum export_format f, const char *who)
{
    struct exporter *x = xcalloc(1, sizeof(*x));

    x->f = f;
    x->who = xstrdup(who ? who : "agent");
    return x;
}

void export_free(struct exporter *x)
{
    if (!x)
        return;
    free(x->who);
    free(x->speaker);
    free(x->part_id);
    free(x->part_who);
    buf_release(&x->part);
    free(x);
}

/* --- pieces ------------------------------------------------------------------------- */

static void add_line(struct buf *out, const char *text)
{
    char *line = clean_line_dup(text, 0);

    buf_adds(out, line);
    free(line);
}

/* Whole text, cleaned, with one line feed at its end. */
static void add_text(struct buf *out, const char *text)
{
    size_t len = text ? strlen(text) : 0;
    struct buf b = BUF_INIT;

    clean_text(text ? text : "", len, &b, NULL);
    while (b.len && b.p[b.len - 1] == '\n')
        b.len--;
    buf_add(out, b.p, b.len);
    buf_addc(out, '\n');
    buf_release(&b);
}

/* A heading when somebody else speaks than before. */
static void speaks(struct exporter *x, const char *who, int64_t ms, struct buf *out)
{
    char when[40] = "";

    if (str_eq(x->speaker, who)) {
        buf_addc(out, '\n');
        return;
    }
    str_set(&x->speaker, who);
    if (ms > 0)
        clock_format_rfc3339(when, sizeof(when), ms);
    buf_adds(out, x->f == EXPORT_MARKDOWN ? "\n## " : "\n== ");
    add_line(out, who);
    if (*when)
        buf_addf(out, " (%s)", when);
    buf_adds(out, "\n\n");
}

/* Longer than any run of backticks in the text. */
static size_t fence_length(const char *text)
{
    size_t longest = 2, run = 0;

    for (; text && *text; text++) {
        run = *text == '`' ? run + 1 : 0;
        if (run > longest)
            longest = run;
    }
    return longest + 1;
}

static void add_fence(struct buf *out, size_t n)
{
    while (n--)
        buf_addc(out, '`');
    buf_addc(out, '\n');
}

static void add_block(struct exporter *x, const char *text, struct buf *out)
{
    size_t n = fence_length(text);

    if (!text || !*text)
        return;
    if (x->f == EXPORT_MARKDOWN) {
        add_fence(out, n);
        add_text(out, text);
        add_fence(out, n);
        return;
    }
    struct buf b = BUF_INIT;
    add_text(&b, text);
    for (const char *s = buf_str(&b), *end; *s; s = end + 1) {
        end = strchr(s, '\n');
        buf_addf(out, "    %.*s\n", (int)(end - s), s);
    }
    buf_release(&b);
}

static void add_note(struct exporter *x, const char *lead, const char *text, struct buf *out)
{
    char *line;

    if (!text)
        return;
    line = clean_text_dup(text, strlen(text));
    buf_addf(out, "\n%s%s", x->f == EXPORT_MARKDOWN ? "> " : "-- ", lead);
    for (const char *s = str_trim(line); *s; s++) {
        buf_addc(out, *s);
        if (*s == '\n')
            buf_adds(out, x->f == EXPORT_MARKDOWN ? "> " : "   ");
    }
    buf_addc(out, '\n');
    free(line);
}

/* --- kinds -------------------------------------------------------------------------- */

static const char *speaker_of(const struct exporter *x, const struct agent_event *ev)
{
    return ev->role ? ev->role : x->who;
}

static void put_tool(struct exporter *x, const struct agent_event *ev, struct buf *out)
{
    bool md = x->f == EXPORT_MARKDOWN;

    if (ev->state == AGENT_TOOL_RUNNING)
        return; /* its end tells the same and more */
    speaks(x, speaker_of(x, ev), ev->time_ms, out);
    buf_adds(out, md ? "**" : "$ ");
    add_line(out, ev->name ? ev->name : "tool");
    buf_adds(out, md ? "** " : " ");
    if (ev->title)
        add_line(out, ev->title);
    if (ev->state != AGENT_TOOL_OK)
        buf_addf(out, ev->state == AGENT_TOOL_UNKNOWN ? " (result %s)" : " (%s)",
                 agent_tool_state_name(ev->state));
    if (ev->exit_code >= 0)
        buf_addf(out, " (exit %d)", ev->exit_code);
    buf_addc(out, '\n');
    if (md && ev->output && *ev->output)
        buf_addc(out, '\n');
    add_block(x, ev->output, out);
}

static void put_notice(struct exporter *x, const struct agent_event *ev, struct buf *out)
{
    char lead[64] = "";

    if (ev->retry_max > 0)
        snprintf(lead, sizeof(lead), "retry %d/%d: ", ev->retry_attempt, ev->retry_max);
    add_note(x, lead, ev->text, out);
}

static void put_exit(struct exporter *x, const struct agent_event *ev, struct buf *out)
{
    char lead[64];

    if (ev->signal)
        snprintf(lead, sizeof(lead), "ended by signal %d ", ev->signal);
    else if (ev->exit_code < 0)
        snprintf(lead, sizeof(lead), "ended, its exit status is not known ");
    else
        snprintf(lead, sizeof(lead), "ended with exit status %d ", ev->exit_code);
    add_note(x, lead, ev->exit_code || ev->signal ? (ev->text ? ev->text : "") : "", out);
}

static void put_turn_end(struct exporter *x, const struct agent_event *ev, struct buf *out)
{
    static const char *const ends[] = {"", "failed: ", "interrupted ", "cut off "};

    if (ev->outcome != AGENT_OK && ev->outcome <= AGENT_TRUNCATED)
        add_note(x, ends[ev->outcome], ev->text ? ev->text : "", out);
    str_set(&x->speaker, NULL); /* the next turn begins with a heading */
}

static void put_whole(struct exporter *x, const char *who, int64_t ms, const char *text,
                      struct buf *out)
{
    if (!text || !*text)
        return;
    speaks(x, who, ms, out);
    add_text(out, text);
}

/* What came in pieces and never whole is all there is. */
static void put_part(struct exporter *x, struct buf *out)
{
    if (x->part.len) {
        if (x->f == EXPORT_JSON) {
            struct jw w;

            jw_init(&w, out);
            jw_obj(&w, NULL);
            jw_str(&w, "type", "text");
            jw_str(&w, "who", x->part_who);
            jw_str(&w, "text", buf_str(&x->part));
            jw_bool(&w, "whole", false);
            jw_end(&w);
            buf_addc(out, '\n');
        } else {
            put_whole(x, x->part_who, 0, buf_str(&x->part), out);
        }
    }
    buf_clear(&x->part);
}

/* True when there is nothing to write yet. */
static bool gather(struct exporter *x, const struct agent_event *ev, struct buf *out)
{
    if (ev->kind != AGENT_TEXT) {
        if (ev->kind == AGENT_TURN_END || ev->kind == AGENT_EXIT)
            put_part(x, out);
        return false;
    }
    if (ev->final) {
        buf_clear(&x->part);
        return false;
    }
    if (!str_eq(x->part_id, ev->id)) {
        put_part(x, out);
        str_set(&x->part_id, ev->id);
        str_set(&x->part_who, speaker_of(x, ev));
    }
    if (ev->mode == AGENT_REPLACE)
        buf_clear(&x->part);
    buf_adds(&x->part, ev->text ? ev->text : "");
    return true;
}

/* --- JSON --------------------------------------------------------------------------- */

static const char *const types[AGENT_KIND_COUNT] = {
    [AGENT_TEXT] = "text",         [AGENT_THINKING] = "thinking", [AGENT_TOOL] = "tool",
    [AGENT_USER_ECHO] = "message", [AGENT_ASK] = "question",      [AGENT_NOTICE] = "notice",
    [AGENT_USAGE] = "usage",       [AGENT_TURN_END] = "turn_end", [AGENT_EXIT] = "exit",
    [AGENT_RAW] = "output",
};

static void opt_str(struct jw *w, const char *name, const char *s)
{
    if (s && *s)
        jw_str(w, name, s);
}

static void json_fields(struct jw *w, const struct agent_event *ev)
{
    opt_str(w, "text", ev->text);
    opt_str(w, "name", ev->name);
    opt_str(w, "title", ev->title);
    opt_str(w, "input", ev->input);
    opt_str(w, "output", ev->output);
    opt_str(w, "choices", ev->choices);
    if (ev->kind == AGENT_TOOL)
        jw_str(w, "state", agent_tool_state_name(ev->state));
    if (ev->exit_code >= 0)
        jw_i64(w, "exitCode", ev->exit_code);
    if (ev->kind == AGENT_EXIT && ev->signal)
        jw_i64(w, "signal", ev->signal);
    if (ev->kind == AGENT_TURN_END)
        jw_str(w, "outcome", agent_outcome_name(ev->outcome));
    if (ev->kind == AGENT_USAGE) {
        jw_i64(w, "input", ev->in_tokens);
        jw_i64(w, "cacheRead", ev->cache_read);
        jw_i64(w, "cacheWrite", ev->cache_write);
        jw_i64(w, "output", ev->out_tokens);
        if (!isnan(ev->cost_usd))
            jw_num(w, "costUsd", ev->cost_usd);
        if (ev->scope == AGENT_SCOPE_SESSION_TOTAL)
            jw_bool(w, "sessionTotal", true);
    }
}

static void json_event(struct exporter *x, const struct agent_event *ev, struct buf *out)
{
    const char *type = ev->kind < AGENT_KIND_COUNT ? types[ev->kind] : NULL;
    bool growing = (ev->kind == AGENT_THINKING || ev->kind == AGENT_RAW) && !ev->final;
    char when[40];
    struct jw w;

    if (!type || growing || (ev->kind == AGENT_TOOL && ev->state == AGENT_TOOL_RUNNING) ||
        (ev->kind == AGENT_ASK && ev->final))
        return;
    jw_init(&w, out);
    jw_obj(&w, NULL);
    jw_str(&w, "type", type);
    if (ev->time_ms > 0) {
        clock_format_rfc3339(when, sizeof(when), ev->time_ms);
        jw_str(&w, "time", when);
    }
    jw_str(&w, "who", ev->kind == AGENT_USER_ECHO ? "you" : speaker_of(x, ev));
    json_fields(&w, ev);
    jw_end(&w);
    buf_addc(out, '\n');
}

/* --- the whole ---------------------------------------------------------------------- */

static void json_begin(const struct sandbox *s, struct buf *out)
{
    char when[40];
    struct jw w;

    jw_init(&w, out);
    jw_obj(&w, NULL);
    jw_str(&w, "type", "sandbox");
    opt_str(&w, "name", s->name);
    opt_str(&w, "tool", s->tool);
    opt_str(&w, "project", s->project);
    opt_str(&w, "sandboxId", s->sandbox_id);
    opt_str(&w, "template", s->template_id);
    jw_str(&w, "state", sb_state_name(s->state));
    if (s->created_at > 0) {
        clock_format_rfc3339(when, sizeof(when), s->created_at);
        jw_str(&w, "createdAt", when);
    }
    jw_end(&w);
    buf_addc(out, '\n');
}

static void head_line(struct exporter *x, const char *name, const char *value, struct buf *out)
{
    if (!value || !*value)
        return;
    buf_addf(out, x->f == EXPORT_MARKDOWN ? "- %s: " : "%s: ", name);
    add_line(out, value);
    buf_addc(out, '\n');
}

void export_begin(struct exporter *x, const struct sandbox *s, struct buf *out)
{
    char when[40] = "", cost[32] = "";

    if (x->f == EXPORT_JSON) {
        json_begin(s, out);
        return;
    }
    if (s->created_at > 0)
        clock_format_rfc3339(when, sizeof(when), s->created_at);
    if (!isnan(s->cost_usd) && s->cost_usd > 0)
        snprintf(cost, sizeof(cost), "$%.4f (estimate)", s->cost_usd);
    if (x->f == EXPORT_MARKDOWN)
        buf_adds(out, "# ");
    add_line(out, s->name ? s->name : s->sandbox_id ? s->sandbox_id : "sandbox");
    buf_adds(out, "\n\n");
    head_line(x, "agent", s->tool, out);
    head_line(x, "project", s->project, out);
    head_line(x, "sandbox", s->sandbox_id, out);
    head_line(x, "template", s->template_id, out);
    head_line(x, "created", when, out);
    head_line(x, "state", sb_state_name(s->state), out);
    head_line(x, "agent's cost", cost, out);
}

void export_event(struct exporter *x, const struct agent_event *ev, struct buf *out)
{
    if (gather(x, ev, out))
        return;
    if (x->f == EXPORT_JSON) {
        json_event(x, ev, out);
        return;
    }
    switch (ev->kind) {
    case AGENT_USER_ECHO:
        put_whole(x, "you", ev->time_ms, ev->text, out);
        break;
    case AGENT_TEXT:
        put_whole(x, speaker_of(x, ev), ev->time_ms, ev->text, out);
        break;
    case AGENT_TOOL:
        put_tool(x, ev, out);
        break;
    case AGENT_ASK:
        if (!ev->final)
            add_note(x, "asks: ", ev->title ? ev->title : ev->input, out);
        break;
    case AGENT_NOTICE:
        put_notice(x, ev, out);
        break;
    case AGENT_TURN_END:
        put_turn_end(x, ev, out);
        break;
    case AGENT_EXIT:
        put_exit(x, ev, out);
        break;
    case AGENT_RAW:
        if (ev->final || (ev->text && *ev->text))
            add_text(out, ev->text);
        break;
    default:
        break; /* thinking is in the JSON form */
    }
}

void export_end(struct exporter *x, struct buf *out)
{
    put_part(x, out);
}
