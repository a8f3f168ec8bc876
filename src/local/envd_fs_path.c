/* Paths of requests. Names are hostile, but the init runs as the sandbox's own
 * user inside its own root, so a path can reach only what the sandbox may see. */
#include "envd.h"
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

char *envd_fs_path(const struct envd *e, const char *path)
{
    return envd_fs_path_of(e, e->user, path);
}

char *envd_fs_path_of(const struct envd *e, const char *user, const char *path)
{
    struct buf b = BUF_INIT;
    if (path == NULL || path[0] == '\0')
        return NULL;
    if (path[0] != '/') {
        add_parts(&b, envd_home_of(e, user));
        if (str_eq(path, "~") || str_starts(path, "~/"))
            path++;
    }
    add_parts(&b, path);
    if (b.len == 0)
        buf_addc(&b, '/');
    return buf_detach(&b, NULL);
}

int envd_fs_make_parents(const char *path)
{
    char *p = xstrdup(path);
    int rc = 0;
    for (char *at = strchr(p + 1, '/'); at != NULL && rc == 0; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(p, 0755) != 0 && errno != EEXIST) {
            struct stat st;
            int saved = errno; /* a read-only parent that exists gives EROFS, not EEXIST */
            if (stat(p, &st) != 0 || !S_ISDIR(st.st_mode)) {
                errno = saved;
                rc = -1;
            }
        }
        *at = '/';
    }
    int saved = errno;
    free(p);
    errno = saved;
    return rc;
}
