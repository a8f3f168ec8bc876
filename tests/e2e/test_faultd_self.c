/* The fault server itself, asked by libcurl: that it bears many at once, that the control plane
 * answers, also falsely and late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/curlask.h"
#include "../lib/faultproc.h"
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "X-API-Key: e2b_k"

static struct faultd *server;

static char *address(const struct faultd *f, const char *path)
{
    return xasprintf("%s%s", faultd_url(f), path);
}

/* A GET with the key; caller releases. */
static struct reply get(const struct faultd *f, const char *path, bool h1)
{
    char *url = address(f, path);
    struct ask q = {.url = url, .head = {KEY}, .ca = faultd_ca(server), .h1 = h1};
    struct reply r = ask(NULL, &q);

    free(url);
    return r;
}

static struct cJSON *call(const char *method, const char *path, const char *body, long status)
{
    char *url = address(server, path);
    struct ask q = {
        .url = url, .method = method, .body = body, .head = {KEY}, .ca = faultd_ca(server)};
    struct reply r = ask(NULL, &q);
    struct cJSON *j = json_parse(buf_str(&r.body), r.body.len, NULL);

    if (r.status != status)
        print_error("%s %s: %ld %s\n", method, path, r.status, buf_str(&r.body));
    assert_int_equal(r.rc, CURLE_OK);
    assert_int_equal(r.status, status);
    reply_release(&r);
    free(url);
    return j;
}

static void done(const char *method, const char *path, const char *body, long status)
{
    json_free(call(method, path, body, status));
}

static int64_t counted(const char *name)
{
    char *text = faultd_http(server, "GET", "/_faultd/log?brief", NULL);
    struct cJSON *j = json_parse(text, strlen(text), NULL);
    int64_t n = json_i64(j, name, -1);

    json_free(j);
    free(text);
    return n;
}

static int64_t rows(const struct cJSON *list)
{
    int64_t n = 0;

    for (const struct cJSON *c = json_first(list); c; c = json_next(c))
        n++;
    return n;
}

static void test_thousand_at_once(void **state)
{
    char *url = address(server, "/v2/sandboxes?limit=1");
    struct ask q = {.url = url, .head = {KEY}, .ca = faultd_ca(server), .give_up_ms = 60000};

    (void)state;
    assert_true(faultd_config(server, "{\"reset\":true,\"sandboxes\":3,\"delay\":[100,200]}"));
    int64_t before = counted("conns");
    assert_int_equal(ask_many(&q, 1000, 200), 1000);
    assert_true(counted("most_open") > 100);
    assert_in_range(counted("conns") - before, 2, 3); /* one and those that asked here */
    assert_true(faultd_config(server, "{\"delay\":[0,0]}"));
    free(url);
}

static bool becomes(const char *name, int64_t value)
{
    for (int64_t end = clock_mono_ms() + 20000; clock_mono_ms() < end;)
        if (counted(name) == value)
            return true;
    return false;
}

/* Calls that happen when nobody waits any more, kills that do not hold, others' creates. */
static void test_false_and_late(void **state)
{
    char id[64], *path;
    struct cJSON *j;

    (void)state;
    assert_true(faultd_config(server, "{\"reset\":true,\"sandboxes\":1,\"rules\":["
                                      "{\"method\":\"POST\",\"late_ms\":500},"
                                      "{\"method\":\"DELETE\",\"times\":1,\"back_ms\":100},"
                                      "{\"method\":\"DELETE\",\"times\":1,\"status\":204},"
                                      "{\"method\":\"DELETE\",\"times\":1,\"spawn\":2,"
                                      "\"spawn_meta\":{\"by\":\"other\"}}]}"));
    j = call("GET", "/v2/sandboxes", NULL, 200);
    str_copy(id, sizeof(id), json_str(json_first(j), "sandboxID", ""));
    json_free(j);
    path = xasprintf("/sandboxes/%s", id);
    char *url = address(server, "/sandboxes");
    struct ask create = {.url = url,
                         .method = "POST",
                         .body = "{\"templateID\":\"t\",\"timeout\":60}",
                         .head = {KEY},
                         .ca = faultd_ca(server),
                         .give_up_ms = 100};
    struct reply r = ask(NULL, &create);
    assert_int_equal(r.rc, CURLE_OPERATION_TIMEDOUT);
    reply_release(&r);
    assert_true(becomes("running", 2)); /* nobody waited for it */
    done("DELETE", path, NULL, 204);
    j = call("GET", "/events/sandboxes?types=sandbox.lifecycle.killed", NULL, 200);
    assert_int_equal(rows(j), 1);
    json_free(j);
    assert_true(becomes("running", 2)); /* it did not hold */
    done("DELETE", path, NULL, 204);    /* a lie */
    assert_int_equal(counted("running"), 2);
    done("DELETE", path, NULL, 204);
    assert_int_equal(counted("running"), 3); /* and two of others */
    j = call("GET", "/v2/sandboxes?metadata=by%3Dother", NULL, 200);
    assert_int_equal(rows(j), 2);
    json_free(j);
    free(path);
    free(url);
}

