/* cc-tui export: a transcript to keep. cc-tui search: where something was said. */
#include "cli_priv.h"

#include <cct/model/export.h>
#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HITS = 50, HITS_PAGE = 500 };

static void put_bytes(void *ctx, const char *data, size_t len)
{
    if (*(const int *)ctx == EXPORT_JSON)
        cli_out_json_part(data, len);
    else
        cli_out_bytes(data, len); /* it was cleaned */
}

static void drop_bytes(void *ctx, const char *data, size_t len)
{
    (void)ctx;
    (void)data;
    (void)len;
}

/* By the ending of the file's name. */
static int format_of(struct cli *c, const char *file)
{
    const char *dot = file ? strrchr(file, '.') : NULL;

    if (!file || !dot || strchr(dot, '/'))
        return cli_json(c) ? EXPORT_JSON : EXPORT_MARKDOWN;
    return export_format_parse(str_eq(dot, ".txt") ? "text" : dot + 1);
}

static char *absolute(const char *file, struct err *e)
{
    char *here = *file == '/' ? NULL : getcwd(NULL, 0), *path;

    if (*file == '/')
        return xstrdup(file);
    if (!here) {
        err_sys(e, ERR_IO, "the current folder has no name");
        return NULL;
    }
    path = fs_join(here, file);
    free(here);
    return path;
}

int cli_export(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK, format = format_of(c, c->n_args > 1 ? c->args[1] : NULL);
    char *path = c->n_args > 1 && format >= 0 ? absolute(c->args[1], &e) : NULL;

    if (format < 0)
        return cli_usage("'%s' ends neither in .md, .txt nor .jsonl", c->args[1]);
    if (e.code)
        return cli_fail(&e);
    if (cli_app_open(&a, c, &e) != 0) {
        free(path);
        return cli_fail(&e);
    }
    /* what is kept here can be had without a service, too */
    if (cli_app_known(&a, &e) != 0)
        cli_say(c, "only what is kept here: %s", e.text);
    bool online = e.code == 0;
    e = (struct err){0};
    const struct sandbox *s = a.signal ? NULL : cli_app_find(&a, c->args[0], &e);
    if (!s) {
        status = cli_app_fail(&a, &e);
        cli_app_close(&a);
        free(path);
        return status;
    }
    uint64_t id = s->id;
    int rc = 0;
    if (online && s->session) { /* what the agent has put out lately is fetched first */
        app_follow(a.app, id);
        rc = cli_app_wait(&a, app_events(a.app, id, false, drop_bytes, NULL), &e);
    }
    if (rc != 0 && rc != ERR_CANCELLED) {
        cli_say(c, "what the agent put out lately could not be fetched: %s", e.text);
        e = (struct err){0};
        rc = 0;
    }
    if (rc == 0)
        rc = cli_app_wait(&a, app_export(a.app, id, format, path, put_bytes, &format), &e);
    if (rc != 0)
        status = cli_app_fail(&a, &e);
    else if (path)
        cli_say(c, "written to %s", a.text ? a.text : path);
    cli_app_close(&a);
    free(path);
    return status;
}

/* --- search --------------------------------------------------------------------------- */

struct hits {
    struct cli *c;
    struct cli_app *a;
    uint64_t req, before;
    size_t n;
    bool more, complete;
    struct buf lines; /* of JSON */
};

static char *unmarked(const char *text)
{
    char *copy = xstrdup(text), *to = copy;

    for (const char *s = copy; *s; s++)
        if (*s != 2 && *s != 3)
            *to++ = *s;
    *to = 0;
    return copy;
}

static void json_hit(struct hits *h, const struct found *f)
{
    char *text = unmarked(f->text), when[40];
    struct jw w;

    clock_format_rfc3339(when, sizeof(when), f->time_ms);
    jw_init(&w, &h->lines);
    jw_obj(&w, NULL);
    jw_str(&w, "time", when);
    jw_str(&w, "sandbox", f->name);
    jw_str(&w, "sandboxId", f->sandbox_id);
    jw_str(&w, "who", f->who);
    jw_str(&w, "text", text);
    jw_i64(&w, "offset", (int64_t)f->offset);
    jw_end(&w);
    buf_addc(&h->lines, '\n');
    free(text);
}

/* One line of it, its matches in bold where there are colours. */
static void print_hit(struct hits *h, const struct found *f)
{
    bool color = cli_color(h->c);
    char when[40];

    clock_format_rfc3339(when, sizeof(when), f->time_ms);
    when[16] = 0;
    when[10] = ' ';
    cli_out("%s  %s  %s: ", when, f->name ? f->name : f->sandbox_id ? f->sandbox_id : "-", f->who);
    for (const char *s = f->text; *s;) {
        size_t n = strcspn(s, "\002\003\n");

        cli_out("%.*s%s", (int)n, s, s[n] == '\n' ? " " : "");
        cli_out_sgr(!color || !s[n] || s[n] == '\n' ? "" : s[n] == 2 ? "\033[1m" : "\033[0m");
        s += n + (s[n] != 0);
    }
    cli_out("\n");
}

static void on_event(void *ctx, const struct msg *m)
{
    struct hits *h = ctx;
    const struct ev_hits *ev = (const struct ev_hits *)m;

    if (m->type != EV_HITS || m->req_id != h->req)
        return;
    for (size_t i = 0; i < ev->n; i++) {
        h->before = ev->v[i].id;
        h->n++;
        if (cli_json(h->c))
            json_hit(h, &ev->v[i]);
        else if (!cli_has(h->c, CLI_QUIET))
            print_hit(h, &ev->v[i]);
    }
    h->more = ev->more;
    h->complete = ev->complete;
}

static char *all_words(const struct cli *c)
{
    struct buf b = BUF_INIT;

    for (int i = 0; i < c->n_args; i++)
        buf_addf(&b, "%s%s", i ? " " : "", c->args[i]);
    buf_addc(&b, ' '); /* the last word is whole */
    return buf_detach(&b, NULL);
}

static int look(struct hits *h, const char *words, struct err *e)
{
    size_t page = cli_has(h->c, CLI_ALL) ? HITS_PAGE : HITS;
    struct cli_app *a = h->a;
    int rc;

    do {
        h->more = false;
        h->req = app_search(a->app, words, 0, page, h->before, true);
        rc = cli_app_wait(a, h->req, e);
    } while (rc == 0 && h->more && cli_has(h->c, CLI_ALL));
    return rc;
}

int cli_search(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    struct hits h = {.c = c, .a = &a, .complete = true, .lines = BUF_INIT};
    char *words = all_words(c);
    int status = CLI_OK, rc = cli_app_open_stored(&a, c, &e);

    if (rc != 0) {
        free(words);
        return cli_fail(&e);
    }
    a.see = on_event;
    a.see_ctx = &h;
    rc = look(&h, words, &e);
    if (cli_json(c) && rc == 0)
        cli_print_array(buf_str(&h.lines), h.lines.len);
    else if (rc == 0 && cli_has(c, CLI_QUIET))
        cli_out("%zu\n", h.n);
    if (rc != 0)
        status = cli_app_fail(&a, &e);
    else if (!h.n)
        cli_say(c, "nothing was said like that");
    else if (h.more)
        cli_say(c, "these are the newest %zu; --all shows every place", h.n);
    if (rc == 0 && !h.complete)
        cli_say(c, "the index is not complete yet: try again for what is missing");
    if (rc == 0 && !h.n)
        status = CLI_NOT_FOUND;
    cli_app_close(&a);
    buf_release(&h.lines);
    free(words);
    return status;
}
