/* Templates without sandboxes: records on disk and what becomes of damaged ones, logs
 * and their pages, links for uploads. */
#include <cct/local/boxstore.h>
#include <cct/local/tpl.h>
#include <cct/secrets/digest.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char dir[64];
static struct provider prov;

static int setup(void **state)
{
    (void)state;
    digest_init();
    snprintf(dir, sizeof(dir), "/tmp/cct-tpl-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    prov = (struct provider){.base = event_base_new(), .state_dir = dir, .boxes = map_new()};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    event_base_free(prov.base);
    map_free(prov.boxes, NULL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    return boxstore_remove_tree(dir, NULL);
}

static bool exists(const char *name)
{
    char *path = fs_join(dir, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* --- logs ------------------------------------------------------------------- */

static size_t look(const struct tpl_log *l, struct tpl_log_query q, const char *want)
{
    const struct tpl_entry *out[100];
    struct buf b = BUF_INIT;
    size_t n = tpl_log_select(l, &q, out);
    for (size_t i = 0; i < n; i++)
        buf_adds(&b, out[i]->message);
    assert_string_equal(buf_str(&b), want);
    buf_release(&b);
    return n;
}

static void test_log_pages(void **state)
{
    (void)state;
    struct tpl_log *l = tpl_log_open(NULL, true);
    for (char c = 'a'; c <= 'f'; c++)
        tpl_log_add(l, c % 2 ? TPL_INFO : TPL_ERROR, "1", &c, 1);
    for (size_t i = 0; i < l->a.n; i++)
        l->a.v[i].ms = 1000 + (int64_t)i;
    look(l, (struct tpl_log_query){.limit = 100, .cursor = -1}, "abcdef");
    look(l, (struct tpl_log_query){.limit = 2, .cursor = -1}, "ab");
    look(l, (struct tpl_log_query){.limit = 2, .offset = 4, .cursor = -1}, "ef");
    look(l, (struct tpl_log_query){.limit = 2, .offset = 6, .cursor = -1}, "");
    look(l, (struct tpl_log_query){.limit = 0, .cursor = -1}, "");
    look(l, (struct tpl_log_query){.limit = 9, .min = TPL_ERROR, .cursor = -1}, "bdf");
    look(l, (struct tpl_log_query){.limit = 9, .min = TPL_ERROR, .offset = 1, .cursor = -1},
         "df");
    look(l, (struct tpl_log_query){.limit = 9, .cursor = 1003}, "def");
    look(l, (struct tpl_log_query){.limit = 2, .cursor = 1003, .backward = true}, "dc");
    look(l, (struct tpl_log_query){.limit = 2, .cursor = -1, .backward = true}, "fe");
    tpl_log_free(l);
}

static void test_log_file(void **state)
{
    (void)state;
    char *path = fs_join(dir, "x.log");
    struct stat st;
    struct tpl_log *l = tpl_log_open(path, true);
    tpl_log_add(l, TPL_INFO, "base", "a\x01\"\xff", 4);
    tpl_log_addf(l, TPL_WARN, "2", "%s", "tab\tkept");
    tpl_log_free(l);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    FILE *f = fopen(path, "ae");
    fputs("{\"at\":\nnonsense\n{\"at\":5,\"level\":\"loud\",\"message\":\"x\"}\n", f);
    fclose(f);
    l = tpl_log_open(path, false);
    assert_int_equal(l->a.n, 2);
    assert_string_equal(l->a.v[0].message, "a \"\xef\xbf\xbd");
    assert_string_equal(l->a.v[1].message, "tab\tkept");
    assert_string_equal(l->a.v[1].step, "2");
    tpl_log_free(l);
    free(path);
}

static void test_log_is_bounded(void **state)
{
    (void)state;
    struct tpl_log *l = tpl_log_open(NULL, true);
    char big[TPL_LINE_MAX * 2];
    memset(big, 'x', sizeof(big));
    for (int i = 0; i < 400; i++)
        tpl_log_add(l, TPL_INFO, "1", big, sizeof(big));
    assert_true(l->full);
    assert_true(l->bytes < TPL_LOG_BYTES_MAX + 2 * TPL_LINE_MAX);
    assert_int_equal(strlen(l->a.v[0].message), TPL_LINE_MAX);
    assert_non_null(strstr(l->a.v[l->a.n - 1].message, "full"));
    tpl_log_add(l, TPL_ERROR, "1", "the end", 7);
    assert_string_equal(l->a.v[l->a.n - 1].message, "the end");
    tpl_log_free(l);
}

/* Its file may be several times as large as what it says. */
static void test_full_log_is_read_again(void **state)
{
    (void)state;
    char *path = fs_join(dir, "full.log"), big[TPL_LINE_MAX];
    memset(big, 0x1b, sizeof(big));
    struct tpl_log *l = tpl_log_open(path, true);
    while (!l->full)
        tpl_log_add(l, TPL_INFO, "1", big, sizeof(big));
    tpl_log_add(l, TPL_ERROR, "1", "the end", 7);
    size_t n = l->a.n;
    tpl_log_free(l);
    l = tpl_log_open(path, false);
    assert_int_equal(l->a.n, n);
    assert_string_equal(l->a.v[n - 1].message, "the end");
    tpl_log_free(l);
    free(path);
}

/* --- the store --------------------------------------------------------------- */

static struct tpl_build *request(struct tpl_store *s, const char *name, struct tpl **t)
{
    struct tpl_build *b;
    struct err e = {0};
    if (tpl_request(s, name, NULL, 0, 4, 2048, t, &b, &e) != 0)
        fail_msg("%s", e.text);
    return b;
}

static void make_ready(struct tpl_store *s, struct tpl *t, struct tpl_build *b)
{
    b->status = TPL_IS_READY;
    for (size_t i = 0; i < b->n_tags; i++)
        tpl_tag_put(t, b->tags[i], b->id);
    assert_int_equal(tpl_save(s, t, NULL), 0);
}

static void test_store_round_trip(void **state)
{
    (void)state;
    struct tpl_store *s = tpl_store_new(&prov);
    struct tpl *t, *same;
    struct tpl_build *b = request(s, "mine:v1", &t);
    char id[24], build[40];
    strcpy(id, t->id);
    strcpy(build, b->id);
    assert_true(sbox_id_ok(id));
    assert_int_equal(b->n_tags, 1);
    assert_string_equal(b->tags[0], "v1");
    static const char env[] = "{\"A\":\"x y\"}";
    b->image.env = json_parse(env, strlen(env), NULL);
    b->image.workdir = xstrdup("/w");
    b->image.start_cmd = xstrdup("run 'it'");
    b->image.layers = xcalloc(1, sizeof(char *));
    b->image.layers[0] = xstrdup("0123456789abcdef0123456789abcdef");
    b->image.n_layers = 1;
    make_ready(s, t, b);
    struct tpl_build *b2 = request(s, "mine", &same);
    assert_ptr_equal(t, same);
    b2->status = TPL_IS_BUILDING; /* and the provider dies */
    b2->started = true;
    tpl_count_spawn(s, t);
    assert_int_equal(tpl_save(s, t, NULL), 0);
    tpl_store_free(s);

    s = tpl_store_new(&prov);
    t = tpl_find(s, "mine", NULL);
    assert_non_null(t);
    assert_string_equal(t->id, id);
    assert_int_equal(t->spawns, 1);
    assert_true(t->spawned_ms > 0);
    assert_int_equal(t->builds.n, 2);
    b = tpl_build_find(t, build);
    assert_non_null(b);
    assert_int_equal(b->status, TPL_IS_READY);
    assert_int_equal(b->cpu, 4);
    assert_int_equal(b->mem_mb, 2048);
    assert_string_equal(json_str(b->image.env, "A", ""), "x y");
    assert_string_equal(b->image.workdir, "/w");
    assert_string_equal(b->image.start_cmd, "run 'it'");
    assert_int_equal(b->image.n_layers, 1);
    assert_int_equal(t->builds.v[1]->status, TPL_IS_ERROR);
    assert_non_null(strstr(t->builds.v[1]->reason, "restarted"));
    tpl_delete(s, t);
    assert_null(tpl_find(s, "mine", NULL));
    tpl_store_free(s);
    s = tpl_store_new(&prov);
    assert_null(tpl_find(s, "mine", NULL));
    tpl_store_free(s);
}

static void test_look_up(void **state)
{
    (void)state;
    struct tpl_store *s = tpl_store_new(&prov);
    struct tpl *t;
    struct tpl_build *b = request(s, "look", &t), *got = NULL;
    struct err e = {0};
    static const char *const builtin[] = {
        "base",  "base:default", "local/base", "local/pi:default", "localdemo00000000000",
        "shell", "codex"};
    static const char *const unknown[] = {"",         "Base",       "bas",   "base:latest",
                                          ":default", "other/base", "base/", "look:v9"};
    for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++)
        assert_non_null(tpl_resolve(s, builtin[i], &got, &e));
    assert_null(tpl_resolve(s, "look", &got, &e));
    assert_int_equal(e.code, ERR_INVALID); /* there, but no build is finished */
    make_ready(s, t, b);
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        err_clear(&e);
        assert_null(tpl_resolve(s, unknown[i], &got, &e));
        assert_int_equal(e.code, ERR_NOTFOUND);
    }
    assert_ptr_equal(tpl_resolve(s, t->id, &got, &e), t);
    assert_ptr_equal(got, b);
    assert_ptr_equal(tpl_resolve(s, "local/look:default", &got, &e), t);
    assert_true(tpl_tag_drop(t, "default"));
    assert_false(tpl_tag_drop(t, "default"));
    err_clear(&e);
    assert_null(tpl_resolve(s, "look", &got, &e));
    assert_int_equal(e.code, ERR_NOTFOUND);
    assert_int_not_equal(tpl_request(s, "base", NULL, 0, 2, 512, &t, &b, &e), 0);
    const char *tags[] = {"ok", "not ok"};
    assert_int_not_equal(tpl_request(s, "x", tags, 2, 2, 512, &t, &b, &e), 0);
    assert_null(tpl_find(s, "x", NULL));
    tpl_delete(s, tpl_find(s, "look", NULL));
    tpl_store_free(s);
}

static void write_record(const char *id, const char *text)
{
    char *folder = xasprintf("%s/templates/%s", dir, id);
    char *path = fs_join(folder, "template.json");
    assert_int_equal(fs_mkdir_private(folder, NULL), 0);
    assert_int_equal(fs_write_private(path, text, strlen(text), NULL), 0);
    free(path);
    free(folder);
}

#define BUILD                                                                             \
    "{\"id\":\"00000000-0000-4000-8000-000000000001\",\"status\":\"%s\",\"createdAt\":1," \
    "\"cpu\":1,\"mem\":128,\"image\":{\"layers\":[%s]}}"

static void test_damaged_records(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"version\":1}",
        "{\"version\":2,\"id\":\"%s\",\"name\":\"n\",\"createdAt\":1,\"builds\":[]}",
        "{\"version\":1,\"id\":\"%s\",\"name\":\"n\",\"createdAt\":1,\"builds\":[]}",
        "{\"version\":1,\"id\":\"%s\",\"name\":\"N\",\"createdAt\":1,\"builds\":[" BUILD "]}",
        "{\"version\":1,\"id\":\"%s\",\"name\":\"base\",\"createdAt\":1,\"builds\":[" BUILD
        "]}",
        "{\"version\":1,\"id\":\"aaaaaaaaaaaaaaaaaaaa\",\"name\":\"n\",\"createdAt\":1,"
        "\"builds\":[" BUILD "]}",
    };
    struct tpl_store *s = tpl_store_new(&prov);
    tpl_store_free(s);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char id[24], text[1024], damaged[64];
        snprintf(id, sizeof(id), "damagedrecordnumber%zu", i);
        /* every form takes the id first, then a build's status and layers */
        const char *p = bad[i];
        struct buf b = BUF_INIT;
        static const char *const build_args[] = {"ready", ""};
        size_t k = strstr(p, "\"id\":\"%s\",\"name\"") ? 0 : 1;
        for (; *p; p++) {
            if (p[0] == '%' && p[1] == 's') {
                buf_adds(&b, k == 0 ? id : build_args[k - 1]);
                k++;
                p++;
            } else {
                buf_addc(&b, *p);
            }
        }
        str_copy(text, sizeof(text), buf_str(&b));
        buf_release(&b);
        write_record(id, text);
        s = tpl_store_new(&prov);
        assert_null(map_get(s->by_id, id));
        tpl_store_free(s);
        snprintf(damaged, sizeof(damaged), "templates/damaged-%s", id);
        if (!exists(damaged))
            fail_msg("not set aside: %s", text);
        snprintf(damaged, sizeof(damaged), "templates/%s", id);
        assert_false(exists(damaged));
    }
    /* and a good one of the same form is taken */
    write_record(
        "goodrecordnumber0000",
        "{\"version\":1,\"id\":\"goodrecordnumber0000\",\"name\":\"n\",\"createdAt\":1,"
        "\"builds\":[{\"id\":\"00000000-0000-4000-8000-000000000001\","
        "\"status\":\"ready\",\"createdAt\":1,\"cpu\":1,\"mem\":128,\"image\":{"
        "\"layers\":[]}}]}");
    s = tpl_store_new(&prov);
    struct tpl *t = tpl_find(s, "n", NULL);
    assert_non_null(t);
    tpl_delete(s, t);
    tpl_store_free(s);
}

