/* Very long lines on the screen, by the ways of production: decoder, transcript, panes.
 * Nothing behind them is lost, and a key costs little, whichever way one moves. */
#include "../lib/screenscript.h"

#include <cct/agent.h>
#include <cct/model/transcribe.h>
#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOWER = 8 };
#else
enum { SLOWER = 1 };
#endif

static struct script s;

static void on_event(void *ctx, const struct agent_event *e)
{
    struct ev_items *ev = ev_new(EV_ITEMS);

    (void)ctx;
    ev->sandbox = 1;
    transcribe(e, "shell", ev);
    script_post(&s, ev);
}

/* What a command puts out, behind its prompt and mark. */
static void put_out(const char *text, size_t len)
{
    const struct agent_adapter *shell = agent_adapter_find("shell");
    struct agent_dec *d = agent_dec_new(shell, 0, on_event, NULL);
    static const char begin[] = "\033]133;C;show\a";

    agent_dec_feed(d, begin, sizeof(begin) - 1);
    for (size_t at = 0; at < len; at += 4096)
        agent_dec_feed(d, text + at, len - at < 4096 ? len - at : 4096);
    agent_dec_free(d);
}

static int64_t cpu_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

/* A key with its picture; none may cost more than 50 ms of this thread's time. */
static void keys(const char *line, int times)
{
    for (int i = 0; i < times; i++) {
        int64_t t0 = cpu_us();
        script_line(&s, line, "test");
        int64_t took = cpu_us() - t0;
        if (took > 50000 * SLOWER)
            fail_msg("'%s' took %lld us", line, (long long)took);
    }
}

static void move_about(void)
{
    keys("keys l", 40);
    keys("keys Right", 40);
    keys("keys h", 40);
    keys("keys Left", 60);
    keys("keys PgUp", 20);
    keys("keys PgDn", 20);
    keys("keys g g", 2);
    keys("keys G", 2);
    keys("keys w", 2); /* wrapped, and back */
}

static void open_screen(void)
{
    script_init(&s);
    script_run(&s, "size 24 80\nlink ok cloud\nloaded\nrow 1 long shell running working\nkeys 2");
}

static char *screen(void)
{
    script_draw(&s);
    return script_screen(&s);
}

static void shows(const char *text, bool is)
{
    char *all = screen();
    if (!strstr(all, text) != !is)
        fail_msg("'%s' is %s:\n%s", text, is ? "missing" : "there", all);
    free(all);
}

/* A progress bar rewrites its line ninety thousand characters long: one line, its last. */
static void test_progress_of_90_kb(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    open_screen();
    for (int i = 0; b.len < 90000; i++)
        buf_addf(&b, "\r%3d %% of the way", i % 101);
    buf_adds(&b, "\r100 % done       \nbehind it\n");
    put_out(b.p, b.len);
    keys("keys G", 1);
    shows("100 % done", true);
    shows("behind it", true);
    shows("of the way", false);
    move_about();
    script_release(&s);
    buf_release(&b);
}

static void test_line_of_90_kb(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    open_screen();
    script_run(&s, "wrap off");
    for (int i = 0; b.len < 90000; i++)
        buf_addf(&b, "%d.", i);
    buf_adds(&b, "\nbehind it\n");
    put_out(b.p, b.len);
    move_about();
    keys("keys w", 1);
    move_about();
    keys("keys G", 1);
    shows("behind it", true);
    script_release(&s);
    buf_release(&b);
}

/* Everything behind a 200 kB line is there. */
static void test_200_kb_and_three_more(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        open_screen();
        buf_clear(&b);
        buf_adds(&b, "the begin of it ");
        while (b.len < 200 * 1024)
            buf_adds(&b, wide ? "\xE6\xBC\xA2" : "x");
        buf_adds(&b, "\nfirst behind\nsecond behind\nthird behind\n");
        put_out(b.p, b.len);
        keys("keys G", 1);
        shows("first behind", true);
        shows("second behind", true);
        shows("third behind", true);
        keys("keys g g", 1);
        shows("the begin of it", true);
        move_about();
        script_release(&s);
    }
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress_of_90_kb),
        cmocka_unit_test(test_line_of_90_kb),
        cmocka_unit_test(test_200_kb_and_three_more),
    };
    return cmocka_run_group_tests_name("long_lines", tests, NULL, NULL);
}
