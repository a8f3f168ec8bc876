/* Files of variables: what is read, and what is said of what cannot be. */
#include <cct/model/env_file.h>

#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text, *want; /* "A=1|B=two\n|" */
} good[] = {
    {"", ""},
    {"\n\n  \t\n# only a comment\n", ""},
    {"A=1", "A=1|"},
    {"A=1\nB=2\n", "A=1|B=2|"},
    {"A=1\r\nB=2\r\n", "A=1|B=2|"},
    {"\xEF\xBB\xBF" "A=1\n", "A=1|"},
    {"export A=1\nexport\tB=2\n", "A=1|B=2|"},
    {"exported=1\n", "exported=1|"},
    {"  A = 1  \n", "A=1|"},
    {"A=\nB=''\nC=\"\"\n", "A=|B=|C=|"},
    {"A=a b # comment\nB=a#b\nC=#gone\n", "A=a b|B=a#b|C=|"},
    {"A=\"x # y\" # z\n", "A=x # y|"},
    {"A=\"a\\nb\\t\\\"c\\\"\\\\ \\$d \\q\"\n", "A=a\nb\t\"c\"\\ $d \\q|"},
    {"A='a\\nb $c \"d\"'\n", "A=a\\nb $c \"d\"|"},
    {"A=\"one\ntwo\"\nB=3\n", "A=one\ntwo|B=3|"},
    {"K='-----BEGIN\nabc\n-----END'\n", "K=-----BEGIN\nabc\n-----END|"},
    {"A=$HOME `id` $(id)\n", "A=$HOME `id` $(id)|"},
    {"A=1\nB=2\nA=3\n", "A=3|B=2|"},
    {"A==x=y\n", "A==x=y|"},
    {"A=it's\n", "A=it's|"},
    {"_a1=\xC3\xA9\n", "_a1=\xC3\xA9|"},
};

static const struct {
    const char *text, *want; /* part of what is said */
} bad[] = {
    {"A=1\nnonsense\n", "f.env:2: there is no \"=\""},
    {"sk-ant-secret-secret", "f.env:1: there is no \"=\""},
    {"1A=x\n", "f.env:1: the name \"1A\""},
    {"A-B=x\n", "the name \"A-B\""},
    {"=x\n", "f.env:1: the name \"\""},
    {"A=1\n\nB=\"open\nC=2\n", "f.env:3: the quote"},
    {"A='open", "f.env:1: the quote"},
    {"A=\"x\" y\n", "f.env:1: there is something behind"},
    {"A=\"x\ny\" z\n", "f.env:2: there is something behind"},
    {"A=\xFF\n", "not text in UTF-8"},
    {"export A\n", "there is no \"=\""},
};

static void reads_what_tools_write(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct err e = {0};
        struct buf b = BUF_INIT;
        struct kv *v = env_file_parse(good[i].text, strlen(good[i].text), "f.env", &e);

        for (struct kv *k = v; k && k->k; k++)
            buf_addf(&b, "%s=%s|", k->k, k->v);
        if (!v || strcmp(buf_str(&b), good[i].want) != 0)
            fail_msg("%s: got \"%s\" (%s)", good[i].text, buf_str(&b), e.text);
        kv_free(v);
        buf_release(&b);
    }
}

static void says_where_it_is_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = {0};
        struct kv *v = env_file_parse(bad[i].text, strlen(bad[i].text), "f.env", &e);

        if (v || !strstr(e.text, bad[i].want))
            fail_msg("%s: said \"%s\"", bad[i].text, e.text);
        assert_null(strstr(e.text, "sk-ant")); /* what stands alone may be a key */
    }
    struct err e = {0};
    assert_null(env_file_parse("A=1\0B", 5, "f.env", &e));
    assert_non_null(strstr(e.text, "NUL"));
}

static void keeps_to_its_limits(void **state)
{
    struct buf b = BUF_INIT;
    struct err e = {0};
    struct kv *v;
    (void)state;

    buf_adds(&b, "X=1\nA=");
    for (int i = 0; i <= ENV_VALUE_BYTES; i++)
        buf_addc(&b, 'x');
    assert_null(env_file_parse(b.p, b.len, "f.env", &e));
    assert_non_null(strstr(e.text, "f.env:2: the value of \"A\" is too long"));
    buf_clear(&b);
    while (b.len <= ENV_FILE_BYTES)
        buf_adds(&b, "# and so on\n");
    assert_null(env_file_parse(b.p, b.len, "f.env", &e));
    assert_non_null(strstr(e.text, "the file is too long"));
    buf_clear(&b);
    for (int i = 0; i < ENV_FILE_VARS; i++)
        buf_addf(&b, "V%d=%d\n", i, i);
    v = env_file_parse(b.p, b.len, "f.env", &e);
    assert_non_null(v);
    assert_string_equal(kv_get(v, "V999"), "999");
    kv_free(v);
    buf_adds(&b, "MORE=1\n");
    assert_null(env_file_parse(b.p, b.len, "f.env", &e));
    assert_non_null(strstr(e.text, "f.env:1001: more than"));
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_tools_write),
        cmocka_unit_test(says_where_it_is_wrong),
        cmocka_unit_test(keeps_to_its_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
