/* Looking into folders that are new to a watch: first they are watched, then they
 * are read. What came into them in between is told twice, by the look and by the
 * kernel; the second time is left out. */
#include "watch_priv.h"
#include <cct/util/str.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define KNOWN_MAX 65536u /* names kept; beyond it some are told twice */

/* --- what was told already ------------------------------------------------ */

static void known_put(struct watch *w, struct wnode *n, const char *name)
{
    if (w->n_known >= KNOWN_MAX)
        return;
    if (n->known == NULL)
        n->known = map_new();
    n->known_until = UINT64_MAX;
    if (map_put(n->known, name, w) == NULL)
        w->n_known++;
}

/* The look is over: whatever it found twice is in the kernel's queue by now. */
static void known_close(struct watch *w, struct wnode *n)
{
    int waiting = 0;
    if (n->known == NULL || n->known_until != UINT64_MAX)
        return;
    if (ioctl(w->fd, FIONREAD, &waiting) != 0)
        waiting = 0;
    n->known_until = w->handled + (w->len - w->at) + (uint64_t)waiting;
    n->next_known = NULL;
    *w->known_last = n;
    w->known_last = &n->next_known;
}

bool wknown_take(struct watch *w, struct wnode *n, const char *name)
{
    if (n->known == NULL || map_del(n->known, name) == NULL)
        return false;
    w->n_known--;
    return true;
}

void wknown_free(struct watch *w, struct wnode *n)
{
    struct wnode **at = &w->known_first;
    if (n->known == NULL)
        return;
    while (*at != NULL && *at != n)
        at = &(*at)->next_known;
    if (*at == n) {
        *at = n->next_known;
        if (w->known_last == &n->next_known)
            w->known_last = at;
    }
    w->n_known -= map_count(n->known);
    map_free(n->known, NULL);
    n->known = NULL;
}

void wknown_expire(struct watch *w)
{
    while (w->known_first != NULL && w->handled >= w->known_first->known_until)
        wknown_free(w, w->known_first);
}

/* --- the look ------------------------------------------------------------- */

int wscan_push(struct watch *w, struct wnode *n, int fd)
{
    DIR *d = NULL;
    if (w->n_scan == WATCH_DEPTH_MAX)
        errno = ELOOP;
    else
        d = fdopendir(fd);
    if (d == NULL) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    w->scan[w->n_scan++] = (struct wscan){.dir = d, .node = n};
    return 0;
}

static void scan_pop(struct watch *w)
{
    struct wscan *s = &w->scan[--w->n_scan];
    closedir(s->dir);
    known_close(w, s->node);
}

void wscan_clear(struct watch *w)
{
    while (w->n_scan > 0)
        closedir(w->scan[--w->n_scan].dir);
}

static bool is_folder(int dir, const struct dirent *de)
{
    struct stat st;
    if (de->d_type != DT_UNKNOWN)
        return de->d_type == DT_DIR;
    return fstatat(dir, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* A folder found in another: watch it and look into it next. One that vanished or
 * may not be read is passed over. */
static int scan_folder(struct watch *w, struct wscan *s, const char *name)
{
    bool fresh;
    int fd = openat(dirfd(s->dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE ? -1 : 0;
    struct wnode *n = wtree_add(w, fd, s->node, name, &fresh);
    if (n != NULL && fresh)
        return wscan_push(w, n, fd);
    int saved = errno;
    close(fd);
    errno = saved;
    return n == NULL && (errno == ENOSPC || errno == ENOMEM) ? -1 : 0;
}

int wscan_step(struct watch *w, bool tell)
{
    if (w->n_scan == 0)
        return 0;
    struct wscan *s = &w->scan[w->n_scan - 1];
    struct dirent *de = readdir(s->dir);
    if (de == NULL) {
        scan_pop(w);
        return w->n_scan > 0;
    }
    const char *name = de->d_name;
    if (str_eq(name, ".") || str_eq(name, "..") || str_starts(name, FS_TEMP_NEW) ||
        str_starts(name, FS_TEMP_REPLACE))
        return 1;
    if (tell) {
        known_put(w, s->node, name);
        watch_tell(w, WATCH_CREATE, s->node, name);
    }
    if (is_folder(dirfd(s->dir), de) && scan_folder(w, s, name) != 0)
        return -1;
    return 1;
}
