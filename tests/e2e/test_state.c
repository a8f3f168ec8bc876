/* The truth about state, through the facade and against a scripted service: who is gone
 * and why, what is shown when no list can be had, how often anything is asked, that a
 * look never wakes or connects anything, and whose clock counts. The clocks of this
 * program are ours to set. */
#include "../lib/appbed.h"
#include "../lib/faultproc.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fnmatch.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define KEY "e2b_0123456789abcdef0123456789abcdef01234f2a"
#define OURS(n) "{\"template\":\"claude\",\"add\":true,\"sandboxes\":" n ",\"metadata\":{" \
                "\"cc-tui\":\"1\",\"cc-tui-session\":\"s-abc\",\"cc-tui-name\":\"amber\"," \
                "\"cc-tui-tool\":\"claude\",\"cc-tui-project\":\"default\"}}"

/* --- clocks ------------------------------------------------------------------------ */

static _Atomic int64_t add_wall, add_mono, add_boot; /* ms */

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ts);
    int64_t ms = id == CLOCK_REALTIME    ? atomic_load(&add_wall)
                 : id == CLOCK_MONOTONIC ? atomic_load(&add_mono)
                 : id == CLOCK_BOOTTIME  ? atomic_load(&add_boot)
                                         : 0;
    int64_t ns = ts->tv_nsec + ms % 1000 * 1000000;

    ts->tv_sec += (time_t)(ms / 1000 + (ns < 0 ? -1 : ns / 1000000000));
    ts->tv_nsec = ns < 0 ? ns + 1000000000 : ns % 1000000000;
    return rc;
}

/* --- the bed ----------------------------------------------------------------------- */

static struct faultd *fake;

static void serve(const char *sandboxes, const char *paused)
{
    const char *args[] = {"--sandboxes", sandboxes, "--paused", paused, NULL};

    fake = faultd_start(args);
    assert_non_null(fake);
    setenv("E2B_API_URL", faultd_url(fake), 1);
    setenv("E2B_SANDBOX_URL", faultd_url(fake), 1);
}

static int setup(void **state)
{
    struct appbed *b = appbed_new();

    setenv("HOME", b->root, 1); /* no key of the machine's user */
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    add_wall = add_mono = add_boot = 0;
    appbed_free(*state);
    faultd_stop(fake);
    fake = NULL;
    return 0;
}

static void open_at(struct appbed *b, int poll_ms)
{
    struct app_opts o = {.follow_all = true, .poll_ms = poll_ms};

    setenv("E2B_API_KEY", KEY, 1);
    appbed_open(b, &o);
}

static const struct model *model(const struct appbed *b)
{
    return app_model(b->app);
}

static const struct sandbox *row(const struct appbed *b, size_t i)
{
    return &model(b)->sandboxes[i];
}

static bool has_rows(struct appbed *b, const void *n)
{
    return model(b)->n_sandboxes == *(const size_t *)n;
}

static void await_rows(struct appbed *b, size_t n)
{
    assert_true(appbed_wait(b, has_rows, &n));
}

static bool link_is(struct appbed *b, const void *st)
{
    return model(b)->link == *(const enum link_state *)st;
}

static void await_link(struct appbed *b, enum link_state st)
{
    assert_true(appbed_wait(b, link_is, &st));
}

static void lists_answer(const char *what)
{
    char *json = xasprintf("{\"rules\":[{\"method\":\"GET\",\"path\":\"/v2/sandboxes\",%s}]}",
                           what);

    assert_true(faultd_config(fake, json));
    free(json);
}

static void lists_are_well(void)
{
    assert_true(faultd_config(fake, "{\"rules\":[]}"));
}

/* What was asked for, since the log was begun; `first` and `last`: when, in ms. */
struct asked {
    size_t n;
    int64_t first, last;
};
static struct asked asked(const char *method, const char *path)
{
    char *log = faultd_http(fake, "GET", "/_faultd/log", NULL);
    struct cJSON *j = json_parse(log, strlen(log), NULL);
    struct asked a = {0};

    for (const struct cJSON *r = json_first(json_get(j, "requests")); r; r = json_next(r)) {
        int64_t at = json_i64(r, "ms", 0);

        if (fnmatch(method, json_str(r, "method", ""), 0) != 0 ||
            fnmatch(path, json_str(r, "path", ""), 0) != 0)
            continue;
        a.first = a.n++ ? a.first : at;
        a.last = at;
    }
    json_free(j);
    free(log);
    return a;
}

