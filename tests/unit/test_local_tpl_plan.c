/* What a template's names and steps mean: what is refused, the keys of their layers,
 * their lines in the log, users and variables. */
#include <cct/local/tpl_plan.h>
#include <cct/secrets/digest.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int setup(void **state)
{
    (void)state;
    return digest_init();
}

/* --- names ------------------------------------------------------------------ */

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name, *tag; /* name NULL: refused */
    } cases[] = {
        {"a", "a", ""},          {"my-tpl_2", "my-tpl_2", ""},
        {"a:v1.0", "a", "v1.0"}, {"local/a:default", "a", "default"},
        {"other/a", NULL, NULL}, {"", NULL, NULL},
        {":x", NULL, NULL},      {"a:", NULL, NULL},
        {"A", NULL, NULL},       {"a b", NULL, NULL},
        {"a/../b", NULL, NULL},  {"..", NULL, NULL},
        {"a:b:c", NULL, NULL},   {"a:b/c", NULL, NULL},
        {"a\n", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tpl_ref r;
        struct err e = {0};
        int rc = tpl_ref_parse(&r, cases[i].text, &e);
        assert_int_equal(rc == 0, cases[i].name != NULL);
        if (rc == 0) {
            assert_string_equal(r.name, cases[i].name);
            assert_string_equal(r.tag, cases[i].tag);
        } else {
            assert_true(e.text[0] != '\0');
        }
    }
    char long_name[TPL_NAME_MAX + 2];
    struct tpl_ref r;
    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[TPL_NAME_MAX + 1] = '\0';
    assert_int_not_equal(tpl_ref_parse(&r, long_name, NULL), 0);
    long_name[TPL_NAME_MAX] = '\0';
    assert_int_equal(tpl_ref_parse(&r, long_name, NULL), 0);
    assert_true(tpl_hash_ok(HASH));
    assert_false(tpl_hash_ok("0123"));
    assert_false(
        tpl_hash_ok("X123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"));
}

