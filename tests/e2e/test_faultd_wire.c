/* The fault server's wire, asked by libcurl: what it speaks, that each rule does what it says on
 * both versions of HTTP, that the proxy breaks what it is told to break. */
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

/* ---- what is spoken ---- */

static void expect(const struct ask *q, CURLcode rc, long version)
{
    struct reply r = ask(NULL, q);

    if (r.rc != rc)
        print_error("%s: %s\n", q->url, curl_easy_strerror(r.rc));
    assert_int_equal(r.rc, rc);
    if (rc == CURLE_OK) {
        assert_int_equal(r.status, 204);
        assert_int_equal(r.version, version);
    }
    reply_release(&r);
}

static void test_tls(void **state)
{
    bool v6 = faultd_has_ipv6();
    const char *args[] = {"--h1", "--name", "api.test", "--name", "127.0.0.9",
                          v6 ? "--listen6" : NULL, NULL};
    struct faultd *old = faultd_start_tls(args);
    char *port = xstrdup(strrchr(faultd_url(server), ':')), *url = address(server, "/health"),
         *url1 = address(old, "/health"),
         *sub = xasprintf("https://a.localhost%s/health", port),
         *ip = xasprintf("https://127.0.0.1%s/health", port),
         *named = xasprintf("https://api.test%s/health", strrchr(faultd_url(old), ':')),
         *six = xasprintf("https://[::1]%s/health", strrchr(faultd_url(old), ':')),
         *there = xasprintf("api.test%s:127.0.0.1", strrchr(faultd_url(old), ':'));
    const char *ca = faultd_ca(server), *ca1 = faultd_ca(old);

    (void)state;
    expect(&(struct ask){.url = url, .ca = ca}, CURLE_OK, CURL_HTTP_VERSION_2_0);
    expect(&(struct ask){.url = url, .ca = ca, .h1 = true}, CURLE_OK, CURL_HTTP_VERSION_1_1);
    expect(&(struct ask){.url = ip, .ca = ca}, CURLE_OK, CURL_HTTP_VERSION_2_0);
    expect(&(struct ask){.url = sub, .ca = ca}, CURLE_OK, CURL_HTTP_VERSION_2_0);
    expect(&(struct ask){.url = url1, .ca = ca1}, CURLE_OK, CURL_HTTP_VERSION_1_1);
    expect(&(struct ask){.url = named, .ca = ca1, .resolve = there + (*there == ':')}, CURLE_OK,
           CURL_HTTP_VERSION_1_1);
    if (v6)
        expect(&(struct ask){.url = six, .ca = ca1}, CURLE_OK, CURL_HTTP_VERSION_1_1);
    expect(&(struct ask){.url = url}, CURLE_PEER_FAILED_VERIFICATION, 0);
    expect(&(struct ask){.url = url, .ca = ca1}, CURLE_PEER_FAILED_VERIFICATION, 0);
    assert_null(faultd_http(server, "GET", "/health", NULL)); /* plain, on a TLS port */
    faultd_stop(old);
    free(port), free(url), free(url1), free(sub), free(ip), free(named), free(six), free(there);
}

/* ---- rules ---- */

