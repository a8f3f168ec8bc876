/* GET /files: whole files, a range, or packed with gzip when the client prefers
 * that; as many bytes as the size seen at the start says. Signed addresses. */
#include "envd.h"
#include "envd_gzip.h"
#include <cct/local/files_parse.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILE_TYPE "application/octet-stream"
#define HTTP_DATE "%a, %d %b %Y %H:%M:%S GMT"

bool envd_files_signed(struct envd *e, struct http_req *req, const char *op)
{
    return files_signed(req->query, op, e->token, clock_wall_ms() / 1000);
}

/* --- headers -------------------------------------------------------------- */

static bool is_token(const char *s)
{
    for (; *s != '\0'; s++)
        if (*s <= ' ' || *s >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", *s) != NULL)
            return false;
    return true;
}

/* The name as a token, a quoted string or, when it is not ASCII, percent-encoded
 * (RFC 6266). Control characters are no ASCII here. */
static void put_disposition(struct http_req *req, const char *path)
{
    struct buf b = BUF_INIT;
    const char *name = strrchr(path, '/') + 1;
    bool ascii = true;
    for (const char *p = name; *p != '\0'; p++)
        ascii = ascii && *p >= ' ' && *p < 0x7f;
    buf_adds(&b, "inline; filename");
    if (!ascii) {
        buf_adds(&b, "*=utf-8''");
        buf_add_urlenc(&b, name, strlen(name));
    } else if (is_token(name)) {
        buf_addf(&b, "=%s", name);
    } else {
        buf_adds(&b, "=\"");
        for (const char *p = name; *p != '\0'; p++) {
            if (*p == '"' || *p == '\\')
                buf_addc(&b, '\\');
            buf_addc(&b, *p);
        }
        buf_addc(&b, '"');
    }
    http_reply_header(req, "Content-Disposition", buf_str(&b));
    buf_release(&b);
}

static void put_headers(struct http_req *req, const char *path, const struct stat *st)
{
    char date[64];
    struct tm tm;
    http_reply_header(req, "Vary", "Accept-Encoding");
    put_disposition(req, path);
    if (gmtime_r(&st->st_mtim.tv_sec, &tm) != NULL &&
        strftime(date, sizeof(date), HTTP_DATE, &tm) > 0)
        http_reply_header(req, "Last-Modified", date);
}

/* An HTTP date; -1 when it is none. */
static time_t date_of(const char *header)
{
    struct tm tm = {0};
    const char *end = header != NULL ? strptime(header, HTTP_DATE, &tm) : NULL;
    return end != NULL && *end == '\0' ? timegm(&tm) : -1;
}

/* --- answers -------------------------------------------------------------- */

/* Takes fd. */
static void reply_plain(struct http_req *req, int fd, const struct stat *st)
{
    int64_t size = st->st_size, first = 0, last = size - 1;
    const char *range = envd_header(req, "Range"), *since = envd_header(req, "If-Range");
    if (since != NULL && date_of(since) != st->st_mtim.tv_sec)
        range = NULL; /* it is another file now: all of it */
    enum range_kind kind = files_range(range, size, &first, &last);
    if (kind == RANGE_OUTSIDE) {
        http_reply_headerf(req, "Content-Range", "bytes */%lld", (long long)size);
        envd_reply_error(req, 416, "the range is outside of the file's %lld bytes",
                         (long long)size);
        close(fd);
        return;
    }
    http_reply_header(req, "Accept-Ranges", "bytes");
    if (kind == RANGE_PART)
        http_reply_headerf(req, "Content-Range", "bytes %lld-%lld/%lld", (long long)first,
                           (long long)last, (long long)size);
    http_reply_file(req, kind == RANGE_PART ? 206 : 200, FILE_TYPE, fd, first,
                    last - first + 1);
}

/* Takes fd. */
static void reply_file(struct envd *e, struct http_req *req, const char *path, int fd,
                       const struct stat *st)
{
    const char *since = envd_header(req, "If-Modified-Since");
    enum files_coding coding = files_coding(envd_header(req, "Accept-Encoding"));
    /* parts and conditions are about the file as it is */
    bool as_it_is = envd_header(req, "Range") != NULL || since != NULL ||
                    envd_header(req, "If-None-Match") != NULL ||
                    envd_header(req, "If-Range") != NULL;
    if (coding == FILES_GZIP_ONLY && !as_it_is)
        coding = FILES_GZIP;
    if (coding == FILES_NONE || (as_it_is && coding == FILES_GZIP_ONLY)) {
        envd_reply_error(req, 406,
                         as_it_is
                             ? "a range or condition needs the encoding identity"
                             : "no acceptable encoding found, supported: [identity, gzip]");
        close(fd);
        return;
    }
    put_headers(req, path, st);
    if (since != NULL && envd_header(req, "If-None-Match") == NULL &&
        date_of(since) >= st->st_mtim.tv_sec) {
        envd_reply_empty(req, 304);
        close(fd);
    } else if (coding == FILES_GZIP && !as_it_is && !req->is_head) {
        envd_gzip_reply(e, req, FILE_TYPE, fd, st->st_size);
    } else {
        reply_plain(req, fd, st);
    }
}

void envd_files_get(struct envd *e, struct http_req *req)
{
    char user[64];
    bool bad = false;
    char *asked = envd_query(req, "path", &bad);
    bool known = envd_user(e, req, user, sizeof(user));
    char *path = envd_fs_path_of(e, user, asked);
    struct stat st;
    int fd = -1;
    if (!known) {
        envd_reply_error(req, 401, "invalid username: '%.60s'", user);
    } else if (bad || path == NULL) {
        envd_reply_error(req, 400, "path is missing or damaged");
    } else if ((fd = fs_root_open(&e->files, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0)) < 0) {
        int err = errno == ENOTDIR ? ENOENT : envd_fs_looked(errno);
        if (err == ENOENT)
            envd_reply_error(req, 404, "path '%.1000s' does not exist", path);
        else
            envd_reply_error(req, envd_fs_status(err), "cannot open '%.1000s': %s", path,
                             envd_fs_reason(err));
    } else if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        envd_reply_error(req, 400,
                         S_ISDIR(st.st_mode) ? "path '%.1000s' is a directory"
                                             : "path '%.1000s' is no regular file",
                         path);
    } else {
        reply_file(e, req, path, fd, &st);
        fd = -1;
    }
    if (fd >= 0)
        close(fd);
    free(asked);
    free(path);
}
