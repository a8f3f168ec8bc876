/* log: redaction, folding, the ring, the file and its one rotation. */
#include "../lib/heldread.h"

#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* keep last */
#include <cmocka.h>

#define CANARY "CanaryValue+/~0123456789"

static char dir[] = "/tmp/cct-log-XXXXXX";
static char path[64], old_path[64];

static int set_up(void **state)
{
    (void)state;
    umask(0);
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/log", dir);
    snprintf(old_path, sizeof(old_path), "%s/log.1", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    log_close();
    unlink(path);
    unlink(old_path);
    return rmdir(dir);
}

static void check_redact(const char *in, const char *want)
{
    char text[512];
    assert_true(str_copy(text, sizeof(text), in));
    log_redact(text, strlen(text));
    assert_string_equal(text, want);
}

static void test_patterns(void **state)
{
    (void)state;
    check_redact("key e2b_0123456789abcdef end", "key e2b_**************** end");
    check_redact("e2b_0123456 short", "e2b_0123456 short");
    check_redact("use sk-ant-api03-AbC_9 now", "use sk-*************** now");
    check_redact("https://ghp_0123456789abcdef@host", "https://ghp_****************@host");
    check_redact("github_pat_11AB_0123456789 x", "github_pat_*************** x");
    check_redact("gho_of_old and weighs_0123456789abc", "gho_of_old and weighs_0123456789abc");
    check_redact("a task-list-of-things", "a task-list-of-things");
    check_redact("sk-short", "sk-short");
    check_redact("Authorization: Bearer abc def\r\nHost: x",
                 "Authorization: **************\r\nHost: x");
    check_redact("x-api-key: abc, next", "x-api-key: ***, next");
    check_redact("X-Access-Token:abc", "X-Access-Token:***");
    check_redact("{\"X-API-Key\": \"abc\", \"a\": 1}", "{\"X-API-Key\": \"***\", \"a\": 1}");
    check_redact("{\"envdAccessToken\":\"abcd\"}", "{\"envdAccessToken\":\"****\"}");
    check_redact("E2B_API_KEY=abcd go", "E2B_API_KEY=**** go");
    check_redact("the api key is missing", "the api key is missing");
    check_redact("X-API-Key:", "X-API-Key:");
    check_redact("", "");
}

static bool stars_only_between(const char *text, const char *before, const char *after)
{
    size_t b = strlen(before), a = strlen(after), n = strlen(text);
    if (n < a + b || strncmp(text, before, b) != 0 || strcmp(text + n - a, after) != 0)
        return false;
    return strspn(text + b, "*") == n - a - b;
}

static void test_values(void **state)
{
    (void)state;
    char text[512];
    log_redact_value("short", 5);
    check_redact("short", "short");
    log_redact_value(CANARY, strlen(CANARY));
    log_redact_value(CANARY, strlen(CANARY));
    snprintf(text, sizeof(text), "<%s>", CANARY);
    log_redact(text, strlen(text));
    assert_true(stars_only_between(text, "<", ">"));
    str_copy(text, sizeof(text), "<CanaryValue%2B%2f%7E0123456789>");
    log_redact(text, strlen(text));
    assert_true(stars_only_between(text, "<", ">"));
    str_copy(text, sizeof(text), "<CanaryValue%2B/~0123456789>");
    log_redact(text, strlen(text));
    assert_true(stars_only_between(text, "<", ">"));
    check_redact("CanaryValue+/~012345678", "CanaryValue+/~012345678");
}

/* Whatever stands before the value, its base64 shows no more than its edges. */
static void test_base64(void **state)
{
    (void)state;
    for (int before = 0; before < 4; before++)
        for (int url_safe = 0; url_safe < 2; url_safe++) {
            char plain[128];
            snprintf(plain, sizeof(plain), "%.*s%s:tail", before, "u:x?", CANARY);
            char *text = b64_encode(plain, strlen(plain));
            for (char *p = text; url_safe && *p; p++)
                *p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
            log_redact(text, strlen(text));
            size_t stars = 0;
            for (const char *p = text; *p; p++)
                stars += *p == '*';
            assert_true(stars >= strlen(CANARY) * 4 / 3 - 2);
            free(text);
        }
}

/* Who has many sandboxes adds a key, and what opens old ones is not looked for. */
static void test_tokens(void **state)
{
    (void)state;
    char value[48], text[64], late[] = "a key that was added late";
    for (int i = 0; i < 500; i++) {
        snprintf(value, sizeof(value), "opens sandbox %d, nothing else%*s", i, i % 10, "");
        log_redact_token(value, strlen(value));
        snprintf(text, sizeof(text), "<%s>", value);
        log_redact(text, strlen(text));
        assert_true(stars_only_between(text, "<", ">"));
    }
    log_redact_value(late, strlen(late));
    log_redact(late, strlen(late));
    assert_int_equal(strspn(late, "*"), strlen(late));
    check_redact("opens sandbox 9, nothing else", "opens sandbox 9, nothing else");
}

/* Pages that cannot be locked are said, and still redact. */
static void test_no_lock(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        static char value[40000];
        struct log_line l;
        struct rlimit none = {0, 0};
        memset(value, 'v', sizeof(value) - 1);
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(2);
        setrlimit(RLIMIT_MEMLOCK, &none);
        log_redact_value(value, sizeof(value) - 1);
        bool said = log_snapshot(&l, 1, NULL) == 1 && strstr(l.text, "could not be locked");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their mlock is a no-op \
                                                                     */
        if (!said)
            _exit(3);
#endif
        (void)said;
        log_redact(value, sizeof(value) - 1);
        _exit(strspn(value, "*") == sizeof(value) - 1 ? 0 : 4);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static size_t newest(struct log_line *l, size_t n)
{
    uint64_t rev;
    return log_snapshot(l, n, &rev);
}

static void test_fold_and_ring(void **state)
{
    (void)state;
    static struct log_line l[600];
    uint64_t rev, after;
    log_open(NULL, LOG_INFO);
    log_info("first");
    log_snapshot(l, 1, &rev);
    for (int i = 0; i < 5; i++)
        log_warn("same %s", "again");
    log_debug("not wanted");
    assert_int_equal(log_snapshot(l, 2, &after), 2);
    assert_string_equal(l[0].text, "first");
    assert_string_equal(l[1].text, "same again");
    assert_int_equal(l[1].repeat, 5);
    assert_int_equal(l[1].level, LOG_WARN);
    assert_true(after > rev);
    log_error("same again"); /* another level is another line */
    assert_int_equal(newest(l, 1), 1);
    assert_int_equal(l[0].level, LOG_ERROR);
    for (int i = 0; i < 700; i++)
        log_info("line %d", i);
    assert_int_equal(newest(l, 600), 512);
    assert_string_equal(l[0].text, "line 188");
    assert_string_equal(l[511].text, "line 699");
}

static void test_text_is_flat(void **state)
{
    (void)state;
    struct log_line l;
    log_info("a\nb\tc\x1b[31m\x7f \xC2\x9B \xFF \xC3\xA9");
    newest(&l, 1);
    assert_string_equal(l.text, "a b c?[31m? ?? ? \xC3\xA9");
}

/* A secret across the cut of a long line must not show its first half. */
static void test_cut(void **state)
{
    (void)state;
    char filler[2000];
    struct log_line l;
    for (size_t n = 290; n < 325; n++) {
        memset(filler, 'x', n);
        filler[n] = '\0';
        log_info("%s" CANARY, filler);
        newest(&l, 1);
        assert_null(strstr(l.text, "Can"));
        assert_true(strlen(l.text) < sizeof(l.text));
    }
    memset(filler, 'y', sizeof(filler));
    memcpy(filler + 1015, CANARY, strlen(CANARY)); /* across the first buffer's end */
    filler[1500] = '\0';
    assert_int_equal(log_open(path, LOG_INFO), 0);
    log_info("%s", filler);
    log_close();
    char *text = fs_read(path, 1 << 20, true, NULL, NULL);
    assert_non_null(strstr(text, "yyy****"));
    assert_null(strstr(text, "Can"));
    free(text);
    unlink(path);
}

static void test_file(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(log_open(path, LOG_DEBUG), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    log_debug("one %s", CANARY);
    for (int i = 0; i < 3; i++)
        log_warn("two");
    log_error("three");
    log_error("three");
    log_close();
    char *text = fs_read(path, 1 << 20, true, NULL, NULL);
    assert_null(strstr(text, "Canary"));
    assert_non_null(strstr(text, "Z debug one ****"));
    assert_non_null(strstr(text, "Z warn  two\n"));
    assert_non_null(strstr(text, "(the line above 2 more times)\n"));
    assert_true(str_ends(text, "(the line above 1 more times)\n"));
    int lines = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    assert_int_equal(lines, 5);
    free(text);
}

static void test_rotation(void **state)
{
    (void)state;
    char filler[1000];
    struct stat st;
    memset(filler, 'z', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    unlink(path);
    assert_int_equal(log_open(path, LOG_INFO), 0);
    for (unsigned i = 0; i < LIM_LOG_FILE_BYTES / 1000 * 2 + 500; i++)
        log_info("%u %s", i, filler);
    log_close();
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < (off_t)LIM_LOG_FILE_BYTES + 2000);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(old_path, &st), 0);
    assert_in_range(st.st_size, LIM_LOG_FILE_BYTES, LIM_LOG_FILE_BYTES + 2000);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* Another process made the full file an old one already: its new file is joined, and the old one
 * stays. */
static void test_rotated_by_another(void **state)
{
    (void)state;
    char filler[1000];
    struct stat st;
    memset(filler, 'z', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    unlink(path);
    assert_int_equal(log_open(path, LOG_INFO), 0);
    for (unsigned i = 0; stat(path, &st) == 0 && st.st_size < (off_t)LIM_LOG_FILE_BYTES; i++)
        log_info("%u %s", i, filler);
    assert_int_equal(rename(path, old_path), 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "of another\n", 11), 11);
    close(fd);
    log_info("joined");
    log_close();
    char *text = fs_read(path, 1 << 20, true, NULL, NULL);
    assert_true(str_starts(text, "of another\n"));
    assert_non_null(strstr(text, " joined\n"));
    free(text);
    assert_int_equal(stat(old_path, &st), 0);
    assert_true(st.st_size >= (off_t)LIM_LOG_FILE_BYTES);
}

static void test_file_traps(void **state)
{
    (void)state;
    unlink(path);
    unlink(old_path);
    assert_int_equal(symlink(old_path, path), 0);
    assert_true(log_open(path, LOG_INFO) < 0);
    assert_int_equal(access(old_path, F_OK), -1);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_true(log_open(path, LOG_INFO) < 0);
    unlink(path);
    int fd = open(old_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    assert_int_equal(link(old_path, path), 0);
    assert_true(log_open(path, LOG_INFO) < 0);
    unlink(path);
    unlink(old_path);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    close(fd);
    assert_int_equal(log_open(path, LOG_INFO), 0); /* ours, but too open: tightened */
    struct stat st;
    stat(path, &st);
    assert_int_equal(st.st_mode & 0777, 0600);
    log_close();
}

static void log_many(void *arg)
{
    for (int i = 0; i < 300; i++) {
        log_info("thread %d line %d %s", *(int *)arg, i, CANARY);
        if (i % 100 == 0) {
            char value[32];
            snprintf(value, sizeof(value), "value-%d-%d-of-many", *(int *)arg, i);
            log_redact_value(value, strlen(value));
        }
    }
}

static void test_threads(void **state)
{
    (void)state;
    static struct log_line l[64];
    pthread_t t[3];
    int number[3] = {0, 1, 2};
    unlink(path);
    assert_int_equal(log_open(path, LOG_INFO), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(thread_start(&t[i], THREAD_WORK, "logger", log_many, &number[i]), 0);
    for (int i = 0; i < 50; i++)
        newest(l, 64);
    for (int i = 0; i < 3; i++)
        assert_true(thread_join_ms(t[i], 20000));
    log_close();
    char *text = fs_read(path, 4 << 20, true, NULL, NULL);
    int lines = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    assert_int_equal(lines, 900);
    assert_null(strstr(text, "Canary"));
    free(text);
}

static size_t lines_of(const char *name)
{
    size_t len = 0, n = 0;
    char *text = fs_read(name, LIM_LOG_FILE_BYTES, true, &len, NULL);

    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    free(text);
    return n;
}

/* By a thread: each line, in its order, all of them at the end; and once more. */
static void test_beside(void **state)
{
    (void)state;
    for (int round = 1; round <= 2; round++) {
        unlink(path);
        assert_int_equal(log_open(path, LOG_INFO), 0);
        log_beside();
        for (int i = 0; i < 500; i++)
            log_info("line %d of it", i);
        log_close();
        assert_int_equal(lines_of(path), 500);
        char *text = fs_read(path, LIM_LOG_FILE_BYTES, true, &(size_t){0}, NULL), *at = text;
        for (int i = 0; i < 500; i++) {
            char want[32];
            snprintf(want, sizeof(want), "line %d of it\n", i);
            at = strstr(at, want);
            assert_non_null(at);
        }
        free(text);
    }
}

/* A disk that does not answer holds neither who logs nor the end. The last one: it stays so. */
static void test_hung(void **state)
{
    static const struct heldread opens = {.opens = O_NOFOLLOW};
    struct log_line line;

    (void)state;
    unlink(path);
    assert_int_equal(log_open(path, LOG_INFO), 0);
    for (size_t n = 0; n <= LIM_LOG_FILE_BYTES / 300; n++) /* the next one begins a new file */
        log_info("%0300zu", n);
    log_beside();
    if (!heldread_install(&opens, 1))
        skip();
    for (int i = 0; i < 8000; i++) /* more than is kept for it */
        log_info("%0300d, which waits", i);
    assert_int_equal(log_snapshot(&line, 1, NULL), 1);
    assert_non_null(strstr(line.text, "7999, which waits"));
    log_close();
    log_info("nobody is held");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),      cmocka_unit_test(test_values),
        cmocka_unit_test(test_base64),        cmocka_unit_test(test_no_lock),
        cmocka_unit_test(test_fold_and_ring), cmocka_unit_test(test_text_is_flat),
        cmocka_unit_test(test_cut),           cmocka_unit_test(test_file),
        cmocka_unit_test(test_rotation),      cmocka_unit_test(test_rotated_by_another),
        cmocka_unit_test(test_file_traps),    cmocka_unit_test(test_threads),
        cmocka_unit_test(test_tokens),        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_hung),
    };
    return cmocka_run_group_tests_name("util_log", tests, set_up, tear_down);
}
