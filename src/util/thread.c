/* Threads with a role each; the role is what THREAD_ASSERT looks at. */
#include <cct/util/err.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Thread_local enum thread_role my_role;

struct start {
    enum thread_role role;
    char name[16]; /* what the kernel keeps, with NUL */
    void (*fn)(void *);
    void *arg;
};

void thread_set_role(enum thread_role role)
{
    my_role = role;
}

enum thread_role thread_role(void)
{
    return my_role;
}

static void *entry(void *arg)
{
    enum { FIRST = 120000 }; /* the heap of a thread else grows by pages, with a call for each */
    struct start s = *(struct start *)arg;

    free(xmalloc(FIRST));
    free(arg);
    my_role = s.role;
    pthread_setname_np(pthread_self(), s.name);
    s.fn(s.arg);
    return NULL;
}

/* All but those of a crash, whose handler runs where it happened. */
static void block_signals(sigset_t *old)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t set;

    sigfillset(&set);
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
        sigdelset(&set, crashes[i]);
    pthread_sigmask(SIG_SETMASK, &set, old);
}

int thread_start(pthread_t *t, enum thread_role role, const char *name, void (*fn)(void *),
                 void *arg)
{
    struct start *s = xcalloc(1, sizeof(*s));
    sigset_t old;

    s->role = role;
    s->fn = fn;
    s->arg = arg;
    memcpy(s->name, name, strnlen(name, sizeof(s->name) - 1));
    block_signals(&old);
    int rc = pthread_create(t, NULL, entry, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        free(s);
        return ERR_IO;
    }
    return 0;
}

bool thread_join_ms(pthread_t t, int ms)
{
    struct timespec until;
#ifdef __SANITIZE_THREAD__ /* it knows only the older call, on the wall clock */
    clock_gettime(CLOCK_REALTIME, &until);
#else
    clock_gettime(CLOCK_MONOTONIC, &until);
#endif
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
#ifdef __SANITIZE_THREAD__
    int rc = pthread_timedjoin_np(t, NULL, &until);
#else
    int rc = pthread_clockjoin_np(t, NULL, CLOCK_MONOTONIC, &until);
#endif
    if (rc != 0 && rc != ETIMEDOUT)
        BUG("joining a thread: %s", strerror(rc));
    return rc == 0;
}

void thread_assert(enum thread_role role, const char *file, int line)
{
    static const char *const names[] = {"none", "main", "net", "db", "work"};

    if (my_role != role)
        die_bug(file, line, "needs the %s thread, called on %s", names[role], names[my_role]);
}
