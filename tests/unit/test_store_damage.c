/* store: it always opens. Damaged files, newer and older schemas, planted files, rights,
 * full disks, no shared memory. */
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* keep last */
#include <cmocka.h>

enum { OTHER_USER = 65534 };
#define SKIP(why) (print_message("# SKIP %s: %s\n", __func__, (why)), skip())

static struct storebox b;
static char *dir;

static int set_up(void **state)
{
    (void)state;
    dir = storebox_dir();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tmpdir_remove(dir);
    free(dir);
    return 0;
}

static const char *at(const char *name)
{
    static char path[2][300];
    static int k;
    k = !k;
    snprintf(path[k], sizeof(path[k]), "%s/%s", dir, name);
    return path[k];
}

static char *slurp(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *len = (size_t)ftell(f);
    rewind(f);
    char *p = xmalloc(*len + 1);
    assert_int_equal(fread(p, 1, *len, f), *len);
    fclose(f);
    return p;
}

static void spit(const char *path, const char *p, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, len), len);
    close(fd);
}

/* Name of a file in dir that begins so, or NULL. */
static char *find(const char *start)
{
    char *found = NULL;
    DIR *d = opendir(dir);
    for (struct dirent *de; (de = readdir(d)) && !found;)
        if (str_starts(de->d_name, start) && !str_ends(de->d_name, "-wal") &&
            !str_ends(de->d_name, "-shm"))
            found = xstrdup(at(de->d_name));
    closedir(d);
    return found;
}

