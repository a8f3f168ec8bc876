/* Lines of the kernel's socket tables, and connections to sockets of given
 * owners. */
#include <cct/local/ports.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TAIL " 00000000:00000000 00:00000000 00000000  1000        0 7276916 1 0 100 0 0 10 0"

static const struct line {
    const char *text;
    int family, rc, out_family;
    const char *addr;
} lines[] = {
    {"   0: 0100007F:1F90 00000000:0000 0A" TAIL, AF_INET, 1, AF_INET, "127.0.0.1"},
    {"  17: 00000000:1F90 00000000:0000 0A" TAIL, AF_INET, 1, AF_INET, "0.0.0.0"},
    {"   1: 0100007F:1F91 00000000:0000 0A" TAIL, AF_INET, 0, AF_INET, "127.0.0.1"},
    {"   2: 0100007F:1F90 0100007F:0016 01" TAIL, AF_INET, -1, 0, NULL},
    {"   2: 0100007F:1F90 0100007F:0016 06" TAIL, AF_INET, -1, 0, NULL},
    {"   3: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 "
     "0A" TAIL,
     AF_INET6, 1, AF_INET6, "::1"},
    {"   4: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 "
     "0A" TAIL,
     AF_INET6, 1, AF_INET6, "::"},
    {"   5: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 "
     "0A" TAIL,
     AF_INET6, 1, AF_INET, "127.0.0.1"},
    {"   5: 0100007F:1F90 00000000:0000 0A" TAIL, AF_INET6, -1, 0, NULL},
    {"   5: 0100007F:1F90 00000000:0000 0A", AF_INET, -1, 0, NULL},
    {"  sl  local_address rem_address   st tx_queue", AF_INET, -1, 0, NULL},
    {"", AF_INET, -1, 0, NULL},
};

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const struct line *l = &lines[i];
        struct ports_entry e;
        char addr[64];
        int rc = ports_parse(l->text, l->family, 8080, &e);
        if (rc != l->rc)
            fail_msg("line %zu: %d, not %d", i, rc, l->rc);
        if (rc < 0)
            continue;
        assert_int_equal(e.family, l->out_family);
        assert_int_equal(e.inode, 7276916);
        assert_string_equal(inet_ntop(e.family, e.addr, addr, sizeof(addr)), l->addr);
    }
}

static bool is_self(void *arg, pid_t pid)
{
    return pid == *(pid_t *)arg;
}

static int listen_on(in_addr_t addr, unsigned *port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    socklen_t len = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    sa.sin_addr.s_addr = htonl(addr);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
    assert_int_equal(listen(fd, 4), 0);
    getsockname(fd, (struct sockaddr *)&sa, &len);
    *port = ntohs(sa.sin_port);
    return fd;
}

static void expect_refused(unsigned port, pid_t owner)
{
    assert_int_equal(ports_dial(port, is_self, &owner), -1);
    assert_int_equal(errno, ECONNREFUSED);
}

static void test_dial(void **state)
{
    (void)state;
    pid_t self = getpid();
    static const in_addr_t addrs[] = {INADDR_LOOPBACK, INADDR_ANY, 0x7f000102};
    for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
        unsigned port = 0;
        int fd = listen_on(addrs[i], &port);
        expect_refused(port, 1);
        for (int n = 0; n < 2; n++) { /* found, and found again */
            int c = ports_dial(port, is_self, &self);
            assert_true(c >= 0);
            int a = accept(fd, NULL, NULL);
            assert_true(a >= 0);
            close(a);
            close(c);
        }
        close(fd);
        expect_refused(port, self);
    }
}

/* Another process's socket at the nearer address would get the connection. */
static void test_shadowed(void **state)
{
    (void)state;
    pid_t self = getpid();
    unsigned port = 0;
    int ready[2], end[2];
    char c = 0;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(end), 0);
    int mine = listen_on(INADDR_ANY, &port);
    pid_t pid = fork();
    if (pid == 0) {
        close(mine);
        close(end[1]);
        listen_on(INADDR_LOOPBACK, &port);
        if (write(ready[1], &c, 1) == 1 && read(end[0], &c, 1) == 0)
            _exit(0);
        _exit(1);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    expect_refused(port, self);
    close(end[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(end[0]);
    close(ready[0]);
    close(ready[1]);
    close(mine);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_dial),
        cmocka_unit_test(test_shadowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
