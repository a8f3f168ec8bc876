/* Recorded runs: when what comes, seeking, speeds, and an application that only shows. */
#include "../lib/heldread.h"

#include <cct/agent.h>
#include <cct/app.h>
#include <cct/app/replay.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { FOREIGN = 100, /* lines that begin a file without one event: it is none of ours */
       SOON = 60000,
       /* descriptors whose reads fail or hang, some from a second piece on */
       FAILS = 700, FAILS_LATER, HANGS, HANGS_LATER, PIECE = 16384 };
static bool held; /* there are such */

/* Two runs: a turn with a pause of ten minutes in front of it, then a log that begins anew. */
static const char events[] =
    "{\"kind\":\"turn_begin\",\"offset\":0,\"index\":0}\n"
    "{\"kind\":\"user_echo\",\"offset\":10,\"index\":0,\"time\":1000000,\"text\":\"hello\"}\n"
    "{\"kind\":\"text\",\"offset\":20,\"index\":0,\"block_id\":\"a\",\"text\":\"I \",\"mode\":\"append\",\"final\":false}\n"
    "{\"kind\":\"text\",\"offset\":30,\"index\":0,\"block_id\":\"a\",\"text\":\"am\",\"mode\":\"append\",\"final\":false}\n"
    "{\"kind\":\"text\",\"offset\":40,\"index\":0,\"time\":1009000,\"block_id\":\"a\",\"text\":\"I am\",\"mode\":\"replace\",\"final\":true}\n"
    "{\"kind\":\"turn_end\",\"offset\":50,\"index\":0,\"outcome\":\"ok\"}\n"
    "{\"kind\":\"user_echo\",\"offset\":60,\"index\":0,\"time\":1609000,\"text\":\"again\"}\n"
    "{\"kind\":\"user_echo\",\"offset\":0,\"index\":0,\"time\":1610000,\"text\":\"anew\"}\n";

static int file; /* of the last one: the test writes to it */

static void with_text(const char *text, size_t len)
{
    file = memfd_create("recording", MFD_CLOEXEC);
    assert_int_equal(write(file, text, len), (ssize_t)len);
}

static struct replay *with(const char *text, size_t len, const struct agent_adapter *a)
{
    with_text(text, len);
    return replay_new("it", "claude", file, a);
}

/* False: nothing is waited for. */
static bool await(const struct replay *r)
{
    struct pollfd p = {.fd = replay_fd(r), .events = POLLIN};
    if (p.fd < 0)
        return false;
    assert_int_equal(poll(&p, 1, SOON), 1);
    return true;
}

static int look(struct replay *r, struct err *e)
{
    int rc;
    while ((rc = replay_look(r, e)) == 1)
        await(r);
    return rc;
}

static struct replay *of(const char *text)
{
    struct replay *r = with(text, strlen(text), NULL);
    struct err e = {0};
    assert_false(replay_is_ready(r));
    assert_int_equal(look(r, &e), 0);
    assert_true(replay_is_ready(r));
    replay_pause(r, 0, false);
    return r;
}

static struct buf said;

static void say(void *ctx, const struct agent_event *ev, int64_t at)
{
    (void)ctx;
    buf_addf(&said, "%lld %s%s%s|", (long long)at, agent_kind_name(ev->kind), ev->text ? " " : "",
             ev->text ? ev->text : "");
}

static const char *due(struct replay *r, int64_t now)
{
    buf_clear(&said);
    do
        replay_due(r, now, say, NULL);
    while (replay_wait(r, now) == 0 || await(r));
    return buf_str(&said);
}

