/* Hashes, random and constant-time comparison; the part of src/secrets that the
 * local provider shares. Any thread, after digest_init(). */
#ifndef CCT_SECRETS_DIGEST_H
#define CCT_SECRETS_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

/* Start libsodium; before any thread. 0 or negative. Repeating it is fine. */
int digest_init(void);
void digest_sha256(unsigned char out[32], const void *data, size_t len);
/* The same over pieces; _end frees it. One owner. */
struct digest_stream;
struct digest_stream *digest_stream_new(void);
void digest_stream_add(struct digest_stream *d, const void *data, size_t len);
void digest_stream_end(struct digest_stream *d, unsigned char out[32]);
/* Equal, in time that depends on the lengths only. */
bool digest_equal(const char *a, size_t alen, const char *b, size_t blen);
/* "e2b_" + 40 hex from the kernel's random source; dst has >= 45 bytes. */
void digest_new_key(char *dst);
/* n lower-case hex digits and NUL. */
void digest_random_hex(char *dst, size_t n);

#endif
