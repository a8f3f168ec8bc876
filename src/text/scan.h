/* The fast paths over bytes: plain ASCII eight at a time, whole UTF-8 characters
 * without a call. Private to src/text. */
#ifndef CCT_TEXT_SCAN_H
#define CCT_TEXT_SCAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SCAN_ONES 0x0101010101010101ull

/* Bytes of the longest prefix of s[0..len) within [ -~]. */
static inline size_t scan_plain(const char *s, size_t len)
{
    size_t i = 0;
    for (; i + 8 <= len; i += 8) {
        uint64_t x;
        memcpy(&x, s + i, 8);
        /* borrows may mark a byte above the first bad one, never hide one */
        uint64_t del = x ^ SCAN_ONES * 0x7F;
        uint64_t bad = x | (x - SCAN_ONES * 0x20) | (del - SCAN_ONES);
        bad &= SCAN_ONES * 0x80;
        if (bad) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            return i + ((size_t)__builtin_ctzll(bad) >> 3);
#else
            break;
#endif
        }
    }
    while (i < len && (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x7F)
        i++;
    return i;
}

/* A whole valid character of 2 to 4 bytes at s (C1 excluded): its bytes, or 0 when
 * there is none and the careful decoder must look. */
static inline size_t scan_char(const char *s, size_t len, uint32_t *cp)
{
    const unsigned char *u = (const unsigned char *)s;
    if (len < 2 || u[0] < 0xC2 || (u[1] & 0xC0) != 0x80)
        return 0;
    if (u[0] < 0xE0) {
        *cp = (u[0] & 0x1Fu) << 6 | (u[1] & 0x3Fu);
        return *cp >= 0xA0 ? 2 : 0;
    }
    if (len < 3 || (u[2] & 0xC0) != 0x80)
        return 0;
    if (u[0] < 0xF0) {
        *cp = (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
        return *cp >= 0x800 && (*cp & 0xF800) != 0xD800 ? 3 : 0;
    }
    if (len < 4 || u[0] > 0xF4 || (u[3] & 0xC0) != 0x80)
        return 0;
    *cp = (u[0] & 0x07u) << 18 | (u[1] & 0x3Fu) << 12 | (u[2] & 0x3Fu) << 6 | (u[3] & 0x3Fu);
    return *cp >= 0x10000 && *cp <= 0x10FFFF ? 4 : 0;
}

#endif
