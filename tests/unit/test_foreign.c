/* What a sandbox tells of its processes, however hostile; lines of several streams; whose
 * a sandbox is, as the database keeps it. */
#include "../../src/jobs/foreign_priv.h"
#include "../lib/hostile.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/model/model.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct proc_list parsed(const char *json, int wanted)
{
    struct proc_list l;
    struct err e = {0};

    assert_int_equal(proc_list_parse(&l, json, strlen(json), wanted, &e), 0);
    return l;
}

static void test_list(void **state)
{
    struct proc_list l = parsed(
        "{\"processes\":[{\"config\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"make all\"],"
        "\"envs\":{\"KEY\":\"secret\"},\"cwd\":\"/home/user\"},\"pid\":12,\"tag\":\"t\"},"
        "{\"config\":{\"cmd\":\"cat\"},\"pid\":\"7\"}]}", 0);

    (void)state;
    assert_int_equal(l.n, 2); /* by pid */
    assert_int_equal(l.v[0].pid, 7);
    assert_string_equal(l.v[0].command, "cat");
    assert_null(l.v[0].brief);
    assert_null(l.v[0].cwd);
    assert_string_equal(l.v[1].command, "/bin/bash -l -c 'make all'");
    assert_string_equal(l.v[1].brief, "make all");
    assert_string_equal(l.v[1].cwd, "/home/user");
    assert_string_equal(l.v[1].tag, "t");
    assert_ptr_equal(proc_list_find(&l, 12), &l.v[1]);
    assert_null(proc_list_find(&l, 1));
    proc_list_release(&l);
}

/* Wrong types, zero and huge pids, what is told twice: the rest of the list still counts. */
static void test_odd_entries(void **state)
{
    struct proc_list l = parsed(
        "{\"processes\":[1,null,[],\"x\",{},{\"pid\":0},{\"pid\":-4},{\"pid\":4294967297},"
        "{\"pid\":1.5},{\"pid\":true},{\"pid\":\"9x\"},{\"pid\":5},{\"pid\":5,\"config\":7},"
        "{\"pid\":6,\"config\":{\"cmd\":[],\"args\":\"no\",\"cwd\":{}},\"tag\":3},"
        "{\"pid\":8,\"config\":{\"cmd\":\"a\",\"args\":[1,null,{\"b\":2},\"c\"]}}]}", 0);

    (void)state;
    assert_int_equal(l.n, 3);
    assert_int_equal(l.v[0].pid, 5);
    assert_string_equal(l.v[0].command, "?");
    assert_string_equal(l.v[1].command, "?");
    assert_null(l.v[1].cwd);
    assert_null(l.v[1].tag);
    assert_string_equal(l.v[2].command, "a ? ? ? c");
    proc_list_release(&l);
    l = parsed("{}", 0);
    assert_int_equal(l.n, 0);
    l = parsed("{\"processes\":[]}", 0);
    assert_int_equal(l.n, 0);
}

static void test_no_list(void **state)
{
    static const char *const bad[] = {"", "[]", "null", "{", "{\"processes\":7}",
                                      "{\"processes\":{\"pid\":1}}", "\377\376"};
    struct proc_list l;
    struct err e = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(proc_list_parse(&l, bad[i], strlen(bad[i]), 0, &e), ERR_PROTO);
        assert_null(l.v);
    }
}

static void must_be_pure(const char *s)
{
    size_t at;
    const char *why = s ? hostile_impure(s, strlen(s), false, &at) : NULL;

    if (why)
        fail_msg("%s at %zu: %s", why, at, s);
}

/* Every hostile string as command, argument, folder and tag: nothing of it can move the
 * cursor, and none of it makes the list unreadable. */
