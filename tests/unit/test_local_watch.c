/* Watched folders, on real ones: what is told, in which order, and what a slow
 * reader, a race or a vanished folder makes of it. */
#include "../lib/tmpdir.h"

#include <cct/local/watch.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 10000

static char dir[] = "/tmp/cct-watch-XXXXXX";
static struct fs_root all = {.fd = -1};
static struct event_base *base;

struct seen {
    struct buf text; /* "CREATE a\n" ... */
    int ended;       /* -1, or enum watch_end */
    struct watch *w;
    bool free_at_once;
    size_t pause_after, n;
};

static void on_event(void *arg, enum watch_event type, const char *name)
{
    struct seen *s = arg;
    assert_int_equal(s->ended, -1);
    buf_addf(&s->text, "%s %s\n", watch_event_name(type) + strlen("EVENT_TYPE_"), name);
    if (++s->n == s->pause_after)
        watch_pause(s->w);
    if (s->free_at_once) {
        watch_free(s->w);
        s->w = NULL;
    }
}

static void on_end(void *arg, enum watch_end why, const char *text)
{
    struct seen *s = arg;
    assert_int_equal(s->ended, -1);
    assert_true(text[0] != '\0');
    s->ended = (int)why;
}

static const struct watch_ops ops = {on_event, on_end};

static char *at(const char *name)
{
    static char path[4][512];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
    return path[i];
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void make(const char *name)
{
    assert_int_equal(mkdir(at(name), 0755), 0);
}

static void sh(const char *cmd)
{
    char line[1024];
    snprintf(line, sizeof(line), "cd '%s' && %s", dir, cmd);
    assert_int_equal(system(line), 0);
}

static void open_watch(struct seen *s, const char *name, bool recursive)
{
    struct err e = {0};
    *s = (struct seen){.text = BUF_INIT, .ended = -1};
    s->w = watch_new(base, &all, at(name), recursive, &ops, s, &e);
    if (s->w == NULL)
        fail_msg("%s", e.text);
}

static void close_watch(struct seen *s)
{
    watch_free(s->w);
    buf_release(&s->text);
}

/* Run the loop until `want` was told or the watch has ended, with a deadline. */
static void until(struct seen *s, const char *want)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    while (want == NULL ? s->ended < 0 : strstr(buf_str(&s->text), want) == NULL) {
        struct timeval tv = {0, 50000};
        if (clock_mono_ms() > end)
            fail_msg("'%s' was not told in:\n%s", want != NULL ? want : "the end",
                     buf_str(&s->text));
        event_base_loopexit(base, &tv);
        event_base_loop(base, EVLOOP_ONCE);
    }
}

/* The last change of a test: when it was told, all before it was. */
static void until_mark(struct seen *s, const char *name)
{
    char want[600];
    put(name, "");
    snprintf(want, sizeof(want), "CREATE %s\n", strrchr(name, '/') + 1);
    until(s, want);
}

static size_t count(struct seen *s, const char *line)
{
    size_t n = 0;
    for (const char *p = buf_str(&s->text); (p = strstr(p, line)) != NULL; p++)
        n += p == s->text.p || p[-1] == '\n';
    return n;
}

static void test_flat(void **state)
{
    struct seen s;
    (void)state;
    make("flat");
    make("flat/sub");
    put("flat/old", "x");
    open_watch(&s, "flat", false);
    put("flat/a", "one");
    assert_int_equal(chmod(at("flat/a"), 0600), 0);
    assert_int_equal(rename(at("flat/a"), at("flat/b")), 0);
    assert_int_equal(unlink(at("flat/b")), 0);
    assert_int_equal(rename(at("flat/old"), at("moved-out")), 0);
    assert_int_equal(rename(at("moved-out"), at("flat/back")), 0);
    put("flat/sub/deep", "x");
    assert_int_equal(chmod(at("flat"), 0700), 0);
    until_mark(&s, "flat/end");
    assert_string_equal(buf_str(&s.text), "CREATE a\nWRITE a\nCHMOD a\nRENAME a\nCREATE b\n"
                                          "REMOVE b\nRENAME old\nCREATE back\nCHMOD .\n"
                                          "CREATE end\n");
    close_watch(&s);
}

