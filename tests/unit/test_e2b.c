/* Calls of the control-plane client against scripted answers, but for the list. */
#include "../lib/e2bplay.h"

#include <cct/util/clock.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

static void test_get(void **state)
{
    struct call c = {.what = GET, .id = "iab/../c"};

    (void)state;
    PLAY({200, "", "{\"sandboxID\":\"iabc\",\"templateID\":\"t\",\"alias\":\"claude\",\"state\":"
          "\"paused\",\"cpuCount\":2,\"memoryMB\":1024,\"startedAt\":\"2026-08-22T10:00:00.5Z\","
          "\"endAt\":\"2026-08-22T11:00:00+00:00\",\"metadata\":{\"a\":\"b\"},"
          "\"envdAccessToken\":\"ea_secret_token\"}", false});
    run(&c);
    assert_string_equal(got.first, "t|claude|paused|2|1024|1787392800500|1787396400000|a");
    assert_string_equal(got.token, "ea_secret_token");
    assert_non_null(strstr(buf_str(&heard), "GET /sandboxes/iab%2F..%2Fc "));
}

/* A key that is added after many sandboxes were opened is still kept out of the log. */
static void test_many_tokens(void **state)
{
    struct call c = {.what = GET, .id = "iabc"};
    char late[] = "added-when-many-were-open";

    (void)state;
    for (int i = 0; i < 100; i++) {
        char *body = xasprintf("{\"sandboxID\":\"i%d\",\"envdAccessToken\":\"ea_token_of_%d\"}",
                               i, i);
        PLAY({200, "", body, false});
        run(&c);
        assert_int_equal(got.r.err.code, 0);
        log_redact(got.token, strlen(got.token));
        assert_int_equal(strspn(got.token, "*"), strlen(got.token));
        free(body);
    }
    secret_free(secret_new(late, strlen(late)));
    log_redact(late, strlen(late));
    assert_int_equal(strspn(late, "*"), strlen(late));
}

static void expect(struct call *c, int status, const char *head, const char *body, int code,
                   const char *words)
{
    struct script s = {status, head, body, false};

    play(&s, 1);
    run(c);
    if (got.r.err.code != code || (words && !strstr(got.r.err.text, words)))
        print_message("# %d: %s\n", got.r.err.code, got.r.err.text);
    assert_int_equal(got.r.err.code, code);
    if (words)
        assert_non_null(strstr(got.r.err.text, words));
}

static void test_errors(void **state)
{
    struct call kill = {.what = KILL, .id = "iabc"}, pause = {.what = PAUSE, .id = "iabc"};
    struct call create = {.what = CREATE, .create = {.template_id = "claude", .timeout_s = 900}};

    (void)state;
    expect(&kill, 204, "", "", 0, NULL);
    expect(&kill, 200, "", "ok", 0, NULL);
    expect(&kill, 404, "", "{\"code\":404,\"message\":\"gone\"}", ERR_NOTFOUND, "iabc");
    expect(&kill, 404, "", "", ERR_NOTFOUND, NULL);
    expect(&kill, 404, "", "<html>404</html>", ERR_PROTO, "E2B_API_URL");
    expect(&kill, 500, "", "{\"code\":404,\"message\":\"x\"}", ERR_NOTFOUND, NULL);
    expect(&kill, 404, "", "{\"code\":500,\"message\":\"x\"}", ERR_SERVER, NULL);
    expect(&kill, 401, "", "{\"code\":401,\"message\":\"bad key\"}", ERR_AUTH, "****cdef");
    expect(&kill, 403, "", "{\"code\":403,\"message\":\"blocked\"}", ERR_AUTH, "blocked");
    expect(&kill, 429, "Retry-After: 3\r\n", "{\"code\":429}", ERR_BUSY, "3 s");
    assert_int_equal(got.r.retry_after_ms, 3000);
    expect(&kill, 502, "", "Bad Gateway", ERR_SERVER, "502");
    expect(&kill, 503, "", "", ERR_SERVER, "no room or is down");
    expect(&kill, 504, "", "", ERR_SERVER, "no room or is down");
    expect(&kill, 500, "", "", ERR_SERVER, "the service failed");
    expect(&kill, 302, "Location: https://elsewhere.invalid/\r\n", "", ERR_PROTO, NULL);
    expect(&pause, 409, "", "{\"code\":409,\"message\":\"already\"}", ERR_CONFLICT, NULL);
    expect(&create, 404, "", "{\"code\":404,\"message\":\"t\"}", ERR_NOTFOUND, "template");
    expect(&create, 429, "", "{\"code\":429,\"message\":\"20 running\"}", ERR_LIMIT, "20 running");
    expect(&create, 429, "Retry-After: 2\r\n", "{\"code\":429}", ERR_BUSY, NULL);
    expect(&create, 400, "", "{\"code\":400,\"message\":\"a\\u001b[2Jb\\r\\n\"}", ERR_INVALID, "a [2Jb");
    expect(&create, 503, "", "{\"code\":503,\"error_code\":\"sandbox_capacity_unavailable\"}",
           ERR_SERVER, "sandbox_capacity_unavailable");
    expect(&create, 201, "", "{}", ERR_PROTO, NULL);
    expect(&create, 400, "", "{\"code\":\"x\",\"message\":7}", ERR_INVALID, NULL);
}

