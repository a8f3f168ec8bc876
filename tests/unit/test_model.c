/* model: the provider's list against our rows, transcripts, what agents' events become,
 * rows applied, prices. */
#include <cct/model/model.h>
#include <cct/model/tbuild.h>
#include <cct/model/reconcile.h>
#include <cct/model/transcribe.h>
#include <cct/text/clean.h>
#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

#define LIT(s) ((char *)(s)) /* borrowed: never freed through these */

/* --- reconcile ------------------------------------------------------------------------- */

static struct sandbox_table rows;
static int n_told, n_new;

static void told(void *ctx, struct sandbox *row, bool is_new)
{
    (void)ctx;
    (void)row;
    n_told++;
    n_new += is_new;
}

static int clear_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < rows.n; i++)
        sandbox_release(&rows.v[i]);
    ARR_RELEASE(&rows);
    return 0;
}

static struct sandbox *add_row(const char *id, enum sb_state st)
{
    struct sandbox *s = ARR_PUSH(&rows);
    s->sandbox_id = xstrdup(id);
    s->session = xstrdup("s");
    s->state = st;
    s->started_at = 1000;
    s->end_at = 900000;
    s->seen_at = 5000;
    s->vm_up = st == SB_ERROR;
    return s;
}

static struct listed entry(const char *id, const char *state)
{
    return (struct listed){.sandbox_id = id,
                           .state_text = state,
                           .started_at = 1000,
                           .end_at = 900000,
                           .cpu_count = 2,
                           .memory_mb = 1024};
}

/* Apply; how many rows were told of. */
static int apply(const struct listed *l, size_t n, int64_t now, bool suspicious)
{
    struct reconcile_opts o = {.now = now, .suspicious_empty = suspicious};
    n_told = n_new = 0;
    reconcile(&rows, l, n, &o, told, NULL);
    return n_told;
}

static void test_unknown_rows(void **state)
{
    (void)state;
    struct kv own[] = {{LIT("cc-tui-session"), LIT("s1")},
                       {LIT("cc-tui-name"), LIT("amber")},
                       {LIT("cc-tui-project"), LIT("p")},
                       {LIT("cc-tui-tool"), LIT("claude")},
                       {NULL, NULL}};
    struct listed l[] = {entry("a", "running"), entry("b", "paused"), entry("", "running"),
                         entry("a", "running")};
    l[1].meta = own;
    assert_int_equal(apply(l, 4, 2000, false), 2);
    assert_int_equal(n_new, 2);
    assert_int_equal(rows.n, 2);
    assert_true(rows.v[0].foreign && rows.v[0].agent == AG_NONE);
    assert_string_equal(rows.v[0].name, "a");
    assert_true(!rows.v[1].foreign && rows.v[1].state == SB_PAUSED);
    assert_string_equal(rows.v[1].name, "amber");
    assert_string_equal(rows.v[1].tool, "claude");
    assert_int_equal(rows.v[1].agent, AG_UNKNOWN);
    assert_int_equal(apply(l, 4, 3000, false), 0); /* nothing new: nobody is told */
    l[0].end_at = 950000;
    assert_int_equal(apply(l, 2, 4000, false), 1);
    assert_int_equal(rows.v[0].end_at, 950000);
}

