/* model: transcripts as events build them up: live, from the past, with gaps, and bounded. */
#include <cct/model/model.h>
#include <cct/model/transcribe.h>
#include <cct/util/buf.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

#define LIT(s) ((char *)(s)) /* borrowed: never freed through these */

static struct model *m;

static int new_model(void **state)
{
    (void)state;
    m = model_new();
    return 0;
}

static int drop_model(void **state)
{
    (void)state;
    model_free(m);
    return 0;
}

#define EVENT(k, off, ...) \
    ((struct agent_event){.kind = (k), .offset = (off), .exit_code = -1, __VA_ARGS__})

static void send(const struct agent_event *v, size_t n, bool in_front, bool reset)
{
    struct ev_items *ev = ev_new(EV_ITEMS);
    ev->sandbox = 1;
    ev->prepend = in_front;
    ev->reset = reset;
    for (size_t i = 0; i < n; i++)
        transcribe(&v[i], "claude", ev);
    model_apply(m, &ev->m);
    msg_free(&ev->m);
}
#define SEND(v) send(v, sizeof(v) / sizeof((v)[0]), false, false)
#define SEND_BEFORE(v) send(v, sizeof(v) / sizeof((v)[0]), true, false)

/* The whole transcript as text: kind|who|title|text|state; */
static char *shown(void)
{
    const struct transcript *t = model_transcript(m, 1);
    struct buf b = BUF_INIT;
    for (size_t i = 0; t && i < t->n; i++)
        buf_addf(&b, "%d|%s|%s|%s|%d%s;", t->v[i].kind, t->v[i].who ? t->v[i].who : "",
                 t->v[i].title ? t->v[i].title : "", t->v[i].text ? t->v[i].text : "",
                 t->v[i].state, t->v[i].streaming ? "~" : "");
    return buf_detach(&b, NULL);
}

static void check_shown(const char *want)
{
    char *s = shown();
    assert_string_equal(s, want);
    free(s);
}

static const struct agent_event turn[] = {
    EVENT(AGENT_TEXT, 10, .id = LIT("b1"), .text = LIT("hel"), .mode = AGENT_APPEND),
    EVENT(AGENT_TOOL, 20, .id = LIT("t1"), .name = LIT("Bash"), .title = LIT("ls"),
          .input = LIT("{}"), .state = AGENT_TOOL_RUNNING),
    EVENT(AGENT_TEXT, 30, .id = LIT("b1"), .text = LIT("lo"), .mode = AGENT_APPEND),
    EVENT(AGENT_TEXT, 40, .id = LIT("b1"), .text = LIT("hello."), .mode = AGENT_REPLACE,
          .final = true),
    EVENT(AGENT_TOOL, 50, .id = LIT("t1"), .output = LIT("a b"), .state = AGENT_TOOL_OK),
    EVENT(AGENT_NOTICE, 60, .text = LIT("careful"), .level = AGENT_WARN),
    EVENT(AGENT_TURN_END, 70, .outcome = AGENT_OK),
};
#define TURN_SHOWN "1|claude||hello.|0;3|Bash|ls|a b|1;4|||careful|1;6||||0;"

static void test_turn(void **state)
{
    (void)state;
    send(turn, 3, false, false);
    check_shown("1|claude||hello|0~;3|Bash|ls||0~;");
    send(turn, 3, false, false); /* the same bytes again */
    check_shown("1|claude||hello|0~;3|Bash|ls||0~;");
    send(turn + 3, 4, false, false);
    check_shown(TURN_SHOWN);
    for (size_t n = 1; n <= 7; n++) { /* a replay from the turn's begin, however long */
        send(turn, n, false, false);
        check_shown(TURN_SHOWN);
    }
    for (size_t i = 0; i < 7; i++) {
        send(turn + i, 1, false, false);
        check_shown(TURN_SHOWN);
    }
    send(turn, 7, false, true); /* all at once after a reset */
    check_shown(TURN_SHOWN);
}

