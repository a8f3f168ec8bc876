/* Errands: programs with what they are given, their ends, files, an editor. */
#include "../lib/heldread.h"

#include <cct/util/clock.h>
#include <cct/util/errand.h>
#include <cct/util/fs.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { LONG = 40000 };

static char dir[64];

static struct errand_done *await(struct errands *x)
{
    struct errand_done *d;
    while (!(d = errands_take(x))) {
        struct pollfd p = {.fd = errands_fd(x), .events = POLLIN};
        assert_int_equal(poll(&p, 1, 2 * LONG), 1);
    }
    return d;
}

static struct errand *shell(const char *command, const char *input)
{
    struct errand *e = errand_new(ERRAND_RUN, 7);
    errand_shell(e, command);
    buf_adds(&e->input, input);
    e->timeout_ms = LONG;
    return e;
}

static void runs(struct errands *x, struct errand *e, int status, const char *out)
{
    errands_post(x, e);
    struct errand_done *d = await(x);
    assert_int_equal(d->id, 7);
    assert_int_equal(d->status, status);
    assert_int_equal(d->err.code == 0, status == 0);
    assert_string_equal(buf_str(&d->output), out);
    msg_free(&d->m);
}

static void test_run(void **state)
{
    (void)state;
    struct errands *x = errands_new();
    runs(x, shell("cat; echo err >&2", "in $(id) `id`\n"), 0, "in $(id) `id`\nerr\n");
    runs(x, shell("exit 3", "nobody reads this"), 3, "");
    runs(x, shell("kill -9 $$", ""), 128 + 9, "");
    struct errand *e = shell("echo \"$A $B\"", "");
    errand_setenv(e, "A", "$(touch bad); x");
    errand_setenv(e, "B", "2");
    runs(x, e, 0, "$(touch bad); x 2\n");
    e = errand_new(ERRAND_RUN, 7); /* no shell: words stay words */
    errand_argv(e, (const char *const[]){"printf", "%s|", "a b", "$HOME", NULL});
    runs(x, e, 0, "a b|$HOME|");
    runs(x, shell("trap '' PIPE; ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo own", ""), 0,
         "own\n");
    e = errand_new(ERRAND_RUN, 7);
    errand_argv(e, (const char *const[]){"/nonexistent/program", NULL});
    errands_post(x, e);
    struct errand_done *d = await(x);
    assert_int_equal(d->status, -1);
    assert_non_null(strstr(d->err.text, "cannot run '/nonexistent/program': No such file"));
    msg_free(&d->m);
    errands_free(x);
}

/* Much to a program that takes it slowly, much from one that talks: bounded, in full. */
static void test_much(void **state)
{
    (void)state;
    struct errands *x = errands_new();
    struct errand *e = shell("wc -c", "");
    for (int i = 0; i < 50000; i++)
        buf_adds(&e->input, "some text that is long\n");
    runs(x, e, 0, "1150000\n");
    errands_post(x, shell("yes | head -c 100000", ""));
    struct errand_done *d = await(x);
    assert_int_equal(d->status, 0);
    assert_int_equal(d->output.len, 4096);
    msg_free(&d->m);
    errands_free(x);
}

static void test_too_long(void **state)
{
    (void)state;
    struct errands *x = errands_new();
    struct errand *e = shell("sleep 1000 & sleep 1000", "");
    e->timeout_ms = 50;
    errands_post(x, e);
    struct errand_done *d = await(x);
    assert_int_equal(d->err.code, ERR_TIMEOUT);
    assert_int_equal(d->status, 128 + 15);
    msg_free(&d->m);
    e = shell("trap '' TERM; while :; do sleep 0.05; done", "");
    e->timeout_ms = 50;
    errands_post(x, e);
    d = await(x);
    assert_int_equal(d->status, 128 + 9);
    msg_free(&d->m);
    errands_free(x);
}

