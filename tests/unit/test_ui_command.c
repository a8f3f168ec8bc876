/* The command palette: what it offers comes from the tables, what it runs is what the key
 * would do, and nothing acts while it is typed. */
#include "../lib/screenscript.h"

#include <cct/ui/commands.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct script s;

static int setup(void **state)
{
    (void)state;
    script_init(&s);
    script_run(&s, "size 40 120\nloaded\nlink ok cloud\nprojects acme/web side/wasm\ntool claude base\n"
                   "row 1 fix-login claude running idle project=acme/web since=3600\n"
                   "row 2 api-tests codex running idle project=acme/web since=60\n"
                   "row 3 docs-fr claude running working project=acme/web since=3600\n"
                   "row 4 spike pi paused none project=acme/web\n"
                   "row 5 other claude running idle since=3600 foreign\n");
    script_draw(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    script_release(&s);
    return 0;
}

static void run(const char *lines)
{
    buf_clear(&s.app->calls);
    script_run(&s, lines);
    script_draw(&s);
}

static bool called(const char *text)
{
    return strstr(buf_str(&s.app->calls), text) != NULL;
}

static bool shows(const char *text)
{
    char *screen = script_screen(&s);
    bool is = strstr(screen, text) != NULL;

    free(screen);
    return is;
}

/* A replay has one run and nothing behind it: no pane comes up that shows nothing. */
static void test_in_a_replay(void **state)
{
    static const char *const refused[] = {"file /etc/passwd", "filter box", "all projects", "!true",
                                          "project acme/web", "sort by name"};
    (void)state;
    script_release(&s);
    script_init(&s);
    script_run(&s, "size 24 80\nreplay codex tests/fixtures/recordings/codex-tool.jsonl");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        char *line = xasprintf("keys : \"%s\" Enter", refused[i]);
        run(line);
        free(line);
        assert_true(shows("this is a replay"));
        assert_int_equal(s.ui.body, BODY_WORK);
        assert_int_equal(s.ui.focus, PANE_OUTPUT);
        assert_int_equal(s.ui.n_overlays, 0);
    }
    assert_string_equal(buf_str(&s.app->calls), "");
    run("keys : \"set screen.wrap off\" Enter");
    assert_false(shows("this is a replay"));
}

/* What the list is narrowed to gets a name, is offered by it, used and forgotten. */
static void test_filters(void **state)
{
    (void)state;
    run("keys : \"keep filter mine\" Enter");
    assert_true(shows("nothing to keep"));
    run("keys / \"agent:claude\" Enter : \"keep filter mine\" Enter");
    assert_true(called("filter mine = agent:claude"));
    run("keys : \"keep filter bad state:error,killed\" Enter");
    assert_true(called("filter bad = state:error,killed"));
    run("kept mine agent:claude\nkept idle doing:idle\nkeys : \"filter \" Enter : \"mine\"");
    assert_true(shows("use filter mine") && shows("drop filter mine") && shows("agent:claude"));
    run("keys Enter");
    assert_true(shows("3 of 5 fit"));
    run("keys : \"use filter none\" Enter");
    assert_true(shows("no filter is kept as 'none'"));
    run("keys : \"drop filter idle\" Enter");
    assert_true(called("filter idle = (away)"));
    s.ui.opts.readonly = true;
    run("keys : \"drop filter idle\" Enter");
    assert_true(shows("read-only") && s.app->calls.len == 0);
    run("keys : \"use filter idle\" Enter");
    assert_true(shows("3 of 5 fit"));
    s.ui.opts.readonly = false;
}

