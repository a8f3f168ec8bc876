/* Which key is in force, what it hides, and odd files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cct/keys.h>
#include <cct/model/sandbox.h>
#include <cct/secrets/vault.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
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

static struct secret *data_key;

static int end(void **state)
{
    (void)state;
    unlink(file);
    secret_free(data_key);
    rmdir(dir);
    return rmdir(home);
}

#define V2(key) "{\"version\":2,\"tokens\":{\"access_token\":\"tok\"},\"projectName\":\"p\"," \
                "\"projectId\":\"pid\",\"projectApiKey\":\"" key "\"}"

static struct key_found k;
static struct keys_outside out;
static struct st_keys *stored; /* NULL: nothing is stored */
static const char *api = "https://api.e2b.app";
static bool by_folder;
static struct err e;

static int clean(void **state)
{
    (void)state;
    unlink(file);
    unsetenv("E2B_API_KEY");
    key_found_release(&k);
    keys_outside_release(&out);
    st_keys_free(stored);
    stored = NULL;
    api = "https://api.e2b.app";
    by_folder = false;
    return 0;
}

static void find(enum key_source want)
{
    struct keys_at at = {&out, stored, api, "acme", by_folder, NULL, NULL};

    key_found_release(&k);
    keys_outside_release(&out);
    e = (struct err){0};
    keys_take_env();
    keys_look_outside(&out);
    keys_choose(&at, &k, &e);
    if (k.source != want)
        print_message("# %s\n", e.text);
    assert_int_equal(k.source, want);
    assert_true((k.key != NULL || k.row != NULL) == (want != KEY_NONE));
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

/* --- stored ones ------------------------------------------------------------------ */

#define PID "0123456789abcdefghij0123456789ab"
#define USERKEY "e2b_useruseruseruseruseruseru1111"

static void store(const char *project, const char *provider, const char *service,
                  const char *value)
{
    struct secret *s = secret_new(value, strlen(value));

    if (!stored) {
        stored = xcalloc(1, sizeof(*stored));
        stored->project = xstrdup(PID);
        data_key = data_key ? data_key : vault_new_key();
    }
    stored->v = xrealloc(stored->v, (stored->n + 1) * sizeof(*stored->v));
    keys_seal(&stored->v[stored->n++], data_key, project, provider, service, s);
    secret_free(s);
}

static void opens_to(const char *value)
{
    struct err why = {0};
    struct secret *s = keys_open(k.row, data_key, &why);

    assert_non_null(s);
    assert_string_equal(secret_value(s), value);
    secret_free(s);
}

/* Every subset of the four levels: the nearest wins and names all that it hides. */
static void test_every_subset(void **state)
{
    static const char *const hidden[] = {"****1111 (user key)", "****9f21 (project key)",
                                         "****cccc (E2B CLI config)"};

    (void)state;
    for (unsigned set = 0; set < 16; set++) {
        bool env = set & 8, project = set & 4, user = set & 2, cli = set & 1;
        st_keys_free(stored);
        stored = NULL;
        unlink(file);
        if (cli)
            write_config(V2("e2b_clicliclicliclicliclicliccccc"));
        if (user)
            store(NULL, "e2b", api, USERKEY);
        if (project)
            store(PID, "e2b", api, PROJECT);
        if (env)
            setenv("E2B_API_KEY", ENVKEY, 1);
        enum key_source want = env       ? KEY_ENV
                               : project ? KEY_PROJECT
                               : user    ? KEY_USER
                               : cli     ? KEY_E2B_CLI
                                         : KEY_NONE;
        find(want);
        assert_int_equal(e.code, 0);
        const char *h = k.hidden ? k.hidden : "";
        assert_true((strstr(h, hidden[0]) != NULL) == (user && want < KEY_USER));
        assert_true((strstr(h, hidden[1]) != NULL) == (project && want < KEY_PROJECT));
        assert_true((strstr(h, hidden[2]) != NULL) == (cli && want && want < KEY_E2B_CLI));
        assert_true((k.hidden == NULL) == (*h == '\0'));
        if (want == KEY_PROJECT || want == KEY_USER)
            opens_to(want == KEY_PROJECT ? PROJECT : USERKEY);
        if (want)
            assert_string_equal(k.mask + 4, want == KEY_ENV       ? "4f2a"
                                            : want == KEY_PROJECT ? "9f21"
                                            : want == KEY_USER    ? "1111"
                                                                  : "cccc");
    }
}

static void test_same_key_hides_nothing(void **state)
{
    (void)state;
    store(NULL, "e2b", api, PROJECT);
    store(PID, "e2b", api, PROJECT);
    write_config(V2(PROJECT));
    find(KEY_PROJECT);
    assert_null(k.hidden);
    assert_string_equal(k.team_id, "pid");
    setenv("E2B_API_KEY", PROJECT, 1);
    find(KEY_ENV);
    assert_null(k.hidden);
}

/* A level whose key cannot be used is an error that names it; the next does not step in. */
static void test_no_silent_fallback(void **state)
{
    (void)state;
    write_config(V2("e2b_clicliclicliclicliclicliccccc"));
    store(NULL, "e2b", api, USERKEY);
    store(PID, "e2b", "https://api.self.example", PROJECT);
    find(KEY_NONE); /* the project's key is for another service */
    assert_int_equal(e.code, ERR_AUTH);
    assert_non_null(strstr(e.text, "project key ****9f21"));
    assert_non_null(strstr(e.text, "https://api.self.example"));
    assert_non_null(strstr(e.text, "https://api.e2b.app"));
    api = "https://api.self.example"; /* there it is the one, and the user's is not */
    find(KEY_PROJECT);
    assert_null(strstr(k.hidden ? k.hidden : "", "1111"));
    api = "https://api.evil.example";
    find(KEY_NONE);
    assert_int_equal(e.code, ERR_AUTH);
    setenv("E2B_API_KEY", "two words", 1);
    find(KEY_NONE);
    assert_int_equal(e.code, ERR_INVALID);
}

/* A file of the working directory chose the project: its keys want a yes. */
static void test_folder_wants_a_yes(void **state)
{
    const char *const needs[] = {"anthropic", NULL};
    struct keys_at at;
    struct err why = {0};
    struct kv *env;

    (void)state;
    store(NULL, "e2b", api, USERKEY);
    store(PID, "e2b", api, PROJECT);
    store(PID, "anthropic", "", "sk-ant-0123456789");
    by_folder = true;
    find(KEY_NONE);
    assert_int_equal(e.code, ERR_AUTH);
    assert_non_null(strstr(e.text, "keys trust"));
    at = (struct keys_at){&out, stored, api, "acme", true, NULL, NULL};
    assert_null(keys_provider_env(&at, data_key, needs, &why));
    assert_int_equal(why.code, ERR_AUTH);
    stored->folder_ok = true;
    find(KEY_PROJECT);
    env = keys_provider_env(&at, data_key, needs, &why);
    assert_string_equal(env[0].v, "sk-ant-0123456789");
    keys_env_free(env);
    stored->folder_ok = false;
    setenv("E2B_API_KEY", ENVKEY, 1); /* stands above; nothing of the project is used */
    find(KEY_ENV);
}

static void test_service(void **state)
{
    char *s;

    (void)state;
    unsetenv("E2B_API_URL");
    unsetenv("E2B_DOMAIN");
    s = keys_api();
    assert_string_equal(s, "https://api.e2b.app");
    assert_true(keys_api_is_own(s));
    free(s);
    setenv("E2B_DOMAIN", "self.example", 1);
    s = keys_api();
    assert_string_equal(s, "https://api.self.example");
    assert_false(keys_api_is_own(s));
    free(s);
    setenv("E2B_API_URL", "http://127.0.0.1:1//", 1);
    s = keys_api();
    assert_string_equal(s, "http://127.0.0.1:1");
    free(s);
    assert_false(keys_api_is_own("https://api.e2b.app.evil.example"));
    assert_false(keys_api_is_own("http://api.e2b.app"));
    setenv("E2B_API_KEY", ENVKEY, 1); /* not to an address with a password, not even named */
    api = "https://user:canary@api.example";
    find(KEY_NONE);
    assert_int_equal(e.code, ERR_INVALID);
    assert_null(strstr(e.text, "canary"));
    unsetenv("E2B_API_URL");
    unsetenv("E2B_DOMAIN");
}

static void test_marks(void **state)
{
    struct secret *a = secret_new("e2b_0123456789", 14), *b = secret_new("e2b_9876543210", 14),
                  *s = secret_new("secret", 6);
    char ma[12], mb[12];

    (void)state;
    key_mark(a, ma);
    key_mark(b, mb);
    assert_string_not_equal(ma, mb);
    assert_int_equal(strlen(ma), 8);
    key_mark(s, ma); /* could be found by trying */
    assert_string_equal(ma, "short");
    secret_free(a), secret_free(b), secret_free(s);
}

/* --- pastes ---------------------------------------------------------------------------- */

static void test_pastes(void **state)
{
#define K "e2b_0123456789abcdef9f21"
    static const struct {
        const char *text, *provider;
        bool ok;
    } t[] = {
        {K, "e2b", true},
        {"  " K "  ", "e2b", true},
        {K "\n", "e2b", true},
        {"\r\n" K "\r\n\r\n", "e2b", true},
        {"\t" K "\t", "e2b", true},
        {"\"" K "\"", "e2b", true},
        {"'" K "'", "e2b", true},
        {"`" K "`", "e2b", true},
        {"export E2B_API_KEY=" K, "e2b", true},
        {"export E2B_API_KEY='" K "'\n", "e2b", true},
        {"E2B_API_KEY=\"" K "\"", "e2b", true},
        {"E2B_API_KEY = " K, "e2b", true},
        {"E2B_API_KEY: " K, "e2b", true},
        {"set E2B_API_KEY=" K, "e2b", true},
        {"$env:E2B_API_KEY = \"" K "\"", "e2b", true},
        {"export E2B_API_KEY=" K ";", "e2b", true},
        {"\xEF\xBB\xBF" K, "e2b", true},
        {"MY_OWN_KEY=" K, "e2b", true},
        {"0123456789abcdef", "e2b", true}, /* other deployments have other forms */
        {"", "e2b", false},
        {"   \n", "e2b", false},
        {"''", "e2b", false},
        {"export E2B_API_KEY=", "e2b", false},
        {"e2b_a", "e2b", false},
        {"1234567", "e2b", false},
        {K " " K, "e2b", false},
        {K "\n" K, "e2b", false},
        {"e2b_01234\x1b[2J56789", "e2b", false},
        {"e2b_0123456789\xC3\xA4", "e2b", false},
        {"e2b_0123\r\nX-Evil: 1", "e2b", false},
        {"OPENAI_API_KEY=sk-0123456789", "e2b", false},
        {"sk-ant-api03-0123456789", "e2b", false},
        {"sk-ant-api03-0123456789", "openai", false},
        {"sk-ant-api03-0123456789", "anthropic", true},
        {"sk-ant-oat01-0123456789", "anthropic", false},
        {"sk-ant-oat01-0123456789", "anthropic_token", true},
        {"sk-or-v1-0123456789", "openrouter", true},
        {"sk-or-v1-0123456789", "openai", false},
        {"sk-proj-0123456789", "openai", true},
        {"ghp_0123456789", "github", true},
        {"github_pat_0123456789", "openai", false},
        {K, "openai", false},
    };
    struct err why;

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        why = (struct err){0};
        struct secret *s = keys_clean(t[i].text, strlen(t[i].text), t[i].provider, &why);
        if ((s != NULL) != t[i].ok)
            fail_msg("'%s' for %s: %s", t[i].text, t[i].provider, why.text);
        if (s && strcmp(t[i].provider, "e2b") == 0)
            assert_string_equal(secret_value(s), strstr(t[i].text, "e2b_") ? K : t[i].text);
        if (!s) {
            assert_int_equal(why.code, ERR_INVALID);
            assert_null(strstr(why.text, "0123456789")); /* never repeated */
        }
        secret_free(s);
    }
    char *big = xcalloc(1, 5000);
    memset(big, 'k', 4999);
    assert_null(keys_clean(big, 4999, "e2b", &why));
    assert_null(keys_clean("e2b_0123\0" "456789abcdef", 21, "e2b", &why));
    free(big);
}

