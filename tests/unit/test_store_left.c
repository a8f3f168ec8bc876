/* store: how the files are left. A life that only looked leaves its few pages in the log, one
 * that deleted nothing in it; a file that nobody touched is not checked again, any other is. */
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/hash.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* keep last */
#include <cmocka.h>

static struct storebox b;
static char *dir;

static const char *at(const char *name)
{
    static char path[4][300];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof(path[k]), "%s/%s", dir, name);
    return path[k];
}

static int set_up(void **state)
{
    (void)state;
    dir = storebox_dir();
    storebox_start(&b, dir); /* the tables are made: no light life */
    storebox_sandbox(&b, "first");
    storebox_stop(&b);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tmpdir_remove(dir);
    free(dir);
    return 0;
}

static long size_of(const char *name)
{
    struct stat st;
    return stat(at(name), &st) == 0 ? (long)st.st_size : 0;
}

#define LOG "cc-tui.db-wal"
enum { RECORD = 96 }; /* bytes of how it was left, with their sum at the end */

static char *slurp(const char *name, size_t *len)
{
    FILE *f = fopen(at(name), "rb");
    assert_non_null(f);
    *len = (size_t)size_of(name);
    char *p = xmalloc(*len + 1);
    assert_int_equal(fread(p, 1, *len, f), *len);
    fclose(f);
    return p;
}

static void spit(const char *name, const char *p, size_t len)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, len), len);
    close(fd);
}

static bool holds(const char *name, const char *text)
{
    size_t len = 0;
    char *p = size_of(name) ? slurp(name, &len) : NULL;
    bool found = p && memmem(p, len, text, strlen(text));
    free(p);
    return found;
}

/* Notes something; what a list of sandboxes does. */
static void note(struct storebox *s, const char *text)
{
    struct st_reply *r;
    store_log_add(s->s, 1, 0, text);
    store_log(s->s, 1, storebox_to(s));
    r = storebox_ok(s);
    assert_string_equal(r->log[0].text, text);
    msg_free(&r->m);
}

static void life(const char *text)
{
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, 0);
    note(&b, text);
    storebox_stop(&b);
}

static size_t notes(void)
{
    struct st_reply *r;
    store_log(b.s, 1000, storebox_to(&b));
    r = storebox_ok(&b);
    size_t n = r->n_log;
    msg_free(&r->m);
    return n;
}

static void check_notes(size_t n)
{
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, 0);
    assert_int_equal(notes(), n);
    storebox_stop(&b);
}

/* --- the log ------------------------------------------------------------------------- */

static void test_light_lives_keep_the_log(void **state)
{
    (void)state;
    size_t len, len2;
    char *before = slurp("cc-tui.db", &len), *after;

    assert_int_equal(size_of(LOG), 0);
    for (int i = 0; i < 5; i++) {
        char text[24];
        snprintf(text, sizeof(text), "note %d", i);
        life(text);
        assert_true(size_of(LOG) > 0);
    }
    after = slurp("cc-tui.db", &len2);
    assert_true(len == len2 && memcmp(before, after, len) == 0);
    free(before);
    free(after);
    check_notes(5);
}

static void test_log_stays_short(void **state)
{
    (void)state;
    bool emptied = false;
    for (int i = 0; i < 70; i++) {
        life("again");
        assert_true(size_of(LOG) < 300 << 10);
        emptied |= i > 0 && size_of(LOG) == 0;
    }
    assert_true(emptied);
    check_notes(70);
}

static void test_heavy_life_empties_it(void **state)
{
    (void)state;
    life("light");
    assert_true(size_of(LOG) > 0);
    storebox_start(&b, dir);
    uint64_t id = storebox_sandbox(&b, "i1");
    store_message_add(b.s, id, "CANARY-TEXT", storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    storebox_stop(&b);
    assert_int_equal(size_of(LOG), 0);
    life("light again");
    assert_true(size_of(LOG) > 0);
    assert_false(holds(LOG, "CANARY-TEXT"));
    check_notes(2);
}

/* Whoever was killed may have left anything in it. */
static void test_log_of_a_killed_one_is_emptied(void **state)
{
    (void)state;
    pid_t pid;
    int status;

    life("light");
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        storebox_start(&b, dir);
        uint64_t id = storebox_sandbox(&b, "i1");
        store_message_add(b.s, id, "CANARY-TEXT", storebox_to(&b));
        msg_free(&storebox_ok(&b)->m);
        _exit(0);
    }
    assert_true(waitpid(pid, &status, 0) == pid && status == 0);
    assert_true(holds(LOG, "CANARY-TEXT"));
    life("light again");
    assert_int_equal(size_of(LOG), 0);
    check_notes(2);
}

