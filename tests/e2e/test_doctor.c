/* What `probe` and `doctor` say about a machine, and about one that refuses: each
 * refusal is made for the program alone, and its line must name the step and a cure. */
#include "../lib/tmpdir.h"

#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64], exe[PATH_MAX], app[PATH_MAX]; /* realpath() wants that much */

/* --- refusals, made in the child before it becomes the program ------------------ */

static void refuse_call(int call, unsigned long flag)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), call, 1,
                     SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
    if (seccomp_load(ctx) != 0)
        _exit(99);
}

static void refuse_clone(void)
{
    refuse_call(SCMP_SYS(clone), CLONE_NEWUSER);
}

static void refuse_unshare(void)
{
    refuse_call(SCMP_SYS(unshare), CLONE_NEWUSER);
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        _exit(99);
    close(fd);
}

/* As in many containers: one file of /proc is covered. */
static void mask_proc(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("/dev/null", "/proc/version", NULL, MS_BIND, NULL) != 0)
        _exit(99);
}

static void no_namespaces_left(void)
{
    if (unshare(CLONE_NEWUSER) != 0)
        _exit(99);
    put("/proc/self/setgroups", "deny");
    put("/proc/self/uid_map", "0 0 1");
    put("/proc/self/gid_map", "0 0 1");
    put("/proc/sys/user/max_user_namespaces", "0");
}

static void few_descriptors(void)
{
    struct rlimit rl = {256, 256};
    setrlimit(RLIMIT_NOFILE, &rl);
}

static void nothing(void)
{
}

/* --- running -------------------------------------------------------------------- */

static int run(const char *program, void (*before)(void), struct buf *out,
               const char *const *args)
{
    int fds[2], status;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const char *argv[8] = {program};
        for (int i = 0; args[i]; i++)
            argv[i + 1] = args[i];
        dup2(fds[1], 1);
        setenv("HOME", root, 1);
        unsetenv("XDG_STATE_HOME");
        unsetenv("XDG_RUNTIME_DIR");
        unsetenv("XDG_DATA_HOME");
        unsetenv("XDG_CONFIG_HOME");
        before();
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* looking for them, too, clones and nests */
        execv(program, (char *const *)(uintptr_t)argv);
        _exit(98);
    }
    close(fds[1]);
    char text[4096];
    ssize_t n;
    while ((n = read(fds[0], text, sizeof(text))) > 0)
        buf_add(out, text, (size_t)n);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct cJSON *probe(void (*before)(void), int *status)
{
    struct buf out = BUF_INIT;
    char *state = xasprintf("%s/state", root);
    *status = run(exe, before, &out,
                  (const char *const[]){"probe", "--json", "--state-dir", state, NULL});
    free(state);
    if (*status == 99) { /* the refusal cannot be made here */
        buf_release(&out);
        return NULL;
    }
    struct cJSON *j = json_parse(buf_str(&out), out.len, NULL);
    if (!json_is_array(j))
        fail_msg("%d: %s", *status, buf_str(&out));
    buf_release(&out);
    return j;
}

static const struct cJSON *finding(const struct cJSON *list, const char *what)
{
    for (const struct cJSON *f = json_first(list); f; f = json_next(f))
        if (strcmp(json_str(f, "what", ""), what) == 0)
            return f;
    fail_msg("nothing is said of '%s'", what);
    return NULL;
}

/* Probe with this refusal: that finding has the status, and each part in its text. */
static void says(void (*before)(void), const char *what, const char *status, const char *part,
                 const char *cure, int want)
{
    int rc;
    struct cJSON *list = probe(before, &rc);
    if (!list)
        skip();
    const struct cJSON *f = finding(list, what);
    const char *text = json_str(f, "text", "");
    if (strcmp(json_str(f, "status", ""), status) != 0 || !strstr(text, part) ||
        !strstr(text, cure))
        fail_msg("%s: %s: %s", what, json_str(f, "status", ""), text);
    assert_int_equal(rc, want);
    json_free(list);
}

static bool works_here(void)
{
    int rc;
    json_free(probe(nothing, &rc));
    return rc == 0;
}

static void test_all_lines(void **state)
{
    (void)state;
    int rc;
    struct cJSON *list = probe(nothing, &rc);
    static const char *const always[] = {"kernel",      "isolation", "memory and CPU",
                                         "descriptors", "processes", "disk"};
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        assert_true(json_str(finding(list, always[i]), "text", "")[0] != '\0');
    if (rc == 0) {
        finding(list, "user root");
        finding(list, "templates");
    }
    json_free(list);
}

static void test_refused_clone(void **state)
{
    (void)state;
    says(refuse_clone, "isolation", "fail", "step 'namespaces' failed", "seccomp=unconfined",
         1);
}

static void test_refused_nesting(void **state)
{
    (void)state;
    if (!works_here())
        skip();
    says(refuse_unshare, "user root", "warn", "run as the ordinary user", "sysctl -w", 0);
}

static void test_masked_proc(void **state)
{
    (void)state;
    if (!works_here())
        skip();
    says(mask_proc, "isolation", "fail", "mount of /proc", "systempaths=unconfined", 1);
}

static void test_none_left(void **state)
{
    (void)state;
    if (!works_here())
        skip();
    says(no_namespaces_left, "isolation", "fail", "step 'namespaces' failed",
         "sysctl -w user.max_user_namespaces", 1);
}

static void test_few_descriptors(void **state)
{
    (void)state;
    says(few_descriptors, "descriptors", "warn", "only 256", "ulimit -Hn",
         works_here() ? 0 : 1);
}

static void test_profile(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_int_equal(run(exe, nothing, &out, (const char *const[]){"probe", "--profile", NULL}),
                     0);
    assert_non_null(strstr(buf_str(&out), "userns,"));
    assert_non_null(strstr(buf_str(&out), exe));
    buf_release(&out);
    assert_int_equal(run(exe, nothing, &out, (const char *const[]){"probe", "--what", NULL}),
                     2);
    buf_release(&out);
}

/* The commands of cc-tui show the same, among their own; the cloud works without. */
static void test_doctor(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    int rc = run(app, refuse_clone, &out, (const char *const[]){"doctor", "--json", NULL});
    struct cJSON *list = json_parse(buf_str(&out), out.len, NULL);
    const struct cJSON *f = finding(list, "local isolation");
    assert_string_equal(json_str(f, "status", ""), "warn");
    assert_non_null(strstr(json_str(f, "text", ""), "step 'namespaces' failed"));
    finding(list, "local disk");
    finding(list, "terminal");
    assert_int_equal(rc, 0);
    json_free(list);
    buf_release(&out);
}

static int up(void **state)
{
    (void)state;
    const char *b = getenv("B");
    char path[256];
    str_copy(root, sizeof(root), "/tmp/cct-doctor.XXXXXX");
    snprintf(path, sizeof(path), "%s/cc-tui-local", b ? b : "build/asan");
    if (!mkdtemp(root) || !realpath(path, exe))
        return -1;
    snprintf(path, sizeof(path), "%s/cc-tui", b ? b : "build/asan");
    return realpath(path, app) ? 0 : -1;
}

static int down(void **state)
{
    (void)state;
    return tmpdir_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_lines),       cmocka_unit_test(test_refused_clone),
        cmocka_unit_test(test_refused_nesting), cmocka_unit_test(test_masked_proc),
        cmocka_unit_test(test_none_left),       cmocka_unit_test(test_few_descriptors),
        cmocka_unit_test(test_profile),         cmocka_unit_test(test_doctor),
    };
    return cmocka_run_group_tests_name("doctor", tests, up, down);
}
