/* What a program in a sandbox can reach: a list of attacks, tried from inside by
 * this same binary, as the sandbox's user and as its root; and limits that hold. */
#include "../lib/boxrun.h"
#include <cct/local/ns.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif

/* --- inside ------------------------------------------------------------------ */

static int n_open;

/* One attack; `open` when it got through. errno is shown, to see which wall held. */
static void say(bool open, const char *what)
{
    printf("%s %s (%s)\n", open ? "OPEN" : "shut", what, open ? "" : strerror(errno));
    n_open += open;
    errno = 0;
}

static bool can_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Names at the top: only ours. */
static void look_around(const char *host_path)
{
    static const char names[] = " . .. bin sbin lib lib32 lib64 libx32 usr opt nix gnu etc dev "
                                "run home tmp var proc srv mnt root ";
    DIR *d = opendir("/");
    struct dirent *de;
    while (d && (de = readdir(d)) != NULL) {
        char word[300];
        snprintf(word, sizeof(word), " %s ", de->d_name);
        if (!strstr(names, word))
            say(true, de->d_name);
    }
    closedir(d);
    say(access(host_path, F_OK) == 0, "a path of the host");
    say(access("/sys", F_OK) == 0, "/sys");
    say(access("/etc/shadow", F_OK) == 0, "/etc/shadow");
    say(access("/dev/mem", F_OK) == 0, "/dev/mem");
    say(access("/dev/fuse", F_OK) == 0, "/dev/fuse");
}

static void attack_init(void)
{
    static const char *const files[] = {"environ", "mem", "maps", "auxv", "stack", "syscall"};
    static const char *const links[] = {"root", "cwd", "exe", "ns/mnt", "ns/user", "fd/4"};
    char path[64], text[16];
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "/proc/1/%s", files[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        say(fd >= 0 && read(fd, text, sizeof(text)) > 0, path);
        if (fd >= 0)
            close(fd);
    }
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        snprintf(path, sizeof(path), "/proc/1/%s", links[i]);
        say(readlink(path, text, sizeof(text)) >= 0 || can_open(path, O_RDONLY), path);
    }
    say(opendir("/proc/1/fd") != NULL, "/proc/1/fd");
    say(can_open("/proc/1/mem", O_RDWR), "write to /proc/1/mem");
    say(ptrace(PTRACE_SEIZE, 1, NULL, NULL) == 0, "ptrace of the init");
    struct iovec mine = {text, sizeof(text)}, its = {(void *)&mine, sizeof(text)};
    say(process_vm_readv(1, &mine, 1, &its, 1, 0) >= 0, "process_vm_readv of the init");
    int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
    say(pidfd >= 0 && syscall(SYS_pidfd_getfd, pidfd, 4, 0) >= 0, "pidfd_getfd of the init");
    say(setpriority(PRIO_PROCESS, 1, -20) == 0, "priority of the init");
    struct rlimit rl = {1, 1};
    say(prlimit(1, RLIMIT_NOFILE, &rl, NULL) == 0, "limits of the init");
    kill(1, SIGKILL); /* whether it lives is seen from outside */
    kill(1, SIGSTOP);
}

/* An abstract name, made of the bed's folder, that this test listens on outside. */
static socklen_t outside_name(struct sockaddr_un *sa, const char *root)
{
    memset(sa, 0, sizeof(*sa));
    sa->sun_family = AF_UNIX;
    int n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "%s", root);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool can_connect(const struct sockaddr_un *sa, socklen_t len, int type)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool yes = fd >= 0 && connect(fd, (const struct sockaddr *)sa, len) == 0;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return yes;
}

/* Sockets without a file belong to the network, which is shared: those of a desktop among them,
 * that trust whoever has the user's number. Before Linux 6.12 nothing can be done about it. */
