/* The vault's cryptography and its key file. Bytes that come back from the database are
 * foreign: lengths, versions and parameters are judged before they are used. */
#include <cct/secrets/vault.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <dirent.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    KEY = 32,
    NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    TAG = crypto_aead_xchacha20poly1305_ietf_ABYTES,
    BLOCK = 128,        /* plain keys are padded to whole blocks */
    SEALED_MAX = 8192,
    OPS_NEW = 3, OPS_MAX = 8,
    MEM_MIN = 8 << 20, MEM_NEW = 64 << 20, MEM_MAX = 256 << 20,
    UID_MAX = 32,
};

_Static_assert(VAULT_WRAPPED_BYTES == NONCE + KEY + TAG, "the wrapped data key");
_Static_assert(VAULT_SALT_BYTES == crypto_pwhash_SALTBYTES, "Argon2's salt");

static const unsigned char *bytes_of(const struct secret *s)
{
    return (const unsigned char *)secret_value(s);
}

static bool is_key(const struct secret *s)
{
    return s && secret_len(s) == KEY;
}

/* --- what things are bound to ------------------------------------------------------ */

/* Each part with its length in front: no two lists of parts give the same bytes. */
static void add_part(struct buf *b, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    unsigned char len[4] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16),
                            (unsigned char)(n >> 8), (unsigned char)n};

    buf_add(b, (const char *)len, sizeof(len));
    buf_add(b, text ? text : "", n);
}

static void bound_to(struct buf *b, const struct vault_place *p, int version)
{
    char number[12];

    snprintf(number, sizeof(number), "%d", version);
    add_part(b, "cc-tui stored key");
    add_part(b, number);
    add_part(b, p->project ? "project" : "user");
    add_part(b, p->project);
    add_part(b, p->provider);
    add_part(b, p->api);
    add_part(b, p->mark);
    add_part(b, p->last4);
}

static void bound_to_vault(struct buf *b, const struct vault_kdf *k, const char *uid)
{
    char numbers[64];

    snprintf(numbers, sizeof(numbers), "%lld %lld", (long long)k->ops, (long long)k->mem);
    add_part(b, "cc-tui data key");
    add_part(b, uid);
    add_part(b, "argon2id13");
    add_part(b, numbers);
    buf_add(b, (const char *)k->salt, sizeof(k->salt));
}

/* --- the data key -------------------------------------------------------------------- */

struct secret *vault_new_key(void)
{
    unsigned char raw[KEY];
    struct secret *s;

    rand_bytes(raw, sizeof(raw));
    s = secret_new_bytes(raw, sizeof(raw));
    secret_wipe(raw, sizeof(raw));
    return s;
}

void vault_proof(const struct secret *data_key, const char *uid, unsigned char *out)
{
    struct buf b = BUF_INIT;

    add_part(&b, "cc-tui proof of a data key");
    add_part(&b, uid);
    crypto_generichash(out, VAULT_PROOF_BYTES, (const unsigned char *)buf_str(&b), b.len,
                       bytes_of(data_key), KEY);
    buf_release(&b);
}

bool vault_is_key(const struct secret *data_key, const char *uid, const void *proof, size_t len)
{
    unsigned char want[VAULT_PROOF_BYTES];

    if (!is_key(data_key) || !proof || len != sizeof(want))
        return false;
    vault_proof(data_key, uid, want);
    return sodium_memcmp(want, proof, sizeof(want)) == 0;
}

/* --- one key --------------------------------------------------------------------------- */

char *vault_seal(const struct secret *data_key, const struct vault_place *p,
                 const struct secret *key, size_t *len)
{
    size_t n = secret_len(key), padded = (n / BLOCK + 1) * BLOCK;
    struct secret *plain = secret_new_bytes(NULL, padded);
    unsigned char *at = (unsigned char *)(uintptr_t)secret_value(plain);
    unsigned char *out = xmalloc(NONCE + padded + TAG);
    struct buf ad = BUF_INIT;
    size_t all = 0;

    if (!is_key(data_key))
        BUG("no data key to seal with");
    memcpy(at, secret_value(key), n);
    if (sodium_pad(&all, at, n, BLOCK, padded) != 0 || all != padded)
        BUG("a key of %zu bytes cannot be padded", n);
    bound_to(&ad, p, VAULT_VERSION);
    rand_bytes(out, NONCE);
    crypto_aead_xchacha20poly1305_ietf_encrypt(out + NONCE, NULL, at, padded,
                                               (const unsigned char *)buf_str(&ad), ad.len, NULL,
                                               out, bytes_of(data_key));
    buf_release(&ad);
    secret_free(plain);
    *len = NONCE + padded + TAG;
    return (char *)out;
}

