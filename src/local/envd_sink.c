/* Files are written under a temporary name beside their place and then renamed: a
 * reader never sees half of one, and a full disk leaves the old one. */
#include "envd_sink.h"
#include <cct/local/fs_meta.h>
#include <cct/local/fs_root.h>
#include <cct/util/fs.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define INFLATE_OUT (32u << 10)

static void sink_release(struct sink *s)
{
    int saved = errno;
    if (s->z)
        inflateEnd(s->z);
    if (s->name) {
        close(s->fd);
        close(s->dir);
    }
    free(s->z);
    free(s->name);
    memset(s, 0, sizeof(*s));
    errno = saved;
}

void sink_discard(struct sink *s)
{
    int saved = errno;
    if (s->name)
        unlinkat(s->dir, s->tmp, 0);
    errno = saved;
    sink_release(s);
}

int sink_open(struct sink *s, const struct fs_root *root, const char *path, mode_t mode,
              bool gzip, uint64_t max)
{
    const char *name;
    memset(s, 0, sizeof(*s));
    if (fs_root_make_dirs(root, path, false) != 0)
        return -1;
    s->dir = fs_root_parent(root, path, &name);
    if (s->dir < 0)
        return -1;
    s->fd = fs_temp_open(s->dir, mode != 0, s->tmp, sizeof(s->tmp));
    if (s->fd < 0) {
        int saved = errno;
        close(s->dir);
        errno = saved;
        return -1;
    }
    s->name = xstrdup(name);
    s->mode = mode != 0 ? mode : 0644;
    s->max = max;
    if (gzip) {
        s->z = xcalloc(1, sizeof(*s->z));
        if (inflateInit2(s->z, 15 + 16) != Z_OK) {
            errno = ENOMEM;
            sink_discard(s);
            return -1;
        }
    }
    return 0;
}

static int write_all(struct sink *s, const void *data, size_t len)
{
    if (len > s->max - s->written) {
        errno = EFBIG;
        return -1;
    }
    s->written += len;
    return fs_write_all(s->fd, data, len);
}

static int write_inflated(struct sink *s, const char *p, size_t len)
{
    unsigned char out[INFLATE_OUT];
    s->z->next_in = (Bytef *)(uintptr_t)p;
    s->z->avail_in = (uInt)len;
    do {
        /* several members may come in a row */
        int rc = s->z_ended ? inflateReset(s->z) : Z_OK;
        s->z->next_out = out;
        s->z->avail_out = sizeof(out);
        if (rc == Z_OK)
            rc = inflate(s->z, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
            errno = rc == Z_MEM_ERROR ? ENOMEM : EBADMSG;
            return -1;
        }
        s->z_ended = rc == Z_STREAM_END;
        if (write_all(s, out, sizeof(out) - s->z->avail_out) != 0)
            return -1;
    } while (s->z->avail_in > 0 || (s->z->avail_out == 0 && !s->z_ended));
    return 0;
}

int sink_write(struct sink *s, const char *p, size_t len)
{
    if (len == 0)
        return 0;
    return s->z ? write_inflated(s, p, len) : write_all(s, p, len);
}

int sink_commit(struct sink *s, const struct fs_meta *meta, bool *kept)
{
    int rc = -1;
    *kept = true;
    if (s->z && !s->z_ended) {
        errno = EBADMSG;
    } else {
        rc = fs_meta_write(s->fd, meta);
        if (rc != 0 && errno == ENOTSUP) {
            *kept = false;
            rc = 0;
        }
    }
    if (rc == 0 && fchmod(s->fd, s->mode) != 0)
        rc = -1;
    if (rc == 0)
        rc = renameat(s->dir, s->tmp, s->dir, s->name);
    if (rc == 0)
        sink_release(s);
    else
        sink_discard(s);
    return rc;
}
