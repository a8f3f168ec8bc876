/* Files that are replayed: what is no event in them, reads that fail or hang, lines that are cut,
 * files that change meanwhile. */
#include "../lib/heldread.h"
#include "../lib/replaybed.h"

#include <cct/agent.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { FOREIGN = 100, /* lines that begin a file without one event: it is none of ours */
       /* descriptors whose reads fail or hang, some from a second piece on */
       FAILS = 700, FAILS_LATER, HANGS, HANGS_LATER, PIECE = 16384 };
static bool held; /* there are such */

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
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_many_are_none),
        cmocka_unit_test(test_read_error),
        cmocka_unit_test(test_read_hangs),
        cmocka_unit_test(test_unopened),
        cmocka_unit_test(test_read_ahead),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_file_changes),
        cmocka_unit_test(test_last_line_without_end),
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