static void test_times(void **state)
{
    (void)state;
    struct replay *r = of(events);
    assert_int_equal(replay_count(r), 8);
    assert_string_equal(due(r, 0), "0 turn_begin|");
    assert_int_equal(replay_wait(r, 0), 61);
    assert_string_equal(due(r, 100), "60 user_echo hello|"); /* what had no time before it */
    assert_string_equal(due(r, 3100), "3060 text I |");      /* spread between the two that had */
    assert_string_equal(due(r, 9059), "6060 text am|");
    assert_string_equal(due(r, 9060), "9060 text I am|");
    assert_int_equal(replay_length(r), 610060);
    assert_false(replay_is_over(r));
    due(r, 700000);
    assert_true(replay_is_over(r));
    assert_int_equal(replay_wait(r, 700000), -1);
    assert_int_equal(replay_at(r, 700000), 610060);
    replay_free(r);
}

/* A file may say any time, and thousands of events may have none. */
static void test_far_times(void **state)
{
    enum { UNTIMED = 2000 };
    static const char timed[] = "{\"kind\":\"turn_begin\",\"offset\":1,\"index\":0,\"time\":%lld}\n";
    struct buf b = BUF_INIT;

    (void)state;
    buf_addf(&b, timed, 1LL);
    for (int i = 0; i < UNTIMED; i++)
        buf_adds(&b, "{\"kind\":\"turn_begin\",\"offset\":2,\"index\":0}\n");
    buf_addf(&b, timed, 9000000000000001LL);
    struct replay *r = of(buf_str(&b));
    assert_int_equal(replay_length(r), 9000000000000000LL);
    assert_string_equal(due(r, 0), "0 turn_begin|");
    assert_int_equal(replay_wait(r, 0), 9000000000000000LL / (UNTIMED + 1) + 1);
    replay_seek(r, 0, INT64_MAX);
    due(r, 0);
    assert_true(replay_is_over(r));
    replay_free(r);
    buf_release(&b);
}

static void test_no_times(void **state)
{
    (void)state;
    struct replay *r = of("{\"kind\":\"turn_begin\",\"offset\":0,\"index\":0}\n\n"
                          "{\"kind\":\"text\",\"offset\":1,\"index\":0,\"text\":\"a\",\"final\":false}\n"
                          "{\"kind\":\"text\",\"offset\":2,\"index\":0,\"text\":\"ab\",\"final\":true}");
    assert_int_equal(replay_length(r), 860);
    assert_string_equal(due(r, 459), "400 turn_begin|");
    assert_string_equal(due(r, 460), "460 text a|");
    replay_free(r);
    struct err e = {0};
    r = with("", 0, NULL);
    assert_int_equal(look(r, &e), ERR_NOTFOUND);
    assert_true(replay_is_ready(r));
    replay_pause(r, 0, false);
    assert_int_equal(replay_length(r), 0);
    assert_int_equal(replay_wait(r, 5), -1);
    replay_seek(r, 5, 100);
    replay_skip(r, 5, -100);
    replay_free(r);
}

static void test_speed(void **state)
{
    (void)state;
    struct replay *r = of(events);
    int percent;
    due(r, 100);
    replay_set_speed(r, 100, 400);
    assert_int_equal(replay_at(r, 200), 500);
    replay_change_speed(r, 200, false);
    assert_int_equal(replay_speed(r), 200);
    assert_int_equal(replay_at(r, 200), 500); /* no jump */
    replay_pause(r, 300, true);
    assert_int_equal(replay_at(r, 100000), 700);
    assert_int_equal(replay_wait(r, 100000), -1);
    replay_pause(r, 100000, false);
    assert_int_equal(replay_at(r, 100100), 900);
    for (int i = 0; i < 9; i++)
        replay_change_speed(r, 100100, true);
    assert_int_equal(replay_speed(r), REPLAY_MAX);
    assert_int_equal(replay_wait(r, 100100), 0);
    due(r, 100100);
    assert_true(replay_is_over(r));
    assert_true(replay_parse_speed("2.5x", &percent) && percent == 250);
    assert_true(replay_parse_speed("max", &percent) && percent == REPLAY_MAX);
    assert_false(replay_parse_speed("0", &percent) || replay_parse_speed("nan", &percent) ||
                 replay_parse_speed("fast", &percent) || replay_parse_speed("", &percent));
    replay_free(r);
}

