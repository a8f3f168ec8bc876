/* Ends of sandboxes hold whatever is done to the wall clock. */
#include "../lib/tmpdir.h"

#include <cct/local/boxstore.h>
#include <cct/local/provider.h>
#include <cct/util/clock.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define DAY_MS (24 * 3600 * 1000LL)

static int64_t wall_shift_ms, boot_shift_ms;

/* Stands before the library's own, for everything in this program. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
    int64_t shift = id == CLOCK_REALTIME   ? wall_shift_ms + boot_shift_ms
                    : id == CLOCK_BOOTTIME ? boot_shift_ms
                                           : 0;
    if (syscall(SYS_clock_gettime, id, ts) != 0)
        return -1;
    ts->tv_sec += shift / 1000;
    return 0;
}

void provider_touch(struct provider *p)
{
    (void)p;
}

static char state_dir[64];
static struct provider prov;
static pid_t stand_in; /* of a sandbox's init */

static struct sbox *add_box(int64_t left_ms)
{
    struct sbox *b = xcalloc(1, sizeof(*b));
    stand_in = fork();
    if (stand_in == 0)
        for (;;)
            pause();
    b->p = &prov;
    b->phase = SBOX_LIVE;
    b->pidfd = (int)syscall(SYS_pidfd_open, stand_in, 0);
    b->status_fd = -1;
    str_copy(b->rec.id, sizeof(b->rec.id), "iaaaaaaaaaaaaaaaaaaaa");
    str_copy(b->rec.token, sizeof(b->rec.token), "t");
    str_copy(b->rec.template_id, sizeof(b->rec.template_id), "base");
    str_copy(b->rec.alias, sizeof(b->rec.alias), "base");
    str_copy(b->rec.sock, sizeof(b->rec.sock), "/nowhere");
    b->rec.pid = stand_in;
    b->rec.start_ticks = 1;
    b->rec.isolated = true;
    b->rec.started_ms = clock_wall_ms();
    sbox_rec_set_end(&b->rec, clock_wall_ms() + left_ms);
    map_put(prov.boxes, b->rec.id, b);
    return b;
}

static int set_up(void **state)
{
    (void)state;
    wall_shift_ms = boot_shift_ms = 0;
    if (tmpdir_make(state_dir, sizeof(state_dir), "expiry") != 0)
        return -1;
    char *dir = xasprintf("mkdir -p '%s/boxes/iaaaaaaaaaaaaaaaaaaaa'", state_dir);
    int rc = system(dir);
    free(dir);
    memset(&prov, 0, sizeof(prov));
    prov.state_dir = state_dir;
    prov.base = event_base_new();
    prov.boxes = map_new();
    return rc;
}

static int tear_down(void **state)
{
    (void)state;
    sbox_free_all(&prov);
    map_free(prov.boxes, NULL);
    event_base_free(prov.base);
    kill(stand_in, SIGKILL);
    waitpid(stand_in, NULL, 0);
    return tmpdir_remove(state_dir);
}

static void near_to(int64_t got, int64_t want)
{
    if (got < want - 1500 || got > want + 1500)
        fail_msg("%lld is not near %lld", (long long)got, (long long)want);
}

static void test_jumps(void **state)
{
    (void)state;
    struct sbox *b = add_box(60000);
    sbox_expire(&prov);
    for (int i = 0; i < 4; i++) {
        wall_shift_ms = i % 2 ? DAY_MS : -DAY_MS;
        int64_t next = sbox_expire(&prov);
        assert_int_equal(b->phase, SBOX_LIVE);
        assert_in_range(next, 1, 15000);
        near_to(b->rec.end_ms, clock_wall_ms() + 60000); /* what clients see */
    }
    wall_shift_ms = -DAY_MS;
    boot_shift_ms = 61000; /* a minute later, whatever the wall clock says */
    sbox_expire(&prov);
    assert_int_equal(b->phase, SBOX_KILLING);
    int status;
    assert_int_equal(waitpid(stand_in, &status, 0), stand_in);
    assert_true(WIFSIGNALED(status));
}

/* A machine that slept: the time is over, as for anybody who waited. */
static void test_sleep(void **state)
{
    (void)state;
    struct sbox *b = add_box(60000);
    sbox_expire(&prov);
    boot_shift_ms = DAY_MS;
    sbox_expire(&prov);
    assert_int_equal(b->phase, SBOX_KILLING);
}

/* The record is read back after a jump: the same time is left. */
static void test_adopted(void **state)
{
    (void)state;
    struct sbox *b = add_box(60000);
    struct sbox_rec r;
    assert_int_equal(boxstore_save(state_dir, &b->rec, NULL), 0);
    wall_shift_ms = DAY_MS;
    assert_int_equal(boxstore_load(state_dir, b->rec.id, &r, NULL), 0);
    assert_int_equal(r.end_boot_ms, b->rec.end_boot_ms);
    near_to(sbox_rec_end_now(&r), clock_wall_ms() + 60000);
    sbox_rec_clear(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_jumps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sleep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_adopted, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("expiry", tests, NULL, NULL);
}
