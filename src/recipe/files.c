/* The files of a COPY: what E2B's SDK counts, what goes, and the hash. */
#include "files_priv.h"

#include <cct/secrets/digest.h>
#include <cct/util/fs.h>
#include <cct/util/map.h>
#include <cct/util/utf8.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 200 };

struct pattern {
    char **segs;
    bool children; /* ends in "**" */
};
struct find {
    struct recipe_files *f;
    const char *folder;
    const struct recipe_ignore *ignore;
    ARR(struct pattern) patterns; /* the same, as the SDK's globs read them */
    struct map *at;               /* path -> index + 1 */
    struct inside in;
    const bool *stop;
    bool has_back;                /* something is brought back by "!" */
    bool met;                     /* the name stands for something */
    int depth;
    struct err *e;
};

static char *full_path(const char *folder, const char *path)
{
    return *path ? fs_join(folder, path) : xstrdup(folder);
}

/* The entry of a path, made when it is new; NULL with *e. */
static struct recipe_file *entry(struct find *w, const char *path)
{
    uintptr_t at = (uintptr_t)map_get(w->at, path);
    struct recipe_file *v;
    const char *name;
    struct stat st;
    int dir;

    if (at)
        return &w->f->v.v[at - 1];
    if (!utf8_valid(path, strlen(path))) {
        err_set(w->e, ERR_INVALID, "a file's name is not in UTF-8: \"%.200s\"; rename it", path);
        return NULL;
    }
    if (w->f->v.n >= RECIPE_FILES) {
        err_set(w->e, ERR_LIMIT, "there are more than %d files in \"%.200s\": leave some out by a "
                ".dockerignore", RECIPE_FILES, w->folder);
        return NULL;
    }
    dir = inside_at(&w->in, path, &name, w->e);
    if (dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        err_sys(w->e, 0, "cannot look at \"%.200s\"", path);
        dir = -1;
    }
    if (dir < 0)
        return NULL;
    v = ARR_PUSH(&w->f->v);
    v->path = xstrdup(path);
    v->mode = st.st_mode;
    v->size = st.st_size;
    v->mtime = st.st_mtime > 0 ? st.st_mtime : 0;
    map_put(w->at, path, (void *)(uintptr_t)w->f->v.n);
    return v;
}

/* --- as the SDK counts -------------------------------------------------------------- */

static void take_pattern(struct find *w, const char *text)
{
    struct pattern p = {NULL, false};
    size_t n = 0;

    w->has_back |= *text == '!';
    if (*text == '/') /* means the whole machine there */
        return;
    p.segs = glob_split(text, true);
    while (p.segs[n])
        n++;
    if (!n) {
        docker_words_free(p.segs);
        return;
    }
    p.children = str_eq(p.segs[n - 1], "**");
    *ARR_PUSH(&w->patterns) = p;
}

/* By the path, or by the path with a / behind it. */
static bool is_ignored(const struct find *w, const char *path, bool children)
{
    char *slashed, **segs;
    bool yes = false;
    size_t n = 0;

    if (!*path)
        return false;
    slashed = xasprintf("%s/", path);
    segs = glob_split(slashed, true);
    while (segs[n])
        n++;
    for (size_t i = 0; i < w->patterns.n && !yes; i++) {
        const struct pattern *p = &w->patterns.v[i];

        if (children && !p->children)
            continue;
        yes = glob_match(p->segs, segs);
        if (!yes && !children && n) {
            char *last = segs[n - 1];

            segs[n - 1] = NULL;
            yes = glob_match(p->segs, segs);
            segs[n - 1] = last;
        }
    }
    docker_words_free(segs);
    free(slashed);
    return yes;
}

static bool skip(void *ctx, const char *dir)
{
    return is_ignored(ctx, dir, true);
}

/* The SDK looks through a link wherever it leads. */
static int count(void *ctx, const char *path, bool is_dir)
{
    struct find *w = ctx;
    struct recipe_file *v;

    (void)is_dir;
    if (is_ignored(w, path, false))
        return 0;
    v = entry(w, path);
    if (!v && w->e->code == ERR_PERM) { /* it does not go, so it is not read either */
        err_clear(w->e);
        return 0;
    }
    if (!v)
        return w->e->code;
    v->counted = true;
    return 0;
}

