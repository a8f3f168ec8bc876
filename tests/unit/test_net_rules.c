/* Whom the net thread calls, and by which way: addresses and their odd spellings,
 * proxies, redirects, IPv6, and what it changes in the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/miniserver.h"
#include "../lib/netbed.h"
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct mini *srv, *other; /* the one that is meant, and one that must hear nothing */
static struct netbed *bed;
static char *elsewhere;
static struct buf proxied; /* what the proxy heard */

static void handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    char place[200];
    int status;

    (void)ctx;
    if (sscanf(r->path, "/redirect/%d", &status) == 1) {
        snprintf(place, sizeof(place), "Location: %s/stolen\r\n", elsewhere);
        mini_reply(c, status, place, "");
    } else {
        mini_reply(c, 200, "", "here");
    }
}

static void proxy_handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    (void)ctx;
    buf_clear(&proxied);
    buf_addf(&proxied, "%s %s\n%s", r->method, r->path, r->head);
    mini_reply(c, 502, "", "");
}

/* --- addresses -------------------------------------------------------------------------- */

static void test_addresses(void **state)
{
    enum { BAD = 1, PLAIN = 2, LOCAL = 4 }; /* refused; may be http too; this machine */
    static const struct {
        const char *host;
        int is;
    } hosts[] = {
        {"localhost", PLAIN | LOCAL},     {"LocalHost", PLAIN | LOCAL},
        {"127.0.0.1", PLAIN | LOCAL},     {"127.255.0.9", PLAIN | LOCAL},
        {"[::1]", PLAIN | LOCAL},         {"[0:0:0:0:0:0:0:1]", PLAIN | LOCAL},
        {"[::ffff:127.0.0.1]", PLAIN | LOCAL},
        {"localhost.", LOCAL},            {"api.localhost", LOCAL},
        {"a.b.LOCALHOST.", LOCAL},
        {"localhost.evil", 0},            {"localhost.evil.", 0},
        {"notlocalhost", 0},              {"xlocalhost.", 0},
        {"127.0.0.1.evil.example", 0},    {"api.e2b.app", 0},
        {"10.0.0.1", 0},                  {"[::ffff:10.0.0.1]", 0},
        {"[2001:db8::1]", 0},             {"128.0.0.1", 0},
        {"127.1", BAD},                   {"127.0.1", BAD},
        {"0x7f000001", BAD},              {"0x7f.0.0.1", BAD},
        {"2130706433", BAD},              {"017700000001", BAD},
        {"0177.0.0.1", BAD},              {"127.0.0.1.", BAD},
        {"0", BAD},                       {"0.0.0.0", BAD},
        {"[::]", BAD},                    {"local%68ost", BAD},
        {"127.0.0.1%2eevil", BAD},        {"\xe2\x93\x9bocalhost", BAD},
        {"localhost@evil", BAD},          {"localhost\\evil", BAD},
        {"", BAD},                        {"[::1", BAD},
        {"[::1]evil", BAD},               {"local host", BAD},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        for (int tls = 0; tls < 2; tls++) {
            char url[128];
            bool local = false, good = !(hosts[i].is & BAD) && (tls || hosts[i].is & PLAIN);
            struct err e = {0};
            snprintf(url, sizeof(url), "http%s://%s:8443/x?y", tls ? "s" : "", hosts[i].host);
            int rc = net_url_check(url, &local, &e);
            if ((rc == 0) != good || (good && local != !!(hosts[i].is & LOCAL)))
                fail_msg("%s: %d %s", url, rc, e.text);
            if (rc)
                assert_true(e.code == ERR_INVALID && e.text[0]);
        }
    }
}

static void test_ipv6_literal(void **state)
{
    struct mini *six = mini_start6(handler, NULL);
    char url[80];

    (void)state;
    if (!six)
        skip();
    snprintf(url, sizeof(url), "http://[::1]:%d/ok", mini_port(six));
    struct bed_answer a = bed_get(bed, url);
    assert_string_equal(a.err.text, "");
    assert_int_equal(a.status, 200);
    assert_int_equal(mini_requests(six), 1);
    mini_stop(six);
}

/* --- ports of processes ------------------------------------------------------------------- */

struct owning {
    int port, pidfd;
};

static void own(void *ctx)
{
    const struct owning *o = ctx;

    net_port_owner(bed->net, o->port, o->pidfd);
}