static void kill_elsewhere(const char *id)
{
    char *path = xasprintf("/sandboxes/%s", id), *answer = faultd_http(fake, "DELETE", path, NULL);

    assert_non_null(answer);
    free(answer);
    free(path);
}

struct want_event {
    const char *words;
};
static bool was_said(struct appbed *b, const void *arg)
{
    for (size_t i = 0; i < model(b)->n_events; i++)
        if (strstr(model(b)->events[i].text, arg))
            return true;
    return false;
}

static bool lists_came(struct appbed *b, const void *n)
{
    (void)b;
    return asked("GET", "/v2/sandboxes*").n >= *(const size_t *)n;
}

static void await_lists(struct appbed *b, size_t more)
{
    size_t n = asked("GET", "/v2/sandboxes*").n + more;

    assert_true(appbed_wait(b, lists_came, &n));
}

/* --- who is gone, and why --------------------------------------------------------- */

static bool first_killed(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->n_sandboxes && row(b, 0)->state == SB_KILLED;
}

/* What we kept as running was killed while we were away: known after one list, and one
 * question more, which is not asked again. */
static void test_gone_while_away(void **state)
{
    struct appbed *b = *state;
    char *id, *path;

    serve("0", "0");
    assert_true(faultd_config(fake, OURS("1")));
    open_at(b, 200);
    await_rows(b, 1);
    appbed_close(b);
    assert_true(faultd_config(fake, "{\"reset\":true,\"sandboxes\":2,\"add\":true}"));
    setenv("E2B_API_KEY", KEY, 1);
    open_at(b, 60000); /* no second list */
    await_rows(b, 3);
    id = xstrdup(row(b, 0)->sandbox_id);
    assert_false(row(b, 0)->foreign);
    appbed_close(b);
    kill_elsewhere(id);
    assert_true(faultd_config(fake, "{\"reset\":true}"));
    setenv("E2B_API_KEY", KEY, 1);
    open_at(b, 60000);
    assert_true(appbed_wait(b, first_killed, NULL));
    assert_int_equal(row(b, 0)->gone, GONE_EARLY);
    assert_true(row(b, 0)->ended_at < row(b, 0)->end_at);
    path = xasprintf("/sandboxes/%s", id);
    assert_true(asked("GET", "/v2/sandboxes*").n <= 1);
    assert_true(asked("*", path).n <= 1);
    for (size_t i = 0; i < model(b)->n_events; i++) /* its time was ahead: no word of that */
        assert_null(strstr(model(b)->events[i].text, "time was up"));
    assert_true(was_said(b, "before its time"));
    appbed_close(b);
    free(path);
    free(id);
}

static bool one_unlisted(struct appbed *b, const void *arg)
{
    (void)arg;
    for (size_t i = 0; i < model(b)->n_sandboxes; i++)
        if (row(b, i)->unlisted)
            return true;
    return false;
}

/* The list lost it, its id still answers: it lives, and is asked for once, not each time. */
static void test_unlisted_but_there(void **state)
{
    struct appbed *b = *state;
    static const char one[] =
        "[{\"sandboxID\":\"iother\",\"templateID\":\"t\",\"state\":\"running\","
        "\"startedAt\":\"2030-01-01T00:00:00Z\",\"endAt\":\"2030-01-01T01:00:00Z\"}]";
    struct buf rule = BUF_INIT;
    struct jw w;

    serve("1", "0");
    open_at(b, 800); /* the question for its id comes before the next list */
    await_rows(b, 1);
    jw_init(&w, &rule);
    jw_obj(&w, NULL);
    jw_arr(&w, "rules");
    jw_obj(&w, NULL);
    jw_str(&w, "method", "GET");
    jw_str(&w, "path", "/v2/sandboxes");
    jw_i64(&w, "status", 200);
    jw_str(&w, "body", one);
    jw_end(&w);
    jw_end(&w);
    jw_end(&w);
    assert_true(faultd_config(fake, buf_str(&rule)));
    buf_release(&rule);
    assert_true(appbed_wait(b, one_unlisted, NULL));
    await_lists(b, 2);
    assert_true(row(b, 0)->unlisted && row(b, 0)->state == SB_RUNNING);
    assert_int_equal(asked("GET", "/sandboxes/i*").n, 1);
    lists_are_well();
    appbed_must(b, app_refresh(b->app));
    assert_false(row(b, 0)->unlisted);
    appbed_close(b);
}

