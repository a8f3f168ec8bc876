/* store: several processes on one database, and processes that are killed at work. */
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* keep last */
#include <cmocka.h>

enum { MAX_CHILDREN = 8, LINES = 400, KILLS = 50 };

static struct storebox b;
static char *dir;
static int gate[2]; /* children start when the parent closes its end */
static pid_t children[MAX_CHILDREN];
static int n_children;

static int set_up(void **state)
{
    (void)state;
    dir = storebox_dir();
    n_children = 0;
    return pipe2(gate, O_CLOEXEC);
}

static int tear_down(void **state)
{
    (void)state;
    tmpdir_remove(dir);
    free(dir);
    return 0;
}

/* fn's result is the child's exit status. The store is started in the child. */
static void spawn(int (*fn)(int), int arg)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char c;
        close(gate[1]);
        if (read(gate[0], &c, 1) != 0)
            _exit(99);
        _exit(fn(arg));
    }
    children[n_children++] = pid;
}

/* Let all begin at once; the sum of their exit statuses, each below 90. */
static int run_all(void)
{
    int sum = 0, status;
    close(gate[1]);
    close(gate[0]);
    for (int i = 0; i < n_children; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) >= 90)
            fail_msg("a child ended with status %#x", (unsigned)status);
        sum += WEXITSTATUS(status);
    }
    return sum;
}

static int64_t ask(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    char *path = xasprintf("%s/cc-tui.db", dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    int64_t v = sqlite3_column_int64(q, 0);
    const char *text = (const char *)sqlite3_column_text(q, 0);
    if (strstr(sql, "integrity_check"))
        v = text && strcmp(text, "ok") == 0;
    sqlite3_finalize(q);
    sqlite3_close(db);
    free(path);
    return v;
}

static void check_sound(void)
{
    assert_int_equal(ask("PRAGMA integrity_check"), 1);
    char *found = xasprintf("ls %s | grep -c damaged", dir);
    FILE *f = popen(found, "r");
    int n = -1;
    assert_int_equal(fscanf(f, "%d", &n), 1);
    pclose(f);
    free(found);
    assert_int_equal(n, 0);
}

/* --- the same lines from two followers -------------------------------------------------- */

/* An event for each line of eight bytes. */
static void append_lines(uint64_t run, uint64_t at, const char *text)
{
    size_t n = strlen(text) / 8;
    struct st_append a = {.run = run, .offset = at, .raw = xstrdup(text), .len = n * 8};
    a.events = xcalloc(n, sizeof(*a.events));
    for (a.n_events = 0; a.n_events < n; a.n_events++)
        a.events[a.n_events] = (struct st_event){at + 8 * a.n_events, 0, xstrdup("{}"), 2, NULL, false, 0};
    store_append(b.s, &a, storebox_to(&b));
}

static int follow(int step)
{
    storebox_start(&b, dir);
    if (b.opened->err.code)
        return 95;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s"), at = 0;
    int posted = 0, answered = 0;
    char text[64];
    while (at < LINES * 8) {
        /* pieces of another size each, as two streams have them */
        int n = 0;
        for (int i = 0; i < step && at + (uint64_t)n < LINES * 8; i++)
            n +=
                snprintf(text + n, sizeof(text) - (size_t)n, "%07d\n", (int)(at + (uint64_t)n));
        append_lines(run, at, text);
        at += (uint64_t)n;
        posted++;
        if (posted % 40 == 0) /* so that the two take turns */
            msg_free(&storebox_wait(&b)->m), answered = posted;
    }
    if (answered < posted) {
        struct st_reply *r = storebox_wait(&b);
        if (r->err.code || r->stored != LINES * 8)
            return 96;
        msg_free(&r->m);
    }
    storebox_stop(&b);
    return 0;
}

static void test_same_lines(void **state)
{
    (void)state;
    spawn(follow, 1);
    spawn(follow, 3);
    assert_int_equal(run_all(), 0);
    assert_int_equal(ask("SELECT count(*) FROM runs"), 1);
    assert_int_equal(ask("SELECT count(*) FROM sandboxes"), 1);
    assert_int_equal(ask("SELECT sum(length(data)) FROM rawChunks"), LINES * 8);
    assert_int_equal(ask("SELECT count(*) FROM agentEvents"), LINES);
    storebox_start(&b, dir);
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    store_raw(b.s, run, 0, 1 << 20, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_int_equal(r->raw_len, LINES * 8);
    for (int i = 0; i < LINES; i++)
        assert_int_equal(strtol(r->raw + i * 8, NULL, 10), i * 8);
    msg_free(&r->m);
    storebox_stop(&b);
    check_sound();
}

/* --- five writers ------------------------------------------------------------------------- */

static int put_rounds(int who)
{
    char id[32], text[32];
    storebox_start(&b, dir);
    if (b.opened->err.code)
        return 95;
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof(id), "i%d", i % 10);
        uint64_t sb = storebox_sandbox(&b, id);
        snprintf(text, sizeof(text), "m %d %d", who, i);
        store_message_add(b.s, sb, text, storebox_to(&b));
        struct st_reply *r = storebox_wait(&b);
        if (r->err.code) {
            fprintf(stderr, "%s\n", r->err.text);
            return 96;
        }
        msg_free(&r->m);
    }
    storebox_stop(&b);
    return 0;
}