struct broken {
    const char *rule;  /* what is added to the path of the list */
    CURLcode h1, h2;   /* how it ends */
    long body1, body2; /* bytes of the body that came, -1 = any, -2 = all */
    long status;       /* 0: none came */
    int give_up_ms;
};
static const struct broken all_broken[] = {
    {"\"cut\":0", CURLE_GOT_NOTHING, CURLE_HTTP2, 0, 0, 0, 0},
    {"\"cut\":20", CURLE_RECV_ERROR, CURLE_HTTP2, 0, 20, -1, 0},
    {"\"cut_body\":7", CURLE_PARTIAL_FILE, CURLE_HTTP2, 7, 7, 200, 0},
    {"\"cut_body\":7,\"rst\":true", CURLE_RECV_ERROR, CURLE_RECV_ERROR, -1, -1, -1, 0},
    {"\"rst\":true", CURLE_RECV_ERROR, CURLE_RECV_ERROR, 0, 0, 0, 0},
    {"\"rst_stream\":true", CURLE_GOT_NOTHING, CURLE_HTTP2_STREAM, 0, 0, 0, 0},
    {"\"cut_body\":9,\"rst_stream\":true", CURLE_PARTIAL_FILE, CURLE_HTTP2_STREAM, 9, -1, 200,
     0},
    {"\"stall\":true", CURLE_OPERATION_TIMEDOUT, CURLE_OPERATION_TIMEDOUT, 0, 0, 0, 100},
    {"\"stall\":\"connection\"", CURLE_OPERATION_TIMEDOUT, CURLE_OPERATION_TIMEDOUT, 0, 0, 0,
     100},
    {"\"cut_body\":5,\"stall\":true", CURLE_OPERATION_TIMEDOUT, CURLE_OPERATION_TIMEDOUT, 5, 5,
     200, 300},
    {"\"delay_ms\":60000", CURLE_OPERATION_TIMEDOUT, CURLE_OPERATION_TIMEDOUT, 0, 0, 0, 100},
    {"\"late_ms\":60000", CURLE_OPERATION_TIMEDOUT, CURLE_OPERATION_TIMEDOUT, 0, 0, 0, 100},
    {"\"status\":503,\"body\":\"busy\"", CURLE_OK, CURLE_OK, 4, 4, 503, 0},
    {"\"status\":429,\"retry_after\":\"7\"", CURLE_OK, CURLE_OK, -1, -1, 429, 0},
    {"\"goaway\":true", CURLE_OK, CURLE_OK, -2, -2, 200, 0},
    {"\"drip\":1", CURLE_OK, CURLE_OK, -2, -2, 200, 0},
};

/* Which code of its several libcurl gives for a lost connection is its own affair. */
static bool lost(CURLcode rc)
{
    return rc == CURLE_RECV_ERROR || rc == CURLE_GOT_NOTHING || rc == CURLE_PARTIAL_FILE ||
           rc == CURLE_HTTP2 || rc == CURLE_HTTP2_STREAM || rc == CURLE_SSL_CONNECT_ERROR ||
           rc == CURLE_SEND_ERROR || rc == CURLE_UNSUPPORTED_PROTOCOL;
}

static struct reply try_broken(bool h1, int give_up_ms)
{
    char *url = address(server, "/v2/sandboxes");
    struct ask q = {.url = url, .head = {KEY}, .ca = faultd_ca(server), .h1 = h1,
                    .give_up_ms = give_up_ms};
    struct reply r = ask(NULL, &q);

    free(url);
    return r;
}

static void one_broken(const struct broken *b, bool h1, size_t whole)
{
    char *config = xasprintf("{\"rules\":[{\"path\":\"/v2/sandboxes\",%s}]}", b->rule);
    CURLcode want = h1 ? b->h1 : b->h2;
    long body = h1 ? b->body1 : b->body2;

    assert_true(faultd_config(server, config));
    struct reply r = try_broken(h1, b->give_up_ms);
    for (int ms = b->give_up_ms; b->give_up_ms && body > 0 && !r.body.len && ms < 20000; ms *= 2) {
        reply_release(&r); /* a slow machine needs longer to come so far */
        r = try_broken(h1, ms);
    }
    if (r.rc != want)
        print_message("# %s over HTTP/%d: %s\n", b->rule, h1 ? 1 : 2, curl_easy_strerror(r.rc));
    assert_true(r.rc == want || (lost(want) && lost(r.rc)));
    if (b->status >= 0 && r.rc != CURLE_HTTP2_STREAM) /* then libcurl drops what it has */
        assert_int_equal(r.status, b->status);
    if (body != -1)
        assert_int_equal(r.body.len, body == -2 ? (long)whole : body);
    if (strstr(b->rule, "retry_after"))
        assert_string_equal(reply_header(&r, "retry-after"), "7");
    reply_release(&r);
    free(config);
}

static void test_each_rule(void **state)
{
    struct reply r;

    (void)state;
    assert_true(faultd_config(server, "{\"reset\":true,\"sandboxes\":1}"));
    r = get(server, "/v2/sandboxes", false);
    for (size_t i = 0; i < sizeof(all_broken) / sizeof(all_broken[0]); i++) {
        one_broken(&all_broken[i], true, r.body.len);
        one_broken(&all_broken[i], false, r.body.len);
    }
    reply_release(&r);
    assert_false(faultd_config(server, "{\"sandboxs\":1}")); /* no typing error goes through */
    assert_false(faultd_config(server, "{\"rules\":[{\"paht\":\"/x\"}]}"));
    assert_false(faultd_config(server, "{\"build\":{\"stepz\":1}}"));
}

