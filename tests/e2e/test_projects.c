/* Projects in the running program: what a sandbox gets of its project, switching without a
 * restart, a new name with everything that hangs on it; keys tried at a service; a vault that
 * is locked when nobody is there. */
#include "../lib/appbed.h"
#include "../lib/miniserver.h"

#include <cct/keys.h>
#include <cct/model/project.h>
#include <cct/secrets/secret.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECRET "s3cret-of-the-project-9f21"

static int setup(void **state)
{
    unsetenv("E2B_API_KEY");
    *state = appbed_new();
    return 0;
}

static void open_app(struct appbed *b, const char *project, int idle_s)
{
    struct app_opts o = {.local = true,
                         .local_unsafe = !appbed_isolated(),
                         .start_local = true,
                         .follow_all = true,
                         .project = project,
                         .vault_idle_s = idle_s,
                         .poll_ms = 200};

    appbed_open(b, &o);
}

static const struct model *model(const struct appbed *b)
{
    return app_model(b->app);
}

static bool project_is(struct appbed *b, const void *name)
{
    return str_eq(model(b)->project, name) && app_keys(b->app);
}

static const struct sandbox *named(const struct appbed *b, const char *name)
{
    for (size_t i = 0; i < model(b)->n_sandboxes; i++)
        if (str_eq(model(b)->sandboxes[i].name, name))
            return &model(b)->sandboxes[i];
    return NULL;
}

static uint64_t make(struct appbed *b, const char *name, const struct kv *env)
{
    struct app_create c = {.tool = "demo", .name = name, .env = env, .timeout_s = 300};

    appbed_must(b, app_create(b->app, &c, true));
    assert_non_null(named(b, name));
    return named(b, name)->id;
}

struct said {
    uint64_t sandbox;
    const char *text;
};

static bool says(struct appbed *b, const void *arg)
{
    const struct said *s = arg;
    const struct transcript *t = model_transcript(model(b), s->sandbox);

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].text && strstr(t->v[i].text, s->text))
            return true;
    return false;
}

/* The agent's command prints that; the command itself does not say it. */
static void prints(struct appbed *b, uint64_t id, const char *command, const char *word)
{
    char *text = xasprintf("run %s", command);

    app_follow(b->app, id);
    appbed_must(b, app_send(b->app, id, text, true));
    assert_true(appbed_wait(b, says, &(struct said){id, word}));
    free(text);
}

static struct secret *secret(const char *s)
{
    return secret_new(s, strlen(s));
}

static bool died(struct appbed *b, const void *name)
{
    const struct sandbox *s = named(b, name);

    return s->state == SB_ERROR && s->agent == AG_FAILED;
}

static void restart(struct appbed *b, const char *name)
{
    uint64_t id = named(b, name)->id;

    appbed_finish(b, app_send(b->app, id, "run kill -9 $PPID", true));
    assert_true(appbed_wait(b, died, name));
    appbed_must(b, app_restart_agent(b->app, id));
}

static bool listed(struct appbed *b, const void *arg)
{
    (void)arg;
    return named(b, "one")->meta != NULL;
}

/* Tool, project, the user's own: the last word counts. Secret ones are the agent's alone, and
 * a restart brings them again; what was changed since reaches the next agent. */
static void test_environment(void **state)
{
    struct appbed *b = *state;
    struct kv own[] = {{(char *)"BOTH", (char *)"mine"}, {NULL, NULL}};
    uint64_t id;

    open_app(b, "acme/web", 0);
    appbed_must(b, app_project_var(b->app, "PLAIN", "of-the-project"));
    appbed_must(b, app_project_var(b->app, "BOTH", "projects"));
    appbed_must(b, app_project_secret(b->app, "HIDDEN", secret(SECRET)));
    assert_int_equal(appbed_finish(b, app_project_var(b->app, "GITHUB_TOKEN", "x")), ERR_INVALID);
    assert_int_equal(model_project(model(b))->n_vars, 3);
    id = make(b, "one", own);
    assert_string_equal(named(b, "one")->project, "acme/web");
    assert_true(appbed_wait(b, listed, NULL));
    assert_string_equal(kv_get(named(b, "one")->meta, "cc-tui-project"), "acme-web");
    assert_string_equal(kv_get(named(b, "one")->meta, "cc-tui-project-name"), "acme_sweb");
    prints(b, id, "echo 1.$PLAIN.$BOTH.$HIDDEN.", "1.of-the-project.mine." SECRET ".");
    restart(b, "one");
    prints(b, id, "echo 2.$PLAIN.$BOTH.$HIDDEN.", "2.of-the-project.mine." SECRET ".");
    /* of another project: none of it */
    appbed_must(b, app_project_switch(b->app, "other"));
    prints(b, make(b, "two", NULL), "echo 3.$PLAIN.$HIDDEN.", "3...");
    /* a restart gives a sandbox what its own project has, whichever is current */
    restart(b, "one");
    prints(b, id, "echo 4.$HIDDEN", "4." SECRET);
}

