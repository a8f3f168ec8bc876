/* The local provider as a real program: one at a time, taken over, stopped, wedged, refused
 * namespaces. */
#include "../lib/prov.h"
#include "../lib/rawhttp.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static bool provider_is_dead(const char *arg)
{
    (void)arg;
    return prov_is_dead(prov.pid);
}

static void test_taken_over(void **state)
{
    (void)state;
    char *kept = prov_create("{\"templateID\":\"base\",\"timeout\":120}");
    char *lost = prov_create("{\"templateID\":\"base\",\"timeout\":120}");
    char *late = prov_create("{\"templateID\":\"base\",\"timeout\":1}");
    pid_t kept_pid = prov_init_pid(kept), lost_pid = prov_init_pid(lost), late_pid = prov_init_pid(late);
    char old_key[64];
    str_copy(old_key, sizeof(old_key), prov.key);
    kill(prov.pid, SIGKILL);
    assert_true(prov_await(provider_is_dead, NULL));
    kill(lost_pid, SIGKILL);
    while (!prov_is_dead(lost_pid))
        poll(NULL, 0, 10);
    assert_false(prov_is_dead(kept_pid));
    prov_serve(NULL);
    assert_string_not_equal(prov.key, old_key);
    assert_int_equal(prov_through_status(kept, "49983", "/health", ""), 204);
    assert_int_equal(prov_init_pid(kept), kept_pid);
    assert_true(prov_is_gone(lost));
    assert_true(prov_await(prov_is_gone, late));
    assert_true(prov_await(prov_has_no_folder, late));
    assert_true(prov_is_dead(late_pid));
    /* the one taken over is ended like any other */
    assert_int_equal(prov_status_of("DELETE", prov_box_path(kept, ""), NULL), 204);
    assert_true(prov_is_dead(kept_pid));
    free(kept);
    free(lost);
    free(late);
}

/* An init that hangs delays nobody else, and can still be killed. */
static void test_wedged(void **state)
{
    (void)state;
    char *id = prov_create("{\"templateID\":\"base\",\"timeout\":60}");
    pid_t pid = prov_init_pid(id);
    kill(pid, SIGSTOP);
    int hanging = rawhttp_dial(prov.control);
    char *text = xasprintf("POST /sandboxes/%s/pause HTTP/1.0\r\nHost: localhost:%d\r\n"
                           "X-API-Key: %s\r\n\r\n",
                           id, prov.control, prov.key);
    assert_int_equal(write(hanging, text, strlen(text)), (ssize_t)strlen(text));
    int64_t start = clock_mono_ms();
    assert_int_equal(prov_status_of("GET", "/v2/sandboxes", NULL), 200);
    char *other = prov_create("{\"templateID\":\"base\",\"timeout\":60}");
    assert_int_equal(prov_status_of("DELETE", prov_box_path(other, ""), NULL), 204);
    assert_true(clock_mono_ms() - start < 4000);
    assert_int_equal(prov_status_of("DELETE", prov_box_path(id, ""), NULL), 204);
    assert_true(prov_is_dead(pid));
    struct plainhttp a = plainhttp_finish(hanging); /* the pause that could not be */
    assert_int_equal(a.status, 404);
    buf_release(&a.raw);
    free(other);
    free(text);
    free(id);
}

/* Its record as it lies there. */
static bool is_saved_paused(const char *id)
{
    char *path = xasprintf("%s/boxes/%s/box.json", prov.state_dir, id);
    char *text = prov_read_text(path);
    bool paused = text && strstr(text, "\"state\":\"paused\"");
    free(text);
    free(path);
    return paused;
}

/* The disk is full when it is paused, and has room again later. A provider that finds it
 * recorded as running would let it go on, and end it when its time is over. */
static char *pause_on_full_disk(void)
{
    char *id = prov_create("{\"templateID\":\"base\",\"timeout\":60}");
    char *obstacle = xasprintf("%s/boxes/%s/box.json.new", prov.state_dir, id);
    assert_int_equal(mkdir(obstacle, 0700), 0);
    assert_int_equal(prov_status_of("POST", prov_box_path(id, "/pause"), NULL), 204);
    assert_false(is_saved_paused(id));
    assert_int_equal(rmdir(obstacle), 0);
    free(obstacle);
    return id;
}

static void test_saved_later(void **state)
{
    (void)state;
    prov_serve(NULL);
    char *id = pause_on_full_disk();
    assert_true(prov_await(is_saved_paused, id));
    char *at_end = pause_on_full_disk();
    kill(prov.pid, SIGTERM);
    assert_true(prov_await(provider_is_dead, NULL));
    assert_true(is_saved_paused(at_end));
    prov_serve(NULL);
    assert_true(prov_is_paused(id));
    assert_true(prov_is_paused(at_end));
    assert_int_equal(prov_run(false, NULL, "stop", NULL), 0);
    free(id);
    free(at_end);
}

