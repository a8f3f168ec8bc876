/* What a form is told before a sandbox is made, and several of a kind: templates with and
 * without a finished build, keys as they are opened, presets, creates a second apart. */
#include "../lib/appbed.h"
#include "../lib/miniserver.h"

#include <cct/model/model.h>
#include <cct/model/project.h>
#include <cct/secrets/secret.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEY "sk-ant-api03-0123456789abcdef01239f21"

/* The service; read after mini_sync(). */
static struct {
    struct mini *srv;
    int creates;
    int64_t at[8];     /* of each create */
    char body[8][400];
} svc;

static const char templates[] =
    "[{\"templateID\":\"t1\",\"names\":[\"team/claude\"],\"buildID\":\"b1\",\"buildStatus\":\"ready\","
    "\"cpuCount\":2,\"memoryMB\":1024},"
    "{\"templateID\":\"t2\",\"names\":[\"team/next\"],\"buildStatus\":\"building\"},"
    "{\"templateID\":\"t3\",\"names\":[\"team/bad\"],\"buildStatus\":\"error\",\"buildCount\":1},"
    "{\"templateID\":\"t4\",\"names\":[],\"buildID\":\"b4\",\"buildStatus\":\"error\",\"buildCount\":3,"
    "\"spawnCount\":7}]";

static void create(struct mini_conn *c, const struct mini_req *r)
{
    int i = svc.creates++ % 8;

    svc.at[i] = clock_mono_ms();
    snprintf(svc.body[i], sizeof(svc.body[i]), "%.*s", (int)r->len, r->body);
    mini_reply(c, 400, "", i == 1 ? "{\"code\":400,\"message\":\"no room for this one\"}"
                                  : "{\"code\":400,\"message\":\"refused\"}");
}

static void handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    (void)ctx;
    if (str_starts(r->path, "/v2/templates"))
        mini_reply(c, 200, "", templates);
    else if (str_starts(r->path, "/v2/sandboxes?"))
        mini_reply(c, 200, "", "[]");
    else if (str_eq(r->path, "/sandboxes") && str_eq(r->method, "POST"))
        create(c, r);
    else
        mini_reply(c, 404, "", "404 page not found");
}

static int setup(void **state)
{
    struct appbed *b = appbed_new();
    char *url;

    memset(&svc, 0, sizeof(svc));
    svc.srv = mini_start(handler, NULL);
    mini_sync(svc.srv);
    url = mini_url(svc.srv, "");
    appbed_service(b, url);
    free(url);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    appbed_free(*state);
    mini_stop(svc.srv);
    return 0;
}

static void open_app(struct appbed *b)
{
    struct app_opts o = {.follow_all = true, .poll_ms = 200};

    appbed_open(b, &o);
}

/* --- templates -------------------------------------------------------------------------- */

static bool templates_known(struct appbed *b, const void *arg)
{
    (void)arg;
    return app_template_list(b->app)->known;
}

static bool link_ok(struct appbed *b, const void *arg)
{
    (void)arg;
    return app_model(b->app)->link == LINK_OK;
}

static void test_templates_with_a_finished_build(void **state)
{
    struct appbed *b = *state;
    const struct app_templates *t;

    open_app(b);
    assert_true(appbed_wait(b, link_ok, NULL));
    app_prepare(b->app);
    assert_true(appbed_wait(b, templates_known, NULL));
    t = app_template_list(b->app);
    assert_int_equal(t->n, 4);
    assert_int_equal(t->n_ready, 2);
    assert_int_equal(t->n_building, 1);
    assert_int_equal(t->n_failed, 1);
    assert_true(app_template_find(b->app, "claude")->ready);
    assert_int_equal(app_template_find(b->app, "t1")->memory_mb, 1024);
    assert_false(app_template_find(b->app, "next")->ready);
    assert_false(app_template_find(b->app, "bad")->ready);
    assert_true(app_template_find(b->app, "t4")->ready); /* by an older build */
    assert_null(app_template_find(b->app, "else"));
}

/* --- keys -------------------------------------------------------------------------------- */

static struct app_key_look look(struct appbed *b)
{
    struct app_key_look k;

    app_key_look(b->app, "claude", NULL, NULL, &k);
    return k;
}

static bool key_is(struct appbed *b, const void *state)
{
    return look(b).state == *(const enum app_key_state *)state;
}