static size_t in_view(const struct appbed *b)
{
    size_t n = 0;

    for (size_t i = 0; i < model(b)->n_sandboxes; i++)
        n += model_in_view(model(b), &model(b)->sandboxes[i]);
    return n;
}

static bool armed(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->kill && model(b)->kill->phase == KILL_ARMED;
}

static size_t kill_scope_of(struct appbed *b)
{
    appbed_must(b, app_kill_all_open(b->app, false));
    assert_true(appbed_wait(b, armed, NULL));
    size_t n = model(b)->kill->n_project;
    app_kill_all_cancel(b->app);
    return n;
}

static bool row_is_of(struct appbed *b, const void *project)
{
    return named(b, "one") && str_eq(named(b, "one")->project, project);
}

static bool all_shown(struct appbed *b, const void *arg)
{
    return model(b)->all_projects == *(const bool *)arg;
}

static const char *key_of(const struct appbed *b, struct key_check *c)
{
    const char *needs[] = {"anthropic", NULL};
    struct key_need n = {.label = "claude", .needs = needs};

    keys_preflight(app_keys(b->app), &n, c);
    return c->mask;
}

/* Rows, money, kill-all and keys follow; a new name takes all of it along. */
static void test_switch_and_rename(void **state)
{
    struct appbed *b = *state;
    struct key_check c;
    bool yes = true;

    open_app(b, "acme", 0);
    make(b, "one", NULL);
    appbed_must(b, app_key_add(b->app, "anthropic", true, secret("sk-ant-api03-0123456789abcd2222")));
    assert_string_equal(key_of(b, &c), "****2222");
    key_check_release(&c);
    appbed_must(b, app_project_switch(b->app, "side.x"));
    assert_string_equal(model(b)->project, "side.x");
    assert_string_equal(key_of(b, &c), "");
    assert_non_null(strstr(c.text, "project acme"));
    key_check_release(&c);
    assert_true(in_view(b) == 0 && model_elsewhere(model(b)) == 1);
    assert_int_equal(kill_scope_of(b), 0);
    app_project_view(b->app, true);
    assert_true(appbed_wait(b, all_shown, &yes));
    assert_int_equal(in_view(b), 1);
    appbed_must(b, app_project_switch(b->app, "acme"));
    appbed_must(b, app_project_rename(b->app, "acme", "acme/site"));
    assert_string_equal(model(b)->project, "acme/site");
    assert_true(appbed_wait(b, row_is_of, "acme/site"));
    assert_string_equal(key_of(b, &c), "****2222");
    key_check_release(&c);
    assert_int_equal(kill_scope_of(b), 1);
    assert_int_equal(appbed_finish(b, app_project_rm(b->app, "acme/site")), ERR_CONFLICT);
    assert_int_equal(appbed_finish(b, app_project_rename(b->app, "acme/site", "side.x")),
                     ERR_CONFLICT);
    /* the one used last, without a word; the row is found again under its new name */
    appbed_close(b);
    open_app(b, NULL, 0);
    assert_true(appbed_wait(b, project_is, "acme/site"));
    assert_true(appbed_wait(b, row_is_of, "acme/site"));
    assert_true(in_view(b) == 1);
}

/* The service refuses an agent's key: the transcript and whoever waits hear which one it was,
 * what it hides and what to do, in words that the CLI does not have. */
static void test_refused_key(void **state)
{
    static const char conf[] = "[tool played]\nadapter = claude\ntemplate = demo\n"
                               "command = \"demo-agent --as claude\"\nneeds = anthropic\n";
    struct appbed *b = *state;
    char *dir = appbed_path(b, "conf"), *path = appbed_path(b, "conf/tools.conf");
    struct err e = {0};

    assert_int_equal(fs_mkdir_private(dir, &e), 0);
    assert_int_equal(fs_write_private(path, conf, strlen(conf), &e), 0);
    open_app(b, "acme", 0);
    struct app_create c = {.tool = "played", .name = "one", .timeout_s = 300};
    const char *field;
    assert_int_equal(app_check_create(b->app, &c, &field, &e), ERR_AUTH);
    assert_string_equal(field, "key");
    assert_int_equal(appbed_finish(b, app_create(b->app, &c, true)), ERR_AUTH);
    assert_null(named(b, "one")); /* before anything was made */
    appbed_must(b, app_key_add(b->app, "anthropic", true, secret("sk-ant-api03-0123456789abcd2222")));
    appbed_must(b, app_key_add(b->app, "anthropic", false, secret("sk-ant-api03-0123456789abcd1111")));
    appbed_must(b, app_create(b->app, &c, true));
    uint64_t id = named(b, "one")->id;
    app_follow(b->app, id);
    appbed_finish(b, app_send(b->app, id, "hello [[case:e401]]", true));
    assert_non_null(strstr(b->text, "****2222 (project key)"));
    assert_non_null(strstr(b->text, "cc-tui keys add anthropic --project"));
    assert_true(appbed_wait(b, says, &(struct said){id, "hides anthropic ****1111 (user key)"}));
    free(dir);
    free(path);
}

