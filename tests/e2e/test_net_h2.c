/* HTTP/2 over TLS: one connection carries many requests, urgent ones and streams have
 * their own, and connections that their server gives up are replaced unseen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/faultproc.h"
#include "../lib/netbed.h"
#include <cct/envd.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOW 60000 /* a deadline that is only reached by a failure */

static struct faultd *srv;
static struct netbed *bed;
static char *box; /* a sandbox */

enum lane { NORMAL, URGENT, STREAM };

static struct net_req *request(const char *method, const char *path, enum lane lane)
{
    struct net_req *q = net_req_new(method, xasprintf("%s%s", faultd_url(srv), path));

    net_req_header(q, "X-API-Key", "e2b_0123456789abcdef0123456789abcdef01234567");
    q->urgent = lane == URGENT;
    q->stream = lane == STREAM;
    q->total_ms = SLOW;
    return q;
}

static struct bed_answer call(const char *method, const char *path, const char *body, enum lane lane)
{
    struct net_req *q = request(method, path, lane);

    if (body) {
        net_req_header(q, "Content-Type", "application/json");
        buf_adds(&q->body, body);
    }
    return bed_fetch(bed, q);
}

static void reset(const char *rules)
{
    char *json = xasprintf("{\"reset\":true,\"sandboxes\":4,\"rules\":[%s]}", rules);

    assert_true(faultd_config(srv, json));
    free(json);
    struct bed_answer a = call("GET", "/v2/sandboxes", NULL, NORMAL);
    char *at = strstr(a.body, "\"sandboxID\":\"");
    assert_non_null(at);
    free(box);
    box = xstrndup(at + 13, strcspn(at + 13, "\""));
}

/* The log of the server; requests whose path begins so, and on how many connections. */
struct seen {
    int n, conns, not_h2;
};

static struct seen look(const char *method, const char *path)
{
    char *text = faultd_http(srv, "GET", "/_faultd/log", NULL);
    struct cJSON *j = json_parse(text, strlen(text), NULL);
    const struct cJSON *e;
    struct seen s = {0};
    int64_t conn[64];

    cJSON_ArrayForEach(e, json_get(j, "requests"))
    {
        int64_t c = json_i64(e, "conn", -1);
        int i = 0;
        if (!str_eq(json_str(e, "method", ""), method) || !str_starts(json_str(e, "path", ""), path))
            continue;
        s.n++;
        s.not_h2 += !json_bool(e, "h2", false);
        while (i < s.conns && conn[i] != c)
            i++;
        if (i == s.conns && s.conns < 64)
            conn[s.conns++] = c;
    }
    json_free(j);
    free(text);
    return s;
}

/* --- many on one ---------------------------------------------------------------------------- */

enum { MANY = 200 };
static int good;

static void counted(void *ctx, const struct net_result *r)
{
    (void)ctx;
    good += r->err.code == 0 && r->status == 200;
    bed_tick(bed);
}

static void submit_many(void *ctx)
{
    for (int i = 0; i < MANY; i++) {
        struct net_req *q = request("GET", "/v2/sandboxes", *(enum lane *)ctx);
        q->on_done = counted;
        net_submit(bed->net, q);
    }
}

/* Answers of several frames, all at once. */
static void test_one_connection_carries_many(void **state)
{
    static const int most[] = {8, 24, 32}; /* the server lets 100 on each */

    (void)state;
    for (enum lane l = NORMAL; l <= STREAM; l++) {
        assert_true(faultd_config(srv, "{\"reset\":true,\"sandboxes\":250,\"rules\":["
                                       "{\"path\":\"/v2/sandboxes\",\"delay_ms\":200}]}"));
        bed_reset(bed);
        good = 0;
        int64_t t0 = clock_mono_ms();
        bed_run(bed, submit_many, &l);
        assert_true(bed_wait(bed, MANY, SLOW));
        struct seen s = look("GET", "/v2/sandboxes");
        print_message("# lane %d: %d requests on %d connections in %d ms\n", (int)l, s.n, s.conns,
                      (int)(clock_mono_ms() - t0));
        assert_int_equal(good, MANY);
        assert_int_equal(s.n, MANY);
        assert_int_equal(s.not_h2, 0);
        assert_true(s.conns <= most[l]);
    }
}

