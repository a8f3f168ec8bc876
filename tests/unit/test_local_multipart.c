/* Multipart forms as they arrive: every form in every slicing has one reading. */
#include <cct/local/multipart.h>
#include <cct/util/buf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define NAME(n) "Content-Disposition: form-data; name=\"" n "\"\r\n"

/* Begin is "<name:", end is ">". */
static const struct {
    const char *form, *want;
    bool whole, ok;
} cases[] = {
    {"--b\r\n" NAME("a") "\r\none\r\n--b--\r\n", "<a:one>", true, true},
    {"--b\r\n" NAME("a") "\r\none\r\n--b\r\n" NAME("c") "\r\ntwo\r\n--b--", "<a:one><c:two>",
     true, true},
    {"preamble\r\n--b\r\n" NAME("a") "\r\nx\r\n--b--\r\nepilogue --b", "<a:x>", true, true},
    {"--b\r\n" NAME("a") "\r\n\r\n--b--\r\n", "<a:>", true, true},
    {"--b\r\n" NAME("a") "\r\n--b--\r\n", "<a:>", true, true},
    {"--b\r\n\r\nheadless\r\n--b--\r\n", "<:headless>", true, true},
    {"--b \t\r\n" NAME("a") "\r\nx\r\n--b--\r\n", "<a:x>", true, true},
    {"--b--", "", true, true},
    /* what looks like a delimiter at first */
    {"--b\r\n" NAME("a") "\r\n\r\r\n\r\n-\r\n--\r\n--a\r\r\n--b--",
     "<a:\r\r\n\r\n-\r\n--\r\n--a\r>", true, true},
    {"--b\r\n" NAME("a") "\r\n--c--b --b\n--b\r\n--b--", "<a:--c--b --b\n--b>", true, true},
    {"--b\r\n" NAME("a") "\r\n-\r\n--b--", "<a:->", true, true},
    {"--a--b\r\n\r\n--b\r\n" NAME("a") "\r\nx\r\n--b--", "<a:x>", true, true},
    /* not to its end */
    {"", "", false, true},
    {"no form at all", "", false, true},
    {"--b\r\n" NAME("a"), "", false, true},
    {"--b\r\n" NAME("a") "\r\nabc\r\n--", "<a:abc", false, true},
    {"--b\r\n" NAME("a") "\r\nabc\r\n--b", "<a:abc>", false, true},
    {"--b\r\n" NAME("a") "\r\nabc\r\n--b-", "<a:abc>", false, true},
    /* damaged */
    {"--b\r\n" NAME("a") "\r\nabc\r\n--bc\r\nx", "<a:abc>", false, false},
    {"--b\r\n" NAME("a") "\r\nabc\r\n--b-x", "<a:abc>", false, false},
    {"--b\n" NAME("a") "\r\nabc\r\n--b--", "", false, false},
    {"--b\rx", "", false, false},
    {"--b -", "", false, false},
};

static bool on_begin(void *arg, const struct files_part *p)
{
    return buf_addf(arg, "<%s:", p->name) == 0;
}

static bool on_data(void *arg, const char *p, size_t len)
{
    assert_true(len > 0);
    return buf_add(arg, p, len) == 0;
}

static bool on_end(void *arg)
{
    return buf_addc(arg, '>') == 0;
}

static const struct multipart_ops ops = {on_begin, on_data, on_end};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i].form);
        for (size_t step = 1; step <= len + 1; step++) {
            struct buf got = BUF_INIT;
            struct multipart *m = multipart_new("b", &ops, &got);
            bool ok = true;
            for (size_t at = 0; at < len; at += step)
                ok = multipart_feed(m, cases[i].form + at, len - at < step ? len - at : step);
            if (ok != cases[i].ok || multipart_is_whole(m) != cases[i].whole ||
                strcmp(buf_str(&got), cases[i].want) != 0)
                fail_msg("case %zu in steps of %zu: %d %d '%s'", i, step, ok,
                         multipart_is_whole(m), buf_str(&got));
            multipart_free(m);
            buf_release(&got);
        }
    }
}

/* The longest boundary, a head of the limit and one over it. */
static void test_limits(void **state)
{
    char boundary[71];
    (void)state;
    memset(boundary, 'x', 70);
    boundary[70] = '\0';
    for (int over = 0; over < 2; over++) {
        struct buf form = BUF_INIT, got = BUF_INIT;
        struct multipart *m = multipart_new(boundary, &ops, &got);
        buf_addf(&form, "--%s\r\n" NAME("a") "X: ", boundary);
        size_t head = form.len - 72;
        while (head + 4 < (16u << 10) + (size_t)over) {
            buf_addc(&form, 'h');
            head++;
        }
        buf_addf(&form, "\r\n\r\nbody\r\n--%s--", boundary);
        assert_int_equal(multipart_feed(m, form.p, form.len), over == 0);
        assert_string_equal(buf_str(&got), over == 0 ? "<a:body>" : "");
        multipart_free(m);
        buf_release(&form);
        buf_release(&got);
    }
}

static bool refuse(void *arg, const char *p, size_t len)
{
    (void)p;
    (void)len;
    ++*(int *)arg;
    return false;
}

static bool begin_fine(void *arg, const struct files_part *p)
{
    (void)arg;
    (void)p;
    return true;
}

static bool end_fine(void *arg)
{
    (void)arg;
    fail_msg("nothing ends after a stop");
    return true;
}

/* Whoever says stop hears nothing more. */
static void test_stop(void **state)
{
    static const struct multipart_ops stopping = {begin_fine, refuse, end_fine};
    static const char form[] = "--b\r\n" NAME("a") "\r\none\rtwo\r\n--b--";
    (void)state;
    for (size_t step = 1; step < sizeof(form); step++) {
        int calls = 0;
        bool ok = true;
        struct multipart *m = multipart_new("b", &stopping, &calls);
        for (size_t at = 0; at < sizeof(form) - 1; at += step)
            ok = multipart_feed(m, form + at,
                                sizeof(form) - 1 - at < step ? sizeof(form) - 1 - at : step);
        assert_false(ok);
        assert_false(multipart_is_whole(m));
        assert_int_equal(calls, 1);
        multipart_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_stop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
