/* Base64 and hex. */
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

char *b64_encode(const void *data, size_t len)
{
    static const char set[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = data;
    char *out = xmalloc((len + 2) / 3 * 4 + 1), *q = out;

    for (; len >= 3; p += 3, len -= 3) {
        *q++ = set[p[0] >> 2];
        *q++ = set[(p[0] & 3) << 4 | p[1] >> 4];
        *q++ = set[(p[1] & 15) << 2 | p[2] >> 6];
        *q++ = set[p[2] & 63];
    }
    if (len > 0) {
        unsigned second = len > 1 ? p[1] : 0;
        *q++ = set[p[0] >> 2];
        *q++ = set[(p[0] & 3) << 4 | second >> 4];
        *q++ = len > 1 ? set[(second & 15) << 2] : '=';
        *q++ = '=';
    }
    *q = '\0';
    return out;
}

/* Value of a character with bit 6 set; 0 for all that have none. The output of
 * sandboxes comes this way, so it is looked up and not compared. */
static const unsigned char b64_table[256] = {
    [0x20] = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 126, 0, 126, 0, 127,
    [0x30] = 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 0, 0, 0, 0, 0, 0,
    [0x40] = 0, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78,
    [0x50] = 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 0, 0, 0, 0, 127,
    [0x60] = 0, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104,
    [0x70] = 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 0, 0, 0, 0, 0,
};

void *b64_decode(const char *s, size_t len, size_t *out_len)
{
    size_t body = len;

    while (body > 0 && len - body < 2 && s[body - 1] == '=')
        body--;
    if (body % 4 == 1 || (body != len && len % 4 != 0))
        return NULL;
    unsigned char *out = xmalloc(body / 4 * 3 + 4), *q = out;
    const unsigned char *p = (const unsigned char *)s, *last = p + body / 4 * 4;
    unsigned good = 64;
    for (; p < last; p += 4) {
        unsigned v0 = b64_table[p[0]], v1 = b64_table[p[1]], v2 = b64_table[p[2]],
                 v3 = b64_table[p[3]];
        unsigned n = (v0 & 63) << 18 | (v1 & 63) << 12 | (v2 & 63) << 6 | (v3 & 63);
        good &= v0 & v1 & v2 & v3;
        *q++ = (unsigned char)(n >> 16);
        *q++ = (unsigned char)(n >> 8);
        *q++ = (unsigned char)n;
    }
    if (body % 4) {
        unsigned v0 = b64_table[p[0]], v1 = b64_table[p[1]];
        unsigned v2 = body % 4 == 3 ? b64_table[p[2]] : 64;
        unsigned n = (v0 & 63) << 18 | (v1 & 63) << 12 | (v2 & 63) << 6;
        good &= v0 & v1 & v2;
        *q++ = (unsigned char)(n >> 16);
        if (body % 4 == 3)
            *q++ = (unsigned char)(n >> 8);
    }
    if (!good) {
        free(out);
        return NULL;
    }
    *q = '\0';
    if (out_len)
        *out_len = (size_t)(q - out);
    return out;
}

void hex_encode(char *dst, const void *data, size_t n)
{
    static const char set[] = "0123456789abcdef";
    const unsigned char *p = data;

    for (size_t i = 0; i < n; i++) {
        *dst++ = set[p[i] >> 4];
        *dst++ = set[p[i] & 15];
    }
    *dst = '\0';
}
