/* Which key is in force, what it hides, and odd files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cct/keys.h>
#include <cct/model/sandbox.h>
#include <cct/util/log.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROJECT "e2b_projectprojectprojectproj9f21"
#define ENVKEY "e2b_environmentenvironmentenv4f2a"

static char home[] = "/tmp/cct-keys-XXXXXX";
static char dir[64], file[80];

static void write_config(const char *text)
{
    FILE *f;

    unlink(file);
    f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    chmod(file, 0600);
}

static int begin(void **state)
{
    (void)state;
    if (!mkdtemp(home))
        return -1;
    snprintf(dir, sizeof(dir), "%s/.e2b", home);
    snprintf(file, sizeof(file), "%s/config.json", dir);
    setenv("HOME", home, 1);
    return mkdir(dir, 0700);
}

static int end(void **state)
{
    (void)state;
    unlink(file);
    rmdir(dir);
    return rmdir(home);
}

static int clean(void **state)
{
    (void)state;
    unlink(file);
    unsetenv("E2B_API_KEY");
    return 0;
}

#define V2(key) "{\"version\":2,\"tokens\":{\"access_token\":\"tok\"},\"projectName\":\"p\"," \
                "\"projectId\":\"pid\",\"projectApiKey\":\"" key "\"}"

static struct key_found k;
static struct err e;

static void find(enum key_source want)
{
    key_found_release(&k);
    e = (struct err){0};
    keys_take_env();
    keys_find_e2b(&k, &e);
    if (k.source != want)
        print_message("# %s\n", e.text);
    assert_int_equal(k.source, want);
    assert_true((k.key != NULL) == (want != KEY_NONE));
}

static void test_order(void **state)
{
    (void)state;
    find(KEY_NONE);
    assert_int_equal(e.code, 0);
    write_config(V2(PROJECT));
    find(KEY_E2B_CLI);
    assert_string_equal(secret_value(k.key), PROJECT);
    assert_string_equal(k.team_id, "pid");
    assert_null(k.hidden);
    setenv("E2B_API_KEY", "  " ENVKEY "\n", 1);
    find(KEY_ENV);
    assert_string_equal(secret_value(k.key), ENVKEY);
    assert_string_equal(k.hidden, "hides ****9f21 (E2B CLI config)");
    assert_null(k.team_id);
    assert_null(getenv("E2B_API_KEY"));
    setenv("E2B_API_KEY", PROJECT, 1); /* the same key hides nothing */
    find(KEY_ENV);
    assert_null(k.hidden);
    assert_string_equal(k.team_id, "pid");
    setenv("E2B_API_KEY", "  ", 1);
    find(KEY_E2B_CLI);
    key_found_release(&k);
}

static void test_unusable_variable(void **state)
{
    (void)state;
    write_config(V2(PROJECT));
    setenv("E2B_API_KEY", "two words", 1);
    find(KEY_NONE);
    assert_int_equal(e.code, ERR_INVALID);
    assert_null(strstr(e.text, "words"));
    assert_null(getenv("E2B_API_KEY"));
}

static void test_version_1(void **state)
{
    (void)state;
    write_config("{\"version\":1,\"teamName\":\"t\",\"teamId\":\"tid\",\"teamApiKey\":\"" PROJECT
                 "\"}");
    find(KEY_E2B_CLI);
    assert_string_equal(k.team_id, "tid");
    key_found_release(&k);
}

static void test_odd_files(void **state)
{
    static const struct {
        const char *text;
        int code;
    } t[] = {
        {"", ERR_PROTO}, {"{", ERR_PROTO}, {"[]", ERR_INVALID}, {"{}", ERR_UNSUPPORTED},
        {"{\"accessToken\":\"x\",\"teamApiKey\":\"" PROJECT "\"}", ERR_UNSUPPORTED},
        {"{\"version\":2}", 0}, {"{\"version\":2,\"projectApiKey\":7}", 0},
        {"{\"version\":2,\"projectApiKey\":\"a\\nX: y\"}", ERR_INVALID},
        {"{\"version\":2,\"projectApiKey\":\"\"}", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        write_config(t[i].text);
        find(KEY_NONE);
        if (t[i].code == ERR_PROTO)
            assert_int_not_equal(e.code, 0);
        else
            assert_int_equal(e.code, t[i].code);
    }
    setenv("E2B_API_KEY", ENVKEY, 1); /* a bad file does not hide a good variable */
    write_config("{");
    find(KEY_ENV);
    assert_int_not_equal(e.code, 0);
    key_found_release(&k);
}

static void test_no_regular_file(void **state)
{
    char target[96];

    (void)state;
    assert_int_equal(mkfifo(file, 0600), 0);
    find(KEY_NONE); /* and does not wait for a writer */
    assert_int_not_equal(e.code, 0);
    unlink(file);
    snprintf(target, sizeof(target), "%s.real", file);
    write_config(V2(PROJECT));
    assert_int_equal(rename(file, target), 0);
    assert_int_equal(symlink(target, file), 0);
    find(KEY_NONE);
    assert_int_not_equal(e.code, 0);
    unlink(target);
}

static void test_providers(void **state)
{
    static const char *const claude[] = {"anthropic", "anthropic_token", NULL};
    static const char *const openai[] = {"openai", NULL}, *const none[] = {NULL};
    char *missing;
    struct kv *env;

    (void)state;
    unsetenv("ANTHROPIC_API_KEY");
    unsetenv("CLAUDE_CODE_OAUTH_TOKEN");
    keys_take_env();
    env = keys_provider_env(claude, &missing);
    assert_null(env[0].k);
    assert_string_equal(missing, "anthropic or anthropic_token");
    free(missing);
    keys_env_free(env);
    setenv("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat", 1);
    keys_take_env();
    assert_null(getenv("CLAUDE_CODE_OAUTH_TOKEN"));
    env = keys_provider_env(claude, &missing);
    assert_null(missing);
    assert_string_equal(env[0].k, "CLAUDE_CODE_OAUTH_TOKEN");
    assert_string_equal(env[0].v, "sk-ant-oat");
    assert_null(env[1].k);
    keys_env_free(env);
    unsetenv("CODEX_API_KEY");
    setenv("OPENAI_API_KEY", "sk-open", 1);
    keys_take_env();
    env = keys_provider_env(openai, NULL);
    assert_string_equal(env[0].k, "OPENAI_API_KEY");
    assert_string_equal(env[1].k, "CODEX_API_KEY");
    assert_string_equal(env[1].v, "sk-open");
    assert_null(env[2].k);
    keys_env_free(env);
    env = keys_provider_env(none, &missing);
    assert_null(missing);
    assert_null(env[0].k);
    keys_env_free(env);
    keys_env_free(NULL);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(key_source_name(KEY_ENV), "environment");
    assert_string_equal(key_source_name(KEY_E2B_CLI), "E2B CLI config");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, clean, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_order), CASE(test_unusable_variable), CASE(test_version_1),
        CASE(test_odd_files), CASE(test_no_regular_file), CASE(test_providers), CASE(test_names),
    };

    return cmocka_run_group_tests_name("keys", tests, begin, end);
}
