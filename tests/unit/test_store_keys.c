/* store: projects, the vault's head and the sealed keys; the step from the first schema;
 * what is left in the file when a key goes. */
#include "../lib/storebox.h"

#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* keep last */
#include <cmocka.h>

#define LIT(s) ((char *)(s)) /* the store only reads it */
#define UID "0123456789abcdef0123456789abcdef"

static struct storebox b;
static char *dir;

static int set_up(void **state)
{
    (void)state;
    storebox_fresh(&b, &dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    storebox_end(&b, dir);
    return 0;
}

/* The answer of store_keys; NULL when nothing changed. Free with st_keys_free. */
static struct st_keys *keys(const char *project, const char *folder, int64_t known)
{
    store_keys(b.s, project, folder, known, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    if (r->err.code)
        fail_msg("%s", r->err.text);
    struct st_keys *k = r->keys;
    assert_true(r->got == (k != NULL));
    r->keys = NULL;
    msg_free(&r->m);
    return k;
}

static struct st_keys *head(int64_t revision, const char *proof)
{
    struct st_keys *k = xcalloc(1, sizeof(*k));
    str_copy(k->vault.uid, sizeof(k->vault.uid), UID);
    k->vault.revision = revision;
    k->vault.proof = xstrdup(proof);
    k->vault.proof_len = strlen(proof);
    return k;
}

static struct st_key key(const char *project_id, const char *provider, const char *api)
{
    return (struct st_key){.project = LIT(project_id), .provider = LIT(provider), .api = LIT(api),
                           .mark = LIT("0a0b0c0d"), .last4 = "9f21", .version = 1,
                           .sealed = LIT("se\0aled"), .sealed_len = 7, .created_at = 1234};
}

static void put(const struct st_key *k, int code)
{
    store_key_put(b.s, UID, k, storebox_to(&b));
    storebox_says(&b, code);
}

static void begin(void)
{
    store_vault_put(b.s, head(0, "proof"), storebox_to(&b));
    storebox_says(&b, 0);
}

static void test_empty(void **state)
{
    (void)state;
    assert_null(keys("default", NULL, 0));
    struct st_keys *k = keys("default", "/f", -1);
    assert_string_equal(k->vault.uid, "");
    assert_true(k->n == 0 && !k->project && !k->folder_ok && k->vault.revision == 0);
    st_keys_free(k);
    struct st_key one = key(NULL, "e2b", "a");
    put(&one, ERR_CONFLICT); /* no vault */
    store_key_del(b.s, NULL, "e2b", "a", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
}

static void test_every_field(void **state)
{
    (void)state;
    struct st_keys *in = head(0, "pro\0of");
    in->vault.passphrase = true;
    in->vault.proof_len = 3;
    in->vault.ops = 3;
    in->vault.mem = INT64_C(1) << 33;
    in->vault.salt = xstrdup("salt");
    in->vault.salt_len = 4;
    in->vault.sealed = xstrdup("data key");
    in->vault.sealed_len = 8;
    store_vault_put(b.s, in, storebox_to(&b));
    storebox_says(&b, 0);
    char *uid = storebox_project(&b, "acme");
    struct st_key user = key(NULL, "e2b", "https://api.e2b.app"), own = key(uid, "openai", "");
    put(&user, 0);
    put(&own, 0);
    storebox_again(&b, dir);
    struct st_keys *k = keys("acme", NULL, 0);
    assert_string_equal(k->vault.uid, UID);
    assert_true(k->vault.passphrase && k->vault.ops == 3 && k->vault.mem == INT64_C(1) << 33);
    assert_true(k->vault.proof_len == 3 && k->vault.salt_len == 4 && k->vault.sealed_len == 8);
    assert_memory_equal(k->vault.sealed, "data key", 8);
    assert_memory_equal(k->vault.salt, "salt", 4);
    assert_int_equal(k->vault.revision, 3);
    assert_string_equal(k->project, uid);
    assert_int_equal(k->n, 2);
    assert_null(k->v[0].project);
    assert_string_equal(k->v[0].provider, "e2b");
    assert_string_equal(k->v[0].api, "https://api.e2b.app");
    assert_string_equal(k->v[0].mark, "0a0b0c0d");
    assert_string_equal(k->v[0].last4, "9f21");
    assert_int_equal(k->v[0].sealed_len, 7);
    assert_memory_equal(k->v[0].sealed, "se\0aled", 7);
    assert_true(k->v[0].version == 1 && k->v[0].created_at == 1234);
    assert_string_equal(k->v[1].project, uid);
    assert_string_equal(k->v[1].project_name, "acme");
    assert_null(keys("acme", NULL, k->vault.revision));
    st_keys_free(k);
    free(uid);
}

static void test_replace_and_remove(void **state)
{
    (void)state;
    begin();
    char *uid = storebox_project(&b, "p");
    struct st_key one = key(NULL, "e2b", "a"), other = key(NULL, "e2b", "b"),
                  own = key(uid, "e2b", "a");
    put(&one, 0);
    put(&other, 0);
    put(&own, 0);
    memcpy(one.last4, "new!", 5);
    put(&one, 0);
    struct st_keys *k = keys("p", NULL, 0);
    assert_int_equal(k->n, 3);
    st_keys_free(k);
    store_key_del(b.s, NULL, "e2b", "a", storebox_to(&b));
    storebox_says(&b, 0);
    store_key_del(b.s, NULL, "e2b", "a", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    store_key_del(b.s, "nobody", "e2b", "a", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    k = keys("p", NULL, 0);
    assert_int_equal(k->n, 2);
    assert_string_equal(k->v[0].api, "b");
    assert_string_equal(k->v[1].project, uid);
    st_keys_free(k);
    store_key_put(b.s, "another vault", &one, storebox_to(&b));
    storebox_says(&b, ERR_CONFLICT);
    struct st_key stray = key("no such project", "e2b", "a");
    put(&stray, ERR_CONFLICT);
    free(uid);
}

/* Two that begin the vault at once: the second is told, its head is not kept. */
static void test_one_vault(void **state)
{
    (void)state;
    begin();
    store_vault_put(b.s, head(0, "other"), storebox_to(&b));
    storebox_says(&b, ERR_CONFLICT);
    struct st_keys *k = keys(NULL, NULL, -1), *again = head(1, "anew");
    assert_memory_equal(k->vault.proof, "proof", 5);
    st_keys_free(k);
    struct st_key one = key(NULL, "e2b", "a");
    put(&one, 0);
    store_vault_put(b.s, again, storebox_to(&b)); /* of revision 1: it is 2 now */
    storebox_says(&b, ERR_CONFLICT);
    again = head(2, "anew");
    again->v = xcalloc(1, sizeof(*again->v));
    again->n = 1;
    struct st_key fresh = key(NULL, "github", "");
    st_key_copy(&again->v[0], &fresh);
    store_vault_put(b.s, again, storebox_to(&b));
    storebox_says(&b, 0);
    k = keys(NULL, NULL, -1);
    assert_memory_equal(k->vault.proof, "anew", 4);
    assert_int_equal(k->vault.revision, 3);
    assert_int_equal(k->n, 1);
    assert_string_equal(k->v[0].provider, "github");
    st_keys_free(k);
}

static void test_projects(void **state)
{
    (void)state;
    begin();
    char *p = storebox_project(&b, "p"), *again = storebox_project(&b, "p");
    char *q = storebox_project(&b, "q");
    assert_string_equal(p, again);
    assert_string_not_equal(p, q);
    assert_true(strlen(p) == 32);
    struct st_key own = key(p, "e2b", "a");
    put(&own, 0);
    store_project_rename(b.s, p, "q", storebox_to(&b));
    storebox_says(&b, ERR_CONFLICT);
    store_project_rename(b.s, "nobody", "z", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    store_project_rename(b.s, p, "renamed", storebox_to(&b));
    storebox_says(&b, 0);
    struct st_keys *k = keys("renamed", NULL, 0);
    assert_string_equal(k->project, p);
    assert_string_equal(k->v[0].project, p);
    assert_string_equal(k->v[0].project_name, "renamed");
    st_keys_free(k);
    char *fresh = storebox_project(&b, "p"); /* the name is free again; the keys went with the id */
    assert_string_not_equal(fresh, p);
    free(fresh), free(p), free(again), free(q);
}

static void test_folders(void **state)
{
    (void)state;
    begin();
    char *p = storebox_project(&b, "p");
    store_project_folder(b.s, "nobody", "/x", storebox_to(&b));
    storebox_says(&b, ERR_CONFLICT);
    store_project_folder(b.s, p, "/x", storebox_to(&b));
    storebox_says(&b, 0);
    store_project_folder(b.s, p, "/x", storebox_to(&b));
    storebox_says(&b, 0);
    static const struct {
        const char *project, *folder;
        bool ok;
    } t[] = {{"p", "/x", true}, {"p", "/x/", false}, {"p", NULL, false}, {"q", "/x", false}};
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct st_keys *k = keys(t[i].project, t[i].folder, -1);
        assert_true(k->folder_ok == t[i].ok);
        st_keys_free(k);
    }
    free(p);
}

/* NULL: the file goes. */
static void exec_sql(const char *sql)
{
    char *path = fs_join(dir, "cc-tui.db");
    if (!sql) {
        assert_int_equal(unlink(path), 0);
        free(path);
        return;
    }
    storebox_sql(path, sql);
    free(path);
}

/* A database of the first schema keeps what it has and gets the tables. */
static void test_first_schema(void **state)
{
    (void)state;
    storebox_stop(&b);
    exec_sql(NULL);
    storebox_old(dir, 1);
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, 0);
    store_sandboxes(b.s, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_int_equal(r->n_sandboxes, 1);
    assert_string_equal(r->sandboxes[0].sandbox_id, "kept");
    msg_free(&r->m);
    begin();
    struct st_key one = key(NULL, "e2b", "a");
    put(&one, 0);
    storebox_again(&b, dir);
    struct st_keys *k = keys(NULL, NULL, 0);
    assert_int_equal(k->n, 1);
    st_keys_free(k);
}

static void test_newer_schema_is_read_only(void **state)
{
    (void)state;
    begin();
    struct st_key one = key(NULL, "e2b", "a");
    put(&one, 0);
    storebox_stop(&b);
    exec_sql("PRAGMA user_version=99");
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, ERR_UNSUPPORTED);
    struct st_keys *k = keys(NULL, NULL, 0);
    assert_int_equal(k->n, 1);
    st_keys_free(k);
    put(&one, ERR_UNSUPPORTED);
    store_vault_put(b.s, head(2, "x"), storebox_to(&b));
    storebox_says(&b, ERR_UNSUPPORTED);
    store_key_del(b.s, NULL, "e2b", "a", storebox_to(&b));
    storebox_says(&b, ERR_UNSUPPORTED);
}

static bool in_file(const char *name, const char *text)
{
    char *path = fs_join(dir, name);
    size_t len = 0;
    char *p = fs_read(path, 64 << 20, false, &len, NULL);
    bool found = p && memmem(p, len, text, strlen(text));
    free(p);
    free(path);
    return found;
}

/* What was removed or replaced is overwritten, not just unlinked from the tree. */
static void test_removed_bytes_are_gone(void **state)
{
    (void)state;
    begin();
    struct st_key one = key(NULL, "e2b", "a");
    one.sealed = LIT("CANARY-SEALED-ONE");
    one.sealed_len = strlen(one.sealed);
    put(&one, 0);
    storebox_again(&b, dir);
    assert_true(in_file("cc-tui.db", "CANARY-SEALED-ONE"));
    one.sealed = LIT("CANARY-SEALED-TWO");
    put(&one, 0);
    store_key_del(b.s, NULL, "e2b", "a", storebox_to(&b));
    storebox_says(&b, 0);
    storebox_again(&b, dir);
    assert_false(in_file("cc-tui.db", "CANARY-SEALED"));
    assert_false(in_file("cc-tui.db-wal", "CANARY-SEALED"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_empty), CASE(test_every_field), CASE(test_replace_and_remove),
        CASE(test_one_vault), CASE(test_projects), CASE(test_folders), CASE(test_first_schema),
        CASE(test_newer_schema_is_read_only), CASE(test_removed_bytes_are_gone),
    };
    return cmocka_run_group_tests_name("store_keys", tests, NULL, NULL);
}