/* Lines of a tool without a protocol; the first has the key 0,0. */
static void test_raw_lines(void **state)
{
    (void)state;
    static const struct agent_event lines[] = {
        EVENT(AGENT_RAW, 0, .text = LIT("one"), .final = true),
        EVENT(AGENT_RAW, 4, .text = LIT("$ ")),
        EVENT(AGENT_RAW, 6, .text = LIT("ls")),
        EVENT(AGENT_RAW, 8, .text = LIT(""), .final = true),
        EVENT(AGENT_RAW, 9, .text = LIT("two"), .final = true),
    };
    for (int i = 0; i < 3; i++) {
        SEND(lines);
        check_shown("7|||one|0;7|||$ ls|0;7|||two|0;");
    }
    for (size_t i = 0; i < 5; i++)
        send(lines + i, 1, false, false);
    check_shown("7|||one|0;7|||$ ls|0;7|||two|0;");
}

/* What was left out between two pictures is not missing: it can be had from the store. */
static void test_skip(void **state)
{
    (void)state;
    static const struct agent_event before[] = {
        EVENT(AGENT_RAW, 1, .text = LIT("one"), .final = true),
        EVENT(AGENT_RAW, 5, .text = LIT("two"), .final = true),
    };
    struct ev_items *ev = ev_new(EV_ITEMS);
    struct agent_event e = EVENT(AGENT_RAW, 900, .text = LIT("many later"), .final = true);

    SEND(before);
    const struct transcript *t = model_transcript(m, 1);
    uint64_t next = t->base + t->n;
    assert_false(t->more_before);
    struct item *wait = ev_items_add(ev, ITEM_PUT);
    wait->kind = ITEM_USER;
    wait->id = xstrdup("waits");
    wait->text = xstrdup("queued");
    wait->text_len = 6;
    ev->sandbox = 1;
    model_apply(m, &ev->m);
    msg_free(&ev->m);
    check_shown("7|||one|0;7|||two|0;0|||queued|0;");
    for (int i = 0; i < 2; i++) { /* said again, it changes nothing */
        ev = ev_new(EV_ITEMS);
        ev->sandbox = 1;
        transcribe(&e, "claude", ev);
        ev->op[0] = ITEM_SKIP;
        model_apply(m, &ev->m);
        msg_free(&ev->m);
        check_shown("7|||many later|0;0|||queued|0;");
        assert_int_equal(t->base, next);
        assert_true(t->more_before);
    }
    SEND_BEFORE(before);
    check_shown("7|||one|0;7|||two|0;7|||many later|0;0|||queued|0;");
}

/* The same where nothing came before: as when a tool is looked at that floods at once. */
static void test_skip_at_begin(void **state)
{
    (void)state;
    static const struct agent_event before[] = {
        EVENT(AGENT_RAW, 1, .text = LIT("one"), .final = true),
        EVENT(AGENT_RAW, 5, .text = LIT("two"), .final = true),
    };
    struct agent_event e = EVENT(AGENT_RAW, 900, .text = LIT("many later"), .final = true);
    struct ev_items *ev = ev_new(EV_ITEMS);

    ev->sandbox = 1;
    transcribe(&e, "claude", ev);
    ev->op[0] = ITEM_SKIP;
    model_apply(m, &ev->m);
    msg_free(&ev->m);
    const struct transcript *t = model_transcript(m, 1);
    assert_true(t->more_before);
    uint64_t number = t->base;
    SEND_BEFORE(before);
    check_shown("7|||one|0;7|||two|0;7|||many later|0;");
    assert_int_equal(t->base + 2, number);
}