/* --- keys tried ------------------------------------------------------------------------- */

struct service {
    int status;
    bool right; /* the last request was as it has to be */
    char path[64];
};

static void answer(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    struct service *s = ctx;

    snprintf(s->path, sizeof(s->path), "%s", r->path);
    s->right = strcmp(r->method, "GET") == 0 && strstr(r->head, "0123456789abcd7777") &&
               !strstr(r->path, "7777");
    mini_reply(c, s->status, "", "{}");
}

static void test_keys_are_tried(void **state)
{
    static const struct {
        const char *provider, *key, *path;
    } t[] = {{"anthropic", "sk-ant-api03-0123456789abcd7777", "/v1/models?limit=1"},
             {"anthropic_token", "sk-ant-oat01-0123456789abcd7777", "/v1/models?limit=1"},
             {"openai", "sk-proj-0123456789abcd7777", "/v1/models"},
             {"openrouter", "sk-or-v1-0123456789abcd7777", "/api/v1/key"},
             {"github", "ghp_0123456789abcd7777", "/user"}};
    struct appbed *b = *state;
    struct service s = {.status = 200};
    struct mini *m = mini_start(answer, &s);
    char *url = mini_url(m, "");

    setenv("CC_TUI_KEY_TEST_URL", url, 1);
    open_app(b, "acme", 0);
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        assert_int_equal(appbed_finish(b, app_key_test(b->app, t[i].provider)), ERR_AUTH);
        appbed_must(b, app_key_add(b->app, t[i].provider, i & 1, secret(t[i].key)));
        s.status = 200;
        appbed_must(b, app_key_test(b->app, t[i].provider));
        mini_sync(m);
        assert_true(s.right);
        assert_string_equal(s.path, t[i].path);
        assert_non_null(strstr(b->text, "****7777"));
        s.status = 401;
        assert_int_equal(appbed_finish(b, app_key_test(b->app, t[i].provider)), ERR_AUTH);
        assert_non_null(strstr(b->err.text, t[i].provider));
        assert_non_null(strstr(b->err.text, "****7777"));
        assert_non_null(strstr(b->err.text, i & 1 ? "project key" : "user key"));
        assert_non_null(strstr(b->err.text, "keys add"));
        s.status = 403;
        assert_int_equal(appbed_finish(b, app_key_test(b->app, t[i].provider)), ERR_PERM);
        s.status = 503;
        assert_int_equal(appbed_finish(b, app_key_test(b->app, t[i].provider)), ERR_SERVER);
    }
    assert_int_equal(mini_requests(m), 4 * 5);
    /* an address that is not of this machine gets nothing */
    setenv("CC_TUI_KEY_TEST_URL", "http://192.0.2.1:9", 1);
    assert_int_not_equal(appbed_finish(b, app_key_test(b->app, "openai")), 0);
    assert_null(strstr(b->err.text, "192.0.2.1"));
    unsetenv("CC_TUI_KEY_TEST_URL");
    mini_stop(m);
    free(url);
}

/* --- the lock --------------------------------------------------------------------------- */

static bool locked(struct appbed *b, const void *arg)
{
    return (model(b)->vault_locked != NULL) == *(const bool *)arg && !model(b)->vault_opening;
}

static void test_idle_lock(void **state)
{
    struct appbed *b = *state;
    const char *needs[] = {"openai", NULL};
    struct key_need n = {.label = "codex", .needs = needs};
    struct key_check c;
    bool yes = true;

    open_app(b, "acme", 1);
    appbed_must(b, app_key_add(b->app, "openai", false, secret("sk-proj-0123456789abcd7777")));
    assert_int_equal(appbed_finish(b, app_lock(b->app)), ERR_CONFLICT); /* by a key file */
    appbed_must(b, app_key_protect(b->app, secret("a passphrase")));
    assert_true(appbed_wait(b, locked, &yes)); /* nobody is there */
    keys_preflight(app_keys(b->app), &n, &c);
    assert_int_equal(c.state, KEY_UNUSABLE);
    assert_non_null(strstr(c.text, "locked"));
    key_check_release(&c);
    assert_int_equal(appbed_finish(b, app_key_test(b->app, "openai")), ERR_AUTH);
    assert_int_equal(appbed_finish(b, app_project_secret(b->app, "X", secret("0123456789"))),
                     ERR_AUTH);
    /* what needs no key goes on */
    make(b, "one", NULL);
    assert_int_equal(kill_scope_of(b), 1);
    assert_int_equal(appbed_finish(b, app_unlock(b->app, secret("another one"))), ERR_AUTH);
    assert_non_null(model(b)->vault_locked);
    /* open it is only until nobody has been there again, so that is not waited for */
    appbed_must(b, app_unlock(b->app, secret("a passphrase")));
    appbed_must(b, app_lock(b->app));
    assert_true(appbed_wait(b, locked, &yes));
}

int main(void)
{
    appbed_main();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_environment, setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_switch_and_rename, setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_refused_key, setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_keys_are_tried, setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_idle_lock, setup, appbed_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
