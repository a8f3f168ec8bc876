/* Globs as E2B's SDK has them: names that begin with a dot are names like others, "**" does
 * not go through symbolic links, except one level where it is not the first segment. */
#include "files_priv.h"

#include <cct/util/fs.h>
#include <cct/util/map.h>
#include <cct/util/utf8.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH = 200 };

char **glob_split(const char *s, bool edges)
{
    char **v = xcalloc(strlen(s) + 2, sizeof(*v));
    size_t n = 0, len = strlen(s);

    for (const char *p = s + strspn(s, "/"); *p; p += strspn(p, "/")) {
        size_t k = strcspn(p, "/");

        if (k == 2 && p[0] == '.' && p[1] == '.' && n && !str_eq(v[n - 1], "**"))
            free(v[--n]), v[n] = NULL;
        else if (!(k == 1 && *p == '.') && !(k == 2 && n && p[0] == '*' && p[1] == '*' &&
                                             str_eq(v[n - 1], "**")))
            v[n++] = xstrndup(p, k);
        p += k;
    }
    if (edges && n && len && s[len - 1] == '/')
        v[n++] = xstrdup("");
    return v;
}

/* --- one segment ------------------------------------------------------------------ */

/* "[a-z]" at p: bytes of it, 0 when it is none; *in: is cp in it? */
static size_t class_of(const char *p, uint32_t cp, bool *in)
{
    const char *s = p + 1, *begin;
    bool not = *s == '!' || *s == '^', found = false;

    s += not;
    begin = s;
    while (*s && (*s != ']' || s == begin)) {
        uint32_t from, to;

        s += *s == '\\' && s[1];
        s += utf8_decode(s, strlen(s), &from) ?: 1;
        to = from;
        if (*s == '-' && s[1] && s[1] != ']') {
            s++;
            s += *s == '\\' && s[1];
            s += utf8_decode(s, strlen(s), &to) ?: 1;
        }
        found |= cp >= from && cp <= to;
    }
    *in = found != not;
    return *s == ']' ? (size_t)(s + 1 - p) : 0;
}

/* One character of the pattern (not a star) against one of the name. */
static bool one(const char **p, const char **s)
{
    uint32_t cp;
    size_t n = utf8_decode(*s, strlen(*s), &cp), k;
    bool in;

    n = n ? n : 1;
    if (**p == '?') {
        ++*p;
    } else if (**p == '[' && (k = class_of(*p, cp, &in))) {
        if (!in)
            return false;
        *p += k;
    } else {
        if (**p == '\\' && (*p)[1])
            ++*p;
        if (strncmp(*p, *s, n) != 0)
            return false;
        *p += n;
    }
    *s += n;
    return true;
}

bool glob_segment(const char *pattern, const char *name)
{
    const char *p = pattern, *s = name, *star = NULL, *again = NULL;

    if (str_eq(name, ".") || str_eq(name, "..") || (!*name && *pattern))
        return str_eq(pattern, name);
    while (*s) {
        if (*p == '*') {
            p += strspn(p, "*");
            star = p;
            again = s;
            if (!*p)
                return true;
        } else if (!*p || !one(&p, &s)) {
            if (!star)
                return false;
            uint32_t cp;
            again += utf8_decode(again, strlen(again), &cp) ?: 1;
            s = again;
            p = star;
        }
    }
    p += strspn(p, "*");
    return !*p;
}

bool glob_is_magic(const char *segment)
{
    return strpbrk(segment, "*?[\\") != NULL;
}

static bool is_globstar(const char *s)
{
    return str_eq(s, "**");
}

/* row[k]: the pattern so far matches the first k segments. One pass over it for each segment
 * of the pattern: the time is their product, whatever a pattern looks like. */
static void reach(char *const *pattern, char *const *path, size_t n, bool *row)
{
    bool some = true;

    memset(row, false, n + 1);
    row[0] = true;
    for (; *pattern && some; pattern++) {
        bool before = false;

        some = false;
        if (is_globstar(*pattern)) { /* at the end it takes one segment at least */
            for (size_t k = 0; k <= n; k++) {
                bool here = row[k];

                row[k] = before || (here && pattern[1]);
                before |= here;
                some |= row[k];
            }
            continue;
        }
        for (size_t k = n; k > 0; k--) {
            row[k] = row[k - 1] && glob_segment(*pattern, path[k - 1]);
            some |= row[k];
        }
        row[0] = false;
    }
}

static size_t count(char *const *segs)
{
    size_t n = 0;

    while (segs[n])
        n++;
    return n;
}

/* Does the pattern match the first k segments, for k in from..n? An empty last one need not
 * be matched. */
static bool matches(char *const *pattern, char *const *path, size_t from, size_t n)
{
    enum { USUAL = 256 };
    bool usual[USUAL], *row = n < USUAL ? usual : xmalloc(n + 1), yes = false;

    reach(pattern, path, n, row);
    for (size_t k = from; k <= n && !yes; k++)
        yes = row[k];
    yes = yes || (from == n && n && !*path[n - 1] && row[n - 1]);
    if (row != usual)
        free(row);
    return yes;
}

