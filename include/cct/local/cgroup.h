/* Groups of processes (cgroup v2) where a part of the tree is ours to use: each
 * sandbox then has one, with real limits of memory, CPU and tasks as far as the
 * controllers were handed to us, a pause that its processes cannot see, and an end
 * that nothing escapes.
 *
 *     BASE/ID          the init, and the limits
 *     BASE/ID/run      everything that the init starts; this one is frozen
 *
 * The init puts its children into `run` as it makes them (clone3), so it stays
 * reachable and keeps its dead-man timer while they are frozen. No controller is
 * passed on below BASE/ID, so processes may be in both.
 *
 * One thread. Nothing here waits unless it says so. */
#ifndef CCT_LOCAL_CGROUP_H
#define CCT_LOCAL_CGROUP_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CGROUP_PATH_MAX 256

enum cgroup_limit { CGROUP_MEMORY = 1, CGROUP_CPU = 2, CGROUP_TASKS = 4 };

struct cgroup_base {
    char path[CGROUP_PATH_MAX]; /* "" when nothing is delegated: then `why` says it */
    unsigned limits;            /* which can be set here */
    char why[256];
};

/* Find and make the base for the sandboxes of this state folder, and try all that
 * is needed with a process of an own. Without one base->path is "". */
void cgroup_open(struct cgroup_base *base, const char *state_dir);
/* Remove the base if no sandbox is in it. */
void cgroup_close(struct cgroup_base *base);
/* What cgroup_open() would find, without leaving anything behind. */
void cgroup_probe(struct cgroup_base *base);

/* Make the groups of a sandbox and set the limits that this machine can hold;
 * `path` gets the group, *set which limits hold. `owner` is the user whose init
 * may start processes in it. 0 or negative with *e. */
int cgroup_make(const struct cgroup_base *base, const char *id, uid_t owner, int cpu,
                int mem_mb, char path[CGROUP_PATH_MAX], unsigned *set, struct err *e);
/* Descriptor of its `run`, for clone3(); -1 with errno. */
int cgroup_run_fd(const char *path);
int cgroup_enter(const char *path, pid_t pid); /* 0, or -1 with errno */
int cgroup_freeze(const char *path, bool on);  /* 0, or -1 with errno */
int cgroup_kill(const char *path);             /* all in it; -1: kernel cannot */
/* Remove a sandbox's groups; waits up to wait_ms for their last process to be gone.
 * True when they are. Only what cgroup_make() could have made is touched. */
bool cgroup_remove(const char *path, int wait_ms);
/* Call fn for the id and path of every group in the base. */
void cgroup_each(const struct cgroup_base *base,
                 void (*fn)(void *arg, const char *id, const char *path), void *arg);
/* "memory cpu tasks", or fewer of them, or "". */
void cgroup_limit_names(unsigned limits, char *dst, size_t size);
/* A fork() whose child is in the group of this descriptor from its first moment;
 * -1 with errno where the kernel refuses. */
pid_t cgroup_fork(int run_fd);

#endif
