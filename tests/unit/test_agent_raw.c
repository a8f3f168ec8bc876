/* The shell tool's text: lines, command marks, and that slicing changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/tape.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct agent_adapter *shell(void)
{
    return agent_adapter_find("shell");
}

/* Events as one short text: "text" for an ended line, "text~" for a piece, <C> a
 * turn's begin, <D outcome status> its end, <X code> the exit. */
static char *story(const struct tape *t)
{
    struct buf b = BUF_INIT;

    for (size_t i = 0; i < t->ev.n; i++) {
        const struct agent_event *ev = &t->ev.v[i];

        if (ev->kind == AGENT_RAW)
            buf_addf(&b, "[%s%s]", ev->text, ev->final ? "" : "~");
        else if (ev->kind == AGENT_TURN_BEGIN)
            buf_adds(&b, "<C>");
        else if (ev->kind == AGENT_TURN_END)
            buf_addf(&b, "<D %s %d>", agent_outcome_name(ev->outcome), ev->exit_code);
        else
            buf_addf(&b, "<X %d>", ev->exit_code);
    }
    return buf_detach(&b, NULL);
}

static void check(const char *in, size_t len, int code, const char *want)
{
    static const size_t chunks[] = {1 << 20, 1, 2, 3, 7, 4096};
    struct tape t[6];

    for (size_t i = 0; i < 6; i++) {
        char *got;

        tape_run(&t[i], shell(), in, len, chunks[i], code, 0, NULL);
        got = story(&t[i]);
        assert_string_equal(got, want);
        assert_string_equal(buf_str(&t[i].json), buf_str(&t[0].json));
        free(got);
    }
    for (size_t i = 0; i < 6; i++)
        tape_release(&t[i]);
}

#define S(x) x, sizeof(x) - 1
#define C "\033]133;C\a"

static void test_lines(void **state)
{
    (void)state;
    check(S("one\r\ntwo\n\n\r\n  four  \n"), TAPE_NO_EXIT, "[one][two][][][  four  ]");
    check(S("no end"), TAPE_NO_EXIT, "");
    check(S("no end"), 0, "[no end~]<X 0>");
    check(S("a\0b\0\n"), TAPE_NO_EXIT, "[ab]");
    check(S("10%\r20%\r\n"), TAPE_NO_EXIT, "[10%\r20%]");
    check(S(""), 3, "<X 3>");
}

static void test_marks(void **state)
{
    (void)state;
    check(S("$ " C "hello\r\n\033]133;D;0\a$ "), TAPE_NO_EXIT, "[$ ~]<C>[hello]<D ok 0>");
    check(S(C "no newline\033]133;D;3\033\\$ " C "x\n\033]133;D;130\a"), TAPE_NO_EXIT,
          "<C>[no newline~]<D failed 3>[$ ~]<C>[x]<D interrupted 130>");
    /* a line that ended with a mark is not followed by an empty one */
    check(S(C "x\033]133;D;0\a\r\ny\n"), TAPE_NO_EXIT, "<C>[x~]<D ok 0>[y]");
    /* prompt marks and more parameters; no status; a status that is none */
    check(S("\033]133;A\a\033]133;P;k=i\a$ \033]133;B\als\n" C "\033]133;D\a"), TAPE_NO_EXIT,
          "[$ ls]<C><D ok -1>");
    check(S("\033]133;C;cmdline=ls\a\033]133;D;1;aid=9\a" C "\033]133;D;many\a"), TAPE_NO_EXIT,
          "<C><D failed 1><C><D ok -1>");
    /* an end without a begin, a begin inside a turn */
    check(S("\033]133;D;0\a" C C "a\n"), TAPE_NO_EXIT, "<C>[a]");
    /* the process ends inside a turn */
    check(S(C "working\n...\033]133;D"), 137,
          "<C>[working][...\033]133;D~]<D failed 137><X 137>");
    check(S(C), 0, "<C><D ok 0><X 0>");
    check(S(C), -1, "<C><D failed -1><X -1>");
}

