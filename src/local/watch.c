/* Events of the kernel into events of ours, as the library that envd uses does
 * it: appearing under a name is CREATE, each write WRITE, leaving a name RENAME,
 * deletion REMOVE, a change of mode, owner or times CHMOD. */
#include "watch_priv.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS_PER_TURN 2048 /* then everybody else has a turn */

const char *watch_event_name(enum watch_event type)
{
    static const char *const names[] = {
        [WATCH_CREATE] = "EVENT_TYPE_CREATE", [WATCH_WRITE] = "EVENT_TYPE_WRITE",
        [WATCH_REMOVE] = "EVENT_TYPE_REMOVE", [WATCH_RENAME] = "EVENT_TYPE_RENAME",
        [WATCH_CHMOD] = "EVENT_TYPE_CHMOD",
    };
    return names[type];
}

void watch_tell(struct watch *w, enum watch_event type, const struct wnode *n, const char *name)
{
    if (!w->is_dead && !w->is_over && wtree_path(w, n, name))
        w->ops->event(w->arg, type, buf_str(&w->name));
}

static void finish(struct watch *w, enum watch_end why, const char *text)
{
    if (w->is_dead || w->is_over)
        return;
    w->is_over = true;
    event_del(w->readable);
    w->ops->end(w->arg, why, text);
}

static void finish_errno(struct watch *w)
{
    if (errno == ENOSPC)
        finish(w, WATCH_LIMIT,
               "too many folders to watch (the system's limit is fs.inotify.max_user_watches)");
    else if (errno == ELOOP)
        finish(w, WATCH_LIMIT, "the folders are nested too deep to watch");
    else
        finish(w, WATCH_FAILED, strerror(errno));
}

/* A folder has appeared. When it cannot be opened any more, the events to come
 * say why. */
static void folder_came(struct watch *w, struct wnode *up, const char *name)
{
    bool fresh;
    int fd = wtree_open(w, up, name);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            finish_errno(w);
        return;
    }
    struct wnode *n = wtree_add(w, fd, up, name, &fresh);
    if (n != NULL && fresh) {
        if (wscan_push(w, n, fd) != 0)
            finish_errno(w);
        return;
    }
    int saved = errno;
    close(fd);
    errno = saved;
    if (n == NULL && (errno == ENOSPC || errno == ENOMEM))
        finish_errno(w);
}

static bool is_temp(const char *name)
{
    return str_starts(name, FS_TEMP_NEW) || str_starts(name, FS_TEMP_REPLACE);
}

/* An upload under its temporary name: only its start of the renaming counts. */
static void temp_event(struct watch *w, const struct inotify_event *ev)
{
    if (!(ev->mask & IN_MOVED_FROM))
        return;
    if (str_starts(ev->name, FS_TEMP_NEW))
        w->moved_new = ev->cookie;
    else
        w->moved_over = ev->cookie;
}

static void came(struct watch *w, struct wnode *n, const struct inotify_event *ev)
{
    bool is_upload = (ev->mask & IN_MOVED_TO) && ev->cookie != 0 &&
                     (ev->cookie == w->moved_new || ev->cookie == w->moved_over);
    bool is_known = wknown_take(w, n, ev->name);
    if (is_upload) {
        if (ev->cookie == w->moved_new && !is_known)
            watch_tell(w, WATCH_CREATE, n, ev->name);
        if (!(ev->mask & IN_ISDIR)) { /* as if it were written in place */
            watch_tell(w, WATCH_CHMOD, n, ev->name);
            watch_tell(w, WATCH_WRITE, n, ev->name);
        }
    } else if (!is_known) {
        watch_tell(w, WATCH_CREATE, n, ev->name);
    }
    if (w->recursive && (ev->mask & IN_ISDIR)) {
        w->moving = ev->cookie;
        folder_came(w, n, ev->name);
        w->moving = 0;
    }
}

static void child_event(struct watch *w, struct wnode *n, const struct inotify_event *ev)
{
    if (is_temp(ev->name)) {
        temp_event(w, ev);
        return;
    }
    if (ev->mask & (IN_CREATE | IN_MOVED_TO))
        came(w, n, ev);
    if (ev->mask & IN_MODIFY)
        watch_tell(w, WATCH_WRITE, n, ev->name);
    if (ev->mask & IN_ATTRIB)
        watch_tell(w, WATCH_CHMOD, n, ev->name);
    if (ev->mask & (IN_DELETE | IN_MOVED_FROM)) {
        wknown_take(w, n, ev->name);
        watch_tell(w, ev->mask & IN_DELETE ? WATCH_REMOVE : WATCH_RENAME, n, ev->name);
        if (w->recursive && (ev->mask & IN_MOVED_FROM) && (ev->mask & IN_ISDIR))
            wtree_away(w, n, ev->name, ev->cookie);
    }
}

/* Of the watched folder itself. Folders below it are told by the one above. */
static void self_event(struct watch *w, struct wnode *n, uint32_t mask)
{
    if (mask & IN_IGNORED) {
        bool was_root = n == w->root;
        wtree_ended(w, n);
        if (was_root)
            finish(w, WATCH_GONE, "the watched folder is gone");
        return;
    }
    if (n != w->root)
        return;
    if (mask & IN_ATTRIB)
        watch_tell(w, WATCH_CHMOD, n, NULL);
    if (mask & IN_UNMOUNT)
        finish(w, WATCH_FAILED, "the watched folder was unmounted");
    if (mask & (IN_DELETE_SELF | IN_MOVE_SELF)) {
        watch_tell(w, mask & IN_DELETE_SELF ? WATCH_REMOVE : WATCH_RENAME, n, NULL);
        finish(w, WATCH_GONE, "the watched folder is gone");
    }
}

