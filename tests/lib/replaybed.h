/* A replay of a text: for the suites of replays, each of which includes it once. */
#ifndef CCT_TESTS_REPLAYBED_H
#define CCT_TESTS_REPLAYBED_H

#include <cct/agent.h>
#include <cct/app/replay.h>
#include <cct/util/buf.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON = 60000 };

/* Two runs: a turn with a pause of ten minutes in front of it, then a log that begins anew. */
static const char events[] =
    "{\"kind\":\"turn_begin\",\"offset\":0,\"index\":0}\n"
    "{\"kind\":\"user_echo\",\"offset\":10,\"index\":0,\"time\":1000000,\"text\":\"hello\"}\n"
    "{\"kind\":\"text\",\"offset\":20,\"index\":0,\"block_id\":\"a\",\"text\":\"I \",\"mode\":\"append\",\"final\":false}\n"
    "{\"kind\":\"text\",\"offset\":30,\"index\":0,\"block_id\":\"a\",\"text\":\"am\",\"mode\":\"append\",\"final\":false}\n"
    "{\"kind\":\"text\",\"offset\":40,\"index\":0,\"time\":1009000,\"block_id\":\"a\",\"text\":\"I am\",\"mode\":\"replace\",\"final\":true}\n"
    "{\"kind\":\"turn_end\",\"offset\":50,\"index\":0,\"outcome\":\"ok\"}\n"
    "{\"kind\":\"user_echo\",\"offset\":60,\"index\":0,\"time\":1609000,\"text\":\"again\"}\n"
    "{\"kind\":\"user_echo\",\"offset\":0,\"index\":0,\"time\":1610000,\"text\":\"anew\"}\n";

static int file; /* of the last one: the test writes to it */

static inline void with_text(const char *text, size_t len)
{
    file = memfd_create("recording", MFD_CLOEXEC);
    assert_int_equal(write(file, text, len), (ssize_t)len);
}

static inline struct replay *with(const char *text, size_t len, const struct agent_adapter *a)
{
    with_text(text, len);
    return replay_new("it", "claude", file, a);
}

/* False: nothing is waited for. */
static inline bool await(const struct replay *r)
{
    struct pollfd p = {.fd = replay_fd(r), .events = POLLIN};
    if (p.fd < 0)
        return false;
    assert_int_equal(poll(&p, 1, SOON), 1);
    return true;
}

static inline int look(struct replay *r, struct err *e)
{
    int rc;
    while ((rc = replay_look(r, e)) == 1)
        await(r);
    return rc;
}

static inline struct replay *of(const char *text)
{
    struct replay *r = with(text, strlen(text), NULL);
    struct err e = {0};
    assert_false(replay_is_ready(r));
    assert_int_equal(look(r, &e), 0);
    assert_true(replay_is_ready(r));
    replay_pause(r, 0, false);
    return r;
}

static struct buf said;

static inline void say(void *ctx, const struct agent_event *ev, int64_t at)
{
    (void)ctx;
    buf_addf(&said, "%lld %s%s%s|", (long long)at, agent_kind_name(ev->kind), ev->text ? " " : "",
             ev->text ? ev->text : "");
}

static inline const char *due(struct replay *r, int64_t now)
{
    buf_clear(&said);
    do
        replay_due(r, now, say, NULL);
    while (replay_wait(r, now) == 0 || await(r));
    return buf_str(&said);
}

#endif
