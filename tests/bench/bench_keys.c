/* Keys under load: twenty agents of four kinds talk on the local provider at the same
 * time, each twenty steps a second, while keys are pressed on the screen. The time from a
 * key to its effect on the terminal: a letter of a message, another row of the list. */
#include "../lib/bench.h"
#include "../lib/ptyrig.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COPIES = 5, KEYS = 300, SOON = 30000, PAUSE_MS = 8 };
#define BAR_MS 16

static const char section[] = "keys";
static const char *local = "--local";
static char *dir;

static const struct {
    const char *name, *adapter, *command, *resume;
} tools[] = {
    {"claude", "claude", "demo-agent --as claude", "--resume"},
    {"codex", "codex", "demo-agent --as codex exec --json -", "exec resume"},
    {"opencode", "opencode", "demo-agent --as opencode run --format json", "--session"},
    {"pi", "pi", "demo-agent --as pi --mode rpc", "--session"},
};

static void write_tools(void)
{
    char *path = xasprintf("%s/tools.conf", dir);
    FILE *f = fopen(path, "w");

    for (size_t i = 0; f && i < 4; i++)
        fprintf(f,
                "[tool d-%s]\nadapter = %s\ntemplate = demo\ncommand = \"%s\"\nresume = %s\n",
                tools[i].name, tools[i].adapter, tools[i].command, tools[i].resume);
    if (!f || fclose(f) != 0 || chmod(path, 0600) != 0)
        die("no '%s'", path);
    free(path);
}

static bool run(const char *program, const char *arguments)
{
    char *prog = bench_program(program);
    char *line = xasprintf("%s %s >/dev/null 2>&1", prog, arguments);
    int status = system(line);

    if (status != 0)
        fprintf(stderr, "'%s' failed\n", line);
    free(prog);
    free(line);
    return status == 0;
}

static bool ours(const char *arguments)
{
    char *all = xasprintf("%s %s", local, arguments);
    bool ok = run("cc-tui", all);

    free(all);
    return ok;
}

static void must(const char *arguments)
{
    if (!ours(arguments))
        die("nothing can be measured");
}

/* --- the end ----------------------------------------------------------------------- */

/* The provider is nobody's child: it and its sandboxes would outlive a run that fails. */
static bool end_all(void)
{
    char *stop = xasprintf("stop --state-dir %s/local --runtime-dir %s", dir, dir);
    bool ok = ours("kill --all -y");

    ok = run("cc-tui-local", stop) && ok;
    tmpdir_remove(dir);
    free(stop);
    return ok;
}

static void end_before_death(void)
{
    end_all();
}

static void on_signal(int sig)
{
    die("ended by signal %d", sig);
}

static void end_whatever_comes(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

    die_set_hook(end_before_death);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], on_signal);
}

/* --- keys -------------------------------------------------------------------------- */

static void press(struct ptyrig *r, const char *key, int row, const char *effect, bool shown,
                  struct bench_set *t)
{
    int64_t t0;

    poll(NULL, 0, PAUSE_MS + t->n % 7); /* at no beat of the screen's */
    t0 = bench_now_us();
    rig_type(r, key);
    if (!rig_wait_row(r, row, effect, shown, SOON))
        die("a key had no effect: '%s'", effect);
    bench_add(t, (double)(bench_now_us() - t0) / 1000);
}

/* A letter and its deletion in turn. */
static void letters(struct ptyrig *r, struct bench_set *t)
{
    t->n = 0;
    rig_type(r, "1gg2i");
    rig_must_show(r, "claude-1> ", SOON);
    rig_type(r, "latency-");
    rig_must_show(r, "> latency-", SOON);
    int row = rig_must_row(r, "> latency-");
    while (t->n < KEYS)
        press(r, t->n % 2 ? "\177" : "q", row, "latency-q", t->n % 2 == 0, t);
    rig_type(r, "\177\177\177\177\177\177\177\177");
    if (!rig_wait_gone(r, "laten", SOON))
        die("the message cannot be taken back");
    rig_type(r, "\033");
    rig_must_show(r, "NAV", SOON);
}

/* Another row, with all that its agent said, and back. */
static void rows(struct ptyrig *r, struct bench_set *t)
{
    t->n = 0;
    rig_type(r, "1gg");
    rig_must_show(r, "output: claude-1", SOON);
    int row = rig_must_row(r, "output: claude-1");
    while (t->n < KEYS)
        press(r, t->n % 2 ? "k" : "j", row,
              t->n % 2 ? "output: claude-1" : "output: claude-2", true, t);
}

static void report(const char *what, const struct bench_set *t, bool loaded)
{
    char *text = xasprintf("%s, %s: median", what, loaded ? "20 agents talk" : "all idle");
    char *last = xasprintf("%s, %s: p99", what, loaded ? "20 agents talk" : "all idle");

    bench_value(section, text, "ms", bench_median(t), BENCH_INFO, 0, false);
    bench_value(section, last, "ms", bench_quantile(t, 0.99), BENCH_VALUE_MAX, BAR_MS, loaded);
    free(text);
    free(last);
}

static void measure(struct ptyrig *r, bool loaded)
{
    static struct bench_set t;

    letters(r, &t);
    report("a letter", &t, loaded);
    rows(r, &t);
    report("another row", &t, loaded);
}

int main(void)
{
    char *prog = bench_program("cc-tui"), *argv[] = {prog, NULL, NULL}, **env;
    struct ptyrig r;

    dir = storebox_dir();
    env = bench_env(dir, 0);
    for (size_t i = 0; env[i]; i++)
        if (!str_starts(env[i], "PATH="))
            putenv(env[i]);
    unsetenv("E2B_API_KEY");
    prog = bench_program("cc-tui-local");
    char *probe = xasprintf("%s probe >/dev/null 2>&1", prog);
    if (system(probe) != 0)
        local = "--local-unsafe";
    write_tools();
    end_whatever_comes();
    for (size_t i = 0; i < 4; i++) {
        char *new = xasprintf("new --tool d-%s --name %s --copies %d", tools[i].name,
                              tools[i].name, COPIES);
        must(new);
        free(new);
    }
    argv[1] = (char *)local;
    rig_start(&r, 40, 120, argv, NULL);
    rig_must_show(&r, "20 idle", SOON);
    measure(&r, false);
    must("send --all -- '[[case:chatter]]'");
    rig_must_show(&r, "20 working", SOON);
    measure(&r, true);
    rig_must_show(&r, "20 working", SOON); /* to the last key */
    rig_type(&r, "q");
    if (!rig_wait_exit(&r, SOON))
        die("the screen does not end");
    rig_stop(&r);
    die_set_hook(NULL);
    bool ended = end_all();
    free(dir);
    free(prog);
    free(probe);
    free(argv[0]);
    return ended ? 0 : 1;
}