static void send_part(bool reset, bool newer, bool more, uint64_t at, const struct agent_event *v,
                      size_t n)
{
    struct ev_items *ev = ev_new(EV_ITEMS);
    ev->sandbox = 1;
    ev->reset = reset;
    ev->newer = newer;
    ev->prepend = !reset && !newer;
    ev->placed = !reset;
    ev->at_offset = at;
    ev->more_after = more;
    ev->more_before = ev->prepend && more;
    for (size_t i = 0; i < n; i++)
        transcribe(&v[i], "claude", ev);
    model_apply(m, &ev->m);
    msg_free(&ev->m);
}

/* A part of the past: what comes live is not mixed into it, what is loaded fits its ends. */
static void test_window(void **state)
{
    (void)state;
    static const struct agent_event parts[] = {
        EVENT(AGENT_RAW, 10, .text = LIT("a"), .final = true),
        EVENT(AGENT_RAW, 20, .text = LIT("b"), .final = true),
        EVENT(AGENT_RAW, 30, .text = LIT("c"), .final = true),
        EVENT(AGENT_RAW, 40, .text = LIT("d"), .final = true),
    };
    static const struct agent_event live = EVENT(AGENT_RAW, 90, .text = LIT("z"), .final = true);
    uint64_t offset;
    uint32_t index;

    send(&live, 1, false, false);
    const struct transcript *t = model_transcript(m, 1);
    uint32_t resets = t->resets;
    send_part(true, false, true, 0, parts + 1, 1);
    check_shown("7|||b|0;");
    assert_true(t->more_after && t->resets == resets + 1);
    send(&live, 1, false, false);
    check_shown("7|||b|0;");
    send_part(false, true, true, 10, parts + 2, 1); /* asked for another end */
    send_part(false, false, false, 10, parts, 1);
    check_shown("7|||b|0;");
    send_part(false, true, true, 20, parts + 2, 1);
    send_part(false, false, false, 20, parts, 1);
    check_shown("7|||a|0;7|||b|0;7|||c|0;");
    assert_true(t->more_after && !t->more_before);
    transcript_first_key(t, &offset, &index);
    assert_true(offset == 10 && index == 0);
    transcript_last_key(t, &offset, &index);
    assert_true(offset == 30 && index == 0);
    send_part(true, false, false, 0, parts + 3, 1); /* back at the end */
    send(&live, 1, false, false);
    check_shown("7|||d|0;7|||z|0;");
    send_part(false, true, true, 90, parts, 1); /* came too late */
    check_shown("7|||d|0;7|||z|0;");
}

static void test_prepend(void **state)
{
    (void)state;
    static const struct agent_event older[] = {
        EVENT(AGENT_TEXT, 1, .id = LIT("b0"), .text = LIT("old "), .mode = AGENT_APPEND),
        EVENT(AGENT_TEXT, 2, .id = LIT("b0"), .text = LIT("text"), .mode = AGENT_APPEND),
        EVENT(AGENT_TEXT, 3, .id = LIT("b0"), .text = LIT("old text."), .mode = AGENT_REPLACE,
              .final = true),
        EVENT(AGENT_TOOL, 20, .id = LIT("t1"), .name = LIT("Bash"), .title = LIT("ls"),
              .state = AGENT_TOOL_RUNNING),
        EVENT(AGENT_TURN_END, 70, .outcome = AGENT_OK),
    };
    send(turn + 3, 4, false, false);
    check_shown("1|claude||hello.|0;3|||a b|1;4|||careful|1;6||||0;");
    for (int i = 0; i < 2; i++) { /* what is held is skipped, but gives its name */
        SEND_BEFORE(older);
        check_shown("1|claude||old text.|0;" TURN_SHOWN);
    }
}

static void test_order(void **state)
{
    (void)state;
    static const struct agent_event mixed[] = {
        EVENT(AGENT_NOTICE, 10, .text = LIT("1")),
        EVENT(AGENT_NOTICE, 50, .text = LIT("5")),
        EVENT(AGENT_NOTICE, 30, .text = LIT("3")),
        EVENT(AGENT_NOTICE, 30, .index = 1, .text = LIT("4")),
        EVENT(AGENT_NOTICE, 20, .text = LIT("2")),
        EVENT(AGENT_NOTICE, 30, .text = LIT("3")),
    };
    SEND(mixed);
    check_shown("4|||1|0;4|||2|0;4|||3|0;4|||4|0;4|||5|0;");
}

