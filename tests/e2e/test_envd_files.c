/* Files and folders on the wire: ranges, uploads, signatures, slow readers. */
#include "../lib/initbox.h"
#include <cct/local/init.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void test_files(void **state)
{
    struct initbox_answer a;
    (void)state;
    initbox_call(&a, "POST", "/files?path=sub%20dir%2Fa%22b.txt",
                 "Content-Type: application/octet-stream\r\n", "hello world");
    assert_int_equal(a.status, 200);
    struct buf want = BUF_INIT;
    buf_addf(&want,
             "[{\"path\":\"%s/sub dir/a\\\"b.txt\",\"name\":\"a\\\"b.txt\",\"type\":\"file\"}]",
             initbox_dir);
    assert_string_equal(buf_str(&a.body), buf_str(&want));
    buf_release(&want);
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=sub+dir/a%22b.txt", "", "");
    assert_int_equal(a.status, 200);
    initbox_has(a.head, "Content-Length: 11\r\n");
    assert_string_equal(buf_str(&a.body), "hello world");
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=~/sub%20dir/a%22b.txt", "Range: bytes=6-\r\n", "");
    assert_int_equal(a.status, 206);
    initbox_has(a.head, "Content-Range: bytes 6-10/11\r\n");
    assert_string_equal(buf_str(&a.body), "world");
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=sub%20dir/a%22b.txt", "Range: bytes=11-\r\n", "");
    assert_int_equal(a.status, 416);
    initbox_has(a.head, "Content-Range: bytes */11\r\n");
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=nope", "", "");
    assert_int_equal(a.status, 404);
    initbox_has(buf_str(&a.body), "{\"code\":404,\"message\":");
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=/", "", "");
    assert_int_equal(a.status, 404);
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=~", "", "");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=a&username=eve", "", "");
    assert_int_equal(a.status, 401);
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=%2Ftmp%00x", "", "");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
    char name[300], loop[200];
    snprintf(name, sizeof(name), "/files?path=%0260d", 0); /* no file can be called that */
    initbox_call(&a, "GET", name, "", "");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
    snprintf(loop, sizeof(loop), "%s/loop", initbox_dir);
    assert_int_equal(symlink("loop", loop), 0);
    initbox_call(&a, "GET", "/files?path=loop", "", "");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
}

static void test_multipart(void **state)
{
    static const char body[] =
        "--b1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"m/1.txt\"\r\n"
        "Content-Type: application/octet-stream\r\n\r\none\r\n--b1\r\n"
        "Content-Disposition: form-data; name=\"other\"\r\n\r\nx\r\n--b1\r\n"
        "Content-Disposition: form-data; name=\"file\"; "
        "filename=\"m/2.txt\"\r\n\r\n\r\n--b1--\r\n";
    struct initbox_answer a;
    (void)state;
    initbox_call(&a, "POST", "/files", "Content-Type: multipart/form-data; boundary=b1\r\n",
                 body);
    assert_int_equal(a.status, 200);
    initbox_has(buf_str(&a.body), "/m/1.txt\",\"name\":\"1.txt\"");
    initbox_has(buf_str(&a.body), "/m/2.txt\",\"name\":\"2.txt\"");
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=m/1.txt", "", "");
    assert_string_equal(buf_str(&a.body), "one");
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=m/2.txt", "", "");
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body.len, 0);
    buf_release(&a.body);
    initbox_call(&a, "POST", "/files", "Content-Type: multipart/form-data; boundary=b1\r\n",
                 "--b1\r\nx");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
    static const char gz[] =
        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\xca\x2c\x28\x48\x4d\x01"
        "\x00\x57\x68\xc2\xe2\x06\x00\x00\x00"; /* "zipped" */
    initbox_finish(
        initbox_request("POST", "/files?path=g.txt",
                        "Content-Type: application/octet-stream\r\nContent-Encoding: gzip\r\n",
                        gz, sizeof(gz) - 1),
        &a);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=g.txt", "", "");
    assert_string_equal(buf_str(&a.body), "zipped");
    buf_release(&a.body);
    initbox_call(&a, "POST", "/files?path=g.txt",
                 "Content-Type: application/octet-stream\r\nContent-Encoding: gzip\r\n",
                 "not gzip");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=g.txt", "", ""); /* the old one is still whole */
    assert_string_equal(buf_str(&a.body), "zipped");
    buf_release(&a.body);
}

static void test_signed(void **state)
{
    struct initbox_answer a;
    (void)state;
    initbox_call(
        &a, "GET",
        "/files?path=/home/user/a.txt&signature=v1_naf1R2BObZkXurBkZmZPzpo4zkKc3SeGevkRli7E7Yo",
        "X-Access-Token: none\r\n", "");
    assert_int_equal(a.status, 404); /* allowed, but there is no such file */
    buf_release(&a.body);
    initbox_call(
        &a, "GET",
        "/files?path=/home/user/b.txt&signature=v1_naf1R2BObZkXurBkZmZPzpo4zkKc3SeGevkRli7E7Yo",
        "X-Access-Token: none\r\n", "");
    assert_int_equal(a.status, 401);
    buf_release(&a.body);
}

