/* cc-tui diff: what the agent of a sandbox has changed. */
#include "cli_priv.h"

#include <cct/model/files.h>
#include <cct/model/changes.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIFF_MAX (32u << 20)

static void on_data(void *ctx, const char *data, size_t len)
{
    buf_add(ctx, data, len);
}

static void print_json(const struct changes *d)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, d->branch ? "repository" : "folder", d->folder);
    if (d->branch)
        jw_str(&w, "branch", d->branch);
    jw_i64(&w, "added", d->added);
    jw_i64(&w, "removed", d->removed);
    jw_bool(&w, "cut", d->files_cut);
    jw_arr(&w, "files");
    for (size_t i = 0; i < d->n; i++) {
        jw_obj(&w, NULL);
        jw_str(&w, "path", d->v[i].path);
        jw_str(&w, "status", change_word(&d->v[i]));
        if (d->v[i].added >= 0)
            jw_i64(&w, "added", d->v[i].added);
        if (d->v[i].removed >= 0)
            jw_i64(&w, "removed", d->v[i].removed);
        if (d->v[i].added == -1)
            jw_bool(&w, "binary", true);
        jw_end(&w);
    }
    jw_end(&w);
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

static void print_stat(const struct cli *c, const struct changes *d)
{
    struct cli_table t = {.columns = 4, .heads = {"CHANGE", "ADDED", "REMOVED", "FILE"}};

    for (size_t i = 0; i < d->n; i++) {
        const struct change *f = &d->v[i];

        cli_table_add(&t, xstrdup(change_word(f)));
        cli_table_add(&t, f->added >= 0    ? xasprintf("+%ld", f->added)
                          : f->added == -1 ? xstrdup("binary")
                                           : xstrdup("-"));
        cli_table_add(&t, f->removed >= 0 ? xasprintf("-%ld", f->removed) : xstrdup("-"));
        cli_table_add_whole(&t, xstrdup(f->shown));
    }
    cli_table_print(&t);
    if (d->branch)
        cli_say(c, "%zu changed file%s, +%ld -%ld, branch %s%s", d->n, d->n == 1 ? "" : "s",
                d->added, d->removed, d->branch, d->files_cut ? "; the list is cut" : "");
    else
        cli_say(c, "%zu file%s newer than the session in %s%s%s", d->n, d->n == 1 ? "" : "s",
                d->folder, d->no_git ? "; there is no git in the sandbox" : ", no repository",
                d->files_cut ? "; the list is cut" : "");
}

static const char *color_of(const char *line)
{
    if (str_starts(line, "diff --git ") || str_starts(line, "+++ ") || str_starts(line, "--- "))
        return "\033[1m";
    return *line == '+' ? "\033[32m" : *line == '-' ? "\033[31m" : *line == '@' ? "\033[36m" : NULL;
}

/* On a terminal the cleaned lines; into a pipe the bytes, so that they can be applied. */
static void print_diff(const struct cli *c, const struct changes *d)
{
    bool color = cli_color(c);
    size_t new_files = 0;

    if (!isatty(STDOUT_FILENO) || cli_has(c, CLI_RAW)) {
        cli_out_bytes(d->diff ? d->diff : "", d->diff_len);
    } else {
        for (size_t i = 0; i < d->n_lines; i++) {
            const char *on = color ? color_of(d->line[i]) : NULL;

            cli_out_sgr(on ? on : "");
            cli_out("%s", d->line[i]);
            cli_out_sgr(on ? "\033[0m" : "");
            cli_out("\n");
        }
    }
    for (size_t i = 0; i < d->n; i++)
        new_files += d->v[i].status[0] == '?';
    if (d->diff_cut)
        cli_say(c, "the diff is cut here: it is longer than %u MiB", DIFF_MAX >> 20);
    if (new_files)
        cli_say(c, "%zu new file%s not in it; --stat names them", new_files,
                new_files == 1 ? " is" : "s are");
}

int cli_diff(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    struct buf got = BUF_INIT;
    struct app_file_cb cb = {.on_data = on_data, .ctx = &got};
    struct app_file f = {.op = FILE_OP_CHANGES, .max = cli_has(c, CLI_STAT) ? 0 : DIFF_MAX};
    struct changes d = {0};
    int status = CLI_OK;
    const struct sandbox *s = cli_app_begin(&a, c, c->args[0], &status);

    if (!s)
        return status;
    if (cli_app_wait(&a, app_file(a.app, s->id, &f, &cb), &e) != 0 ||
        changes_parse(&d, buf_str(&got), got.len, &e) != 0)
        status = cli_app_fail(&a, &e);
    else if (cli_json(c))
        print_json(&d);
    else if (cli_has(c, CLI_STAT) || !d.branch)
        print_stat(c, &d);
    else
        print_diff(c, &d);
    changes_release(&d);
    buf_release(&got);
    cli_app_close(&a);
    return status;
}
