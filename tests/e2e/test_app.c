/* The facade against a real local provider that it starts itself: from an empty machine
 * to a talking agent and back to nothing. */
#include "../lib/appbed.h"
#include "../lib/miniserver.h"

#include <cct/model/export.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/pidstat.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void open_app(struct appbed *b, bool first_demo)
{
    struct app_opts o = {.local = true,
                         .local_unsafe = !appbed_isolated(),
                         .first_demo = first_demo,
                         .start_local = true,
                         .follow_all = true,
                         .poll_ms = 300};

    appbed_open(b, &o);
}

/* --- what the model says -------------------------------------------------------- */

static const struct sandbox *first(const struct appbed *b)
{
    const struct model *m = app_model(b->app);

    return m->n_sandboxes ? &m->sandboxes[0] : NULL;
}

static bool runs_idle(struct appbed *b, const void *arg)
{
    const struct sandbox *s = first(b);

    (void)arg;
    if (s && s->state == SB_ERROR)
        fail_msg("%s", s->reason);
    return s && s->state == SB_RUNNING && s->agent == AG_IDLE;
}

static bool is_loaded(struct appbed *b, const void *arg)
{
    (void)arg;
    return app_model(b->app)->loaded;
}

static bool is_killed(struct appbed *b, const void *arg)
{
    (void)arg;
    return first(b)->state == SB_KILLED;
}

static bool works(struct appbed *b, const void *arg)
{
    (void)arg;
    return first(b) && first(b)->agent == AG_WORKING;
}

static bool says(struct appbed *b, const void *text)
{
    uint64_t id = first(b) ? first(b)->id : 0;
    const struct transcript *t = model_transcript(app_model(b->app), id);

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].text && strstr(t->v[i].text, text))
            return true;
    return false;
}

static bool link_is(struct appbed *b, const void *st)
{
    return app_model(b->app)->link == *(const enum link_state *)st;
}

static bool link_ok(struct appbed *b)
{
    enum link_state ok = LINK_OK;

    return appbed_wait(b, link_is, &ok);
}

static bool armed(struct appbed *b, const void *arg)
{
    (void)arg;
    return app_model(b->app)->kill && app_model(b->app)->kill->phase == KILL_ARMED;
}

/* --- tests ---------------------------------------------------------------------- */

static void send_and_interrupt(struct appbed *b, uint64_t id)
{
    uint64_t turn;

    appbed_must(b, app_send(b->app, id, "run uname -a", true));
    assert_true(appbed_wait(b, says, "Linux"));
    /* the first turn may still be at work: the interrupt is meant for the second */
    assert_true(appbed_wait(b, runs_idle, NULL));
    turn = app_send(b->app, id, "run sleep 60", true);
    assert_true(appbed_wait(b, works, NULL));
    appbed_must(b, app_interrupt(b->app, id));
    appbed_finish(b, turn);
    assert_true(appbed_wait(b, runs_idle, NULL));
}

static void kill_everything(struct appbed *b, size_t n)
{
    appbed_must(b, app_kill_all_open(b->app, false));
    assert_true(appbed_wait(b, armed, NULL));
    assert_int_equal(app_model(b->app)->kill->n_project, n);
    assert_int_not_equal(appbed_finish(b, app_kill_all_confirm(b->app, false, n + 1)), 0);
    appbed_must(b, app_kill_all_confirm(b->app, false, n));
    assert_int_equal(app_model(b->app)->kill->phase, KILL_REPORT);
    assert_int_equal(app_model(b->app)->kill->killed, n);
    assert_true(app_model(b->app)->kill->verified);
}

static void test_demo(void **state)
{
    struct appbed *b = *state;
    uint64_t id;

    open_app(b, true);
    assert_true(appbed_wait(b, runs_idle, NULL));
    id = first(b)->id;
    app_follow(b->app, id);
    assert_true(appbed_wait(b, says, "demo"));
    send_and_interrupt(b, id);
    kill_everything(b, 1);
    assert_int_equal(first(b)->state, SB_KILLED);
    assert_int_equal(first(b)->gone, GONE_HERE);
    appbed_must(b, app_forget(b->app, id));
    assert_int_equal(app_model(b->app)->n_sandboxes, 0);
    appbed_close(b);
}