static void test_filesystem(void **state)
{
    struct initbox_answer a;
    (void)state;
    initbox_rpc(&a, "/filesystem.Filesystem/MakeDir", "{\"path\":\"fs/d\"}");
    assert_int_equal(a.status, 200);
    initbox_has(buf_str(&a.body),
                "{\"entry\":{\"name\":\"d\",\"type\":\"FILE_TYPE_DIRECTORY\",\"path\":\"");
    initbox_has(buf_str(&a.body), "\"permissions\":\"drwxr-xr-x\"");
    initbox_has(buf_str(&a.body), "\"size\":\"");
    buf_release(&a.body);
    initbox_rpc(&a, "/filesystem.Filesystem/MakeDir", "{\"path\":\"fs/d\"}");
    assert_int_equal(a.status, 409);
    initbox_has(buf_str(&a.body), "already_exists");
    buf_release(&a.body);
    initbox_call(&a, "POST", "/files?path=fs/d/x", "Content-Type: application/octet-stream\r\n",
                 "1");
    buf_release(&a.body);
    initbox_rpc(&a, "/filesystem.Filesystem/ListDir", "{\"path\":\"fs\",\"depth\":2}");
    initbox_has(buf_str(&a.body), "/fs/d/x\"");
    buf_release(&a.body);
    initbox_rpc(&a, "/filesystem.Filesystem/ListDir", "{\"path\":\"fs/d/x\"}");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
    initbox_rpc(&a, "/filesystem.Filesystem/Move",
                "{\"source\":\"fs/d/x\",\"destination\":\"fs/new/y\"}");
    assert_int_equal(a.status, 200);
    initbox_has(buf_str(&a.body), "\"name\":\"y\",\"type\":\"FILE_TYPE_FILE\"");
    buf_release(&a.body);
    initbox_rpc(&a, "/filesystem.Filesystem/Stat", "{\"path\":\"fs/d/x\"}");
    assert_int_equal(a.status, 404);
    initbox_has(buf_str(&a.body), "\"not_found\"");
    buf_release(&a.body);
    initbox_rpc(&a, "/filesystem.Filesystem/Remove", "{\"path\":\"fs\"}");
    assert_string_equal(buf_str(&a.body), "{}");
    buf_release(&a.body);
    initbox_rpc(&a, "/filesystem.Filesystem/Stat", "{\"path\":\"fs\"}");
    assert_int_equal(a.status, 404);
    buf_release(&a.body);
}

/* Writing through a link changes its target and keeps both the link and the mode. */
static void test_link(void **state)
{
    struct initbox_answer a;
    char target[200], link[200];
    struct stat st;
    (void)state;
    snprintf(target, sizeof(target), "%s/script", initbox_dir);
    snprintf(link, sizeof(link), "%s/link", initbox_dir);
    initbox_call(&a, "POST", "/files?path=script", "Content-Type: application/octet-stream\r\n",
                 "one");
    buf_release(&a.body);
    assert_int_equal(chmod(target, 0750) | symlink("script", link), 0);
    initbox_call(&a, "POST", "/files?path=link", "Content-Type: application/octet-stream\r\n",
                 "two");
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    initbox_call(&a, "GET", "/files?path=script", "", "");
    assert_string_equal(buf_str(&a.body), "two");
    buf_release(&a.body);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    initbox_call(&a, "POST", "/files?path=/dev/null",
                 "Content-Type: application/octet-stream\r\n", "x");
    assert_int_equal(a.status, 403); /* unisolated: only below the home */
    buf_release(&a.body);
}

/* Makes it, or gives it another size: at no moment is it empty. */
static void file_make(const char *name, off_t size)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", initbox_dir, name);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), size), 0);
    fclose(f);
}

/* A big file to a reader that waits: memory stays bounded, every byte comes, and
 * what is added meanwhile is not part of it. One that hangs up half way does no
 * harm. */
static void test_slow_download(void **state)
{
    static char tmp[262144];
    const off_t size = 64 << 20;
    size_t total = 0, n;
    struct initbox_answer a;
    (void)state;
    file_make("big", size);
    long before = initbox_rss_kb(initbox_pid);
    int gone = initbox_request("GET", "/files?path=big", "", "", 0);
    int fd = initbox_request("GET", "/files?path=big", "", "", 0);
    assert_true(initbox_take(gone, tmp, 1000) > 0);
    total += initbox_take(fd, tmp, 1000);
    close(gone);
    file_make("big", size + 1000);
    initbox_call(&a, "GET", "/health", "", "");
    assert_int_equal(a.status, 204);
    buf_release(&a.body);
    long stuck = initbox_rss_kb(initbox_pid);
    while ((n = initbox_take(fd, tmp, sizeof(tmp))) > 0)
        total += n;
    close(fd);
    print_message("# slow download: RSS %ld -> %ld KiB\n", before, stuck);
    assert_true(total > (size_t)size && total < (size_t)size + 1000);
    assert_true(stuck - before < 12 * 1024);
}

/* A file that shrinks while it is read: the connection is cut, nothing is made
 * up to fill the promised length. */
static void test_shrinking(void **state)
{
    static char tmp[262144];
    size_t total = 0, n;
    (void)state;
    file_make("shrinks", 32 << 20);
    int fd = initbox_request("GET", "/files?path=shrinks", "", "", 0);
    total += initbox_take(fd, tmp, 1000);
    file_make("shrinks", 10);
    while ((n = initbox_take(fd, tmp, sizeof(tmp))) > 0)
        total += n;
    close(fd);
    assert_true(total < 32 << 20);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),     cmocka_unit_test(test_multipart),
        cmocka_unit_test(test_signed),    cmocka_unit_test(test_filesystem),
        cmocka_unit_test(test_link),      cmocka_unit_test(test_slow_download),
        cmocka_unit_test(test_shrinking),
    };
    initbox_program(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, initbox_up, initbox_down);
}