/* The stream that is there goes on, the next request needs another connection. */
static void test_goaway(void **state)
{
    char *url = address(server, "/v2/sandboxes"), *text;
    struct ask q = {.url = url, .head = {KEY}, .ca = faultd_ca(server)};
    CURL *e = curl_easy_init();
    int64_t conn[3], n = 0;

    (void)state;
    assert_true(faultd_config(server, "{\"reset\":true,\"sandboxes\":1,\"rules\":[{\"skip\":1,"
                                      "\"times\":1,\"goaway\":true}]}"));
    for (int i = 0; i < 3; i++) {
        struct reply r = ask(e, &q);
        assert_int_equal(r.status, 200);
        reply_release(&r);
    }
    text = faultd_http(server, "GET", "/_faultd/log", NULL);
    struct cJSON *j = json_parse(text, strlen(text), NULL);
    for (const struct cJSON *c = json_first(json_get(j, "requests")); c; c = json_next(c)) {
        assert_true(json_bool(c, "h2", false));
        conn[n++] = json_i64(c, "conn", 0);
    }
    assert_int_equal(n, 3);
    assert_int_equal(conn[0], conn[1]);
    assert_int_not_equal(conn[1], conn[2]);
    json_free(j);
    free(text);
    curl_easy_cleanup(e);
    free(url);
}

/* ---- the proxy ---- */

static void told(struct faultd *proxy, const char *line)
{
    if (!faultd_command(proxy, line, NULL, 0))
        fail_msg("the proxy does not know '%s'", line);
}

static CURLcode through(struct faultd *proxy, int give_up_ms)
{
    char *url = address(proxy, "/v2/sandboxes");
    struct ask q = {
        .url = url, .head = {KEY}, .ca = faultd_ca(server), .give_up_ms = give_up_ms};
    struct reply r = ask(NULL, &q);
    CURLcode rc = r.rc;

    reply_release(&r);
    free(url);
    return rc;
}

static void test_proxy(void **state)
{
    struct faultd *proxy = faultd_proxy(faultd_url(server));
    char stat[128];

    (void)state;
    assert_true(faultd_config(server, "{\"reset\":true,\"sandboxes\":30,\"page\":100}"));
    assert_int_equal(through(proxy, 0), CURLE_OK);
    told(proxy, "limit from 3000 rst");
    assert_true(lost(through(proxy, 0)));
    told(proxy, "limit to 100 fin");
    assert_true(lost(through(proxy, 0)));
    told(proxy, "heal");
    told(proxy, "limit from 3000 stall");
    assert_int_equal(through(proxy, 300), CURLE_OPERATION_TIMEDOUT);
    told(proxy, "heal");
    told(proxy, "stall from 60000");
    assert_int_equal(through(proxy, 300), CURLE_OPERATION_TIMEDOUT);
    told(proxy, "heal");
    told(proxy, "slow 3000");
    assert_int_equal(through(proxy, 300), CURLE_OPERATION_TIMEDOUT);
    told(proxy, "slow 1000000");
    assert_int_equal(through(proxy, 0), CURLE_OK);
    told(proxy, "down 60000");
    assert_true(through(proxy, 0) != CURLE_OK);
    told(proxy, "heal");
    assert_int_equal(through(proxy, 0), CURLE_OK);
    told(proxy, "schedule 7 20 10");
    for (int64_t end = clock_mono_ms() + 60000; clock_mono_ms() < end;) {
        through(proxy, 200);
        assert_true(faultd_command(proxy, "stat", stat, sizeof(stat)));
        if (strstr(stat, "schedule 0"))
            break;
    }
    assert_non_null(strstr(stat, "schedule 0")); /* it comes to its end */
    told(proxy, "heal");
    assert_int_equal(through(proxy, 0), CURLE_OK);
    print_message("# %s", stat);
    faultd_stop(proxy);
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
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_each_rule),
        cmocka_unit_test(test_goaway),
        cmocka_unit_test(test_proxy),
    };

    return cmocka_run_group_tests_name("the wire of the fault server", tests, begin, end);
}