static void test_a_key_is_opened_before(void **state)
{
    struct appbed *b = *state;
    enum app_key_state good = APP_KEY_GOOD, bad = APP_KEY_BAD;
    struct kv given[] = {{(char[]){"ANTHROPIC_API_KEY"}, (char[]){"mine"}}, {NULL, NULL}};
    struct app_key_look k;
    struct app_create c = {.tool = "claude"};
    const char *field = NULL;
    struct err e = {0};
    char *conf, *away;

    open_app(b);
    assert_true(appbed_wait(b, link_ok, NULL));
    k = look(b);
    assert_int_equal(k.state, APP_KEY_BAD);
    assert_non_null(strstr(k.text, "keys add anthropic"));
    assert_int_equal(app_check_create(b->app, &c, &field, &e), ERR_AUTH);
    assert_string_equal(field, "key");
    appbed_must(b, app_key_add(b->app, "anthropic", false, secret_new(KEY, strlen(KEY))));
    assert_true(appbed_wait(b, key_is, &good));
    assert_non_null(strstr(look(b).text, "anthropic ****9f21 (user key)"));
    app_key_look(b->app, "claude", NULL, given, &k);
    assert_true(k.hides);
    assert_non_null(strstr(k.text, "****9f21 (user key)"));
    app_key_look(b->app, "shell", NULL, NULL, &k);
    assert_int_equal(k.state, APP_KEY_NONE);
    app_repo_key_look(b->app, "acme/web", NULL, &k);
    assert_int_equal(k.state, APP_KEY_GOOD);
    assert_non_null(strstr(k.text, "public ones"));
    app_repo_key_look(b->app, "https://gitlab.example/a/b", NULL, &k);
    assert_int_equal(k.state, APP_KEY_NONE);
    appbed_close(b);

    conf = appbed_path(b, "conf");
    away = appbed_path(b, "away");
    assert_int_equal(rename(conf, away), 0);
    setenv("E2B_API_KEY", "e2b_0123456789abcdef0123456789abcdef01234f2a", 1); /* it was taken */
    open_app(b);
    assert_true(appbed_wait(b, link_ok, NULL));
    assert_true(appbed_wait(b, key_is, &bad));
    k = look(b);
    if (!strstr(k.text, "anthropic key ****9f21 (user key) cannot be used"))
        fail_msg("%s", k.text);
    assert_int_equal(app_check_create(b->app, &c, &field, &e), ERR_AUTH);
    mini_sync(svc.srv);
    assert_int_equal(svc.creates, 0);
    free(conf);
    free(away);
}

/* --- files ---------------------------------------------------------------------------------- */

static bool files_known(struct appbed *b, const void *arg)
{
    return app_look_at_files(b->app, arg, false);
}

