/* A program on a pseudo terminal, read as a stream of bytes. */
#include "rawpty.h"

#include "bench.h"

#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void rawpty_start(struct rawpty *p, const char *const argv[], char *const envp[], int h, int w)
{
    struct winsize ws = {.ws_row = (unsigned short)h, .ws_col = (unsigned short)w};
    *p = (struct rawpty){.fd = -1};
    p->started_us = bench_now_us();
    p->pid = forkpty(&p->fd, NULL, NULL, &ws);
    if (p->pid == 0) {
        execve(argv[0], (char *const *)argv, envp);
        _exit(127);
    }
    if (p->pid < 0)
        die("no pseudo terminal: %s", strerror(errno));
    fcntl(p->fd, F_SETFD, FD_CLOEXEC);
}

/* One read within ms: bytes, 0 = none, -1 = the other side is closed. */
static ssize_t read_some(struct rawpty *p, int ms)
{
    struct pollfd pf = {.fd = p->fd, .events = POLLIN};
    if (poll(&pf, 1, ms) <= 0)
        return 0;
    char *room = buf_reserve(&p->seen, 65536);
    ssize_t n = read(p->fd, room, 65535);
    if (n <= 0)
        return n < 0 && errno == EINTR ? 0 : -1;
    p->seen.len += (size_t)n;
    p->seen.p[p->seen.len] = '\0';
    return n;
}

static int left_ms(int64_t end_us)
{
    int64_t us = end_us - bench_now_us();
    return us <= 0 ? 0 : (int)((us + 999) / 1000);
}

bool rawpty_until(struct rawpty *p, const char *const texts[], int ms)
{
    int64_t end = bench_now_us() + ms * 1000LL;
    size_t i = 0;
    for (;;) {
        while (texts[i] && p->seen.len && memmem(p->seen.p, p->seen.len, texts[i], strlen(texts[i])))
            i++;
        if (!texts[i])
            return true;
        int left = left_ms(end);
        if (left == 0 || read_some(p, left) < 0)
            return false;
    }
}

void rawpty_settle(struct rawpty *p, int quiet_ms, int max_ms)
{
    int64_t end = bench_now_us() + max_ms * 1000LL;
    while (left_ms(end) > 0 && read_some(p, quiet_ms) > 0)
        ;
}

size_t rawpty_watch(struct rawpty *p, int ms)
{
    int64_t end = bench_now_us() + ms * 1000LL;
    size_t before = p->seen.len;
    for (int left; (left = left_ms(end)) > 0;)
        if (read_some(p, left) < 0)
            break;
    return p->seen.len - before;
}

void rawpty_send(struct rawpty *p, const char *keys)
{
    if (write(p->fd, keys, strlen(keys)) < 0 && errno != EIO)
        die("cannot type: %s", strerror(errno));
}

int rawpty_end(struct rawpty *p, int ms)
{
    int64_t end = bench_now_us() + ms * 1000LL;
    int status = 0, result = -1;
    bool open = true, over = false;
    while (!over && left_ms(end) > 0) {
        if (open)
            open = read_some(p, left_ms(end)) >= 0;
        else
            poll(NULL, 0, 1);
        over = waitpid(p->pid, &status, WNOHANG) == p->pid;
    }
    if (over) {
        result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, &status, 0);
    }
    close(p->fd);
    buf_release(&p->seen);
    return result;
}
