/* .dockerignore, as Docker reads it. */
#include "files_priv.h"

#include <cct/util/fs.h>
#include <stdlib.h>
#include <string.h>

void recipe_ignore_add(struct recipe_ignore *g, const char *text, size_t len)
{
    while (len) {
        const char *nl = memchr(text, '\n', len);
        size_t n = nl ? (size_t)(nl - text) : len;
        char *copy = xstrndup(text, n), *line = str_trim(copy);

        if (*line && *line != '#')
            *ARR_PUSH(&g->v) = xstrdup(line);
        free(copy);
        n += nl != NULL;
        text += n;
        len -= n;
    }
}

int recipe_ignore_load(struct recipe_ignore *g, const char *folder, struct err *e)
{
    char *path = fs_join(folder, ".dockerignore");
    struct err why = {0};
    size_t len = 0;
    char *text = fs_read_linked(path, RECIPE_BYTES, &len, &why);

    if (text)
        recipe_ignore_add(g, text, len);
    free(text);
    free(path);
    if (text || why.code == ERR_NOTFOUND)
        return 0;
    *e = why;
    return e->code;
}

void recipe_ignore_release(struct recipe_ignore *g)
{
    for (size_t i = 0; i < g->v.n; i++)
        free(g->v.v[i]);
    ARR_RELEASE(&g->v);
}

/* The pattern names it, or a folder that it lies in. */
static bool covers(const char *pattern, char **path, size_t n)
{
    char **segs = glob_split(pattern, false);
    bool yes = false;

    for (size_t k = n; segs[0] && k > 0 && !yes; k--) {
        char *rest = path[k];

        path[k] = NULL;
        yes = glob_match(segs, path);
        path[k] = rest;
    }
    docker_words_free(segs);
    return yes;
}

bool recipe_ignores(const struct recipe_ignore *g, const char *path)
{
    char **segs;
    bool out = false;
    size_t n = 0;

    if (!g->v.n || !*path)
        return false;
    segs = glob_split(path, false);
    while (segs[n])
        n++;
    for (size_t i = 0; i < g->v.n; i++) { /* the last one that says something counts */
        const char *p = g->v.v[i];
        bool back = *p == '!';

        if (out == back && covers(p + back, segs, n))
            out = !back;
    }
    docker_words_free(segs);
    return out;
}
