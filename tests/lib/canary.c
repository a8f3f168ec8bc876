/* The search for secrets. */
#include "canary.h"
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/pidstat.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A program begins with what its caller gave it; OLD_MS later it has taken the keys out. With a
 * sanitizer in it that may take longer on a busy machine: LATE_MS. */
#ifdef __SANITIZE_ADDRESS__
enum { LATE_MS = 3000 };
#else
enum { LATE_MS = 300 };
#endif
enum { FILE_MAX = 64 << 20, OLD_MS = 300, ROUND_MS = 10 };

struct needle {
    const char *way;
    char *text;
};
static ARR(struct needle) needles;
static int files;

static void add(const char *way, char *take_text)
{
    *ARR_PUSH(&needles) = (struct needle){way, take_text};
}

void canary_add(const char *value)
{
    size_t len = strlen(value);
    struct buf b = BUF_INIT;

    add("plain", xstrdup(value));
    for (size_t shift = 0; shift < 3; shift++) { /* in front of it: 0, 1 or 2 bytes */
        char *padded = xcalloc(1, len + 3), *b64;
        size_t skip = shift ? shift + 1 : 0, end;
        memset(padded, ' ', shift);
        memcpy(padded + shift, value, len);
        b64 = b64_encode(padded, shift + len);
        end = (shift + len) / 3 * 4; /* the last ones depend on what follows */
        add("base64", xstrndup(b64 + skip, end - skip));
        free(b64);
        free(padded);
    }
    for (const char *p = value; *p; p++)
        if (isalnum((unsigned char)*p) || strchr("-_.~", *p))
            buf_addc(&b, *p);
        else
            buf_addf(&b, "%%%02X", (unsigned char)*p);
    if (!str_eq(buf_str(&b), value))
        add("url-encoded", xstrdup(buf_str(&b)));
    buf_release(&b);
}

void canary_clear(void)
{
    for (size_t i = 0; i < needles.n; i++)
        free(needles.v[i].text);
    ARR_RELEASE(&needles);
}

const char *canary_in(const void *data, size_t len)
{
    for (size_t i = 0; i < needles.n; i++)
        if (len && memmem(data, len, needles.v[i].text, strlen(needles.v[i].text)))
            return needles.v[i].way;
    return NULL;
}

int canary_files(void)
{
    return files;
}

static int search(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int hits = 0;

    while (d && (e = readdir(d))) {
        char *path = fs_join(dir, e->d_name);
        struct stat st;
        if (str_eq(e->d_name, ".") || str_eq(e->d_name, "..") || lstat(path, &st) != 0) {
            free(path);
            continue;
        }
        if (S_ISDIR(st.st_mode)) {
            hits += search(path);
        } else if (S_ISREG(st.st_mode)) {
            size_t len = 0;
            char *text = fs_read(path, FILE_MAX, false, &len, NULL);
            const char *way = text ? canary_in(text, len) : NULL;
            files++;
            if (way) {
                printf("# %s: %s\n", path, way);
                hits++;
            }
            free(text);
        }
        free(path);
    }
    if (d)
        closedir(d);
    return hits;
}

int canary_in_files(const char *dir)
{
    files = 0;
    return search(dir);
}

/* --- processes ------------------------------------------------------------------------------ */

struct known {
    pid_t pid;
    int64_t since;
    bool env; /* its environment was read */
};
static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    bool stop;
    ARR(struct known) all;
    struct canary_seen seen;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pid_t parent_of(pid_t pid)
{
    struct pidstat s;

    return pidstat_read(pid, &s) ? s.parent : 0;
}

static struct known *find(pid_t pid)
{
    for (size_t i = 0; i < watch.all.n; i++)
        if (watch.all.v[i].pid == pid)
            return &watch.all.v[i];
    return NULL;
}

static void know(pid_t pid)
{
    if (!find(pid))
        *ARR_PUSH(&watch.all) = (struct known){.pid = pid, .since = clock_mono_ms()};
}

/* False when there is nothing to read. What is found while it may stand there is no hit. */
static bool look_into(pid_t pid, const char *what, bool may)
{
    char path[64], text[65536];
    const char *way;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof(text));
    close(fd);
    way = n > 0 ? canary_in(text, (size_t)n) : NULL;
    if (way && !may) {
        printf("# %s: %s\n", path, way);
        watch.seen.hits++;
    }
    return n > 0;
}

static void one_round(void)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    int64_t now = clock_mono_ms();

    watch.seen.rounds++;
    while (d && (e = readdir(d))) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        if (pid > 0 && !find(pid) && find(parent_of(pid)))
            know(pid);
    }
    if (d)
        closedir(d);
    for (size_t i = watch.all.n; i-- > 0;) {
        struct known *k = &watch.all.v[i];
        if (parent_of(k->pid) == 0) { /* its number will be another's */
            ARR_REMOVE(&watch.all, i);
            continue;
        }
        look_into(k->pid, "cmdline", false);
        if (now - k->since < OLD_MS ||
            !look_into(k->pid, "environ", now - k->since < LATE_MS))
            continue;
        watch.seen.processes += !k->env;
        k->env = true;
    }
}

static void *watch_on(void *arg)
{
    (void)arg;
    for (bool stop = false; !stop; poll(NULL, 0, ROUND_MS)) {
        pthread_mutex_lock(&watch.lock);
        one_round();
        stop = watch.stop;
        pthread_mutex_unlock(&watch.lock);
    }
    return NULL;
}

void canary_watch_start(void)
{
    watch.stop = false;
    watch.seen = (struct canary_seen){0};
    if (pthread_create(&watch.thread, NULL, watch_on, NULL))
        die("test: no thread");
}

void canary_watch(pid_t root)
{
    pthread_mutex_lock(&watch.lock);
    know(root);
    pthread_mutex_unlock(&watch.lock);
}

struct canary_seen canary_watch_stop(void)
{
    pthread_mutex_lock(&watch.lock);
    watch.stop = true;
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
    ARR_RELEASE(&watch.all);
    return watch.seen;
}
