/* The files of a COPY: hashes as E2B's SDK (2.51.0) gives them for five folders, what
 * .dockerignore leaves out, and the archive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cct/recipe/files.h>
#include <cct/secrets/digest.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char *root;

/* mode 0: a link to `text`; text NULL: a folder. */
static const struct {
    const char *path, *text;
    mode_t mode;
} tree[] = {
    {"links", NULL, 0755}, {"links/real", NULL, 0755}, {"links/real/a.txt", "one\n", 0644},
    {"links/file", "real/a.txt", 0}, {"links/folder", "real", 0}, {"links/real/up", "../real", 0},
    {"modes", NULL, 0700}, {"modes/run.sh", "#!/bin/sh\n", 0755}, {"modes/private", "x", 0600},
    {"modes/set", "y", 04755}, {"modes/shared", NULL, 0775}, {"modes/shared/empty", "", 0664},
    {"names", NULL, 0755}, {"names/a", "1", 0644}, {"names/\xC3\xA9", "2", 0644},
    {"names/\xE6\x97\xA5\xE6\x9C\xAC.txt", "3", 0644}, {"names/\xF0\x9F\x98\x80", "4", 0644},
    {"names/\xEE\x80\x80", "5", 0644}, {"names/two words", "6", 0644}, {"names/x[1]", "7", 0644},
    {"names/.hidden", NULL, 0755}, {"names/.hidden/.b", "8", 0644},
    {"ignore", NULL, 0755}, {"ignore/node_modules", NULL, 0755},
    {"ignore/node_modules/m", NULL, 0755}, {"ignore/node_modules/m/i.js", "1", 0644},
    {"ignore/a.log", "2", 0644}, {"ignore/src", NULL, 0755}, {"ignore/src/b.log", "3", 0644},
    {"ignore/src/main.c", "int x;\n", 0644}, {"ignore/dist", NULL, 0755},
    {"ignore/dist/out", "4", 0644},
    {"ignore/.dockerignore", "# left out\nnode_modules\n*.log\n\ndist/**\n  **/*.tmp  \n", 0644},
    {"ignore/src/c.tmp", "5", 0644},
    {"empty", NULL, 0755}, {"empty/nothing", NULL, 0755}, {"empty/deep", NULL, 0755},
    {"empty/deep/er", NULL, 0755}, {"empty/one", "", 0644},
};

static const struct {
    const char *folder, *src, *dest, *hash;
} hashes[] = {
    {"links", ".", "/app/",
     "9f5a92103430e37aaf083aed3201d78b9265e631c7130667dad23e6f3ff61ad4"},
    {"links", "real", "/r",
     "aebe7e062fc9960e940cbd2dbc421b38ca5b608643c7e865252b30a4af1e3b48"},
    {"links", "file", "/f",
     "f7fd6302d9b2f0999e4f26e8a696052cda9bb61839e20cd3f59be2ff7c7d0513"},
    {"modes", ".", "/app/",
     "251620288ddf295999620cbe842c982f4339ab3024b0329d5fda7ccc5e59ba50"},
    {"modes", "shared", ".",
     "8c73a94f2fd64c21816f78730c973acd4ef5ae312153d31d13504c940b367665"},
    {"names", ".", "/app",
     "4d9624575c8eb4224b36cc66bd969d231d107d36a469c93248190f36d95d7aec"},
    {"names", "*", "/app",
     "5fc9de10bf99d56a458b36f1f85c0c3f97992625c1adbbc6ab9f7b35668dacde"},
    {"names", ".hidden", "/h/",
     "fc6ae9e2930de5bedbaae4843bc7d96baba7b6a26d5d830f847cb7c610060f0f"},
    {"ignore", ".", "/app/",
     "06d64ff004bc7bf0d0b53c4db127a5773ab2d9879a1ef3237fa638e74934734e"},
    {"ignore", "src", "/src",
     "78c1b622fea4d2412b53403bee97ee0da88ebe8eaca657e714756a294344b96b"},
    {"ignore", "**/*.c", "/c",
     "762de4104d067d58f71484cafa57c686bdc93e17d1a2efbddd3f0bbddc92eec6"},
    {"empty", ".", "/app/",
     "cd99b4d467e5b083e5977fd8a2b9e1bd81c76942288545e66d7fef3f6b412cde"},
    {"empty", "nothing", "/n",
     "0cec7830efeb2d47172eaf5673a94f43fdf9d57f87cfd17d7f70717126aedfe4"},
};