static void test_absent(void **state)
{
    (void)state;
    add_row("early", SB_RUNNING);
    add_row("pause", SB_PAUSED);
    add_row("alien", SB_RUNNING)->foreign = true;
    add_row("making", SB_CREATING);
    assert_int_equal(apply(NULL, 0, 6000, false), 3);
    for (int i = 0; i < 3; i++)
        assert_true(rows.v[i].unlisted && rows.v[i].state != SB_KILLED);
    assert_int_equal(apply(NULL, 0, 8000, false), 3);
    assert_int_equal(rows.v[0].gone, GONE_EARLY);
    assert_int_equal(rows.v[1].gone, GONE_ELSEWHERE);
    assert_int_equal(rows.v[2].gone, GONE_ELSEWHERE);
    assert_int_equal(rows.v[3].state, SB_CREATING);
    assert_int_equal(rows.v[0].state, SB_KILLED);
    assert_int_equal(rows.v[0].ended_at, 5000); /* the last sighting */
    assert_int_equal(apply(NULL, 0, 9000, false), 0);
    struct listed l = entry("early", "running"); /* it was a slip: it lives again */
    assert_int_equal(apply(&l, 1, 10000, false), 1);
    assert_true(rows.v[0].state == SB_RUNNING && rows.v[0].gone == GONE_NONE);
    assert_true(rows.v[0].ended_at == 0 && !rows.v[0].unlisted);
    assert_int_equal(apply(NULL, 0, 11000, false), 1); /* counts from one again */
    assert_int_equal(rows.v[0].state, SB_RUNNING);
    assert_int_equal(apply(&l, 1, 12000, false), 1);
    assert_false(rows.v[0].unlisted);
}

static void test_ends_known(void **state)
{
    (void)state;
    add_row("timeout", SB_RUNNING);
    add_row("ours", SB_RUNNING)->pending = true;
    add_row("paused", SB_PAUSED); /* its end is when it was paused: no timeout */
    assert_int_equal(apply(NULL, 0, 899000, false), 3);
    assert_int_equal(rows.v[0].gone, GONE_TIMEOUT);
    /* pages of a list shift while rows go: one absence is no proof for ours either */
    assert_true(rows.v[1].state == SB_RUNNING && rows.v[1].unlisted && rows.v[1].pending);
    assert_true(rows.v[2].state == SB_PAUSED && rows.v[2].unlisted);
    reconcile_gone(&rows.v[2], GONE_HERE, 899500);
    assert_true(rows.v[2].state == SB_KILLED && rows.v[2].ended_at == 899500);
    add_row("late", SB_RUNNING);
    assert_int_equal(apply(NULL, 0, 950000, false), 2);
    assert_int_equal(rows.v[1].gone, GONE_HERE);
    assert_false(rows.v[1].pending);
    assert_int_equal(rows.v[3].ended_at, 900000); /* it ran until its planned end */
}

static void test_suspicious_list(void **state)
{
    (void)state;
    add_row("a", SB_RUNNING);
    add_row("b", SB_RUNNING)->pending = true;
    for (int i = 0; i < 4; i++)
        apply(NULL, 0, 1000000 + i, true); /* an empty list that cannot be: decides nothing */
    for (int i = 0; i < 2; i++)
        assert_true(rows.v[i].state == SB_RUNNING && rows.v[i].unlisted);
    apply(NULL, 0, 1000010, false);
    assert_int_equal(rows.v[0].gone, GONE_TIMEOUT);
}

static void test_lost_create(void **state)
{
    (void)state;
    struct kv meta[] = {
        {LIT("cc-tui-mark"), LIT("mk")}, {LIT("cc-tui-session"), LIT("s")}, {NULL, NULL}};
    struct sandbox *s = ARR_PUSH(&rows);
    s->mark = xstrdup("mk");
    s->state = SB_CREATING;
    s->agent = AG_STARTING;
    struct listed l = entry("found", "running");
    l.meta = meta;
    assert_int_equal(apply(&l, 1, 2000, false), 1);
    assert_int_equal(n_new, 0);
    assert_string_equal(rows.v[0].sandbox_id, "found");
    assert_int_equal(rows.v[0].state, SB_RUNNING);
    /* while its provisioning is at work, that says when it runs */
    s = ARR_PUSH(&rows);
    s->mark = xstrdup("mk2");
    s->state = SB_CREATING;
    s->pending = true;
    meta[0].v = LIT("mk2");
    l.sandbox_id = "second";
    struct listed both[] = {entry("found", "running"), l};
    apply(both, 2, 3000, false);
    assert_string_equal(rows.v[1].sandbox_id, "second");
    assert_int_equal(rows.v[1].state, SB_CREATING);
    assert_int_equal(rows.n, 2);
}