/* ---- the control plane ---- */

/* Rows of one page, counted; the next page's path or "" comes to `path`. The newest two
 * of the first page are killed before the next is asked for. */
static int64_t read_page(char *path, size_t size, bool kill)
{
    struct reply r = get(server, path, false);
    struct cJSON *j = json_parse(buf_str(&r.body), r.body.len, NULL);
    char *next = xstrdup(reply_header(&r, "x-next-token"));
    int64_t n = rows(j);

    assert_int_equal(r.status, 200);
    assert_int_equal(strtol(reply_header(&r, "x-total-running"), NULL, 10), counted("running"));
    snprintf(path, size, *next ? "/v2/sandboxes?nextToken=%s" : "%s", next);
    for (const struct cJSON *c = json_first(j); kill && c && n > 1; c = json_next(c)) {
        char *victim = xasprintf("/sandboxes/%s", json_str(c, "sandboxID", ""));
        done("DELETE", victim, NULL, 204);
        free(victim);
        kill = c == json_first(j);
    }
    json_free(j);
    reply_release(&r);
    free(next);
    return n;
}

/* A stable cursor shows every row, one that counts rows leaves some out. */
static void test_lists(void **state)
{
    static const struct {
        const char *cursor;
        int64_t seen;
    } kinds[] = {{"stable", 7}, {"offset", 5}};
    char path[256], config[128];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int64_t n = 0;
        snprintf(config, sizeof(config),
                 "{\"reset\":true,\"sandboxes\":5,\"paused\":2,\"page\":3,\"cursor\":\"%s\"}",
                 kinds[i].cursor);
        assert_true(faultd_config(server, config));
        str_copy(path, sizeof(path), "/v2/sandboxes");
        for (int page = 0; *path; page++)
            n += read_page(path, sizeof(path), page == 0);
        assert_int_equal(n, kinds[i].seen);
    }
    struct cJSON *j = call("GET", "/sandboxes", NULL, 200); /* the old one: no paused ones */
    assert_int_equal(rows(j), counted("running"));
    json_free(j);
    done("GET", "/v2/sandboxes?limit=101", NULL, 400);
    done("GET", "/v2/sandboxes?nextToken=!", NULL, 400);
}

static void test_life(void **state)
{
    struct cJSON *j, *one;
    char id[64], path[128];

    (void)state;
    assert_true(faultd_config(server, "{\"reset\":true,\"sandboxes\":0,\"page\":100,\"logs\":5,"
                                      "\"cursor\":\"\"}"));
    j = call("POST", "/v2/sandboxes",
             "{\"templateID\":\"base\",\"metadata\":{\"k\":\"v\"},\"autoPause\":true}", 201);
    str_copy(id, sizeof(id), json_str(j, "sandboxID", ""));
    assert_non_null(json_str(j, "envdAccessToken", NULL));
    json_free(j);
    static const struct {
        const char *method, *tail, *body;
        long status;
    } steps[] = {
        {"GET", "", NULL, 200},
        {"POST", "/timeout", "{\"timeout\":60}", 204},
        {"POST", "/refreshes", "{}", 204},
        {"POST", "/resume", "{}", 409},
        {"POST", "/connect", "{\"timeout\":60}", 200},
        {"GET", "/metrics", NULL, 200},
        {"GET", "/logs", NULL, 200},
        {"POST", "/pause", "{}", 204},
        {"POST", "/pause", "{}", 409},
        {"POST", "/timeout", "{\"timeout\":60}", 409},
        {"POST", "/connect", "{\"timeout\":60}", 201},
        {"POST", "/nonsense", "{}", 404},
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        snprintf(path, sizeof(path), "/sandboxes/%s%s", id, steps[i].tail);
        done(steps[i].method, path, steps[i].body, steps[i].status);
    }
    snprintf(path, sizeof(path), "/v2/sandboxes/%s/logs?limit=2&direction=forward", id);
    j = call("GET", path, NULL, 200);
    assert_int_equal(rows(json_get(j, "logs")), 2);
    json_free(j);
    snprintf(path, sizeof(path), "/sandboxes/metrics?sandbox_ids=%s,inone", id);
    j = call("GET", path, NULL, 200);
    one = (struct cJSON *)(uintptr_t)json_first(json_get(j, "sandboxes"));
    assert_string_equal(json_name(one), id);
    json_free(j);
    snprintf(path, sizeof(path), "/sandboxes/%s", id);
    done("DELETE", path, NULL, 204);
    done("DELETE", path, NULL, 404);
    j = call("GET", "/events/sandboxes?limit=100&types=sandbox.lifecycle.killed", NULL, 200);
    assert_int_equal(rows(j), 1);
    json_free(j);
    done("GET", "/teams/t/metrics", NULL, 200);
    done("GET", "/nonsense", NULL, 404);
}

