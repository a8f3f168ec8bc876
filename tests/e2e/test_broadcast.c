/* One message to several sandboxes on a real local provider: each gets it once, what cannot
 * take it is named, and a kill -9 of the sender at any moment leaves all of it or nothing. */
#include "../lib/appbed.h"

#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BOXES = 3, ROUNDS = 8 };
static const char *const names[BOXES] = {"one", "two", "three"};
static uint64_t ids[BOXES];

static void open_app(struct appbed *b)
{
    struct app_opts o = {.local = true,
                         .local_unsafe = !appbed_isolated(),
                         .start_local = true,
                         .follow_all = true,
                         .poll_ms = 300};

    appbed_open(b, &o);
}

static bool all_idle(struct appbed *b, const void *arg)
{
    const struct model *m = app_model(b->app);
    size_t n = 0;

    (void)arg;
    for (size_t i = 0; i < m->n_sandboxes; i++)
        n += m->sandboxes[i].state == SB_RUNNING && m->sandboxes[i].agent == AG_IDLE;
    return n == BOXES;
}

static int setup(void **state)
{
    struct appbed *b = *state = appbed_new();

    open_app(b);
    for (size_t i = 0; i < BOXES; i++) {
        struct app_create c = {.tool = "demo", .name = names[i]};
        appbed_must(b, app_create(b->app, &c, true));
        ids[i] = b->sandbox;
    }
    assert_true(appbed_wait(b, all_idle, NULL));
    return 0;
}

/* Times that the agent was told this. */
static int told(struct appbed *b, uint64_t id, const char *text)
{
    const struct transcript *t = model_transcript(app_model(b->app), id);
    int n = 0;

    for (size_t i = 0; t && i < t->n; i++)
        n += t->v[i].kind == ITEM_USER && t->v[i].state == MSG_DELIVERED &&
             strcmp(t->v[i].text, text) == 0;
    return n;
}

static bool all_told(struct appbed *b, const void *text)
{
    for (size_t i = 0; i < BOXES; i++)
        if (!told(b, ids[i], text))
            return false;
    return all_idle(b, NULL);
}

static const struct receipt *receipt_of(struct appbed *b, uint64_t req, uint64_t id)
{
    const struct broadcast *c = model_broadcast(app_model(b->app), req);

    for (size_t i = 0; c && i < c->n; i++)
        if (c->v[i].sandbox == id)
            return &c->v[i];
    return NULL;
}

static void follow(struct appbed *b)
{
    for (size_t i = 0; i < BOXES; i++)
        app_follow(b->app, ids[i]);
}

static bool delivered(struct appbed *b, const void *req)
{
    for (size_t i = 0; i < BOXES; i++) {
        const struct receipt *r = receipt_of(b, *(const uint64_t *)req, ids[i]);
        const struct message *m = r ? model_message(app_model(b->app), r->message) : NULL;
        if (r && r->message && (!m || m->state != MSG_DELIVERED))
            return false;
    }
    return true;
}

static bool each_told(struct appbed *b, const void *arg)
{
    bool all = all_idle(b, NULL);

    for (size_t i = 0; i < BOXES; i++) {
        char *text = xasprintf("run echo for-%s", names[i]);
        all &= told(b, ids[i], text) > 0;
        free(text);
    }
    (void)arg;
    return all;
}

static void test_each_its_own(void **state)
{
    struct appbed *b = *state;
    const uint64_t to[] = {ids[2], ids[0], ids[1], ids[0]}; /* one of them twice */
    uint64_t req;

    follow(b);
    req = app_broadcast(b->app, to, 4, "run echo for-{name}", SEND_FILL);
    appbed_must(b, req);
    assert_int_equal(model_broadcast(app_model(b->app), req)->n, BOXES);
    assert_true(appbed_wait(b, delivered, &req));
    assert_true(appbed_wait(b, each_told, NULL));
    for (size_t i = 0; i < BOXES; i++) {
        char *text = xasprintf("run echo for-%s", names[i]);
        assert_int_equal(told(b, ids[i], text), 1);
        free(text);
    }
}

static bool is_paused(struct appbed *b, const void *arg)
{
    (void)arg;
    return model_sandbox(app_model(b->app), ids[1])->state == SB_PAUSED;
}

