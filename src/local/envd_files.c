/* GET /files: whole files or a range, as many bytes as the size seen at the start
 * says. Signed addresses. */
#include "envd.h"
#include <cct/local/files_parse.h>
#include <cct/util/clock.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool envd_files_signed(struct envd *e, struct http_req *req, const char *op)
{
    return files_signed(req->query, op, e->token, clock_wall_ms() / 1000);
}

/* Takes fd. */
static void download_start(struct http_req *req, int fd, int64_t size)
{
    int64_t first = 0, last = size - 1;
    enum range_kind kind = files_range(envd_header(req, "Range"), size, &first, &last);
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
    http_reply_file(req, kind == RANGE_PART ? 206 : 200, "application/octet-stream", fd, first,
                    last - first + 1);
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
        int err = errno == ENOTDIR ? ENOENT : errno;
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
        download_start(req, fd, st.st_size);
        fd = -1;
    }
    if (fd >= 0)
        close(fd);
    free(asked);
    free(path);
}
