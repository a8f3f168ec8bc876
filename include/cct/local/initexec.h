/* A command that the provider runs in a sandbox, through the process service of
 * its init: build steps, start and ready commands. One event loop, one thread. */
#ifndef CCT_LOCAL_INITEXEC_H
#define CCT_LOCAL_INITEXEC_H

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct cJSON;
struct initexec;

/* Everything is borrowed during initexec_start(). */
struct initexec_spec {
    const char *command;     /* for /bin/bash -l -c */
    const char *user, *cwd;  /* NULL: the sandbox's own */
    const struct cJSON *env; /* object of strings, or NULL */
    const char *tag;         /* or NULL */
    int64_t timeout_ms;      /* the process is killed after it; 0: never */
    /* The process runs: from here on it outlives initexec_cancel(). May be NULL. */
    void (*begun)(void *arg, int pid);
};

enum initexec_stream { INITEXEC_STDOUT = 1, INITEXEC_STDERR = 2 };

/* Output as it comes, in pieces of any size. */
typedef void (*initexec_out)(void *arg, enum initexec_stream s, const char *p, size_t len);
/* Exactly once, unless cancelled, and never from inside initexec_start(): the
 * exit code, or -1 with `why` (ended by a signal, timed out, sandbox gone). `why`
 * is NULL otherwise. */
typedef void (*initexec_end)(void *arg, int exit_code, const char *why);

/* `out` may be NULL. */
struct initexec *initexec_start(struct event_base *base, const char *sock, const char *token,
                                const struct initexec_spec *s, initexec_out out,
                                initexec_end end, void *arg);
/* Look away; the process lives on. NULL is fine. */
void initexec_cancel(struct initexec *x);

#endif
