/* stdout of a command whose signals wait for its loop: ^C ends it also while it writes into
 * a pipe that nobody reads, or to a terminal that was stopped by ^S. */
#include "cli_priv.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

static struct {
    int sigfd;
    bool stopped; /* only what goes at once is still written */
} out = {-1, false};

/* At most PIPE_BUF at a time: so much fits without waiting where poll says that there is
 * room. The signal is not taken here, the loop reads it. */
static ssize_t put(void *ctx, const char *data, size_t n)
{
    size_t done = 0;

    (void)ctx;
    while (done < n) {
        struct pollfd p[2] = {{.fd = STDOUT_FILENO, .events = POLLOUT},
                              {.fd = out.sigfd, .events = POLLIN}};
        int ready = poll(p, out.stopped ? 1 : 2, out.stopped ? 0 : -1);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready < 0)
            break;
        if (!p[0].revents) {
            errno = ECANCELED;
            if (out.stopped)
                break;
            out.stopped = p[1].revents != 0;
            continue;
        }
        ssize_t w = write(STDOUT_FILENO, data + done, n - done < PIPE_BUF ? n - done : PIPE_BUF);
        if (w < 0 && errno != EINTR && errno != EAGAIN)
            break;
        done += w > 0 ? (size_t)w : 0;
    }
    return (ssize_t)done;
}

static void open_out(const sigset_t *blocked)
{
    if (out.sigfd >= 0)
        return;
    out.sigfd = signalfd(-1, blocked, SFD_NONBLOCK | SFD_CLOEXEC);
    FILE *f = out.sigfd >= 0 ? fopencookie(NULL, "w", (cookie_io_functions_t){.write = put}) : NULL;
    if (!f)
        return; /* then ^C waits for the reader, as it does in many programs */
    setvbuf(f, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, 16384);
    fflush(stdout);
    stdout = f;
}

int cli_signals_open(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    open_out(&set);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

void cli_slow_end(void)
{
    static const int sigs[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;

    cli_tell("the disk does not answer: what is to be written waits for it; ^C ends without that");
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
        signal(sigs[i], SIG_DFL);
        sigaddset(&set, sigs[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void cli_out_stop(void)
{
    out.stopped = true;
}

void cli_out_go_on(void)
{
    out.stopped = false;
    if (ferror(stdout) && !cli_out_gone())
        clearerr(stdout);
}

bool cli_out_gone(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&p, 1, 0) == 1 && p.revents & (POLLERR | POLLHUP | POLLNVAL);
}

int cli_out_status(int status)
{
    struct signalfd_siginfo si;

    if (out.stopped && status < 128 && read(out.sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si))
        return 128 + (int)si.ssi_signo; /* nobody else took it */
    return status;
}

bool cli_out_stopped(void)
{
    return out.stopped;
}
