/* Calls that change something, over a service that loses answers, breaks connections and
 * says no: whatever happens, an action is one POST, a message is taken once.
 *
 *   CALLS=10000 build/release/tests/e2e/test_chaos_posts     more calls (default 60)
 *   SEED=7 ...                                               other accidents */
#include "../lib/chaosbed.h"
#include "../lib/sidebyside.h"

#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEY "e2b_0123456789abcdef0123456789abcdef01234f2a"
#define CALLS 60
#define ROWS 20
#define WAVE 25

/* What goes wrong with a call that changes something, in percent; `done` and `not_done`
 * tell whether the service did it all the same. */
static const char done[] =
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":7,\"cut\":0},"
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":7,\"rst\":true},"
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":7,\"rst_stream\":true},"
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":7,\"cut_body\":9},"
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":6,\"status\":500,\"apply\":true},"
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":6,\"status\":503,\"apply\":true},"
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":4,\"goaway\":true},"
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":4,\"delay_ms\":200},";
static const char not_done[] =
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":6,\"status\":503},"
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":6,\"status\":502},"
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":3,\"status\":429},"
    "{\"method\":\"POST\",\"path\":\"%s\",\"percent\":3,\"apply\":false,\"cut\":0},";

static struct faultd *fake;
static int calls, seed, posts, doubled;
static struct map *seen;  /* action -> times posted */
static struct map *meant; /* the same for what was asked for more than once */

static int number(const char *name, int fallback)
{
    const char *v = getenv(name);
    int64_t n;

    return v && str_to_i64(v, 1, 10000000, &n) ? (int)n : fallback;
}

/* --- the service ----------------------------------------------------------------- */

static void add_rules(struct buf *b, const char *rules, const char *path)
{
    const char *next;

    for (; (next = strstr(rules, "%s")); rules = next + 2) {
        buf_add(b, rules, (size_t)(next - rules));
        buf_adds(b, path);
    }
    buf_adds(b, rules);
}

/* A create that came to nothing is looked for during half a minute: only in long runs. */
static void arm(int wave)
{
    struct buf b = BUF_INIT;

    buf_addf(&b, "{\"seed\":%d,\"rules\":[", seed * 10007 + wave);
    add_rules(&b, done, "/sandboxes*");
    add_rules(&b, not_done, calls > CALLS ? "/sandboxes*" : "/sandboxes/*");
    buf_adds(&b, "{\"method\":\"GET\",\"path\":\"/v2/sandboxes\",\"percent\":10,\"status\":503}]}");
    assert_true(faultd_config(fake, buf_str(&b)));
    buf_release(&b);
}

static void saw(const char *action)
{
    uintptr_t n = (uintptr_t)map_get(seen, action) + 1;

    posts++;
    map_put(seen, action, (void *)n);
}

/* What the action was: its path, and what its body has that no other one has. */
static void take_entry(const struct cJSON *e)
{
    const char *path = json_str(e, "path", ""), *body = json_str(e, "body", "");
    struct cJSON *j;
    char *key;

    if (!str_eq(json_str(e, "method", ""), "POST") || !str_starts(path, "/sandboxes"))
        return;
    if (str_eq(path, "/sandboxes")) {
        if (json_i64(e, "status", 0) == 429)
            return; /* refused before anything was done: may be asked again */
        j = json_parse(body, strlen(body), NULL);
        key = xasprintf("create %s", json_str(json_get(j, "metadata"), "cc-tui-mark",
                                              json_str(json_get(j, "metadata"), "cc-tui-session", "")));
        json_free(j);
    } else {
        key = xasprintf("%s %s", path, body);
    }
    saw(key);
    free(key);
}

static void read_log(void)
{
    char *text = faultd_http(fake, "GET", "/_faultd/log", "");
    struct cJSON *j;

    assert_non_null(text);
    j = json_parse(text, strlen(text), NULL);
    for (const struct cJSON *e = json_first(json_get(j, "requests")); e; e = json_next(e))
        take_entry(e);
    json_free(j);
    free(text);
}

