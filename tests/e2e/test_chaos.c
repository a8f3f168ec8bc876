/* Seeded schedules of trouble between cc-tui and a provider: connections that are cut,
 * refused, held or slow, while an agent prints numbered lines and takes messages. When
 * the network is well again everything must be current soon, every line there once, no
 * message taken twice.
 *
 *   SEEDS=500 build/release/tests/e2e/test_chaos      more schedules (default 20)
 *   SEED=17 ...                                       this one alone
 *   TLS=0 or TLS=1 ...                                 only one kind of provider */
#include "../lib/chaosbed.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEDS = 20, LANES_MAX = 8, HEAL_MS = 15000, END_MS = 60000, LINES = 40, MORE = 12 };

struct verdict { /* of one schedule, from a lane to the judge */
    int seed;
    bool ok;
    int64_t heal_ms;
    char text[300];
};

/* --- trouble --------------------------------------------------------------------- */

static void pass_time(struct chaosbed *b, int64_t ms)
{
    int64_t until = clock_mono_ms() + ms, left;

    while ((left = until - clock_mono_ms()) > 0) {
        struct pollfd p = {app_fd(b->app->app), POLLIN, 0};

        poll(&p, 1, (int)left);
        app_drain(b->app->app, 8);
    }
}

/* One blow; how long it lasts. */
static int64_t strike(struct chaosbed *b, uint64_t *rng)
{
    static const char *const ends[] = {"fin", "rst", "stall"}, *const ways[] = {"to", "from"};
    uint64_t r = chaos_random(rng);
    struct faultd *p = r % 10 < 7 ? b->data : b->api;
    int ms = (int)(chaos_random(rng) % 500) + 20, n = (int)(chaos_random(rng) % 6000);

    switch (r / 16 % 10) {
    case 0:
        chaosbed_do(p, "cut");
        return 0;
    case 1:
        chaosbed_do(p, "fin");
        return 0;
    case 2:
        chaosbed_do(p, "down %d", ms);
        return ms;
    case 3:
        chaosbed_do(p, "hole %d", ms);
        return ms;
    case 4:
        chaosbed_do(p, "stall %s %d", ways[r >> 8 & 1], ms);
        return ms;
    case 5:
        chaosbed_do(p, "slow %d", 2000 + n);
        return 0;
    case 6:
        chaosbed_do(p, "delay %d", ms / 8);
        return 0;
    default: /* connections from now on break at that byte, or fall silent for good */
        chaosbed_do(p, "limit %s %d %s", ways[r >> 8 & 1], n, ends[(r >> 9) % 3]);
        chaosbed_do(p, r >> 16 & 1 ? "cut" : "delay 0");
        return 0;
    }
}

/* What the service itself has to say now and then, besides the wire. */
static void grumble(struct chaosbed *b, uint64_t *rng, bool on)
{
    static const int codes[] = {500, 502, 503, 429};
    struct buf json = BUF_INIT;

    if (!b->fake)
        return;
    buf_adds(&json, "{\"rules\":[");
    for (int i = 0; on && i < 4; i++)
        buf_addf(&json, "%s{\"path\":\"%s\",\"percent\":%d,\"status\":%d}", i ? "," : "",
                 chaos_random(rng) % 2 ? "/[fhp]*" : "/*sandboxes*",
                 (int)(chaos_random(rng) % 15), codes[i]);
    buf_adds(&json, "]}");
    if (!faultd_config(b->fake, buf_str(&json)))
        die("faultd refused %s", buf_str(&json));
    buf_release(&json);
}

static void trouble(struct chaosbed *b, uint64_t *rng)
{
    int n = 3 + (int)(chaos_random(rng) % 5);
    int64_t until = 0, now;

    grumble(b, rng, true);
    for (int i = 0; i < n; i++) {
        int64_t end = clock_mono_ms() + strike(b, rng);

        until = end > until ? end : until;
        pass_time(b, (int64_t)(chaos_random(rng) % 250));
    }
    now = clock_mono_ms();
    pass_time(b, until > now ? until - now : 0);
    chaosbed_do(b->api, "heal");
    chaosbed_do(b->data, "heal");
    grumble(b, rng, false);
}

/* --- one schedule ---------------------------------------------------------------- */

static bool is_current(struct appbed *a, const void *arg)
{
    const uint64_t *row = arg;
    const struct model *m = app_model(a->app);
    const struct sandbox *r = model_sandbox(m, *row);

    return m->link == LINK_OK && r && r->state == SB_RUNNING && r->agent == AG_IDLE && !r->unlisted;
}

