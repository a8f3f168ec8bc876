/* A root made of layers: one overlay for everything that build steps may write,
 * with the host's programs mounted read-only on top of it as in a plain root.
 *
 * The plain root is made first, in a scratch folder; its files are the lowest
 * layer, its mounts are then moved over. Nothing is written below the overlay
 * before the change of root, and no target of a mount is looked up through a
 * link: what layers hold was written by foreign programs.
 *
 * Folders of the scratch tmpfs: `l` the layers, `b` the upper one, `skel` the
 * plain root, `n` the new root, `mN` and `oN` for the merged folders. All of it
 * goes with the old root. */
#include <cct/local/ns.h>
#include <cct/util/buf.h>
#include <cct/util/xalloc.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int mount(const char *, const char *, const char *, unsigned long, const void *);

#define OPTIONS_MAX 4000 /* the kernel takes a page of them */
#define MERGE_DEPTH 3    /* of host folders in which new files can be made */
#define MERGE_DIRS 128

/* Folders that show the host's content and can be added to: each an overlay of
 * its own, since the host's files do not belong to the sandbox. */
static const struct merged {
    const char *sub;
    bool of_host; /* lies in a folder of the host's, which must have it */
    const char *own, *at, *parent, *upper;
} merged[] = {
    {"/usr/local", true, "m0", "o0", "b/root/usr", "b/root/usr/local"},
    {"/opt", false, "m1", "o1", NULL, "b/root/opt"},
};

