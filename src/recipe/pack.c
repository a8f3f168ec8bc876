/* The archive of a COPY: pax tar, gzip. Names and links of any length; owners are left out. */
#include "files_priv.h"

#include <cct/util/fs.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 512, PIECE = 256 << 10 };

struct pack {
    z_stream z;
    struct inside in;
    const bool *stop;
    char *piece, *packed; /* read, and to be written */
    int out;
    uint64_t len;         /* written */
    struct err *e;
};

static bool is_stopped(const struct pack *p)
{
    return p->stop && __atomic_load_n(p->stop, __ATOMIC_RELAXED);
}

/* --- gzip ------------------------------------------------------------------------- */

static int write_out(struct pack *p, size_t len)
{
    p->len += len;
    if (p->len > RECIPE_ARCHIVE_BYTES)
        return err_set(p->e, ERR_LIMIT, "the files of a COPY are too large: more than %llu MiB "
                       "packed; leave some out by a .dockerignore", RECIPE_ARCHIVE_BYTES >> 20);
    if (fs_write_all(p->out, p->packed, len) == 0)
        return 0;
    return errno == ENOSPC || errno == EDQUOT
               ? err_set(p->e, ERR_IO, "cannot pack the files: the disk is full; make room, or set "
                         "XDG_CACHE_HOME to where there is some")
               : err_sys(p->e, ERR_IO, "cannot write the packed files");
}

static int deflate_all(struct pack *p, const void *data, size_t len, int flush)
{
    int rc, wrote = 0;

    p->z.next_in = (Bytef *)(uintptr_t)data;
    p->z.avail_in = (uInt)len;
    do {
        p->z.next_out = (Bytef *)p->packed;
        p->z.avail_out = PIECE;
        rc = deflate(&p->z, flush);
        if (p->z.avail_out < PIECE)
            wrote = write_out(p, PIECE - p->z.avail_out);
    } while (p->z.avail_out == 0 && rc != Z_STREAM_END && wrote == 0);
    if (wrote != 0)
        return wrote;
    return rc == Z_OK || rc == Z_BUF_ERROR || rc == Z_STREAM_END
               ? 0
               : err_set(p->e, ERR_BUG, "cannot pack the files: zlib says %d", rc);
}

static int put(struct pack *p, const void *data, size_t len)
{
    return deflate_all(p, data, len, Z_NO_FLUSH);
}

static int put_padding(struct pack *p, int64_t size)
{
    static const char zero[BLOCK];

    return put(p, zero, (size_t)((BLOCK - size % BLOCK) % BLOCK));
}

/* --- tar -------------------------------------------------------------------------- */

struct head {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100],
        magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct head) == BLOCK, "a header is one block");

static void put_text(char *field, size_t size, const char *text)
{
    size_t n = strlen(text);

    memcpy(field, text, n < size ? n : size);
}

