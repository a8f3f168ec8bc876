/* The write-ahead log: it goes into the database when nobody waits, it does not stay large, and
 * what it holds is there after a program that was killed. Where it cannot, that is said. */
#include "../lib/fullvfs.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* keep last */
#include <cmocka.h>

enum { PIECE = 1 << 20, PIECES = 6, MANY = 30, MOST = 14 << 20, PATIENCE_MS = 30000 };

static struct storebox b;
static char *dir;

static int set_up(void **state)
{
    (void)state;
    dir = storebox_dir();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tmpdir_remove(dir);
    free(dir);
    return 0;
}

static off_t size_of(const char *name)
{
    char *path = xasprintf("%s/%s", dir, name);
    struct stat st;
    off_t size = stat(path, &st) == 0 ? st.st_size : -1;

    free(path);
    return size;
}

/* Bytes that say where they are. */
static void put(uint64_t run, int piece)
{
    struct st_append a = {.run = run, .offset = (uint64_t)piece * PIECE, .raw = xmalloc(PIECE),
                          .len = PIECE};

    memset(a.raw, 'a' + piece, PIECE);
    store_append(b.s, &a, storebox_to(&b));
}

static void put_all(uint64_t run)
{
    for (int i = 0; i < PIECES; i++)
        put(run, i);
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->stored, PIECES * PIECE);
    msg_free(&r->m);
}

static bool comes(bool (*ok)(void))
{
    int64_t end = clock_mono_ms() + PATIENCE_MS;

    while (!ok() && clock_mono_ms() < end)
        poll(NULL, 0, 10);
    return ok();
}

static bool file_has_all(void)
{
    return size_of("cc-tui.db") > PIECES * PIECE;
}

static void check_bytes(uint64_t run)
{
    for (int i = 0; i < PIECES; i++) {
        store_raw(b.s, run, (uint64_t)i * PIECE, PIECE, storebox_to(&b));
        struct st_reply *r = storebox_ok(&b);
        assert_int_equal(r->raw_len, PIECE);
        for (size_t k = 0; k < r->raw_len; k++)
            if (r->raw[k] != 'a' + i)
                fail_msg("byte %zu of piece %d is %d", k, i, r->raw[k]);
        msg_free(&r->m);
    }
}

static void test_goes_into_the_file(void **state)
{
    (void)state;
    storebox_start(&b, dir);
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    put_all(run);
    assert_true(size_of("cc-tui.db-wal") > PIECES * PIECE); /* nobody waited for the file */
    assert_true(comes(file_has_all));
    for (int i = PIECES; i < MANY; i++) /* nor does it grow while somebody waits */
        put(run, i);
    msg_free(&storebox_ok(&b)->m);
    assert_true(size_of("cc-tui.db-wal") <= MOST);
    check_bytes(run);
    storebox_again(&b, dir);
    check_bytes(run);
    storebox_stop(&b);
}

/* Killed while all of it is in the log. */
static void test_killed(void **state)
{
    int ready[2], status;
    uint64_t run = 0;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        storebox_start(&b, dir);
        run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
        put_all(run);
        if (write(ready[1], &run, sizeof(run)) == (ssize_t)sizeof(run))
            raise(SIGKILL);
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &run, sizeof(run)), sizeof(run));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(ready[0]);
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, 0);
    check_bytes(run);
    storebox_stop(&b);
}

/* --- a disk that takes no more ------------------------------------------------------ */

static int set_up_full(void **state)
{
    return fullvfs_begin() ? set_up(state) : 1;
}

static int tear_down_full(void **state)
{
    fullvfs_end();
    return tear_down(state);
}

/* Until the last request is answered; how often trouble was told on the way. */
static int troubles_until_answer(void)
{
    int n = 0;

    for (;;) {
        struct st_reply *r = storebox_any(&b);
        bool last = r->m.req_id == b.next;

        n += r->m.type == ST_TROUBLE;
        assert_true(r->m.type == ST_TROUBLE || r->err.code == 0);
        msg_free(&r->m);
        if (last)
            return n;
    }
}

static void trouble_is_told(const char *what)
{
    struct st_reply *r = storebox_any(&b);

    assert_int_equal(r->m.type, ST_TROUBLE);
    assert_int_equal(r->err.code, ERR_FULL);
    assert_non_null(strstr(r->err.text, what));
    assert_non_null(strstr(r->err.text, "the disk is full; free some space"));
    msg_free(&r->m);
}

/* It is told once, nothing is lost, and the disk is not asked at each commit. many: so much that
 * the log does not wait for a quiet moment. */
static void it_cannot(bool many)
{
    int first = many ? MANY : PIECES;

    storebox_start(&b, dir);
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    fullvfs_file = true;
    for (int i = 0; i < first; i++)
        put(run, i);
    if (troubles_until_answer() == 0)
        trouble_is_told("log stays beside it and grows");
    assert_int_equal(fullvfs_refused, 1);
    for (int i = first; i < first + 2 * PIECES; i++) {
        put(run, i);
        assert_int_equal(troubles_until_answer(), 0);
    }
    assert_int_equal(fullvfs_refused, 1);
    check_bytes(run);
    fullvfs_file = false;
    storebox_again(&b, dir);
    check_bytes(run);
    storebox_stop(&b);
}

static void test_cannot_in_quiet(void **state)
{
    (void)state;
    it_cannot(false);
}

static void test_cannot_in_haste(void **state)
{
    (void)state;
    it_cannot(true);
}

/* What is too old cannot go, and nobody had asked for it. */
static void test_old_rows_stay(void **state)
{
    struct sandbox old = {.sandbox_id = (char *)"old", .state = SB_KILLED, .ended_at = 1};

    (void)state;
    storebox_start(&b, dir);
    store_put_sandbox(b.s, &old, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    fullvfs_log = true;
    store_prune(b.s, (struct st_to){NULL, 0});
    trouble_is_told("what is old enough to go stays");
    store_prune(b.s, storebox_to(&b)); /* who asks gets the answer, and no more */
    storebox_says(&b, ERR_FULL);
    store_sandboxes(b.s, storebox_to(&b));
    assert_int_equal(troubles_until_answer(), 0);
    fullvfs_log = false;
    store_prune(b.s, storebox_to(&b));
    storebox_says(&b, 0);
    storebox_stop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_goes_into_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cannot_in_quiet, set_up_full, tear_down_full),
        cmocka_unit_test_setup_teardown(test_cannot_in_haste, set_up_full, tear_down_full),
        cmocka_unit_test_setup_teardown(test_old_rows_stay, set_up_full, tear_down_full),
    };
    return cmocka_run_group_tests_name("store_log", tests, NULL, NULL);
}
