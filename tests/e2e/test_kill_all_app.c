/* Killing through the facade: what is told afterwards is what a fresh list shows, a second
 * try acts on what was left alone, and a kill that was cut short is finished. */
#include "../lib/sidebyside.h"
#include "../lib/statebed.h"

#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct model *model(const struct appbed *b)
{
    return app_model(b->app);
}

static bool has_rows(struct appbed *b, const void *n)
{
    return model(b)->n_sandboxes >= *(const size_t *)n;
}

static void open_app(struct appbed *b, int wait_ms)
{
    struct app_opts o = {.follow_all = true, .poll_ms = 200, .kill_wait_ms = wait_ms};

    setenv("E2B_API_KEY", APPBED_KEY, 1);
    appbed_open(b, &o);
}

static void serve(struct appbed *b, size_t n, int wait_ms)
{
    char count[16];
    const char *args[] = {"--sandboxes", count, NULL};

    snprintf(count, sizeof(count), "%zu", n);
    statebed_fake = faultd_serve(args);
    open_app(b, wait_ms);
    assert_true(appbed_wait(b, has_rows, &n));
}

/* --- what the service saw --------------------------------------------------------- */

/* Deletes of one sandbox, or of all (id NULL). */
static int deletes(const char *id)
{
    char *path = xasprintf("*%s", id ? id : "");
    size_t n = faultd_asked(statebed_fake, "DELETE", path).n;

    free(path);
    return (int)n;
}

static void rules(const char *text)
{
    char *json = xasprintf("{\"rules\":[%s]}", text);

    assert_true(faultd_config(statebed_fake, json));
    free(json);
}

static void add_rule(struct buf *out, const char *id, const char *what)
{
    buf_addf(out, "%s{\"method\":\"DELETE\",\"path\":\"/sandboxes/%s\",%s}",
             out->len ? "," : "", id, what);
}

/* --- kill all ------------------------------------------------------------------------ */

static int kill_all(struct appbed *b, size_t n)
{
    appbed_must(b, app_kill_all_open(b->app, true));
    assert_int_equal(model(b)->kill->n_account, n);
    return appbed_finish(b, app_kill_all_confirm(b->app, true, n));
}

static void assert_counts(const struct appbed *b, size_t killed, size_t gone, size_t failed,
                          size_t alive)
{
    const struct ev_kill *k = model(b)->kill;

    assert_int_equal(k->phase, KILL_REPORT);
    assert_int_equal(k->killed, killed);
    assert_int_equal(k->already_gone, gone);
    assert_int_equal(k->failed, failed);
    assert_int_equal(k->still_alive, alive);
}

static void assert_states(const struct appbed *b, size_t up, size_t killed)
{
    for (size_t i = 0; i < model(b)->n_sandboxes; i++) {
        up -= model(b)->sandboxes[i].state == SB_RUNNING;
        killed -= model(b)->sandboxes[i].state == SB_KILLED;
        assert_false(model(b)->sandboxes[i].pending);
    }
    assert_int_equal(up, 0);
    assert_int_equal(killed, 0);
}

/* Ten: a 500, a 429, silence, one that went by itself, and six that go. All are tried,
 * the summary is exact, the second try acts on the three that failed. */
