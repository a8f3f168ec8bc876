/* The local provider as seen from outside: its address file, its program, and the
 * environment it is started with. Plain file reading, any thread. */
#ifndef CCT_JOBS_LOCAL_H
#define CCT_JOBS_LOCAL_H

#include <cct/secrets/secret.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct local_provider {
    int pid;
    uint64_t start_ticks; /* of the process: a reused pid is another one */
    int control, traffic; /* ports on loopback */
    bool unsafe;
    bool private_net; /* sandboxes do not share this machine's network */
    char limits[40]; /* "memory cpu tasks", or fewer; what a sandbox is held to */
    struct secret *key;
};
/* Text of the address file; false when it is not one. Pure. */
bool local_provider_parse(const char *text, size_t len, struct local_provider *p);
/* The one that runs now, by local.json in runtime_dir (NULL: the usual place). 0, or
 * ERR_NOTFOUND when none runs, or why the file cannot be used. */
int local_provider_find(const char *runtime_dir, struct local_provider *p, struct err *e);
void local_provider_release(struct local_provider *p);
/* Path of cc-tui-local: beside our own program, else a bare name for PATH. New string. */
char *local_provider_program(void);
/* Environment for it: places and locale, none of the user's keys. The array is the
 * caller's to free(), its strings belong to the environment. */
char **local_provider_env(void);

#endif
