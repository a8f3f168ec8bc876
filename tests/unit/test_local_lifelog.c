/* The file of lifecycle events: what is kept, over restarts, damage and age. */
#include <cct/local/lifelog.h>
#include <cct/secrets/digest.h>
#include <cct/util/json.h>
#include <cct/util/xalloc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW 1800000000000
#define DAY (24 * 3600 * 1000LL)

static char dir[64], path[96];
static struct sbox_rec rec;

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/cct-lifelog-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/events.jsonl", dir);
    assert_int_equal(digest_init(), 0);
    rec = (struct sbox_rec){.id = "iabcdefgh",
                            .token = "very-secret",
                            .template_id = "localbase",
                            .started_ms = NOW,
                            .end_ms = NOW + 60000,
                            .cpu = 2,
                            .mem_mb = 512};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sbox_rec_clear(&rec);
    unlink(path);
    rmdir(dir);
    return 0;
}

static struct lifelog *reopen(struct lifelog *l, int64_t now)
{
    struct err e = {0};
    lifelog_free(l);
    l = lifelog_open(path, now, &e);
    if (!l)
        fail_msg("%s", e.text);
    return l;
}

static size_t count(const struct lifelog *l)
{
    size_t n;
    lifelog_events(l, &n);
    return n;
}

static void append(const char *text)
{
    FILE *f = fopen(path, "ae");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static off_t file_size(void)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void test_shape(void **state)
{
    (void)state;
    struct lifelog *l = reopen(NULL, NOW);
    rec.metadata = json_parse("{\"a\":\"\\u001b[31mx\"}", 17, NULL);
    lifelog_add(l, &rec, LIFE_KILLED, "timeout", NOW + 5000);
    char *text = lifelog_text(l, 0);
    struct cJSON *j = json_parse(text, strlen(text), NULL);
    assert_non_null(j);
    assert_null(strstr(text, "very-secret"));
    assert_null(strchr(text, '\x1b'));
    assert_string_equal(json_str(j, "type", ""), "sandbox.lifecycle.killed");
    assert_string_equal(json_str(j, "version", ""), "v2");
    assert_string_equal(json_str(j, "timestamp", ""), "2027-01-15T08:00:05.000Z");
    assert_int_equal(strlen(json_str(j, "id", "")), 36);
    assert_int_equal(strlen(json_str(j, "sandboxExecutionId", "")), 36);
    const struct cJSON *run = json_path(j, "eventData.execution");
    assert_int_equal(json_i64(run, "execution_time", 0), 5000);
    assert_int_equal(json_i64(run, "vcpu_count", 0), 2);
    assert_string_equal(json_str(json_get(j, "eventData"), "reason", ""), "timeout");
    json_free(j);
    free(text);
    lifelog_free(l);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_restart(void **state)
{
    (void)state;
    struct lifelog *l = reopen(NULL, NOW);
    for (int i = 0; i < 5; i++)
        lifelog_add(l, &rec, (enum life)i, NULL, NOW + i);
    char *before = lifelog_text(l, 3);
    l = reopen(l, NOW + 10);
    assert_int_equal(count(l), 5);
    char *after = lifelog_text(l, 3);
    assert_string_equal(before, after);
    free(before);
    free(after);
    lifelog_free(l);
}

/* Bad lines, half a line at the end, lines of nothing: skipped, and appending
 * goes on behind the good ones. */
static void test_damage(void **state)
{
    (void)state;
    struct lifelog *l = reopen(NULL, NOW);
    lifelog_add(l, &rec, LIFE_CREATED, NULL, NOW);
    append(
        "not json\n{}\n\n{\"type\":\"sandbox.lifecycle.killed\",\"sandboxId\":\"../../x\"}\n");
    append("{\"type\":\"sandbox.lif");
    l = reopen(l, NOW);
    assert_int_equal(count(l), 1);
    lifelog_add(l, &rec, LIFE_PAUSED, NULL, NOW + 1);
    l = reopen(l, NOW);
    assert_int_equal(count(l), 2);
    size_t n;
    assert_int_equal(lifelog_events(l, &n)[1].type, LIFE_PAUSED);
    lifelog_free(l);
}

static void test_age(void **state)
{
    (void)state;
    struct lifelog *l = reopen(NULL, NOW);
    lifelog_add(l, &rec, LIFE_CREATED, NULL, NOW - 8 * DAY);
    lifelog_add(l, &rec, LIFE_KILLED, NULL, NOW - 6 * DAY);
    off_t before = file_size();
    l = reopen(l, NOW);
    assert_int_equal(count(l), 1);
    assert_true(file_size() < before);
    lifelog_free(l);
}

static void test_bounds(void **state)
{
    (void)state;
    struct lifelog *l = reopen(NULL, NOW);
    for (int i = 0; i < (int)LIFELOG_MAX + 10; i++)
        lifelog_add(l, &rec, LIFE_UPDATED, NULL, NOW + i);
    size_t n;
    const struct life_event *evs = lifelog_events(l, &n);
    assert_true(n <= LIFELOG_MAX);
    assert_int_equal(evs[n - 1].ms, NOW + LIFELOG_MAX + 9);
    for (size_t i = 1; i < n; i++)
        assert_true(evs[i].ms == evs[i - 1].ms + 1);
    size_t kept = n;
    l = reopen(l, NOW);
    assert_int_equal(count(l), kept);
    lifelog_free(l);
}

/* Metadata that is too long for a line is left out, the event is not. */
static void test_long(void **state)
{
    (void)state;
    size_t len = LIFELOG_LINE_MAX + 100;
    char *text = xmalloc(len + 16);
    int at = snprintf(text, 16, "{\"a\":\"");
    memset(text + at, 'x', len);
    memcpy(text + at + len, "\"}", 3);
    rec.metadata = json_parse(text, strlen(text), NULL);
    free(text);
    struct lifelog *l = reopen(NULL, NOW);
    lifelog_add(l, &rec, LIFE_CREATED, NULL, NOW);
    assert_int_equal(count(l), 1);
    assert_true(file_size() < 2048);
    lifelog_free(l);
}

static void test_not_ours(void **state)
{
    (void)state;
    char target[128];
    struct err e = {0};
    snprintf(target, sizeof(target), "%s/other", dir);
    assert_int_equal(symlink(target, path), 0);
    assert_null(lifelog_open(path, NOW, &e));
    assert_true(e.code != 0 && access(target, F_OK) != 0);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(lifelog_open(path, NOW, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shape, setup, teardown),
        cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_age, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_ours, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