static int put_head(struct pack *p, const char *name, unsigned mode, int64_t size,
                    int64_t mtime, char type, const char *link)
{
    struct head h;
    char sum_text[16];
    unsigned sum = 0;

    memset(&h, 0, sizeof(h));
    put_text(h.name, sizeof(h.name), name);
    put_text(h.link, sizeof(h.link), link);
    snprintf(h.mode, sizeof(h.mode), "%07o", mode & 07777);
    memcpy(h.uid, "0000000", 8);
    memcpy(h.gid, "0000000", 8);
    snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)size & 077777777777ull);
    snprintf(h.mtime, sizeof(h.mtime), "%011llo", (unsigned long long)mtime & 077777777777ull);
    h.type = type;
    memcpy(h.magic, "ustar", 6);
    memcpy(h.version, "00", 2);
    memset(h.sum, ' ', sizeof(h.sum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += ((const unsigned char *)&h)[i];
    snprintf(sum_text, sizeof(sum_text), "%06o", sum);
    memcpy(h.sum, sum_text, 7);
    return put(p, &h, sizeof(h));
}

/* "LEN key=value\n", whose length counts itself. */
static void pax_line(struct buf *b, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, len = rest, digits = 0;

    for (size_t before = 1; before != digits;) {
        before = digits;
        digits = 0;
        for (size_t n = rest + before; n; n /= 10)
            digits++;
        len = rest + digits;
    }
    buf_addf(b, "%zu %s=%s\n", len, key, value);
}

/* What does not fit into the old header, in front of it. */
static int put_pax(struct pack *p, const char *name, const char *link, int64_t size)
{
    struct buf b = BUF_INIT;
    int rc = 0;

    if (strlen(name) > 100)
        pax_line(&b, "path", name);
    if (strlen(link) > 100)
        pax_line(&b, "linkpath", link);
    if (size > 077777777777ll) {
        char *text = xasprintf("%lld", (long long)size);

        pax_line(&b, "size", text);
        free(text);
    }
    if (b.len) {
        rc = put_head(p, "PaxHeader", 0644, (int64_t)b.len, 0, 'x', "");
        if (rc == 0)
            rc = put(p, b.p, b.len);
        if (rc == 0)
            rc = put_padding(p, (int64_t)b.len);
    }
    buf_release(&b);
    return rc;
}

/* --- entries ---------------------------------------------------------------------- */

static int put_content(struct pack *p, const char *path, int64_t size)
{
    int fd = inside_open(&p->in, path, p->e), rc = 0;
    int64_t left = size;

    if (fd < 0)
        return p->e->code;
    while (rc == 0 && left > 0) {
        ssize_t n = read(fd, p->piece, left < PIECE ? (size_t)left : PIECE);

        if (is_stopped(p))
            rc = err_set(p->e, ERR_CANCELLED, "called off");
        else if (n < 0 && errno == EINTR)
            continue;
        else if (n <= 0)
            rc = err_set(p->e, ERR_IO, "cannot read \"%.200s\": %s", path,
                         n < 0 ? strerror(errno) : "it became shorter meanwhile; build again");
        else
            rc = put(p, p->piece, (size_t)n);
        left -= n > 0 ? n : 0;
    }
    close(fd);
    return rc ? rc : put_padding(p, size);
}

static int put_link(struct pack *p, const struct recipe_file *f)
{
    char target[4097];
    int rc;

    if (inside_link(&p->in, f->path, target, sizeof(target), p->e) < 0)
        return p->e->code;
    rc = put_pax(p, f->path, target, 0);
    return rc ? rc : put_head(p, f->path, 0777, 0, f->mtime, '2', target);
}

static int put_folder(struct pack *p, const struct recipe_file *f)
{
    char *name = xasprintf("%s/", f->path);
    int rc = put_pax(p, name, "", 0);

    if (rc == 0)
        rc = put_head(p, name, f->mode, 0, f->mtime, '5', "");
    free(name);
    return rc;
}

static int put_entry(struct pack *p, const struct recipe_file *f)
{
    int rc;

    if (S_ISDIR(f->mode))
        return put_folder(p, f);
    if (S_ISLNK(f->mode))
        return put_link(p, f);
    rc = put_pax(p, f->path, "", f->size);
    if (rc == 0)
        rc = put_head(p, f->path, f->mode, f->size, f->mtime, '0', "");
    return rc ? rc : put_content(p, f->path, f->size);
}

int recipe_files_pack(const struct recipe_files *f, const char *folder, int out, uint64_t *len,
                      const bool *stop, struct err *e)
{
    static const char end[2 * BLOCK];
    struct err own = {0};
    struct pack p = {.out = out, .stop = stop, .e = e ? e : &own};
    int rc = inside_begin(&p.in, folder, p.e);

    if (rc != 0)
        return rc;
    if (deflateInit2(&p.z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        rc = err_set(p.e, ERR_BUG, "cannot pack the files: zlib does not start");
    p.piece = xmalloc(PIECE);
    p.packed = xmalloc(PIECE);
    for (size_t i = 0; i < f->v.n && rc == 0; i++)
        if (is_stopped(&p))
            rc = err_set(p.e, ERR_CANCELLED, "called off");
        else if (f->v.v[i].sent && *f->v.v[i].path) /* the folder itself is the service's */
            rc = put_entry(&p, &f->v.v[i]);
    if (rc == 0)
        rc = put(&p, end, sizeof(end));
    if (rc == 0)
        rc = deflate_all(&p, "", 0, Z_FINISH);
    deflateEnd(&p.z);
    inside_end(&p.in);
    free(p.piece);
    free(p.packed);
    *len = p.len;
    return rc;
}