static bool none_listed(struct appbed *b, const void *arg)
{
    (void)arg;
    for (size_t i = 0; i < model(b)->n_sandboxes; i++)
        if (!row(b, i)->unlisted)
            return false;
    return true;
}

/* A service that begins anew answers with nothing for a while: nobody is killed by that,
 * and nobody is asked for one by one. */
static void test_nothing_listed(void **state)
{
    struct appbed *b = *state;

    serve("3", "2");
    open_at(b, 200);
    await_rows(b, 5);
    lists_answer("\"status\":200,\"body\":\"[]\"");
    assert_true(appbed_wait(b, none_listed, NULL));
    await_lists(b, 3);
    for (size_t i = 0; i < 5; i++)
        assert_true(row(b, i)->state != SB_KILLED);
    assert_int_equal(asked("GET", "/sandboxes/i*").n, 0);
    lists_are_well();
    appbed_must(b, app_refresh(b->app));
    for (size_t i = 0; i < 5; i++)
        assert_false(row(b, i)->unlisted);
    assert_int_equal(model(b)->total_running, 3);
    appbed_close(b);
}

/* The VM is there, its agent could not be started: an error that is still up, is counted
 * and can be ended. */
static void test_agent_does_not_start(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "amber"};

    serve("0", "0");
    assert_true(faultd_config(fake, "{\"rules\":[{\"path\":\"/process.Process/*\",\"status\":500,"
                                    "\"body\":\"{\\\"code\\\":\\\"internal\\\",\\\"message\\\":"
                                    "\\\"no such program\\\"}\"}]}"));
    open_at(b, 200);
    assert_int_not_equal(appbed_finish(b, app_create(b->app, &c, true)), 0);
    appbed_must(b, app_refresh(b->app));
    await_lists(b, 2);
    assert_int_equal(model(b)->n_sandboxes, 1);
    assert_int_equal(row(b, 0)->state, SB_ERROR);
    assert_true(row(b, 0)->vm_up && row(b, 0)->reason);
    appbed_must(b, app_kill_all_open(b->app, false));
    assert_int_equal(model(b)->kill->by_state[SB_ERROR], 1);
    assert_int_equal(model(b)->kill->n_project, 1);
    app_kill_all_cancel(b->app);
    appbed_must(b, app_kill(b->app, row(b, 0)->id));
    assert_false(row(b, 0)->vm_up);
    appbed_close(b);
}

/* --- no list ----------------------------------------------------------------------- */

/* Rows stay as they were seen last, and it is known how old that is. */
static void test_no_list(void **state)
{
    struct appbed *b = *state;
    int64_t seen;

    serve("3", "2");
    open_at(b, 200);
    await_rows(b, 5);
    assert_false(model_is_stale(model(b)));
    lists_answer("\"status\":503");
    await_link(b, LINK_DOWN);
    assert_true(model_is_stale(model(b)));
    seen = model(b)->listed_at;
    assert_true(seen > 0);
    await_lists(b, 2);
    assert_int_equal(model(b)->listed_at, seen);
    for (size_t i = 0; i < 5; i++)
        assert_true(row(b, i)->state == (i < 3 ? SB_RUNNING : SB_PAUSED) || row(b, i)->foreign);
    lists_are_well();
    await_link(b, LINK_OK);
    assert_false(model_is_stale(model(b)));
    appbed_close(b);
}

/* Neither the new route nor the old one: said with route and status, rows are kept. */
static void test_no_route(void **state)
{
    struct appbed *b = *state;

    serve("2", "0");
    open_at(b, 200);
    await_rows(b, 2);
    assert_true(faultd_config(fake, "{\"rules\":[{\"method\":\"GET\",\"path\":\"/v2/sandboxes\","
                                    "\"status\":404},{\"method\":\"GET\",\"path\":\"/sandboxes\","
                                    "\"status\":404}]}"));
    await_link(b, LINK_DOWN);
    assert_non_null(strstr(model(b)->link_text, "404"));
    assert_non_null(strstr(model(b)->link_text, "/sandboxes"));
    assert_int_equal(row(b, 0)->state, SB_RUNNING);
    assert_true(model_is_stale(model(b)));
    /* only the old route: running ones are listed, and it is said that others are not */
    assert_true(faultd_config(fake, "{\"v2\":false,\"rules\":[]}"));
    await_link(b, LINK_OK);
    assert_non_null(strstr(model(b)->link_text, "running"));
    appbed_close(b);
}

