/* Children side by side: see the header. */
#include "sidebyside.h"

#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(int i, int (*run)(int i), FILE *out)
{
    pid_t pid = fork();
    int rc;

    if (pid < 0)
        die("test: no child: %s", strerror(errno));
    if (pid > 0)
        return pid;
    dup2(fileno(out), 1);
    rc = run(i);
    fflush(NULL);
    exit(rc ? 1 : 0);
}

static void print_all(FILE *out)
{
    char room[4096];
    size_t n;

    rewind(out);
    while ((n = fread(room, 1, sizeof(room), out)) > 0)
        fwrite(room, 1, n, stdout);
    fclose(out);
}

int side_by_side(int n, int (*run)(int i))
{
    FILE **out = xcalloc((size_t)n, sizeof(*out));
    pid_t *pid = xcalloc((size_t)n, sizeof(*pid));
    int bad = 0, st;

    fflush(NULL);
    for (int i = 0; i < n; i++) {
        out[i] = tmpfile();
        if (!out[i])
            die("test: no file for a child's output");
        pid[i] = start(i, run, out[i]);
    }
    for (int i = 0; i < n; i++) {
        if (waitpid(pid[i], &st, 0) != pid[i] || !WIFEXITED(st) || WEXITSTATUS(st) != 0) {
            printf("# child %d did not end well\n", i + 1);
            bad = 1;
        }
        print_all(out[i]);
    }
    free(out);
    free(pid);
    return bad;
}
