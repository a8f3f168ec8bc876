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

        if (*line && *line != '#') {
            struct recipe_pattern *p = ARR_PUSH(&g->v);

            p->text = xstrdup(line);
            p->back = *line == '!';
            p->segs = glob_split(line + p->back, false);
        }
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
    char *text = fs_read_linked(path, RECIPE_IGNORE_BYTES, &len, &why);

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
    for (size_t i = 0; i < g->v.n; i++) {
        free(g->v.v[i].text);
        docker_words_free(g->v.v[i].segs);
    }
    ARR_RELEASE(&g->v);
}

/* A pattern takes what it names and all that lies in that; the last one that says something
 * counts. */
bool recipe_ignores(const struct recipe_ignore *g, const char *path)
{
    char **segs;
    bool out = false;

    if (!g->v.n || !*path)
        return false;
    segs = glob_split(path, false);
    for (size_t i = 0; i < g->v.n; i++) {
        const struct recipe_pattern *p = &g->v.v[i];

        if (out == p->back && p->segs[0] && glob_covers(p->segs, segs))
            out = !p->back;
    }
    docker_words_free(segs);
    return out;
}
