/* Commands that the provider runs in a sandbox: against the real init, and against
 * answers that come byte by byte, damaged, or not to their end. */
#include "../lib/initbox.h"
#include <cct/local/init.h>
#include <cct/local/initexec.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct event_base *base;
static char box_sock[128], fake_sock[128];

/* What one run told. */
struct told {
    struct buf out, err;
    size_t total;
    int ends, code;
    char why[256];
    struct initexec *x;
    bool cancel_early;
};

static void on_out(void *arg, enum initexec_stream s, const char *p, size_t len)
{
    struct told *t = arg;
    struct buf *b = s == INITEXEC_STDERR ? &t->err : &t->out;
    t->total += len;
    if (b->len < 4096)
        buf_add(b, p, len);
    if (t->cancel_early) {
        initexec_cancel(t->x);
        event_base_loopbreak(base);
    }
}

static void on_end(void *arg, int code, const char *why)
{
    struct told *t = arg;
    t->ends++;
    t->code = code;
    str_copy(t->why, sizeof(t->why), why ? why : "");
    event_base_loopbreak(base);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    event_base_loopbreak(base);
}

static void told_clear(struct told *t)
{
    buf_release(&t->out);
    buf_release(&t->err);
    memset(t, 0, sizeof(*t));
}

static void run_at(const char *sock, const struct initexec_spec *s, struct told *t)
{
    struct event *late = evtimer_new(base, on_late, NULL);
    struct timeval tv = {INITBOX_WAIT_MS / 1000, 0};
    event_add(late, &tv);
    t->x = initexec_start(base, sock, INITBOX_TOKEN, s, on_out, on_end, t);
    assert_int_equal(t->ends, 0);
    event_base_dispatch(base);
    event_free(late);
}

static void run(const char *command, struct told *t)
{
    struct initexec_spec s = {.command = command};
    run_at(box_sock, &s, t);
    assert_int_equal(t->ends, 1);
}

static void test_run(void **state)
{
    struct told t = {0};
    (void)state;
    run("printf out; printf err >&2; exit 7", &t);
    assert_string_equal(buf_str(&t.out), "out");
    assert_string_equal(buf_str(&t.err), "err");
    assert_int_equal(t.code, 7);
    assert_string_equal(t.why, "");
    told_clear(&t);
    run("true", &t);
    assert_int_equal(t.code, 0);
    told_clear(&t);
    run("kill -9 $$", &t);
    assert_int_equal(t.code, -1);
    assert_string_equal(t.why, "signal: killed");
    told_clear(&t);
}

static void test_settings(void **state)
{
    struct told t = {0};
    struct cJSON *env = json_parse("{\"A\":\"x y\"}", 11, NULL);
    struct initexec_spec s = {.command = "printf '%s %s %s' \"$A\" \"$USER\" \"$PWD\"",
                              .user = "root",
                              .cwd = "/usr",
                              .env = env,
                              .tag = "start"};
    (void)state;
    run_at(box_sock, &s, &t);
    initbox_has(buf_str(&t.out), "x y ");
    initbox_has(buf_str(&t.out), " /usr");
    json_free(env);
    told_clear(&t);
    s = (struct initexec_spec){.command = "true", .cwd = "/no/such/folder"};
    run_at(box_sock, &s, &t);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.code, -1);
    initbox_has(t.why, "/no/such/folder");
    told_clear(&t);
    s = (struct initexec_spec){.command = "true", .user = "nobody-here"};
    run_at(box_sock, &s, &t);
    initbox_has(t.why, "nobody-here");
    told_clear(&t);
    s = (struct initexec_spec){.command = "sleep 60", .timeout_ms = 100};
    run_at(box_sock, &s, &t);
    assert_int_equal(t.code, -1);
    initbox_has(t.why, "took too long");
    told_clear(&t);
}

/* Much output passes, and nothing of it is kept. */
static void test_much(void **state)
{
    struct told t = {0};
    (void)state;
    run("head -c 20000000 /dev/zero", &t);
    assert_int_equal(t.code, 0);
    assert_int_equal(t.total, 20000000);
    told_clear(&t);
    assert_true(initbox_rss_kb(getpid()) < 200 * 1024);
}

