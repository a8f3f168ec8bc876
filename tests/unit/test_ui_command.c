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
        script_do(&s, line);
        free(line);
        assert_true(script_shows(&s, "this is a replay"));
        assert_int_equal(s.ui.body, BODY_WORK);
        assert_int_equal(s.ui.focus, PANE_OUTPUT);
        assert_int_equal(s.ui.n_overlays, 0);
    }
    assert_string_equal(buf_str(&s.app->calls), "");
    script_do(&s, "keys : \"set screen.wrap off\" Enter");
    assert_false(script_shows(&s, "this is a replay"));
}

/* What the list is narrowed to gets a name, is offered by it, used and forgotten. */
static void test_filters(void **state)
{
    (void)state;
    script_do(&s, "keys : \"keep filter mine\" Enter");
    assert_true(script_shows(&s, "nothing to keep"));
    script_do(&s, "keys / \"agent:claude\" Enter : \"keep filter mine\" Enter");
    assert_true(script_called(&s, "filter mine = agent:claude"));
    script_do(&s, "keys : \"keep filter bad state:error,killed\" Enter");
    assert_true(script_called(&s, "filter bad = state:error,killed"));
    script_do(&s, "kept mine agent:claude\nkept idle doing:idle\nkeys : \"filter \" Enter : \"mine\"");
    assert_true(script_shows(&s, "use filter mine") && script_shows(&s, "drop filter mine") && script_shows(&s, "agent:claude"));
    script_do(&s, "keys Enter");
    assert_true(script_shows(&s, "3 of 5 fit"));
    script_do(&s, "keys : \"use filter none\" Enter");
    assert_true(script_shows(&s, "no filter is kept as 'none'"));
    script_do(&s, "keys : \"drop filter idle\" Enter");
    assert_true(script_called(&s, "filter idle = (away)"));
    s.ui.opts.readonly = true;
    script_do(&s, "keys : \"drop filter idle\" Enter");
    assert_true(script_shows(&s, "read-only") && s.app->calls.len == 0);
    script_do(&s, "keys : \"use filter idle\" Enter");
    assert_true(script_shows(&s, "3 of 5 fit"));
    s.ui.opts.readonly = false;
}

/* Files that were looked at are offered, of the sandbox that is shown alone. */
static void test_files(void **state)
{
    (void)state;
    script_do(&s, "keys v\nchanges main | .M 4 1 src/pause.ts | A. 1 0 b\\e.ts | .D 0 9 gone.ts");
    script_do(&s, "keys q : \"file pau\"");
    assert_true(script_shows(&s, "file src/pause.ts"));
    script_do(&s, "keys Esc : \"file gone\"");
    assert_false(script_shows(&s, "file gone.ts"));
    script_do(&s, "keys Esc : \"file src/pause.ts\" Enter");
    assert_int_equal(s.ui.body, BODY_FILES);
    assert_true(script_called(&s, "/home/user/web/src/pause.ts"));
    script_do(&s, "keys q");
    script_do(&s, "keys j : \"file src/pau\"");
    assert_false(script_shows(&s, "file src/pause.ts"));
    script_do(&s, "keys Esc : \"file etc/passwd\" Enter");
    assert_true(script_shows(&s, "write its whole path"));
    script_do(&s, "keys : \"file /etc/passwd\" Enter");
    assert_true(script_called(&s, "/etc/passwd"));
    script_do(&s, "keys q k");
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
        script_do(&s, line);
        if (scope == SCOPE_REPLAY) /* offered while something is played */
            assert_false(script_shows(&s, action_help((enum action)a)));
        else if (!script_shows(&s, action_help((enum action)a)) && strlen(action_help((enum action)a)) < 40)
            fail_msg("%s is not offered", action_name((enum action)a));
        script_line(&s, "keys Esc", "test");
        assert_int_equal(s.ui.n_overlays, 0);
    }
}

static void test_runs_actions(void **state)
{
    (void)state;
    script_do(&s, "keys : \"pause\" Enter");
    assert_true(script_called(&s, "pause 1\n"));
    assert_int_equal(s.ui.n_overlays, 0);
    script_do(&s, "keys 2 : \"pause\" Enter"); /* the list's, from elsewhere: on the cursor's sandbox */
    assert_true(script_called(&s, "pause 1\n"));
    assert_int_equal(s.ui.focus, PANE_OUTPUT);
    script_do(&s, "keys : \"wall\" Enter");
    assert_int_equal(s.ui.body, BODY_WALL);
    script_do(&s, "keys : \"wrap\" Enter Esc");
    assert_int_equal(s.ui.body, BODY_WORK);
    script_do(&s, "keys : \"new\" Enter"); /* a dialog comes in its place */
    assert_int_equal(s.ui.n_overlays, 1);
    assert_true(script_shows(&s, "new sandbox"));
    script_do(&s, "keys Esc : \"kill\" Enter");
    assert_false(script_called(&s, "kill"));
    assert_true(script_shows(&s, "kill"));
    script_do(&s, "keys Esc i ^P \"pane-list\" Enter");
    assert_int_equal(s.ui.focus, PANE_LIST);
    assert_int_equal(ui_key(&s.ui, ':', NULL, 0) & UI_QUIT, 0);
    script_line(&s, "keys \"qui\"", "test");
    assert_true(ui_key(&s.ui, K_ENTER, NULL, 0) & UI_QUIT);
}

