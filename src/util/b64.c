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

static int b64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    if (c == '/' || c == '_')
        return 63;
    return -1;
}

void *b64_decode(const char *s, size_t len, size_t *out_len)
{
    size_t body = len;

    while (body > 0 && len - body < 2 && s[body - 1] == '=')
        body--;
    if (body % 4 == 1 || (body != len && len % 4 != 0))
        return NULL;
    unsigned char *out = xmalloc(body / 4 * 3 + 4), *q = out;
    unsigned acc = 0;
    for (size_t i = 0; i < body; i++) {
        int v = b64_value(s[i]);
        if (v < 0) {
            free(out);
            return NULL;
        }
        acc = acc << 6 | (unsigned)v;
        switch (i & 3) {
        case 1:
            *q++ = (unsigned char)(acc >> 4);
            break;
        case 2:
            *q++ = (unsigned char)(acc >> 2);
            break;
        case 3:
            *q++ = (unsigned char)acc;
            break;
        }
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
