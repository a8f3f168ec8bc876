/* Every recording of every agent goes through a session into the ledger, by a program that is
 * killed in the middle of it and by the next one, and is then read once more: tokens to the
 * token and cost to 1e-6 are those that a reader of the raw bytes found (recordings.tsv). */
#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_out.h"
#include "../../src/jobs/session_priv.h"
#include "../lib/jobsbed.h"
#include "../lib/tmpdir.h"

#include <cct/agent.h>
#include <cct/model/ledger.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DIR "tests/fixtures/recordings"
#define WAIT_MS 20000
enum { MAX_CASES = 300, CASE = 0, ADAPTER = 1, EXIT = 2, TOKENS = 8, COST = 9, FIELDS = 16 };

struct played {
    char *name, *adapter, *data;
    size_t len;
    int code;
    long long in, cached, written, out;
    double cost; /* NaN: the agent tells none */
};
static struct played cases[MAX_CASES];
static size_t n_cases;

static void add_case(char *line)
{
    struct played *c = &cases[n_cases];
    char *f[FIELDS + 1] = {NULL}, *save = NULL, *path;
    size_t n = 0;

    for (char *w = strtok_r(line, "\t", &save); w && n <= FIELDS; w = strtok_r(NULL, "\t", &save))
        f[n++] = w;
    if (*line == '#' || n != FIELDS || n_cases == MAX_CASES)
        return;
    *c = (struct played){.name = xstrdup(f[CASE]), .adapter = xstrdup(f[ADAPTER])};
    if (sscanf(f[TOKENS], "%lld %lld %lld %lld", &c->in, &c->cached, &c->written, &c->out) != 4)
        fail_msg("tokens of %s", c->name);
    c->cost = str_eq(f[COST], "-") ? (double)NAN : strtod(f[COST], NULL);
    c->code = *f[EXIT] == 'S' ? 128 : (int)strtol(f[EXIT], NULL, 10);
    path = xasprintf(DIR "/%s.jsonl", c->name);
    c->data = fs_read(path, 16 << 20, false, &c->len, NULL);
    assert_non_null(c->data);
    free(path);
    n_cases++;
}

static void read_cases(void)
{
    size_t len;
    char *table = fs_read(DIR ".tsv", 16 << 20, false, &len, NULL);

    assert_non_null(table);
    for (char *p = table; *p;) { /* no strtok: each line is cut by itself */
        size_t n = strcspn(p, "\n");
        bool more = p[n] != 0;

        p[n] = 0;
        add_case(p);
        p += n + more;
    }
    free(table);
    assert_true(n_cases > 200);
}

static void free_cases(void)
{
    while (n_cases) {
        n_cases--;
        free(cases[n_cases].name);
        free(cases[n_cases].adapter);
        free(cases[n_cases].data);
    }
}

/* --- a session ------------------------------------------------------------------------------ */

struct step {
    struct jobsbed *b;
    const struct played *c;
    uint64_t row;
    size_t upto; /* of its bytes */
    uint64_t pos;
};
static size_t n_open;

static void opened(struct session *s)
{
    (void)s;
    __atomic_fetch_add(&n_open, 1, __ATOMIC_SEQ_CST);
}

static bool are_open(void *ctx)
{
    (void)ctx;
    return __atomic_load_n(&n_open, __ATOMIC_SEQ_CST) == n_cases;
}

static void do_open(void *ctx)
{
    struct step *p = ctx;
    struct session *s = session_of(&p->b->j, p->row);

    s->ad = agent_adapter_find(p->c->adapter);
    session_open(s, 1, opened);
}

/* From where the store has it, in pieces of odd sizes. */
static void do_feed(void *ctx)
{
    struct step *p = ctx;
    struct session *s = session_of(&p->b->j, p->row);
    size_t piece = 1009;

    for (size_t at = (size_t)s->out.pos; at < p->upto; at += piece) {
        piece = p->upto - at < piece ? p->upto - at : piece;
        session_out_feed(s, p->c->data + at, piece);
    }
    if (p->upto == p->c->len && s->out.pos == p->c->len) {
        struct session_run_end end = {.run = 1, .offset = s->out.pos, .code = p->c->code};
        session_out_exit(s, &end);
    }
    session_keep_flush(s);
    p->pos = s->out.pos;
}

static void open_all(struct jobsbed *b)
{
    n_open = 0;
    for (size_t i = 0; i < n_cases; i++) {
        struct step p = {b, &cases[i], i + 1, 0, 0};
        jobsbed_run(b, do_open, &p);
    }
    assert_true(jobsbed_wait(b, are_open, NULL, WAIT_MS));
}