static void make_entry(size_t i)
{
    char *path = fs_join(root, tree[i].path);
    const char *text = tree[i].text;

    if (!text) {
        assert_int_equal(mkdir(path, 0700), 0);
    } else if (!tree[i].mode) {
        assert_int_equal(symlink(text, path), 0);
    } else {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

        assert_true(fd >= 0);
        assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
        close(fd);
    }
    if (tree[i].mode)
        assert_int_equal(chmod(path, tree[i].mode), 0);
    free(path);
}

static int make_tree(void **state)
{
    char name[] = "/tmp/cct-recipe-XXXXXX";

    (void)state;
    digest_init();
    root = xstrdup(mkdtemp(name));
    for (size_t i = 0; i < sizeof(tree) / sizeof(tree[0]); i++)
        make_entry(i);
    return 0;
}

static int remove_tree(void **state)
{
    (void)state;
    for (size_t i = sizeof(tree) / sizeof(tree[0]); i-- > 0;) {
        char *path = fs_join(root, tree[i].path);

        if (tree[i].text)
            unlink(path);
        else
            chmod(path, 0700), rmdir(path);
        free(path);
    }
    rmdir(root);
    free(root);
    return 0;
}

static void find(struct recipe_files *f, const char *folder, const char *src, const char *ignore)
{
    struct recipe_ignore g = {ARR_INIT};
    struct err e = {0};
    char *path = fs_join(root, folder);

    memset(f, 0, sizeof(*f));
    assert_int_equal(recipe_ignore_load(&g, path, &e), 0);
    if (ignore)
        recipe_ignore_add(&g, ignore, strlen(ignore));
    if (recipe_files_find(f, path, src, &g, NULL, &e) != 0)
        fail_msg("%s", e.text);
    recipe_ignore_release(&g);
    free(path);
}

/* A folder's size is the file system's own; the hashes were taken where it is 4096. */
static void same_sizes(struct recipe_files *f)
{
    for (size_t i = 0; i < f->v.n; i++)
        if (S_ISDIR(f->v.v[i].mode))
            f->v.v[i].size = 4096;
}

static void test_hashes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++) {
        struct recipe_files f;
        struct err e = {0};
        char hash[65] = "", *path = fs_join(root, hashes[i].folder);

        find(&f, hashes[i].folder, hashes[i].src, NULL);
        same_sizes(&f);
        assert_int_equal(recipe_files_hash(&f, path, hashes[i].src, hashes[i].dest, hash, NULL, &e), 0);
        assert_string_equal(hash, hashes[i].hash);
        recipe_files_release(&f);
        free(path);
    }
}

/* Paths that go. */
static char *sent(const char *folder, const char *src, const char *ignore)
{
    struct recipe_files f;
    struct buf b = BUF_INIT;

    find(&f, folder, src, ignore);
    for (size_t i = 0; i < f.v.n; i++)
        if (f.v.v[i].sent && *f.v.v[i].path)
            buf_addf(&b, "%s ", f.v.v[i].path);
    recipe_files_release(&f);
    return buf_detach(&b, NULL);
}

static void check_sent(const char *folder, const char *src, const char *ignore, const char *want)
{
    char *got = sent(folder, src, ignore);

    assert_string_equal(got, want);
    free(got);
}

/* A folder that is left out takes with it what lies in it. */
static void test_ignore(void **state)
{
    (void)state;
    check_sent("ignore", ".", NULL, ".dockerignore dist src src/b.log src/main.c ");
    check_sent("ignore", ".", "/src/\n", ".dockerignore dist ");
    check_sent("ignore", ".", "src\n!src/main.c", ".dockerignore dist src/main.c ");
    check_sent("ignore", ".", "*\n!**/*.c", "src/main.c ");
    check_sent("ignore", "src", "**/*.log", "src src/main.c ");
    check_sent("ignore", "*", "!node_modules/m/*.js\nsrc", ".dockerignore dist node_modules/m/i.js ");
    check_sent("empty", ".", NULL, "deep deep/er nothing one ");
    check_sent("links", ".", NULL, "file folder real real/a.txt real/up ");
    check_sent("names", "[a-c]", NULL, "a ");
}

