/* `cc-tui kill --all --scope account --yes` against a service that stumbles and lies: 250
 * sandboxes, 40 of them paused. Afterwards none is alive, or exactly those that are named;
 * the counts add up; the exit status says whether anything is left. All cases run side by
 * side, each with a service and a home of its own. LONG=1: those that wait for time limits,
 * too. */
#include "../lib/faultproc.h"
#include "../lib/runcmd.h"

#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 250, PAUSED = 40, SOON = 120000 };
#define KEY "E2B_API_KEY=e2b_0123456789abcdef0123456789abcdef01234f2a"
#define DELETE_RULE(what) "{\"rules\":[{\"method\":\"DELETE\"," what "}]}"
/* One list of three pages comes before the deletes. */
#define LIST_RULE(what) "{\"method\":\"GET\",\"path\":\"/v2/sandboxes\",\"skip\":3," what "}"

struct outcome {
    int status;
    int64_t killed, gone, failed, alive, newcomers;
    bool verified;
    int64_t left; /* at the service */
};
struct kase {
    const char *name, *config;
    struct outcome want;
    bool slow;
    int64_t deletes; /* at least; 0 = N */
    const char *says; /* on stderr, NULL = nothing special */
    /* while it runs */
    struct faultd *fake;
    struct runcmd cmd;
};
#define ALL_GONE .want = {.killed = N, .verified = true}
#define LEFT(...) .want = {.status = 3, __VA_ARGS__}

static struct kase kases[] = {
    {.name = "a stable cursor", .config = "{}", ALL_GONE},
    {.name = "an offset cursor", .config = "{\"cursor\":\"offset\"}", ALL_GONE},
    {.name = "one 500", .config = DELETE_RULE("\"times\":1,\"status\":500"), ALL_GONE},
    {.name = "one 429 with Retry-After",
     .config = DELETE_RULE("\"times\":1,\"status\":429,\"retry_after\":\"1\""),
     ALL_GONE},
    {.name = "one 429 without", .config = DELETE_RULE("\"times\":1,\"status\":429"), ALL_GONE},
    {.name = "a false 404",
     .config = DELETE_RULE("\"times\":1,\"status\":404"), ALL_GONE, .deletes = N + 1},
    {.name = "a false 204",
     .config = DELETE_RULE("\"times\":1,\"status\":204"), ALL_GONE, .deletes = N + 1},
    {.name = "a kill that does not hold",
     .config = DELETE_RULE("\"times\":1,\"back_ms\":1"), ALL_GONE,
     .deletes = N + 1},
    {.name = "one that comes back when all seemed gone",
     .config = DELETE_RULE("\"skip\":249,\"times\":1,\"back_ms\":250"),
     ALL_GONE, .deletes = N + 1},
    {.name = "one that comes back twice",
     .config = DELETE_RULE("\"skip\":100,\"times\":2,\"back_ms\":1"), ALL_GONE,
     .deletes = N + 1},
    {.name = "another client creates meanwhile",
     .config = DELETE_RULE("\"skip\":100,\"times\":1,\"spawn\":2"),
     LEFT(.killed = N, .newcomers = 2, .verified = true, .left = 2)},
    {.name = "answers lost", .config = DELETE_RULE("\"times\":3,\"cut\":0"), ALL_GONE},
    {.name = "answers cut off", .config = DELETE_RULE("\"times\":3,\"cut\":12"), ALL_GONE},
    {.name = "good answers cut off",
     .config = DELETE_RULE("\"times\":3,\"status\":200,\"body\":\"0123456789\",\"cut_body\":4,"
                           "\"apply\":true"), ALL_GONE},
    {.name = "silence instead of answers",
     .config = DELETE_RULE("\"times\":3,\"stall\":true"), ALL_GONE},
    {.name = "refused for good", .config = DELETE_RULE("\"skip\":7,\"times\":2,\"status\":403"),
     LEFT(.killed = N - 2, .failed = 2, .verified = true, .left = 2)},
    {.name = "the list fails once afterwards",
     .config = "{\"rules\":[" LIST_RULE("\"times\":1,\"status\":500") "]}",
     ALL_GONE},
    {.name = "the list is empty by mistake",
     .config = "{\"rules\":[{\"method\":\"DELETE\",\"times\":1,\"status\":204},"
     LIST_RULE("\"times\":2,\"status\":200,\"body\":\"[]\"") "]}", ALL_GONE, .deletes = N + 1},
    {.name = "the list is refused for ever afterwards",
     .config = "{\"rules\":[" LIST_RULE("\"status\":401") "]}",
     LEFT(.killed = N), .says = "NOT VERIFIED"},
    {.name = "the old list alone", .config = "{\"v2\":false}",
     LEFT(.killed = N - PAUSED, .left = PAUSED), .says = "running sandboxes only"},
    {.name = "the list fails for ever afterwards",
     .config = "{\"rules\":[" LIST_RULE("\"status\":503") "]}",
     LEFT(.killed = N), .slow = true, .says = "NOT VERIFIED"},
    {.name = "500 for ever", .config = DELETE_RULE("\"path\":\"/sandboxes/ia*\",\"status\":500"),
     LEFT(.killed = -1, .failed = -1, .verified = true, .left = -1), .slow = true},
    {.name = "one that always comes back",
     .config = DELETE_RULE("\"path\":\"/sandboxes/ia*\",\"back_ms\":1"),
     LEFT(.killed = -1, .alive = -1, .verified = true, .left = -1), .slow = true},
    {.name = "silence, and nothing done",
     .config = DELETE_RULE("\"times\":2,\"stall\":true,\"apply\":false"),
     ALL_GONE, .slow = true},
};
enum { KASES = sizeof(kases) / sizeof(kases[0]) };

