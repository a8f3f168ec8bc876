/* Builds as they are followed: phases, pace, one watcher for many viewers, the last lines,
 * builds that stand still, and viewers that leave and come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/e2bbed.h"
#include <cct/jobs/build_watch.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- phases ------------------------------------------------------------------------ */

static void phase_is(const char *message, const char *want)
{
    struct build_phase p = {0};
    char text[40], got[300] = "-";

    if (build_phase_parse(message, &p)) {
        build_phase_text(&p, text, sizeof(text));
        snprintf(got, sizeof(got), "%s%s|%s", p.cached ? "cached " : "", text, p.title);
    }
    assert_string_equal(got, want);
}

static void test_phases(void **state)
{
    (void)state;
    phase_is("[base] FROM e2bdev/base", "base|FROM e2bdev/base");
    phase_is("[builder 3/10] RUN npm i", "step 3 of 10|RUN npm i");
    phase_is("CACHED [builder 1/2] COPY a b [0a1b2c]", "cached step 1 of 2|COPY a b");
    phase_is("[builder 1/2] RUN test [ -f x ]", "step 1 of 2|RUN test [ -f x ]");
    phase_is("[resize-disk] x", "resize-disk|x");
    phase_is("[finalize] Finalizing", "finalize|Finalizing");
    phase_is("[optimize] x", "optimize|x");
    phase_is("[builder 46/66] [stdout]: [base] FROM a", "-");
    phase_is("[builder 46/66] [stderr]: no", "-");
    phase_is("[builder 0/2] RUN", "-");
    phase_is("[builder 1/] RUN", "-");
    phase_is("[builder x/2] RUN", "-");
    phase_is("[builder 1/2 ] RUN", "-");
    phase_is("[builder 99999999999/2] RUN", "-");
    phase_is("[builder 1/2]RUN", "-");
    phase_is("[base", "-");
    phase_is(" [base] x", "-");
    phase_is("cached [base] x", "-");
    phase_is("...", "-");
    phase_is("", "-");
}

static void test_phases_by_name(void **state)
{
    struct build_phase p;
    char text[40];

    (void)state;
    assert_true(build_phase_of_step("3", &p));
    build_phase_text(&p, text, sizeof(text));
    assert_string_equal(text, "step 3"); /* of how many is not known */
    assert_true(build_phase_of_step("finalize", &p));
    assert_int_equal(p.kind, PHASE_FINALIZE);
    assert_false(build_phase_of_step("", &p));
    assert_false(build_phase_of_step("3x", &p));
    assert_false(build_phase_of_step(NULL, &p));
}

static void test_pace(void **state)
{
    int64_t last = 0;

    (void)state;
    for (int64_t quiet = 0; quiet < 3600000; quiet += 500) {
        assert_true(builds_pace(1000, quiet) >= 1000);
        assert_true(builds_pace(1000, quiet) >= last);
        last = builds_pace(1000, quiet);
    }
    assert_true(last >= 5000);
}

/* --- the watcher ---------------------------------------------------------------------- */

static struct e2bbed bed;
static struct builds *builds;

struct view {
    uint64_t id;
    size_t lines, states, lines_at_end;
    struct buf text; /* messages */
    char phase[60], status[20], reason[60];
    enum build_end end;
    int64_t quiet;
    struct err err;
    bool close_at_end;
};
static struct view one, two;

static void on_line(void *ctx, const struct e2b_log *l)
{
    struct view *v = ctx;

    v->lines++;
    buf_addf(&v->text, "%.40s\n", l->message);
    assert_int_equal(v->end, BUILD_GOES_ON); /* lines first, the end after them */
}

static void on_state(void *ctx, const struct build_state *s)
{
    struct view *v = ctx;

    v->states++;
    build_phase_text(&s->phase, v->phase, sizeof(v->phase));
    str_copy(v->status, sizeof(v->status), s->status);
    str_copy(v->reason, sizeof(v->reason), s->reason ? s->reason : "-");
    v->quiet = s->quiet_ms;
    v->err = s->err;
    if (s->end && !v->end)
        v->lines_at_end = v->lines;
    v->end = s->end;
    if (s->end && v->id)
        builds_close(builds, v->id);
    bed_tick(bed.bed);
}

static void open_view(void *ctx)
{
    struct view *v = ctx;

    v->id = builds_open(builds, "tpl", "b1", &(struct build_viewer){on_line, on_state, v});
}

static struct view at_once; /* what was shown before anything was asked */

static void open_second(void *ctx)
{
    open_view(ctx);
    at_once = *(struct view *)ctx;
}

static void close_view(void *ctx)
{
    builds_close(builds, ((struct view *)ctx)->id);
}

static int pace = 100;

static void make_builds(void *ctx)
{
    (void)ctx;
    builds = builds_new(bed.bed->net, &bed.client, pace);
}

