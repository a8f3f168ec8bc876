/* A folder watched by inotify, alone or with everything below it.
 *
 * Each watch has an inotify descriptor of its own, so that one slow reader holds
 * up nobody else and the kernel's bounded queue is its queue. Folders that appear
 * in a recursive watch are watched as well; what was put into them before the
 * watch was in place is reported as created, once. Symbolic links are not
 * followed below the watched folder. One event loop, one thread. */
#ifndef CCT_LOCAL_WATCH_H
#define CCT_LOCAL_WATCH_H

#include <cct/local/fs_root.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>

#define WATCH_FOLDERS_MAX 32768u /* of one recursive watch */
#define WATCH_DEPTH_MAX 128      /* levels below the watched folder */

enum watch_event { WATCH_CREATE, WATCH_WRITE, WATCH_REMOVE, WATCH_RENAME, WATCH_CHMOD };
enum watch_end {
    WATCH_GONE,     /* the folder was removed or moved away; that was said as an event */
    WATCH_OVERFLOW, /* more happened than was read: events are lost */
    WATCH_LIMIT,    /* too many folders, for us or for the system */
    WATCH_FAILED    /* the system refused something else */
};

struct watch_ops {
    /* `name` is relative to the watched folder, "." for itself. */
    void (*event)(void *arg, enum watch_event type, const char *name);
    /* The last call; `text` is a sentence. */
    void (*end)(void *arg, enum watch_end why, const char *text);
};

struct event_base;
struct watch;

/* Watch `path`, which may be a link to a folder. NULL with *e set; e->sys is the
 * errno (ENOENT, ENOTDIR, ENOSPC and EMFILE for the system's limits, ...). Both
 * callbacks come from the event loop, never from inside this call, and may free
 * the watch. */
struct watch *watch_new(struct event_base *base, const struct fs_root *root, const char *path,
                        bool recursive, const struct watch_ops *ops, void *arg, struct err *e);
void watch_free(struct watch *w);
/* Stop reading and go on: for a reader that is behind. Meanwhile the kernel keeps
 * the events; when it has no room for more, the watch ends with WATCH_OVERFLOW
 * after the last one that was kept. */
void watch_pause(struct watch *w);
void watch_resume(struct watch *w);
/* "EVENT_TYPE_CREATE" and so on. */
const char *watch_event_name(enum watch_event type);

#endif
