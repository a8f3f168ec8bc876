/* Start: from the fork until the first screen stands at 200x60, with 20 sandboxes and
 * 100,000 agent events in the store, against three curses panes drawn once. No query of
 * the terminal is answered. The service answers, keeps silent, is absent, or is the local
 * provider; libcurl must not be in memory when the first picture goes out. */
#include "../lib/bench.h"
#include "../lib/fakeapi.h"
#include "../lib/rawpty.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/agent.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 20, EVENTS = 100000, H = 60, W = 200, BATCH = 100, LINE = 64, DEADLINE = 5000 };

static const char section[] = "start";

/* --- the stored state ------------------------------------------------------------------- */

static struct st_event one_event(uint64_t offset, int sandbox, int i)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TEXT);
    struct buf b = BUF_INIT;
    struct st_event out = {.offset = offset};
    char id[32], text[96];
    snprintf(id, sizeof(id), "b%d", i);
    snprintf(text, sizeof(text), "stored-%d-%d what the agent said, one line", sandbox, i);
    ev.id = id;
    ev.text = text;
    ev.mode = AGENT_REPLACE;
    ev.final = true;
    ev.offset = offset;
    agent_event_to_json(&ev, &b);
    out.json = buf_detach(&b, &out.len);
    return out;
}

static void fill_run(struct storebox *b, uint64_t run, int sandbox)
{
    for (int i = 0; i < EVENTS / ROWS; i += BATCH) {
        struct st_append a = {.run = run, .offset = (uint64_t)i * LINE, .len = BATCH * LINE};
        a.raw = xmalloc(a.len);
        memset(a.raw, '-', a.len);
        a.events = xcalloc(BATCH, sizeof(*a.events));
        for (; a.n_events < BATCH; a.n_events++) {
            int no = i + (int)a.n_events;
            a.events[a.n_events] = one_event((uint64_t)no * LINE, sandbox, no);
        }
        store_append(b->s, &a, storebox_to(b));
        msg_free(&storebox_wait(b)->m);
    }
}

static void make_store(const char *dir)
{
    struct storebox b;
    storebox_start(&b, dir);
    for (int i = 0; i < ROWS; i++) {
        char id[32], name[32], session[] = "bench", tool[] = "demo", project[] = "default";
        char base[] = "base";
        fakeapi_id(id, sizeof(id), i);
        snprintf(name, sizeof(name), "box-%02d", i);
        struct sandbox sb = {.sandbox_id = id, .name = name, .session = session, .tool = tool,
                             .project = project, .template_id = base, .state = SB_RUNNING,
                             .agent = AG_IDLE, .cpu_count = 2, .memory_mb = 512};
        sb.created_at = sb.started_at = clock_wall_ms() - 600000 + i;
        sb.end_at = sb.started_at + 3600000;
        store_put_sandbox(b.s, &sb, storebox_to(&b));
        struct st_reply *r = storebox_wait(&b);
        if (r->err.code)
            die("the store failed: %s", r->err.text);
        fill_run(&b, storebox_run(&b, r->sandboxes[0].id, "bench"), i);
        msg_free(&r->m);
    }
    storebox_stop(&b);
}

static char *copy_store(const char *from)
{
    char *dir = storebox_dir(), *command = xasprintf("cp %s/cc-tui.db* %s/", from, dir);
    if (system(command) != 0)
        die("cannot copy the store to %s", dir);
    free(command);
    return dir;
}

/* --- one start ------------------------------------------------------------------------------ */

static const char *const drawn[] = {"DRAWN", NULL};
/* The last row holds the mode at its end; the rows of the list that have room are part of
 * the picture. */
static const char *const screen[] = {"box-00", "box-12", "NAV", NULL};

/* CPU time of the main thread so far; another program on the machine adds nothing to it. */
static double cpu_ms(pid_t pid)
{
    char path[64], line[128] = "";
    snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f) {
        if (!fgets(line, sizeof(line), f))
            line[0] = '\0';
        fclose(f);
    }
    return strtod(line, NULL) / 1e6;
}