static void test_create(void **state)
{
    const struct kv meta[] = {{(char *)"cc", (char *)"1"}, {NULL, NULL}};
    const struct kv env[] = {{(char *)"KEY", (char *)"sk-\"quoted\""}, {NULL, NULL}};
    struct call c = {.what = CREATE,
                     .create = {.template_id = "claude", .timeout_s = 900, .auto_pause = true,
                                .meta = meta, .env = env}};

    (void)state;
    PLAY({201, "", "{\"sandboxID\":\"inew\",\"templateID\":\"t\",\"envdAccessToken\":\"ea_tok\","
          "\"domain\":null}", false});
    run(&c);
    assert_int_equal(got.r.err.code, 0);
    assert_string_equal(got.ids, "inew ");
    assert_string_equal(buf_str(&heard),
                        "POST /sandboxes {\"templateID\":\"claude\",\"timeout\":900,\"secure\":true,"
                        "\"autoPause\":true,\"metadata\":{\"cc\":\"1\"},"
                        "\"envVars\":{\"KEY\":\"sk-\\\"quoted\\\"\"}}\n");
}

static void test_lost_create(void **state)
{
    struct call warm = {.what = LIST};
    struct call c = {.what = CREATE, .create = {.template_id = "claude", .timeout_s = 900}};

    (void)state;
    PLAY({200, "", "[]", false}, {0, NULL, NULL, true}, {201, "", "{\"sandboxID\":\"i2\"}", false});
    run(&warm); /* the create finds a kept connection, which dies under it */
    run(&c);
    assert_int_equal(got.r.err.code, ERR_NETWORK);
    assert_true(got.r.sent);
    assert_int_equal(script_at, 2); /* sent once, never again */
}

static void test_small_calls(void **state)
{
    struct call t = {.what = TIMEOUT, .id = "iabc", .timeout = 600};
    struct call k = {.what = CONNECT, .id = "iabc", .timeout = 300};
    struct call p = {.what = PAUSE, .id = "iabc"};

    (void)state;
    PLAY({204, NULL, NULL, false}, {201, "", "{\"sandboxID\":\"iabc\"}", false},
         {204, NULL, NULL, false});
    run(&t);
    run(&k);
    assert_string_equal(got.ids, "iabc ");
    run(&p);
    assert_string_equal(buf_str(&heard), "POST /sandboxes/iabc/timeout {\"timeout\":600}\n"
                                         "POST /sandboxes/iabc/connect {\"timeout\":300}\n"
                                         "POST /sandboxes/iabc/pause {}\n");
}

