/* Which files a COPY names; inside of recipes. */
#ifndef CCT_RECIPE_FILES_PRIV_H
#define CCT_RECIPE_FILES_PRIV_H

#include "recipe_priv.h"
#include <cct/recipe/files.h>

/* --- glob.c --------------------------------------------------------------------- */
/* Segments of a path or pattern, "." and what ".." takes back left out; ends with NULL,
 * docker_words_free(). edges: an empty last one (a / at the end) stays. */
char **glob_split(const char *s, bool edges);
/* One segment: * ? [a-z] [!a] \x. Not "." and "..". Pure. */
bool glob_segment(const char *pattern, const char *name);
bool glob_is_magic(const char *segment);
/* Paths against patterns with "**" for any number of segments. */
bool glob_match(char *const *pattern, char *const *path);
/* Each path in the folder that the pattern names. once: a symbolic link behind "**" is
 * looked into, one level, as the SDK's globs do when something stands in front. skip: do
 * not look into that folder. */
struct glob_ops {
    bool (*skip)(void *ctx, const char *dir);
    int (*found)(void *ctx, const char *path, bool is_dir); /* not 0: stop with it */
    void *ctx;
};
int glob_each(const char *folder, const char *pattern, const struct glob_ops *ops);

#endif
