/* Talking by lines. */
#include "linerig.h"

#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void by_pipes(struct linerig *r, const char *const argv[], char *const envp[])
{
    posix_spawn_file_actions_t fa;
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        die("test: %s", strerror(errno));
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, in[0], 0);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    posix_spawn_file_actions_adddup2(&fa, out[1], 2);
    if (posix_spawn(&r->pid, argv[0], &fa, NULL, (char *const *)(void *)argv, envp) != 0)
        die("test: cannot start %s", argv[0]);
    posix_spawn_file_actions_destroy(&fa);
    close(in[0]);
    close(out[1]);
    r->in = in[1];
    r->out = out[0];
}

void line_start(struct linerig *r, const char *const argv[], char *const envp[], bool pty)
{
    struct winsize ws = {.ws_row = 24, .ws_col = 80};

    *r = (struct linerig){.in = -1, .out = -1, .status = -1};
    signal(SIGPIPE, SIG_IGN);
    if (!pty) {
        by_pipes(r, argv, envp);
        return;
    }
    r->pid = forkpty(&r->out, NULL, NULL, &ws);
    if (r->pid == 0) {
        execve(argv[0], (char *const *)(void *)argv, envp);
        _exit(127);
    }
    if (r->pid < 0)
        die("no pseudo terminal: %s", strerror(errno));
    fcntl(r->out, F_SETFD, FD_CLOEXEC);
    r->in = r->out;
}

void line_send(struct linerig *r, const char *bytes)
{
    r->at = r->seen.len;
    for (size_t n = strlen(bytes); n > 0;) {
        ssize_t w = write(r->in, bytes, n);

        if (w < 0 && errno != EINTR)
            return; /* it has ended, which line_end() tells */
        bytes += w > 0 ? w : 0;
        n -= w > 0 ? (size_t)w : 0;
    }
}

void line_type(struct linerig *r, const char *line)
{
    char *text = xasprintf("%s\n", line);

    line_send(r, text);
    free(text);
}

void line_close(struct linerig *r)
{
    if (r->in == r->out) {
        line_send(r, "\x04");
        return;
    }
    close(r->in);
    r->in = -1;
}

/* False: the other side is closed. */
static bool read_some(struct linerig *r, int64_t ms)
{
    struct pollfd p = {.fd = r->out, .events = POLLIN};
    char room[16384];

    if (poll(&p, 1, ms < 0 ? 0 : (int)ms) <= 0)
        return true;
    ssize_t n = read(r->out, room, sizeof(room));
    if (n > 0)
        buf_add(&r->seen, room, (size_t)n);
    return n > 0 || (n < 0 && errno == EINTR);
}

static bool is_there(const struct linerig *r, size_t from, const char *text)
{
    return r->seen.len > from && memmem(r->seen.p + from, r->seen.len - from, text, strlen(text));
}

bool line_says(struct linerig *r, const char *text, int ms)
{
    int64_t until = clock_mono_ms() + ms;

    while (!is_there(r, r->at, text)) {
        int64_t left = until - clock_mono_ms();

        if (left < 0 || !read_some(r, left))
            return is_there(r, r->at, text);
    }
    return true;
}

bool line_said(const struct linerig *r, const char *text)
{
    return is_there(r, 0, text);
}

int line_end(struct linerig *r, int ms)
{
    int64_t until = clock_mono_ms() + ms;
    int st;

    while (clock_mono_ms() < until && read_some(r, until - clock_mono_ms()))
        continue;
    bool late = clock_mono_ms() >= until;
    if (late)
        kill(r->pid, SIGKILL);
    waitpid(r->pid, &st, 0);
    r->status = late ? -1 : WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
    if (r->in >= 0 && r->in != r->out)
        close(r->in);
    close(r->out);
    return r->status;
}