/* ms until the texts stand on the screen; negative: they never did. */
static double start_once(const char *const argv[], char *const env[], const char *const texts[],
                         double *cpu)
{
    struct rawpty p;
    rawpty_start(&p, argv, env, H, W);
    bool ok = rawpty_until(&p, texts, DEADLINE);
    if (!ok)
        fprintf(stderr, "%s did not show all of its screen; it wrote: %s\n", argv[0],
                buf_str(&p.seen));
    double ms = (double)(bench_now_us() - p.started_us) / 1000;
    *cpu = cpu_ms(p.pid);
    rawpty_send(&p, "q");
    rawpty_end(&p, 3000);
    return ok ? ms : -1;
}

struct variant {
    const char *what;
    const char *const *argv;
    char **env;
    const char *dir;
    struct bench_set ms, cpu;
    bool must, failed; /* a program that fails is not started again */
};

static void sample(struct variant *v, const char *const texts[])
{
    double cpu = 0, ms = v->failed ? -1 : start_once(v->argv, v->env, texts, &cpu);
    v->failed = ms < 0;
    if (v->failed)
        return;
    bench_add(&v->ms, ms);
    bench_add(&v->cpu, cpu);
}

/* --- what is mapped at the first picture ------------------------------------------------------ */

static bool maps_curl(pid_t pid)
{
    char path[64], line[512];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        found |= strstr(line, "libcurl") != NULL;
    if (f)
        fclose(f);
    return found;
}

/* The main thread stands before a write as large as a picture. */
static bool at_picture(pid_t pid)
{
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
        info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return false;
    return info.entry.nr == SYS_write && info.entry.args[2] > 1000;
}

/* 1 or 0: libcurl was mapped when the first picture was about to be written; -1: the
 * program could not be watched or never drew. */
static int curl_at_picture(const char *const argv[], char *const env[])
{
    struct rawpty p;
    int status, found = -1;
    rawpty_start(&p, argv, env, H, W);
    bool traced = ptrace(PTRACE_SEIZE, p.pid, NULL, PTRACE_O_TRACESYSGOOD) == 0 &&
                  ptrace(PTRACE_INTERRUPT, p.pid, NULL, NULL) == 0;
    while (traced && found < 0 && waitpid(p.pid, &status, __WALL) == p.pid &&
           WIFSTOPPED(status)) {
        if (WSTOPSIG(status) == (SIGTRAP | 0x80) && at_picture(p.pid))
            found = maps_curl(p.pid);
        int sig = WSTOPSIG(status) & 0x7f;
        ptrace(PTRACE_SYSCALL, p.pid, NULL, sig == SIGTRAP ? NULL : (void *)(intptr_t)sig);
    }
    if (traced)
        kill(p.pid, SIGKILL);
    rawpty_end(&p, 3000);
    return found;
}

/* The provider that --local started ends with its sandboxes. */
static void stop_local(const char *program, char *const env[])
{
    const char *const argv[] = {program, "local", "stop", "--yes", NULL};
    struct rawpty p;
    rawpty_start(&p, argv, env, 24, 80);
    rawpty_end(&p, 15000);
}

/* --- the section -------------------------------------------------------------------------------- */

static void row(const char *what, const struct variant *floor, const struct variant *v, double bar,
                bool must)
{
    bench_print(section, &(struct bench_row){what, "ms", &floor->ms, &v->ms, BENCH_RATIO_MAX, bar,
                                             must});
}

/* The goal, and what has to be kept: against the curses panes, and against the start with a
 * service that answers, as none of them waits for the network. */
