/* WatchDir and the polling watchers on the wire. */
#include "../lib/initbox.h"
#include <cct/local/init.h>
#include <cct/util/clock.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define WATCH "/filesystem.Filesystem/WatchDir"

static char *at(const char *name)
{
    static char path[4][200];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof(path[i]), "%s/%s", initbox_dir, name);
    return path[i];
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void upload(const char *path, const char *text)
{
    struct initbox_answer a;
    char url[200];
    snprintf(url, sizeof(url), "/files?path=%s", path);
    initbox_call(&a, "POST", url, "Content-Type: application/octet-stream\r\n", text);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
}

static size_t count(const struct buf *b, const char *what)
{
    size_t n = 0, len = strlen(what);
    for (const char *p = b->p; (p = memmem(p, b->len - (size_t)(p - b->p), what, len)) != NULL;)
        n++, p += len;
    return n;
}

/* Open it and wait for the start; what came is in *b. */
static int watch(const char *headers, const char *json, struct buf *b)
{
    *b = (struct buf)BUF_INIT;
    int fd = initbox_stream(WATCH, headers, json);
    initbox_until(fd, b, "{\"start\":{}}");
    return fd;
}

static void test_events(void **state)
{
    struct buf b;
    (void)state;
    assert_int_equal(mkdir(at("w"), 0755), 0);
    int fd = watch("", "{\"path\":\"w\"}", &b);
    upload("w/a.txt", "one");
    upload("w/a.txt", "two");
    initbox_until(fd, &b,
                  "{\"filesystem\":{\"name\":\"a.txt\",\"type\":\"EVENT_TYPE_CREATE\"}}");
    put("w/b", "x");
    assert_int_equal(rename(at("w/b"), at("w/c")) | chmod(at("w/c"), 0600), 0);
    assert_int_equal(unlink(at("w/c")), 0);
    initbox_until(fd, &b, "{\"filesystem\":{\"name\":\"c\",\"type\":\"EVENT_TYPE_REMOVE\"}}");
    initbox_until(fd, &b, "\"name\":\"c\",\"type\":\"EVENT_TYPE_CHMOD\"");
    initbox_until(fd, &b, "\"name\":\"b\",\"type\":\"EVENT_TYPE_RENAME\"");
    assert_int_equal(count(&b, "\"a.txt\",\"type\":\"EVENT_TYPE_CREATE\""), 1);
    assert_int_equal(count(&b, "\"a.txt\",\"type\":\"EVENT_TYPE_WRITE\""), 2);
    assert_int_equal(count(&b, "cc-tui-upload"), 0);
    assert_int_equal(count(&b, "\"entry\""), 0);
    close(fd);
    buf_release(&b);
}

static void test_recursive_entries(void **state)
{
    struct buf b;
    (void)state;
    int fd = watch("", "{\"path\":\"~/\",\"recursive\":true,\"includeEntry\":true}", &b);
    upload("deep/er/x", "12345");
    initbox_until(fd, &b,
                  "\"name\":\"deep/er/x\",\"type\":\"EVENT_TYPE_CREATE\",\"entry\":"
                  "{\"name\":\"x\",\"type\":\"FILE_TYPE_FILE\",\"path\":");
    initbox_until(fd, &b, "\"size\":\"5\"");
    assert_int_equal(unlink(at("deep/er/x")), 0);
    initbox_until(fd, &b, "{\"name\":\"deep/er/x\",\"type\":\"EVENT_TYPE_REMOVE\"}");
    close(fd);
    buf_release(&b);
}

/* The folder goes: that is told, and then the stream ends as it should. */
static void test_gone(void **state)
{
    struct initbox_answer a;
    struct buf b;
    (void)state;
    assert_int_equal(mkdir(at("gone"), 0755), 0);
    int fd = watch("", "{\"path\":\"gone\"}", &b);
    initbox_rpc(&a, "/filesystem.Filesystem/Remove", "{\"path\":\"gone\"}");
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    initbox_until(fd, &b, "{\"filesystem\":{\"name\":\".\",\"type\":\"EVENT_TYPE_REMOVE\"}}");
    initbox_until(fd, &b, "\2\0\0\0\2{}" + 1);
    while (initbox_take(fd, (char[64]){0}, 64) > 0)
        continue;
    close(fd);
    buf_release(&b);
}

static void test_keepalive(void **state)
{
    struct buf b;
    (void)state;
    int64_t t0 = clock_mono_ms();
    int fd = watch("Keepalive-Ping-Interval: 1\r\n", "{\"path\":\"~\"}", &b);
    initbox_until(fd, &b, "{\"keepalive\":{}}");
    assert_true(clock_mono_ms() - t0 >= 900);
    close(fd);
    buf_release(&b);
    fd = watch("Connect-Timeout-Ms: 200\r\n", "{\"path\":\"~\"}", &b);
    initbox_until(fd, &b, "{\"error\":{\"code\":\"deadline_exceeded\"");
    close(fd);
    buf_release(&b);
}

static void test_refused(void **state)
{
    static const struct {
        const char *json, *want;
    } cases[] = {
        {"{\"path\":\"nope\"}", "not_found"},
        {"{\"path\":\"plain\"}", "invalid_argument"},
        {"{\"path\":\"~other/x\"}", "invalid_argument"},
        {"{\"path\":\"/\"}", "not_found"},
    };
    struct initbox_answer a;
    char want[80];
    (void)state;
    put("plain", "x");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        initbox_finish(initbox_stream(WATCH, "", cases[i].json), &a);
        assert_int_equal(a.status, 200);
        char *t = initbox_frames(&a);
        snprintf(want, sizeof(want), "2 {\"error\":{\"code\":\"%s\"", cases[i].want);
        assert_ptr_equal(strstr(t, want), t);
        free(t);
        initbox_rpc(&a, "/filesystem.Filesystem/CreateWatcher", cases[i].json);
        snprintf(want, sizeof(want), "{\"code\":\"%s\"", cases[i].want);
        initbox_has(buf_str(&a.body), want);
        buf_release(&a.body);
    }
}

