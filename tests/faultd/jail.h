/* Where a sandbox's processes run: a user, mount and pid namespace of their own. The
 * machine's files are there to read; /home/user and /tmp are empty and writable, in
 * memory. All of it ends with jail_free or with faultd, however that ends. */
#ifndef CCT_TESTS_FAULTD_JAIL_H
#define CCT_TESTS_FAULTD_JAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct jail;
struct jail_job {
    const char *const *argv, *const *envp; /* end with NULL */
    const char *cwd;
    int fd[3]; /* with tty all three are the same terminal */
    bool tty;
};

/* NULL with the reason in why. `exited` is called for each process that ended. */
struct jail *jail_new(void (*exited)(void *ctx, int pid, int status), void *ctx, char *why,
                      size_t size);
void jail_free(struct jail *j);
/* 0 with the pid as it is known inside, or errno; a cwd that is none gives ENOTDIR. */
int jail_spawn(struct jail *j, const struct jail_job *job, int *pid);
void jail_signal(struct jail *j, int pid, int sig); /* pid -1: all of them */
int jail_root(const struct jail *j);                /* its "/", for openat2() */
bool jail_possible(char *why, size_t size);

/* jail_init.c: the first process inside. */
enum { JAIL_SPAWN = 1, JAIL_SIGNAL, JAIL_ORDER_MAX = 160 << 10 };
struct jail_order { /* argc arguments, envc variables and cwd follow, each with its NUL */
    int op, pid, sig, argc, envc, tty;
};
struct jail_report {
    int pid, status; /* of a spawn: errno */
};
/* Makes the namespace's files and serves orders until their end; never returns. The
 * first report says how that went (status: errno) and brings the root's descriptor. */
void jail_init_run(int orders, int exits, unsigned uid, unsigned gid, bool map)
    __attribute__((noreturn));

#endif
