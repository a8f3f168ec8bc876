/* cc-tui ls: what is there. */
#include "cli_priv.h"

#include <cct/model/pair.h>
#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void json_time(struct jw *w, const char *name, int64_t ms)
{
    char t[32];
    if (ms)
        clock_format_rfc3339(t, sizeof(t), ms);
    jw_str(w, name, ms ? t : NULL);
}

static void json_row(struct jw *w, const struct sandbox *s)
{
    jw_obj(w, NULL);
    jw_str(w, "sandboxID", s->sandbox_id);
    jw_str(w, "templateID", s->template_id);
    jw_str(w, "alias", s->alias);
    jw_str(w, "state", sb_state_name(s->state));
    json_time(w, "startedAt", s->started_at);
    json_time(w, "endAt", s->end_at);
    jw_i64(w, "cpuCount", s->cpu_count);
    jw_i64(w, "memoryMB", s->memory_mb);
    jw_obj(w, "metadata");
    for (const struct kv *m = s->meta; m && m->k; m++)
        jw_str(w, m->k, m->v);
    jw_end(w);
    jw_str(w, "name", s->name);
    if (s->tags)
        jw_str(w, "tags", s->tags);
    jw_str(w, "tool", s->tool);
    jw_str(w, "project", s->project);
    jw_str(w, "agentState", s->agent == AG_NONE ? NULL : sb_agent_name(s->agent));
    if (s->pair)
        cli_pair_json(w, s->pair);
    if (s->reason && *s->reason)
        jw_str(w, "reason", s->reason);
    if (s->state == SB_ERROR)
        jw_bool(w, "vmUp", s->vm_up);
    if (s->state == SB_KILLED)
        jw_str(w, "gone", sb_gone_text(s->gone));
    if (s->foreign)
        jw_bool(w, "foreign", true);
    if (s->adopted)
        jw_bool(w, "adopted", true);
    if (s->unlisted)
        jw_bool(w, "unlisted", true);
    if (s->odd)
        jw_str(w, "providerState", s->odd);
    jw_end(w);
}

static const char *color_of(const struct sandbox *s)
{
    switch (s->state) {
    case SB_CREATING:
        return "\033[36m";
    case SB_RUNNING:
        return "\033[32m";
    case SB_PAUSED:
        return "\033[34m";
    case SB_ERROR:
        return "\033[31m";
    default:
        return "\033[2m";
    }
}

enum { STATE = 3, COLUMNS = 7, MAX_CELLS = 32 }; /* the state has a colour */

static void fill_row(const struct sandbox *s, int64_t now, char *cell[COLUMNS])
{
    char left[24] = "-";
    char pair[32];
    if (s->state == SB_RUNNING && s->end_at > now)
        clock_format_span(left, sizeof(left), s->end_at - now);
    else if (s->state == SB_ERROR && s->vm_up)
        str_copy(left, sizeof(left), "VM bills");
    else if (s->state == SB_KILLED)
        str_copy(left, sizeof(left), sb_gone_text(s->gone));
    if (s->pair)
        pair_doing(s->pair, pair, sizeof(pair));
    const char *texts[COLUMNS] = {
        s->sandbox_id ? s->sandbox_id : "-",
        s->name && *s->name ? s->name : "-",
        s->tool && *s->tool ? s->tool : "-",
        s->unlisted ? "unlisted" : s->odd ? s->odd : sb_state_name(s->state),
        s->pair               ? pair
        : s->agent == AG_NONE ? "-"
                              : sb_agent_name(s->agent),
        left,
        s->project && *s->project ? s->project : "-",
    };
    for (int i = 0; i < COLUMNS; i++)
        cell[i] = clean_line_dup(texts[i], MAX_CELLS);
}

/* Columns [from, to) of a row, its end with the last. */
static void put_cells(const char *const cell[COLUMNS], const size_t width[COLUMNS], int from,
                      int to)
{
    struct buf b = BUF_INIT;

    for (int i = from; i < to; i++) {
        size_t w = text_width(cell[i], strlen(cell[i]));

        buf_addf(&b, "%s%*s", cell[i], i + 1 < COLUMNS ? (int)(width[i] + 2 - w) : 0, "");
    }
    cli_out("%s%s", buf_str(&b), to == COLUMNS ? "\n" : "");
    buf_release(&b);
}

static void print_table(const struct cli *c, const struct sandbox *const *rows, size_t n,
                        int64_t now)
{
    static const char *const heads[COLUMNS] = {"ID",    "NAME", "TOOL",   "STATE",
                                               "AGENT", "LEFT", "PROJECT"};
    char *(*cells)[COLUMNS] = xcalloc(n + 1, sizeof(*cells));
    size_t width[COLUMNS];
    bool paint = cli_color(c);

    for (int i = 0; i < COLUMNS; i++)
        width[i] = strlen(heads[i]);
    for (size_t r = 0; r < n; r++) {
        fill_row(rows[r], now, cells[r]);
        for (int i = 0; i < COLUMNS; i++) {
            size_t w = text_width(cells[r][i], strlen(cells[r][i]));
            width[i] = w > width[i] ? w : width[i];
        }
    }
    put_cells(heads, width, 0, COLUMNS);
    for (size_t r = 0; r < n; r++) {
        const char *const *row = (const char *const *)cells[r];

        put_cells(row, width, 0, STATE);
        cli_out_sgr(paint ? color_of(rows[r]) : "");
        cli_out("%s", row[STATE]);
        cli_out_sgr(paint ? "\033[0m" : "");
        cli_out("%*s", (int)(width[STATE] + 2 - text_width(row[STATE], strlen(row[STATE]))), "");
        put_cells(row, width, STATE + 1, COLUMNS);
        for (int i = 0; i < COLUMNS; i++)
            free(cells[r][i]);
    }
    free(cells);
}

static bool is_shown(const struct cli *c, const struct sandbox *s)
{
    if (cli_has(c, CLI_PROJECT) && !str_eq(s->project, c->value[CLI_PROJECT]))
        return false;
    return cli_has(c, CLI_ALL) || cli_is_up(s);
}

static void print_list(const struct cli *c, const struct model *m)
{
    const struct sandbox **rows = xcalloc(m->n_sandboxes + 1, sizeof(const struct sandbox *));
    size_t n = 0;

    for (size_t i = 0; i < m->n_sandboxes; i++)
        if (is_shown(c, &m->sandboxes[i]))
            rows[n++] = &m->sandboxes[i];
    if (cli_json(c)) {
        struct buf b = BUF_INIT;
        struct jw w;
        jw_init(&w, &b);
        jw_arr(&w, NULL);
        for (size_t i = 0; i < n; i++)
            json_row(&w, rows[i]);
        jw_end(&w);
        cli_out_json(&b);
        buf_release(&b);
    } else if (cli_has(c, CLI_QUIET)) {
        for (size_t i = 0; i < n; i++)
            if (rows[i]->sandbox_id)
                cli_out("%s\n", rows[i]->sandbox_id);
    } else {
        print_table(c, rows, n, server_clock_at(&m->clock, clock_boot_ms(), clock_wall_ms()));
    }
    free(rows);
}

int cli_ls(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK;

    if (cli_app_open(&a, c, &e) != 0)
        return cli_fail(&e);
    if (cli_app_known(&a, &e) == 0)
        print_list(c, app_model(a.app));
    else
        status = cli_app_fail(&a, &e);
    cli_app_close(&a);
    return status;
}
