/* Files that a message names, on a disk that does not answer: keys count all the same, what was
 * typed stays, and the end waits for nobody. */
#include "../lib/heldread.h"
#include "../lib/screenscript.h"

#include <cct/ui/ownfiles.h>
#include <cct/util/clock.h>
#include <cct/util/thread.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct script s;
static char dir[] = "/tmp/cct-own.XXXXXX";

static bool press(const char *keys)
{
    for (; *keys; keys++)
        ui_key(&s.ui, *keys == '\t' ? K_TAB : *keys == '\r' ? K_ENTER : (key_code)*keys, NULL, 0);
    return true;
}

static bool says(const char *text)
{
    return strstr(s.ui.status, text) != NULL;
}

static void spit(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, name, strlen(name)), (ssize_t)strlen(name));
    close(fd);
}

/* An answer that comes late finds its place only if nothing was typed there since. */
static void test_late(void **state)
{
    (void)state;
    script_run(&s, "row 1 a claude running idle\nrow 2 b claude running idle\nkeys i");
    for (int typed = 0; typed < 2; typed++) {
        press("@no");
        assert_true(ownfiles_post(s.ui.own, own_look_new(OWN_MATCHES, 1, "no")));
        if (typed)
            press("x");
        while (pane_input_looks_on(&s.ui))
            pane_input_looks(&s.ui, -1);
        script_draw(&s);
        assert_true(script_shows(&s, typed ? "a> @nox" : "a> [@notes]"));
        script_run(&s, "keys ^C");
    }
}

static void test_hung(void **state)
{
    static const struct heldread opens = {.opens = O_DIRECTORY | O_NOFOLLOW};

    (void)state;
    script_run(&s, "keys \"see @no\" Tab");
    assert_true(script_shows(&s, "see [@notes]"));
    script_run(&s, "keys ^C \"see @no\" Tab");
    if (!heldread_install(&opens, 1))
        skip();
    buf_clear(&s.app->calls);
    press("\r");
    assert_true(says("reading the files of the message"));
    press("\r");
    assert_true(says("still being read"));
    press(" @no\t");
    assert_true(says("looking for files that begin with 'no'"));
    press("te\t");
    assert_true(says("still being looked at"));
    press(" more");
    script_draw(&s);
    assert_true(script_shows(&s, "see [@notes] @note more"));
    assert_string_equal(buf_str(&s.app->calls), "");
    assert_true(pane_input_looks_on(&s.ui));
    script_release(&s); /* ends, although they do not */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_late), cmocka_unit_test(test_hung)};
    thread_set_role(THREAD_MAIN);
    if (!mkdtemp(dir) || chdir(dir) != 0)
        return 1;
    spit("notes");
    script_init(&s);
    int rc = cmocka_run_group_tests_name("files of this machine", tests, NULL, NULL);
    unlink("notes");
    rmdir(dir);
    return rc;
}