static void test_images(void **state)
{
    (void)state;
    static const char *const good[] = {"e2bdev/base", "e2bdev/base:latest",
                                       "docker.io/e2bdev/base", "base", "claude"};
    static const char *const bad[] = {
        "debian:12", "e2bdev/base:1", "e2bdev/code", "bases", "", "evil.example/e2bdev/base"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(tpl_image_is_base(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(tpl_image_is_base(bad[i]));
}

/* --- steps ------------------------------------------------------------------ */

static int parse(struct tpl_plan *p, const char *json, struct err *e)
{
    struct cJSON *j = json_parse(json, strlen(json), NULL);
    assert_non_null(j);
    int rc = tpl_plan_parse(p, j, e);
    json_free(j);
    return rc;
}

#define STEP(s) "{\"fromImage\":\"e2bdev/base\",\"steps\":[" s "]}"

static void test_plans(void **state)
{
    (void)state;
    struct tpl_plan p;
    struct err e = {0};
    assert_int_equal(parse(&p,
                           "{\"fromTemplate\":\"a\",\"force\":true,\"startCmd\":\"s\","
                           "\"readyCmd\":\"r\",\"steps\":["
                           "{\"type\":\"ENV\",\"args\":[\"A\",\"1\",\"B\",\"\"]},"
                           "{\"type\":\"RUN\",\"args\":[\"x\",\"root\"],\"force\":true},"
                           "{\"type\":\"COPY\",\"args\":[\"a\",\"/b\",\"\",\"0644\"],"
                           "\"filesHash\":\"" HASH "\"},"
                           "{\"type\":\"WORKDIR\",\"args\":[\"w\"]},"
                           "{\"type\":\"USER\",\"args\":[\"user\"]}]}",
                           &e),
                     0);
    assert_int_equal(p.n_steps, 5);
    assert_true(p.force && p.steps[1].force && !p.steps[0].force);
    assert_string_equal(p.from, "a");
    assert_string_equal(p.start_cmd, "s");
    assert_string_equal(p.ready_cmd, "r");
    assert_string_equal(p.steps[2].hash, HASH);
    tpl_plan_release(&p);
    static const char *const bad[] = {
        "{}",
        "{\"fromImage\":\"a\",\"fromTemplate\":\"b\"}",
        "{\"fromImage\":\"a\",\"steps\":{}}",
        STEP("{\"type\":\"ADD\",\"args\":[\"a\",\"b\"]}"),
        STEP("{\"args\":[\"a\"]}"),
        STEP("7"),
        STEP("{\"type\":\"RUN\"}"),
        STEP("{\"type\":\"RUN\",\"args\":[]}"),
        STEP("{\"type\":\"RUN\",\"args\":[\" \"]}"),
        STEP("{\"type\":\"RUN\",\"args\":[1]}"),
        STEP("{\"type\":\"RUN\",\"args\":\"x\"}"),
        STEP("{\"type\":\"RUN\",\"args\":[\"x\",\"a b\"]}"),
        STEP("{\"type\":\"RUN\",\"args\":[\"x\",\"-u\"]}"),
        STEP("{\"type\":\"RUN\",\"args\":[\"x\",\"root\",\"y\"]}"),
        STEP("{\"type\":\"ENV\",\"args\":[]}"),
        STEP("{\"type\":\"ENV\",\"args\":[\"A\"]}"),
        STEP("{\"type\":\"ENV\",\"args\":[\"A=B\",\"x\"]}"),
        STEP("{\"type\":\"ENV\",\"args\":[\"\",\"x\"]}"),
        STEP("{\"type\":\"WORKDIR\",\"args\":[\"/a/../b\"]}"),
        STEP("{\"type\":\"WORKDIR\",\"args\":[\"\"]}"),
        STEP("{\"type\":\"WORKDIR\",\"args\":[\"a\",\"b\"]}"),
        STEP("{\"type\":\"USER\",\"args\":[\"a;b\"]}"),
        STEP("{\"type\":\"COPY\",\"args\":[\"a\",\"/b\"]}"),
        STEP("{\"type\":\"COPY\",\"args\":[\"a\",\"/b\"],\"filesHash\":\"12\"}"),
        STEP("{\"type\":\"COPY\",\"args\":[\"a\"],\"filesHash\":\"" HASH "\"}"),
        STEP("{\"type\":\"COPY\",\"args\":[\"/a\",\"/b\"],\"filesHash\":\"" HASH "\"}"),
        STEP("{\"type\":\"COPY\",\"args\":[\"../a\",\"/b\"],\"filesHash\":\"" HASH "\"}"),
        STEP("{\"type\":\"COPY\",\"args\":[\"a/..\",\"/b\"],\"filesHash\":\"" HASH "\"}"),
        STEP("{\"type\":\"COPY\",\"args\":[\"a\",\"/b/../..\"],\"filesHash\":\"" HASH "\"}"),
        STEP("{\"type\":\"COPY\",\"args\":[\"a\",\"/b\",\"\",\"u+s\"],\"filesHash\":\"" HASH
             "\"}"),
        STEP("{\"type\":\"COPY\",\"args\":[\"a\",\"/b\",\"x y\",\"\"],\"filesHash\":\"" HASH
             "\"}"),
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err_clear(&e);
        if (parse(&p, bad[i], &e) != ERR_INVALID)
            fail_msg("accepted: %s", bad[i]);
        assert_true(e.text[0] != '\0');
        tpl_plan_release(&p);
    }
}

static void key_of(char *key, const struct tpl_ctx *c, const char *step)
{
    struct tpl_plan p;
    char *json = xasprintf("{\"fromImage\":\"base\",\"steps\":[%s]}", step);
    assert_int_equal(parse(&p, json, NULL), 0);
    tpl_step_key(key, c, &p.steps[0]);
    tpl_plan_release(&p);
    free(json);
}

static void apply(struct tpl_ctx *c, const char *step)
{
    struct tpl_plan p;
    char *json = xasprintf("{\"fromImage\":\"base\",\"steps\":[%s]}", step);
    assert_int_equal(parse(&p, json, NULL), 0);
    assert_int_equal(tpl_step_apply(c, &p.steps[0], NULL), 0);
    tpl_plan_release(&p);
    free(json);
}

#define RUN_X "{\"type\":\"RUN\",\"args\":[\"x\"]}"

/* Everything that may change what a step does changes its key, and nothing else. */
static void test_keys(void **state)
{
    (void)state;
    struct tpl_ctx c;
    char first[TPL_KEY_LEN + 1], again[TPL_KEY_LEN + 1];
    static const char *const changes[] = {
        "{\"type\":\"ENV\",\"args\":[\"A\",\"1\"]}",
        "{\"type\":\"ENV\",\"args\":[\"A\",\"2\"]}",
        "{\"type\":\"ENV\",\"args\":[\"B\",\"2\"]}",
        "{\"type\":\"WORKDIR\",\"args\":[\"/w\"]}",
        "{\"type\":\"WORKDIR\",\"args\":[\"w\"]}",
        "{\"type\":\"USER\",\"args\":[\"root\"]}",
    };
    tpl_ctx_init(&c, HASH);
    key_of(first, &c, RUN_X);
    key_of(again, &c, RUN_X);
    assert_string_equal(first, again);
    assert_true(tpl_hash_ok(first));
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        apply(&c, changes[i]);
        key_of(again, &c, RUN_X);
        assert_string_not_equal(first, again);
        strcpy(first, again);
    }
    assert_string_equal(c.workdir, "/w/w");
    assert_string_equal(c.user, "root");
    assert_string_equal(json_str(c.env, "A", ""), "2");
    key_of(again, &c, "{\"type\":\"RUN\",\"args\":[\"x\",\"\"]}");
    assert_string_not_equal(first, again);
    key_of(again, &c, "{\"type\":\"RUN\",\"args\":[\"y\"]}");
    assert_string_not_equal(first, again);
    c.key[0] = 'f';
    key_of(again, &c, RUN_X);
    assert_string_not_equal(first, again);
    tpl_ctx_release(&c);
}

static void test_step_text(void **state)
{
    (void)state;
    struct tpl_plan p;
    struct buf b = BUF_INIT;
    assert_int_equal(parse(&p,
                           STEP("{\"type\":\"ENV\",\"args\":[\"A\",\"1\",\"B\",\"\"]},"
                                "{\"type\":\"RUN\",\"args\":[\"a\\nb\"]}"),
                           NULL),
                     0);
    tpl_step_text(&b, &p.steps[0]);
    assert_string_equal(buf_str(&b), "ENV A=1 B=");
    buf_clear(&b);
    tpl_step_text(&b, &p.steps[1]);
    assert_string_equal(buf_str(&b), "RUN a b");
    tpl_plan_release(&p);
    buf_release(&b);
}

static void test_accounts(void **state)
{
    (void)state;
    struct tpl_plan p;
    struct err e = {0};
    assert_int_equal(parse(&p,
                           STEP("{\"type\":\"USER\",\"args\":[\"0\"]},"
                                "{\"type\":\"USER\",\"args\":[\"user:user\"]},"
                                "{\"type\":\"USER\",\"args\":[\"www-data\"]}"),
                           NULL),
                     0);
    struct tpl_ctx c;
    tpl_ctx_init(&c, HASH);
    assert_true(tpl_step_user_ok(&p.steps[0], &e));
    assert_true(tpl_step_user_ok(&p.steps[1], &e));
    assert_false(tpl_step_user_ok(&p.steps[2], &e));
    assert_non_null(strstr(e.text, "www-data"));
    assert_int_equal(tpl_step_apply(&c, &p.steps[0], NULL), 0);
    assert_string_equal(c.user, "root");
    assert_int_equal(tpl_step_apply(&c, &p.steps[1], NULL), 0);
    assert_string_equal(c.user, "user");
    tpl_ctx_release(&c);
    tpl_plan_release(&p);
}

static void test_variables(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"plain", "plain"},
        {"$A", "one"},
        {"${A}", "one"},
        {"x$A/y", "xone/y"},
        {"$AB", ""},
        {"${A}B", "oneB"},
        {"$NONE", ""},
        {"\\$A", "$A"},
        {"\\n", "\\n"},
        {"$", "$"},
        {"$1", "$1"},
        {"$(id)", "$(id)"},
        {"`id`", "`id`"},
        {"${A", "${A"},
        {"${A:-x}", "${A:-x}"},
        {"$HOME/x", "/home/user/x"},
    };
    struct tpl_ctx c;
    tpl_ctx_init(&c, HASH);
    apply(&c, "{\"type\":\"ENV\",\"args\":[\"A\",\"one\"]}");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *got = tpl_expand(&c, cases[i].text);
        assert_string_equal(got, cases[i].want);
        free(got);
    }
    apply(&c, "{\"type\":\"ENV\",\"args\":[\"PATH\",\"/opt/x:$PATH\",\"B\",\"$A-$A\"]}");
    assert_true(str_starts(json_str(c.env, "PATH", ""), "/opt/x:/run/cc/bin:"));
    assert_string_equal(json_str(c.env, "B", ""), "one-one");
    apply(&c, "{\"type\":\"WORKDIR\",\"args\":[\"/w/$A\"]}");
    assert_string_equal(c.workdir, "/w/one");
    /* a variable of itself grows, up to the limit */
    struct tpl_plan p;
    struct err e = {0};
    char big[4001];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    char *json = xasprintf(STEP("{\"type\":\"ENV\",\"args\":[\"V\",\"${V}${V}%s\"]}"), big);
    assert_int_equal(parse(&p, json, NULL), 0);
    int rc = 0;
    for (int i = 0; i < 26 && rc == 0; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        rc = tpl_step_apply(&c, &p.steps[0], &e);
        assert_true(c.env_bytes <= TPL_ENV_MAX);
        str_copy(p.steps[0].args[0], 2, name); /* and more of them */
    }
    assert_int_equal(rc, ERR_LIMIT);
    assert_true(e.text[0] != '\0');
    tpl_plan_release(&p);
    tpl_ctx_release(&c);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_images),
        cmocka_unit_test(test_plans),     cmocka_unit_test(test_keys),
        cmocka_unit_test(test_step_text), cmocka_unit_test(test_accounts),
        cmocka_unit_test(test_variables),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
