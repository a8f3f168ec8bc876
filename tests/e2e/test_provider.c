/* The local provider as a real program, spoken to with plain bytes: who may talk to it, the life
 * of a sandbox. */
#include "../lib/prov.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* --- who may talk -------------------------------------------------------------- */

struct raw_case {
    const char *text; /* %d: the port, %s: the key */
    int status;
};

static const struct raw_case raw_cases[] = {
    {"GET /v2/sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n\r\n", 200},
    {"GET /v2/sandboxes HTTP/1.0\r\nHost: localhost:%d\r\nX-API-Key: %s\r\n\r\n", 200},
    {"GET /health HTTP/1.0\r\nHost: localhost:%d\r\n\r\n", 204},
    {"GET /v2/sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n", 401},
    {"GET /v2/sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: x%s\r\n\r\n", 401},
    {"GET /v2/sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: \r\n\r\n", 401},
    {"GET /none HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n", 401},
    {"GET /none HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n\r\n", 404},
    {"GET / HTTP/1.1\r\nHost: evil.example:%d\r\nX-API-Key: %s\r\n\r\n", 403},
    {"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\nOrigin: null\r\n\r\n", 403},
    {"OPTIONS / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n\r\n", 405},
    {"GET / HTTP/1.1\nHost: 127.0.0.1:%d\nX-API-Key: %s\n\n", 400},
    {"GET / HTTP/1.1\r\nX-Not-Host: %d\r\nX-API-Key: %s\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost : 127.0.0.1:%d\r\nX-API-Key: %s\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\nContent-Length: 1\r\n"
     "Content-Length: 1\r\n\r\nx",
     400},
    {"POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\nContent-Length: 3\r\n"
     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     400},
    {"POST /sandboxes HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
     "Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n",
     400},
    {"POST /sandboxes HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
     "Content-Length: 5000000\r\n\r\n",
     413},
    {"POST /sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
     "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
     415},
    {"POST /sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
     "Content-Type: application/json\r\nContent-Length: 1\r\n\r\n{",
     400},
};

static void test_who_may_talk(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(raw_cases) / sizeof(raw_cases[0]); i++) {
        char text[1024];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof(text), raw_cases[i].text, prov.control, prov.key);
#pragma GCC diagnostic pop
        struct plainhttp a = plainhttp_exchange(prov.control, text, strlen(text));
        if (a.status != raw_cases[i].status)
            fail_msg("case %zu: %d, not %d: %s", i, a.status, raw_cases[i].status,
                     buf_str(&a.raw));
        assert_null(strcasestr(buf_str(&a.raw), "access-control"));
        buf_release(&a.raw);
    }
}

