/* cc-tui templates, cc-tui builds: what can be made into a sandbox, and how it came to be. */
#include "templates.h"

#include <cct/model/tbuild.h>
#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void collect(void *ctx, const char *json, size_t len)
{
    buf_add(ctx, json, len);
}

/* --- cells -------------------------------------------------------------------------- */

static char *text_cell(const struct cJSON *j, const char *name)
{
    const char *s = json_str(j, name, "");
    return *s ? xstrdup(s) : NULL;
}

static char *date_cell(const struct cJSON *j, const char *name)
{
    const char *s = json_str(j, name, "");
    char *day = strlen(s) >= 16 ? xstrndup(s, 16) : NULL;

    if (day)
        day[10] = ' '; /* "2026-08-22 10:00", UTC */
    return day;
}

static char *size_cell(const struct cJSON *j)
{
    int64_t cpu = json_i64(j, "cpuCount", 0), mb = json_i64(j, "memoryMB", 0);

    if (cpu <= 0 || mb <= 0)
        return NULL;
    return xasprintf("%lld vCPU %lld MiB", (long long)cpu, (long long)mb);
}

static char *count_cell(const struct cJSON *j, const char *name)
{
    int64_t n = json_i64(j, name, -1);
    return n < 0 ? NULL : xasprintf("%lld", (long long)n);
}

/* From its begin to its end. */
static char *span_cell(const struct cJSON *j)
{
    int64_t from = 0, to = 0;
    char span[16];

    if (clock_parse_rfc3339(json_str(j, "createdAt", ""), &from) != 0 ||
        clock_parse_rfc3339(json_str(j, "finishedAt", ""), &to) != 0 || to < from)
        return NULL;
    clock_format_span(span, sizeof(span), to - from);
    return xstrdup(span);
}

/* --- lists -------------------------------------------------------------------------- */

static void template_row(void *ctx, const char *line, size_t len)
{
    struct cJSON *j = json_parse(line, len, NULL);
    const struct cJSON *name = json_first(json_get(j, "names"));

    cli_table_add(ctx, name ? xstrdup(json_str_of(name)) : NULL);
    cli_table_add(ctx, text_cell(j, "templateID"));
    cli_table_add(ctx, text_cell(j, "buildStatus"));
    cli_table_add(ctx, size_cell(j));
    cli_table_add(ctx, date_cell(j, "updatedAt"));
    cli_table_add(ctx, count_cell(j, "spawnCount"));
    json_free(j);
}

/* "claude 2.1.87" */
static char *tool_cell(const struct cJSON *j)
{
    const char *tool = json_str(j, "tool", ""), *version = json_str(j, "version", "");

    return *tool || *version ? xasprintf("%s%s%s", tool, *tool && *version ? " " : "", version) : NULL;
}

static void build_row(void *ctx, const char *line, size_t len)
{
    struct cJSON *j = json_parse(line, len, NULL);
    char *name = text_cell(j, "name");

    cli_table_add(ctx, name ? name : text_cell(j, "templateID"));
    cli_table_add(ctx, text_cell(j, "buildID"));
    cli_table_add(ctx, text_cell(j, "status"));
    cli_table_add(ctx, size_cell(j));
    cli_table_add(ctx, date_cell(j, "createdAt"));
    cli_table_add(ctx, span_cell(j));
    cli_table_add(ctx, tool_cell(j));
    json_free(j);
}

static void bare_id(void *ctx, const char *line, size_t len)
{
    struct cJSON *j = json_parse(line, len, NULL);
    char *id = clean_line_dup(json_str(j, ctx, ""), 0);

    cli_out("%s\n", id);
    free(id);
    json_free(j);
}

/* Builds that were begun here: tool, version and error into the service's line of the same
 * build; those the service does not have become lines of their own. */
struct merge {
    const struct buf *ours;
    struct buf *out;
    ARR(char *) seen;
};

static void copy_members(struct jw *w, const struct cJSON *j, const char *status)
{
    for (const struct cJSON *i = json_first(j); i; i = json_next(i)) {
        if (str_eq(json_name(i), "status")) {
            jw_str(w, "status", tb_state_word(status, json_str_of(i)));
            continue;
        }
        char *text = json_text(i);

        jw_raw(w, json_name(i), text);
        free(text);
    }
}