/* A folder counts with all that is below it. */
static int count_named(void *ctx, const char *path, bool is_dir)
{
    struct find *w = ctx;
    struct glob_ops ops = {skip, count, w, w->stop};
    char *all;
    int rc;

    if (is_ignored(w, path, false))
        return 0;
    rc = count(ctx, path, is_dir);
    if (rc || !is_dir)
        return rc;
    all = *path ? xasprintf("%s/**/*", path) : xstrdup("**/*");
    rc = glob_each(w->folder, all, &ops);
    free(all);
    return rc;
}

/* --- as Docker sends ------------------------------------------------------------------ */

static int send_below(struct find *w, const char *dir);

static int send_entry(struct find *w, const char *path)
{
    bool out = recipe_ignores(w->ignore, path);
    struct recipe_file *v;
    char *full;
    struct stat st;
    int rc;

    if (out && !w->has_back)
        return 0;
    full = full_path(w->folder, path);
    rc = lstat(full, &st);
    free(full);
    if (rc != 0) /* it went meanwhile */
        return 0;
    if (w->stop && __atomic_load_n(w->stop, __ATOMIC_RELAXED))
        return ERR_CANCELLED;
    if (!out && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode))) {
        v = entry(w, path);
        if (!v)
            return w->e->code;
        if (v->sent) /* and all that is below it */
            return 0;
        w->f->bytes += S_ISREG(v->mode) ? v->size : 0;
        v->sent = true;
    }
    return S_ISDIR(st.st_mode) ? send_below(w, path) : 0;
}

static int send_below(struct find *w, const char *dir)
{
    char *full = full_path(w->folder, dir);
    DIR *d = opendir(full);
    struct dirent *de;
    int rc = 0;

    if (!d)
        rc = err_sys(w->e, 0, "cannot read the folder \"%.200s\"", full);
    free(full);
    if (rc == 0 && ++w->depth > DEPTH)
        rc = err_set(w->e, ERR_LIMIT, "there are folders in folders more than %d deep in \"%.200s\"",
                     DEPTH, w->folder);
    while (rc == 0 && (de = readdir(d)) != NULL) {
        char *path;

        if (str_eq(de->d_name, ".") || str_eq(de->d_name, ".."))
            continue;
        path = *dir ? fs_join(dir, de->d_name) : xstrdup(de->d_name);
        rc = send_entry(w, path);
        free(path);
    }
    w->depth--;
    if (d)
        closedir(d);
    return rc;
}

static int send_named(void *ctx, const char *path, bool is_dir)
{
    struct find *w = ctx;

    (void)is_dir;
    w->met = true;
    return send_entry(w, path);
}

/* --- together ---------------------------------------------------------------------------- */

/* The order of JavaScript's strings: by units of 16 bits, so that characters of two of them
 * (from U+10000 on) stand in front of U+E000. */
static int by_units(const void *pa, const void *pb)
{
    const unsigned char *a = (const unsigned char *)((const struct recipe_file *)pa)->path;
    const unsigned char *b = (const unsigned char *)((const struct recipe_file *)pb)->path;

    while (*a && *a == *b)
        a++, b++;
    if (*a >= 0xEE && *b >= 0xEE && (*a >= 0xF0) != (*b >= 0xF0))
        return *a >= 0xF0 ? -1 : 1;
    return *a - *b;
}

int recipe_files_find(struct recipe_files *f, const char *folder, const char *src,
                      const struct recipe_ignore *g, const bool *stop, struct err *e)
{
    struct err own = {0};
    struct find w = {.f = f, .folder = folder, .ignore = g, .stop = stop, .e = e ? e : &own};
    struct glob_ops counted = {skip, count_named, &w, stop}, sent = {NULL, send_named, &w, stop};
    size_t n_sent = 0;
    int rc;

    if (inside_begin(&w.in, folder, w.e) != 0)
        return w.e->code;
    w.at = map_new();
    for (size_t i = 0; i < g->v.n; i++)
        take_pattern(&w, g->v.v[i].text);
    rc = glob_each(folder, src, &sent);
    if (rc == 0)
        rc = glob_each(folder, src, &counted);
    if (rc == ERR_CANCELLED)
        err_set(w.e, ERR_CANCELLED, "called off");
    for (size_t i = 0; i < f->v.n; i++)
        n_sent += f->v.v[i].sent;
    if (rc == 0 && !n_sent)
        rc = err_set(w.e, ERR_NOTFOUND, w.met ? "all that \"%.100s\" names in \"%.200s\" is left "
                     "out by .dockerignore" : "there is no \"%.100s\" in \"%.200s\"", src, folder);
    if (rc == 0)
        qsort(f->v.v, f->v.n, sizeof(*f->v.v), by_units);
    map_free(w.at, NULL);
    inside_end(&w.in);
    for (size_t i = 0; i < w.patterns.n; i++)
        docker_words_free(w.patterns.v[i].segs);
    ARR_RELEASE(&w.patterns);
    return rc;
}

