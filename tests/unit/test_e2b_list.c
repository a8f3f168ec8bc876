/* The list of sandboxes against scripted answers: its pages, the older one, odd rows. */
#include "../lib/e2bplay.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 237 sandboxes in three pages and an empty last one without a cursor. */
static void pages(struct mini_conn *c, const struct mini_req *r)
{
    static const char *const tokens[] = {"", "a+b/c=", "2", "3"};
    static const char *const names[] = {"x-next-token", "X-Next-Token", "X-NEXT-TOKEN"};
    const char *t = strstr(r->path, "nextToken=");
    int page = !t ? 0 : str_starts(t, "nextToken=a%2Bb%2Fc%3D") ? 1 : str_starts(t, "nextToken=2") ? 2
                                                                                                  : 3;
    struct buf body = BUF_INIT;
    char head[128] = "X-Total-Running: 200\r\n";

    buf_addc(&body, '[');
    for (int i = page * 100; i < (page == 3 ? 300 : page == 2 ? 237 : page * 100 + 100); i++)
        buf_addf(&body, "%s{\"sandboxID\":\"i%d\",\"state\":\"%s\"}", i % 100 ? "," : "", i,
                 i % 5 ? "running" : "paused");
    buf_truncate(&body, page == 3 ? 1 : body.len);
    buf_addc(&body, ']');
    if (page < 3)
        snprintf(head + strlen(head), sizeof(head) - strlen(head), "%s: %s\r\n", names[page],
                 tokens[page + 1]);
    mini_reply(c, 200, head, buf_str(&body));
    buf_release(&body);
}

static void test_pages(void **state)
{
    struct call c = {.what = LIST};

    (void)state;
    special = pages;
    buf_clear(&heard);
    run(&c);
    assert_int_equal(got.r.err.code, 0);
    assert_int_equal(got.n, 237);
    assert_int_equal(got.r.total_running, 200);
    assert_non_null(strstr(buf_str(&heard), "/v2/sandboxes?state=running,paused&limit=100"));
}

static void test_endless_pages(void **state)
{
    struct call c = {.what = LIST};

    (void)state;
    PLAY({200, "X-Next-Token: same\r\n", "[{\"sandboxID\":\"i1\"}]", false});
    run(&c);
    assert_int_equal(got.r.err.code, ERR_PROTO);
    assert_int_equal(got.n, 0);
    assert_true(script_at < 5);
}

/* Always another page, each of 16 MiB. */
static void large_pages(struct mini_conn *c, const struct mini_req *r)
{
    static int n;
    struct buf body = BUF_INIT;
    char *pad = xmalloc(16 << 20), *head = xasprintf("X-Next-Token: t%d\r\n", ++n);

    (void)r;
    memset(pad, ' ', 16 << 20);
    buf_addf(&body, "[{\"sandboxID\":\"i%d\"}", n);
    buf_add(&body, pad, 16 << 20);
    buf_addc(&body, ']');
    script_at = n;
    mini_reply(c, 200, head, buf_str(&body));
    buf_release(&body);
    free(head);
    free(pad);
}

/* Nor may they hold more than memory can. */
static void test_endless_bytes(void **state)
{
    struct call c = {.what = LIST};

    (void)state;
    special = large_pages;
    run(&c);
    special = NULL;
    assert_int_equal(got.r.err.code, ERR_PROTO);
    assert_int_equal(got.n, 0);
    assert_true(script_at < 6);
}

static void test_repeated_rows(void **state)
{
    struct call c = {.what = LIST};

    (void)state;
    PLAY({200, "X-Next-Token: t\r\n", "[{\"sandboxID\":\"i1\"},{\"sandboxID\":\"i2\"}]", false},
         {200, "", "[{\"sandboxID\":\"i2\"},{\"sandboxID\":\"i3\"}]", false});
    run(&c);
    assert_string_equal(got.ids, "i1 i2 i3 ");
}

static void test_failing_page(void **state)
{
    struct call c = {.what = LIST};

    (void)state;
    PLAY({200, "X-Next-Token: t\r\n", "[{\"sandboxID\":\"i1\"}]", false},
         {500, "", "{\"code\":500,\"message\":\"boom\"}", false});
    run(&c);
    assert_int_equal(got.r.err.code, ERR_SERVER);
    assert_int_equal(got.n, 0); /* half a list is none */
    play((const struct script[]){{200, "X-Next-Token: t\r\n", "[{\"sandboxID\":\"i1\"}]", false},
                                 {404, "", "{\"code\":404,\"message\":\"no page\"}", false},
                                 {200, "", "[]", false}}, 3);
    run(&c);
    assert_int_equal(got.r.err.code, ERR_PROTO);
    assert_int_equal(script_at, 2); /* the old route has no such page either */
}