/* Words that are neither running nor paused: kept as they are, and the row is alive. */
static void test_odd_states(void **state)
{
    static const char *const words[] = {"pausing", "snapshotting", "resuming", "", NULL, "7"};
    static const char *const shown[] = {"pausing", "snapshotting", "resuming", "?", "?", "7"};
    (void)state;
    add_row("a", SB_RUNNING);
    struct sandbox *s = add_row("err", SB_ERROR);
    s->reason = xstrdup("the agent failed");
    struct listed l[] = {entry("a", "hibernating"), entry("err", "running")};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        l[0].state_text = words[i];
        apply(l, 2, 6000, false);
        assert_int_equal(rows.v[0].state, SB_RUNNING);
        assert_string_equal(rows.v[0].odd, shown[i]);
        assert_null(rows.v[0].reason);
    }
    assert_true(rows.v[1].state == SB_ERROR && rows.v[1].vm_up);
    assert_string_equal(rows.v[1].reason, "the agent failed");
    l[0].state_text = "running";
    assert_true(apply(l, 1, 7000, false) > 0);
    assert_null(rows.v[0].odd);
    apply(l, 1, 8000, false); /* the error's VM is gone, its text stays */
    assert_true(rows.v[1].state == SB_ERROR && !rows.v[1].vm_up);
    assert_string_equal(rows.v[1].reason, "the agent failed");
    assert_int_equal(apply(l, 1, 9000, false), 0);
}

/* Gone with time ahead is never called a timeout; run time ends at the last sighting. */
static void test_gone_early(void **state)
{
    (void)state;
    struct sandbox *s = add_row("early", SB_RUNNING);
    s->seen_at = 630000; /* 270 s before its end */
    apply(NULL, 0, 631000, false);
    apply(NULL, 0, 634000, false);
    assert_int_equal(rows.v[0].gone, GONE_EARLY);
    assert_int_equal(rows.v[0].ended_at, 630000);
    assert_int_equal(rows.v[0].end_at, 900000);
    for (int g = GONE_HERE; g <= GONE_EARLY; g++)
        assert_true((strstr(sb_gone_text((enum sb_gone)g), "time") != NULL) == (g == GONE_TIMEOUT));
}

/* A clock of this machine that is minutes ahead ends nobody's time. */
static void test_clock_unknown(void **state)
{
    struct reconcile_opts o = {.now = 900000 + 600000, .time_unknown = true};
    (void)state;
    add_row("a", SB_RUNNING);
    reconcile(&rows, NULL, 0, &o, told, NULL);
    assert_true(rows.v[0].state == SB_RUNNING && rows.v[0].unlisted);
    reconcile(&rows, NULL, 0, &o, told, NULL);
    assert_int_equal(rows.v[0].gone, GONE_ELSEWHERE); /* nor does it say that it was early */
    o.now = 600000;
    assert_int_equal(reconcile_why(&rows.v[0], &o), GONE_EARLY);
    o.now = 900000;
    o.time_unknown = false;
    assert_int_equal(reconcile_why(&rows.v[0], &o), GONE_TIMEOUT);
}

/* Two seconds are as near as the service's time is known: on this side of them it was early,
 * on that side its time was up, whether the list came before or after the very end. */
static void test_end_is_near(void **state)
{
    static const struct {
        int64_t left;
        enum sb_gone gone;
    } at[] = {{-600000, GONE_TIMEOUT}, {-6, GONE_TIMEOUT}, {0, GONE_TIMEOUT},
              {1999, GONE_TIMEOUT},    {2000, GONE_TIMEOUT}, {2001, GONE_EARLY},
              {60000, GONE_EARLY}};
    (void)state;
    add_row("a", SB_RUNNING);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        struct reconcile_opts o = {.now = rows.v[0].end_at - at[i].left};
        assert_int_equal(reconcile_why(&rows.v[0], &o), at[i].gone);
    }
}

