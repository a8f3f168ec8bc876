/* Sandboxes as groups of processes, where a cgroup v2 tree is ours: a pause that
 * nobody inside can see, over restarts of the provider, and nothing left behind.
 * As root, and once more as an ordinary user to whom a group was handed over. */
#include "../lib/boxrun.h"
#include <cct/local/cgroup.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/xalloc.h>

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#define SOME_USER 61234
#define LATE_MS 500 /* for an init to do what lies in its socket */

static struct localbed *bed;
static bool grouped;

static void need_groups(void)
{
    if (!grouped)
        skip();
}

/* The group that the record names; new string. */
static char *group_of(const struct boxrun *b)
{
    char *path = xasprintf("%s/state/boxes/%s/box.json", bed->root, b->id);
    size_t len;
    char *text = fs_read(path, 1 << 16, true, &len, NULL);
    assert_non_null(text);
    struct cJSON *j = json_parse(text, len, NULL);
    char *group = xstrdup(json_str(j, "cgroup", ""));
    json_free(j);
    free(text);
    free(path);
    return group;
}

/* First byte of a file of the group, 0 when there is none. */
static char first_of(const char *group, const char *name)
{
    char path[400], c = 0;
    snprintf(path, sizeof(path), "%s/%s", group, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, &c, 1) < 0)
        c = 0;
    if (fd >= 0)
        close(fd);
    return c;
}

static long size_of(const struct boxrun *b)
{
    struct stat st;
    char *path = xasprintf("%s/state/boxes/%s/home/ticks", bed->root, b->id);
    long n = stat(path, &st) == 0 ? (long)st.st_size : -1;
    free(path);
    return n;
}

static void await_growth(const struct boxrun *b)
{
    long was = size_of(b);
    int64_t end = clock_mono_ms() + BOXRUN_WAIT_MS;
    while (size_of(b) <= was && clock_mono_ms() < end)
        poll(NULL, 0, 5);
    assert_true(size_of(b) > was);
}

static void stands_still(const struct boxrun *b)
{
    long was = size_of(b);
    poll(NULL, 0, 60); /* six ticks would come */
    assert_int_equal(size_of(b), was);
}

static int act(const struct boxrun *b, const char *what)
{
    char path[96];
    snprintf(path, sizeof(path), "/sandboxes/%s/%s", b->id, what);
    return boxrun_control(bed, "POST", path, "{\"timeout\":300}", NULL);
}

static void start_ticking(const struct boxrun *b)
{
    boxrun_spawn(b, NULL,
                 "trap 'echo cont >> seen' CONT; while :; do echo >> ticks; sleep 0.01; done");
    await_growth(b);
}

static void has(char *text, const char *want)
{
    assert_string_equal(text, want);
    free(text);
}

static void test_pause(void **state)
{
    (void)state;
    need_groups();
    struct boxrun b;
    boxrun_create(&b, bed, "");
    char *group = group_of(&b);
    assert_true(*group != '\0');
    has(boxrun_text(&b, NULL, "cut -d: -f3 /proc/self/cgroup | tail -1"),
        bed->isolated ? "/run\n" : strstr(group, "/cc-tui-"));
    start_ticking(&b);
    assert_int_equal(act(&b, "pause"), 204);
    assert_int_equal(first_of(group, "run/cgroup.freeze"), '1');
    stands_still(&b);
    assert_int_equal(act(&b, "resume"), 201);
    assert_int_equal(first_of(group, "run/cgroup.freeze"), '0');
    await_growth(&b);
    has(boxrun_text(&b, NULL, "ls seen 2>/dev/null || echo nothing was seen"),
        "nothing was seen\n");
    boxrun_kill(&b);
    assert_int_equal(access(group, F_OK), -1);
    free(group);
}

/* The provider dies while a sandbox is paused: the next one has it as it was. */
static void test_restart(void **state)
{
    (void)state;
    need_groups();
    struct boxrun b, gone;
    boxrun_create(&b, bed, "");
    boxrun_create(&gone, bed, "");
    char *group = group_of(&b), *lost = group_of(&gone);
    start_ticking(&b);
    assert_int_equal(act(&b, "pause"), 204);
    localbed_kill(bed);
    stands_still(&b);
    kill(boxrun_init_pid(&gone), SIGKILL);
    assert_true(localbed_start(bed));
    int64_t end = clock_mono_ms() + BOXRUN_WAIT_MS;
    while (access(lost, F_OK) == 0 && clock_mono_ms() < end)
        poll(NULL, 0, 5);
    assert_int_equal(access(lost, F_OK), -1);
    stands_still(&b);
    assert_int_equal(act(&b, "resume"), 201);
    await_growth(&b);
    boxrun_kill(&b);
    assert_int_equal(access(group, F_OK), -1);
    free(group);
    free(lost);
}

static int act_stalled(const struct boxrun *b, const char *what)
{
    pid_t init = boxrun_init_pid(b);
    assert_int_equal(kill(init, SIGSTOP), 0);
    int status = act(b, what);
    assert_int_equal(kill(init, SIGCONT), 0);
    return status;
}