static void kill_provider(const struct appbed *b)
{
    char *path = appbed_path(b, "run/local.json");
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

static bool link_lost(struct appbed *b, const void *arg)
{
    return b->losses > *(const size_t *)arg;
}

static void test_provider_restarts(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "demo", .name = "one"};
    uint64_t id;
    size_t losses;

    open_app(b, false);
    appbed_must(b, app_create(b->app, &c, true));
    id = b->sandbox;
    assert_true(appbed_wait(b, runs_idle, NULL));
    losses = b->losses;
    kill_provider(b);
    assert_true(appbed_wait(b, link_lost, &losses));
    assert_true(link_ok(b));
    app_follow(b->app, id);
    appbed_must(b, app_send(b->app, id, "run echo after", true));
    assert_true(appbed_wait(b, says, "after"));
    /* another life of ours finds it as it was */
    appbed_close(b);
    open_app(b, false);
    assert_true(appbed_wait(b, runs_idle, NULL));
    assert_string_equal(first(b)->name, "one");
    app_follow(b->app, id);
    assert_true(appbed_wait(b, says, "after"));
    appbed_must(b, app_kill(b->app, id));
    assert_int_equal(first(b)->state, SB_KILLED);
    appbed_close(b);
}

/* --- a provider whose port outlives it ------------------------------------------- */

/* As if somebody else had taken the ports of a provider that ended: whatever is told there
 * afterwards, the key is not. */
struct heir {
    struct mini *m;
    size_t losses;
    int heard;
};

static void inherit(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    (void)ctx;
    (void)r;
    mini_reply(c, 200, "Content-Type: application/json\r\n", "[]");
}

static pid_t stand_in(const struct appbed *b, const struct mini *m)
{
    char *path = appbed_path(b, "run/local.json"), *text;
    struct err e = {0};
    pid_t pid = fork();

    if (pid == 0) {
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    text = xasprintf("{\"version\":1,\"pid\":%d,\"startTicks\":%llu,\"controlPort\":%d,"
                     "\"trafficPort\":%d,\"apiKey\":\"" APPBED_KEY "\"}",
                     (int)pid, (unsigned long long)pidstat_start(pid), mini_port(m), mini_port(m));
    if (fs_write_private(path, text, strlen(text), &e) != 0)
        fail_msg("%s", e.text);
    free(text);
    free(path);
    return pid;
}

static bool lost_or_heard(struct appbed *b, const void *arg)
{
    const struct heir *h = arg;

    return b->losses > h->losses || mini_requests(h->m) > h->heard + 3;
}

static void test_port_outlives_provider(void **state)
{
    struct appbed *b = *state;
    struct app_opts o = {.local = true, .poll_ms = 50};
    struct heir h = {.m = mini_start(inherit, NULL)};
    char *run = appbed_path(b, "run");
    struct err e = {0};
    pid_t pid;

    assert_int_equal(fs_mkdir_private(run, &e), 0);
    pid = stand_in(b, h.m);
    appbed_open(b, &o);
    assert_true(link_ok(b));
    h.losses = b->losses;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    h.heard = mini_requests(h.m);
    assert_true(appbed_wait(b, lost_or_heard, &h));
    assert_true(mini_requests(h.m) <= h.heard + 1); /* one may have been on its way */
    h.heard = mini_requests(h.m);
    /* the next one is asked as ever */
    pid = stand_in(b, h.m);
    assert_true(link_ok(b));
    assert_true(mini_requests(h.m) > h.heard);
    appbed_close(b);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    mini_stop(h.m);
    free(run);
}

static void drop(void *ctx, const char *data, size_t len)
{
    (void)data;
    *(size_t *)ctx += len;
}

/* Who only looks asks no service, and sees what the screen would: its rows do not go again. */
static void test_only_looks(void **state)
{
    struct appbed *b = *state;
    struct app_opts o = {.keys_only = true};
    struct app_create c = {.tool = "demo", .name = "kept", .prompt = "run echo first words"};
    size_t n = 0;

    open_app(b, false);
    appbed_must(b, app_create(b->app, &c, true));
    appbed_must(b, app_send(b->app, b->sandbox, "run echo again", true));
    appbed_close(b);
    appbed_open(b, &o);
    assert_true(appbed_wait(b, is_loaded, NULL));
    assert_non_null(first(b));
    /* this waits for the rows as the other threads have them */
    appbed_must(b, app_export(b->app, first(b)->id, EXPORT_EVENTS, NULL, drop, &n));
    assert_true(n > 0);
    assert_non_null(first(b));
    assert_string_equal(first(b)->name, "kept");
}

static void test_time_and_pause(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "demo", .name = "two", .prompt = "run echo first words"};
    int64_t end;
    uint64_t id;

    open_app(b, false);
    appbed_must(b, app_create(b->app, &c, true));
    id = b->sandbox;
    app_follow(b->app, id);
    assert_true(appbed_wait(b, says, "first words"));
    assert_int_equal(appbed_finish(b, app_create(b->app, &c, false)), ERR_INVALID); /* the name */
    end = first(b)->end_at;
    appbed_must(b, app_set_timeout(b->app, id, 7200));
    assert_true(first(b)->end_at > end + 1000 * 1000);
    assert_int_equal(appbed_finish(b, app_set_timeout(b->app, id, 0)), ERR_INVALID);
    appbed_must(b, app_pause(b->app, id));
    assert_int_equal(first(b)->state, SB_PAUSED);
    assert_int_equal(appbed_finish(b, app_send(b->app, id, "hello", false)), ERR_CONFLICT);
    appbed_must(b, app_resume(b->app, id, 600));
    assert_int_equal(first(b)->state, SB_RUNNING);
    appbed_must(b, app_send(b->app, id, "run echo again", true));
    assert_true(appbed_wait(b, says, "again"));
    appbed_must(b, app_rename(b->app, id, "three"));
    assert_string_equal(first(b)->name, "three");
    appbed_must(b, app_tag(b->app, id, "#wip,ui"));
    assert_string_equal(first(b)->tags, "wip ui");
    assert_int_equal(appbed_finish(b, app_tag(b->app, id, "no/slash")), ERR_INVALID);
    assert_string_equal(first(b)->tags, "wip ui");
    app_protect(b->app, id, true);
    appbed_must(b, app_kill_all_open(b->app, false));
    assert_true(appbed_wait(b, armed, NULL));
    assert_int_equal(app_model(b->app)->kill->n_protected, 1);
    appbed_must(b, app_kill_all_confirm(b->app, false, 0));
    assert_int_equal(first(b)->state, SB_RUNNING);
    appbed_must(b, app_kill(b->app, id));
    appbed_close(b);
}

