/* Ranges, multipart heads and signatures of the provider's file service. */
#include <cct/local/files_parse.h>
#include <cct/secrets/digest.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void part_of(const char *header, int64_t size, int64_t first, int64_t last)
{
    int64_t a = -1, b = -1;
    assert_int_equal(files_range(header, size, &a, &b), RANGE_PART);
    assert_int_equal(a, first);
    assert_int_equal(b, last);
}

static void test_range(void **state)
{
    int64_t a, b;
    (void)state;
    part_of("bytes=0-0", 10, 0, 0);
    part_of("bytes=2-5", 10, 2, 5);
    part_of("bytes=2-", 10, 2, 9);
    part_of("bytes=2-99", 10, 2, 9);
    part_of("bytes=-3", 10, 7, 9);
    part_of("bytes=-30", 10, 0, 9);
    part_of("Bytes=9-", 10, 9, 9);
    assert_int_equal(files_range("bytes=10-", 10, &a, &b), RANGE_OUTSIDE);
    assert_int_equal(files_range("bytes=0-", 0, &a, &b), RANGE_OUTSIDE);
    assert_int_equal(files_range("bytes=-0", 10, &a, &b), RANGE_OUTSIDE);
    static const char *const all[] = {"",
                                      "lines=1-2",
                                      "bytes=",
                                      "bytes=-",
                                      "bytes=x-2",
                                      "bytes=5-2",
                                      "bytes=1-2,4-5",
                                      "bytes=1--2",
                                      "bytes=99999999999999999999-"};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_int_equal(files_range(all[i], 10, &a, &b), RANGE_ALL);
    assert_int_equal(files_range(NULL, 10, &a, &b), RANGE_ALL);
}

static void test_boundary(void **state)
{
    char b[80], longest[120];
    (void)state;
    assert_true(files_boundary("multipart/form-data; boundary=abc", b, sizeof(b)));
    assert_string_equal(b, "abc");
    assert_true(
        files_boundary("multipart/form-data; charset=x; boundary=\"a b;c\"", b, sizeof(b)));
    assert_string_equal(b, "a b;c");
    assert_false(files_boundary("multipart/form-data", b, sizeof(b)));
    assert_false(files_boundary("multipart/form-data; boundary=", b, sizeof(b)));
    assert_false(files_boundary("text/plain; boundary=x", b, sizeof(b)));
    assert_false(files_boundary(NULL, b, sizeof(b)));
    memset(longest, 'b', sizeof(longest));
    memcpy(longest, "multipart/form-data;boundary=", 29);
    longest[29 + 71] = '\0';
    assert_false(files_boundary(longest, b, sizeof(b)));
    longest[29 + 70] = '\0';
    assert_true(files_boundary(longest, b, sizeof(b)));
}

static void head(struct files_part *p, const char *text)
{
    files_part_head(text, strlen(text), p);
}

static void test_part(void **state)
{
    struct files_part p;
    (void)state;
    head(&p, "Content-Type: x\r\ncontent-disposition: form-data; name=\"file\"; "
             "filename=\"/home/user/a \\\"b\\\".txt\"\r\n\r\n");
    assert_string_equal(p.name, "file");
    assert_string_equal(p.filename, "/home/user/a \"b\".txt");
    assert_false(p.cut);
    head(&p, "Content-Disposition: form-data; filename=x%22y; name=file\r\n\r\n");
    assert_string_equal(p.name, "file");
    assert_string_equal(p.filename, "x\"y");
    head(&p, "Content-Disposition: form-data; name=\"a; filename=evil\"\r\n\r\n");
    assert_string_equal(p.name, "a; filename=evil");
    assert_string_equal(p.filename, "");
    head(&p, "Content-Disposition: form-data; name=\"file\"; filename=\"open");
    assert_string_equal(p.filename, "open");
    head(&p, "");
    assert_string_equal(p.name, "");
    files_part_head("Content-Disposition: form-data; name=\"file\"; filename=\"a\0b\"", 57, &p);
    assert_true(p.cut);
    char *big = calloc(1, 6000);
    memset(big, 'x', 5900);
    memcpy(big, "Content-Disposition: form-data; name=\"file\"; filename=\"", 55);
    head(&p, big);
    assert_true(p.cut);
    free(big);
}

static void test_signature(void **state)
{
    (void)state;
    char *s = files_signature("/home/user/a.txt", "read", "", "ea_token_iabc", NULL);
    assert_string_equal(s, "v1_naf1R2BObZkXurBkZmZPzpo4zkKc3SeGevkRli7E7Yo");
    free(s);
    s = files_signature("/home/user/a.txt", "write", "root", "ea_token_iabc", "1900000000");
    assert_string_equal(s, "v1_MaSy6ge8LRgUXosbhHRiB8W4xyA7MiexuKbKMqvKDSY");
    free(s);
}

static void test_coding(void **state)
{
    static const struct {
        const char *header;
        enum files_coding want;
    } cases[] = {
        {NULL, FILES_IDENTITY},
        {"", FILES_IDENTITY},
        {"gzip", FILES_GZIP},
        {"GZip , deflate, br", FILES_GZIP},
        {"br, gzip;q=0.8", FILES_GZIP},
        {"br", FILES_IDENTITY},
        {"*", FILES_IDENTITY},
        {"identity", FILES_IDENTITY},
        {"identity, gzip", FILES_IDENTITY},
        {"gzip, identity", FILES_GZIP},
        {"gzip;q=0.5, identity", FILES_IDENTITY},
        {"gzip; q=0.501, identity ;q=0.5", FILES_GZIP},
        {"gzip;q=0", FILES_IDENTITY},
        {"gzip;q=0.000, *", FILES_IDENTITY},
        {"identity;q=0", FILES_NONE},
        {"identity;q=0, br", FILES_NONE},
        {"*;q=0", FILES_NONE},
        {"*;q=0, identity;q=0.1", FILES_IDENTITY},
        {"*;q=0, gzip", FILES_GZIP_ONLY},
        {"identity;q=0, *", FILES_GZIP_ONLY},
        {"identity;q=0, gzip", FILES_GZIP_ONLY},
        {"gzip;q=", FILES_GZIP},
        {"gzip;q=x", FILES_GZIP},
        {";q=1,,", FILES_IDENTITY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (files_coding(cases[i].header) != cases[i].want)
            fail_msg("'%s' is %d", cases[i].header, (int)files_coding(cases[i].header));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coding),    cmocka_unit_test(test_range),
        cmocka_unit_test(test_boundary),  cmocka_unit_test(test_part),
        cmocka_unit_test(test_signature),
    };
    if (digest_init() != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
