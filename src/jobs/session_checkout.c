/* The repository, cloned in the sandbox before the CLI starts in it. GitHub's key goes into
 * the environment of that one process, and only for github.com; what git says is foreign
 * text that may repeat what it was given. */
#include "session_priv.h"
#include "session_start.h"

#include <cct/model/repo.h>
#include <cct/text/clean.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define CLONE_MS 900000
#define TELL_MS 500
enum { SAYS_BYTES = 300, LINE_BYTES = 4096 };

/* --- what git says ------------------------------------------------------------------ */

/* Passwords in addresses: SCHEME://USER:PASSWORD@ keeps the scheme alone. */
static void drop_userinfo(char *line)
{
    for (char *p = line; (p = strstr(p, "://"));) {
        char *from = p + 3, *end = from + strcspn(from, "/ '\"");
        char *at = NULL;

        for (char *q = from; q < end; q++)
            if (*q == '@')
                at = q;
        if (at)
            memmove(from, at + 1, strlen(at + 1) + 1);
        p = from;
    }
}

static void drop_key(char *line, const char *key)
{
    size_t n = key ? strlen(key) : 0;

    for (char *p = line; n >= 4 && (p = strstr(p, key));) {
        memcpy(p, "****", 4);
        memmove(p + 4, p + n, strlen(p + n) + 1);
    }
}

static bool tells(const char *line)
{
    return str_starts(line, "fatal:") || str_starts(line, "error:") ||
           str_starts(line, "remote: ") || str_starts(line, "ERROR:");
}

struct says {
    struct buf told, last;
    bool goes_on;
};

static void on_line(void *ctx, const char *text, size_t len, const struct text_run *runs, size_t n)
{
    struct says *s = ctx;
    char *line = xstrndup(text, len), *t = str_trim(line);

    (void)runs;
    (void)n;
    if (*t) {
        buf_clear(&s->last);
        buf_adds(&s->last, t);
    }
    for (size_t end = strlen(t); end && t[end - 1] == '.' && tells(t);) /* what to do follows */
        t[--end] = 0;
    if (s->goes_on && *t && s->told.len + len + 2 < SAYS_BYTES) /* "fatal: ...:" and why */
        buf_addf(&s->told, " %s", t);
    s->goes_on = tells(t) && str_ends(t, ":");
    if (tells(t) && !strstr(t, "objects:") && s->told.len + len + 2 < SAYS_BYTES)
        buf_addf(&s->told, "%s%s", s->told.len ? "; " : "", t);
    free(line);
}

char *session_git_says(const char *text, size_t len, const char *key)
{
    struct says s = {BUF_INIT, BUF_INIT, false};
    struct clean *c = clean_new();
    char *line;

    clean_feed(c, text, len, on_line, &s);
    clean_flush(c, on_line, &s);
    clean_free(c);
    line = xstrdup(buf_str(s.told.len ? &s.told : &s.last));
    buf_release(&s.told);
    buf_release(&s.last);
    drop_key(line, key);
    drop_userinfo(line);
    if (strlen(line) > SAYS_BYTES) {
        char *cut = xstrndup(line, SAYS_BYTES), *clean = clean_line_dup(cut, 0);

        free(cut); /* it may have cut a character */
        free(line);
        line = clean;
    }
    return line;
}

/* --- why it failed -------------------------------------------------------------------- */

static bool has(const char *text, const char *a)
{
    return strstr(text, a) != NULL;
}

/* What to do about it. */
static void add_advice(struct buf *b, const struct provision *p, const struct repo *r,
                       const char *said)
{
    bool asked = has(said, "could not read Username") || has(said, "Authentication failed") ||
                 has(said, "could not read Password") || has(said, "returned error: 401") ||
                 has(said, "returned error: 403");
    bool hidden = r->github && (has(said, "not found") || has(said, "Not Found"));

    if (has(said, "Remote branch"))
        buf_addf(b, "; there is no branch \"%s\"", p->branch ? p->branch : "");
    else if (has(said, "already exists"))
        buf_addf(b, "; the template has a folder \"%s\" in its home already", r->folder);
    else if ((asked || hidden) && r->github && p->repo_key)
        buf_addf(b, "; the %s was sent: it is refused or may not read this repository, replace it "
                 "with cc-tui keys add github", p->repo_key_name);
    else if ((asked || hidden) && r->github)
        buf_adds(b, "; no GitHub key is set: cc-tui keys add github stores one");
    else if (asked)
        buf_addf(b, "; %s wants a password: keys are sent to github.com alone", r->show);
    else if (has(said, "Could not resolve host") || has(said, "Couldn't connect") ||
             has(said, "Failed to connect") || has(said, "unable to connect") || has(said, "Network is unreachable"))
        buf_adds(b, "; the sandbox cannot reach it: look whether it has a network");
    else if (has(said, "Permission denied (publickey)") || has(said, "Host key verification"))
        buf_adds(b, "; there is no ssh key in the sandbox: give an https address");
}