static void test_seek(void **state)
{
    (void)state;
    struct replay *r = of(events);
    replay_pause(r, 0, true);
    replay_seek(r, 0, 9100);
    due(r, 0);
    replay_skip(r, 0, 10000); /* over the ten minutes, to what comes next */
    assert_int_equal(replay_at(r, 0), 309060);
    assert_string_equal(due(r, 0), "309060 turn_end|");
    replay_skip(r, 0, -10000);
    assert_int_equal(replay_at(r, 0), 9060);
    assert_true(replay_fd(r) >= 0); /* all from the begin */
    assert_non_null(strstr(due(r, 0), "0 turn_begin|60 user_echo hello|"));
    assert_int_equal(replay_wait(r, 0), -1);
    replay_seek(r, 0, -5);
    assert_int_equal(replay_at(r, 0), 0);
    replay_seek(r, 0, INT64_MAX);
    due(r, 0);
    assert_true(replay_is_over(r));
    replay_free(r);
}

static const char *trouble(struct replay *r, int code)
{
    static struct err e;
    assert_true(replay_trouble(r, &e));
    assert_int_equal(e.code, code);
    assert_false(replay_trouble(r, &e)); /* once */
    return e.text;
}

/* What is good is played, whatever stands between. */
static void test_what_is_none(void **state)
{
    (void)state;
    static const char text[] = "{\"kind\":\"turn_begin\"}\nhello\n{\"kind\":\"turn_begin\"}\n";
    struct replay *r = with(text, strlen(text), NULL);
    struct err e = {0};
    assert_int_equal(look(r, &e), 0);
    assert_string_equal(trouble(r, ERR_INVALID), "left out: line 2, which is no event");
    assert_int_equal(replay_count(r), 2);
    replay_pause(r, 0, false);
    assert_string_equal(due(r, 9999), "400 turn_begin|800 turn_begin|");
    assert_true(replay_is_over(r));
    assert_false(replay_trouble(r, &e));
    replay_free(r);
    for (size_t n = 1; n < 22; n++) { /* the begin of one is nothing */
        r = with(text, n, NULL);
        assert_int_equal(look(r, &e), n == 21 ? 0 : ERR_INVALID);
        replay_free(r);
    }
}

static void test_many_are_none(void **state)
{
    struct buf b = BUF_INIT;
    struct err e = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        buf_addf(&b, "no\n%s", events);
    buf_adds(&b, "{\"kind\":"); /* and one that was being written */
    struct replay *r = with(b.p, b.len, NULL);
    assert_int_equal(look(r, &e), 0);
    assert_int_equal(replay_count(r), 24);
    assert_string_equal(trouble(r, ERR_INVALID),
                        "left out: 3 lines that are no events, line 1 first, and a cut end");
    replay_free(r);
    buf_clear(&b);
    for (int i = 0; i < FOREIGN; i++) /* a file of something else is not read to its end */
        buf_adds(&b, "no\n");
    buf_adds(&b, events);
    r = with(b.p, b.len, NULL);
    assert_int_equal(look(r, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "--tool"));
    replay_free(r);
    r = with(b.p + 3, b.len - 3, NULL);
    assert_int_equal(look(r, &e), 0);
    assert_int_equal(replay_count(r), 8);
    replay_free(r);
    buf_release(&b);
}

/* The same under the number of one whose reads are held. */
static struct replay *with_held(const struct buf *b, int fd)
{
    with_text(b->p, b->len);
    assert_int_equal(dup2(file, fd), fd);
    close(file);
    return replay_new("it", "claude", fd, NULL);
}

static void add_events(struct buf *b, int times)
{
    for (int i = 0; i < times; i++)
        buf_adds(b, events);
}