static void test_hostile_texts(void **state)
{
    struct hostile_set set;
    struct buf b = BUF_INIT;
    struct jw w;
    struct proc_list l;

    (void)state;
    hostile_load(&set, NULL);
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_arr(&w, "processes");
    for (size_t i = 0; i < set.n; i++) {
        const struct hostile_item *h = &set.v[i];

        jw_obj(&w, NULL);
        jw_i64(&w, "pid", (int64_t)i + 1);
        jw_obj(&w, "config");
        jw_strn(&w, "cmd", h->s, h->len);
        jw_arr(&w, "args");
        jw_strn(&w, NULL, h->s, h->len);
        jw_end(&w);
        jw_strn(&w, "cwd", h->s, h->len);
        jw_end(&w);
        jw_strn(&w, "tag", h->s, h->len);
        jw_end(&w);
    }
    jw_end(&w);
    jw_end(&w);
    l = parsed(buf_str(&b), 0);
    assert_int_equal(l.n, set.n);
    for (size_t i = 0; i < l.n; i++) {
        must_be_pure(l.v[i].command);
        must_be_pure(l.v[i].brief);
        must_be_pure(l.v[i].cwd);
        must_be_pure(l.v[i].tag);
    }
    proc_list_release(&l);
    buf_release(&b);
    hostile_free(&set);
}

/* Megabytes of arguments, thousands of processes: bounded, and the one that is asked for is
 * found all the same. */
static void test_huge(void **state)
{
    struct buf b = BUF_INIT;
    struct proc_list l;
    char *big = xmalloc((4u << 20) + 1);

    (void)state;
    memset(big, 'x', 4u << 20);
    big[4u << 20] = 0;
    buf_adds(&b, "{\"processes\":[");
    buf_addf(&b, "{\"pid\":1,\"config\":{\"cmd\":\"a\",\"args\":[\"b\",\"%s\",\"c\"]}}", big);
    for (int i = 2; i <= 5000; i++)
        buf_addf(&b, ",{\"pid\":%d,\"config\":{\"cmd\":\"sleep\"}}", i);
    buf_adds(&b, "]}");
    l = parsed(buf_str(&b), 4711);
    assert_int_equal(l.n, PROC_LIST_MAX + 1);
    assert_int_equal(l.more, 5000 - PROC_LIST_MAX - 1);
    assert_non_null(proc_list_find(&l, 4711));
    assert_true(strlen(l.v[0].command) < 9000);
    assert_true(str_ends(l.v[0].command, "..."));
    proc_list_release(&l);
    buf_release(&b);
    free(big);
}

/* The identity is of the words as they were sent, not of what is shown of them. */
static void test_identity(void **state)
{
    struct proc_list l = parsed(
        "{\"processes\":[{\"pid\":1,\"config\":{\"cmd\":\"a\",\"args\":[\"b c\"]}},"
        "{\"pid\":2,\"config\":{\"cmd\":\"a\",\"args\":[\"b\",\"c\"]}},"
        "{\"pid\":3,\"config\":{\"cmd\":\"a\",\"args\":[\"b c\"]},\"tag\":\"x\"},"
        "{\"pid\":4,\"config\":{\"cmd\":\"a\\u001b[31m\",\"args\":[\"b c\"]}}]}", 0);
    char name[PROC_SESSION_SIZE];
    uint64_t ident;
    int pid;

    (void)state;
    assert_true(l.v[0].ident != l.v[1].ident);
    assert_true(l.v[0].ident == l.v[2].ident);
    assert_true(l.v[0].ident != l.v[3].ident);
    proc_session_name(name, sizeof(name), INT32_MAX, UINT64_MAX);
    assert_true(proc_session_parse(name, &pid, &ident));
    assert_int_equal(pid, INT32_MAX);
    assert_true(ident == UINT64_MAX);
    assert_false(proc_session_parse("process-0-0000000000000001", &pid, &ident));
    assert_false(proc_session_parse("process-1-1", &pid, &ident));
    assert_false(proc_session_parse("brave-otter", &pid, &ident));
    assert_false(proc_session_parse(NULL, &pid, &ident));
    proc_list_release(&l);
}

static void test_signals(void **state)
{
    (void)state;
    assert_int_equal(proc_end_signal("signal: killed"), SIGKILL);
    assert_int_equal(proc_end_signal("signal: terminated"), SIGTERM);
    assert_int_equal(proc_end_signal("signal: segmentation fault (core dumped)"), SIGSEGV);
    assert_int_equal(proc_end_signal("exit status 9"), 0);
    assert_int_equal(proc_end_signal("signal: odd"), 0);
    assert_int_equal(proc_end_signal(NULL), 0);
}

