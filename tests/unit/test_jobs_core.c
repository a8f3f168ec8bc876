/* The pure parts of the jobs' core: pace of the list, warnings, scopes, results, what an
 * old intent means, environments. */
#include "../../src/jobs/core_priv.h"

#include "../lib/storebox.h"

#include <cct/config/tools.h>
#include <cct/keys.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_interval(void **state)
{
    (void)state;
    assert_int_equal(poll_interval(3000, true, 0), 3000);
    assert_int_equal(poll_interval(3000, true, 600000), 6000);
    assert_int_equal(poll_interval(3000, false, 0), 15000);
    assert_int_equal(poll_interval(5000, false, 0), 25000);
}

static void test_suspicious(void **state)
{
    (void)state;
    assert_true(poll_suspicious(0, 5, 0, 0));
    assert_true(poll_suspicious(0, 5, 2, 60000));
    assert_true(poll_suspicious(0, 5, 9, 10000));
    assert_false(poll_suspicious(0, 5, 3, 30000)); /* it stays empty: believed */
    assert_false(poll_suspicious(0, 1, 0, 0));
    assert_false(poll_suspicious(1, 5, 0, 0));
}

static void test_warning(void **state)
{
    (void)state;
    assert_int_equal(poll_warning(300001), 0);
    assert_int_equal(poll_warning(300000), 1);
    assert_int_equal(poll_warning(120001), 1);
    assert_int_equal(poll_warning(120000), 2);
    assert_int_equal(poll_warning(0), 0); /* over: no warning any more */
}

/* A clock of this machine that is wrong by minutes or a day counts for nothing; an answer
 * that took its time, or a Date cut to whole seconds, is no news. */
static void test_server_time(void **state)
{
    (void)state;
    assert_int_equal(poll_server_time(0, 1000000), 1000000); /* no Date */
    assert_int_equal(poll_server_time(1000000, 1000900), 1000900);
    assert_int_equal(poll_server_time(1000000, 1004000), 1004000);
    assert_int_equal(poll_server_time(1000000, 1600000), 1000500);
    assert_int_equal(poll_server_time(87400000, 1000000), 87400500);
    assert_int_equal(poll_server_time(1000000, 87400000), 1000500);
}

static void test_apart(void **state)
{
    (void)state;
    assert_int_equal(poll_apart(3000, 1), 2000);
    assert_int_equal(poll_apart(3000, 5), 2000);
    assert_int_equal(poll_apart(3000, 10), 4000); /* a long list is asked for more rarely */
    assert_int_equal(poll_apart(200, 1), 200);
}

static void test_backoff(void **state)
{
    struct err line = {.code = ERR_NETWORK}, busy = {.code = ERR_BUSY};

    (void)state;
    for (int i = 0; i < 50; i++) {
        int64_t first = poll_backoff(&busy, 0, 3000, true), later = poll_backoff(&busy, 9, 3000, true);
        assert_in_range(first, 2250, 3750);
        assert_in_range(later, 45000, 75000);
        assert_true(poll_backoff(&line, 9, 3000, true) <= 12500); /* current 15 s after it heals */
        assert_in_range(poll_backoff(&line, 9, 3000, false), 45000, 75000);
    }
}

static void test_pace(void **state)
{
    int64_t next = 0;

    (void)state;
    assert_int_equal(pace_take(&next, 1000, 250), 0);
    assert_int_equal(pace_take(&next, 1000, 250), 250);
    assert_int_equal(pace_take(&next, 1100, 250), 400);
    assert_int_equal(pace_take(&next, 9000, 250), 0); /* time that went by is not saved up */
    assert_int_equal(pace_take(&next, 9000, 250), 250);
}

static struct sandbox row_of(enum sb_state st, const char *project, bool foreign)
{
    return (struct sandbox){.id = 1, .state = st, .project = (char *)project, .foreign = foreign};
}

