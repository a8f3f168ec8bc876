/* Which files a sandbox's file calls may reach. Inside its own mount namespace
 * that is everything it sees; as an ordinary process of the machine it is only
 * what lies beneath its home: every part of a path is then resolved by the
 * kernel with openat2(RESOLVE_BENEATH), so neither "..", nor a symbolic link,
 * nor a part swapped for a link meanwhile leads out; links within lead where they
 * say. Links of /proc that jump (/proc/self/root, /proc/N/fd/M) are followed in
 * neither case.
 *
 * Paths are absolute, without "." and ".." (envd_fs_path_of). Functions give -1
 * with errno: EXDEV means that the path leads out. One owner, one thread. */
#ifndef CCT_LOCAL_FS_ROOT_H
#define CCT_LOCAL_FS_ROOT_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct fs_root {
    int fd;     /* the home, held open; -1: nothing is confined */
    char *top;  /* its path as it was given */
    char *real; /* the same without links */
};

/* Confine to `top`, or to nothing when it is NULL. */
int fs_root_init(struct fs_root *r, const char *top, struct err *e);
void fs_root_release(struct fs_root *r);

/* open(); O_CLOEXEC is added. A link at the end is followed unless the flags say
 * O_NOFOLLOW. */
int fs_root_open(const struct fs_root *r, const char *path, int flags, mode_t mode);
/* The folder that `path` is in, for the ...at() calls (O_PATH), and the last part
 * of the path, which is borrowed from it. The top itself lies in no folder. */
int fs_root_parent(const struct fs_root *r, const char *path, const char **name);
/* lstat() and stat(). */
int fs_root_lstat(const struct fs_root *r, const char *path, struct stat *st);
int fs_root_stat(const struct fs_root *r, const char *path, struct stat *st);
/* Where an open descriptor's file is, as new memory; NULL when /proc does not say. */
char *fs_root_where(int fd);
/* mkdir -p of the path's parents, and of the path itself with `self`. EEXIST or
 * ENOTDIR when a part is no folder. */
int fs_root_make_dirs(const struct fs_root *r, const char *path, bool self);

/* --- files that appear whole ------------------------------------------------
 * An upload is written under a temporary name beside its place and renamed when
 * it is complete. The name tells watchers of the folder what is going on: they
 * keep quiet about it and report the rename as what it means. */
#define FS_TEMP_NEW ".cc-tui-upload-n-"     /* will be a new file */
#define FS_TEMP_REPLACE ".cc-tui-upload-r-" /* will replace one */

/* A fresh name (48 bytes); and a file of such a name in `dir`, for writing, 0600. */
void fs_temp_name(bool replaces, char *name, size_t size);
int fs_temp_open(int dir, bool replaces, char *name, size_t size);

#endif
