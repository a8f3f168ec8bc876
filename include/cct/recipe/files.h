/* The files of a COPY: which they are, their hash, their archive. Reads the disk; for a
 * thread that may wait.
 *
 * The hash is the key of the service's cache, and the one that E2B's SDK has for the same
 * folder: over what its globs count, in its order. What is sent is what .dockerignore leaves
 * as Docker reads it: a folder's name takes all that lies in it away, "!" brings something
 * back (the SDK knows neither). Where that is more than the SDK counts, the hash is over
 * what is sent.
 *
 * Nothing outside of the folder is read. A link goes as a link; a COPY may lead through one to
 * another place in the folder, as it does in the SDK, but through one that leads out it is
 * refused, where the SDK would upload what lies there. */
#ifndef CCT_RECIPE_FILES_H
#define CCT_RECIPE_FILES_H

#include <cct/recipe.h>
#include <stdint.h>

#define RECIPE_ARCHIVE_BYTES (2048ull << 20) /* of one COPY, packed */
enum { RECIPE_FILES = 200000, RECIPE_IGNORE_BYTES = 256 << 10 };

/* Patterns of a .dockerignore. */
struct recipe_pattern {
    char *text;  /* the line as it stands */
    char **segs; /* the path in it, ends with NULL */
    bool back;   /* "!" */
};
struct recipe_ignore {
    ARR(struct recipe_pattern) v;
};
/* The folder's; none is none. ERR_* when it cannot be read. */
int recipe_ignore_load(struct recipe_ignore *g, const char *folder, struct err *e);
void recipe_ignore_add(struct recipe_ignore *g, const char *text, size_t len);
void recipe_ignore_release(struct recipe_ignore *g);
/* Does Docker leave this path (relative, no / around it) out? Pure. */
bool recipe_ignores(const struct recipe_ignore *g, const char *path);

struct recipe_file {
    char *path;       /* from the folder on; "" is the folder itself */
    uint32_t mode;    /* with the type's bits */
    int64_t size, mtime; /* mtime: seconds; not in the hash */
    bool sent, counted; /* it goes; E2B's SDK counts it */
};
struct recipe_files {
    ARR(struct recipe_file) v; /* in the SDK's order */
    int64_t bytes;             /* of regular files that go */
};
/* Files that `src` names. `stop`, here and below: looked at now and then, ERR_CANCELLED; or
 * NULL. ERR_NOTFOUND: none. ERR_PERM: some of it lies outside. */
int recipe_files_find(struct recipe_files *f, const char *folder, const char *src,
                      const struct recipe_ignore *g, const bool *stop, struct err *e);
void recipe_files_release(struct recipe_files *f);
/* 64 hex digits. */
int recipe_files_hash(const struct recipe_files *f, const char *folder, const char *src,
                      const char *dest, char hash[65], const bool *stop, struct err *e);
/* As tar.gz to the descriptor `out`; *len: how many bytes. */
int recipe_files_pack(const struct recipe_files *f, const char *folder, int out, uint64_t *len,
                      const bool *stop, struct err *e);

#endif
