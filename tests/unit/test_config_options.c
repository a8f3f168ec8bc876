/* Options: defaults, values, files and their mistakes, order of force; the example file
 * and the README's tables are what the tables in the code say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cct/config/options.h>
#include <cct/ui/keymap.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], *user, *project;

static int setup(void **state)
{
    (void)state;
    str_copy(dir, sizeof(dir), "/tmp/test-options-XXXXXX");
    assert_non_null(mkdtemp(dir));
    user = fs_join(dir, "cc-tui.conf");
    project = fs_join(dir, ".cc-tui");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char *link = fs_join(dir, "link");
    unlink(link);
    unlink(user);
    unlink(project);
    rmdir(dir);
    free(link);
    free(user);
    free(project);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    struct err e = {0};
    assert_int_equal(fs_write_private(path, text, strlen(text), &e), 0);
}

static void test_defaults(void **state)
{
    struct config c;
    (void)state;
    config_load(&c, NULL, NULL);
    assert_int_equal(c.n_notes, 0);
    assert_string_equal(c.o.theme, "auto");
    assert_int_equal(c.o.timeout, 900);
    assert_true(c.o.max_store == INT64_C(2) << 30);
    assert_true(c.o.wrap);
    assert_false(c.o.ascii);
    assert_int_equal(c.o.source[0], OPT_DEFAULT);
    config_release(&c);
    config_load(&c, user, project); /* missing files are fine */
    assert_int_equal(c.n_notes, 0);
    config_release(&c);
}

static void test_values(void **state)
{
    static const struct {
        const char *name, *value, *error;
    } cases[] = {
        {"timeout", "1h30m", NULL},
        {"sandbox.timeout", "90", NULL},
        {"timeout", "10", "'timeout' cannot be that: it is from 15s to 1d"},
        {"timeout", "soon", "'timeout' cannot be that: it wants a time such as 90, 15m or "
                            "1h30m"},
        {"max_size", "64K", NULL},
        {"max_size", "9999999T", "'max_size' cannot be that: it wants a size such as 64K, "
                                 "1M or 2G"},
        {"ascii", "Yes", NULL},
        {"ascii", "maybe", "'ascii' cannot be that: it is on or off"},
        {"at_end", "pause", NULL},
        {"at_end", "paus", "'at_end' cannot be that: it is one of kill pause"},
        {"poll", "1", "'poll' cannot be that: it is from 2 to 60"},
        {"max_fps", "x", "'max_fps' cannot be that: it wants a number"},
        {"thme", "x", "there is no option 'thme' (did you mean 'theme'?)"},
        {"log.theme", "x", "there is no option 'log.theme' (did you mean 'theme'?)"},
        {"theme", "a\tb", "'theme' holds a control character"},
    };
    struct config c;
    (void)state;
    config_load(&c, NULL, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = {0};
        int rc = config_set(&c, cases[i].name, cases[i].value, OPT_FLAG, &e);
        assert_int_equal(rc != 0, cases[i].error != NULL);
        assert_string_equal(e.text, cases[i].error ? cases[i].error : "");
    }
    assert_int_equal(c.o.timeout, 90);
    assert_int_equal(c.o.max_store, 64 << 10);
    assert_true(c.o.ascii);
    assert_string_equal(c.o.at_end, "pause");
    config_release(&c);
}

static void check_notes(const struct config *c, const char *file, const char *const *want,
                        size_t n)
{
    assert_int_equal(c->n_notes, n);
    for (size_t i = 0; i < n; i++) {
        char *full = xasprintf("%s:%s", file, want[i]);
        assert_string_equal(c->notes[i], full);
        free(full);
    }
}

