/* Uploads of a build that go wrong, through the facade and against a scripted service: a cut in
 * the midst, a storage that fails, a link that has expired. Each try has a link of its own. */
#include "../lib/appbed.h"
#include "../lib/faultproc.h"

#include <cct/model/tbuild.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { BIG = 3000000 }; /* bytes that do not pack */

static struct faultd *fake, *proxy;
static struct buf said; /* lines of the build under way */

static int setup(void **state)
{
    const char *args[] = {"--config", "{\"build\":{\"step_ms\":1}}", NULL};
    struct appbed *b = appbed_new();
    char *text;

    fake = faultd_start(args);
    assert_non_null(fake);
    proxy = faultd_proxy(faultd_url(fake));
    assert_non_null(proxy);
    text = xasprintf("{\"uploads\":\"%s\"}", faultd_url(proxy));
    assert_true(faultd_config(fake, text));
    free(text);
    appbed_service(b, faultd_url(fake));
    appbed_open(b, &(struct app_opts){.follow_all = true, .poll_ms = 50});
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    appbed_free(*state);
    faultd_stop(proxy);
    faultd_stop(fake);
    buf_release(&said);
    return 0;
}

static void write_file(const char *dir, const char *name, const void *data, size_t len)
{
    char *path = fs_join(dir, name);
    struct err e = {0};

    assert_int_equal(fs_write_new(path, data, len, &e), 0);
    free(path);
}

/* A folder with a COPY of two sources. */
static char *make_recipe(struct appbed *b)
{
    static const char text[] = "FROM base\nCOPY big /\nCOPY small /\n";
    char *dir = appbed_path(b, "recipe"), *big = xmalloc(BIG);
    unsigned seed = 3;

    assert_int_equal(mkdir(dir, 0700), 0);
    for (size_t i = 0; i < BIG; i++)
        big[i] = (char)rand_r(&seed);
    write_file(dir, "Dockerfile", text, sizeof(text) - 1);
    write_file(dir, "big", big, BIG);
    write_file(dir, "small", "x", 1);
    free(big);
    return dir;
}

static void on_lines(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    buf_add(&said, text, len);
}

static int build(struct appbed *b)
{
    char *dir = make_recipe(b);
    struct app_build q = {.name = "it", .where = dir};
    int rc = appbed_finish(b, app_build(b->app, &q, true, on_lines, NULL));

    free(dir);
    return rc;
}

/* Requests of that kind so far. */
static void check_well(struct appbed *b, size_t links, size_t puts)
{
    if (build(b) != 0)
        fail_msg("%s", b->err.text);
    assert_int_equal(faultd_asked(fake, "GET", "/templates/*/files/*").n, links);
    assert_int_equal(faultd_asked(fake, "PUT", "/_upload/*").n, puts);
    assert_int_equal(faultd_asked(fake, "POST", "/v2/templates/*/builds/*").n, 1);
}

static void test_nothing_goes_wrong(void **state)
{
    check_well(*state, 2, 2);
    assert_non_null(strstr(buf_str(&said), "1 files, "));
}

static void test_storage_fails(void **state)
{
    assert_true(faultd_config(fake, "{\"rules\":[{\"method\":\"PUT\",\"times\":1,\"status\":500}]}"));
    check_well(*state, 3, 3);
    assert_non_null(strstr(buf_str(&said), "the upload failed, trying again"));
}

static void test_link_expired(void **state)
{
    assert_true(faultd_config(fake, "{\"rules\":[{\"method\":\"PUT\",\"times\":2,\"status\":403,"
                                    "\"body\":\"<Error>Request has expired</Error>\"}]}"));
    check_well(*state, 4, 4);
}

static void test_answer_is_lost(void **state)
{
    assert_true(faultd_config(fake, "{\"rules\":[{\"method\":\"PUT\",\"times\":1,\"rst\":true,"
                                    "\"apply\":false}]}"));
    check_well(*state, 3, 3);
}

/* Each connection to the storage takes a megabyte of three. */
static void test_cut_in_the_midst(void **state)
{
    struct appbed *b = *state;

    assert_true(faultd_command(proxy, "limit to 1000000 rst", NULL, 0));
    assert_true(build(b) != 0);
    /* never without its files */
    assert_int_equal(faultd_asked(fake, "POST", "/v2/templates/*/builds/*").n, 0);
    assert_true(strstr(b->err.text, "upload") != NULL);
    assert_int_equal(faultd_asked(fake, "GET", "/templates/*/files/*").n, 4); /* three of the one */
    assert_true(faultd_command(proxy, "heal", NULL, 0));
    assert_int_equal(appbed_finish(b, app_build_again(b->app, 0, "it", NULL, true, on_lines, NULL)), 0);
}

static void test_storage_never_works(void **state)
{
    struct appbed *b = *state;

    assert_true(faultd_config(fake, "{\"rules\":[{\"method\":\"PUT\",\"status\":500}]}"));
    assert_true(build(b) != 0);
    assert_non_null(strstr(b->err.text, "the storage refused it"));
    assert_int_equal(app_model(b->app)->n_builds, 1);
    assert_int_equal(faultd_asked(fake, "POST", "/v2/templates/*/builds/*").n, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_nothing_goes_wrong), T(test_storage_fails),    T(test_link_expired),
        T(test_answer_is_lost),     T(test_cut_in_the_midst), T(test_storage_never_works),
    };

    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
