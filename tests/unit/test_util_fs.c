/* fs: traps planted under the names we use, modes whatever the umask. */
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
/* keep last */
#include <cmocka.h>

static char root[] = "/tmp/cct-fs-XXXXXX";

static const char *at(const char *name)
{
    static char paths[4][256];
    static int next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof(paths[0]), "%s/%s", root, name);
    return p;
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void plant(const char *name, const char *text, mode_t mode)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    umask(0);
    return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", root, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static void test_read(void **state)
{
    (void)state;
    struct err e = {0};
    size_t len;
    plant("plain", "hello", 0644);
    char *p = fs_read(at("plain"), 5, false, &len, &e);
    assert_string_equal(p, "hello");
    assert_int_equal(len, 5);
    free(p);
    assert_null(fs_read(at("plain"), 4, false, NULL, &e));
    assert_int_equal(e.code, ERR_LIMIT);
    assert_null(fs_read(at("plain"), 100, true, NULL, &e));
    assert_int_equal(e.code, ERR_PERM);
    assert_non_null(strstr(e.text, "chmod 600"));
    chmod(at("plain"), 0600);
    p = fs_read(at("plain"), 100, true, &len, &e);
    assert_string_equal(p, "hello");
    free(p);
    assert_null(fs_read(at("missing"), 100, false, NULL, &e));
    assert_int_equal(e.code, ERR_NOTFOUND);
    plant("empty", "", 0600);
    p = fs_read(at("empty"), 0, false, &len, &e);
    assert_string_equal(p, "");
    assert_int_equal(len, 0);
    free(p);
    /* a file whose size is not told beforehand */
    p = fs_read("/proc/self/status", 1 << 20, false, &len, &e);
    assert_true(p && len > 100 && p[len] == '\0');
    free(p);
    assert_null(fs_read("/proc/self/status", 100, false, &len, &e));
    assert_int_equal(e.code, ERR_LIMIT);
}

static void plant_socket(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    assert_true(str_copy(a.sun_path, sizeof(a.sun_path), at(name)));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    close(fd);
}

/* Nothing here may block, be read, be replaced or be written through. */
static void test_traps(void **state)
{
    (void)state;
    static const char *const traps[] = {"fifo",   "link",   "dangling",
                                        "folder", "socket", "device"};
    plant("victim", "untouched", 0600);
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    assert_int_equal(symlink(at("victim"), at("link")), 0);
    assert_int_equal(symlink(at("nowhere"), at("dangling")), 0);
    assert_int_equal(mkdir(at("folder"), 0700), 0);
    plant_socket("socket");
    assert_int_equal(symlink("/dev/zero", at("device")), 0);
    for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++) {
        struct err e = {0};
        if (fs_read(at(traps[i]), 100, false, NULL, &e) || e.code == 0)
            fail_msg("read: %s", traps[i]);
        if (fs_write_private(at(traps[i]), "x", 1, &e) == 0)
            fail_msg("replaced: %s", traps[i]);
        if (fs_lock(at(traps[i]), &e) >= 0)
            fail_msg("locked: %s", traps[i]);
    }
    struct err e = {0};
    assert_null(fs_read("/dev/zero", 100, false, NULL, &e));
    assert_int_equal(e.code, ERR_PERM);
    char *p = fs_read(at("victim"), 100, true, NULL, &e);
    assert_string_equal(p, "untouched");
    free(p);
    assert_int_equal(access(at("nowhere"), F_OK), -1);
}

static void test_write(void **state)
{
    (void)state;
    struct err e = {0};
    static const mode_t masks[] = {0, 022, 077, 0777};
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        umask(masks[i]);
        assert_int_equal(fs_write_private(at("w"), "one", 3, &e), 0);
        assert_int_equal(mode_of(at("w")), 0600);
        umask(0);
    }
    plant("w", "older and longer", 0644);
    assert_int_equal(fs_write_private(at("w"), "two", 3, &e), 0);
    assert_int_equal(mode_of(at("w")), 0600);
    char *p = fs_read(at("w"), 100, true, NULL, &e);
    assert_string_equal(p, "two");
    free(p);
    /* a hard link keeps the old text: the name is replaced, not the file */
    assert_int_equal(link(at("w"), at("hard")), 0);
    assert_int_equal(fs_write_private(at("w"), "three", 5, &e), 0);
    p = fs_read(at("hard"), 100, true, NULL, &e);
    assert_string_equal(p, "two");
    free(p);
    assert_int_equal(fs_write_private(at("none/w"), "x", 1, &e), ERR_NOTFOUND);
    assert_int_equal(fs_write_private(at(""), "x", 1, &e), ERR_INVALID);
}

