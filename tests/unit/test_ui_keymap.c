/* The table of actions and keys: no key twice, everything reachable, names both ways. */
#include <cct/config/options.h>
#include <cct/ui/keymap.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Press the keys of one name ("gg" is two). */
static enum action press(struct keymap *k, enum key_scope scope, const char *name)
{
    bool pending = false;
    key_code one = key_parse(name);
    keymap_reset(k);
    if (one)
        return keymap_find(k, scope, one, &pending);
    key_code first = (unsigned char)name[0], second = (unsigned char)name[1];
    if (strlen(name) == 4) { /* "^X^E" */
        assert_true(name[0] == '^' && name[2] == '^');
        first = (unsigned char)name[1] & 0x1F;
        second = (unsigned char)name[3] & 0x1F;
    } else {
        assert_int_equal(strlen(name), 2);
    }
    assert_int_equal(keymap_find(k, scope, first, &pending), ACT_NONE);
    assert_true(pending);
    enum action a = keymap_find(k, scope, second, &pending);
    assert_false(pending);
    return a;
}

static void each_key(struct keymap *k, enum action a, enum key_scope scope)
{
    char *keys = xstrdup(keymap_keys(k, a)), *save = NULL;
    for (char *w = strtok_r(keys, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        enum action got = press(k, scope, w);
        if (got != a)
            fail_msg("%s in scope %d: key %s does %s", action_name(a), scope, w,
                     action_name(got));
    }
    free(keys);
}

/* Each default key does its action in its own scope, and NAV's in list and output too. */
static void test_all_reachable(void **state)
{
    (void)state;
    struct keymap *k = keymap_new();
    for (int i = ACT_NONE + 1; i < ACT_COUNT; i++) {
        enum action a = (enum action)i;
        assert_true(*keymap_keys(k, a) != 0);
        assert_true(*action_help(a) != 0);
        each_key(k, a, action_scope(a));
        if (action_scope(a) == SCOPE_NAV) {
            each_key(k, a, SCOPE_LIST);
            each_key(k, a, SCOPE_OUTPUT);
            each_key(k, a, SCOPE_SELECT);
            each_key(k, a, SCOPE_PROCS);
            each_key(k, a, SCOPE_USAGE);
            each_key(k, a, SCOPE_FILES);
            each_key(k, a, SCOPE_CHANGES);
            each_key(k, a, SCOPE_BUILDS);
            each_key(k, a, SCOPE_BUILD_LOG);
        }
        if (action_scope(a) == SCOPE_LIST)
            each_key(k, a, SCOPE_WALL);
        if (action_scope(a) == SCOPE_NAV && a != ACT_PANE_LIST && a != ACT_PANE_OUTPUT &&
            a != ACT_PANE_EVENTS && a != ACT_PANE_USAGE && a != ACT_PANE_BUILDS) { /* whose digits are tiles there */
            each_key(k, a, SCOPE_WALL);
        }
    }
    keymap_free(k);
}

/* What the program does not look at when it starts. */
static void test_defaults_do_not_clash(void **state)
{
    (void)state;
    struct keymap *k = keymap_new();
    for (int i = ACT_NONE + 1; i < ACT_COUNT; i++) {
        enum action a = (enum action)i;
        struct err e = {0};
        if (keymap_bind(k, action_name(a), action_keys(a), &e))
            fail_msg("%s", e.text);
    }
    keymap_free(k);
}

static void test_names_are_unique(void **state)
{
    (void)state;
    for (int i = 1; i < ACT_COUNT; i++)
        for (int j = i + 1; j < ACT_COUNT; j++)
            assert_string_not_equal(action_name((enum action)i), action_name((enum action)j));
}

static void test_no_command_in_input(void **state)
{
    (void)state;
    struct keymap *k = keymap_new();
    bool pending;
    for (key_code c = ' '; c < 0x7F; c++) {
        assert_int_equal(keymap_find(k, SCOPE_INPUT, c, &pending), ACT_NONE);
        assert_int_equal(keymap_find(k, SCOPE_FORM, c, &pending), ACT_NONE);
        assert_int_equal(keymap_find(k, SCOPE_ASK, c, &pending), ACT_NONE);
        assert_false(pending);
    }
    keymap_free(k);
}

static void test_names_round_trip(void **state)
{
    (void)state;
    static const char *const words[] = {"j",     "G",         "^D",    "Alt-a",    "Alt-Enter",
                                        "Enter", "Esc",       "F1",    "F12",      "Space",
                                        "gg",    "Backspace", "?",     "Alt--",    "-",
                                        "^_",    "Alt-Up",    "\xc3\xa9", "Delete", "BackTab"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        key_code k = key_parse(words[i]);
        char back[32];
        if (!strcmp(words[i], "gg")) {
            assert_int_equal(k, 0);
            continue;
        }
        assert_true(k != 0);
        key_format(k, back, sizeof(back));
        assert_string_equal(back, words[i]);
    }
    static const char *const none[] = {"", "F0", "F13", "Ctrl-D", "^", "Alt-", "^@", "enter"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        if (strcmp(none[i], "^") != 0)
            assert_int_equal(key_parse(none[i]), 0);
    assert_int_equal(key_parse("^"), '^');
    assert_int_equal(key_parse("^I"), K_TAB);
    assert_int_equal(key_parse("^M"), K_ENTER);
    assert_int_equal(key_parse("^d"), 4);
}

static void test_rebind(void **state)
{
    (void)state;
    struct keymap *k = keymap_new();
    struct err e = {0};
    assert_int_equal(keymap_bind(k, "kill", "F8 F9", &e), 0);
    assert_int_equal(press(k, SCOPE_LIST, "F8"), ACT_KILL);
    assert_int_equal(press(k, SCOPE_LIST, "D"), ACT_NONE);
    assert_string_equal(keymap_keys(k, ACT_KILL), "F8 F9");
    assert_int_equal(keymap_which(k, ACT_KILL, key_parse("F8")), 0);
    assert_int_equal(keymap_which(k, ACT_KILL, key_parse("F9")), 1);
    assert_int_equal(keymap_which(k, ACT_KILL, 'D'), -1);
    /* a clash names the key and both actions, and changes nothing */
    assert_true(keymap_bind(k, "quit", "j", &e) != 0);
    assert_non_null(strstr(e.text, "'j'"));
    assert_non_null(strstr(e.text, "quit"));
    assert_non_null(strstr(e.text, "down"));
    assert_int_equal(press(k, SCOPE_NAV, "q"), ACT_QUIT);
    /* also where one would hide the other: t is a key of the list */
    assert_true(keymap_bind(k, "kill-all", "t", &e) != 0);
    assert_non_null(strstr(e.text, "set-time"));
    assert_true(keymap_bind(k, "wrap", "X", &e) != 0);
    assert_non_null(strstr(e.text, "'interrupt'"));
    assert_true(keymap_bind(k, "kill", "x", &e) != 0); /* a key of the usage panel */
    assert_non_null(strstr(e.text, "usage-hide"));
    /* a key and a sequence that begins with it */
    assert_true(keymap_bind(k, "kill", "g", &e) != 0);
    assert_non_null(strstr(e.text, "top"));
    assert_true(keymap_bind(k, "kil", "x", &e) != 0);
    assert_non_null(strstr(e.text, "did you mean 'kill'"));
    assert_true(keymap_bind(k, "kill", "Ctrl-D", &e) != 0);
    assert_non_null(strstr(e.text, "Ctrl-D"));
    /* no key at all: the action is off */
    assert_int_equal(keymap_bind(k, "kill-all", "", &e), 0);
    assert_int_equal(press(k, SCOPE_LIST, "K"), ACT_NONE);
    keymap_free(k);
}

static void count_bad(void *ctx, const struct key_line *l, const struct err *e)
{
    int *n = ctx;
    assert_true(*l->action && *e->text);
    ++*n;
}

static void bind(struct keymap *k, const char *const lines[][2], size_t n, int bad)
{
    struct key_line v[8] = {{0}};
    int told = 0;
    for (size_t i = 0; i < n; i++) {
        v[i].action = (char *)(uintptr_t)lines[i][0];
        v[i].keys = (char *)(uintptr_t)lines[i][1];
    }
    keymap_bind_all(k, v, n, count_bad, &told);
    assert_int_equal(told, bad);
}

/* Lines of one configuration count together: two actions may change places. */
static void test_bind_all(void **state)
{
    (void)state;
    static const char *const swap[][2] = {{"down", "k"}, {"up", "j"}};
    static const char *const wrong[][2] = {{"kill", "q"}, {"nosuch", "x"}, {"mark", "no-key"}};
    static const char *const taken[][2] = {{"quit", "j"}, {"down", "q"}, {"up", "q"}};
    struct keymap *k = keymap_new();
    bind(k, swap, 2, 0);
    assert_int_equal(press(k, SCOPE_LIST, "k"), ACT_DOWN);
    assert_int_equal(press(k, SCOPE_LIST, "j"), ACT_UP);
    keymap_free(k);
    k = keymap_new();
    bind(k, wrong, 3, 3); /* these have their own keys again */
    assert_int_equal(press(k, SCOPE_LIST, "D"), ACT_KILL);
    assert_int_equal(press(k, SCOPE_LIST, "q"), ACT_QUIT);
    assert_string_equal(keymap_keys(k, ACT_KILL), action_keys(ACT_KILL));
    assert_int_equal(press(k, SCOPE_LIST, "Space"), ACT_MARK);
    keymap_free(k);
    k = keymap_new();
    bind(k, taken, 3, 1); /* "up" clashes: its own key k is free still */
    assert_int_equal(press(k, SCOPE_LIST, "q"), ACT_DOWN);
    assert_int_equal(press(k, SCOPE_LIST, "j"), ACT_QUIT);
    assert_int_equal(press(k, SCOPE_LIST, "k"), ACT_UP);
    keymap_free(k);
}

/* After the first key of a sequence any other key ends it and does nothing. */
static void test_sequences(void **state)
{
    (void)state;
    struct keymap *k = keymap_new();
    bool pending;
    assert_int_equal(keymap_find(k, SCOPE_LIST, 'g', &pending), ACT_NONE);
    assert_true(pending);
    assert_int_equal(keymap_find(k, SCOPE_LIST, 'K', &pending), ACT_NONE);
    assert_false(pending);
    assert_int_equal(keymap_find(k, SCOPE_LIST, 'g', &pending), ACT_NONE);
    assert_int_equal(keymap_find(k, SCOPE_LIST, 'g', &pending), ACT_TOP);
    keymap_free(k);
}

/* Bound anew by the configuration each action has its new key alone, and clashes with none. */
static void test_each_is_bound_anew(void **state)
{
    (void)state;
    for (int i = ACT_NONE + 1; i < ACT_COUNT; i++) {
        enum action a = (enum action)i;
        struct keymap *k = keymap_new();
        const char *const line[][2] = {{action_name(a), "F8 Alt-z"}};
        char *old = xstrdup(action_keys(a)), *save = NULL;
        bind(k, line, 1, 0);
        assert_int_equal(press(k, action_scope(a), "F8"), a);
        assert_int_equal(press(k, action_scope(a), "Alt-z"), a);
        for (char *w = strtok_r(old, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
            bool pending;
            keymap_reset(k);
            if (key_parse(w) && keymap_find(k, action_scope(a), key_parse(w), &pending) == a)
                fail_msg("%s still is at %s", action_name(a), w);
        }
        free(old);
        keymap_free(k);
    }
}

/* A key of another action that counts there: refused, and both are named. */
static void test_each_clash_names_both(void **state)
{
    struct keymap *k = keymap_new();
    size_t pairs = 0;
    (void)state;
    for (int i = ACT_NONE + 1; i < ACT_COUNT; i++)
        for (int j = ACT_NONE + 1; j < ACT_COUNT; j++) {
            enum action a = (enum action)i, b = (enum action)j;
            struct err e = {0};
            char key[16], mine[48], theirs[48];
            if (a == b || action_scope(a) != action_scope(b))
                continue;
            snprintf(key, sizeof(key), "%.*s", (int)strcspn(action_keys(b), " "), action_keys(b));
            snprintf(mine, sizeof(mine), "'%s'", action_name(a));
            snprintf(theirs, sizeof(theirs), "'%s'", action_name(b));
            assert_int_equal(keymap_bind(k, action_name(a), key, &e), ERR_INVALID);
            if (!strstr(e.text, mine) || !strstr(e.text, theirs))
                fail_msg("%s at the key of %s: %s", action_name(a), action_name(b), e.text);
            pairs++;
        }
    assert_true(pairs > 1000);
    keymap_free(k);
}

/* No key twice in one scope. */
static void test_no_key_twice(void **state)
{
    (void)state;
    for (int i = ACT_NONE + 1; i < ACT_COUNT; i++)
        for (int j = i + 1; j < ACT_COUNT; j++) {
            enum action a = (enum action)i, b = (enum action)j;
            char *keys = xstrdup(action_keys(a)), *save = NULL;
            for (char *w = strtok_r(keys, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
                char *others = xasprintf(" %s ", action_keys(b)), *mine = xasprintf(" %s ", w);
                if (action_scope(a) == action_scope(b) && strstr(others, mine))
                    fail_msg("%s is %s and %s", w, action_name(a), action_name(b));
                free(others);
                free(mine);
            }
            free(keys);
        }
}

/* What multiplexers, flow control, browsers and desktops keep for themselves is never the only
 * way; what can end the program or the line is none at all. */
static void test_no_taken_key_is_needed(void **state)
{
    static const char *const taken[] = {"^B", "^A", "^W", "^G", "^O", "^N", "^T", "^H", "F1", "F10", "F11"};
    static const char *const none[] = {"^S", "^Q", "^\\", "F10", "F11", "^G", "^O", "^T"};
    (void)state;
    for (int i = ACT_NONE + 1; i < ACT_COUNT; i++) {
        char *keys = xstrdup(action_keys((enum action)i)), *save = NULL;
        size_t free_ones = 0;
        for (char *w = strtok_r(keys, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
            bool is_taken = false;
            for (size_t k = 0; k < sizeof(taken) / sizeof(taken[0]); k++)
                is_taken |= strcmp(taken[k], w) == 0;
            for (size_t k = 0; k < sizeof(none) / sizeof(none[0]); k++)
                assert_string_not_equal(none[k], w);
            free_ones += !is_taken;
        }
        if (!free_ones)
            fail_msg("%s: %s is all there is", action_name((enum action)i),
                     action_keys((enum action)i));
        free(keys);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_reachable),       cmocka_unit_test(test_defaults_do_not_clash),
        cmocka_unit_test(test_names_are_unique),
        cmocka_unit_test(test_no_command_in_input), cmocka_unit_test(test_names_round_trip),
        cmocka_unit_test(test_rebind),              cmocka_unit_test(test_bind_all),   cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_each_is_bound_anew),  cmocka_unit_test(test_each_clash_names_both),
        cmocka_unit_test(test_no_key_twice),        cmocka_unit_test(test_no_taken_key_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