/* --- lanes ----------------------------------------------------------------------- */

static void add(void *ctx, const char *data, size_t len)
{
    buf_add(ctx, data, len);
}

static void feed(struct lanes *l, enum envd_stream s, const char *text, struct buf *out)
{
    lanes_add(l, s, text, strlen(text), add, out);
}

static void test_lanes(void **state)
{
    struct lanes l = {0};
    struct buf out = BUF_INIT;

    (void)state;
    feed(&l, ENVD_STDOUT, "one\ntw", &out);
    feed(&l, ENVD_STDERR, "bad ", &out);
    assert_string_equal(buf_str(&out), "one\n");
    assert_string_equal(lanes_part(&l)->p, "bad ");
    feed(&l, ENVD_STDOUT, "o\n", &out);
    feed(&l, ENVD_STDERR, "luck\nmore", &out);
    assert_string_equal(buf_str(&out), "one\ntwo\nbad luck\n");
    lanes_flush(&l, add, &out);
    assert_string_equal(buf_str(&out), "one\ntwo\nbad luck\nmore\n");
    assert_null(lanes_part(&l));
    lanes_release(&l);
    buf_release(&out);
}

/* Each byte of characters in a piece of its own, those of the two streams in turn. */
static void test_halves_of_characters(void **state)
{
    static const char one[] = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n", /* e, euro, face */
        two[] = "\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9\n";
    struct lanes l = {0};
    struct buf out = BUF_INIT;
    char piece[2] = "";

    (void)state;
    for (size_t i = 0; i < sizeof(one) - 1; i++) {
        piece[0] = one[i];
        feed(&l, ENVD_STDOUT, piece, &out);
        piece[0] = two[i];
        feed(&l, ENVD_STDERR, piece, &out);
    }
    assert_int_equal(out.len, 2 * (sizeof(one) - 1));
    assert_memory_equal(out.p, one, sizeof(one) - 1);
    assert_memory_equal(out.p + sizeof(one) - 1, two, sizeof(two) - 1);
    lanes_release(&l);
    buf_release(&out);
}

/* A line without an end is not kept for ever. */
static void test_lanes_are_bounded(void **state)
{
    struct lanes l = {0};
    struct buf out = BUF_INIT;
    char piece[1000];

    (void)state;
    memset(piece, 'z', sizeof(piece));
    for (int i = 0; i < 1000; i++)
        lanes_add(&l, ENVD_STDOUT, piece, sizeof(piece), add, &out);
    assert_true(out.len > 900000);
    assert_true(!lanes_part(&l) || lanes_part(&l)->len < 70000);
    lanes_release(&l);
    buf_release(&out);
}

/* --- whose it is ------------------------------------------------------------------ */

#define LIT(s) ((char *)(s)) /* the store only reads it */

static struct storebox box;
static char *dir;

