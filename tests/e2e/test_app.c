/* The facade against a real local provider that it starts itself: from an empty machine
 * to a talking agent and back to nothing. */
#include "../lib/miniserver.h"

#include <cct/app.h>
#include <cct/secrets/secret.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
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

#define LONG_MS 60000

/* --- a bed ------------------------------------------------------------------------- */

struct bed {
    char root[64];
    struct app *app;
    uint64_t wanted;       /* req_id whose EV_DONE is waited for */
    uint64_t ended[64];    /* by req_id: 1 + how it ended */
    struct err err;
    char *text;
    int outcome;
    uint64_t sandbox;
    size_t reports, losses;
};

static void observe(void *ctx, const struct msg *m)
{
    struct bed *b = ctx;
    const struct ev_done *d = (const struct ev_done *)m;

    if (m->type == EV_KILL && ((const struct ev_kill *)m)->phase == KILL_REPORT)
        b->reports++;
    if (m->type == EV_LINK && ((const struct ev_link *)m)->state != LINK_OK)
        b->losses++;
    if (m->type != EV_DONE)
        return;
    assert_true(m->req_id < 64 && b->ended[m->req_id] == 0); /* exactly one */
    b->ended[m->req_id] = 1;
    if (m->req_id != b->wanted)
        return;
    b->err = d->err;
    b->outcome = d->outcome;
    b->sandbox = d->sandbox;
    free(b->text);
    b->text = xstrdup(d->text);
}

static char *in_root(const struct bed *b, const char *name)
{
    return fs_join(b->root, name);
}

static void run_local(const struct bed *b, const char *command)
{
    char *state = in_root(b, "state/local"), *rt = in_root(b, "run");
    pid_t pid = fork();
    int st;

    if (pid == 0) {
        execlp("cc-tui-local", "cc-tui-local", command, "--state-dir", state, "--runtime-dir", rt,
               (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &st, 0);
    free(state);
    free(rt);
}

static bool isolated(void)
{
    static int known = -1;

    if (known < 0)
        known = system("cc-tui-local probe >/dev/null 2>&1") == 0;
    return known == 1;
}

static void open_app(struct bed *b, bool first_demo)
{
    char *data = in_root(b, "data"), *conf = in_root(b, "conf"), *state = in_root(b, "state");
    char *rt = in_root(b, "run");
    struct err e = {0};
    struct app_opts o = {.local = true,
                         .local_unsafe = !isolated(),
                         .first_demo = first_demo,
                         .start_local = true,
                         .follow_all = true,
                         .data_dir = data,
                         .config_dir = conf,
                         .state_dir = state,
                         .runtime_dir = rt,
                         .poll_ms = 300};

    b->app = app_new(&o, &e);
    assert_non_null(b->app);
    app_observe(b->app, observe, b);
    if (app_start(b->app, &e) != 0 || app_go_online(b->app, &e) != 0)
        fail_msg("%s", e.text);
    free(data);
    free(conf);
    free(state);
    free(rt);
}

static void close_app(struct bed *b)
{
    int64_t t = clock_mono_ms();

    memset(b->ended, 0, sizeof(b->ended));
    app_stop(b->app);
    assert_in_range(clock_mono_ms() - t, 0, 2500);
    app_free(b->app);
    b->app = NULL;
}

static int setup(void **state)
{
    struct bed *b = xcalloc(1, sizeof(*b));

    str_copy(b->root, sizeof(b->root), "/tmp/cct-app.XXXXXX");
    assert_non_null(mkdtemp(b->root));
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bed *b = *state;
    char *cmd = xasprintf("rm -rf '%s'", b->root);

    app_free(b->app);
    run_local(b, "stop");
    assert_int_equal(system(cmd), 0);
    free(cmd);
    free(b->text);
    free(b);
    return 0;
}

typedef bool (*ok_fn)(struct bed *b, const void *arg);

static bool wait_for(struct bed *b, ok_fn ok, const void *arg)
{
    int64_t until = clock_mono_ms() + LONG_MS;

    for (;;) {
        struct pollfd p = {app_fd(b->app), POLLIN, 0};
        int64_t left = until - clock_mono_ms();

        app_drain(b->app, 8);
        if (ok(b, arg))
            return true;
        if (left <= 0)
            return false;
        poll(&p, 1, (int)left);
    }
}

static bool is_done(struct bed *b, const void *arg)
{
    (void)arg;
    return b->ended[b->wanted] != 0;
}

/* Wait for the one EV_DONE of a request. */
static int finish(struct bed *b, uint64_t req)
{
    b->wanted = req;
    if (!wait_for(b, is_done, NULL))
        fail_msg("request %llu never ended", (unsigned long long)req);
    return b->err.code;
}

static void must(struct bed *b, uint64_t req)
{
    if (finish(b, req) != 0)
        fail_msg("%s", b->err.text);
}

/* --- what the model says -------------------------------------------------------------- */

static const struct sandbox *first(const struct bed *b)
{
    const struct model *m = app_model(b->app);

    return m->n_sandboxes ? &m->sandboxes[0] : NULL;
}

static bool runs_idle(struct bed *b, const void *arg)
{
    const struct sandbox *s = first(b);

    (void)arg;
    if (s && s->state == SB_ERROR)
        fail_msg("%s", s->reason);
    return s && s->state == SB_RUNNING && s->agent == AG_IDLE;
}

static bool works(struct bed *b, const void *arg)
{
    (void)arg;
    return first(b) && first(b)->agent == AG_WORKING;
}

static bool says(struct bed *b, const void *text)
{
    const struct transcript *t = first(b) ? model_transcript(app_model(b->app), first(b)->id) : NULL;

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].text && strstr(t->v[i].text, text))
            return true;
    return false;
}