static void merge_line(void *ctx, const char *line, size_t len)
{
    struct merge *m = ctx;
    struct cJSON *j = json_parse(line, len, NULL), *row = NULL;
    const char *id = json_str(j, "buildID", ""), *at = m->ours->p, *nl;
    struct jw w;

    for (; at && *at && (nl = strchr(at, '\n')) && !row; at = nl + 1) {
        row = json_parse(at, (size_t)(nl - at), NULL);
        if (!str_eq(json_str(row, "buildID", "-"), id)) {
            json_free(row);
            row = NULL;
        }
    }
    jw_init(&w, m->out);
    jw_obj(&w, NULL);
    copy_members(&w, j, row ? json_str(row, "status", NULL) : NULL);
    if (row) {
        *ARR_PUSH(&m->seen) = xstrdup(id);
        jw_str(&w, "tool", json_str(row, "tool", NULL));
        jw_str(&w, "version", json_str(row, "version", NULL));
        jw_str(&w, "error", json_str(row, "error", NULL));
    }
    jw_end(&w);
    buf_addc(m->out, '\n');
    json_free(row);
    json_free(j);
}

static void add_ours(void *ctx, const char *line, size_t len)
{
    struct merge *m = ctx;
    struct cJSON *j = json_parse(line, len, NULL);
    bool seen = false;

    for (size_t i = 0; i < m->seen.n && !seen; i++)
        seen = str_eq(m->seen.v[i], json_str(j, "buildID", ""));
    if (!seen) {
        buf_add(m->out, line, len);
        buf_addc(m->out, '\n');
    }
    json_free(j);
}

static void merge(struct buf *lines, struct buf *ours, bool all)
{
    struct buf out = BUF_INIT;
    struct merge m = {ours, &out, ARR_INIT};

    buf_str(ours);
    cli_each_line(buf_str(lines), lines->len, merge_line, &m);
    if (all)
        cli_each_line(buf_str(ours), ours->len, add_ours, &m);
    for (size_t i = 0; i < m.seen.n; i++)
        free(m.seen.v[i]);
    ARR_RELEASE(&m.seen);
    buf_release(lines);
    *lines = out;
}

struct listing {
    struct cli_table table;
    void (*row)(void *ctx, const char *line, size_t len);
    const char *id;
};

static void print_lines(const struct cli *c, struct listing *l, struct buf *lines)
{
    const char *text = buf_str(lines);

    if (cli_json(c)) {
        cli_print_array(text, lines->len);
    } else if (cli_has(c, CLI_QUIET)) {
        cli_each_line(text, lines->len, bare_id, (void *)(uintptr_t)l->id);
    } else {
        cli_each_line(text, lines->len, l->row, &l->table);
        cli_table_print(&l->table);
    }
}

static int list(struct cli *c, struct listing *l,
                uint64_t (*start)(struct app *a, const char *word, app_lines_fn fn, void *ctx))
{
    struct cli_app a;
    struct err e = {0};
    struct buf lines = BUF_INIT, ours = BUF_INIT;
    int status = CLI_OK;

    if (cli_app_open(&a, c, &e) != 0)
        return cli_fail(&e);
    if (l->row == build_row && cli_app_wait(&a, app_build_rows(a.app, collect, &ours), &e) != 0) {
        status = cli_app_fail(&a, &e);
    } else if (cli_app_wait(&a, start(a.app, c->n_args ? c->args[0] : NULL, collect, &lines), &e) == 0) {
        if (l->row == build_row)
            merge(&lines, &ours, !c->n_args);
        print_lines(c, l, &lines);
    } else {
        status = cli_app_fail(&a, &e);
    }
    cli_app_close(&a);
    buf_release(&lines);
    buf_release(&ours);
    return status;
}

static uint64_t start_templates(struct app *a, const char *word, app_lines_fn fn, void *ctx)
{
    (void)word;
    return app_templates(a, fn, ctx);
}

int cli_templates(struct cli *c)
{
    struct listing l = {{6, {"NAME", "ID", "STATE", "SIZE", "UPDATED", "USED"}, ARR_INIT},
                        template_row, "templateID"};

    return list(c, &l, start_templates);
}

/* --- following ---------------------------------------------------------------------- */

static void print_time(const struct cJSON *j)
{
    int64_t ms = 0;
    char t[16] = "-";

    if (clock_parse_rfc3339(json_str(j, "timestamp", ""), &ms) == 0)
        clock_format_hms(t, sizeof(t), ms);
    cli_out("%-8s ", t);
}

/* Each line of it behind the same indent; no byte of it reaches the terminal raw. */
static void print_text(const char *text, const char *indent)
{
    char *clean = clean_text_dup(text, strlen(text));
    size_t n = strlen(clean);

    while (n > 0 && clean[n - 1] == '\n')
        n--;
    for (const char *p = clean;;) {
        size_t len = strcspn(p, "\n");
        if (p + len >= clean + n) {
            cli_out("%.*s\n", (int)(clean + n - p), p);
            break;
        }
        cli_out("%.*s\n%s", (int)len, p, indent);
        p += len + 1;
    }
    free(clean);
}

