/* Files of variables: one pass over the text, a line number for every complaint. */
#include <cct/model/env_file.h>

#include <cct/util/buf.h>
#include <cct/util/utf8.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *p, *end;
    const char *file;
    int line;
    struct kv *list;
    size_t n;
    struct buf value;
    struct err *e;
};

bool env_name_ok(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return !*name;
}

/* Values may be secret: nothing of them stays behind. */
static void wipe(char *s)
{
    volatile char *p = s;

    while (p && *p)
        *p++ = 0;
    free(s);
}

static void free_list(struct kv *list)
{
    for (struct kv *v = list; v && v->k; v++) {
        free(v->k);
        wipe(v->v);
    }
    free(list);
}

static bool at_blank(const struct reader *r)
{
    return r->p < r->end && (*r->p == ' ' || *r->p == '\t');
}

static bool at_end_of_line(const struct reader *r)
{
    return r->p >= r->end || *r->p == '\n' ||
           (*r->p == '\r' && (r->p + 1 >= r->end || r->p[1] == '\n'));
}

static void skip_blanks(struct reader *r)
{
    while (at_blank(r))
        r->p++;
}

static void skip_line(struct reader *r)
{
    while (r->p < r->end && *r->p != '\n')
        r->p++;
    if (r->p < r->end)
        r->p++;
    r->line++;
}

/* One name up to the `=`; new string, NULL with *e. */
static char *take_name(struct reader *r)
{
    const char *from = r->p;
    char *name;

    while (r->p < r->end && *r->p != '=' && !at_end_of_line(r))
        r->p++;
    name = xstrndup(from, (size_t)(r->p - from));
    for (size_t n = strlen(name); n && (name[n - 1] == ' ' || name[n - 1] == '\t');)
        name[--n] = 0;
    if (r->p < r->end && *r->p == '=' && env_name_ok(name))
        return name;
    if (r->p >= r->end || *r->p != '=') /* it may be a secret that was pasted alone */
        err_set(r->e, ERR_INVALID, "%s:%d: there is no \"=\": write NAME=value", r->file, r->line);
    else
        err_set(r->e, ERR_INVALID, "%s:%d: the name \"%s\" is not possible: letters, digits and "
                "_", r->file, r->line, str_shown(name));
    free(name);
    return NULL;
}

static int open_quote(struct reader *r, int line)
{
    return err_set(r->e, ERR_INVALID, "%s:%d: the quote that opens here is never closed", r->file,
                   line);
}

static char escaped(char c)
{
    return c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
}

static int take_quoted(struct reader *r)
{
    char quote = *r->p++;
    int line = r->line;

    for (; r->p < r->end && *r->p != quote; r->p++) {
        if (*r->p == '\n')
            r->line++;
        if (quote == '"' && *r->p == '\\' && r->p + 1 < r->end && strchr("nrt\"\\$", r->p[1]))
            buf_addc(&r->value, escaped(*++r->p));
        else
            buf_addc(&r->value, *r->p);
    }
    if (r->p >= r->end)
        return open_quote(r, line);
    r->p++;
    skip_blanks(r);
    if (at_end_of_line(r) || *r->p == '#')
        return 0;
    return err_set(r->e, ERR_INVALID, "%s:%d: there is something behind the closing quote", r->file,
                   r->line);
}

/* Up to the line's end or a comment, without the blanks in front of that. */
static void take_plain(struct reader *r)
{
    const char *from = r->p, *last = r->p;

    for (; !at_end_of_line(r); r->p++) {
        if (*r->p == '#' && (r->p == from || r->p[-1] == ' ' || r->p[-1] == '\t'))
            break;
        if (*r->p != ' ' && *r->p != '\t')
            last = r->p + 1;
    }
    buf_add(&r->value, from, (size_t)(last - from));
}

static int put(struct reader *r, char *name, int line)
{
    size_t i = 0;

    if (r->value.len > ENV_VALUE_BYTES)
        return err_set(r->e, ERR_LIMIT, "%s:%d: the value of \"%.60s\" is too long: at most %d KiB",
                       r->file, line, name, ENV_VALUE_BYTES >> 10);
    while (i < r->n && strcmp(r->list[i].k, name) != 0)
        i++;
    if (i == ENV_FILE_VARS)
        return err_set(r->e, ERR_LIMIT, "%s:%d: more than %d variables", r->file, line,
                       ENV_FILE_VARS);
    if (i == r->n) {
        r->list = xrealloc(r->list, (r->n + 2) * sizeof(*r->list)); /* pointers: no value moves */
        r->list[i] = (struct kv){xstrdup(name), NULL};
        r->list[++r->n] = (struct kv){NULL, NULL};
    } else {
        wipe(r->list[i].v);
    }
    r->list[i].v = xstrdup(buf_str(&r->value));
    return 0;
}

static int take_line(struct reader *r)
{
    int line = r->line, rc = 0;
    char *name;

    skip_blanks(r);
    if (at_end_of_line(r) || *r->p == '#') {
        skip_line(r);
        return 0;
    }
    if (r->end - r->p > 7 && memcmp(r->p, "export", 6) == 0 && (r->p[6] == ' ' || r->p[6] == '\t')) {
        r->p += 6;
        skip_blanks(r);
    }
    name = take_name(r);
    if (!name)
        return ERR_INVALID;
    r->p++;
    skip_blanks(r);
    buf_clear(&r->value);
    if (r->p < r->end && (*r->p == '"' || *r->p == '\''))
        rc = take_quoted(r);
    else
        take_plain(r);
    if (rc == 0)
        rc = put(r, name, line);
    free(name);
    skip_line(r);
    return rc;
}

/* What no line can be read from; 0 or a code. */
static int check_text(const struct reader *r, size_t len)
{
    const char *nul = memchr(r->p, 0, len);

    if (len > ENV_FILE_BYTES)
        return err_set(r->e, ERR_LIMIT, "%s: the file is too long: at most %d KiB", r->file,
                       ENV_FILE_BYTES >> 10);
    if (nul)
        return err_set(r->e, ERR_INVALID, "%s: there is a NUL byte in it: no file of variables",
                       r->file);
    if (!utf8_valid(r->p, len))
        return err_set(r->e, ERR_INVALID, "%s: it is not text in UTF-8", r->file);
    return 0;
}

struct kv *env_file_parse(const char *text, size_t len, const char *file, struct err *e)
{
    struct err own = {0};
    struct reader r = {.file = file, .line = 1, .e = e ? e : &own};
    int rc;

    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) { /* some editors begin with a mark */
        text += 3;
        len -= 3;
    }
    r.p = text;
    r.end = text + len;
    r.list = xcalloc(1, sizeof(*r.list));
    buf_init(&r.value, 0);
    /* its memory may not move while it holds a secret */
    if ((rc = check_text(&r, len)) == 0)
        buf_reserve(&r.value, len + 1);
    while (rc == 0 && r.p < r.end)
        rc = take_line(&r);
    for (size_t i = 0; r.value.p && i < r.value.cap; i++)
        ((volatile char *)r.value.p)[i] = 0;
    buf_release(&r.value);
    if (rc == 0)
        return r.list;
    free_list(r.list);
    return NULL;
}
