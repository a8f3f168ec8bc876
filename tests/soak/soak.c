/* A day in it: `make soak MINUTES=60 SEED=n`. Twenty agents of all kinds at work on the local
 * provider, somebody at the keys, and the bars: memory does not grow, nothing is stuck, no line
 * is lost, a key acts at once. soak.sh makes the bed and calls this. */
#include "soak.h"

#include <cct/util/fs.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOPE_BAR 1.0 /* MB an hour */
#define KEY_BAR_MS 33

enum { SAMPLE_S = 1, LIST_S = 10, WORK_S = 2, LOOK_S = 60, TELL_S = 60, REDRAW_S = 20,
       START_MS = 60000, JOB_MS = 180000, MOST_FAILURES = 200 };

uint64_t soak_random(struct soak *s, uint64_t below)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return below ? (s->random >> 11) % below : 0;
}

bool soak_chance(struct soak *s, int percent)
{
    return soak_random(s, 100) < (uint64_t)percent;
}

double soak_seconds(const struct soak *s)
{
    return (double)(rig_now_ms() - s->t0_ms) / 1000;
}

static void stamp(struct soak *s)
{
    int t = (int)soak_seconds(s);
    printf("%02d:%02d:%02d ", t / 3600, t / 60 % 60, t % 60);
}

void soak_say(struct soak *s, const char *fmt, ...)
{
    va_list ap;
    stamp(s);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
}

void soak_fail(struct soak *s, const char *kind, const char *fmt, ...)
{
    va_list ap;
    stamp(s);
    printf("FAIL %s: ", kind);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
    char *path = xasprintf("%s/fail-%ld-%s", s->out, ++s->failures, kind);
    char *screen = rig_screen(&s->rig);
    struct err e = {0};
    if (fs_write_private(path, screen, strlen(screen), &e))
        printf("%s\n", e.text);
    free(screen);
    free(path);
    path = xasprintf("cp '%s/tape' '%s/tape-%ld-%dx%d'", s->dir, s->out, s->failures, s->rig.h,
                     s->rig.w);
    if (s->rig.tape && (fflush(s->rig.tape), system(path)) != 0)
        printf("there is no tape\n");
    free(path);
}

/* --- commands ------------------------------------------------------------------------ */

static pid_t spawn(struct soak *s, int out, const char *arguments)
{
    char *line = xasprintf("exec '%s' %s %s", s->cctui, s->local, arguments);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out, STDOUT_FILENO);
        char *err = xasprintf("%s/commands.err", s->out);
        int fd = open(err, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, STDERR_FILENO);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    free(line);
    return pid;
}

