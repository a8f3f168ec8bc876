/* Foreign sandboxes of a service that breaks streams, pauses and gives numbers anew: what
 * was not seen is said, nothing wakes a sandbox, and no signal goes to another process than
 * the one that was meant. What cc-tui sent is read from the service's log. */
#include "../lib/faultproc.h"
#include "../lib/foreignbed.h"
#include "../lib/rawhttp.h"

#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct faultd *fake;

static int setup(void **state)
{
    static const char *const args[] = {"--sandboxes", "1", "--paused", "0", "--key", APPBED_KEY, NULL};
    struct app_opts o = {.follow_all = true, .poll_ms = 200};
    struct appbed *b = appbed_new();

    fake = faultd_start(args);
    if (!fake)
        return -1;
    appbed_service(b, faultd_url(fake));
    appbed_open(b, &o);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    appbed_free(*state);
    faultd_stop(fake);
    return 0;
}

static bool has_row(struct appbed *b, const void *arg)
{
    (void)arg;
    return app_model(b->app)->n_sandboxes == 1 && app_model(b->app)->sandboxes[0].id;
}

static struct foreign_box the_box(struct appbed *b, uint64_t *row)
{
    struct foreign_box x = {.port = (int)strtol(strrchr(faultd_url(fake), ':') + 1, NULL, 10)};
    const struct sandbox *s;

    assert_true(appbed_wait(b, has_row, NULL));
    s = &app_model(b->app)->sandboxes[0];
    assert_true(s->foreign);
    *row = s->id;
    str_copy(x.id, sizeof(x.id), s->sandbox_id);
    snprintf(x.token, sizeof(x.token), "ea_%s", x.id);
    return x;
}

static void config(const char *json)
{
    assert_true(faultd_config(fake, json));
}

/* Requests of cc-tui from number `from` on whose method and path begin like this. */
static size_t requests(const char *method, const char *path, size_t from)
{
    char *log = faultd_http(fake, "GET", "/_faultd/log", "");
    struct cJSON *j;
    size_t n = 0, at = 0;

    assert_non_null(log);
    j = json_parse(log, strlen(log), NULL);
    for (const struct cJSON *c = json_first(json_get(j, "requests")); c; c = json_next(c))
        n += at++ >= from && str_eq(json_str(c, "method", ""), method) &&
             str_starts(json_str(c, "path", ""), path);
    json_free(j);
    free(log);
    return n;
}

static size_t all_requests(void)
{
    char *log = faultd_http(fake, "GET", "/_faultd/log", "");
    struct cJSON *j = json_parse(log, strlen(log), NULL);
    size_t n = 0;

    for (const struct cJSON *c = json_first(json_get(j, "requests")); c; c = json_next(c))
        n++;
    json_free(j);
    free(log);
    return n;
}

static bool many_lists(struct appbed *b, const void *n)
{
    (void)b;
    return requests("GET", "/v2/sandboxes", 0) >= *(const size_t *)n;
}

/* --- asking ----------------------------------------------------------------------- */

/* Where it is, is asked once for any number of lists; and never by a call that resumes. */
static void test_token_is_asked_once(void **state)
{
    struct appbed *b = *state;
    uint64_t id;
    struct foreign_box x = the_box(b, &id);
    char *path = xasprintf("/sandboxes/%s", x.id);
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, "exec sleep 300");

    for (int i = 0; i < 4; i++)
        assert_non_null(foreign_proc(b, id, pid));
    assert_int_equal(requests("GET", path, 0), 1);
    assert_int_equal(requests("POST", "/sandboxes", 0) + requests("POST", "/v2/sandboxes", 0), 0);
    assert_int_equal(requests("POST", "/process.Process/List", 0), 4);
    free(path);
}

/* A list that makes no sense, or none at all, is said and takes nothing along. */
static void test_damaged_lists(void **state)
{
    static const char *const rules[] = {
        "{\"rules\":[{\"method\":\"POST\",\"path\":\"/process.Process/List\",\"status\":200,"
        "\"body\":\"{\\\"processes\\\":{}}\",\"times\":1}]}",
        "{\"rules\":[{\"method\":\"POST\",\"path\":\"/process.Process/List\",\"status\":500,"
        "\"times\":1}]}",
        "{\"rules\":[{\"method\":\"POST\",\"path\":\"/process.Process/List\",\"status\":401,"
        "\"times\":1}]}"};
    struct appbed *b = *state;
    uint64_t id;
    struct foreign_box x = the_box(b, &id);
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, "exec sleep 300");

    for (size_t i = 0; i < 3; i++) {
        config(rules[i]);
        assert_int_not_equal(appbed_finish(b, app_proc_list(b->app, id)), 0);
        assert_int_equal(model_procs(app_model(b->app), id)->state, PROCS_CANNOT);
        assert_true(*model_procs(app_model(b->app), id)->text);
        assert_non_null(foreign_proc(b, id, pid));
    }
}

