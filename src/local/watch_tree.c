/* The folders of a watch as a tree. The kernel knows folders by number and never
 * by path; which number is where is kept here and corrected by what the kernel
 * answers when a place is watched again. */
#include "watch_priv.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MASK_CHILDREN \
    (IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ATTRIB)
#define MASK_SELF (IN_DELETE_SELF | IN_MOVE_SELF)

static void unlink_node(struct wnode *n)
{
    if (n->link != NULL) {
        *n->link = n->next;
        if (n->next != NULL)
            n->next->link = n->link;
    }
    n->up = n->next = NULL;
    n->link = NULL;
}

static void link_node(struct wnode *n, struct wnode *up)
{
    n->up = up;
    n->next = up->down;
    n->link = &up->down;
    if (n->next != NULL)
        n->next->link = &n->next;
    up->down = n;
}

static void forget_away(struct watch *w, const struct wnode *n)
{
    for (int i = 0; i < WATCH_AWAY_MAX; i++)
        if (w->away[i].node == n)
            w->away[i].node = NULL;
}

/* Free `n` and all below; the kernel is told unless it ended n's watch itself. */
static void node_free(struct watch *w, struct wnode *n, bool ended)
{
    while (n->down != NULL)
        node_free(w, n->down, false);
    unlink_node(n);
    forget_away(w, n);
    map_del_id(w->by_wd, (uint64_t)n->wd);
    if (!ended)
        inotify_rm_watch(w->fd, n->wd);
    wknown_free(w, n);
    if (w->root == n)
        w->root = NULL;
    free(n->name);
    free(n);
}

void wtree_drop(struct watch *w, struct wnode *n)
{
    node_free(w, n, false);
}

void wtree_ended(struct watch *w, struct wnode *n)
{
    node_free(w, n, true);
}

/* Trees that the kernel makes up: endless to walk, and silent. */
static bool is_made_up(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 &&
           (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
            fs.f_type == CGROUP2_SUPER_MAGIC);
}

static bool is_above(const struct wnode *n, const struct wnode *below)
{
    for (; below != NULL; below = below->up)
        if (below == n)
            return true;
    return false;
}

/* The number is known: the folder is now here. */
static void node_here(struct watch *w, struct wnode *n, struct wnode *up, const char *name)
{
    if (up == NULL || is_above(n, up))
        return; /* a folder mounted a second time, below itself */
    forget_away(w, n);
    if (n->up == up && str_eq(n->name, name))
        return;
    unlink_node(n);
    link_node(n, up);
    free(n->name);
    n->name = xstrdup(name);
}

/* Left its old place with the event whose second half is at work. */
static bool is_moving(const struct watch *w, const struct wnode *n)
{
    for (int i = 0; i < WATCH_AWAY_MAX; i++)
        if (w->away[i].node == n)
            return w->away[i].cookie == w->moving;
    return false;
}

/* What was taken away for this move is another folder, which had got the name
 * before the event was read: it never left, and its own event is still to come. */
static void not_moved(struct watch *w, const struct wnode *n)
{
    for (int i = 0; i < WATCH_AWAY_MAX && w->moving != 0; i++)
        if (w->away[i].cookie == w->moving && w->away[i].node != n)
            w->away[i].cookie = 0;
}

struct wnode *wtree_add(struct watch *w, int fd, struct wnode *up, const char *name,
                        bool *fresh)
{
    char link[40];
    struct stat st;
    *fresh = false;
    if (fstat(fd, &st) != 0)
        return NULL;
    if (up != NULL && st.st_dev != w->dev && is_made_up(fd)) {
        errno = EXDEV;
        return NULL;
    }
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    int wd = inotify_add_watch(w->fd, link,
                               MASK_CHILDREN | IN_ONLYDIR | (up == NULL ? MASK_SELF : 0));
    if (wd < 0)
        return NULL;
    struct wnode *n = map_get_id(w->by_wd, (uint64_t)wd);
    if (n != NULL && !is_above(w->root, n) && !is_moving(w, n)) {
        node_free(w, n, false); /* it was outside for a while: nothing known holds */
        n = NULL;
        wd = inotify_add_watch(w->fd, link, MASK_CHILDREN | IN_ONLYDIR);
        if (wd < 0)
            return NULL;
    }
    not_moved(w, n);
    if (n != NULL) {
        node_here(w, n, up, name);
        return n;
    }
    if (map_count(w->by_wd) >= WATCH_FOLDERS_MAX) {
        inotify_rm_watch(w->fd, wd);
        errno = ENOSPC;
        return NULL;
    }
    n = xcalloc(1, sizeof(*n));
    n->wd = wd;
    n->name = xstrdup(name);
    map_put_id(w->by_wd, (uint64_t)wd, n);
    if (up != NULL)
        link_node(n, up);
    *fresh = true;
    return n;
}

void wtree_away(struct watch *w, struct wnode *up, const char *name, uint32_t cookie)
{
    struct wnode *n = up->down;
    while (n != NULL && !str_eq(n->name, name))
        n = n->next;
    if (n == NULL)
        return;
    unlink_node(n);
    if (w->away[WATCH_AWAY_MAX - 1].node != NULL)
        wtree_drop(w, w->away[WATCH_AWAY_MAX - 1].node);
    memmove(w->away + 1, w->away, sizeof(w->away) - sizeof(w->away[0]));
    w->away[0].node = n;
    w->away[0].cookie = cookie;
}

/* Names from the root to `n`, each behind a '/' but the first. */
static bool add_names(struct watch *w, const struct wnode *n)
{
    if (n == w->root)
        return true;
    if (n->up == NULL || !add_names(w, n->up))
        return false;
    if (w->name.len > 0)
        buf_addc(&w->name, '/');
    buf_adds(&w->name, n->name);
    return true;
}

bool wtree_path(struct watch *w, const struct wnode *n, const char *name)
{
    buf_clear(&w->name);
    if (!add_names(w, n))
        return false;
    if (name != NULL) {
        if (w->name.len > 0)
            buf_addc(&w->name, '/');
        buf_adds(&w->name, name);
    } else if (w->name.len == 0) {
        buf_addc(&w->name, '.');
    }
    return true;
}

int wtree_open(struct watch *w, const struct wnode *n, const char *name)
{
    struct stat st;
    if (!wtree_path(w, n, name)) {
        errno = ENOENT;
        return -1;
    }
    int top = fs_root_open(w->files, w->path, O_PATH | O_DIRECTORY, 0);
    if (top < 0)
        return -1;
    int fd = -1;
    if (fstat(top, &st) != 0 || st.st_dev != w->dev || st.st_ino != w->ino) {
        errno = ENOENT; /* another folder has its name now */
    } else {
        struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
        fd = (int)syscall(SYS_openat2, top, buf_str(&w->name), &how, sizeof(how));
    }
    int saved = errno;
    close(top);
    errno = saved;
    return fd;
}
