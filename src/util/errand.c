/* The thread that runs programs and writes files. It sleeps in poll() on its queue, on the
 * pipes of what runs, and on their ends. */
#include <cct/util/errand.h>

#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/log.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_RUNNING = 8, MAX_OUTPUT = 4096, MAX_EDITED = 8 << 20, KILL_MS = 1000, END_MS = 500,
       NO_PIDFD_MS = 50 };

struct run {
    struct errand *e;
    pid_t pid;
    int in, out, end;  /* its stdin, its output, its pidfd; -1 = closed or none */
    size_t written;
    int64_t until;     /* mono ms when it is ended, 0 = never */
    bool told;         /* it was asked to end: KILL comes next */
    bool late;
    struct buf output;
};
struct errands {
    struct mq *in, *out;
    pthread_t thread;
    bool started;
    ARR(struct errand_done *) taken; /* of the owner, oldest first */
    /* the thread's own */
    ARR(struct run *) runs;
    ARR(struct errand *) waiting;
    int64_t close_at;
};

static void done_free(struct msg *m)
{
    struct errand_done *d = (struct errand_done *)m;
    buf_release(&d->output);
    free(d);
}

static struct errand_done *answer_to(const struct errand *e)
{
    struct errand_done *d = xcalloc(1, sizeof(*d));
    msg_init(&d->m, 0, sizeof(*d), done_free);
    d->id = e->id;
    d->status = -1;
    return d;
}

static void tell(struct errands *x, struct errand *e, struct errand_done *d)
{
    mq_post(x->out, MQ_NORMAL, &d->m);
    msg_free(&e->m);
}

/* --- starting ------------------------------------------------------------------------ */

extern char **environ;

/* Ours with the errand's own in front, where the first one counts. */
static char **environment(const struct errand *e)
{
    size_t n = 0, own = 0;
    while (environ[n])
        n++;
    while (e->env && e->env[own])
        own++;
    char **v = xcalloc(n + own + 1, sizeof(*v));
    for (size_t i = 0; i < own; i++)
        v[i] = e->env[i];
    for (size_t i = 0, k = own; i < n; i++) {
        bool again = false;
        size_t name = strcspn(environ[i], "=") + 1;
        for (size_t o = 0; o < own && !again; o++)
            again = strncmp(environ[i], e->env[o], name) == 0;
        if (!again)
            v[k++] = environ[i];
    }
    return v;
}

static bool has_terminal(const struct errand *e)
{
    return e->kind == ERRAND_EDIT || e->kind == ERRAND_SHOW;
}

static int spawn(struct run *r, int in, int out, struct err *err)
{
    bool ours = has_terminal(r->e);
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&fa);
    if (!ours) {
        posix_spawn_file_actions_adddup2(&fa, in, 0);
        posix_spawn_file_actions_adddup2(&fa, out, 1);
        posix_spawn_file_actions_adddup2(&fa, out, 2);
    }
    posix_spawnattr_init(&at);
    posix_spawnattr_setsigdefault(&at, &all);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setflags(&at, (short)(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                          (ours ? 0 : POSIX_SPAWN_SETSID)));
    char **env = environment(r->e);
    int rc = posix_spawnp(&r->pid, r->e->argv[0], &fa, &at, r->e->argv, env);
    free(env);
    posix_spawnattr_destroy(&at);
    posix_spawn_file_actions_destroy(&fa);
    if (rc == 0)
        return 0;
    errno = rc;
    return err_sys(err, ERR_IO, "cannot run '%.100s'", r->e->argv[0]);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int start_run(struct run *r, struct err *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, rc = ERR_IO;
    if (!r->e->argv)
        return err_set(err, ERR_INVALID, "there is no program to run");
    if (has_terminal(r->e))
        rc = spawn(r, -1, -1, err);
    else if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        err_sys(err, ERR_IO, "cannot run '%.100s'", r->e->argv[0]);
    else
        rc = spawn(r, in[0], out[1], err);
    close_fd(&in[0]);
    close_fd(&out[1]);
    if (rc) {
        close_fd(&in[1]);
        close_fd(&out[0]);
        return rc;
    }
    r->in = in[1];
    r->out = out[0];
    if (r->in >= 0)
        fcntl(r->in, F_SETFL, O_NONBLOCK);
    if (r->out >= 0)
        fcntl(r->out, F_SETFL, O_NONBLOCK);
    r->end = (int)syscall(SYS_pidfd_open, r->pid, 0);
    r->until = r->e->timeout_ms ? clock_mono_ms() + r->e->timeout_ms : 0;
    return 0;
}

