/* Sealed keys: what must open opens, everything else must fail. Each must-fail vector is
 * one change to something that opens; the counts are printed at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cct/secrets/vault.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PID "0123456789abcdefghij0123456789ab"
#define UID "vaultvaultvaultvaultvaultvaultva"
#define VALUE "e2b_0123456789abcdef0123456789abcdef9f21"
#define API "https://api.e2b.app"

static int n_good, n_bad;
static struct secret *data_key;
static char dir[] = "/tmp/cct-vault-XXXXXX";

static const struct vault_place user = {NULL, "e2b", API, "0a0b0c0d", "9f21"},
                                project = {PID, "e2b", API, "0a0b0c0d", "9f21"};

/* Fails unless the outcome is what it must be. */
static void judge(const char *what, bool opened, bool must)
{
    if (opened != must)
        fail_msg("%s: it %s", what, opened ? "opened" : "did not open");
    if (must)
        n_good++;
    else
        n_bad++;
}

static void open_it(const char *what, const struct secret *k, const struct vault_place *p,
                    int version, const void *sealed, size_t len, bool must)
{
    struct err e = {0};
    struct secret *s = vault_open(k, p, version, sealed, len, &e);

    judge(what, s != NULL, must);
    if (must)
        assert_string_equal(secret_value(s), VALUE);
    else
        assert_true(e.code == ERR_CORRUPT || e.code == ERR_UNSUPPORTED);
    if (!must)
        assert_null(strstr(e.text, "0123456789"));
    secret_free(s);
}

static int begin(void **state)
{
    struct err e;

    (void)state;
    if (secrets_init(&e) != 0 || !mkdtemp(dir))
        return -1;
    data_key = vault_new_key();
    return 0;
}

static int end(void **state)
{
    DIR *d = opendir(dir);

    (void)state;
    for (struct dirent *f; d && (f = readdir(d));)
        if (f->d_name[0] != '.')
            unlinkat(dirfd(d), f->d_name, 0);
    closedir(d);
    secret_free(data_key);
    print_message("# vectors: %d that open, %d that must fail\n", n_good, n_bad);
    return rmdir(dir) || n_good + n_bad < 60 || n_bad < 2 * n_good ? -1 : 0;
}

/* --- stored keys ------------------------------------------------------------------ */

static char *seal(const struct vault_place *p, const char *value, size_t *len)
{
    struct secret *s = secret_new(value, strlen(value));
    char *out = vault_seal(data_key, p, s, len);

    secret_free(s);
    return out;
}

static void test_sizes(void **state)
{
    static const size_t sizes[] = {1, 11, 12, 40, 127, 128, 129, 255, 1000, 4096};
    char value[4097];
    size_t short_len = 0, len;

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(value, 'k', sizes[i]);
        value[sizes[i]] = '\0';
        char *sealed = seal(&user, value, &len);
        struct err e = {0};
        struct secret *s = vault_open(data_key, &user, VAULT_VERSION, sealed, len, &e);
        judge("a length", s != NULL, true);
        assert_string_equal(secret_value(s), value);
        assert_null(memmem(sealed, len, "kkkk", 4));
        if (i == 0)
            short_len = len;
        assert_true(sizes[i] >= 128 ? len > short_len : len == short_len); /* tells no length */
        secret_free(s);
        free(sealed);
    }
    char *one = seal(&user, VALUE, &len), *two = seal(&user, VALUE, &len);
    assert_memory_not_equal(one, two, len); /* a fresh nonce each time */
    assert_memory_not_equal(one + 24, two + 24, len - 24);
    free(one);
    free(two);
}

/* A bit in each part of the sealed bytes: nonce, text, padding, tag. */
static void test_flipped(void **state)
{
    size_t len;
    char *sealed = seal(&project, VALUE, &len);
    const size_t at[] = {0, 11, 12, 23, 24, 25, 40, 63, 64, 100, 150, len - 17, len - 16, len - 9,
                         len - 8, len - 1};

    (void)state;
    open_it("as it is", data_key, &project, VAULT_VERSION, sealed, len, true);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        sealed[at[i]] ^= (char)(1 << (i % 8));
        open_it("a flipped bit", data_key, &project, VAULT_VERSION, sealed, len, false);
        sealed[at[i]] ^= (char)(1 << (i % 8));
    }
    open_it("as it was", data_key, &project, VAULT_VERSION, sealed, len, true);
    free(sealed);
}

