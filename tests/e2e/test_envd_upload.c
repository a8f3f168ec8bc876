/* Uploads go to the disk as they arrive: memory, full disks, cut connections, and
 * who may send at all. */
#include "../lib/initbox.h"
#include <cct/local/init.h>
#include <cct/secrets/digest.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define RAW "Content-Type: application/octet-stream\r\n"
#define FORM "Content-Type: multipart/form-data; boundary=b1\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define PART \
    "--b1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"up/form\"\r\n\r\n"
#define MIB (1u << 20)
#define BIG_MIB 64

#if defined(__SANITIZE_ADDRESS__)
#define GROWTH_KIB (16 * 1024) /* its allocator keeps what was freed */
#else
#define GROWTH_KIB (2 * 1024)
#endif

/* False when the init took no more. */
static bool push(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

static bool push_chunk(int fd, const void *p, size_t len)
{
    char line[32];
    int n = snprintf(line, sizeof(line), "%zx\r\n", len);
    return push(fd, line, (size_t)n) && push(fd, p, len) && push(fd, "\r\n", 2);
}

static char *path_of(const char *name)
{
    return xasprintf("%s/%s", initbox_dir, name);
}

/* How many names are in the folder. */
static int names_in(const char *name)
{
    char *path = path_of(name);
    DIR *d = opendir(path);
    struct dirent *de;
    int n = 0;
    while (d != NULL && (de = readdir(d)) != NULL)
        n += strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0;
    if (d != NULL)
        closedir(d);
    free(path);
    return n;
}

static void wait_names(const char *name, int want)
{
    int64_t until = clock_mono_ms() + INITBOX_WAIT_MS;
    while (names_in(name) != want) {
        if (clock_mono_ms() > until)
            fail_msg("%d names in %s, not %d", names_in(name), name, want);
        usleep(2000);
    }
}

static void size_is(const char *name, off_t size)
{
    struct stat st;
    char *path = path_of(name);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, size);
    free(path);
}

static char *random_block(void)
{
    char *p = xcalloc(1, MIB);
    unsigned x = 1;
    for (size_t i = 0; i < MIB; i++)
        p[i] = (char)((x = x * 1103515245u + 12345u) >> 16);
    return p;
}