static void test_retries(void **state)
{
    struct call k = {.what = KILL, .id = "iabc", .o = {.urgent = true, .give_up_ms = 10000}};
    struct call once = {.what = KILL, .id = "iabc"};
    int64_t t0 = clock_mono_ms();

    (void)state;
    PLAY({500, "", "{\"code\":500}", false}, {429, "Retry-After: 1\r\n", "{}", false},
         {204, NULL, NULL, false});
    run(&k);
    assert_int_equal(got.r.err.code, 0);
    assert_int_equal(script_at, 3);
    assert_true(clock_mono_ms() - t0 >= 1300); /* the time the server asked for was kept */
    script_at = 0;
    run(&once);
    assert_int_equal(got.r.err.code, ERR_SERVER);
    assert_int_equal(script_at, 1);
}

static void test_gives_up(void **state)
{
    struct call k = {.what = KILL, .id = "iabc", .o = {.give_up_ms = 1200}};
    int64_t t0 = clock_mono_ms();

    (void)state;
    PLAY({429, "Retry-After: 60\r\n", "{}", false});
    run(&k);
    assert_int_equal(got.r.err.code, ERR_BUSY);
    assert_int_equal(script_at, 1);
    assert_true(clock_mono_ms() - t0 < 30000); /* not the minute that it was told */
}

static void cancel_call(void *ctx)
{
    struct call *c = ctx;

    start_call(c);
    e2b_cancel(client, c->call);
    e2b_cancel(client, c->call);
    start_call(c);
    drop_client(NULL); /* with a call under way */
    make_client(NULL);
}

static void test_cancel(void **state)
{
    struct call c = {.what = GET, .id = "iabc", .o = {.give_up_ms = 5000}};

    (void)state;
    PLAY({200, "", "{\"sandboxID\":\"iabc\"}", false});
    got = (struct answer){0};
    bed_run(bed, cancel_call, &c);
    run(&c); /* only this one answers */
    assert_int_equal(got.n_calls, 1);
}

static void free_inside(void *ctx, const struct e2b_result *r)
{
    (void)ctx;
    (void)r;
    drop_client(NULL);
    make_client(NULL);
    bed_tick(bed);
}

static void start_free_inside(void *ctx)
{
    (void)ctx;
    e2b_get(client, "iabc", NULL, free_inside, NULL);
}

static void test_free_inside(void **state)
{
    (void)state;
    PLAY({200, "", "{\"sandboxID\":\"iabc\"}", false});
    bed_reset(bed);
    bed_run(bed, start_free_inside, NULL);
    assert_true(bed_wait(bed, 1, SLOW));
}

static void warm(void *ctx)
{
    (void)ctx;
    e2b_warm(client, 10);
}

static void kill_ten(void *ctx)
{
    static const struct e2b_call_opts o = {.urgent = true};

    (void)ctx;
    for (int i = 0; i < 10; i++)
        e2b_kill(client, "iabc", &o, on_answer, NULL);
}

static void late(struct mini_conn *c, const struct mini_req *r)
{
    if (str_eq(r->path, "/health"))
        bed_tick(bed);
    mini_wait(c, 50);
    mini_reply(c, 204, "", "");
}

static void test_warm(void **state)
{
    int before = mini_accepted(srv);

    (void)state;
    special = late;
    bed_reset(bed);
    bed_run(bed, warm, NULL);
    assert_true(bed_wait(bed, 10, SLOW)); /* ten requests at once are ten connections */
    bed_reset(bed);
    bed_run(bed, kill_ten, NULL);
    assert_true(bed_wait(bed, 10, SLOW));
    assert_true(mini_accepted(srv) - before <= 20);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_get),
        CASE(test_many_tokens),
        CASE(test_errors),
        CASE(test_create),
        CASE(test_lost_create),
        CASE(test_small_calls),
        CASE(test_retries),
        CASE(test_gives_up),
        CASE(test_cancel),
        CASE(test_free_inside),
        CASE(test_warm),
    };
    int rc;

    srv = mini_start(handler, NULL);
    bed = bed_new(NULL);
    rc = cmocka_run_group_tests_name("e2b", tests, NULL, NULL);
    bed_free(bed);
    mini_stop(srv);
    buf_release(&heard);
    return rc;
}
