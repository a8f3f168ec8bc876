/* A local provider of a test's own: the program, its folders, its address. */
#ifndef CCT_TESTS_LOCALBED_H
#define CCT_TESTS_LOCALBED_H

#include <cct/e2b.h>
#include <stdbool.h>
#include <sys/types.h>

struct localbed {
    char root[64]; /* scratch folder, gone with localbed_free() */
    pid_t pid;
    int control, traffic;
    char key[64];
    bool isolated;
    bool private_net; /* started with --net=private */
};
/* Starts build/MODE/cc-tui-local (folder from the environment's B); without namespaces
 * here it falls back to plain processes. NULL when it cannot be started. */
struct localbed *localbed_new(void);
/* Plain processes, although namespaces may work. */
struct localbed *localbed_new_unsafe(void);
/* With a private network for each sandbox; NULL where that cannot be. */
struct localbed *localbed_new_private(void);
void localbed_kill(struct localbed *l);  /* SIGKILL; sandboxes live on */
bool localbed_start(struct localbed *l); /* again */
void localbed_free(struct localbed *l);
/* Entries of a folder below root that do not begin with a dot. */
int localbed_entries(const struct localbed *l, const char *folder);
/* An account for it; release it with e2b_account_release(). */
void localbed_account(const struct localbed *l, struct e2b_account *a);

#endif
