/* What goes wrong in the database with nobody asking, from the disk up to the screen: a log that
 * cannot go into the file is said once, and can be read in full on a small screen. */
#include "../lib/appbed.h"
#include "../lib/fullvfs.h"

#include <cct/ui/ui.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_BYTES = 400, AT_ONCE = 20, MANY = 10000 };

static struct ui ui;
static int written;

static bool shows(const char *text)
{
    ui_update(&ui);
    ui_draw(&ui, ui.now);
    char *screen = canvas_dump(&ui.canvas, false);
    bool is = strstr(screen, text) != NULL;
    free(screen);
    return is;
}

static bool is_shown(struct appbed *b, const void *text)
{
    (void)b;
    return shows(text);
}

/* Rows enough that the log is worth to go into the file, whatever is committed together. */
static bool is_refused(struct appbed *b, const void *unused)
{
    char text[TEXT_BYTES + 1];
    (void)unused;
    memset(text, 'x', TEXT_BYTES);
    text[TEXT_BYTES] = 0;
    for (int i = 0; i < AT_ONCE && written < MANY; i++, written++)
        app_event_add(b->app, 0, 0, text);
    return fullvfs_refused > 0;
}

static bool is_loaded(struct appbed *b, const void *unused)
{
    (void)unused;
    return app_model(b->app)->loaded;
}

static void press(key_code k)
{
    ui_key(&ui, k, NULL, 0);
}

static void test_log_stays(void **state)
{
    struct appbed *b = *state;
    struct app_opts o = {.follow_all = true};
    struct ui_opts uo = {0};

    fullvfs_file = false;
    appbed_open(b, &o);
    ui_init(&ui, b->app, &uo);
    ui_resize(&ui, 24, 80);
    press('5');
    assert_true(appbed_wait(b, is_loaded, NULL)); /* the file is there by now */
    fullvfs_file = true;
    assert_true(appbed_wait(b, is_refused, NULL));
    assert_true(appbed_wait(b, is_shown, "the database's log stays beside it and grows; nothing is"));
    assert_true(shows("the disk is full; free some space"));
    fullvfs_file = false;
    ui_release(&ui);
    appbed_close(b);
}

static int set_up(void **state)
{
    return fullvfs_begin() ? appbed_setup(state) : 1;
}

static int tear_down(void **state)
{
    int rc = appbed_teardown(state);
    fullvfs_end();
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_log_stays, set_up, tear_down),
    };

    appbed_main();
    return cmocka_run_group_tests_name("trouble", tests, NULL, NULL);
}
