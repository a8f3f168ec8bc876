/* How many bytes lie in the sandbox's own folders: a walk that is cut into steps
 * of a hundred entries, so that nothing else waits for it. */
#include "init_metrics.h"
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define STEP_ENTRIES 100
#define STEP_MS 20
#define FILES_MAX 100000
#define DEPTH_MAX 32      /* what lies deeper is not counted */
#define REST_MIN_MS 10000 /* between two walks; a long one rests longer, too */
#define REST_FACTOR 10

struct disk {
    struct envd *e;
    struct event *timer;
    DIR *stack[DEPTH_MAX]; /* folders that are being read, outermost first */
    int depth;
    size_t root; /* number of the next one in roots[] */
    dev_t dev;
    int64_t bytes, used;
    long files;
    int64_t began_mono;
};

static const char *root_of(const struct disk *d, size_t i)
{
    return i == 0 ? d->e->home : i == 1 && d->e->isolated ? "/root" : NULL;
}

static bool push(struct disk *d, int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME);
    if (fd < 0)
        fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return false; /* unreadable or gone: not counted */
    }
    d->stack[d->depth++] = dir;
    return true;
}

/* Everything below the home or /root is read once; the next of them, or false. */
static bool push_root(struct disk *d)
{
    const char *path;
    struct stat st;
    while ((path = root_of(d, d->root)) != NULL) {
        d->root++;
        if (stat(path, &st) == 0 && push(d, AT_FDCWD, path)) {
            d->dev = st.st_dev;
            return true;
        }
    }
    return false;
}

static void count(struct disk *d, const struct dirent *de)
{
    struct stat st;
    int at = dirfd(d->stack[d->depth - 1]);
    if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0 ||
        fstatat(at, de->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_dev != d->dev)
        return;
    d->files++;
    /* a file with several names counts in parts, so that its sum is right */
    int64_t bytes = (int64_t)st.st_blocks * 512;
    d->bytes += st.st_nlink > 1 && !S_ISDIR(st.st_mode) ? bytes / (int64_t)st.st_nlink : bytes;
    if (S_ISDIR(st.st_mode) && d->depth < DEPTH_MAX)
        push(d, at, de->d_name);
}

/* A hundred entries; false when all was seen. */
static bool step(struct disk *d)
{
    for (int i = 0; i < STEP_ENTRIES; i++) {
        if (d->depth == 0 && !push_root(d))
            return false;
        const struct dirent *de = readdir(d->stack[d->depth - 1]);
        if (de == NULL)
            closedir(d->stack[--d->depth]);
        else
            count(d, de);
        if (d->files >= FILES_MAX)
            return false;
    }
    return true;
}

static void close_all(struct disk *d)
{
    while (d->depth > 0)
        closedir(d->stack[--d->depth]);
}

/* Bytes in /tmp, which is memory in an isolated sandbox and needs no walk. */
static int64_t tmp_used(const struct disk *d)
{
    struct statfs fs;
    if (!d->e->isolated || statfs("/tmp", &fs) != 0 || fs.f_type != TMPFS_MAGIC)
        return 0;
    return (int64_t)(fs.f_blocks - fs.f_bfree) * (int64_t)fs.f_bsize;
}

static void arm(struct disk *d, int64_t ms)
{
    struct timeval tv = {ms / 1000, ms % 1000 * 1000};
    event_add(d->timer, &tv);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct disk *d = arg;
    (void)fd;
    (void)what;
    if (d->e->paused_mono != 0) { /* nothing changes now */
        arm(d, REST_MIN_MS);
        return;
    }
    if (d->began_mono == 0) {
        d->began_mono = clock_mono_ms();
        d->bytes = d->files = 0;
        d->root = 0;
    }
    if (step(d)) {
        arm(d, STEP_MS);
        return;
    }
    close_all(d);
    d->used = d->bytes;
    int64_t rest = (clock_mono_ms() - d->began_mono) * REST_FACTOR;
    d->began_mono = 0;
    arm(d, rest > REST_MIN_MS ? rest : REST_MIN_MS);
}

struct disk *envd_disk_new(struct envd *e)
{
    struct disk *d = xcalloc(1, sizeof(*d));
    d->e = e;
    d->timer = evtimer_new(e->base, on_timer, d);
    if (d->timer == NULL)
        die("libevent is out of memory");
    arm(d, STEP_MS); /* after the first answer, which somebody waits for */
    return d;
}

void envd_disk_free(struct disk *d)
{
    if (d == NULL)
        return;
    close_all(d);
    event_free(d->timer);
    free(d);
}

int64_t envd_disk_used(const struct disk *d)
{
    return d->used + tmp_used(d);
}