static void test_five_writers(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        spawn(put_rounds, i);
    assert_int_equal(run_all(), 0);
    assert_int_equal(ask("SELECT count(*) FROM sandboxes"), 10);
    assert_int_equal(ask("SELECT count(*) FROM sandboxMessages"), 500);
    assert_int_equal(ask("SELECT count(DISTINCT text) FROM sandboxMessages"), 500);
    check_sound();
}

/* --- races ----------------------------------------------------------------------------------
 */

static int claim(int who)
{
    char owner[16];
    snprintf(owner, sizeof(owner), "p%d", who);
    storebox_start(&b, dir);
    uint64_t sb = storebox_sandbox(&b, "i1");
    int won = 0;
    for (int i = 0; i < 10; i++) {
        store_message_claim(b.s, sb, owner, 60000, storebox_to(&b));
        struct st_reply *r = storebox_wait(&b);
        if (r->err.code)
            return 96;
        won |= r->got;
        msg_free(&r->m);
    }
    store_lease(b.s, "poll", owner, 60000, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    int leased = r->got;
    msg_free(&r->m);
    storebox_stop(&b);
    return won + 10 * leased;
}

static void test_one_winner(void **state)
{
    (void)state;
    storebox_start(&b, dir);
    uint64_t sb = storebox_sandbox(&b, "i1");
    store_message_add(b.s, sb, "one", storebox_to(&b));
    msg_free(&storebox_wait(&b)->m);
    storebox_stop(&b);
    for (int i = 0; i < 4; i++)
        spawn(claim, i);
    assert_int_equal(run_all(), 11); /* one claim, one lease */
}

static int only_start(int who)
{
    (void)who;
    storebox_start(&b, dir);
    int code = b.opened->err.code;
    storebox_sandbox(&b, "i1");
    storebox_stop(&b);
    return code == 0 ? 0 : code == ERR_CORRUPT ? 1 : 97;
}

/* A damaged file is put aside once, by whoever comes first. */
static void test_start_together(void **state)
{
    (void)state;
    char *path = xasprintf("%s/cc-tui.db", dir);
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 2000; i++)
        fputs("no database\n", f);
    fclose(f);
    free(path);
    for (int i = 0; i < 5; i++)
        spawn(only_start, i);
    assert_int_equal(run_all(), 1);
    assert_int_equal(ask("SELECT count(*) FROM sandboxes"), 1);
    assert_int_equal(ask("PRAGMA integrity_check"), 1);
}

/* --- killed at work -------------------------------------------------------------------------
 */

/* Tells by the pipe what was acknowledged: appends (positive), messages (negative). */
static void write_until_killed(int fd, int64_t at, int64_t messages)
{
    char text[200];
    memset(text, 'k', sizeof(text));
    storebox_start(&b, dir);
    if (b.opened->err.code)
        _exit(95);
    uint64_t sb = storebox_sandbox(&b, "i1"), run = storebox_run(&b, sb, "s");
    for (int i = 0;; i++) {
        size_t n = (size_t)(i % 150 + 20);
        text[n] = '\0'; /* seven appends, then a message that commits them all */
        bool message = i % 8 == 7;
        if (message)
            store_message_add(b.s, sb, text, storebox_to(&b));
        else
            storebox_append(&b, run, (uint64_t)at, text, storebox_to(&b));
        text[n] = 'k';
        at += message ? 0 : (int64_t)n;
        for (int k = 0; message && k < 8; k++) {
            struct st_reply *r = storebox_any(&b);
            int64_t told = r->m.type == ST_APPENDED ? (int64_t)r->stored : -++messages;
            if (r->err.code || write(fd, &told, sizeof(told)) != sizeof(told))
                _exit(96);
            msg_free(&r->m);
        }
    }
}

static void test_killed(void **state)
{
    (void)state;
    int64_t stored = 0, messages = 0, told;
    unsigned seed = (unsigned)clock_wall_ms();
    print_message("# seed %u\n", seed);
    srand(seed);
    for (int i = 0; i < KILLS; i++) {
        int fd[2];
        assert_int_equal(pipe(fd), 0);
        pid_t pid = fork();
        if (pid == 0)
            write_until_killed(fd[1], stored, messages);
        close(fd[1]);
        int after = rand() % 120, seen = 0; /* so many answers, then a random moment */
        while (seen < after && read(fd[0], &told, sizeof(told)) == sizeof(told)) {
            told > 0 ? (stored = told) : (messages = -told);
            seen++;
        }
        usleep((unsigned)rand() % 2000);
        kill(pid, SIGKILL);
        while (read(fd[0], &told, sizeof(told)) == sizeof(told))
            told > 0 ? (stored = told) : (messages = -told);
        close(fd[0]);
        int status;
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(ask("PRAGMA integrity_check"), 1);
        if (stored + messages == 0)
            continue;
        int64_t have = ask("SELECT coalesce(max(stored), 0) FROM runs");
        int64_t said = ask("SELECT count(*) FROM sandboxMessages");
        assert_true(have >= stored && said >= messages);
        assert_int_equal(ask("SELECT coalesce(sum(length(data)), 0) FROM rawChunks"), have);
        assert_true(ask("SELECT coalesce(max(offset), -1) FROM agentEvents") < have);
        stored = have;
        messages = said;
    }
    assert_true(stored > 1000 && messages > 10);
    check_sound();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(test_same_lines), T(test_five_writers),
                                       T(test_one_winner), T(test_start_together),
                                       T(test_killed)};
    return cmocka_run_group_tests_name("store_multi", tests, NULL, NULL);
}
