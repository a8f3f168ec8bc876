/* The program is killed: in the middle of making a sandbox, at each of its steps (the next
 * command goes on where it was left: one VM, its repository whole, its prompt and skills
 * once, one agent); and again and again while an agent works (every word and every token
 * counts once). */
#include "../lib/runcmd.h"
#include "../lib/storebox.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
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

    storebox_sql(path, "DELETE FROM leases; UPDATE sandboxMessages SET claimOwner=NULL, claimUntil=0");
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

/* --- while an agent works ----------------------------------------------------------- */

/* Speaks as claude does; what a turn uses hangs on its number, what it costs adds up. */
static const char counts[] =
    "n=0\n"
    "while IFS= read -r line; do\n"
    "  case $line in *turn-*) ;; *) continue ;; esac\n"
    "  i=${line##*turn-} i=${i%%[!0-9]*} n=$((n + 1))\n"
    "  echo '{\"type\":\"user\",\"isReplay\":true,\"message\":{\"role\":\"user\",\"content\":[{\"type\":"
    "\"text\",\"text\":\"turn-'$i'\"}]}}'\n"
    "  echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\",\"model\":\"m\"}'\n"
    "  for k in 1 2 3; do\n"
    "    echo '{\"type\":\"assistant\",\"message\":{\"id\":\"m'$n-$k'\",\"role\":\"assistant\",\"content\":[{"
    "\"type\":\"text\",\"text\":\"answer-'$i-$k'.\"}]}}'\n"
    "    sleep 0.03\n"
    "  done\n"
    "  echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"uuid\":\"u'$n'\",\"usage\":{"
    "\"input_tokens\":'$((100 + i))',\"cache_read_input_tokens\":7,\"output_tokens\":10},"
    "\"total_cost_usd\":0.'$(printf %02d $n)'}'\n"
    "done\n";
enum { TURNS = 12 };

static int command(struct runcmd *r, const char *home, const char *const args[])
{
    *r = in(home);
    runcmd_start(r, args, NULL);
    return runcmd_end(r, LONG_MS);
}

static double total(const char *json, const char *name)
{
    const char *all = strstr(json, "\"total\":{");
    char *key = xasprintf("\"%s\":", name);
    const char *at = all ? strstr(all, key) : NULL;
    double v = at ? strtod(at + strlen(key), NULL) : -1;

    free(key);
    return v;
}

/* ms: what a turn takes here when nobody is killed. */
static void kill_some(const char *home, unsigned *seed, int ms)
{
    struct runcmd follower = in(home), sender = in(home);
    static int turn;
    char *text = xasprintf("turn-%d", ++turn);

    runcmd_start(&follower, (const char *[]){"--local", "logs", "-f", "count", NULL}, NULL);
    runcmd_start(&sender, (const char *[]){"--local", "send", "count", "--wait", text, NULL}, NULL);
    runcmd_read(&sender, rand_r(seed) % (ms + ms / 4));
    if (rand_r(seed) % 2) {
        runcmd_kill(&follower, SIGKILL);
        runcmd_read(&sender, rand_r(seed) % 50);
    }
    runcmd_kill(&sender, SIGKILL);
    runcmd_kill(&follower, SIGKILL);
    runcmd_end(&sender, LONG_MS);
    runcmd_end(&follower, LONG_MS);
    release(&sender);
    release(&follower);
    leases_run_out(home);
    free(text);
}

