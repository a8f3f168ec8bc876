/* The configuration while the screen is open: read on a thread when a file changes or somebody
 * asks, and taken over without losing the place. */
#include "../lib/screenscript.h"

#include <cct/util/fs.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON_MS = 20000 };

static char dir[] = "/tmp/cct-reload.XXXXXX";
static char *file;

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    file = fs_join(dir, "cc-tui.conf");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char *themes = fs_join(dir, "themes"), *theme = fs_join(themes, "mine.theme");
    unlink(theme);
    rmdir(themes);
    unlink(file);
    rmdir(dir);
    free(theme);
    free(themes);
    free(file);
    return 0;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void load(void *ctx, struct config *c)
{
    config_load(c, ctx, NULL);
}

static struct reload *open_reload(void)
{
    struct reload_opts o = {.load = load, .ctx = file, .files = {file, NULL}, .config_dir = dir};
    struct reload *r = reload_new(&o);
    assert_non_null(r);
    return r;
}

static struct settings *taken(struct reload *r)
{
    struct pollfd p = {.fd = reload_fd(r), .events = POLLIN};
    assert_int_equal(poll(&p, 1, SOON_MS), 1);
    struct settings *s = reload_take(r);
    assert_non_null(s);
    return s;
}

/* Takes until the theme is that one: a write may be seen in two halves. */
static void theme_is(struct reload *r, const char *name)
{
    struct settings *s = taken(r);
    while (strcmp(s->config.o.theme, name) != 0) {
        settings_free(s);
        s = taken(r);
    }
    settings_free(s);
}

static void test_asked(void **state)
{
    (void)state;
    put(file, "[screen]\ntheme = light\n");
    struct reload *r = open_reload();
    assert_null(reload_take(r));
    reload_ask(r);
    struct settings *s = taken(r);
    assert_string_equal(s->config.o.theme, "light");
    assert_string_equal(s->theme.name, "light");
    settings_free(s);
    reload_free(r);
}

static void test_file_changes(void **state)
{
    (void)state;
    put(file, "[screen]\ntheme = light\n");
    struct reload *r = open_reload();
    reload_ask(r); /* the thread looks after the file when it answers */
    theme_is(r, "light");
    put(file, "[screen]\ntheme = mono\n");
    theme_is(r, "mono");
    char *other = fs_join(dir, "new"); /* as editors do it */
    put(other, "[screen]\ntheme = dark\n");
    assert_int_equal(rename(other, file), 0);
    theme_is(r, "dark");
    free(other);
    unlink(file);
    settings_free(taken(r)); /* the defaults */
    reload_free(r);
}

static void test_sets(void **state)
{
    (void)state;
    put(file, "[screen]\ntheme = light\nwrap = off\n");
    struct reload *r = open_reload();
    reload_set(r, "screen.theme", "mono");
    theme_is(r, "mono");
    reload_set(r, "wrap", "perhaps");
    struct settings *s = taken(r);
    assert_int_equal(s->config.n_notes, 1);
    assert_non_null(strstr(s->config.notes[0], "'wrap' cannot be that: it is on or off"));
    assert_false(s->config.o.wrap);
    settings_free(s);
    reload_ask(r); /* what did not fit is forgotten, what did stays */
    s = taken(r);
    assert_int_equal(s->config.n_notes, 0);
    assert_string_equal(s->config.o.theme, "mono");
    settings_free(s);
    reload_set(r, "screen.theme", "nosuch");
    s = taken(r);
    assert_int_equal(s->config.n_notes, 1);
    assert_string_equal(s->theme.name, ""); /* the one that is shown stays */
    settings_free(s);
    reload_ask(r);
    reload_free(r); /* with something read that nobody took */
}

/* --- taken over ------------------------------------------------------------------------- */

static void fill(struct ui_opts *o, const struct config *c)
{
    o->wrap = c->o.wrap;
    o->time_stamps = c->o.times;
    o->sort = c->o.sort;
    o->timeout_s = c->o.timeout;
    o->keys = c->keys;
    o->n_keys = c->n_keys;
}

static void take(struct script *s, const char *text)
{
    struct settings *set = xcalloc(1, sizeof(*set));
    put(file, text);
    config_load(&set->config, file, NULL);
    theme_builtin(&set->theme);
    ui_take_settings(&s->ui, set);
    script_draw(s);
}

