/* The facade with a key, against a scripted control plane: who is in force, creates whose
 * answer is lost, the words of the service. */
#include "../lib/statebed.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void serve(const char *sandboxes, const char *paused, const char *key)
{
    const char *args[] = {"--sandboxes", sandboxes, "--paused", paused, "--key", key, NULL};

    if (!key)
        args[4] = NULL;
    statebed_fake = faultd_serve(args);
    setenv("E2B_API_KEY", APPBED_KEY, 1);
}

static void open_app(struct appbed *b)
{
    struct app_opts o = {.follow_all = true, .poll_ms = 200};

    appbed_open(b, &o);
}

static const struct model *model(const struct appbed *b)
{
    return app_model(b->app);
}

static bool link_is(struct appbed *b, const void *st)
{
    return model(b)->link == *(const enum link_state *)st;
}

static bool has_rows(struct appbed *b, const void *n)
{
    return model(b)->n_sandboxes == *(const size_t *)n;
}

/* --- the key -------------------------------------------------------------------- */

static void test_wrong_key(void **state)
{
    struct appbed *b = *state;
    enum link_state auth = LINK_AUTH;
    struct app_create c = {.tool = "shell"};

    serve("1", "0", "e2b_another");
    open_app(b);
    assert_true(appbed_wait(b, link_is, &auth));
    assert_non_null(strstr(model(b)->account, "****4f2a (environment)"));
    assert_non_null(strstr(model(b)->link_text, "****4f2a"));
    assert_non_null(strstr(model(b)->link_text, "E2B_API_KEY"));
    assert_null(strstr(model(b)->link_text, "0123456789abcdef"));
    assert_null(getenv("E2B_API_KEY"));
    assert_int_equal(appbed_finish(b, app_refresh(b->app)), ERR_AUTH);
    assert_int_equal(appbed_finish(b, app_create(b->app, &c, false)), ERR_AUTH);
    assert_int_equal(appbed_finish(b, app_kill_all_open(b->app, true)), ERR_AUTH);
    assert_int_equal(model(b)->kill->phase, KILL_CANNOT);
    appbed_close(b);
}

static void test_no_key(void **state)
{
    struct appbed *b = *state;
    enum link_state auth = LINK_AUTH;

    serve("0", "0", APPBED_KEY);
    unsetenv("E2B_API_KEY");
    open_app(b);
    assert_true(appbed_wait(b, link_is, &auth));
    assert_non_null(strstr(model(b)->link_text, "E2B_API_KEY"));
    assert_non_null(strstr(model(b)->link_text, "--local"));
    appbed_close(b);
}

/* --- the link ------------------------------------------------------------------- */

static void answer_lists_with(const char *what)
{
    char *json = xasprintf("{\"rules\":[{\"method\":\"GET\",\"path\":\"/v2/sandboxes\",%s}]}",
                           what);

    assert_true(faultd_config(statebed_fake, json));
    free(json);
}

static void test_link(void **state)
{
    struct appbed *b = *state;
    enum link_state down = LINK_DOWN, limited = LINK_LIMITED, ok = LINK_OK;
    size_t n = 5;

    serve("3", "2", APPBED_KEY);
    open_app(b);
    assert_true(appbed_wait(b, has_rows, &n));
    answer_lists_with("\"status\":503");
    assert_true(appbed_wait(b, link_is, &down));
    assert_non_null(model(b)->link_text);
    answer_lists_with("\"status\":429,\"retry_after\":\"1\"");
    assert_true(appbed_wait(b, link_is, &limited));
    assert_true(faultd_config(statebed_fake, "{\"rules\":[]}"));
    assert_true(appbed_wait(b, link_is, &ok));
    assert_null(model(b)->link_text);
    assert_int_equal(model(b)->total_running, 3);
    appbed_close(b);
}

static bool some_unlisted(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->sandboxes[0].unlisted;
}

