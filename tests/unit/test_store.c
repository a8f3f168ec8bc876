/* store: every field comes back as it went in, appends trim, refuse and dedupe, claims
 * and leases, retention. */
#include "../lib/storebox.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* keep last */
#include <cmocka.h>

#define LIT(s) ((char *)(s)) /* the store only reads it */

static struct storebox b;
static char *dir;

static int set_up(void **state)
{
    (void)state;
    storebox_fresh(&b, &dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    storebox_end(&b, dir);
    return 0;
}

static void test_sandbox_fields(void **state)
{
    (void)state;
    struct kv meta[] = {
        {LIT("a"), LIT("1")}, {LIT("b \"x\""), LIT("line\nbreak")}, {NULL, NULL}};
    struct sandbox in = {.sandbox_id = LIT("i1"),
                         .session = LIT("s1"),
                         .name = LIT("na\"me"),
                         .tool = LIT("claude"),
                         .project = LIT("p'; DROP TABLE sandboxes; --"),
                         .template_id = LIT("t"),
                         .alias = LIT("al"),
                         .branch = LIT("agent/x"),
                         .mark = LIT("m1"),
                         .tags = LIT("wip ui"),
                         .state = SB_ERROR,
                         .gone = GONE_EARLY,
                         .agent = AG_ASKS,
                         .reason = LIT("two\nlines"),
                         .foreign = true,
                         .vm_up = true,
                         .unlisted = true,
                         .not_isolated = true,
                         .protect = true,
                         .pending = true,
                         .started_at = 11,
                         .end_at = INT64_C(4102444800000),
                         .ended_at = 13,
                         .seen_at = 14,
                         .created_at = 15,
                         .agent_since = 16,
                         .cpu_count = 4,
                         .memory_mb = 512,
                         .disk_mb = 1024,
                         .meta = meta,
                         .last_line = LIT("\xE2\x94\x82 last"),
                         .cost_usd = 0.1,
                         .tokens_in = INT64_C(1) << 60,
                         .tokens_out = 7};
    struct sandbox empty = {.state = SB_CREATING, .cost_usd = (double)NAN, .mark = LIT("m2")};
    store_put_sandbox(b.s, &in, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->n_sandboxes, 1);
    assert_true(r->sandboxes[0].id > 0);
    msg_free(&r->m);
    store_put_sandbox(b.s, &empty, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    storebox_again(&b, dir);
    store_sandboxes(b.s, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_sandboxes, 2);
    struct sandbox *o = &r->sandboxes[0];
#define SAME_TEXT(f) assert_string_equal(o->f, in.f)
#define SAME(f) assert_true(o->f == in.f)
    SAME_TEXT(sandbox_id), SAME_TEXT(session), SAME_TEXT(name), SAME_TEXT(tool);
    SAME_TEXT(project), SAME_TEXT(template_id), SAME_TEXT(alias), SAME_TEXT(mark), SAME_TEXT(branch);
    SAME_TEXT(tags);
    SAME_TEXT(reason), SAME_TEXT(last_line);
    SAME(state), SAME(gone), SAME(agent), SAME(foreign), SAME(vm_up), SAME(unlisted);
    SAME(not_isolated), SAME(protect), SAME(pending), SAME(started_at), SAME(end_at);
    SAME(ended_at), SAME(seen_at), SAME(created_at), SAME(agent_since), SAME(cpu_count);
    SAME(memory_mb), SAME(disk_mb), SAME(cost_usd), SAME(tokens_in), SAME(tokens_out);
    assert_string_equal(o->meta[1].k, "b \"x\"");
    assert_string_equal(o->meta[1].v, "line\nbreak");
    assert_null(o->meta[2].k);
    o = &r->sandboxes[1];
    assert_null(o->sandbox_id), assert_null(o->name), assert_null(o->meta);
    assert_true(isnan(o->cost_usd));
    uint64_t id = o->id;
    msg_free(&r->m);
    /* an update changes that row */
    empty.id = id;
    empty.sandbox_id = LIT("i2");
    empty.state = SB_KILLED;
    store_put_sandbox(b.s, &empty, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->sandboxes[0].state, SB_KILLED);
    assert_string_equal(r->sandboxes[0].sandbox_id, "i2");
    msg_free(&r->m);
    empty.id = 999;
    store_put_sandbox(b.s, &empty, storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    empty.id = id;
    empty.sandbox_id = LIT("i1");
    store_put_sandbox(b.s, &empty, storebox_to(&b));
    storebox_says(&b, ERR_CONFLICT);
}

/* Seen first by two instances at once it is still one row; what it holds stays. */
static void test_sandbox_once(void **state)
{
    (void)state;
    struct sandbox own = {.mark = LIT("mk"), .name = LIT("mine"), .state = SB_CREATING};
    store_put_sandbox(b.s, &own, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    uint64_t id = r->sandboxes[0].id;
    msg_free(&r->m);
    struct sandbox seen = {
        .mark = LIT("mk"), .name = LIT("other"), .sandbox_id = LIT("i9"), .state = SB_RUNNING};
    for (int i = 0; i < 2; i++) {
        store_put_sandbox(b.s, &seen, storebox_to(&b));
        r = storebox_ok(&b);
        assert_true(r->sandboxes[0].id == id);
        assert_string_equal(r->sandboxes[0].name, "mine");
        assert_string_equal(r->sandboxes[0].sandbox_id, "i9");
        msg_free(&r->m);
    }
    store_sandboxes(b.s, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_sandboxes, 1);
    msg_free(&r->m);
}

static void test_messages(void **state)
{
    (void)state;
    uint64_t sb = storebox_sandbox(&b, "i1"), other = storebox_sandbox(&b, "i2");
    store_message_add(b.s, sb, "first\nsecond line\t\"quoted\"", storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    uint64_t first = r->msg.id;
    assert_int_equal(r->m.type, ST_MESSAGE);
    assert_string_equal(r->msg.text, "first\nsecond line\t\"quoted\"");
    assert_int_equal(strlen(r->msg.key), 16);
    assert_int_equal(r->msg.state, MSG_QUEUED);
    assert_true(r->msg.sandbox == sb && r->msg.created_at > 0);
    msg_free(&r->m);
    store_message_add(b.s, sb, "", storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    store_message_add(b.s, other, "elsewhere", storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    store_message_add(b.s, 4711, "nobody", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);

    store_message_claim(b.s, sb, "a", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got && r->msg.id == first);
    msg_free(&r->m);
    store_message_claim(b.s, sb, "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(!r->got && r->msg.id == 0);
    msg_free(&r->m);
    /* given back by its owner alone, it is free at once */
    store_message_unclaim(b.s, sb, "b");
    store_message_claim(b.s, sb, "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_false(r->got);
    msg_free(&r->m);
    store_message_unclaim(b.s, sb, "a");
    store_message_claim(b.s, sb, "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got && r->msg.id == first);
    msg_free(&r->m);
    /* claimed: it can no longer be called off; its owner may claim again */
    store_message_state(b.s, first, MSG_QUEUED, MSG_CANCELLED, NULL, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(!r->got && r->msg.state == MSG_QUEUED);
    msg_free(&r->m);
    store_message_state(b.s, first, MSG_QUEUED, MSG_SENT, NULL, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got && r->msg.state == MSG_SENT && r->msg.sent_at > 0);
    msg_free(&r->m);
    /* one is on its way: the next one waits */
    store_message_claim(b.s, sb, "a", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_false(r->got);
    msg_free(&r->m);
    store_message_state(b.s, first, MSG_QUEUED, MSG_FAILED, "x", storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(!r->got && r->msg.state == MSG_SENT && !r->msg.error);
    msg_free(&r->m);
    store_message_state(b.s, first, MSG_SENT, MSG_FAILED, "refused", storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got);
    assert_string_equal(r->msg.error, "refused");
    msg_free(&r->m);
    store_message_state(b.s, 4711, MSG_SENT, MSG_FAILED, "", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    store_message_claim(b.s, sb, "a", 1, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got && r->msg.id > first);
    assert_string_equal(r->msg.text, "");
    int64_t until = clock_wall_ms() + 2;
    msg_free(&r->m);
    while (clock_wall_ms() < until)
        usleep(500);
    store_message_claim(b.s, sb, "b", 60000, storebox_to(&b)); /* the claim ran out */
    r = storebox_ok(&b);
    assert_true(r->got);
    msg_free(&r->m);

    store_messages(b.s, sb, 1, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_messages, 1);
    assert_string_equal(r->messages[0].text, "");
    msg_free(&r->m);
    store_messages(b.s, 0, 100, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_messages, 3);
    assert_true(r->messages[0].id == first);
    msg_free(&r->m);
    char *long_text = xcalloc(1, (64 << 10) + 2);
    memset(long_text, 'x', (64 << 10) + 1);
    store_message_add(b.s, sb, long_text, storebox_to(&b));
    storebox_says(&b, ERR_LIMIT);
    free(long_text);
}

static void check_append(uint64_t run, uint64_t offset, const char *text, int code,
                         uint64_t stored)
{
    storebox_append(&b, run, offset, text, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    if (r->err.code != code || r->stored != stored)
        fail_msg("append at %d: code %d stored %d: %s", (int)offset, r->err.code,
                 (int)r->stored, r->err.text);
    assert_int_equal(r->m.type, ST_APPENDED);
    msg_free(&r->m);
}

static void check_raw(uint64_t run, uint64_t offset, size_t max, const char *want)
{
    store_raw(b.s, run, offset, max, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->raw_len, strlen(want));
    if (*want)
        assert_memory_equal(r->raw, want, r->raw_len);
    msg_free(&r->m);
}

static void test_append(void **state)
{
    (void)state;
    uint64_t sb = storebox_sandbox(&b, "i1"), run = storebox_run(&b, sb, "s");
    check_append(run, 0, "abcdef", 0, 6);
    check_append(run, 6, "ghi", 0, 9);
    check_append(run, 3, "defghijk", 0, 11); /* overlap: only the tail is new */
    check_append(run, 0, "abc", 0, 11);      /* all known */
    check_append(run, 12, "x", ERR_CONFLICT, 11);
    check_append(run + 1, 0, "x", ERR_NOTFOUND, 0);
    check_append(run, 11, "", 0, 11); /* an event without bytes: the exit */
    check_raw(run, 0, 100, "abcdefghijk");
    check_raw(run, 4, 3, "efg");
    check_raw(run, 11, 100, "");
    store_run_open(b.s, sb, "s", 1, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_true(r->run.id == run && r->run.stored == 11 && r->run.turn_offset == 11);
    assert_true(!r->run.ended && r->run.exit_code == -1);
    assert_string_equal(r->run.session, "s");
    msg_free(&r->m);
    store_run_open(b.s, sb, "s", 2, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->run.id != run && r->run.epoch == 2 && r->run.stored == 0);
    msg_free(&r->m);
    store_run_open(b.s, 4711, "s", 1, storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    store_run_end(b.s, run, 143, 15, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->run.ended && r->run.exit_code == 143 && r->run.exit_signal == 15);
    msg_free(&r->m);
    store_run_end(b.s, 4711, 0, 0, storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
}

static void test_big_bytes(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    size_t n = 1 << 20;
    char *keep = xmalloc(n);
    rand_bytes(keep, n); /* NULs and all */
    for (uint64_t i = 0; i < 3; i++) {
        struct st_append a = {.run = run, .offset = i * n, .raw = xmalloc(n), .len = n};
        memcpy(a.raw, keep, n);
        store_append(b.s, &a, storebox_to(&b));
        assert_null(a.raw);
    }
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->stored, 3 * n);
    msg_free(&r->m);
    storebox_again(&b, dir);
    store_raw(b.s, run, n / 2, 2 * n, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->raw_len, 2 * n);
    assert_memory_equal(r->raw, keep + n / 2, n / 2);
    assert_memory_equal(r->raw + n / 2, keep, n);
    msg_free(&r->m);
    free(keep);
}

static void check_events(uint64_t run, uint64_t offset, bool before, size_t limit,
                         uint64_t first, size_t n, bool more)
{
    store_events(b.s, run, offset, 0, before, limit, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->n_events, n);
    assert_int_equal(r->more_before, more);
    for (size_t i = 0; i < n; i++) {
        char want[40];
        snprintf(want, sizeof(want), "{\"line\":%d}", (int)(first + 2 * i));
        assert_int_equal(r->events[i].offset, first + 2 * i);
        assert_string_equal(r->events[i].json, want);
        assert_int_equal(r->events[i].len, strlen(want));
    }
    msg_free(&r->m);
}

static void test_events(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    for (uint64_t i = 0; i < 300; i++) /* more than a batch, no waiting in between */
        storebox_append(&b, run, i * 2, "a\n", storebox_to(&b));
    for (uint64_t i = 0; i < 300; i += 7) /* said again: nothing changes */
        storebox_append(&b, run, i * 2, "a\n", storebox_to(&b));
    check_events(run, 0, false, 1000, 0, 300, false);
    check_events(run, 100, false, 5, 100, 5, true);
    check_events(run, 100, true, 5, 90, 5, true);
    check_events(run, 10, true, 5, 0, 5, false);
    check_events(run, 0, true, 5, 0, 0, false);
    check_events(run, UINT64_MAX, true, 3, 594, 3, true);
}

/* Lines [from, from + n) of two bytes, an event for each, their JSON in one block; the event
 * of line `twice` comes twice, that of `late` behind its successor (0: none). */
static void put_block(uint64_t run, uint64_t from, size_t n, size_t twice, size_t late)
{
    struct buf raw = BUF_INIT, json = BUF_INIT;
    struct st_append a = {.run = run, .offset = 2 * from, .len = 2 * n};
    a.events = xcalloc(n + 1, sizeof(*a.events));
    for (size_t i = from; i < from + n; i++)
        for (int times = i == twice && twice ? 2 : 1; times--; a.n_events++) {
            size_t at = json.len;
            buf_addf(&json, "{\"line\":%zu}", 2 * i);
            a.events[a.n_events].offset = 2 * i;
            a.events[a.n_events].len = json.len - at;
            buf_addc(&json, '\0');
        }
    for (size_t i = from; i < from + n; i++)
        buf_adds(&raw, "a\n");
    a.raw = buf_detach(&raw, NULL);
    a.json = buf_detach(&json, NULL);
    size_t at = 0;
    for (size_t i = 0; i < a.n_events; at += a.events[i++].len + 1)
        a.events[i].json = a.json + at;
    if (late) {
        struct st_event e = a.events[late - from];
        a.events[late - from] = a.events[late - from + 1];
        a.events[late - from + 1] = e;
    }
    store_append(b.s, &a, storebox_to(&b));
    assert_null(a.json);
    assert_null(a.events);
}

/* Many at once, some of which were stored, come twice or out of order: each is there once. */
static void test_many_events(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    uint64_t other = storebox_run(&b, storebox_sandbox(&b, "i2"), "s");
    put_block(run, 0, 100, 0, 0);
    storebox_says(&b, 0);
    check_events(run, 0, false, 1000, 0, 100, false);
    put_block(run, 50, 100, 0, 0); /* half of it is known */
    put_block(other, 0, 31, 0, 0); /* few */
    put_block(run, 0, 100, 0, 0);  /* all of it */
    storebox_says(&b, 0);
    check_events(run, 0, false, 1000, 0, 150, false);
    check_events(other, 0, false, 1000, 0, 31, false);
    put_block(run, 150, 200, 217, 0);
    put_block(run, 350, 200, 0, 377);
    put_block(run, 550, 33, 0, 0);
    storebox_says(&b, 0);
    check_events(run, 0, false, 1000, 0, 583, false);
    check_events(run, 200, true, 70, 60, 70, true);
    storebox_again(&b, dir);
    check_events(run, 0, false, 1000, 0, 583, false);
}

static void test_leases(void **state)
{
    (void)state;
    static const struct {
        const char *owner;
        bool got;
    } steps[] = {{"a", true}, {"b", false}, {"a", true}};
    for (size_t i = 0; i < 3; i++) {
        store_lease(b.s, "poll", steps[i].owner, 60000, storebox_to(&b));
        struct st_reply *r = storebox_ok(&b);
        assert_int_equal(r->got, steps[i].got);
        msg_free(&r->m);
    }
    store_lease_drop(b.s, "poll", "b"); /* not his */
    store_lease(b.s, "poll", "b", 60000, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_false(r->got);
    msg_free(&r->m);
    store_lease_drop(b.s, "poll", "a");
    store_lease(b.s, "poll", "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got);
    msg_free(&r->m);
}

/* A lease and a claim that end further ahead than they were given for are of before the clock was
 * set back: they hold nobody up. */
static void test_clock_set_back(void **state)
{
    (void)state;
    char *path = xasprintf("%s/cc-tui.db", dir);
    uint64_t sb = storebox_sandbox(&b, "i1");
    struct st_reply *r;

    store_lease(b.s, "poll", "a", 60000, storebox_to(&b));
    storebox_says(&b, 0);
    store_message_add(b.s, sb, "m", storebox_to(&b));
    storebox_says(&b, 0);
    store_message_claim(b.s, sb, "a", 60000, storebox_to(&b));
    storebox_says(&b, 0);
    storebox_sql(path, "UPDATE leases SET until=until+3600000;"
                       " UPDATE sandboxMessages SET claimUntil=claimUntil+3600000");
    store_lease(b.s, "poll", "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got);
    msg_free(&r->m);
    store_message_claim(b.s, sb, "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got);
    msg_free(&r->m);
    free(path);
}

static void test_intents_and_log(void **state)
{
    (void)state;
    store_intent_add(b.s, true, NULL, NULL, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    uint64_t id = r->intents[0].id;
    msg_free(&r->m);
    store_intent_add(b.s, false, "p", "mark", storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    store_log_add(b.s, 2, 7, "went\nwrong");
    store_log_add(b.s, 0, 0, "fine");
    storebox_again(&b, dir);
    store_intents(b.s, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_intents, 2);
    assert_true(r->intents[0].account && !r->intents[0].project && !r->intents[0].target);
    assert_string_equal(r->intents[1].project, "p");
    assert_string_equal(r->intents[1].target, "mark");
    msg_free(&r->m);
    store_intent_done(b.s, id, storebox_to(&b));
    storebox_says(&b, 0);
    store_intents(b.s, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_intents, 1);
    msg_free(&r->m);
    store_log(b.s, 10, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_log, 2);
    assert_string_equal(r->log[0].text, "went\nwrong");
    assert_true(r->log[0].level == 2 && r->log[0].sandbox == 7 && r->log[0].time_ms > 0);
    msg_free(&r->m);
}

/* Stopping writes all that was posted, and the log file is empty after it. */
static void test_stop_commits(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    for (uint64_t i = 0; i < 50; i++)
        storebox_append(&b, run, i * 2, "a\n", (struct st_to){NULL, 0});
    storebox_stop(&b);
    struct stat st;
    char *wal = xasprintf("%s/cc-tui.db-wal", dir);
    assert_true(stat(wal, &st) != 0 || st.st_size == 0);
    free(wal);
    storebox_start(&b, dir);
    check_events(run, 0, false, 1000, 0, 50, false);
}

static void test_retention(void **state)
{
    (void)state;
    int64_t now = clock_wall_ms(), day = 24 * 3600 * 1000;
    struct sandbox old = {
        .sandbox_id = LIT("old"), .state = SB_KILLED, .ended_at = now - 40 * day};
    struct sandbox young = {
        .sandbox_id = LIT("young"), .state = SB_KILLED, .ended_at = now - day};
    struct sandbox never_ran = {
        .sandbox_id = LIT("never"), .state = SB_KILLED, .ended_at = now - 40 * day};
    struct sandbox up = {
        .sandbox_id = LIT("up"), .state = SB_RUNNING, .created_at = now - 90 * day};
    store_put_sandbox(b.s, &old, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    uint64_t old_id = r->sandboxes[0].id;
    msg_free(&r->m);
    store_put_sandbox(b.s, &young, storebox_to(&b));
    store_put_sandbox(b.s, &up, storebox_to(&b));
    store_put_sandbox(b.s, &never_ran, storebox_to(&b));
    uint64_t run = storebox_run(&b, old_id, "s");
    for (uint64_t i = 0; i < 700; i++)
        storebox_append(&b, run, i * 2, "a\n", storebox_to(&b));
    store_message_add(b.s, old_id, "m", storebox_to(&b));
    store_prune(b.s, storebox_to(&b));
    storebox_says(&b, 0);
    store_sandboxes(b.s, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_sandboxes, 2);
    msg_free(&r->m);
    store_messages(b.s, 0, 10, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_messages, 0);
    msg_free(&r->m);
    check_events(run, 0, false, 1000, 0, 0, false);
    assert_true(storebox_sandbox(&b, "fresh") > old_id + 3); /* ids are not used again */
}

static void test_raw_limit(void **state)
{
    (void)state;
    uint64_t sb = storebox_sandbox(&b, "i1"), runs[3];
    static const char *const names[] = {"one", "two", "live"};
    storebox_stop(&b);
    struct store_opts o = {.dir = dir, .max_bytes = 3000, .vacuum = true};
    storebox_start_with(&b, &o);
    for (int k = 0; k < 3; k++) {
        runs[k] = storebox_run(&b, sb, names[k]);
        for (uint64_t i = 0; i < 1000; i++)
            storebox_append(&b, runs[k], i * 2, "a\n", storebox_to(&b));
        if (k < 2)
            store_run_end(b.s, runs[k], 0, 0, storebox_to(&b));
    }
    store_prune(b.s, storebox_to(&b));
    storebox_says(&b, 0);
    for (int k = 0; k < 3; k++) {
        store_raw(b.s, runs[k], 0, 5000, storebox_to(&b));
        struct st_reply *r = storebox_ok(&b);
        assert_int_equal(r->raw_len, k == 2 ? 2000 : 0);
        assert_int_equal(r->stored, 2000);
        msg_free(&r->m);
        check_events(runs[k], 0, false, 2000, 0, 1000, false); /* the events stay */
    }
}

static void test_memory_only(void **state)
{
    (void)state;
    struct storebox m;
    storebox_start(&m, NULL);
    assert_int_equal(m.opened->err.code, 0);
    uint64_t run = storebox_run(&m, storebox_sandbox(&m, "i1"), "s");
    storebox_append(&m, run, 0, "abc", storebox_to(&m));
    struct st_reply *r = storebox_wait(&m);
    assert_int_equal(r->stored, 3);
    assert_false(store_busy(m.s));
    msg_free(&r->m);
    storebox_stop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sandbox_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sandbox_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_append, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_big_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leases, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_clock_set_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_intents_and_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stop_commits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_retention, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_raw_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_only, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