static void test_file_mistakes(void **state)
{
    static const char *const want[] = {
        "1: 'theme' stands before any section; it belongs to [screen]",
        "3: unknown key 'thme' (did you mean 'theme'?)",
        "4: 'max_fps' cannot be that: it is from 0 to 60; the value stays as it was",
        "5: 'poll' belongs to [net], not to [screen]",
        "6: unknown section 'sanbox' (did you mean 'sandbox'?)",
        "9: unknown key 'zzzzzzzz'",
        "10: expected \"key = value\" or \"[section]\"",
    };
    struct config c;
    (void)state;
    write_file(user, "theme = light\n[screen]\nthme = light\nmax_fps = 500\npoll = 4\n"
                     "[sanbox]\ntimeout = 3m\n[net]\nzzzzzzzz = 1\nnonsense\npoll = 5\n"
                     "[keys]\nkill = x F9\n");
    config_load(&c, user, NULL);
    check_notes(&c, user, want, sizeof(want) / sizeof(want[0]));
    assert_string_equal(c.o.theme, "auto");
    assert_int_equal(c.o.fps, 0);
    assert_int_equal(c.o.timeout, 900);
    assert_int_equal(c.o.poll, 5);
    assert_int_equal(c.n_keys, 1);
    assert_string_equal(c.keys[0].action, "kill");
    assert_string_equal(c.keys[0].keys, "x F9");
    char *where = xasprintf("%s:13", user);
    assert_string_equal(c.keys[0].where, where);
    free(where);
    config_release(&c);
}

static void test_project_file(void **state)
{
    static const char *const want[] = {
        "5: 'kill_all_confirm' is not taken from a project's file; set it in your own",
        "7: 'ca_file' is not taken from a project's file; set it in your own",
        "9: 'down' is not taken from a project's file; set it in your own",
        "10: '(not shown)' is not taken from a project's file; set it in your own",
        "12: 'retention_days' is not taken from a project's file; set it in your own",
    };
    struct config c;
    (void)state;
    write_file(user, "[sandbox]\ntool = shell\ntimeout = 5m\n");
    write_file(project, "[screen]\ntheme = mono\n[sandbox]\ntool = claude\n"
                        "kill_all_confirm = never\n[net]\nca_file = /tmp/ca.pem\n[keys]\n"
                        "down = K\nsk-1234567890 = K\n[store]\nretention_days = 1\n");
    config_load(&c, user, project);
    check_notes(&c, project, want, 5);
    assert_string_equal(c.o.tool, "claude");
    assert_int_equal(c.o.timeout, 300);
    assert_string_equal(c.o.theme, "mono");
    assert_string_equal(c.o.kill_all_confirm, "count");
    assert_string_equal(c.o.ca_file, "");
    assert_int_equal(c.n_keys, 0);
    config_release(&c);
}

static void test_order(void **state)
{
    struct config c;
    struct err e = {0};
    const char *section, *name, *help;
    char value[64];
    enum option_source src;
    (void)state;
    write_file(user, "[screen]\ntheme = light\nwrap = off\n[sandbox]\nproject = mine\n");
    write_file(project, "[screen]\ntheme = mono\n");
    setenv("CC_TUI_SANDBOX_PROJECT", "env", 1);
    setenv("CC_TUI_NET_POLL", "fast", 1);
    config_load(&c, user, project);
    unsetenv("CC_TUI_SANDBOX_PROJECT");
    unsetenv("CC_TUI_NET_POLL");
    assert_string_equal(c.o.theme, "mono");
    assert_false(c.o.wrap);
    assert_string_equal(c.o.project, "env");
    assert_int_equal(c.n_notes, 1);
    assert_string_equal(c.notes[0], "CC_TUI_NET_POLL: 'poll' cannot be that: it wants a "
                                    "number; the value stays as it was");
    assert_int_equal(config_set(&c, "screen.theme", "dark", OPT_FLAG, &e), 0);
    assert_true(config_at(&c, 0, &section, &name, value, sizeof(value), &src, &help));
    assert_string_equal(section, "screen");
    assert_string_equal(name, "theme");
    assert_string_equal(value, "dark");
    assert_int_equal(src, OPT_FLAG);
    assert_false(config_at(&c, 1000, &section, &name, value, sizeof(value), &src, &help));
    config_release(&c);
}

/* A configuration in a dotfiles folder is reached through a link; what others may
 * write, or what is no file, is not read. */