static void fill(int rows)
{
    char text[1001];
    memset(text, 'a', 1000);
    text[1000] = '\0';
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    for (uint64_t i = 0; i < (uint64_t)rows; i++)
        storebox_append(&b, run, i * 1000, text, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    msg_free(&r->m);
}

/* The store works: a row, a run, an append, a message. */
static void works(const char *id)
{
    uint64_t sb = storebox_sandbox(&b, id), run = storebox_run(&b, sb, "works");
    storebox_append(&b, run, 0, "abc", storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    msg_free(&r->m);
    store_message_add(b.s, sb, "hello", storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    msg_free(&r->m);
}

static void damage(char *p, size_t *len, int k)
{
    size_t half = *len / 2 / 4096 * 4096;
    if (k < 8) { /* truncated */
        static const size_t sizes[] = {1, 50, 100, 512, 4000, 4096, 5000, 0};
        *len = sizes[k] ? sizes[k] : half;
    } else if (k < 12) { /* random bytes: somewhere, schema page, header, all over */
        static const size_t from[] = {4096 * 9, 100, 0, 0};
        size_t n[] = {4096 * 8, 3996, 100, *len};
        rand_bytes(p + from[k - 8], n[k - 8]);
    } else if (k < 17) { /* zeroed pages */
        static const size_t from[] = {4096, 4096 * 5, 4096 * 12, 0, 4096 * 3};
        size_t n[] = {4096, 4096 * 3, 4096 * 20, 4096, *len - 4096 * 3};
        memset(p + from[k - 12], 0, n[k - 12]);
    } else { /* single fields of the header */
        static const struct {
            size_t at;
            unsigned char v;
        } field[] = {{16, 0x55}, {18, 0x09}, {31, 0xff}, {63, 0x00}, {59, 0x07}, {47, 0x63}};
        p[field[k - 17].at] = (char)field[k - 17].v;
    }
}

static void test_damaged_files(void **state)
{
    (void)state;
    size_t len, aside_len;
    int kept = 0;
    storebox_start(&b, dir);
    fill(200);
    storebox_stop(&b);
    char *good = slurp(at("cc-tui.db"), &len);
    assert_in_range(len, 200000, 1 << 20); /* of the size that is checked whole */
    for (int k = 0; k < 23; k++) {
        size_t n = len;
        char *p = xmalloc(len);
        memcpy(p, good, len);
        damage(p, &n, k);
        tmpdir_remove(dir);
        assert_int_equal(mkdir(dir, 0700), 0);
        spit(at("cc-tui.db"), p, n);
        storebox_start(&b, dir);
        char *aside = find("cc-tui.db.damaged-");
        if (b.opened->err.code == ERR_CORRUPT) {
            assert_non_null(aside);
            assert_non_null(strstr(b.opened->text, aside));
            char *q = slurp(aside, &aside_len);
            assert_true(aside_len == n && memcmp(p, q, n) == 0);
            free(q);
            kept++;
            works("i2");
        } else {
            print_message("# case %d: %s\n", k, b.opened->err.code ? b.opened->text : "opens");
            assert_null(aside);
            assert_int_equal(b.opened->err.code, 0);
            works("i2");
        }
        storebox_stop(&b);
        storebox_start(&b, dir); /* and the new one opens quietly */
        assert_int_equal(b.opened->err.code, 0);
        storebox_stop(&b);
        free(aside);
        free(p);
    }
    free(good);
    assert_int_equal(kept, 23);
}

/* A large file is not read whole at the start; the damage shows when it is met. */
static void test_damage_met_later(void **state)
{
    (void)state;
    size_t len;
    storebox_start(&b, dir);
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    for (uint64_t i = 0; i < 4000; i++) {
        struct st_append a = {.run = run, .offset = 0, .n_events = 1};
        a.events = xcalloc(1, sizeof(*a.events));
        a.events[0] = (struct st_event){i, 0, xcalloc(1, 901), 900, NULL, false, 0};
        memset(a.events[0].json, 'j', 900);
        store_append(b.s, &a, (struct st_to){NULL, 0});
    }
    storebox_stop(&b);
    char *p = slurp(at("cc-tui.db"), &len);
    assert_true(len > 2 << 20);
    memset(p + len / 2 / 4096 * 4096, 0, len / 4);
    spit(at("cc-tui.db"), p, len);
    free(p);
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, 0);
    store_events(b.s, run, 0, 0, false, 100000, storebox_to(&b));
    struct st_reply *r = storebox_any(&b);
    assert_true(r->m.type == ST_EVENTS && r->err.code == ERR_CORRUPT);
    msg_free(&r->m);
    r = storebox_any(&b);
    assert_true(r->m.type == ST_OPENED && r->err.code == ERR_CORRUPT);
    assert_non_null(strstr(r->text, "damaged-"));
    msg_free(&r->m);
    storebox_append(&b, run, 0, "x", storebox_to(&b)); /* ids of then mean nothing now */
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, ERR_NOTFOUND);
    msg_free(&r->m);
    assert_true(storebox_sandbox(&b, "i1") > 1000000);
    works("i2");
    storebox_stop(&b);
    char *aside = find("cc-tui.db.damaged-");
    assert_non_null(aside);
    free(aside);
}

/* The same met by the check in the background, with nobody asking. */
static void test_background_check(void **state)
{
    (void)state;
    size_t len;
    storebox_start(&b, dir);
    fill(2000);
    storebox_stop(&b);
    char *p = slurp(at("cc-tui.db"), &len);
    assert_true(len > 2 << 20);
    memset(p + len / 8 * 5 / 4096 * 4096, 0, len / 4);
    spit(at("cc-tui.db"), p, len);
    free(p);
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, 0);
    struct st_reply *r = storebox_any(&b); /* after some seconds */
    assert_true(r->m.type == ST_OPENED && r->err.code == ERR_CORRUPT);
    msg_free(&r->m);
    works("i2");
    storebox_stop(&b);
}

static void test_newer_schema(void **state)
{
    (void)state;
    storebox_start(&b, dir);
    fill(3);
    storebox_stop(&b);
    storebox_sql(at("cc-tui.db"), "PRAGMA user_version=99; CREATE TABLE later(x)");
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, ERR_UNSUPPORTED);
    assert_true(b.opened->readonly);
    assert_non_null(strstr(b.opened->text, "newer"));
    store_sandboxes(b.s, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_true(r->err.code == 0 && r->n_sandboxes == 1 && r->readonly);
    uint64_t id = r->sandboxes[0].id;
    msg_free(&r->m);
    store_message_add(b.s, id, "text", storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, ERR_UNSUPPORTED);
    msg_free(&r->m);
    store_prune(b.s, storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    msg_free(&r->m);
    storebox_stop(&b);
    assert_null(find("cc-tui.db.damaged-"));
}

static void test_older_schema(void **state)
{
    (void)state;
    spit(at("cc-tui.db"), "", 0);
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, 0);
    works("i1");
    storebox_stop(&b);
    unlink(at("cc-tui.db"));
    storebox_sql(at("cc-tui.db"), "CREATE TABLE x(a); DROP TABLE x"); /* version 0, no tables */
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, 0);
    works("i1");
    storebox_stop(&b);
    unlink(at("cc-tui.db"));
    storebox_sql(at("cc-tui.db"), "CREATE TABLE runs(a)"); /* of something else */
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, ERR_CORRUPT);
    works("i1");
    storebox_stop(&b);
    char *aside = find("cc-tui.db.damaged-");
    assert_non_null(aside);
    free(aside);
}