/* What only looks like a mark stays text, to be cleaned like all foreign text. */
static void test_other_sequences(void **state)
{
    (void)state;
    check(S("\033[31mred\033[0m\n"), TAPE_NO_EXIT, "[\033[31mred\033[0m]");
    check(S("\033]0;title\aok\n"), TAPE_NO_EXIT, "[\033]0;title\aok]");
    check(S("\033]1337;C\aok\n"), TAPE_NO_EXIT, "[\033]1337;C\aok]");
    check(S("\033]133\a\033]133;\a\n"), TAPE_NO_EXIT, "[\033]133\a\033]133;\a]");
    check(S("\033\033]\033]133;C\033x\nend\n"), TAPE_NO_EXIT,
          "[\033\033]\033]133;C\033x][end]");
    check(S("\033]133;C\n\033"), 0, "[\033]133;C][\033~]<X 0>");
    check(S("\033]133;C\033\033]133;C\aa\n"), TAPE_NO_EXIT, "[\033]133;C\033~]<C>[a]");
    check(S("\033]133;C;"
            "0123456789012345678901234567890123456789012345678901234567890123456789\a\n"),
          TAPE_NO_EXIT,
          "[\033]133;C;"
          "0123456789012345678901234567890123456789012345678901234567890123456789\a]");
}

/* --- many lines at once ------------------------------------------------------------- */

struct both {
    struct buf json;
    size_t at_once;
};

static void one_event(void *ctx, const struct agent_event *ev)
{
    struct both *b = ctx;

    agent_event_to_json(ev, &b->json);
    buf_addc(&b->json, '\n');
}

/* The same as events. */
static bool take_lines(void *ctx, const struct agent_lines *l)
{
    struct both *b = ctx;
    const char *p = l->text, *end = p + l->len, *nl;
    size_t n = 0;

    if (b->at_once == SIZE_MAX)
        return false;
    for (; p < end; p = nl + 1) {
        struct agent_event ev = AGENT_EVENT(AGENT_RAW);
        struct buf text = BUF_INIT;

        nl = memchr(p, '\n', (size_t)(end - p));
        assert_non_null(nl);
        agent_line_text(p, (size_t)(nl + 1 - p), &text);
        ev.text = (char *)buf_str(&text);
        ev.offset = l->offset + (uint64_t)(p - l->text);
        ev.raw_line = l->raw_line + n++;
        ev.final = true;
        one_event(b, &ev);
        buf_release(&text);
    }
    assert_int_equal(n, l->n);
    b->at_once += n;
    return true;
}

static void feed_both(const struct buf *in, size_t chunk, agent_lines_fn fn, struct both *b)
{
    struct agent_dec *d = agent_dec_new(shell(), 0, one_event, b);

    agent_dec_lines(d, fn);
    for (size_t i = 0; i < in->len; i += chunk)
        agent_dec_feed(d, in->p + i, in->len - i < chunk ? in->len - i : chunk);
    agent_dec_exit(d, 0, 0, NULL);
    agent_dec_free(d);
}

static void add_odd_text(struct buf *b, uint32_t *r)
{
    static const struct {
        const char *s;
        size_t len;
    } parts[] = {{S("\r")},       {S("\033[31m")}, {S("\0")},     {S(C)}, {S("\033]133;D;1\a")},
                 {S("\033")},     {S("\033]0;t\a")}, {S("\r\0\r")}, {S("\n\n")},
                 {S("\033\033]x")}};
    size_t which;

    *r = *r * 1664525 + 1013904223;
    which = *r >> 8 & 255;
    if (which < sizeof(parts) / sizeof(parts[0]))
        buf_add(b, parts[which].s, parts[which].len);
    else if (which == 255)
        for (int i = 0; i < 70000; i++)
            buf_addc(b, 'l');
    buf_addf(b, "line %u", *r >> 16);
    buf_adds(b, which & 1 ? "\n" : "\r\n");
}

/* Taken at once, refused or never asked for, and however they are cut: the same lines. */
static void test_many_lines(void **state)
{
    static const size_t chunks[] = {1 << 20, 30000, 4096, 1000, 17};
    struct both one = {.json = BUF_INIT};
    struct buf in = BUF_INIT;
    uint32_t r = 7;

    (void)state;
    for (int i = 0; i < 9000; i++)
        add_odd_text(&in, &r);
    feed_both(&in, in.len, NULL, &one);
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        struct both many = {.json = BUF_INIT}, refused = {.json = BUF_INIT, .at_once = SIZE_MAX};

        feed_both(&in, chunks[i], take_lines, &many);
        feed_both(&in, chunks[i], take_lines, &refused);
        assert_true(strcmp(buf_str(&many.json), buf_str(&one.json)) == 0);
        assert_true(strcmp(buf_str(&refused.json), buf_str(&one.json)) == 0);
        if (chunks[i] >= 4096)
            assert_true(many.at_once > 4000);
        buf_release(&many.json);
        buf_release(&refused.json);
    }
    buf_release(&one.json);
    buf_release(&in);
}

