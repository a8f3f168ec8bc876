/* Whom the client trusts: servers with good and bad certificates. None that is bad may
 * see a request, and the error says what is wrong with it and what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/netbed.h"
#include "../lib/tlsbed.h"
#include <arpa/inet.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const answers[] = {"-www", NULL};

static int patience_ms = 20000;

/* One request with that CA file (NULL: the system's), with a key in its head. */
static struct bed_answer get(int port, const char *ca)
{
    char *file = ca ? tlsbed_file(ca) : NULL, *url = xasprintf("https://localhost:%d/", port);
    struct net_opts o = {.user_agent = "cc-tui/test", .ca_file = file};
    struct netbed *bed = bed_new(&o);
    struct secret *key = secret_new("E2B-canary-0123456789", 21);
    struct net_req *q = net_req_new("GET", url);

    q->total_ms = patience_ms;
    net_req_secret(q, "X-API-Key", key);
    struct bed_answer a = bed_fetch(bed, q);
    bed_free(bed);
    secret_free(key);
    free(file);
    return a;
}

static void refused(const char *name, const char *const *more, const char *ca, const char *problem,
                    const char *advice)
{
    int code = str_eq(problem, "") ? ERR_NETWORK : ERR_UNTRUSTED;
    struct tlsbed_server s = tlsbed_serve(name, more);
    struct bed_answer a = get(s.port, ca);
    bool asked = tlsbed_stop(&s);

    print_message("# %s: %s\n", name, a.err.text);
    assert_int_equal(a.err.code, code);
    assert_int_equal(a.status, 0);
    assert_false(a.sent);
    assert_false(asked);
    assert_non_null(strstr(a.err.text, "localhost"));
    assert_non_null(strstr(a.err.text, problem));
    assert_non_null(strstr(a.err.text, advice));
}

static void test_private_ca(void **state)
{
    struct tlsbed_server s = tlsbed_serve("good", answers), ear = tlsbed_serve("good", NULL);
    struct bed_answer a = get(s.port, "ca.pem");
    char *file = tlsbed_file("ca.pem");

    (void)state;
    assert_string_equal(a.err.text, "");
    assert_int_equal(a.status, 200);
    setenv("SSL_CERT_FILE", file, 1);
    assert_int_equal(get(s.port, NULL).status, 200);
    setenv("CURL_CA_BUNDLE", "/nonexistent", 1); /* the first of them counts */
    assert_int_equal(get(s.port, NULL).status, 200);
    setenv("CURL_CA_BUNDLE", file, 1);
    unsetenv("SSL_CERT_FILE");
    assert_int_equal(get(s.port, NULL).status, 200);
    unsetenv("CURL_CA_BUNDLE");
    free(file);
    a = get(s.port, NULL);
    assert_int_equal(a.err.code, ERR_UNTRUSTED);
    assert_false(a.sent);
    assert_non_null(strstr(a.err.text, "SSL_CERT_FILE"));
    a = get(s.port, "stranger.pem");
    assert_int_equal(a.err.code, ERR_UNTRUSTED);
    a = get(s.port, "missing.pem");
    assert_int_equal(a.err.code, ERR_UNTRUSTED);
    assert_non_null(strstr(a.err.text, "missing.pem"));
    tlsbed_stop(&s);
    patience_ms = 1500;
    struct bed_answer silent = get(ear.port, "ca.pem"); /* what is said to it can be heard */
    assert_int_equal(silent.err.code, ERR_TIMEOUT);
    assert_true(silent.sent);
    patience_ms = 20000;
    assert_true(tlsbed_stop(&ear));
}

/* A server that speaks in the clear on the port: it answers one connection. */
struct plain {
    int fd;
    char heard[4096];
    size_t len;
};