/* Never through a link, never upwards. */
static int open_inside(int dir, const char *path, unsigned long long flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static bool is_folder(const char *path)
{
    int fd = open_inside(AT_FDCWD, path, O_PATH | O_DIRECTORY);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int give_to_user(const char *path)
{
    if (geteuid() == NS_USER_ID)
        return 0;
    return lchown(path, NS_USER_ID, NS_USER_ID);
}

static int make_folder(const char *path)
{
    if (mkdir(path, 0755) == 0)
        return give_to_user(path);
    if (errno != EEXIST)
        return -1;
    if (is_folder(path))
        return 0;
    errno = ENOTDIR;
    return -1;
}

/* --- before: sources and the plain root's place ------------------------------- */

const char *ns_layers_begin(const struct ns_sources *from)
{
    static const char *const dirs[] = {"l", "b", "skel", "n", "m0", "m1", "o0", "o1"};
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        if (mkdir(dirs[i], 0755) != 0)
            return "folders for the layers";
    if (ns_attach(from->layers, "l", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) != 0 ||
        ns_attach(from->upper, "b", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) != 0)
        return "mount of the layers";
    return chdir("skel") == 0 ? NULL : "change into the new root";
}

/* What the sandbox's user may change in the plain root, that is all of its own. */
static const char *hand_over(void)
{
    static const char *const more[] = {"opt", "media", "var/log", "var/cache"};
    static const char *const own[] = {".",          "home",      "home/user",   "srv",
                                      "mnt",        "root",      "var",         "var/lib",
                                      "run",        "etc",       "etc/hosts",   "etc/profile",
                                      "etc/passwd", "etc/group", "etc/hostname"};
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        if (make_folder(more[i]) != 0)
            return more[i];
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (give_to_user(own[i]) != 0)
            return "hand-over of the root";
    return NULL;
}

/* --- host folders that can be added to ---------------------------------------- */

static bool is_folder_at(int dir, const struct dirent *de)
{
    struct stat st;
    if (de->d_name[0] == '.' && (!de->d_name[1] || strcmp(de->d_name, "..") == 0))
        return false;
    if (de->d_type != DT_UNKNOWN)
        return de->d_type == DT_DIR;
    return fstatat(dir, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int copy_folder(int to, const char *name)
{
    if (mkdirat(to, name, 0755) != 0)
        return -1;
    if (geteuid() == NS_USER_ID)
        return 0;
    return fchownat(to, name, NS_USER_ID, NS_USER_ID, AT_SYMLINK_NOFOLLOW);
}

static DIR *open_dir_at(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        close(fd);
    return d;
}

/* The same folders again, empty and the user's: on top of the host's they make place
 * for new files. One `level` at a time, since `budget` keeps huge trees out and the
 * upper ones count more. */
static int copy_level(DIR *from, DIR *to, int level, int *budget)
{
    DIR *list = level == 0 ? from : to; /* deeper levels: of what was copied */
    struct dirent *de;
    int rc = 0;
    while (rc == 0 && *budget > 0 && (de = readdir(list)) != NULL) {
        if (!is_folder_at(dirfd(list), de))
            continue;
        if (level == 0) {
            --*budget;
            rc = copy_folder(dirfd(to), de->d_name);
            continue;
        }
        DIR *sub = open_dir_at(dirfd(from), de->d_name); /* NULL: not for us */
        DIR *copy = open_dir_at(dirfd(to), de->d_name);
        if (sub && copy)
            rc = copy_level(sub, copy, level - 1, budget);
        if (sub)
            closedir(sub);
        if (copy)
            closedir(copy);
    }
    return rc;
}

static int copy_host_folders(const char *host, const char *to)
{
    int budget = MERGE_DIRS, rc = 0;
    for (int level = 0; rc == 0 && level < MERGE_DEPTH; level++) {
        DIR *src = open_dir_at(AT_FDCWD, host), *dst = open_dir_at(AT_FDCWD, to);
        rc = src && dst ? copy_level(src, dst, level, &budget) : -1;
        if (src)
            closedir(src);
        if (dst)
            closedir(dst);
    }
    return rc;
}

/* --- overlays ------------------------------------------------------------------ */

struct overlay {
    struct buf lower; /* names, highest first, each with a ':' behind it */
    char upper[64], work[32];
    bool lasting; /* the upper folder is kept after the sandbox */
    const char *at;
};

static int set_option(int fd, const char *name, const char *value)
{
    unsigned kind = value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
    return (int)syscall(SYS_fsconfig, fd, kind, name, value, 0);
}

/* All options but the layers, and the mount itself. */
static int finish_parts(const struct overlay *o, int fd)
{
    if (set_option(fd, "upperdir", o->upper) != 0 || set_option(fd, "workdir", o->work) != 0 ||
        set_option(fd, "userxattr", NULL) != 0 ||
        (!o->lasting && set_option(fd, "volatile", NULL) != 0) ||
        syscall(SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
        return -1;
    int mnt =
        (int)syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (mnt < 0)
        return -1;
    int rc = (int)syscall(SYS_move_mount, mnt, "", AT_FDCWD, o->at, MOVE_MOUNT_F_EMPTY_PATH);
    close(mnt);
    return rc;
}

/* Layer by layer, which kernels from 6.7 take: as many as they can stack. */
static int mount_by_parts(struct overlay *o)
{
    int fd = (int)syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);
    if (fd < 0)
        return -1;
    int rc = 0;
    for (char *p = o->lower.p, *end; rc == 0 && *p; p = end + 1) {
        end = strchr(p, ':');
        *end = '\0';
        rc = set_option(fd, "lowerdir+", p);
    }
    if (rc == 0)
        rc = finish_parts(o, fd);
    else if (errno == EINVAL)
        errno = E2BIG; /* the option is unknown, and for one string it is too much */
    close(fd);
    return rc;
}

/* Without "volatile" the end of a sandbox would wait until its rubbish is on the
 * disk; a layer that is kept should be there. */
static int mount_overlay(struct overlay *o)
{
    char options[OPTIONS_MAX];
    int n = snprintf(options, sizeof(options),
                     "lowerdir=%.*s,upperdir=%s,workdir=%s,userxattr%s", (int)o->lower.len - 1,
                     o->lower.p, o->upper, o->work, o->lasting ? "" : ",volatile");
    if (n >= OPTIONS_MAX)
        return mount_by_parts(o);
    return mount("overlay", o->at, "overlay", MS_NOSUID | MS_NODEV, options);
}

/* An overlay of what all layers have at `sub` ("" or "/..."), of `own`, and of the
 * host's folder unless that is NULL; mounted at `at`. */
static int stack(const struct ns_spec *s, const char *sub, const char *own, const char *host,
                 const char *work, const char *at)
{
    struct overlay o = {.at = at};
    size_t n = strlen(s->layers_dir);
    o.lasting = strncmp(s->upper, s->layers_dir, n) == 0 && s->upper[n] == '/';
    for (size_t i = s->n_layers; i-- > 0;) {
        char *path = xasprintf("l/%s/root%s", s->layers[i], sub);
        if (is_folder(path))
            buf_addf(&o.lower, "%s:", path);
        free(path);
    }
    buf_addf(&o.lower, "%s:", own);
    if (host)
        buf_addf(&o.lower, "%s:", host);
    snprintf(o.upper, sizeof(o.upper), "b/root%s", sub);
    snprintf(o.work, sizeof(o.work), "b/work/%s", work);
    int rc = make_folder(o.work) != 0 ? -1 : mount_overlay(&o);
    buf_release(&o.lower);
    return rc;
}

/* --- the new root ---------------------------------------------------------------- */

/* Put a tree of the plain root over the same place of the new one. */
static int place(int root, const char *from, const char *to, unsigned long long attr)
{
    int target = open_inside(root, to, O_PATH);
    if (target < 0)
        return -1;
    int tree = ns_clone_tree(from);
    struct mount_attr ma = {.attr_set = attr};
    int rc = tree < 0 ? -1 : 0;
    if (rc == 0 && attr)
        rc = (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &ma, sizeof(ma));
    if (rc == 0)
        rc = (int)syscall(SYS_move_mount, tree, "", target, "",
                          MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    int saved = errno;
    if (tree >= 0)
        close(tree);
    close(target);
    errno = saved;
    return rc;
}

static bool is_real_folder(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static const char *place_programs(int root)
{
    for (const char *const *name = ns_host_dirs; *name; name++) {
        char *from = xasprintf("skel%s", *name);
        bool bad = is_real_folder(from) && place(root, from, *name + 1, 0) != 0;
        free(from);
        if (bad)
            return *name;
    }
    return NULL;
}

static const char *place_files(int root, const char *const *name)
{
    const char *step = NULL;
    for (; *name; name++) {
        char *from = xasprintf("skel%s", *name);
        /* what a layer has made something else of stays the layer's */
        if (access(from, F_OK) == 0 && place(root, from, *name + 1, 0) != 0 &&
            errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
            step = *name;
        free(from);
    }
    return step;
}

static const char *place_own(int root)
{
    static const struct {
        const char *name;
        unsigned long long attr;
    } own[] = {{"dev", MOUNT_ATTR_RDONLY}, {"run/cc", MOUNT_ATTR_RDONLY}, {"proc", 0}};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        char *from = xasprintf("skel/%s", own[i].name);
        bool bad = place(root, from, own[i].name, own[i].attr) != 0;
        free(from);
        if (bad)
            return own[i].name;
    }
    return NULL;
}

static const char *place_merged(const struct ns_spec *s, int root)
{
    for (size_t i = 0; i < sizeof(merged) / sizeof(merged[0]); i++) {
        const struct merged *m = &merged[i];
        bool on_host = is_real_folder(m->sub);
        if (!on_host && m->of_host)
            continue; /* no place for it */
        if ((on_host && copy_host_folders(m->sub, m->own) != 0) || give_to_user(m->own) != 0)
            return "folders of the host's programs";
        if ((m->parent && make_folder(m->parent) != 0) || make_folder(m->upper) != 0 ||
            stack(s, m->sub, m->own, on_host ? m->sub : NULL, m->own, m->at) != 0 ||
            place(root, m->at, m->sub + 1, 0) != 0)
            return m->sub;
    }
    return NULL;
}

/* For the probe, whose one layer has the folder `d` with the file `f`: what needs
 * more of the file system below than a mount does. */
static const char *try_changes(void)
{
    if (unlink("n/d/f") != 0 || rmdir("n/d") != 0)
        return "removal of what a layer has";
    if (mkdir("n/d", 0755) != 0 || rmdir("n/d") != 0)
        return "new folder in the place of a layer's";
    return NULL;
}

const char *ns_layers_finish(const struct ns_spec *s)
{
    const char *step = hand_over();
    if (step)
        return step;
    if (chdir("..") != 0)
        return "change into the new root";
    if (stack(s, "", "skel", NULL, "root", "n") != 0)
        return errno == E2BIG ? "overlay of so many layers" : "overlay of the layers";
    int root = open("n", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return "change into the new root";
    step = s->probe ? try_changes() : NULL;
    if (!step)
        step = place_programs(root);
    if (!step)
        step = place_files(root, ns_host_etc);
    if (!step)
        step = place_files(root, ns_host_var);
    if (!step)
        step = place_own(root);
    if (!step)
        step = place_merged(s, root);
    close(root);
    if (!step && chdir("n") != 0)
        step = "change into the new root";
    return step;
}
