/* Reading what a script in the sandbox says of changes. It runs where the agent does, so
 * whatever it prints may be made up: lengths are held against what is there. */
#include <cct/model/changes.h>

#include <cct/text/clean.h>
#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGES_MAX = 10000, COUNT_MAX = 100000000 };

struct reader {
    const char *p, *end;
    struct changes *c;
    ARR(struct change) v;
    size_t n_status; /* of v: from the status */
};

void changes_release(struct changes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].path);
        free(c->v[i].shown);
    }
    for (size_t i = 0; i < c->n_lines; i++)
        free(c->line[i]);
    free(c->v);
    free(c->line);
    free(c->folder);
    free(c->branch);
    free(c->diff);
    memset(c, 0, sizeof(*c));
}

const char *change_word(const struct change *c)
{
    const char *s = c->status;

    if (!*s)
        return "newer";
    if (s[0] == '?')
        return "new";
    if (s[0] == 'U' || s[1] == 'U' || str_eq(s, "AA") || str_eq(s, "DD"))
        return "conflict";
    if (s[0] == 'A' || s[1] == 'A')
        return "added";
    if (s[0] == 'D' || s[1] == 'D')
        return "deleted";
    if (s[0] == 'T' || s[1] == 'T')
        return "type";
    return "modified";
}

static struct change *add(struct reader *r, const char *path, size_t len)
{
    struct change *c;

    if (r->v.n >= CHANGES_MAX || !len) {
        r->c->files_cut |= len > 0;
        return NULL;
    }
    c = ARR_PUSH(&r->v);
    c->path = xstrndup(path, len);
    c->shown = clean_line_dup(c->path, 0);
    c->added = c->removed = -2;
    return c;
}

/* Up to the next NUL; one without it was cut. */
static bool next_word(const char **p, const char *end, const char **word, size_t *len)
{
    const char *nul = *p < end ? memchr(*p, '\0', (size_t)(end - *p)) : NULL;

    if (!nul)
        return false;
    *word = *p;
    *len = (size_t)(nul - *p);
    *p = nul + 1;
    return true;
}

static void read_status(struct reader *r, const char *p, const char *end)
{
    const char *w;
    size_t n;

    while (next_word(&p, end, &w, &n)) {
        struct change *c = n > 3 && w[2] == ' ' ? add(r, w + 3, n - 3) : NULL;

        if (!c)
            continue;
        for (int i = 0; i < 2; i++)
            c->status[i] = (w[i] >= 'A' && w[i] <= 'Z') || w[i] == '?' || w[i] == '!' ? w[i] : ' ';
    }
    r->c->files_cut |= p < end;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

static long count(const char *s, size_t len)
{
    long n = 0;

    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9' || n > COUNT_MAX)
            return s[0] == '-' ? -1 : -2;
        n = n * 10 + (s[i] - '0');
    }
    return len ? n : -2;
}

/* "12\t3\tpath": to the entry of that path; the order is that of the diff. */
static void read_numstat(struct reader *r, const char *p, const char *end, size_t *order,
                         size_t *n_order)
{
    const char *w;
    size_t n;

    while (next_word(&p, end, &w, &n) && *n_order < CHANGES_MAX) {
        const char *a = memchr(w, '\t', n);
        const char *b = a ? memchr(a + 1, '\t', n - (size_t)(a + 1 - w)) : NULL;
        struct change key = {0}, *c;

        if (!b || b + 1 == w + n)
            continue;
        key.path = xstrndup(b + 1, n - (size_t)(b + 1 - w));
        c = r->v.n ? bsearch(&key, r->v.v, r->v.n, sizeof(*r->v.v), by_path) : NULL;
        free(key.path);
        order[(*n_order)++] = c ? (size_t)(c - r->v.v) : SIZE_MAX;
        if (!c)
            continue;
        c->added = count(w, (size_t)(a - w));
        c->removed = count(a + 1, (size_t)(b - a - 1));
        r->c->added += c->added > 0 ? c->added : 0;
        r->c->removed += c->removed > 0 ? c->removed : 0;
    }
}