static bool all_listed(struct appbed *b, const void *arg)
{
    (void)arg;
    for (size_t i = 0; i < model(b)->n_sandboxes; i++)
        if (model(b)->sandboxes[i].unlisted || model(b)->sandboxes[i].state == SB_KILLED)
            return false;
    return true;
}

/* A service that forgets everything for a moment takes nothing away from us. */
static void test_empty_list(void **state)
{
    struct appbed *b = *state;
    size_t n = 5;

    serve("3", "2", APPBED_KEY);
    open_app(b);
    assert_true(appbed_wait(b, has_rows, &n));
    answer_lists_with("\"status\":200,\"body\":\"[]\",\"times\":2");
    assert_true(appbed_wait(b, some_unlisted, NULL));
    assert_true(appbed_wait(b, all_listed, NULL));
    appbed_close(b);
}

static void test_readonly(void **state)
{
    struct appbed *b = *state;
    struct app_opts o = {.poll_ms = 200, .readonly = true};
    struct app_create c = {.tool = "shell"};
    size_t n = 1;

    serve("1", "0", APPBED_KEY);
    appbed_open(b, &o);
    assert_true(appbed_wait(b, has_rows, &n));
    assert_int_equal(appbed_finish(b, app_create(b->app, &c, false)), ERR_PERM);
    assert_int_equal(appbed_finish(b, app_kill(b->app, model(b)->sandboxes[0].id)), ERR_PERM);
    assert_int_equal(appbed_finish(b, app_kill_all_open(b->app, true)), ERR_PERM);
    assert_int_equal(faultd_left(statebed_fake), 1);
    appbed_close(b);
}

/* --- creates -------------------------------------------------------------------- */

/* The VM was made, its answer was not heard: found by its mark, made only once. It cannot
 * be reached then, so the agent's start fails and the row says that a VM is up. */
static bool first_failed(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->n_sandboxes == 1 && model(b)->sandboxes[0].state == SB_ERROR &&
           model(b)->sandboxes[0].vm_up;
}

static void test_lost_answer(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "lost"};

    serve("0", "0", APPBED_KEY);
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"method\":\"POST\",\"path\":\"/sandboxes\","
                                    "\"cut\":0},"
                                    "{\"path\":\"/process.Process/*\",\"status\":502},"
                                    "{\"path\":\"/files\",\"status\":502}]}"));
    open_app(b);
    assert_int_not_equal(appbed_finish(b, app_create(b->app, &c, true)), 0);
    assert_true(appbed_wait(b, first_failed, NULL));
    assert_string_equal(model(b)->sandboxes[0].name, "lost");
    assert_int_equal(faultd_left(statebed_fake), 1);
    appbed_must(b, app_kill(b->app, model(b)->sandboxes[0].id));
    assert_int_equal(faultd_left(statebed_fake), 0);
    appbed_close(b);
}

static bool has_one(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->n_sandboxes == 1;
}

/* An answer that leaves open what became of a pause or a resume: what is said of it is what
 * the sandbox says, not what the answer lacked. */
static void test_unsure_pause(void **state)
{
    static const char *const odd[] = {"\"status\":409,\"apply\":true", "\"cut\":0",
                                      "\"status\":502,\"apply\":true"};
    struct appbed *b = *state;
    uint64_t id;
    char rule[200];

    serve("1", "0", APPBED_KEY);
    open_app(b);
    assert_true(appbed_wait(b, has_one, NULL));
    id = model(b)->sandboxes[0].id;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        snprintf(rule, sizeof(rule), "{\"rules\":[{\"method\":\"POST\",%s}]}", odd[i]);
        assert_true(faultd_config(statebed_fake, rule));
        appbed_must(b, app_pause(b->app, id));
        assert_int_equal(model_sandbox(model(b), id)->state, SB_PAUSED);
        appbed_must(b, app_resume(b->app, id, 900));
        assert_int_equal(model_sandbox(model(b), id)->state, SB_RUNNING);
    }
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"method\":\"POST\",\"status\":409}]}"));
    assert_int_equal(appbed_finish(b, app_pause(b->app, id)), ERR_CONFLICT);
    assert_int_equal(model_sandbox(model(b), id)->state, SB_RUNNING);
    appbed_close(b);
}