static void count_doubles(void)
{
    const char *key;
    size_t it = 0;
    void *n;

    while ((n = map_next(seen, &it, &key, NULL))) {
        uintptr_t wanted = (uintptr_t)map_get(meant, key);

        if ((uintptr_t)n <= (wanted ? wanted : 1))
            continue;
        doubled++;
        print_error("# %d times: %.200s\n", (int)(uintptr_t)n, key);
    }
}

/* --- life ------------------------------------------------------------------------ */

static int setup(void **state)
{
    const char *args[] = {"--key", KEY, "--sandboxes", "20", NULL};
    struct appbed *b = appbed_new();
    struct app_opts o = {.poll_ms = 300, .follow_all = true, .keepalive_s = 1};

    fake = faultd_start_tls(args);
    setenv("HOME", b->root, 1);
    setenv("E2B_API_URL", faultd_url(fake), 1);
    setenv("E2B_SANDBOX_URL", faultd_url(fake), 1);
    setenv("E2B_API_KEY", KEY, 1);
    setenv("SSL_CERT_FILE", faultd_ca(fake), 1);
    seen = map_new();
    meant = map_new();
    posts = doubled = 0;
    appbed_open(b, &o);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    appbed_free(*state);
    faultd_stop(fake);
    map_free(seen, NULL);
    map_free(meant, NULL);
    return 0;
}

static bool has_rows(struct appbed *b, const void *n)
{
    return app_model(b->app)->n_sandboxes >= *(const size_t *)n;
}

static bool wave_ended(struct appbed *b, const void *arg)
{
    const uint64_t *req = arg; /* ends with 0 */

    for (; *req; req++)
        if (!b->ended[*req])
            return false;
    return true;
}

/* --- timeouts, pauses, resumes, creates ------------------------------------------ */

static uint64_t one_action(struct appbed *b, int k)
{
    const struct model *m = app_model(b->app);
    const struct sandbox *r = &m->sandboxes[k % (int)m->n_sandboxes];
    struct app_create c = {.tool = "shell", .timeout_s = 600};
    char name[32], *key;

    if (k % WAVE == 0) {
        snprintf(name, sizeof(name), "made-%d", k);
        c.name = name;
        return app_create(b->app, &c, false);
    }
    if (r->pending || !r->sandbox_id)
        return 0;
    if (r->state == SB_PAUSED)
        return app_resume(b->app, r->id, 3600 + k); /* no two are the same */
    if (r->state != SB_RUNNING)
        return 0;
    if (k % 7 != 0)
        return app_set_timeout(b->app, r->id, 3600 + k);
    key = xasprintf("/sandboxes/%s/pause {}", r->sandbox_id);
    map_put(meant, key, (void *)((uintptr_t)map_get(meant, key) + 1));
    free(key);
    return app_pause(b->app, r->id);
}

static void test_an_action_is_one_post(void **state)
{
    struct appbed *b = *state;
    ARR(uint64_t) creates = ARR_INIT;
    size_t rows = ROWS;
    int made = 0, k = 0; /* a row that is busy or gone makes no call */

    assert_true(appbed_wait(b, has_rows, &rows));
    for (int wave = 0; made < calls; wave++) {
        uint64_t req[WAVE + 1] = {0}, create;
        int n = 0;

        arm(wave);
        create = one_action(b, k++);
        made++;
        *ARR_PUSH(&creates) = create;
        /* on a connection that others break it may come to nothing, see arm() */
        if (calls <= CALLS)
            appbed_finish(b, create);
        for (int i = 1; i < WAVE; i++)
            if ((req[n] = one_action(b, k++)))
                n++;
        made += n;
        assert_true(appbed_wait(b, wave_ended, req));
    }
    for (size_t i = 0; i < creates.n; i++)
        appbed_finish(b, creates.v[i]);
    ARR_RELEASE(&creates);
    read_log();
    count_doubles();
    printf("# %d actions, %d POSTs, %d more than once\n", made, posts, doubled);
    assert_int_equal(doubled, 0);
    assert_true(posts > made / 4);
    appbed_close(b);
}

