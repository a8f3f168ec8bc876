/* Inside of a watch: folders as a tree of kernel watches (watch_tree.c), events
 * of the kernel into events of ours (watch.c). */
#ifndef LOCAL_WATCH_PRIV_H
#define LOCAL_WATCH_PRIV_H

#include <cct/local/watch.h>
#include <cct/util/buf.h>
#include <cct/util/map.h>
#include <dirent.h>
#include <event2/event.h>
#include <stdint.h>
#include <sys/inotify.h>

#define WATCH_READ_MAX (16u << 10)
#define WATCH_AWAY_MAX 16 /* folders on their way from one name to another */

/* A folder. Its path is made from the names up to the root when it is wanted, so
 * that moving a folder moves all below it. */
struct wnode {
    int wd;
    struct wnode *up, *down, *next, **link;
    /* Reported by looking into the folder; the kernel reports them too, until
     * `known_until` bytes of its queue are read. */
    struct map *known;
    uint64_t known_until;
    struct wnode *next_known;
    char *name;
};

/* A folder that is being looked through. */
struct wscan {
    DIR *dir;
    struct wnode *node;
};

struct watch {
    struct event_base *base;
    const struct fs_root *files;
    char *path;
    dev_t dev;
    ino_t ino;
    bool recursive, is_paused, is_busy, is_dead, is_over;
    const struct watch_ops *ops;
    void *arg;
    int fd;
    struct event *readable, *again;
    struct wnode *root;
    struct map *by_wd;
    struct {
        struct wnode *node;
        uint32_t cookie;
    } away[WATCH_AWAY_MAX]; /* moved, not yet seen at their new place; newest first */
    uint32_t moving;        /* cookie of the event at work, 0 = none */
    struct wscan scan[WATCH_DEPTH_MAX];
    int n_scan;
    struct wnode *known_first, **known_last; /* nodes with `known`, oldest first */
    size_t n_known;
    uint64_t handled;    /* bytes of the queue behind us */
    uint32_t moved_new;  /* cookie of an upload being renamed, 0 = none */
    uint32_t moved_over; /* the same, over a file that was there */
    size_t len, at;
    struct buf name; /* of the event being reported */
    char queue[WATCH_READ_MAX] __attribute__((aligned(__alignof__(struct inotify_event))));
};

/* --- watch_tree.c --- */
/* Watch an open folder as `name` in `up` (NULL: the root). A folder of the tree, or
 * one whose move this is, is put there; any other one is *fresh. NULL with errno. */
struct wnode *wtree_add(struct watch *w, int fd, struct wnode *up, const char *name,
                        bool *fresh);
/* Unwatch a folder and all below it. */
void wtree_drop(struct watch *w, struct wnode *n);
/* The kernel has ended the watch of this one. */
void wtree_ended(struct watch *w, struct wnode *n);
/* A folder left its place; where it went is not known yet. */
void wtree_away(struct watch *w, struct wnode *up, const char *name, uint32_t cookie);
/* Path of `name` in `n` relative to the root into w->name; false when the folder
 * is not in the tree now. name NULL: of the folder itself. */
bool wtree_path(struct watch *w, const struct wnode *n, const char *name);
/* Open a folder by its place in the tree; no link below the root is followed. */
int wtree_open(struct watch *w, const struct wnode *n, const char *name);

/* --- watch_scan.c --- */
/* Look through an open folder (taken) next, before anything else. 0 or -1. */
int wscan_push(struct watch *w, struct wnode *n, int fd);
/* One entry: 1 = more to do, 0 = nothing left, -1 with errno. With `tell`, what is
 * found is reported as created. */
int wscan_step(struct watch *w, bool tell);
void wscan_clear(struct watch *w);
/* `name` in `n` is reported already by a look into the folder: true once. */
bool wknown_take(struct watch *w, struct wnode *n, const char *name);
/* Forget what the kernel cannot repeat any more. */
void wknown_expire(struct watch *w);
void wknown_free(struct watch *w, struct wnode *n);

/* --- watch.c --- */
void watch_tell(struct watch *w, enum watch_event type, const struct wnode *n,
                const char *name);

#endif