/* Two programs, one database, one provider. */
static void test_two_of_us(void **state)
{
    struct appbed *b = *state, twin = {0};
    struct app_create c = {.tool = "demo", .name = "shared"};
    uint64_t id;

    open_app(b, false);
    appbed_must(b, app_create(b->app, &c, true));
    id = b->sandbox;
    memcpy(twin.root, b->root, sizeof(twin.root));
    open_app(&twin, false);
    assert_true(appbed_wait(&twin, runs_idle, NULL));
    assert_int_equal(first(&twin)->id, id);
    app_follow(b->app, id);
    app_follow(twin.app, id);
    appbed_must(&twin, app_send(twin.app, id, "run echo from the twin", true));
    assert_true(appbed_wait(&twin, says, "from the twin"));
    assert_true(appbed_wait(b, says, "from the twin"));
    appbed_must(b, app_send(b->app, id, "run echo back again", true));
    assert_true(appbed_wait(&twin, says, "back again"));
    appbed_must(&twin, app_kill(twin.app, id));
    assert_true(appbed_wait(b, is_killed, NULL));
    assert_int_equal(app_model(b->app)->n_sandboxes, 1);
    appbed_close(&twin);
    free(twin.text);
    appbed_close(b);
}

static bool last_line_says(struct appbed *b, const void *arg)
{
    const struct sandbox *s = first(b);

    return s && s->last_line && strstr(s->last_line, arg) != NULL;
}

/* A row that the list of the next run of the program only confirms: its stream is opened
 * all the same, though nobody looks at it. */
static void test_comes_back(void **state)
{
    struct appbed *b = *state, twin = {0};
    struct app_create c = {.tool = "demo", .name = "kept"};

    open_app(b, false);
    appbed_must(b, app_create(b->app, &c, true));
    appbed_close(b);
    open_app(b, false);
    assert_true(appbed_wait(b, runs_idle, NULL));
    memcpy(twin.root, b->root, sizeof(twin.root));
    open_app(&twin, false);
    assert_true(appbed_wait(&twin, runs_idle, NULL));
    appbed_must(&twin, app_send(twin.app, first(&twin)->id, "write far.txt: from afar", true));
    assert_true(appbed_wait(b, last_line_says, "wrote 9 bytes"));
    appbed_close(&twin);
    free(twin.text);
    kill_everything(b, 1);
    appbed_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_demo, appbed_setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_provider_restarts, appbed_setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_port_outlives_provider, appbed_setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_only_looks, appbed_setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_time_and_pause, appbed_setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_two_of_us, appbed_setup, appbed_teardown),
        cmocka_unit_test_setup_teardown(test_comes_back, appbed_setup, appbed_teardown),
    };

    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
