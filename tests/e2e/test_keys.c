/* Stored keys in the running program: who is in force, what is told of the others, what
 * happens when that changes under way. The service writes down which key each request
 * brought. */
#include "../lib/rawpty.h"
#include "../lib/statebed.h"

#include <cct/keys.h>
#include <cct/secrets/secret.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define USER "e2b_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1111"
#define PROJECT "e2b_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb9f21"
#define ENVKEY "e2b_cccccccccccccccccccccccccccccccccccc4f2a"
#define CLIKEY "e2b_dddddddddddddddddddddddddddddddddddd7777"

static void serve(const char *sandboxes, const char *key)
{
    const char *args[] = {"--sandboxes", sandboxes, "--config", "{\"headers\":true}", "--key", key,
                          NULL};

    if (!key)
        args[4] = NULL;
    statebed_fake = faultd_serve(args);
}

static int setup(void **state)
{
    struct appbed *b = appbed_new();
    static const struct {
        const char *name, *folder;
    } places[] = {{"CC_TUI_DATA_DIR", "data"}, {"CC_TUI_CONFIG_DIR", "conf"},
                  {"CC_TUI_STATE_DIR", "state"}, {"CC_TUI_RUNTIME_DIR", "run"}};

    for (size_t i = 0; i < 4; i++) { /* for commands beside the application */
        char *p = appbed_path(b, places[i].folder);
        setenv(places[i].name, p, 1);
        free(p);
    }
    setenv("HOME", b->root, 1);
    unsetenv("E2B_API_KEY");
    unsetenv("E2B_DOMAIN");
    *state = b;
    return 0;
}

static void open_app(struct appbed *b)
{
    struct app_opts o = {.follow_all = true, .poll_ms = 200, .project = "acme"};

    appbed_open(b, &o);
}

static const struct model *model(const struct appbed *b)
{
    return app_model(b->app);
}

/* Another cc-tui beside this one: a command; its exit status. */
static int command(const char *key, const char *args)
{
    char *cmd = xasprintf("printf '%%s\\n' '%s' | cc-tui %s >/dev/null 2>&1", key, args);
    int status = system(cmd);

    free(cmd);
    return status;
}

/* How many requests came with that key, of all there were. */
static size_t sent(const char *key)
{
    char *log = faultd_http(statebed_fake, "GET", "/_faultd/log", "");
    size_t n = 0;

    assert_non_null(log);
    for (const char *p = log; (p = strstr(p, key)); p++)
        n++;
    free(log);
    return n;
}

static void forget_requests(void)
{
    assert_true(faultd_config(statebed_fake, "{\"reset\":true,\"sandboxes\":0}"));
}

static void write_cli_config(const struct appbed *b)
{
    char *dir = appbed_path(b, ".e2b"), *file = appbed_path(b, ".e2b/config.json");
    struct err e = {0};

    assert_int_equal(fs_mkdir_private(dir, &e), 0);
    const char *text = "{\"version\":2,\"projectId\":\"p\",\"projectApiKey\":\"" CLIKEY "\"}";
    assert_int_equal(fs_write_private(file, text, strlen(text), &e), 0);
    free(dir);
    free(file);
}

static bool link_is(struct appbed *b, const void *st)
{
    return model(b)->link == *(const enum link_state *)st;
}

static bool account_has(struct appbed *b, const void *text)
{
    return model(b)->account && strstr(model(b)->account, text);
}

static bool has_rows(struct appbed *b, const void *n)
{
    return model(b)->n_sandboxes == *(const size_t *)n && model(b)->link == LINK_OK;
}

static bool armed(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->kill && model(b)->kill->phase == KILL_ARMED;
}

static bool was_said(struct appbed *b, const void *text)
{
    for (size_t i = 0; i < model(b)->n_events; i++)
        if (strstr(model(b)->events[i].text, text))
            return true;
    return false;
}

static const enum link_state auth = LINK_AUTH, ok = LINK_OK;

/* --- order ------------------------------------------------------------------------ */