/* "Leave me alone for so long" holds for everything that lists, a refresh too. */
static void test_patience(void **state)
{
    struct appbed *b = *state;
    size_t before;

    serve("1", "0");
    open_at(b, 200);
    await_rows(b, 1);
    lists_answer("\"status\":429,\"retry_after\":\"30\"");
    await_link(b, LINK_LIMITED);
    before = asked("GET", "/v2/sandboxes*").n;
    assert_int_equal(appbed_finish(b, app_refresh(b->app)), ERR_BUSY);
    app_active(b->app, false);
    app_active(b->app, true);
    assert_int_equal(appbed_finish(b, app_refresh(b->app)), ERR_BUSY);
    assert_int_equal(asked("GET", "/v2/sandboxes*").n, before);
    add_mono += 31000; /* the time is over */
    add_boot += 31000;
    lists_are_well();
    appbed_must(b, app_refresh(b->app));
    await_link(b, LINK_OK);
    appbed_close(b);
}

/* --- how much is asked ---------------------------------------------------------------- */

static bool second_list(struct appbed *b, const void *first)
{
    (void)b;
    return asked("GET", "/v2/sandboxes?state=running,paused&limit=100").n > *(const size_t *)first;
}

/* Five hundred rows of ours, every pane opened, somebody leans on the refresh key. */
static void test_many_rows(void **state)
{
    struct appbed *b = *state;
    struct asked all, lists;
    size_t one = 1;

    serve("0", "0");
    assert_true(faultd_config(fake, OURS("500")));
    /* nobody is there to talk to: what the control plane is asked counts */
    assert_true(faultd_config(fake, "{\"rules\":[{\"path\":\"/health\",\"status\":502},"
                                    "{\"path\":\"/process.Process/*\",\"status\":502}]}"));
    open_at(b, 0);
    await_rows(b, 500);
    for (size_t i = 0; i < 500; i++)
        app_follow(b->app, row(b, i)->id);
    for (int i = 0; i < 40; i++)
        app_refresh(b->app);
    assert_true(appbed_wait(b, second_list, &one));
    lists = asked("GET", "/v2/sandboxes?state=running,paused&limit=100");
    assert_true(lists.last - lists.first >= 1900 * ((int64_t)lists.n - 1));
    all = asked("*", "*/sandboxes*");
    assert_int_equal(asked("POST", "*/sandboxes*").n, 0);
    /* the five pages of the list that ended it belong to the time after */
    assert_true((int64_t)(all.n - 5) * 1000 <= 5 * (all.last - all.first + 1000));
    assert_true(asked("GET", "/sandboxes/i*").n >= 4); /* but it goes on */
    appbed_close(b);
}

/* A list that says what is known wakes nobody. */
static void test_no_news(void **state)
{
    struct appbed *b = *state;
    size_t n;

    serve("20", "5");
    open_at(b, 100);
    await_rows(b, 25);
    await_link(b, LINK_OK);
    await_lists(b, 2);
    app_drain(b->app, 0);
    n = asked("GET", "/v2/sandboxes*").n + 6;
    while (asked("GET", "/v2/sandboxes*").n < n) {
        struct pollfd p = {app_fd(b->app), POLLIN, 0};
        assert_int_equal(poll(&p, 1, 20), 0);
    }
    appbed_close(b);
}

/* --- looking is harmless --------------------------------------------------------------- */

static bool tried_often(struct appbed *b, const void *n)
{
    (void)b;
    return asked("*", "/health").n >= *(const size_t *)n;
}

/* Paused ones, panes that open and close, streams that fail, a message: nothing is ever
 * connected, resumed, given or taken time, and paused ones are not spoken to at all. */