static void attack_sockets(const char *root)
{
    struct sockaddr_un theirs, own = {.sun_family = AF_UNIX, .sun_path = "\0cct-seal-own"};
    socklen_t len = outside_name(&theirs, root);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 6)
        say(can_connect(&theirs, len, SOCK_STREAM), "an abstract socket of the host");
    say(bind(fd, (struct sockaddr *)&own, sizeof(own)) != 0 || listen(fd, 1) != 0 ||
            !can_connect(&own, sizeof(own), SOCK_STREAM),
        "no abstract sockets among themselves");
    close(fd);
}

static void attack_kernel(void)
{
    char room[256] = {0};
    say(syscall(SYS_add_key, "user", "k", "v", 1, -3) >= 0, "add_key");
    say(syscall(SYS_keyctl, 0, -3, 1) >= 0, "keyctl");
    say(syscall(SYS_bpf, 0, room, sizeof(room)) >= 0, "bpf");
    say(syscall(SYS_perf_event_open, room, 0, -1, -1, 0) >= 0, "perf_event_open");
    say(syscall(SYS_userfaultfd, 0) >= 0, "userfaultfd");
    say(syscall(SYS_io_uring_setup, 4, room) >= 0, "io_uring_setup");
    say(syscall(SYS_init_module, room, 1, "") >= 0, "init_module");
    say(syscall(SYS_kexec_load, 0, 0, room, 0) >= 0, "kexec_load");
    say(syscall(SYS_open_by_handle_at, AT_FDCWD, room, 0) >= 0, "open_by_handle_at");
    say(syscall(SYS_syslog, 3, room, sizeof(room)) >= 0, "syslog");
    say(syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL) >= 0, "reboot");
    say(can_open("/proc/sys/kernel/core_pattern", O_WRONLY), "/proc/sys/kernel/core_pattern");
    say(can_open("/proc/sys/vm/overcommit_memory", O_WRONLY), "/proc/sys/vm");
    say(can_open("/proc/sysrq-trigger", O_WRONLY), "/proc/sysrq-trigger");
    say(can_open("/proc/kcore", O_RDONLY), "/proc/kcore");
    say(mknod("/tmp/disk", S_IFBLK | 0600, makedev(8, 0)) == 0, "block device");
    say(mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)) == 0, "character device");
    say(sethostname("x", 1) == 0, "sethostname");
}

static void attack_mounts(const char *as)
{
    static const char *const places[] = {"/usr", "/proc", "/dev/null", "/run/cc/cc-tui-local",
                                         "/etc/resolv.conf"};
    char what[96];
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (access(places[i], F_OK) != 0)
            continue;
        snprintf(what, sizeof(what), "%s: umount of %s", as, places[i]);
        say(umount2(places[i], MNT_DETACH) == 0, what);
        snprintf(what, sizeof(what), "%s: %s made writable", as, places[i]);
        say(strcmp(places[i], "/proc") != 0 && strcmp(places[i], "/dev/null") != 0 &&
                mount(NULL, places[i], NULL, MS_REMOUNT | MS_BIND, NULL) == 0,
            what);
    }
    snprintf(what, sizeof(what), "%s: / made writable", as);
    say(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL) == 0, what);
    snprintf(what, sizeof(what), "%s: write below /usr", as);
    say(can_open("/usr/bin/cc-tui-attack", O_WRONLY | O_CREAT), what);
    snprintf(what, sizeof(what), "%s: write of the program", as);
    say(can_open("/run/cc/cc-tui-local", O_WRONLY), what);
    snprintf(what, sizeof(what), "%s: sysfs", as);
    say(mount("sysfs", "/mnt", "sysfs", 0, NULL) == 0, what);
    snprintf(what, sizeof(what), "%s: cgroup2", as);
    say(mount("cgroup2", "/mnt", "cgroup2", 0, NULL) == 0, what);
    snprintf(what, sizeof(what), "%s: cgroup", as);
    say(mount("cgroup", "/mnt", "cgroup", 0, "memory") == 0, what);
    snprintf(what, sizeof(what), "%s: devtmpfs", as);
    say(mount("devtmpfs", "/mnt", "devtmpfs", 0, NULL) == 0, what);
    snprintf(what, sizeof(what), "%s: ext4", as);
    say(mount("/dev/vda", "/mnt", "ext4", 0, NULL) == 0, what);
    for (const char *const *ns = (const char *const[]){"mnt", "user", "net", "pid", NULL}; *ns;
         ns++) {
        char path[32];
        snprintf(path, sizeof(path), "/proc/1/ns/%s", *ns);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        snprintf(what, sizeof(what), "%s: setns to the init's %s", as, *ns);
        say(fd >= 0 && setns(fd, 0) == 0, what);
    }
}