/* The project's key is refused by the service and the user's would do: it is not tried. */
static void test_refused_project_key_hides_a_good_one(void **state)
{
    struct appbed *b = *state;

    serve("2", USER);
    assert_int_equal(command(USER, "keys add e2b"), 0);
    assert_int_equal(command(PROJECT, "keys add e2b --project acme"), 0);
    open_app(b);
    assert_true(appbed_wait(b, link_is, &auth));
    assert_non_null(strstr(model(b)->link_text, "****9f21 (project key)"));
    assert_non_null(strstr(model(b)->link_text, "keys add e2b --project"));
    assert_non_null(strstr(model(b)->link_text, "hides ****1111 (user key)"));
    assert_int_equal(appbed_finish(b, app_refresh(b->app)), ERR_AUTH);
    assert_int_equal(model(b)->n_sandboxes, 0);
    assert_true(sent(PROJECT) > 0);
    assert_int_equal(sent(USER), 0);
    appbed_close(b);
    assert_int_not_equal(command("", "keys test --project acme"), 0);
    assert_int_equal(command("", "keys test"), 0);
}

/* Four keys, all different: the variable's is used, the others are named; the question
 * before a kill-all says whose account it is. */
static void test_variable_hides_all_others(void **state)
{
    struct appbed *b = *state;
    size_t three = 3;

    serve("3", ENVKEY);
    write_cli_config(b);
    assert_int_equal(command(USER, "keys add e2b"), 0);
    assert_int_equal(command(PROJECT, "keys add e2b --project acme"), 0);
    setenv("E2B_API_KEY", ENVKEY, 1);
    open_app(b);
    assert_true(appbed_wait(b, has_rows, &three));
    assert_non_null(strstr(model(b)->account, "****4f2a (environment)"));
    assert_non_null(strstr(model(b)->account, "****9f21 (project key)"));
    assert_non_null(strstr(model(b)->account, "****1111 (user key)"));
    assert_non_null(strstr(model(b)->account, "****7777 (E2B CLI config)"));
    assert_non_null(strstr(model(b)->account, faultd_url(statebed_fake))); /* not E2B's own */
    app_kill_all_open(b->app, true);
    assert_true(appbed_wait(b, armed, NULL));
    assert_non_null(strstr(model(b)->kill->account, "****4f2a (environment)"));
    assert_string_equal(model(b)->kill->project, "acme");
    assert_int_equal(model(b)->kill->n_account, 3);
    assert_int_equal(model(b)->kill->n_project, 0);
    assert_true(sent(USER) + sent(PROJECT) + sent(CLIKEY) == 0);
    appbed_close(b);
}

/* --- what must not be sent ----------------------------------------------------------- */

static void test_key_of_another_service(void **state)
{
    struct appbed *b = *state;

    serve("2", NULL);
    char *url = xstrdup(faultd_url(statebed_fake));
    setenv("E2B_API_URL", "https://api.e2b.app", 1);
    assert_int_equal(command(USER, "keys add e2b"), 0);
    setenv("E2B_API_URL", url, 1);
    write_cli_config(b); /* does not step in */
    open_app(b);
    assert_true(appbed_wait(b, link_is, &auth));
    assert_non_null(strstr(model(b)->link_text, "****1111"));
    assert_non_null(strstr(model(b)->link_text, "https://api.e2b.app"));
    assert_non_null(strstr(model(b)->link_text, url));
    assert_int_equal(appbed_finish(b, app_refresh(b->app)), ERR_AUTH);
    assert_true(sent(USER) + sent(CLIKEY) == 0);
    appbed_close(b);
    free(url);
}