/* Files that were looked at are offered, of the sandbox that is shown alone. */
static void test_files(void **state)
{
    (void)state;
    run("keys v\nchanges main | .M 4 1 src/pause.ts | A. 1 0 b\\e.ts | .D 0 9 gone.ts");
    run("keys q : \"file pau\"");
    assert_true(shows("file src/pause.ts"));
    run("keys Esc : \"file gone\"");
    assert_false(shows("file gone.ts"));
    run("keys Esc : \"file src/pause.ts\" Enter");
    assert_int_equal(s.ui.body, BODY_FILES);
    assert_true(called("/home/user/web/src/pause.ts"));
    run("keys q");
    run("keys j : \"file src/pau\"");
    assert_false(shows("file src/pause.ts"));
    run("keys Esc : \"file etc/passwd\" Enter");
    assert_true(shows("write its whole path"));
    run("keys : \"file /etc/passwd\" Enter");
    assert_true(called("/etc/passwd"));
    run("keys q k");
}

/* Every action that has a meaning without its key is found by its name, and run. */
static void test_every_action(void **state)
{
    (void)state;
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
        enum key_scope scope = action_scope((enum action)a);
        char line[80];
        bool runs = scope_counts(scope, SCOPE_NAV) || scope == SCOPE_INPUT;
        if (!runs || a == ACT_TILE || a == ACT_COMMAND || a == ACT_INPUT_COMMAND)
            continue;
        snprintf(line, sizeof(line), "keys : \"%s\"", action_name((enum action)a));
        run(line);
        if (scope == SCOPE_REPLAY) /* offered while something is played */
            assert_false(shows(action_help((enum action)a)));
        else if (!shows(action_help((enum action)a)) && strlen(action_help((enum action)a)) < 40)
            fail_msg("%s is not offered", action_name((enum action)a));
        script_line(&s, "keys Esc", "test");
        assert_int_equal(s.ui.n_overlays, 0);
    }
}

static void test_runs_actions(void **state)
{
    (void)state;
    run("keys : \"pause\" Enter");
    assert_true(called("pause 1\n"));
    assert_int_equal(s.ui.n_overlays, 0);
    run("keys 2 : \"pause\" Enter"); /* the list's, from elsewhere: on the cursor's sandbox */
    assert_true(called("pause 1\n"));
    assert_int_equal(s.ui.focus, PANE_OUTPUT);
    run("keys : \"wall\" Enter");
    assert_int_equal(s.ui.body, BODY_WALL);
    run("keys : \"wrap\" Enter Esc");
    assert_int_equal(s.ui.body, BODY_WORK);
    run("keys : \"new\" Enter"); /* a dialog comes in its place */
    assert_int_equal(s.ui.n_overlays, 1);
    assert_true(shows("new sandbox"));
    run("keys Esc : \"kill\" Enter");
    assert_false(called("kill"));
    assert_true(shows("kill"));
    run("keys Esc i ^P \"pane-list\" Enter");
    assert_int_equal(s.ui.focus, PANE_LIST);
    assert_int_equal(ui_key(&s.ui, ':', NULL, 0) & UI_QUIT, 0);
    script_line(&s, "keys \"qui\"", "test");
    assert_true(ui_key(&s.ui, K_ENTER, NULL, 0) & UI_QUIT);
}

static void test_sandboxes(void **state)
{
    (void)state;
    run("keys : \"spike\" Enter");
    assert_int_equal(s.ui.selected, 4);
    run("keys : \"apit\" Enter");
    assert_int_equal(s.ui.selected, 2);
}

static void test_commands(void **state)
{
    (void)state;
    run("keys : \"pause all idle\" Enter");
    assert_true(called("pause 1\n"));
    assert_false(called("pause 2\n") || called("pause 3\n") || called("pause 5\n"));
    run("keys : \"pause all idle 30\" Enter");
    assert_true(called("pause 1\n") && called("pause 2\n"));
    run("keys : \"pause all idle soon\" Enter");
    assert_false(called("pause"));
    assert_true(shows("is no time"));
    run("keys : \"wasm\" Enter");
    assert_true(called("project_switch side/wasm") || called("project switch side/wasm") ||
                called("side/wasm"));
    run("keys : \"project nosuch\" Enter");
    assert_false(called("nosuch"));
}