/* Everything once more as the root of namespaces that anybody may make. */
static void attack_nested(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        n_open = 0;
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 && unshare(CLONE_NEWNS) != 0)
            _exit(0);
        say(unshare(CLONE_NEWCGROUP) == 0, "nested: cgroup namespace");
        attack_mounts("nested");
        attack_kernel();
        fflush(stdout);
        _exit(n_open > 0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    n_open += status != 0;
}

static void look_at_rights(bool root)
{
    static const char *const names[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof(line), f)) {
        for (size_t i = 0; i < 5 && !root; i++)
            if (str_starts(line, names[i]))
                say(strtoull(line + 7, NULL, 16) != 0, names[i]);
        if (str_starts(line, "Seccomp:"))
            say(atoi(line + 8) != 2, "no seccomp filter");
    }
    fclose(f);
    struct statvfs v;
    const unsigned long want = ST_RDONLY | ST_NOSUID | ST_NODEV;
    say(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1, "new privileges");
    say(statvfs("/usr", &v) != 0 || (v.f_flag & want) != want, "flags of /usr");
    say(statvfs("/home/user", &v) != 0 || !(v.f_flag & ST_NOSUID), "setuid in the home");
    struct rlimit rl;
    say(getrlimit(RLIMIT_CORE, &rl) != 0 || rl.rlim_max != 0, "core files");
    say(getrlimit(RLIMIT_FSIZE, &rl) != 0 || rl.rlim_max > NS_FILE_MAX, "files of any size");
    say(getrlimit(RLIMIT_NPROC, &rl) != 0 || rl.rlim_max > NS_PROCESSES, "any many processes");
}

/* Processes until there are no more; they wait to be killed. */
static int fork_all(void)
{
    int n = 1;
    for (; n < 4 * NS_PROCESSES; n++) {
        pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0) {
            for (;;)
                pause();
        }
    }
    printf("processes %d\n", n);
    fflush(stdout);
    kill(0, SIGKILL);
    return 0;
}

