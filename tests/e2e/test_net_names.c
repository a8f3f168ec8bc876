/* Names: a resolver that hangs while the program is told to quit, and a host whose IPv6
 * path swallows what is sent. This file's getaddrinfo stands in for the C library's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/netbed.h"
#include "../lib/tlsbed.h"
#include <arpa/inet.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BEDS = 8, EACH = 4, HANG_S = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool released; /* the hanging ones may go */
static int hanging, looked_up;

static void hang(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HANG_S;
    pthread_mutex_lock(&lock);
    hanging++;
    pthread_cond_broadcast(&cond);
    while (!released && pthread_cond_timedwait(&cond, &lock, &until) == 0)
        ;
    hanging--;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&lock);
}

static struct addrinfo *entry(int family, int port, struct addrinfo *next)
{
    struct addrinfo *a = calloc(1, sizeof(*a) + sizeof(struct sockaddr_in6));
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(a + 1);
    struct sockaddr_in *v4 = (struct sockaddr_in *)(a + 1);

    *a = (struct addrinfo){.ai_family = family, .ai_socktype = SOCK_STREAM, .ai_next = next,
                           .ai_addr = (struct sockaddr *)v6};
    if (family == AF_INET6) {
        *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                                    .sin6_port = htons((uint16_t)port)};
        a->ai_addrlen = sizeof(*v6);
    } else {
        *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        a->ai_addrlen = sizeof(*v4);
    }
    return a;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **res)
{
    int port = service ? (int)strtol(service, NULL, 10) : 0;

    (void)hints;
    if (!name || !str_eq(name, "dual.example")) {
        hang();
        return EAI_AGAIN;
    }
    pthread_mutex_lock(&lock);
    looked_up++;
    pthread_mutex_unlock(&lock);
    *res = entry(AF_INET6, port, entry(AF_INET, port, NULL));
    return 0;
}

void freeaddrinfo(struct addrinfo *a)
{
    while (a) {
        struct addrinfo *next = a->ai_next;
        free(a);
        a = next;
    }
}

/* --- a resolver that hangs ------------------------------------------------------------------ */

static atomic_int called_back;

static void on_done(void *ctx, const struct net_result *r)
{
    (void)ctx;
    (void)r;
    atomic_fetch_add(&called_back, 1);
}

static void ask(void *ctx)
{
    struct netbed *b = ctx;

    for (int i = 0; i < EACH; i++) {
        struct net_req *q = net_req_new("GET", xasprintf("https://slow-%d.example/", i));
        q->urgent = i == 1;
        q->stream = i == 2;
        q->on_done = on_done;
        uint64_t id = net_submit(b->net, q);
        if (i == 3) /* given up at once: that waits for nobody either */
            net_cancel(b->net, id);
    }
}

static bool all_hang(int n)
{
    struct timespec until;
    bool ok;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 15;
    pthread_mutex_lock(&lock);
    while (hanging < n && pthread_cond_timedwait(&cond, &lock, &until) == 0)
        ;
    ok = hanging >= n;
    pthread_mutex_unlock(&lock);
    return ok;
}

static int64_t took[BEDS];

static void *quit(void *arg)
{
    struct netbed *b = arg;
    int64_t t0 = clock_mono_ms();

    net_stop(b->net);
    return (void *)(intptr_t)(clock_mono_ms() - t0);
}

static void cancel_others(void *ctx)
{
    struct netbed *b = ctx;

    for (uint64_t id = 1; id <= EACH + 1; id++)
        net_cancel(b->net, id);
}

static void test_quit_while_the_resolver_hangs(void **state)
{
    struct netbed *bed[BEDS];
    pthread_t t[BEDS];

    (void)state;
    for (int i = 0; i < BEDS; i++) {
        bed[i] = bed_new(NULL);
        bed_run(bed[i], ask, bed[i]);
    }
    assert_true(all_hang(BEDS * (EACH - 1)));
    int64_t t0 = clock_mono_ms(); /* the loop itself is free meanwhile */
    bed_run(bed[0], cancel_others, bed[0]);
    assert_true(clock_mono_ms() - t0 < 10000);
    for (int i = 0; i < BEDS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, quit, bed[i]), 0);
    for (int i = 0; i < BEDS; i++) {
        void *ms;
        pthread_join(t[i], &ms);
        took[i] = (intptr_t)ms;
        assert_true(took[i] < 10000);
    }
    assert_int_equal(atomic_load(&called_back), 0);
    assert_true(hanging >= BEDS * (EACH - 1)); /* and not because it answered */
    pthread_mutex_lock(&lock);
    released = true;
    pthread_cond_broadcast(&cond);
    while (hanging)
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < BEDS; i++)
        bed_free(bed[i]);
}

/* --- a dead path ---------------------------------------------------------------------------- */

/* A listener that takes no more: what comes later is dropped without an answer, like on
 * a path that leads nowhere. */
static int full_listener(int port, int fill[4])
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                             .sin6_port = htons((uint16_t)port)};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 0)) {
        close(fd);
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        fill[i] = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(fill[i], (struct sockaddr *)&a, sizeof(a)) == 0)
            continue;
    }
    return fd;
}

static void test_dead_ipv6_path(void **state)
{
    static const char *const answers[] = {"-www", NULL};
    struct tlsbed_server s = tlsbed_serve("good", answers);
    int fill[4], fd = full_listener(s.port, fill);
    char *ca = tlsbed_file("ca.pem"), *url = xasprintf("https://dual.example:%d/", s.port);
    struct net_opts o = {.user_agent = "cc-tui/test", .ca_file = ca};

    (void)state;
    if (fd < 0) {
        tlsbed_stop(&s);
        skip();
    }
    struct pollfd p = {.fd = fill[3], .events = POLLOUT};
    assert_int_equal(poll(&p, 1, 100), 0); /* the path is dead indeed */
    struct netbed *bed = bed_new(&o);
    struct bed_answer a = bed_get(bed, url);
    print_message("# first answer after %d ms\n", (int)a.elapsed_ms);
    assert_string_equal(a.err.text, "");
    assert_int_equal(a.status, 200);
    assert_true(looked_up > 0);
    assert_true(a.elapsed_ms >= 150); /* IPv6 had its chance */
    assert_true(a.elapsed_ms < 5000); /* and no more than that */
    bed_free(bed);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(fd);
    tlsbed_stop(&s);
    free(ca);
    free(url);
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
        cmocka_unit_test(test_dead_ipv6_path),
        cmocka_unit_test(test_quit_while_the_resolver_hangs),
    };

    return cmocka_run_group_tests_name("net_names", tests, begin, end);
}