/* --- losses ----------------------------------------------------------------------- */

#define TICKS "n=0; while :; do n=$((n+1)); echo tick-$n; sleep 0.02; done"

static void test_stream_is_cut(void **state)
{
    struct appbed *b = *state;
    uint64_t id;
    struct foreign_box x = the_box(b, &id);
    char *path = xasprintf("/sandboxes/%s", x.id);
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, TICKS);

    config("{\"rules\":[{\"method\":\"POST\",\"path\":\"/process.Process/Connect\","
           "\"cut_body\":400,\"times\":2}]}");
    appbed_must(b, app_proc_watch(b->app, id, pid, 0));
    foreign_shows(b, id, "was not seen");
    foreign_watch_is(b, id, WATCH_LIVE);
    foreign_shows(b, id, "tick-40");
    /* the control plane was asked before each connection */
    assert_true(requests("GET", path, 0) >= 3);
    assert_int_equal(requests("POST", "/process.Process/Connect", 0), 3);
    assert_int_equal(requests("POST", "/sandboxes", 0) + requests("POST", "/v2/sandboxes", 0), 0);
    free(path);
}

/* Its end came while nobody was connected: envd still knows it for a while. */
static void test_ended_while_cut(void **state)
{
    struct appbed *b = *state;
    uint64_t id;
    struct foreign_box x = the_box(b, &id);
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, "echo first; while [ ! -e gate ]; do sleep 0.05; "
                                                  "done; exit 5");

    appbed_must(b, app_proc_watch(b->app, id, pid, 0));
    foreign_watch_is(b, id, WATCH_LIVE);
    config("{\"rules\":[{\"method\":\"POST\",\"path\":\"/process.Process/List\",\"status\":503,"
           "\"times\":2},{\"method\":\"POST\",\"path\":\"/process.Process/Connect\","
           "\"trailer\":\"unavailable\",\"times\":1}]}");
    foreign_start(&x, FOREIGN_NO_INPUT, "touch gate");
    foreign_watch_is(b, id, WATCH_ENDED);
    foreign_shows(b, id, "ended with exit status 5");
}

static bool is_paused(struct appbed *b, const void *arg)
{
    (void)arg;
    return app_model(b->app)->sandboxes[0].state == SB_PAUSED;
}

/* Paused by somebody else, with all streams cut: not one request reaches the sandbox until
 * it runs again, although each would wake it. */
static void test_paused_is_left_alone(void **state)
{
    struct appbed *b = *state;
    uint64_t id;
    struct foreign_box x = the_box(b, &id);
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, TICKS);
    size_t from, lists;

    app_procs(b->app, id, true);
    appbed_must(b, app_proc_watch(b->app, id, pid, 0));
    foreign_shows(b, id, "tick-");
    appbed_must(b, app_pause(b->app, id));
    assert_true(appbed_wait(b, is_paused, NULL));
    foreign_watch_is(b, id, WATCH_PAUSED);
    from = all_requests();
    lists = requests("GET", "/v2/sandboxes", 0) + 6;
    assert_true(appbed_wait(b, many_lists, &lists));
    assert_int_equal(requests("POST", "/process.Process", from), 0);
    assert_int_equal(requests("POST", "/sandboxes", from), 0);
    assert_int_equal(model_procs(app_model(b->app), id)->state, PROCS_CANNOT);
    assert_non_null(strstr(model_procs(app_model(b->app), id)->text, "resume it first"));
}

/* Somebody else paused it, which we learn by the stream's end or by the next list. */
static void test_paused_by_another(void **state)
{
    struct appbed *b = *state;
    uint64_t id;
    struct foreign_box x = the_box(b, &id);
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, TICKS), fd = rawhttp_dial(x.port);
    char *path = xasprintf("/sandboxes/%s/pause", x.id);
    size_t from;

    app_procs(b->app, id, true);
    appbed_must(b, app_proc_watch(b->app, id, pid, 0));
    foreign_shows(b, id, "tick-");
    assert_int_equal(rawhttp_call(fd, x.port, APPBED_KEY, "POST", path, "{}", NULL), 204);
    from = all_requests();
    foreign_watch_is(b, id, WATCH_PAUSED);
    assert_true(appbed_wait(b, is_paused, NULL));
    assert_int_equal(requests("POST", "/process.Process", from), 0);
    close(fd);
    free(path);
}

/* --- another process under the same number ---------------------------------------- */

static char *list_of(int pid, const char *command)
{
    return xasprintf("{\"rules\":[{\"method\":\"POST\",\"path\":\"/process.Process/List\","
                     "\"status\":200,\"body\":\"{\\\"processes\\\":[{\\\"pid\\\":%d,"
                     "\\\"config\\\":{\\\"cmd\\\":\\\"%s\\\"}}]}\"}]}", pid, command);
}

