/* The log's sinks: a ring in memory and a bounded private file, with a lock each, so a
 * slow disk never holds up who reads the ring. */
#include <cct/util/clock.h>
#include <cct/util/err.h>
#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/log.h>
#include <cct/util/mq.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RING 512

static struct {
    pthread_mutex_t lock;
    struct log_line lines[RING];
    uint64_t count; /* lines ever put in; the newest is (count - 1) % RING */
    uint64_t rev;
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    pthread_mutex_t lock;
    int fd;
    char *path;
    bool failing;         /* the last write failed and that was told */
    struct log_line last; /* newest line written, for the count of its repeats */
} file = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static atomic_int min_level = LOG_INFO;

/* Lines on their way to the file. The queue outlives its thread: who logs may be about to post. */
enum { BESIDE_BYTES = 1 << 20, END_MS = 1000 };
static struct {
    _Atomic(struct mq *) q; /* NULL: who logs writes */
    struct mq *last;
    pthread_t thread;
    bool stuck;
    atomic_uint left_out;
} beside;

struct late {
    struct msg m; /* first */
    struct log_line line;
    char text[];
};

static const char *level_name(enum log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    return names[level];
}

/* One line, and nothing in it that a terminal obeys: controls (also C1 written
 * as UTF-8) and broken UTF-8 become '?', white space becomes a space. */
static void flatten(char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = utf8_decode(text + i, len - i, &cp);
        if (n == 0) {
            n = 1;
            cp = UTF8_BAD;
        }
        if (cp == '\n' || cp == '\t' || cp == '\r')
            text[i] = ' ';
        else if (cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || cp == UTF8_BAD)
            memset(text + i, '?', n);
        i += n;
    }
}

/* Length of text cut to fit `size` with its NUL, not inside a character. */
static size_t cut(const char *text, size_t len, size_t size)
{
    if (len < size)
        return len;
    len = size - 1;
    while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80)
        len--;
    return len;
}

/* A regular file of ours with one name; anything else under that name is a trap. */
static int open_file(const char *path)
{
    struct stat st;
    int fd = open(
        path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
        0600);

    if (fd < 0)
        return errno == ELOOP || errno == ENXIO ? ERR_PERM : ERR_IO;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        st.st_nlink != 1 || fchmod(fd, 0600) != 0) {
        close(fd);
        return ERR_PERM;
    }
    return fd;
}

/* Full: the file becomes PATH.1 and a new one begins. Another process on the
 * same log may have done so already; then its new file is joined. */
static void rotate_if_full(void)
{
    struct stat mine, named;

    if (fstat(file.fd, &mine) != 0 || mine.st_size < (off_t)LIM_LOG_FILE_BYTES)
        return;
    if (lstat(file.path, &named) == 0 && named.st_ino == mine.st_ino &&
        named.st_dev == mine.st_dev) {
        char *old = xasprintf("%s.1", file.path);
        int rc = rename(file.path, old);
        free(old);
        if (rc != 0 && ftruncate(file.fd, 0) != 0)
            return; /* the cap is broken rather than lines lost */
    }
    int fd = open_file(file.path);
    close(file.fd);
    file.fd = fd < 0 ? -1 : fd;
}

static bool write_line(const struct log_line *line, const char *text)
{
    char stamp[32];
    char *out;

    clock_format_rfc3339(stamp, sizeof(stamp), line->wall_ms);
    out = xasprintf("%s %-5s %s\n", stamp, level_name(line->level), text);
    bool ok = fs_write_all(file.fd, out, strlen(out)) == 0;
    free(out);
    return ok;
}

static bool write_repeats(void)
{
    char text[64];

    if (file.last.repeat == 0)
        return true;
    snprintf(text, sizeof(text), "(the line above %u more times)", file.last.repeat);
    file.last.repeat = 0;
    return write_line(&file.last, text);
}

static bool same_line(const struct log_line *a, const struct log_line *b)
{
    return a->level == b->level && strcmp(a->text, b->text) == 0;
}

/* False the first time that the file cannot be written. */
static bool add_to_file(const struct log_line *line, const char *text)
{
    bool ok = true, tell = false;

    pthread_mutex_lock(&file.lock);
    if (file.path) {
        if (file.last.wall_ms && same_line(&file.last, line)) {
            file.last.repeat++;
            file.last.wall_ms = line->wall_ms;
        } else {
            if (file.fd >= 0)
                rotate_if_full();
            else
                file.fd = open_file(file.path);
            ok = file.fd >= 0 && write_repeats() && write_line(line, text);
            file.last = *line;
            file.last.repeat = 0;
        }
        tell = !ok && !file.failing;
        file.failing = !ok;
    }
    pthread_mutex_unlock(&file.lock);
    return !tell;
}

