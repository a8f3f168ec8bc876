/* Sandboxes with networks of their own: a way out, none to the host's loopback, and
 * nothing left behind. The host here is a network namespace with one neighbour, its
 * gateway; its resolver listens on loopback only. As root, then as an ordinary user. */
#include "../lib/boxrun.h"
#include "../lib/portbed.h"
#include "../lib/portserver.h"
#include <cct/local/privnet.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SOME_USER 61235
#define HOST "198.18.0.2"
#define GATEWAY "198.18.0.1"
#define PORT "7077"
#define RESOLVER "127.0.0.53"

static struct localbed *bed;

/* --- the host and its neighbour --------------------------------------------------- */

static int listen_on(const char *address, int port, int type)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, address, &sa.sin_addr);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
        (type == SOCK_STREAM && listen(fd, 16) != 0))
        die("no server on %s:%d", address, port);
    return fd;
}

/* Says `word` to whoever connects. */
static void greet(int fd, const char *word)
{
    for (;;) {
        int c = accept(fd, NULL, NULL);
        if (c >= 0 && write(c, word, strlen(word)) < 0)
            perror("write");
        if (c >= 0)
            close(c);
    }
}

/* Any question for an address is answered with the gateway's. */
static void resolve(int fd)
{
    static const unsigned char answer[] = {0xc0, 12, 0, 1, 0,   1,  0, 0,
                                           0,    60, 0, 4, 198, 18, 0, 1};
    unsigned char q[512 + sizeof(answer)];
    struct sockaddr_in from;
    for (;;) {
        socklen_t size = sizeof(from);
        ssize_t n = recvfrom(fd, q, 512, 0, (struct sockaddr *)&from, &size);
        size_t end = 12;
        while (n > 16 && end < (size_t)n && q[end])
            end += q[end] + 1u;
        if (n <= 16 || end + 5 > (size_t)n)
            continue;
        bool a = q[end + 2] == 1;
        end += 5;
        memcpy(q + end, answer, sizeof(answer));
        memset(q + 6, 0, 6);
        q[2] = 0x81;
        q[3] = 0x80;
        q[7] = a;
        sendto(fd, q, end + (a ? sizeof(answer) : 0), 0, (struct sockaddr *)&from, size);
    }
}

static pid_t start(void (*fn)(int fd), int fd)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fn(fd);
    }
    close(fd);
    return pid;
}

static void greet_as_host(int fd)
{
    greet(fd, "host\n");
}

/* The neighbour: its namespace is there when it writes; it serves when it is told. */
static void be_outside(int fd)
{
    char byte;
    if (unshare(CLONE_NEWNET) != 0 || write(fd, "n", 1) != 1 || read(fd, &byte, 1) != 1)
        _exit(1);
    if (system("ip addr add " GATEWAY "/24 dev out0 && ip link set out0 up") != 0)
        _exit(1);
    int server = listen_on(GATEWAY, atoi(PORT), SOCK_STREAM);
    if (write(fd, "s", 1) != 1)
        _exit(1);
    greet(server, "outside\n");
}

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* A device that ordinary users may open, and a resolver on loopback. */
static bool make_files(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755") == 0 &&
           mknod("/mnt/tun", S_IFCHR | 0600, makedev(10, 200)) == 0 &&
           chmod("/mnt/tun", 0666) == 0 &&
           put("/mnt/resolv.conf", "search test\nnameserver " RESOLVER "\n") &&
           mount("/mnt/tun", "/dev/net/tun", NULL, MS_BIND, NULL) == 0 &&
           mount("/mnt/resolv.conf", "/etc/resolv.conf", NULL, MS_BIND, NULL) == 0;
}