/* Its time was being set when it vanished: that is no kill of ours. */
static void test_gone_while_changed(void **state)
{
    (void)state;
    struct sandbox *s = add_row("a", SB_RUNNING);
    s->pending = s->changing = true;
    apply(NULL, 0, 6000, false);
    apply(NULL, 0, 8000, false);
    assert_int_equal(rows.v[0].gone, GONE_EARLY);
    assert_false(rows.v[0].pending || rows.v[0].changing);
}

/* Lists lack it, its id answers: it is not gone, and is looked up again a minute later. */
static void test_vouched(void **state)
{
    (void)state;
    add_row("a", SB_RUNNING);
    apply(NULL, 0, 6000, false);
    struct listed l = entry("a", "paused");
    reconcile_vouch(&rows.v[0], &l, 7000);
    assert_true(rows.v[0].unlisted && rows.v[0].state == SB_PAUSED);
    for (int64_t now = 8000; now < 67000; now += 3000)
        assert_int_equal(apply(NULL, 0, now, false), 0);
    assert_int_equal(apply(NULL, 0, 68000, false), 1);
    assert_true(rows.v[0].unlisted && !rows.v[0].vouched_at);
    apply(NULL, 0, 71000, false);
    assert_int_equal(rows.v[0].state, SB_KILLED);
    l.state_text = "running";
    assert_int_equal(apply(&l, 1, 80000, false), 1);
    assert_false(rows.v[0].unlisted);
}

/* The service's clock goes on by itself, whatever is done to the one of this machine. */
static void test_service_clock(void **state)
{
    struct server_clock c = {.server_ms = 5000000, .boot_ms = 1000};
    (void)state;
    assert_int_equal(server_clock_at(&c, 4000, 0), 5003000);
    assert_int_equal(server_clock_at(&c, 4000, 86400000), 5003000);
    c.server_ms = 0;
    assert_int_equal(server_clock_at(&c, 4000, 77), 77);
}

/* --- transcript -------------------------------------------------------------------------- */

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

/* --- transcribe -------------------------------------------------------------------------- */

static void test_cleaned(void **state)
{
    (void)state;
    static const struct agent_event evil[] = {
        EVENT(AGENT_TEXT, 1, .id = LIT("b"),
              .text = LIT("a\033]52;c;x\007b\033[31mc\033[0m\nd"), .mode = AGENT_REPLACE,
              .final = true),
        EVENT(AGENT_TOOL, 2, .id = LIT("t"), .name = LIT("B\033[2Jx"), .title = LIT("a\nb"),
              .input = LIT("{\"a\":\"\033[H\"}"),
              .output = LIT("\xC2\x9B"
                            "31mz"),
              .state = AGENT_TOOL_OK),
    };
    SEND(evil);
    const struct transcript *t = model_transcript(m, 1);
    assert_string_equal(t->v[0].text, "abc\nd");
    assert_true(t->v[0].n_runs > 0 && t->v[0].runs[0].at == 2);
    assert_null(strchr(t->v[1].who, '\033'));
    assert_string_equal(t->v[1].title, "a b");
    assert_string_equal(t->v[1].text, "z");
    assert_null(strchr(t->v[1].input, '\033'));
}

static void check_line(const struct agent_event *e, const char *want)
{
    char *s = transcribe_last_line(e);
    if (want)
        assert_string_equal(s, want);
    else
        assert_null(s);
    free(s);
}