static bool is_long(void)
{
    const char *v = getenv("LONG");

    return v && *v;
}

static void start(struct kase *k)
{
    static const char *const args[] = {"kill", "--all", "--scope", "account", "--yes", "--json",
                                       NULL};
    const char *with[] = {"--sandboxes", "210", "--paused", "40", "--config", k->config, NULL};
    char *url, *data;
    const char *env[] = {KEY, NULL, NULL, NULL};

    k->fake = faultd_start(with);
    url = xasprintf("E2B_API_URL=%s", faultd_url(k->fake));
    data = xasprintf("E2B_SANDBOX_URL=%s", faultd_url(k->fake));
    env[1] = url;
    env[2] = data;
    runcmd_init(&k->cmd);
    runcmd_start(&k->cmd, args, env);
    free(url);
    free(data);
}

/* What the command said. */
static int64_t count(const struct cJSON *a)
{
    int64_t n = 0;

    for (const struct cJSON *i = json_first(a); i; i = json_next(i))
        n++;
    return n;
}

static void said(struct kase *k, struct outcome *o)
{
    struct cJSON *j = json_parse(buf_str(&k->cmd.text), k->cmd.text.len, NULL);

    if (!json_is_object(j))
        fail_msg("%s: no report: %s%s", k->name, buf_str(&k->cmd.text), buf_str(&k->cmd.talk));
    o->killed = json_i64(j, "killed", -1);
    o->gone = json_i64(j, "alreadyGone", -1);
    o->failed = count(json_get(j, "failed"));
    o->alive = count(json_get(j, "stillAlive"));
    o->newcomers = count(json_get(j, "startedMeanwhile"));
    o->verified = json_bool(j, "verified", false);
    assert_int_equal(count(json_get(j, "protected")), 0);
    assert_int_equal(json_i64(j, "listed", -1), o->killed + o->gone + o->failed + o->alive);
    json_free(j);
}

/* What the service says. */
static void seen(const struct kase *k, struct outcome *o, int64_t *deletes)
{
    char *log = faultd_http(k->fake, "GET", "/_faultd/log", NULL);
    struct cJSON *j = json_parse(log, strlen(log), NULL);

    o->left = json_i64(j, "running", -1) + json_i64(j, "paused", -1);
    *deletes = 0;
    for (const struct cJSON *r = json_first(json_get(j, "requests")); r; r = json_next(r))
        *deletes += str_eq(json_str(r, "method", ""), "DELETE");
    json_free(j);
    free(log);
}

