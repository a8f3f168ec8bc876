/* A folder of a test's own below /tmp: see the header. */
#include "tmpdir.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

int tmpdir_make(char *path, size_t size, const char *name)
{
    int n = snprintf(path, size, "/tmp/cct-%s-XXXXXX", name);

    return n > 0 && (size_t)n < size && mkdtemp(path) ? 0 : -1;
}

/* By a program, for paths in it may be longer than any that the kernel takes. */
int tmpdir_remove(const char *path)
{
    char *argv[] = {(char *)"rm", (char *)"-rf", (char *)"--", (char *)path, NULL};
    pid_t pid;
    int st = -1;

    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0 ||
        waitpid(pid, &st, 0) != pid || st != 0) {
        fprintf(stderr, "# %s is left\n", path);
        return -1;
    }
    return 0;
}
