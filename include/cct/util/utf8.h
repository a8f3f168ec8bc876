/* UTF-8, one code point at a time. Pure functions. */
#ifndef CCT_UTIL_UTF8_H
#define CCT_UTIL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_BAD 0xFFFFFFFFu

/* Decode at s[0..len): bytes used (>= 1), *cp = code point or UTF8_BAD for an
 * invalid byte (1 byte used). Returns 0 when the bytes end inside a sequence
 * that may still become valid. Surrogates, overlongs and > U+10FFFF are bad. */
size_t utf8_decode(const char *s, size_t len, uint32_t *cp);
bool utf8_valid(const char *s, size_t len);
/* Encode into dst (room for 4); bytes written. Bad code points give U+FFFD. */
size_t utf8_encode(char *dst, uint32_t cp);

#endif
