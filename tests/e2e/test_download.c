/* Downloads through the facade from a sandbox that lies about its files: nothing is made outside
 * of the folder, nothing is replaced, nothing goes on without end. And a file system here that
 * cannot link. */
#include "../lib/appbed.h"
#include "../lib/faultproc.h"

#include <cct/model/files.h>
#include <cct/model/model.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static _Atomic bool no_links;

/* As on vfat. */
int linkat(int from, const char *a, int to, const char *b, int flags)
{
    if (!atomic_load(&no_links))
        return (int)syscall(SYS_linkat, from, a, to, b, flags);
    errno = EPERM;
    return -1;
}

static struct faultd *fake;

static bool has_row(struct appbed *b, const void *arg)
{
    (void)arg;
    return app_model(b->app)->n_sandboxes == 1 && app_model(b->app)->listed_at;
}

static int setup(void **state)
{
    const char *args[] = {"--sandboxes", "1", NULL};
    struct appbed *b = appbed_new();

    fake = faultd_start(args);
    assert_non_null(fake);
    appbed_service(b, faultd_url(fake));
    appbed_open(b, &(struct app_opts){.follow_all = true, .poll_ms = 50});
    assert_true(appbed_wait(b, has_row, NULL));
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    atomic_store(&no_links, false);
    appbed_free(*state);
    faultd_stop(fake);
    return 0;
}

/* What the sandbox says: of the path itself, of each folder, as each file. */
static void says(const char *stat, const char *list, const char *file)
{
    struct buf b = BUF_INIT;
    static const char *const paths[] = {"/filesystem.Filesystem/Stat",
                                        "/filesystem.Filesystem/ListDir", "/files*"};
    const char *bodies[] = {stat, list, file};

    buf_adds(&b, "{\"rules\":[");
    for (size_t i = 0; i < 3; i++) {
        buf_addf(&b, "%s{\"path\":\"%s\",\"status\":200,\"body\":", i ? "," : "", paths[i]);
        buf_add_json(&b, bodies[i], strlen(bodies[i]));
        buf_addc(&b, '}');
    }
    buf_adds(&b, "]}");
    assert_true(faultd_config(fake, buf_str(&b)));
    buf_release(&b);
}

#define ENTRY(name, type) "{\"name\":\"" name "\",\"type\":\"FILE_TYPE_" type "\",\"size\":\"4\"}"
#define FOLDER "{\"entry\":{\"name\":\"w\",\"type\":\"FILE_TYPE_DIRECTORY\",\"path\":\"/w\"}}"
#define FILE_ITSELF "{\"entry\":{\"name\":\"f\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"/f\",\"size\":\"4\"}}"

static int get(struct appbed *b, const char *path, const char *local, bool over)
{
    struct app_file f = {.op = FILE_OP_GET, .path = path, .local = local, .over = over};

    return appbed_finish(b, app_file(b->app, app_model(b->app)->sandboxes[0].id, &f, &(struct app_file_cb){0}));
}

static void is_file(const char *dir, const char *name, const char *want)
{
    char *path = fs_join(dir, name), *text;
    size_t len;

    text = fs_read(path, 100, false, &len, NULL);
    assert_non_null(text);
    assert_string_equal(text, want);
    free(text);
    free(path);
}

static bool is_there(const char *dir, const char *name)
{
    char *path = fs_join(dir, name);
    struct stat st;
    bool yes = lstat(path, &st) == 0;

    free(path);
    return yes;
}

static void test_hostile_names(void **state)
{
    struct appbed *b = *state;
    char *to = appbed_path(b, "to");

    says(FOLDER, "{\"entries\":[" ENTRY("../evil", "FILE") "," ENTRY("..", "DIRECTORY") ","
         ENTRY("/evil", "FILE") "," ENTRY(".", "DIRECTORY") "," ENTRY("", "FILE") ","
         ENTRY("a\\u001b[2Jb", "FILE") "," ENTRY("ok", "FILE") "," ENTRY("pipe", "UNSPECIFIED")
         ",{\"name\":\"link\",\"type\":\"FILE_TYPE_DIRECTORY\",\"symlinkTarget\":\"/\"}]}", "data");
    if (get(b, "/w", to, false) != 0)
        fail_msg("%s", b->err.text);
    assert_non_null(strstr(b->text, "8 left out"));
    is_file(to, "ok", "data");
    assert_false(is_there(b->root, "evil"));
    assert_false(is_there(to, "evil") || is_there(to, "link") || is_there(to, "pipe"));
    free(to);
}