static void test_no_temp_left(void **state)
{
    (void)state;
    struct err e = {0};
    struct rlimit old, small = {16, 16};
    assert_int_equal(fs_write_private(at("full"), "old", 3, &e), 0);
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    int rc = fs_write_private(at("full"), "much too long for the limit", 27, &e);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, was);
    assert_int_equal(rc, ERR_LIMIT);
    char *p = fs_read(at("full"), 100, true, NULL, &e);
    assert_string_equal(p, "old");
    free(p);
    DIR *d = opendir(root);
    for (struct dirent *f = readdir(d); f; f = readdir(d))
        if (str_starts(f->d_name, ".tmp"))
            fail_msg("left behind: %s", f->d_name);
    closedir(d);
}

static void test_mkdir(void **state)
{
    (void)state;
    struct err e = {0};
    static const mode_t masks[] = {0, 077, 0777};
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        char name[32];
        snprintf(name, sizeof(name), "m%zu/a//b/", i);
        umask(masks[i]);
        assert_int_equal(fs_mkdir_private(at(name), &e), 0);
        assert_int_equal(fs_mkdir_private(at(name), &e), 0);
        umask(0);
        name[2] = '\0';
        assert_int_equal(mode_of(at(name)), 0700);
        name[2] = '/';
        assert_int_equal(mode_of(at(name)), 0700);
    }
    assert_int_equal(mkdir(at("open"), 0777), 0);
    assert_int_equal(fs_mkdir_private(at("open"), &e), ERR_PERM);
    assert_non_null(strstr(e.text, "chmod go-w"));
    assert_int_equal(mkdir(at("real"), 0700), 0);
    assert_int_equal(symlink(at("real"), at("alias")), 0);
    assert_int_equal(fs_mkdir_private(at("alias"), &e), ERR_PERM);
    assert_int_equal(fs_mkdir_private(at("alias/below"), &e), 0);
    assert_int_equal(mode_of(at("real/below")), 0700);
    plant("file", "", 0600);
    assert_true(fs_mkdir_private(at("file"), &e) < 0);
    assert_true(fs_mkdir_private(at("file/x"), &e) < 0);
}

static void test_other_owner(void **state)
{
    (void)state;
    struct err e = {0};
    if (geteuid() != 0) { /* then root's files are the foreign ones */
        assert_int_equal(fs_write_private("/etc/passwd", "y", 1, &e), ERR_PERM);
        assert_int_equal(fs_lock("/etc/passwd", &e), ERR_PERM);
        assert_int_equal(fs_mkdir_private("/etc", &e), ERR_PERM);
        return;
    }
    plant("theirs", "x", 0600);
    assert_int_equal(chown(at("theirs"), 12345, 12345), 0);
    assert_null(fs_read(at("theirs"), 100, false, NULL, &e));
    assert_int_equal(e.code, ERR_PERM);
    assert_int_equal(fs_write_private(at("theirs"), "y", 1, &e), ERR_PERM);
    assert_int_equal(fs_lock(at("theirs"), &e), ERR_PERM);
    /* a home that is somebody else's, as under sudo */
    assert_int_equal(mkdir(at("home"), 0755), 0);
    assert_int_equal(chown(at("home"), 12345, 12345), 0);
    assert_int_equal(fs_mkdir_private(at("home"), &e), ERR_PERM);
    assert_int_equal(fs_mkdir_private(at("home/.config/cc-tui"), &e), ERR_PERM);
    assert_int_equal(access(at("home/.config"), F_OK), -1);
    assert_non_null(strstr(e.text, "12345"));
}

static void test_lock(void **state)
{
    (void)state;
    struct err e = {0};
    int fd = fs_lock(at("lock"), &e);
    assert_true(fd >= 0);
    assert_int_equal(mode_of(at("lock")), 0600);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fs_lock(at("lock"), &e), ERR_BUSY);
    close(fd);
    fd = fs_lock(at("lock"), &e);
    assert_true(fd >= 0);
    close(fd);
}

static void check_place(enum fs_place place, const char *want)
{
    struct err e = {0};
    char *p = fs_place(place, &e);
    if (!p)
        fail_msg("%s", e.text);
    assert_string_equal(p, want);
    free(p);
}