static struct secret *unpadded(const struct secret *plain)
{
    size_t n = 0;

    if (sodium_unpad(&n, bytes_of(plain), secret_len(plain), BLOCK) != 0 || n == 0 ||
        memchr(secret_value(plain), '\0', n))
        return NULL;
    return secret_new(secret_value(plain), n);
}

struct secret *vault_open(const struct secret *data_key, const struct vault_place *p, int version,
                          const void *sealed, size_t len, struct err *e)
{
    const unsigned char *in = sealed;
    struct secret *plain, *key = NULL;
    struct buf ad = BUF_INIT;

    if (version != VAULT_VERSION) {
        err_set(e, ERR_UNSUPPORTED, "the stored key of %.40s has the form %d, which this cc-tui "
                "does not know; use a newer one", p->provider, version);
        return NULL;
    }
    if (is_key(data_key) && in && len >= NONCE + BLOCK + TAG && len <= SEALED_MAX &&
        (len - NONCE - TAG) % BLOCK == 0) {
        plain = secret_new_bytes(NULL, len - NONCE - TAG);
        bound_to(&ad, p, version);
        if (crypto_aead_xchacha20poly1305_ietf_decrypt(
                (unsigned char *)(uintptr_t)secret_value(plain), NULL, NULL, in + NONCE,
                len - NONCE, (const unsigned char *)buf_str(&ad), ad.len, in,
                bytes_of(data_key)) == 0)
            key = unpadded(plain);
        buf_release(&ad);
        secret_free(plain);
    }
    if (!key)
        err_set(e, ERR_CORRUPT, "the stored key of %.40s does not open: its row was changed or "
                "comes from elsewhere; remove it and add it again", p->provider);
    return key;
}

/* --- by passphrase ------------------------------------------------------------------------ */

void vault_kdf_new(struct vault_kdf *k)
{
    k->ops = OPS_NEW;
    k->mem = MEM_NEW;
    rand_bytes(k->salt, sizeof(k->salt));
}

int vault_kdf_read(struct vault_kdf *k, int64_t ops, int64_t mem, const void *salt, size_t len,
                   struct err *e)
{
    if (ops < 1 || ops > OPS_MAX || mem < MEM_MIN || mem > MEM_MAX || !salt ||
        len != sizeof(k->salt))
        return err_set(e, ERR_CORRUPT, "the vault cannot be opened: its Argon2 parameters are out "
                       "of bounds (the database was changed); remove its keys and add them again");
    k->ops = ops;
    k->mem = mem;
    memcpy(k->salt, salt, len);
    return 0;
}

struct secret *vault_stretch(const struct vault_kdf *k, const struct secret *passphrase,
                             struct err *e)
{
    struct secret *s = secret_new_bytes(NULL, KEY);

    if (crypto_pwhash((unsigned char *)(uintptr_t)secret_value(s), KEY, secret_value(passphrase),
                      secret_len(passphrase), k->salt, (unsigned long long)k->ops, (size_t)k->mem,
                      crypto_pwhash_ALG_ARGON2ID13) == 0)
        return s;
    secret_free(s);
    err_set(e, ERR_FULL, "the vault cannot be opened: %lld MiB of memory are needed for it",
            (long long)(k->mem >> 20));
    return NULL;
}

void vault_wrap(const struct secret *stretched, const struct vault_kdf *k, const char *uid,
                const struct secret *data_key, unsigned char out[VAULT_WRAPPED_BYTES])
{
    struct buf ad = BUF_INIT;

    if (!is_key(stretched) || !is_key(data_key))
        BUG("no keys to wrap");
    bound_to_vault(&ad, k, uid);
    rand_bytes(out, NONCE);
    crypto_aead_xchacha20poly1305_ietf_encrypt(out + NONCE, NULL, bytes_of(data_key), KEY,
                                               (const unsigned char *)buf_str(&ad), ad.len, NULL,
                                               out, bytes_of(stretched));
    buf_release(&ad);
}

