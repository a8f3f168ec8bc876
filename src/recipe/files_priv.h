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
/* The path, or a folder that it lies in. */
bool glob_covers(char *const *pattern, char *const *path);
/* Each path in the folder that the pattern names. once: a symbolic link behind "**" is
 * looked into, one level, as the SDK's globs do when something stands in front. skip: do
 * not look into that folder. */
struct glob_ops {
    bool (*skip)(void *ctx, const char *dir);
    int (*found)(void *ctx, const char *path, bool is_dir); /* not 0: stop with it */
    void *ctx;
    const bool *stop; /* set: ERR_CANCELLED; or NULL */
};
int glob_each(const char *folder, const char *pattern, const struct glob_ops *ops);

/* --- inside.c ------------------------------------------------------------------- */
/* Files below a folder, and nothing else: a link may lead from one place in it to another,
 * but not out of it. What is judged is open, so nobody can put a link there in between. */
struct inside {
    int top, dir; /* the folder; the one looked into last */
    char *path;   /* of dir, from the folder on */
};
int inside_begin(struct inside *in, const char *folder, struct err *e);
void inside_end(struct inside *in);
/* The folder in which `path` lies, borrowed until the next call, and its name there; -1 with
 * *e, ERR_PERM where a link leads out. */
int inside_at(struct inside *in, const char *path, const char **name, struct err *e);
/* A regular file for reading, not through a link. -1 with *e. */
int inside_open(struct inside *in, const char *path, struct err *e);
/* What a link holds, NUL at its end; -1 with *e. */
int inside_link(struct inside *in, const char *path, char *dst, size_t size, struct err *e);

#endif