int soak_run(struct soak *s, struct buf *out, const char *fmt, ...)
{
    struct buf args = BUF_INIT;
    va_list ap;
    char *path = xasprintf("%s/stdout", s->dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), status = 0;
    int64_t end = rig_now_ms() + JOB_MS;
    va_start(ap, fmt);
    buf_addv(&args, fmt, ap);
    va_end(ap);
    pid_t pid = spawn(s, fd, buf_str(&args));
    while (waitpid(pid, &status, WNOHANG) == 0) {
        rig_wait_quiet(&s->rig, 2, 4); /* the screen goes on meanwhile */
        if (rig_now_ms() > end) {
            soak_fail(s, "command", "'%s' does not end", buf_str(&args));
            kill(pid, SIGKILL);
            end = INT64_MAX;
        }
    }
    lseek(fd, 0, SEEK_SET);
    for (ssize_t n = 1; out && n > 0;)
        if ((n = read(fd, buf_reserve(out, 65536), 65536)) > 0)
            out->len += (size_t)n;
    close(fd);
    buf_release(&args);
    free(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void soak_begin(struct soak *s, const char *what, const char *fmt, ...)
{
    struct buf args = BUF_INIT;
    va_list ap;
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    va_start(ap, fmt);
    buf_addv(&args, fmt, ap);
    va_end(ap);
    struct job *j = ARR_PUSH(&s->jobs);
    str_copy(j->what, sizeof(j->what), what);
    j->since_ms = rig_now_ms();
    j->pid = spawn(s, fd, buf_str(&args));
    close(fd);
    buf_release(&args);
}

/* Commands may fail (somebody else was first), but they end by themselves, and soon. */
void soak_reap(struct soak *s)
{
    for (size_t i = s->jobs.n; i-- > 0;) {
        struct job *j = &s->jobs.v[i];
        int status;
        if (waitpid(j->pid, &status, WNOHANG) == j->pid) {
            if (!WIFEXITED(status) || WEXITSTATUS(status) == 127)
                soak_fail(s, "command", "'%s' ended by status %x", j->what, status);
            ARR_REMOVE(&s->jobs, i);
        } else if (rig_now_ms() - j->since_ms > JOB_MS) {
            soak_fail(s, "command", "'%s' does not end within %d s", j->what, JOB_MS / 1000);
            kill(j->pid, SIGKILL);
            j->since_ms = INT64_MAX / 2;
        }
    }
}

/* --- the run ------------------------------------------------------------------------- */

static pid_t pid_of_provider(struct soak *s)
{
    struct buf b = BUF_INIT;
    soak_run(s, &b, "local status");
    const char *at = strstr(buf_str(&b), "pid ");
    pid_t pid = at ? (pid_t)strtol(at + 4, NULL, 10) : 0;
    buf_release(&b);
    return pid;
}

static void begin(struct soak *s)
{
    char *frames = xasprintf("%s/frames", s->out);
    char *argv[] = {s->cctui, (char *)s->local, (char *)"--bench-frames", frames, NULL};
    rig_start(&s->rig, BIG_H, BIG_W, argv, NULL);
    s->rig.answer_sync = s->rig.answer_margins = true;
    s->rig.judge.may_mouse = s->rig.judge.may_ring = true;
    char *tape = xasprintf("%s/tape", s->dir);
    s->rig.tape = fopen(tape, "w+");
    free(tape);
    free(frames);
    if (!rig_wait(&s->rig, "NAV", START_MS)) {
        char *screen = rig_screen(&s->rig);
        fputs(screen, stderr);
        die("the screen does not come");
    }
    fleet_list(s);
    fleet_fill(s);
}

static void tell(struct soak *s)
{
    size_t n;
    const struct sample *v = s->samples.n ? &s->samples.v[s->samples.n - 1] : NULL;
    double p99 = meter_quantile(s, P_COUNT, 0.99, &n);
    if (v)
        soak_say(s, "rss %ld kB (anonymous %ld, slope %.2f MB/h), provider %ld kB, %d fds, %d "
                    "threads; %zu boxes; %ld actions, %ld keys, %ld messages; %zu probes, "
                    "p99 %.1f ms, %ld void; %ld failures",
                 v->rss_kb, v->anon_kb, meter_slope(s, 0, meter_rss), v->provider_kb, v->fds,
                 v->threads, s->boxes.n, s->actions, s->keys, s->messages, n, p99, s->voids,
                 s->failures);
}

/* What is due every so many seconds. */
static bool due(double *next, double now, double every)
{
    if (now < *next)
        return false;
    *next = now + every;
    return true;
}

static bool gone(struct soak *s)
{
    if (rig_wait_exit(&s->rig, 0)) {
        soak_fail(s, "gone", "the program ended with status %x", s->rig.status);
        return true;
    }
    return s->failures > MOST_FAILURES;
}

static void run(struct soak *s)
{
    double end = s->minutes * 60, sample = 0, list = LIST_S, work = 5, look = LOOK_S,
           said = TELL_S, redraw = REDRAW_S, now;
    while ((now = soak_seconds(s)) < end && !gone(s)) {
        soak_reap(s);
        if (due(&sample, now, SAMPLE_S))
            meter_sample(s);
        if (due(&list, now, LIST_S)) {
            s->provider = s->provider ? s->provider : pid_of_provider(s);
            fleet_list(s);
            fleet_fill(s);
        }
        if (due(&work, now, WORK_S))
            fleet_work(s);
        monkey_act(s);
        monkey_probe(s);
        if (due(&redraw, now, REDRAW_S))
            monkey_redraw(s);
        if (due(&look, now, LOOK_S))
            truth_look(s);
        if (due(&said, now, TELL_S)) {
            tell(s);
            meter_write(s);
        }
    }
}

static void leave(struct soak *s)
{
    const char *what;
    if (!monkey_home(s))
        return;
    rig_type(&s->rig, "q");
    if (!rig_wait_exit(&s->rig, 10000))
        soak_fail(s, "quit", "the program does not end");
    else if (s->rig.status)
        soak_fail(s, "quit", "it ended with status %x", s->rig.status);
    else if ((what = rig_not_restored(&s->rig)))
        soak_fail(s, "terminal", "%s", what);
    if (*s->rig.judge.bad)
        soak_fail(s, "terminal", "a sequence that may not be sent: %s", s->rig.judge.bad);
}

static int verdict(struct soak *s)
{
    static const char *const names[] = {"letter", "row", "help", "panel", "open"};
    size_t n;
    double slope = meter_slope(s, 0, meter_rss), p99 = meter_quantile(s, P_COUNT, 0.99, &n);
    for (int p = 0; p < P_COUNT; p++) {
        double p50 = meter_quantile(s, (enum probe)p, 0.5, &n);
        printf("key %-7s %6zu probes  p50 %6.1f ms  p99 %6.1f ms  max %6.1f ms\n", names[p], n,
               p50, meter_quantile(s, (enum probe)p, 0.99, &n),
               meter_quantile(s, (enum probe)p, 1, &n));
    }
    bool slow = !(p99 <= KEY_BAR_MS), grows = slope >= SLOPE_BAR, lost = s->failures > 0;
    printf("keys: p50 %.1f ms, p99 %.1f ms, max %.1f ms of %zu (bar: p99 <= %d ms): %s; %ld void, "
           "out of anything within %.0f ms\n",
           meter_quantile(s, P_COUNT, 0.5, &n), p99, meter_quantile(s, P_COUNT, 1, &n), n,
           KEY_BAR_MS, slow ? "MISSED" : "ok", s->voids, s->worst_settle_ms);
    if (isnan(slope))
        printf("memory: no slope, the run ended within the warm-up of %.0f s\n", s->warm_s);
    else
        printf("memory: RSS grows by %.2f MB/h after %.0f s (bar: < %.0f), anonymous by %.2f, the "
               "least of each %d s by %.2f, at %dx%d cells by %.2f: %s\n",
               slope, s->warm_s, SLOPE_BAR, meter_slope(s, 0, meter_anon), METER_WINDOW_S,
               meter_slope(s, METER_WINDOW_S, meter_rss), BIG_W, BIG_H,
               meter_slope_at_size(s, meter_rss), grows ? "MISSED" : "ok");
    if (s->samples.n) {
        const struct sample *a = &s->samples.v[s->samples.n / 4];
        const struct sample *z = &s->samples.v[s->samples.n - 1];
        printf("at a quarter and at the end: RSS %ld, %ld kB; fds %d, %d; threads %d, %d\n",
               a->rss_kb, z->rss_kb, a->fds, z->fds, a->threads, z->threads);
    }
    printf("%ld actions, %ld keys, %ld messages, %ld sandboxes made, %ld pictures compared with "
           "a new drawing, %ld logs compared, %ld numbered answers whole, all killed %ld times\n",
           s->actions, s->keys, s->messages, s->made, s->redraws, s->compared, s->tags,
           s->kill_alls);
    printf("seed %llu: %ld failures: %s\n", (unsigned long long)s->seed, s->failures,
           lost || slow || grows ? "FAILED" : "PASSED");
    return lost || slow || grows;
}

static double number(const char *name, double def)
{
    const char *v = getenv(name);
    return v && *v ? strtod(v, NULL) : def;
}

int main(int argc, char **argv)
{
    struct soak s = {.minutes = number("MINUTES", 60), .agents = (int)number("AGENTS", 20)};
    if (argc != 4) {
        fprintf(stderr, "usage: soak CC-TUI FOLDER OUT (see soak.sh)\n");
        return 2;
    }
    s.cctui = argv[1];
    s.dir = argv[2];
    s.out = argv[3];
    s.seed = (uint64_t)number("SEED", (double)(time(NULL) % 100000));
    s.random = s.seed * 0x9E3779B97F4A7C15ull + 1;
    s.local = getenv("SOAK_LOCAL") ? getenv("SOAK_LOCAL") : "--local";
    s.real = getenv("SOAK_REAL") != NULL;
    s.warm_s = number("WARM", s.minutes * 30);
    signal(SIGPIPE, SIG_IGN);
    s.t0_ms = rig_now_ms();
    fleet_configure(&s);
    begin(&s);
    soak_say(&s, "seed %llu, %.0f minutes, %d agents%s", (unsigned long long)s.seed, s.minutes,
             s.agents, s.real ? ", some of them the CLIs themselves" : "");
    run(&s);
    if (!s.rig.exited) {
        soak_say(&s, "hands off: everything comes to rest");
        truth_end(&s);
        leave(&s);
    }
    meter_write(&s);
    int rc = verdict(&s);
    rig_stop(&s.rig);
    if (s.rig.tape)
        fclose(s.rig.tape);
    for (int p = 0; p < P_COUNT; p++)
        ARR_RELEASE(&s.ms[p]);
    for (size_t i = 0; i < s.suspects.n; i++)
        free(s.suspects.v[i]);
    ARR_RELEASE(&s.suspects);
    ARR_RELEASE(&s.boxes);
    ARR_RELEASE(&s.jobs);
    ARR_RELEASE(&s.samples);
    return rc;
}
