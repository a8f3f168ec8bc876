/* Files are written under a temporary name beside their place and then renamed: a
 * reader never sees half of one, and a full disk leaves the old one. */
#include "envd_sink.h"
#include "envd.h"
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
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
    if (s->tmp)
        close(s->fd);
    free(s->z);
    free(s->tmp);
    free(s->path);
    memset(s, 0, sizeof(*s));
    errno = saved;
}

void sink_discard(struct sink *s)
{
    int saved = errno;
    if (s->tmp)
        unlink(s->tmp);
    errno = saved;
    sink_release(s);
}

int sink_open(struct sink *s, const char *path, mode_t mode, bool gzip, uint64_t max)
{
    const char *slash = strrchr(path, '/');
    memset(s, 0, sizeof(*s));
    if (envd_fs_make_parents(path) != 0)
        return -1;
    char *tmp =
        xasprintf("%.*s/" SINK_TMP_PREFIX "XXXXXX", slash ? (int)(slash - path) : 0, path);
    s->fd = mkostemp(tmp, O_CLOEXEC);
    if (s->fd < 0) {
        int saved = errno;
        free(tmp);
        errno = saved;
        return -1;
    }
    s->tmp = tmp;
    s->path = xstrdup(path);
    s->mode = mode;
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
    const char *p = data;
    if (len > s->max - s->written) {
        errno = EFBIG;
        return -1;
    }
    s->written += len;
    while (len > 0) {
        ssize_t n = write(s->fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
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

int sink_commit(struct sink *s)
{
    int rc = -1;
    if (s->z && !s->z_ended)
        errno = EBADMSG;
    else if (fchmod(s->fd, s->mode) == 0)
        rc = rename(s->tmp, s->path);
    if (rc == 0)
        sink_release(s);
    else
        sink_discard(s);
    return rc;
}