/* `stop` also ends what a provider that died left behind. */
static void test_stop_leftovers(void **state)
{
    (void)state;
    prov_serve(NULL);
    char *id = prov_create("{\"templateID\":\"base\",\"timeout\":60}");
    pid_t pid = prov_init_pid(id);
    kill(prov.pid, SIGKILL);
    assert_true(prov_await(provider_is_dead, NULL));
    assert_false(prov_is_dead(pid));
    assert_int_equal(prov_run(false, NULL, "stop", NULL), 0);
    assert_true(prov_is_dead(pid));
    assert_true(prov_has_no_folder(id));
    free(id);
}

static void test_one_only(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_int_equal(prov_run(false, &out, "serve", NULL), 0);
    assert_non_null(strstr(buf_str(&out), "already running"));
    buf_clear(&out);
    assert_int_equal(prov_run(false, &out, "status", NULL), 0);
    assert_non_null(strstr(buf_str(&out), "running: pid"));
    buf_release(&out);
}

static void test_stop(void **state)
{
    (void)state;
    char *id = prov_create("{\"templateID\":\"base\",\"timeout\":60}");
    char path[160];
    pid_t pid = prov_init_pid(id);
    assert_int_equal(prov_run(false, NULL, "stop", NULL), 0);
    assert_true(prov_is_dead(pid));
    assert_true(prov_is_dead(prov.pid));
    assert_true(prov_has_no_folder(id));
    snprintf(path, sizeof(path), "%s/local.json", prov.runtime_dir);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(prov_run(false, NULL, "status", NULL), 1);
    assert_int_equal(prov_run(false, NULL, "stop", NULL), 0);
    struct buf out = BUF_INIT;
    assert_int_equal(prov_run(false, &out, "stop", "--state-dir=here"), 1);
    assert_non_null(strstr(buf_str(&out), "'here' must be an absolute path"));
    buf_release(&out);
    free(id);
}

/* Whoever starts it may hold signals back, never wait for processes, and make files that
 * their owner may not use. */
static void test_odd_starter(void **state)
{
    (void)state;
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &old);
    mode_t mask = umask(0177);
    prov_serve(NULL);
    umask(mask);
    sigprocmask(SIG_SETMASK, &old, NULL);
    free(prov_create("{\"templateID\":\"base\",\"timeout\":60}"));
    int64_t start = clock_mono_ms();
    assert_int_equal(prov_run(false, NULL, "stop", NULL), 0);
    assert_true(clock_mono_ms() - start < 15000); /* after 30 s it is killed */
}

/* Files may not grow: what is written of sandboxes is not complete, but they live, and end. */
static void test_small_files(void **state)
{
    (void)state;
    struct rlimit was, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){4096, was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    prov_serve(NULL);
    for (int i = 0; i < 20; i++) {
        char *id = prov_create("{\"templateID\":\"base\",\"timeout\":60}");
        assert_int_equal(prov_status_of("DELETE", prov_box_path(id, ""), NULL), 204);
        free(id);
    }
    char *id = prov_create("{\"templateID\":\"base\",\"timeout\":60}");
    pid_t pid = prov_init_pid(id);
    kill(prov.pid, SIGKILL);
    assert_true(prov_await(provider_is_dead, NULL));
    assert_int_equal(prov_run(false, NULL, "stop", NULL), 0);
    assert_true(prov_is_dead(pid));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    free(id);
}

static void test_idle_exit(void **state)
{
    (void)state;
    prov_serve("--idle-exit=1");
    assert_true(prov_await(provider_is_dead, NULL));
}

static void test_usage(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_int_equal(prov_run(false, &out, "bogus", NULL), 2);
    assert_int_equal(prov_run(false, &out, "serve", "--bogus"), 2);
    assert_int_equal(prov_run(false, &out, "serve", "--idle-exit=0"), 2);
    assert_int_equal(prov_run(false, &out, "serve", "--state-dir=relative"), 1);
    assert_non_null(strstr(buf_str(&out), "must be an absolute path"));
    buf_release(&out);
}

static void test_refused_namespaces(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_int_equal(prov_run(true, &out, "serve", NULL), 1);
    assert_non_null(strstr(buf_str(&out), "step 'namespaces' failed"));
    assert_non_null(strstr(buf_str(&out), "seccomp=unconfined"));
    buf_clear(&out);
    assert_int_equal(prov_run(true, &out, "serve", "--unsafe"), 0);
    prov_read_address();
    struct plainhttp a =
        prov_call("POST", "/v2/sandboxes", "{\"templateID\":\"base\",\"timeout\":60}");
    assert_int_equal(a.status, 201);
    assert_non_null(strstr(buf_str(&a.raw), "X-CC-Isolated: no\r\n"));
    assert_non_null(strstr(a.body, "\"isolated\":false"));
    buf_release(&a.raw);
    assert_int_equal(prov_run(false, &out, "stop", NULL), 0);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_only), cmocka_unit_test(test_taken_over),
        cmocka_unit_test(test_wedged), cmocka_unit_test(test_stop),
        cmocka_unit_test(test_saved_later), cmocka_unit_test(test_stop_leftovers),
        cmocka_unit_test(test_odd_starter), cmocka_unit_test(test_small_files),
        cmocka_unit_test(test_idle_exit),
        cmocka_unit_test(test_usage), cmocka_unit_test(test_refused_namespaces),
    };
    return cmocka_run_group_tests(tests, prov_setup, prov_teardown);
}
