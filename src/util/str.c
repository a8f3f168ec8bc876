/* Plain C strings: comparing, copying, numbers, "did you mean". */
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && memcmp(s + n - k, suffix, k) == 0;
}

bool str_eq(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

static unsigned lower(char c)
{
    unsigned u = (unsigned char)c;
    return u >= 'A' && u <= 'Z' ? u + 32 : u;
}

bool str_eq_nocase(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    while (*a && lower(*a) == lower(*b))
        a++, b++;
    return lower(*a) == lower(*b);
}

bool str_copy(char *dst, size_t size, const char *src)
{
    if (size == 0)
        return false;
    size_t n = strnlen(src, size);
    bool all = n < size;
    if (!all)
        n = size - 1;
    memcpy(dst, src, n);
    dst[n] = '\0';
    return all;
}

static bool space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void str_set(char **dst, const char *src)
{
    char *copy = xstrdup(src);

    free(*dst);
    *dst = copy;
}

size_t str_list_count(char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

char **str_list_copy(char *const *list)
{
    size_t n = str_list_count(list);
    char **copy = list ? xcalloc(n + 1, sizeof(*copy)) : NULL;

    for (size_t i = 0; i < n; i++)
        copy[i] = xstrdup(list[i]);
    return copy;
}

char **str_list_add(char **list, char *take)
{
    size_t n = str_list_count(list);

    list = xrealloc(list, (n + 2) * sizeof(*list));
    list[n] = take;
    list[n + 1] = NULL;
    return list;
}

void str_list_free(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

const char *str_shown(const char *s)
{
    enum { SHOWN_BYTES = 24, SHOWN_DIGITS = 3 };
    size_t digits = 0, n = 0;

    for (; s[n] && n <= SHOWN_BYTES; n++) {
        bool digit = s[n] >= '0' && s[n] <= '9';

        if (!digit && !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-.^ ", s[n]))
            return "(not shown)";
        digits += digit;
    }
    return n <= SHOWN_BYTES && digits <= SHOWN_DIGITS ? s : "(not shown)";
}

char *str_trim(char *s)
{
    while (space(*s))
        s++;
    size_t n = strlen(s);
    while (n > 0 && space(s[n - 1]))
        n--;
    s[n] = '\0';
    return s;
}

bool str_to_i64(const char *s, int64_t min, int64_t max, int64_t *out)
{
    const char *digits = s && *s == '-' ? s + 1 : s;
    char *end;

    if (!digits || *digits < '0' || *digits > '9') /* strtoll skips spaces, takes '+' */
        return false;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno || *end || v < min || v > max)
        return false;
    *out = v;
    return true;
}

static int64_t unit_seconds(char c)
{
    switch (c) {
    case 'd':
        return 86400;
    case 'h':
        return 3600;
    case 'm':
        return 60;
    case 's':
        return 1;
    default:
        return 0;
    }
}

bool str_to_seconds(const char *s, int64_t *out)
{
    int64_t sum = 0, last = INT64_MAX;

    if (!s || !*s)
        return false;
    if (str_to_i64(s, 0, INT64_MAX, out))
        return true;
    while (*s) {
        int64_t v = 0;
        if (*s < '0' || *s > '9')
            return false;
        for (; *s >= '0' && *s <= '9'; s++)
            if (__builtin_mul_overflow(v, (int64_t)10, &v) ||
                __builtin_add_overflow(v, (int64_t)(*s - '0'), &v))
                return false;
        int64_t unit = unit_seconds(*s++);
        if (unit == 0 || unit >= last) /* each unit once, the largest first */
            return false;
        last = unit;
        if (__builtin_mul_overflow(v, unit, &v) || __builtin_add_overflow(sum, v, &sum))
            return false;
    }
    *out = sum;
    return true;
}

#define NEAR_MAX 48 /* longer words are never looked up */

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edits between a and b, a swap of neighbours counting as one. */
static unsigned distance(const char *a, size_t n, const char *b, size_t k)
{
    unsigned rows[3][NEAR_MAX + 1];
    unsigned *before = rows[0], *prev = rows[1], *cur = rows[2];

    for (size_t j = 0; j <= k; j++)
        prev[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        cur[0] = (unsigned)i;
        for (size_t j = 1; j <= k; j++) {
            unsigned cost = lower(a[i - 1]) != lower(b[j - 1]);
            cur[j] = min3(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < cur[j])
                cur[j] = before[j - 2] + 1;
        }
        unsigned *spare = before;
        before = prev;
        prev = cur;
        cur = spare;
    }
    return prev[k];
}

int str_nearest(const char *word, const char *const *words, size_t n)
{
    size_t len = strlen(word);
    unsigned best = 0;
    int found = -1;

    if (len == 0 || len > NEAR_MAX)
        return -1;
    for (size_t i = 0; i < n; i++) {
        size_t k = strlen(words[i]);
        if (k > NEAR_MAX)
            continue;
        unsigned d = distance(word, len, words[i], k);
        if (d > 1 + len / 4 || d >= (len > k ? len : k))
            continue; /* too far to be a slip of the fingers */
        if (found < 0 || d < best) {
            found = (int)i;
            best = d;
        }
    }
    return found;
}
