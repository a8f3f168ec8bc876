/* Single calls to a sandbox and its files against scripted answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/envdplay.h"
#include <cct/util/str.h>
#include <stdio.h>
#include <string.h>

struct answer {
    struct envd_result r;
    char body[512];
    int calls;
};
static struct answer got;

static void on_answer(void *ctx, const struct envd_result *r)
{
    (void)ctx;
    got.r = *r;
    snprintf(got.body, sizeof(got.body), "%.*s", (int)r->len, r->body ? r->body : "");
    got.calls++;
    bed_tick(bed);
}

static uint64_t from, max;
static const char *what;

static void start_call(void *ctx)
{
    (void)ctx;
    if (str_eq(what, "read"))
        envd_read(client, "/a b&c", from, max, on_answer, NULL);
    else if (str_eq(what, "write"))
        envd_write(client, "/x/\xc3\xa4?", "data\0end", 8, on_answer, NULL);
    else if (str_eq(what, "move"))
        envd_move(client, "/a", "/b", on_answer, NULL);
    else if (str_eq(what, "input"))
        envd_send_input(client, 7, "hi\n", 3, on_answer, NULL);
    else if (str_eq(what, "kill"))
        envd_signal(client, 7, true, on_answer, NULL);
    else if (str_eq(what, "ps"))
        envd_list(client, on_answer, NULL);
    else
        envd_health(client, on_answer, NULL);
}

static void call(const char *name, int status, const char *head, const char *body)
{
    script(status, head, body);
    got = (struct answer){0};
    seen.text[0] = '\0';
    what = name;
    bed_reset(bed);
    bed_run(bed, start_call, NULL);
    assert_true(bed_wait(bed, 1, SLOW));
    mini_sync(srv);
    assert_int_equal(got.calls, 1);
}

static void test_unary(void **state)
{
    static const struct {
        const char *name, *path, *body;
    } t[] = {
        {"move", "/filesystem.Filesystem/Move", "{\"source\":\"/a\",\"destination\":\"/b\"}"},
        {"input", "/process.Process/SendInput",
         "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"aGkK\"}}"},
        {"kill", "/process.Process/SendSignal",
         "{\"process\":{\"pid\":7},\"signal\":\"SIGNAL_SIGKILL\"}"},
        {"ps", "/process.Process/List", "{}"},
    };
    char line[128];

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        call(t[i].name, 200, NULL, "{\"a\":1}");
        assert_int_equal(got.r.err.code, 0);
        assert_string_equal(got.body, "{\"a\":1}");
        snprintf(line, sizeof(line), "POST %s\n", t[i].path);
        assert_non_null(strstr(buf_str(&heard), line));
        assert_non_null(strstr(buf_str(&heard), t[i].body));
        assert_non_null(strstr(buf_str(&heard), "Content-Type: application/json\r\n"));
    }
    call("health", 204, NULL, "");
    assert_int_equal(got.r.err.code, 0);
    call("health", 502, NULL, "{\"code\":502}");
    assert_int_equal(got.r.err.code, ERR_NETWORK);
    assert_int_equal(got.r.err.sys, 502);
    call("kill", 404, NULL, "{\"code\":\"not_found\",\"message\":\"nope\"}");
    assert_int_equal(got.r.err.code, ERR_NOTFOUND);
    call("move", 409, NULL, "{\"code\":\"already_exists\"}");
    assert_int_equal(got.r.err.code, ERR_CONFLICT);
    call("kill", 401, NULL, "{\"code\":401,\"message\":\"x\"}");
    assert_int_equal(got.r.err.code, ERR_AUTH);
}

static void test_write(void **state)
{
    (void)state;
    call("write", 200, NULL, "[{\"path\":\"/x\"}]");
    assert_int_equal(got.r.err.code, 0);
    assert_non_null(strstr(buf_str(&heard), "POST /files?path=%2Fx%2F%C3%A4%3F\n"));
    assert_non_null(strstr(buf_str(&heard), "Content-Type: application/octet-stream\r\n"));
    assert_memory_equal(heard.p + heard.len - 8, "data\0end", 8);
    call("write", 507, NULL, "{\"code\":507,\"message\":\"full\"}");
    assert_int_equal(got.r.err.code, ERR_FULL);
}

static void test_read(void **state)
{
    (void)state;
    from = 0, max = 0;
    call("read", 200, NULL, "0123456789");
    assert_string_equal(got.body, "0123456789");
    assert_int_equal(got.r.total, 10);
    assert_non_null(strstr(buf_str(&heard), "GET /files?path=%2Fa%20b%26c\n"));
    assert_null(strstr(buf_str(&heard), "Range"));
    from = 4, max = 3;
    call("read", 206, "Content-Range: bytes 4-6/10\r\n", "456");
    assert_string_equal(got.body, "456");
    assert_int_equal(got.r.total, 10);
    assert_int_equal(got.r.err.code, 0);
    assert_non_null(strstr(buf_str(&heard), "Range: bytes=4-6\r\n"));
    call("read", 200, NULL, "0123456789"); /* range not known there */
    assert_string_equal(got.body, "456");
    assert_int_equal(got.r.err.code, 0);
    call("read", 206, "Content-Range: bytes 0-2/10\r\n", "012"); /* another part */
    assert_int_equal(got.r.err.code, ERR_PROTO);
    call("read", 206, NULL, "012");
    assert_int_equal(got.r.err.code, ERR_PROTO);
    from = 10, max = 0;
    call("read", 416, "Content-Range: bytes */10\r\n", "");
    assert_int_equal(got.r.err.code, 0);
    assert_int_equal(got.r.len, 0);
    assert_int_equal(got.r.total, 10);
    assert_non_null(strstr(buf_str(&heard), "Range: bytes=10-\r\n"));
    call("read", 404, NULL, "{\"code\":404,\"message\":\"no file\"}");
    assert_int_equal(got.r.err.code, ERR_NOTFOUND);
    from = 2; /* to the end, where ranges are not known */
    call("read", 200, NULL, "0123456789");
    assert_string_equal(got.body, "23456789");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_unary),
        CASE(test_write),
        CASE(test_read),
    };
    int rc;

    srv = mini_start(handler, NULL);
    bed = bed_new(NULL);
    rc = cmocka_run_group_tests_name("envd: calls", tests, NULL, NULL);
    bed_free(bed);
    mini_stop(srv);
    buf_release(&heard);
    return rc;
}