/* The key file is gone, or it is not the one: nothing else is tried. */
static void test_key_file(void **state)
{
    struct appbed *b = *state;
    char *dir = appbed_path(b, "conf"), *path = NULL;

    serve("2", NULL);
    assert_int_equal(command(USER, "keys add e2b"), 0);
    write_cli_config(b);
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));)
        if (str_starts(f->d_name, "vault-"))
            path = fs_join(dir, f->d_name);
    closedir(d);
    assert_non_null(path);
    for (int round = 0; round < 2; round++) {
        struct err e = {0};
        if (round == 0)
            assert_int_equal(chmod(path, 0644), 0);
        else
            assert_int_equal(fs_write_private(path, "nothing\n", 8, &e), 0);
        open_app(b);
        assert_true(appbed_wait(b, link_is, &auth));
        assert_non_null(strstr(model(b)->link_text, "user key ****1111"));
        assert_non_null(strstr(model(b)->link_text, path));
        appbed_close(b);
        if (round == 0)
            assert_int_equal(command("", "keys"), 4 << 8);
    }
    assert_int_equal(unlink(path), 0);
    open_app(b);
    assert_true(appbed_wait(b, link_is, &auth));
    assert_non_null(strstr(model(b)->link_text, "is gone"));
    appbed_close(b);
    assert_true(sent(USER) + sent(CLIKEY) == 0);
    assert_int_equal(command("", "keys rm e2b"), 0); /* the way out */
    free(path);
    free(dir);
}

static struct secret *phrase(const char *text)
{
    return secret_new_bytes(text, strlen(text));
}

static void test_locked(void **state)
{
    struct appbed *b = *state;
    size_t two = 2;

    serve("2", USER);
    assert_int_equal(command(USER, "keys add e2b"), 0);
    assert_int_equal(command("open sesame", "keys protect passphrase --passphrase-fd 0"), 0);
    open_app(b);
    assert_true(appbed_wait(b, link_is, &auth));
    assert_non_null(strstr(model(b)->link_text, "user key ****1111"));
    assert_non_null(strstr(model(b)->link_text, "--unlock"));
    assert_int_equal(appbed_finish(b, app_unlock(b->app, phrase("wrong"))), ERR_AUTH);
    assert_int_equal(sent(USER), 0);
    assert_int_equal(appbed_finish(b, app_unlock(b->app, phrase("open sesame"))), 0);
    assert_true(appbed_wait(b, has_rows, &two));
    assert_true(sent(USER) > 0);
    appbed_close(b);
    struct app_opts o = {.follow_all = true, .poll_ms = 200, .passphrase = phrase("open sesame")};
    appbed_open(b, &o); /* given at the start */
    assert_true(appbed_wait(b, has_rows, &two));
    appbed_close(b);
    assert_int_equal(command("open sesame", "ls --passphrase-fd 0"), 0);
    assert_int_equal(command("wrong", "ls --passphrase-fd 0"), 4 << 8);
    assert_int_equal(command("open sesame", "keys protect file --passphrase-fd 0"), 0);
    assert_int_equal(command("", "ls"), 0);
}