/* A file that came to the newest step when that had fewer parts is not damaged. */
static void test_grown_schema(void **state)
{
    (void)state;
    storebox_start(&b, dir);
    fill(3);
    storebox_stop(&b);
    storebox_sql(at("cc-tui.db"), "ALTER TABLE agentEvents DROP COLUMN span;"
                                  "ALTER TABLE agentEvents DROP COLUMN line;"
                                  "DROP TABLE usagePlaces; DROP INDEX usageSpansOpen;"
                                  "DROP INDEX templateBuildsByName; DROP TABLE filters");
    for (int i = 0; i < 3; i++) {
        storebox_start(&b, dir);
        assert_int_equal(b.opened->err.code, 0);
        store_sandboxes(b.s, storebox_to(&b));
        struct st_reply *r = storebox_wait(&b);
        assert_true(r->err.code == 0 && r->n_sandboxes == 1);
        msg_free(&r->m);
        storebox_stop(&b);
        if (i == 0)
            storebox_sql(at("cc-tui.db"), "SELECT id FROM usagePlaces; DROP TABLE usageSums");
    }
    storebox_sql(at("cc-tui.db"),
                 "SELECT span, line FROM agentEvents; SELECT id FROM usagePlaces;"
                 "SELECT at FROM usageSums; REINDEX usageSpansOpen; REINDEX templateBuildsByName;"
                 "SELECT 1 FROM filters");
    assert_null(find("cc-tui.db.damaged-"));
    storebox_sql(at("cc-tui.db"), "DROP TABLE answers"); /* of a step that is over */
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, ERR_CORRUPT);
    storebox_stop(&b);
}

static void opened_well(void)
{
    if (b.opened->err.code)
        fail_msg("%s", b.opened->err.text);
}

static void check_memory(int code)
{
    storebox_start(&b, dir);
    if (b.opened->err.code != code)
        fail_msg("code %d, not %d: %s", b.opened->err.code, code, b.opened->err.text);
    assert_non_null(strstr(b.opened->text, "nothing of this session will be kept"));
    works("i1");
    storebox_stop(&b);
}

static void test_planted(void **state)
{
    (void)state;
    char *elsewhere = storebox_dir();
    char *target = xasprintf("%s/target", elsewhere);
    static const char *const names[] = {"cc-tui.db", "cc-tui.db-wal", "cc-tui.db-shm"};
    for (size_t i = 0; i < 3; i++) {
        spit(target, "precious", 8);
        assert_int_equal(symlink(target, at(names[i])), 0);
        check_memory(ERR_PERM);
        unlink(at(names[i]));
        assert_int_equal(link(target, at(names[i])), 0);
        check_memory(ERR_PERM);
        unlink(at(names[i]));
        assert_int_equal(mkfifo(at(names[i]), 0600), 0);
        check_memory(ERR_PERM);
        unlink(at(names[i]));
        size_t len;
        char *p = slurp(target, &len);
        assert_int_equal(len, 8);
        free(p);
    }
    tmpdir_remove(elsewhere);
    free(elsewhere);
    free(target);
}

static void test_other_owner(void **state)
{
    (void)state;
    if (geteuid() != 0)
        SKIP("needs root");
    spit(at("cc-tui.db"), "", 0);
    assert_int_equal(chown(at("cc-tui.db"), OTHER_USER, OTHER_USER), 0);
    check_memory(ERR_PERM);
    unlink(at("cc-tui.db"));
    assert_int_equal(chown(dir, OTHER_USER, OTHER_USER), 0);
    check_memory(ERR_PERM);
}

