/* digest: known hashes, comparison, shapes of random text. */
#include <cct/secrets/digest.h>
#include <cct/util/str.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

static void check_sha(const char *text, const char *want)
{
    unsigned char out[32];
    char hex[65];
    digest_sha256(out, text, strlen(text));
    hex_encode(hex, out, 32);
    assert_string_equal(hex, want);
}

static void test_sha256(void **state)
{
    (void)state;
    check_sha("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_equal(void **state)
{
    (void)state;
    assert_true(digest_equal("abc", 3, "abc", 3));
    assert_false(digest_equal("abc", 3, "abd", 3));
    assert_false(digest_equal("abc", 3, "ab", 2));
    assert_true(digest_equal("", 0, NULL, 0));
    assert_false(digest_equal("", 0, "a", 1));
}

static void test_random(void **state)
{
    (void)state;
    char key[45], other[45], hex[1001];
    digest_new_key(key);
    digest_new_key(other);
    assert_int_equal(strlen(key), 44);
    assert_true(str_starts(key, "e2b_"));
    assert_int_equal(strspn(key + 4, "0123456789abcdef"), 40);
    assert_string_not_equal(key, other);
    for (size_t n = 0; n <= 300; n += 7) {
        memset(hex, 'z', sizeof(hex));
        digest_random_hex(hex, n);
        assert_int_equal(strspn(hex, "0123456789abcdef"), n);
        assert_int_equal(hex[n], 0);
        assert_int_equal(hex[n + 1], 'z');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_random),
    };
    if (digest_init() != 0 || digest_init() != 0)
        return 1;
    return cmocka_run_group_tests_name("secrets_digest", tests, NULL, NULL);
}
