/* Skills as a tar archive (ustar). Folders are walked by descriptor and no link is
 * followed: what is packed lies where the user pointed to. */
#include <cct/jobs/skills.h>

#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 512, NAME_BYTES = 100, PREFIX_BYTES = 155 };

struct pack {
    struct buf *out;
    size_t files;
    bool has_main; /* of the skill at hand: SKILL.md */
    ARR(char *) names;
    struct err *e;
};

/* --- ustar ------------------------------------------------------------------------- */

struct head {
    char name[NAME_BYTES], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type,
        link[100], magic[6], version[2], user[32], group[32], major[8], minor[8],
        prefix[PREFIX_BYTES], pad[12];
};
_Static_assert(sizeof(struct head) == BLOCK, "a header is one block");

/* A long name is cut at a slash; false when it does not fit. */
static bool put_name(struct head *h, const char *name)
{
    size_t n = strlen(name), cut;

    if (n <= NAME_BYTES) {
        memcpy(h->name, name, n);
        return true;
    }
    for (cut = n - NAME_BYTES - 1; cut < n && name[cut] != '/';)
        cut++;
    if (cut == 0 || cut >= n - 1 || cut > PREFIX_BYTES)
        return false;
    memcpy(h->prefix, name, cut);
    memcpy(h->name, name + cut + 1, n - cut - 1);
    return true;
}