static void play(struct jobsbed *b, size_t i, size_t upto)
{
    struct step p = {b, &cases[i], i + 1, upto, 0};

    jobsbed_run(b, do_feed, &p);
    assert_int_equal(p.pos, upto);
}

static void play_all(struct jobsbed *b)
{
    open_all(b);
    for (size_t i = 0; i < n_cases; i++)
        play(b, i, cases[i].len);
}

/* The program that is killed: each to its middle, the first half of them to the end. */
static int be_killed(const char *dir)
{
    struct jobsbed *b;

    read_cases();
    b = jobsbed_new(dir, "killed", NULL);
    jobsbed_load(b);
    open_all(b);
    for (size_t i = 0; i < n_cases; i++) {
        play(b, i, i % 3 == 0 ? cases[i].len : cases[i].len / 2);
        if (i == n_cases * 2 / 3 && write(STDOUT_FILENO, "x", 1) != 1)
            return 1;
    }
    pause();
    return 1;
}

static void run_and_kill(const char *dir)
{
    int out[2], status;
    char c;
    pid_t pid;

    assert_int_equal(pipe(out), 0);
    pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execl("/proc/self/exe", "killed", dir, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    close(out[1]);
    assert_int_equal(read(out[0], &c, 1), 1);
    kill(pid, SIGKILL); /* what is on its way to the disk stays there, or does not */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    close(out[0]);
}

/* --- the sums ------------------------------------------------------------------------------- */

static struct st_reply *sums(struct jobsbed *b)
{
    struct ledger_query q = {.to = INT64_MAX};
    struct mq *mq = mq_new(1 << 20);
    struct st_reply *r;

    store_ledger(b->j.o.store, &q, (struct st_to){mq, 1});
    assert_true(mq_wait(mq, WAIT_MS));
    r = (struct st_reply *)mq_take(mq);
    assert_non_null(r->report);
    mq_free(mq);
    return r;
}

static const struct ledger_sums *sums_of(const struct ledger_report *r, const char *sandbox)
{
    static const struct ledger_sums none;

    for (size_t i = 0; i < r->by[BY_SANDBOX].n; i++)
        if (str_eq(r->by[BY_SANDBOX].v[i].name, sandbox))
            return &r->by[BY_SANDBOX].v[i].sums;
    return &none;
}

static void check_all(struct jobsbed *b)
{
    struct st_reply *r = sums(b);
    size_t with_cost = 0, without = 0;

    for (size_t i = 0; i < n_cases; i++) {
        const struct played *c = &cases[i];
        const struct ledger_sums *a = sums_of(r->report, c->name);
        double cost = isnan(c->cost) ? 0 : c->cost;

        if (a->in_tokens != c->in || a->cache_read != c->cached || a->cache_write != c->written ||
            a->out_tokens != c->out || fabs(a->agent_usd - cost) > 1e-6)
            fail_msg("%s: %lld %lld %lld %lld %.7f, not %lld %lld %lld %lld %.7f", c->name,
                     (long long)a->in_tokens, (long long)a->cache_read, (long long)a->cache_write,
                     (long long)a->out_tokens, a->agent_usd, c->in, c->cached, c->written, c->out,
                     cost);
        if (isnan(c->cost) && a->turns)
            assert_int_equal(a->unpriced_turns, a->turns);
        with_cost += c->cost > 0;
        without += isnan(c->cost) && a->turns;
    }
    assert_true(with_cost > 50 && without > 20);
    msg_free(&r->m);
}

static void recorded_and_killed(void **state)
{
    char root[64];
    struct jobsbed *b;

    (void)state;
    assert_int_equal(tmpdir_make(root, sizeof(root), "ledger"), 0);
    read_cases();
    b = jobsbed_new(root, "first", NULL);
    for (size_t i = 0; i < n_cases; i++)
        assert_int_equal(jobsbed_row(b, "claude", cases[i].name), i + 1);
    jobsbed_free(b);
    run_and_kill(root);
    b = jobsbed_new(root, "next", NULL);
    jobsbed_load(b);
    play_all(b);
    check_all(b);
    play_all(b); /* looked at again */
    check_all(b);
    jobsbed_free(b);
    assert_int_equal(tmpdir_remove(root), 0);
    free_cases();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded_and_killed)};

    if (argc == 2 && strcmp(argv[0], "killed") == 0)
        return be_killed(argv[1]);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