static void test_some_cannot(void **state)
{
    struct appbed *b = *state;
    const uint64_t to[] = {ids[0], ids[1], 4711, ids[2]};
    uint64_t req;

    follow(b);
    appbed_must(b, app_pause(b->app, ids[1]));
    assert_true(appbed_wait(b, is_paused, NULL));
    req = app_broadcast(b->app, to, 4, "run echo some", 0);
    assert_int_equal(appbed_finish(b, req), ERR_CONFLICT);
    assert_non_null(strstr(b->last_error, "2 of 4 cannot take the message: \"two\" is paused"));
    assert_non_null(strstr(receipt_of(b, req, ids[1])->error, "resume it first"));
    assert_non_null(strstr(receipt_of(b, req, 4711)->error, "not in the list"));
    assert_true(receipt_of(b, req, ids[0])->message > 0);
    assert_true(appbed_wait(b, delivered, &req));
    assert_int_equal(appbed_finish(b, app_broadcast(b->app, NULL, 0, "x", 0)), ERR_INVALID);
    assert_int_equal(appbed_finish(b, app_broadcast(b->app, to, 1, " \n", 0)), ERR_INVALID);
}

static bool works(struct appbed *b, const void *arg)
{
    (void)arg;
    return model_sandbox(app_model(b->app), ids[0])->agent == AG_WORKING;
}

static bool told_all_three(struct appbed *b, const void *arg)
{
    (void)arg;
    return told(b, ids[0], "run echo at-once") && told(b, ids[0], "run echo later") &&
           told(b, ids[0], "run echo last") && all_idle(b, NULL);
}

/* Now: the turn at hand ends, and what was queued before comes after. */
static void test_now(void **state)
{
    struct appbed *b = *state;
    const struct transcript *t;
    const char *order[3] = {NULL};
    size_t n = 0;

    follow(b);
    app_send(b->app, ids[0], "run sleep 600", false);
    assert_true(appbed_wait(b, works, NULL));
    appbed_must(b, app_send(b->app, ids[0], "run echo later", false));
    appbed_must(b, app_send_how(b->app, ids[0], "run echo at-once", true, SEND_NOW));
    appbed_must(b, app_send(b->app, ids[0], "run echo last", true));
    assert_true(appbed_wait(b, told_all_three, NULL));
    t = model_transcript(app_model(b->app), ids[0]);
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].kind == ITEM_USER && strstr(t->v[i].text, "echo") && n < 3)
            order[n++] = t->v[i].text;
    assert_int_equal(n, 3);
    assert_string_equal(order[0], "run echo at-once");
    assert_string_equal(order[1], "run echo later");
    assert_string_equal(order[2], "run echo last");
}

/* --- kill -9 ------------------------------------------------------------------------ */

static void places(const struct appbed *b)
{
    static const char *const v[][2] = {{"CC_TUI_CONFIG_DIR", "conf"}, {"CC_TUI_DATA_DIR", "data"},
                                       {"CC_TUI_STATE_DIR", "state"},
                                       {"CC_TUI_RUNTIME_DIR", "run"}};

    for (size_t i = 0; i < 4; i++) {
        char *path = appbed_path(b, v[i][1]);
        setenv(v[i][0], path, 1);
        free(path);
    }
}

static pid_t send_by_command(const struct appbed *b, const char *text)
{
    pid_t pid = fork();

    if (pid == 0) {
        places(b);
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execlp("cc-tui", "cc-tui", appbed_isolated() ? "--local" : "--local-unsafe", "send",
               names[0], names[1], names[2], "--", text, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void test_killed_sender(void **state)
{
    struct appbed *b = *state;
    char text[ROUNDS][40];
    int sent = 0, status;

    appbed_close(b);
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(text[i], sizeof(text[i]), "run echo round-%d", i);
        pid_t pid = send_by_command(b, text[i]);
        poll(NULL, 0, i * 12); /* somewhere between its start and its end */
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    open_app(b);
    assert_true(appbed_wait(b, all_idle, NULL));
    follow(b);
    appbed_must(b, app_broadcast(b->app, ids, BOXES, "run echo whole", 0));
    assert_true(appbed_wait(b, all_told, "run echo whole"));
    for (int i = 0; i < ROUNDS; i++) {
        int n = told(b, ids[0], text[i]);
        assert_in_range(n, 0, 1);
        sent += n;
        for (size_t k = 1; k < BOXES; k++)
            assert_int_equal(told(b, ids[k], text[i]), n);
    }
    printf("# %d of %d were committed before the kill\n", sent, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_its_own, setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_some_cannot, setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_now, setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_killed_sender, setup, appbed_teardown),
    };

    appbed_main();
    return cmocka_run_group_tests_name("broadcast", tests, NULL, NULL);
}
