/* Layers and uploads on disk. A layer is STATE/layers/NAME/{root,work}; it counts once
 * the file `key` lies beside them, which is written last. What has no key is rubbish
 * of a build that did not get there. */
#include <cct/local/ns.h>
#include <cct/local/tpl.h>
#include <cct/util/fs.h>
#include <cct/util/log.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UPLOAD_KEPT_S (7 * 24 * 3600)
#define COPY_PIECE (8u << 20) /* the loop waits for each */

static char *layer_path(const struct tpl_store *s, const char *name, const char *sub)
{
    return xasprintf("%s/layers/%s%s", s->p->state_dir, name, sub);
}

/* --- removal -------------------------------------------------------------------- */

/* Everything that somebody may still mount. */
static struct map *used_layers(const struct tpl_store *s)
{
    struct map *used = map_new();
    size_t it = 0;
    struct tpl *t;
    while ((t = map_next(s->by_id, &it, NULL, NULL)) != NULL)
        for (size_t i = 0; i < t->builds.n; i++) {
            const struct tpl_image *m = &t->builds.v[i]->image;
            for (size_t k = 0; k < m->n_layers; k++)
                map_put(used, m->layers[k], t);
        }
    return used;
}

static void forget_keys(struct tpl_store *s, const char *name)
{
    size_t it = 0;
    char *layer;
    const char *key;
    while ((layer = map_next(s->layers, &it, &key, NULL)) != NULL)
        if (strcmp(layer, name) == 0) {
            map_del(s->layers, key);
            free(layer);
        }
}

/* It is kept for a template that could not be read: sandboxes may run on it, and the
 * template may be mended. */
static bool is_kept(const struct tpl_store *s, const char *name)
{
    char *key = s->is_partial ? layer_path(s, name, "/key") : NULL;
    bool kept = key && access(key, F_OK) == 0;
    free(key);
    return kept;
}

/* Names below STATE/layers that are not in `used`, as paths. */
static void collect(struct tpl_store *s, struct map *used, char ***paths, size_t *n)
{
    char *dir = fs_join(s->p->state_dir, "layers");
    DIR *d = opendir(dir);
    struct dirent *de;
    while (d && (de = readdir(d)) != NULL) {
        if (!tpl_layer_name_ok(de->d_name) || map_get(used, de->d_name) ||
            tpl_layer_in_work(s, de->d_name) || is_kept(s, de->d_name))
            continue;
        forget_keys(s, de->d_name);
        *paths = xrealloc(*paths, (*n + 1) * sizeof(**paths));
        (*paths)[(*n)++] = fs_join(dir, de->d_name);
    }
    if (d)
        closedir(d);
    free(dir);
}

/* In the child: uploads that were not used for long. */
static void remove_old_uploads(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *de;
    struct stat st;
    while (d && (de = readdir(d)) != NULL)
        if (fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode) && st.st_mtime + UPLOAD_KEPT_S < time(NULL))
            unlinkat(dirfd(d), de->d_name, 0);
    if (d)
        closedir(d);
}

void tpl_layers_sweep(struct tpl_store *s)
{
    char **paths = NULL;
    size_t n = 0;
    s->sweep_due = false;
    struct map *used = used_layers(s);
    collect(s, used, &paths, &n);
    map_free(used, NULL);
    char *uploads = fs_join(s->p->state_dir, "uploads");
    if (provider_fork() == 0) {
        remove_old_uploads(uploads);
        for (size_t i = 0; i < n; i++) {
            char *key = fs_join(paths[i], "key");
            unlink(key); /* first: what is left is then only rubbish */
            boxstore_remove_tree(paths[i], NULL);
            free(key);
        }
        _exit(0);
    }
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
    free(uploads);
}

/* --- layers ----------------------------------------------------------------------- */