static void is_in_state(const struct boxrun *b, const char *want)
{
    struct buf body = BUF_INIT;
    char path[96];
    snprintf(path, sizeof(path), "/sandboxes/%s", b->id);
    assert_int_equal(boxrun_control(bed, "GET", path, NULL, &body), 200);
    struct cJSON *j = json_parse(buf_str(&body), body.len, NULL);
    assert_string_equal(json_str(j, "state", ""), want);
    json_free(j);
    buf_release(&body);
}

/* Without groups, too: the init takes the request when the provider gave it up. What the
 * record says is what the processes do. */
static void test_late(void **state)
{
    (void)state;
    struct boxrun b;
    boxrun_create(&b, bed, "");
    start_ticking(&b);
    assert_int_equal(act_stalled(&b, "pause"), 500);
    poll(NULL, 0, LATE_MS);
    is_in_state(&b, "running");
    await_growth(&b);
    assert_int_equal(act(&b, "pause"), 204);
    stands_still(&b);
    assert_int_equal(act_stalled(&b, "resume"), 500);
    poll(NULL, 0, LATE_MS);
    is_in_state(&b, "paused");
    stands_still(&b);
    assert_int_equal(act(&b, "resume"), 201);
    await_growth(&b);
    boxrun_kill(&b);
}

/* The end reaches a frozen one, too, and whoever left the session. */
static void test_kill_paused(void **state)
{
    (void)state;
    need_groups();
    struct boxrun b;
    boxrun_create(&b, bed, "");
    char *group = group_of(&b);
    start_ticking(&b);
    boxrun_spawn(&b, NULL, "setsid -f sleep 1000 & disown -a");
    assert_int_equal(act(&b, "pause"), 204);
    boxrun_kill(&b);
    assert_int_equal(access(group, F_OK), -1);
    free(group);
}

static void test_stop_leaves_nothing(void **state)
{
    (void)state;
    need_groups();
    struct boxrun b;
    boxrun_create(&b, bed, "");
    char *group = group_of(&b), *base = xstrdup(group);
    *strrchr(base, '/') = '\0';
    start_ticking(&b);
    localbed_free(bed);
    bed = NULL;
    assert_int_equal(access(group, F_OK), -1);
    assert_int_equal(access(base, F_OK), -1);
    free(group);
    free(base);
}

static int up(void **state)
{
    (void)state;
    struct cgroup_base base;
    cgroup_probe(&base);
    grouped = base.path[0] != '\0';
    if (!grouped)
        fprintf(stderr, "skipped: %s\n", base.why);
    bed = localbed_new();
    return bed ? 0 : -1;
}

static int down(void **state)
{
    (void)state;
    localbed_free(bed);
    return 0;
}

static int run_group(const char *who)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_kill_paused),
        cmocka_unit_test(test_stop_leaves_nothing),
    };
    return cmocka_run_group_tests_name(who, tests, up, down);
}

/* In a group that belongs to an ordinary user, as a service manager makes one. */
static int run_as_user(void)
{
    struct cgroup_base base;
    cgroup_probe(&base);
    if (geteuid() != 0 || !base.path[0])
        return 0;
    char *group = xasprintf("%.*s/cct-test-%d", (int)(strrchr(base.path, '/') - base.path),
                            base.path, (int)getpid());
    char *procs = xasprintf("%s/cgroup.procs", group),
         *leaf = xasprintf("%s/cc-tui-main", group);
    int status = -1;
    fflush(stdout);
    pid_t pid = mkdir(group, 0755) == 0 && chown(group, SOME_USER, SOME_USER) == 0 &&
                        chown(procs, SOME_USER, SOME_USER) == 0 &&
                        setxattr(group, "user.delegate", "1", 1, 0) == 0
                    ? fork()
                    : -1;
    if (pid == 0) {
        struct err e = {0};
        if (cgroup_enter(group, getpid()) != 0 || setresgid(SOME_USER, SOME_USER, SOME_USER) ||
            setresuid(SOME_USER, SOME_USER, SOME_USER) || setenv("HOME", "/tmp", 1))
            exit(err_sys(&e, 0, "cannot become another user") != 0);
        exit(run_group("groups of a user") != 0);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    rmdir(leaf);
    if (rmdir(group) != 0) {
        perror(group);
        status = -1;
    }
    free(group);
    free(procs);
    free(leaf);
    return status;
}

/* To whom none was handed over. */
static int run_without(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_late)};
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct err e = {0};
        if (geteuid() == 0 &&
            (setresgid(SOME_USER, SOME_USER, SOME_USER) ||
             setresuid(SOME_USER, SOME_USER, SOME_USER) || setenv("HOME", "/tmp", 1)))
            exit(err_sys(&e, 0, "cannot become another user") != 0);
        exit(cmocka_run_group_tests_name("without groups", tests, up, down) != 0);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    return status;
}

int main(void)
{
    int rc = run_group("groups");
    if (run_as_user() != 0)
        rc = 1;
    return run_without() != 0 || rc != 0;
}
