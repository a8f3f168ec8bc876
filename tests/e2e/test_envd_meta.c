/* What /files says beside the bytes: encodings, conditions, metadata; files joined;
 * moves and disks that are full. */
#include "../lib/initbox.h"
#include <cct/local/init.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define RAW "Content-Type: application/octet-stream\r\n"
#define COMPOSE "/files/compose", "Content-Type: application/json\r\n"

static bool can_mount;

static char *at(const char *name)
{
    static char path[4][200];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof(path[i]), "%s/%s", initbox_dir, name);
    return path[i];
}

static void upload(const char *path, const char *headers, const char *text)
{
    struct initbox_answer a;
    char url[200];
    snprintf(url, sizeof(url), "/files?path=%s", path);
    initbox_call(&a, "POST", url, headers, text);
    if (a.status != 200)
        fail_msg("%d %s", a.status, buf_str(&a.body));
    buf_release(&a.body);
}

static void has_text(const char *name, const char *want)
{
    char text[64] = "";
    int fd = open(at(name), O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof(text) - 1), (ssize_t)strlen(want));
    assert_string_equal(text, want);
    close(fd);
}

static size_t count_entries(const char *name)
{
    size_t n = 0;
    DIR *d = opendir(at(name));
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n - 2;
}

static void get(struct initbox_answer *a, const char *path, const char *headers, int status)
{
    char url[200];
    snprintf(url, sizeof(url), "/files?path=%s", path);
    initbox_call(a, "GET", url, headers, "");
    if (a->status != status)
        fail_msg("%s with %s: %d, not %d", path, headers, a->status, status);
}

static void rpc(struct initbox_answer *a, const char *method, const char *json, int status)
{
    char path[80];
    snprintf(path, sizeof(path), "/filesystem.Filesystem/%s", method);
    initbox_rpc(a, path, json);
    if (a->status != status)
        fail_msg("%s %s: %d %s", method, json, a->status, buf_str(&a->body));
}

/* --- downloads ------------------------------------------------------------ */

