/* Records of sandboxes: what is written comes back, damage is noticed, trees are
 * removed without following links, processes are told apart by start time. */
#include <cct/local/boxstore.h>
#include <cct/util/json.h>
#include <cct/util/pidstat.h>

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/cct-boxstore-XXXXXX");
    char path[128];
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/boxes", dir);
    return mkdir(path, 0700);
}

static int teardown(void **state)
{
    (void)state;
    return boxstore_remove_tree(dir, NULL);
}

static void make_box(const char *id)
{
    char *path = boxstore_dir(dir, id);
    assert_int_equal(mkdir(path, 0700), 0);
    free(path);
}

static struct sbox_rec sample(const char *id)
{
    struct sbox_rec r = {.template_id = "localbase00000000000",
                         .alias = "base",
                         .pid = 4242,
                         .start_ticks = 123456789,
                         .started_ms = 1700000000123,
                         .end_ms = 1700000300123,
                         .state = SBOX_PAUSED,
                         .isolated = true,
                         .auto_pause = true,
                         .cpu = 2,
                         .mem_mb = 1024};
    snprintf(r.id, sizeof(r.id), "%s", id);
    snprintf(r.token, sizeof(r.token), "%s", "tok_0123456789");
    snprintf(r.sock, sizeof(r.sock), "/run/x/%s.sock", id);
    const char *meta = "{\"k y\":\"a&b=\\u00e9\",\"x\":\"\"}";
    r.metadata = json_parse(meta, strlen(meta), NULL);
    return r;
}

static void test_round_trip(void **state)
{
    (void)state;
    const char *id = "iaaaaaaaaaaaaaaaaaaaa";
    make_box(id);
    struct sbox_rec in = sample(id), out;
    struct err e = {0};
    assert_int_equal(boxstore_save(dir, &in, &e), 0);
    in.state = SBOX_RUNNING;
    assert_int_equal(boxstore_save(dir, &in, &e), 0); /* replaces */
    assert_int_equal(boxstore_load(dir, id, &out, &e), 0);
    assert_string_equal(out.id, id);
    assert_string_equal(out.token, in.token);
    assert_string_equal(out.sock, in.sock);
    assert_string_equal(out.alias, "base");
    assert_int_equal(out.pid, 4242);
    assert_true(out.start_ticks == in.start_ticks);
    assert_true(out.started_ms == in.started_ms && out.end_ms == in.end_ms);
    assert_int_equal(out.state, SBOX_RUNNING);
    assert_true(out.isolated && out.auto_pause && !out.auto_resume && !out.internet);
    assert_string_equal(json_str(out.metadata, "k y", ""), "a&b=\xc3\xa9");
    char path[160];
    struct stat st;
    snprintf(path, sizeof(path), "%s/boxes/%s/box.json", dir, id);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    sbox_rec_clear(&in);
    sbox_rec_clear(&out);
}

static void put(const char *id, const char *text)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/boxes/%s/box.json", dir, id);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    chmod(path, 0600);
}

static void test_damage(void **state)
{
    (void)state;
    const char *id = "ibbbbbbbbbbbbbbbbbbbb";
    struct sbox_rec r;
    struct err e = {0};
    assert_true(boxstore_load(dir, id, &r, &e) < 0); /* no folder */
    make_box(id);
    assert_true(boxstore_load(dir, id, &r, &e) < 0); /* no file */
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"id\":1}",
        "{\"id\":\"ibbbbbbbbbbbbbbbbbbbb\",\"token\":\"t\",\"templateID\":\"t\",\"alias\":"
        "\"b\",\"socket\":\"s\",\"pid\":1,\"startTicks\":1,\"startedAt\":1,\"endAt\":1}",
        "{\"id\":\"icccccccccccccccccccc\",\"token\":\"t\",\"templateID\":\"t\",\"alias\":"
        "\"b\",\"socket\":\"s\",\"pid\":9,\"startTicks\":1,\"startedAt\":1,\"endAt\":1}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        put(id, bad[i]);
        assert_true(boxstore_load(dir, id, &r, &e) < 0);
        assert_null(r.metadata);
    }
}

static void count(void *arg, const char *id)
{
    (void)id;
    ++*(int *)arg;
}

static void test_each(void **state)
{
    (void)state;
    int n = 0, again = 0;
    boxstore_each(dir, count, &n);
    make_box("idddddddddddddddddddd");
    make_box(".hidden");
    make_box("UPPERCASE");
    boxstore_each(dir, count, &again);
    assert_int_equal(again, n + 1);
}