/* A file that was not there before: whoever can write to the folder cannot choose it. */
static int write_new(const struct errand *e, struct err *err)
{
    int fd = open(e->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, ERR_IO, "cannot make '%.200s'", e->path);
    int rc = fs_write_all(fd, e->input.p ? e->input.p : "", e->input.len);
    if (rc != 0) {
        err_sys(err, ERR_IO, "cannot write '%.200s'", e->path);
        unlink(e->path);
    }
    close(fd);
    return rc ? ERR_IO : 0;
}

static int make_folder(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char *dir = xstrndup(path, slash ? (size_t)(slash - path) : 0);
    int rc = *dir ? fs_mkdir_private(dir, err) : 0;
    free(dir);
    return rc;
}

static void begin(struct errands *x, struct errand *e)
{
    struct errand_done *d = answer_to(e);
    bool file = e->kind == ERRAND_WRITE || e->kind == ERRAND_EDIT, write = e->kind == ERRAND_WRITE;
    if (file && (make_folder(e->path, &d->err) ||
                 (write ? fs_write_private(e->path, e->input.p ? e->input.p : "", e->input.len,
                                           &d->err)
                        : write_new(e, &d->err)))) {
        tell(x, e, d);
        return;
    }
    if (write) {
        d->status = 0;
        tell(x, e, d);
        return;
    }
    struct run *r = xcalloc(1, sizeof(*r));
    *r = (struct run){.e = e, .in = -1, .out = -1, .end = -1};
    buf_init(&r->output, 0);
    if (e->kind == ERRAND_EDIT && e->argv)
        errand_argv(e, (const char *const[]){e->path, NULL});
    if (start_run(r, &d->err)) {
        if (file)
            unlink(e->path);
        free(r);
        tell(x, e, d);
        return;
    }
    msg_free(&d->m);
    *ARR_PUSH(&x->runs) = r;
}

/* --- what runs ------------------------------------------------------------------------ */

static void feed(struct run *r)
{
    while (r->in >= 0 && r->written < r->e->input.len) {
        ssize_t n = write(r->in, r->e->input.p + r->written, r->e->input.len - r->written);
        if (n > 0)
            r->written += (size_t)n;
        else if (n < 0 && errno == EINTR)
            continue;
        else if (n < 0 && errno == EAGAIN)
            return;
        else
            break; /* it wants no more: its status tells whether that is well */
    }
    close_fd(&r->in);
}

