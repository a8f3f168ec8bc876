/* Script lines of what is in a sandbox: its processes, files and changes. */
#include "screenscript.h"

#include <cct/model/files.h>
#include <cct/text/clean.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* PID COMMAND, with '|' between processes */
static void add_procs(struct procs *p, char *line)
{
    char *save = NULL;
    p->v = xcalloc(16, sizeof(*p->v));
    for (char *one = strtok_r(line, "|", &save); one && p->n < 16;
         one = strtok_r(NULL, "|", &save)) {
        struct proc *v = &p->v[p->n++];
        one += *one == ' ';
        v->pid = (int)strtoll(script_word(&one), NULL, 10);
        v->ident = (uint64_t)v->pid * 7;
        v->command = xstrdup(one);
        if (v->pid % 2 == 0)
            v->cwd = xstrdup("/home/user/work");
    }
}

/* procs ID listed|asking|cannot none|live|lost|ended PID-WATCHED [TEXT or processes] */
static void procs_line(struct script *s, char *line)
{
    static const char *const states[] = {"unknown", "asking", "listed", "cannot"};
    static const char *const watches[] = {"none", "opening", "live", "lost", "paused", "ended"};
    struct ev_procs *ev = ev_new(EV_PROCS);
    ev->sandbox = (uint64_t)strtoll(script_word(&line), NULL, 10);
    const char *w = script_word(&line);
    for (int i = 0; i < 4; i++)
        if (!strcmp(w, states[i]))
            ev->p.state = (enum procs_state)i;
    w = script_word(&line);
    for (int i = 0; i < 6; i++)
        if (!strcmp(w, watches[i]))
            ev->p.watch = (enum watch_state)i;
    ev->p.watched = (int)strtoll(script_word(&line), NULL, 10);
    if (ev->p.state == PROCS_CANNOT)
        ev->p.text = xstrdup(line);
    else if (ev->p.state == PROCS_LISTED)
        add_procs(&ev->p, line);
    script_post(s, ev);
}

/* "\n", "\e" and "\0" become what they stand for; its length. */
static size_t unescape(char *s)
{
    char *to = s;
    for (const char *p = s; *p; p++) {
        if (*p == '\\' && p[1]) {
            p++;
            *to++ = *p == 'n' ? '\n' : *p == 'e' ? '\033' : *p == '0' ? '\0' : *p;
        } else {
            *to++ = *p;
        }
    }
    *to = 0;
    return (size_t)(to - s);
}

/* The request that is answered is over before its answer: the answer may ask for more. */
static void file_ended(struct script *s, const char *why)
{
    struct app_file_cb cb = s->app->file;
    struct ev_done d = {0};
    s->app->file = (struct app_file_cb){0};
    if (*why)
        err_set(&d.err, strstr(why, "already") ? ERR_CONFLICT : ERR_NOTFOUND, "%s", why);
    d.text = (char *)"the/file";
    if (cb.on_end)
        cb.on_end(cb.ctx, &d);
}

static void files_line(struct script *s, char *line)
{
    static const int64_t when = INT64_C(1787400000000);
    struct file_list l = {0};
    ARR(struct file_entry) v = ARR_INIT;
    char *bar;
    l.path = xstrdup(script_word(&line));
    while ((bar = strchr(line, '|'))) {
        char *item = bar + 1 + strspn(bar + 1, " "), *next = strstr(item, " | ");
        struct file_entry *f = ARR_PUSH(&v);
        line = next ? next + 1 : item + strlen(item);
        if (next)
            *next = 0;
        char kind = *script_word(&item);
        f->kind = kind == 'd' ? FILE_FOLDER : FILE_PLAIN;
        f->size = strtoll(script_word(&item), NULL, 10);
        str_copy(f->perms, sizeof(f->perms), script_word(&item));
        f->mtime_ms = when;
        unescape(item);
        f->name = xstrdup(item);
        f->shown = clean_line_dup(item, 0);
        f->owner = xstrdup("user");
        f->target = kind == 'l' ? xstrdup("/etc/somewhere") : NULL;
    }
    l.v = v.v;
    l.n = v.n;
    if (s->app->file.on_list)
        s->app->file.on_list(s->app->file.ctx, &l);
    file_list_release(&l);
    file_ended(s, "");
}

