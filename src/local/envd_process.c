/* process.Process: the table of processes and the methods on it. A process
 * belongs to the sandbox, not to the stream that started it. */
#include "envd_process.h"
#include "init_notes.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NAME_MAX_LEN 64u /* of a command, in the log */

/* --- life of a process ---------------------------------------------------- */

static void proc_free(struct proc *p)
{
    struct proc **at = &p->e->procs;
    while (*at != NULL && *at != p)
        at = &(*at)->next;
    if (*at == p)
        *at = p->next;
    proc_io_close(p);
    proc_feeds_drop(p);
    if (p->timer != NULL)
        event_free(p->timer);
    if (p->deadline != NULL)
        event_free(p->deadline);
    free(p->tag);
    free(p->name);
    free(p->config_json);
    free(p->end_json);
    free(p);
}

static struct proc *proc_new(struct envd *e)
{
    struct proc *p = xcalloc(1, sizeof(*p));
    p->e = e;
    p->fd_in = -1;
    for (int i = 0; i < PROC_NOUT; i++)
        p->fd_out[i] = -1;
    return p;
}

static const char *signal_name(int sig)
{
    static const struct {
        int sig;
        const char *name;
    } names[] = {{SIGHUP, "hangup"},
                 {SIGINT, "interrupt"},
                 {SIGQUIT, "quit"},
                 {SIGILL, "illegal instruction"},
                 {SIGABRT, "aborted"},
                 {SIGBUS, "bus error"},
                 {SIGKILL, "killed"},
                 {SIGFPE, "floating point exception"},
                 {SIGPIPE, "broken pipe"},
                 {SIGSEGV, "segmentation fault"},
                 {SIGALRM, "alarm clock"},
                 {SIGTERM, "terminated"},
                 {SIGUSR1, "user defined signal 1"},
                 {SIGUSR2, "user defined signal 2"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].sig == sig)
            return names[i].name;
    return NULL;
}

static void status_text(struct buf *text, int status)
{
    if (WIFEXITED(status))
        buf_addf(text, "exit status %d", WEXITSTATUS(status));
    else if (signal_name(WTERMSIG(status)) != NULL)
        buf_addf(text, "signal: %s", signal_name(WTERMSIG(status)));
    else
        buf_addf(text, "signal: signal %d", WTERMSIG(status));
    if (WIFSIGNALED(status) && WCOREDUMP(status))
        buf_adds(text, " (core dumped)");
}

/* The end event as envd writes it: zero values are left out. */
static char *end_json(int status)
{
    struct buf text = BUF_INIT, b = BUF_INIT;
    struct jw w;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    status_text(&text, status);
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_obj(&w, "event");
    jw_obj(&w, "end");
    if (code != 0)
        jw_i64(&w, "exitCode", code);
    if (WIFEXITED(status))
        jw_bool(&w, "exited", true);
    jw_str(&w, "status", buf_str(&text));
    if (code != 0)
        jw_str(&w, "error", buf_str(&text));
    jw_end(&w);
    jw_end(&w);
    jw_end(&w);
    buf_release(&text);
    return buf_detach(&b, NULL);
}

static void timer_set(struct proc *p, event_callback_fn fn, int64_t ms)
{
    struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
    if (p->timer != NULL)
        event_free(p->timer);
    p->timer = evtimer_new(p->e->base, fn, p);
    evtimer_add(p->timer, &tv);
}

static void on_forget(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    proc_free(arg);
}

static void note_start(const struct proc *p, const char *user)
{
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)p->pid);
    const struct note_field fields[] = {
        {"pid", pid}, {"cmd", p->name}, {"user", user}, {"tag", p->tag}};
    envd_note(NOTE_INFO, "process", fields, 4, "process %s started: %s", pid, p->name);
}

static void note_end(const struct proc *p)
{
    char pid[16];
    struct buf text = BUF_INIT;
    snprintf(pid, sizeof(pid), "%d", (int)p->pid);
    status_text(&text, p->status);
    const struct note_field fields[] = {
        {"pid", pid}, {"cmd", p->name}, {"status", buf_str(&text)}, {"tag", p->tag}};
    bool good = WIFEXITED(p->status) && WEXITSTATUS(p->status) == 0;
    envd_note(good ? NOTE_INFO : NOTE_WARN, "process", fields, 4, "process %s ended: %s, %s",
              pid, p->name, buf_str(&text));
    buf_release(&text);
}

static void proc_end(struct proc *p)
{
    note_end(p);
    proc_io_close(p);
    if (p->deadline != NULL)
        event_free(p->deadline);
    p->deadline = NULL;
    p->end_json = end_json(p->status);
    p->ended = true;
    sub_send_all(p, p->end_json, strlen(p->end_json));
    while (p->subs != NULL)
        sub_end(p->subs, CONNECT_OK, NULL);
    timer_set(p, on_forget, PROC_KEEP_S * 1000);
}

