/* cc-tui files ...: files of a sandbox. Names are foreign: what is printed was cleaned, what
 * goes back into a path is as it came. */
#include "cli_priv.h"

#include <cct/model/files.h>
#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One request with what it shows. */
struct asked {
    struct cli_app *a;
    struct file_list list;   /* its own */
    bool listed;
    struct clean *clean;     /* cat on a terminal */
    bool progress, shown;
};

/* --- what comes -------------------------------------------------------------------- */

static void on_list(void *ctx, const struct file_list *l)
{
    struct asked *q = ctx;

    file_list_release(&q->list);
    file_list_copy(&q->list, l);
    q->listed = true;
}

static void put_line(void *ctx, const char *text, size_t len, const struct text_run *runs,
                     size_t n_runs)
{
    (void)ctx, (void)runs, (void)n_runs;
    cli_out_bytes(text, len);
    cli_out("\n");
}

static void on_data(void *ctx, const char *data, size_t len)
{
    struct asked *q = ctx;

    if (q->clean)
        clean_feed(q->clean, data, len, put_line, NULL);
    else
        cli_out_bytes(data, len);
}

static void on_progress(void *ctx, const struct ev_progress *p)
{
    struct asked *q = ctx;
    char done[8], total[8];

    if (!q->progress)
        return;
    file_size_format((int64_t)p->done, done);
    file_size_format((int64_t)p->total, total);
    cli_err_sgr("\r");
    cli_err("%s of %s", done, total);
    if (p->files > 1)
        cli_err(", file %zu of %zu", p->file, p->files);
    cli_err_sgr("\033[K");
    q->shown = true;
}

/* 0, or a code with *e. */
static int ask(struct asked *q, uint64_t sandbox, const struct app_file *f, struct err *e)
{
    struct app_file_cb cb = {
        .on_list = on_list, .on_data = on_data, .on_progress = on_progress, .ctx = q};
    uint64_t req = app_file(q->a->app, sandbox, f, &cb);
    int rc = cli_app_wait(q->a, req, e);

    if (q->shown)
        cli_err_sgr("\r\033[K");
    q->shown = false;
    if (q->a->signal)
        app_file_cancel(q->a->app, req);
    return rc;
}

static void asked_release(struct asked *q)
{
    file_list_release(&q->list);
    if (q->clean)
        clean_flush(q->clean, put_line, NULL);
    clean_free(q->clean);
}

/* The sandbox, open; NULL with *status. */
static const struct sandbox *begin(struct cli *c, struct cli_app *a, struct asked *q, int *status)
{
    memset(q, 0, sizeof(*q));
    q->a = a;
    q->progress = isatty(STDERR_FILENO) && !cli_has(c, CLI_QUIET) && !cli_json(c);
    return cli_app_begin(a, c, c->args[0], status);
}

static int finish(struct asked *q, const struct err *e)
{
    int status = e->code ? cli_app_fail(q->a, e) : CLI_OK;

    asked_release(q);
    cli_app_close(q->a);
    return status;
}

/* --- ls ---------------------------------------------------------------------------- */

static void ls_json(const struct file_list *l)
{
    static const char *const kinds[] = {"file", "directory", "other"};
    struct buf b = BUF_INIT;
    struct jw w;
    char when[32];

    jw_init(&w, &b);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < l->n; i++) {
        const struct file_entry *f = &l->v[i];

        jw_obj(&w, NULL);
        jw_str(&w, "name", f->name);
        jw_str(&w, "type", kinds[f->kind]);
        jw_i64(&w, "size", f->size);
        jw_i64(&w, "mode", f->mode);
        jw_str(&w, "permissions", f->perms);
        jw_str(&w, "owner", f->owner);
        clock_format_rfc3339(when, sizeof(when), f->mtime_ms);
        jw_str(&w, "modified", f->mtime_ms ? when : NULL);
        if (f->target)
            jw_str(&w, "target", f->target);
        jw_end(&w);
    }
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

static void ls_table(const struct cli *c, const struct file_list *l)
{
    struct cli_table t = {.columns = 5, .heads = {"MODE", "OWNER", "SIZE", "MODIFIED", "NAME"}};
    char size[8], when[32];

    for (size_t i = 0; i < l->n; i++) {
        const struct file_entry *f = &l->v[i];

        file_size_format(f->size, size);
        clock_format_rfc3339(when, sizeof(when), f->mtime_ms);
        when[10] = ' ';
        when[16] = '\0';
        cli_table_add(&t, xstrdup(f->perms));
        cli_table_add(&t, xstrdup(f->owner));
        cli_table_add(&t, xstrdup(f->kind == FILE_FOLDER ? "-" : size));
        cli_table_add(&t, xstrdup(f->mtime_ms ? when : "-"));
        cli_table_add_whole(&t, f->target ? xasprintf("%s -> %s", f->shown, f->target)
                                : xasprintf("%s%s", f->shown, f->kind == FILE_FOLDER ? "/" : ""));
    }
    cli_table_print(&t);
    if (l->left_out)
        cli_say(c, "%zu more are left out", l->left_out);
}

int cli_files_ls(struct cli *c)
{
    struct cli_app a;
    struct asked q;
    struct err e = {0};
    int status;
    const struct sandbox *s = begin(c, &a, &q, &status);
    struct app_file f = {.op = FILE_OP_LIST, .path = c->n_args > 1 ? c->args[1] : NULL};

    if (!s)
        return status;
    if (ask(&q, s->id, &f, &e) == 0 && q.listed) {
        if (cli_json(c))
            ls_json(&q.list);
        else if (cli_has(c, CLI_QUIET))
            for (size_t i = 0; i < q.list.n; i++)
                cli_out("%s\n", q.list.v[i].shown);
        else
            ls_table(c, &q.list);
    }
    return finish(&q, &e);
}

