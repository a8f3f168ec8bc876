/* The program is killed in the middle of making a sandbox, at each of its steps; the next
 * command goes on where it was left: one VM, its repository whole, its prompt and skills
 * once, one agent. */
#include "../lib/runcmd.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define LONG_MS 60000

/* What the program says when it takes the step, and the branch that is asked for; a file that
 * the step makes in the sandbox. */
static const struct point {
    const char *name, *says, *branch, *makes;
} points[] = {
    {"folder", "preparing the session folder", "main", NULL},
    {"uploads", "uploading the runner", "main", NULL},
    {"skills", "unpacking the skills", "main", NULL},
    {"clone", "cloning", "main", NULL},
    {"half", "cloning", "slow", "first-clone"},
    {"started", "starting again", "main", NULL},
};
enum { POINTS = sizeof(points) / sizeof(points[0]) };

/* Stands in for git: a clone is half there for as long as nobody ends it, the first time. */
static const char git[] =
    "#!/bin/sh\n"
    "for to; do :; done\n"
    "echo once >>\"$HOME/clones\"\n"
    "mkdir -p \"$to/.git\" && echo half >\"$to/file\"\n"
    "case \"$*\" in *slow*)\n"
    "  if mkdir \"$HOME/first-clone\" 2>/dev/null; then\n"
    "    while [ ! -e \"$HOME/over\" ]; do sleep 1; done\n"
    "  fi\n"
    "esac\n"
    "echo whole >\"$to/file\"\n";
static const char tools[] =
    "[tool again]\nadapter = claude\ntemplate = demo\ncommand = demo-agent\nneeds = none\n"
    "prompt_file = .again/RULES\nskills = .again/skills\n";

static void put(const char *home, const char *name, const char *text, mode_t mode)
{
    char *path = xasprintf("%s/%s", home, name);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fputs(text, f) >= 0 && fclose(f) == 0, 1);
    assert_int_equal(chmod(path, mode), 0);
    free(path);
}

static struct runcmd in(const char *home)
{
    struct runcmd r = {.home = (char *)(uintptr_t)home, .out = -1, .err = -1};

    return r;
}

static void release(struct runcmd *r)
{
    buf_release(&r->text);
    buf_release(&r->talk);
}

/* The sandboxes' disks lie below the home. */
static bool is_made(const char *home, const char *name)
{
    char *find = xasprintf("find '%s' -name '%s' | grep -q .", home, name);
    bool found = system(find) == 0;

    free(find);
    return found;
}

static void make_and_kill(const char *home, const struct point *p)
{
    struct runcmd r = in(home);
    char *skill = xasprintf("%s/tool", home);
    const char *args[] = {"--local", "new", "-v", "-t", "again", "-n", p->name,
                          "--skill", skill, "--system-prompt", "Be brief.",
                          "--repo", "https://example.org/acme/web", "--branch", p->branch,
                          "-e", "PATH=/home/user/.again/skills/tool:/run/cc/bin:/usr/local/bin:/usr/bin:/bin",
                          NULL};
    int ms = LONG_MS;

    runcmd_start(&r, args, NULL);
    while (!strstr(buf_str(&r.talk), p->says) && ms > 0 && !runcmd_read(&r, 10))
        ms -= 10;
    if (!strstr(buf_str(&r.talk), p->says))
        fail_msg("%s: \"%s\" was not said: %s", p->name, p->says, buf_str(&r.talk));
    while (p->makes && !is_made(home, p->makes) && ms > 0 && !runcmd_read(&r, 20))
        ms -= 20;
    runcmd_kill(&r, SIGKILL);
    runcmd_end(&r, LONG_MS);
    release(&r);
    free(skill);
}

/* As if the killed one's leases had run out. */
static void leases_run_out(const char *home)
{
    char *path = xasprintf("%s/cc-tui.db", home);
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_exec(db, "DELETE FROM leases", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    free(path);
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;

    for (const char *p = text; (p = strstr(p, word)) != NULL; p += strlen(word))
        n++;
    return n;
}

static void killed_at_each_step(void **state)
{
    static const char look[] =
        "run pwd; cat file; cat ~/.again/RULES; cat ~/.again/skills/tool/SKILL.md; "
        "ls ~/.cc-tui/*/ | grep -c clone-; ls -d ~/.cc-tui/*/ | wc -l";
    struct runcmd home, r[POINTS];
    (void)state;

    runcmd_init(&home);
    put(home.home, "tools.conf", tools, 0600);
    char *dir = xasprintf("%s/tool", home.home);
    assert_int_equal(mkdir(dir, 0755), 0);
    put(dir, "git", git, 0755);
    put(dir, "SKILL.md", "A tool.\n", 0644);
    for (size_t i = 0; i < POINTS; i++)
        make_and_kill(home.home, &points[i]);
    leases_run_out(home.home);
    for (size_t i = 0; i < POINTS; i++) {
        const char *args[] = {"--local", "send", points[i].name, "--wait", look, NULL};

        r[i] = in(home.home);
        runcmd_start(&r[i], args, NULL);
    }
    for (size_t i = 0; i < POINTS; i++) {
        if (runcmd_end(&r[i], LONG_MS) != 0)
            fail_msg("killed at %s: %s%s", points[i].name, buf_str(&r[i].text),
                     buf_str(&r[i].talk));
        release(&r[i]);
        r[i] = in(home.home);
        runcmd_start(&r[i], (const char *[]){"--local", "logs", points[i].name, NULL}, NULL);
        assert_int_equal(runcmd_end(&r[i], LONG_MS), 0);
        if (!strstr(buf_str(&r[i].text), "/web\nwhole\nBe brief.A tool.\n0\n1\n"))
            fail_msg("killed at %s: %s", points[i].name, buf_str(&r[i].text));
        release(&r[i]);
    }
    /* one VM each, and nothing beside them */
    struct runcmd ls = in(home.home);
    runcmd_start(&ls, (const char *[]){"--local", "ls", "--json", NULL}, NULL);
    assert_int_equal(runcmd_end(&ls, LONG_MS), 0);
    assert_int_equal(count(buf_str(&ls.text), "\"sandboxID\":\"i"), POINTS);
    assert_int_equal(count(buf_str(&ls.text), "\"agentState\":\"idle\""), POINTS);
    release(&ls);
    struct runcmd stop = in(home.home);
    runcmd_start(&stop, (const char *[]){"--local", "local", "stop", "--yes", NULL}, NULL);
    runcmd_end(&stop, LONG_MS);
    release(&stop);
    free(dir);
    runcmd_release(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_each_step),
    };
    const char *b = getenv("B");
    char *probe = xasprintf("%s/cc-tui-local probe >/dev/null 2>&1", b ? b : "build/debug");
    bool isolated = system(probe) == 0;

    free(probe);
    if (!isolated) {
        printf("1..1\nok 1 - resume # SKIP no namespaces here\n");
        return 0;
    }
    return cmocka_run_group_tests_name("resume", tests, NULL, NULL);
}
