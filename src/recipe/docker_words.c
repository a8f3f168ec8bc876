/* Words of a Dockerfile's instruction: quotes, escapes, JSON forms, variables. */
#include "recipe_priv.h"

#include <cct/util/json.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Where we are in a text with quotes. */
struct scan {
    char escape, quote; /* quote: the open one, or 0 */
};

/* Bytes that belong together at s: an escape and what it escapes, or one byte. */
static size_t step(struct scan *c, const char *s)
{
    if (*s == c->escape && c->quote != '\'' && s[1])
        return 2;
    if (c->quote ? *s == c->quote : *s == '"' || *s == '\'')
        c->quote = c->quote ? 0 : *s;
    return 1;
}

/* A quote that nothing closes is a character like others ("it's"). */
static bool closes(const char *s, char escape)
{
    struct scan c = {escape, 0};

    step(&c, s);
    for (s++; *s && c.quote;)
        s += step(&c, s);
    return !c.quote;
}

/* As step(), with such quotes in mind. */
static size_t careful_step(struct scan *c, const char *s)
{
    if (!c->quote && (*s == '"' || *s == '\'') && !closes(s, c->escape))
        return 1;
    return step(c, s);
}

char **docker_words(const char *s, char escape)
{
    char **v = xcalloc(1, sizeof(*v));
    size_t n = 0;

    for (s += strspn(s, " \t"); *s; s += strspn(s, " \t")) {
        struct scan c = {escape, 0};
        const char *from = s;

        while (*s && (c.quote || !is_blank(*s)))
            s += careful_step(&c, s);
        v = xrealloc(v, (n + 2) * sizeof(*v));
        v[n++] = xstrndup(from, (size_t)(s - from));
        v[n] = NULL;
    }
    return v;
}

void docker_words_free(char **v)
{
    for (size_t i = 0; v && v[i]; i++)
        free(v[i]);
    free(v);
}

char *docker_squeeze(const char *s, char escape)
{
    struct scan c = {escape, 0};
    struct buf b = BUF_INIT;

    for (s += strspn(s, " \t"); *s;) {
        if (!c.quote && is_blank(*s)) {
            s += strspn(s, " \t");
            if (*s)
                buf_addc(&b, ' ');
            continue;
        }
        size_t n = careful_step(&c, s);
        buf_add(&b, s, n);
        s += n;
    }
    return buf_detach(&b, NULL);
}

/* --- quotes ----------------------------------------------------------------------- */

/* The character at *s without what quotes it; literal: nothing is expanded in it. False: the
 * byte was a quote. *s moves on. */
static bool plain(struct scan *c, const char **s, char *out, bool *literal)
{
    char before = c->quote;
    size_t n = careful_step(c, *s);
    const char *at = *s;

    *s += n;
    *literal = before == '\'';
    *out = *at;
    if (n == 1)
        return c->quote == before;
    *out = at[1];
    *literal = true;
    if (before == '"' && !strchr("\"$`\\", at[1])) { /* it escapes nothing there */
        *out = *at;
        *s = at + 1;
    }
    return true;
}

char *docker_unquote(const char *word, char escape)
{
    struct scan c = {escape, 0};
    struct buf b = BUF_INIT;

    while (*word) {
        char ch;
        bool literal;

        if (plain(&c, &word, &ch, &literal))
            buf_addc(&b, ch);
    }
    return buf_detach(&b, NULL);
}

static void add_value(struct buf *b, char ch, bool literal)
{
    if (ch == '"' || ch == '\\' || ch == '`' || (literal && ch == '$'))
        buf_addc(b, '\\');
    buf_addc(b, ch);
}

/* "word" in double quotes, with nothing in it that they change. */
static bool is_simple(const char *word)
{
    size_t n = strlen(word);

    return n >= 2 && word[0] == '"' && word[n - 1] == '"' &&
           strcspn(word + 1, "\"'\\` \t") == n - 2;
}