/* Why not, or NULL. */
static const char *make_host(void)
{
    int pair[2];
    char byte, cmd[200];
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0 || !make_files())
        return "needs to be root of a machine with /dev/net/tun";
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return "no sockets";
    pid_t outside = start(be_outside, pair[1]);
    if (read(pair[0], &byte, 1) != 1)
        return "no second network";
    snprintf(cmd, sizeof(cmd),
             "ip link set lo up && ip link add host0 type veth peer name out0 netns %d && "
             "ip addr add " HOST "/24 dev host0 && ip link set host0 up",
             (int)outside);
    if (system(cmd) != 0 || write(pair[0], "g", 1) != 1 || read(pair[0], &byte, 1) != 1 ||
        system("ip route add default via " GATEWAY) != 0)
        return "needs ip and veth interfaces";
    start(greet_as_host, listen_on("0.0.0.0", atoi(PORT) + 1, SOCK_STREAM));
    start(resolve, listen_on(RESOLVER, 53, SOCK_DGRAM));
    return NULL; /* pair[0] stays open: the neighbour is not told anything by it */
}

/* --- what is in a sandbox ------------------------------------------------------------ */

static void says(const struct boxrun *b, const char *user, const char *command,
                 const char *want)
{
    char *text = boxrun_text(b, user, command);
    assert_string_equal(text, want);
    free(text);
}

#define ASK_FOR(time, address, port)                                                           \
    "timeout " time " bash -c 'exec 3<>/dev/tcp/" address "/" port " && cat <&3' 2>/dev/null " \
    "|| echo no"
#define ASK(address, port) ASK_FOR("5", address, port)
#define IS_CLOSED(address, port) ASK_FOR("1", address, port) /* it may not be refused */
#define HOST_PORT "7078"

/* Keepers of this sandbox (NULL: of any of this provider's user) that run. */
static int keepers(const char *id)
{
    int n = 0;
    struct dirent *de;
    DIR *d = opendir("/proc");
    while (d && (de = readdir(d)) != NULL) {
        char path[300], text[400] = "";
        snprintf(path, sizeof(path), "/proc/%s/cmdline", de->d_name);
        int fd = de->d_name[0] >= '1' && de->d_name[0] <= '9' ? open(path, O_RDONLY) : -1;
        ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
        if (fd >= 0)
            close(fd);
        const char *name = text + strlen(text) + 1;
        n += got > 0 && name < text + got && strcmp(name, PRIVNET_KEEPER) == 0 &&
             strcmp(name + strlen(name) + 1, id) == 0;
    }
    if (d)
        closedir(d);
    return n;
}

static void await_no_keeper(const char *id)
{
    int64_t end = clock_mono_ms() + BOXRUN_WAIT_MS;
    while (keepers(id) > 0 && clock_mono_ms() < end)
        poll(NULL, 0, 5);
    assert_int_equal(keepers(id), 0);
}

static void test_way_out(void **state)
{
    (void)state;
    struct boxrun b;
    boxrun_create(&b, bed, "");
    assert_int_equal(keepers(b.id), 1);
    says(&b, NULL, ASK(GATEWAY, PORT), "outside\n");
    says(&b, "root", ASK(GATEWAY, PORT), "outside\n");
    says(&b, NULL, "cat /etc/resolv.conf", "search test\nnameserver " PRIVNET_DNS "\n");
    says(&b, NULL, "getent ahostsv4 some.test | head -1 | cut -d' ' -f1", GATEWAY "\n");
    says(&b, NULL, ASK("some.test", PORT), "outside\n");
    boxrun_kill(&b);
    await_no_keeper(b.id);
}

/* The host's server listens on every address the host has. */
static void test_host_is_out_of_reach(void **state)
{
    (void)state;
    struct boxrun b;
    boxrun_create(&b, bed, "");
    says(&b, NULL, IS_CLOSED("127.0.0.1", HOST_PORT), "no\n");
    says(&b, NULL, IS_CLOSED("localhost", HOST_PORT), "no\n");
    says(&b, NULL, IS_CLOSED(GATEWAY, HOST_PORT), "no\n");
    says(&b, NULL, IS_CLOSED(HOST, HOST_PORT), "no\n");
    char *control =
        xasprintf("exec 2>/dev/null 3<>/dev/tcp/127.0.0.1/%d || echo no", bed->control);
    says(&b, NULL, control, "no\n");
    free(control);
    boxrun_kill(&b);
}