/* A line without end comes in pieces that are whole UTF-8. */
static void test_endless_line(void **state)
{
    struct buf b = BUF_INIT;
    struct tape t, one;
    size_t sum = 0;

    (void)state;
    buf_addc(&b, 'x');
    while (b.len < 200000)
        buf_adds(&b, "\xE2\x82\xAC");
    buf_addc(&b, '\n');
    tape_run(&t, shell(), b.p, b.len, 4096, TAPE_NO_EXIT, 0, NULL);
    assert_int_equal(t.ev.n, 4);
    for (size_t i = 0; i < t.ev.n; i++) {
        size_t n = strlen(t.ev.v[i].text);

        sum += n;
        assert_int_equal(t.ev.v[i].final, i == 3);
        assert_int_equal((unsigned char)t.ev.v[i].text[n - 1], 0xAC);
    }
    assert_int_equal(sum, b.len - 1);
    tape_run(&one, shell(), b.p, b.len, 1, TAPE_NO_EXIT, 0, NULL);
    assert_string_equal(buf_str(&one.json), buf_str(&t.json));
    tape_release(&t);
    tape_release(&one);
    buf_release(&b);
}

/* A progress bar of 300 kB is one line, and ends as it ended. */
static void test_rewritten_line(void **state)
{
    struct buf b = BUF_INIT;
    struct tape t, one;

    (void)state;
    for (int i = 0; b.len < 300000; i++)
        buf_addf(&b, "\r%d of many, and some words", i);
    buf_adds(&b, "\rdone\r\nnext\n");
    tape_run(&t, shell(), b.p, b.len, 4096, TAPE_NO_EXIT, 0, NULL);
    assert_int_equal(t.ev.n, 2);
    assert_true(t.ev.v[0].final);
    assert_true(strlen(t.ev.v[0].text) <= 65536);
    assert_true(str_ends(t.ev.v[0].text, " some words\rdone"));
    assert_string_equal(t.ev.v[1].text, "next");
    tape_run(&one, shell(), b.p, b.len, 1, TAPE_NO_EXIT, 0, NULL);
    assert_string_equal(buf_str(&one.json), buf_str(&t.json));
    tape_release(&t);
    tape_release(&one);
    buf_release(&b);
}

static void on_event(void *ctx, const struct agent_event *ev)
{
    agent_event_to_json(ev, ctx);
    buf_addc(ctx, '\n');
}

/* One that resumes where the last turn began gives every event the same key: `at` is where that is,
 * the turn's end of before is not repeated, what follows it is the same. */
static void resumes(const char *in, size_t len, size_t at)
{
    struct buf all = BUF_INIT, rest = BUF_INIT;
    struct agent_dec *d = agent_dec_new(shell(), 0, on_event, &all);
    char *first = xasprintf("\"offset\":%zu,\"index\":0,", at);
    const char *p;

    agent_dec_feed(d, in, len);
    assert_int_equal(agent_dec_turn_offset(d), at);
    agent_dec_free(d);
    d = agent_dec_new(shell(), at, on_event, &rest);
    agent_dec_feed(d, in + at, len - at);
    agent_dec_free(d);
    p = strstr(buf_str(&all), first);
    assert_non_null(p);
    while (p[-1] != '\n')
        p--;
    assert_true(tape_same_but_line(p, buf_str(&rest)));
    free(first);
    buf_release(&all);
    buf_release(&rest);
}

static void test_resume(void **state)
{
    static const char in[] = C "one\n\033]133;D;0\a$ " C "two\n\033]133;D;1\a$ ";
    static const char open[] = C "one\033]133;D;0\a" C "\ntwo\n\033]133;D;1\a$ ";
    (void)state;

    resumes(S(in), (size_t)(strstr(in, "$ ") - in));
    resumes(S(open), (size_t)(strstr(open + 1, C) - open)); /* behind a line that was not ended */
}

