/* GET /files: whole files or a range, from disk in pieces as the reader takes
 * them, never more than the size seen at the start. Signed addresses. */
#include "envd.h"
#include <cct/local/files_parse.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_CHUNK (128u << 10)
#define FILE_STALL_S 300 /* a reader that takes nothing for this long is gone */

bool envd_files_signed(struct envd *e, struct evhttp_request *req, const char *op)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *q = uri != NULL ? evhttp_uri_get_query(uri) : NULL;
    return q != NULL && files_signed(q, op, e->token, clock_wall_ms() / 1000);
}

/* One file on its way to one reader. */
struct download {
    struct evhttp_request *req;
    int fd;
    int64_t at, left;
};

static void download_free(struct download *d)
{
    close(d->fd);
    free(d);
}

static void on_close(struct evhttp_connection *c, void *arg)
{
    struct download *d = arg;
    struct evhttp_request *req = d->req;
    evhttp_connection_set_closecb(c, NULL, NULL);
    download_free(d);
    if (evhttp_request_get_connection(req) == NULL)
        evhttp_send_reply_end(req);
}

static void download_step(struct evhttp_connection *c, void *arg);

/* Less than promised was there: only a cut connection tells the reader so. */
static void download_abort(struct evhttp_connection *c, struct download *d)
{
    evhttp_connection_set_closecb(c, NULL, NULL);
    download_free(d);
    evhttp_connection_free(c);
}

static void download_step(struct evhttp_connection *c, void *arg)
{
    struct download *d = arg;
    struct evbuffer *b = evbuffer_new();
    struct evbuffer_iovec v;
    size_t want = d->left < (int64_t)FILE_CHUNK ? (size_t)d->left : FILE_CHUNK;
    ssize_t n = -1;
    if (evbuffer_reserve_space(b, (ev_ssize_t)want, &v, 1) == 1) {
        do
            n = pread(d->fd, v.iov_base, want, d->at);
        while (n < 0 && errno == EINTR);
        v.iov_len = n > 0 ? (size_t)n : 0;
        evbuffer_commit_space(b, &v, 1);
    }
    if (n <= 0) {
        evbuffer_free(b);
        download_abort(c, d);
        return;
    }
    d->at += n;
    d->left -= n;
    if (d->left > 0) {
        evhttp_send_reply_chunk_with_cb(d->req, b, download_step, d);
    } else {
        struct evhttp_request *req = d->req;
        evhttp_connection_set_closecb(c, NULL, NULL);
        download_free(d);
        evhttp_send_reply_chunk(req, b);
        evhttp_send_reply_end(req);
    }
    evbuffer_free(b);
}

static void header_num(struct evkeyvalq *h, const char *name, const char *fmt, int64_t a,
                       int64_t b, int64_t c)
{
    struct buf t = BUF_INIT;
    for (const char *p = fmt; *p != '\0'; p++) {
        if (*p >= '1' && *p <= '3')
            buf_addf(&t, "%lld", (long long)(*p == '1' ? a : *p == '2' ? b : c));
        else
            buf_addc(&t, *p);
    }
    evhttp_add_header(h, name, buf_str(&t));
    buf_release(&t);
}

/* Takes fd. */
static void download_start(struct evhttp_request *req, int fd, int64_t size)
{
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    struct evhttp_connection *c = evhttp_request_get_connection(req);
    int64_t first = 0, last = size - 1;
    enum range_kind kind = files_range(envd_header(req, "Range"), size, &first, &last);
    if (kind == RANGE_OUTSIDE) {
        header_num(h, "Content-Range", "bytes */1", size, 0, 0);
        envd_reply_error(req, 416, "the range is outside of the file's %lld bytes",
                         (long long)size);
        close(fd);
        return;
    }
    evhttp_add_header(h, "Content-Type", "application/octet-stream");
    evhttp_add_header(h, "Accept-Ranges", "bytes");
    if (kind == RANGE_PART)
        header_num(h, "Content-Range", "bytes 1-2/3", first, last, size);
    header_num(h, "Content-Length", "1", last - first + 1, 0, 0);
    int status = kind == RANGE_PART ? 206 : 200;
    if (size == 0) {
        close(fd);
        evhttp_send_reply(req, status, NULL, NULL);
        return;
    }
    struct download *d = xcalloc(1, sizeof(*d));
    struct timeval stall = {FILE_STALL_S, 0};
    d->req = req;
    d->fd = fd;
    d->at = first;
    d->left = last - first + 1;
    bufferevent_set_timeouts(evhttp_connection_get_bufferevent(c), NULL, &stall);
    evhttp_connection_set_closecb(c, on_close, d);
    evhttp_send_reply_start(req, status, NULL);
    download_step(c, d);
}

void envd_files_get(struct envd *e, struct evhttp_request *req)
{
    char user[64];
    bool bad = false;
    char *asked = envd_query(req, "path", &bad);
    char *path = envd_fs_path(e, asked);
    struct stat st;
    int fd = -1;
    if (!envd_user(e, req, user, sizeof(user))) {
        envd_reply_error(req, 401, "invalid username: '%.60s'", user);
    } else if (bad || path == NULL) {
        envd_reply_error(req, 400, "path is missing or damaged");
    } else if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) < 0) {
        int err = errno;
        int status = err == ENOENT || err == ENOTDIR ? 404
                     : err == EACCES || err == EPERM ? 403
                     : err == ENXIO || err == ELOOP  ? 400
                     : err == ENAMETOOLONG           ? 400
                                                     : 500;
        if (status == 404)
            envd_reply_error(req, 404, "path '%.1000s' does not exist", path);
        else
            envd_reply_error(req, status, "cannot open '%.1000s': %s", path, strerror(err));
    } else if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        envd_reply_error(req, 400,
                         S_ISDIR(st.st_mode) ? "path '%.1000s' is a directory"
                                             : "path '%.1000s' is no regular file",
                         path);
    } else {
        download_start(req, fd, st.st_size);
        fd = -1;
    }
    if (fd >= 0)
        close(fd);
    free(asked);
    free(path);
}