static void same(struct kase *k, const char *what, int64_t want, int64_t got)
{
    if (want != got && want >= 0)
        fail_msg("%s: %s: wanted %lld, got %lld\n%s%s", k->name, what, (long long)want,
                 (long long)got, buf_str(&k->cmd.text), buf_str(&k->cmd.talk));
}

static void test_case(void **state)
{
    struct kase *k = *state;
    struct outcome o = {0};
    int64_t deletes;

    o.status = runcmd_end(&k->cmd, SOON);
    same(k, "exit status", k->want.status, o.status);
    said(k, &o);
    seen(k, &o, &deletes);
    same(k, "killed", k->want.killed, o.killed);
    same(k, "already gone", k->want.gone, o.gone);
    same(k, "failed", k->want.failed, o.failed);
    same(k, "still alive", k->want.alive, o.alive);
    same(k, "newcomers", k->want.newcomers, o.newcomers);
    same(k, "verified", k->want.verified, o.verified);
    same(k, "left at the service", k->want.left, o.left);
    if (k->want.left < 0) /* exactly the named ones */
        assert_int_equal(o.left, o.failed + o.alive + o.newcomers);
    if (k->want.left < 0)
        assert_true(o.left > 0 && o.left < 30);
    assert_true(deletes >= (k->deletes ? k->deletes : k->want.killed));
    if (k->says)
        assert_non_null(strstr(buf_str(&k->cmd.talk), k->says));
}

static int end_case(void **state)
{
    struct kase *k = *state;

    runcmd_end(&k->cmd, 0);
    runcmd_release(&k->cmd);
    faultd_stop(k->fake);
    return 0;
}

/* Started, a delete is out, no answer comes; then that signal. */
static void cut_short(struct runcmd *c, struct faultd *fake, const char *const env[], int sig)
{
    static const char *const kill_them[] = {"kill", "--all", "--scope", "account", "--yes", NULL};
    bool sent = false;

    assert_true(faultd_config(fake, "{\"reset\":true,\"rules\":[{\"method\":\"DELETE\","
                                    "\"stall\":true,\"apply\":false}]}"));
    runcmd_start(c, kill_them, env);
    while (!sent && !runcmd_read(c, 20)) {
        char *log = faultd_http(fake, "GET", "/_faultd/log", NULL);
        sent = log && strstr(log, "DELETE");
        free(log);
    }
    assert_true(sent);
    runcmd_kill(c, sig);
}

/* Who is interrupted says what is not known; a command that ends at once does not say
 * that it finishes what another left. */
static void test_what_is_left_is_told(void **state)
{
    static const char *const serve[] = {"--sandboxes", "6", NULL};
    static const char *const list[] = {"ls", NULL};
    struct faultd *fake = faultd_start(serve);
    char *url = xasprintf("E2B_API_URL=%s", fake ? faultd_url(fake) : "");
    const char *env[] = {KEY, url, NULL};
    struct runcmd c;

    (void)state;
    assert_non_null(fake);
    runcmd_init(&c);
    cut_short(&c, fake, env, SIGINT);
    assert_int_equal(runcmd_end(&c, SOON), 130);
    assert_non_null(strstr(buf_str(&c.talk), "NOT VERIFIED: 0 of 6 deletes were answered"));
    cut_short(&c, fake, env, SIGKILL);
    assert_int_equal(runcmd_end(&c, SOON), 128 + SIGKILL);
    runcmd_start(&c, list, env);
    assert_int_equal(runcmd_end(&c, SOON), 0);
    assert_non_null(strstr(buf_str(&c.talk), "cut short and 6 of its sandboxes are up"));
    assert_null(strstr(buf_str(&c.talk), "finishing"));
    runcmd_release(&c);
    faultd_stop(fake);
    free(url);
}

static int start_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < KASES; i++)
        if (!kases[i].slow || is_long())
            start(&kases[i]);
    return 0;
}

int main(void)
{
    struct CMUnitTest tests[KASES + 1];
    size_t n = 0;

    for (size_t i = 0; i < KASES; i++)
        if (!kases[i].slow || is_long())
            tests[n++] = (struct CMUnitTest){kases[i].name, test_case, NULL, end_case, &kases[i]};
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_what_is_left_is_told);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return _cmocka_run_group_tests("kill all", tests, n, start_all, NULL);
}
