/* cksum: what the tool prints, whatever pieces the bytes come in. */
#include <cct/util/cksum.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

enum { MOST = 200 };

/* By the definition, bit after bit. */
static uint32_t by_bits(uint32_t crc, const unsigned char *p, size_t len)
{
    for (; len; p++, len--) {
        crc ^= (uint32_t)*p << 24;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x80000000u ? crc << 1 ^ 0x04c11db7u : crc << 1;
    }
    return crc;
}

static void test_known(void **state)
{
    (void)state;
    assert_int_equal(cksum_end(cksum_add(0, "", 0), 0), 4294967295u);
    assert_int_equal(cksum_end(cksum_add(0, "123456789", 9), 9), 930766865u);
}

static void test_lengths(void **state)
{
    unsigned char text[MOST + 1];
    uint32_t r = 7;

    (void)state;
    for (int i = 0; i <= MOST; i++)
        text[i] = (unsigned char)((r = r * 1664525 + 1013904223) >> 24);
    for (size_t len = 0; len < MOST; len++)
        for (uint32_t crc = 0; crc < 3; crc++) {
            uint32_t from = crc * 0x9e3779b9u;
            uint32_t want = by_bits(from, text + 1, len); /* at an odd address, too */

            assert_int_equal(cksum_add(from, text + 1, len), want);
            for (size_t cut = 0; cut <= len; cut += 5)
                assert_int_equal(
                    cksum_add(cksum_add(from, text + 1, cut), text + 1 + cut, len - cut), want);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests_name("util_cksum", tests, NULL, NULL);
}
