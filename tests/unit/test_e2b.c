/* The control-plane client against scripted answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/miniserver.h"
#include "../lib/netbed.h"
#include <cct/e2b.h>
#include <cct/secrets/secret.h>
#include <cct/util/clock.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOW 20000

static struct mini *srv;
static struct netbed *bed;
static struct e2b *client;
static struct buf heard;

/* What the server answers: one script a test, in order; the last one repeats. */
struct script {
    int status;
    const char *head, *body;
    bool cut;
};
static const struct script *script;
static int script_n, script_at; /* set before a call starts, read after its answer */
static void (*special)(struct mini_conn *c, const struct mini_req *r);

static void handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    const struct script *s;

    (void)ctx;
    buf_addf(&heard, "%s %s %.*s\n", r->method, r->path, (int)r->len, r->body);
    if (special) {
        special(c, r);
        return;
    }
    s = &script[script_at < script_n ? script_at : script_n - 1];
    script_at++;
    if (s->cut)
        mini_close(c);
    else
        mini_reply(c, s->status, s->head ? s->head : "", s->body ? s->body : "");
}

#define PLAY(...)                                                                              \
    const struct script steps[] = {__VA_ARGS__};                                               \
    play(steps, sizeof(steps) / sizeof(steps[0]))

static void play(const struct script *s, size_t n)
{
    mini_sync(srv);
    script = s;
    script_n = (int)n;
    script_at = 0;
    special = NULL;
    buf_clear(&heard);
}

struct answer {
    struct e2b_result r;
    int n_calls;
    size_t n;
    char ids[8192], first[256]; /* ids joined; first row as text */
    char token[64], state[64];
    int meta;
};
static struct answer got;

static void on_answer(void *ctx, const struct e2b_result *r)
{
    (void)ctx;
    got.r = *r;
    got.n = r->n;
    got.n_calls++;
    for (size_t i = 0; i < r->n; i++) {
        size_t at = strlen(got.ids);
        snprintf(got.ids + at, sizeof(got.ids) - at, "%s ", r->v[i].sandbox_id);
    }
    if (r->n) {
        const struct e2b_sandbox *s = &r->v[0];
        snprintf(got.first, sizeof(got.first), "%s|%s|%s|%d|%d|%lld|%lld|%s",
                 s->template_id ? s->template_id : "-", s->alias ? s->alias : "-", s->state,
                 s->cpu_count, s->memory_mb, (long long)s->started_at, (long long)s->end_at,
                 s->meta ? s->meta[0].k : "-");
        snprintf(got.token, sizeof(got.token), "%s", s->token ? secret_value(s->token) : "");
    }
    bed_tick(bed);
}

struct call {
    int what;
    const char *id;
    struct e2b_call_opts o;
    struct e2b_create create;
    int timeout;
    uint64_t call;
};
enum { LIST, GET, CREATE, KILL, TIMEOUT, PAUSE, CONNECT };

static void start_call(void *ctx)
{
    struct call *c = ctx;

    switch (c->what) {
    case LIST:
        c->call = e2b_list(client, &c->o, on_answer, NULL);
        break;
    case GET:
        c->call = e2b_get(client, c->id, &c->o, on_answer, NULL);
        break;
    case CREATE:
        c->call = e2b_create(client, &c->create, on_answer, NULL);
        break;
    case KILL:
        c->call = e2b_kill(client, c->id, &c->o, on_answer, NULL);
        break;
    case TIMEOUT:
        c->call = e2b_set_timeout(client, c->id, c->timeout, on_answer, NULL);
        break;
    case PAUSE:
        c->call = e2b_pause(client, c->id, on_answer, NULL);
        break;
    default:
        c->call = e2b_connect(client, c->id, c->timeout, on_answer, NULL);
    }
}

static void run(struct call *c)
{
    got = (struct answer){0};
    bed_reset(bed);
    bed_run(bed, start_call, c);
    assert_true(bed_wait(bed, 1, SLOW));
    mini_sync(srv);
    assert_int_equal(got.n_calls, 1);
}

static void make_client(void *ctx)
{
    char *url = mini_url(srv, "");
    struct e2b_account a = {.api_url = url, .sandbox_url = url, .domain = (char *)"e2b.app",
                            .key = secret_new("e2b_0123456789abcdef", 20), .source = (char *)"environment",
                            .mask = "****cdef"};

    (void)ctx;
    client = e2b_new(bed->net, &a);
    secret_free(a.key);
    free(url);
}

static void drop_client(void *ctx)
{
    (void)ctx;
    e2b_free(client);
    client = NULL;
}

static int fresh(void **state)
{
    (void)state;
    bed_run(bed, make_client, NULL);
    return 0;
}

static int done(void **state)
{
    (void)state;
    bed_run(bed, drop_client, NULL);
    return 0;
}

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
        CASE(test_pages), CASE(test_endless_pages), CASE(test_endless_bytes), CASE(test_repeated_rows),
        CASE(test_failing_page), CASE(test_old_list), CASE(test_no_list), CASE(test_odd_rows),
        CASE(test_a_page_for_an_error),
        CASE(test_get), CASE(test_many_tokens), CASE(test_errors), CASE(test_create), CASE(test_lost_create),
        CASE(test_small_calls), CASE(test_retries), CASE(test_gives_up), CASE(test_cancel),
        CASE(test_free_inside), CASE(test_warm),
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
