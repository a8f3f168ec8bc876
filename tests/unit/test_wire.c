/* Envelopes: any slicing of the bytes gives the same frames; broken ones are named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cct/util/limits.h>
#include <cct/wire.h>
#include <stdio.h>
#include <string.h>

static char seen[4096];
static size_t stop_after;

static bool note(void *ctx, uint8_t flags, const char *payload, size_t len)
{
    size_t *count = ctx;
    size_t at = strlen(seen);

    snprintf(seen + at, sizeof(seen) - at, "%u:%zu:%.*s|", flags, len, (int)len, payload);
    return ++*count != stop_after;
}

/* The example of the protocol's description, byte for byte. */
static const char stream[] = "\0\0\0\0\x20{\"event\":{\"start\":{\"pid\":1207}}}"
                             "\0\0\0\0\x24{\"event\":{\"data\":{\"stdout\":\"w6k=\"}}}"
                             "\0\0\0\0\0"
                             "\2\0\0\0\2{}";
static const char want[] = "0:32:{\"event\":{\"start\":{\"pid\":1207}}}|"
                           "0:36:{\"event\":{\"data\":{\"stdout\":\"w6k=\"}}}|0:0:|2:2:{}|";

static void test_every_cut(void **state)
{
    size_t len = sizeof(stream) - 1;

    (void)state;
    for (size_t a = 0; a <= len; a++) {
        for (size_t b = a; b <= len; b++) {
            struct wire_env w;
            size_t count = 0;
            seen[0] = '\0';
            wire_env_init(&w);
            assert_int_equal(wire_env_feed(&w, stream, a, note, &count, NULL), 0);
            assert_int_equal(wire_env_feed(&w, stream + a, b - a, note, &count, NULL), 0);
            assert_int_equal(wire_env_feed(&w, stream + b, len - b, note, &count, NULL), 0);
            assert_true(w.ended);
            assert_string_equal(seen, want);
            wire_env_release(&w);
        }
    }
}

static int feed(const char *data, size_t len, struct err *e)
{
    struct wire_env w;
    size_t count = 0;
    int rc;

    *e = (struct err){0};
    seen[0] = '\0';
    wire_env_init(&w);
    rc = wire_env_feed(&w, data, len, note, &count, e);
    wire_env_release(&w);
    return rc;
}

static void test_broken(void **state)
{
    struct err e;

    (void)state;
    assert_int_equal(feed("\1\0\0\0\1x", 6, &e), ERR_PROTO);
    assert_non_null(strstr(e.text, "compressed"));
    assert_int_equal(feed("\4\0\0\0\1x", 6, &e), ERR_PROTO);
    assert_int_equal(feed("\0\4\0\0\1x", 6, &e), ERR_LIMIT);
    assert_int_equal(feed("\0\xff\xff\xff\xff", 5, &e), ERR_LIMIT);
    assert_int_equal(feed("\2\0\0\0\0\0", 6, &e), ERR_PROTO);
    assert_int_equal(feed("\2\0\0\0\0\0\0\0\0\1x", 11, &e), ERR_PROTO);
}

static void test_stop(void **state)
{
    struct err e;

    (void)state;
    stop_after = 1;
    assert_int_equal(feed(stream, sizeof(stream) - 1, &e), ERR_CANCELLED);
    assert_string_equal(seen, "0:32:{\"event\":{\"start\":{\"pid\":1207}}}|");
    stop_after = 0;
}

static void test_announced_length_costs_nothing(void **state)
{
    struct wire_env w;
    size_t count = 0;

    (void)state;
    wire_env_init(&w);
    assert_int_equal(wire_env_feed(&w, "\0\3\xff\xff\xff" "abc", 8, note, &count, NULL), 0);
    assert_true(w.part.cap < 4096);
    wire_env_release(&w);
}

static void test_add(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    assert_int_equal(wire_env_add(&b, 2, "{}", 2), 0);
    assert_int_equal(b.len, 7);
    assert_memory_equal(b.p, "\2\0\0\0\2{}", 7);
    assert_int_equal(wire_env_add(&b, 0, "", (size_t)LIM_FRAME_BYTES + 1), ERR_LIMIT);
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_announced_length_costs_nothing),
        cmocka_unit_test(test_add),
    };

    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