static void test_unwritable(void **state)
{
    (void)state;
    if (geteuid() != 0)
        SKIP("needs root");
    assert_int_equal(chown(dir, OTHER_USER, OTHER_USER), 0);
    assert_int_equal(chmod(dir, 0500), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(OTHER_USER) != 0 || setuid(OTHER_USER) != 0)
            _exit(3);
        storebox_start(&b, dir);
        int code = b.opened->err.code;
        bool said = b.opened->text && strstr(b.opened->text, "will be kept");
        works("i1");
        storebox_stop(&b);
        _exit(code == ERR_PERM && said ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void test_modes(void **state)
{
    (void)state;
    static const char *const names[] = {"cc-tui.db", "cc-tui.db-wal", "cc-tui.db-shm",
                                        "cc-tui.lock"};
    struct stat st;
    mode_t old = umask(0);
    char *deep = xasprintf("%s/a/b", dir);
    storebox_start(&b, deep);
    works("i1");
    for (size_t i = 0; i < 4; i++) {
        char *path = xasprintf("%s/%s", deep, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        free(path);
    }
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    storebox_stop(&b);
    char *path = xasprintf("%s/cc-tui.db", deep);
    chmod(path, 0644); /* of an older copy: made private again */
    storebox_start(&b, deep);
    stat(path, &st);
    assert_int_equal(st.st_mode & 07777, 0600);
    storebox_stop(&b);
    umask(old);
    free(path);
    free(deep);
}

static bool tmpfs(const char *size)
{
    char opt[64];
    snprintf(opt, sizeof(opt), "size=%s,mode=0700", size);
    return geteuid() == 0 && mount("tmpfs", dir, "tmpfs", 0, opt) == 0;
}

static void stuff(const char *name)
{
    char block[4096] = {1};
    int fd = open(at(name), O_WRONLY | O_CREAT, 0600);
    while (write(fd, block, sizeof(block)) > 0)
        ;
    close(fd);
}

static void test_disk_full(void **state)
{
    (void)state;
    char text[1001];
    if (!tmpfs("2m"))
        SKIP("cannot mount a tmpfs");
    memset(text, 'a', 1000);
    text[1000] = '\0';
    spit(at("spare"), text, 1000);
    assert_int_equal(truncate(at("spare"), 0), 0);
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, 0);
    uint64_t sb = storebox_sandbox(&b, "i1"), run = storebox_run(&b, sb, "s"), stored = 0;
    bool full = false;
    stuff("filler");
    assert_int_equal(truncate(at("filler"), 1 << 20), 0); /* a part free again */
    for (int i = 0; i < 5000 && !full; i++) {
        storebox_append(&b, run, stored, text, storebox_to(&b));
        struct st_reply *r = storebox_wait(&b);
        full = r->err.code != 0;
        if (full)
            assert_int_equal(r->err.code, ERR_FULL);
        else
            stored = r->stored;
        if (full)
            assert_non_null(strstr(r->err.text, "disk is full"));
        msg_free(&r->m);
    }
    assert_true(full && stored > 10000);
    store_message_add(b.s, sb, text, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_true(r->err.code == ERR_FULL || r->err.code == 0);
    msg_free(&r->m);
    store_raw(b.s, run, 0, 4 << 20, storebox_to(&b)); /* what was acknowledged is there */
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    assert_int_equal(r->raw_len, stored);
    msg_free(&r->m);
    unlink(at("filler"));
    storebox_append(&b, run, stored, text, storebox_to(&b)); /* and it works again */
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    assert_int_equal(r->stored, stored + 1000);
    msg_free(&r->m);
    storebox_stop(&b);
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, 0);
    storebox_stop(&b);
    umount(dir);
}

static void test_full_at_start(void **state)
{
    (void)state;
    if (!tmpfs("1m"))
        SKIP("cannot mount a tmpfs");
    stuff("filler");
    check_memory(ERR_FULL);
    umount(dir);
}

/* A file system without shared memory, as SQLite's lock-file layer is. */
static void test_no_shared_memory(void **state)
{
    (void)state;
    struct stat st;
    sqlite3_vfs *usual = sqlite3_vfs_find(NULL), *poor = sqlite3_vfs_find("unix-dotfile");
    assert_non_null(poor);
    storebox_start(&b, dir); /* made with a WAL first */
    works("i1");
    storebox_stop(&b);
    sqlite3_vfs_register(poor, 1);
    for (int i = 0; i < 2; i++) {
        storebox_start(&b, dir);
        opened_well();
        works("i2");
        assert_int_not_equal(stat(at("cc-tui.db-shm"), &st), 0);
        storebox_stop(&b);
    }
    sqlite3_vfs_register(usual, 1);
    storebox_start(&b, dir);
    opened_well();
    works("i1");
    storebox_stop(&b);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_damaged_files), T(test_damage_met_later), T(test_background_check),
        T(test_newer_schema),  T(test_older_schema),     T(test_planted),
        T(test_grown_schema),
        T(test_other_owner),   T(test_unwritable),       T(test_modes),
        T(test_disk_full),     T(test_full_at_start),    T(test_no_shared_memory),
    };
    return cmocka_run_group_tests_name("store_damage", tests, NULL, NULL);
}