static void test_cut_and_grown(void **state)
{
    size_t len;
    char *sealed = seal(&user, VALUE, &len), *more = xcalloc(1, len + 8192);
    const size_t lens[] = {0, 1, 23, 24, 39, 40, 41, 128, len - 128, len - 1, len + 1, len + 128,
                           len + 8000};

    (void)state;
    memcpy(more, sealed, len);
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
        open_it("another length", data_key, &user, VAULT_VERSION, more, lens[i], false);
    open_it("nothing at all", data_key, &user, VAULT_VERSION, NULL, 0, false);
    open_it("nothing with a length", data_key, &user, VAULT_VERSION, NULL, len, false);
    free(sealed);
    free(more);
}

/* Rows are moved, or what stands beside them is changed. */
static void test_moved(void **state)
{
    static const struct {
        const char *what;
        struct vault_place p;
    } t[] = {
        {"to a project", {PID, "e2b", API, "0a0b0c0d", "9f21"}},
        {"to a project without id", {"", "e2b", API, "0a0b0c0d", "9f21"}},
        {"to another provider", {NULL, "openai", API, "0a0b0c0d", "9f21"}},
        {"to no provider", {NULL, NULL, API, "0a0b0c0d", "9f21"}},
        {"to another service", {NULL, "e2b", "https://api.evil.example", "0a0b0c0d", "9f21"}},
        {"to no service", {NULL, "e2b", "", "0a0b0c0d", "9f21"}},
        {"to a plain service", {NULL, "e2b", "http://api.e2b.app", "0a0b0c0d", "9f21"}},
        {"with another mark", {NULL, "e2b", API, "0a0b0c0e", "9f21"}},
        {"with another end", {NULL, "e2b", API, "0a0b0c0d", "9f22"}},
        {"without an end", {NULL, "e2b", API, "0a0b0c0d", ""}},
        {"with a joint moved", {NULL, "e2bh", "ttps://api.e2b.app", "0a0b0c0d", "9f21"}},
    };
    static const struct vault_place elsewhere = {"9123456789abcdefghij0123456789ab", "e2b", API,
                                                 "0a0b0c0d", "9f21"};
    size_t len;
    char *sealed = seal(&user, VALUE, &len), *own = seal(&project, VALUE, &len);

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        open_it(t[i].what, data_key, &t[i].p, VAULT_VERSION, sealed, len, false);
    open_it("of a project to the user", data_key, &user, VAULT_VERSION, own, len, false);
    open_it("to another project", data_key, &elsewhere, VAULT_VERSION, own, len, false);
    free(sealed);
    free(own);
}

/* A secret variable of a project has the form of a key, with its name in the service's place:
 * neither becomes the other, nor another name. */
static void test_variables(void **state)
{
    static const struct vault_place var = {PID, "variable", "TOKEN", "0a0b0c0d", "9f21"};
    static const struct {
        const char *what;
        struct vault_place p;
    } t[] = {
        {"another variable", {PID, "variable", "TOKEN2", "0a0b0c0d", "9f21"}},
        {"a part of the name", {PID, "variable", "TOKE", "0a0b0c0d", "9f21"}},
        {"no name", {PID, "variable", "", "0a0b0c0d", "9f21"}},
        {"a variable of another project", {UID, "variable", "TOKEN", "0a0b0c0d", "9f21"}},
        {"a variable of the user", {NULL, "variable", "TOKEN", "0a0b0c0d", "9f21"}},
        {"a key of a provider", {PID, "openai", "", "0a0b0c0d", "9f21"}},
        {"a key of a service", {PID, "e2b", "TOKEN", "0a0b0c0d", "9f21"}},
        {"with a joint moved", {PID, "variableT", "OKEN", "0a0b0c0d", "9f21"}},
    };
    size_t len;
    char *sealed = seal(&var, VALUE, &len), *key = seal(&project, VALUE, &len);

    (void)state;
    open_it("a variable", data_key, &var, VAULT_VERSION, sealed, len, true);
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        open_it(t[i].what, data_key, &t[i].p, VAULT_VERSION, sealed, len, false);
    open_it("a key as a variable", data_key, &var, VAULT_VERSION, key, len, false);
    free(sealed);
    free(key);
}