static void unshow(uint64_t sandbox)
{
    struct ev_items *ev = ev_new(EV_ITEMS);
    ev->sandbox = sandbox;
    ev->unshown = true;
    model_apply(m, &ev->m);
    msg_free(&ev->m);
}

static void put_large(uint64_t sandbox, bool reset)
{
    struct ev_items *ev = ev_new(EV_ITEMS);
    struct item *it = ev_items_add(ev, ITEM_PUT);
    ev->sandbox = sandbox;
    ev->reset = reset;
    it->kind = ITEM_TEXT;
    it->id = xstrdup("large");
    it->text = xcalloc(1, (1 << 18) + 1);
    memset(it->text, 'x', it->text_len = 1 << 18);
    it->exit_code = -1;
    model_apply(m, &ev->m);
    msg_free(&ev->m);
}

/* Transcripts that nobody looks at stay for who comes back soon, but do not pile up. */
static void test_unshown(void **state)
{
    (void)state;
    for (uint64_t id = 1; id <= 40; id++)
        put_large(id, true);
    for (uint64_t id = 1; id <= 40; id++)
        if (id != 7)
            unshow(id);
    assert_non_null(model_transcript(m, 40));
    assert_non_null(model_transcript(m, 38));
    assert_null(model_transcript(m, 30));
    assert_non_null(model_transcript(m, 7)); /* is looked at */
    put_large(38, true);                     /* again */
    for (uint64_t id = 41; id <= 50; id++) {
        put_large(id, true);
        unshow(id);
    }
    assert_non_null(model_transcript(m, 38));
    assert_null(model_transcript(m, 40));
    unshow(99); /* there is none */
    assert_null(model_transcript(m, 99));
    put_large(40, false);
    assert_true(model_transcript(m, 40)->rev > 1); /* what was drawn of it once is not taken for it */
}

static void put_user(const char *key, uint64_t offset, enum msg_state st)
{
    struct ev_items *ev = ev_new(EV_ITEMS);
    struct item *it = ev_items_add(ev, ITEM_PUT);
    ev->sandbox = 1;
    it->kind = ITEM_USER;
    it->id = xstrdup(key);
    it->text = xstrdup(key);
    it->text_len = strlen(key);
    it->offset = offset;
    it->state = (int)st;
    it->exit_code = -1;
    model_apply(m, &ev->m);
    msg_free(&ev->m);
}

static void check_order(const char *want)
{
    const struct transcript *t = model_transcript(m, 1);
    char got[64] = "";
    for (size_t i = 0; i < t->n; i++)
        strncat(got, t->v[i].text, sizeof(got) - strlen(got) - 1);
    assert_string_equal(got, want);
    for (size_t i = 1; i < t->n; i++)
        assert_true(t->v[i].rev != t->v[i - 1].rev);
}

/* What waits stands below the turn at hand, and moves up when it is taken in. */
static void test_waiting_messages(void **state)
{
    (void)state;
    static const struct agent_event one[] = {EVENT(AGENT_NOTICE, 10, .text = LIT("1"))};
    static const struct agent_event two[] = {EVENT(AGENT_NOTICE, 20, .text = LIT("2"))};
    static const struct agent_event four[] = {EVENT(AGENT_NOTICE, 40, .text = LIT("4"))};
    SEND(one);
    put_user("q", 0, MSG_QUEUED);
    put_user("r", 0, MSG_QUEUED);
    SEND(two);
    check_order("12qr");
    put_user("q", 0, MSG_SENT);
    check_order("12qr");
    put_user("q", 30, MSG_DELIVERED);
    SEND(four);
    check_order("12q4r");
    put_user("r", 0, MSG_FAILED);
    check_order("12q4r");
}

