/* Reader of the hostile corpus and the purity judge: see hostile.h. */
#include "hostile.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct out {
    char *p;
    size_t len, cap;
};

static void add(struct out *o, const char *s, size_t n)
{
    if (o->len + n + 1 > o->cap) {
        o->cap = (o->len + n + 1) * 2;
        o->p = realloc(o->p, o->cap);
        if (!o->p)
            abort();
    }
    memcpy(o->p + o->len, s, n);
    o->len += n;
    o->p[o->len] = '\0';
}

static void fail(unsigned line, const char *why)
{
    fprintf(stderr, "hostile corpus, line %u: %s\n", line, why);
    exit(1);
}

/* \u{1F600}: any number, surrogates and beyond too, in the long UTF-8 form. */
static void add_cp(struct out *o, unsigned long cp)
{
    char b[4];
    size_t n;
    if (cp < 0x80) {
        b[0] = (char)cp;
        n = 1;
    } else if (cp < 0x800) {
        b[0] = (char)(0xC0 | cp >> 6);
        n = 2;
    } else if (cp < 0x10000) {
        b[0] = (char)(0xE0 | cp >> 12);
        n = 3;
    } else {
        b[0] = (char)(0xF0 | cp >> 18);
        n = 4;
    }
    for (size_t i = 1; i < n; i++)
        b[i] = (char)(0x80 | ((cp >> (6 * (n - 1 - i))) & 0x3F));
    add(o, b, n);
}

static void decode(struct out *o, const char *s, const char *end, unsigned line);

/* After the backslash: returns where to go on. */
static const char *escape(struct out *o, const char *s, const char *end, unsigned line)
{
    static const char names[] = "\\\\e\033n\nr\rt\tb\ba\a0\0";
    char hex[3] = "";
    char *stop;
    if (*s == 'x' && end - s >= 3) {
        memcpy(hex, s + 1, 2);
        char c = (char)strtoul(hex, &stop, 16);
        if (*stop)
            fail(line, "two hex digits must follow \\x");
        add(o, &c, 1);
        return s + 3;
    }
    if (s[0] == 'u' && s[1] == '{') {
        unsigned long cp = strtoul(s + 2, &stop, 16);
        if (*stop != '}')
            fail(line, "\\u{ wants hex digits and }");
        add_cp(o, cp);
        return stop + 1;
    }
    if (s[0] == '*' && s[1] == '{') {
        unsigned long n = strtoul(s + 2, &stop, 10);
        const char *close = strstr(stop, "}*");
        if (*stop != ':' || !close)
            fail(line, "\\*{ wants COUNT:TEXT}*");
        while (n-- > 0)
            decode(o, stop + 1, close, line);
        return close + 2;
    }
    for (size_t i = 0; i + 1 < sizeof(names); i += 2) {
        if (*s == names[i]) {
            add(o, &names[i + 1], 1);
            return s + 1;
        }
    }
    fail(line, "unknown escape");
    return end;
}

static void decode(struct out *o, const char *s, const char *end, unsigned line)
{
    while (s < end) {
        if (*s == '\\' && s + 1 < end)
            s = escape(o, s + 1, end, line);
        else
            add(o, s++, 1);
    }
}

void hostile_load(struct hostile_set *set, const char *path)
{
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;
    unsigned line = 0;
    FILE *f = fopen(path ? path : "tests/fixtures/hostile.txt", "r");
    memset(set, 0, sizeof(*set));
    if (!f)
        fail(0, "cannot open; run from the top folder");
    while ((n = getline(&text, &cap, f)) >= 0) {
        line++;
        if (n > 0 && text[n - 1] == '\n')
            text[--n] = '\0';
        if (n == 0 || text[0] == '#')
            continue;
        char *tab = strchr(text, '\t');
        if (!tab)
            fail(line, "no tab between comment and string");
        *tab = '\0';
        set->v = realloc(set->v, (set->n + 1) * sizeof(*set->v));
        if (!set->v)
            abort();
        struct out o = {NULL, 0, 0};
        add(&o, "", 0);
        decode(&o, tab + 1, text + n, line);
        bool survives = text[0] != '~';
        set->v[set->n++] = (struct hostile_item){line, strdup(text + (survives ? 0 : 1)), o.p,
                                                 o.len, survives};
    }
    free(text);
    fclose(f);
}

void hostile_free(struct hostile_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        free(set->v[i].comment);
        free(set->v[i].s);
    }
    free(set->v);
    memset(set, 0, sizeof(*set));
}

/* Strict UTF-8, written apart from the one under test: bytes used, 0 = invalid. */
static size_t strict(const unsigned char *s, size_t len, uint32_t *cp)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
    if (n == 0 || n > len)
        return 0;
    *cp = n == 1 ? *s : *s & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2)
            return 0;
        *cp = *cp << 6 | (s[i] & 0x3F);
    }
    if (*cp < least[n] || *cp > 0x10FFFF || (*cp >= 0xD800 && *cp <= 0xDFFF))
        return 0;
    return n;
}

static const char *bad_cp(uint32_t c, bool allow_lf)
{
    if (c < 0x20 && !(c == '\n' && allow_lf))
        return "control byte";
    if (c >= 0x7F && c < 0xA0)
        return "DEL or C1";
    if (c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
        (c >= 0x2066 && c <= 0x206F))
        return "bidi control";
    if ((c >= 0x200B && c <= 0x200D) || (c >= 0x2060 && c <= 0x2064) || c == 0xFEFF ||
        c == 0xAD || c == 0x34F || c == 0x115F || c == 0x1160 || c == 0x3164 || c == 0xFFA0)
        return "invisible character";
    if (c == 0x2028 || c == 0x2029)
        return "line separator";
    if ((c >= 0xFE00 && c <= 0xFE0F) || (c >= 0xE0000 && c <= 0xE0FFF))
        return "tag or variation selector";
    if (c >= 0xFFF9 && c <= 0xFFFB)
        return "interlinear mark";
    if ((c & 0xFFFE) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF))
        return "noncharacter";
    if ((c >= 0xE000 && c <= 0xF8FF) || c >= 0xF0000)
        return "private use";
    return NULL;
}

const char *hostile_impure(const char *s, size_t len, bool allow_lf, size_t *at)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        size_t n = strict((const unsigned char *)s + i, len - i, &cp);
        const char *why = n ? bad_cp(cp, allow_lf) : "invalid UTF-8";
        if (why) {
            *at = i;
            return why;
        }
        i += n;
    }
    return NULL;
}