/* The process is gone but something still holds its pipes. */
static void on_drain(evutil_socket_t fd, short what, void *arg)
{
    struct proc *p = arg;
    (void)fd;
    (void)what;
    if (p->nblocked > 0) { /* a slow reader is not a reason to lose output */
        timer_set(p, on_drain, PROC_DRAIN_MS);
        return;
    }
    proc_io_final(p);
    proc_end(p);
}

void proc_output_done(struct proc *p)
{
    if (p->exited)
        proc_end(p);
}

void envd_process_reaped(struct envd *e, pid_t pid, int status)
{
    struct proc *p = e->procs;
    while (p != NULL && (p->pid != pid || p->exited))
        p = p->next;
    if (p == NULL)
        return; /* an orphan that came to us by inheritance */
    p->exited = true;
    p->status = status;
    if (p->fd_out[PROC_OUT] < 0 && p->fd_out[PROC_ERR] < 0)
        proc_end(p);
    else
        timer_set(p, on_drain, PROC_DRAIN_MS);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct proc *p = arg;
    (void)fd;
    (void)what;
    if (p->e->paused_mono == 0 && !p->exited)
        kill(p->pid, SIGKILL);
}

static void deadline_set(struct proc *p, int64_t ms)
{
    struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
    if (p->deadline == NULL)
        p->deadline = evtimer_new(p->e->base, on_deadline, p);
    p->deadline_mono = clock_mono_ms() + ms;
    evtimer_add(p->deadline, &tv);
}

void envd_process_shift(struct envd *e, int64_t pause_ms)
{
    int64_t now = clock_mono_ms();
    for (struct proc *p = e->procs; p != NULL; p = p->next) {
        if (p->deadline == NULL)
            continue;
        int64_t left = p->deadline_mono + pause_ms - now;
        deadline_set(p, left > 0 ? left : 0);
    }
}

void envd_process_free_all(struct envd *e)
{
    while (e->procs != NULL) {
        struct proc *p = e->procs;
        while (p->subs != NULL)
            sub_end(p->subs, CONNECT_UNAVAILABLE, "the sandbox is ending");
        proc_free(p);
    }
}

/* --- look-up -------------------------------------------------------------- */

static bool matches(const struct proc *p, int64_t pid, const char *tag)
{
    return tag != NULL ? str_eq(p->tag, tag) : p->pid == pid;
}

/* Newest first, running before ended: pids and tags may come back. */
struct proc *proc_find(struct envd *e, const struct cJSON *in, bool ended_too,
                       enum connect_code *code, struct buf *why)
{
    const struct cJSON *sel = json_get(in, "process");
    const char *tag = json_str(sel, "tag", NULL);
    int64_t pid = json_i64(sel, "pid", -1);
    if (tag == NULL && pid <= 0) {
        *code = CONNECT_INVALID_ARGUMENT;
        buf_adds(why, "the request names no process by pid or tag");
        return NULL;
    }
    for (int ended = 0; ended <= (ended_too ? 1 : 0); ended++)
        for (struct proc *p = e->procs; p != NULL; p = p->next)
            if (p->ended == (ended == 1) && matches(p, pid, tag))
                return p;
    *code = CONNECT_NOT_FOUND;
    if (tag != NULL)
        buf_addf(why, "process with tag %.200s not found", tag);
    else
        buf_addf(why, "process with pid %lld not found", (long long)pid);
    return NULL;
}

/* --- Start, Connect ------------------------------------------------------- */

static char *config_json(const struct cJSON *config)
{
    struct buf b = BUF_INIT;
    struct jw w;
    static const char *const parts[] = {"args", "envs"};
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "cmd", json_str(config, "cmd", ""));
    for (size_t i = 0; i < 2; i++) {
        const struct cJSON *part = json_get(config, parts[i]);
        char *text = part != NULL ? json_text(part) : NULL;
        if (text != NULL)
            jw_raw(&w, parts[i], text);
        free(text);
    }
    if (json_str(config, "cwd", NULL) != NULL)
        jw_str(&w, "cwd", json_str(config, "cwd", ""));
    jw_end(&w);
    return buf_detach(&b, NULL);
}

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static unsigned size_of(const struct cJSON *size, const char *name, unsigned def)
{
    int64_t v = json_i64(size, name, 0);
    return v > 0 && v <= 0xFFFF ? (unsigned)v : def;
}