static void test_ignore_patterns(void **state)
{
    static const struct {
        const char *patterns, *path;
        bool out;
    } cases[] = {
        {"a", "a", true}, {"a", "a/b/c", true}, {"a", "b/a", false}, {"**/a", "b/a/c", true},
        {"a/**", "a", false}, {"a/**", "a/b", true}, {"*.md\n!README.md", "README.md", false},
        {"*.md\n!README.md", "x.md", true}, {"!a\na", "a", true}, {"a\n!a/b", "a/b", false},
        {"a\n!a/b", "a/c", true}, {"a/*/c", "a/b/c", true}, {"a/*/c", "a/b/b/c", false},
        {"a/**/c", "a/c", true}, {"a/**/c", "a/x/y/c", true}, {"[!a]x", "bx", true},
        {"[!a]x", "ax", false}, {"\\*", "*", true}, {"\\*", "a", false}, {"a?", "a\xC3\xA9", true},
        {"./a/", "a", true}, {"a/../b", "b", true}, {".", "a", false}, {"# a", "a", false},
        {"[", "[", true}, {"**", "a/b", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct recipe_ignore g = {ARR_INIT};

        recipe_ignore_add(&g, cases[i].patterns, strlen(cases[i].patterns));
        if (recipe_ignores(&g, cases[i].path) != cases[i].out)
            fail_msg("\"%s\": \"%s\"", cases[i].patterns, cases[i].path);
        recipe_ignore_release(&g);
    }
}

static void test_nothing_found(void **state)
{
    static const char *const src[] = {"none", "*.none", "node_modules", "node_modules/m/i.js"};
    char *path = fs_join(root, "ignore");

    (void)state;
    for (size_t i = 0; i < sizeof(src) / sizeof(src[0]); i++) {
        struct recipe_ignore g = {ARR_INIT};
        struct recipe_files f = {ARR_INIT, 0};
        struct err e = {0};

        recipe_ignore_load(&g, path, &e);
        assert_int_equal(recipe_files_find(&f, path, src[i], &g, NULL, &e), ERR_NOTFOUND);
        assert_non_null(strstr(e.text, i < 2 ? "there is no" : "left out by .dockerignore"));
        recipe_files_release(&f);
        recipe_ignore_release(&g);
    }
    free(path);
}

/* What comes back is hashed, too. */
static void test_hash_of_what_goes(void **state)
{
    struct recipe_files f;
    struct err e = {0};
    char one[65], two[65], *path = fs_join(root, "ignore"), *file = fs_join(path, "a.log");

    (void)state;
    find(&f, "ignore", ".", "!a.log");
    assert_int_equal(recipe_files_hash(&f, path, ".", "/", one, NULL, &e), 0);
    assert_int_equal(chmod(file, 0600), 0);
    recipe_files_release(&f);
    find(&f, "ignore", ".", "!a.log");
    assert_int_equal(recipe_files_hash(&f, path, ".", "/", two, NULL, &e), 0);
    assert_int_equal(chmod(file, 0644), 0);
    assert_string_not_equal(one, two);
    recipe_files_release(&f);
    free(file);
    free(path);
}

/* --- the archive -------------------------------------------------------------------- */

static int pack(const struct recipe_files *f, const char *folder, struct buf *b, const bool *stop,
                struct err *e)
{
    uint64_t len = 0;
    int fd = fs_temp(e), rc;
    char *to;

    assert_true(fd >= 0);
    rc = recipe_files_pack(f, folder, fd, &len, stop, e);
    to = buf_reserve(b, len + 1);
    if (rc == 0) {
        assert_int_equal(lseek(fd, 0, SEEK_END), len);
        assert_int_equal(pread(fd, to, len, 0), len);
        b->len += len;
    }
    close(fd);
    return rc;
}

static char *unzip(const struct buf *b, size_t *len)
{
    size_t room = 1 << 20;
    char *out = xcalloc(1, room);
    z_stream z = {0};

    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = (Bytef *)b->p;
    z.avail_in = (uInt)b->len;
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)room;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    *len = room - z.avail_out;
    inflateEnd(&z);
    return out;
}

