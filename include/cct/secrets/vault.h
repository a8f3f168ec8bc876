/* Sealing keys for the disk, by libsodium. A random data key seals each stored key
 * (XChaCha20-Poly1305) together with the place where it belongs, so that a row which is
 * moved to another level, project, provider or service does not open. The data key itself
 * is sealed by a passphrase (Argon2id) or lies in a private file apart from the database.
 * Any thread after secrets_init(), but vault_stretch() takes a tenth of a second and
 * megabytes: never main or net. */
#ifndef CCT_SECRETS_VAULT_H
#define CCT_SECRETS_VAULT_H

#include <cct/secrets/secret.h>
#include <stdint.h>

enum {
    VAULT_VERSION = 1,      /* of the sealed form */
    VAULT_PROOF_BYTES = 32,
    VAULT_SALT_BYTES = 16,
    VAULT_WRAPPED_BYTES = 24 + 32 + 16, /* nonce, data key, tag */
};
/* What a sealed key is bound to. */
struct vault_place {
    const char *project;  /* immutable id; NULL: the user's level */
    const char *provider; /* "e2b" */
    const char *api;      /* service it was added for, "" */
    const char *mark, *last4; /* what is told of it in clear */
};

/* A fresh data key. */
struct secret *vault_new_key(void);
/* Tells whether a data key is the one of this vault: VAULT_PROOF_BYTES. */
void vault_proof(const struct secret *data_key, const char *uid, unsigned char *out);
bool vault_is_key(const struct secret *data_key, const char *uid, const void *proof, size_t len);

/* New memory: nonce, ciphertext, tag; the length of the key does not show. */
char *vault_seal(const struct secret *data_key, const struct vault_place *p,
                 const struct secret *key, size_t *len);
/* NULL with ERR_UNSUPPORTED (a version we do not know) or ERR_CORRUPT (changed, moved, or
 * of another vault). */
struct secret *vault_open(const struct secret *data_key, const struct vault_place *p, int version,
                          const void *sealed, size_t len, struct err *e);

/* --- by passphrase ---------------------------------------------------------------- */
struct vault_kdf {
    int64_t ops, mem; /* Argon2id: passes, bytes */
    unsigned char salt[VAULT_SALT_BYTES];
};
/* Ours, with a random salt. */
void vault_kdf_new(struct vault_kdf *k);
/* From a database that may be hostile: ERR_CORRUPT outside of what is sane, so that
 * opening cannot take minutes or all memory. */
int vault_kdf_read(struct vault_kdf *k, int64_t ops, int64_t mem, const void *salt, size_t len,
                   struct err *e);
/* The key that a passphrase makes. NULL with *e: not enough memory. */
struct secret *vault_stretch(const struct vault_kdf *k, const struct secret *passphrase,
                             struct err *e);
/* Seal the data key by a stretched passphrase, bound to the vault and the parameters. */
void vault_wrap(const struct secret *stretched, const struct vault_kdf *k, const char *uid,
                const struct secret *data_key, unsigned char out[VAULT_WRAPPED_BYTES]);
/* NULL with ERR_AUTH: the passphrase is wrong (or the row was changed). */
struct secret *vault_unwrap(const struct secret *stretched, const struct vault_kdf *k,
                            const char *uid, const void *wrapped, size_t len, struct err *e);

/* --- by key file ------------------------------------------------------------------ */
/* "DIR/vault-UID.key" as a new string; NULL when uid is none. */
/* Is there a key file of any vault? Then keys were stored here. */
bool vault_file_any(const char *dir);
char *vault_file_path(const char *dir, const char *uid);
/* Makes DIR (0700) and the file (0600, private from birth). */
int vault_file_write(const char *dir, const char *uid, const struct secret *data_key,
                     struct err *e);
/* A regular file of ours that nobody else may read, no link; NULL with *e. */
struct secret *vault_file_read(const char *dir, const char *uid, struct err *e);

#endif