/* Behind a mark a place begins: what is sent between two commands stands between them. */
static void test_between_commands(void **state)
{
    static const char end[] = "\033]133;D;4\a", next[] = C "two\n";
    struct buf out = BUF_INIT;
    struct agent_dec *d = agent_dec_new(shell(), 0, on_event, &out);

    (void)state;
    agent_dec_feed(d, C "one\n", 12);
    assert_int_equal(agent_dec_line(d), 12);
    agent_dec_feed(d, end, sizeof(end) - 2);
    assert_int_equal(agent_dec_line(d), 12);
    agent_dec_feed(d, end + sizeof(end) - 2, 1);
    assert_int_equal(agent_dec_line(d), 22);
    agent_dec_feed(d, next, sizeof(next) - 1);
    agent_dec_free(d);
    assert_string_equal(
        buf_str(&out),
        "{\"kind\":\"turn_begin\",\"offset\":0,\"index\":0,\"raw\":1}\n"
        "{\"kind\":\"raw\",\"offset\":8,\"index\":0,\"raw\":1,\"text\":\"one\",\"final\":true}\n"
        "{\"kind\":\"turn_end\",\"offset\":12,\"index\":0,\"raw\":2,\"text\":\"exit status 4\","
        "\"exit_code\":4,\"outcome\":\"failed\",\"error_class\":\"other\",\"http_status\":0}\n"
        "{\"kind\":\"turn_begin\",\"offset\":22,\"index\":0,\"raw\":2}\n"
        "{\"kind\":\"raw\",\"offset\":30,\"index\":0,\"raw\":2,\"text\":\"two\",\"final\":true}\n");
    buf_release(&out);
}

/* A second process in the same log begins a line of its own. */
static void test_two_runs(void **state)
{
    struct buf out = BUF_INIT;
    struct agent_dec *d = agent_dec_new(shell(), 0, on_event, &out);

    (void)state;
    agent_dec_feed(d, "a\nb", 3);
    agent_dec_exit(d, 0, 0, NULL);
    agent_dec_feed(d, "c\n", 2);
    agent_dec_exit(d, 1, 0, NULL);
    agent_dec_free(d);
    assert_string_equal(
        buf_str(&out),
        "{\"kind\":\"raw\",\"offset\":0,\"index\":0,\"raw\":1,\"text\":\"a\",\"final\":true}\n"
        "{\"kind\":\"raw\",\"offset\":2,\"index\":0,\"raw\":2,\"text\":\"b\",\"final\":false}\n"
        "{\"kind\":\"exit\",\"offset\":2,\"index\":16777216,\"raw\":2,\"code\":0,\"signal\":0,"
        "\"error_class\":\"none\"}\n"
        "{\"kind\":\"raw\",\"offset\":3,\"index\":0,\"raw\":3,\"text\":\"c\",\"final\":true}\n"
        "{\"kind\":\"exit\",\"offset\":4,\"index\":16777216,\"raw\":4,\"code\":1,\"signal\":0,"
        "\"error_class\":\"other\"}\n");
    buf_release(&out);
}

static void test_encode(void **state)
{
    static const char cmd[] = "for i in 1 2; do\n\techo \"$i\"\ndone # é\0x";
    struct buf b = BUF_INIT;
    struct err e = {0};
    char *back;
    size_t len;

    (void)state;
    assert_true(shell()->pty && !shell()->echoes);
    assert_null(shell()->encode_interrupt);
    assert_int_equal(shell()->encode_message("ls", 2, &b, &e), 0);
    assert_string_equal(buf_str(&b), "bHM=\n");
    buf_clear(&b);
    assert_int_equal(shell()->encode_message(cmd, sizeof(cmd) - 1, &b, &e), 0);
    assert_ptr_equal(memchr(b.p, '\n', b.len), b.p + b.len - 1);
    back = b64_decode(b.p, b.len - 1, &len);
    assert_int_equal(len, sizeof(cmd) - 1);
    assert_memory_equal(back, cmd, len);
    free(back);
    back = xcalloc(1, LIM_MESSAGE_BYTES + 1);
    assert_int_equal(shell()->encode_message(back, LIM_MESSAGE_BYTES + 1, &b, &e), ERR_LIMIT);
    free(back);
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),           cmocka_unit_test(test_marks),
        cmocka_unit_test(test_other_sequences), cmocka_unit_test(test_endless_line),
        cmocka_unit_test(test_many_lines),
        cmocka_unit_test(test_rewritten_line),
        cmocka_unit_test(test_resume),          cmocka_unit_test(test_between_commands),
        cmocka_unit_test(test_two_runs),
        cmocka_unit_test(test_encode),
    };

    return cmocka_run_group_tests_name("agent_raw", tests, NULL, NULL);
}
