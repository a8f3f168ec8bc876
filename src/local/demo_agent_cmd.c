/* The demo agent's commands: run with sh in a process group of their own, output
 * kept up to a cap, ended with the whole group on an interrupt. */
#include "demo_agent.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_ROUNDS 64 /* reads between two looks at stdin */

int demo_cmd_start(struct demo_cmd *c, const char *cmd)
{
    int fds[2];
    buf_init(&c->output, DEMO_OUTPUT_MAX);
    c->fd = c->pidfd = -1;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    c->pid = fork();
    if (c->pid == 0) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_DFL);
        dup2(null, 0);
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        execl("/bin/sh", "sh", "-c", cmd, (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    if (c->pid > 0)
        setpgid(c->pid, c->pid); /* both sides: an interrupt may come before the child runs */
    if (c->pid < 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) {
        close(fds[0]);
        return -1;
    }
    c->fd = fds[0];
    c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    if (c->pidfd < 0) {
        int saved = errno;
        kill(-c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
        close(c->fd);
        errno = saved;
        return -1;
    }
    return 0;
}

/* True while there may be more. What is past the cap is counted, not kept. */
bool demo_cmd_read(struct demo_cmd *c)
{
    char tmp[16384];
    ssize_t n = read(c->fd, tmp, sizeof(tmp));
    if (n < 0)
        return errno == EINTR;
    size_t room = DEMO_OUTPUT_MAX - c->output.len;
    if (n > 0)
        buf_add(&c->output, tmp, (size_t)n < room ? (size_t)n : room);
    c->total += (size_t)n;
    return n > 0;
}

/* What is there now, but not for ever: the writer may be faster than we are.
 * False at the end of the pipe. */
static bool read_some(struct demo_cmd *c)
{
    errno = 0;
    for (int i = 0; i < OUTPUT_ROUNDS; i++)
        if (!demo_cmd_read(c))
            return errno == EAGAIN;
    return true;
}

/* Until it ends or is interrupted; stdin is served meanwhile. */
void demo_cmd_wait(struct demo *d, struct demo_cmd *c)
{
    bool killed = false, open = true;
    for (;;) {
        struct pollfd pf[3] = {{c->pidfd, POLLIN, 0},
                               {open ? c->fd : -1, POLLIN, 0},
                               {demo_input_wanted(d) ? STDIN_FILENO : -1, POLLIN, 0}};
        if (poll(pf, 3, -1) < 0 && errno != EINTR)
            break;
        if (pf[1].revents != 0)
            open = read_some(c);
        if (pf[2].revents != 0)
            demo_input_read(d);
        if (d->interrupted && !killed) {
            kill(-c->pid, SIGKILL);
            killed = true;
        }
        if (pf[0].revents != 0)
            break;
    }
    while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
        ;
    read_some(c); /* a child of it may hold the pipe: take what is there */
    close(c->fd);
    close(c->pidfd);
    if (c->total > c->output.len) {
        struct buf cut = BUF_INIT;
        buf_add(&cut, c->output.p, c->output.len);
        buf_addf(&cut, "\n[cut: %zu more bytes are not shown]", c->total - c->output.len);
        buf_release(&c->output);
        c->output = cut;
    }
}
