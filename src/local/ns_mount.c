/* The sandbox's file system: a small read-only root of our own, the host's
 * programs read-only, and the sandbox's home as the only lasting writable part.
 * Runs in the child, between clone() and exec(); errno explains a failed step. */
#include <cct/local/init.h>
#include <cct/local/ns.h>
#include <cct/local/pkg_refusal.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* from <sys/mount.h>, which does not go together with <linux/mount.h> in every
 * libc */
int mount(const char *, const char *, const char *, unsigned long, const void *);
int umount2(const char *, int);
#define NS_MNT_DETACH 2

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

#define TMP_BYTES (1ULL << 30)
#define SHM_BYTES (256ULL << 20)
#define BASE "/tmp" /* covered by the new root in our own mount namespace */

int ns_clone_tree(const char *path)
{
    return (int)syscall(SYS_open_tree, AT_FDCWD, path,
                        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

/* The host's programs. */
const char *const ns_host_dirs[] = {"/usr",   "/bin",    "/sbin", "/lib", "/lib32",
                                    "/lib64", "/libx32", "/nix",  "/gnu", NULL};
/* Certificates, the resolver, the loader's cache and tool settings. */
const char *const ns_host_etc[] = {
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/resolv.conf",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/nsswitch.conf",
    "/etc/npmrc",
    "/etc/pip.conf",
    "/etc/gitconfig",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/protocols",
    "/etc/services",
    "/etc/crypto-policies",
    "/etc/inputrc",
    NULL,
};

/* What is installed on the host, to be read; and no package manager called by its
 * path can begin what it cannot finish. */
const char *const ns_host_var[] = {"/var/lib/dpkg", "/var/lib/rpm", "/var/lib/pacman", NULL};

static int restrict_mount(const char *path, unsigned long long attr)
{
    struct mount_attr ma = {.attr_set = attr};
    if (syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &ma, sizeof(ma)) == 0)
        return 0;
    if (errno != ENOSYS)
        return -1;
    /* before Linux 5.12: one mount only, and flags locked by the host must be
     * repeated, of which relatime is the usual one */
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV;
    if (attr & MOUNT_ATTR_RDONLY)
        flags |= MS_RDONLY;
    if (mount(NULL, path, NULL, flags, NULL) == 0)
        return 0;
    return mount(NULL, path, NULL, flags | MS_RELATIME, NULL);
}

static int touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    return fd < 0 ? -1 : close(fd);
}

static int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    close(fd);
    return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* Bind a host path, read-only, at the same place below the new root. A path the
 * host lacks is skipped; a top-level link stays a link. */