static void free_builds(void *ctx)
{
    (void)ctx;
    builds_free(builds);
    builds = NULL;
    e2b_free(bed.client);
    bed.client = NULL;
}

static int fresh(void **state)
{
    (void)state;
    buf_release(&one.text);
    buf_release(&two.text);
    memset(&one, 0, sizeof(one));
    memset(&two, 0, sizeof(two));
    e2bbed_client(&bed);
    bed_run(bed.bed, make_builds, NULL);
    bed_reset(bed.bed);
    return 0;
}

static int done(void **state)
{
    (void)state;
    bed_run(bed.bed, free_builds, NULL);
    return 0;
}

struct peek {
    const struct view *v;
    enum build_end end;
};

static void peek(void *ctx) /* on the thread that writes it */
{
    struct peek *p = ctx;
    p->end = p->v->end;
}

static void until_end(struct view *v, int ms)
{
    int64_t end = clock_mono_ms() + ms;
    struct peek p = {.v = v};
    int seen = 0;

    for (bed_run(bed.bed, peek, &p); !p.end && clock_mono_ms() < end; bed_run(bed.bed, peek, &p))
        bed_wait(bed.bed, ++seen, 500);
    mini_sync(bed.srv);
}

#define STATUS(status, entries, more) \
    {200, "", "{\"status\":\"" status "\",\"logEntries\":[" entries "]" more "}"}

static char *page(const char *status, int n, const char *more)
{
    struct buf b = BUF_INIT;

    buf_addf(&b, "{\"status\":\"%s\",\"logEntries\":[", status);
    for (int i = 0; i < n; i++)
        buf_addf(&b, "%s{\"timestamp\":\"2026-11-29T15:17:%02d.%03dZ\",\"message\":\"line %d\"}",
                 i ? "," : "", i / 1000, i % 1000, i);
    buf_addf(&b, "]%s}", more);
    return buf_detach(&b, NULL);
}

/* The answer with the last word brings forty new lines: all of them, then the status. */
static void all_lines_then(const char *status, const char *more, enum build_end want)
{
    char *last = page(status, 40, more);
    const struct e2b_scene s[] = {STATUS("building", "", ""), {200, "", last}, STATUS("x", "", "")};
    struct e2b_scene empty[3];
    char *none = page(status, 0, more);

    memcpy(empty, s, sizeof(s));
    empty[2].body = none;
    e2bbed_play(&bed, empty, 3);
    bed_run(bed.bed, open_view, &one);
    until_end(&one, 20000);
    assert_int_equal(one.end, want);
    assert_int_equal(one.lines, 40);
    assert_int_equal(one.lines_at_end, 40);
    assert_string_equal(one.status, status);
    assert_non_null(strstr(buf_str(&bed.heard), "/templates/tpl/builds/b1/status?logsOffset=0 "));
    assert_true(str_ends(buf_str(&bed.heard), "/templates/tpl/builds/b1/status?logsOffset=40 \n"));
    free(last);
    free(none);
}

static void test_last_lines_of_ready(void **state)
{
    (void)state;
    all_lines_then("ready", "", BUILD_READY);
}

static void test_last_lines_of_error(void **state)
{
    (void)state;
    all_lines_then("error", ",\"reason\":{\"message\":\"exit 1\",\"step\":\"1\",\"logEntries\":["
                            "{\"timestamp\":\"2026-11-29T15:17:00.003Z\",\"message\":\"line 3\"}]}",
                   BUILD_FAILED);
    assert_string_equal(one.reason, "exit 1");
}

/* Lines that explain the failure may stand nowhere else. */
static void test_lines_of_the_reason(void **state)
{
    (void)state;
    E2B_PLAY(&bed, STATUS("error", "", ",\"reason\":{\"message\":\"m\",\"logEntries\":["
                                       "{\"message\":\"E: Unable\"},{\"message\":\"E: gone\"}]}"));
    bed_run(bed.bed, open_view, &one);
    until_end(&one, 20000);
    assert_string_equal(buf_str(&one.text), "E: Unable\nE: gone\n");
    assert_int_equal(one.end, BUILD_FAILED);
}

/* A service that ignores the offset says the same page for ever. */
static void test_the_same_page_again(void **state)
{
    char *last = page("ready", 40, "");
    const struct e2b_scene s[] = {{200, "", last}};

    (void)state;
    e2bbed_play(&bed, s, 1);
    bed_run(bed.bed, open_view, &one);
    until_end(&one, 20000);
    assert_int_equal(one.end, BUILD_READY);
    assert_int_equal(one.lines, 40);
    free(last);
}