static void test_old_list(void **state)
{
    struct call c = {.what = LIST};

    (void)state;
    PLAY({404, "", "{\"code\":404,\"message\":\"no route\"}", false},
         {200, "", "[{\"sandboxID\":\"i1\"}]", false}, {200, "", "[]", false});
    run(&c);
    assert_int_equal(got.r.err.code, 0);
    assert_non_null(strstr(got.r.err.text, "running"));
    assert_int_equal(got.n, 1);
    assert_non_null(strstr(got.first, "|running|"));
    run(&c); /* does not ask for v2 again so soon */
    assert_int_equal(script_at, 3);
    assert_int_equal(got.n, 0);
}

static void test_no_list(void **state)
{
    struct call c = {.what = LIST};

    (void)state;
    PLAY({404, "", "<html>not here</html>", false});
    run(&c);
    assert_int_equal(got.r.err.code, ERR_PROTO);
    assert_non_null(strstr(got.r.err.text, "404"));
    assert_non_null(strstr(got.r.err.text, "E2B_API_URL"));
    play((const struct script[]){{200, "", "{\"sandboxes\":[]}", false}}, 1);
    run(&c);
    assert_int_equal(got.r.err.code, ERR_PROTO);
}

/* A page of a megabyte, full of sequences, in the place of an error: one short line. */
static void test_a_page_for_an_error(void **state)
{
    static const int statuses[] = {400, 401, 403, 404, 418};
    struct call c = {.what = LIST};
    struct buf page = BUF_INIT;

    (void)state;
    buf_adds(&page, "<html>");
    while (page.len < 1 << 20)
        buf_adds(&page, "\033[2J\033]0;t\a\r\n<p>\xc2\x9b?5h words</p>");
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct script s = {statuses[i], "", buf_str(&page), false};
        char status[8];

        play(&s, 1);
        run(&c);
        snprintf(status, sizeof(status), "%d", statuses[i]);
        assert_int_not_equal(got.r.err.code, 0);
        assert_non_null(strstr(got.r.err.text, status));
        assert_true(strlen(got.r.err.text) < 500);
        for (const unsigned char *p = (const unsigned char *)got.r.err.text; *p; p++)
            assert_true(*p >= ' ' && *p != 0x7f && !(p[0] == 0xc2 && p[1] < 0xa0));
    }
    buf_release(&page);
}

static void test_odd_rows(void **state)
{
    static const char *const states[] = {"\"pausing\"", "\"snapshotting\"", "\"\"", "null", "7",
                                         "{\"a\":1}"};
    static const char *const shown[] = {"pausing", "snapshotting", "", "", "7", "{\"a\":1}"};
    struct call c = {.what = LIST};
    char body[1024], want[64];

    (void)state;
    for (int i = 0; i < 6; i++) {
        snprintf(body, sizeof(body),
                 "[{\"sandboxID\":\"i1\",\"state\":%s,\"metadata\":null,\"alias\":null,"
                 "\"cpuCount\":null,\"memoryMB\":\"512\",\"startedAt\":\"0001-01-01T00:00:00Z\","
                 "\"endAt\":\"junk\"},null,7,{},{\"sandboxID\":9},{\"sandboxID\":\"\"},"
                 "{\"sandboxID\":\"i2\",\"alias\":\"\\ud83d\"}]", states[i]);
        struct script s = {200, "", body, false};
        play(&s, 1);
        run(&c);
        assert_int_equal(got.r.err.code, 0);
        assert_string_equal(got.ids, "i1 i2 ");
        snprintf(want, sizeof(want), "-|-|%s|0|512|0|0|-", shown[i]);
        assert_string_equal(got.first, want);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_pages),
        CASE(test_endless_pages),
        CASE(test_endless_bytes),
        CASE(test_repeated_rows),
        CASE(test_failing_page),
        CASE(test_old_list),
        CASE(test_no_list),
        CASE(test_odd_rows),
        CASE(test_a_page_for_an_error),
    };
    int rc;

    srv = mini_start(handler, NULL);
    bed = bed_new(NULL);
    rc = cmocka_run_group_tests_name("e2b: the list", tests, NULL, NULL);
    bed_free(bed);
    mini_stop(srv);
    buf_release(&heard);
    return rc;
}
