/* See ptyhome.h. */
#include "ptyhome.h"

#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct ptyhome ptyhome;

static char *find_binary(void)
{
    const char *b = getenv("B");
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    path[n > 0 ? n : 0] = 0;
    char *tests_dir = strstr(path, "/tests/e2e/");
    if (tests_dir)
        *tests_dir = 0; /* the build folder */
    return xasprintf("%s/cc-tui", tests_dir ? path : b ? b : "build/debug");
}

int ptyhome_set_up(void **state)
{
    static const char *const names[] = {"DATA", "CONFIG", "STATE", "RUNTIME"};
    struct ptyhome *p = &ptyhome;

    (void)state;
    p->binary = find_binary();
    snprintf(p->dir, sizeof(p->dir), "/tmp/cct-pty.XXXXXX");
    if (!mkdtemp(p->dir))
        return -1;
    for (int i = 0; i < 4; i++) {
        char *path = xasprintf("%s/%s", p->dir, names[i]);
        mkdir(path, 0700);
        p->places[i] = xasprintf("CC_TUI_%s_DIR=%s", names[i], path);
        free(path);
    }
    return 0;
}

int ptyhome_command(const char *command)
{
    const struct ptyhome *p = &ptyhome;
    char *line = xasprintf("export %s %s %s %s; %s", p->places[0], p->places[1], p->places[2],
                           p->places[3], command);
    int rc = system(line);

    free(line);
    return WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
}

int ptyhome_tear_down(void **state)
{
    struct ptyhome *p = &ptyhome;
    char *away = xasprintf("%s local stop --yes >/dev/null 2>&1; rm -rf '%s'", p->binary, p->dir);
    int rc = ptyhome_command(away);

    (void)state;
    free(away);
    free(p->binary);
    for (int i = 0; i < 4; i++)
        free(p->places[i]);
    return rc;
}

void ptyhome_start(struct ptyrig *r, int h, int w)
{
    char *const *p = ptyhome.places;
    char *argv[] = {ptyhome.binary, (char *)"--local", NULL};
    const char *env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "SSH_CONNECTION", "COLUMNS",
                         "LINES", "E2B_API_KEY", p[0], p[1], p[2], p[3], NULL};

    rig_start(r, h, w, argv, env);
}

void ptyhome_shows(struct ptyrig *r, const char *text, int ms)
{
    if (rig_wait(r, text, ms))
        return;
    char *s = rig_screen(r);
    fputs(s, stderr); /* longer than what cmocka prints */
    free(s);
    fail_msg("'%s' does not come", text);
}