struct secret *vault_unwrap(const struct secret *stretched, const struct vault_kdf *k,
                            const char *uid, const void *wrapped, size_t len, struct err *e)
{
    const unsigned char *in = wrapped;
    struct secret *key = secret_new_bytes(NULL, KEY);
    struct buf ad = BUF_INIT;
    bool ok = false;

    bound_to_vault(&ad, k, uid);
    if (is_key(stretched) && in && len == VAULT_WRAPPED_BYTES)
        ok = crypto_aead_xchacha20poly1305_ietf_decrypt(
                 (unsigned char *)(uintptr_t)secret_value(key), NULL, NULL, in + NONCE, KEY + TAG,
                 (const unsigned char *)buf_str(&ad), ad.len, in, bytes_of(stretched)) == 0;
    buf_release(&ad);
    if (ok)
        return key;
    secret_free(key);
    err_set(e, ERR_AUTH, "the vault does not open: the passphrase is not the right one");
    return NULL;
}

/* --- by key file ------------------------------------------------------------------------------ */

#define FILE_HEAD "cc-tui vault key 1\n"

/* The uid comes from the database and becomes a part of a path. */
static bool uid_ok(const char *uid)
{
    size_t n = uid ? strlen(uid) : 0;

    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)uid[i]) && !isdigit((unsigned char)uid[i]))
            return false;
    return n >= 8 && n <= UID_MAX;
}

bool vault_file_any(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *f;
    bool any = false;

    while (d && !any && (f = readdir(d)))
        any = str_starts(f->d_name, "vault-") && str_ends(f->d_name, ".key");
    if (d)
        closedir(d);
    return any;
}

char *vault_file_path(const char *dir, const char *uid)
{
    return uid_ok(uid) ? xasprintf("%s/vault-%s.key", dir, uid) : NULL;
}

int vault_file_write(const char *dir, const char *uid, const struct secret *data_key,
                     struct err *e)
{
    char *path = vault_file_path(dir, uid), hex[2 * KEY + 1];
    struct buf b = BUF_INIT;
    int rc;

    if (!path || !is_key(data_key))
        BUG("no key file can be written for '%.40s'", uid);
    rc = fs_mkdir_private(dir, e);
    buf_reserve(&b, 256); /* does not move afterwards: one place to wipe */
    hex_encode(hex, secret_value(data_key), KEY);
    buf_addf(&b, FILE_HEAD "%s\n%s\n", uid, hex);
    if (rc == 0)
        rc = fs_write_private(path, b.p, b.len, e);
    secret_wipe(hex, sizeof(hex));
    secret_wipe(b.p, b.len);
    buf_release(&b);
    free(path);
    return rc;
}

static struct secret *parse_file(const char *text, size_t len, const char *uid)
{
    size_t head = strlen(FILE_HEAD), n = strlen(uid), got = 0;
    struct secret *key;

    if (len != head + n + 1 + 2 * KEY + 1 || memcmp(text, FILE_HEAD, head) != 0 ||
        memcmp(text + head, uid, n) != 0 || text[head + n] != '\n' || text[len - 1] != '\n')
        return NULL;
    key = secret_new_bytes(NULL, KEY);
    if (sodium_hex2bin((unsigned char *)(uintptr_t)secret_value(key), KEY, text + head + n + 1,
                       2 * KEY, NULL, &got, NULL) == 0 && got == KEY)
        return key;
    secret_free(key);
    return NULL;
}

struct secret *vault_file_read(const char *dir, const char *uid, struct err *e)
{
    char *path = vault_file_path(dir, uid), *text = NULL;
    struct secret *key = NULL;
    struct err why = {0};
    size_t len = 0;

    if (!path)
        err_set(&why, ERR_CORRUPT, "the vault cannot be opened: its name in the database is none");
    else
        text = fs_read(path, 4096, true, &len, &why);
    if (text)
        key = parse_file(text, len, uid);
    if (text && !key)
        err_set(&why, ERR_CORRUPT, "the key file '%s' is damaged or of another vault; put back a "
                "copy of it, or remove the stored keys and add them again", path);
    else if (!key && why.code == ERR_NOTFOUND)
        err_set(&why, ERR_NOTFOUND, "the key file '%s' is gone; put back a copy of it, or remove "
                "the stored keys and add them again", path);
    secret_wipe(text, text ? len : 0);
    free(text);
    free(path);
    if (!key && e)
        *e = why;
    return key;
}
