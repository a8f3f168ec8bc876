/* See json_string.h. */
#include "json_string.h"
#include "json_run.h"

#include <cct/util/utf8.h>
#include <stdint.h>
#include <string.h>

#define FFFD "\xEF\xBF\xBD"
enum { FFFD_BYTES = 3 };

/* --- where it ends ----------------------------------------------------------------- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The unit of a \uXXXX escape, or -1. */
static int unit_at(const char *s, const char *end)
{
    int v = 0;

    if (end - s < 6 || s[0] != '\\' || s[1] != 'u')
        return -1;
    for (int k = 2; k < 6; k++) {
        int h = hex_value(s[k]);
        if (h < 0)
            return -1;
        v = v << 4 | h;
    }
    return v;
}

const char *json_string_scan(const char *s, const char *end, struct json_string *out)
{
    *out = (struct json_string){.from = s, .room = 1};
    for (;;) {
        s += json_run(s, (size_t)(end - s));
        if (s >= end)
            return end;
        unsigned char c = (unsigned char)*s;
        if (c == '"')
            break;
        if (c == '\\') { /* what it stands for is never longer than it is */
            out->escapes = true;
            if (end - s < 2 || (s[1] == 'u' && unit_at(s, end) < 0))
                return s;
            s += 2;
        } else if (c >= 0x80) {
            uint32_t cp;
            size_t n = utf8_decode(s, (size_t)(end - s), &cp);
            if (n == 0 || cp == UTF8_BAD) {
                out->bad = true;
                out->room += FFFD_BYTES - 1;
                n = 1;
            }
            s += n;
        } else {
            if (c == 0) {
                out->bad = true;
                out->room += FFFD_BYTES - 1;
            }
            s++;
        }
    }
    out->len = (size_t)(s - out->from);
    out->room += out->len;
    return NULL;
}

/* --- what it says ------------------------------------------------------------------- */

/* An escape with four digits, or a pair of them; *s moves behind it. */
static char *put_unit(const char **s, const char *end, char *dst)
{
    int unit = unit_at(*s, end), low = unit_at(*s + 6, end);
    uint32_t cp = (uint32_t)unit;

    *s += 6;
    if (unit >= 0xD800 && unit <= 0xDBFF && low >= 0xDC00 && low <= 0xDFFF) {
        cp = 0x10000 + (((uint32_t)unit - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
        *s += 6;
    } else if (unit == 0 || (unit >= 0xD800 && unit <= 0xDFFF)) {
        cp = 0xFFFD;
    }
    return dst + utf8_encode(dst, cp);
}

/* At a backslash; NULL: such an escape there is not. */
static char *put_escape(const char **s, const char *end, char *dst)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at;

    if ((*s)[1] == 'u')
        return put_unit(s, end, dst);
    at = memchr(from, (*s)[1], sizeof(from) - 1);
    if (!at)
        return NULL;
    *dst = to[at - from];
    *s += 2;
    return dst + 1;
}

/* Bytes without escapes, of which some may be no text. */
static char *put_run(const char *s, size_t len, bool bad, char *dst)
{
    if (!bad) {
        memcpy(dst, s, len);
        return dst + len;
    }
    for (size_t i = 0, n; i < len; i += n) {
        uint32_t cp;

        n = utf8_decode(s + i, len - i, &cp);
        if (n == 0 || cp == UTF8_BAD || cp == 0) {
            memcpy(dst, FFFD, FFFD_BYTES);
            dst += FFFD_BYTES;
            n = 1;
        } else {
            memcpy(dst, s + i, n);
            dst += n;
        }
    }
    return dst;
}

bool json_string_read(const struct json_string *js, char *dst)
{
    const char *s = js->from, *end = s + js->len, *slash;

    while (js->escapes && dst && (slash = memchr(s, '\\', (size_t)(end - s)))) {
        dst = put_run(s, (size_t)(slash - s), js->bad, dst);
        s = slash;
        dst = put_escape(&s, end, dst);
    }
    if (!dst)
        return false;
    dst = put_run(s, (size_t)(end - s), js->bad, dst);
    *dst = '\0';
    return true;
}