/* Who stops does not wait for what the store says to a search; nor is it lost memory. */
static void test_search_left(void **state)
{
    struct storebox box;
    struct jobs_priv p = {0};
    struct jobs j = {.priv = &p, .waiting = map_new()};
    struct cmd c = {.text = (char *)"word", .n = 10};

    (void)state;
    storebox_start(&box, NULL);
    j.o.store = box.s;
    j.o.net = net_new(&(struct net_opts){0});
    core_search(&j, &c);
    core_search(&j, &c);
    assert_int_equal(p.searches.n, 2);
    core_exports_release(&j);
    assert_int_equal(p.searches.n, 0);
    storebox_stop(&box);
    net_free(j.o.net);
    map_free(j.waiting, free);
}

static struct msg *next_answer(struct mq *mq, struct msg **rest)
{
    struct msg *m = *rest ? *rest : mq_take(mq);

    *rest = m ? m->next : NULL;
    return m;
}

/* The next answer of the store, given to who asked; rest: those that came with it. */
static void answer(struct jobs *j, struct msg **rest)
{
    struct mq *mq = net_mq(j->o.net);
    struct st_reply *r;
    struct jobs_wait *w;

    do {
        assert_true(*rest || mq_wait(mq, 20000));
        r = (struct st_reply *)next_answer(mq, rest);
        w = r->m.req_id ? map_del_id(j->waiting, r->m.req_id) : NULL;
        if (w && w->fn)
            w->fn(w->ctx, r);
        msg_free(&r->m);
        free(w);
    } while (!w);
}

/* A list that was asked for before the project was switched comes after that. */
static void test_switch_and_older_list(void **state)
{
    struct storebox box;
    struct jobs_priv p = {0};
    struct jobs j = {.priv = &p, .waiting = map_new(), .o.project = "first"};
    struct cmd c = {.text = (char *)"second"};
    struct msg *rest = NULL;

    (void)state;
    c.m.type = CMD_PROJECT;
    storebox_start(&box, NULL);
    j.o.store = box.s;
    j.o.net = net_new(&(struct net_opts){0});
    core_projects_start(&j);
    answer(&j, &rest);
    assert_true(core_projects_known(&j));
    assert_string_equal(jobs_project(&j), "first");
    core_projects_cmd(&j, &c);
    core_projects_look(&j);
    answer(&j, &rest); /* its id: from here on it is the one */
    assert_string_equal(jobs_project(&j), "second");
    answer(&j, &rest);
    assert_string_equal(jobs_project(&j), "second");
    assert_string_not_equal(core_project_id(&j), "");
    core_projects_release(&j);
    storebox_stop(&box);
    for (struct msg *m; (m = next_answer(net_mq(j.o.net), &rest));)
        msg_free(m);
    net_free(j.o.net);
    map_free(j.waiting, free);
}

static void test_scope(void **state)
{
    struct sandbox r = row_of(SB_RUNNING, "p", false);

    (void)state;
    assert_true(killall_in_scope(&r, false, "p"));
    assert_false(killall_in_scope(&r, false, "q"));
    assert_true(killall_in_scope(&r, true, "q"));
    r.foreign = true;
    assert_false(killall_in_scope(&r, false, "p"));
    assert_true(killall_in_scope(&r, true, "p"));
    r.unlisted = true; /* the fresh list does not have it */
    assert_false(killall_in_scope(&r, true, "p"));
    r = row_of(SB_PAUSED, "p", false);
    assert_true(killall_in_scope(&r, false, "p"));
    r = row_of(SB_CREATING, "p", false);
    assert_true(killall_in_scope(&r, false, "p"));
    r = row_of(SB_ERROR, "p", false);
    assert_false(killall_in_scope(&r, false, "p"));
    r.vm_up = true;
    assert_true(killall_in_scope(&r, false, "p"));
    r = row_of(SB_KILLED, "p", false);
    assert_false(killall_in_scope(&r, true, "p"));
}