static void failed(struct session *s, const struct repo *r, const struct envd_end *end)
{
    struct provision *p = s->prov;
    char *said = session_git_says(p->git.p ? p->git.p : "", p->git.len,
                                  p->repo_key ? secret_value(p->repo_key) : NULL);
    const struct sandbox *row = session_row(s);
    struct buf advice = BUF_INIT;

    add_advice(&advice, p, r, said);
    if (end->err.code == ERR_TIMEOUT)
        session_provision_fail(s, ERR_TIMEOUT, "cloning %s failed: it was not done within %d minutes",
                               r->show, CLONE_MS / 60000);
    else if (end->err.code)
        session_provision_fail(s, end->err.code, "cloning %s failed: %s", r->show, end->err.text);
    else if (end->exit_code == 127)
        session_provision_fail(s, ERR_NOTFOUND, "cloning %s failed: there is no git in the template "
                               "'%s'; build one that has it, or leave the repository out", r->show,
                               row && row->template_id ? row->template_id : "");
    else
        session_provision_fail(s, ERR_IO, "cloning %s failed: %s%s", r->show,
                               *said ? said : "git gave no reason", buf_str(&advice));
    buf_release(&advice);
    free(said);
}

/* --- the clone ------------------------------------------------------------------------- */

/* The line git redraws: "Receiving objects:  42% (...)". */
static void tell(void *ctx)
{
    struct session *s = ctx;
    struct provision *p = s->prov;
    size_t end = p->git.len, from;
    char *line, *clean, *percent;
    struct repo r;

    p->git_timer = 0;
    if (repo_parse(p->repo, &r, NULL) != 0)
        return;
    while (end && strchr("\r\n ", p->git.p[end - 1]))
        end--;
    for (from = end; from && !strchr("\r\n", p->git.p[from - 1]);)
        from--;
    line = xstrndup(p->git.p ? p->git.p + from : "", end - from);
    clean = clean_line_dup(line, 60);
    percent = strchr(clean, '%');
    if (percent) {
        percent[1] = 0;
        session_step(s, "cloning %s: %s", r.show, clean);
    }
    free(clean);
    free(line);
    repo_release(&r);
}

static bool on_data(void *ctx, enum envd_stream st, const char *data, size_t len)
{
    struct session *s = ctx;
    struct provision *p = s->prov;

    if (st != ENVD_STDERR)
        return true;
    if (len > LINE_BYTES) {
        data += len - LINE_BYTES;
        len = LINE_BYTES;
    }
    if (p->git.len + len > 2 * LINE_BYTES) /* its end says what happened */
        buf_consume(&p->git, p->git.len - (LINE_BYTES < p->git.len ? LINE_BYTES : p->git.len));
    buf_add(&p->git, data, len);
    if (!p->git_timer)
        session_timer(s, &p->git_timer, TELL_MS, tell);
    return true;
}

static void on_end(void *ctx, const struct envd_end *end)
{
    struct session *s = ctx;
    struct provision *p = s->prov;
    struct repo r = {0};

    p->git_call = 0;
    session_cancel_timer(s, &p->git_timer);
    repo_parse(p->repo, &r, NULL);
    if (end->err.code == 0 && end->exited && end->exit_code == 0)
        session_provision_start(s);
    else
        failed(s, &r, end);
    repo_release(&r);
}

void session_checkout(struct session *s)
{
    struct provision *p = s->prov;
    struct repo r = {0};
    struct err e = {0};
    const char *args[] = {"-c", session_checkout_script, "sh", NULL, p->branch ? p->branch : "", NULL,
                          s->name, NULL};
    struct kv env[] = {{(char[]){SESSION_GIT_KEY}, NULL}, {NULL, NULL}};
    struct envd_proc_spec spec = {.cmd = "sh", .args = args, .timeout_ms = CLONE_MS};
    struct envd_proc_cb cb = {.on_data = on_data, .on_end = on_end, .ctx = s};

    if (!p->repo) {
        session_provision_start(s);
        return;
    }
    if (repo_parse(p->repo, &r, &e) != 0) {
        session_provision_fail(s, e.code, "%s", e.text);
        return;
    }
    args[3] = r.url;
    args[5] = r.folder;
    if (p->repo_key && r.github) {
        env[0].v = (char *)(uintptr_t)secret_value(p->repo_key);
        spec.env = env;
    }
    session_step(s, "cloning %s%s%s", r.show, p->branch ? ", branch " : "", p->branch ? p->branch : "");
    p->git_call = envd_start(s->envd, &spec, &cb);
    repo_release(&r);
}