static void test_old_builds_go(void **state)
{
    (void)state;
    struct tpl_store *s = tpl_store_new(&prov);
    struct tpl *t = NULL;
    struct tpl_build *first = request(s, "many", &t);
    char id[40];
    strcpy(id, first->id);
    make_ready(s, t, first);
    for (unsigned i = 0; i < TPL_BUILDS_KEPT + 5; i++) {
        struct tpl_build *b = request(s, "many:other", &t);
        b->status = TPL_IS_ERROR;
    }
    tpl_prune(s, t);
    assert_int_equal(t->builds.n, TPL_BUILDS_KEPT + 1);
    assert_non_null(tpl_build_find(t, id)); /* a tag names it */
    tpl_delete(s, t);
    tpl_store_free(s);
}

/* --- layers and uploads -------------------------------------------------------- */

static void children_end(void) /* they remove what was dropped */
{
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}

static void run_sweep(struct tpl_store *s)
{
    tpl_layers_sweep(s);
    children_end();
}

static void test_layers(void **state)
{
    (void)state;
    children_end();
    char *all = fs_join(dir, "templates"); /* damaged ones of earlier tests, too */
    assert_int_equal(boxstore_remove_tree(all, NULL), 0);
    free(all);
    struct tpl_store *s = tpl_store_new(&prov);
    char used[TPL_LAYER_LEN + 1], loose[TPL_LAYER_LEN + 1], half[TPL_LAYER_LEN + 1];
    char path[96];
    struct tpl *t;
    struct err e = {0};
    if (tpl_layer_new(s, used, &e) != 0 || tpl_layer_new(s, loose, &e) != 0 ||
        tpl_layer_new(s, half, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(tpl_layer_publish(s, used, HASH, &e), 0);
    char other[TPL_KEY_LEN + 1];
    strcpy(other, HASH);
    other[0] = 'f';
    assert_int_equal(tpl_layer_publish(s, loose, other, &e), 0);
    struct tpl_build *b = request(s, "layered", &t);
    b->image.layers = xcalloc(1, sizeof(char *));
    b->image.layers[0] = xstrdup(used);
    b->image.n_layers = 1;
    make_ready(s, t, b);
    tpl_store_free(s);

    s = tpl_store_new(&prov);
    assert_string_equal(map_get(s->layers, HASH), used);
    assert_string_equal(map_get(s->layers, other), loose);
    assert_int_equal(map_count(s->layers), 2); /* without its key it is none */
    run_sweep(s);
    assert_null(map_get(s->layers, other));
    snprintf(path, sizeof(path), "layers/%s/root", used);
    assert_true(exists(path));
    snprintf(path, sizeof(path), "layers/%s", loose);
    assert_false(exists(path));
    snprintf(path, sizeof(path), "layers/%s", half);
    assert_false(exists(path));
    tpl_delete(s, tpl_find(s, "layered", NULL));
    run_sweep(s);
    snprintf(path, sizeof(path), "layers/%s", used);
    assert_false(exists(path));
    tpl_store_free(s);
}

/* Whose template is damaged may still have a sandbox above it. */
static void test_layers_of_damaged(void **state)
{
    (void)state;
    struct tpl_store *s = tpl_store_new(&prov);
    char kept[TPL_LAYER_LEN + 1], half[TPL_LAYER_LEN + 1], path[96];
    struct err e = {0};
    if (tpl_layer_new(s, kept, &e) != 0 || tpl_layer_new(s, half, &e) != 0 ||
        tpl_layer_publish(s, kept, HASH, &e) != 0)
        fail_msg("%s", e.text);
    tpl_store_free(s);
    write_record("damagedrecord0000000", "{\"version\":1,\"id\":\"damaged");
    for (int start = 0; start < 2; start++) { /* it lies there the second time, too */
        s = tpl_store_new(&prov);
        run_sweep(s);
        assert_string_equal(map_get(s->layers, HASH), kept);
        snprintf(path, sizeof(path), "layers/%s/root", kept);
        assert_true(exists(path));
        snprintf(path, sizeof(path), "layers/%s", half);
        assert_false(exists(path));
        tpl_store_free(s);
    }
    char *aside = fs_join(dir, "templates/damaged-damagedrecord0000000");
    assert_int_equal(boxstore_remove_tree(aside, NULL), 0);
    free(aside);
}

/* The provider was killed before a template's first record was there: nothing is lost with
 * its folder, and layers that nobody names are removed as ever. */
static void test_never_saved(void **state)
{
    (void)state;
    static const char *const folders[] = {"templates/neversaved0000000000",
                                          "templates/damaged-neversaved1111111111"};
    for (size_t i = 0; i < 2; i++) {
        char *folder = fs_join(dir, folders[i]), *half = fs_join(folder, ".tmp-17-abcdefghijkl");
        assert_int_equal(fs_mkdir_private(folder, NULL), 0);
        assert_int_equal(fs_write_private(half, "{", 1, NULL), 0);
        struct tpl_store *s = tpl_store_new(&prov);
        assert_false(s->is_partial);
        tpl_store_free(s);
        assert_false(exists(folders[i]));
        free(half);
        free(folder);
    }
    /* where there is a build's log, there was a record */
    char *folder = fs_join(dir, folders[0]), *log = fs_join(folder, "x.log");
    assert_int_equal(fs_mkdir_private(folder, NULL), 0);
    assert_int_equal(fs_write_private(log, "{", 1, NULL), 0);
    struct tpl_store *s = tpl_store_new(&prov);
    assert_true(s->is_partial);
    tpl_store_free(s);
    free(folder);
    free(log);
    folder = fs_join(dir, "templates/damaged-neversaved0000000000");
    assert_int_equal(boxstore_remove_tree(folder, NULL), 0);
    free(folder);
}

static void test_uploads(void **state)
{
    (void)state;
    struct tpl_store *s = tpl_store_new(&prov);
    char token[TPL_TOKEN_LEN + 1], second[TPL_TOKEN_LEN + 1], hash[TPL_KEY_LEN + 1];
    struct err e = {0};
    assert_false(tpl_upload_is_there(s, HASH));
    tpl_upload_offer(s, HASH, token);
    tpl_upload_offer(s, HASH, second);
    assert_string_not_equal(token, second);
    assert_false(tpl_upload_take(s, "none", hash));
    assert_true(tpl_upload_take(s, token, hash));
    assert_string_equal(hash, HASH);
    assert_false(tpl_upload_take(s, token, hash)); /* once */
    struct tpl_inflow *f = tpl_inflow_new(s, hash, &e);
    assert_int_equal(tpl_inflow_add(f, "abc", 3, &e), 0);
    tpl_inflow_drop(f); /* cut off */
    assert_false(tpl_upload_is_there(s, HASH));
    f = tpl_inflow_new(s, hash, &e);
    assert_int_equal(tpl_inflow_add(f, "abc", 3, &e), 0);
    assert_int_equal(tpl_inflow_keep(f, &e), 0);
    assert_true(tpl_upload_is_there(s, HASH));
    char layer[TPL_LAYER_LEN + 1], path[160];
    assert_int_equal(tpl_layer_new(s, layer, &e), 0);
    struct tpl_copy c = TPL_COPY_INIT;
    if (tpl_copy_open(&c, s, layer, HASH, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(tpl_copy_more(&c, &e), 1);
    assert_int_equal(tpl_copy_more(&c, &e), 0);
    tpl_copy_close(&c);
    snprintf(path, sizeof(path), "layers/%s/root/" TPL_COPY_DIR "/files.tar", layer);
    struct stat st;
    char *copy = fs_join(dir, path);
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(st.st_nlink, 1); /* what a step writes to it stays its own */
    free(copy);
    tpl_store_free(s);
    /* what a killed provider left half */
    copy = fs_join(dir, "uploads/new-0123456789abcdef");
    assert_int_equal(fs_write_private(copy, "half", 4, &e), 0);
    s = tpl_store_new(&prov);
    assert_true(tpl_upload_is_there(s, HASH));
    assert_false(exists("uploads/new-0123456789abcdef"));
    free(copy);
    tpl_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_pages),         cmocka_unit_test(test_log_file),
        cmocka_unit_test(test_log_is_bounded),    cmocka_unit_test(test_full_log_is_read_again),
        cmocka_unit_test(test_store_round_trip),
        cmocka_unit_test(test_look_up),           cmocka_unit_test(test_damaged_records),
        cmocka_unit_test(test_old_builds_go),     cmocka_unit_test(test_layers),
        cmocka_unit_test(test_layers_of_damaged), cmocka_unit_test(test_never_saved),
        cmocka_unit_test(test_uploads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
