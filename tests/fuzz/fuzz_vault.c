/* What comes from a disk or a clipboard: sealed rows, parameters of the head, key files and
 * pastes. Nothing of it opens unless we sealed it; nothing is read past its end. */
#include <cct/keys.h>
#include <cct/secrets/vault.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct secret *data_key;
static struct st_key good; /* a row of ours */

static void begin(void)
{
    static const char value[] = "e2b_0123456789abcdef0123456789abcdef9f21";
    struct secret *s;

    if (data_key)
        return;
    if (secrets_init(NULL) != 0)
        abort();
    data_key = vault_new_key();
    s = secret_new(value, strlen(value));
    keys_seal(&good, data_key, NULL, "e2b", "https://api.e2b.app", s);
    secret_free(s);
}

/* The input alone, and as a change to a row of ours: opens exactly when it changes nothing. */
static void rows(const uint8_t *data, size_t size)
{
    struct st_key row = good;
    struct err e = {0};
    struct secret *s;
    bool changed = false;

    row.sealed = xmalloc(size + 1); /* exactly as long */
    memcpy(row.sealed, data, size);
    row.sealed_len = size;
    s = keys_open(&row, data_key, &e);
    if (s)
        abort();
    free(row.sealed);
    row = good;
    row.sealed = xmalloc(good.sealed_len);
    memcpy(row.sealed, good.sealed, good.sealed_len);
    for (size_t i = 0; i < size && i < good.sealed_len; i++) {
        row.sealed[i] ^= (char)data[i];
        changed |= data[i] != 0;
    }
    s = keys_open(&row, data_key, &e);
    if ((s != NULL) == changed)
        abort();
    secret_free(s);
    free(row.sealed);
}

static void head(const uint8_t *data, size_t size)
{
    struct vault_kdf k;
    int64_t n[2] = {0, 0};
    struct err e = {0};

    memcpy(n, data, size < sizeof(n) ? size : sizeof(n));
    size_t rest = size > sizeof(n) ? size - sizeof(n) : 0;
    if (vault_kdf_read(&k, n[0], n[1], data + size - rest, rest, &e) == 0 &&
        (k.ops > 8 || k.mem > 256 << 20 || k.ops < 1))
        abort();
    if (vault_is_key(data_key, "uiduiduid", data, size))
        abort();
    vault_kdf_new(&k);
    if (vault_unwrap(data_key, &k, "uiduiduid", data, size, &e))
        abort();
}

static void paste(const uint8_t *data, size_t size)
{
    struct err e = {0};
    char *copy = xmalloc(size + 1);
    struct secret *s;

    memcpy(copy, data, size);
    for (size_t i = 0; key_providers[i]; i++) {
        s = keys_clean(copy, size, key_providers[i], &e);
        if (s && (secret_len(s) < 8 || strpbrk(secret_value(s), " \t\r\n")))
            abort();
        if (!s && !e.code)
            abort();
        secret_free(s);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin();
    rows(data, size);
    head(data, size);
    paste(data, size);
    return 0;
}