/* An answer is being written: what waits meanwhile stands below it, whatever the answer becomes. */
static void test_waiting_below_an_answer(void **state)
{
    (void)state;
    static const struct agent_event part[] = {
        EVENT(AGENT_TEXT, 20, .id = LIT("b"), .text = LIT("a"), .mode = AGENT_APPEND)};
    static const struct agent_event more[] = {
        EVENT(AGENT_TEXT, 40, .id = LIT("b"), .text = LIT("b"), .mode = AGENT_APPEND)};
    SEND(part);
    put_user("q", 0, MSG_QUEUED);
    check_order("aq");
    SEND(more);
    check_order("abq");
}

/* A part is held, and newer ones are not: what waited is among those as soon as it was taken in,
 * and what comes live is none of the part. */
static void test_taken_in_out_of_sight(void **state)
{
    (void)state;
    struct agent_event e = EVENT(AGENT_NOTICE, 10, .text = LIT("1"));
    struct agent_event live = EVENT(AGENT_NOTICE, 900, .text = LIT("9"));
    struct ev_items *ev = ev_new(EV_ITEMS);

    ev->sandbox = 1;
    ev->reset = ev->more_after = true;
    transcribe(&e, "claude", ev);
    model_apply(m, &ev->m);
    msg_free(&ev->m);
    put_user("q", 0, MSG_QUEUED);
    put_user("r", 0, MSG_QUEUED);
    check_order("1qr");
    put_user("q", 800, MSG_DELIVERED);
    send(&live, 1, false, false);
    check_order("1r");
}

/* A turn that begins answers what was sent, not what is queued. */
static void test_answer_of_sent(void **state)
{
    (void)state;
    static const struct agent_event end[] = {
        EVENT(AGENT_TURN_END, 10, .text = LIT("1"), .outcome = AGENT_INTERRUPTED)};
    static const struct agent_event part[] = {
        EVENT(AGENT_TEXT, 20, .id = LIT("b"), .text = LIT("a"), .mode = AGENT_APPEND)};
    static const struct agent_event more[] = {
        EVENT(AGENT_TEXT, 40, .id = LIT("b"), .text = LIT("b"), .mode = AGENT_APPEND),
        EVENT(AGENT_NOTICE, 50, .text = LIT("2"))};
    SEND(end);
    put_user("s", 0, MSG_SENT);
    put_user("q", 0, MSG_QUEUED);
    SEND(part);
    check_order("1saq");
    put_user("s", 30, MSG_DELIVERED);
    check_order("1saq");
    SEND(more);
    check_order("1sab2q");
}

/* An echo that comes while its answer is being written stands before the answer. */
static void test_late_echo(void **state)
{
    (void)state;
    static const struct agent_event first[] = {
        EVENT(AGENT_TEXT, 10, .id = LIT("b1"), .text = LIT("old."), .mode = AGENT_REPLACE,
              .final = true),
        EVENT(AGENT_TURN_END, 20, .outcome = AGENT_OK),
        EVENT(AGENT_TEXT, 30, .id = LIT("b2"), .text = LIT("he"), .mode = AGENT_APPEND),
        EVENT(AGENT_TEXT, 40, .id = LIT("b2"), .text = LIT("llo"), .mode = AGENT_APPEND),
    };
    static const struct agent_event rest[] = {
        EVENT(AGENT_USER_ECHO, 50, .text = LIT("q")),
        EVENT(AGENT_TEXT, 60, .id = LIT("b2"), .text = LIT("hello."), .mode = AGENT_REPLACE,
              .final = true),
        EVENT(AGENT_TURN_END, 70, .outcome = AGENT_OK),
    };
    char *want = xasprintf("1|claude||old.|0;6||||0;%d|you||q|%d;1|claude||hello.|0;6||||0;",
                           ITEM_USER, MSG_DELIVERED);
    SEND(first);
    for (int i = 0; i < 2; i++) { /* and so it stays when it is read again */
        SEND(rest);
        check_shown(want);
    }
    free(want);
}

