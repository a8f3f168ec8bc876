/* Work that may take long (removing, copying, joining whole trees) is done by a
 * child of the init, so that streams go on meanwhile. Where no child can be made it
 * is done on the spot. */
#include "envd_job.h"
#include "envd.h"
#include <cct/local/signals.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#define CHILD_PIPE 3
#define CHILD_ROOT 4
#define CHILD_FREE 5

struct job {
    struct envd *e;
    struct job *next, **link;
    struct event *readable;
    int fd;
    void (*done)(void *arg, const struct job_result *r);
    void *arg;
};

static void job_free(struct job *j)
{
    *j->link = j->next;
    if (j->next != NULL)
        j->next->link = j->link;
    event_free(j->readable);
    close(j->fd);
    free(j);
}

static void on_result(evutil_socket_t fd, short what, void *arg)
{
    struct job *j = arg;
    struct job_result r = {.err = 0};
    (void)what;
    ssize_t n = read(fd, &r, sizeof(r));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n != (ssize_t)sizeof(r))
        r = (struct job_result){.err = EINTR}; /* killed before it was through */
    j->done(j->arg, &r);
    job_free(j);
}

/* The child keeps nothing open that others wait for the end of. */
static void child_run(struct envd *e, int pipe_fd,
                      void (*work)(struct envd *, void *, struct job_result *), void *arg)
{
    struct job_result r = {.err = 0};
    int out = fcntl(pipe_fd, F_DUPFD, 64);
    int root = e->files.fd >= 0 ? fcntl(e->files.fd, F_DUPFD, 64) : -1;
    dup2(out, CHILD_PIPE);
    if (root >= 0)
        e->files.fd = dup2(root, CHILD_ROOT);
    close_range(root >= 0 ? CHILD_FREE : CHILD_ROOT, ~0u, 0);
    e->log_fd = -1;
    work(e, arg, &r);
    ssize_t n;
    do
        n = write(CHILD_PIPE, &r, sizeof(r));
    while (n < 0 && errno == EINTR);
    _exit(0);
}

static pid_t child_start(struct envd *e, const int fds[2],
                         void (*work)(struct envd *, void *, struct job_result *), void *arg)
{
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old); /* the loop's handlers must not run in it */
    pid_t pid = fork();
    if (pid == 0) {
        signals_default();
        signal(SIGXFSZ, SIG_IGN); /* the write says it */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        child_run(e, fds[1], work, arg);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    return pid;
}

void envd_job(struct envd *e, void (*work)(struct envd *, void *, struct job_result *),
              void (*done)(void *, const struct job_result *), void *arg)
{
    int fds[2] = {-1, -1};
    struct job_result r = {.err = 0};
    if (pipe2(fds, O_CLOEXEC) == 0 && child_start(e, fds, work, arg) > 0) {
        struct job *j = xcalloc(1, sizeof(*j));
        close(fds[1]);
        *j = (struct job){.e = e, .fd = fds[0], .done = done, .arg = arg};
        j->next = e->jobs;
        j->link = &e->jobs;
        if (j->next != NULL)
            j->next->link = &j->next;
        e->jobs = j;
        j->readable = event_new(e->base, j->fd, EV_READ | EV_PERSIST, on_result, j);
        event_add(j->readable, NULL);
        return;
    }
    if (fds[0] >= 0) {
        close(fds[0]);
        close(fds[1]);
    }
    work(e, arg, &r);
    done(arg, &r);
}

void envd_job_free_all(struct envd *e)
{
    struct job_result r = {.err = EINTR};
    while (e->jobs != NULL) {
        e->jobs->done(e->jobs->arg, &r);
        job_free(e->jobs);
    }
}
