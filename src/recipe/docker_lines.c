/* A Dockerfile's instructions: parser directives, comments, lines that go on behind an
 * escape at their end. Here-documents are refused, for the service has no place for them. */
#include "recipe_priv.h"

#include <cct/util/utf8.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *p, *end;
    const char *file;
    int line;
};

/* The next line without its end; false at the end of the text. */
static bool next_line(struct reader *r, const char **s, size_t *len)
{
    const char *nl;

    if (r->p >= r->end)
        return false;
    nl = memchr(r->p, '\n', (size_t)(r->end - r->p));
    *s = r->p;
    *len = (size_t)((nl ? nl : r->end) - r->p);
    r->p = nl ? nl + 1 : r->end;
    r->line++;
    while (*len && (*s)[*len - 1] == '\r')
        --*len;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void trim(const char **s, size_t *len)
{
    while (*len && is_blank(**s))
        ++*s, --*len;
    while (*len && is_blank((*s)[*len - 1]))
        --*len;
}

/* --- directives ----------------------------------------------------------------------- */

/* "# escape=`" at the top; such lines end with the first that is none. */
static int directives(struct docker_lines *d, struct reader *r, struct err *e)
{
    struct reader at = *r;
    const char *s, *eq, *value;
    size_t len, n;

    while (next_line(&at, &s, &len)) {
        trim(&s, &len);
        if (!len || *s != '#' || !(eq = memchr(s, '=', len)))
            return 0;
        s++, len--;
        n = (size_t)(eq - s);
        trim(&s, &n);
        value = eq + 1;
        len = (size_t)(at.p - value);
        while (len && (value[len - 1] == '\n' || value[len - 1] == '\r'))
            len--;
        trim(&value, &len);
        if (!n || memchr(s, ' ', n))
            return 0; /* a comment with an = in it */
        if (n == 6 && strncasecmp(s, "escape", 6) == 0) {
            if (len != 1 || (*value != '\\' && *value != '`'))
                return err_set(e, ERR_INVALID, "%s:%d: the escape character must be \\ or `",
                               r->file, at.line);
            d->escape = *value;
        }
        *r = at;
    }
    return 0;
}

/* --- one instruction ---------------------------------------------------------------------- */

/* Does the line go on? Its escape, and blanks behind it, are cut off. */
static bool goes_on(const char *s, size_t *len, char escape)
{
    size_t n = *len;

    while (n && is_blank(s[n - 1]))
        n--;
    if (!n || s[n - 1] != escape)
        return false;
    *len = n - 1;
    return true;
}

static int too_long(const struct reader *r, int line, struct err *e)
{
    return err_set(e, ERR_LIMIT, "%s:%d: the instruction is too long: at most %d KiB; put it into "
                   "a script and COPY that", r->file, line, RECIPE_WORD_BYTES >> 10);
}

/* All of its lines in one; comments and empty lines between them count for nothing. */
static int join(struct reader *r, char escape, const char *s, size_t len, struct buf *out,
                struct err *e)
{
    int line = r->line;
    bool more = goes_on(s, &len, escape);

    buf_add(out, s, len);
    while (more && next_line(r, &s, &len)) {
        const char *t = s;
        size_t n = len;

        trim(&t, &n);
        if (!n || *t == '#')
            continue;
        more = goes_on(s, &len, escape);
        buf_add(out, s, len);
    }
    return out->over ? too_long(r, line, e) : 0;
}

/* A word "<<EOF" outside of quotes, or "3<<-EOF". */
static bool has_heredoc(const char *rest, char escape)
{
    char **v = docker_words(rest, escape);
    bool found = false;

    for (size_t i = 0; v[i] && !found; i++) {
        const char *p = v[i] + strspn(v[i], "0123456789");

        if (!str_starts(p, "<<"))
            continue;
        p += 2 + (p[2] == '-');
        found = *p && *p != '<' && !strchr(p, '<');
    }
    docker_words_free(v);
    return found;
}

/* "--name=value" in front of the rest. */
static void take_flags(struct docker_line *l)
{
    struct buf flags = BUF_INIT;
    char *s = l->rest, *rest;

    while (str_starts(s, "--") && s[2] && !is_blank(s[2])) {
        size_t n = strcspn(s, " \t");

        if (flags.len)
            buf_addc(&flags, ' ');
        buf_add(&flags, s, n);
        s += n + strspn(s + n, " \t");
    }
    rest = xstrdup(s);
    free(l->rest);
    l->rest = rest;
    l->flags = buf_detach(&flags, NULL);
}

static int check_heredoc(const struct docker_line *l, const char *file, char escape, struct err *e)
{
    if ((str_eq(l->word, "RUN") || str_eq(l->word, "COPY") || str_eq(l->word, "ADD")) &&
        has_heredoc(l->rest, escape))
        return err_set(e, ERR_UNSUPPORTED, "%s:%d: here-documents (<<) cannot be built: put the "
                       "text into a file beside the recipe and COPY it, or write the commands "
                       "with && and \\", file, l->line);
    return 0;
}

static int add_instruction(struct docker_lines *d, struct reader *r, const char *s, size_t len,
                           struct err *e)
{
    struct buf all = BUF_INIT_MAX(RECIPE_WORD_BYTES);
    struct docker_line *l;
    int line = r->line;
    const char *text;
    size_t n;

    if (join(r, d->escape, s, len, &all, e) != 0) {
        buf_release(&all);
        return e->code;
    }
    l = ARR_PUSH(&d->v);
    l->line = line;
    text = buf_str(&all);
    n = strcspn(text, " \t");
    l->word = xstrndup(text, n);
    for (char *c = l->word; *c; c++)
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    text += n;
    n = strlen(text);
    trim(&text, &n);
    l->rest = xstrndup(text, n);
    buf_release(&all);
    take_flags(l);
    if (d->v.n > RECIPE_STEPS)
        return err_set(e, ERR_LIMIT, "%s:%d: more than %d instructions", r->file, line,
                       RECIPE_STEPS);
    return check_heredoc(l, r->file, d->escape, e);
}

int docker_lines(struct docker_lines *d, const char *text, size_t len, const char *file,
                 struct err *e)
{
    struct reader r = {text, text + len, file, 0};
    const char *s;
    size_t n;
    int rc;

    memset(d, 0, sizeof(*d));
    d->escape = '\\';
    if (memchr(text, 0, len) || !utf8_valid(text, len))
        return err_set(e, ERR_INVALID, "%s: the file is not text in UTF-8", file);
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        r.p += 3;
    rc = directives(d, &r, e);
    while (rc == 0 && next_line(&r, &s, &n)) {
        trim(&s, &n);
        if (n && *s != '#')
            rc = add_instruction(d, &r, s, n, e);
    }
    return rc;
}

void docker_lines_release(struct docker_lines *d)
{
    for (size_t i = 0; i < d->v.n; i++) {
        free(d->v.v[i].word);
        free(d->v.v[i].flags);
        free(d->v.v[i].rest);
    }
    ARR_RELEASE(&d->v);
}
