/* Envelopes, error mapping and the time-out header of the provider's Connect. */
#include <cct/local/connect_json.h>
#include <cct/util/buf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_head(void **state)
{
    unsigned char h[5];
    (void)state;
    connect_head(h, CONNECT_FLAG_END, 0x01020304);
    assert_memory_equal(h, "\x02\x01\x02\x03\x04", 5);
}

static void test_frames(void **state)
{
    struct connect_frame f;
    const char *why = NULL;
    (void)state;
    assert_int_equal(connect_frame_parse("\0\0\0\0", 4, 100, &f), 0);
    assert_int_equal(connect_frame_parse("\0\0\0\0\2{", 6, 100, &f), 0);
    assert_int_equal(connect_frame_parse("\0\0\0\0\2{}x", 8, 100, &f), 7);
    assert_int_equal(f.len, 2);
    assert_memory_equal(f.body, "{}", 2);
    assert_true(connect_frame_parse("\0\377\377\377\377", 5, 100, &f) < 0);
    assert_int_equal(connect_request_body("\0\0\0\0\2{}", 7, &f, &why), CONNECT_OK);
    assert_int_equal(connect_request_body("\1\0\0\0\2{}", 7, &f, &why), CONNECT_UNIMPLEMENTED);
    assert_int_equal(connect_request_body("\2\0\0\0\2{}", 7, &f, &why),
                     CONNECT_INVALID_ARGUMENT);
    assert_int_equal(connect_request_body("\0\0\0\0\2{}z", 8, &f, &why),
                     CONNECT_INVALID_ARGUMENT);
    assert_int_equal(connect_request_body("", 0, &f, &why), CONNECT_INVALID_ARGUMENT);
    assert_int_equal(connect_request_body("\0\0\0\1\0{}", 7, &f, &why),
                     CONNECT_INVALID_ARGUMENT);
}

static void test_codes(void **state)
{
    (void)state;
    assert_int_equal(connect_code_http(CONNECT_CANCELED), 499);
    assert_int_equal(connect_code_http(CONNECT_UNAUTHENTICATED), 401);
    assert_int_equal(connect_code_http(CONNECT_UNIMPLEMENTED), 501);
    assert_int_equal(connect_code_from_errno(ENOENT), CONNECT_NOT_FOUND);
    assert_int_equal(connect_code_from_errno(EEXIST), CONNECT_ALREADY_EXISTS);
    assert_int_equal(connect_code_from_errno(EACCES), CONNECT_PERMISSION_DENIED);
    assert_int_equal(connect_code_from_errno(EAGAIN), CONNECT_RESOURCE_EXHAUSTED);
    assert_int_equal(connect_code_from_errno(EIO), CONNECT_INTERNAL);
}

static void test_timeout(void **state)
{
    int64_t ms;
    (void)state;
    assert_true(connect_timeout_parse(NULL, &ms));
    assert_int_equal(ms, -1);
    assert_true(connect_timeout_parse("0", &ms));
    assert_int_equal(ms, 0);
    assert_true(connect_timeout_parse("9999999999", &ms));
    assert_int_equal(ms, 9999999999ll);
    assert_false(connect_timeout_parse("10000000000", &ms));
    assert_false(connect_timeout_parse("", &ms));
    assert_false(connect_timeout_parse("-1", &ms));
    assert_false(connect_timeout_parse("1s", &ms));
}

static void test_types(void **state)
{
    (void)state;
    assert_true(connect_type_is("application/json", "application/json"));
    assert_true(connect_type_is("Application/JSON; charset=utf-8", "application/json"));
    assert_false(connect_type_is("application/jsonx", "application/json"));
    assert_false(connect_type_is(NULL, "application/json"));
}

static void test_json(void **state)
{
    struct buf b = BUF_INIT;
    (void)state;
    connect_end_json(&b, CONNECT_OK, NULL);
    assert_string_equal(buf_str(&b), "{}");
    buf_clear(&b);
    connect_end_json(&b, CONNECT_NOT_FOUND, "no \"x\"\n");
    assert_string_equal(buf_str(&b),
                        "{\"error\":{\"code\":\"not_found\",\"message\":\"no \\\"x\\\"\\n\"}}");
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),  cmocka_unit_test(test_frames),
        cmocka_unit_test(test_codes), cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_types), cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
