/* What a sandbox says of its files and of what was changed in it: lists, names, diffs. */
#include <cct/model/changes.h>
#include <cct/model/files.h>

#include <cct/util/buf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_list(void **state)
{
    static const char json[] =
        "{\"entries\":[{\"name\":\"b.txt\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"/h/b.txt\","
        "\"size\":\"4096\",\"mode\":420,\"permissions\":\"-rw-r--r--\",\"owner\":\"user\","
        "\"modifiedTime\":\"2026-08-22T14:00:00.5Z\"},"
        "{\"name\":\"z\",\"type\":\"FILE_TYPE_DIRECTORY\",\"permissions\":\"drwx\\u001b[31m\"},"
        "{\"name\":\"lnk\",\"type\":\"FILE_TYPE_FILE\",\"symlinkTarget\":\"/etc/\\u001b]0;x\\u0007pw\"},"
        "{\"name\":\"\\u001b[2Jevil\\n\",\"size\":\"-5\"},"
        "{\"name\":\"../up\"},{\"name\":\"..\"},{\"name\":\"\"},{\"type\":\"FILE_TYPE_FILE\"},17]}";
    struct file_list l;
    struct err e = {0};

    (void)state;
    assert_int_equal(file_list_parse(&l, json, strlen(json), &e), 0);
    assert_int_equal(l.n, 4);
    assert_int_equal(l.left_out, 5);
    assert_string_equal(l.v[0].name, "z");
    assert_int_equal(l.v[0].kind, FILE_FOLDER);
    assert_string_equal(l.v[0].perms, "drwxm"); /* letters alone */
    assert_string_equal(l.v[1].name, "\033[2Jevil\n");
    assert_string_equal(l.v[1].shown, "evil");
    assert_int_equal(l.v[1].kind, FILE_STRANGE);
    assert_int_equal(l.v[1].size, 0);
    assert_string_equal(l.v[2].name, "b.txt");
    assert_int_equal(l.v[2].size, 4096);
    assert_int_equal(l.v[2].mode, 0644);
    assert_int_equal(l.v[2].mtime_ms % 1000, 500);
    assert_string_equal(l.v[3].target, "/etc/pw");
    file_list_release(&l);
    assert_int_equal(file_list_parse(&l, "{}", 2, &e), 0);
    assert_int_equal(l.n, 0);
    file_list_release(&l);
    assert_int_equal(file_list_parse(&l, "[]", 2, &e), ERR_PROTO);
    assert_int_equal(file_list_parse(&l, "{\"entries\":7}", 13, &e), ERR_PROTO);
}

/* As ls tells them, from what Go makes of each kind and bit. */
static void test_perms(void **state)
{
    static const char *const told[][2] = {
        {"-rw-r--r--", "-rw-r--r--"},  {"drwxr-xr-x", "drwxr-xr-x"},
        {"Lrwxrwxrwx", "lrwxrwxrwx"},  {"lrwxrwxrwx", "lrwxrwxrwx"},
        {"dtrwxrwxrwx", "drwxrwxrwt"}, {"dtrwxrwxrw-", "drwxrwxrwT"},
        {"urwxr-xr-x", "-rwsr-xr-x"},  {"ugrw-r--r--", "-rwSr-Sr--"},
        {"dugtrwxrwxrwx", "drwsrwsrwt"}, {"Dcrw--w----", "crw--w----"},
        {"Drw-rw----", "brw-rw----"},  {"prw-r--r--", "prw-r--r--"},
        {"Srwxr-xr-x", "srwxr-xr-x"},  {"", ""},
        {"rwxr-xr-x", "rwxr-xr-x"},    {"0644", ""},
        {"dalTLDpSugct\\u001b-rwxrwxrwx", "drwsrwsrwt"},
        {"abcdefghijklmnopqrstuvwxyzabcdefghij", "abcdefghijklmnopqrstuvwxyzabcde"},
    };
    char json[200];
    struct file_list l;
    struct err e = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++) {
        snprintf(json, sizeof(json), "{\"entries\":[{\"name\":\"f\",\"permissions\":\"%s\"}]}",
                 told[i][0]);
        assert_int_equal(file_list_parse(&l, json, strlen(json), &e), 0);
        assert_string_equal(l.v[0].perms, told[i][1]);
        file_list_release(&l);
    }
}

static void is_parent(const char *path, const char *want)
{
    char *got = file_path_parent(path);

    assert_string_equal(got, want);
    free(got);
}

static void has_size(int64_t size, const char *want)
{
    char got[8];

    file_size_format(size, got);
    assert_string_equal(got, want);
}

