/* Skills packed for a sandbox: unpacked again by the tar of this machine. */
#include "../lib/tmpdir.h"

#include <cct/jobs/skills.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];

static char *path(const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

static void put(const char *name, const char *text, mode_t mode)
{
    char *p = path(name);
    FILE *f = fopen(p, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(p, mode), 0);
    free(p);
}

static void make(const char *name)
{
    char *p = path(name);

    assert_int_equal(mkdir(p, 0755), 0);
    free(p);
}

static int begin(void **state)
{
    (void)state;
    return tmpdir_make(dir, sizeof(dir), "skills");
}

static int end(void **state)
{
    (void)state;
    return tmpdir_remove(dir);
}

/* 0 or the code; the text of the error in *e. */
static int pack(struct buf *out, struct err *e, const char *a, const char *b)
{
    char *pa = path(a), *pb = b ? path(b) : NULL;
    const char *paths[] = {pa, pb, NULL};
    int rc;

    *e = (struct err){0};
    buf_init(out, 0);
    rc = skills_pack(paths, out, e);
    free(pa);
    free(pb);
    return rc;
}

static char *shell(const char *command)
{
    char *full = xasprintf("cd '%s' && %s", dir, command), block[4096];
    struct buf b = BUF_INIT;
    FILE *f = popen(full, "r");
    size_t n;

    while ((n = fread(block, 1, sizeof(block), f)) > 0)
        buf_add(&b, block, n);
    assert_int_equal(pclose(f), 0);
    free(full);
    return buf_detach(&b, NULL);
}

static void comes_out_as_it_went_in(void **state)
{
    struct buf tar;
    struct err e;
    char *said;
    char deep[200];
    (void)state;

    make("review");
    make("review/scripts");
    put("review/SKILL.md", "look\n", 0644);
    put("review/scripts/run.sh", "#!/bin/sh\necho ran\n", 0755);
    put("review/.hidden", "no\n", 0644);
    put("review/empty", "", 0600);
    put("fast.md", "be fast\n", 0600);
    free(shell("ln -s /etc/passwd review/link && ln -s .. review/up"));
    snprintf(deep, sizeof(deep), "review/%090d", 1);
    make(deep);
    snprintf(deep + strlen(deep), sizeof(deep) - strlen(deep), "/file");
    put(deep, "deep\n", 0644);
    assert_int_equal(pack(&tar, &e, "review", "fast.md"), 0);
    FILE *f = popen("tar -tf - >/dev/null", "w");
    assert_non_null(f);
    fwrite(tar.p, 1, tar.len, f);
    assert_int_equal(pclose(f), 0);
    char *p = path("all.tar");
    f = fopen(p, "w");
    fwrite(tar.p, 1, tar.len, f);
    fclose(f);
    free(p);
    make("out");
    said = shell("tar -xof all.tar -C out && cd out && find . -type f | sort && "
                 "review/scripts/run.sh && cat fast/SKILL.md && stat -c %a review/SKILL.md && "
                 "find . -type l");
    assert_non_null(strstr(said, "./fast/SKILL.md\n./review/0"));
    assert_non_null(strstr(said, "/file\n./review/SKILL.md\n./review/empty\n"
                                 "./review/scripts/run.sh\nran\nbe fast\n644\n"));
    assert_null(strstr(said, "hidden"));
    assert_null(strstr(said, "link"));
    free(said);
    buf_release(&tar);
}

static void refuses_what_is_none(void **state)
{
    struct buf tar;
    struct err e;
    char *big = xcalloc(1, SKILLS_BYTES + 2);
    (void)state;

    make("bare");
    assert_int_equal(pack(&tar, &e, "bare", NULL), ERR_INVALID);
    assert_non_null(strstr(e.text, "there is no SKILL.md in it"));
    buf_release(&tar);
    put("notes.txt", "x", 0644);
    assert_int_equal(pack(&tar, &e, "notes.txt", NULL), ERR_INVALID);
    buf_release(&tar);
    assert_int_equal(pack(&tar, &e, "nothing", NULL), ERR_NOTFOUND);
    assert_non_null(strstr(e.text, "/nothing\""));
    buf_release(&tar);
    put("one.md", "x", 0644);
    make("more");
    put("more/one.md", "y", 0644);
    assert_int_equal(pack(&tar, &e, "one.md", "more/one.md"), ERR_INVALID);
    assert_non_null(strstr(e.text, "two skills are called \"one\""));
    buf_release(&tar);
    free(shell("mkfifo fifo.md"));
    assert_int_equal(pack(&tar, &e, "fifo.md", NULL), ERR_INVALID);
    buf_release(&tar);
    memset(big, 'x', SKILLS_BYTES + 1);
    put("big.md", big, 0644);
    assert_int_equal(pack(&tar, &e, "big.md", NULL), ERR_LIMIT);
    buf_release(&tar);
    big[SKILLS_BYTES / 2] = 0;
    put("half.md", big, 0644);
    put("more/rest.md", big, 0644);
    assert_int_equal(pack(&tar, &e, "half.md", "more/rest.md"), ERR_LIMIT);
    assert_non_null(strstr(e.text, "too large"));
    buf_release(&tar);
    free(big);
}

static void has_a_depth(void **state)
{
    struct buf tar, at = BUF_INIT;
    struct err e;
    (void)state;

    buf_adds(&at, "deep");
    make("deep");
    put("deep/SKILL.md", "x", 0644);
    for (int i = 0; i <= SKILLS_DEPTH; i++) {
        buf_adds(&at, "/d");
        make(buf_str(&at));
    }
    assert_int_equal(pack(&tar, &e, "deep", NULL), ERR_LIMIT);
    buf_release(&tar);
    buf_release(&at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(comes_out_as_it_went_in, begin, end),
        cmocka_unit_test_setup_teardown(refuses_what_is_none, begin, end),
        cmocka_unit_test_setup_teardown(has_a_depth, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