char *docker_env_value(const char *word, char escape)
{
    struct scan c = {escape, 0};
    struct buf b = BUF_INIT;

    if (is_simple(word)) /* as E2B's SDK sends it: the quotes go at the service */
        return xstrdup(word);
    while (*word) {
        char ch;
        bool literal;

        if (plain(&c, &word, &ch, &literal))
            add_value(&b, ch, literal);
    }
    return buf_detach(&b, NULL);
}

char *recipe_env_literal(const char *text)
{
    struct buf b = BUF_INIT;

    for (; *text; text++)
        add_value(&b, *text, true);
    return buf_detach(&b, NULL);
}

/* --- JSON ------------------------------------------------------------------------- */

char **docker_json(const char *s)
{
    struct cJSON *j = *s == '[' ? json_parse(s, strlen(s), NULL) : NULL;
    char **v = NULL;
    size_t n = 0;

    if (json_is_array(j)) {
        v = xcalloc(1, sizeof(*v));
        for (const struct cJSON *i = json_first(j); i && v; i = json_next(i)) {
            if (!json_is_string(i)) {
                docker_words_free(v);
                v = NULL;
                break;
            }
            v = xrealloc(v, (n + 2) * sizeof(*v));
            v[n++] = xstrdup(json_str_of(i));
            v[n] = NULL;
        }
    }
    json_free(j);
    return v;
}

/* Of these, and of characters that are not ASCII. */
static bool is_of(const char *s, const char *safe)
{
    while (*s && ((unsigned char)*s >= 0x80 || strchr(safe, *s)))
        s++;
    return !*s;
}

char *docker_shell_line(char *const *words)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_@%+=:,./-";
    struct buf b = BUF_INIT;

    for (; *words; words++) {
        if (b.len)
            buf_addc(&b, ' ');
        if (**words && is_of(*words, safe)) {
            buf_adds(&b, *words);
            continue;
        }
        buf_addc(&b, '\'');
        for (const char *p = *words; *p; p++) {
            if (*p == '\'')
                buf_adds(&b, "'\\''");
            else
                buf_addc(&b, *p);
        }
        buf_addc(&b, '\'');
    }
    return buf_detach(&b, NULL);
}

/* --- variables ---------------------------------------------------------------------- */

static size_t name_len(const char *s)
{
    size_t n = 0;

    while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z') || s[n] == '_' ||
           (n && s[n] >= '0' && s[n] <= '9'))
        n++;
    return n;
}

/* "{NAME:-word}" behind the $; bytes of it, 0 with *e. */
static size_t braced(const char *s, const struct kv *vars, struct buf *out, struct err *e)
{
    size_t n = name_len(s + 1), end = strcspn(s, "}");
    char *name = xstrndup(s + 1, n), *word = NULL;
    const char *v = n ? kv_get(vars, name) : NULL, *op = s + 1 + n;

    free(name);
    if (!n || s[end] != '}' || strchr("}:-+", *op) == NULL) {
        err_set(e, ERR_INVALID, "cannot read the variable \"$%.60s\"", s);
        return 0;
    }
    if (*op == ':')
        op++;
    if (*op == '-' || *op == '+') {
        bool is_set = v && *v;

        word = xstrndup(op + 1, (size_t)(s + end - op - 1));
        if (*op == '-')
            v = is_set ? v : word;
        else
            v = is_set ? word : NULL;
    }
    buf_adds(out, v ? v : "");
    free(word);
    return end + 1;
}

char *docker_expand(const char *s, const struct kv *vars, struct err *e)
{
    struct buf b = BUF_INIT;

    while (*s) {
        size_t n = *s == '$' ? name_len(s + 1) : 0;

        if (*s == '$' && s[1] == '{') {
            n = braced(s + 1, vars, &b, e);
            if (!n) {
                buf_release(&b);
                return NULL;
            }
            s += 1 + n;
        } else if (n) {
            char *name = xstrndup(s + 1, n);
            const char *v = kv_get(vars, name);

            buf_adds(&b, v ? v : "");
            free(name);
            s += 1 + n;
        } else {
            buf_addc(&b, *s++);
        }
    }
    return buf_detach(&b, NULL);
}