/* Bytes that cannot be read end it, and that is said. */
static void test_read_error(void **state)
{
    struct err e = {0};
    struct buf b = BUF_INIT;

    (void)state;
    if (!held)
        skip();
    add_events(&b, 100);
    struct replay *r = with_held(&b, FAILS_LATER);
    assert_int_equal(look(r, &e), 0);
    assert_string_equal(trouble(r, ERR_IO), "cannot read on at byte 16384: Input/output error: what "
                                            "stands before it is played");
    assert_true(replay_count(r) > 100);
    replay_pause(r, 0, false);
    replay_set_speed(r, 0, REPLAY_MAX);
    assert_non_null(strstr(due(r, 0), "turn_begin|"));
    assert_true(replay_is_over(r));
    replay_free(r);
    r = with_held(&b, FAILS);
    assert_int_equal(look(r, &e), ERR_IO);
    assert_string_equal(e.text, "'it' cannot be played: cannot read on at byte 0: Input/output error");
    replay_free(r);
    buf_release(&b);
}

/* A file that does not answer: nobody waits for it, and nothing is asked again and again. */
static void test_read_hangs(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    if (!held)
        skip();
    add_events(&b, 100);
    for (int fd = HANGS; fd <= HANGS_LATER; fd++) {
        struct replay *r = with_held(&b, fd);
        struct pollfd p = {.fd = replay_fd(r), .events = POLLIN};
        if (fd == HANGS_LATER) /* some of it comes */
            while (!replay_looked(r)) {
                await(r);
                assert_int_equal(replay_look(r, NULL), 1);
            }
        assert_int_equal(replay_look(r, NULL), 1);
        assert_int_equal(poll(&p, 1, 0), 0);
        assert_int_equal(replay_wait(r, 0), -1);
        assert_false(replay_is_ready(r));
        replay_due(r, 0, say, NULL);
        replay_free(r);
    }
    buf_release(&b);
}

static void test_unopened(void **state)
{
    struct err e = {0};
    struct replay *r = replay_open("/nonesuch/run.jsonl", NULL, NULL);

    (void)state;
    assert_string_equal(replay_name(r), "run.jsonl");
    assert_int_equal(look(r, &e), ERR_NOTFOUND);
    assert_non_null(strstr(e.text, "cannot read '/nonesuch/run.jsonl'"));
    assert_true(replay_is_ready(r));
    assert_string_equal(due(r, 1000), "");
    assert_true(replay_is_over(r));
    replay_free(r);
}

/* A thread of that name sleeps until it is told something. */
static bool sleeps(const char *name)
{
    char path[300], text[64];
    bool found = false;
    DIR *d = opendir("/proc/self/task");
    struct dirent *one;

    while ((one = readdir(d)) && !found) {
        FILE *f;
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", one->d_name);
        f = *one->d_name == '.' ? NULL : fopen(path, "r");
        bool ours = f && fgets(text, sizeof(text), f) && str_starts(text, name);
        if (f)
            fclose(f);
        snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", one->d_name);
        f = ours ? fopen(path, "r") : NULL;
        found = f && fgets(text, sizeof(text), f) && atoi(text) == SYS_poll && *text != 'r';
        if (f)
            fclose(f);
    }
    closedir(d);
    return found;
}

/* However long it is and however slowly it is taken: little of it is in memory. */
static void test_read_ahead(void **state)
{
    enum { FILE_BYTES = 8 << 20, MOST = 4 << 20 };
    struct buf b = BUF_INIT;

    (void)state;
    while (b.len < FILE_BYTES)
        add_events(&b, 100);
    with_text(b.p, b.len);
    buf_release(&b);
    size_t before = mallinfo2().uordblks;
    struct replay *r = replay_new("it", "claude", file, NULL);
    assert_int_equal(look(r, NULL), 0);
    while (!sleeps("reader")) /* it has read as far as it may */
        sched_yield();
    assert_true(mallinfo2().uordblks < before + MOST);
    replay_set_speed(r, 0, REPLAY_MAX);
    replay_pause(r, 0, false);
    replay_due(r, 0, say, NULL);
    assert_true(mallinfo2().uordblks < before + MOST);
    replay_free(r);
}