void recipe_files_release(struct recipe_files *f)
{
    for (size_t i = 0; i < f->v.n; i++)
        free(f->v.v[i].path);
    ARR_RELEASE(&f->v);
    f->bytes = 0;
}

/* --- the hash -------------------------------------------------------------------------- */

static void add_number(struct digest_stream *d, uint64_t n)
{
    char *text = xasprintf("%llu", (unsigned long long)n);

    digest_stream_add(d, text, strlen(text));
    free(text);
}

static int add_content(struct digest_stream *d, struct inside *in, const char *path,
                       const bool *stop, struct err *e)
{
    static const size_t size = 256 << 10;
    int fd = inside_open(in, path, e), rc = 0;
    char *piece;
    ssize_t n;

    if (fd < 0)
        return e->code;
    piece = xmalloc(size);
    while (rc == 0 && (n = read(fd, piece, size)) != 0) {
        if (n < 0 && errno != EINTR)
            rc = err_sys(e, 0, "cannot read \"%.200s\"", path);
        else if (n > 0)
            digest_stream_add(d, piece, (size_t)n);
        if (stop && __atomic_load_n(stop, __ATOMIC_RELAXED))
            rc = err_set(e, ERR_CANCELLED, "called off");
    }
    free(piece);
    close(fd);
    return rc;
}

static int add_link(struct digest_stream *d, struct inside *in, const char *path, struct err *e)
{
    char target[4097];
    int n = inside_link(in, path, target, sizeof(target), e);

    if (n < 0)
        return e->code;
    digest_stream_add(d, target, (size_t)n);
    return 0;
}

static int add_file(struct digest_stream *d, struct inside *in, const struct recipe_file *v,
                    const bool *stop, struct err *e)
{
    digest_stream_add(d, v->path, strlen(v->path));
    add_number(d, v->mode);
    add_number(d, (uint64_t)v->size);
    if (S_ISLNK(v->mode))
        return add_link(d, in, v->path, e);
    return S_ISREG(v->mode) ? add_content(d, in, v->path, stop, e) : 0;
}

static int hash_of(const struct recipe_files *f, const char *folder, const char *head, bool sent,
                   char hash[65], const bool *stop, struct err *e)
{
    struct digest_stream *d;
    unsigned char sum[32];
    struct inside in;
    int rc = inside_begin(&in, folder, e);

    if (rc != 0)
        return rc;
    d = digest_stream_new();
    digest_stream_add(d, head, strlen(head));
    for (size_t i = 0; i < f->v.n && rc == 0; i++)
        if (sent ? f->v.v[i].sent : f->v.v[i].counted)
            rc = add_file(d, &in, &f->v.v[i], stop, e);
    inside_end(&in);
    digest_stream_end(d, sum);
    hex_encode(hash, sum, sizeof(sum));
    return rc;
}

int recipe_files_hash(const struct recipe_files *f, const char *folder, const char *src,
                      const char *dest, char hash[65], const bool *stop, struct err *e)
{
    char *head = xasprintf("COPY %s %s", src, dest);
    struct err why = {0};
    bool sent = false;
    int rc = 0;

    for (size_t i = 0; i < f->v.n; i++)
        sent |= f->v.v[i].sent && !f->v.v[i].counted && !S_ISDIR(f->v.v[i].mode);
    if (!sent)
        rc = hash_of(f, folder, head, false, hash, stop, &why);
    /* what does not go need not be readable */
    if (sent || (rc && rc != ERR_CANCELLED))
        rc = hash_of(f, folder, head, true, hash, stop, &why);
    free(head);
    if (rc && e)
        *e = why;
    return rc;
}