/* Fill /tmp to its brim. */
static int fill_tmp(void)
{
    int fd = open("/tmp/fill", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const off_t step = 32 << 20;
    off_t at = 0;
    while (fd >= 0 && at < (off_t)4 << 30 && fallocate(fd, 0, at, step) == 0)
        at += step;
    char byte = 'x';
    while (errno != ENOSPC && pwrite(fd, &byte, 1, at) == 1)
        at += 4096;
    printf("full after %lld MiB: %s\n", (long long)at >> 20, strerror(errno));
    fflush(stdout);
    return errno == ENOSPC && at <= (off_t)1 << 30 ? 0 : 1;
}

static int inside(const char *what, const char *arg)
{
    if (strcmp(what, "fork") == 0)
        return fork_all();
    if (strcmp(what, "fill") == 0)
        return fill_tmp();
    look_around(arg);
    look_at_rights(strcmp(what, "root") == 0);
    attack_init();
    attack_sockets(arg);
    attack_kernel();
    if (strcmp(what, "root") != 0)
        attack_mounts("plain");
    attack_nested();
    printf("%d open\n", n_open);
    return n_open > 0;
}

/* --- outside ------------------------------------------------------------------ */

static struct localbed *bed;
static struct boxrun box;
static int listening = -1; /* on outside_name() */

/* This program, put where the sandbox finds it. */
static void hand_over(const struct boxrun *b)
{
    char *cmd = xasprintf("install -m 755 /proc/%d/exe '%s/state/boxes/%s/home/attack'",
                          (int)getpid(), bed->root, b->id);
    assert_int_equal(system(cmd), 0);
    free(cmd);
}

static void need_namespaces(void)
{
    if (!bed->isolated)
        skip();
}

static void attack_as(const char *user, const char *what)
{
    need_namespaces();
    struct buf out = BUF_INIT;
    char *cmd = xasprintf("/home/user/attack --inside %s %s", what, bed->root);
    int code = boxrun_sh(&box, user, cmd, &out);
    free(cmd);
    if (code != 0 || strstr(buf_str(&out), "OPEN") || !strstr(buf_str(&out), "\n0 open\n")) {
        fputs(buf_str(&out), stderr);
        fail_msg("it ended with %d; the lines that say OPEN got through", code);
    }
    buf_release(&out);
    free(boxrun_text(&box, NULL, "true")); /* its init is alive */
}

static void test_attacks(void **state)
{
    (void)state;
    attack_as(NULL, "user");
}

static void test_attacks_as_root(void **state)
{
    (void)state;
    attack_as("root", "root");
}

static void has(char *text, const char *want)
{
    assert_string_equal(text, want);
    free(text);
}

static void test_root(void **state)
{
    (void)state;
    need_namespaces();
    has(boxrun_text(&box, "root", "id -u; id -g; whoami; pwd; echo $HOME; echo $USER"),
        "0\n0\nroot\n/root\n/root\nroot\n");
    has(boxrun_text(&box, NULL, "id -u; whoami; pwd; echo $HOME"),
        "1000\nuser\n/home/user\n/home/user\n");
    has(boxrun_text(&box, "root", "echo hello > ~/mine; stat -c %u ~/mine"), "0\n");
    has(boxrun_text(&box, NULL, "cat /root/mine; stat -c %u /root/mine"), "hello\n1000\n");
    struct stat st;
    char *path = xasprintf("%s/state/boxes/%s/root/mine", bed->root, box.id);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, ns_ids()->uid);
    free(path);
    struct buf out = BUF_INIT;
    assert_int_equal(boxrun_sh(&box, "root", "exec no-such-program", &out), 127);
    buf_release(&out);
    assert_int_equal(boxrun_sh(&box, "root", "kill -9 $$", NULL), 137);
}

/* Its files lie below its own home, and what ends a process ends its. */
static void test_root_calls(void **state)
{
    (void)state;
    need_namespaces();
    struct buf body = BUF_INIT;
    free(boxrun_text(&box, "root", "echo from root > /root/note"));
    assert_int_equal(boxrun_call(&box, "GET", "/files?path=note&username=root", "", "", &body),
                     200);
    assert_string_equal(buf_str(&body), "from root\n");
    buf_release(&body);
    assert_int_equal(boxrun_call(&box, "GET", "/files?path=note", "", "", &body), 404);
    buf_release(&body);
    boxrun_spawn(&box, "root", "echo $$ > /root/pid; exec sleep 1000");
    char *pid = boxrun_text(&box, NULL,
                            "until [ -s /root/pid ]; do sleep 0.01; done; "
                            "cat /root/pid");
    pid[strcspn(pid, "\n")] = '\0';
    char *json = xasprintf("{\"process\":{\"pid\":%s},\"signal\":\"SIGNAL_SIGTERM\"}", pid);
    int status = boxrun_call(&box, "POST", "/process.Process/SendSignal",
                             "Content-Type: application/json\r\n", json, &body);
    if (status != 200)
        fail_msg("%d %s", status, buf_str(&body));
    buf_release(&body);
    char *wait = xasprintf("while kill -0 %s 2>/dev/null; do sleep 0.01; done", pid);
    free(boxrun_text(&box, NULL, wait));
    free(wait);
    free(json);
    free(pid);
}

