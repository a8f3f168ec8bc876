/* clock: RFC 3339 both ways, spans that fit their cell. */
#include <cct/util/clock.h>
#include <cct/util/err.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
/* keep last */
#include <cmocka.h>

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.5Z", 500},
        {"1969-12-31T23:59:59.999Z", -1},
        {"2000-02-29T12:00:00+02:00", 951818400000},
        {"2026-08-22T10:00:00.123456789Z", 1787392800123},
        {"2026-08-22t10:00:00.1z", 1787392800100},
        {"2026-08-22 05:30:00-04:30", 1787392800000},
        {"2038-01-19T03:14:08Z", 2147483648000},
        {"2016-12-31T23:59:60Z", 1483228800000},
        {"0001-01-01T00:00:00Z", -62135596800000},
        {"9999-12-31T23:59:59.999Z", 253402300799999},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int64_t ms = 42;
        if (clock_parse_rfc3339(good[i].text, &ms) != 0 || ms != good[i].ms)
            fail_msg("%s: %lld", good[i].text, (long long)ms);
    }
}

static void test_refuse(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "x",
        "2026-08-22",
        "2026-08-22T10:00:00",
        "2026-08-22T10:00Z",
        "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-32T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:61Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.1234567890Z",
        "2026-01-01T00:00:00Zx",
        "2026-01-01T00:00:00+0200",
        "2026-01-01T00:00:00+24:00",
        " 2026-01-01T00:00:00Z",
        "-026-01-01T00:00:00Z",
    };
    int64_t ms = 42;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (clock_parse_rfc3339(bad[i], &ms) != ERR_INVALID)
            fail_msg("taken: '%s'", bad[i]);
    assert_int_equal(clock_parse_rfc3339(NULL, &ms), ERR_INVALID);
    assert_int_equal(ms, 42);
}

/* Days of four centuries and the far ends agree with the C library. */
static void test_round(void **state)
{
    (void)state;
    char text[32], want[32];
    for (int64_t day = -80000; day < 80000; day++) {
        int64_t ms = day * 86400000 + 12345, back;
        time_t t = (time_t)(day * 86400 + 12);
        struct tm tm;
        clock_format_rfc3339(text, sizeof(text), ms);
        gmtime_r(&t, &tm);
        strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.345Z", &tm);
        if (strcmp(text, want) != 0 || clock_parse_rfc3339(text, &back) != 0 || back != ms)
            fail_msg("%s for %s", text, want);
    }
    clock_format_rfc3339(text, 25, INT64_MAX);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    clock_format_rfc3339(text, 25, INT64_MIN);
    assert_string_equal(text, "0000-01-01T00:00:00.000Z");
}

static void test_local(void **state)
{
    (void)state;
    char text[9];
    setenv("TZ", "XXX-5:30", 1); /* needs no zone files */
    tzset();
    clock_format_hms(text, sizeof(text), 1787392801999);
    assert_string_equal(text, "15:30:01");
    clock_format_hm(text, sizeof(text), 1787392801999);
    assert_string_equal(text, "15:30");
    clock_format_hms(text, sizeof(text), -1);
    assert_string_equal(text, "05:29:59");
    clock_format_hm(text, sizeof(text), INT64_MAX); /* a year beyond int */
}

static void check_span(int64_t s, const char *want)
{
    char text[16];
    clock_format_span(text, sizeof(text), s * 1000);
    assert_string_equal(text, want);
}

static void test_span(void **state)
{
    (void)state;
    check_span(-5, "0s");
    check_span(8, "8s");
    check_span(59, "59s");
    check_span(60, "1m");
    check_span(12 * 60 + 59, "12m");
    check_span(3600, "1h00");
    check_span(3600 + 52 * 60, "1h52");
    check_span(86399, "23h59");
    check_span(86400, "1d");
    check_span(3 * 86400 + 80000, "3d");
    char text[16];
    for (int64_t ms = 1; ms > 0 && ms < INT64_MAX / 3; ms = ms * 3 + 1) {
        clock_format_span(text, sizeof(text), ms);
        assert_in_range(strlen(text), 2, 5);
    }
    clock_format_span(text, sizeof(text), INT64_MAX);
    assert_in_range(strlen(text), 2, 5);
}

static void test_now(void **state)
{
    (void)state;
    int64_t a = clock_mono_ms();
    assert_true(clock_mono_ms() >= a);
    assert_true(clock_boot_ms() >= a);
    assert_true(clock_wall_ms() > 1600000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse), cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_round), cmocka_unit_test(test_local),
        cmocka_unit_test(test_span),  cmocka_unit_test(test_now),
    };
    return cmocka_run_group_tests_name("util_clock", tests, NULL, NULL);
}