static void test_agent_state(void **state)
{
    (void)state;
    static const struct {
        struct agent_event e;
        enum sb_agent want;
    } steps[] = {
        {EVENT(AGENT_SESSION, 0), AG_STARTING},
        {EVENT(AGENT_TURN_BEGIN, 1), AG_WORKING},
        {EVENT(AGENT_ASK, 2), AG_ASKS},
        {EVENT(AGENT_TEXT, 3), AG_WORKING},
        {EVENT(AGENT_USAGE, 3), AG_WORKING},
        {EVENT(AGENT_TURN_END, 4, .outcome = AGENT_FAILED), AG_IDLE},
        {EVENT(AGENT_TEXT, 4), AG_IDLE}, /* a late line of the turn that ended */
        {EVENT(AGENT_USER_ECHO, 5), AG_WORKING},
        {EVENT(AGENT_EXIT, 6), AG_FAILED}, /* status not known */
    };
    enum sb_agent a = AG_STARTING;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        enum sb_agent before = a;
        assert_int_equal(transcribe_agent_state(&steps[i].e, &a), before != steps[i].want);
        assert_int_equal(a, steps[i].want);
    }
    struct agent_event e = EVENT(AGENT_EXIT, 7);
    e.exit_code = 0;
    assert_true(transcribe_agent_state(&e, &a) && a == AG_EXITED);
    e.signal = 9;
    assert_true(transcribe_agent_state(&e, &a) && a == AG_FAILED);
}

static void test_last_line(void **state)
{
    (void)state;
    struct agent_event e =
        EVENT(AGENT_TEXT, 1, .text = LIT("one\n  two \033[1m \n \n"), .mode = AGENT_REPLACE);
    check_line(&e, "  two");
    e.mode = AGENT_APPEND; /* a piece is no line */
    check_line(&e, NULL);
    e = EVENT(AGENT_RAW, 1, .text = LIT("\n \n"));
    check_line(&e, NULL);
    e = EVENT(AGENT_TOOL, 1, .title = LIT("make\ttest"));
    check_line(&e, "make test");
    e.output = LIT("a\nlast");
    check_line(&e, "last");
    e = EVENT(AGENT_ASK, 1, .name = LIT("Bash"));
    check_line(&e, "use Bash?");
    e = EVENT(AGENT_TURN_END, 1, .text = LIT("answer"), .outcome = AGENT_OK);
    check_line(&e, NULL);
    e = EVENT(AGENT_USAGE, 1);
    check_line(&e, NULL);
}

/* --- the model -----------------------------------------------------------------------------
 */

static void send_rows(const uint64_t *ids, size_t n, bool full, enum sb_state st)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    ev->v = xcalloc(n + 1, sizeof(*ev->v));
    for (ev->n = 0; ev->n < n; ev->n++) {
        struct sandbox *s = &ev->v[ev->n];
        s->id = ids[ev->n];
        s->name = xasprintf("n%d", (int)s->id);
        s->state = st;
        s->agent = s->id % 2 ? AG_IDLE : AG_ASKS;
        s->usd_per_s = 0.0001;
    }
    ev->full = full;
    model_apply(m, &ev->m);
    msg_free(&ev->m);
}

static void test_rows(void **state)
{
    (void)state;
    size_t by[SB_STATE_COUNT], asks, working, idle;
    send_rows((uint64_t[]){1, 2, 3}, 3, true, SB_RUNNING);
    SEND(turn);
    assert_int_equal(m->n_sandboxes, 3);
    assert_non_null(model_transcript(m, 1));
    uint64_t rev = m->rev, row_rev = model_sandbox(m, 2)->rev;
    send_rows((uint64_t[]){2, 7}, 2, false, SB_PAUSED);
    assert_int_equal(m->n_sandboxes, 4);
    assert_true(m->rev > rev && model_sandbox(m, 2)->rev > row_rev);
    assert_int_equal(model_sandbox(m, 2)->state, SB_PAUSED);
    model_counts(m, by, &asks, &working, &idle);
    assert_true(by[SB_RUNNING] == 2 && by[SB_PAUSED] == 2);
    assert_true(asks == 0 && idle == 2 && working == 0);
    send_rows((uint64_t[]){3, 7}, 2, true, SB_RUNNING); /* the others were forgotten */
    assert_int_equal(m->n_sandboxes, 2);
    assert_null(model_sandbox(m, 1));
    assert_null(model_transcript(m, 1));
    assert_string_equal(model_sandbox(m, 7)->name, "n7");
    send_rows(NULL, 0, true, SB_RUNNING);
    assert_int_equal(m->n_sandboxes, 0);
}