/* Neither token nor key is to be seen in the process table. */
static void test_no_secret_shown(void **state)
{
    (void)state;
    DIR *d = opendir("/proc");
    struct dirent *de;
    while ((de = readdir(d)) != NULL) {
        static const char *const files[] = {"cmdline", "environ"};
        for (int i = 0; i < 2; i++) {
            char path[300];
            static char text[1 << 20];
            snprintf(path, sizeof(path), "/proc/%s/%s", de->d_name, files[i]);
            int fd = de->d_name[0] >= '1' && de->d_name[0] <= '9'
                         ? open(path, O_RDONLY | O_CLOEXEC)
                         : -1;
            ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
            if (fd >= 0)
                close(fd);
            if (n <= 0)
                continue;
            assert_null(memmem(text, (size_t)n, box.token, strlen(box.token)));
            assert_null(memmem(text, (size_t)n, bed->key, strlen(bed->key)));
        }
    }
    closedir(d);
}

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0;
}

/* As many processes as can be: bounded, and the end of the sandbox ends them. */
static void fork_bomb(const char *user)
{
    need_namespaces();
    struct boxrun b;
    boxrun_create(&b, bed, "");
    hand_over(&b);
    struct buf out = BUF_INIT;
    boxrun_sh(&b, user, "/home/user/attack --inside fork", &out);
    const char *p = strstr(buf_str(&out), "processes ");
    assert_non_null(p);
    assert_in_range(atoi(p + 10), NS_PROCESSES / 2, NS_PROCESSES);
    buf_release(&out);
    boxrun_spawn(&b, user, "bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 100");
    pid_t init = boxrun_init_pid(&b);
    int64_t start = clock_mono_ms();
    boxrun_kill(&b);
    while (is_alive(init) && clock_mono_ms() - start < BOXRUN_WAIT_MS)
        poll(NULL, 0, 5);
    assert_false(is_alive(init));
}

static void test_fork_bomb(void **state)
{
    (void)state;
    fork_bomb(NULL);
}

static void test_fork_bomb_of_root(void **state)
{
    (void)state;
    fork_bomb("root");
}

static void test_full_tmp(void **state)
{
    (void)state;
    need_namespaces();
    struct boxrun b;
    boxrun_create(&b, bed, "");
    hand_over(&b);
    free(boxrun_text(&b, NULL, "/home/user/attack --inside fill"));
    has(boxrun_text(&b, NULL, "echo x > ~/file && cat ~/file"), "x\n");
    struct buf out = BUF_INIT;
    assert_int_equal(boxrun_sh(&b, NULL, "echo x > /tmp/y", &out), 1);
    assert_non_null(strstr(buf_str(&out), "No space left"));
    buf_release(&out);
    boxrun_kill(&b);
}

static int up(void **state)
{
    (void)state;
    bed = localbed_new();
    if (!bed)
        return -1;
    boxrun_create(&box, bed, "");
    if (bed->isolated)
        hand_over(&box);
    struct sockaddr_un sa;
    socklen_t len = outside_name(&sa, bed->root);
    listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(listening, (struct sockaddr *)&sa, len) == 0 && listen(listening, 8) == 0 &&
                   can_connect(&sa, len, SOCK_STREAM)
               ? 0
               : -1;
}

static int down(void **state)
{
    (void)state;
    close(listening);
    localbed_free(bed);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--inside") == 0) {
        int rc = inside(argv[2], argc > 3 ? argv[3] : "/etc/shadow");
        fflush(stdout);
        _exit(rc); /* a look for leaks cannot work in there */
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_root),
        cmocka_unit_test(test_root_calls),
        cmocka_unit_test(test_attacks),
        cmocka_unit_test(test_attacks_as_root),
        cmocka_unit_test(test_no_secret_shown),
        cmocka_unit_test(test_fork_bomb),
        cmocka_unit_test(test_fork_bomb_of_root),
        cmocka_unit_test(test_full_tmp),
    };
    return cmocka_run_group_tests_name("seal", tests, up, down);
}