/* --- cat --------------------------------------------------------------------------- */

int cli_files_cat(struct cli *c)
{
    struct cli_app a;
    struct asked q;
    struct err e = {0};
    int status;
    const struct sandbox *s;
    struct app_file f = {.op = FILE_OP_READ, .path = c->args[1]};

    if (cli_json(c))
        return cli_usage("'files cat' prints the file's bytes, no JSON");
    s = begin(c, &a, &q, &status);
    if (!s)
        return status;
    if (isatty(STDOUT_FILENO) && !cli_has(c, CLI_RAW))
        q.clean = clean_new();
    ask(&q, s->id, &f, &e);
    return finish(&q, &e);
}

/* --- what changes something -------------------------------------------------------- */

static void told(const struct cli *c, const struct asked *q, const char *what)
{
    struct buf b = BUF_INIT;
    struct jw w;

    if (!cli_json(c)) {
        cli_say(c, "%s %s", what, q->a->text ? q->a->text : "it");
        return;
    }
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "path", q->a->text);
    jw_str(&w, "done", what);
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

/* What has that name is replaced only when somebody says so. */
static int change(struct cli *c, struct app_file *f, const char *what, bool there)
{
    struct cli_app a;
    struct asked q;
    struct err e = {0};
    int status;
    const struct sandbox *s;
    uint64_t id;

    if (there && cli_has(c, CLI_READONLY))
        return cli_usage("this does nothing with --readonly");
    s = begin(c, &a, &q, &status);
    if (!s)
        return status;
    id = s->id;
    f->over = cli_has(c, CLI_YES);
    bool taken = ask(&q, id, f, &e) == ERR_CONFLICT && !f->over && strstr(e.text, "already");
    if (taken && !cli_can_ask(c)) {
        struct err why = e;

        err_set(&e, why.code, "%.400s; --yes replaces it", why.text);
    } else if (taken) {
        char *text = clean_text_dup(e.text, strlen(e.text));
        char *question = xasprintf("%s\nreplace it?", text);
        bool yes = cli_ask(question);

        free(question);
        free(text);
        if (!yes) {
            asked_release(&q);
            cli_app_close(&a);
            cli_err("%s", "cc-tui: nothing was done\n");
            return CLI_DECLINED;
        }
        err_clear(&e);
        f->over = true;
        ask(&q, id, f, &e);
    }
    if (!e.code)
        told(c, &q, what);
    return finish(&q, &e);
}

int cli_files_get(struct cli *c)
{
    struct app_file f = {
        .op = FILE_OP_GET, .path = c->args[1], .local = c->n_args > 2 ? c->args[2] : "."};

    return change(c, &f, "downloaded", false);
}

int cli_files_put(struct cli *c)
{
    struct app_file f = {
        .op = FILE_OP_PUT, .local = c->args[1], .path = c->n_args > 2 ? c->args[2] : NULL};

    return change(c, &f, "uploaded", true);
}

int cli_files_mkdir(struct cli *c)
{
    struct app_file f = {.op = FILE_OP_MKDIR, .path = c->args[1]};

    return change(c, &f, "made", true);
}

int cli_files_mv(struct cli *c)
{
    struct app_file f = {.op = FILE_OP_MOVE, .path = c->args[1], .to = c->args[2]};

    return change(c, &f, "moved", true);
}

/* --- rm ---------------------------------------------------------------------------- */

static int confirm(struct cli *c, const struct file_entry *f, const char *sandbox)
{
    char *path, *question;
    bool yes;

    if (cli_has(c, CLI_YES))
        return CLI_OK;
    path = clean_line_dup(f->path ? f->path : c->args[1], 0);
    question = xasprintf("delete %s%s in %s?", path,
                         f->kind == FILE_FOLDER && !f->target ? " and all that is in it" : "",
                         sandbox);
    yes = cli_ask(question);
    free(question);
    free(path);
    if (yes)
        return CLI_OK;
    cli_err("%s", "cc-tui: nothing was done\n");
    return CLI_DECLINED;
}

int cli_files_rm(struct cli *c)
{
    struct cli_app a;
    struct asked q;
    struct err e = {0};
    int status;
    const struct sandbox *s;
    struct app_file f = {.op = FILE_OP_STAT, .path = c->args[1]};
    uint64_t id;

    if (cli_has(c, CLI_READONLY) && !cli_has(c, CLI_DRY_RUN))
        return cli_usage("this does nothing with --readonly");
    if (!cli_has(c, CLI_YES) && !cli_has(c, CLI_DRY_RUN) && !cli_can_ask(c))
        return cli_usage("'files rm' cannot ask here; give --yes to do it");
    s = begin(c, &a, &q, &status);
    if (!s)
        return status;
    id = s->id;
    if (ask(&q, id, &f, &e) != 0 || !q.listed)
        return finish(&q, &e);
    if (cli_has(c, CLI_DRY_RUN)) {
        cli_say(c, "would delete %s", q.list.v[0].path ? q.list.v[0].path : c->args[1]);
        return finish(&q, &e);
    }
    s = model_sandbox(app_model(a.app), id);
    status = confirm(c, &q.list.v[0], s && s->name ? s->name : c->args[0]);
    if (status != CLI_OK) {
        asked_release(&q);
        cli_app_close(&a);
        return status;
    }
    f.op = FILE_OP_REMOVE;
    f.path = q.list.v[0].path ? q.list.v[0].path : c->args[1];
    if (ask(&q, id, &f, &e) == 0)
        told(c, &q, "deleted");
    return finish(&q, &e);
}