bool glob_match(char *const *pattern, char *const *path)
{
    size_t n = count(path);

    return matches(pattern, path, n, n);
}

bool glob_covers(char *const *pattern, char *const *path)
{
    return matches(pattern, path, 1, count(path));
}

/* --- on the disk ---------------------------------------------------------------------- */

struct walk {
    const char *folder;
    const struct glob_ops *ops;
    int depth;
    struct map *seen; /* "SEGMENTS LEFT:folder" where a "**" has been; NULL: it has only one */
};

static bool is_stopped(const struct walk *w)
{
    return w->ops->stop && __atomic_load_n(w->ops->stop, __ATOMIC_RELAXED);
}

/* Several "**" come to a folder by many ways, and find the same in it. */
static bool was_here(struct walk *w, const char *dir, char *const *segs)
{
    char *key;
    bool yes;

    if (!w->seen)
        return false;
    key = xasprintf("%zu:%s", count(segs), dir);
    yes = map_get(w->seen, key) != NULL;
    if (!yes)
        map_put(w->seen, key, w);
    free(key);
    return yes;
}

static char *below(const char *dir, const char *name)
{
    return *dir ? fs_join(dir, name) : xstrdup(name);
}

/* S_IFMT bits of what lies there, 0 for nothing. */
static mode_t type_of(const struct walk *w, const char *path, bool follow)
{
    char *full = *path ? fs_join(w->folder, path) : xstrdup(w->folder);
    struct stat st;
    int rc = follow ? stat(full, &st) : lstat(full, &st);

    free(full);
    return rc == 0 ? st.st_mode & S_IFMT : 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int no_dots(const struct dirent *d)
{
    return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

/* Names in a folder, through a link too; ends with NULL, NULL for none. */
static char **names_in(const struct walk *w, const char *dir)
{
    char *full = *dir ? fs_join(w->folder, dir) : xstrdup(w->folder), **v;
    struct dirent **d = NULL;
    int n = w->ops->skip && w->ops->skip(w->ops->ctx, dir) ? -1 : scandir(full, &d, no_dots, by_name);

    free(full);
    if (n < 0)
        return NULL;
    v = xcalloc((size_t)n + 1, sizeof(*v));
    for (int i = 0; i < n; i++) {
        v[i] = xstrdup(d[i]->d_name);
        free(d[i]);
    }
    free(d);
    return v;
}

static int found(struct walk *w, const char *path)
{
    mode_t type = type_of(w, path, false);

    return type ? w->ops->found(w->ops->ctx, path, type == S_IFDIR) : 0;
}

static int expand(struct walk *w, const char *dir, char *const *segs, bool first);

/* "**" at dir: nothing, or any folders that are no links. */
static int globstar(struct walk *w, const char *dir, char *const *segs, bool first)
{
    char **v;
    int rc;

    if (was_here(w, dir, segs))
        return 0;
    rc = expand(w, dir, segs + 1, false);

    v = rc == 0 ? names_in(w, dir) : NULL;
    for (size_t i = 0; v && v[i] && rc == 0; i++) {
        char *path = below(dir, v[i]);
        mode_t type = type_of(w, path, false);

        if (type == S_IFDIR)
            rc = globstar(w, path, segs, first);
        else if (type == S_IFLNK && !first && segs[1] && type_of(w, path, true) == S_IFDIR)
            rc = expand(w, path, segs + 1, false);
        free(path);
    }
    docker_words_free(v);
    return rc;
}

static int magic(struct walk *w, const char *dir, char *const *segs)
{
    char **v = names_in(w, dir);
    int rc = 0;

    for (size_t i = 0; v && v[i] && rc == 0; i++)
        if (glob_segment(segs[0], v[i])) {
            char *path = below(dir, v[i]);

            rc = expand(w, path, segs + 1, false);
            free(path);
        }
    docker_words_free(v);
    return rc;
}

static int expand(struct walk *w, const char *dir, char *const *segs, bool first)
{
    char *path;
    int rc;

    if (is_stopped(w))
        return ERR_CANCELLED;
    if (!segs[0])
        return found(w, dir);
    if (!segs[0][0]) /* a / at the end: no file, but a link, which stays one */
        return type_of(w, dir, false) != S_IFREG ? found(w, dir) : 0;
    if (w->depth > DEPTH)
        return 0;
    w->depth++;
    if (is_globstar(segs[0])) {
        rc = globstar(w, dir, segs, first);
    } else if (glob_is_magic(segs[0])) {
        rc = magic(w, dir, segs);
    } else {
        path = below(dir, segs[0]);
        rc = expand(w, path, segs + 1, false);
        free(path);
    }
    w->depth--;
    return rc;
}

int glob_each(const char *folder, const char *pattern, const struct glob_ops *ops)
{
    struct walk w = {folder, ops, 0, NULL};
    char **segs = glob_split(pattern, true);
    size_t stars = 0;
    int rc;

    for (size_t i = 0; segs[i]; i++)
        stars += is_globstar(segs[i]);
    if (stars > 1)
        w.seen = map_new();
    rc = expand(&w, "", segs, true);
    if (w.seen)
        map_free(w.seen, NULL);
    docker_words_free(segs);
    return rc;
}