static void test_taken_over(void **state)
{
    (void)state;
    struct script s;
    struct config first;
    put(file, "");
    config_load(&first, file, NULL);
    script_init(&s);
    s.opts.fill = fill;
    s.opts.config = &first;
    script_run(&s, "size 24 80\nloaded\nlink ok cloud\nrow 1 zeta claude running idle\n"
                   "row 2 alpha codex running idle\nlines 2 60 row\nkeys j i \"a draft\" PgUp Esc 2");
    script_draw(&s);
    char *before = script_screen(&s);
    assert_non_null(strstr(before, "a draft"));
    take(&s, ""); /* nothing new: nothing moves, and that is said */
    assert_true(script_shows(&s, "nothing in the configuration changed"));
    take(&s, "[screen]\nsort = name\ntime_stamps = off\n[keys]\ndown = Alt-z\nsearch-next = j\n");
    assert_int_equal(s.ui.selected, 2);
    assert_int_equal(s.ui.focus, PANE_OUTPUT);
    assert_true(script_shows(&s, "a draft"));
    assert_true(script_shows(&s, "alpha"));
    char *after = script_screen(&s);
    assert_true(strstr(after, "alpha") < strstr(after, "zeta")); /* by name */
    free(after);
    script_run(&s, "keys 1 Alt-z");
    assert_int_equal(s.ui.selected, 1); /* that is down now */
    take(&s, "[screen]\nsort = name\n[net]\npoll = 7\n");
    assert_true(script_shows(&s, "net.poll counts from the next start"));
    script_run(&s, "keys k j"); /* the keys are the old ones again */
    assert_int_equal(s.ui.selected, 1);
    take(&s, "[screen]\nwarp = on\n");
    assert_true(script_shows(&s, "cc-tui.conf:2"));
    free(before);
    script_release(&s);
    config_release(&first);
}

static void test_set_words(void **state)
{
    (void)state;
    struct script s;
    struct config first;
    put(file, "");
    config_load(&first, file, NULL);
    script_init(&s);
    s.opts.fill = fill;
    s.opts.config = &first;
    script_run(&s, "size 24 80\nloaded\nlink ok cloud\nrow 1 zeta claude running idle");
    script_draw(&s);
    script_run(&s, "keys : \"set wra\"");
    assert_true(script_shows(&s, "set screen.wrap on"));
    script_run(&s, "keys Enter"); /* its value is there to be changed */
    assert_string_equal(inputline_text(&s.ui.command), "set screen.wrap on ");
    s.ui.reload = open_reload();
    script_run(&s, "keys ^W ^W \"wrap off\" Enter");
    struct settings *set = taken(s.ui.reload);
    assert_false(set->config.o.wrap);
    ui_take_settings(&s.ui, set);
    assert_true(script_shows(&s, "screen.wrap changed"));
    script_run(&s, "keys : \"set nosuch 1\" Enter");
    assert_true(script_shows(&s, "no option 'nosuch'"));
    script_run(&s, "keys : \"reload\" Enter");
    settings_free(taken(s.ui.reload));
    reload_free(s.ui.reload);
    s.ui.reload = NULL;
    script_release(&s);
    config_release(&first);
}

static void load_never(void *ctx, struct config *c)
{
    int *pipes = ctx;
    char byte = 0;

    (void)c;
    if (write(pipes[1], &byte, 1) == 1)
        (void)!read(pipes[2], &byte, 1);
}

/* Files that do not answer hold its thread, not who wants to end. It stays as it is. */
static void test_hung(void **state)
{
    static int pipes[4];
    struct reload_opts o = {.load = load_never, .ctx = pipes, .config_dir = dir};
    char byte;

    (void)state;
    assert_int_equal(pipe2(pipes, O_CLOEXEC) | pipe2(pipes + 2, O_CLOEXEC), 0);
    struct reload *r = reload_new(&o);
    reload_ask(r);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    reload_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked),      cmocka_unit_test(test_file_changes),
        cmocka_unit_test(test_sets),       cmocka_unit_test(test_taken_over),
        cmocka_unit_test(test_set_words), cmocka_unit_test(test_hung),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