static bool made(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->n_sandboxes == 1 && faultd_left(statebed_fake) == 1;
}

static bool found_again(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->n_sandboxes == 1 && model(b)->sandboxes[0].sandbox_id &&
           model(b)->sandboxes[0].state == SB_RUNNING;
}

/* We ended between the POST and its answer: the next life finds its own by the mark. */
static void test_interrupted_create(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "mine"};

    serve("0", "0", APPBED_KEY);
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"method\":\"POST\",\"path\":\"/sandboxes\","
                                    "\"delay_ms\":3000},{\"method\":\"GET\",\"path\":\"/v2/*\","
                                    "\"status\":503,\"times\":100}]}"));
    open_app(b);
    app_create(b->app, &c, false);
    assert_true(appbed_wait(b, made, NULL));
    assert_null(model(b)->sandboxes[0].sandbox_id);
    appbed_close(b);
    assert_true(faultd_config(statebed_fake, "{\"rules\":[]}"));
    setenv("E2B_API_KEY", APPBED_KEY, 1);
    open_app(b);
    assert_true(appbed_wait(b, found_again, NULL));
    assert_string_equal(model(b)->sandboxes[0].name, "mine");
    assert_false(model(b)->sandboxes[0].foreign);
    appbed_must(b, app_kill(b->app, model(b)->sandboxes[0].id));
    assert_int_equal(faultd_left(statebed_fake), 0);
    appbed_close(b);
}

static void test_refused_create(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "no"};

    serve("0", "0", APPBED_KEY);
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"method\":\"POST\",\"path\":\"/sandboxes\","
                                    "\"status\":400}]}"));
    open_app(b);
    assert_int_not_equal(appbed_finish(b, app_create(b->app, &c, true)), 0);
    assert_int_equal(model(b)->sandboxes[0].state, SB_ERROR);
    assert_false(model(b)->sandboxes[0].vm_up);
    appbed_must(b, app_forget(b->app, model(b)->sandboxes[0].id));
    assert_int_equal(model(b)->n_sandboxes, 0);
    appbed_close(b);
}

/* --- two accounts --------------------------------------------------------------- */

#define OTHER_KEY "e2b_fedcba9876543210fedcba9876543210fedcba98"

static void open_with(struct appbed *b, const char *key)
{
    setenv("E2B_API_KEY", key, 1);
    open_app(b);
    appbed_must(b, app_refresh(b->app));
}

/* What another account's list does not name has not ended. */
static void test_two_accounts(void **state)
{
    struct appbed *b = *state;
    size_t n = 2;
    uint64_t id;

    serve("2", "0", NULL); /* takes any key */
    open_with(b, APPBED_KEY);
    assert_int_equal(model(b)->n_sandboxes, 2);
    id = model(b)->sandboxes[0].id;
    appbed_close(b);
    answer_lists_with("\"status\":200,\"body\":\"[]\"");
    open_with(b, OTHER_KEY);
    for (int i = 0; i < 3; i++)
        appbed_must(b, app_refresh(b->app));
    assert_int_equal(model(b)->n_sandboxes, 0);
    appbed_close(b);
    answer_lists_with("\"status\":503"); /* what is seen now is what was kept */
    setenv("E2B_API_KEY", APPBED_KEY, 1);
    open_app(b);
    assert_true(appbed_wait(b, has_rows, &n));
    assert_int_equal(model(b)->sandboxes[0].state, SB_RUNNING);
    appbed_close(b);
    assert_true(faultd_config(statebed_fake, "{\"rules\":[]}"));
    open_with(b, OTHER_KEY); /* a new key of the same account: they are the same rows */
    assert_int_equal(model(b)->n_sandboxes, 2);
    assert_int_equal(model(b)->sandboxes[0].id, id);
    appbed_close(b);
}

/* --- foreign text --------------------------------------------------------------- */