/* A cloned repository may hold whatever names a service or a key: nothing of it counts. */
static void test_hostile_folder(void **state)
{
    struct appbed *b = *state;
    const char *const args[] = {"--sandboxes", "5", "--config", "{\"headers\":true}", NULL};
    struct faultd *evil = faultd_start(args);
    const char *url = faultd_url(evil);
    char *dir = appbed_path(b, "repo"), *cli = appbed_path(b, "repo/.e2b");
    struct err e = {0};
    const struct {
        const char *name;
        char *text;
    } files[] = {
        {".env", xasprintf("E2B_API_URL=%s\nE2B_API_KEY=%s\n", url, ENVKEY)},
        {".envrc", xasprintf("export E2B_API_URL=%s\n", url)},
        {".cc-tui", xasprintf("[e2b]\napi_url = %s\ndomain = evil.example\n[sandbox]\n"
                              "project = acme\napi = %s\n[net]\nca_file = /dev/null\n"
                              "[keys]\ne2b = " ENVKEY "\n", url, url)},
        {"cc-tui.conf", xasprintf("[e2b]\napi_url = %s\n", url)},
        {"e2b.toml", xasprintf("domain = \"evil.example\"\napi_url = \"%s\"\n", url)},
        {".e2b/config.json", xstrdup("{\"version\":2,\"projectApiKey\":\"" CLIKEY "\"}")},
    };

    serve("2", USER);
    assert_int_equal(command(USER, "keys add e2b"), 0);
    assert_int_equal(command(PROJECT, "keys add e2b --project acme"), 0);
    assert_int_equal(fs_mkdir_private(dir, &e), 0);
    assert_int_equal(fs_mkdir_private(cli, &e), 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char *path = fs_join(dir, files[i].name);
        assert_int_equal(fs_write_private(path, files[i].text, strlen(files[i].text), &e), 0);
        free(path);
        free(files[i].text);
    }
    char *here = getcwd(NULL, 0);
    assert_int_equal(chdir(dir), 0);
    int listed = command("", "ls"), trusted = command("", "keys trust"), after = command("", "ls"),
        named = command("", "ls --project other");
    assert_int_equal(chdir(here), 0);
    free(here);
    assert_int_equal(listed, 4 << 8); /* it names a project that has a key: a yes is wanted */
    assert_int_equal(trusted, 0);
    assert_int_equal(after, 4 << 8);  /* that project's key, which the service refuses */
    assert_int_equal(named, 0);
    assert_int_equal(sent(ENVKEY) + sent(CLIKEY), 0);
    struct faultd *good = statebed_fake;
    statebed_fake = evil;
    assert_int_equal(sent("sandboxes?") + sent("/v2/") + sent("e2b_"), 0);
    statebed_fake = good;
    faultd_stop(evil);
    free(dir);
    free(cli);
}

/* --- asked for on a terminal ---------------------------------------------------------------- */

extern char **environ;

static void test_prompt_shows_nothing(void **state)
{
    static const char *const ask[] = {"not shown", NULL}, *const told[] = {"****1111", NULL};
    struct appbed *b = *state;
    char *path = xasprintf("%s/cc-tui", getenv("B") ? getenv("B") : "build/debug");
    const char *const argv[] = {path, "keys", "add", "e2b", NULL};
    struct rawpty p;

    (void)b;
    setenv("E2B_API_URL", "https://api.e2b.app", 1);
    rawpty_start(&p, argv, environ, 24, 80);
    assert_true(rawpty_until(&p, ask, 20000));
    rawpty_send(&p, "xx\x7f\x7f\x7f" USER "yy\x15" USER "\r"); /* erased, begun anew */
    assert_true(rawpty_until(&p, told, 20000));
    assert_null(memmem(p.seen.p, p.seen.len, "aaaa", 4));
    assert_int_equal(rawpty_end(&p, 20000), 0);
    rawpty_start(&p, argv, environ, 24, 80);
    assert_true(rawpty_until(&p, ask, 20000));
    rawpty_send(&p, "e2b_bbbb\x03");
    assert_int_equal(rawpty_end(&p, 20000), 130);
    free(path);
}

/* Whoever starts it may wait for no process: that is handed on. */
static void test_command_fails(void **state)
{
    struct appbed *b = *state;
    char *path = xasprintf("%s/cc-tui", getenv("B") ? getenv("B") : "build/debug");
    int status = -1;

    (void)b;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGCHLD, SIG_IGN);
        execl(path, path, "keys", "add", "e2b", "--command", "echo " USER "; exit 3", (char *)NULL);
        _exit(98);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2); /* what it said may be half a key */
    free(path);
}

/* --- changes under way ------------------------------------------------------------------ */

static uint64_t a_row(const struct appbed *b)
{
    assert_true(model(b)->n_sandboxes > 0);
    return model(b)->sandboxes[0].id;
}

/* A key is added by a command beside the screen: the switch is said, streams and rows of
 * the other account go, and nothing goes out with the old key any more. */