static bool run_schedule(struct chaosbed *b, int seed, int64_t *heal_ms, struct err *e)
{
    uint64_t rng = (uint64_t)seed * 7919, req[3];
    char a[16], c[16], d[16], text[64];
    int64_t healed;

    snprintf(a, sizeof(a), "a%d", seed);
    snprintf(c, sizeof(c), "b%d", seed);
    snprintf(d, sizeof(d), "c%d", seed);
    snprintf(text, sizeof(text), "emit %s %d 0.02", a, LINES);
    req[0] = app_send(b->app->app, b->row, text, true);
    pass_time(b, (int64_t)(chaos_random(&rng) % 200));
    snprintf(text, sizeof(text), "emit %s %d", c, MORE);
    req[1] = app_send(b->app->app, b->row, text, true);
    trouble(b, &rng);
    healed = clock_mono_ms();
    snprintf(text, sizeof(text), "emit %s %d", d, MORE);
    req[2] = app_send(b->app->app, b->row, text, true);
    if (!chaosbed_ended(b, req, 3, END_MS, e))
        return false;
    if (!appbed_wait(b->app, is_current, &b->row)) {
        err_set(e, ERR_TIMEOUT, "the row or the link did not come back");
        return false;
    }
    *heal_ms = clock_mono_ms() - healed;
    if (*heal_ms > HEAL_MS) {
        err_set(e, ERR_TIMEOUT, "not current for %lld ms after the end of the trouble",
                (long long)*heal_ms);
        return false;
    }
    return chaosbed_read(b, e) && chaosbed_same(b, e) && chaosbed_lines(b, a, LINES, e) &&
           chaosbed_lines(b, c, MORE, e) && chaosbed_lines(b, d, MORE, e);
}

/* --- lanes ----------------------------------------------------------------------- */

static void tell(int fd, const struct verdict *v)
{
    if (write(fd, v, sizeof(*v)) != (ssize_t)sizeof(*v))
        _exit(3);
}

static void lane(int fd, bool tls, int first, int last, int step)
{
    struct app_opts o = {.follow_all = true, .poll_ms = 300, .keepalive_s = 1};
    struct verdict v = {.seed = first};
    struct err e = {0};
    struct chaosbed *b;

    appbed_main();
    b = chaosbed_new(tls, &o, &e);
    if (!b || !chaosbed_session(b, &e)) {
        str_copy(v.text, sizeof(v.text), e.text);
        tell(fd, &v);
        first = last + 1;
    }
    for (int seed = first; seed <= last; seed += step) {
        v = (struct verdict){.seed = seed};
        err_clear(&e);
        v.ok = run_schedule(b, seed, &v.heal_ms, &e);
        str_copy(v.text, sizeof(v.text), e.text);
        tell(fd, &v);
        if (!v.ok)
            chaosbed_explain(b, seed);
        if (!v.ok && e.code == ERR_TIMEOUT)
            break;
    }
    chaosbed_free(b);
}

static int number(const char *name, int fallback)
{
    const char *v = getenv(name);
    int64_t n;

    return v && str_to_i64(v, 1, 1000000, &n) ? (int)n : fallback;
}

int main(void)
{
    int seeds = number("SEEDS", SEEDS), one = number("SEED", 0), first = one ? one : 1;
    int last = one ? one : seeds, lanes = number("LANES", 8), fds[2], ran = 0, bad = 0;
    int only = getenv("TLS") ? !str_eq(getenv("TLS"), "0") : -1;
    int64_t worst = 0;
    struct verdict v;

    if (only < 0 && !chaosbed_tls_possible())
        only = 0;
    if (lanes > LANES_MAX)
        lanes = LANES_MAX;
    if (lanes > last - first + 1)
        lanes = last - first + 1;
    if (pipe(fds) != 0)
        die("no pipe");
    for (int i = 0; i < lanes; i++)
        if (fork() == 0) {
            close(fds[0]);
            lane(fds[1], only >= 0 ? only : i % 2, first + i, last, lanes);
            exit(0);
        }
    close(fds[1]);
    printf("1..%d\n", last - first + 1);
    while (read(fds[0], &v, sizeof(v)) == (ssize_t)sizeof(v)) {
        ran++;
        bad += !v.ok;
        worst = v.heal_ms > worst ? v.heal_ms : worst;
        printf("%sok %d - schedule of seed %d%s%s\n", v.ok ? "" : "not ", ran, v.seed,
               v.ok ? "" : ": ", v.ok ? "" : v.text);
        fflush(stdout);
    }
    while (wait(NULL) > 0) {
    }
    printf("# %d schedules, %d wrong; current again at most %lld ms after the trouble\n", ran, bad,
           (long long)worst);
    return bad || ran != last - first + 1;
}