static void test_versions_and_keys(void **state)
{
    static const int versions[] = {0, 2, -1, 99};
    struct secret *other = vault_new_key(), *half = secret_new_bytes(secret_value(data_key), 16),
                  *none = secret_new_bytes(NULL, 32);
    size_t len;
    char *sealed = seal(&user, VALUE, &len);

    (void)state;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        open_it("another version", data_key, &user, versions[i], sealed, len, false);
    open_it("another data key", other, &user, VAULT_VERSION, sealed, len, false);
    open_it("half of the data key", half, &user, VAULT_VERSION, sealed, len, false);
    open_it("a data key of zeroes", none, &user, VAULT_VERSION, sealed, len, false);
    open_it("no data key", NULL, &user, VAULT_VERSION, sealed, len, false);
    free(sealed);
    secret_free(other);
    secret_free(half);
    secret_free(none);
}

static void test_proof(void **state)
{
    unsigned char proof[VAULT_PROOF_BYTES];
    struct secret *other = vault_new_key();

    (void)state;
    vault_proof(data_key, UID, proof);
    judge("the proof", vault_is_key(data_key, UID, proof, sizeof(proof)), true);
    judge("of another vault", vault_is_key(data_key, PID, proof, sizeof(proof)), false);
    judge("of another key", vault_is_key(other, UID, proof, sizeof(proof)), false);
    judge("a shorter proof", vault_is_key(data_key, UID, proof, 31), false);
    judge("an empty proof", vault_is_key(data_key, UID, proof, 0), false);
    judge("no proof", vault_is_key(data_key, UID, NULL, 32), false);
    judge("no key", vault_is_key(NULL, UID, proof, sizeof(proof)), false);
    proof[31] ^= 1;
    judge("a changed proof", vault_is_key(data_key, UID, proof, sizeof(proof)), false);
    secret_free(other);
}

/* --- passphrase -------------------------------------------------------------------- */

static void unwrap(const char *what, const struct secret *s, const struct vault_kdf *k,
                   const char *uid, const void *wrapped, size_t len, bool must)
{
    struct err e = {0};
    struct secret *got = vault_unwrap(s, k, uid, wrapped, len, &e);

    judge(what, got != NULL, must);
    if (must)
        assert_memory_equal(secret_value(got), secret_value(data_key), 32);
    else
        assert_int_equal(e.code, ERR_AUTH);
    secret_free(got);
}

static struct secret *stretch(const struct vault_kdf *k, const char *passphrase)
{
    struct secret *p = secret_new_bytes(passphrase, strlen(passphrase)), *s;
    struct err e = {0};

    s = vault_stretch(k, p, &e);
    if (!s)
        fail_msg("%s", e.text);
    secret_free(p);
    return s;
}