static void drain(struct run *r)
{
    char piece[4096];
    while (r->out >= 0) {
        ssize_t n = read(r->out, piece, sizeof(piece));
        if (n > 0) {
            size_t room = MAX_OUTPUT - r->output.len;
            buf_add(&r->output, piece, (size_t)n < room ? (size_t)n : room);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else {
            close_fd(&r->out);
        }
    }
}

static void end_group(struct run *r, int sig)
{
    if (has_terminal(r->e))
        kill(r->pid, sig);
    else
        kill(-r->pid, sig);
}

static void read_back(struct run *r, struct errand_done *d)
{
    size_t len = 0;
    char *text = d->status == 0 ? fs_read(r->e->path, MAX_EDITED, false, &len, &d->err) : NULL;
    if (text)
        buf_add(&d->output, text, len);
    free(text);
    unlink(r->e->path);
}

static void finish(struct errands *x, size_t i, int status)
{
    struct run *r = x->runs.v[i];
    struct errand_done *d = answer_to(r->e);
    drain(r);
    d->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (r->e->kind == ERRAND_EDIT)
        read_back(r, d);
    else
        buf_add(&d->output, r->output.p ? r->output.p : "", r->output.len);
    if (r->late)
        err_set(&d->err, ERR_TIMEOUT, "'%.100s' was ended: it took longer than %d s",
                r->e->argv[0], r->e->timeout_ms / 1000);
    else if (d->status && !d->err.code)
        err_set(&d->err, ERR_IO, "'%.100s' failed with status %d",
                r->e->argv[0], d->status);
    close_fd(&r->in);
    close_fd(&r->out);
    close_fd(&r->end);
    buf_release(&r->output);
    tell(x, r->e, d);
    free(r);
    ARR_REMOVE(&x->runs, i);
}

static void look_after(struct errands *x)
{
    int64_t now = clock_mono_ms();
    for (size_t i = x->runs.n; i-- > 0;) {
        struct run *r = x->runs.v[i];
        int status;
        feed(r);
        drain(r);
        if (r->until && now >= r->until) {
            end_group(r, r->told ? SIGKILL : SIGTERM);
            r->late = r->late || !x->close_at;
            r->told = true;
            r->until = now + KILL_MS;
        }
        pid_t got = waitpid(r->pid, &status, WNOHANG);
        if (got == r->pid || (got < 0 && errno == ECHILD))
            finish(x, i, got == r->pid ? status : 0);
    }
}

static int wait_ms(const struct errands *x)
{
    int64_t now = clock_mono_ms(), next = -1;
    for (size_t i = 0; i < x->runs.n; i++) {
        const struct run *r = x->runs.v[i];
        int64_t ms = r->until ? r->until - now : -1;
        if (r->end < 0 && (ms < 0 || ms > NO_PIDFD_MS))
            ms = NO_PIDFD_MS;
        ms = r->until && ms < 0 ? 0 : ms;
        if (ms >= 0 && (next < 0 || ms < next))
            next = ms;
    }
    return (int)next;
}

static void sleep_until_some(struct errands *x)
{
    struct pollfd p[1 + 3 * MAX_RUNNING];
    nfds_t n = 0;
    if (!x->close_at)
        p[n++] = (struct pollfd){.fd = mq_fd(x->in), .events = POLLIN};
    for (size_t i = 0; i < x->runs.n && i < MAX_RUNNING; i++) {
        const struct run *r = x->runs.v[i];
        p[n++] = (struct pollfd){.fd = r->in, .events = POLLOUT};
        p[n++] = (struct pollfd){.fd = r->out, .events = POLLIN};
        p[n++] = (struct pollfd){.fd = r->end, .events = POLLIN};
    }
    poll(p, n, wait_ms(x));
}

static void drop_waiting(struct errands *x)
{
    for (size_t i = 0; i < x->waiting.n; i++)
        msg_free(&x->waiting.v[i]->m);
    ARR_CLEAR(&x->waiting);
}

static void take_new(struct errands *x)
{
    for (struct msg *m = mq_take(x->in), *next; m; m = next) {
        next = m->next;
        *ARR_PUSH(&x->waiting) = (struct errand *)m;
    }
    if (x->close_at) /* came between the last look and the end */
        drop_waiting(x);
    while (x->waiting.n && x->runs.n < MAX_RUNNING) {
        struct errand *e = x->waiting.v[0];
        ARR_REMOVE(&x->waiting, 0);
        begin(x, e);
    }
}

/* The owner goes: what found no place is not done, whatever runs is asked to end soon. */
static void begin_end(struct errands *x)
{
    x->close_at = clock_mono_ms();
    drop_waiting(x);
    for (size_t i = 0; i < x->runs.n; i++)
        x->runs.v[i]->until = x->close_at + END_MS;
}

static void work(void *arg)
{
    struct errands *x = arg;
    for (;;) {
        take_new(x);
        if (mq_closed(x->in) && !x->close_at)
            begin_end(x);
        if (x->close_at && !x->runs.n)
            return;
        sleep_until_some(x);
        look_after(x);
    }
}

/* --- the owner's side --------------------------------------------------------------------- */

struct errands *errands_new(void)
{
    enum { QUEUE_BYTES = 1 << 20 };
    struct errands *x = xcalloc(1, sizeof(*x));
    x->in = mq_new(QUEUE_BYTES);
    x->out = mq_new(QUEUE_BYTES);
    return x;
}

void errands_post(struct errands *x, struct errand *take)
{
    if (!x->started && thread_start(&x->thread, THREAD_WORK, "errands", work, x) != 0) {
        struct errand_done *d = answer_to(take);
        err_set(&d->err, ERR_IO, "cannot start a thread for it");
        tell(x, take, d);
        return;
    }
    x->started = true;
    mq_post(x->in, MQ_NORMAL, &take->m);
}

int errands_fd(const struct errands *x)
{
    return mq_fd(x->out);
}

struct errand_done *errands_take(struct errands *x)
{
    for (struct msg *m = x->taken.n ? NULL : mq_take(x->out), *next; m; m = next) {
        next = m->next;
        *ARR_PUSH(&x->taken) = (struct errand_done *)m;
    }
    if (!x->taken.n)
        return NULL;
    struct errand_done *d = x->taken.v[0];
    ARR_REMOVE(&x->taken, 0);
    return d;
}

void errands_free(struct errands *x)
{
    if (!x)
        return;
    mq_close(x->in);
    if (x->started && !thread_join_ms(x->thread, 2 * END_MS + KILL_MS)) {
        log_warn("a file or a program does not answer: what waits for it is left behind");
        return;
    }
    for (struct errand_done *d; (d = errands_take(x)) != NULL;)
        msg_free(&d->m);
    mq_free(x->in);
    mq_free(x->out);
    ARR_RELEASE(&x->taken);
    ARR_RELEASE(&x->runs);
    ARR_RELEASE(&x->waiting);
    free(x);
}