static void test_messages(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++)
        for (uint64_t id = 1; id <= 2100; id++) {
            struct ev_message *ev = ev_new(EV_MESSAGE);
            ev->msg.id = id;
            ev->msg.text = xstrdup("x");
            ev->msg.state = round ? MSG_SENT : MSG_QUEUED;
            if (round == 0 || id > 100) {
                model_apply(m, &ev->m);
            }
            msg_free(&ev->m);
        }
    assert_int_equal(m->n_messages, 2000);
    assert_int_equal(m->messages[0].id, 101);
    assert_int_equal(m->messages[0].state, MSG_SENT);
    for (int i = 0; i < 600; i++) {
        struct ev_event *ev = ev_new(EV_EVENT);
        ev->text = xasprintf("%d", i);
        model_apply(m, &ev->m);
        msg_free(&ev->m);
    }
    assert_int_equal(m->n_events, 500);
    assert_string_equal(m->events[499].text, "599");
}

static void test_price(void **state)
{
    (void)state;
    struct sandbox s = {.state = SB_RUNNING, .usd_per_s = 0.0001};
    double usd = 0.36;
    size_t unpriced;
    assert_true(sandbox_usd_per_hour(&s) > usd - 1e-9 && sandbox_usd_per_hour(&s) < usd + 1e-9);
    s.state = SB_PAUSED;
    assert_true(sandbox_usd_per_hour(&s) == 0);
    s.state = SB_ERROR;
    assert_true(sandbox_usd_per_hour(&s) == 0);
    s.vm_up = true;
    assert_true(sandbox_usd_per_hour(&s) > 0);
    send_rows((uint64_t[]){1, 2}, 2, true, SB_RUNNING);
    assert_true(model_usd_per_hour(m, &unpriced) > 2 * usd - 1e-9);
    assert_int_equal(unpriced, 0);
    s.usd_per_s = (double)NAN;
    assert_true(sandbox_usd_per_hour(&s) == 0 && sandbox_is_unpriced(&s));
}

/* A build that ended here before the service began it waits there for ever. */
static void test_build_words(void **state)
{
    (void)state;
    assert_string_equal(tb_state_word("error", "waiting"), "error");
    assert_string_equal(tb_state_word("cancelled", "waiting"), "cancelled");
    assert_string_equal(tb_state_word("cancelled", "building"), "building");
    assert_string_equal(tb_state_word("error", "ready"), "ready");
    assert_string_equal(tb_state_word("uploading", "waiting"), "waiting");
    assert_string_equal(tb_state_word("nonsense", "waiting"), "waiting");
    assert_string_equal(tb_state_word(NULL, "waiting"), "waiting");
    assert_string_equal(tb_state_word("preparing", NULL), "preparing");
    assert_null(tb_state_word(NULL, NULL));
}

int main(void)
{
    thread_set_role(THREAD_MAIN);
#define R(f) cmocka_unit_test_setup_teardown(f, clear_rows, clear_rows)
#define M(f) cmocka_unit_test_setup_teardown(f, new_model, drop_model)
    const struct CMUnitTest tests[] = {
        R(test_unknown_rows),
        R(test_absent),
        R(test_ends_known),
        R(test_suspicious_list),
        R(test_lost_create),
        R(test_odd_states),      R(test_gone_early),
        R(test_clock_unknown),   R(test_end_is_near),      R(test_gone_while_changed),
        R(test_vouched),         cmocka_unit_test(test_service_clock),
        M(test_turn),
        M(test_raw_lines),
        M(test_skip),
        M(test_skip_at_begin),
        M(test_window),
        M(test_prepend),
        M(test_order),
        M(test_bounded),
        M(test_cleaned),
        M(test_agent_state),
        M(test_last_line),
        M(test_rows),
        M(test_messages),
        M(test_price),
        M(test_found_by_id),
        M(test_waiting_messages),
        M(test_late_echo),
        M(test_answer_of_sent),
        cmocka_unit_test(test_build_words), M(test_unshown),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