/* Sequences in 7 and 8 bits, a bell, an order to write from right to left. */
#define EVIL "\\u001b]0;t\\u0007\\u009b31mred\\u202egnp\\nend"
#define EVIL_BOX "{\"sandboxID\":\"iabc\",\"templateID\":\"" EVIL "\",\"alias\":\"" EVIL "\"," \
                 "\"state\":\"running\",\"startedAt\":\"2030-01-01T00:00:00Z\"," \
                 "\"endAt\":\"2030-01-01T01:00:00Z\",\"metadata\":{\"k\":\"" EVIL "\"}}"

static void answer_with(const char *method, const char *path, int status, const char *body)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_arr(&w, "rules");
    jw_obj(&w, NULL);
    jw_str(&w, "method", method);
    jw_str(&w, "path", path);
    jw_i64(&w, "status", status);
    jw_str(&w, "body", body);
    jw_end(&w);
    jw_end(&w);
    jw_end(&w);
    assert_true(faultd_config(statebed_fake, buf_str(&b)));
    buf_release(&b);
}

static void assert_plain(const char *s)
{
    assert_non_null(s);
    for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
        assert_true(*p >= ' ' && *p != 0x7f);
        assert_false(p[0] == 0xc2 && p[1] < 0xa0);
    }
    assert_null(strstr(s, "\xe2\x80\xae"));
    assert_non_null(strstr(s, "end")); /* it is that text */
}

static void test_words_of_refusals(void **state)
{
    static const char body[] = "{\"code\":403,\"message\":\"" EVIL "\"}";
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "no"};

    serve("1", "0", APPBED_KEY);
    answer_with("POST", "/sandboxes", 403, body);
    open_app(b);
    assert_int_not_equal(appbed_finish(b, app_create(b->app, &c, true)), 0);
    assert_plain(b->err.text);
    for (size_t i = 0; i < model(b)->n_sandboxes; i++)
        if (model(b)->sandboxes[i].state == SB_ERROR)
            assert_plain(model(b)->sandboxes[i].reason);
    appbed_must(b, app_refresh(b->app));
    answer_with("DELETE", "/sandboxes/*", 403, body);
    appbed_must(b, app_kill_all_open(b->app, true));
    assert_int_not_equal(appbed_finish(b, app_kill_all_confirm(b->app, true, 1)), 0);
    assert_int_equal(model(b)->kill->failed, 1);
    assert_plain(model(b)->kill->v[0].reason);
    answer_with("GET", "/v2/sandboxes", 403, body);
    assert_int_not_equal(appbed_finish(b, app_kill_all_open(b->app, true)), 0);
    assert_int_equal(model(b)->kill->phase, KILL_CANNOT);
    assert_plain(model(b)->kill->text);
    appbed_close(b);
}

static void test_words_of_rows(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "made"};
    size_t one = 1;

    serve("0", "0", APPBED_KEY);
    answer_with("GET", "/v2/sandboxes", 200, "[" EVIL_BOX "]");
    open_app(b);
    assert_true(appbed_wait(b, has_rows, &one));
    assert_plain(model(b)->sandboxes[0].template_id);
    assert_plain(model(b)->sandboxes[0].alias);
    assert_plain(model(b)->sandboxes[0].meta[0].v);
    appbed_close(b);
    setenv("E2B_API_KEY", APPBED_KEY, 1);
    answer_with("POST", "/sandboxes", 201, EVIL_BOX);
    open_app(b);
    appbed_finish(b, app_create(b->app, &c, false));
    for (size_t i = 0; i < model(b)->n_sandboxes; i++)
        if (str_eq(model(b)->sandboxes[i].name, "made"))
            assert_plain(model(b)->sandboxes[i].template_id);
    appbed_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_wrong_key, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_no_key, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_link, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_empty_list, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_readonly, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_lost_answer, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_unsure_pause, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_interrupted_create, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_refused_create, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_two_accounts, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_words_of_refusals, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_words_of_rows, appbed_setup, statebed_teardown),
    };

    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
