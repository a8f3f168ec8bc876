/* Reading header lines and queries; numbers by chance. */
#include "faultd.h"
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* splitmix64 */
uint64_t text_random(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

bool header_value(const char *head, const char *name, char *dst, size_t size)
{
    size_t n = strlen(name);

    for (const char *p = head; p && *p; p = strstr(p, "\r\n") ? strstr(p, "\r\n") + 2 : NULL) {
        if (strncasecmp(p, name, n) != 0 || p[n] != ':')
            continue;
        p += n + 1;
        p += strspn(p, " \t");
        snprintf(dst, size, "%.*s", (int)strcspn(p, "\r\n"), p);
        return true;
    }
    return false;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

void text_url_decode(char *s)
{
    char *to = s;

    for (; *s; s++) {
        if (*s == '%' && hex(s[1]) >= 0 && hex(s[2]) >= 0) {
            *to++ = (char)(hex(s[1]) << 4 | hex(s[2]));
            s += 2;
        } else {
            *to++ = *s == '+' ? ' ' : *s;
        }
    }
    *to = '\0';
}

char *query_text(const char *query, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = query; *p; p += strcspn(p, "&"), p += *p == '&')
        if (strncmp(p, name, n) == 0 && p[n] == '=') {
            char *text = xstrndup(p + n + 1, strcspn(p + n + 1, "&"));
            text_url_decode(text);
            return text;
        }
    return NULL;
}

void query_value(const char *query, const char *name, char *dst, size_t size)
{
    char *text = query_text(query, name);

    snprintf(dst, size, "%s", text ? text : "");
    free(text);
}

bool text_known(const struct cJSON *j, const char *const *names, char *why, size_t size)
{
    snprintf(why, size, "a JSON object is needed");
    if (!json_is_object(j))
        return false;
    for (const struct cJSON *c = json_first(j); c; c = json_next(c)) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], json_name(c)) != 0)
            i++;
        if (!names[i]) {
            snprintf(why, size, "there is no '%s' here", json_name(c));
            return false;
        }
    }
    return true;
}
