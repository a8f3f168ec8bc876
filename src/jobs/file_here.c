/* The local side of a download. Names come from the sandbox: each folder is opened from the one
 * above, never through a link, and nothing that is there is written to. */
#include "file_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* umask() cannot be asked without setting it, for all threads. */
static mode_t mask_of_files(void)
{
    unsigned mask = 077;
    char line[128];
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "Umask: %o", &mask) == 1)
            break;
    if (f)
        fclose(f);
    return (mode_t)mask;
}

int here_begin(struct here *h, int dir, const char *base, struct err *e)
{
    char id[9];
    int fd;

    here_release(h);
    rand_id(id, sizeof(id) - 1);
    h->dir = dir;
    h->base = xstrdup(base);
    h->temp = xasprintf(".%.100s.part-%s", base, id);
    fd = openat(dir, h->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        return fd;
    err_sys(e, ERR_IO, "cannot make '%s'", base);
    free(h->temp);
    h->temp = NULL;
    here_release(h);
    return -1;
}

static int is_there(const char *name, struct err *e)
{
    return err_set(e, ERR_CONFLICT, "'%s' is there already: choose another name", name);
}

/* The name is taken first, where a file system cannot name a file only when nothing has that
 * name: links, and renames that look, are not known everywhere. */
static int name_by_taking(struct here *h, struct err *e)
{
    int fd = openat(h->dir, h->base, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return errno == EEXIST ? is_there(h->base, e)
                               : err_sys(e, ERR_IO, "the file cannot be named '%s'", h->base);
    close(fd);
    if (renameat(h->dir, h->temp, h->dir, h->base) == 0)
        return 0;
    err_sys(e, ERR_IO, "the file cannot be named '%s'", h->base);
    unlinkat(h->dir, h->base, 0);
    return e->code;
}

static int give_name(struct here *h, bool over, struct err *e)
{
    if (over)
        return renameat(h->dir, h->temp, h->dir, h->base) == 0
                   ? 0
                   : err_sys(e, ERR_IO, "the file cannot be named '%s'", h->base);
    if (linkat(h->dir, h->temp, h->dir, h->base, 0) == 0) {
        unlinkat(h->dir, h->temp, 0);
        return 0;
    }
    return errno == EEXIST ? is_there(h->base, e) : name_by_taking(h, e);
}

int here_end(struct here *h, int fd, unsigned mode, bool over, struct err *e)
{
    mode_t rights = (0666 | (mode & 0111)) & ~mask_of_files();
    int rc;

    if (fchmod(fd, rights) != 0 && errno != EPERM) /* vfat has none to change */
        return err_sys(e, ERR_IO, "cannot write '%s'", h->base);
    rc = give_name(h, over, e);
    if (rc == 0) {
        free(h->temp);
        h->temp = NULL;
    }
    return rc;
}

void here_release(struct here *h)
{
    if (h->temp)
        unlinkat(h->dir, h->temp, 0);
    if (h->dir >= 0)
        close(h->dir);
    free(h->temp);
    free(h->base);
    *h = (struct here){-1, NULL, NULL};
}

/* --- folders ------------------------------------------------------------------------ */

static int enter(int dir, const char *name, struct err *e)
{
    enum { HOW = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    int fd = openat(dir, name, HOW);

    if (fd < 0 && errno == ENOENT && mkdirat(dir, name, 0777) == 0)
        fd = openat(dir, name, HOW);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        err_set(e, ERR_CONFLICT, "'%s' is there already, and is no folder", name);
    else if (fd < 0)
        err_sys(e, ERR_IO, "cannot make the folder '%s'", name);
    return fd;
}

int here_folder(int root, const char *path, struct err *e)
{
    int dir = fcntl(root, F_DUPFD_CLOEXEC, 0);

    if (dir < 0)
        err_sys(e, ERR_IO, "cannot open the folder");
    for (const char *p = path; dir >= 0 && *p;) {
        char *name = xstrndup(p, strcspn(p, "/"));
        int next = enter(dir, name, e);

        p += strlen(name);
        p += *p == '/';
        free(name);
        close(dir);
        dir = next;
    }
    return dir;
}