static void test_passphrase(void **state)
{
    struct vault_kdf k, other;
    unsigned char wrapped[VAULT_WRAPPED_BYTES];
    static const char *const wrong[] = {"", "correct horse batter", "correct horse battery ",
                                        "Correct horse battery"};
    struct secret *s, *bad;

    (void)state;
    vault_kdf_new(&k);
    k.mem = 8 << 20; /* the least: tests are not for waiting */
    k.ops = 1;
    s = stretch(&k, "correct horse battery");
    vault_wrap(s, &k, UID, data_key, wrapped);
    unwrap("the passphrase", s, &k, UID, wrapped, sizeof(wrapped), true);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        bad = stretch(&k, wrong[i]);
        unwrap("a wrong passphrase", bad, &k, UID, wrapped, sizeof(wrapped), false);
        secret_free(bad);
    }
    unwrap("another vault", s, &k, PID, wrapped, sizeof(wrapped), false);
    unwrap("cut off", s, &k, UID, wrapped, sizeof(wrapped) - 1, false);
    unwrap("empty", s, &k, UID, wrapped, 0, false);
    unwrap("none", s, &k, UID, NULL, sizeof(wrapped), false);
    unwrap("no key", NULL, &k, UID, wrapped, sizeof(wrapped), false);
    for (size_t at = 0; at < sizeof(wrapped); at += 23) {
        wrapped[at] ^= 0x10;
        unwrap("a flipped bit", s, &k, UID, wrapped, sizeof(wrapped), false);
        wrapped[at] ^= 0x10;
    }
    other = k;
    other.ops++;
    unwrap("other passes", s, &other, UID, wrapped, sizeof(wrapped), false);
    other = k;
    other.mem *= 2;
    unwrap("other memory", s, &other, UID, wrapped, sizeof(wrapped), false);
    other = k;
    other.salt[15] ^= 1;
    unwrap("other salt", s, &other, UID, wrapped, sizeof(wrapped), false);
    bad = stretch(&other, "correct horse battery");
    unwrap("other salt, stretched", bad, &k, UID, wrapped, sizeof(wrapped), false);
    secret_free(bad);
    secret_free(s);
}

/* Numbers from a database that somebody else may have written. */
static void test_parameters(void **state)
{
    static const unsigned char salt[32];
    static const struct {
        int64_t ops, mem;
        size_t salt;
        bool ok;
    } t[] = {
        {3, 64 << 20, 16, true}, {1, 8 << 20, 16, true}, {8, 256 << 20, 16, true},
        {0, 64 << 20, 16, false}, {-1, 64 << 20, 16, false}, {9, 64 << 20, 16, false},
        {INT64_MAX, 64 << 20, 16, false}, {INT64_MIN, 64 << 20, 16, false}, {3, 0, 16, false},
        {3, -1, 16, false}, {3, (8 << 20) - 1, 16, false}, {3, (256 << 20) + 1, 16, false},
        {3, INT64_MAX, 16, false}, {3, 64 << 20, 15, false}, {3, 64 << 20, 17, false},
        {3, 64 << 20, 0, false},
    };
    struct vault_kdf k, fresh, again;
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        e = (struct err){0};
        judge("parameters", vault_kdf_read(&k, t[i].ops, t[i].mem, salt, t[i].salt, &e) == 0,
              t[i].ok);
        assert_int_equal(e.code, t[i].ok ? 0 : ERR_CORRUPT);
    }
    judge("no salt", vault_kdf_read(&k, 3, 64 << 20, NULL, 16, &e) == 0, false);
    vault_kdf_new(&fresh);
    vault_kdf_new(&again);
    judge("our own parameters",
          vault_kdf_read(&k, fresh.ops, fresh.mem, fresh.salt, sizeof(fresh.salt), &e) == 0, true);
    assert_true(fresh.mem >= 64 << 20 && fresh.ops >= 2);
    assert_memory_not_equal(fresh.salt, again.salt, sizeof(fresh.salt));
}

/* Too little memory is a sentence, no end of the program. */
static void test_no_memory(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)state; /* they need all addresses there are */
    skip();
#else
    int status = 0;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        struct rlimit r = {64 << 20, 64 << 20};
        struct vault_kdf k;
        struct err e = {0};
        struct secret *p = secret_new_bytes("passphrase", 10);

        vault_kdf_new(&k);
        setrlimit(RLIMIT_AS, &r);
        _exit(vault_stretch(&k, p, &e) == NULL && e.code == ERR_FULL ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#endif
}

/* --- key file ------------------------------------------------------------------------ */

static char *path;

static void read_file(const char *what, const char *uid, bool must)
{
    struct err e = {0};
    struct secret *s = vault_file_read(dir, uid, &e);

    judge(what, s != NULL, must);
    if (must)
        assert_memory_equal(secret_value(s), secret_value(data_key), 32);
    else
        assert_true(e.code != 0 && strlen(e.text) > 20);
    secret_free(s);
}

