/* Whole files and folders: removed, moved, joined. All of it is done by open
 * descriptors, so that a folder swapped for a link meanwhile is not followed, and
 * all of it blocks: the init calls it in a child (envd_job.c).
 *
 * Results are 0 or an errno; EXDEV means out of bounds (fs_root.h). */
#ifndef CCT_LOCAL_FS_TREE_H
#define CCT_LOCAL_FS_TREE_H

#include <cct/local/fs_root.h>

#define FS_TREE_DEPTH 512 /* levels of folders; deeper: ELOOP */

/* rm -r. A link is removed, not followed. A path that is not there is fine. EBUSY,
 * before anything is removed, for a mount point or the top; one that is met below
 * keeps what is in it and its way up, and the result is EBUSY as well. */
int fs_tree_remove(const struct fs_root *r, const char *path);
/* rename(), over an existing file or empty folder too; between two mounts by a copy
 * that appears whole, after which the source is removed. */
int fs_tree_move(const struct fs_root *r, const char *from, const char *to);
/* The same without a copy: EAGAIN where one would be needed. */
int fs_tree_rename(const struct fs_root *r, const char *from, const char *to);
/* Join files into one that appears whole under `to`, then remove them. On failure
 * nothing has changed, and *bad is the path that was the reason. */
int fs_tree_join(const struct fs_root *r, const char *const *from, size_t n, const char *to,
                 const char **bad);

#endif