/* Blocks are found by id wherever late and older ones moved them. */
static void test_found_by_id(void **state)
{
    (void)state;
    char id[16], text[16];
    for (uint64_t i = 0; i < 300; i++) {
        uint64_t place = i < 200 ? i * 2 + 1000 : (i - 200) * 2 + 1001; /* the last are late */
        struct agent_event e = EVENT(AGENT_TEXT, place, .id = id, .text = text);
        snprintf(id, sizeof(id), "b%d", (int)place);
        snprintf(text, sizeof(text), "%d.", (int)place);
        send(&e, 1, false, false);
        struct agent_event more = EVENT(AGENT_TEXT, 5000 + i, .id = id, .text = LIT("+"));
        send(&more, 1, false, false);
    }
    struct agent_event old = EVENT(AGENT_TEXT, 1, .id = LIT("b1"), .text = LIT("1."));
    send(&old, 1, true, false);
    const struct transcript *t = model_transcript(m, 1);
    assert_int_equal(t->n, 301);
    for (size_t i = 1; i < t->n; i++) {
        struct agent_event e = EVENT(AGENT_TEXT, 9000 + i, .id = id, .text = LIT("!"));
        snprintf(id, sizeof(id), "b%d", (int)t->v[i].offset);
        send(&e, 1, false, false);
        snprintf(text, sizeof(text), "%d.+!", (int)t->v[i].offset);
        assert_string_equal(t->v[i].text, text);
        assert_true(t->v[i].offset > t->v[i - 1].offset);
    }
    assert_int_equal(t->n, 301);
}

static void test_bounded(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20, MAX = 16 << 20 };
    char *text = xcalloc(1, SIZE + 1);
    memset(text, 'x', SIZE);
    for (uint64_t i = 0; i < 40; i++) {
        struct agent_event e = EVENT(AGENT_RAW, 1000 + i, .text = text, .final = true);
        send(&e, 1, false, false);
        assert_true(model_transcript(m, 1)->bytes <= MAX);
    }
    const struct transcript *t = model_transcript(m, 1);
    assert_true(t->base > 20 && t->more_before && t->base + t->n == 40);
    assert_int_equal(t->v[t->n - 1].offset, 1039);
    size_t held = t->n;
    for (uint64_t i = 0; i < 5; i++) { /* older ones push the newest out, not over the limit */
        struct agent_event e = EVENT(AGENT_RAW, 500 - i, .text = text, .final = true);
        send(&e, 1, true, false);
        assert_true(t->bytes <= MAX);
    }
    assert_true(t->more_after && t->n <= held + 1);
    assert_int_equal(t->v[0].offset, 496);
    for (size_t i = 6; i < t->n; i++)
        assert_int_equal(t->v[i].offset, t->v[i - 1].offset + 1);
    size_t sum = 0;
    for (size_t i = 0; i < t->n; i++)
        sum += t->v[i].text_len;
    assert_in_range(t->bytes, sum, sum + t->n * 1000);
    free(text);
}

int main(void)
{
    thread_set_role(THREAD_MAIN);
#define M(f) cmocka_unit_test_setup_teardown(f, new_model, drop_model)
    const struct CMUnitTest tests[] = {
        M(test_turn), M(test_raw_lines), M(test_skip), M(test_skip_at_begin), M(test_window),
        M(test_prepend), M(test_order), M(test_unshown), M(test_waiting_messages),
        M(test_waiting_below_an_answer), M(test_taken_in_out_of_sight),
        M(test_answer_of_sent), M(test_late_echo), M(test_found_by_id), M(test_bounded),
    };
    return cmocka_run_group_tests_name("transcript", tests, NULL, NULL);
}