static void test_recursive(void **state)
{
    struct seen s;
    (void)state;
    make("tree");
    make("tree/a");
    make("tree/a/b");
    make("outside");
    assert_int_equal(symlink("../outside", at("tree/link")), 0);
    open_watch(&s, "tree", true);
    put("tree/a/b/f", "x");
    put("outside/not", "x");
    make("tree/new");
    until(&s, "CREATE new\n");
    put("tree/new/g", "x");
    assert_int_equal(rename(at("tree/a"), at("tree/new/c")), 0);
    until(&s, "CREATE new/c\n");
    put("tree/new/c/b/h", "x");
    put("tree/new/end", "");
    until(&s, "CREATE new/end\n");
    assert_int_equal(count(&s, "CREATE a/b/f\n"), 1);
    assert_int_equal(count(&s, "WRITE a/b/f\n"), 1);
    assert_int_equal(count(&s, "RENAME a\n"), 1);
    assert_int_equal(count(&s, "CREATE new/g\n"), 1);
    assert_int_equal(count(&s, "CREATE new/c/b\n"), 0); /* it was there: moved, not made */
    assert_int_equal(count(&s, "CREATE new/c/b/h\n"), 1);
    assert_null(strstr(buf_str(&s.text), "not"));
    /* out of the tree: what happens there is no business of the watch */
    assert_int_equal(rename(at("tree/new/c"), at("gone")), 0);
    until(&s, "RENAME new/c\n");
    put("gone/b/secret", "x");
    sh("rm -r tree/new");
    until(&s, "REMOVE new\n");
    assert_null(strstr(buf_str(&s.text), "secret"));
    assert_int_equal(count(&s, "REMOVE new/g\n"), 1);
    /* and back again: all in it is new */
    assert_int_equal(rename(at("gone"), at("tree/again")), 0);
    until(&s, "CREATE again/b/secret\n");
    assert_int_equal(count(&s, "CREATE again/b\n"), 1);
    close_watch(&s);
}

/* Files that were in a folder before it was watched, and folders within folders:
 * each told once, however the look and the kernel's events fall. */
static void test_race(void **state)
{
    struct seen s;
    char name[64], line[200];
    (void)state;
    make("race");
    open_watch(&s, "race", true);
    for (int round = 0; round < 20; round++) {
        snprintf(line, sizeof(line),
                 "mkdir -p race/r%d/x/y && touch race/r%d/x/y/1 race/r%d/2 race/r%d/x/3 &",
                 round, round, round, round);
        sh(line); /* in the background: it runs beside the loop */
        snprintf(name, sizeof(name), "CREATE r%d/x/3\n", round);
        until(&s, name);
    }
    sh("touch race/r19/end");
    until(&s, "CREATE r19/end\n");
    for (int round = 0; round < 20; round++) {
        static const char *const parts[] = {"", "/x", "/x/y", "/x/y/1", "/2", "/x/3"};
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            snprintf(name, sizeof(name), "CREATE r%d%s\n", round, parts[i]);
            if (count(&s, name) != 1)
                fail_msg("%zu times: %s%s", count(&s, name), name, buf_str(&s.text));
        }
    }
    close_watch(&s);
}

/* All at once, before the loop runs at all: names used twice, folders that moved
 * on before they could be opened. */
static void test_late(void **state)
{
    struct seen s;
    (void)state;
    make("late");
    open_watch(&s, "late", true);
    sh("mkdir late/a && echo x > late/a/1 && mv late/a late/b && mkdir late/a && "
       "echo x > late/a/2 && mkdir late/c && rmdir late/c && mkdir late/c && echo x > "
       "late/c/3");
    until(&s, "CREATE c/3\n");
    sh("echo x > late/b/4 && echo x > late/a/5 && echo x > late/c/end");
    until(&s, "CREATE c/end\n");
    assert_int_equal(count(&s, "CREATE b/4\n"), 1);
    assert_int_equal(count(&s, "CREATE a/5\n"), 1);
    assert_int_equal(count(&s, "CREATE a/2\n"), 1);
    assert_int_equal(count(&s, "CREATE b/1\n"), 1);
    assert_int_equal(count(&s, "CREATE c/3\n"), 1);
    close_watch(&s);
}

static void test_gone(void **state)
{
    struct seen s;
    (void)state;
    make("gone-1");
    open_watch(&s, "gone-1", true);
    sh("rmdir gone-1");
    until(&s, NULL);
    assert_int_equal(s.ended, WATCH_GONE);
    assert_string_equal(buf_str(&s.text), "REMOVE .\n");
    close_watch(&s);
    make("gone-2");
    open_watch(&s, "gone-2", false);
    sh("mv gone-2 gone-3 && mkdir gone-2");
    until(&s, NULL);
    assert_int_equal(s.ended, WATCH_GONE);
    assert_string_equal(buf_str(&s.text), "RENAME .\n");
    close_watch(&s);
}