/* In all three forms far more than the init may hold passes through it. */
static void test_memory(void **state)
{
    struct initbox_answer a;
    char *block = random_block();
    (void)state;
    initbox_call(&a, "POST", "/files?path=up/first", RAW, "x"); /* what one upload touches */
    buf_release(&a.body);
    long before = initbox_rss_kb(initbox_pid), most = before;
    for (int form = 0; form < 3; form++) {
        static const char *const paths[] = {"/files?path=up/raw", "/files",
                                            "/files?path=up/gzip"};
        static const char *const heads[] = {RAW CHUNKED, FORM CHUNKED,
                                            RAW "Content-Encoding: gzip\r\n" CHUNKED};
        z_stream z = {0};
        unsigned char *out = xcalloc(1, 2 * MIB);
        assert_int_equal(deflateInit2(&z, 0, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
        int fd = initbox_begin("POST", paths[form], heads[form]);
        if (form == 1)
            assert_true(push_chunk(fd, PART, sizeof(PART) - 1));
        for (int i = 1; i <= BIG_MIB; i++) {
            z.next_in = (unsigned char *)block;
            z.avail_in = MIB;
            z.next_out = out;
            z.avail_out = 2 * MIB;
            if (form == 2)
                deflate(&z, i == BIG_MIB ? Z_FINISH : Z_NO_FLUSH);
            if (form != 2)
                assert_true(push_chunk(fd, block, MIB));
            else if (z.avail_out < 2 * MIB)
                assert_true(push_chunk(fd, out, 2 * MIB - z.avail_out));
            long now = initbox_rss_kb(initbox_pid);
            most = now > most ? now : most;
        }
        if (form == 1)
            assert_true(push_chunk(fd, "\r\n--b1--\r\n", 10));
        assert_true(push(fd, "0\r\n\r\n", 5));
        initbox_finish(fd, &a);
        assert_int_equal(a.status, 200);
        buf_release(&a.body);
        deflateEnd(&z);
        free(out);
    }
    size_is("up/raw", (off_t)BIG_MIB * MIB);
    size_is("up/form", (off_t)BIG_MIB * MIB);
    size_is("up/gzip", (off_t)BIG_MIB * MIB);
    print_message("# 3 uploads of %d MiB: RSS %ld -> at most %ld KiB\n", BIG_MIB, before, most);
    assert_true(most - before < GROWTH_KIB);
    initbox_rpc(&a, "/filesystem.Filesystem/Remove", "{\"path\":\"up\"}");
    buf_release(&a.body);
    free(block);
}

/* The client goes in the middle: the old file stays, the new one leaves nothing. */
static void test_cut(void **state)
{
    static const struct {
        const char *path, *headers, *body;
    } cuts[] = {
        {"/files?path=cut/a", RAW "Content-Length: 1000\r\n", "half"},
        {"/files?path=cut/a", RAW CHUNKED, "4\r\nhalf\r\n"},
        {"/files?path=cut/a", FORM CHUNKED, "50\r\n" PART},
    };
    struct initbox_answer a;
    (void)state;
    initbox_call(&a, "POST", "/files?path=cut/a", RAW, "old");
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        int fd = initbox_begin("POST", cuts[i].path, cuts[i].headers);
        assert_true(push(fd, cuts[i].body, strlen(cuts[i].body)));
        wait_names("cut", 2);
        close(fd);
        wait_names("cut", 1);
    }
    initbox_call(&a, "GET", "/files?path=cut/a", "", "");
    assert_string_equal(buf_str(&a.body), "old");
    buf_release(&a.body);
}

/* No room: told at once, in the middle of the body. */
static void test_no_room(void **state)
{
    struct rlimit old, small = {MIB, MIB};
    struct initbox_answer a;
    char *block = random_block();
    (void)state;
    initbox_call(&a, "POST", "/files?path=full/a", RAW, "old");
    buf_release(&a.body);
    assert_int_equal(prlimit(initbox_pid, RLIMIT_FSIZE, NULL, &old), 0);
    small.rlim_max = old.rlim_max;
    assert_int_equal(prlimit(initbox_pid, RLIMIT_FSIZE, &small, NULL), 0);
    int fd = initbox_begin("POST", "/files?path=full/a", RAW "Content-Length: 1073741824\r\n");
    for (int i = 0; i < 64 && push(fd, block, MIB); i++)
        continue;
    initbox_finish(fd, &a);
    assert_int_equal(a.status, 507);
    initbox_has(buf_str(&a.body), "/full/a'");
    buf_release(&a.body);
    assert_int_equal(prlimit(initbox_pid, RLIMIT_FSIZE, &old, NULL), 0);
    assert_int_equal(names_in("full"), 1);
    size_is("full/a", 3);
    free(block);
}

/* What the head says is enough for a refusal: no byte of the body is waited for. */
static void test_refused(void **state)
{
    static const struct {
        const char *path, *headers;
        int status;
    } heads[] = {
        {"/files?path=r/a", RAW "X-Access-Token: no\r\n", 401},
        {"/files?path=r/a&username=nobody", RAW, 401},
        {"/files?path=r/a", "Content-Type: text/plain\r\n", 400},
        {"/files?path=r/a", RAW "Content-Encoding: br\r\n", 400},
        {"/files?path=/", RAW, 403},
        {"/files?path=~", RAW, 400},
        {"/files", RAW, 400},
        {"/files?path=r%00a", RAW, 400},
        {"/files?path=/proc/no/file", RAW, 0},
        {"/nowhere", RAW, 404},
        {"/process.Process/List", RAW, 415},
    };
    struct initbox_answer a;
    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        char *h = xasprintf("%sContent-Length: 1000000000\r\n", heads[i].headers);
        int fd = initbox_begin("POST", heads[i].path, h);
        initbox_finish(fd, &a);
        if (heads[i].status != 0)
            assert_int_equal(a.status, heads[i].status);
        assert_true(a.status >= 400);
        initbox_has(a.head, "Connection: close");
        buf_release(&a.body);
        free(h);
    }
    assert_int_equal(names_in("r"), 0);
    int fd = initbox_begin("POST", "/files?path=r/a", RAW "Content-Length: 99999999999999\r\n");
    initbox_finish(fd, &a);
    assert_int_equal(a.status, 413);
    buf_release(&a.body);
}

/* gzip of several members, cut short, and with something after it. */
static void test_gzip(void **state)
{
    static const char gz[] =
        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\xca\x2c\x28\x48\x4d\x01"
        "\x00\x57\x68\xc2\xe2\x06\x00\x00\x00"; /* "zipped" */
    static const struct {
        size_t members, less, more;
        int status;
        const char *text;
    } forms[] = {{1, 0, 0, 200, "zipped"}, {3, 0, 0, 200, "zippedzippedzipped"},
                 {1, 1, 0, 400, NULL},     {2, 20, 0, 400, NULL},
                 {1, 0, 3, 400, NULL},     {0, 0, 0, 400, NULL}};
    struct initbox_answer a;
    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        int fd =
            initbox_begin("POST", "/files?path=gz/a", RAW "Content-Encoding: gzip\r\n" CHUNKED);
        struct buf b = BUF_INIT;
        for (size_t k = 0; k < forms[i].members; k++)
            buf_add(&b, gz, sizeof(gz) - 1);
        buf_truncate(&b, b.len - forms[i].less);
        buf_add(&b, "xxx", forms[i].more);
        for (size_t k = 0; k < b.len; k++) /* a byte a chunk */
            if (!push_chunk(fd, b.p + k, 1))
                break;
        push(fd, "0\r\n\r\n", 5);
        initbox_finish(fd, &a);
        assert_int_equal(a.status, forms[i].status);
        buf_release(&a.body);
        buf_release(&b);
        if (forms[i].text == NULL)
            continue;
        initbox_call(&a, "GET", "/files?path=gz/a", "", "");
        assert_string_equal(buf_str(&a.body), forms[i].text);
        buf_release(&a.body);
    }
    assert_int_equal(names_in("gz"), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_cut),
        cmocka_unit_test(test_no_room), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_gzip),
    };
    initbox_program(argc, argv);
    if (digest_init() != 0)
        return 1;
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, initbox_up, initbox_down);
}