static void test_only_looks(void **state)
{
    struct appbed *b = *state;
    size_t n = 2;
    int64_t end_at;

    serve("0", "0");
    assert_true(faultd_config(fake, OURS("1")));
    assert_true(faultd_config(fake, "{\"template\":\"claude\",\"add\":true,\"sandboxes\":0,"
                                    "\"paused\":3,\"metadata\":{\"cc-tui\":\"1\","
                                    "\"cc-tui-session\":\"s-p\",\"cc-tui-tool\":\"claude\"}}"));
    assert_true(faultd_config(fake, "{\"rules\":[{\"path\":\"/health\",\"status\":502},"
                                    "{\"path\":\"/process.Process/*\",\"status\":502},"
                                    "{\"path\":\"/files\",\"status\":502}]}"));
    open_at(b, 200);
    await_rows(b, 4);
    for (size_t i = 0; i < 4; i++) {
        app_follow(b->app, row(b, i)->id);
        appbed_finish(b, app_send(b->app, row(b, i)->id, "hello", false));
    }
    end_at = row(b, 0)->end_at;
    assert_true(appbed_wait(b, tried_often, &n));
    for (size_t i = 0; i < 4; i++)
        app_unfollow(b->app, row(b, i)->id);
    appbed_must(b, app_refresh(b->app));
    assert_int_equal(row(b, 0)->end_at, end_at);
    assert_int_equal(asked("POST", "*/sandboxes*").n, 0);
    assert_int_equal(asked("DELETE", "*").n, 0);
    for (size_t i = 0; i < 4; i++) {
        char *path = xasprintf("/sandboxes/%s", row(b, i)->sandbox_id);
        /* once for its address, once more when the way to it failed */
        assert_true(asked("*", path).n <= (row(b, i)->state == SB_PAUSED ? 0u : 2u));
        free(path);
    }
    appbed_close(b);
}

/* --- clocks ------------------------------------------------------------------------------ */

static int64_t left_of(const struct appbed *b, size_t i)
{
    return row(b, i)->end_at - server_clock_at(&model(b)->clock, clock_boot_ms(), clock_wall_ms());
}

static bool knows_time(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->n_sandboxes == 2 && model(b)->clock.server_ms != 0;
}

static void check_left(const struct appbed *b)
{
    for (size_t i = 0; i < 2; i++) {
        assert_in_range(left_of(b, i), 590000, 604000);
        assert_true(row(b, i)->state == SB_RUNNING && !row(b, i)->unlisted);
    }
}

/* The time that is left is the service's, wherever our own clock stands or jumps to. */
static void test_wrong_clock(void **state)
{
    static const int64_t wrong[] = {600000, -3600000, 86400000, 0};
    struct appbed *b = *state;

    serve("0", "0");
    assert_true(faultd_config(fake, "{\"add\":true,\"sandboxes\":2,\"ttl\":600}"));
    for (size_t i = 0; i < 4; i++) {
        add_wall = wrong[i];
        open_at(b, 200);
        assert_true(appbed_wait(b, knows_time, NULL));
        check_left(b);
        add_wall = wrong[i] - 86400000; /* set while we look on */
        check_left(b);
        add_wall = wrong[i] + 86400000;
        await_lists(b, 1);
        appbed_must(b, app_refresh(b->app));
        check_left(b);
        assert_false(was_said(b, "ends in"));
        assert_false(was_said(b, "time was up"));
        appbed_close(b);
    }
}

/* Six minutes of sleep that nothing tells of but the clocks: a list at once. */
static void test_sleep(void **state)
{
    struct appbed *b = *state;
    size_t n;

    serve("2", "0");
    open_at(b, 60000); /* by itself the next list is far away */
    await_rows(b, 2);
    await_link(b, LINK_OK);
    n = asked("GET", "/v2/sandboxes*").n;
    kill_elsewhere(row(b, 0)->sandbox_id);
    add_boot += 360000 + 10500;
    add_mono += 10500; /* what the loop slept since: no more than it ever does in one piece */
    app_active(b->app, true);
    n++;
    assert_true(appbed_wait(b, lists_came, &n));
    assert_true(appbed_wait(b, first_killed, NULL));
    appbed_close(b);
}

static bool is_armed(struct appbed *b, const void *set)
{
    const struct ev_kill *k = model(b)->kill;

    return k && k->phase == KILL_ARMED && k->set != *(const uint64_t *)set;
}

/* A list is there and applied, and we have not looked yet: one is under way at a time, so
 * the first of two has been taken when the second is asked for. */
static void lists_come_unseen(struct appbed *b)
{
    struct pollfd none = {.fd = -1};
    size_t n = asked("GET", "/v2/sandboxes*").n;

    for (size_t more = 1; more <= 2; more++) {
        int tries = 0;

        app_refresh(b->app);
        while (asked("GET", "/v2/sandboxes*").n < n + more) {
            assert_true(tries++ < 1500);
            poll(&none, 1, 20);
        }
    }
}