static void test_paths_and_sizes(void **state)
{
    struct file_entry f;
    char *s;

    (void)state;
    is_parent("/a/b", "/a");
    is_parent("/a/b/", "/a");
    is_parent("/a", "/");
    is_parent("/", "/");
    s = file_path_join("/", "a");
    assert_string_equal(s, "/a");
    free(s);
    s = file_path_join("/a", "b");
    assert_string_equal(s, "/a/b");
    free(s);
    has_size(0, "0");
    has_size(999, "999");
    has_size(1000, "1.0K");
    has_size(1024 * 1024, "1.0M");
    has_size(1000 * 1024, "1.0M");
    has_size(300 * 1024 * 1024, "300M");
    has_size(INT64_MAX, "8192P");
    assert_true(file_is_binary("a\0b", 3));
    assert_true(file_is_binary("\1\2\3\4", 4));
    assert_false(file_is_binary("plain\ttext\r\n", 12));
    assert_false(file_is_binary("", 0));
    assert_true(file_entry_parse(&f, "{\"entry\":{\"name\":\"/\",\"path\":\"/\"}}", 33));
    assert_int_equal(f.kind, FILE_FOLDER);
    file_entry_release(&f);
    assert_false(file_entry_parse(&f, "{}", 2));
}

/* --- changes ----------------------------------------------------------------------- */

static void part(struct buf *b, const char *name, const char *bytes, size_t len, size_t whole)
{
    buf_addf(b, "part %s %zu %zu\n", name, len, whole);
    buf_add(b, bytes, len);
}

static void whole_answer(struct buf *b)
{
    static const char status[] = " M a\0 D b\0?? n\033[31me\nw\0A  st\0UU both\0";
    static const char numstat[] = "1\t0\ta\0000\t3\tb\0-\t-\tbin\0001\t0\tst\0";
    static const char diff[] = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n one\n+two\033[2J\n"
                               "diff --git a/b b/b\n-gone\ndiff --git a/bin b/bin\nBinary\n"
                               "diff --git a/st b/st\n+st\n";

    buf_adds(b, "repo /home/user/re po\nbranch main\033[31m\n");
    part(b, "status", status, sizeof(status) - 1, sizeof(status) - 1);
    part(b, "numstat", numstat, sizeof(numstat) - 1, sizeof(numstat) - 1);
    part(b, "diff", diff, sizeof(diff) - 1, sizeof(diff) + 99);
    buf_adds(b, "end\n");
}

static void test_changes(void **state)
{
    struct buf b = BUF_INIT;
    struct changes c;
    struct err e = {0};

    (void)state;
    whole_answer(&b);
    assert_int_equal(changes_parse(&c, b.p, b.len, &e), 0);
    assert_string_equal(c.folder, "/home/user/re po");
    assert_string_equal(c.branch, "main");
    assert_int_equal(c.n, 5);
    assert_string_equal(c.v[0].path, "a");
    assert_string_equal(change_word(&c.v[0]), "modified");
    assert_int_equal(c.v[0].added, 1);
    assert_int_equal(c.v[0].lines, 6);
    assert_string_equal(c.line[c.v[0].line + 5], "+two");
    assert_string_equal(change_word(&c.v[1]), "deleted");
    assert_int_equal(c.v[1].removed, 3);
    assert_string_equal(change_word(&c.v[2]), "conflict");
    assert_int_equal(c.v[2].added, -2);
    assert_string_equal(c.v[3].shown, "ne w");
    assert_string_equal(change_word(&c.v[3]), "new");
    assert_int_equal(c.v[3].lines, 0);
    assert_string_equal(c.line[c.v[4].line + 1], "+st");
    assert_int_equal(c.added, 2);
    assert_int_equal(c.removed, 3);
    assert_true(c.diff_cut);
    assert_false(c.files_cut);
    changes_release(&c);
    for (size_t n = 0; n < b.len; n++) /* cut anywhere it is refused, and nothing is read beyond */
        assert_int_equal(changes_parse(&c, b.p, n, &e), ERR_PROTO);
    buf_release(&b);
}

static void test_no_repository_and_lies(void **state)
{
    static const char newer[] = "./x\0./d/y\0./cut";
    static const char *const lies[] = {
        "dir /h\npart diff 99 99\nx\nend\n", "dir /h\npart diff -1 0\nend\n", "dir /h\npart diff\nend\n",
        "dir /h\npart diff 0 0\npart diff 0 0\nend\n", "end\n", "", "dir /h\n"};
    struct buf b = BUF_INIT;
    struct changes c;
    struct err e = {0};

    (void)state;
    buf_adds(&b, "nogit\ndir /h\n");
    part(&b, "newer", newer, sizeof(newer) - 1, sizeof(newer) + 10);
    buf_adds(&b, "end\n");
    assert_int_equal(changes_parse(&c, b.p, b.len, &e), 0);
    assert_null(c.branch);
    assert_true(c.no_git && c.files_cut);
    assert_int_equal(c.n, 2);
    assert_string_equal(c.v[0].path, "d/y");
    assert_string_equal(change_word(&c.v[0]), "newer");
    changes_release(&c);
    buf_release(&b);
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
        assert_int_equal(changes_parse(&c, lies[i], strlen(lies[i]), &e), ERR_PROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list), cmocka_unit_test(test_perms),
        cmocka_unit_test(test_paths_and_sizes),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_no_repository_and_lies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