/* An upload is one thing to whoever watches, whatever it is on disk. */
static void test_upload(void **state)
{
    struct seen s;
    char name[48];
    (void)state;
    make("up");
    open_watch(&s, "up", true);
    int d = open(at("up"), O_PATH | O_DIRECTORY);
    for (int i = 0; i < 2; i++) {
        int fd = fs_temp_open(d, i == 1, name, sizeof(name));
        assert_true(fd >= 0);
        assert_int_equal(write(fd, "x", 1), 1);
        assert_int_equal(fchmod(fd, 0644), 0);
        close(fd);
        assert_int_equal(renameat(d, name, d, "file"), 0);
    }
    int fd = fs_temp_open(d, false, name, sizeof(name));
    close(fd);
    assert_int_equal(unlinkat(d, name, 0), 0);
    close(d);
    until_mark(&s, "up/end");
    assert_string_equal(
        buf_str(&s.text),
        "CREATE file\nCHMOD file\nWRITE file\nCHMOD file\nWRITE file\nCREATE end\n");
    close_watch(&s);
}

/* A reader that stops loses nothing as long as the kernel has room, and is told
 * when it had none. */
static void test_slow(void **state)
{
    struct seen s;
    char cmd[200];
    (void)state;
    make("slow");
    open_watch(&s, "slow", false);
    s.pause_after = 3;
    sh("for i in 1 2 3 4 5 6 7 8; do : > slow/f$i; done");
    until(&s, "CREATE f3\n");
    put("slow/g", "");
    struct timeval none = {0, 0};
    event_base_loopexit(base, &none);
    event_base_dispatch(base);
    assert_int_equal(s.n, 3);
    watch_resume(s.w);
    until(&s, "CREATE g\n");
    assert_int_equal(s.n, 9);
    watch_pause(s.w);
    s.pause_after = 0;
    FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    unsigned limit = 0;
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &limit), 1);
    fclose(f);
    if (limit <= 100000) {
        for (unsigned i = 0; i < limit / 2 + 10; i++) {
            snprintf(cmd, sizeof(cmd), "slow/o%u", i & 7);
            close(open(at(cmd), O_WRONLY | O_CREAT, 0600));
            unlink(at(cmd));
        }
        watch_resume(s.w);
        until(&s, NULL);
        assert_int_equal(s.ended, WATCH_OVERFLOW);
        assert_true(s.n > limit);
    }
    close_watch(&s);
}

static void test_free_inside(void **state)
{
    struct seen s;
    (void)state;
    make("free");
    open_watch(&s, "free", true);
    s.free_at_once = true;
    sh("mkdir free/a free/b && touch free/a/1 free/b/2");
    until(&s, "CREATE");
    assert_null(s.w);
    assert_int_equal(s.n, 1);
    buf_release(&s.text);
}

static void test_refused(void **state)
{
    struct err e = {0};
    struct fs_root jail;
    (void)state;
    put("plain", "x");
    assert_null(watch_new(base, &all, at("nope"), true, &ops, NULL, &e));
    assert_int_equal(e.code, ERR_NOTFOUND);
    assert_null(watch_new(base, &all, at("plain"), false, &ops, NULL, &e));
    assert_int_equal(e.sys, ENOTDIR);
    make("jail");
    make("jail/in");
    assert_int_equal(symlink("/", at("jail/out")), 0);
    assert_int_equal(fs_root_init(&jail, at("jail"), &e), 0);
    assert_null(watch_new(base, &jail, at("jail/out/tmp"), true, &ops, NULL, &e));
    assert_int_equal(e.sys, EXDEV);
    assert_null(watch_new(base, &jail, "/tmp", true, &ops, NULL, &e));
    assert_int_equal(e.sys, EXDEV);
    struct seen s = {.text = BUF_INIT, .ended = -1};
    s.w = watch_new(base, &jail, at("jail"), true, &ops, &s, &e);
    assert_non_null(s.w);
    put("jail/in/f", "");
    until(&s, "CREATE in/f\n");
    close_watch(&s);
    fs_root_release(&jail);
}

/* Too deep to go on: refused at the start, said when it happens later. */
static void test_deep(void **state)
{
    struct seen s;
    struct err e = {0};
    (void)state;
    make("deep");
    open_watch(&s, "deep", true);
    sh("p=deep/x; mkdir -p deep/x; for i in $(seq 140); do p=$p/x; done; mkdir -p $p");
    until(&s, NULL);
    assert_int_equal(s.ended, WATCH_LIMIT);
    close_watch(&s);
    assert_null(watch_new(base, &all, at("deep"), true, &ops, NULL, &e));
    assert_int_equal(e.sys, ELOOP);
}

static int up(void **state)
{
    (void)state;
    base = event_base_new();
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static int down(void **state)
{
    (void)state;
    event_base_free(base);
    return tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flat),    cmocka_unit_test(test_recursive),
        cmocka_unit_test(test_race),    cmocka_unit_test(test_late),
        cmocka_unit_test(test_gone),    cmocka_unit_test(test_upload),
        cmocka_unit_test(test_slow),    cmocka_unit_test(test_free_inside),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_deep),
    };
    return cmocka_run_group_tests(tests, up, down);
}
