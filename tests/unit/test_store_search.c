/* store: what was said is found, newest first, by any words that people type; the index
 * follows what is written, survives a restart, takes in older databases, and forgets. */
#include "../lib/storebox.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

static struct storebox b;
static char *dir;

static int set_up(void **state)
{
    (void)state;
    storebox_fresh(&b, &dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    storebox_end(&b, dir);
    return 0;
}

/* One event at `offset` of the run, without bytes. */
static void put(uint64_t run, uint64_t offset, const char *json)
{
    struct st_append a = {.run = run, .n_events = 1};

    a.events = xcalloc(1, sizeof(*a.events));
    a.events[0] = (struct st_event){offset, 0, xstrdup(json), strlen(json), NULL, false, 0};
    store_append(b.s, &a, (struct st_to){NULL, 0});
}

static void say(uint64_t run, uint64_t offset, const char *kind, const char *more,
                const char *text)
{
    char *json = xasprintf("{\"kind\":\"%s\",%s\"text\":\"%s\"}", kind, more, text);

    put(run, offset, json);
    free(json);
}

static struct st_reply *find_in(const char *words, uint64_t sandbox, size_t limit,
                                uint64_t before)
{
    struct st_reply *r;

    store_search(b.s, words, sandbox, limit, before, true, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got);
    return r;
}

static void expect(const char *words, size_t n)
{
    struct st_reply *r = find_in(words, 0, 50, 0);

    if (r->n_hits != n)
        fail_msg("'%s' finds %zu, not %zu", words, r->n_hits, n);
    msg_free(&r->m);
}

static uint64_t some_talk(void)
{
    uint64_t box = storebox_sandbox(&b, "i1"), run = storebox_run(&b, box, "s1");

    say(run, 0, "user_echo", "", "add a migration for users.last_seen");
    say(run, 10, "text", "\"final\":false,", "half a sente");
    say(run, 20, "text", "\"final\":true,", "I will add db/migrate/0042.sql, caf\\u00e9 style");
    put(run, 30, "{\"kind\":\"tool\",\"title\":\"npm test -- user\",\"state\":\"running\"}");
    put(run, 40, "{\"kind\":\"tool\",\"title\":\"npm test -- user\",\"state\":\"ok\"}");
    put(run, 50, "{\"kind\":\"usage\",\"input\":5}");
    return run;
}

static void test_words(void **state)
{
    (void)state;
    some_talk();
    expect("migration", 1);
    expect("MIGRATION ", 1);
    expect("migrat", 2);       /* the last word may be a begin */
    expect("migrat users", 0); /* only the last, or with a star */
    expect("migrat* users ", 1);
    expect("users migration ", 1);
    expect("add", 2);
    expect("add -migration ", 1);
    expect("\"add a\"", 1);
    expect("\"a add\"", 0);
    expect("cafe", 1); /* without its accent */
    expect("last_seen", 1);
    expect("npm", 1);   /* once, not at its begin and at its end */
    expect("sente", 0); /* a piece of a text is not the text */
    expect("nowhere", 0);
    expect("0042.sql", 1);
}

/* What comes many at a time is found as what comes alone, and once if it comes again. */
static void test_many_at_once(void **state)
{
    enum { SAID = 70 };
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s1");

    (void)state;
    for (int again = 0; again < 2; again++) {
        struct st_append a = {.run = run, .n_events = SAID};

        a.events = xcalloc(SAID, sizeof(*a.events));
        for (int i = 0; i < SAID; i++) {
            struct st_event *e = &a.events[i];

            e->offset = (uint64_t)i * 10;
            e->json = xasprintf("{\"kind\":\"text\",\"final\":%s,\"text\":\"word%03d\"}",
                                i % 10 ? "true" : "false", i);
            e->len = strlen(e->json);
        }
        store_append(b.s, &a, (struct st_to){NULL, 0});
    }
    expect("word001 ", 1);
    expect("word031 ", 1);
    expect("word033 ", 1);
    expect("word069 ", 1);
    expect("word030 ", 0);
    struct st_reply *r = find_in("word", 0, 100, 0);
    assert_int_equal(r->n_hits, SAID - SAID / 10);
    msg_free(&r->m);
}

static void test_newest_first_in_pages(void **state)
{
    (void)state;
    uint64_t box = storebox_sandbox(&b, "i1"), run = storebox_run(&b, box, "s1");
    uint64_t before = 0;
    int next = 24;

    for (int i = 0; i < 25; i++) {
        char text[32];
        snprintf(text, sizeof(text), "number %d same", i);
        say(run, (uint64_t)i * 10, "user_echo", "", text);
    }
    do {
        struct st_reply *r = find_in("same", 0, 10, before);
        for (size_t i = 0; i < r->n_hits; i++, next--) {
            char text[48];
            snprintf(text, sizeof(text), "number %d \x02same\x03", next);
            assert_string_equal(r->hits[i].text, text);
            assert_string_equal(r->hits[i].who, "you");
            assert_int_equal(r->hits[i].offset, next * 10);
            assert_int_equal(r->hits[i].run, run);
            assert_int_equal(r->hits[i].sandbox, box);
            assert_true(r->hits[i].time_ms > 0);
        }
        assert_int_equal(r->more_before, next >= 0);
        before = r->n_hits ? r->hits[r->n_hits - 1].id : 0;
        msg_free(&r->m);
    } while (next >= 0 && before);
    assert_int_equal(next, -1);
}

static void test_one_sandbox(void **state)
{
    (void)state;
    uint64_t one = storebox_sandbox(&b, "i1"), two = storebox_sandbox(&b, "i2");
    struct st_reply *r;

    say(storebox_run(&b, one, "s1"), 0, "user_echo", "", "apples");
    say(storebox_run(&b, two, "s2"), 0, "user_echo", "", "apples and s1");
    r = find_in("apples", two, 50, 0);
    assert_int_equal(r->n_hits, 1);
    assert_int_equal(r->hits[0].sandbox, two);
    assert_string_equal(r->hits[0].sandbox_id, "i2");
    msg_free(&r->m);
    expect("in:i2 apples", 1);
    expect("apples in:i1", 1);
    expect("apples in:nowhere ", 0);
    expect("in:i2", 0); /* no word to look for */
    expect("apples", 2);
    expect("s1", 1); /* the word that stands for a sandbox is none of its text */
}

/* Whatever is typed is a question, not a mistake. */
static void test_any_text_is_a_question(void **state)
{
    static const char *const odd[] = {"",
                                      " ",
                                      "\"",
                                      "\"\"",
                                      "\"\"\"",
                                      "-",
                                      "--",
                                      "- a",
                                      "*",
                                      "a*",
                                      "^a",
                                      "(",
                                      ")",
                                      "a OR",
                                      "AND",
                                      "NOT",
                                      "NEAR(",
                                      "text:",
                                      "text:a",
                                      "{text}:a",
                                      "a AND b",
                                      "a + b",
                                      "'; DROP TABLE x",
                                      "%",
                                      "\xff\xfe",
                                      "caf\xc3",
                                      "\xf0\x9f\x98\x80",
                                      "\x01\x02",
                                      "-\"x",
                                      "-add",
                                      "..."};
    (void)state;
    some_talk();
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        msg_free(&find_in(odd[i], 0, 50, 0)->m);
    char *lots = xmalloc(20001);
    memset(lots, 'a', 20000);
    for (int i = 1; i < 20000; i += 2)
        lots[i] = ' ';
    lots[20000] = 0;
    msg_free(&find_in(lots, 0, 50, 0)->m);
    free(lots);
}

static void test_clean(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s1");
    struct st_reply *r;

    say(run, 0, "text", "\"final\":true,",
        "evil \\u001b]0;title\\u0007 word \\u0002x\\u0003 \\u202e end");
    r = find_in("word", 0, 5, 0);
    assert_int_equal(r->n_hits, 1);
    assert_null(strchr(r->hits[0].text, '\x1b'));
    assert_null(strstr(r->hits[0].text, "\xe2\x80\xae"));
    assert_ptr_equal(strchr(r->hits[0].text, '\x02'), strrchr(r->hits[0].text, '\x02'));
    msg_free(&r->m);
}

static void test_restart(void **state)
{
    (void)state;
    some_talk(); /* not indexed yet when it stops */
    storebox_again(&b, dir);
    expect("migration", 1);
    storebox_again(&b, dir);
    expect("migration", 1);
}

static void test_same_event_twice(void **state)
{
    (void)state;
    uint64_t run = some_talk();

    expect("migration", 1);
    say(run, 0, "user_echo", "", "add a migration for users.last_seen");
    expect("migration", 1);
}

static void run_sql(const char *sql)
{
    char *path = xasprintf("%s/cc-tui.db", dir), *why = NULL;
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
    free(path);
}

static int64_t number(const char *sql)
{
    char *path = xasprintf("%s/cc-tui.db", dir);
    sqlite3 *db;
    sqlite3_stmt *q;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    free(path);
    return n;
}

/* A database from before there was an index. */
static void test_older_database(void **state)
{
    (void)state;
    uint64_t run = some_talk();
    for (uint64_t i = 1; i <= 700; i++)
        say(run, 1000 + i, "user_echo", "", "padding");
    storebox_stop(&b);
    run_sql("DELETE FROM searchQueue; DELETE FROM searchDocs;"
            "INSERT INTO searchQueue(run, offset, idx) SELECT id, 0, -1 FROM runs");
    storebox_start(&b, dir);
    expect("migration", 1);
    expect("add", 2);
    store_search(b.s, "padding", 0, 1000, 0, true, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->n_hits, 700);
    msg_free(&r->m);
}

/* What is removed is neither found nor kept. */
static void test_forgotten(void **state)
{
    (void)state;
    some_talk();
    expect("migration", 1);
    struct st_reply *r = find_in("migration", 0, 1, 0);
    uint64_t box = r->hits[0].sandbox;
    msg_free(&r->m);
    store_del_sandbox(b.s, box, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    store_prune(b.s, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    expect("migration", 0);
    storebox_stop(&b);
    assert_int_equal(number("SELECT count(*) FROM searchDocs"), 0);
    assert_int_equal(number("SELECT count(*) FROM agentEvents"), 0);
    assert_int_equal(number("SELECT count(*) FROM rawChunks"), 0);
    run_sql("INSERT INTO searchText(searchText) VALUES('integrity-check')");
    storebox_start(&b, dir);
}

/* The index is whole when nobody asked for a while, too. */
static void test_in_the_background(void **state)
{
    (void)state;
    some_talk();
    for (int i = 0; i < 3000; i++) {
        store_sandboxes(b.s, storebox_to(&b)); /* asking takes the db thread's time, not more */
        msg_free(&storebox_ok(&b)->m);
        if (i % 100 == 99 && number("SELECT count(*) FROM searchQueue") == 0)
            break;
    }
    store_search(b.s, "migration", 0, 5, 0, false, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->n_hits, 1);
    msg_free(&r->m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_newest_first_in_pages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_sandbox, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_any_text_is_a_question, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_clean, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_restart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_same_event_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_older_database, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_in_the_background, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("store_search", tests, NULL, NULL);
}