/* "name type mode size link;" of each entry. */
static char *listing(const char *tar, size_t len)
{
    struct buf b = BUF_INIT;

    for (size_t at = 0; at + 512 <= len && tar[at];) {
        long size = strtol(tar + at + 124, NULL, 8);

        buf_addf(&b, "%.100s %c %lo %ld %.100s;", tar + at, tar[at + 156],
                 strtol(tar + at + 100, NULL, 8), size, tar + at + 157);
        at += 512 + ((size_t)size + 511) / 512 * 512;
    }
    return buf_detach(&b, NULL);
}

static void check_packed(const char *folder, const char *src, const char *want)
{
    struct recipe_files f;
    struct buf b = BUF_INIT;
    struct err e = {0};
    char *path = fs_join(root, folder), *tar, *got;
    size_t len;

    find(&f, folder, src, NULL);
    assert_int_equal(pack(&f, path, &b, NULL, &e), 0);
    tar = unzip(&b, &len);
    assert_int_equal(len % 512, 0);
    got = listing(tar, len);
    assert_string_equal(got, want);
    free(got);
    free(tar);
    buf_release(&b);
    recipe_files_release(&f);
    free(path);
}

static void test_pack(void **state)
{
    (void)state;
    check_packed("links", ".", "file 2 777 0 real/a.txt;folder 2 777 0 real;real/ 5 755 0 ;"
                 "real/a.txt 0 644 4 ;real/up 2 777 0 ../real;");
    check_packed("modes", ".", "private 0 600 1 ;run.sh 0 755 10 ;set 0 4755 1 ;shared/ 5 775 0 ;"
                 "shared/empty 0 664 0 ;");
    check_packed("empty", "nothing", "nothing/ 5 755 0 ;");
}

static void test_stop(void **state)
{
    struct recipe_ignore g = {ARR_INIT};
    struct recipe_files f;
    struct buf b = BUF_INIT;
    struct err e = {0};
    bool stop = true;
    char hash[65], *path = fs_join(root, "modes");

    (void)state;
    find(&f, "modes", ".", NULL);
    assert_int_equal(recipe_files_hash(&f, path, ".", "/", hash, &stop, &e), ERR_CANCELLED);
    assert_int_equal(pack(&f, path, &b, &stop, &e), ERR_CANCELLED);
    buf_release(&b);
    recipe_files_release(&f);
    assert_int_equal(recipe_files_find(&f, path, ".", &g, &stop, &e), ERR_CANCELLED);
    assert_int_equal(f.v.n, 0);
    recipe_files_release(&f);
    free(path);
}

/* --- out of the folder ---------------------------------------------------------------- */

static const char *const outward[] = {"abs", "rel", "deep/er/up", "self", "one"};

static void make_outward(const char *top)
{
    char *in = fs_join(top, "in"), *out = fs_join(top, "out"), *secret = fs_join(out, "id_rsa");
    struct err e = {0};
    char *deep = fs_join(in, "deep"), *er = fs_join(deep, "er"), *path;
    const char *const to[] = {out, "../out", "../../..", ".", "out/id_rsa"};

    assert_int_equal(mkdir(in, 0700) | mkdir(out, 0700) | mkdir(deep, 0700) | mkdir(er, 0700), 0);
    assert_int_equal(fs_write_new(secret, "the secret", 10, &e), 0);
    path = fs_join(deep, "plain");
    assert_int_equal(fs_write_new(path, "plain", 5, &e), 0);
    free(path);
    for (size_t i = 0; i < sizeof(outward) / sizeof(outward[0]); i++) {
        path = fs_join(in, outward[i]);
        assert_int_equal(symlink(to[i], path), 0);
        free(path);
    }
    path = fs_join(in, "within");
    assert_int_equal(symlink("deep/er/../../deep", path), 0);
    free(path);
    free(er);
    free(deep);
    free(secret);
    free(out);
    free(in);
}

static void remove_outward(const char *top)
{
    static const char *const all[] = {
        "in/abs", "in/rel", "in/deep/er/up", "in/self", "in/one", "in/within", "in/deep/plain",
        "in/deep/er", "in/deep", "out/id_rsa", "in", "out"};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        char *path = fs_join(top, all[i]);

        assert_int_equal(remove(path), 0);
        free(path);
    }
    assert_int_equal(rmdir(top), 0);
}