static void test_added_while_running(void **state)
{
    struct appbed *b = *state;
    size_t two = 2;

    serve("2", NULL);
    assert_int_equal(command(USER, "keys add e2b"), 0);
    open_app(b);
    assert_true(appbed_wait(b, has_rows, &two));
    assert_true(account_has(b, "****1111 (user key)"));
    uint64_t id = a_row(b);
    assert_int_equal(appbed_finish(b, app_kill(b->app, id)), 0);
    assert_int_equal(command(PROJECT, "keys add e2b --project acme"), 0);
    assert_true(appbed_wait(b, account_has, "****9f21 (project key)"));
    assert_true(appbed_wait(b, was_said, "in force is now ****9f21 (project key); it was ****1111"));
    assert_true(account_has(b, "hides ****1111 (user key)"));
    assert_true(appbed_wait(b, link_is, &ok));
    appbed_must(b, app_refresh(b->app));
    assert_null(model_sandbox(model(b), id)); /* killed under the other key */
    forget_requests();
    appbed_must(b, app_refresh(b->app));
    appbed_must(b, app_refresh(b->app));
    assert_true(sent(PROJECT) > 0);
    assert_int_equal(sent(USER), 0);
    assert_int_equal(command("", "keys rm e2b --project acme"), 0);
    assert_true(appbed_wait(b, account_has, "****1111 (user key)"));
    assert_true(appbed_wait(b, was_said, "in force is now ****1111 (user key); it was ****9f21"));
    assert_true(appbed_wait(b, link_is, &ok));
    appbed_must(b, app_refresh(b->app));
    assert_non_null(model_sandbox(model(b), id)); /* its own history is there again */
    assert_int_equal(command("", "keys rm e2b"), 0);
    assert_true(appbed_wait(b, link_is, &auth));
    assert_non_null(strstr(model(b)->link_text, "no E2B key is in force any more"));
    assert_int_equal(model(b)->n_sandboxes, 0);
    assert_int_equal(appbed_finish(b, app_refresh(b->app)), ERR_AUTH);
    appbed_close(b);
}

/* What is asked under one key is not answered under another: the switch waits. */
static void test_open_question_ends_first(void **state)
{
    struct appbed *b = *state;
    size_t two = 2;

    serve("2", NULL);
    assert_int_equal(command(USER, "keys add e2b"), 0);
    open_app(b);
    assert_true(appbed_wait(b, has_rows, &two));
    app_kill_all_open(b->app, true);
    assert_true(appbed_wait(b, armed, NULL));
    appbed_must(b, app_key_add(b->app, "e2b", true, secret_new(PROJECT, strlen(PROJECT))));
    assert_true(account_has(b, "****1111 (user key)"));
    assert_int_equal(sent(PROJECT), 0);
    appbed_must(b, app_kill_all_confirm(b->app, true, 2));
    assert_int_equal(model(b)->kill->killed, 2);
    assert_int_equal(sent(PROJECT), 0);
    assert_true(appbed_wait(b, account_has, "****9f21 (project key)"));
    appbed_close(b);
}

/* The same key one level nearer is no other account: nothing is closed. */
static void test_same_key_nearer(void **state)
{
    struct appbed *b = *state;
    size_t two = 2;

    serve("2", NULL);
    assert_int_equal(command(USER, "keys add e2b"), 0);
    open_app(b);
    assert_true(appbed_wait(b, has_rows, &two));
    uint64_t id = a_row(b);
    appbed_must(b, app_key_add(b->app, "e2b", true, secret_new(USER, strlen(USER))));
    assert_true(appbed_wait(b, account_has, "****1111 (project key)"));
    assert_true(appbed_wait(b, was_said, "counts as project key now"));
    assert_false(account_has(b, "hides"));
    appbed_must(b, app_refresh(b->app));
    assert_non_null(model_sandbox(model(b), id));
    assert_int_equal(model(b)->n_sandboxes, 2);
    appbed_close(b);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, statebed_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_refused_project_key_hides_a_good_one), CASE(test_variable_hides_all_others),
        CASE(test_key_of_another_service), CASE(test_hostile_folder), CASE(test_key_file),
        CASE(test_prompt_shows_nothing), CASE(test_command_fails), CASE(test_locked),
        CASE(test_added_while_running), CASE(test_open_question_ends_first),
        CASE(test_same_key_nearer),
    };

    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