static void test_partial_failure(void **state)
{
    static const char *const faults[] = {"\"status\":500", "\"status\":429",
                                         "\"stall\":true,\"apply\":false",
                                         "\"status\":404,\"apply\":true"};
    struct appbed *b = *state;
    char ids[10][32];
    struct buf r = BUF_INIT;

    serve(b, 10, 1200);
    for (size_t i = 0; i < 10; i++)
        str_copy(ids[i], sizeof(ids[i]), model(b)->sandboxes[i].sandbox_id);
    for (size_t i = 0; i < 4; i++)
        add_rule(&r, ids[i], faults[i]);
    rules(buf_str(&r));
    assert_int_not_equal(kill_all(b, 10), 0);
    assert_counts(b, 6, 1, 3, 0);
    assert_true(model(b)->kill->verified);
    for (size_t i = 0; i < 10; i++)
        assert_true(deletes(ids[i]) >= 1);
    for (size_t i = 0; i < model(b)->kill->n; i++) {
        const struct kill_target *t = &model(b)->kill->v[i];
        assert_true(t->result != 3 || (t->reason && strstr(t->reason, t->sandbox_id)));
    }
    assert_states(b, 3, 7);
    assert_true(faultd_config(statebed_fake, "{\"reset\":true}"));
    appbed_must(b, app_kill_all_retry(b->app));
    assert_int_equal(deletes(NULL), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(deletes(ids[i]), 1);
    assert_counts(b, 9, 1, 0, 0);
    assert_states(b, 0, 10);
    assert_int_equal(faultd_left(statebed_fake), 0);
    buf_release(&r);
    appbed_close(b);
}

/* One that always comes back is named as alive, its row too, and can be tried again. */
static void test_always_back(void **state)
{
    struct appbed *b = *state;
    struct buf r = BUF_INIT;

    serve(b, 5, 800);
    add_rule(&r, model(b)->sandboxes[2].sandbox_id, "\"back_ms\":1");
    rules(buf_str(&r));
    assert_int_not_equal(kill_all(b, 5), 0);
    assert_counts(b, 4, 0, 0, 1);
    assert_true(model(b)->kill->verified);
    assert_states(b, 1, 4);
    assert_int_equal(faultd_left(statebed_fake), 1);
    rules("");
    appbed_must(b, app_kill_all_retry(b->app));
    assert_counts(b, 5, 0, 0, 0);
    assert_states(b, 0, 5);
    buf_release(&r);
    appbed_close(b);
}

static bool is_alive(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->kill->still_alive == 1;
}

/* It comes back after the report: the report that is still shown says so. */
static void test_back_later(void **state)
{
    struct appbed *b = *state;

    serve(b, 3, 3000);
    rules("{\"method\":\"DELETE\",\"path\":\"*\",\"times\":1,\"back_ms\":1000}");
    assert_int_equal(kill_all(b, 3), 0);
    assert_counts(b, 3, 0, 0, 0);
    assert_true(appbed_wait(b, is_alive, NULL));
    rules("");
    appbed_must(b, app_kill_all_retry(b->app));
    assert_counts(b, 3, 0, 0, 0);
    assert_int_equal(faultd_left(statebed_fake), 0);
    appbed_close(b);
}

/* Without a list afterwards nothing is called gone, on no row. */
static void test_no_proof(void **state)
{
    struct appbed *b = *state;

    serve(b, 6, 800);
    appbed_must(b, app_kill_all_open(b->app, true));
    rules("{\"method\":\"GET\",\"path\":\"/v2/sandboxes\",\"status\":503}");
    assert_int_equal(appbed_finish(b, app_kill_all_confirm(b->app, true, 6)), ERR_NETWORK);
    assert_counts(b, 6, 0, 0, 0);
    assert_false(model(b)->kill->verified);
    assert_non_null(model(b)->kill->text);
    assert_states(b, 6, 0);
    rules("");
    assert_int_equal(deletes(NULL), 6);
    appbed_must(b, app_kill_all_retry(b->app)); /* only looks */
    assert_int_equal(deletes(NULL), 6);
    assert_true(model(b)->kill->verified);
    assert_states(b, 0, 6);
    appbed_close(b);
}

static bool some_deletes(struct appbed *b, const void *n)
{
    (void)b;
    return deletes(NULL) >= *(const int *)n;
}

/* The network goes away in the middle of it, and comes back. */
static void test_network_cut(void **state)
{
    struct appbed *b = *state;
    struct faultd *proxy;
    size_t n = 40;
    int some = 5;
    uint64_t req;

    serve(b, n, 20000);
    appbed_close(b);
    proxy = faultd_proxy(faultd_url(statebed_fake));
    setenv("E2B_API_URL", faultd_url(proxy), 1);
    open_app(b, 20000);
    assert_true(appbed_wait(b, has_rows, &n));
    rules("{\"method\":\"DELETE\",\"path\":\"*\",\"delay_ms\":400}");
    appbed_must(b, app_kill_all_open(b->app, true));
    req = app_kill_all_confirm(b->app, true, n);
    assert_true(appbed_wait(b, some_deletes, &some));
    assert_true(faultd_command(proxy, "down 700", NULL, 0));
    appbed_must(b, req);
    assert_counts(b, n, 0, 0, 0);
    assert_true(model(b)->kill->verified);
    assert_int_equal(faultd_left(statebed_fake), 0);
    appbed_close(b);
    faultd_stop(proxy);
}

/* --- creates ------------------------------------------------------------------------- */

static bool first_creating(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->n_sandboxes == 1 && model(b)->sandboxes[0].state == SB_CREATING;
}

static bool is_running(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->kill && model(b)->kill->phase == KILL_RUNNING;
}

static bool is_posted(struct appbed *b, const void *arg)
{
    (void)b;
    (void)arg;
    return faultd_asked(statebed_fake, "POST", "*/sandboxes").n == 1;
}

/* The service has it: killed before that, it would only be called off. */
static void begin_create(struct appbed *b)
{
    struct app_create c = {.tool = "shell", .name = "late"};

    app_create(b->app, &c, true);
    assert_true(appbed_wait(b, first_creating, NULL));
    assert_true(appbed_wait(b, is_posted, NULL));
}

/* Lists are asked for, a fifth of a second apart, until it is so; not without an end. */
static void refresh_until(struct appbed *b, bool (*ok)(void))
{
    for (int tries = 0; !ok(); tries++) {
        assert_true(tries < 300);
        appbed_must(b, app_refresh(b->app));
    }
}

static bool one_deleted(void)
{
    return deletes(NULL) > 0;
}

static bool two_left(void)
{
    return faultd_left(statebed_fake) == 2;
}

/* Its answer is lost, and the sandbox is there only later: found by its mark, ended. */
static void test_create_answered_late(void **state)
{
    struct appbed *b = *state;

    serve(b, 0, 20000);
    rules("{\"method\":\"POST\",\"path\":\"/sandboxes\",\"late_ms\":500,\"rst\":true}");
    begin_create(b);
    assert_int_equal(kill_all(b, 1), 0);
    assert_counts(b, 1, 0, 0, 0);
    assert_int_equal(deletes(NULL), 1);
    assert_int_equal(faultd_left(statebed_fake), 0);
    assert_states(b, 0, 1);
    appbed_close(b);
}

/* A delete that was refused ended nothing: what is gone all the same went by itself. */
static void test_refused_and_gone(void **state)
{
    struct appbed *b = *state;
    struct buf all = BUF_INIT;

    serve(b, 2, 5000);
    add_rule(&all, model(b)->sandboxes[0].sandbox_id, "\"status\":409,\"apply\":true");
    rules(buf_str(&all));
    assert_int_equal(kill_all(b, 2), 0);
    assert_counts(b, 1, 1, 0, 0);
    assert_states(b, 0, 2);
    buf_release(&all);
    appbed_close(b);
}

/* Another process asked for it, and has no answer: that no list shows it is no proof. */
static void test_create_of_another_process(void **state)
{
    struct appbed *b = *state, twin = {0};
    size_t one = 1;

    serve(b, 0, 3000);
    rules("{\"method\":\"POST\",\"path\":\"/sandboxes\",\"apply\":false,\"stall\":true}");
    begin_create(b);
    memcpy(twin.root, b->root, sizeof(twin.root));
    open_app(&twin, 3000);
    assert_true(appbed_wait(&twin, has_rows, &one));
    assert_int_equal(kill_all(&twin, 1), ERR_SERVER);
    assert_counts(&twin, 0, 0, 1, 0);
    assert_non_null(strstr(model(&twin)->kill->v[0].reason, "is not answered yet"));
    assert_int_equal(model(&twin)->sandboxes[0].state, SB_CREATING);
    appbed_close(&twin);
    free(twin.text);
    appbed_close(b);
}

/* We ended while it was still to come: the next life ends it when a list shows it, and
 * nothing that was not named goes with it. */
static void test_create_found_after_end(void **state)
{
    struct appbed *b = *state;

    serve(b, 0, 20000);
    rules("{\"method\":\"POST\",\"path\":\"/sandboxes\",\"late_ms\":1200,\"stall\":true}");
    begin_create(b);
    appbed_must(b, app_kill_all_open(b->app, true));
    app_kill_all_confirm(b->app, true, 1);
    assert_true(appbed_wait(b, is_running, NULL));
    appbed_close(b);
    assert_true(faultd_config(statebed_fake, "{\"rules\":[],\"sandboxes\":1,\"add\":true}"));
    open_app(b, 20000);
    refresh_until(b, one_deleted);
    appbed_must(b, app_refresh(b->app));
    appbed_must(b, app_refresh(b->app));
    assert_int_equal(faultd_left(statebed_fake), 1); /* another's; ours may be asked for twice */
    appbed_close(b);
}

/* Cut short between the word and the answers; a first short life does not reach the end
 * either, the third does. What came since is left alone. */
static void test_finished_in_a_later_life(void **state)
{
    struct appbed *b = *state;
    int all = 4;

    serve(b, 4, 20000);
    rules("{\"method\":\"DELETE\",\"path\":\"*\",\"stall\":true,\"apply\":false}");
    appbed_must(b, app_kill_all_open(b->app, true));
    app_kill_all_confirm(b->app, true, 4);
    assert_true(appbed_wait(b, some_deletes, &all));
    appbed_close(b);
    open_app(b, 20000);
    appbed_must(b, app_refresh(b->app));
    appbed_close(b);
    assert_true(faultd_config(statebed_fake, "{\"reset\":true,\"rules\":[],\"sandboxes\":2,\"add\":true}"));
    assert_int_equal(faultd_left(statebed_fake), 6);
    open_app(b, 20000);
    refresh_until(b, two_left);
    appbed_must(b, app_refresh(b->app));
    assert_int_equal(deletes(NULL), 4);
    appbed_close(b);
}

/* --- one ----------------------------------------------------------------------------- */

/* A key pressed twice is one delete. */
static void test_pressed_twice(void **state)
{
    struct appbed *b = *state;
    uint64_t id, first, second;

    serve(b, 2, 5000);
    rules("{\"method\":\"DELETE\",\"path\":\"*\",\"delay_ms\":300}");
    id = model(b)->sandboxes[0].id;
    first = app_kill(b->app, id);
    second = app_kill(b->app, id);
    assert_int_equal(appbed_finish(b, second), ERR_BUSY);
    assert_non_null(strstr(b->err.text, "is being killed already"));
    appbed_must(b, first);
    assert_int_equal(deletes(NULL), 1);
    assert_int_equal(faultd_left(statebed_fake), 1);
    assert_states(b, 1, 1);
    appbed_close(b);
}

/* From now on the sandbox of the first row looks so: members of an object. */
static void looks(const struct appbed *b, const char *members)
{
    char *rule = xasprintf("{\"method\":\"GET\",\"path\":\"/sandboxes/*\",\"status\":200,"
                           "\"body\":\"{\\\"sandboxID\\\":\\\"%s\\\",\\\"state\\\":"
                           "\\\"running\\\",%s}\"}",
                           model(b)->sandboxes[0].sandbox_id, members);

    rules(rule);
    free(rule);
}

#define IN_2020 "\\\"startedAt\\\":\\\"2020-01-01T00:00:00Z\\\""
#define MARKED(m) "\\\"metadata\\\":{\\\"cc-tui-mark\\\":\\\"" m "\\\"}"

/* Another run answers to the id than the one that was shown. */
static void test_started_anew(void **state)
{
    struct appbed *b = *state;

    serve(b, 1, 2000);
    looks(b, IN_2020);
    assert_int_equal(appbed_finish(b, app_kill(b->app, model(b)->sandboxes[0].id)), ERR_CONFLICT);
    assert_int_equal(deletes(NULL), 0);
    assert_states(b, 1, 0);
    appbed_close(b);
}

/* One of ours is known by its mark, whenever it was started. */
static void test_known_by_its_mark(void **state)
{
    static const char *const args[] = {
        "--config", "{\"sandboxes\":1,\"metadata\":{\"cc-tui-mark\":\"m1\"}}", NULL};
    struct appbed *b = *state;
    size_t n = 1;

    statebed_fake = faultd_serve(args);
    open_app(b, 2000);
    assert_true(appbed_wait(b, has_rows, &n));
    looks(b, MARKED("m2"));
    assert_int_equal(appbed_finish(b, app_kill(b->app, model(b)->sandboxes[0].id)), ERR_CONFLICT);
    assert_int_equal(deletes(NULL), 0);
    looks(b, IN_2020 "," MARKED("m1"));
    appbed_must(b, app_kill(b->app, model(b)->sandboxes[0].id));
    assert_int_equal(deletes(NULL), 1);
    assert_states(b, 0, 1);
    appbed_close(b);
}

static size_t pages_asked_for(void)
{
    return faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n;
}

/* Lists are asked for when there is a reason alone. */
static void serve_quietly(struct appbed *b, const char *const *args, size_t n)
{
    struct app_opts o = {.follow_all = true, .poll_ms = 60000};

    statebed_fake = faultd_serve(args);
    setenv("E2B_API_KEY", APPBED_KEY, 1);
    appbed_open(b, &o);
    assert_true(appbed_wait(b, has_rows, &n));
}

/* Pages shift while rows go: what is on none of several is looked for twice. */
static void test_one_on_no_page(void **state)
{
    static const char *const args[] = {"--sandboxes", "6", "--page", "2", NULL};
    struct appbed *b = *state;
    size_t before, of_a_list;

    serve_quietly(b, args, 6);
    before = pages_asked_for();
    appbed_must(b, app_refresh(b->app));
    of_a_list = pages_asked_for() - before;
    assert_true(of_a_list >= 3);
    before = pages_asked_for();
    appbed_must(b, app_kill(b->app, model(b)->sandboxes[0].id));
    assert_true(pages_asked_for() - before >= 2 * of_a_list);
    assert_states(b, 5, 1);
    appbed_close(b);
}

/* A service that lists running ones alone: that a paused one is not listed proves nothing. */
static void test_one_that_is_never_listed(void **state)
{
    static const char *const args[] = {"--sandboxes", "2", "--config", "{\"v2\":false}", NULL};
    struct appbed *b = *state;
    uint64_t id;

    serve_quietly(b, args, 2);
    id = model(b)->sandboxes[0].id;
    appbed_must(b, app_pause(b->app, id));
    rules("{\"method\":\"DELETE\",\"path\":\"*\",\"times\":1,\"status\":204}");
    appbed_must(b, app_kill(b->app, id));
    assert_int_equal(deletes(NULL), 2); /* the first was a lie */
    assert_int_equal(faultd_left(statebed_fake), 1);
    assert_states(b, 1, 1);
    appbed_close(b);
}

/* A 204 and a 404 that lie; a delete that never holds; no list to be had. */
static void test_one_is_proved(void **state)
{
    struct appbed *b = *state;

    serve(b, 4, 500);
    rules("{\"method\":\"DELETE\",\"path\":\"*\",\"times\":1,\"status\":204}");
    appbed_must(b, app_kill(b->app, model(b)->sandboxes[0].id));
    rules("{\"method\":\"DELETE\",\"path\":\"*\",\"times\":1,\"status\":404}");
    appbed_must(b, app_kill(b->app, model(b)->sandboxes[1].id));
    assert_int_equal(deletes(NULL), 4);
    assert_states(b, 2, 2);
    rules("{\"method\":\"DELETE\",\"path\":\"*\",\"status\":204}");
    assert_int_equal(appbed_finish(b, app_kill(b->app, model(b)->sandboxes[2].id)), ERR_SERVER);
    assert_non_null(strstr(b->err.text, "still listed"));
    assert_states(b, 2, 2);
    rules("{\"method\":\"GET\",\"path\":\"/v2/*\",\"status\":503}");
    assert_int_equal(appbed_finish(b, app_kill(b->app, model(b)->sandboxes[3].id)), ERR_NETWORK);
    assert_non_null(strstr(b->err.text, "could not be seen"));
    assert_states(b, 2, 2);
    assert_int_equal(faultd_left(statebed_fake), 1);
    appbed_close(b);
}

/* In groups of about the same time; the first is of what fails, the second of creates and lives,
 * the third of one alone. */
static int run_group(int i)
{
#define T(f) cmocka_unit_test_setup_teardown(f, appbed_setup, statebed_teardown)
    const struct CMUnitTest fails[] = {
        T(test_partial_failure), T(test_always_back),  T(test_back_later),
        T(test_no_proof),        T(test_network_cut),  T(test_refused_and_gone),
    };
    const struct CMUnitTest lives[] = {
        T(test_create_answered_late),       T(test_create_of_another_process),
        T(test_create_found_after_end),     T(test_finished_in_a_later_life),
    };
    const struct CMUnitTest one[] = {
        T(test_pressed_twice),  T(test_started_anew),             T(test_known_by_its_mark),
        T(test_one_on_no_page), T(test_one_that_is_never_listed), T(test_one_is_proved),
    };

    if (i == 0)
        return cmocka_run_group_tests(fails, NULL, NULL);
    return i == 1 ? cmocka_run_group_tests(lives, NULL, NULL)
                  : cmocka_run_group_tests(one, NULL, NULL);
}

int main(void)
{
    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return side_by_side(3, run_group);
}