static void test_number_is_given_anew(void **state)
{
    struct appbed *b = *state;
    uint64_t id, ident;
    struct foreign_box x = the_box(b, &id);
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, "exec sleep 300");
    char *rule = list_of(pid, "precious");
    struct app_adopt how = {.pid = pid};

    ident = foreign_proc(b, id, pid)->ident;
    how.ident = ident;
    config(rule);
    assert_int_equal(appbed_finish(b, app_proc_kill(b->app, id, pid, ident, true)), ERR_CONFLICT);
    assert_non_null(strstr(b->err.text, "another one by now: precious"));
    assert_int_equal(requests("POST", "/process.Process/SendSignal", 0), 0);
    assert_int_equal(appbed_finish(b, app_adopt(b->app, id, &how)), ERR_CONFLICT);
    assert_true(app_model(b->app)->sandboxes[0].foreign);
    appbed_must(b, app_proc_watch(b->app, id, pid, ident));
    foreign_watch_is(b, id, WATCH_ENDED);
    foreign_shows(b, id, "its number belongs to another process now");
    assert_int_equal(requests("POST", "/process.Process/Connect", 0), 0);
    free(rule);
}

/* Input, too, goes to nobody else. */
static void test_input_for_another(void **state)
{
    struct appbed *b = *state;
    uint64_t id;
    struct foreign_box x = the_box(b, &id);
    int pid = foreign_start(&x, FOREIGN_STDIN, "exec cat");
    struct app_adopt how = {.pid = pid};
    char *rule = list_of(pid, "precious");

    app_follow(b->app, id);
    appbed_must(b, app_adopt(b->app, id, &how));
    foreign_shows(b, id, "adopted at ");
    config(rule);
    appbed_must(b, app_send(b->app, id, "secret", false));
    foreign_shows(b, id, "not sent: the process has ended");
    assert_int_equal(requests("POST", "/process.Process/SendInput", 0), 0);
    free(rule);
}

/* What came of it under that answer. */
static void input_answered_so(struct appbed *b, const char *rule)
{
    uint64_t id;
    struct foreign_box x = the_box(b, &id);
    int pid = foreign_start(&x, FOREIGN_STDIN, "exec cat");
    struct app_adopt how = {.pid = pid};

    app_follow(b->app, id);
    appbed_must(b, app_adopt(b->app, id, &how));
    foreign_shows(b, id, "adopted at ");
    config(rule);
    appbed_must(b, app_send(b->app, id, "once", false));
    foreign_shows(b, id, "perhaps not sent");
    foreign_shows(b, id, "\nonce\n"); /* what cat gave back */
    assert_int_equal(requests("POST", "/process.Process/SendInput", 0), 1);
}

/* An answer that is lost on its way may stand for an input that arrived: it is not sent
 * twice, and said. */
static void test_lost_answer_of_input(void **state)
{
    input_answered_so(*state, "{\"rules\":[{\"method\":\"POST\",\"cut\":0,\"apply\":true,"
                              "\"path\":\"/process.Process/SendInput\"}]}");
}

/* So may a failure of what stands between: only the process's own sandbox can refuse it. */
static void test_failed_answer_of_input(void **state)
{
    input_answered_so(*state, "{\"rules\":[{\"method\":\"POST\",\"status\":503,\"apply\":true,"
                              "\"path\":\"/process.Process/SendInput\",\"body\":\"\"}]}");
}

/* --- faster than anybody reads ---------------------------------------------------- */

/* Nobody takes what is posted for a while: the process is read all the same, memory is
 * bounded, and what was dropped is told. */
static void test_reader_is_slow(void **state)
{
    struct appbed *b = *state;
    uint64_t id;
    struct foreign_box x = the_box(b, &id);
    int pid = foreign_start(&x, FOREIGN_NO_INPUT,
                            "while [ ! -e gate ]; do sleep 0.05; done;"
                            "i=0; while [ $i -lt 400 ]; do head -c 65536 /dev/zero | tr '\\0' x;"
                            "i=$((i+1)); done; echo; touch done; while :; do echo after; sleep 0.1; done");

    appbed_must(b, app_proc_watch(b->app, id, pid, 0));
    foreign_watch_is(b, id, WATCH_LIVE);
    foreign_start(&x, FOREIGN_NO_INPUT, "touch gate");
    /* not drained until the process is through: it could not be, were it held up */
    int waits = foreign_start(&x, FOREIGN_NO_INPUT, "while [ ! -e done ]; do sleep 0.05; done");
    foreign_await_end(&x, waits);
    foreign_shows(b, id, "bytes came faster than they were read");
    foreign_shows(b, id, "after");
}

static int no_processes(void)
{
    return system("faultd probe >/dev/null 2>&1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_token_is_asked_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stream_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ended_while_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_paused_is_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_paused_by_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_number_is_given_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_input_for_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_answer_of_input, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_answer_of_input, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reader_is_slow, setup, teardown),
    };

    appbed_main();
    if (no_processes()) {
        puts("1..1\nok 1 - foreign sandboxes under faults # SKIP no processes in sandboxes here");
        return 0;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
