/* Eight bytes at a time: how far text is plain printable ASCII. Private to src/text. */
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
        if (bad & SCAN_ONES * 0x80)
            break;
    }
    while (i < len && (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x7F)
        i++;
    return i;
}

#endif