static int add_head(struct pack *p, const char *name, unsigned mode, size_t size)
{
    struct head h;
    char text[16];
    unsigned sum = 0;

    memset(&h, 0, sizeof(h));
    if (!put_name(&h, name))
        return err_set(p->e, ERR_LIMIT, "the skill file \"%.200s\" cannot be packed: its path is too "
                       "long", name);
    snprintf(h.mode, sizeof(h.mode), "%07o", mode);
    snprintf(h.uid, sizeof(h.uid), "%07o", 0u);
    snprintf(h.gid, sizeof(h.gid), "%07o", 0u);
    snprintf(h.size, sizeof(h.size), "%011zo", size);
    snprintf(h.mtime, sizeof(h.mtime), "%011o", 0u);
    h.type = '0';
    memcpy(h.magic, "ustar", sizeof(h.magic));
    memcpy(h.version, "00", sizeof(h.version));
    memset(h.sum, ' ', sizeof(h.sum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += ((const unsigned char *)&h)[i];
    snprintf(text, sizeof(text), "%06o", sum);
    memcpy(h.sum, text, 7);
    return buf_add(p->out, &h, sizeof(h));
}

static int too_large(struct pack *p)
{
    return err_set(p->e, ERR_LIMIT, "the skills are too large: at most %d MiB and %d files in all",
                   SKILLS_BYTES >> 20, SKILLS_FILES);
}

/* --- files ------------------------------------------------------------------------- */

static int read_file(struct pack *p, int fd, const char *name, size_t size)
{
    size_t left = size;

    while (left) {
        char *room = buf_reserve(p->out, left);
        ssize_t n = room ? read(fd, room, left) : 0;

        if (!room)
            return too_large(p);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(p->e, ERR_IO, "cannot read the skill file \"%.200s\": %s", name,
                           n < 0 ? strerror(errno) : "it became shorter meanwhile");
        p->out->len += (size_t)n;
        left -= (size_t)n;
    }
    for (size_t pad = (BLOCK - size % BLOCK) % BLOCK; pad; pad--)
        if (buf_addc(p->out, 0) != 0)
            return too_large(p);
    return 0;
}

static int add_file(struct pack *p, int fd, const char *name)
{
    struct stat st;
    int rc;

    if (fstat(fd, &st) != 0)
        return err_sys(p->e, 0, "cannot read the skill file \"%.200s\"", name);
    if (++p->files > SKILLS_FILES || st.st_size < 0 || st.st_size > SKILLS_BYTES)
        return too_large(p);
    rc = add_head(p, name, st.st_mode & 0100 ? 0755 : 0644, (size_t)st.st_size);
    if (rc == ERR_LIMIT && p->out->over)
        return too_large(p);
    return rc ? rc : read_file(p, fd, name, (size_t)st.st_size);
}

static int add_folder(struct pack *p, int fd, const char *name, int depth);

static int add_entry(struct pack *p, int dir, const char *entry, const char *name, int depth)
{
    struct stat st;
    int fd, rc;

    if (fstatat(dir, entry, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : err_sys(p->e, 0, "cannot look at \"%.200s\"", name);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0;
    fd = openat(dir, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_sys(p->e, 0, "cannot read \"%.200s\"", name);
    rc = S_ISDIR(st.st_mode) ? add_folder(p, fd, name, depth + 1) : add_file(p, fd, name);
    if (depth == 0 && str_eq(entry, "SKILL.md"))
        p->has_main = true;
    close(fd);
    return rc;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int shown(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* In the order of names, so that the same folder gives the same archive. */
static int add_folder(struct pack *p, int fd, const char *name, int depth)
{
    struct dirent **v = NULL;
    int rc = 0, n;

    if (depth > SKILLS_DEPTH)
        return err_set(p->e, ERR_LIMIT, "the skill \"%.200s\" has folders in folders, more than %d "
                       "deep", name, SKILLS_DEPTH);
    n = scandirat(fd, ".", &v, shown, by_name);
    if (n < 0)
        return err_sys(p->e, 0, "cannot read the folder \"%.200s\"", name);
    for (int i = 0; i < n; i++) {
        char *path = xasprintf("%s/%s", name, v[i]->d_name);

        if (rc == 0)
            rc = add_entry(p, fd, v[i]->d_name, path, depth);
        free(path);
        free(v[i]);
    }
    free(v);
    return rc;
}

/* --- skills ------------------------------------------------------------------------- */

/* Last part of the path, as the skill's name; NULL with *e. */
static char *name_of(struct pack *p, const char *path, bool folder)
{
    size_t n = strlen(path), from;
    char *name;

    while (n > 1 && path[n - 1] == '/')
        n--;
    for (from = n; from && path[from - 1] != '/';)
        from--;
    name = xstrndup(path + from, n - from);
    if (!folder && str_ends(name, ".md"))
        name[strlen(name) - 3] = 0;
    if (!*name || *name == '.' || strlen(name) > 64) {
        err_set(p->e, ERR_INVALID, "the skill \"%.200s\" has no usable name: give the folder itself",
                path);
        free(name);
        return NULL;
    }
    for (size_t i = 0; i < p->names.n; i++)
        if (str_eq(p->names.v[i], name)) {
            err_set(p->e, ERR_INVALID, "two skills are called \"%s\": rename one", name);
            free(name);
            return NULL;
        }
    *ARR_PUSH(&p->names) = name;
    return name;
}

static int add_skill(struct pack *p, const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), rc = 0;
    struct stat st;
    char *name, *file;

    if (fd < 0 || fstat(fd, &st) != 0) {
        rc = err_sys(p->e, 0, "cannot read the skill \"%.200s\"", path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    p->has_main = false;
    name = S_ISDIR(st.st_mode) || S_ISREG(st.st_mode) ? name_of(p, path, S_ISDIR(st.st_mode)) : NULL;
    if (!name) {
        rc = p->e->code ? p->e->code
                        : err_set(p->e, ERR_INVALID, "the skill \"%.200s\" is neither a file nor a "
                                  "folder", path);
    } else if (S_ISDIR(st.st_mode)) {
        rc = add_folder(p, fd, name, 0);
        if (rc == 0 && !p->has_main)
            rc = err_set(p->e, ERR_INVALID, "the folder \"%.200s\" is no skill: there is no SKILL.md "
                         "in it", path);
    } else if (!str_ends(path, ".md")) {
        rc = err_set(p->e, ERR_INVALID, "the file \"%.200s\" is no skill: a skill is a folder with a "
                     "SKILL.md, or a file NAME.md", path);
    } else {
        file = xasprintf("%s/SKILL.md", name);
        rc = add_file(p, fd, file);
        free(file);
    }
    close(fd);
    return rc;
}

int skills_pack(const char *const *paths, struct buf *out, struct err *e)
{
    struct err own = {0};
    struct pack p = {.out = out, .e = e ? e : &own};
    static const char end[2 * BLOCK];
    int rc = 0;

    out->max = SKILLS_BYTES;
    for (; rc == 0 && paths && *paths; paths++)
        rc = add_skill(&p, *paths);
    if (rc == 0 && buf_add(out, end, sizeof(end)) != 0)
        rc = too_large(&p);
    for (size_t i = 0; i < p.names.n; i++)
        free(p.names.v[i]);
    ARR_RELEASE(&p.names);
    return rc;
}
