/* Reading the configuration again, on a thread that looks after its files. */
#include <cct/ui/reload.h>

#include <cct/util/arr.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

/* An editor writes a file in several steps: all of them are awaited. */
enum { SETTLE_MS = 100, END_MS = 1000, FILES = 2 };

struct set {
    char *name, *value;
};
struct reload {
    struct reload_opts o;
    pthread_t thread;
    int wake, done, watch; /* event descriptors; of inotify, -1 = none */
    int dirs[FILES];       /* what inotify calls the folder of each file */
    pthread_mutex_t lock;  /* of what follows */
    bool asked, stop;
    ARR(struct set) sets;
    struct settings *ready;
};

static void ring(int fd)
{
    const uint64_t one = 1;
    if (write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        log_warn("reload: cannot wake: %s", strerror(errno));
}

static void hush(int fd)
{
    uint64_t n;
    while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
        ;
}

/* --- its files ------------------------------------------------------------------------ */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The folder, for an editor may put another file in the place of the old one. */
static void watch_files(struct reload *r)
{
    r->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    for (int i = 0; i < FILES; i++) {
        const char *path = r->o.files[i];
        r->dirs[i] = -1;
        if (!path || r->watch < 0)
            continue;
        size_t n = (size_t)(base_of(path) - path);
        char *dir = n > 1 ? xstrndup(path, n - 1) : xstrdup(n ? "/" : ".");
        r->dirs[i] = inotify_add_watch(r->watch, dir, IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE);
        free(dir); /* a folder that is not there yet: ':reload' is for that */
    }
}

/* Was one of the files among what happened? */
static bool files_changed(struct reload *r)
{
    union {
        struct inotify_event first;
        char room[4096];
    } u;
    bool ours = false;
    ssize_t n;
    while (r->watch >= 0 && (n = read(r->watch, u.room, sizeof(u.room))) > 0)
        for (char *p = u.room; p < u.room + n;) {
            const struct inotify_event *e = (const void *)p;
            for (int i = 0; i < FILES && e->len; i++)
                ours |= r->dirs[i] == e->wd && str_eq(e->name, base_of(r->o.files[i]));
            p += sizeof(*e) + e->len;
        }
    return ours;
}

/* --- the thread ------------------------------------------------------------------------- */

static void apply_sets(struct reload *r, struct config *c)
{
    struct err e = {0};
    for (size_t i = 0; i < r->sets.n;) {
        struct set *s = &r->sets.v[i];
        if (config_set(c, s->name, s->value, OPT_FLAG, &e) == 0) {
            i++;
            continue;
        }
        config_note(c, "%s", e.text);
        free(s->name);
        free(s->value);
        ARR_REMOVE(&r->sets, i);
    }
}

static void read_theme(struct reload *r, struct settings *s)
{
    struct err e = {0};
    if (str_eq(s->config.o.theme, "auto"))
        return;
    int rc = theme_load(&s->theme, s->config.o.theme, r->o.config_dir, &e);
    if (rc)
        config_note(&s->config, "%s", e.text);
    if (rc == ERR_NOTFOUND)
        s->theme.name[0] = 0; /* the one that is shown stays */
}

void settings_free(struct settings *s)
{
    if (!s)
        return;
    config_release(&s->config);
    free(s);
}

static void load(struct reload *r)
{
    struct settings *s = xcalloc(1, sizeof(*s)), *old;
    r->o.load(r->o.ctx, &s->config);
    pthread_mutex_lock(&r->lock);
    apply_sets(r, &s->config);
    pthread_mutex_unlock(&r->lock);
    read_theme(r, s);
    pthread_mutex_lock(&r->lock);
    old = r->ready;
    r->ready = s;
    pthread_mutex_unlock(&r->lock);
    settings_free(old);
    ring(r->done);
}

/* What is to be done now; waits for it. */
static bool next(struct reload *r, bool *stop)
{
    struct pollfd p[2] = {{.fd = r->wake, .events = POLLIN}, {.fd = r->watch, .events = POLLIN}};
    if (poll(p, 2, -1) < 0)
        return false;
    bool changed = files_changed(r);
    while (changed && poll(p, 2, SETTLE_MS) > 0 && !p[0].revents)
        files_changed(r);
    if (p[0].revents)
        hush(r->wake);
    pthread_mutex_lock(&r->lock);
    changed |= r->asked;
    r->asked = false;
    *stop = r->stop;
    pthread_mutex_unlock(&r->lock);
    return changed;
}

static void run(void *arg)
{
    struct reload *r = arg;
    bool stop = false;
    watch_files(r);
    while (!stop)
        if (next(r, &stop) && !stop)
            load(r);
    if (r->watch >= 0)
        close(r->watch);
}

/* --- the main thread's side ---------------------------------------------------------------- */

struct reload *reload_new(const struct reload_opts *o)
{
    struct reload *r = xcalloc(1, sizeof(*r));
    r->o = *o;
    r->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    r->done = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&r->lock, NULL);
    if (r->wake >= 0 && r->done >= 0 &&
        thread_start(&r->thread, THREAD_WORK, "cct-config", run, r) == 0)
        return r;
    log_warn("the configuration is not read again: no thread for it");
    close(r->wake);
    close(r->done);
    free(r);
    return NULL;
}

static void tell(struct reload *r, bool stop)
{
    pthread_mutex_lock(&r->lock);
    r->asked = true;
    r->stop |= stop;
    pthread_mutex_unlock(&r->lock);
    ring(r->wake);
}

void reload_ask(struct reload *r)
{
    if (r)
        tell(r, false);
}

void reload_set(struct reload *r, const char *name, const char *value)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    size_t i = 0;
    while (i < r->sets.n && !str_eq(r->sets.v[i].name, name))
        i++;
    if (i == r->sets.n)
        ARR_PUSH(&r->sets)->name = xstrdup(name);
    free(r->sets.v[i].value);
    r->sets.v[i].value = xstrdup(value);
    pthread_mutex_unlock(&r->lock);
    tell(r, false);
}

int reload_fd(const struct reload *r)
{
    return r ? r->done : -1;
}

struct settings *reload_take(struct reload *r)
{
    struct settings *s;
    if (!r)
        return NULL;
    hush(r->done);
    pthread_mutex_lock(&r->lock);
    s = r->ready;
    r->ready = NULL;
    pthread_mutex_unlock(&r->lock);
    return s;
}

void reload_free(struct reload *r)
{
    if (!r)
        return;
    tell(r, true);
    if (!thread_join_ms(r->thread, END_MS)) { /* the program is about to end; it uses all of it */
        log_warn("what reads the configuration did not end in %d ms: it is left behind", END_MS);
        return;
    }
    settings_free(r->ready);
    for (size_t i = 0; i < r->sets.n; i++) {
        free(r->sets.v[i].name);
        free(r->sets.v[i].value);
    }
    ARR_RELEASE(&r->sets);
    pthread_mutex_destroy(&r->lock);
    close(r->wake);
    close(r->done);
    free(r);
}