/* --- connections that end ------------------------------------------------------------------ */

static void test_goaway_is_not_seen(void **state)
{
    (void)state;
    reset("{\"method\":\"GET\",\"path\":\"/v2/sandboxes\",\"times\":20,\"goaway\":true}");
    struct seen before = look("GET", "/v2/sandboxes");
    for (int i = 0; i < 20; i++) {
        struct bed_answer a = call("GET", "/v2/sandboxes", NULL, (enum lane)(i % 3));
        assert_string_equal(a.err.text, "");
        assert_int_equal(a.status, 200);
    }
    struct seen s = look("GET", "/v2/sandboxes");
    assert_int_equal(s.n - before.n, 20); /* none twice, none lost */
    assert_true(s.conns >= 20);
}

/* What was refused unseen may go out again; a POST only when that is sure. */
static void test_refused_is_sent_again(void **state)
{
    static const char *const methods[] = {"GET", "DELETE", "POST"};

    (void)state;
    for (size_t m = 0; m < 3; m++) {
        reset("{\"path\":\"/sandboxes/i*\",\"times\":1,\"refuse\":true},"
              "{\"path\":\"/sandboxes\",\"times\":1,\"refuse\":true}");
        bool post = str_eq(methods[m], "POST");
        char *path = post ? xstrdup("/sandboxes") : xasprintf("/sandboxes/%s", box);
        struct bed_answer a =
            call(methods[m], path, post ? "{\"templateID\":\"base\"}" : NULL, NORMAL);
        print_message("# %s: %d %s\n", methods[m], a.status, a.err.text);
        if (post) {
            assert_int_equal(a.err.code, ERR_NETWORK);
            assert_int_equal(look(methods[m], path).n, 1);
        } else {
            assert_string_equal(a.err.text, "");
            assert_true(a.status >= 200 && a.status < 300);
            assert_int_equal(look(methods[m], path).n, 2); /* refused, then carried out */
        }
        free(path);
    }
}

/* The connection ends in the middle of it: what is no question is not asked twice. */
static void test_broken_post_goes_out_once(void **state)
{
    static const char *const ends[] = {"\"rst\":true", "\"rst_stream\":true", "\"cut\":0"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char *rule = xasprintf("{\"method\":\"POST\",\"path\":\"/sandboxes\",\"times\":1,%s}",
                               ends[i]);
        reset(rule);
        struct bed_answer a = call("POST", "/sandboxes", "{\"templateID\":\"base\"}", NORMAL);
        print_message("# %s: %s\n", ends[i], a.err.text);
        assert_int_equal(a.err.code, ERR_NETWORK);
        assert_true(a.sent);
        assert_int_equal(look("POST", "/sandboxes").n, 1);
        free(rule);
        /* and the next one finds a way */
        a = call("POST", "/sandboxes", "{\"templateID\":\"base\"}", NORMAL);
        assert_int_equal(a.status, 201);
    }
}

static void test_broken_get_goes_out_again(void **state)
{
    static const char *const ends[] = {"\"rst\":true", "\"rst_stream\":true", "\"cut\":0"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char *rule = xasprintf("{\"method\":\"GET\",\"path\":\"/sandboxes/*\",\"times\":1,%s}",
                               ends[i]);
        reset(rule);
        char *path = xasprintf("/sandboxes/%s", box);
        struct bed_answer a = call("GET", path, NULL, NORMAL);
        print_message("# %s: %d %s\n", ends[i], a.status, a.err.text);
        assert_string_equal(a.err.text, "");
        assert_int_equal(a.status, 200);
        assert_int_equal(look("GET", "/sandboxes/").n, 2);
        free(path);
        free(rule);
    }
}

/* --- an open stream -------------------------------------------------------------------------- */

enum { LINES = 60 };
struct tail {
    char text[8192];
    size_t len;
    struct envd *envd;
    struct err err;
    bool ended, first;
};

static bool on_data(void *ctx, enum envd_stream s, const char *data, size_t len)
{
    struct tail *t = ctx;

    (void)s;
    if (t->len + len < sizeof(t->text)) {
        memcpy(t->text + t->len, data, len);
        t->len += len;
    }
    if (!t->first)
        bed_tick(bed);
    t->first = true;
    return true;
}