static char *write_env(struct appbed *b, const char *text)
{
    char *path = appbed_path(b, "one.env");
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* Nothing is read while the form asks: the answer comes as a message, and counts for what the
 * form checks. A file that changed is read again. */
static void test_files_are_read_aside(void **state)
{
    struct appbed *b = *state;
    char *path = write_env(b, "OTHER=1\n");
    struct app_create c = {.tool = "gemini", .env_file = path}, none = {.tool = "gemini"};
    struct app_key_look k, repo;
    const char *field = NULL;
    struct err e = {0};

    open_app(b);
    assert_true(appbed_wait(b, link_ok, NULL));
    assert_true(app_look_at_files(b->app, &none, true)); /* it names none */
    assert_false(app_look_at_files(b->app, &c, false));
    app_create_keys(b->app, &c, &k, &repo);
    assert_int_equal(k.state, APP_KEY_ASKING); /* the file may have it */
    assert_int_equal(app_check_create(b->app, &c, &field, &e), 0);
    assert_true(appbed_wait(b, files_known, &c));
    app_create_keys(b->app, &c, &k, &repo);
    assert_int_equal(k.state, APP_KEY_BAD);
    assert_int_equal(app_check_create(b->app, &c, &field, &e), ERR_AUTH);
    assert_string_equal(field, "key");
    free(write_env(b, "GEMINI_API_KEY=x\n"));
    assert_false(app_look_at_files(b->app, &c, true));
    assert_true(appbed_wait(b, files_known, &c));
    app_create_keys(b->app, &c, &k, &repo);
    assert_int_equal(k.state, APP_KEY_GOOD);
    assert_non_null(strstr(k.text, "GEMINI_API_KEY is given"));
    err_clear(&e);
    assert_int_equal(app_check_create(b->app, &c, &field, &e), 0);
    free(write_env(b, "nonsense\n"));
    assert_false(app_look_at_files(b->app, &c, true));
    assert_true(appbed_wait(b, files_known, &c));
    assert_true(app_check_create(b->app, &c, &field, &e) != 0);
    assert_string_equal(field, "env_file");
    assert_non_null(strstr(e.text, "one.env:1:"));
    free(path);
}

/* What nobody looked at before is met by the create itself, and nothing is made. */
static void test_files_of_a_create(void **state)
{
    struct appbed *b = *state;
    static const char *const skills[] = {"/nowhere/skill", NULL};
    char *path = write_env(b, "OTHER=1\n");
    struct app_create c = {.tool = "gemini", .env_file = path, .copies = 2};
    struct app_create s = {.tool = "claude", .skills = skills,
                           .env = (struct kv[]){{(char[]){"ANTHROPIC_API_KEY"}, (char[]){"x"}},
                                                {NULL, NULL}}};
    uint64_t reqs[APP_COPIES_MAX];

    open_app(b);
    assert_true(appbed_wait(b, link_ok, NULL));
    assert_int_equal(app_create_copies(b->app, &c, true, reqs), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(appbed_finish(b, reqs[i]), ERR_AUTH);
        assert_non_null(strstr(b->err.text, "GEMINI_API_KEY"));
    }
    assert_true(appbed_finish(b, app_create(b->app, &s, true)) != 0);
    assert_non_null(strstr(b->err.text, "/nowhere/skill"));
    mini_sync(svc.srv);
    assert_int_equal(svc.creates, 0);
    free(write_env(b, "GEMINI_API_KEY=from-the-file\n"));
    assert_int_equal(app_create_copies(b->app, &c, true, reqs), 2);
    for (int i = 0; i < 2; i++)
        appbed_finish(b, reqs[i]);
    mini_sync(svc.srv);
    assert_int_equal(svc.creates, 2);
    for (int i = 0; i < 2; i++)
        assert_non_null(strstr(svc.body[i], "\"GEMINI_API_KEY\":\"from-the-file\""));
    (void)app_look_at_files(b->app, &c, true); /* the app may end while it reads */
    free(path);
}

/* --- presets ------------------------------------------------------------------------------- */

static const struct project_preset *preset(struct appbed *b)
{
    const struct project *p = model_project(app_model(b->app));

    return p && p->n_presets ? &p->presets[0] : NULL;
}

static bool preset_known(struct appbed *b, const void *arg)
{
    (void)arg;
    return preset(b) != NULL;
}

static void test_a_preset_fills_what_is_not_said(void **state)
{
    struct appbed *b = *state;
    struct project_choice keep = {.tool = (char[]){"codex"}, .model = (char[]){"gpt-6.2-sol"},
                                  .repo = (char[]){"acme/web"}, .branch = (char[]){"dev"},
                                  .prompt = (char[]){"go"}, .timeout_s = 3600, .copies = 3};
    struct app_create n = {0};

    open_app(b);
    assert_true(appbed_wait(b, link_ok, NULL));
    appbed_must(b, app_preset(b->app, "nightly", false, &keep));
    assert_true(appbed_wait(b, preset_known, NULL));
    assert_string_equal(preset(b)->name, "nightly");
    app_choice_fill(&n, &preset(b)->c);
    assert_string_equal(n.tool, "codex");
    assert_string_equal(n.branch, "dev");
    assert_int_equal(n.copies, 3);
    n = (struct app_create){.tool = "claude", .repo = "other/repo", .timeout_s = 60};
    app_choice_fill(&n, &preset(b)->c);
    assert_null(n.model);  /* another tool's */
    assert_null(n.branch); /* another repository's */
    assert_int_equal(n.timeout_s, 60);
    assert_string_equal(n.prompt, "go");
}

/* --- copies ---------------------------------------------------------------------------------- */

static void test_copies_go_out_a_second_apart(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "c", .command = "true", .copies = 3};
    uint64_t reqs[APP_COPIES_MAX];
    int failed[3];

    open_app(b);
    assert_true(appbed_wait(b, link_ok, NULL));
    assert_int_equal(app_create_copies(b->app, &c, true, reqs), 3);
    for (int i = 0; i < 3; i++)
        failed[i] = appbed_finish(b, reqs[i]);
    mini_sync(svc.srv);
    assert_int_equal(svc.creates, 3); /* each once, although each failed */
    for (int i = 0; i < 3; i++) {
        char name[32];

        snprintf(name, sizeof(name), "\"cc-tui-name\":\"c-%d\"", i + 1);
        assert_int_equal(failed[i], ERR_INVALID);
        assert_non_null(strstr(svc.body[i], name));
    }
    assert_non_null(strstr(b->err.text, "step 3 of 4 (sandbox)"));
    assert_true(svc.at[1] - svc.at[0] >= 900 && svc.at[2] - svc.at[1] >= 900);
}

static void test_copies_are_checked_together(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "bad name", .copies = 3};
    uint64_t reqs[APP_COPIES_MAX];

    open_app(b);
    assert_true(appbed_wait(b, link_ok, NULL));
    assert_int_equal(app_create_copies(b->app, &c, true, reqs), 1);
    assert_int_equal(appbed_finish(b, reqs[0]), ERR_INVALID);
    c.copies = APP_COPIES_MAX + 1;
    c.name = "c";
    assert_int_equal(app_create_copies(b->app, &c, true, reqs), 1);
    assert_int_equal(appbed_finish(b, reqs[0]), ERR_INVALID);
    mini_sync(svc.srv);
    assert_int_equal(svc.creates, 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_templates_with_a_finished_build),
        CASE(test_a_key_is_opened_before),
        CASE(test_files_are_read_aside),
        CASE(test_files_of_a_create),
        CASE(test_a_preset_fills_what_is_not_said),
        CASE(test_copies_go_out_a_second_apart),
        CASE(test_copies_are_checked_together),
    };

    appbed_main();
    return cmocka_run_group_tests_name("prepare", tests, NULL, NULL);
}