static void load_key(struct tpl_store *s, const char *name, struct map *times)
{
    char *path = layer_path(s, name, "/key");
    size_t len = 0;
    struct stat st;
    char *key = fs_read(path, 256, true, &len, NULL);
    if (key && tpl_hash_ok(key) && stat(path, &st) == 0) {
        int64_t *at = map_get(times, key);
        if (!at) {
            at = xcalloc(1, sizeof(*at));
            map_put(times, key, at);
        }
        if (st.st_mtime >= *at) { /* of two the newer one: it was forced */
            *at = st.st_mtime;
            free(map_put(s->layers, key, xstrdup(name)));
        }
    }
    free(key);
    free(path);
}

void tpl_layers_load(struct tpl_store *s)
{
    struct map *times = map_new();
    char *dir = fs_join(s->p->state_dir, "layers");
    DIR *d = opendir(dir);
    struct dirent *de;
    while (d && (de = readdir(d)) != NULL)
        if (tpl_layer_name_ok(de->d_name))
            load_key(s, de->d_name, times);
    if (d)
        closedir(d);
    free(dir);
    map_free(times, free);
}

int tpl_layer_new(struct tpl_store *s, char *name, struct err *e)
{
    unsigned char r[TPL_LAYER_LEN / 2];
    rand_bytes(r, sizeof(r));
    hex_encode(name, r, sizeof(r));
    char *path = layer_path(s, name, "");
    int rc = 0;
    if (mkdir(path, 0700) != 0)
        rc = err_sys(e, 0, "cannot make '%s'", path);
    else
        rc = ns_layer_make(path, e);
    if (rc != 0)
        provider_remove_tree(path);
    free(path);
    return rc;
}

static int make_copy_folder(const char *path, struct err *e)
{
    const struct ns_ids *ids = ns_ids();
    if (mkdir(path, 0755) != 0 || (geteuid() == 0 && chown(path, ids->uid, ids->gid) != 0))
        return err_sys(e, 0, "cannot make '%s'", path);
    return 0;
}

int tpl_copy_open(struct tpl_copy *c, struct tpl_store *s, const char *name, const char *hash,
                  struct err *e)
{
    static const char *const sub[] = {"/root/" TPL_COPY_DIR, "/root/" TPL_COPY_DIR "/tree"};
    const struct ns_ids *ids = ns_ids();
    int rc = 0;
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        char *path = layer_path(s, name, sub[i]);
        rc = make_copy_folder(path, e);
        free(path);
    }
    if (rc != 0)
        return rc;
    char *from = tpl_upload_path(s, hash);
    char *to = layer_path(s, name, "/root/" TPL_COPY_DIR "/files.tar");
    c->from = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    c->to = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (c->from < 0 || c->to < 0 ||
        (geteuid() == 0 && fchown(c->to, ids->uid, ids->gid) != 0)) {
        rc = err_sys(e, 0, "cannot put the uploaded files into the layer");
        tpl_copy_close(c);
    } else {
        utimensat(AT_FDCWD, from, NULL, 0); /* used again: it is kept longer */
    }
    free(to);
    free(from);
    return rc;
}

int tpl_copy_more(struct tpl_copy *c, struct err *e)
{
    ssize_t n = copy_file_range(c->from, NULL, c->to, NULL, COPY_PIECE, 0);
    if (n < 0 && errno == EINTR)
        return 1;
    if (n < 0)
        return err_sys(e, 0, "cannot copy the uploaded files into the layer");
    return n > 0;
}

void tpl_copy_close(struct tpl_copy *c)
{
    if (c->from >= 0)
        close(c->from);
    if (c->to >= 0)
        close(c->to);
    c->from = c->to = -1;
}

int tpl_layer_publish(struct tpl_store *s, const char *name, const char *key, struct err *e)
{
    char *path = layer_path(s, name, "/key");
    int rc = fs_write_private(path, key, strlen(key), e);
    if (rc == 0)
        free(map_put(s->layers, key, xstrdup(name)));
    free(path);
    return rc;
}