/* The other deletes while this one has it open, and this one is the last to go. */
static void test_others_writes_are_emptied(void **state)
{
    (void)state;
    struct storebox o = {0};
    char old[] = "OLD-TEXT-OF-A-MESSAGE";

    storebox_start(&b, dir);
    note(&b, "light");
    storebox_start(&o, dir);
    uint64_t id = storebox_sandbox(&o, "i1");
    store_message_add(o.s, id, old, storebox_to(&o));
    msg_free(&storebox_ok(&o)->m);
    store_del_sandbox(o.s, id, storebox_to(&o));
    msg_free(&storebox_ok(&o)->m);
    note(&b, "light again");
    storebox_stop(&o);
    storebox_stop(&b);
    assert_int_equal(size_of(LOG), 0);
    assert_false(holds("cc-tui.db", old));
    check_notes(2);
}

/* A copy from elsewhere in the file's place: the log belongs to the one that was there. */
static void test_log_of_another_file(void **state)
{
    (void)state;
    size_t len;
    char *copy;

    copy = slurp("cc-tui.db", &len);
    for (int i = 0; i < 3; i++)
        life("not in the copy");
    storebox_start(&b, dir);
    for (int i = 0; i < 40; i++)
        storebox_sandbox(&b, (const char[]){'s', (char)('0' + i / 10), (char)('0' + i % 10), '\0'});
    storebox_stop(&b);
    life("not in the copy");
    assert_true(size_of(LOG) > 0);
    spit("cc-tui.db", copy, len);
    free(copy);
    check_notes(0);
    life("goes on");
    check_notes(1);
}

static void copy_to(const char *name, const char *copy)
{
    size_t len;
    char *p = slurp(name, &len);
    spit(copy, p, len);
    free(p);
}

/* The whole folder was copied, as a backup is brought back: the log belongs to the copy. */
static void test_log_that_came_along(void **state)
{
    (void)state;
    life("one");
    life("two");
    assert_true(size_of(LOG) > 0);
    copy_to("cc-tui.db", "db");
    copy_to(LOG, "log");
    assert_int_equal(rename(at("log"), at(LOG)), 0);
    assert_int_equal(rename(at("db"), at("cc-tui.db")), 0);
    check_notes(2);
}

/* Somebody has it open, and another program has moved a part of the log into the file. */
static void test_log_in_use(void **state)
{
    (void)state;
    int ready[2], go[2], status;
    char c;
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000}};

    life("one");
    assert_true(size_of(LOG) > 0);
    assert_true(pipe(ready) == 0 && pipe(go) == 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        storebox_start(&b, dir);
        bool well = notes() == 1 && write(ready[1], "r", 1) == 1 && read(go[0], &c, 1) == 1;
        note(&b, "two");
        storebox_stop(&b);
        _exit(well ? 0 : 1);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(utimensat(AT_FDCWD, at("cc-tui.db"), t, 0), 0);
    check_notes(1);
    assert_true(size_of(LOG) > 0);
    assert_int_equal(write(go[1], "g", 1), 1);
    assert_true(waitpid(pid, &status, 0) == pid && status == 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
    check_notes(2);
}

/* --- the check ------------------------------------------------------------------------- */

static bool is_found(void)
{
    storebox_start(&b, dir);
    bool found = b.opened->err.code != 0;
    storebox_stop(&b);
    return found;
}

static void damage(void)
{
    size_t len;
    char *p = slurp("cc-tui.db", &len);
    memset(p + 4096, 0x5a, len - 4096 > 65536 ? 65536 : len - 4096);
    spit("cc-tui.db", p, len);
    free(p);
}

static void test_damage_after_a_light_life(void **state)
{
    (void)state;
    life("light");
    life("light again");
    damage();
    assert_true(is_found());
    assert_false(is_found());
}

static void test_damage_after_a_heavy_life(void **state)
{
    (void)state;
    damage(); /* at once, before the clock of the file system may have moved */
    assert_true(is_found());
}

/* What was written says nothing about a file that somebody writes to meanwhile. */
static void test_damage_while_it_is_open(void **state)
{
    (void)state;
    storebox_start(&b, dir);
    damage();
    storebox_stop(&b);
    assert_true(is_found());
}

static long first_page(const char *table)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    long page;

    assert_int_equal(sqlite3_open(at("cc-tui.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_schema WHERE name=?", -1,
                                        &q, NULL), SQLITE_OK);
    sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    page = (long)sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return page;
}

/* Damage that leaves no trace in the file's time, as a disk makes it. */
static void damage_silently(void)
{
    struct stat st;
    long page = first_page("budgetNotes"); /* nobody reads it at the begin or the end */

    assert_int_equal(stat(at("cc-tui.db"), &st), 0);
    int fd = open(at("cc-tui.db"), O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "\x5a\x5a\x5a\x5a", 4, (page - 1) * 4096), 4);
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, st.st_mtim};
    assert_int_equal(futimens(fd, t), 0);
    close(fd);
}