static void test_final(void **state)
{
    (void)state;
    assert_int_equal(killall_final(1, false, false), 1);
    assert_int_equal(killall_final(2, false, false), 2);
    assert_int_equal(killall_final(1, true, false), 4); /* a 204 that did nothing */
    assert_int_equal(killall_final(2, true, false), 4);
    assert_int_equal(killall_final(3, true, false), 3);
    assert_int_equal(killall_final(3, false, false), 1); /* gone all the same */
    assert_int_equal(killall_final(3, false, true), 2); /* but not by us */
    assert_int_equal(killall_final(5, true, false), 5);
}

/* What was confirmed names ids and marks; nothing else goes by it. */
static void test_intent(void **state)
{
    char *scopes[2] = {kill_scope("here", NULL), kill_scope("here", "p")};
    struct st_intent all = {.account = true, .project = scopes[0],
                            .target = (char *)"by:17-x isbx1 isbx2 m:mark"};
    struct st_intent ours = {.project = scopes[1], .target = (char *)"isbx1"};
    struct sandbox r = row_of(SB_RUNNING, "p", false);

    (void)state;
    r.account = (char *)"here";
    r.sandbox_id = (char *)"isbx1";
    assert_true(kill_intent_covers(&all, &r));
    assert_true(kill_intent_covers(&ours, &r));
    r.sandbox_id = (char *)"isbx";
    assert_false(kill_intent_covers(&all, &r));
    r.sandbox_id = (char *)"isbx3"; /* in the scope, but not named */
    assert_false(kill_intent_covers(&all, &r));
    r.mark = (char *)"mark";
    assert_true(kill_intent_covers(&all, &r));
    r.mark = (char *)"isbx1";
    assert_false(kill_intent_covers(&all, &r));
    r.sandbox_id = (char *)"isbx2";
    r.protect = true;
    assert_false(kill_intent_covers(&all, &r));
    r.protect = false;
    r.account = (char *)"elsewhere"; /* confirmed for another place */
    assert_false(kill_intent_covers(&all, &r));
    r.account = NULL;
    assert_false(kill_intent_covers(&all, &r));
    r.account = (char *)"here";
    r.state = SB_KILLED;
    assert_false(kill_intent_covers(&all, &r));
    free(scopes[0]);
    free(scopes[1]);
}

static void test_list_proves(void **state)
{
    char run[] = "running", rest[] = "paused";
    struct e2b_sandbox v[2] = {{.sandbox_id = (char *)"a", .state = run},
                               {.sandbox_id = (char *)"b", .state = rest}};
    struct e2b_result r = {.v = v, .n = 2, .total_running = 1};

    (void)state;
    assert_true(kill_list_proves(&r, true));
    r.total_running = 2; /* one was skipped */
    assert_false(kill_list_proves(&r, true));
    r.total_running = -1; /* an answer without the count that others had */
    assert_false(kill_list_proves(&r, true));
    assert_true(kill_list_proves(&r, false));
    assert_true(kill_is_listed(&r, "b", NULL));
    assert_false(kill_is_listed(&r, "c", NULL));
    assert_false(kill_is_listed(&r, NULL, "mark"));
}

static const char *value(const struct kv *env, const char *name)
{
    const char *v = NULL;

    for (; env->k; env++)
        if (str_eq(env->k, name)) {
            assert_null(v); /* each name once */
            v = env->v;
        }
    return v;
}

