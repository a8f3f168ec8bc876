/* Paths of requests, and how a failure at one is told. Names are hostile: what a
 * path may reach is decided when it is opened (fs_root.h). */
#include "envd.h"
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <errno.h>
#include <string.h>

#define ENOENT_OUTSIDE 100000 /* no errno of the system */

/* Append the parts of `path`, resolving "." and ".." by name as filepath.Clean
 * does. */
static void add_parts(struct buf *b, const char *path)
{
    while (*path != '\0') {
        size_t n = strcspn(path, "/");
        if (n == 2 && path[0] == '.' && path[1] == '.') {
            while (b->len > 0 && b->p[b->len - 1] != '/')
                b->len--;
            if (b->len > 0)
                b->len--;
            buf_truncate(b, b->len);
        } else if (n > 0 && !(n == 1 && path[0] == '.')) {
            buf_addc(b, '/');
            buf_add(b, path, n);
        }
        path += n + (path[n] == '/');
    }
}

/* Without namespaces /root is the host's. */
const char *envd_home_of(const struct envd *e, const char *user)
{
    return e->isolated && str_eq(user, "root") ? "/root" : e->home;
}

char *envd_fs_path_of(const struct envd *e, const char *user, const char *path)
{
    struct buf b = BUF_INIT;
    if (path == NULL || path[0] == '\0' ||
        (path[0] == '~' && path[1] != '\0' && path[1] != '/'))
        return NULL;
    if (path[0] != '/') {
        add_parts(&b, envd_home_of(e, user));
        path += path[0] == '~';
    }
    add_parts(&b, path);
    if (b.len == 0)
        buf_addc(&b, '/');
    return buf_detach(&b, NULL);
}

int envd_fs_looked(int err)
{
    return err == EXDEV ? ENOENT_OUTSIDE : err;
}

enum connect_code envd_fs_code(int err)
{
    switch (err) {
    case ENOENT_OUTSIDE:
        return CONNECT_NOT_FOUND;
    case EXDEV: /* out of bounds */
        return CONNECT_PERMISSION_DENIED;
    case ELOOP:
    case EBUSY:
    case ENOTEMPTY:
        return CONNECT_FAILED_PRECONDITION;
    case ENOSPC: /* not resource_exhausted: clients take that for "slow down" */
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return CONNECT_INTERNAL;
    case EISDIR:
        return CONNECT_INVALID_ARGUMENT;
    default:
        return connect_code_from_errno(err);
    }
}

int envd_fs_status(int err)
{
    switch (err) {
    case ENOENT:
    case ENOENT_OUTSIDE:
        return 404;
    case EACCES:
    case EPERM:
    case EROFS:
    case EXDEV:
        return 403;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return 507;
    case EBADMSG:
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
    case ENXIO: /* a pipe or socket without another end */
        return 400;
    default:
        return 500;
    }
}

const char *envd_fs_reason(int err)
{
    if (err == ENOENT_OUTSIDE)
        return "it is not in the sandbox's home, and without isolation files are reached "
               "only there";
    if (err == EXDEV)
        return "it leads out of the sandbox's home, and without isolation files are "
               "reached only there";
    if (err == ENOSPC || err == EDQUOT)
        return "not enough disk space available";
    if (err == EBUSY)
        return "it is a mount point or in use; remove or move what is in it instead";
    if (err == EINTR)
        return "the work was interrupted";
    return strerror(err);
}