static bool link_is(struct bed *b, const void *st)
{
    return app_model(b->app)->link == *(const enum link_state *)st;
}

static bool link_ok(struct bed *b)
{
    enum link_state ok = LINK_OK;

    return wait_for(b, link_is, &ok);
}

static bool armed(struct bed *b, const void *arg)
{
    (void)arg;
    return app_model(b->app)->kill && app_model(b->app)->kill->phase == KILL_ARMED;
}

/* --- tests ------------------------------------------------------------------------------- */

static void send_and_interrupt(struct bed *b, uint64_t id)
{
    uint64_t turn;

    must(b, app_send(b->app, id, "run uname -a", true));
    assert_true(wait_for(b, says, "Linux"));
    turn = app_send(b->app, id, "run sleep 60", true);
    assert_true(wait_for(b, works, NULL));
    must(b, app_interrupt(b->app, id));
    finish(b, turn);
    assert_true(wait_for(b, runs_idle, NULL));
}

static void kill_everything(struct bed *b, size_t n)
{
    must(b, app_kill_all_open(b->app, false));
    assert_true(wait_for(b, armed, NULL));
    assert_int_equal(app_model(b->app)->kill->n_project, n);
    assert_int_not_equal(finish(b, app_kill_all_confirm(b->app, false, n + 1)), 0);
    must(b, app_kill_all_confirm(b->app, false, n));
    assert_int_equal(app_model(b->app)->kill->phase, KILL_REPORT);
    assert_int_equal(app_model(b->app)->kill->killed, n);
    assert_true(app_model(b->app)->kill->verified);
}

static void test_demo(void **state)
{
    struct bed *b = *state;
    uint64_t id;

    open_app(b, true);
    assert_true(wait_for(b, runs_idle, NULL));
    id = first(b)->id;
    app_follow(b->app, id);
    assert_true(wait_for(b, says, "demo"));
    send_and_interrupt(b, id);
    kill_everything(b, 1);
    assert_int_equal(first(b)->state, SB_KILLED);
    assert_int_equal(first(b)->gone, GONE_HERE);
    must(b, app_forget(b->app, id));
    assert_int_equal(app_model(b->app)->n_sandboxes, 0);
    close_app(b);
}