/* Copied while it was written: the last line has no end. */
static void test_cut(void **state)
{
    (void)state;
    size_t whole = strlen(events), last = whole - 1;
    while (events[last - 1] != '\n')
        last--;
    for (size_t n = last; n < whole; n++) {
        struct replay *r = with(events, n, NULL);
        struct err e = {0};
        assert_int_equal(look(r, &e), 0);
        assert_int_equal(replay_count(r), n == whole - 1 ? 8 : 7);
        assert_int_equal(replay_trouble(r, &e), n > last && n < whole - 1);
        replay_pause(r, 0, false);
        due(r, 700000);
        assert_true(replay_is_over(r));
        replay_free(r);
    }
}

/* What is appended, taken away or put in its place while it is played does no harm. */
static void test_file_changes(void **state)
{
    (void)state;
    struct replay *r = of(events);
    assert_int_equal(pwrite(file, events, strlen(events), (off_t)strlen(events)),
                     (ssize_t)strlen(events));
    due(r, 700000);
    assert_true(replay_is_over(r));
    assert_int_equal(replay_length(r), 610060);
    replay_seek(r, 0, 0);
    assert_string_equal(due(r, 100), "0 turn_begin|60 user_echo hello|");
    assert_int_equal(ftruncate(file, 100), 0);
    replay_seek(r, 0, 0);
    assert_string_equal(due(r, 700000), "0 turn_begin|");
    assert_true(replay_is_over(r));
    assert_int_equal(replay_wait(r, 700000), -1);
    assert_string_equal(trouble(r, ERR_IO), "cannot read on: the file has become shorter, it ends at "
                                            "byte 100: the replay ends there");
    replay_free(r);
    r = of(events);
    due(r, 100);
    assert_int_equal(pwrite(file, "\0\n{\n\n", 6, 0), 6);
    replay_seek(r, 0, 0);
    assert_null(strstr(due(r, 700000), "turn_begin"));
    assert_non_null(strstr(buf_str(&said), "anew"));
    assert_true(replay_is_over(r));
    replay_free(r);
    r = of(events);
    due(r, 100);
    for (off_t at = 0; at < (off_t)strlen(events); at++) /* more events than there were */
        assert_int_equal(pwrite(file, &"{\"kind\":\"exit\"}\n"[at % 17], 1, at), 1);
    replay_seek(r, 0, 0);
    assert_true(strlen(due(r, 700000)) > 0);
    assert_true(replay_is_over(r));
    replay_free(r);
}

/* More times than are kept: each at its time as far as memory goes, the first and the last one exactly,
 * and no call takes long. */
static uint64_t n_given;
static int64_t worst, last_at;

static void count_it(void *ctx, const struct agent_event *ev, int64_t at)
{
    (void)ctx;
    int64_t off = at - (ev->time_ms - 1000);
    assert_true(at >= last_at);
    worst = worst > llabs(off) ? worst : llabs(off);
    last_at = at;
    n_given++;
}

static void test_long(void **state)
{
    enum { LINES = 140000 };
    struct buf b = BUF_INIT;
    int n, calls = 0;
    (void)state;
    for (n = 0; n < LINES; n++)
        buf_addf(&b, "{\"kind\":\"turn_begin\",\"offset\":%d,\"time\":%d}\n", n, 1000 + n * 10);
    struct replay *r = of(buf_str(&b));
    assert_int_equal(replay_count(r), LINES);
    assert_int_equal(replay_length(r), (LINES - 1) * 10);
    while (!replay_is_over(r)) {
        uint64_t before = n_given;
        replay_due(r, LINES * 10, count_it, NULL);
        assert_true(n_given - before <= 2000);
        calls++;
        if (replay_wait(r, LINES * 10) != 0)
            await(r);
    }
    assert_true(calls >= LINES / 2000);
    assert_int_equal(n_given, LINES);
    assert_int_equal(last_at, (LINES - 1) * 10);
    assert_true(worst <= 10);
    replay_free(r);
    buf_release(&b);
}