/* --- messages -------------------------------------------------------------------- */

/* On the way to the agent: the upload, the move, the line that wakes the keeper. */
static void arm_messages(struct chaosbed *b, int wave)
{
    static const char *const paths[] = {"/files", "/filesystem.Filesystem/*",
                                        "/process.Process/SendInput"};
    struct buf json = BUF_INIT;

    buf_addf(&json, "{\"reset\":true,\"seed\":%d,\"rules\":[", seed * 20011 + wave);
    for (size_t i = 0; i < 3; i++) {
        add_rules(&json, done, paths[i]);
        add_rules(&json, not_done, paths[i]);
    }
    buf_adds(&json, "{\"path\":\"/process.Process/Start\",\"percent\":5,\"status\":503}]}");
    assert_true(faultd_config(b->fake, buf_str(&json)));
    buf_release(&json);
}

static int count_posts(struct chaosbed *b)
{
    char *text = faultd_http(b->fake, "GET", "/_faultd/log", "");
    struct cJSON *j;
    int n = 0;

    assert_non_null(text);
    j = json_parse(text, strlen(text), NULL);
    for (const struct cJSON *e = json_first(json_get(j, "requests")); e; e = json_next(e))
        n += str_eq(json_str(e, "method", ""), "POST") &&
             !str_starts(json_str(e, "path", ""), "/sandboxes");
    json_free(j);
    free(text);
    return n;
}

static void test_a_message_is_taken_once(void **state)
{
    struct app_opts o = {.follow_all = true, .poll_ms = 300, .keepalive_s = 1};
    int messages = calls / 30, sent = 0, n_posts = 0;
    struct err e = {0};
    struct chaosbed *b;
    (void)state;

    if (!chaosbed_tls_possible())
        skip();
    b = chaosbed_new(true, &o, &e);
    if (!b || !chaosbed_session(b, &e))
        fail_msg("%s", e.text);
    for (int wave = 0; sent < messages; wave++) {
        uint64_t req[10];
        int n = 0, first = sent;

        arm_messages(b, wave);
        for (; n < 10 && sent < messages; n++, sent++) {
            char text[32];

            snprintf(text, sizeof(text), "emit m%d 1", sent);
            req[n] = app_send(b->app->app, b->row, text, true);
        }
        if (!chaosbed_ended(b, req, (size_t)n, 300000, &e) && (chaosbed_explain(b, wave), true))
            fail_msg("%s", e.text);
        n_posts += count_posts(b);
        assert_true(faultd_config(b->fake, "{\"rules\":[]}"));
        if (!chaosbed_read(b, &e) || !chaosbed_same(b, &e))
            fail_msg("%s", e.text);
        for (int i = first; i < sent; i++) {
            char tag[16];

            snprintf(tag, sizeof(tag), "m%d", i);
            if (!chaosbed_lines(b, tag, 1, &e))
                fail_msg("%s", e.text);
        }
    }
    printf("# %d messages in %d POSTs, none taken twice\n", messages, n_posts);
    chaosbed_free(b);
}

static int run_group(int i)
{
    const struct CMUnitTest actions[] = {
        cmocka_unit_test_setup_teardown(test_an_action_is_one_post, setup, teardown),
    };
    const struct CMUnitTest message[] = {
        cmocka_unit_test(test_a_message_is_taken_once),
    };

    appbed_main();
    return i == 0 ? cmocka_run_group_tests(actions, NULL, NULL)
                  : cmocka_run_group_tests(message, NULL, NULL);
}

int main(void)
{
    calls = number("CALLS", CALLS);
    seed = number("SEED", 1);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return side_by_side(2, run_group);
}