/* Each folder holds the same again. */
static void test_without_end(void **state)
{
    struct appbed *b = *state;
    char *to = appbed_path(b, "to");
    struct buf many = BUF_INIT;

    buf_adds(&many, "{\"entries\":[");
    for (int i = 0; i < 2000; i++)
        buf_addf(&many, "%s{\"name\":\"d%d\",\"type\":\"FILE_TYPE_DIRECTORY\"}", i ? "," : "", i);
    buf_adds(&many, "]}");
    says(FOLDER, buf_str(&many), "");
    buf_release(&many);
    assert_int_equal(get(b, "/w", to, false), ERR_LIMIT);
    assert_non_null(strstr(b->err.text, "more than 50000"));
    says(FOLDER, "{\"entries\":[" ENTRY("d", "DIRECTORY") "]}", "");
    free(to);
    to = appbed_path(b, "again");
    assert_int_equal(get(b, "/w", to, false), ERR_LIMIT);
    assert_non_null(strstr(b->err.text, "64 deep"));
    free(to);
}

static bool has_part(struct appbed *b, const void *to)
{
    DIR *d = opendir(to);
    bool yes = false;

    (void)b;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        yes |= str_starts(e->d_name, ".ok.part-");
    if (d)
        closedir(d);
    return yes;
}

static void test_called_off(void **state)
{
    struct appbed *b = *state;
    char *to = appbed_path(b, "to");
    struct app_file f = {.op = FILE_OP_GET, .path = "/w", .local = to};
    uint64_t req;

    assert_true(faultd_config(fake, "{\"rules\":[{\"path\":\"*Stat\",\"status\":200,\"body\":\"{\\\"entry\\\":"
                                    "{\\\"name\\\":\\\"w\\\",\\\"type\\\":\\\"FILE_TYPE_DIRECTORY\\\"}}\"},"
                                    "{\"path\":\"*ListDir\",\"status\":200,\"body\":\"{\\\"entries\\\":"
                                    "[{\\\"name\\\":\\\"ok\\\",\\\"type\\\":\\\"FILE_TYPE_FILE\\\"}]}\"},"
                                    "{\"path\":\"/files*\",\"stall\":true}]}"));
    req = app_file(b->app, app_model(b->app)->sandboxes[0].id, &f, &(struct app_file_cb){0});
    assert_true(appbed_wait(b, has_part, to));
    app_file_cancel(b->app, req);
    assert_int_equal(appbed_finish(b, req), ERR_CANCELLED);
    assert_false(has_part(b, to)); /* nothing half is left */
    assert_false(is_there(to, "ok"));
    free(to);
}

static void test_what_is_there_stays(void **state)
{
    struct appbed *b = *state;
    char *to = appbed_path(b, "to"), *out = appbed_path(b, "out"), *link;
    struct err e = {0};

    says(FILE_ITSELF, "{}", "data");
    assert_int_equal(get(b, "/f", to, false), 0);
    assert_int_equal(get(b, "/f", to, false), ERR_CONFLICT);
    says(FOLDER, "{\"entries\":[" ENTRY("d", "DIRECTORY") "]}", "data");
    assert_int_equal(get(b, "/w", to, true), ERR_CONFLICT); /* a file is no folder */
    is_file(b->root, "to", "data");
    unlink(to);
    assert_int_equal(mkdir(to, 0700) | mkdir(out, 0700), 0);
    link = fs_join(to, "w");
    assert_int_equal(symlink(out, link), 0);
    assert_int_equal(get(b, "/w", to, true), ERR_CONFLICT); /* nor is a link to one */
    free(link);
    link = fs_join(out, "x");
    assert_int_equal(fs_write_new(link, "x", 1, &e), 0);
    says(FILE_ITSELF, "{}", "data");
    free(link);
    link = fs_join(to, "f");
    assert_int_equal(symlink("../out/x", link), 0);
    assert_int_equal(get(b, "/f", link, true), 0); /* the link goes, not what it leads to */
    is_file(out, "x", "x");
    is_file(to, "f", "data");
    free(link);
    free(out);
    free(to);
}

static void test_no_links_here(void **state)
{
    struct appbed *b = *state;
    char *to = appbed_path(b, "to");

    says(FILE_ITSELF, "{}", "data");
    atomic_store(&no_links, true);
    assert_int_equal(get(b, "/f", to, false), 0);
    is_file(b->root, "to", "data");
    assert_int_equal(get(b, "/f", to, false), ERR_CONFLICT);
    is_file(b->root, "to", "data");
    free(to);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_hostile_names), T(test_without_end), T(test_what_is_there_stays),
        T(test_no_links_here), T(test_called_off),
    };

    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
