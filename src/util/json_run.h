/* The bytes of a string that stand in JSON as they are: printable ASCII but quote and
 * backslash. Reader and writer look for the first other one, eight bytes at a time. */
#ifndef CCT_UTIL_JSON_RUN_H
#define CCT_UTIL_JSON_RUN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline size_t json_run(const char *s, size_t len)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    size_t i = 0;

    for (; len - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, s + i, 8);
        /* borrows may mark a byte behind the first one that is found, never hide one */
        uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\'), del = w ^ (ones * 0x7F);
        uint64_t found = (quote - ones) | (slash - ones) | (del - ones) | (w - ones * 0x20) | w;
        found &= high;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (found)
            return i + ((size_t)__builtin_ctzll(found) >> 3);
#else
        if (found)
            break;
#endif
    }
    while (i < len && (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x7F && s[i] != '"' &&
           s[i] != '\\')
        i++;
    return i;
}

#endif
