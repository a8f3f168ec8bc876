/* mq and thread: order, lanes, wakes, the bound, many posters. */
#include <cct/util/clock.h>
#include <cct/util/mq.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
/* keep last */
#include <cmocka.h>

static atomic_int freed;

struct item {
    struct msg m;
    int poster, number;
};

static void item_free(struct msg *m)
{
    atomic_fetch_add(&freed, 1);
    free(m);
}

static struct msg *item(int poster, int number, size_t bytes)
{
    struct item *i = xcalloc(1, sizeof(*i));
    msg_init(&i->m, 1, bytes, item_free);
    i->poster = poster;
    i->number = number;
    return &i->m;
}

static bool readable(struct mq *q)
{
    struct pollfd p = {.fd = mq_fd(q), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static int next_number(struct msg **list)
{
    struct msg *m = *list;
    int n = ((struct item *)m)->number;
    *list = m->next;
    msg_free(m);
    return n;
}

static void test_lanes_and_wake(void **state)
{
    (void)state;
    struct mq *q = mq_new(100);
    assert_false(readable(q));
    assert_null(mq_take(q));
    assert_true(mq_post(q, MQ_NORMAL, item(0, 1, 10)));
    assert_true(readable(q));
    assert_true(mq_post(q, MQ_URGENT, item(0, 2, 10)));
    assert_true(mq_post(q, MQ_NORMAL, item(0, 3, 10)));
    assert_true(mq_post(q, MQ_URGENT, item(0, 4, 10)));
    eventfd_t wakes = 0;
    assert_int_equal(eventfd_read(mq_fd(q), &wakes), 0);
    assert_int_equal(wakes, 1); /* one is enough for all that wait */
    struct msg *list = mq_take(q);
    assert_false(readable(q));
    assert_int_equal(next_number(&list), 2);
    assert_int_equal(next_number(&list), 4);
    assert_int_equal(next_number(&list), 1);
    assert_int_equal(next_number(&list), 3);
    assert_null(list);
    assert_true(mq_post(q, MQ_URGENT, item(0, 5, 10)));
    assert_true(readable(q));
    list = mq_take(q);
    assert_int_equal(next_number(&list), 5);
    assert_null(list);
    mq_free(q);
}

static void test_bound(void **state)
{
    (void)state;
    struct mq *q = mq_new(100);
    mq_post(q, MQ_NORMAL, item(0, 1, 100));
    assert_false(mq_full(q));
    mq_post(q, MQ_NORMAL, item(0, 2, 1));
    assert_true(mq_full(q));
    struct msg *list = mq_take(q);
    assert_false(mq_full(q));
    next_number(&list);
    next_number(&list);
    mq_free(q);
}

static void test_close(void **state)
{
    (void)state;
    struct mq *q = mq_new(100);
    atomic_store(&freed, 0);
    mq_post(q, MQ_NORMAL, item(0, 1, 1));
    mq_close(q);
    assert_true(mq_closed(q));
    assert_false(mq_post(q, MQ_URGENT, item(0, 2, 1)));
    assert_int_equal(atomic_load(&freed), 1);
    assert_true(mq_wait(q, -1)); /* what was posted before is still there */
    mq_free(q);
    assert_int_equal(atomic_load(&freed), 2);
    mq_free(NULL);
    msg_free(NULL);
}

static void test_wait_time(void **state)
{
    (void)state;
    struct mq *q = mq_new(100);
    int64_t start = clock_mono_ms();
    assert_false(mq_wait(q, 20));
    assert_true(clock_mono_ms() - start >= 19);
    mq_close(q);
    assert_false(mq_wait(q, -1));
    mq_free(q);
}

#define POSTERS 4
#define EACH 5000

struct poster {
    struct mq *q;
    int number;
};

static void post_many(void *arg)
{
    struct poster *p = arg;
    for (int i = 0; i < EACH; i++)
        mq_post(p->q, MQ_NORMAL, item(p->number, i, 1));
}

/* Nothing is lost and each poster's messages stay in order; a lost wake would
 * end the wait with its time limit. */
static void test_posters(void **state)
{
    (void)state;
    struct mq *q = mq_new(1000);
    struct poster p[POSTERS];
    pthread_t t[POSTERS];
    int next[POSTERS] = {0}, got = 0;
    for (int i = 0; i < POSTERS; i++) {
        p[i] = (struct poster){q, i};
        assert_int_equal(thread_start(&t[i], THREAD_WORK, "poster", post_many, &p[i]), 0);
    }
    while (got < POSTERS * EACH) {
        assert_true(mq_wait(q, 10000));
        for (struct msg *m = mq_take(q), *after; m; m = after, got++) {
            struct item *it = (struct item *)m;
            after = m->next;
            assert_int_equal(it->number, next[it->poster]++);
            msg_free(m);
        }
    }
    for (int i = 0; i < POSTERS; i++)
        assert_true(thread_join_ms(t[i], 10000));
    mq_free(q);
}

struct pair {
    struct mq *to, *from;
};

static void echo(void *arg)
{
    struct pair *p = arg;
    assert_int_equal(thread_role(), THREAD_NET);
    THREAD_ASSERT(THREAD_NET);
    while (mq_wait(p->to, -1))
        for (struct msg *m = mq_take(p->to), *next; m; m = next) {
            next = m->next;
            mq_post(p->from, MQ_URGENT, m);
        }
}

static void test_round_trips(void **state)
{
    (void)state;
    struct pair p = {mq_new(100), mq_new(100)};
    pthread_t t;
    assert_int_equal(thread_start(&t, THREAD_NET, "echo-with-a-long-name", echo, &p), 0);
    for (int i = 0; i < 2000; i++) {
        mq_post(p.to, MQ_NORMAL, item(0, i, 1));
        assert_true(mq_wait(p.from, 10000));
        struct msg *list = mq_take(p.from);
        assert_int_equal(next_number(&list), i);
        assert_null(list);
    }
    assert_false(thread_join_ms(t, 1));
    mq_close(p.to);
    assert_true(thread_join_ms(t, 10000));
    mq_free(p.to);
    mq_free(p.from);
}

static void read_mask(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, arg);
}

/* A signal must not be taken by a thread that cannot act on it; who started it has its own mask. */
static void test_signals(void **state)
{
    sigset_t of_thread, mine;
    pthread_t t;

    (void)state;
    sigemptyset(&of_thread);
    assert_int_equal(thread_start(&t, THREAD_WORK, "masked", read_mask, &of_thread), 0);
    assert_true(thread_join_ms(t, 10000));
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    static const int blocked[] = {SIGTERM, SIGINT, SIGHUP, SIGWINCH, SIGTSTP, SIGPIPE, SIGUSR1};
    for (size_t i = 0; i < sizeof(blocked) / sizeof(blocked[0]); i++) {
        assert_int_equal(sigismember(&of_thread, blocked[i]), 1);
        assert_int_equal(sigismember(&mine, blocked[i]), 0);
    }
    assert_int_equal(sigismember(&of_thread, SIGSEGV), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes_and_wake), cmocka_unit_test(test_bound),
        cmocka_unit_test(test_close),          cmocka_unit_test(test_wait_time),
        cmocka_unit_test(test_posters),        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_signals),
    };
    return cmocka_run_group_tests_name("util_mq", tests, NULL, NULL);
}
