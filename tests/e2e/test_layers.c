/* Sandboxes whose root is made of layers: what can be written where, what stays
 * of it, and what stays out. Started by ns_start() with the real init; commands
 * run through its process service. */
#include <cct/local/boxstore.h>
#include <cct/local/initexec.h>
#include <cct/local/ns.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TOKEN "ea_token"
#define WAIT_MS 20000

static struct event_base *base;
static char state[64], *exe;
static unsigned serial;

struct box {
    char sock[128];
    char *upper;
    struct ns_child c;
};

/* --- one sandbox -------------------------------------------------------------- */

static int listen_at(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    str_copy(sa.sun_path, sizeof(sa.sun_path), path);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

static int config(void)
{
    static const char json[] =
        "{\"sandboxID\":\"i1\",\"token\":\"" TOKEN
        "\",\"user\":\"user\",\"home\":\"/home/user\","
        "\"workdir\":\"/home/user\",\"isolated\":true,\"uid\":1000,\"gid\":1000,"
        "\"envVars\":{},\"deadline\":4000000000000}";
    int fd = memfd_create("config", MFD_CLOEXEC);
    assert_int_equal(write(fd, json, sizeof(json) - 1), sizeof(json) - 1);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* Layers by their short names, "a b c" lowest first; `into`: the layer that takes
 * the writes, or NULL for a folder of its own. */
static struct box *box_start(const char *layers, const char *into)
{
    struct box *b = xcalloc(1, sizeof(*b));
    ARR(const char *) names = ARR_INIT;
    char *list = xstrdup(layers), *dir = xasprintf("%s/layers", state), *save = NULL;
    for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save))
        *ARR_PUSH(&names) = p;
    b->upper = into ? xasprintf("%s/%s", dir, into) : xasprintf("%s/box%u", state, serial);
    snprintf(b->sock, sizeof(b->sock), "%s/s%u", state, serial++);
    struct err e = {0};
    if (ns_layer_make(b->upper, &e) != 0)
        fail_msg("%s", e.text);
    struct ns_spec s = {.id = "i1",
                        .exe = exe,
                        .layers_dir = dir,
                        .layers = names.v,
                        .n_layers = names.n,
                        .upper = b->upper,
                        .config_fd = config(),
                        .listen_fd = listen_at(b->sock),
                        .isolated = true};
    if (ns_start(&s, &b->c, &e) != 0)
        fail_msg("%s", e.text);
    close(s.config_fd);
    close(s.listen_fd);
    char text[256] = "";
    struct pollfd pfd = {b->c.status_fd, POLLIN, 0};
    assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
    if (read(b->c.status_fd, text, sizeof(text) - 1) > 0)
        fail_msg("%s", text);
    close(b->c.status_fd);
    free(list);
    free(dir);
    ARR_RELEASE(&names);
    return b;
}

static void box_end(struct box *b)
{
    syscall(SYS_pidfd_send_signal, b->c.pidfd, SIGKILL, NULL, 0);
    assert_int_equal(waitpid(b->c.pid, NULL, 0), b->c.pid);
    close(b->c.pidfd);
    unlink(b->sock);
    free(b->upper);
    free(b);
}

struct told {
    struct buf out;
    int code;
};

static void on_out(void *arg, enum initexec_stream s, const char *p, size_t len)
{
    (void)s;
    buf_add(&((struct told *)arg)->out, p, len);
}

static void on_end(void *arg, int code, const char *why)
{
    struct told *t = arg;
    t->code = code;
    if (why)
        buf_adds(&t->out, why);
    event_base_loopbreak(base);
}

/* Exit code; what it printed on both streams goes to *out. */
static int box_run(struct box *b, const char *command, struct buf *out)
{
    struct told t = {BUF_INIT, -2};
    struct initexec_spec s = {.command = command, .timeout_ms = WAIT_MS};
    initexec_start(base, b->sock, TOKEN, &s, on_out, on_end, &t);
    event_base_dispatch(base);
    *out = t.out;
    return t.code;
}

static void must(struct box *b, const char *command)
{
    struct buf out;
    if (box_run(b, command, &out) != 0)
        fail_msg("'%s' failed:\n%s", command, buf_str(&out));
    buf_release(&out);
}

static void must_not(struct box *b, const char *command)
{
    struct buf out;
    if (box_run(b, command, &out) == 0)
        fail_msg("'%s' worked:\n%s", command, buf_str(&out));
    buf_release(&out);
}

static void mounts_of(struct buf *b)
{
    char tmp[4096];
    int fd = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
    ssize_t n;
    while ((n = read(fd, tmp, sizeof(tmp))) > 0)
        buf_add(b, tmp, (size_t)n);
    close(fd);
}

/* --- cases -------------------------------------------------------------------- */

