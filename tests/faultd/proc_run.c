/* Real processes in the sandbox's jail: pipes or a terminal, input, output, the end. */
#include "proc.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PIECE = 32 << 10, TTY_PIECE = 16 << 10, INPUT_MAX = 64 << 20, LAST_ROUNDS = 64 };

struct texts { /* a list that ends with NULL */
    ARR(char *) a;
};

static void texts_add(struct texts *t, char *take)
{
    *ARR_PUSH(&t->a) = take;
}

/* NAME=value in place of an earlier one of that name. */
static void texts_set(struct texts *t, char *take)
{
    size_t name = strcspn(take, "=") + 1;

    for (size_t i = 0; i < t->a.n; i++)
        if (strncmp(t->a.v[i], take, name) == 0) {
            free(t->a.v[i]);
            t->a.v[i] = take;
            return;
        }
    texts_add(t, take);
}

static void texts_release(struct texts *t)
{
    for (size_t i = 0; i < t->a.n; i++)
        free(t->a.v[i]);
    ARR_RELEASE(&t->a);
}

/* ---- output ---- */

static void finish(struct proc *p)
{
    if (p->exited && !p->out[0].open && !p->out[1].open)
        proc_done(p, p->status);
}

static void close_outlet(struct outlet *o)
{
    if (!o->open)
        return;
    loop_unwatch(&o->w);
    close(o->w.fd);
    o->open = false;
}

static void on_output(struct watch *w, uint32_t events)
{
    struct outlet *o = OWNER_OF(w, struct outlet, w);
    struct proc *p = o->proc;
    static char room[PIECE];
    int rounds = p->exited ? LAST_ROUNDS : 1;
    ssize_t n;

    (void)events;
    if (p->held && !p->killed) { /* only an end was reported */
        loop_unwatch(w);
        return;
    }
    do {
        n = read(w->fd, room, p->tty ? TTY_PIECE : PIECE);
        if (n > 0 && !proc_emit(p, o->name, room, (size_t)n))
            return;
    } while (n > 0 && --rounds > 0);
    if (n > 0 || (n < 0 && errno == EAGAIN))
        return;
    close_outlet(o); /* EOF, or EIO of a terminal that nobody has any more */
    finish(p);
}

void run_hold(struct proc *p, bool on)
{
    for (int i = 0; i < 2; i++)
        if (p->out[i].open && on)
            loop_unwatch(&p->out[i].w);
        else if (p->out[i].open)
            loop_watch(&p->out[i].w, EPOLLIN);
}

static void open_outlet(struct proc *p, int i, int fd, const char *name)
{
    p->out[i] = (struct outlet){
        .w = {.fd = fd, .ready = on_output}, .proc = p, .name = name, .open = true};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    loop_watch(&p->out[i].w, EPOLLIN);
}

void run_exited(struct proc *p, int status)
{
    p->exited = true;
    p->status = status;
    for (int i = 0; i < 2; i++) { /* after a signal what children still say is lost */
        if (p->killed && p->out[i].open)
            on_output(&p->out[i].w, 0);
        if (p->killed)
            close_outlet(&p->out[i]);
    }
    finish(p);
}

/* ---- input ---- */

void run_close_input(struct proc *p)
{
    if (p->in.fd < 0 || p->input.len) {
        p->close_input = p->in.fd >= 0; /* after what waits */
        return;
    }
    loop_unwatch(&p->in);
    close(p->in.fd);
    p->in.fd = -1;
}

static void on_input(struct watch *w, uint32_t events)
{
    struct proc *p = OWNER_OF(w, struct proc, in);
    ssize_t n = p->input.len ? write(w->fd, p->input.p, p->input.len) : 0;

    (void)events;
    if (n > 0)
        buf_consume(&p->input, (size_t)n);
    if (n < 0 && errno != EAGAIN)
        buf_clear(&p->input); /* nobody reads it any more */
    if (p->input.len) {
        loop_watch(w, EPOLLOUT);
        return;
    }
    loop_unwatch(w);
    if (p->close_input)
        run_close_input(p);
}

void run_input(struct proc *p, const char *bytes, size_t len)
{
    if (p->in.fd < 0)
        return;
    buf_add(&p->input, bytes, len);
    on_input(&p->in, 0);
}

void run_resize(struct proc *p, int cols, int rows)
{
    struct winsize ws = {.ws_col = (unsigned short)(cols ? cols : 80),
                         .ws_row = (unsigned short)(rows ? rows : 24)};

    if (p->tty && p->out[0].open)
        ioctl(p->out[0].w.fd, TIOCSWINSZ, &ws);
}