static void filetext_line(struct script *s, char *line)
{
    size_t n = unescape(line);
    if (s->app->file.on_data)
        s->app->file.on_data(s->app->file.ctx, line, n);
    file_ended(s, "");
}

static void progress_line(struct script *s, char *line)
{
    struct ev_progress p = {.file = 1, .files = 1};
    p.done = strtoull(script_word(&line), NULL, 10);
    p.total = strtoull(script_word(&line), NULL, 10);
    if (s->app->file.on_progress)
        s->app->file.on_progress(s->app->file.ctx, &p);
}

static void add_part(struct buf *b, const char *name, const struct buf *part)
{
    buf_addf(b, "part %s %zu %zu\n", name, part->len, part->len);
    buf_add(b, part->p ? part->p : "", part->len);
}

static void add_change(char *item, struct buf *status, struct buf *counts, struct buf *diff)
{
    const char *xy = script_word(&item);
    long added = strtol(script_word(&item), NULL, 10), removed = strtol(script_word(&item), NULL, 10);
    buf_addf(status, "%c%c %s", xy[0] == '.' ? ' ' : xy[0], xy[1] == '.' ? ' ' : xy[1], item);
    buf_addc(status, 0);
    if (*xy == '?')
        return;
    if (added < 0) { /* as git has it of bytes that are no text */
        buf_addf(counts, "-\t-\t%s", item);
        buf_addc(counts, 0);
        buf_addf(diff, "diff --git a/%s b/%s\nBinary files a/%s and b/%s differ\n", item, item, item,
                 item);
        return;
    }
    buf_addf(counts, "%ld\t%ld\t%s", added, removed, item);
    buf_addc(counts, 0);
    buf_addf(diff, "diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n@@ -1,%ld +1,%ld @@\n", item, item,
             item, item, removed, added);
    for (long i = 0; i < removed; i++)
        buf_addf(diff, "-was line %ld\n", i + 1);
    for (long i = 0; i < added; i++)
        buf_addf(diff, "+is line %ld \033[31mred\n", i + 1);
}

static void changes_line(struct script *s, char *line)
{
    struct buf b = BUF_INIT, status = BUF_INIT, counts = BUF_INIT, diff = BUF_INIT;
    const char *branch = script_word(&line);
    char *bar;
    bool repo = strcmp(branch, "-") != 0;
    buf_addf(&b, repo ? "repo /home/user/web\nbranch %s\n" : "dir /home/user\n", branch);
    while ((bar = strchr(line, '|'))) {
        char *item = bar + 1 + strspn(bar + 1, " "), *next = strstr(item, " | ");
        line = next ? next + 1 : item + strlen(item);
        if (next)
            *next = 0;
        add_change(item, &status, &counts, &diff);
    }
    if (repo) {
        add_part(&b, "status", &status);
        add_part(&b, "numstat", &counts);
        add_part(&b, "diff", &diff);
    }
    buf_adds(&b, "end\n");
    if (s->app->file.on_data)
        s->app->file.on_data(s->app->file.ctx, b.p, b.len);
    file_ended(s, "");
    buf_release(&b);
    buf_release(&status);
    buf_release(&counts);
    buf_release(&diff);
}

static void fileend_line(struct script *s, char *why)
{
    file_ended(s, why);
}

const struct script_verb script_file_verbs[] = {
    {"procs", procs_line}, {"files", files_line}, {"filetext", filetext_line},
    {"fileend", fileend_line}, {"progress", progress_line}, {"changes", changes_line}, {NULL, NULL}};
