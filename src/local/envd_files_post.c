/* POST /files: a raw body or a multipart form. Each file is written under a
 * temporary name beside its place and then renamed, so a reader never sees half
 * of it and a full disk leaves the old one. */
#include "envd.h"
#include <cct/local/files_parse.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define PART_HEAD_MAX (16u << 10)
#define WRITE_MAX (1u << 20)    /* bytes handed to one write() */
#define GUNZIP_MAX (4ull << 30) /* a small body must not fill the disk */

struct upload {
    struct envd *e;
    struct buf answer;
    struct jw w;
    int status; /* 0 = fine so far */
    size_t stored;
    char error[1400];
};

static void fail(struct upload *u, int status, const char *what, const char *name, int err)
{
    u->status = status != 0                     ? status
                : err == ENOSPC                 ? 507
                : err == EDQUOT || err == EFBIG ? 507
                : err == EISDIR                 ? 400
                : err == ENOTDIR                ? 400
                : err == ENAMETOOLONG           ? 400
                : err == EACCES                 ? 403
                : err == EPERM                  ? 403
                : err == EROFS                  ? 403
                                                : 500;
    snprintf(u->error, sizeof(u->error), "%s '%.1000s'%s%s", what, name, err != 0 ? ": " : "",
             err != 0 ? strerror(err) : "");
}

/* The next `len` bytes of `in` go to fd as they are; 0 or -1 with errno. */
static int copy_plain(struct evbuffer *in, size_t len, int fd)
{
    while (len > 0) {
        int n = evbuffer_write_atmost(in, fd, (ev_ssize_t)(len < WRITE_MAX ? len : WRITE_MAX));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        len -= (size_t)n;
    }
    return 0;
}