static struct bed_answer ask_with_key(struct mini *m, const struct secret *key)
{
    struct net_req *q = net_req_new("GET", mini_url(m, "/list"));

    net_req_secret(q, "X-API-Key", key);
    return bed_fetch(bed, q);
}

/* Somebody else listens on the port of a process that is gone: nothing comes there. */
static void test_port_of_a_dead_process(void **state)
{
    struct mini *m = mini_start(handler, NULL);
    struct secret *key = secret_new("e2b_canary0123456789abcdef", 26);
    pid_t pid = fork();
    struct bed_answer a;

    (void)state;
    if (pid == 0) {
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    struct owning o = {mini_port(m), (int)syscall(SYS_pidfd_open, pid, 0)};
    assert_true(o.pidfd >= 0);
    bed_run(bed, own, &o);
    assert_int_equal(ask_with_key(m, key).status, 200);
    assert_int_equal(mini_requests(m), 1);
    kill(pid, SIGKILL); /* not waited for: it has ended all the same */
    struct pollfd p = {o.pidfd, POLLIN, 0};
    assert_int_equal(poll(&p, 1, 10000), 1);
    a = ask_with_key(m, key);
    assert_int_equal(a.err.code, ERR_NETWORK);
    assert_non_null(strstr(a.err.text, "has ended"));
    assert_false(a.sent);
    assert_int_equal(mini_requests(m), 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    /* a later process has it */
    o.pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    bed_run(bed, own, &o);
    assert_int_equal(ask_with_key(m, key).status, 200);
    /* other ports are nobody's */
    assert_int_equal(ask_with_key(srv, key).status, 200);
    mini_stop(m);
    secret_free(key);
}

/* --- redirects -------------------------------------------------------------------------- */

static void test_redirects_are_answers(void **state)
{
    static const int codes[] = {300, 301, 302, 303, 305, 307, 308};
    static const char *const methods[] = {"GET", "POST", "DELETE"};
    struct secret *key = secret_new("e2b_canary0123456789abcdef", 26);

    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        for (size_t m = 0; m < 3; m++) {
            char path[40];
            snprintf(path, sizeof(path), "/redirect/%d", codes[i]);
            struct net_req *q = net_req_new(methods[m], mini_url(srv, path));
            net_req_secret(q, "X-API-Key", key);
            struct bed_answer a = bed_fetch(bed, q);
            assert_int_equal(a.err.code, 0);
            assert_int_equal(a.status, codes[i]);
        }
    assert_int_equal(mini_accepted(other), 0);
    secret_free(key);
}

/* --- proxies ---------------------------------------------------------------------------- */

static const char *const proxy_vars[] = {"http_proxy",  "HTTP_PROXY", "https_proxy",
                                         "HTTPS_PROXY", "all_proxy",  "ALL_PROXY"};
enum { VARS = sizeof(proxy_vars) / sizeof(proxy_vars[0]) };

static void unset_all(void)
{
    for (size_t i = 0; i < VARS; i++)
        unsetenv(proxy_vars[i]);
    unsetenv("NO_PROXY");
    unsetenv("no_proxy");
}

static void test_loopback_never_by_proxy(void **state)
{
    static const char *const hosts[] = {
        "http://localhost",         "http://127.0.0.1",  "http://127.0.0.2",
        "http://[::1]",             "http://[::ffff:127.0.0.1]",
        "https://localhost",        "https://127.0.0.1", "https://api.localhost",
        "https://localhost.",       "https://[::1]"};
    static const char *const except[] = {NULL, "", ",", " , ", "example.com", "*.localhost",
                                         "127.0.0.2", "!localhost", "localhost.evil"};
    struct mini *proxy = mini_start(proxy_handler, NULL);
    char *at = mini_url(proxy, ""), url[80];
    int before = mini_requests(srv);

    (void)state;
    for (size_t v = 0; v <= VARS; v++) {
        const char *no = except[v % (sizeof(except) / sizeof(except[0]))];
        for (size_t i = 0; i < VARS; i++)
            if (v == VARS || i == v) /* each by itself, then all */
                setenv(proxy_vars[i], at, 1);
        if (no)
            setenv("NO_PROXY", no, 1);
        for (size_t h = 0; h < sizeof(hosts) / sizeof(hosts[0]); h++) {
            /* nothing listens on the port of TLS: it is refused there, or by the proxy */
            snprintf(url, sizeof(url), "%s:%d/ok", hosts[h],
                     str_starts(hosts[h], "https") ? 1 : mini_port(srv));
            bed_get(bed, url);
        }
        unset_all();
    }
    assert_int_equal(mini_accepted(proxy), 0);
    assert_true(mini_requests(srv) - before >= 3 * (VARS + 1));
    free(at);
    mini_stop(proxy);
}

static void test_remote_by_proxy(void **state)
{
    static const char *const vars[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    struct mini *proxy = mini_start(proxy_handler, NULL);
    char *at = xasprintf("http://someone:pa55w0rd@127.0.0.1:%d", mini_port(proxy));

    (void)state;
    for (size_t v = 0; v < 4; v++) {
        buf_clear(&proxied);
        setenv(vars[v], at, 1);
        struct bed_answer a = bed_get(bed, "https://api.example.invalid/x");
        assert_int_equal(a.err.code, ERR_NETWORK);
        assert_null(strstr(a.err.text, "pa55"));
        mini_sync(proxy);
        assert_non_null(strstr(buf_str(&proxied), "CONNECT api.example.invalid:443"));
        assert_non_null(strstr(buf_str(&proxied),
                               "Proxy-Authorization: Basic c29tZW9uZTpwYTU1dzByZA=="));
        assert_null(strstr(buf_str(&proxied), "/x"));
        int calls = mini_accepted(proxy);
        setenv("NO_PROXY", ".example.invalid", 1);
        a = bed_get(bed, "https://api.example.invalid/x");
        assert_int_equal(a.err.code, ERR_NETWORK);
        assert_int_equal(mini_accepted(proxy), calls);
        unset_all();
    }
    free(at);
    mini_stop(proxy);
}

/* Whatever is wrong with the proxy's address, its password is told to nobody. */
static void test_proxy_login_is_hidden(void **state)
{
    static const char *const proxies[] = {
        "gopher://someone:pa55w0rd@127.0.0.1:9", "someone:pa55w0rd@[::1:9",
        "http://someone:pa55w0rd@127.0.0.1:1",   "http://someone:pa55w0rd@proxy.invalid:9",
        "http://someone:pa55@w0rd@127.0.0.1:99999", "://someone:pa55w0rd@x y",
        "socks5h://someone:pa55w0rd@127.0.0.1:1"};
    static struct log_line lines[512];
    uint64_t rev;

    (void)state;
    for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++) {
        setenv("https_proxy", proxies[i], 1);
        struct bed_answer a = bed_get(bed, "https://api.example.invalid/x");
        print_message("# %s\n", a.err.text);
        assert_true(a.err.code != 0);
        assert_null(strstr(a.err.text, "pa55"));
        assert_null(strstr(a.err.text, "w0rd"));
        unset_all();
    }
    for (size_t i = log_snapshot(lines, 512, &rev); i-- > 0;)
        assert_null(strstr(lines[i].text, "pa55"));
}

/* --- the process ------------------------------------------------------------------------ */

static void test_process(void **state)
{
    struct rlimit lim;
    struct sigaction alarm, pipe_act;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &lim), 0);
    assert_true(lim.rlim_cur == lim.rlim_max || lim.rlim_cur >= 65536);
    sigaction(SIGALRM, NULL, &alarm); /* libcurl without NOSIGNAL sets one for time-outs */
    assert_true(alarm.sa_handler == SIG_DFL);
    sigaction(SIGPIPE, NULL, &pipe_act);
    assert_true(pipe_act.sa_handler == SIG_DFL); /* this test does not ignore it: main does */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_ipv6_literal),
        cmocka_unit_test(test_port_of_a_dead_process),
        cmocka_unit_test(test_redirects_are_answers),
        cmocka_unit_test(test_loopback_never_by_proxy),
        cmocka_unit_test(test_remote_by_proxy),
        cmocka_unit_test(test_proxy_login_is_hidden),
        cmocka_unit_test(test_process),
    };
    struct rlimit few;
    int rc;

    getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &few);
    unset_all();
    srv = mini_start(handler, NULL);
    other = mini_start(handler, NULL);
    elsewhere = mini_url(other, "");
    bed = bed_new(NULL);
    rc = cmocka_run_group_tests_name("net_rules", tests, NULL, NULL);
    bed_free(bed);
    mini_stop(srv);
    mini_stop(other);
    free(elsewhere);
    buf_release(&proxied);
    return rc;
}