static void add_to_ring(const struct log_line *line)
{
    pthread_mutex_lock(&ring.lock);
    struct log_line *last = ring.count ? &ring.lines[(ring.count - 1) % RING] : NULL;
    if (last && same_line(last, line)) {
        last->repeat++;
        last->wall_ms = line->wall_ms;
    } else {
        ring.lines[ring.count++ % RING] = *line;
    }
    ring.rev++;
    pthread_mutex_unlock(&ring.lock);
}

static void into_the_file(const struct log_line *line, const char *text)
{
    struct log_line note = {.wall_ms = line->wall_ms, .level = LOG_WARN, .repeat = 1};

    if (add_to_file(line, text))
        return;
    str_copy(note.text, sizeof(note.text), "the log file cannot be written; check its folder and the "
                                           "free space");
    add_to_ring(&note);
}

static void tell_left_out(void)
{
    struct log_line line = {.wall_ms = clock_wall_ms(), .level = LOG_WARN, .repeat = 1};
    unsigned n = atomic_exchange(&beside.left_out, 0);

    if (!n)
        return;
    snprintf(line.text, sizeof(line.text), "%u lines were left out here: the disk did not take them", n);
    into_the_file(&line, line.text);
}

static void write_main(void *arg)
{
    struct mq *q = arg;

    while (mq_wait(q, -1)) {
        for (struct msg *m = mq_take(q), *next; m; m = next) {
            struct late *l = (struct late *)m;

            next = m->next;
            into_the_file(&l->line, l->text);
            msg_free(m);
        }
        tell_left_out();
    }
}

static void post_line(struct mq *q, const struct log_line *line, const char *text, size_t len)
{
    struct late *l;

    if (mq_full(q)) {
        atomic_fetch_add(&beside.left_out, 1);
        return;
    }
    l = xcalloc(1, sizeof(*l) + len + 1);
    msg_init(&l->m, 0, sizeof(*l) + len, NULL);
    l->line = *line;
    memcpy(l->text, text, len);
    mq_post(q, MQ_NORMAL, &l->m);
}

static void add_line(enum log_level level, char *text, size_t len)
{
    struct mq *q = atomic_load(&beside.q);
    struct log_line line = {.wall_ms = clock_wall_ms(), .level = level, .repeat = 1};

    log_redact(text, len); /* before anything is cut: half a key is a leak too */
    flatten(text, len);
    size_t n = cut(text, len, sizeof(line.text));
    memcpy(line.text, text, n);
    add_to_ring(&line);
    if (q)
        post_line(q, &line, text, len);
    else
        into_the_file(&line, text);
}

void log_add(enum log_level level, const char *fmt, ...)
{
    char small[1024], *text = small;
    va_list ap;

    if ((int)level < atomic_load(&min_level))
        return;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < 0)
        BUG("log format '%.40s' failed", fmt);
    if ((size_t)n >= sizeof(small)) {
        text = xmalloc((size_t)n + 1);
        va_start(ap, fmt);
        vsnprintf(text, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    add_line(level, text, (size_t)n);
    explicit_bzero(small, sizeof(small));
    if (text != small)
        free(text);
}

int log_open(const char *path, enum log_level min)
{
    int fd = -1;

    log_close();
    atomic_store(&min_level, (int)min);
    if (!path)
        return 0;
    fd = open_file(path);
    if (fd < 0)
        return fd;
    pthread_mutex_lock(&file.lock);
    file.fd = fd;
    file.path = xstrdup(path);
    pthread_mutex_unlock(&file.lock);
    return 0;
}

void log_beside(void)
{
    struct mq *q = atomic_load(&beside.q) ? NULL : mq_new(BESIDE_BYTES);

    if (!q)
        return;
    if (thread_start(&beside.thread, THREAD_WORK, "log", write_main, q) != 0) {
        mq_free(q);
        return;
    }
    mq_free(beside.last);
    beside.last = q;
    atomic_store(&beside.q, q);
}

/* False: it hangs, and the file is its. */
static bool end_beside(void)
{
    struct mq *q = atomic_load(&beside.q);

    if (!q)
        return true;
    mq_close(q);
    if (beside.stuck || !thread_join_ms(beside.thread, END_MS)) {
        beside.stuck = true;
        return false;
    }
    atomic_store(&beside.q, NULL);
    return true;
}

void log_close(void)
{
    if (!end_beside())
        return;
    pthread_mutex_lock(&file.lock);
    if (file.fd >= 0) {
        write_repeats();
        close(file.fd);
    }
    free(file.path);
    file.path = NULL;
    file.fd = -1;
    file.failing = false;
    memset(&file.last, 0, sizeof(file.last));
    pthread_mutex_unlock(&file.lock);
}

size_t log_snapshot(struct log_line *dst, size_t n, uint64_t *rev)
{
    pthread_mutex_lock(&ring.lock);
    size_t have = ring.count < RING ? (size_t)ring.count : RING;
    n = n < have ? n : have;
    for (size_t i = 0; i < n; i++)
        dst[i] = ring.lines[(ring.count - n + i) % RING];
    if (rev)
        *rev = ring.rev;
    pthread_mutex_unlock(&ring.lock);
    return n;
}
