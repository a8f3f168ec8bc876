/* Private files and the places where they live. Owner and mode are checked on
 * the open descriptor, never by name first. */
#ifndef CCT_UTIL_FS_H
#define CCT_UTIL_FS_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum fs_place { FS_CONFIG, FS_DATA, FS_STATE, FS_RUNTIME, FS_CACHE };

/* "$XDG_CONFIG_HOME/cc-tui", "$XDG_DATA_HOME/cc-tui", ... with the usual
 * defaults; FS_RUNTIME falls back to a 0700 folder "run" in the state place.
 * CC_TUI_CONFIG_DIR, CC_TUI_DATA_DIR, CC_TUI_STATE_DIR, CC_TUI_RUNTIME_DIR, CC_TUI_CACHE_DIR win.
 * New string; NULL with *e when there is no HOME either. Creates nothing. */
char *fs_place(enum fs_place place, struct err *e);
/* Whether anyone but the owner may write to it. A group that is the user's alone is nobody else:
 * where such groups are usual, so is a umask of 002 (Ubuntu), and a file that was made by hand is
 * 0664. Asks the system for users and groups, but only where the group may write. */
bool fs_others_may_write(const struct stat *st);
/* Make a folder and its parents, 0700, and check it: a real folder, ours, not
 * writable by others. */
int fs_mkdir_private(const char *path, struct err *e);
/* An open file without a name, 0600, for what is too large for memory: it ends with its
 * descriptor, whatever becomes of us. In FS_CACHE, else in TMPDIR or /tmp. Negative with *e. */
int fs_temp(struct err *e);
/* Read a whole regular file of at most `max` bytes that we or root own; FIFOs,
 * devices and symlinks to them are refused, nothing blocks. `private` also
 * refuses a file that group or others can read. New NUL-terminated memory. */
char *fs_read(const char *path, size_t max, bool private_file, size_t *len, struct err *e);
/* Such a file opened, for what is too large to be read at once. Negative with *e. */
int fs_open(const char *path, struct err *e);
/* As fs_read() for a file that its owner may keep elsewhere behind a symbolic link (a
 * configuration in a dotfiles folder): the link is followed, the file at its end has
 * to be ours or root's, and nobody else may be able to write to it. */
char *fs_read_linked(const char *path, size_t max, size_t *len, struct err *e);
/* Replace atomically: temporary name beside it, 0600, fsync, rename. Refuses
 * to replace a file of someone else. */
int fs_write_private(const char *path, const void *data, size_t len, struct err *e);
/* A file that is new, 0600; ERR_CONFLICT when the name is taken. What could not be written
 * whole is not there. */
int fs_write_new(const char *path, const void *data, size_t len, struct err *e);
/* All of it to a descriptor, from where it stands; 0, or -1 with errno. */
int fs_write_all(int fd, const void *data, size_t len);
/* A value to a file of the kernel's (/proc, /sys), in one write; 0, or -1 with errno. */
int fs_put_value(const char *path, const char *text);
/* "dir/name" as a new string. */
char *fs_join(const char *dir, const char *name);
/* Take an exclusive lock on a 0600 file; returns the descriptor (close to
 * unlock) or negative: ERR_BUSY when somebody holds it. */
int fs_lock(const char *path, struct err *e);
/* Raise RLIMIT_NOFILE's soft limit to the hard one. */
void fs_raise_nofile(void);
/* Close-on-exec pipe/dup checks live with their users. */

#endif