/* --- shown ------------------------------------------------------------------------------- */

static uint64_t ended;
static char why[200];

static void see(void *ctx, const struct msg *ev)
{
    (void)ctx;
    if (ev->type != EV_DONE)
        return;
    ended = ev->req_id;
    str_copy(why, sizeof(why), ((const struct ev_done *)ev)->err.text);
}

static void feed(struct replay *r, struct app *a)
{
    do
        replay_feed(r, 0, a);
    while (replay_wait(r, 0) == 0 || await(r));
    app_drain(a, 0);
}

static void test_shown(void **state)
{
    (void)state;
    char dir[] = "/tmp/cct-replay.XXXXXX";
    assert_non_null(mkdtemp(dir));
    struct app_opts o = {.data_dir = dir, .config_dir = dir, .state_dir = dir, .runtime_dir = dir};
    struct err e = {0};
    struct app *a = app_new_shown(&o, "only shown", &e);
    struct replay *r = of(events);
    assert_non_null(a);
    app_observe(a, see, NULL);
    replay_pause(r, 0, true);
    replay_seek(r, 0, 9060);
    feed(r, a);
    const struct transcript *t = model_transcript(app_model(a), REPLAY_ROW);
    const struct sandbox *s = model_sandbox(app_model(a), REPLAY_ROW);
    assert_non_null(t);
    assert_int_equal(t->n, 2);
    assert_string_equal(t->v[1].text, "I am");
    assert_string_equal(s->name, "replay of it");
    assert_int_equal(s->agent, AG_WORKING);
    replay_seek(r, 0, 700000);
    feed(r, a);
    t = model_transcript(app_model(a), REPLAY_ROW);
    assert_int_equal(t->n, 5); /* the run that began anew has not taken the place of the first */
    assert_string_equal(t->v[4].text, "anew");
    replay_seek(r, 0, 100);
    feed(r, a);
    t = model_transcript(app_model(a), REPLAY_ROW);
    assert_int_equal(t->n, 1);
    uint64_t req = app_kill(a, REPLAY_ROW);
    assert_int_equal(app_go_online(a, &e), 0);
    app_follow(a, REPLAY_ROW);
    app_drain(a, 0);
    assert_int_equal(ended, req);
    assert_string_equal(why, "only shown");
    app_free(a);
    replay_free(r);
    assert_int_equal(rmdir(dir), 0); /* nothing was written */
}

static void test_last_line_without_end(void **state)
{
    (void)state;
    struct replay *r = with("one\ntwo", 7, agent_adapter_find("shell"));
    assert_int_equal(look(r, NULL), 0);
    replay_pause(r, 0, false);
    assert_int_equal(replay_count(r), 2);
    assert_non_null(strstr(due(r, 1000000), "raw two|"));
    assert_true(replay_is_over(r));
    replay_seek(r, 0, 0);
    assert_non_null(strstr(due(r, 1000000), "raw two|"));
    replay_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times), cmocka_unit_test(test_far_times),
        cmocka_unit_test(test_no_times), cmocka_unit_test(test_speed),
        cmocka_unit_test(test_seek),  cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_many_are_none), cmocka_unit_test(test_read_error),
        cmocka_unit_test(test_read_hangs), cmocka_unit_test(test_unopened),
        cmocka_unit_test(test_read_ahead), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_file_changes), cmocka_unit_test(test_long),
        cmocka_unit_test(test_shown), cmocka_unit_test(test_last_line_without_end),
    };
    static const struct heldread reads[] = {{.fd = FAILS, .error = EIO},
                                            {.fd = FAILS_LATER, .from = PIECE, .error = EIO},
                                            {.fd = HANGS},
                                            {.fd = HANGS_LATER, .from = PIECE}};
    thread_set_role(THREAD_MAIN);
    held = heldread_install(reads, sizeof(reads) / sizeof(reads[0]));
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    buf_release(&said);
    return rc;
}