static void test_says(void **state)
{
    (void)state;
    run("keys : \"@api\" Tab \"run it again\" Enter");
    assert_true(called("run it again"));
    assert_int_equal(s.ui.n_overlays, 0);
    run("keys : \"@nobody hello\" Enter");
    assert_false(called("hello"));
    assert_true(shows("no sandbox in view is called"));
    run("keys : \"@spike hello\" Enter");
    assert_false(called("hello"));
    run("keys : \"@fix\" Enter"); /* a name alone is completed */
    assert_int_equal(s.ui.n_overlays, 1);
    assert_string_equal(inputline_text(&s.ui.command), "@fix-login ");
}

static void test_history(void **state)
{
    (void)state;
    run("keys : \"pause all idle 30\" Enter : Up");
    assert_string_equal(inputline_text(&s.ui.command), "pause all idle 30");
    run("keys Enter");
    assert_true(called("pause 2\n"));
    run("keys : \"wall\" Enter : Up Up Down");
    assert_string_equal(inputline_text(&s.ui.command), "wall");
    run("keys Esc");
}

/* Keys that act elsewhere are text here, and a paste runs nothing. */
static void test_only_text(void **state)
{
    (void)state;
    run("keys : \"KyDq\" <kill all> ");
    assert_int_equal(s.ui.n_overlays, 1);
    assert_int_equal(s.app->calls.len, 0);
    run("keys Esc");
    assert_int_equal(s.ui.n_overlays, 0);
    assert_int_equal(s.app->calls.len, 0);
}

static void test_readonly(void **state)
{
    (void)state;
    s.ui.opts.readonly = true;
    static const char *const lines[] = {"keys : \"pause\" Enter", "keys : \"kill-all\" Enter",
                                        "keys : \"pause all idle\" Enter", "keys : \"new\" Enter",
                                        "keys : \"@fix-login go\" Enter", "keys : \"bulk\" Enter",
                                        "keys : \"!true\" Enter"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        run(lines[i]);
        assert_int_equal(s.app->calls.len, 0);
        assert_int_equal(s.ui.n_overlays, 0);
        assert_true(shows("read-only"));
    }
}

/* And every action has its row in the help, with its keys. */
static void test_every_action_in_help(void **state)
{
    (void)state;
    run("size 400 140\nkeys ?");
    char *screen = script_screen(&s);
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
        char row[60];
        snprintf(row, sizeof(row), "%-18s %.34s", keymap_keys(s.ui.keys, (enum action)a),
                 action_help((enum action)a));
        if (!strstr(screen, row))
            fail_msg("not in the help: %s", row);
    }
    free(screen);
    run("keys Esc");
}

/* The help begins with what counts where it was asked for. */
static void test_help_begins_here(void **state)
{
    (void)state;
    run("size 24 140\nkeys ?");
    assert_true(shows("| SANDBOX LIST"));
    run("lines 1 3 words\nkeys Esc 2 v ?");
    assert_true(shows("| SELECTION"));
    assert_false(shows("| SANDBOX LIST"));
    run("keys Esc Esc 2 o ?");
    assert_true(shows("| PROCESSES"));
    run("keys Esc W ?");
    assert_true(shows("| WALL") && shows("| SANDBOX LIST"));
    run("keys Esc");
}

/* A key that counts everywhere and can do nothing in a pane says so. */
static void test_nothing_is_silent(void **state)
{
    (void)state;
    run("keys 4 /");
    assert_true(shows("search does nothing here"));
    run("keys 4 5 /");
    assert_true(shows("search does nothing here"));
    run("keys 1 Down");
    assert_false(shows("does nothing here"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_action, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_action_in_help, setup, teardown),
        cmocka_unit_test_setup_teardown(test_help_begins_here, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_runs_actions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sandboxes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_filters, setup, teardown),
        cmocka_unit_test_setup_teardown(test_commands, setup, teardown),
        cmocka_unit_test_setup_teardown(test_says, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_a_replay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_history, setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readonly, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
