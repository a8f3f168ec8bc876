/* See the header. */
#include "foreignbed.h"

#include "plainhttp.h"
#include "rawhttp.h"

#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void start_json(struct buf *b, enum foreign_input in, const char *command)
{
    struct jw w;

    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_obj(&w, "process");
    jw_str(&w, "cmd", "/bin/sh");
    jw_arr(&w, "args");
    jw_str(&w, NULL, "-c");
    jw_str(&w, NULL, command);
    jw_end(&w);
    jw_end(&w);
    if (in == FOREIGN_PTY) {
        jw_obj(&w, "pty");
        jw_obj(&w, "size");
        jw_i64(&w, "cols", 80);
        jw_i64(&w, "rows", 24);
        jw_end(&w);
        jw_end(&w);
    } else {
        jw_bool(&w, "stdin", in == FOREIGN_STDIN);
    }
    jw_end(&w);
}

/* The request is out; *got holds what came up to `text` and beyond. */
static int stream(const struct foreign_box *x, const char *method, const struct buf *json,
                  const char *text, struct buf *got)
{
    struct buf b = BUF_INIT;
    int fd = rawhttp_dial(x->port);
    size_t n = json->len;
    char head[5] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};

    buf_addf(&b,
             "POST /process.Process/%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
             "E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\nX-Access-Token: %s\r\n"
             "Content-Type: application/connect+json\r\nContent-Length: %zu\r\n\r\n",
             method, x->port, x->id, x->token, n + sizeof(head));
    buf_add(&b, head, sizeof(head));
    buf_add(&b, json->p, n);
    plainhttp_send(fd, b.p, b.len);
    buf_release(&b);
    /* envelopes have NUL bytes in front: this is no string */
    while (!got->len || !memmem(got->p, got->len, text, strlen(text))) {
        char *to = buf_reserve(got, 4096);
        ssize_t r = read(fd, to, 4096);

        if (r <= 0)
            fail_msg("%s: ended before %s: %.*s", method, text, (int)got->len,
                     got->p ? got->p : "");
        got->len += (size_t)r;
    }
    return fd;
}

int foreign_start_until(const struct foreign_box *x, enum foreign_input in, const char *command,
                        const char *text)
{
    struct buf json = BUF_INIT, got = BUF_INIT;
    const char *p;
    int pid;

    start_json(&json, in, command);
    close(stream(x, "Start", &json, text, &got));
    p = memmem(got.p, got.len, "\"pid\":", 6);
    pid = p ? (int)strtol(p + 6, NULL, 10) : 0;
    buf_release(&json);
    buf_release(&got);
    assert_true(pid > 0);
    return pid;
}

int foreign_start(const struct foreign_box *x, enum foreign_input in, const char *command)
{
    return foreign_start_until(x, in, command, "}}}");
}

void foreign_await_end(const struct foreign_box *x, int pid)
{
    struct buf json = BUF_INIT, got = BUF_INIT;

    buf_addf(&json, "{\"process\":{\"pid\":%d}}", pid);
    close(stream(x, "Connect", &json, "\"end\"", &got));
    buf_release(&json);
    buf_release(&got);
}

/* --- the model -------------------------------------------------------------------- */

const struct sandbox *foreign_row(const struct appbed *b, const char *sandbox_id)
{
    const struct model *m = app_model(b->app);

    for (size_t i = 0; i < m->n_sandboxes; i++)
        if (str_eq(m->sandboxes[i].sandbox_id, sandbox_id))
            return &m->sandboxes[i];
    return NULL;
}

static bool is_listed(struct appbed *b, const void *id)
{
    return foreign_row(b, id) != NULL;
}

const struct sandbox *foreign_listed(struct appbed *b, const char *sandbox_id)
{
    assert_true(appbed_wait(b, is_listed, sandbox_id));
    return foreign_row(b, sandbox_id);
}

char *foreign_text(const struct appbed *b, uint64_t row)
{
    const struct transcript *t = model_transcript(app_model(b->app), row);
    struct buf out = BUF_INIT;

    for (size_t i = 0; t && i < t->n; i++)
        buf_addf(&out, "%s\n", t->v[i].text ? t->v[i].text : "");
    return buf_detach(&out, NULL);
}

struct wanted {
    uint64_t row;
    const char *text;
    enum watch_state st;
};

static bool shows(struct appbed *b, const void *arg)
{
    const struct wanted *w = arg;
    char *text = foreign_text(b, w->row);
    bool found = strstr(text, w->text) != NULL;

    free(text);
    return found;
}

void foreign_shows(struct appbed *b, uint64_t row, const char *text)
{
    struct wanted w = {.row = row, .text = text};
    char *all;

    if (appbed_wait(b, shows, &w))
        return;
    all = foreign_text(b, row);
    fail_msg("'%s' does not come:\n%.800s", text, all);
}

static bool watch_is(struct appbed *b, const void *arg)
{
    const struct wanted *w = arg;
    const struct procs *p = model_procs(app_model(b->app), w->row);

    return p && p->watch == w->st;
}

void foreign_watch_is(struct appbed *b, uint64_t row, enum watch_state st)
{
    struct wanted w = {.row = row, .st = st};
    const struct procs *p;

    if (appbed_wait(b, watch_is, &w))
        return;
    p = model_procs(app_model(b->app), row);
    fail_msg("the watch is %d (%s), not %d", p ? (int)p->watch : -1,
             p && p->watch_text ? p->watch_text : "", (int)st);
}

const struct proc *foreign_proc(struct appbed *b, uint64_t row, int pid)
{
    appbed_must(b, app_proc_list(b->app, row));
    return procs_find(model_procs(app_model(b->app), row), pid);
}

static bool armed(struct appbed *b, const void *arg)
{
    const struct ev_kill *k = app_model(b->app)->kill;

    return k && k->phase == KILL_ARMED && k->account_scope == *(const bool *)arg;
}

size_t foreign_kill_count(struct appbed *b, bool account)
{
    size_t n;

    app_kill_all_cancel(b->app);
    appbed_must(b, app_kill_all_open(b->app, account));
    assert_true(appbed_wait(b, armed, &account));
    n = account ? app_model(b->app)->kill->n_account : app_model(b->app)->kill->n_project;
    app_kill_all_cancel(b->app);
    return n;
}