static void test_ports(void **state)
{
    (void)state;
    struct portbed_box b;
    portbed = bed;
    portbed_make(&b, "", "127.0.0.1 0.0.0.0");
    for (int i = 0; i < 2; i++)
        assert_int_equal(portbed_status(&b, b.ports[i], "GET /hello", ""), 200);
    portbed_drop(&b);
    await_no_keeper(b.id);
}

static void test_no_internet(void **state)
{
    (void)state;
    struct boxrun b;
    struct buf answer = BUF_INIT;
    char path[64];
    boxrun_create(&b, bed, ",\"allow_internet_access\":false");
    assert_int_equal(keepers(b.id), 0);
    says(&b, NULL, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '", "lo\n");
    says(&b, NULL, ASK(GATEWAY, PORT), "no\n");
    snprintf(path, sizeof(path), "/sandboxes/%s", b.id);
    assert_int_equal(boxrun_control(bed, "GET", path, "", &answer), 200);
    assert_non_null(strstr(buf_str(&answer), "\"allowInternetAccess\":false"));
    buf_release(&answer);
    boxrun_kill(&b);
}

/* The network lives on without a provider, and ends without one. */
static void test_restart(void **state)
{
    (void)state;
    struct boxrun b, gone;
    boxrun_create(&b, bed, "");
    boxrun_create(&gone, bed, "");
    localbed_kill(bed);
    kill(boxrun_init_pid(&gone), SIGKILL);
    await_no_keeper(gone.id);
    assert_true(localbed_start(bed));
    says(&b, NULL, ASK(GATEWAY, PORT), "outside\n");
    boxrun_kill(&b);
    await_no_keeper(b.id);
}

static void test_stop(void **state)
{
    (void)state;
    struct boxrun b;
    boxrun_create(&b, bed, "");
    localbed_free(bed);
    bed = NULL;
    await_no_keeper(b.id);
}

static void test_without_pasta(void **state)
{
    (void)state;
    const char *build = getenv("B");
    char *cmd =
        xasprintf("d=$(mktemp -d) && PATH=/nowhere '%s/cc-tui-local' serve --net private "
                  "--state-dir \"$d/s\" --runtime-dir \"$d/r\" 2>&1; /bin/rm -rf \"$d\"",
                  build ? build : "build/asan");
    char text[400];
    FILE *f = popen(cmd, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = '\0';
    pclose(f);
    assert_non_null(strstr(text, "install the package passt"));
    free(cmd);
}

static int up(void **state)
{
    (void)state;
    bed = localbed_new_private();
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
        cmocka_unit_test(test_way_out),       cmocka_unit_test(test_host_is_out_of_reach),
        cmocka_unit_test(test_ports),         cmocka_unit_test(test_no_internet),
        cmocka_unit_test(test_restart),       cmocka_unit_test(test_stop),
        cmocka_unit_test(test_without_pasta),
    };
    return cmocka_run_group_tests_name(who, tests, up, down);
}

static int run_as_user(void)
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (setresgid(SOME_USER, SOME_USER, SOME_USER) != 0 ||
            setresuid(SOME_USER, SOME_USER, SOME_USER) != 0 || setenv("HOME", "/tmp", 1) != 0)
            exit(1);
        prctl(PR_SET_DUMPABLE, 1);
        exit(run_group("private networks of a user") != 0);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--port-server") == 0)
        return portserver_main(argc - 2, argv + 2);
    char *program = privnet_program();
    const char *why = program ? make_host() : "pasta (package passt) is not installed";
    free(program);
    if (why) {
        printf("1..1\nok 1 - private networks # SKIP %s\n", why);
        return 0;
    }
    int rc = run_group("private networks");
    return run_as_user() != 0 || rc != 0;
}