static int set_up(void **state)
{
    (void)state;
    dir = storebox_dir();
    storebox_start(&box, dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    storebox_stop(&box);
    tmpdir_remove(dir);
    free(dir);
    return 0;
}

static struct sandbox foreign_row(uint64_t id)
{
    return (struct sandbox){.id = id, .sandbox_id = LIT("iabc"), .name = LIT("iabc"),
                            .state = SB_RUNNING, .foreign = true};
}

static struct sandbox adopted_row(uint64_t id)
{
    struct sandbox s = foreign_row(id);

    s.foreign = false;
    s.adopted = true;
    s.project = LIT("shop");
    s.name = LIT("worker");
    s.session = LIT("process-7-00000000000000aa");
    s.tool = LIT("process");
    return s;
}

static struct st_reply *put(const struct sandbox *s, bool owns)
{
    struct st_reply *r;

    if (owns)
        store_own_sandbox(box.s, s, storebox_to(&box));
    else
        store_put_sandbox(box.s, s, storebox_to(&box));
    r = storebox_wait(&box);
    assert_int_equal(r->err.code, 0);
    assert_int_equal(r->n_sandboxes, 1);
    return r;
}

static void drop(struct st_reply *r)
{
    msg_free(&r->m);
}

/* Another instance that still believes it foreign writes its row: the user's word stands,
 * and the answer tells. */
static void test_adoption_is_kept(void **state)
{
    struct sandbox s = foreign_row(0), mine;
    struct st_reply *r = put(&s, false);
    uint64_t id = r->sandboxes[0].id;

    (void)state;
    assert_true(r->sandboxes[0].foreign);
    drop(r);
    mine = adopted_row(id);
    r = put(&mine, true);
    assert_true(r->sandboxes[0].adopted && !r->sandboxes[0].foreign);
    drop(r);
    s = foreign_row(id);
    s.end_at = 12345;
    r = put(&s, false);
    assert_true(r->sandboxes[0].adopted && !r->sandboxes[0].foreign);
    assert_string_equal(r->sandboxes[0].project, "shop");
    assert_string_equal(r->sandboxes[0].name, "worker");
    assert_string_equal(r->sandboxes[0].session, mine.session);
    assert_int_equal(r->sandboxes[0].end_at, 12345);
    drop(r);
    r = put(&s, true); /* given back */
    assert_true(r->sandboxes[0].foreign && !r->sandboxes[0].adopted);
    assert_null(r->sandboxes[0].project);
    drop(r);
    r = put(&mine, false); /* who still thinks it adopted changes nothing either */
    assert_true(r->sandboxes[0].foreign && !r->sandboxes[0].session);
    drop(r);
}

static size_t owned(struct storebox *b)
{
    struct st_reply *r;
    size_t n;

    store_owned(b->s, false, storebox_to(b));
    r = storebox_wait(b);
    assert_int_equal(r->err.code, 0);
    n = r->n_sandboxes;
    drop(r);
    return n;
}

/* A second instance on the same database. */
static void test_owned_is_news_of_others(void **state)
{
    struct sandbox s = foreign_row(0), ours = foreign_row(0);
    struct storebox other;

    (void)state;
    drop(put(&s, false));
    ours.sandbox_id = LIT("iours");
    ours.foreign = false;
    drop(put(&ours, false));
    assert_int_equal(owned(&box), 1); /* the first time all are */
    drop(put(&s, false));
    assert_int_equal(owned(&box), 0); /* what we write ourselves is no news */
    storebox_start(&other, dir);
    assert_int_equal(owned(&other), 1);
    s = adopted_row(1);
    store_own_sandbox(other.s, &s, storebox_to(&other));
    drop(storebox_wait(&other));
    assert_int_equal(owned(&other), 0);
    assert_int_equal(owned(&box), 1);
    assert_int_equal(owned(&box), 0);
    storebox_stop(&other);
}

/* --- the model -------------------------------------------------------------------- */

static void test_model(void **state)
{
    struct model *m = model_new();
    struct ev_procs *ev = ev_new(EV_PROCS);

    (void)state;
    thread_set_role(THREAD_MAIN);
    assert_null(model_procs(m, 3));
    ev->sandbox = 3;
    ev->p.state = PROCS_LISTED;
    ev->p.v = xcalloc(1, sizeof(*ev->p.v));
    ev->p.n = 1;
    ev->p.v[0] = (struct proc){.pid = 5, .command = xstrdup("cat")};
    model_apply(m, &ev->m);
    msg_free(&ev->m);
    assert_int_equal(model_procs(m, 3)->n, 1);
    assert_int_equal(procs_find(model_procs(m, 3), 5)->pid, 5);
    ev = ev_new(EV_PROCS);
    ev->sandbox = 3;
    ev->p.state = PROCS_CANNOT;
    ev->p.text = xstrdup("paused");
    model_apply(m, &ev->m);
    msg_free(&ev->m);
    assert_int_equal(model_procs(m, 3)->n, 0);
    assert_int_equal(model_procs(m, 3)->rev, 2);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_odd_entries),
        cmocka_unit_test(test_no_list),
        cmocka_unit_test(test_hostile_texts),
        cmocka_unit_test(test_huge),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_halves_of_characters),
        cmocka_unit_test(test_lanes_are_bounded),
        cmocka_unit_test_setup_teardown(test_adoption_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_owned_is_news_of_others, set_up, tear_down),
        cmocka_unit_test(test_model),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