static void print_log(const struct cJSON *j)
{
    const char *phase = json_str(j, "phase", NULL), *level = json_str(j, "level", "");
    char *head;

    print_time(j);
    if (phase) {
        head = xasprintf("%s  %s%s", phase, json_bool(j, "cached", false) ? "(cached) " : "",
                         json_str(j, "title", ""));
        print_text(head, "         ");
        free(head);
        return;
    }
    if (str_eq(level, "warn") || str_eq(level, "error"))
        cli_out("  %s: ", level);
    else
        cli_out("  ");
    print_text(tbuild_output(json_str(j, "message", "")), "           ");
}

/* What changed is told; silence each half minute. */
static void tell_state(struct templates_tail *t, const struct cJSON *j)
{
    const char *status = json_str(j, "status", ""), *phase = json_str(j, "phase", "");
    const char *trouble = json_str(j, "trouble", "");
    int64_t quiet = json_i64(j, "secondsSinceLastLine", 0);
    char *clean;

    if (*trouble && !str_eq(t->trouble, trouble)) {
        clean = clean_line_dup(trouble, 0);
        cli_say(t->c, "cc-tui: %s; trying again", clean);
        free(clean);
    }
    str_copy(t->trouble, sizeof(t->trouble), trouble);
    if (json_str(j, "end", NULL) || (str_eq(t->status, status) && quiet / 30 <= t->quiet)) {
        t->quiet = quiet / 30;
        return;
    }
    clean = clean_line_dup(*status ? status : "not heard of yet", 0);
    if (quiet < 30)
        cli_say(t->c, "cc-tui: %s%s%s", clean, *phase ? ", " : "", phase);
    else
        cli_say(t->c, "cc-tui: %s%s%s, the last line came %lld s ago", clean, *phase ? ", " : "",
                phase, (long long)quiet);
    free(clean);
    str_copy(t->status, sizeof(t->status), status);
    t->quiet = quiet / 30;
}

static void follow_line(void *ctx, const char *line, size_t len)
{
    struct cJSON *j = json_parse(line, len, NULL);

    if (str_eq(json_str(j, "type", ""), "log"))
        print_log(j);
    else
        tell_state(ctx, j);
    json_free(j);
}

void templates_follow(void *ctx, const char *json, size_t len)
{
    cli_each_line(json, len, follow_line, ctx);
}

void templates_put(void *ctx, const char *json, size_t len)
{
    (void)ctx;
    cli_out_json_part(json, len);
}

static int follow(struct cli *c)
{
    struct cli_app a;
    struct templates_tail t = {.c = c};
    struct err e = {0};
    int status = CLI_OK;

    if (c->n_args != 1)
        return cli_usage("'builds --follow' wants TEMPLATE or TEMPLATE:BUILD; 'cc-tui builds' lists "
                         "them");
    if (cli_app_open(&a, c, &e) != 0)
        return cli_fail(&e);
    uint64_t req = app_build_follow(a.app, c->args[0], cli_json(c) ? templates_put : templates_follow, &t);
    if (cli_app_wait(&a, req, &e) == 0)
        cli_say(c, "cc-tui: the build is ready");
    else
        status = cli_app_fail(&a, &e);
    cli_app_close(&a);
    return status;
}

int cli_builds(struct cli *c)
{
    struct listing l = {{7, {"TEMPLATE", "BUILD", "STATE", "SIZE", "BEGUN", "TOOK", "TOOL"}, ARR_INIT},
                        build_row, "buildID"};

    return cli_has(c, CLI_FOLLOW) ? follow(c) : list(c, &l, app_builds);
}

/* --- the system's log ---------------------------------------------------------------- */

static void system_line(void *ctx, const char *line, size_t len)
{
    struct cJSON *j = json_parse(line, len, NULL);
    char *level = clean_line_dup(json_str(j, "level", ""), 8);
    char *rest = json_text(json_get(j, "fields"));
    char *text = xasprintf("%-5s %s%s%s", *level ? level : "-", json_str(j, "message", ""),
                           rest ? "  " : "", rest ? rest : "");

    (void)ctx;
    print_time(j);
    print_text(text, "               ");
    free(text);
    free(rest);
    free(level);
    json_free(j);
}

static void system_lines(void *ctx, const char *json, size_t len)
{
    cli_each_line(json, len, system_line, ctx);
}

int cli_system_logs(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK;
    const struct sandbox *s = cli_app_begin(&a, c, c->args[0], &status);

    if (!s)
        return status;
    uint64_t req = app_system_logs(a.app, s->id, cli_has(c, CLI_FOLLOW),
                                   cli_json(c) ? templates_put : system_lines, NULL);
    if (cli_app_wait(&a, req, &e) != 0)
        status = cli_app_fail(&a, &e);
    cli_app_close(&a);
    return status;
}