static int bind_ro(const char *path)
{
    struct stat st;
    const char *to = path + 1; /* relative to the new root */
    if (lstat(path, &st) != 0)
        return 0;
    bool top = strchr(to, '/') == NULL;
    if (S_ISLNK(st.st_mode) && top) {
        char target[256];
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        if (n <= 0)
            return -1;
        target[n] = '\0';
        return symlink(target, to);
    }
    if (stat(path, &st) != 0)
        return 0; /* a dangling link */
    if ((S_ISDIR(st.st_mode) ? mkdir(to, 0755) : touch(to)) != 0)
        return -1;
    if (mount(path, to, NULL, MS_BIND | MS_REC, NULL) != 0)
        return errno == EACCES || errno == ENOENT ? 0 : -1;
    return restrict_mount(to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* A file of our own in the place of the host's, mounted as that one would be. */
static int bind_text(const char *path, const char *text)
{
    const char *to = path + 1;
    if (put(to, text) != 0 || mount(to, to, NULL, MS_BIND, NULL) != 0)
        return -1;
    return restrict_mount(to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static const char *bind_all(const char *const *paths)
{
    for (; *paths; paths++)
        if (bind_ro(*paths) != 0)
            return *paths;
    return NULL;
}

/* What programs look up in /etc: names of our own, and little from the host. */
static const char *make_etc(const char *host, const char *resolv)
{
    char hosts[160], name[80];
    snprintf(hosts, sizeof(hosts), "127.0.0.1 localhost %s\n::1 localhost\n", host);
    snprintf(name, sizeof(name), "%s\n", host);
    if (mkdir("etc", 0755) != 0 ||
        put("etc/passwd",
            "root:x:0:0:root:/root:/bin/bash\n"
            "user:x:1000:1000:user:/home/user:/bin/bash\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n") != 0 ||
        put("etc/group", "root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n") != 0 ||
        put("etc/hosts", hosts) != 0 || put("etc/hostname", name) != 0 ||
        put("etc/profile", "case :$PATH: in\n*:/run/cc/bin:*) ;;\n"
                           "*) PATH=/run/cc/bin:$PATH; export PATH ;;\nesac\n") != 0)
        return "/etc";
    for (const char *const *path = ns_host_etc; *path; path++) {
        bool own = resolv && strcmp(*path, "/etc/resolv.conf") == 0;
        if ((own ? bind_text(*path, resolv) : bind_ro(*path)) != 0)
            return *path;
    }
    return NULL;
}

/* A share of the memory, so that a full one cannot stop a small machine. */
static const char *tmpfs_size(char *dst, size_t size, unsigned long long most, unsigned part)
{
    struct sysinfo si;
    unsigned long long bytes = most;
    if (sysinfo(&si) == 0 && (unsigned long long)si.totalram * si.mem_unit / part < most)
        bytes = (unsigned long long)si.totalram * si.mem_unit / part;
    snprintf(dst, size, "mode=1777,size=%lluk", bytes >> 10);
    return dst;
}

static const char *make_dev(void)
{
    char size[64];
    static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                        "/dev/random", "/dev/urandom", "/dev/tty"};
    static const char *const links[][2] = {
        {"pts/ptmx", "dev/ptmx"},          {"/proc/self/fd", "dev/fd"},
        {"/proc/self/fd/0", "dev/stdin"},  {"/proc/self/fd/1", "dev/stdout"},
        {"/proc/self/fd/2", "dev/stderr"},
    };
    if (mkdir("dev", 0755) != 0 || mkdir("dev/pts", 0755) != 0 || mkdir("dev/shm", 0755) != 0)
        return "/dev";
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
        if (touch(nodes[i] + 1) != 0 || mount(nodes[i], nodes[i] + 1, NULL, MS_BIND, NULL) != 0)
            return nodes[i];
    const char *pts = ns_ids()->full ? "newinstance,ptmxmode=0666,mode=620,gid=5"
                                     : "newinstance,ptmxmode=0666,mode=620";
    if (mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, pts) != 0)
        return "/dev/pts";
    if (mount("tmpfs", "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV,
              tmpfs_size(size, sizeof(size), SHM_BYTES, 8)) != 0)
        return "/dev/shm";
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        if (symlink(links[i][0], links[i][1]) != 0)
            return "links in /dev";
    return NULL;
}

int ns_attach(int tree_fd, const char *to, unsigned long long attr)
{
    if (syscall(SYS_move_mount, tree_fd, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return -1;
    return restrict_mount(to, attr);
}

static const char *make_run(int exe_fd)
{
    if (mkdir("run", 0755) != 0 || mkdir("run/cc", 0755) != 0 ||
        mkdir("run/cc/bin", 0755) != 0 || touch("run/cc/cc-tui-local") != 0 ||
        symlink(INIT_BINARY, "run/cc/bin/demo-agent") != 0)
        return "/run/cc";
    for (const char *const *name = pkg_refusal_names; *name; name++) {
        char path[64];
        snprintf(path, sizeof(path), "run/cc/bin/%s", *name);
        if (symlink(INIT_BINARY, path) != 0)
            return "links in /run/cc";
    }
    if (ns_attach(exe_fd, "run/cc/cc-tui-local",
                  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) != 0)
        return "bind of the program";
    return NULL;
}

static const char *make_writable(const struct ns_sources *from)
{
    static const char *const dirs[] = {"home", "home/user", "tmp",  "var",    "proc",
                                       "srv",  "mnt",       "root", "var/lib"};
    char size[64];
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        if (mkdir(dirs[i], 0755) != 0)
            return dirs[i];
    if (symlink("../tmp", "var/tmp") != 0 || symlink("../run", "var/run") != 0)
        return "/var";
    /* what a build step leaves in /tmp the next one finds: there it is the layers' */
    if (from->layers >= 0 && chmod("tmp", 01777) != 0)
        return "/tmp";
    if (from->layers < 0 && mount("tmpfs", "tmp", "tmpfs", MS_NOSUID | MS_NODEV,
                                  tmpfs_size(size, sizeof(size), TMP_BYTES, 4)) != 0)
        return "/tmp";
    const unsigned long long attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (from->home >= 0 && ns_attach(from->home, "home/user", attr) != 0)
        return "/home/user";
    if (from->root_home >= 0 && ns_attach(from->root_home, "root", attr) != 0)
        return "/root";
    if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
        return "mount of /proc";
    return bind_all(ns_host_var);
}

static const char *change_root(bool writable)
{
    if (syscall(SYS_pivot_root, ".", ".") != 0)
        return "change of the root";
    if (umount2(".", NS_MNT_DETACH) != 0 || chdir("/") != 0)
        return "release of the old root";
    if (writable)
        return NULL;
    struct mount_attr ma = {.attr_set = MOUNT_ATTR_RDONLY};
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &ma, sizeof(ma)) != 0 &&
        mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) !=
            0)
        return "read-only root";
    return NULL;
}

const char *ns_mount_all(const struct ns_spec *s, const struct ns_sources *from)
{
    bool layered = s->layers_dir != NULL;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return "private mounts";
    if (mount("tmpfs", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m") != 0)
        return "mount of a tmpfs";
    if (chdir(BASE) != 0)
        return "change into the new root";
    const char *step = layered ? ns_layers_begin(from) : NULL;
    if (!step)
        step = bind_all(ns_host_dirs);
    if (!step && !layered && bind_ro("/opt") != 0)
        step = "/opt";
    if (!step)
        step = make_etc(s->id, s->resolv);
    if (!step)
        step = make_dev();
    if (!step)
        step = make_run(from->exe);
    if (!step)
        step = make_writable(from);
    if (!step && layered)
        step = ns_layers_finish(s);
    return step ? step : change_root(layered);
}