static void test_sandboxes(void **state)
{
    (void)state;
    script_do(&s, "keys : \"spike\" Enter");
    assert_int_equal(s.ui.selected, 4);
    script_do(&s, "keys : \"apit\" Enter");
    assert_int_equal(s.ui.selected, 2);
    script_do(&s, "keys W : \"fixl\" Enter"); /* a tile of the wall stays one */
    assert_int_equal(s.ui.selected, 1);
    assert_int_equal(s.ui.body, BODY_WALL);
    script_do(&s, "keys W 4 : \"docs\" Enter"); /* elsewhere it is not to be seen */
    assert_int_equal(s.ui.selected, 3);
    assert_int_equal(s.ui.body, BODY_WORK);
}

static void test_commands(void **state)
{
    (void)state;
    script_do(&s, "keys : \"pause all idle\" Enter");
    assert_true(script_called(&s, "pause 1\n"));
    assert_false(script_called(&s, "pause 2\n") || script_called(&s, "pause 3\n") || script_called(&s, "pause 5\n"));
    script_do(&s, "keys : \"pause all idle 30\" Enter");
    assert_true(script_called(&s, "pause 1\n") && script_called(&s, "pause 2\n"));
    script_do(&s, "keys : \"pause all idle soon\" Enter");
    assert_false(script_called(&s, "pause"));
    assert_true(script_shows(&s, "is no time"));
    script_do(&s, "keys : \"wasm\" Enter");
    assert_true(script_called(&s, "project_switch side/wasm") || script_called(&s, "project switch side/wasm") ||
                script_called(&s, "side/wasm"));
    script_do(&s, "keys : \"project nosuch\" Enter");
    assert_false(script_called(&s, "nosuch"));
}

static void test_says(void **state)
{
    (void)state;
    script_do(&s, "keys : \"@api\" Tab \"run it again\" Enter");
    assert_true(script_called(&s, "run it again"));
    assert_int_equal(s.ui.n_overlays, 0);
    script_do(&s, "keys : \"@nobody hello\" Enter");
    assert_false(script_called(&s, "hello"));
    assert_true(script_shows(&s, "no sandbox in view is called"));
    script_do(&s, "keys : \"@spike hello\" Enter");
    assert_false(script_called(&s, "hello"));
    script_do(&s, "keys : \"@fix\" Enter"); /* a name alone is completed */
    assert_int_equal(s.ui.n_overlays, 1);
    assert_string_equal(inputline_text(&s.ui.command), "@fix-login ");
}

static void test_history(void **state)
{
    (void)state;
    script_do(&s, "keys : \"pause all idle 30\" Enter : Up");
    assert_string_equal(inputline_text(&s.ui.command), "pause all idle 30");
    script_do(&s, "keys Enter");
    assert_true(script_called(&s, "pause 2\n"));
    script_do(&s, "keys : \"wall\" Enter : Up Up Down");
    assert_string_equal(inputline_text(&s.ui.command), "wall");
    script_do(&s, "keys Esc");
}

/* Keys that act elsewhere are text here, and a paste runs nothing. */
static void test_only_text(void **state)
{
    (void)state;
    script_do(&s, "keys : \"KyDq\" <kill all> ");
    assert_int_equal(s.ui.n_overlays, 1);
    assert_int_equal(s.app->calls.len, 0);
    script_do(&s, "keys Esc");
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
        script_do(&s, lines[i]);
        assert_int_equal(s.app->calls.len, 0);
        assert_int_equal(s.ui.n_overlays, 0);
        assert_true(script_shows(&s, "read-only"));
    }
}

/* And every action has its row in the help, with its keys. */
static void test_every_action_in_help(void **state)
{
    (void)state;
    script_do(&s, "size 400 140\nkeys ?");
    char *screen = script_screen(&s);
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
        char row[60];
        snprintf(row, sizeof(row), "%-18s %.34s", keymap_keys(s.ui.keys, (enum action)a),
                 action_help((enum action)a));
        if (!strstr(screen, row))
            fail_msg("not in the help: %s", row);
    }
    free(screen);
    script_do(&s, "keys Esc");
}

/* The help begins with what counts where it was asked for. */
static void test_help_begins_here(void **state)
{
    (void)state;
    script_do(&s, "size 24 140\nkeys ?");
    assert_true(script_shows(&s, "| SANDBOX LIST"));
    script_do(&s, "lines 1 3 words\nkeys Esc 2 v ?");
    assert_true(script_shows(&s, "| SELECTION"));
    assert_false(script_shows(&s, "| SANDBOX LIST"));
    script_do(&s, "keys Esc Esc 2 o ?");
    assert_true(script_shows(&s, "| PROCESSES"));
    script_do(&s, "keys Esc W ?");
    assert_true(script_shows(&s, "| WALL") && script_shows(&s, "| SANDBOX LIST"));
    script_do(&s, "keys Esc");
}

/* A key that counts everywhere and can do nothing in a pane says so. */
static void test_nothing_is_silent(void **state)
{
    (void)state;
    script_do(&s, "keys 4 /");
    assert_true(script_shows(&s, "search does nothing here"));
    script_do(&s, "keys 4 5 /");
    assert_true(script_shows(&s, "search does nothing here"));
    script_do(&s, "keys 1 Down");
    assert_false(script_shows(&s, "does nothing here"));
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
