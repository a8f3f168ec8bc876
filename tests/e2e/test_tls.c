/* Whom the client trusts: servers with good and bad certificates, played by openssl's
 * own s_server. None that is bad may see a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/netbed.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char dir[] = "/tmp/cct-tls-XXXXXX";

/* A CA, and keys with certificates: good, of another host, expired, not by the CA. */
static const char make_certs[] =
    "set -e; cd '%s'\n"
    "new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'\n"
    "openssl req -x509 $new -keyout ca.key -out ca.pem -days 30 -subj /CN=test-ca\n"
    "openssl req -x509 $new -keyout self.key -out self.pem -days 30 -subj /CN=localhost "
    "-addext subjectAltName=DNS:localhost\n"
    "sign() { openssl req $new -keyout $1.key -out $1.csr -subj /CN=$2\n"
    "  printf 'subjectAltName=DNS:%%s\\n' $2 > san\n"
    "  openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days $3 "
    "-extfile san -out $1.pem; }\n"
    "sign good localhost 30; sign other other.example 30; sign expired localhost -1\n";

struct server {
    pid_t pid;
    int port;
};

static struct server serve(const char *name, const char *extra, const char *extra2)
{
    struct server s = {0};
    char cert[80], key[80], line[200] = "";
    char *argv[16] = {(char *)"openssl", (char *)"s_server", (char *)"-accept",
                      (char *)"127.0.0.1:0", (char *)"-cert", cert, (char *)"-key", key,
                      (char *)"-www", (char *)(uintptr_t)extra, (char *)(uintptr_t)extra2};
    posix_spawn_file_actions_t fa;
    int out[2];
    FILE *in;

    snprintf(cert, sizeof(cert), "%s/%s.pem", dir, name);
    snprintf(key, sizeof(key), "%s/%s.key", dir, name);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    assert_int_equal(posix_spawnp(&s.pid, "openssl", &fa, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&fa);
    close(out[1]);
    in = fdopen(out[0], "r");
    while (s.port == 0 && fgets(line, sizeof(line), in))
        if (str_starts(line, "ACCEPT"))
            s.port = (int)strtol(strrchr(line, ':') + 1, NULL, 10);
    fclose(in);
    assert_true(s.port > 0);
    return s;
}

static void stop(struct server s)
{
    kill(s.pid, SIGKILL);
    waitpid(s.pid, NULL, 0);
}

struct call {
    struct netbed *bed;
    char *url;
    struct net_result r;
};

static void on_done(void *ctx, const struct net_result *r)
{
    struct call *c = ctx;

    c->r = *r;
    bed_tick(c->bed);
}

static void submit(void *ctx)
{
    struct call *c = ctx;
    struct net_req *q = net_req_new("GET", c->url);

    q->on_done = on_done;
    q->ctx = c;
    q->total_ms = 15000;
    net_submit(c->bed->net, q);
}

/* One request with that CA file (NULL: the system's). */
static struct net_result get(struct server s, const char *ca)
{
    char *file = ca ? xasprintf("%s/%s", dir, ca) : NULL;
    struct net_opts o = {.user_agent = "cc-tui/test", .ca_file = file};
    struct call c = {.bed = bed_new(&o), .url = xasprintf("https://localhost:%d/", s.port)};

    bed_run(c.bed, submit, &c);
    assert_true(bed_wait(c.bed, 1, 20000));
    bed_free(c.bed);
    free(file);
    return c.r;
}

static void refused(struct server s, const char *ca, const char *words)
{
    struct net_result r = get(s, ca);

    stop(s);
    print_message("# %s\n", r.err.text);
    assert_int_equal(r.err.code, ERR_NETWORK);
    assert_int_equal(r.status, 0);
    assert_false(r.sent);
    assert_non_null(strstr(r.err.text, "localhost"));
    assert_non_null(strstr(r.err.text, words));
}

static void test_private_ca(void **state)
{
    struct server s = serve("good", NULL, NULL);
    struct net_result r = get(s, "ca.pem");
    char *file = xasprintf("%s/ca.pem", dir);

    (void)state;
    assert_int_equal(r.err.code, 0);
    assert_int_equal(r.status, 200);
    setenv("SSL_CERT_FILE", file, 1);
    assert_int_equal(get(s, NULL).status, 200);
    setenv("CURL_CA_BUNDLE", file, 1);
    unsetenv("SSL_CERT_FILE");
    assert_int_equal(get(s, NULL).status, 200);
    unsetenv("CURL_CA_BUNDLE");
    free(file);
    refused(s, NULL, "SSL_CERT_FILE"); /* not known without */
}

static void test_bad_servers(void **state)
{
    (void)state;
    refused(serve("self", NULL, NULL), "ca.pem", "cannot trust");
    refused(serve("other", NULL, NULL), "ca.pem", "host name");
    refused(serve("expired", NULL, NULL), "ca.pem", "certificate");
    refused(serve("good", "-tls1_1", "-cipher=ALL:@SECLEVEL=0"), "ca.pem", "TLS 1.2");
    refused(serve("good", NULL, NULL), "missing.pem", "missing.pem");
}

static int begin(void **state)
{
    char *script;
    int rc;

    (void)state;
    if (!mkdtemp(dir))
        return -1;
    script = xasprintf("exec >'%s/log' 2>&1\n", dir);
    char *certs = xasprintf(make_certs, dir), *all = xasprintf("%s%s", script, certs);
    rc = system(all);
    free(all);
    free(certs);
    free(script);
    return rc;
}

static int end(void **state)
{
    char *script = xasprintf("rm -rf '%s'", dir);
    int rc = system(script);

    (void)state;
    free(script);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_private_ca),
        cmocka_unit_test(test_bad_servers),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("tls", tests, begin, end);
}