/* "path path ", or "!" and what was said. */
static char *taken(const char *in, const char *src, struct buf *packed)
{
    struct recipe_files f = {ARR_INIT, 0};
    struct recipe_ignore g = {ARR_INIT};
    struct buf b = BUF_INIT;
    struct err e = {0};
    char hash[65];
    int rc = recipe_files_find(&f, in, src, &g, NULL, &e);

    if (rc == 0)
        rc = recipe_files_hash(&f, in, src, "/", hash, NULL, &e);
    if (rc == 0)
        rc = pack(&f, in, packed, NULL, &e);
    for (size_t i = 0; i < f.v.n && rc == 0; i++)
        buf_addf(&b, "%s%s ", f.v.v[i].path, f.v.v[i].sent ? "" : "?");
    if (rc)
        buf_addf(&b, "!%d %s", rc == ERR_PERM, e.text);
    recipe_files_release(&f);
    return buf_detach(&b, NULL);
}

static void test_nothing_from_outside(void **state)
{
    static const struct {
        const char *src, *want;
    } cases[] = {
        {"abs", "abs "}, {"one", "one "},
        {"abs/", "abs "},
        {"abs/id_rsa", "!1 \"abs/id_rsa\" is not taken: \"abs\" is a link out"},
        {"rel/id_rsa", "!1 \"rel/id_rsa\" is not taken: \"rel\" is a link out"},
        {"abs/*", "!1 \"abs/id_rsa\" is not taken: \"abs\" is a link out"},
        {"*/id_rsa", "!1 \"abs/id_rsa\" is not taken: \"abs\" is a link out"},
        {"deep/**/out/id_rsa", "!1 \"deep/er/up/out/id_rsa\" is not taken: \"deep/er/up\" is a link"},
        {"self/self/rel/id_*", "!1 \"self/self/rel/id_rsa\" is not taken: \"self/self/rel\" is a"},
        {"deep/er/up/in/deep/plain", "deep/er/up/in/deep/plain "}, /* out and in again */
        {"self/deep/plain", "self/deep/plain "},
        {"within/plain", "within/plain "},
        {"self/**/..", "!1 \"self/..\" is not taken: \"self/..\" is a link out"},
        {"deep", "deep deep/er deep/er/up deep/plain "},
    };
    char name[] = "/tmp/cct-recipe-XXXXXX", *top = mkdtemp(name), *in = fs_join(top, "in");

    (void)state;
    make_outward(top);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf packed = BUF_INIT;
        char *got = taken(in, cases[i].src, &packed);

        if (strncmp(got, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("\"%s\": %s", cases[i].src, got);
        buf_release(&packed);
        free(got);
    }
    free(in);
    remove_outward(top);
}

/* A folder becomes a link between the look and the archive. */
static void test_swapped_folder(void **state)
{
    char name[] = "/tmp/cct-recipe-XXXXXX", *top = mkdtemp(name), *in = fs_join(top, "in");
    char *deep = fs_join(in, "deep"), *aside = fs_join(top, "aside");
    struct recipe_files f = {ARR_INIT, 0};
    struct recipe_ignore g = {ARR_INIT};
    struct buf b = BUF_INIT;
    struct err e = {0};
    char hash[65];

    (void)state;
    make_outward(top);
    assert_int_equal(recipe_files_find(&f, in, "deep/plain", &g, NULL, &e), 0);
    assert_int_equal(rename(deep, aside) | symlink(aside, deep), 0);
    assert_int_equal(recipe_files_hash(&f, in, "deep/plain", "/", hash, NULL, &e), ERR_PERM);
    assert_int_equal(pack(&f, in, &b, NULL, &e), ERR_PERM);
    buf_release(&b);
    recipe_files_release(&f);
    assert_int_equal(unlink(deep) | rename(aside, deep), 0);
    free(aside);
    free(deep);
    free(in);
    remove_outward(top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashes),        cmocka_unit_test(test_ignore),
        cmocka_unit_test(test_ignore_patterns), cmocka_unit_test(test_nothing_found),
        cmocka_unit_test(test_hash_of_what_goes), cmocka_unit_test(test_pack),
        cmocka_unit_test(test_stop),          cmocka_unit_test(test_nothing_from_outside),
        cmocka_unit_test(test_swapped_folder),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
