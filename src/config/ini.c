/* Reader of `[section]` and `key = value` files, line by line. */
#include <cct/config/ini.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
    const struct ini_reader *r;
    const char *file;
    char *section;
    int line, bad;
};

/* Nothing of the line itself: a key may have been written there by mistake. */
static void complain(struct state *st, const char *what)
{
    char *m = xasprintf("%s:%d: %s", st->file, st->line, what);

    st->r->say(st->r->ctx, m);
    st->bad++;
    free(m);
}

static bool blank_or_comment(const char *s)
{
    s += strspn(s, " \t");
    return *s == 0 || *s == '#';
}

/* End of a plain value: a '#' that stands alone begins a comment, one inside a
 * word (#ff8800) or inside double quotes does not. */
static void cut_comment(char *s)
{
    bool quoted = false;

    for (char *p = s; *p; p++) {
        if (*p == '"')
            quoted = !quoted;
        if (*p != '#' || quoted || (p > s && p[-1] != ' ' && p[-1] != '\t'))
            continue;
        if (p[1] == 0 || p[1] == ' ' || p[1] == '\t') {
            *p = 0;
            return;
        }
    }
}

/* s points behind the opening quote; in place. False: no closing quote, or
 * something but a comment behind it. */
static bool unquote(char *s)
{
    char *to = s;

    for (; *s && *s != '"'; s++) {
        if (*s == '\\' && s[1] && strchr("\"\\nt", s[1])) {
            s++;
            *to++ = *s == 'n' ? '\n' : *s == 't' ? '\t' : *s;
        } else {
            *to++ = *s;
        }
    }
    if (*s != '"' || !blank_or_comment(s + 1))
        return false;
    *to = 0;
    return true;
}

static void read_section(struct state *st, char *s)
{
    char *end = strchr(s, ']');

    if (!end || !blank_or_comment(end + 1)) {
        complain(st, "expected \"[section]\"");
        return;
    }
    *end = 0;
    str_set(&st->section, str_trim(s + 1));
    st->r->line(st->r->ctx, st->section, NULL, NULL, st->line);
}

static void read_line(struct state *st, char *s)
{
    char *value;

    s = str_trim(s);
    if (blank_or_comment(s))
        return;
    if (*s == '[') {
        read_section(st, s);
        return;
    }
    value = strchr(s, '=');
    if (!value || value == s) {
        complain(st, "expected \"key = value\" or \"[section]\"");
        return;
    }
    *value++ = 0;
    value += strspn(value, " \t");
    if (*value == '"') {
        if (!unquote(++value)) {
            complain(st, "the quoted value does not end with a quote");
            return;
        }
    } else {
        cut_comment(value);
        value = str_trim(value);
    }
    st->r->line(st->r->ctx, st->section, str_trim(s), value, st->line);
}

int ini_parse(const char *text, size_t len, const char *file, const struct ini_reader *r)
{
    struct state st = {r, file, xstrdup(""), 0, 0};

    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        text += 3, len -= 3;
    while (len) {
        const char *nl = memchr(text, '\n', len);
        size_t n = nl ? (size_t)(nl - text) : len;
        char *copy = xstrndup(text, n);

        st.line++;
        if (memchr(text, 0, n))
            complain(&st, "a NUL byte in the line");
        else
            read_line(&st, copy);
        free(copy);
        if (nl)
            n++;
        text += n;
        len -= n;
    }
    free(st.section);
    return st.bad;
}
