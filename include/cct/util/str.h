/* Small string helpers over plain C strings. Any thread. */
#ifndef CCT_UTIL_STR_H
#define CCT_UTIL_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
bool str_eq(const char *a, const char *b);        /* NULL equals only NULL */
bool str_eq_nocase(const char *a, const char *b); /* ASCII case only */
/* Copy with truncation; always terminates when size > 0. True if all fitted. */
bool str_copy(char *dst, size_t size, const char *src);
/* A copy of `src` (NULL: none) in the place of the string that *dst owns; src may be part of
 * that. */
void str_set(char **dst, const char *src);
/* Lists of strings that end with NULL; NULL is an empty one. */
size_t str_list_count(char *const *list);
char **str_list_copy(char *const *list);       /* NULL of NULL */
char **str_list_add(char **list, char *take);  /* the list as it stands now */
void str_list_free(char **list);
/* s if it is like a word that somebody mistyped, else "(not shown)": in a file of settings a key
 * may stand where none belongs, and what is said of its line goes to screen, log and database. */
const char *str_shown(const char *s);
char *str_trim(char *s); /* in place; returns the first non-space */
/* Whole-string numbers; false on junk, overflow or out of [min, max]. */
bool str_to_i64(const char *s, int64_t min, int64_t max, int64_t *out);
/* "90", "15m", "1h30m", "2d" -> seconds; false on junk or overflow. */
bool str_to_seconds(const char *s, int64_t *out);
/* Index of the entry nearest to `word` by edit distance (for "did you mean"),
 * or -1 if none is near. */
int str_nearest(const char *word, const char *const *words, size_t n);
/* Standard base64 with padding. Encoders return a new NUL-terminated string;
 * the decoder also takes URL-safe and unpadded input, and fails (NULL) on any
 * other byte. `*len` gets the decoded length; the result is NUL-terminated. */
char *b64_encode(const void *data, size_t len);
void *b64_decode(const char *s, size_t len, size_t *out_len);
/* Fill with random bytes from the kernel; dies if there are none. */
void rand_bytes(void *p, size_t len);
/* Random lower-case [a-z0-9] id of n characters plus NUL into dst. */
void rand_id(char *dst, size_t n);
/* A UUID of 16 bytes that are random or as good as, and a random one. 36 characters
 * plus NUL. */
void uuid_format(char *dst, const unsigned char bytes[16]);
void rand_uuid(char *dst);
/* 2n hex digits plus NUL. */
void hex_encode(char *dst, const void *data, size_t n);

#endif