/* Two viewers, one watcher: not more than a request a second, and the same lines. */
static void test_pace_is_shared(void **state)
{
    int64_t t0 = clock_mono_ms();

    (void)state;
    E2B_PLAY(&bed, STATUS("building", "{\"message\":\"[builder 46/66] RUN make\",\"step\":\"46\"}", ""),
             STATUS("building", "", ""));
    bed_run(bed.bed, open_view, &one);
    bed_run(bed.bed, open_view, &two);
    while (clock_mono_ms() - t0 < 3300)
        bed_wait(bed.bed, 1000, 3300);
    bed_run(bed.bed, close_view, &one);
    bed_run(bed.bed, close_view, &two);
    mini_sync(bed.srv);
    int64_t took = clock_mono_ms() - t0;
    assert_in_range(bed.at, 2, took / 1000 + 1);
    assert_string_equal(buf_str(&one.text), buf_str(&two.text));
    assert_int_equal(one.lines, 1);
    /* it stands still: the step is known, it is not done, and no figure is made up */
    assert_string_equal(one.phase, "step 46 of 66");
    assert_string_equal(one.status, "building");
    assert_int_equal(one.end, BUILD_GOES_ON);
}

/* Left by all, nothing is asked; taken up again, the old lines are there and it goes on
 * where it was. */
static void test_left_and_taken_up_again(void **state)
{
    (void)state;
    E2B_PLAY(&bed, STATUS("building", "{\"message\":\"[builder 1/2] RUN a\"},{\"message\":\"out\"}", ""),
             STATUS("building", "", ""));
    bed_run(bed.bed, open_view, &one);
    assert_true(bed_wait(bed.bed, 1, 10000));
    bed_run(bed.bed, close_view, &one);
    mini_sync(bed.srv);
    int asked = bed.at;
    bed_wait(bed.bed, 1000, 400);
    assert_int_equal(bed.at, asked);
    E2B_PLAY(&bed, STATUS("ready", "{\"message\":\"[builder 2/2] RUN b\"}", ""), STATUS("ready", "", ""));
    bed_run(bed.bed, open_second, &two);
    assert_int_equal(at_once.lines, 2);
    assert_string_equal(at_once.phase, "step 1 of 2");
    until_end(&two, 20000);
    assert_int_equal(two.end, BUILD_READY);
    assert_string_equal(buf_str(&two.text), "[builder 1/2] RUN a\nout\n[builder 2/2] RUN b\n");
    assert_true(str_starts(buf_str(&bed.heard), "GET /templates/tpl/builds/b1/status?logsOffset=2 "));
    /* of one that ended all is known: nothing is asked any more */
    asked = bed.at;
    bed_run(bed.bed, open_view, &one);
    assert_int_equal(one.end, BUILD_READY);
    bed_wait(bed.bed, 1000, 400);
    assert_int_equal(bed.at, asked);
}

static int first_err;

static void copy_err(void *ctx)
{
    (void)ctx;
    first_err = one.err.code;
}

static void test_trouble_is_told_and_ends(void **state)
{
    (void)state;
    E2B_PLAY(&bed, {500, "", ""}, {429, "Retry-After: 1\r\n", "{\"code\":429}"},
             STATUS("ready", "{\"message\":\"x\"}", ""), STATUS("ready", "", ""));
    bed_run(bed.bed, open_view, &one);
    assert_true(bed_wait(bed.bed, 1, 10000));
    bed_run(bed.bed, copy_err, NULL);
    assert_int_equal(first_err, ERR_SERVER);
    until_end(&one, 30000);
    assert_int_equal(one.end, BUILD_READY);
    assert_int_equal(one.err.code, 0);
    assert_int_equal(one.lines, 1);
}

static void test_unknown_build(void **state)
{
    (void)state;
    E2B_PLAY(&bed, {400, "", "{\"code\":400,\"message\":\"no such build\"}"});
    bed_run(bed.bed, open_view, &one);
    until_end(&one, 30000);
    assert_int_equal(one.end, BUILD_UNKNOWN);
    assert_non_null(strstr(one.err.text, "no such build"));
    assert_true(bed.at <= 3);
}

static int fresh_pace(void **state)
{
    pace = 0; /* the real one */
    int rc = fresh(state);
    pace = 100;
    return rc;
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_phases_by_name),
        cmocka_unit_test(test_pace),
        CASE(test_last_lines_of_ready),
        CASE(test_last_lines_of_error),
        CASE(test_lines_of_the_reason),
        CASE(test_the_same_page_again),
        cmocka_unit_test_setup_teardown(test_pace_is_shared, fresh_pace, done),
        CASE(test_left_and_taken_up_again),
        CASE(test_trouble_is_told_and_ends),
        CASE(test_unknown_build),
    };
    int rc;

    e2bbed_open(&bed);
    rc = cmocka_run_group_tests_name("build_watch", tests, NULL, NULL);
    e2bbed_close(&bed);
    buf_release(&one.text);
    buf_release(&two.text);
    return rc;
}