static void test_remove_tree(void **state)
{
    (void)state;
    char tree[96], path[160], keep[96];
    snprintf(tree, sizeof(tree), "%s/tree", dir);
    snprintf(keep, sizeof(keep), "%s/keep", dir);
    assert_int_equal(mkdir(tree, 0700), 0);
    assert_int_equal(mkdir(keep, 0700), 0);
    snprintf(path, sizeof(path), "%s/inner", keep);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/a", tree);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/a/link", tree);
    assert_int_equal(symlink(keep, path), 0);
    snprintf(path, sizeof(path), "%s/a/b", tree);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/a/b/c", tree);
    assert_int_equal(mkdir(path, 0000), 0);
    assert_int_equal(boxstore_remove_tree(tree, NULL), 0);
    assert_int_not_equal(access(tree, F_OK), 0);
    snprintf(path, sizeof(path), "%s/inner", keep);
    assert_int_equal(access(path, F_OK), 0);
}

/* Deeper than there may be open files or bytes in a path. */
/* Several at once, each of which thinks that it is alone. */
static void test_remove_together(void **state)
{
    char tree[80], path[160];
    (void)state;

    snprintf(tree, sizeof(tree), "%s/shared", dir);
    for (int round = 0; round < 20; round++) {
        pid_t pids[3];

        assert_int_equal(mkdir(tree, 0700), 0);
        for (int i = 0; i < 300; i++) {
            snprintf(path, sizeof(path), "%s/%d", tree, i);
            assert_int_equal(mkdir(path, 0700), 0);
        }
        for (int i = 0; i < 3; i++)
            if ((pids[i] = fork()) == 0)
                _exit(boxstore_remove_tree(tree, NULL) != 0);
        for (int i = 0; i < 3; i++) {
            int status;

            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_int_equal(status, 0);
        }
        assert_int_not_equal(access(tree, F_OK), 0);
    }
}

#ifdef SYS_newfstatat
static const char *swapped; /* becomes a link to a folder outside when it was looked at */

int fstatat(int at, const char *restrict name, struct stat *restrict st, int flags)
{
    char moved[160];
    int rc = (int)syscall(SYS_newfstatat, at, name, st, flags);
    if (rc == 0 && swapped && strcmp(name, "swapped") == 0) {
        snprintf(moved, sizeof(moved), "%s.moved", swapped);
        assert_int_equal(rename(swapped, moved), 0);
        assert_int_equal(symlink("../keep", swapped), 0);
        swapped = NULL;
    }
    return rc;
}

/* Who is in the tree still puts a link where a folder was. */
static void test_remove_swapped(void **state)
{
    (void)state;
    char tree[96], keep[96], path[128];
    struct stat st;
    snprintf(tree, sizeof(tree), "%s/tree", dir);
    snprintf(keep, sizeof(keep), "%s/keep", dir);
    snprintf(path, sizeof(path), "%s/swapped", tree);
    assert_int_equal(mkdir(tree, 0700), 0);
    assert_int_equal(mkdir(path, 0000), 0);
    assert_int_equal(chmod(keep, 0755), 0);
    swapped = path;
    boxstore_remove_tree(tree, NULL);
    assert_null(swapped);
    assert_int_equal(stat(keep, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(boxstore_remove_tree(tree, NULL), 0);
}
#else
static void test_remove_swapped(void **state)
{
    (void)state;
    skip();
}
#endif

static void test_remove_deep(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "a-folder-with-a-rather-long-name"};
    struct rlimit few = {100, 100}, was;
    char tree[96];
    snprintf(tree, sizeof(tree), "%s/deep", dir);
    assert_int_equal(mkdir(tree, 0700), 0);
    int at = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 300; i++) {
        for (int k = 0; k < 2; k++)
            assert_int_equal(mkdirat(at, names[k], k == 0 && i % 50 == 7 ? 0 : 0700), 0);
        int next = openat(at, names[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(at);
        at = next;
    }
    close(at);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    few.rlim_max = was.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(boxstore_remove_tree(tree, NULL), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_not_equal(access(tree, F_OK), 0);
}

static void test_identity(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    uint64_t ticks = pidstat_start(pid);
    assert_true(ticks > 0);
    int fd = proc_open_checked(pid, ticks);
    assert_true(fd >= 0);
    assert_int_equal(proc_open_checked(pid, ticks + 1), -1);
    assert_int_equal(proc_open_checked(pid, 0), -1);
    assert_int_equal(proc_signal(fd, SIGKILL), 0);
    waitpid(pid, NULL, 0);
    assert_int_equal(pidstat_start(pid), 0);
    assert_int_equal(proc_open_checked(pid, ticks), -1);
    close(fd);
}

static void test_ids(void **state)
{
    (void)state;
    assert_true(sbox_id_ok("i0123456789abcdefghij"));
    assert_false(sbox_id_ok(""));
    assert_false(sbox_id_ok("short"));
    assert_false(sbox_id_ok("../../../etc/passwd"));
    assert_false(sbox_id_ok("i0123456789ABCDEFGHIJ"));
    assert_false(sbox_id_ok("i0123456789abcdefghijklmn"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_damage),
        cmocka_unit_test(test_each),        cmocka_unit_test(test_remove_tree),
        cmocka_unit_test(test_remove_deep), cmocka_unit_test(test_remove_together),
        cmocka_unit_test(test_remove_swapped), cmocka_unit_test(test_identity),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