static void unpack(const struct buf *in, struct buf *out)
{
    z_stream z = {0};
    unsigned char piece[65536];
    int rc = Z_OK;
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = (Bytef *)in->p;
    z.avail_in = (uInt)in->len;
    while (rc == Z_OK) {
        z.next_out = piece;
        z.avail_out = sizeof(piece);
        rc = inflate(&z, Z_NO_FLUSH);
        buf_add(out, piece, sizeof(piece) - z.avail_out);
    }
    assert_int_equal(rc, Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    inflateEnd(&z);
}

static void test_gzip(void **state)
{
    struct initbox_answer a;
    struct buf text = BUF_INIT, back = BUF_INIT;
    (void)state;
    for (int i = 0; i < 100000; i++)
        buf_addf(&text, "line %d of many\n", i);
    upload("big.txt", RAW, buf_str(&text));
    get(&a, "big.txt", "Accept-Encoding: gzip, deflate\r\n", 200);
    initbox_has(a.head, "Content-Encoding: gzip\r\n");
    initbox_has(a.head, "Vary: Accept-Encoding\r\n");
    initbox_has(a.head, "Content-Disposition: inline; filename=big.txt\r\n");
    assert_true(a.body.len < text.len / 4);
    unpack(&a.body, &back);
    assert_int_equal(back.len, text.len);
    assert_memory_equal(back.p, text.p, text.len);
    buf_release(&a.body);
    buf_release(&back);
    get(&a, "big.txt", "", 200);
    assert_null(strstr(a.head, "Content-Encoding"));
    assert_int_equal(a.body.len, text.len);
    buf_release(&a.body);
    upload("empty", RAW, "");
    get(&a, "empty", "Accept-Encoding: gzip\r\n", 200);
    unpack(&a.body, &back);
    assert_int_equal(back.len, 0);
    buf_release(&a.body);
    buf_release(&back);
    buf_release(&text);
}

static void test_conditions(void **state)
{
    struct initbox_answer a;
    struct timespec t[2] = {{1700000000, 0}, {1700000000, 500}};
    (void)state;
    upload("c.txt", RAW, "12345");
    assert_int_equal(utimensat(AT_FDCWD, at("c.txt"), t, 0), 0);
#define SAME "Tue, 14 Nov 2023 22:13:20 GMT\r\n"
#define OLD "Tue, 14 Nov 2023 22:13:19 GMT\r\n"
    static const struct {
        const char *headers;
        int status;
        const char *body;
    } cases[] = {
        {"", 200, "12345"},
        {"Accept-Encoding: identity;q=0\r\n", 406, NULL},
        {"Accept-Encoding: gzip\r\nRange: bytes=1-2\r\n", 206, "23"},
        {"Accept-Encoding: gzip, identity;q=0\r\nRange: bytes=1-2\r\n", 406, NULL},
        {"If-Modified-Since: " SAME, 304, ""},
        {"If-Modified-Since: " OLD, 200, "12345"},
        {"If-Modified-Since: yesterday\r\n", 200, "12345"},
        {"If-Modified-Since: " SAME "If-None-Match: \"x\"\r\n", 200, "12345"},
        {"Range: bytes=-1\r\nIf-Range: " SAME, 206, "5"},
        {"Range: bytes=-1\r\nIf-Range: " OLD, 200, "12345"},
        {"Range: bytes=-1\r\nIf-Range: \"tag\"\r\n", 200, "12345"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        get(&a, "c.txt", cases[i].headers, cases[i].status);
        if (cases[i].body != NULL)
            assert_string_equal(buf_str(&a.body), cases[i].body);
        if (cases[i].status == 200)
            initbox_has(a.head, "Last-Modified: " SAME);
        buf_release(&a.body);
    }
    rpc(&a, "Stat", "{\"path\":\"c.txt\"}", 200);
    initbox_has(buf_str(&a.body), "\"modifiedTime\":\"2023-11-14T22:13:20.000000500Z\"");
    buf_release(&a.body);
    static const char *const names[][2] = {
        {"a%20b", "filename=\"a b\""},
        {"q%22%5C", "filename=\"q\\\"\\\\\""},
        {"%C3%A9", "filename*=utf-8''%C3%A9"},
        {"n%0Al", "filename*=utf-8''n%0Al"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        upload(names[i][0], RAW, "x");
        get(&a, names[i][0], "", 200);
        initbox_has(a.head, names[i][1]);
        buf_release(&a.body);
    }
}

/* --- metadata ------------------------------------------------------------- */

static void test_metadata(void **state)
{
    struct initbox_answer a;
    (void)state;
    upload("m", RAW, "x");
    if (setxattr(at("m"), "user.other", "1", 1, 0) != 0) {
        print_message("# no extended attributes here\n");
        skip();
        return;
    }
    initbox_call(&a, "POST", "/files?path=m",
                 RAW "X-Metadata-Job-ID: 7 a\r\n"
                     "x-metadata-b: two\r\nX-Metadata-B: no\r\n",
                 "1");
    assert_int_equal(a.status, 200);
    initbox_has(buf_str(&a.body), "\"metadata\":{\"job-id\":\"7 a\",\"b\":\"two\"}");
    buf_release(&a.body);
    rpc(&a, "Move", "{\"source\":\"m\",\"destination\":\"m2\"}", 200);
    initbox_has(buf_str(&a.body), "\"job-id\":\"7 a\"");
    buf_release(&a.body);
    assert_int_equal(symlink("m2", at("mlink")), 0);
    assert_int_equal(setxattr(at("m2"), "user.e2b.raw", "\xff", 1, 0), 0);
    rpc(&a, "ListDir", "{\"path\":\"~\"}", 200);
    initbox_has(buf_str(&a.body), "/m2\",\"metadata\":{");
    assert_null(strstr(buf_str(&a.body), "\"raw\""));
    assert_null(strstr(buf_str(&a.body), "other"));
    buf_release(&a.body);
    initbox_call(&a, "POST", "/files?path=m2", RAW, "2"); /* none: all are gone */
    assert_null(strstr(buf_str(&a.body), "metadata"));
    buf_release(&a.body);
    rpc(&a, "Stat", "{\"path\":\"m2\"}", 200);
    assert_null(strstr(buf_str(&a.body), "metadata"));
    buf_release(&a.body);
}

static void test_metadata_refused(void **state)
{
    struct initbox_answer a;
    struct buf h = BUF_INIT;
    (void)state;
    upload("kept", RAW, "old");
    for (int i = 0; i < 3; i++) {
        buf_adds(&h, RAW "X-Metadata-");
        for (int n = 0; i == 0 && n < 247; n++)
            buf_addc(&h, 'k');
        buf_adds(&h, "k: ");
        for (int n = 0; i == 1 && n < 4090; n++)
            buf_addc(&h, 'v');
        buf_adds(&h, i == 2 ? "\xc3\xa9\r\n" : "v\r\n");
        initbox_call(&a, "POST", "/files?path=kept", buf_str(&h), "new");
        assert_int_equal(a.status, 400);
        buf_release(&a.body);
        buf_release(&h);
    }
    has_text("kept", "old");
}

/* --- compose -------------------------------------------------------------- */

static void test_compose(void **state)
{
    struct initbox_answer a;
    (void)state;
    upload("p/1", RAW, "one ");
    upload("p/2", RAW, "two ");
    upload("all", RAW, "old");
    initbox_call(&a, "POST", COMPOSE,
                 "{\"source_paths\":[\"p/1\",\"p/2\",\"p/1\"],\"destination\":\"all\"}");
    assert_int_equal(a.status, 200);
    char want[300];
    snprintf(want, sizeof(want), "{\"path\":\"%s/all\",\"name\":\"all\",\"type\":\"file\"}",
             initbox_dir);
    assert_string_equal(buf_str(&a.body), want);
    buf_release(&a.body);
    has_text("all", "one two one ");
    assert_int_equal(count_entries("p"), 0);
    upload("p/3", RAW, "three");
    static const struct {
        const char *json;
        int status;
    } cases[] = {
        {"{\"source_paths\":[\"p/3\",\"nope\"],\"destination\":\"all\"}", 404},
        {"{\"source_paths\":[\"p/3\",\"p\"],\"destination\":\"all\"}", 400},
        {"{\"source_paths\":[\"p/3\",\"all\"],\"destination\":\"all\"}", 400},
        {"{\"source_paths\":[\"p/3\",7],\"destination\":\"all\"}", 400},
        {"{\"source_paths\":[],\"destination\":\"all\"}", 400},
        {"{\"source_paths\":\"p/3\",\"destination\":\"all\"}", 400},
        {"{\"source_paths\":[\"p/3\"]}", 400},
        {"{\"source_paths\":[\"p/3\"],\"destination\":\"p\"}", 400},
        {"{\"source_paths\":[\"p/3\"],\"destination\":\"all/x\"}", 400},
        {"{\"source_paths\":[\"p/3\"],\"destination\":\"x\",\"username\":\"eve\"}", 401},
        {"[]", 400},
        {"{", 400},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        initbox_call(&a, "POST", COMPOSE, cases[i].json);
        if (a.status != cases[i].status)
            fail_msg("%s: %d %s", cases[i].json, a.status, buf_str(&a.body));
        buf_release(&a.body);
        has_text("all", "one two one ");
        has_text("p/3", "three");
    }
    initbox_call(&a, "POST", "/files/compose",
                 "Content-Type: application/json\r\nX-Access-Token: no\r\n", cases[0].json);
    assert_int_equal(a.status, 401);
    buf_release(&a.body);
}

/* --- other mounts --------------------------------------------------------- */

static void small_disk(const char *name, const char *options)
{
    assert_int_equal(mkdir(at(name), 0755), 0);
    assert_int_equal(mount("tmpfs", at(name), "tmpfs", 0, options), 0);
}

/* A full disk: 507, the old file whole, nothing left behind; then with room again. */
static void test_full(void **state)
{
    struct initbox_answer a;
    struct buf big = BUF_INIT;
    (void)state;
    if (!can_mount) {
        print_message("# no mounts here\n");
        skip();
        return;
    }
    small_disk("full", "size=1m");
    for (int i = 0; i < 200000; i++)
        buf_adds(&big, "0123456789");
    upload("full/file", RAW, "old");
    initbox_call(&a, "POST", "/files?path=full/file", RAW, buf_str(&big));
    assert_int_equal(a.status, 507);
    initbox_has(buf_str(&a.body), "not enough disk space");
    buf_release(&a.body);
    has_text("full/file", "old");
    upload("elsewhere", RAW, buf_str(&big));
    initbox_call(&a, "POST", COMPOSE,
                 "{\"source_paths\":[\"elsewhere\"],\"destination\":\"full/file\"}");
    assert_int_equal(a.status, 507);
    buf_release(&a.body);
    rpc(&a, "Move", "{\"source\":\"elsewhere\",\"destination\":\"full/file\"}", 500);
    initbox_has(buf_str(&a.body), "\"internal\"");
    buf_release(&a.body);
    has_text("full/file", "old");
    assert_int_equal(count_entries("full"), 1);
    assert_int_equal(access(at("elsewhere"), F_OK), 0);
    upload("full/file", RAW, "new");
    has_text("full/file", "new");
    buf_release(&big);
}

/* Between two mounts a move is a copy that looks like none. */
static void test_move_between(void **state)
{
    struct initbox_answer a;
    struct stat st;
    (void)state;
    if (!can_mount) {
        print_message("# no mounts here\n");
        skip();
        return;
    }
    small_disk("other", "size=8m");
    upload("t/d/f", RAW "X-Metadata-A: b\r\n", "deep");
    assert_int_equal(chmod(at("t/d/f"), 0640) | symlink("d/f", at("t/l")), 0);
    assert_int_equal(mkfifo(at("t/p"), 0600), 0);
    rpc(&a, "Move", "{\"source\":\"t\",\"destination\":\"other/new/t\"}", 200);
    buf_release(&a.body);
    has_text("other/new/t/l", "deep");
    assert_int_equal(stat(at("other/new/t/d/f"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(lstat(at("other/new/t/p"), &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(access(at("t"), F_OK), -1);
    rpc(&a, "Move", "{\"source\":\"other/new/t/d/f\",\"destination\":\"back\"}", 200);
    buf_release(&a.body);
    has_text("back", "deep");
    assert_int_equal(count_entries("other/new/t/d"), 0);
    /* what cannot be carried over stays, and nothing of it comes */
    rpc(&a, "Move", "{\"source\":\"other\",\"destination\":\"x\"}", 400);
    initbox_has(buf_str(&a.body), "failed_precondition");
    buf_release(&a.body);
    rpc(&a, "Remove", "{\"path\":\"other\"}", 400);
    buf_release(&a.body);
    assert_int_equal(access(at("other/new/t/l"), F_OK) | access(at("x"), F_OK), -1);
    rpc(&a, "MakeDir", "{\"path\":\"holds\"}", 200);
    buf_release(&a.body);
    small_disk("holds/mount", "size=1m");
    upload("holds/mount/f", RAW, "x");
    rpc(&a, "Remove", "{\"path\":\"holds\"}", 400);
    buf_release(&a.body);
    has_text("holds/mount/f", "x");
    assert_int_equal(umount(at("holds/mount")), 0);
}

/* --- entries -------------------------------------------------------------- */

static void test_entries(void **state)
{
    static const struct {
        const char *make, *want;
    } cases[] = {
        {"touch n && chmod 4751 n", "\"permissions\":\"urwxr-x--x\""},
        {"rm n; mkdir n && chmod 1777 n", "\"permissions\":\"dtrwxrwxrwx\""},
        {"chmod 2755 n", "\"permissions\":\"dgrwxr-xr-x\""},
        {"rmdir n; mkfifo n; chmod 600 n", "\"permissions\":\"prw-------\""},
        {"rm n; ln -s nope n", "\"permissions\":\"Lrwxrwxrwx\""},
        {"rm n; mkdir -p q/r; echo hey > q/r/f; ln -s q/r/f n", "\"type\":\"FILE_TYPE_FILE\""},
        {"true", "/q/r/f\""},
        {"true", "\"size\":\"5\",\"mode\":420"}, /* the link's own size, the file's mode */
        {"rm n; ln -s q n", "\"type\":\"FILE_TYPE_DIRECTORY\""},
    };
    struct initbox_answer a;
    char cmd[300];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(cmd, sizeof(cmd), "umask 022; cd '%s' && { %s; }", initbox_dir, cases[i].make);
        assert_int_equal(system(cmd), 0);
        rpc(&a, "Stat", "{\"path\":\"n\"}", 200);
        initbox_has(buf_str(&a.body), cases[i].want);
        initbox_has(buf_str(&a.body), "\"owner\":\"user\"");
        buf_release(&a.body);
    }
    rpc(&a, "ListDir", "{\"path\":\"n\",\"depth\":9}", 200); /* through the link, by its name */
    initbox_has(buf_str(&a.body), "/n/r/f\"");
    buf_release(&a.body);
    rpc(&a, "ListDir", "{\"path\":\"\",\"depth\":9}", 200); /* not through it */
    assert_null(strstr(buf_str(&a.body), "/n/r/f\""));
    buf_release(&a.body);
    rpc(&a, "MakeDir", "{\"path\":\"\"}", 409);
    buf_release(&a.body);
}

static int up(void **state)
{
    can_mount =
        unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    return initbox_up(state);
}

static int down(void **state)
{
    umount(at("full"));
    umount(at("other"));
    return initbox_down(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gzip),         cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_metadata),     cmocka_unit_test(test_metadata_refused),
        cmocka_unit_test(test_compose),      cmocka_unit_test(test_full),
        cmocka_unit_test(test_move_between), cmocka_unit_test(test_entries),
    };
    initbox_program(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, up, down);
}