/* A sandbox ends by its time, or pauses where that was asked for. */
static void test_time_runs_out(void **state)
{
    (void)state;
    assert_true(faultd_config(server, "{\"reset\":true,\"sandboxes\":2,\"ttl\":0}"));
    assert_true(becomes("killed", 2));
    assert_true(faultd_config(server, "{\"sandboxes\":2,\"ttl\":0,\"auto_pause\":true}"));
    assert_true(becomes("paused", 2));
}

static void test_templates(void **state)
{
    struct cJSON *j;
    char tpl[64], build[64], path[256];
    const char *status;
    int64_t seen = 0;

    (void)state;
    assert_true(faultd_config(server,
                              "{\"reset\":true,\"sandboxes\":0,\"templates\":3,\"page\":2,"
                              "\"build\":{\"steps\":3,\"step_ms\":10,\"fail_at\":2}}"));
    j = call("GET", "/templates", NULL, 200);
    assert_int_equal(rows(j), 3);
    json_free(j);
    j = call("GET", "/v2/templates", NULL, 200);
    assert_int_equal(rows(j), 2);
    json_free(j);
    j = call("POST", "/v3/templates", "{\"name\":\"new:v1\"}", 202);
    str_copy(tpl, sizeof(tpl), json_str(j, "templateID", ""));
    str_copy(build, sizeof(build), json_str(j, "buildID", ""));
    json_free(j);
    snprintf(path, sizeof(path), "/templates/%s/files/%064d", tpl, 7);
    j = call("GET", path, NULL, 201);
    assert_false(json_bool(j, "present", true));
    str_copy(path, sizeof(path), strstr(json_str(j, "url", ""), "/_upload/"));
    json_free(j);
    done("PUT", path, "\x1f\x8b packed", 200);
    snprintf(path, sizeof(path), "/templates/%s/files/%064d", tpl, 7);
    j = call("GET", path, NULL, 201);
    assert_true(json_bool(j, "present", false));
    json_free(j);
    snprintf(path, sizeof(path), "/v2/templates/%s/builds/%s", tpl, build);
    done("POST", path, "{\"fromImage\":\"debian:12\"}", 202);
    done("POST", path, "{\"fromImage\":\"debian:12\"}", 400);
    snprintf(path, sizeof(path), "/templates/%s/builds/%s/status?limit=100", tpl, build);
    for (int64_t end = clock_mono_ms() + 20000; clock_mono_ms() < end; json_free(j)) {
        j = call("GET", path, NULL, 200);
        status = json_str(j, "status", "");
        seen = rows(json_get(j, "logEntries"));
        if (str_eq(status, "error"))
            break;
    }
    assert_string_equal(status, "error");
    assert_string_equal(json_str(json_get(j, "reason"), "step", ""), "2");
    assert_int_equal(seen, 2 + 2 * 3 + 2);
    json_free(j);
    done("GET", "/templates/none/builds/x/status", NULL, 404);
    snprintf(path, sizeof(path), "/templates/%s/builds/x/status", tpl);
    done("GET", path, NULL, 400);
    done("GET", "/templates/aliases/new", NULL, 200);
    done("GET", "/templates/aliases/none", NULL, 404);
    done("POST", "/templates/tags", "{\"target\":\"new:v1\",\"tags\":[\"v2\"]}", 201);
    done("DELETE", "/templates/tags", "{\"name\":\"new\",\"tags\":[\"v1\"]}", 204);
    snprintf(path, sizeof(path), "/templates/%s/tags", tpl);
    j = call("GET", path, NULL, 200);
    assert_string_equal(json_str(json_first(j), "tag", ""), "v2");
    json_free(j);
    snprintf(path, sizeof(path), "/templates/%s", tpl);
    done("DELETE", path, NULL, 204);
    done("GET", path, NULL, 404);
}

static int begin(void **state)
{
    static const char *const args[] = {"--streams", "2000", NULL};

    (void)state;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    server = faultd_start_tls(args);
    return 0;
}

static int end(void **state)
{
    (void)state;
    faultd_stop(server);
    curl_global_cleanup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thousand_at_once),
        cmocka_unit_test(test_false_and_late),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_time_runs_out),
        cmocka_unit_test(test_templates),
    };

    return cmocka_run_group_tests_name("the fault server", tests, begin, end);
}
