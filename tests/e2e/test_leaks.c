/* Sandboxes made and ended many times, in the ways that differ: when all are gone, no
 * process, mount, descriptor, file or socket of theirs is left. CYCLES = how many. */
#include "../lib/rawhttp.h"
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define FEW_CYCLES 60

static struct localbed *bed;
static int fd; /* to the control port */

static int cycles(void)
{
    const char *s = getenv("CYCLES");
    return s && atoi(s) > 0 ? atoi(s) : FEW_CYCLES;
}

static int children_of(pid_t pid)
{
    char path[64], line[4096] = "";
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    if (!fgets(line, sizeof(line), f))
        line[0] = '\0';
    fclose(f);
    int n = 0;
    for (const char *p = line; *p; p++)
        n += *p == ' ';
    return n;
}

/* Mounts of the provider that have to do with this test. */
static int mounts(void)
{
    char path[64], line[4096];
    int n = 0;
    snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)bed->pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, bed->root) != NULL;
    fclose(f);
    return n;
}

struct count {
    int fds, children, mounts, boxes, sockets;
};

static struct count count_now(void)
{
    return (struct count){rawhttp_fds_of(bed->pid), children_of(bed->pid), mounts(),
                          localbed_entries(bed, "state/boxes"), localbed_entries(bed, "run/s")};
}

static void await_same(const struct count *want)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    struct count now = count_now();
    while (memcmp(&now, want, sizeof(now)) != 0 && clock_mono_ms() < end) {
        poll(NULL, 0, 20);
        now = count_now();
    }
    assert_int_equal(now.boxes, want->boxes);
    assert_int_equal(now.sockets, want->sockets);
    assert_int_equal(now.children, want->children);
    assert_int_equal(now.fds, want->fds);
    assert_int_equal(now.mounts, want->mounts);
}

static void cycle(int kind)
{
    static const char *const asks[] = {
        "{\"templateID\":\"base\",\"timeout\":600}",
        "{\"templateID\":\"base\",\"timeout\":600,\"allow_internet_access\":false}"};
    struct rawhttp_box x;
    int stream = -1, other = -1;
    assert_int_equal(rawhttp_create(bed, fd, asks[kind == 3], &x), 201);
    if (kind == 1 || kind == 2) {
        stream = rawhttp_stream(bed, &x, "sleep 600 & sleep 600", 1);
        assert_true(rawhttp_await(stream, "\"start\""));
    }
    if (kind == 2)
        assert_int_equal(rawhttp_box_call(bed, fd, &x, "POST", "/pause", NULL), 204);
    if (kind == 4) { /* both ask before either is answered, as far as that can be had */
        other = rawhttp_dial(bed->control);
        rawhttp_box_call(bed, other, &x, "DELETE", "", NULL);
        assert_int_equal(rawhttp_box_call(bed, fd, &x, "DELETE", "", NULL), 404);
    } else {
        assert_int_equal(rawhttp_box_call(bed, fd, &x, "DELETE", "", NULL), 204);
    }
    if (kind == 1) /* the stream's end is told, not only cut */
        assert_false(rawhttp_await(stream, "never said"));
    if (stream >= 0)
        close(stream);
    if (other >= 0)
        close(other);
}

static void test_create_kill(void **state)
{
    (void)state;
    assert_int_equal(rawhttp_call(fd, bed->control, NULL, "GET", "/health", NULL, NULL), 204);
    struct count before = count_now();
    long rss = rawhttp_status_of(bed->pid, "VmRSS:");
    for (int i = 0; i < cycles(); i++)
        cycle(i % 5);
    await_same(&before);
    print_message("# %d cycles, provider %ld kB before, %ld kB after\n", cycles(), rss,
                  rawhttp_status_of(bed->pid, "VmRSS:"));
}

/* Ended by its time, and by its init's death. */
static void test_other_ends(void **state)
{
    (void)state;
    struct count before = count_now();
    struct rawhttp_box x;
    assert_int_equal(rawhttp_create(bed, fd, "{\"templateID\":\"base\",\"timeout\":1}", &x),
                     201);
    int stream = rawhttp_stream(bed, &x, "sleep 600", 1);
    assert_true(rawhttp_await(stream, "\"start\""));
    assert_false(rawhttp_await(stream, "never said"));
    close(stream);
    await_same(&before);
}

static void test_many_at_once(void **state)
{
    (void)state;
    struct count before = count_now();
    struct rawhttp_box x[40];
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(
            rawhttp_create(bed, fd, "{\"templateID\":\"base\",\"timeout\":600}", &x[i]), 201);
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(rawhttp_box_call(bed, fd, &x[i], "DELETE", "", NULL), 204);
    await_same(&before);
}

static int up(void **state)
{
    (void)state;
    bed = localbed_new();
    if (bed)
        fd = rawhttp_dial(bed->control);
    return bed ? 0 : -1;
}

static int down(void **state)
{
    (void)state;
    close(fd);
    localbed_free(bed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_kill),
        cmocka_unit_test(test_other_ends),
        cmocka_unit_test(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, up, down);
}
