/* What errors say. Providers wrap their words in JSON, CLIs put a status before them and
 * an address behind, and some quote the key that was refused. */
#include "agent_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES 12 /* shorter words behind a prefix are no key */

static bool key_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static size_t key_prefix(const char *p)
{
    static const char *const prefixes[] = {"sk-",  "sk_",  "AIza",        "ghp_",
                                           "gho_", "ghs_", "github_pat_", "e2b_"};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (str_starts(p, prefixes[i]))
            return strlen(prefixes[i]);
    return 0;
}

void agent_words_mask(char *text)
{
    for (char *p = text; *p;) {
        size_t head = key_prefix(p), n = head;

        while (head && key_char(p[n]))
            n++;
        if (n - head < KEY_BYTES) {
            while (key_char(*p)) /* a prefix counts at the begin of a word alone */
                p++;
            while (*p && !key_char(*p))
                p++;
            continue;
        }
        memset(p + head, '*', n - head - 4);
        p += n;
    }
}

static int three_digits(const char *p)
{
    if (!isdigit((unsigned char)p[0]) || !isdigit((unsigned char)p[1]) ||
        !isdigit((unsigned char)p[2]) || isalnum((unsigned char)p[3]))
        return 0;
    return (p[0] - '0') * 100 + (p[1] - '0') * 10 + (p[2] - '0');
}

/* The HTTP status of an error that a text names, or 0. */
static int status_in(const char *text)
{
    static const char *const before[] = {
        "status: ", "status code ", "status code: ", "status ", "HTTP ", "API Error: ",
        "(",        "[API Error: "};
    int n = three_digits(text);

    if (n >= 400 && n < 600)
        return n;
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
        for (const char *p = text; (p = strstr(p, before[i])); p++) {
            n = three_digits(p + strlen(before[i]));
            if (n >= 400 && n < 600)
                return n;
        }
    return 0;
}

/* The message in a JSON text that reaches to the end (of the brackets around it), as a new
 * string; NULL: none. */
static char *message_in(const char *text, int *status)
{
    const char *open = strchr(text, '{'), *words;
    size_t len = open ? strlen(open) : 0;
    size_t cut = len && *text == '[' && open[len - 1] == ']' ? 1 : 0;
    struct cJSON *j = open ? json_parse(open, len - cut, NULL) : NULL;
    const struct cJSON *in = json_get(j, "error");
    char *out;

    words = json_is_string(in) ? json_str_of(in) : json_str(in, "message", NULL);
    if (!words)
        words = json_str(j, "message", NULL);
    if (!*status)
        *status = agent_line_int(in, "code");
    if (*status < 400 || *status > 599)
        *status = 0;
    out = words && *words ? xstrdup(words) : NULL;
    json_free(j);
    return out;
}

char *agent_words(const char *text, int *status)
{
    int none = 0;
    char *words;

    if (!status)
        status = &none;
    if (!text)
        return NULL;
    if (!*status)
        *status = status_in(text);
    words = message_in(text, status);
    if (words && strchr(words, '{')) { /* some wrap it twice */
        char *inner = message_in(words, status);

        if (inner) {
            free(words);
            words = inner;
        }
    }
    if (!words)
        words = xstrdup(text);
    agent_words_mask(words);
    return words;
}