static void poll_call(const char *method, const char *id, struct initbox_answer *a)
{
    char path[80], json[80];
    snprintf(path, sizeof(path), "/filesystem.Filesystem/%s", method);
    snprintf(json, sizeof(json), "{\"watcherId\":\"%s\"}", id);
    initbox_rpc(a, path, json);
}

static void test_polled(void **state)
{
    struct initbox_answer a;
    struct buf all = BUF_INIT;
    char id[32] = "";
    (void)state;
    initbox_rpc(&a, "/filesystem.Filesystem/CreateWatcher",
                "{\"path\":\"\",\"recursive\":true,\"includeEntry\":true}");
    assert_int_equal(a.status, 200);
    assert_int_equal(sscanf(buf_str(&a.body), "{\"watcherId\":\"%30[a-z0-9]\"}", id), 1);
    assert_int_equal(id[0], 'w');
    buf_release(&a.body);
    poll_call("GetWatcherEvents", id, &a);
    assert_string_equal(buf_str(&a.body), "{\"events\":[]}");
    buf_release(&a.body);
    put("polled", "x");
    int64_t end = clock_mono_ms() + INITBOX_WAIT_MS;
    while (all.len == 0 || count(&all, "EVENT_TYPE_WRITE") == 0) {
        assert_true(clock_mono_ms() < end);
        poll_call("GetWatcherEvents", id, &a);
        assert_int_equal(a.status, 200);
        buf_add(&all, a.body.p, a.body.len);
        buf_release(&a.body);
    }
    assert_int_equal(
        count(&all, "{\"name\":\"polled\",\"type\":\"EVENT_TYPE_CREATE\",\"entry\""),
        1); /* fetched once, gone from the queue */
    buf_release(&all);
    poll_call("RemoveWatcher", id, &a);
    assert_string_equal(buf_str(&a.body), "{}");
    buf_release(&a.body);
    for (int i = 0; i < 2; i++) {
        poll_call(i == 0 ? "RemoveWatcher" : "GetWatcherEvents", id, &a);
        assert_int_equal(a.status, 404);
        initbox_has(buf_str(&a.body), "{\"code\":\"not_found\"");
        buf_release(&a.body);
    }
}

/* A reader that stops: memory stays bounded, and when the kernel has dropped
 * something the stream ends with an error after all that was kept. */
static void test_slow(void **state)
{
    struct buf b;
    char name[64];
    (void)state;
    assert_int_equal(mkdir(at("slow"), 0755), 0);
    int fd = watch("", "{\"path\":\"slow\",\"includeEntry\":true}", &b);
    long before = initbox_rss_kb(initbox_pid);
    for (int i = 0; i < 40000; i++) {
        snprintf(name, sizeof(name), "slow/%d-with-a-name-that-fills-the-buffers", i);
        fclose(fopen(at(name), "w"));
        unlink(at(name));
    }
    long after = initbox_rss_kb(initbox_pid);
    print_message("# slow watcher: RSS %ld -> %ld KiB\n", before, after);
    assert_true(after - before < 12 * 1024);
    initbox_until(fd, &b, "{\"error\":{\"code\":\"internal\"");
    assert_true(count(&b, "EVENT_TYPE_CREATE") > 1000);
    close(fd);
    buf_release(&b);
}

/* One more, as soon as there is room: places of closed ones are free a moment later. */
static int watch_when_free(int64_t end)
{
    for (;;) {
        struct buf b = BUF_INIT;
        int fd = initbox_stream(WATCH, "", "{\"path\":\"~\"}");
        char tmp[4096];
        size_t n;
        bool started = false;
        while (!started && (n = initbox_take(fd, tmp, sizeof(tmp))) > 0) {
            buf_add(&b, tmp, n);
            started = memmem(b.p, b.len, "{\"start\":{}}", 12) != NULL;
        }
        buf_release(&b);
        if (started)
            return fd;
        close(fd);
        assert_true(clock_mono_ms() < end);
        poll(NULL, 0, 10);
    }
}

/* All rounds together are more than a user has; a hundred others may be in use beside the test. */
enum { MANY = 28, ROUNDS = 6 };

/* Watches end with their clients: more of them than there may be at once, in turn. */

static void test_many(void **state)
{
    struct initbox_answer a;
    int fds[MANY];
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++)
            fds[i] = watch_when_free(clock_mono_ms() + INITBOX_WAIT_MS);
        for (int i = 0; i < MANY; i++)
            close(fds[i]);
    }
    int64_t end = clock_mono_ms() + INITBOX_WAIT_MS;
    do { /* the last ones are noticed a moment later */
        assert_true(clock_mono_ms() < end);
        initbox_rpc(&a, "/filesystem.Filesystem/CreateWatcher", "{\"path\":\"~\"}");
        buf_release(&a.body);
    } while (a.status != 429);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),  cmocka_unit_test(test_recursive_entries),
        cmocka_unit_test(test_gone),    cmocka_unit_test(test_keepalive),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_polled),
        cmocka_unit_test(test_slow),    cmocka_unit_test(test_many),
    };
    initbox_program(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, initbox_up, initbox_down);
}