/* Of each turn all was said once, and used once; or it was never taken. */
static void check_turns(const char *home)
{
    struct runcmd logs, usage;
    double n = 0, in_tokens = 0;

    assert_int_equal(command(&logs, home, (const char *[]){"--local", "logs", "count", NULL}), 0);
    for (int i = 0; i <= TURNS + 1; i++)
        for (int k = 1; k <= 3; k++) {
            char *word = xasprintf("answer-%d-%d.", i, k);
            size_t said = count(buf_str(&logs.text), word);

            if (said > 1 || ((i == 0 || i > TURNS) && said != 1))
                fail_msg("\"%s\" was said %zu times:\n%s", word, said, buf_str(&logs.text));
            n += k == 3 && said;
            in_tokens += k == 3 && said ? 100 + i : 0;
            free(word);
        }
    assert_int_equal(command(&usage, home, (const char *[]){"--local", "usage", "all", "--json", NULL}),
                     0);
    printf("# %d turns of %d were taken\n", (int)n, TURNS + 2);
    if (total(buf_str(&usage.text), "inputTokens") != in_tokens ||
        total(buf_str(&usage.text), "cacheReadTokens") != 7 * n ||
        total(buf_str(&usage.text), "outputTokens") != 10 * n ||
        fabs(total(buf_str(&usage.text), "agentUsd") - n / 100) > 1e-6)
        fail_msg("%g turns, %g tokens in: %.900s", n, in_tokens, buf_str(&usage.text));
    release(&logs);
    release(&usage);
}

/* The sandbox ends while nobody looks: what it ran is known to within what was seen. */
static void check_run_time(const char *home, int64_t since)
{
    char *elsewhere = xasprintf("%s/elsewhere", home);
    struct runcmd r;
    double s;

    assert_int_equal(command(&r, home, (const char *[]){"--local", "--data-dir", elsewhere, "kill",
                                                        "--all", "--scope", "account", "--yes", NULL}),
                     0);
    release(&r);
    assert_int_equal(command(&r, home, (const char *[]){"--local", "ls", NULL}), 0);
    release(&r);
    assert_int_equal(command(&r, home, (const char *[]){"--local", "usage", "all", "--json", NULL}), 0);
    s = total(buf_str(&r.text), "runSeconds");
    if (total(buf_str(&r.text), "intervals") != 1 || s <= 0 ||
        s > (double)(clock_mono_ms() - since) / 1000 + 1)
        fail_msg("%g s in one interval: %.900s", s, buf_str(&r.text));
    release(&r);
    free(elsewhere);
}

static void killed_again_and_again(void **state)
{
    unsigned seed = getenv("SEED") ? (unsigned)atoi(getenv("SEED")) : 1;
    int64_t since = clock_mono_ms();
    struct runcmd home, r;
    char *code = b64_encode(counts, sizeof(counts) - 1);
    char *conf = xasprintf("[tool counts]\nadapter = claude\ntemplate = demo\nneeds = none\n"
                           "command = sh -c 'eval \"$(echo %s | base64 -d)\"'\n", code);
    (void)state;

    runcmd_init(&home);
    put(home.home, "tools.conf", conf, 0600);
    if (command(&r, home.home, (const char *[]){"--local", "new", "-t", "counts", "-n", "count",
                                                NULL}) != 0)
        fail_msg("%s", buf_str(&r.talk));
    release(&r);
    int64_t began = clock_mono_ms();
    if (command(&r, home.home, (const char *[]){"--local", "send", "count", "--wait", "turn-0", NULL}) != 0)
        fail_msg("%s", buf_str(&r.talk));
    release(&r);
    int ms = (int)(clock_mono_ms() - began) + 1;
    for (int i = 0; i < TURNS; i++)
        kill_some(home.home, &seed, ms);
    char *last = xasprintf("turn-%d", TURNS + 1);
    if (command(&r, home.home, (const char *[]){"--local", "send", "count", "--wait", last, NULL}) != 0)
        fail_msg("%s", buf_str(&r.talk));
    release(&r);
    check_turns(home.home);
    check_run_time(home.home, since);
    command(&r, home.home, (const char *[]){"--local", "local", "stop", "--yes", NULL});
    release(&r);
    runcmd_release(&home);
    free(last);
    free(conf);
    free(code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_each_step),
        cmocka_unit_test(killed_again_and_again),
    };
    cmocka_set_test_filter(getenv("CCT_ONLY"));
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