static void test_file_kinds(void **state)
{
    struct config c;
    char *link = fs_join(dir, "link");
    (void)state;
    write_file(user, "[screen]\ntheme = light\n");
    assert_int_equal(symlink(user, link), 0);
    config_load(&c, link, NULL);
    assert_int_equal(c.n_notes, 0);
    assert_string_equal(c.o.theme, "light");
    config_release(&c);

    assert_int_equal(chmod(user, 0666), 0);
    config_load(&c, link, NULL);
    assert_int_equal(c.n_notes, 1);
    assert_non_null(strstr(c.notes[0], "others can write to it"));
    assert_string_equal(c.o.theme, "auto");
    config_release(&c);

    unlink(link);
    assert_int_equal(mkfifo(link, 0600), 0); /* does not hang */
    config_load(&c, link, NULL);
    assert_int_equal(c.n_notes, 1);
    assert_non_null(strstr(c.notes[0], "not a regular file"));
    config_release(&c);
    unlink(link);
    if (geteuid() == 0) {
        chmod(user, 0600);
        assert_int_equal(chown(user, 12345, 12345), 0);
        config_load(&c, user, NULL);
        assert_int_equal(c.n_notes, 1);
        assert_non_null(strstr(c.notes[0], "belongs to user 12345"));
        config_release(&c);
    }
    free(link);
}

/* Every default as text is read back as that value. */
static void test_example_reads_back(void **state)
{
    struct config c;
    char *text = config_example();
    (void)state;
    for (char *p = text; (p = strstr(p, "\n#")); p++)
        if (p[2] != ' ')
            p[1] = ' '; /* every option switched on */
    write_file(user, text);
    config_load(&c, user, NULL);
    for (size_t i = 0; i < c.n_notes; i++)
        print_message("%s\n", c.notes[i]);
    assert_int_equal(c.n_notes, 0);
    assert_int_equal(c.o.source[0], OPT_USER);
    assert_int_equal(c.n_keys, 2);
    config_release(&c);
    free(text);
}

static char *read_text(const char *path)
{
    struct err e = {0};
    return fs_read(path, 1 << 20, false, NULL, &e);
}

/* With UPDATE=1 the files are written anew. */
static void update(const char *path, const char *const *parts, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++)
        fputs(parts[i], f);
    assert_int_equal(fclose(f), 0);
}

static void test_example_file(void **state)
{
    char *text = config_example();
    (void)state;
    if (getenv("UPDATE"))
        update("cc-tui.conf.example", (const char *const[]){text}, 1);
    char *file = read_text("cc-tui.conf.example");
    assert_non_null(file);
    assert_string_equal(file, text);
    free(file);
    free(text);
}

/* README between <!-- NAME --> and <!-- /NAME --> is the generated table. */
static void check_readme(const char *name, const char *table)
{
    char *file = read_text("README.md"), *open = xasprintf("<!-- %s -->\n", name),
         *close = xasprintf("<!-- /%s -->", name);
    char *from = file ? strstr(file, open) : NULL, *to = from ? strstr(from, close) : NULL;
    bool marked = from && to;
    if (marked && getenv("UPDATE")) {
        char *rest = xstrdup(to);
        from[strlen(open)] = '\0';
        update("README.md", (const char *const[]){file, table, "\n", rest}, 4);
        free(rest);
    } else if (marked) {
        *to = '\0';
        assert_string_equal(str_trim(from + strlen(open)), table);
    }
    free(file);
    free(open);
    free(close);
    if (!marked)
        skip();
}

static void test_readme_options(void **state)
{
    char *text = config_table();
    (void)state;
    check_readme("options", str_trim(text));
    free(text);
}

static void test_readme_keys(void **state)
{
    struct keymap *k = keymap_new();
    char *text = keymap_table(k);
    (void)state;
    keymap_free(k);
    check_readme("keys", str_trim(text));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
        cmocka_unit_test(test_values),
        cmocka_unit_test_setup_teardown(test_file_mistakes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_project_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_example_reads_back, setup, teardown),
        cmocka_unit_test(test_example_file),
        cmocka_unit_test(test_readme_options),
        cmocka_unit_test(test_readme_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