/* No opening looks for it, and the background does. The proof that a file that nobody touched is
 * not read again. */
static void test_untouched_is_not_read_again(void **state)
{
    (void)state;
    struct stat st;

    damage_silently();
    assert_false(is_found());
    assert_int_equal(stat(at("cc-tui.db"), &st), 0);
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, st.st_mtim};
    t[1].tv_nsec = t[1].tv_nsec ? t[1].tv_nsec - 1 : 1;
    assert_int_equal(utimensat(AT_FDCWD, at("cc-tui.db"), t, 0), 0);
    assert_true(is_found());
}

/* A record that is not ours, is cut off or turned around counts for nothing. */
static void test_bad_record(void **state)
{
    (void)state;
    size_t len;

    life("light");
    char *p = slurp("cc-tui.lock", &len);
    assert_true(len > 16);
    for (size_t i = 0; i < len; i += 7) {
        p[i] ^= 1;
        spit("cc-tui.lock", p, len);
        p[i] ^= 1;
        storebox_start(&b, dir);
        assert_int_equal(b.opened->err.code, 0);
        assert_int_equal(notes(), 1);
        storebox_stop(&b);
    }
    spit("cc-tui.lock", p, len / 2);
    damage();
    assert_true(is_found());
    free(p);
}

/* Whatever in it was turned around: the file that it is of is read again. */
static void test_record_that_does_not_fit(void **state)
{
    size_t len;

    for (size_t i = 4; i < RECORD; i += 16) {
        damage_silently();
        char *p = slurp("cc-tui.lock", &len);
        assert_int_equal(len, RECORD);
        p[i] ^= 1;
        spit("cc-tui.lock", p, len);
        free(p);
        if (!is_found())
            fail_msg("byte %d of the record says nothing", (int)i);
        tear_down(state);
        set_up(state);
    }
}

/* A right record of a program with other tables: this one looks itself. */
static void test_record_of_another_program(void **state)
{
    (void)state;
    size_t len;
    uint64_t sum;

    damage_silently();
    char *p = slurp("cc-tui.lock", &len);
    assert_int_equal(len, RECORD);
    sum = hash_add(HASH_BEGIN, p, RECORD - sizeof(sum));
    assert_memory_equal(p + RECORD - sizeof(sum), &sum, sizeof(sum));
    p[8] ^= 1; /* of the hash of its tables */
    sum = hash_add(HASH_BEGIN, p, RECORD - sizeof(sum));
    memcpy(p + RECORD - sizeof(sum), &sum, sizeof(sum));
    spit("cc-tui.lock", p, len);
    free(p);
    assert_true(is_found());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_light_lives_keep_the_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_log_stays_short, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_heavy_life_empties_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_log_of_a_killed_one_is_emptied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_others_writes_are_emptied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_log_of_another_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_log_that_came_along, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_log_in_use, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damage_after_a_light_life, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damage_after_a_heavy_life, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damage_while_it_is_open, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_untouched_is_not_read_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_record, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_record_that_does_not_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_record_of_another_program, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
