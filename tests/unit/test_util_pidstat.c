/* What is read of a process, whatever it calls itself, and of one that has ended. */
#include <cct/util/pidstat.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* keep last */
#include <cmocka.h>

/* By counting, from the end of the name. */
static unsigned long long field(pid_t pid, int want)
{
    char path[64], line[1024];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    fclose(f);
    char *p = strrchr(line, ')') + 2;
    for (int i = 3; i < want; i++)
        p = strchr(p, ' ') + 1;
    return strtoull(p, NULL, 10);
}

static void test_names(void **state)
{
    static const char *const names[] = {"plain", ") Z 1 (", "a b) X", ")", "(("};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int ready[2];
        char c;
        struct pidstat s;

        assert_int_equal(pipe(ready), 0);
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_NAME, names[i]);
            if (write(ready[1], "x", 1) == 1)
                pause();
            _exit(1);
        }
        assert_int_equal(read(ready[0], &c, 1), 1);
        assert_true(pidstat_read(pid, &s));
        assert_int_equal(s.parent, getpid());
        assert_true(s.state == 'S' || s.state == 'R');
        assert_int_equal(s.start, field(pid, 22));
        assert_int_equal(s.rss_pages > 0, 1);
        assert_true(pidstat_lives(pid));
        assert_int_equal(pidstat_start(pid), s.start);
        kill(pid, SIGKILL);
        siginfo_t si;
        assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
        assert_true(pidstat_read(pid, &s)); /* it is there until it was waited for */
        assert_int_equal(s.state, 'Z');
        assert_false(pidstat_lives(pid));
        assert_int_equal(pidstat_start(pid), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_false(pidstat_read(pid, &s));
        close(ready[0]);
        close(ready[1]);
    }
}

static void test_ticks(void **state)
{
    struct pidstat s;
    clock_t begin = clock();

    (void)state;
    assert_true(pidstat_read(getpid(), &s));
    int64_t before = s.ticks;
    while (clock() - begin < CLOCKS_PER_SEC / 10) /* so much CPU time, whatever runs beside */
        ;
    assert_true(pidstat_read(getpid(), &s));
    assert_in_range(s.ticks - before, 8, 12); /* of a hundred a second */
    assert_true(s.start > 0 && s.parent == getppid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_ticks),
    };
    return cmocka_run_group_tests_name("util_pidstat", tests, NULL, NULL);
}