/* The folder to start in as new memory; NULL when the one asked for is none. */
static char *cwd_choose(struct envd *e, const char *user, const char *asked)
{
    const char *home = envd_home_of(e, user);
    if (asked == NULL || *asked == '\0') {
        const char *first = str_eq(e->workdir, e->home) ? home : e->workdir;
        return xstrdup(is_dir(first) ? first : is_dir(home) ? home : "/");
    }
    char *path = envd_fs_path_of(e, user, asked);
    if (path != NULL && !is_dir(path)) {
        free(path);
        path = NULL;
    }
    return path;
}

/* True when it is absent, or a list (an object) of strings and nothing else. */
static bool all_strings(const struct cJSON *j, bool (*is_kind)(const struct cJSON *))
{
    if (j != NULL && !is_kind(j))
        return false;
    for (const struct cJSON *c = json_first(j); c != NULL; c = json_next(c))
        if (!json_is_string(c))
            return false;
    return true;
}

static enum connect_code spec_read(struct envd *e, const struct cJSON *in,
                                   struct proc_spec *spec, char **cwd, struct buf *why)
{
    const struct cJSON *c = json_get(in, "process");
    const struct cJSON *pty = json_get(in, "pty");
    const struct cJSON *size = json_get(pty, "size");
    spec->cmd = json_str(c, "cmd", "");
    spec->args = json_get(c, "args");
    spec->envs = json_get(c, "envs");
    spec->pty = json_is_object(pty);
    spec->cols = size_of(size, "cols", 80);
    spec->rows = size_of(size, "rows", 24);
    spec->stdin_on = json_bool(in, "stdin", true);
    if (spec->cmd[0] == '\0') {
        buf_adds(why, "the request names no command");
        return CONNECT_INVALID_ARGUMENT;
    }
    if (!all_strings(spec->args, json_is_array) || !all_strings(spec->envs, json_is_object)) {
        buf_adds(why, "args must be a list of strings, envs an object of strings");
        return CONNECT_INVALID_ARGUMENT;
    }
    *cwd = cwd_choose(e, spec->user, json_str(c, "cwd", NULL));
    if (*cwd == NULL) {
        buf_addf(why, "cwd '%.300s' does not exist or is no folder", json_str(c, "cwd", ""));
        return CONNECT_INVALID_ARGUMENT;
    }
    spec->cwd = *cwd;
    return CONNECT_OK;
}

/* The command without its folder, as new memory. Who puts arguments into the
 * command's own field has made a mistake, and they may be secret: they are cut. */
static char *name_of(const char *cmd)
{
    size_t len = strcspn(cmd, " \t\r\n");
    const char *slash = memrchr(cmd, '/', len);
    const char *name = slash != NULL ? slash + 1 : cmd;
    len -= (size_t)(name - cmd);
    return xstrndup(name, len < NAME_MAX_LEN ? len : NAME_MAX_LEN);
}

static struct proc *proc_start(struct envd *e, const struct cJSON *in,
                               const struct proc_spec *spec, int *error)
{
    struct proc *p = proc_new(e);
    *error = -proc_spawn(e, p, spec);
    if (*error != 0) {
        free(p);
        return NULL;
    }
    p->pty = spec->pty;
    p->stdin_open = spec->stdin_on || spec->pty;
    p->tag = xstrdup(json_str(in, "tag", NULL));
    p->name = name_of(spec->cmd);
    p->config_json = config_json(json_get(in, "process"));
    p->next = e->procs;
    e->procs = p;
    note_start(p, spec->user);
    proc_io_start(p);
    return p;
}

void envd_process_start(struct envd *e, struct http_req *req, const struct cJSON *in,
                        int64_t timeout_ms)
{
    char user[64];
    struct proc_spec spec = {.user = user};
    struct buf why = BUF_INIT;
    char *cwd = NULL;
    int error = 0;
    if (!envd_user(e, req, user, sizeof(user))) {
        envd_stream_error(req, CONNECT_UNAUTHENTICATED, "invalid username: '%.60s'", user);
        return;
    }
    enum connect_code code = spec_read(e, in, &spec, &cwd, &why);
    if (code != CONNECT_OK) {
        envd_stream_error(req, code, "%s", buf_str(&why));
    } else {
        struct proc *p = proc_start(e, in, &spec, &error);
        if (p == NULL) {
            char *name = name_of(spec.cmd);
            const struct note_field cmd = {"cmd", name};
            envd_note(NOTE_WARN, "process", &cmd, 1, "process not started: %s: %s", name,
                      strerror(error));
            free(name);
            envd_stream_error(req, connect_code_from_errno(error), "cannot start '%.200s': %s",
                              spec.cmd, strerror(error));
        } else {
            struct sub *s = sub_open(p, req);
            if (timeout_ms > 0) {
                sub_timeout_after(s, timeout_ms);
                deadline_set(p, timeout_ms);
            }
        }
    }
    free(cwd);
    buf_release(&why);
}