static void kill_provider(const struct bed *b)
{
    char *path = in_root(b, "run/local.json");
    size_t len;
    char *text = fs_read(path, 1 << 16, true, &len, NULL);
    struct cJSON *j;
    pid_t pid;
    int64_t until = clock_mono_ms() + 5000;

    assert_non_null(text);
    j = json_parse(text, len, NULL);
    pid = (pid_t)json_i64(j, "pid", 0);
    assert_true(pid > 1);
    kill(pid, SIGKILL);
    while (kill(pid, 0) == 0 && clock_mono_ms() < until)
        poll(NULL, 0, 5);
    json_free(j);
    free(text);
    free(path);
}

static bool link_lost(struct bed *b, const void *arg)
{
    return b->losses > *(const size_t *)arg;
}

static void test_provider_restarts(void **state)
{
    struct bed *b = *state;
    struct app_create c = {.tool = "demo", .name = "one"};
    uint64_t id;
    size_t losses;

    open_app(b, false);
    must(b, app_create(b->app, &c, true));
    id = b->sandbox;
    assert_true(wait_for(b, runs_idle, NULL));
    losses = b->losses;
    kill_provider(b);
    assert_true(wait_for(b, link_lost, &losses));
    assert_true(link_ok(b));
    app_follow(b->app, id);
    must(b, app_send(b->app, id, "run echo after", true));
    assert_true(wait_for(b, says, "after"));
    /* another life of ours finds it as it was */
    close_app(b);
    open_app(b, false);
    assert_true(wait_for(b, runs_idle, NULL));
    assert_string_equal(first(b)->name, "one");
    app_follow(b->app, id);
    assert_true(wait_for(b, says, "after"));
    must(b, app_kill(b->app, id));
    assert_int_equal(first(b)->state, SB_KILLED);
    close_app(b);
}

static void test_time_and_pause(void **state)
{
    struct bed *b = *state;
    struct app_create c = {.tool = "demo", .name = "two", .prompt = "run echo first words"};
    int64_t end;
    uint64_t id;

    open_app(b, false);
    must(b, app_create(b->app, &c, true));
    id = b->sandbox;
    app_follow(b->app, id);
    assert_true(wait_for(b, says, "first words"));
    assert_int_equal(finish(b, app_create(b->app, &c, false)), ERR_INVALID); /* the name */
    end = first(b)->end_at;
    must(b, app_set_timeout(b->app, id, 7200));
    assert_true(first(b)->end_at > end + 1000 * 1000);
    assert_int_equal(finish(b, app_set_timeout(b->app, id, 0)), ERR_INVALID);
    must(b, app_pause(b->app, id));
    assert_int_equal(first(b)->state, SB_PAUSED);
    assert_int_equal(finish(b, app_send(b->app, id, "hello", false)), ERR_CONFLICT);
    must(b, app_resume(b->app, id, 600));
    assert_int_equal(first(b)->state, SB_RUNNING);
    must(b, app_send(b->app, id, "run echo again", true));
    assert_true(wait_for(b, says, "again"));
    must(b, app_rename(b->app, id, "three"));
    assert_string_equal(first(b)->name, "three");
    app_protect(b->app, id, true);
    must(b, app_kill_all_open(b->app, false));
    assert_true(wait_for(b, armed, NULL));
    assert_int_equal(app_model(b->app)->kill->n_protected, 1);
    must(b, app_kill_all_confirm(b->app, false, 0));
    assert_int_equal(first(b)->state, SB_RUNNING);
    must(b, app_kill(b->app, id));
    close_app(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_demo, setup, teardown),
        cmocka_unit_test_setup_teardown(test_provider_restarts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_time_and_pause, setup, teardown),
    };
    const char *b = getenv("B"), *old = getenv("PATH");
    char *cwd = getcwd(NULL, 0), *path;
    struct err e = {0};
    sigset_t all;
    int rc;

    path = xasprintf("%s/%s:%s", cwd, b ? b : "build/asan", old ? old : "");
    setenv("PATH", path, 1);
    free(path);
    free(cwd);
    sigfillset(&all);
    sigdelset(&all, SIGINT);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    thread_set_role(THREAD_MAIN);
    if (secrets_init(&e) != 0)
        return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    return rc;
}