static int open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* More than run at once; and an owner who goes while they run. */
static void test_many(void **state)
{
    (void)state;
    int files = open_files();
    struct errands *x = errands_new();
    for (int i = 0; i < 30; i++)
        errands_post(x, shell("echo one", ""));
    for (int i = 0; i < 30; i++) {
        struct errand_done *d = await(x);
        assert_string_equal(buf_str(&d->output), "one\n");
        msg_free(&d->m);
    }
    int64_t begin = clock_mono_ms();
    for (int i = 0; i < 30; i++) {
        errands_post(x, shell("sleep 1000", ""));
        sched_yield(); /* some are taken while others come */
    }
    errands_free(x);
    assert_true(clock_mono_ms() - begin < LONG / 2); /* nothing begins any more, or it would take LONG */
    errands_free(errands_new());
    errands_free(NULL);
    assert_int_equal(open_files(), files);
}

static void test_files(void **state)
{
    (void)state;
    struct errands *x = errands_new();
    struct stat st;
    struct errand *e = errand_new(ERRAND_WRITE, 7);
    char *path = fs_join(dir, "new/copy.txt");
    e->path = xstrdup(path);
    buf_adds(&e->input, "text");
    runs(x, e, 0, "");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, 4);
    unlink(path);
    /* an editor: gets the file as last word, what it leaves comes back, the file goes */
    e = errand_new(ERRAND_EDIT, 7);
    assert_true(errand_words(e, "sh -c 'cat \"$1\" > \"$1.2\"; echo more >> \"$1.2\"; "
                                "mv \"$1.2\" \"$1\"' edit"));
    e->path = xstrdup(path);
    buf_adds(&e->input, "first\n");
    runs(x, e, 0, "first\nmore\n");
    assert_int_equal(access(path, F_OK), -1);
    e = errand_new(ERRAND_EDIT, 7);
    assert_true(errand_words(e, "false"));
    e->path = xstrdup(path);
    runs(x, e, 1, "");
    assert_int_equal(access(path, F_OK), -1);
    /* a file that somebody else put there is not taken */
    assert_int_equal(symlink("/dev/null", path), 0);
    e = errand_new(ERRAND_EDIT, 7);
    assert_true(errand_words(e, "true"));
    e->path = xstrdup(path);
    runs(x, e, -1, "");
    unlink(path);
    free(path);
    errands_free(x);
    path = fs_join(dir, "new");
    rmdir(path);
    free(path);
}

static void words_are(const char *s, const char *want)
{
    struct errand *e = errand_new(ERRAND_RUN, 1);
    struct buf b = BUF_INIT;
    if (errand_words(e, s))
        for (size_t i = 0; e->argv[i]; i++)
            buf_addf(&b, "%s|", e->argv[i]);
    assert_string_equal(buf_str(&b), want);
    buf_release(&b);
    msg_free(&e->m);
}

static void test_words(void **state)
{
    (void)state;
    words_are("vim", "vim|");
    words_are("  code  --wait ", "code|--wait|");
    words_are("\"my editor\" -x 'a b' c\\ d \"\" 'it''s'", "my editor|-x|a b|c d||its|");
    words_are("a \"\\\"b\\\"\" 'c\\d'", "a|\"b\"|c\\d|");
    words_are("vi; rm -rf $HOME", "vi;|rm|-rf|$HOME|");
    words_are("", "");
    words_are("   ", "");
    words_are("vi \"open", "");
}

/* A disk that does not answer holds the thread, not who wants to end. The last one: it stays. */
static void test_hung(void **state)
{
    static const struct heldread opens = {.opens = O_NOFOLLOW | O_DIRECTORY};
    struct errands *x = errands_new();
    struct errand *e = errand_new(ERRAND_WRITE, 1);

    (void)state;
    if (!heldread_install(&opens, 1)) {
        errands_free(x);
        msg_free(&e->m);
        skip();
    }
    e->path = xasprintf("%s/held", dir);
    errands_post(x, e);
    errands_free(x);
    assert_int_not_equal(access(dir, F_OK), -1);
}

int main(void)
{
    thread_set_role(THREAD_MAIN);
    signal(SIGPIPE, SIG_IGN);
    memcpy(dir, "/tmp/test-errand-XXXXXX", 24);
    if (!mkdtemp(dir))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),   cmocka_unit_test(test_much),
        cmocka_unit_test(test_many),  cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_files), cmocka_unit_test(test_words),
        cmocka_unit_test(test_hung),
    };
    int rc = cmocka_run_group_tests_name("errand", tests, NULL, NULL);
    rmdir(dir);
    return rc;
}