void envd_process_connect(struct envd *e, struct http_req *req, const struct cJSON *in,
                          int64_t timeout_ms)
{
    enum connect_code code = CONNECT_OK;
    struct buf why = BUF_INIT;
    struct proc *p = proc_find(e, in, true, &code, &why);
    if (p == NULL) {
        envd_stream_error(req, code, "%s", buf_str(&why));
    } else {
        struct sub *s = sub_open(p, req);
        if (p->ended) {
            sub_send(s, p->end_json, strlen(p->end_json));
            sub_end(s, CONNECT_OK, NULL);
        } else if (timeout_ms > 0) {
            sub_timeout_after(s, timeout_ms);
        }
    }
    buf_release(&why);
}

/* --- unary methods on one process ----------------------------------------- */

static enum connect_code do_send_input(struct proc *p, const struct cJSON *in, struct buf *why)
{
    return proc_input_apply(p, json_get(in, "input"), why);
}

static enum connect_code do_close_stdin(struct proc *p, const struct cJSON *in, struct buf *why)
{
    (void)in;
    if (p->pty) {
        buf_adds(why, "a pty's stdin cannot be closed; send byte 0x04 instead");
        return CONNECT_UNKNOWN;
    }
    if (p->stdin_open)
        proc_input_end(p);
    return CONNECT_OK;
}

static enum connect_code do_send_signal(struct proc *p, const struct cJSON *in, struct buf *why)
{
    const char *name = json_str(in, "signal", "");
    int64_t number = json_i64(in, "signal", 0);
    int sig = str_eq(name, "SIGNAL_SIGTERM") || number == SIGTERM   ? SIGTERM
              : str_eq(name, "SIGNAL_SIGKILL") || number == SIGKILL ? SIGKILL
                                                                    : 0;
    if (sig == 0) {
        buf_addf(why, "signal '%.60s' is not supported, only SIGTERM and SIGKILL", name);
        return CONNECT_UNIMPLEMENTED;
    }
    if (!p->exited && kill(p->pid, sig) != 0) {
        buf_addf(why, "cannot signal process %d: %s", (int)p->pid, strerror(errno));
        return CONNECT_INTERNAL;
    }
    return CONNECT_OK;
}

static enum connect_code do_update(struct proc *p, const struct cJSON *in, struct buf *why)
{
    const struct cJSON *size = json_path(in, "pty.size");
    if (json_get(in, "pty") == NULL)
        return CONNECT_OK;
    int rc =
        p->pty ? proc_resize(p, size_of(size, "cols", 80), size_of(size, "rows", 24)) : -ENOTTY;
    if (rc != 0) {
        buf_addf(why, "cannot resize: %s", p->pty ? strerror(-rc) : "the process has no pty");
        return CONNECT_INTERNAL;
    }
    return CONNECT_OK;
}

static void list(struct envd *e, struct http_req *req)
{
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_arr(&w, "processes");
    for (struct proc *p = e->procs; p != NULL; p = p->next) {
        if (p->exited)
            continue;
        jw_obj(&w, NULL);
        jw_raw(&w, "config", p->config_json);
        jw_i64(&w, "pid", p->pid);
        if (p->tag != NULL)
            jw_str(&w, "tag", p->tag);
        jw_end(&w);
    }
    jw_end(&w);
    jw_end(&w);
    envd_reply_json(req, 200, &b);
}

void envd_process_rpc(struct envd *e, struct http_req *req, const char *method,
                      const struct cJSON *in)
{
    static const struct {
        const char *name;
        enum connect_code (*run)(struct proc *, const struct cJSON *, struct buf *);
    } methods[] = {{"SendInput", do_send_input},
                   {"CloseStdin", do_close_stdin},
                   {"SendSignal", do_send_signal},
                   {"Update", do_update}};
    enum connect_code code = CONNECT_UNIMPLEMENTED;
    struct buf why = BUF_INIT, ok = BUF_INIT;
    if (str_eq(method, "List")) {
        list(e, req);
        return;
    }
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (!str_eq(method, methods[i].name))
            continue;
        struct proc *p = proc_find(e, in, false, &code, &why);
        if (p != NULL)
            code = methods[i].run(p, in, &why);
    }
    if (code != CONNECT_OK) {
        envd_rpc_error(req, code, "%s", buf_str(&why));
    } else {
        buf_adds(&ok, "{}");
        envd_reply_json(req, 200, &ok);
    }
    buf_release(&why);
}
