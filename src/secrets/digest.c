/* Hashes, random and constant-time comparison on libsodium. */
#include <cct/secrets/digest.h>
#include <cct/util/err.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

int digest_init(void)
{
    return sodium_init() < 0 ? ERR_UNSUPPORTED : 0;
}

void digest_sha256(unsigned char out[32], const void *data, size_t len)
{
    crypto_hash_sha256(out, len ? data : (const unsigned char *)"", len);
}

struct digest_stream {
    crypto_hash_sha256_state st;
};

struct digest_stream *digest_stream_new(void)
{
    struct digest_stream *d = xcalloc(1, sizeof(*d));

    crypto_hash_sha256_init(&d->st);
    return d;
}

void digest_stream_add(struct digest_stream *d, const void *data, size_t len)
{
    crypto_hash_sha256_update(&d->st, data, len);
}

void digest_stream_end(struct digest_stream *d, unsigned char out[32])
{
    crypto_hash_sha256_final(&d->st, out);
    free(d);
}

bool digest_equal(const char *a, size_t alen, const char *b, size_t blen)
{
    if (alen != blen)
        return false;
    return alen == 0 || sodium_memcmp(a, b, alen) == 0;
}

void digest_random_hex(char *dst, size_t n)
{
    unsigned char raw[64];
    char hex[2 * sizeof(raw) + 1];

    while (n > 0) {
        size_t k = n < 2 * sizeof(raw) ? n : 2 * sizeof(raw);
        rand_bytes(raw, (k + 1) / 2);
        hex_encode(hex, raw, (k + 1) / 2);
        memcpy(dst, hex, k);
        dst += k;
        n -= k;
    }
    *dst = '\0';
    sodium_memzero(raw, sizeof(raw));
    sodium_memzero(hex, sizeof(hex));
}

void digest_new_key(char *dst)
{
    memcpy(dst, "e2b_", 4);
    digest_random_hex(dst + 4, 40);
}