/* One ended and another one came while the question was open: as many, but not the same. */
static void test_others_as_many(void **state)
{
    struct appbed *b = *state;
    uint64_t set = 0, req;

    serve("3", "0");
    open_at(b, 60000);
    await_rows(b, 3);
    appbed_must(b, app_kill_all_open(b->app, true));
    assert_int_equal(model(b)->kill->n_account, 3);
    set = model(b)->kill->set;
    kill_elsewhere(row(b, 0)->sandbox_id);
    assert_true(faultd_config(fake, "{\"add\":true,\"sandboxes\":1}"));
    lists_come_unseen(b);
    req = app_kill_all_confirm(b->app, true, 3);
    assert_int_equal(appbed_finish(b, req), ERR_CONFLICT);
    assert_int_equal(asked("DELETE", "*").n, 1); /* not ours */
    assert_true(appbed_wait(b, is_armed, &set));
    assert_int_equal(model(b)->kill->n_account, 3);
    appbed_must(b, app_kill_all_confirm(b->app, true, 3));
    assert_int_equal(model(b)->kill->killed, 3);
    appbed_close(b);
}

static bool agent_idles(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->n_sandboxes == 1 && row(b, 0)->agent == AG_IDLE;
}

/* All streams that were there then, the first n, have ended. */
static bool old_ones_over(struct appbed *b, const void *n)
{
    char *log = faultd_http(fake, "GET", "/_faultd/log", NULL);
    struct cJSON *j = json_parse(log, strlen(log), NULL);
    size_t left = *(const size_t *)n, open = 0;

    (void)b;
    for (const struct cJSON *r = json_first(json_get(j, "requests")); r && left; r = json_next(r)) {
        if (!str_eq(json_str(r, "path", ""), "/process.Process/Start"))
            continue;
        left--;
        open += !json_get(r, "over_ms");
    }
    json_free(j);
    free(log);
    return open == 0;
}

/* Streams are not believed to have slept well either: each begins anew, and goes on. */
static void test_sleep_streams(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "amber"};
    size_t n;

    if (system("faultd probe >/dev/null 2>&1") != 0)
        skip();
    serve("0", "0");
    open_at(b, 60000);
    appbed_must(b, app_create(b->app, &c, true));
    assert_true(appbed_wait(b, agent_idles, NULL));
    appbed_must(b, app_send(b->app, row(b, 0)->id, "echo here", true)); /* all is started */
    n = asked("POST", "/process.Process/Start").n;
    assert_false(old_ones_over(b, &n));
    add_boot += 360000 + 10500;
    add_mono += 10500;
    app_active(b->app, true);
    assert_true(appbed_wait(b, old_ones_over, &n));
    appbed_must(b, app_send(b->app, row(b, 0)->id, "echo still-here", true));
    assert_non_null(strstr(b->text, "still-here"));
    assert_int_equal(asked("POST", "/sandboxes*").n, 1); /* the create */
    appbed_close(b);
}

static void told_less(struct appbed *b, int seconds)
{
    uint64_t id = row(b, 0)->id;

    appbed_must(b, app_set_timeout(b->app, id, seconds));
    assert_true(appbed_wait(b, was_said, "was asked for, the service gives"));
    assert_in_range(left_of(b, 0), 1000, 3601000);
}

/* The plan allows less than was asked for: what counts is the answer, and it is said. */
static void test_time_is_cut(void **state)
{
    struct appbed *b = *state;

    serve("1", "0");
    open_at(b, 200);
    await_rows(b, 1);
    appbed_must(b, app_refresh(b->app));
    assert_int_equal(appbed_finish(b, app_set_timeout(b->app, row(b, 0)->id, 0)), ERR_INVALID);
    assert_int_equal(appbed_finish(b, app_set_timeout(b->app, row(b, 0)->id, -5)), ERR_INVALID);
    assert_int_equal(asked("POST", "*/timeout").n, 0);
    assert_true(faultd_config(fake, "{\"rules\":[{\"method\":\"POST\",\"path\":\"*/timeout\","
                                    "\"status\":204}]}")); /* done, and nothing is */
    told_less(b, 86400);
    appbed_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gone_while_away, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unlisted_but_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_agent_does_not_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_list, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_route, setup, teardown),
        cmocka_unit_test_setup_teardown(test_patience, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_news, setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_looks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_clock, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sleep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sleep_streams, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others_as_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_time_is_cut, setup, teardown),
    };

    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