/* A section of the diff begins with its "diff --git", which no line of a file can be. */
static void read_diff(struct reader *r, const char *p, size_t len, const size_t *order,
                      size_t n_order)
{
    struct changes *c = r->c;
    struct change *at = NULL;
    size_t section = 0;

    c->diff = xmalloc(len + 1);
    memcpy(c->diff, p, len);
    c->diff[len] = '\0';
    c->diff_len = len;
    c->line = clean_lines(p, len, &c->n_lines);
    for (size_t i = 0; i < c->n_lines; i++) {
        if (str_starts(c->line[i], "diff --git ")) {
            at = section < n_order && order[section] != SIZE_MAX ? &r->v.v[order[section]] : NULL;
            section++;
            if (at)
                at->line = i;
        }
        if (at)
            at->lines++;
    }
}

static void read_newer(struct reader *r, const char *p, const char *end)
{
    const char *w;
    size_t n;

    while (next_word(&p, end, &w, &n))
        add(r, n > 2 && w[0] == '.' && w[1] == '/' ? w + 2 : w,
            n > 2 && w[0] == '.' && w[1] == '/' ? n - 2 : n);
    r->c->files_cut |= p < end;
}

/* One line without its end; false when there is none any more. */
static bool next_line(struct reader *r, char *dst, size_t size)
{
    const char *lf = r->p < r->end ? memchr(r->p, '\n', (size_t)(r->end - r->p)) : NULL;
    size_t n = lf ? (size_t)(lf - r->p) : 0;

    if (!lf || n >= size || memchr(r->p, '\0', n))
        return false;
    memcpy(dst, r->p, n);
    dst[n] = '\0';
    r->p = lf + 1;
    return true;
}

static bool split_part(char *line, char **name, int64_t *len, int64_t *whole)
{
    char *a = strchr(line + 5, ' '), *b = a ? strchr(a + 1, ' ') : NULL;

    if (!b)
        return false;
    *a = *b = '\0';
    *name = line + 5;
    return str_to_i64(a + 1, 0, INT64_C(1) << 40, len) && str_to_i64(b + 1, 0, INT64_C(1) << 40, whole);
}

static bool read_part(struct reader *r, char *line, size_t *order, size_t *n_order)
{
    char *name;
    int64_t len, whole;
    const char *p = r->p;

    if (!split_part(line, &name, &len, &whole) || len > r->end - p)
        return false;
    r->p += len;
    if (str_eq(name, "status")) {
        read_status(r, p, r->p);
        r->c->files_cut |= whole > len;
        if (r->v.n)
            qsort(r->v.v, r->v.n, sizeof(*r->v.v), by_path);
    } else if (str_eq(name, "numstat")) {
        read_numstat(r, p, r->p, order, n_order);
    } else if (str_eq(name, "diff")) {
        if (r->c->diff)
            return false;
        r->c->diff_cut = whole > len;
        read_diff(r, p, (size_t)len, order, *n_order);
    } else if (str_eq(name, "newer")) {
        read_newer(r, p, r->p);
        r->c->files_cut |= whole > len;
        if (r->v.n)
            qsort(r->v.v, r->v.n, sizeof(*r->v.v), by_path);
    }
    return true;
}

static void set(char **dst, char *take)
{
    free(*dst);
    *dst = take;
}

int changes_parse(struct changes *c, const char *text, size_t len, struct err *e)
{
    struct reader r = {.p = text, .end = text + len, .c = c};
    size_t *order = xcalloc(CHANGES_MAX, sizeof(*order)), n_order = 0;
    char line[8192];
    bool ended = false, good = true;

    memset(c, 0, sizeof(*c));
    while (good && !ended && next_line(&r, line, sizeof(line))) {
        if (str_starts(line, "repo ") || str_starts(line, "dir "))
            set(&c->folder, xstrdup(strchr(line, ' ') + 1));
        else if (str_starts(line, "branch "))
            set(&c->branch, clean_line_dup(line + 7, 200));
        else if (str_eq(line, "nogit"))
            c->no_git = true;
        else if (str_starts(line, "part "))
            good = read_part(&r, line, order, &n_order);
        else
            ended = str_eq(line, "end");
    }
    c->v = r.v.v;
    c->n = r.v.n;
    free(order);
    if (ended && c->folder)
        return 0;
    changes_release(c);
    return err_set(e, ERR_PROTO, "what the sandbox says of changes makes no sense");
}