static void on_end(void *ctx, const struct envd_end *end)
{
    struct tail *t = ctx;

    t->err = end->err;
    t->ended = true;
    bed_tick(bed);
}

static void start_tail(void *ctx)
{
    static const char *const args[] = {"40", "60", NULL};
    struct tail *t = ctx;
    struct envd_proc_spec spec = {.cmd = "faultd-lines", .args = args};
    struct envd_proc_cb cb = {.on_data = on_data, .on_end = on_end, .ctx = t};
    char *token = xasprintf("ea_%s", box);
    struct secret *s = secret_new(token, strlen(token));
    struct envd_target target = {.base_url = faultd_url(srv), .sandbox_id = box, .token = s};

    t->envd = envd_new(bed->net, &target);
    envd_start(t->envd, &spec, &cb);
    secret_free(s);
    free(token);
}

static void end_tail(void *ctx)
{
    envd_free(((struct tail *)ctx)->envd);
}

/* GOAWAY while a stream is open on the connection: it goes on to its end, each line once,
 * and the next request on that set of connections gets its answer elsewhere. */
static void test_stream_outlives_goaway(void **state)
{
    struct tail t = {.len = 0};
    int line = 0;

    (void)state;
    reset("{\"method\":\"GET\",\"path\":\"/v2/sandboxes\",\"skip\":1,\"times\":1,\"goaway\":true}");
    bed_reset(bed);
    bed_run(bed, start_tail, &t);
    assert_true(bed_wait(bed, 1, SLOW));
    for (int i = 0; i < 3; i++) {
        struct bed_answer a = call("GET", "/v2/sandboxes", NULL, STREAM);
        assert_string_equal(a.err.text, "");
        assert_int_equal(a.status, 200);
    }
    assert_true(look("GET", "/v2/sandboxes").conns >= 2);
    bed_reset(bed);
    for (int64_t end = clock_mono_ms() + SLOW; !t.ended && clock_mono_ms() < end;)
        bed_wait(bed, 1, 50);
    bed_run(bed, end_tail, &t);
    assert_true(t.ended);
    assert_string_equal(t.err.text, "");
    for (char *p = t.text; p < t.text + t.len; p = strchr(p, '\n') + 1)
        assert_int_equal(strtol(p, NULL, 10), ++line);
    assert_int_equal(line, LINES);
}

static void test_ipv6_literal(void **state)
{
    static const char *const args[] = {"--sandboxes", "1", "--listen6", NULL};

    (void)state;
    if (!faultd_has_ipv6())
        skip();
    struct faultd *six = faultd_start_tls(args);
    struct net_opts o = {.user_agent = "cc-tui/test", .ca_file = faultd_ca(six)};
    struct netbed *b = bed_new(&o);
    struct net_req *q = net_req_new("GET", xasprintf("https://[::1]%s/v2/sandboxes",
                                                     strrchr(faultd_url(six), ':')));

    net_req_header(q, "X-API-Key", "e2b_0123456789abcdef0123456789abcdef01234567");
    struct bed_answer a = bed_fetch(b, q);
    assert_string_equal(a.err.text, "");
    assert_int_equal(a.status, 200);
    bed_free(b);
    faultd_stop(six);
}

static int begin(void **state)
{
    static const char *const args[] = {"--sandboxes", "4", "--streams", "100", NULL};
    struct net_opts o = {.user_agent = "cc-tui/test"};

    (void)state;
    srv = faultd_start_tls(args);
    o.ca_file = faultd_ca(srv);
    bed = bed_new(&o);
    return 0;
}

static int end(void **state)
{
    (void)state;
    bed_free(bed);
    faultd_stop(srv);
    free(box);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_connection_carries_many),
        cmocka_unit_test(test_goaway_is_not_seen),
        cmocka_unit_test(test_refused_is_sent_again),
        cmocka_unit_test(test_broken_post_goes_out_once),
        cmocka_unit_test(test_broken_get_goes_out_again),
        cmocka_unit_test(test_stream_outlives_goaway),
        cmocka_unit_test(test_ipv6_literal),
    };

    return cmocka_run_group_tests_name("net_h2", tests, begin, end);
}
