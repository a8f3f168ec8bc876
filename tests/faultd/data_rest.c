/* GET and POST /files: whole files, ranges of them, and uploads. */
#include "data.h"
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 20 };

static void plain_error(struct exchange *x, int status, const char *path, const char *why)
{
    struct jw w;
    char *text = xasprintf("'%s': %s", path, why);

    x->a.status = status;
    jw_init(&w, &x->a.body);
    jw_obj(&w, NULL);
    jw_i64(&w, "code", status);
    jw_str(&w, "message", text);
    jw_end(&w);
    free(text);
}

/* "bytes=a-b", "a-" or "-n" of `size`: the first byte and how many; false: none. */
static bool parse_range(const char *text, int64_t size, int64_t *from, int64_t *n)
{
    char *dash, *low = xstrdup(str_starts(text, "bytes=") ? text + 6 : text);
    int64_t last = size - 1;
    bool ok = (dash = strchr(low, '-')) != NULL;

    if (ok) {
        *dash++ = '\0';
        if (!*low) {
            ok = str_to_i64(dash, 1, INT64_MAX, n);
            *from = ok && *n < size ? size - *n : 0;
        } else {
            ok = str_to_i64(low, 0, INT64_MAX, from) &&
                 (!*dash || str_to_i64(dash, *from, INT64_MAX, &last));
        }
    }
    free(low);
    if (last >= size)
        last = size - 1;
    *n = last - *from + 1;
    return ok && *from<size && * n> 0;
}

static void send_file(struct exchange *x, int fd, int64_t size)
{
    char range[64];
    int64_t from = 0, n = size;
    char *room;
    ssize_t got;

    x->a.status = 200;
    buf_adds(&x->a.head, "Content-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n");
    if (header_value(x->req.head, "Range", range, sizeof(range))) {
        if (!parse_range(range, size, &from, &n)) {
            x->a.status = 416;
            buf_addf(&x->a.head, "Content-Range: bytes */%lld\r\n", (long long)size);
            return;
        }
        x->a.status = 206;
        buf_addf(&x->a.head, "Content-Range: bytes %lld-%lld/%lld\r\n", (long long)from,
                 (long long)(from + n - 1), (long long)size);
    }
    while (n > 0 && (room = buf_reserve(&x->a.body, (size_t)n)) &&
           (got = pread(fd, room, (size_t)n, from)) > 0) {
        x->a.body.len += (size_t)got;
        from += got;
        n -= got;
    }
}

/* The whole "path" of the query, decoded; "" when there is none. */
static char *query_path(const struct exchange *x)
{
    char *text = query_text(x->req.query, "path");

    return text ? text : xstrdup("");
}

void files_get(struct data *d, struct exchange *x)
{
    char *name = query_path(x), *path = files_path(name), why[256];
    struct stat st;
    int fd = data_jail(d, why, sizeof(why)) ? files_open(d, path, O_RDONLY | O_NONBLOCK) : -2;

    if (fd == -2)
        plain_error(x, 500, path, why);
    else if (fd < 0)
        plain_error(x, errno == ENOENT || errno == ENOTDIR ? 404 : 500, path, strerror(errno));
    else if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        plain_error(x, 400, path, "it is no regular file");
    else if (st.st_size > FILE_MAX)
        plain_error(x, 500, path, "it is too big for this server");
    else
        send_file(x, fd, st.st_size);
    if (fd >= 0)
        close(fd);
    free(path);
    free(name);
}

/* True when it is written; then it stands in the answer's list. */
static bool store(struct data *d, struct exchange *x, struct jw *w, const char *name,
                  const char *bytes, size_t len)
{
    char *path = files_path(name);
    int fd;
    bool ok;

    files_parents(d, path);
    fd = files_open(d, path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK);
    ok = fd >= 0 && fs_write_all(fd, bytes, len) == 0;
    if (ok) {
        jw_obj(w, NULL);
        jw_str(w, "path", path);
        jw_str(w, "name", strrchr(path, '/') + 1);
        jw_str(w, "type", "file");
        jw_end(w);
    } else {
        int status = errno == ENOSPC ? 507 : errno == EISDIR || errno == ENOTDIR ? 400 : 500;
        buf_clear(&x->a.body);
        plain_error(x, status, path, strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return ok;
}

/* The parts of a multipart body whose name is "file"; their path stands in `filename`. */
static bool store_parts(struct data *d, struct exchange *x, struct jw *w, const char *type)
{
    const char *mark = strstr(type, "boundary="), *at = x->req.body, *end = at + x->req.len;
    char *line = xasprintf("\r\n--%.*s", mark ? (int)strcspn(mark + 9, ";\"") : 0,
                           mark ? mark + 9 : ""),
         *fixed = query_path(x);
    bool ok = mark != NULL;

    at = ok ? memmem(at, x->req.len, line + 2, strlen(line + 2)) : NULL;
    while (ok && at) {
        const char *body = memmem(at, (size_t)(end - at), "\r\n\r\n", 4), *next, *from;
        if (!body)
            break;
        body += 4;
        next = memmem(body, (size_t)(end - body), line, strlen(line));
        from = memmem(at, (size_t)(body - at), "filename=\"", 10);
        if (next && from) {
            char *name =
                *fixed ? xstrdup(fixed) : xstrndup(from + 10, strcspn(from + 10, "\""));
            ok = store(d, x, w, name, body, (size_t)(next - body));
            free(name);
        }
        at = next ? next + 2 : NULL;
    }
    free(line);
    free(fixed);
    return ok;
}

void files_post(struct data *d, struct exchange *x)
{
    char type[256] = "", why[256], *path = query_path(x);
    struct jw w;
    bool ok;

    header_value(x->req.head, "Content-Type", type, sizeof(type));
    if (!data_jail(d, why, sizeof(why))) {
        plain_error(x, 500, path, why);
    } else {
        x->a.status = 200;
        jw_init(&w, &x->a.body);
        jw_arr(&w, NULL);
        if (str_starts(type, "multipart/form-data"))
            ok = store_parts(d, x, &w, type);
        else
            ok = *path && store(d, x, &w, path, x->req.body, x->req.len);
        if (ok)
            jw_end(&w);
        else if (x->a.status == 200) {
            buf_clear(&x->a.body);
            plain_error(x, 400, path, "no file in the request");
        }
    }
    free(path);
}
