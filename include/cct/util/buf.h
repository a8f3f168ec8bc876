/* A growing byte buffer with a maximum. Not thread-safe; one owner. */
#ifndef CCT_UTIL_BUF_H
#define CCT_UTIL_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *p; /* bytes; p[len] is always NUL once anything was added */
    size_t len;
    size_t cap;
    size_t max; /* adding beyond it fails; 0 means no maximum */
    bool over;  /* an addition was refused since the last clear */
};

#define BUF_INIT             \
    {                        \
        NULL, 0, 0, 0, false \
    }
#define BUF_INIT_MAX(m)        \
    {                          \
        NULL, 0, 0, (m), false \
    }

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b); /* frees; b is empty and usable again */
/* len = 0. The memory is kept, but for more than 64 KiB of which not a quarter was in use. */
void buf_clear(struct buf *b);
/* Append; 0, or ERR_LIMIT with `over` set and nothing added. */
int buf_add(struct buf *b, const void *data, size_t len);
int buf_addc(struct buf *b, char c);
int buf_addi(struct buf *b, int64_t v); /* in decimal */
int buf_adds(struct buf *b, const char *s);
int buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_addv(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Make room for `n` more bytes and return where they go; NULL over the maximum.
 * The caller then raises `len` by what it wrote. */
char *buf_reserve(struct buf *b, size_t n);
/* Drop the first n bytes (n <= len). */
void buf_consume(struct buf *b, size_t n);
void buf_truncate(struct buf *b, size_t len);
/* The text as a NUL-terminated string; "" when empty. Borrowed until changed. */
const char *buf_str(struct buf *b);
/* Hand the memory over (NUL-terminated, never NULL) and empty the buffer. */
char *buf_detach(struct buf *b, size_t *len);
/* Append `len` bytes of text as a JSON string with its quotes; invalid UTF-8
 * becomes U+FFFD, control bytes become escapes. */
int buf_add_json(struct buf *b, const char *s, size_t len);
/* Percent-encode everything but unreserved characters (RFC 3986). */
int buf_add_urlenc(struct buf *b, const char *s, size_t len);

#endif
