/* See the header. */
#include <cct/local/signals.h>

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void signals_default(void)
{
    /* The system call itself: the library refuses the numbers it keeps for its
     * threads, and its posix_spawn() leaves just these ignored. All zeroes is the
     * default action in every architecture's layout. */
    char zero[sizeof(struct sigaction)];
    memset(zero, 0, sizeof(zero));
    for (int s = 1; s < NSIG; s++)
        if (s != SIGKILL && s != SIGSTOP)
            syscall(SYS_rt_sigaction, s, zero, NULL, NSIG / 8);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