static void test_probe(void **st)
{
    struct err e = {0};
    char *path = xasprintf("%s/boxes", state);
    (void)st;
    if (ns_layers_probe(state, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_not_equal(ns_layers_probe("/proc", &e), 0);
    free(path);
}

static void test_write(void **st)
{
    (void)st;
    struct box *b = box_start("", "a");
    must(b,
         "mkdir /app && echo one > /app/one && mkdir -p /opt/x /srv/y /var/lib/z && "
         "echo hi > /opt/x/f && echo hi > ~/.dot && echo hi > /root/r && echo hi > /tmp/kept");
    must(b, "printf '#!/bin/sh\\necho tool' > /usr/local/bin/tool-of-a && "
            "chmod +x /usr/local/bin/tool-of-a && test \"$(tool-of-a)\" = tool");
    must(b, "mkdir -p /usr/local/lib/node_modules/x && echo 1 > /usr/local/lib/new");
    must(b, "echo extra >> /etc/hosts && grep -q localhost /etc/hosts");
    must(b, "id -un | grep -qx user && getent passwd root && hostname | grep -qx i1");
    box_end(b);
}

/* A second layer on the first, then two sandboxes on both. */
static void test_stack(void **st)
{
    (void)st;
    struct box *b = box_start("a", "b");
    must(b, "test \"$(cat /app/one)\" = one && test \"$(tool-of-a)\" = tool && test -f ~/.dot "
            "&& test -f /var/tmp/kept");
    must(b, "rm /app/one /usr/local/lib/new && echo two > /app/two && rm -r /opt/x && "
            "mkdir /opt/x && echo new > /opt/x/g && rm -r /srv/y && grep -q extra /etc/hosts");
    box_end(b);
    struct box *one = box_start("a b", NULL), *two = box_start("a b", NULL);
    must(one, "test ! -e /app/one && test \"$(cat /app/two)\" = two && test ! -e /srv/y && "
              "test \"$(ls /opt/x)\" = g && test ! -e /usr/local/lib/new && "
              "test \"$(tool-of-a)\" = tool");
    must(one, "echo mine >> /app/two; rm -r /opt/x; rm ~/.dot; echo x > /usr/local/bin/x");
    must(two, "test \"$(cat /app/two)\" = two && test -f /opt/x/g && test -f ~/.dot && "
              "test ! -e /usr/local/bin/x");
    box_end(one);
    box_end(two);
    b = box_start("a", NULL); /* the lower layer is as it was */
    must(b, "test \"$(cat /app/one)\" = one && test -f /opt/x/f && test ! -e /app/two");
    box_end(b);
}

/* More than the kernel's page of options holds. */
static void test_many(void **st)
{
    struct buf names = BUF_INIT;
    (void)st;
    for (int i = 0; i < 130; i++) {
        struct err e = {0};
        char *dir = xasprintf("%s/layers/%032d", state, i);
        assert_int_equal(ns_layer_make(dir, &e), 0);
        buf_addf(&names, "%032d ", i);
        free(dir);
    }
    buf_adds(&names, "a");
    struct utsname u;
    int major = 0, minor = 0;
    if (uname(&u) == 0 && sscanf(u.release, "%d.%d", &major, &minor) == 2 &&
        (major > 6 || (major == 6 && minor >= 7))) {
        struct box *b = box_start(buf_str(&names), NULL);
        must(b, "test \"$(cat /app/one)\" = one && test \"$(tool-of-a)\" = tool && "
                "echo x > /usr/local/bin/x");
        box_end(b);
    }
    buf_release(&names);
}

static void test_sealed(void **st)
{
    (void)st;
    struct box *b = box_start("a b", NULL);
    must_not(b, "touch /usr/x");
    must_not(b, "touch /usr/bin/x");
    must_not(b, "touch /lib/x");
    must_not(b, "rm /run/cc/bin/demo-agent");
    must_not(b, "mv /run/cc /run/other");
    must_not(b, "touch /dev/x");
    must_not(b, "rmdir /proc");
    must_not(b, "umount /usr");
    must_not(b, "mount -t tmpfs none /usr");
    must_not(b, "touch /etc/ssl/x");
    must(b, "echo x > /dev/null && echo x > /dev/shm/x && echo x > /tmp/x && ls /dev/pts/ptmx");
    must(b, "test \"$(ls -A /proc/1/root/.. 2>/dev/null)\" = \"$(ls -A / 2>/dev/null)\" || "
            "test ! -r /proc/1/root");
    char *leak = xasprintf("! grep -F '%s' /proc/self/mounts && ! ls -d %s && "
                           "! test -e /l && ! test -e /b && ! test -e /skel",
                           state, state);
    must(b, leak);
    free(leak);
    /* every mount is read-only or takes no set-user-id files and devices */
    must(b, "! grep -vE '[ ,]ro,|[ ,]nosuid' /proc/self/mounts | grep -v ' /dev/'");
    must(b, "! touch /usr/share/x && ! touch /proc/sys/kernel/x");
    box_end(b);
}

/* What a sandbox leaves: nothing but its folder, which can be removed. */
static void test_end(void **st)
{
    struct buf before = BUF_INIT, after = BUF_INIT;
    struct err e = {0};
    (void)st;
    mounts_of(&before);
    struct box *b = box_start("a b", NULL);
    must(b, "mkdir -p /opt/q/w && rm -r /app && chmod 0 /opt/q/w");
    char *upper = xstrdup(b->upper);
    box_end(b);
    mounts_of(&after);
    assert_string_equal(buf_str(&before), buf_str(&after));
    if (boxstore_remove_tree(upper, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_not_equal(access(upper, F_OK), 0);
    free(upper);
    buf_release(&before);
    buf_release(&after);
}

/* Package managers refuse before they begin, by name and by path. */
static void test_packages(void **st)
{
    struct buf out;
    (void)st;
    struct box *b = box_start("a", NULL);
    assert_int_equal(box_run(b, "apt-get update && apt-get install -y hello", &out), 100);
    assert_non_null(strstr(buf_str(&out), "apt-get: refused, nothing was changed"));
    assert_non_null(strstr(buf_str(&out), "/usr/local"));
    buf_release(&out);
    assert_int_equal(box_run(b, "dpkg -i x.deb", &out), 100);
    buf_release(&out);
    must_not(b, "/usr/bin/dpkg -i /etc/hosts");
    must_not(b, "/usr/bin/apt-get install -y hello");
    must(b, "! test -d /var/lib/dpkg || ! touch /var/lib/dpkg/x");
    box_end(b);
}

/* With a folder of its own, as the user whom this process is by now. */
/* What a provider finds that runs on while its program is replaced (see main). */
static int say_own_path(const char *self)
{
    char *path = NULL;
    FILE *f = unlink(self) == 0 ? fopen(self, "w") : NULL;
    if (f && fclose(f) == 0)
        path = ns_own_path();
    int same = path && str_eq(path, self);
    free(path);
    return same ? 0 : 1;
}

static void test_replaced(void **st)
{
    (void)st;
    char *self = xasprintf("%s/self", state);
    char *copy = xasprintf("cp /proc/%d/exe %s && chmod 700 %s", (int)getpid(), self, self);
    assert_int_equal(system(copy), 0);
    char *run = xasprintf("%s own-path %s", self, self);
    assert_int_equal(system(run), 0);
    unlink(self);
    free(self);
    free(copy);
    free(run);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replaced), cmocka_unit_test(test_probe),
        cmocka_unit_test(test_write),    cmocka_unit_test(test_stack),
        cmocka_unit_test(test_many),     cmocka_unit_test(test_packages),
        cmocka_unit_test(test_sealed),   cmocka_unit_test(test_end),
    };
    struct err e = {0};
    struct statfs fs;
    bool stacked = statfs("/tmp", &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
    if (stacked || ns_probe(exe, &e) != 0) {
        printf("1..1\nok 1 - layers # SKIP %s\n",
               stacked ? "/tmp is an overlay file system" : e.text);
        return 0;
    }
    str_copy(state, sizeof(state), "/tmp/cct-layers-XXXXXX");
    base = event_base_new();
    if (!base || !mkdtemp(state))
        return 1;
    char *dir = xasprintf("%s/layers", state);
    mkdir(dir, 0711);
    free(dir);
    int failed = cmocka_run_group_tests_name(geteuid() == 0 ? "as root" : "as a user", tests,
                                             NULL, NULL);
    event_base_free(base);
    boxstore_remove_tree(state, NULL);
    return failed;
}

/* The same once more as somebody who has no rights at all. */
static int run_as_user(void)
{
    const uid_t id = 54321;
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        int failed = 0;
        if (setgroups(0, NULL) != 0 || setresgid(id, id, id) != 0 ||
            setresuid(id, id, id) != 0) {
            printf("1..1\nok 1 - as a user # SKIP no other user can be taken on here\n");
        } else {
            prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* /proc is ours again, as after a login */
            failed = run_all();
        }
        fflush(stdout);
        _exit(failed);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return 1;
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        return 0; /* the probe runs this program in its sandbox */
    if (argc > 2 && strcmp(argv[1], "own-path") == 0)
        return say_own_path(argv[2]);
    const char *folder = getenv("B");
    char *path = xasprintf("%s/cc-tui-local", folder ? folder : "build/asan");
    exe = realpath(path, NULL);
    free(path);
    if (!exe) {
        printf("1..1\nok 1 - layers # SKIP cc-tui-local is not built\n");
        return 0;
    }
    signal(SIGPIPE, SIG_IGN);
    /* apart, since what a process is by its ids is looked at once */
    int failed = geteuid() == 0 ? run_as_user() : 0;
    failed += run_all();
    free(exe);
    return failed;
}