static int write_all(int fd, const unsigned char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* All of `in` through gunzip to fd; 0, or -1 with errno (EBADMSG: no gzip). */
static int copy_gunzip(struct evbuffer *in, int fd)
{
    unsigned char src[16384], dst[32768];
    z_stream z = {0};
    int rc = Z_OK;
    uint64_t total = 0;
    if (inflateInit2(&z, 15 + 16) != Z_OK) {
        errno = ENOMEM;
        return -1;
    }
    errno = 0;
    while (rc == Z_OK && errno == 0) {
        int n = z.avail_in == 0 ? evbuffer_remove(in, src, sizeof(src)) : 0;
        if (n > 0) {
            z.next_in = src;
            z.avail_in = (uInt)n;
        }
        z.next_out = dst;
        z.avail_out = sizeof(dst);
        rc = inflate(&z, Z_NO_FLUSH);
        size_t out = sizeof(dst) - z.avail_out;
        total += out;
        if (total > GUNZIP_MAX)
            errno = EFBIG;
        else if (write_all(fd, dst, out) == 0)
            errno = 0;
        if (rc == Z_STREAM_END && (z.avail_in > 0 || evbuffer_get_length(in) > 0))
            rc = inflateReset(&z); /* gzip allows several members in a row */
    }
    inflateEnd(&z);
    if (errno == 0 && rc != Z_STREAM_END)
        errno = EBADMSG;
    return errno == 0 ? 0 : -1;
}

/* Where the bytes go: the path itself, or what a link there leads to. Sets the
 * mode the file shall have; NULL when something else than a file is there. */
static char *place(struct upload *u, const char *path, mode_t *mode)
{
    struct stat st;
    *mode = 0644;
    if (stat(path, &st) != 0)
        return xstrdup(path);
    if (!S_ISREG(st.st_mode)) {
        fail(u, 400,
             S_ISDIR(st.st_mode) ? "path is a directory:" : "path is no regular file:", path,
             0);
        return NULL;
    }
    *mode = st.st_mode & 07777;
    char *real = realpath(path, NULL);
    return real != NULL ? real : xstrdup(path);
}

/* Under a temporary name, then the right one; 0 or -1 with errno. */
static int replace(const char *path, mode_t mode, struct evbuffer *in, size_t len, bool gzip)
{
    char *tmp = xasprintf("%s.XXXXXX", path);
    int fd = envd_fs_make_parents(path) == 0 ? mkostemp(tmp, O_CLOEXEC) : -1;
    int rc = -1;
    if (fd >= 0) {
        rc = gzip ? copy_gunzip(in, fd) : copy_plain(in, len, fd);
        if (rc == 0 && (fchmod(fd, mode) != 0 || rename(tmp, path) != 0))
            rc = -1;
    }
    int saved = errno;
    if (fd >= 0) {
        close(fd);
        if (rc != 0)
            unlink(tmp);
    }
    free(tmp);
    errno = saved;
    return rc;
}

static void store(struct upload *u, const char *asked, struct evbuffer *in, size_t len,
                  bool gzip)
{
    mode_t mode;
    char *path = envd_fs_path(u->e, asked);
    char *real = path != NULL ? place(u, path, &mode) : NULL;
    if (path == NULL) {
        fail(u, 400, "no path is given for file", asked != NULL ? asked : "", 0);
    } else if (real != NULL && replace(real, mode, in, len, gzip) != 0) {
        fail(u, errno == EBADMSG ? 400 : 0, "cannot write", path, errno);
    } else if (real != NULL) {
        jw_obj(&u->w, NULL);
        jw_str(&u->w, "path", path);
        jw_str(&u->w, "name", strrchr(path, '/') + 1);
        jw_str(&u->w, "type", "file");
        jw_end(&u->w);
        u->stored++;
    }
    free(real);
    free(path);
}

/* One part: head, then the bytes up to the next delimiter, which is left in
 * place. False when the form is damaged. */
static bool part(struct upload *u, struct evbuffer *in, const char *delim, size_t delim_len,
                 const char *query_path)
{
    struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
    if (end.pos < 0 || end.pos > (ssize_t)PART_HEAD_MAX)
        return false;
    size_t head_len = (size_t)end.pos + 4;
    struct files_part *p = xcalloc(1, sizeof(*p));
    files_part_head((const char *)evbuffer_pullup(in, (ev_ssize_t)head_len), head_len, p);
    /* keep the last CRLF: an empty body starts with the delimiter's own */
    evbuffer_drain(in, head_len - 2);
    struct evbuffer_ptr next = evbuffer_search(in, delim, delim_len, NULL);
    bool ok = next.pos >= 0;
    if (ok) {
        size_t len = next.pos > 0 ? (size_t)next.pos - 2 : 0;
        if (next.pos > 0)
            evbuffer_drain(in, 2);
        if (!str_eq(p->name, "file")) {
            evbuffer_drain(in, len);
        } else if (p->cut) {
            fail(u, 400, "the file's name is too long or damaged:", "", 0);
        } else if (query_path != NULL && u->stored > 0) {
            fail(u, 400, "several files are sent for one path:", query_path, 0);
        } else {
            store(u, query_path != NULL ? query_path : p->filename, in, len, false);
        }
    }
    free(p);
    return ok;
}

static void multipart(struct upload *u, struct evbuffer *in, const char *boundary,
                      const char *query_path)
{
    char delim[80];
    size_t n = (size_t)snprintf(delim, sizeof(delim), "\r\n--%s", boundary);
    evbuffer_prepend(in, "\r\n", 2); /* so that the first delimiter looks like the rest */
    struct evbuffer_ptr at = evbuffer_search(in, delim, n, NULL);
    while (u->status == 0) {
        if (at.pos < 0 || evbuffer_get_length(in) < (size_t)at.pos + n + 2) {
            fail(u, 400, "the multipart form ends without boundary", boundary, 0);
            return;
        }
        evbuffer_drain(in, (size_t)at.pos + n);
        if (memcmp(evbuffer_pullup(in, 2), "--", 2) == 0)
            return;
        if (!part(u, in, delim, n, query_path)) {
            fail(u, 400, "the multipart form is damaged near boundary", boundary, 0);
            return;
        }
        at = evbuffer_search(in, delim, n, NULL);
    }
}

static void body(struct upload *u, struct evhttp_request *req, const char *path)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    const char *type = envd_header(req, "Content-Type");
    const char *coding = envd_header(req, "Content-Encoding");
    bool gzip = coding != NULL && evutil_ascii_strcasecmp(coding, "gzip") == 0;
    char boundary[80];
    if (coding != NULL && !gzip && evutil_ascii_strcasecmp(coding, "identity") != 0)
        fail(u, 415, "only gzip is understood, not", coding, 0);
    else if (connect_type_is(type, "application/octet-stream"))
        store(u, path, in, evbuffer_get_length(in), gzip);
    else if (files_boundary(type, boundary, sizeof(boundary)) && !gzip)
        multipart(u, in, boundary, path);
    else
        fail(u, 415,
             "neither a multipart form nor application/octet-stream:", type != NULL ? type : "",
             0);
}

void envd_files_post(struct envd *e, struct evhttp_request *req)
{
    char user[64];
    bool bad = false;
    struct upload u = {.e = e, .answer = BUF_INIT};
    char *path = envd_query(req, "path", &bad);
    if (path != NULL && *path == '\0') {
        free(path);
        path = NULL;
    }
    jw_init(&u.w, &u.answer);
    jw_arr(&u.w, NULL);
    if (!envd_user(e, req, user, sizeof(user)))
        fail(&u, 401, "invalid username:", user, 0);
    else if (bad)
        fail(&u, 400, "the path is damaged", "", 0);
    else
        body(&u, req, path);
    jw_end(&u.w);
    if (u.status == 0) {
        envd_reply_json(req, 200, &u.answer);
    } else {
        envd_reply_error(req, u.status, "%s", u.error);
        buf_release(&u.answer);
    }
    free(path);
}