/* Requests in one packet are answered in order; a chunked body is taken. */
static void test_pipelined(void **state)
{
    (void)state;
    char *text =
        xasprintf("GET /templates/aliases/demo HTTP/1.1\r\nHost: localhost:%d\r\n"
                  "X-API-Key: %s\r\n\r\n"
                  "POST /sandboxes HTTP/1.1\r\nHost: localhost:%d\r\nX-API-Key: %s\r\n"
                  "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "10\r\n{\"templateID\":\"n\r\n5\r\none\"}\r\n0\r\n\r\n"
                  "GET /health HTTP/1.1\r\nHost: localhost:%d\r\n"
                  "Connection: close\r\n\r\n",
                  prov.control, prov.key, prov.control, prov.key, prov.control);
    struct plainhttp a = plainhttp_exchange(prov.control, text, strlen(text));
    const char *raw = buf_str(&a.raw);
    const char *first = strstr(raw, "HTTP/1.1 200 ");
    const char *second = strstr(raw, "HTTP/1.1 404 ");
    const char *third = strstr(raw, "HTTP/1.1 204 ");
    assert_non_null(first);
    assert_true(second > first);
    assert_true(third > second);
    assert_non_null(strstr(raw, "template 'none' not found"));
    buf_release(&a.raw);
    free(text);
}

/* --- life ------------------------------------------------------------------------ */

/* The provider was started with SIGINT ignored; a sandbox must not inherit it. */
static bool ignores_sigint(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    char *text = prov_read_text(path);
    assert_non_null(text);
    const char *p = strstr(text, "SigIgn:");
    assert_non_null(p);
    bool ignored = strtoull(p + 7, NULL, 16) & 1ull << (SIGINT - 1);
    free(text);
    return ignored;
}

static void test_life(void **state)
{
    (void)state;
    char *id = prov_create("{\"templateID\":\"demo\",\"timeout\":60,\"metadata\":{\"t\":\"life\"},"
                      "\"envVars\":{\"SECRET\":\"canary-value\"}}");
    pid_t pid = prov_init_pid(id);
    assert_false(ignores_sigint(pid));
    struct cJSON *j = prov_get_json("GET", prov_box_path(id, ""), NULL, 200);
    assert_string_equal(json_str(j, "state", ""), "running");
    assert_string_equal(json_str(j, "alias", ""), "demo");
    assert_int_equal(json_bool(j, "isolated", !prov.isolated), prov.isolated);
    int64_t start, end;
    assert_int_equal(clock_parse_rfc3339(json_str(j, "startedAt", ""), &start), 0);
    assert_int_equal(clock_parse_rfc3339(json_str(j, "endAt", ""), &end), 0);
    assert_int_equal(end - start, 60000);
    char *token =
        xasprintf("X-Access-Token: %s\r\nX-CC-Control: %s\r\n",
                  json_str(j, "envdAccessToken", ""), json_str(j, "envdAccessToken", ""));
    json_free(j);
    assert_int_equal(prov_through_status(id, "49983", "/health", ""), 204);
    assert_int_equal(prov_through_status(id, "49983", "/envs", ""), 401);
    struct plainhttp envs = prov_through(id, "49983", "/envs", token);
    assert_int_equal(envs.status, 200);
    assert_non_null(strstr(buf_str(&envs.raw), "canary-value"));
    assert_null(strstr(buf_str(&envs.raw), prov.key));
    assert_null(strstr(buf_str(&envs.raw), "host-canary"));
    buf_release(&envs.raw);
    assert_int_equal(prov_through_status(id, "49983", "/cc/logs", token), 404);
    assert_int_equal(prov_through_status(id, "8080", "/", token), 502);
    assert_int_equal(prov_through_status("izzzzzzzzzzzzzzzzzzzz", "49983", "/health", ""), 502);
    assert_int_equal(prov_through_status("../x", "49983", "/health", ""), 400);
    assert_int_equal(prov_through_status(id, "49983", "/health", "Origin: null\r\n"), 403);
    j = prov_get_json("GET", prov_box_path(id, "/metrics"), NULL, 200);
    assert_true(json_i64(json_first(j), "timestampUnix", 0) > 0);
    json_free(j);
    assert_int_equal(prov_status_of("DELETE", prov_box_path(id, ""), NULL), 204);
    assert_true(prov_is_dead(pid));
    assert_int_equal(prov_status_of("DELETE", prov_box_path(id, ""), NULL), 404);
    assert_int_equal(prov_through_status(id, "49983", "/health", ""), 502);
    assert_true(prov_await(prov_has_no_folder, id));
    free(token);
    free(id);
}

static void test_refused_creates(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"templateID\":7}",
        "{\"templateID\":\"base\",\"timeout\":0}",
        "{\"templateID\":\"base\",\"timeout\":-5}",
        "{\"templateID\":\"base\",\"timeout\":\"1\"}",
        "{\"templateID\":\"base\",\"timeout\":999999}",
        "{\"templateID\":\"base\",\"metadata\":{\"a\":1}}",
        "{\"templateID\":\"base\",\"envVars\":[]}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(prov_status_of("POST", "/v2/sandboxes", bad[i]), 400);
    assert_int_equal(prov_status_of("POST", "/v2/sandboxes", "{\"templateID\":\"none\"}"), 404);
    assert_int_equal(prov_status_of("POST", "/volumes", "{\"name\":\"x\"}"), 501);
}

static void test_times(void **state)
{
    (void)state;
    char *id = prov_create("{\"templateID\":\"base\",\"timeout\":60}");
    pid_t pid = prov_init_pid(id);
    assert_int_equal(prov_status_of("POST", prov_box_path(id, "/resume"), "{}"), 409);
    assert_int_equal(prov_status_of("POST", prov_box_path(id, "/connect"), "{}"), 400);
    assert_int_equal(prov_status_of("POST", prov_box_path(id, "/connect"), "{\"timeout\":1}"), 200);
    assert_int_equal(prov_status_of("POST", prov_box_path(id, "/refreshes"), "{\"duration\":100}"), 204);
    struct cJSON *j = prov_get_json("GET", prov_box_path(id, ""), NULL, 200);
    int64_t end = 0;
    clock_parse_rfc3339(json_str(j, "endAt", ""), &end);
    assert_true(end - clock_wall_ms() > 90000); /* extended, and not shortened */
    json_free(j);
    assert_int_equal(prov_status_of("POST", prov_box_path(id, "/timeout"), "{\"timeout\":1}"), 204);
    assert_true(prov_await(prov_is_gone, id));
    assert_true(prov_await(prov_has_no_folder, id));
    assert_true(prov_is_dead(pid));
    free(id);
}

static void test_pause(void **state)
{
    (void)state;
    char *id = prov_create("{\"templateID\":\"base\",\"timeout\":1,\"autoPause\":true}");
    assert_true(prov_await(prov_is_paused, id));
    assert_int_equal(prov_status_of("POST", prov_box_path(id, "/pause"), NULL), 409);
    assert_int_equal(prov_status_of("POST", prov_box_path(id, "/timeout"), "{\"timeout\":5}"), 409);
    assert_int_equal(prov_through_status(id, "49983", "/health", ""), 502);
    char path[96];
    snprintf(path, sizeof(path), "/v2/sandboxes/%s/connect", id);
    assert_int_equal(prov_status_of("POST", path, NULL), 201);
    assert_int_equal(prov_status_of("POST", path, NULL), 200);
    assert_int_equal(prov_through_status(id, "49983", "/health", ""), 204);
    assert_int_equal(prov_status_of("POST", prov_box_path(id, "/pause"), "{}"), 204);
    assert_int_equal(prov_status_of("DELETE", prov_box_path(id, ""), NULL), 204);
    free(id);
}

static void test_auto_resume(void **state)
{
    (void)state;
    char *id = prov_create("{\"templateID\":\"base\",\"timeout\":60,\"autoPause\":true,"
                      "\"autoResume\":{\"enabled\":true}}");
    assert_int_equal(prov_status_of("POST", prov_box_path(id, "/pause"), NULL), 204);
    assert_int_equal(prov_through_status(id, "49983", "/health", ""), 204);
    assert_false(prov_is_paused(id));
    assert_int_equal(prov_status_of("DELETE", prov_box_path(id, ""), NULL), 204);
    free(id);
}

static void test_list(void **state)
{
    (void)state;
    char *ids[3];
    for (int i = 0; i < 3; i++) {
        char json[160];
        snprintf(json, sizeof(json), "{\"templateID\":\"base\",\"metadata\":{\"n\":\"%d\"}}",
                 i);
        ids[i] = prov_create(json);
    }
    /* the limit of this provider is three */
    struct plainhttp over = prov_call("POST", "/v2/sandboxes", "{\"templateID\":\"base\"}");
    assert_int_equal(over.status, 429);
    assert_null(strcasestr(buf_str(&over.raw), "retry-after"));
    buf_release(&over.raw);
    assert_int_equal(prov_status_of("POST", prov_box_path(ids[0], "/pause"), NULL), 204);
    struct plainhttp page = prov_call("GET", "/v2/sandboxes?limit=2&order=asc", NULL);
    assert_non_null(strstr(buf_str(&page.raw), "X-Total-Running: 2\r\n"));
    char *token = strstr(buf_str(&page.raw), "X-Next-Token: ");
    assert_non_null(token);
    char path[160];
    snprintf(path, sizeof(path), "/v2/sandboxes?limit=2&order=asc&nextToken=%.*s",
             (int)strcspn(token + 14, "\r"), token + 14);
    struct plainhttp last = prov_call("GET", path, NULL);
    assert_non_null(strstr(last.body, ids[2]));
    assert_null(strstr(last.body, ids[1]));
    assert_null(strstr(buf_str(&last.raw), "X-Next-Token"));
    buf_release(&page.raw);
    buf_release(&last.raw);
    struct cJSON *j = prov_get_json("GET", "/sandboxes", NULL, 200);
    assert_null(strstr(json_str(json_first(j), "sandboxID", ""), ids[0]));
    json_free(j);
    j = prov_get_json("GET", "/v2/sandboxes?metadata=n%3D1", NULL, 200);
    assert_string_equal(json_str(json_first(j), "sandboxID", ""), ids[1]);
    assert_null(json_next(json_first(j)));
    json_free(j);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(prov_status_of("DELETE", prov_box_path(ids[i], ""), NULL), 204);
        free(ids[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_may_talk), cmocka_unit_test(test_pipelined),
        cmocka_unit_test(test_life), cmocka_unit_test(test_refused_creates),
        cmocka_unit_test(test_times), cmocka_unit_test(test_pause),
        cmocka_unit_test(test_auto_resume), cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, prov_setup, prov_teardown);
}