static void test_cancel(void **state)
{
    struct told t = {.cancel_early = true};
    struct initexec_spec s = {.command = "echo one; sleep 0.1; echo two"};
    (void)state;
    run_at(box_sock, &s, &t);
    assert_int_equal(t.ends, 0);
    assert_string_equal(buf_str(&t.out), "one\n");
    told_clear(&t);
    t.x = initexec_start(base, box_sock, INITBOX_TOKEN, &s, on_out, on_end, &t);
    initexec_cancel(t.x);
    initexec_cancel(NULL);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(t.ends, 0);
    told_clear(&t);
}

/* --- a server of bytes ------------------------------------------------------ */

static pid_t fake(const char *bytes, size_t len, bool slow)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    str_copy(sa.sun_path, sizeof(sa.sun_path), fake_sock);
    unlink(fake_sock);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(fd, 1), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char tmp[4096];
        int c = accept(fd, NULL, NULL);
        if (read(c, tmp, sizeof(tmp)) <= 0)
            _exit(1);
        for (size_t i = 0; i < len; i += slow ? 1 : len) {
            if (write(c, bytes + i, slow ? 1 : len) < 0)
                _exit(1);
            usleep(slow ? 100 : 0);
        }
        _exit(0);
    }
    close(fd);
    return pid;
}

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/connect+json\r\n"
#define DATA "\0\0\0\0\x28{\"event\":{\"data\":{\"stdout\":\"aGVsbG8=\"}}}"
#define END "\0\0\0\0\x2e{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true}}}"
#define LAST "\2\0\0\0\2{}"

static void check_fake(const char *bytes, size_t len, bool slow, int code, const char *out,
                       const char *why)
{
    struct told t = {0};
    struct initexec_spec s = {.command = "x"};
    pid_t pid = fake(bytes, len, slow);
    run_at(fake_sock, &s, &t);
    waitpid(pid, NULL, 0);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.code, code);
    assert_string_equal(buf_str(&t.out), out);
    initbox_has(t.why, why);
    told_clear(&t);
}

#define FAKE(text, slow, code, out, why) \
    check_fake((text), sizeof(text) - 1, (slow), (code), (out), (why))

static void test_bytes(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        FAKE(HEAD "\r\n" DATA END LAST, slow, 3, "hello", "");
        FAKE(HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\n\0\0\0\r\n2a\r\n\0\x28{\"event\":"
                  "{\"data\":{\"stdout\":\"aGVsbG8=\"}}}\r\n3a\r\n" END LAST "\r\n0\r\n\r\n",
             slow, 3, "hello", "");
        FAKE(HEAD "\r\n" DATA, slow, -1, "hello", "gone");
        FAKE(HEAD "\r\n" DATA END, slow, 3, "hello", "");
        FAKE("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", slow, -1, "", "status 401");
        FAKE(HEAD "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", slow, -1, "", "damaged answer");
        FAKE(HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", slow, -1, "", "early");
        FAKE(HEAD "\r\n\0\x7f\0\0\0", slow, -1, "", "too large");
        FAKE(HEAD "\r\n\0\0\0\0\2[}", slow, -1, "", "damaged message");
        FAKE("", slow, -1, "", "gone");
    }
}

/* Nobody there, and somebody who dies in the middle. */
static void test_gone(void **state)
{
    struct told t = {0};
    struct initexec_spec s = {.command = "true"};
    char other[128];
    (void)state;
    run_at("/nonexistent/socket", &s, &t);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.code, -1);
    told_clear(&t);
    snprintf(other, sizeof(other), "%s/s2", initbox_dir);
    pid_t pid = initbox_spawn(other, 4000000000000LL);
    char command[64];
    snprintf(command, sizeof(command), "echo up; kill -9 %d; sleep 5", (int)pid);
    s.command = command;
    run_at(other, &s, &t);
    waitpid(pid, NULL, 0);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.code, -1);
    initbox_has(t.why, "gone");
    told_clear(&t);
}

static int up(void **state)
{
    int rc = initbox_up(state);
    base = event_base_new();
    snprintf(box_sock, sizeof(box_sock), "%s/s", initbox_dir);
    snprintf(fake_sock, sizeof(fake_sock), "%s/fake", initbox_dir);
    return base ? rc : -1;
}

static int down(void **state)
{
    event_base_free(base);
    return initbox_down(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),   cmocka_unit_test(test_settings),
        cmocka_unit_test(test_much),  cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_bytes), cmocka_unit_test(test_gone),
    };
    initbox_program(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, up, down);
}