void run_release(struct proc *p)
{
    close_outlet(&p->out[0]);
    close_outlet(&p->out[1]);
    buf_clear(&p->input);
    run_close_input(p);
    buf_release(&p->input);
}

/* ---- start ---- */

static void add_env(struct texts *t, const struct cJSON *env)
{
    for (const struct cJSON *v = json_first(env); v; v = json_next(v))
        if (json_str_of(v))
            texts_set(t, xasprintf("%s=%s", json_name(v), json_str_of(v)));
}

static void make_env(struct texts *t, const struct proc *p, const struct cJSON *config)
{
    const char *own = p->data->box->env;
    struct cJSON *j = own ? json_parse(own, strlen(own), NULL) : NULL;

    texts_add(t, xstrdup("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
    texts_add(t, xstrdup("HOME=/home/user"));
    texts_add(t, xstrdup("USER=user"));
    texts_add(t, xstrdup("LOGNAME=user"));
    add_env(t, j);
    add_env(t, json_get(config, "envs"));
    texts_add(t, NULL);
    json_free(j);
}

/* Our ends to p, the process's to fd. */
static bool open_ends(struct proc *p, const struct cJSON *start, int fd[3])
{
    const struct cJSON *size = json_path(start, "pty.size");
    int in[2] = {-1, -1}, out[2], err[2], master;

    p->tty = json_is_object(json_get(start, "pty"));
    if (p->tty) {
        if (openpty(&master, &fd[0], NULL, NULL, NULL))
            return false;
        fcntl(master, F_SETFD, FD_CLOEXEC);
        fcntl(fd[0], F_SETFD, FD_CLOEXEC);
        fd[1] = fd[2] = fd[0];
        open_outlet(p, 0, master, "pty");
        p->in.fd = fcntl(master, F_DUPFD_CLOEXEC, 3);
        run_resize(p, (int)json_i64(size, "cols", 0), (int)json_i64(size, "rows", 0));
        return true;
    }
    if (json_bool(start, "stdin", true) ? pipe2(in, O_CLOEXEC)
                                        : (in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
        return false;
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
        return false;
    fd[0] = in[0];
    fd[1] = out[1];
    fd[2] = err[1];
    open_outlet(p, 0, out[0], "stdout");
    open_outlet(p, 1, err[0], "stderr");
    p->in.fd = in[1];
    if (in[1] >= 0)
        fcntl(in[1], F_SETFL, O_NONBLOCK);
    return true;
}

static int spawn(struct proc *p, const struct cJSON *config, const int fd[3])
{
    struct texts argv = {ARR_INIT}, envp = {ARR_INIT};
    struct jail_job job = {
        .cwd = json_str(config, "cwd", ""), .fd = {fd[0], fd[1], fd[2]}, .tty = p->tty};
    int error;

    if (!*job.cwd)
        job.cwd = "/home/user";
    texts_add(&argv, xstrdup(json_str(config, "cmd", "")));
    for (const struct cJSON *a = json_first(json_get(config, "args")); a; a = json_next(a))
        texts_add(&argv, xstrdup(json_str_of(a) ? json_str_of(a) : ""));
    texts_add(&argv, NULL);
    make_env(&envp, p, config);
    job.argv = (const char *const *)(const void *)argv.a.v;
    job.envp = (const char *const *)(const void *)envp.a.v;
    error = jail_spawn(p->data->jail, &job, &p->pid);
    texts_release(&argv);
    texts_release(&envp);
    return error;
}

bool run_start(struct proc *p, const struct cJSON *start, struct exchange *x)
{
    int fd[3] = {-1, -1, -1}, error;
    char why[256];

    buf_init(&p->input, INPUT_MAX);
    p->in.ready = on_input;
    if (!data_jail(p->data, why, sizeof(why))) {
        rpc_refuse(x, "internal", why);
        return false;
    }
    error = open_ends(p, start, fd) ? spawn(p, json_get(start, "process"), fd) : errno;
    for (int i = 0; i < (p->tty ? 1 : 3); i++)
        if (fd[i] >= 0)
            close(fd[i]);
    if (error) {
        snprintf(why, sizeof(why), "cannot start the process: %s",
                 error == ENOTDIR ? "the working folder does not exist" : strerror(error));
        rpc_refuse(x, error == EPIPE ? "internal" : "invalid_argument", why);
    }
    return error == 0;
}