static void test_env(void **state)
{
    struct tools *all = tools_new();
    struct kv own[] = {{(char *)"IS_SANDBOX", (char *)"0"}, {(char *)"MINE", (char *)"x"},
                       {NULL, NULL}};
    struct keys_outside out = {0};
    struct keys_at at = {.outside = &out, .api = "https://api.e2b.app", .project = "default"};
    struct kv vars[] = {{(char *)"MINE", (char *)"project's"}, {(char *)"ALL", (char *)"a"},
                        {(char *)"IS_SANDBOX", (char *)"2"}, {NULL, NULL}};
    struct core_env_q q = {.t = tools_find(all, "claude"), .own = own};
    struct err e = {0};
    char *missing;
    struct kv *env;

    (void)state;
    unsetenv("CLAUDE_CODE_OAUTH_TOKEN");
    setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789", 1);
    keys_take_env();
    env = core_tool_env(&at, NULL, &q, vars, &missing, &e);
    assert_null(missing);
    assert_string_equal(value(env, "ANTHROPIC_API_KEY"), "sk-ant-0123456789");
    assert_string_equal(value(env, "IS_SANDBOX"), "0"); /* the user has the last word */
    assert_string_equal(value(env, "MINE"), "x");
    assert_string_equal(value(env, "ALL"), "a");
    keys_env_free(env);
    /* at a restart the sandbox has what was given with it; nothing is put above that */
    struct kv given[] = {{(char *)"CLAUDE_CODE_OAUTH_TOKEN", (char *)"x"},
                         {(char *)"MINE", (char *)"y"}, {(char *)"ALL", (char *)"z"},
                         {NULL, NULL}};
    struct project_var hidden = {.name = (char *)"MINE", .secret = true};
    struct project p = {.vars = &hidden, .n_vars = 1};
    char *names = core_env_own_names(given, &p);
    assert_string_equal(names, "CLAUDE_CODE_OAUTH_TOKEN-MINE");
    q.own = NULL;
    q.own_names = names;
    env = core_tool_env(&at, NULL, &q, vars, &missing, &e);
    assert_null(value(env, "ANTHROPIC_API_KEY"));
    assert_null(value(env, "MINE"));
    assert_string_equal(value(env, "ALL"), "a");
    keys_env_free(env);
    free(names);
    q.own_names = NULL;
    assert_null(core_env_own_names(NULL, &p));
    keys_take_env();
    env = core_tool_env(&at, NULL, &q, vars, &missing, &e);
    assert_non_null(missing);
    assert_string_equal(value(env, "IS_SANDBOX"), "2"); /* above what the tool sets */
    free(missing);
    keys_env_free(env);
    tools_free(all);
}

/* What comes out for a key: the host, and a mark of the key. */
static void test_place(void **state)
{
    struct key_found none = {0}, one = {.source = KEY_ENV, .mark = "0a0b0c0d"},
                     two = {.source = KEY_USER, .mark = "1a0b0c0d"};
    struct err fine = {0}, bad = {.code = ERR_AUTH};
    static const struct {
        const char *api, *place;
    } t[] = {{"https://api.e2b.app", "api.e2b.app#0a0b0c0d"},
             {"https://api.example.org/base", "api.example.org#0a0b0c0d"},
             {"http://127.0.0.1:3000", "127.0.0.1:3000#0a0b0c0d"}};
    char *a, *b;

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        a = jobs_place(false, t[i].api, &one, &fine);
        b = jobs_place(false, t[i].api, &two, &fine); /* perhaps another account */
        assert_string_equal(a, t[i].place);
        assert_string_not_equal(a, b);
        free(a);
        free(b);
    }
    a = jobs_place(true, t[0].api, &one, &fine);
    assert_string_equal(a, "local");
    free(a);
    a = jobs_place(false, t[0].api, &none, &fine);
    assert_string_equal(a, "local");
    free(a);
    a = jobs_place(false, t[0].api, &none, &bad); /* a key was meant: nothing is shown */
    assert_string_equal(a, "api.e2b.app");
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval), cmocka_unit_test(test_suspicious),
        cmocka_unit_test(test_warning),  cmocka_unit_test(test_server_time), cmocka_unit_test(test_apart),
        cmocka_unit_test(test_backoff), cmocka_unit_test(test_pace),
        cmocka_unit_test(test_search_left),
        cmocka_unit_test(test_switch_and_older_list),
        cmocka_unit_test(test_scope),    cmocka_unit_test(test_final),
        cmocka_unit_test(test_intent),
        cmocka_unit_test(test_list_proves),
        cmocka_unit_test(test_list_proves),   cmocka_unit_test(test_env),
        cmocka_unit_test(test_place),
    };

    if (secrets_init(NULL) != 0)
        return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