static void *speak_plainly(void *arg)
{
    static const char said[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    struct plain *p = arg;
    int fd = accept(p->fd, NULL, NULL);
    ssize_t n = recv(fd, p->heard, sizeof(p->heard), 0);

    if (n > 0 && send(fd, said, sizeof(said) - 1, MSG_NOSIGNAL) > 0)
        p->len = (size_t)n;
    shutdown(fd, SHUT_WR);
    while (n > 0 && (n = recv(fd, p->heard + p->len, sizeof(p->heard) - p->len, 0)) > 0)
        p->len += (size_t)n;
    close(fd);
    return NULL;
}

static void test_plain_text_server(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct plain p = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    socklen_t len = sizeof(a);
    pthread_t t;

    (void)state;
    assert_int_equal(bind(p.fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(p.fd, 4), 0);
    assert_int_equal(getsockname(p.fd, (struct sockaddr *)&a, &len), 0);
    assert_int_equal(pthread_create(&t, NULL, speak_plainly, &p), 0);
    struct bed_answer r = get(ntohs(a.sin_port), "ca.pem");
    pthread_join(t, NULL);
    close(p.fd);
    print_message("# plain: %s\n", r.err.text);
    assert_int_equal(r.err.code, ERR_NETWORK);
    assert_false(r.sent);
    assert_non_null(strstr(r.err.text, "TLS 1.2"));
    assert_true(p.len > 0);
    assert_null(memmem(p.heard, p.len, "HTTP", 4));
    assert_null(memmem(p.heard, p.len, "canary", 6));
}

static void test_bad_servers(void **state)
{
    static const char *const tls11[] = {"-tls1_1", "-cipher", "ALL:@SECLEVEL=0", NULL};
    static const char *const tls10[] = {"-tls1", "-cipher", "ALL:@SECLEVEL=0", NULL};
    static const char *const weak[] = {"-cipher", "ALL:@SECLEVEL=0", NULL};

    (void)state;
    refused("self", NULL, "ca.pem", "self-signed", "ca_file");
    refused("expired", NULL, "ca.pem", "expired", "renew");
    refused("early", NULL, "ca.pem", "not yet valid", "clock");
    refused("other", NULL, "ca.pem", "host name", "check the address");
    refused("unknown", NULL, "ca.pem", "issuer", "ca_file");
    refused("client", NULL, "ca.pem", "purpose", "needs another");
    refused("leaf", NULL, "ca.pem", "certificate", "ca_file");
    refused("sha1", weak, "ca.pem", "too weak", "needs another");
    refused("good", tls11, "ca.pem", "", "TLS 1.2");
    refused("good", tls10, "ca.pem", "", "TLS 1.2");
}

/* The names of session keys go to no file, whoever asks for it. */
static void test_no_key_log(void **state)
{
    struct tlsbed_server s = tlsbed_serve("good", answers);
    char *file = tlsbed_file("keys.log");

    (void)state;
    setenv("SSLKEYLOGFILE", file, 1);
    assert_int_equal(get(s.port, "ca.pem").status, 200);
    assert_int_not_equal(access(file, F_OK), 0);
    assert_null(getenv("SSLKEYLOGFILE"));
    tlsbed_stop(&s);
    free(file);
}

/* A kept connection that its server reset is written to once more: by a request, or by
 * the end of TLS. In a process that does not ignore SIGPIPE that would be its end. */
static int write_to_the_dead(void)
{
    struct tlsbed_server s = tlsbed_serve("good", answers);
    char *ca = tlsbed_file("ca.pem"), *url = xasprintf("https://localhost:%d/", s.port);
    struct net_opts o = {.user_agent = "cc-tui/test", .ca_file = ca};
    struct netbed *bed = bed_new(&o);
    struct bed_answer a[3];

    signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < 3; i++) {
        a[i] = bed_get(bed, url);
        if (i == 0)
            tlsbed_stop(&s);
    }
    bed_free(bed);
    free(ca);
    free(url);
    return a[0].status == 200 && a[1].err.code == ERR_NETWORK && a[2].err.code == ERR_NETWORK ? 0 : 1;
}

static void test_reset_after_tls_close(void **state)
{
    pid_t pid = fork();
    int status = 0;

    (void)state;
    if (pid == 0)
        _exit(write_to_the_dead());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int begin(void **state)
{
    (void)state;
    return tlsbed_open() ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    tlsbed_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reset_after_tls_close), /* first: it forks */
        cmocka_unit_test(test_private_ca),
        cmocka_unit_test(test_bad_servers),
        cmocka_unit_test(test_plain_text_server),
        cmocka_unit_test(test_no_key_log),
    };

    return cmocka_run_group_tests_name("tls", tests, begin, end);
}
