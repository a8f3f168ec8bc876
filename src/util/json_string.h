/* A string of foreign JSON: one look at each byte tells where it ends and what it takes to
 * write it down. Pure functions. */
#ifndef CCT_UTIL_JSON_STRING_H
#define CCT_UTIL_JSON_STRING_H

#include <stdbool.h>
#include <stddef.h>

struct json_string {
    const char *from; /* behind the opening quote */
    size_t len;       /* up to the closing one */
    size_t room;      /* that many bytes hold it, a NUL behind it included */
    bool escapes, bad; /* it has some; it has bytes that are repaired */
};
/* s: behind the opening quote. NULL: found; else where it is broken. */
const char *json_string_scan(const char *s, const char *end, struct json_string *out);
/* Write it with its NUL. In place of lone halves of surrogate pairs, \u0000, raw NULs and
 * invalid UTF-8 stands U+FFFD. False: an escape that JSON does not have. */
bool json_string_read(const struct json_string *js, char *dst);

#endif