/* A row that lies about the key it holds does not open. */
static void test_row_cannot_lie(void **state)
{
    struct err why = {0};
    struct secret *s;

    (void)state;
    store(NULL, "e2b", api, USERKEY);
    struct st_key *row = &stored->v[0];
    assert_string_equal(row->last4, "1111");
    memcpy(row->last4, "9f21", 5);
    assert_null(keys_open(row, data_key, &why));
    assert_int_equal(why.code, ERR_CORRUPT);
    memcpy(row->last4, "1111", 5);
    s = keys_open(row, data_key, &why);
    assert_non_null(s);
    secret_free(s);
    assert_null(keys_open(row, NULL, &why));
    assert_int_equal(why.code, ERR_AUTH);
    store(NULL, "github", "", "ghp_1234");
    assert_string_equal(stored->v[1].last4, ""); /* a short key shows nothing */
    assert_string_equal(stored->v[1].mark, "short");
}

/* --- providers -------------------------------------------------------------------------- */

static void clear_providers(void)
{
    static const char *const names[] = {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN",
                                        "OPENAI_API_KEY", "CODEX_API_KEY"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    keys_take_env();
}

static void test_providers(void **state)
{
    static const char *const claude[] = {"anthropic", "anthropic_token", NULL};
    static const char *const openai[] = {"openai", NULL}, *const none[] = {NULL};
    struct keys_at at = {&out, NULL, api, "acme", false, NULL, NULL};
    struct err why = {0};
    char *missing;
    struct kv *env;

    (void)state;
    clear_providers();
    assert_int_equal(keys_provider_source(&at, claude, &missing), KEY_NONE);
    assert_string_equal(missing, "anthropic or anthropic_token");
    free(missing);
    env = keys_provider_env(&at, NULL, claude, &why);
    assert_null(env[0].k);
    keys_env_free(env);
    setenv("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat", 1);
    keys_take_env();
    assert_null(getenv("CLAUDE_CODE_OAUTH_TOKEN"));
    assert_int_equal(keys_provider_source(&at, claude, &missing), KEY_ENV);
    assert_null(missing);
    env = keys_provider_env(&at, NULL, claude, &why);
    assert_string_equal(env[0].k, "CLAUDE_CODE_OAUTH_TOKEN");
    assert_string_equal(env[0].v, "sk-ant-oat");
    assert_null(env[1].k);
    keys_env_free(env);
    setenv("OPENAI_API_KEY", "sk-open", 1);
    keys_take_env();
    env = keys_provider_env(&at, NULL, openai, &why);
    assert_string_equal(env[0].k, "OPENAI_API_KEY");
    assert_string_equal(env[1].k, "CODEX_API_KEY");
    assert_string_equal(env[1].v, "sk-open");
    assert_null(env[2].k);
    keys_env_free(env);
    assert_int_equal(keys_provider_source(&at, none, &missing), KEY_NONE);
    assert_null(missing);
    env = keys_provider_env(&at, NULL, none, &why);
    assert_null(env[0].k);
    keys_env_free(env);
    keys_env_free(NULL);
    clear_providers();
}

/* A project's token stands above the user's other kind of key: the tool gets that alone. */
static void test_provider_levels(void **state)
{
    static const char *const claude[] = {"anthropic", "anthropic_token", NULL};
    struct keys_at at;
    struct err why = {0};
    struct kv *env;

    (void)state;
    clear_providers();
    store(NULL, "anthropic", "", "sk-ant-user-0123456");
    at = (struct keys_at){&out, stored, api, "acme", false, NULL, NULL};
    assert_int_equal(keys_provider_source(&at, claude, NULL), KEY_USER);
    store(PID, "anthropic_token", "", "sk-ant-oat-0123456");
    assert_int_equal(keys_provider_source(&at, claude, NULL), KEY_PROJECT);
    env = keys_provider_env(&at, data_key, claude, &why);
    assert_string_equal(env[0].k, "CLAUDE_CODE_OAUTH_TOKEN");
    assert_string_equal(env[0].v, "sk-ant-oat-0123456");
    assert_null(env[1].k);
    keys_env_free(env);
    assert_null(keys_provider_env(&at, NULL, claude, &why)); /* locked: no fall back */
    assert_int_equal(why.code, ERR_AUTH);
    stored->v[1].sealed[30] ^= 1; /* damaged: no fall back either */
    assert_null(keys_provider_env(&at, data_key, claude, &why));
    assert_int_equal(why.code, ERR_CORRUPT);
    setenv("ANTHROPIC_API_KEY", "sk-ant-env-0123456", 1);
    keys_take_env();
    env = keys_provider_env(&at, NULL, claude, &why);
    assert_string_equal(env[0].v, "sk-ant-env-0123456");
    assert_null(env[1].k);
    keys_env_free(env);
    clear_providers();
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
        CASE(test_odd_files), CASE(test_no_regular_file), CASE(test_every_subset),
        CASE(test_same_key_hides_nothing), CASE(test_no_silent_fallback),
        CASE(test_folder_wants_a_yes), CASE(test_service), CASE(test_marks), CASE(test_pastes),
        CASE(test_row_cannot_lie), CASE(test_providers), CASE(test_provider_levels),
        CASE(test_names),
    };

    return cmocka_run_group_tests_name("keys", tests, begin, end);
}