static void handle(struct watch *w)
{
    const struct inotify_event *ev = (const void *)(w->queue + w->at);
    size_t size = sizeof(*ev) + ev->len;
    w->at += size;
    w->handled += size;
    struct wnode *n = map_get_id(w->by_wd, (uint64_t)ev->wd);
    if (ev->mask & IN_Q_OVERFLOW)
        finish(w, WATCH_OVERFLOW,
               "more changes happened than were read: some are lost, watch again");
    else if (n != NULL && ev->len > 0)
        child_event(w, n, ev);
    else if (n != NULL)
        self_event(w, n, ev->mask);
    wknown_expire(w);
}

/* Read what the kernel has. False when it has nothing now. */
static bool refill(struct watch *w)
{
    ssize_t n;
    do
        n = read(w->fd, w->queue, sizeof(w->queue));
    while (n < 0 && errno == EINTR);
    w->at = w->len = 0;
    if (n > 0)
        w->len = (size_t)n;
    else if (n < 0 && errno != EAGAIN)
        finish_errno(w);
    return n > 0;
}

static void destroy(struct watch *w)
{
    wscan_clear(w);
    if (w->root != NULL)
        wtree_drop(w, w->root);
    for (int i = 0; i < WATCH_AWAY_MAX; i++)
        if (w->away[i].node != NULL)
            wtree_drop(w, w->away[i].node);
    if (w->readable != NULL)
        event_free(w->readable);
    if (w->again != NULL)
        event_free(w->again);
    if (w->fd >= 0)
        close(w->fd);
    map_free(w->by_wd, NULL);
    buf_release(&w->name);
    free(w->path);
    free(w);
}

static void on_work(evutil_socket_t fd, short what, void *arg)
{
    struct watch *w = arg;
    bool more = true;
    (void)fd;
    (void)what;
    w->is_busy = true;
    for (int i = 0; i < STEPS_PER_TURN && more; i++) {
        if (w->is_paused || w->is_dead || w->is_over)
            more = false;
        else if (w->n_scan > 0 && wscan_step(w, true) < 0)
            finish_errno(w);
        else if (w->n_scan == 0 && w->at < w->len)
            handle(w);
        else if (w->n_scan == 0)
            more = refill(w);
    }
    w->is_busy = false;
    if (w->is_dead)
        destroy(w);
    else if (more)
        event_active(w->again, EV_TIMEOUT, 0);
}

/* --- the life of a watch -------------------------------------------------- */

static int start(struct watch *w, const char *path, struct err *e)
{
    struct stat st;
    bool fresh;
    int fd = fs_root_open(w->files, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 || fstat(fd, &st) != 0) {
        err_sys(e, 0, "cannot watch '%.300s'", path);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    w->dev = st.st_dev;
    w->ino = st.st_ino;
    w->root = wtree_add(w, fd, NULL, "", &fresh);
    if (w->root == NULL) {
        err_sys(e, 0, "cannot watch '%.300s'", path);
        close(fd);
        return -1;
    }
    if (!w->recursive) {
        close(fd);
        return 0;
    }
    int rc = wscan_push(w, w->root, fd) == 0 ? 1 : -1;
    while (rc > 0)
        rc = wscan_step(w, false);
    if (rc < 0)
        err_sys(e, 0, "cannot watch everything below '%.300s'", path);
    return rc;
}

struct watch *watch_new(struct event_base *base, const struct fs_root *root, const char *path,
                        bool recursive, const struct watch_ops *ops, void *arg, struct err *e)
{
    struct watch *w = xcalloc(1, sizeof(*w));
    w->base = base;
    w->files = root;
    w->path = xstrdup(path);
    w->recursive = recursive;
    w->ops = ops;
    w->arg = arg;
    w->by_wd = map_new();
    w->known_last = &w->known_first;
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->fd < 0) {
        err_sys(e, 0,
                "cannot watch '%.300s' (the system's limit is "
                "fs.inotify.max_user_instances)",
                path);
        destroy(w);
        return NULL;
    }
    if (start(w, path, e) != 0) {
        destroy(w);
        return NULL;
    }
    w->readable = event_new(base, w->fd, EV_READ | EV_PERSIST, on_work, w);
    w->again = event_new(base, -1, 0, on_work, w);
    event_add(w->readable, NULL);
    return w;
}

void watch_free(struct watch *w)
{
    if (w == NULL)
        return;
    w->is_dead = true;
    if (!w->is_busy)
        destroy(w);
}

void watch_pause(struct watch *w)
{
    if (w->is_paused || w->is_over)
        return;
    w->is_paused = true;
    event_del(w->readable);
}

void watch_resume(struct watch *w)
{
    if (!w->is_paused || w->is_over)
        return;
    w->is_paused = false;
    event_add(w->readable, NULL);
    event_active(w->again, EV_TIMEOUT, 0);
}
