/* Archives for COPY: links that are given out for one upload each, and the files that
 * came through them, STATE/uploads/HASH. */
#include <cct/local/tpl.h>
#include <cct/secrets/digest.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/log.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINK_MS (60 * 60 * 1000)
#define NEW "new-"      /* an upload on its way */
#define LINKS_MAX 1000u /* given out and not used */

char *tpl_upload_path(const struct tpl_store *s, const char *hash)
{
    return xasprintf("%s/uploads/%s", s->p->state_dir, hash);
}

bool tpl_upload_is_there(const struct tpl_store *s, const char *hash)
{
    char *path = tpl_upload_path(s, hash);
    bool is_there = access(path, F_OK) == 0;
    free(path);
    return is_there;
}

/* Links that are too old go, and of too many the oldest. */
static void drop_old_links(struct tpl_store *s)
{
    size_t it = 0;
    const char *key;
    struct tpl_upload *u;
    while ((u = map_next(s->uploads, &it, &key, NULL)) != NULL) {
        if (u->until_ms >= clock_mono_ms() && map_count(s->uploads) < LINKS_MAX)
            break; /* the map is in the order of giving out */
        map_del(s->uploads, key);
        free(u);
    }
}

void tpl_upload_offer(struct tpl_store *s, const char *hash, char *token)
{
    drop_old_links(s);
    struct tpl_upload *u = xcalloc(1, sizeof(*u));
    str_copy(u->hash, sizeof(u->hash), hash);
    u->until_ms = clock_mono_ms() + LINK_MS;
    digest_random_hex(token, TPL_TOKEN_LEN);
    map_put(s->uploads, token, u);
}

bool tpl_upload_take(struct tpl_store *s, const char *token, char *hash)
{
    struct tpl_upload *u = map_del(s->uploads, token);
    bool ok = u && u->until_ms >= clock_mono_ms();
    if (ok)
        memcpy(hash, u->hash, sizeof(u->hash));
    free(u);
    return ok;
}

void tpl_uploads_load(struct tpl_store *s)
{
    char *dir = fs_join(s->p->state_dir, "uploads");
    DIR *d = opendir(dir);
    struct dirent *de;
    while (d && (de = readdir(d)) != NULL)
        if (str_starts(de->d_name, NEW) && unlinkat(dirfd(d), de->d_name, 0) != 0)
            log_warn("cannot remove '%s/%s': %s", dir, de->d_name, strerror(errno));
    if (d)
        closedir(d);
    free(dir);
}

/* --- one archive on its way ------------------------------------------------------ */

struct tpl_inflow {
    struct tpl_store *s;
    char hash[TPL_KEY_LEN + 1];
    char *path;
    int fd;
};

struct tpl_inflow *tpl_inflow_new(struct tpl_store *s, const char *hash, struct err *e)
{
    struct tpl_inflow *f = xcalloc(1, sizeof(*f));
    char id[17];
    rand_id(id, 16);
    f->s = s;
    str_copy(f->hash, sizeof(f->hash), hash);
    f->path = xasprintf("%s/uploads/" NEW "%s", s->p->state_dir, id);
    f->fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (f->fd >= 0)
        return f;
    err_sys(e, 0, "cannot make '%s'", f->path);
    free(f->path);
    free(f);
    return NULL;
}

int tpl_inflow_add(struct tpl_inflow *f, const char *p, size_t len, struct err *e)
{
    if (fs_write_all(f->fd, p, len) != 0)
        return err_sys(e, 0, "cannot write '%s'", f->path);
    return 0;
}

void tpl_inflow_drop(struct tpl_inflow *f)
{
    close(f->fd);
    if (f->path[0])
        unlink(f->path);
    free(f->path);
    free(f);
}

int tpl_inflow_keep(struct tpl_inflow *f, struct err *e)
{
    char *to = tpl_upload_path(f->s, f->hash);
    int rc = 0;
    if (rename(f->path, to) != 0)
        rc = err_sys(e, 0, "cannot keep the upload as '%s'", to);
    if (rc == 0)
        f->path[0] = '\0';
    free(to);
    tpl_inflow_drop(f);
    return rc;
}