static void write_file(void)
{
    struct err e = {0};

    rmdir(path);
    unlink(path);
    if (vault_file_write(dir, UID, data_key, &e) != 0)
        fail_msg("%s", e.text);
}

static void put_text(const char *text, size_t len)
{
    int fd;

    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0 && write(fd, text, len) == (ssize_t)len);
    close(fd);
}

static void test_file(void **state)
{
    struct stat st;
    mode_t old = umask(0);

    (void)state;
    path = vault_file_path(dir, UID);
    read_file("no file", UID, false);
    write_file();
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    read_file("the file", UID, true);
    umask(022);
    write_file();
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    read_file("the file again", UID, true);
    static const mode_t modes[] = {0640, 0604, 0644, 0620, 0666, 0610};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        chmod(path, modes[i]);
        read_file("a mode", UID, false);
    }
    chmod(path, 0600);
    read_file("the mode mended", UID, true);
    umask(old);
}

static void test_file_traps(void **state)
{
    char real[128];

    (void)state;
    snprintf(real, sizeof(real), "%s/real", dir);
    write_file();
    assert_int_equal(rename(path, real), 0);
    assert_int_equal(symlink(real, path), 0);
    read_file("a symbolic link", UID, false);
    unlink(path);
    assert_int_equal(symlink("/nowhere", path), 0);
    read_file("a link to nothing", UID, false);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    read_file("a FIFO, without waiting", UID, false);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    read_file("a folder", UID, false);
    rmdir(path);
    assert_int_equal(symlink("/dev/zero", path), 0);
    read_file("an endless device", UID, false);
    unlink(path);
    if (geteuid() == 0) {
        write_file();
        assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
        read_file("of another user", UID, false);
    }
    struct err e = {0};
    unlink(path);
    assert_int_equal(symlink(real, path), 0);
    assert_int_not_equal(vault_file_write(dir, UID, data_key, &e), 0); /* not through a link */
    unlink(path);
    unlink(real);
}

static void test_file_contents(void **state)
{
    char text[256];
    size_t len = 0;
    char *good;

    (void)state;
    write_file();
    good = fs_read(path, 4096, true, &len, NULL);
    assert_non_null(good);
    put_text("", 0);
    read_file("an empty file", UID, false);
    put_text(good, len - 1);
    read_file("a file cut off", UID, false);
    put_text(good, len / 2);
    read_file("half a file", UID, false);
    memcpy(text, good, len);
    text[len] = '\n';
    put_text(text, len + 1);
    read_file("a longer file", UID, false);
    text[len - 2] = 'g';
    put_text(text, len);
    read_file("no hexadecimal", UID, false);
    memcpy(text, good, len);
    text[17] = '2';
    put_text(text, len);
    read_file("another format", UID, false);
    memcpy(text, good, len);
    text[len - 10] = '\0';
    put_text(text, len);
    read_file("a NUL inside", UID, false);
    memcpy(text, good, len);
    text[25]++;
    put_text(text, len);
    read_file("the file of another vault", UID, false);
    char *big = xcalloc(1, 10000);
    put_text(big, 10000);
    read_file("a large file", UID, false);
    free(big);
    put_text(good, len);
    read_file("the file put back", UID, true);
    /* the id comes from the database and becomes a part of the path */
    static const char *const uids[] = {"", "../../etc/passwd", "short", "UPPERCASEUPPERCASE",
                                       "with/slash/with/slash",
                                       "longlonglonglonglonglonglonglonglong"};
    for (size_t i = 0; i < sizeof(uids) / sizeof(uids[0]); i++)
        read_file("a uid", uids[i], false);
    free(good);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes), cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_cut_and_grown), cmocka_unit_test(test_moved), cmocka_unit_test(test_variables),
        cmocka_unit_test(test_versions_and_keys), cmocka_unit_test(test_proof),
        cmocka_unit_test(test_passphrase), cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_file),
        cmocka_unit_test(test_file_traps), cmocka_unit_test(test_file_contents),
    };
    return cmocka_run_group_tests_name("vault", tests, begin, end);
}