static void test_places(void **state)
{
    (void)state;
    static const char *const names[] = {
        "CC_TUI_CONFIG_DIR", "CC_TUI_DATA_DIR", "CC_TUI_STATE_DIR", "CC_TUI_RUNTIME_DIR",
        "XDG_CONFIG_HOME",   "XDG_DATA_HOME",   "XDG_STATE_HOME",   "XDG_RUNTIME_DIR"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    setenv("HOME", "/home/u", 1);
    check_place(FS_CONFIG, "/home/u/.config/cc-tui");
    check_place(FS_DATA, "/home/u/.local/share/cc-tui");
    check_place(FS_STATE, "/home/u/.local/state/cc-tui");
    check_place(FS_RUNTIME, "/home/u/.local/state/cc-tui/run");
    setenv("XDG_CONFIG_HOME", "/x/", 1);
    check_place(FS_CONFIG, "/x/cc-tui");
    setenv("XDG_CONFIG_HOME", "relative", 1);
    check_place(FS_CONFIG, "/home/u/.config/cc-tui");
    setenv("CC_TUI_CONFIG_DIR", "/own", 1);
    check_place(FS_CONFIG, "/own");
    mkdir(at("runtime"), 0700);
    setenv("XDG_RUNTIME_DIR", at("runtime"), 1);
    char *want = fs_join(at("runtime"), "cc-tui");
    check_place(FS_RUNTIME, want);
    free(want);
    chmod(at("runtime"), 0777); /* no place for a socket any more */
    check_place(FS_RUNTIME, "/home/u/.local/state/cc-tui/run");
    unsetenv("HOME");
    struct err e = {0};
    assert_null(fs_place(FS_DATA, &e));
    assert_int_equal(e.code, ERR_NOTFOUND);
}

/* An account with a group of its own, as they are made where the umask is 002. */
static const struct passwd *user_with_group(void)
{
    const struct passwd *pw;
    const struct group *gr;

    setpwent();
    while ((pw = getpwent()) != NULL)
        if (pw->pw_uid != 0 && (gr = getgrgid(pw->pw_gid)) != NULL && !gr->gr_mem[0] &&
            str_eq(gr->gr_name, pw->pw_name))
            return pw;
    return NULL;
}

static bool readable(const char *name)
{
    struct err e = {0};
    char *p = fs_read_linked(at(name), 100, NULL, &e);

    free(p);
    return p != NULL;
}

/* What a user's own group may write to is still written by nobody else; what another group or
 * all may write to is refused. The number of the wrong step, or 0. */
static int as_user_with_group(const struct passwd *pw)
{
    struct err e = {0};

    if (setgroups(0, NULL) != 0 || setgid(pw->pw_gid) != 0 || setuid(pw->pw_uid) != 0)
        return 1;
    if (!readable("own-group"))
        return 2;
    if (readable("other-group"))
        return 3;
    if (readable("all"))
        return 4;
    if (fs_mkdir_private(at("dir-own"), &e) != 0)
        return 5;
    if (fs_mkdir_private(at("dir-other"), &e) != ERR_PERM)
        return 6;
    return fs_read(at("own-group"), 100, true, NULL, &e) ? 7 : 0; /* for keys 600 it is */
}

static void test_own_group(void **state)
{
    const struct passwd *pw = geteuid() == 0 ? user_with_group() : NULL;
    int status = 0;

    (void)state;
    if (!pw)
        skip(); /* only root can be somebody else */
    assert_int_equal(chmod(root, 0755), 0);
    plant("own-group", "x", 0664);
    plant("other-group", "x", 0664);
    plant("all", "x", 0666);
    assert_int_equal(mkdir(at("dir-own"), 0775), 0);
    assert_int_equal(mkdir(at("dir-other"), 0775), 0);
    assert_int_equal(chown(at("own-group"), pw->pw_uid, pw->pw_gid), 0);
    assert_int_equal(chown(at("other-group"), pw->pw_uid, 0), 0);
    assert_int_equal(chown(at("all"), pw->pw_uid, pw->pw_gid), 0);
    assert_int_equal(chown(at("dir-own"), pw->pw_uid, pw->pw_gid), 0);
    assert_int_equal(chown(at("dir-other"), pw->pw_uid, 0), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(as_user_with_group(pw));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(readable("own-group")); /* somebody else's */
    assert_int_equal(chown(at("own-group"), 0, 0), 0);
    assert_false(readable("own-group")); /* root has no such group */
}

static void test_nofile(void **state)
{
    (void)state;
    struct rlimit r;
    fs_raise_nofile();
    getrlimit(RLIMIT_NOFILE, &r);
    assert_true(r.rlim_cur == r.rlim_max);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),   cmocka_unit_test(test_traps),
        cmocka_unit_test(test_write),  cmocka_unit_test(test_no_temp_left),
        cmocka_unit_test(test_mkdir),  cmocka_unit_test(test_other_owner),
        cmocka_unit_test(test_lock),   cmocka_unit_test(test_places),
        cmocka_unit_test(test_own_group), cmocka_unit_test(test_nofile),
    };
    return cmocka_run_group_tests_name("util_fs", tests, set_up, tear_down);
}