static void report(const struct variant *floor, const struct variant *answers,
                   const struct variant *v)
{
    char *guard = xasprintf("%s: at most thrice", v->what);
    char *same = xasprintf("%s: as if it answered", v->what);
    char *near = xasprintf("%s: nearly so", v->what);
    row(v->what, floor, v, 1.5, false);
    row(guard, floor, v, 3, v->must);
    if (v != answers) {
        row(same, answers, v, 1.1, false);
        row(near, answers, v, 1.3, v->must);
    }
    free(guard);
    free(same);
    free(near);
}

static void peers(const struct variant *floor, const char *dir)
{
    static const struct {
        const char *name, *path;
    } list[] = {{"peer: less", "/usr/bin/less"}, {"peer: htop", "/usr/bin/htop"}};
    static const char *const shown[][2] = {{"peer.txt", NULL}, {"Quit", NULL}};
    char *file = xasprintf("%s/peer.txt", dir);
    FILE *f = fopen(file, "w");
    for (int i = 0; f && i < 1000; i++)
        fprintf(f, "line %d of a file that is longer than the screen\n", i);
    if (f)
        fclose(f);
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        const char *argv[] = {list[i].path, i == 0 ? file : NULL, NULL};
        struct variant v = {.what = list[i].name, .argv = argv, .env = bench_env(dir, 0)};
        if (access(list[i].path, X_OK) != 0) {
            bench_skip(section, list[i].name, "not installed");
            continue;
        }
        for (int k = 0; k < bench_runs(7); k++)
            sample(&v, shown[i]);
        bench_print(section, &(struct bench_row){v.what, "ms", &floor->ms, &v.ms, BENCH_INFO, 0,
                                                 false});
    }
    free(file);
}

int main(void)
{
    struct fakeapi *api = fakeapi_start(&(struct fakeapi_opts){.n = ROWS});
    struct fakeapi *silent = fakeapi_start(&(struct fakeapi_opts){.n = ROWS, .list_ms = -1});
    char *stored = storebox_dir(), *empty = storebox_dir();
    make_store(stored);
    const char *nc[] = {bench_program("tests/bench/ncmin"), NULL};
    const char *us[] = {bench_program("cc-tui"), NULL};
    const char *local[] = {us[0], "--local", NULL};
    char *dir[4];
    for (int i = 0; i < 4; i++)
        dir[i] = copy_store(stored);
    struct variant v[] = {
        {.what = "three curses panes", .argv = nc, .env = bench_env(empty, 0)},
        {.what = "first screen, service answers", .argv = us,
         .env = bench_env(dir[0], fakeapi_port(api)), .must = true},
        {.what = "first screen, service silent", .argv = us,
         .env = bench_env(dir[1], fakeapi_port(silent)), .must = true},
        {.what = "first screen, service absent", .argv = us, .env = bench_env(dir[2], 1),
         .must = true},
        {.what = "first screen, --local", .argv = local, .env = bench_env(dir[3], 0),
         .must = true},
    };
    int n = sizeof(v) / sizeof(v[0]);
    for (int i = 0; i < bench_runs(7); i++)
        for (int k = 0; k < n; k++)
            sample(&v[k], k ? screen : drawn);
    for (int k = 1; k < n; k++)
        report(&v[0], &v[1], &v[k]);
    bench_print(section, &(struct bench_row){"CPU of the main thread until then", "ms", &v[0].cpu,
                                             &v[1].cpu, BENCH_RATIO_MAX, 3, false});
    int curl = curl_at_picture(us, v[1].env);
    if (curl < 0)
        bench_skip(section, "libcurl mapped at first picture", "the program cannot be traced here");
    else
        bench_value(section, "libcurl mapped at first picture", "", curl, BENCH_VALUE_MAX, 0, true);
    peers(&v[0], empty);
    stop_local(us[0], v[4].env);
    for (int i = 0; i < 4; i++)
        tmpdir_remove(dir[i]);
    tmpdir_remove(stored);
    tmpdir_remove(empty);
    fakeapi_stop(silent);
    fakeapi_stop(api);
    return 0;
}
