/* Tries the whole start of a sandbox in a child and turns a refusal into one
 * sentence with what to do. A clone() that succeeds proves nothing: on some
 * systems only the id map or a mount is refused. */
#include <cct/local/boxstore.h>
#include <cct/local/ns.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_MS 5000

static bool sysctl_is(const char *path, const char *value)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n > 0)
        text[n] = '\0';
    return strcmp(str_trim(text), value) == 0;
}

void ns_apparmor_profile(struct buf *b, const char *exe)
{
    buf_addf(b,
             "# /etc/apparmor.d/cc-tui-local, then: apparmor_parser -r "
             "/etc/apparmor.d/cc-tui-local\n"
             "abi <abi/4.0>,\ninclude <tunables/global>\n"
             "profile cc-tui-local \"%s\" flags=(unconfined) {\n  userns,\n}\n",
             exe);
}

/* What the user can do about it, from the host's switches. */
static const char *advice(int sys)
{
    if (sysctl_is("/proc/sys/user/max_user_namespaces", "0") || sys == ENOSPC)
        return "as root: sysctl -w user.max_user_namespaces=15000";
    if (geteuid() != 0 && sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", "0"))
        return "as root: sysctl -w kernel.unprivileged_userns_clone=1";
    if (geteuid() != 0 &&
        sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
        return "AppArmor restricts user namespaces here: as root, install the profile that "
               "'cc-tui-local probe --profile' prints";
    if (access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0)
        return "start the container with --security-opt seccomp=unconfined --security-opt "
               "apparmor=unconfined --security-opt systempaths=unconfined";
    return "a container needs --security-opt seccomp=unconfined, apparmor=unconfined and "
           "systempaths=unconfined; a host needs user namespaces (sysctl "
           "user.max_user_namespaces)";
}

static int refusal(struct err *e, const char *cause, int sys)
{
    char text[256];
    str_copy(text, sizeof(text), cause);
    return err_set(e, ERR_UNSUPPORTED,
                   "this system does not let cc-tui make isolated sandboxes: %s; %s", text,
                   advice(sys));
}

static bool await(int fd, int64_t deadline)
{
    struct pollfd pfd = {fd, POLLIN, 0};
    int64_t left = deadline - clock_mono_ms();
    return left > 0 && poll(&pfd, 1, (int)left) != 0;
}

static void read_status(int fd, char *text, size_t size, int64_t deadline)
{
    size_t have = 0;
    while (await(fd, deadline)) {
        ssize_t n = read(fd, text + have, size - 1 - have);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    text[have] = '\0';
}

/* Start it, and wait for its end. 0, or -1 with the failed step in text[] (empty
 * when the program did not run), or ERR_UNSUPPORTED with the errno in *sys. */
static int try_start(const struct ns_spec *s, char *text, size_t size, int *sys)
{
    struct ns_child child;
    struct err first = {0};
    if (ns_start(s, &child, &first) != 0) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        str_copy(text, size, first.text);
        *sys = first.sys;
        return -1;
    }
    int64_t deadline = clock_mono_ms() + PROBE_MS;
    read_status(child.status_fd, text, size, deadline);
    close(child.status_fd);
    bool ended = await(child.pidfd, deadline);
    syscall(SYS_pidfd_send_signal, child.pidfd, SIGKILL, NULL, 0);
    close(child.pidfd);
    int status = 0;
    while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return !text[0] && ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int ns_probe_root(const char *exe, bool *root, struct err *e)
{
    struct ns_spec s = {.id = "probe",
                        .exe = exe,
                        .config_fd = -1,
                        .listen_fd = -1,
                        .cgroup_fd = -1,
                        .isolated = true,
                        .probe = true,
                        .probe_root = true};
    char text[256] = "";
    int sys = 0, rc = ns_probe(exe, e);
    *root = rc == 0 && try_start(&s, text, sizeof(text), &sys) == 0;
    return rc;
}

int ns_probe(const char *exe, struct err *e)
{
    struct ns_spec s = {.id = "probe",
                        .exe = exe,
                        .config_fd = -1,
                        .listen_fd = -1,
                        .cgroup_fd = -1,
                        .isolated = true,
                        .probe = true};
    char text[256] = "";
    int sys = 0;
    if (try_start(&s, text, sizeof(text), &sys) == 0)
        return 0;
    if (text[0])
        return refusal(e, text, sys);
    return err_set(e, ERR_UNSUPPORTED,
                   "'%s' does not run inside a sandbox, which sees only /usr, /opt and the "
                   "program itself; its libraries must be there and the file readable by all",
                   exe);
}

/* --- layers ------------------------------------------------------------------- */

int ns_layer_make(const char *path, struct err *e)
{
    static const char *const parts[] = {"", "/root", "/work"};
    const struct ns_ids *ids = ns_ids();
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char *dir = xasprintf("%s%s", path, parts[i]);
        int rc = 0;
        if (mkdir(dir, 0755) != 0 && errno != EEXIST)
            rc = err_sys(e, 0, "cannot make '%s'", dir);
        else if (geteuid() == 0 && lchown(dir, ids->uid, ids->gid) != 0)
            rc = err_sys(e, 0, "cannot hand over '%s'", dir);
        free(dir);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* What to do when layers are refused, from what is known to refuse them. */
static const char *layers_advice(const char *dir)
{
    struct utsname u;
    struct statfs fs;
    int major = 0, minor = 0;
    if (uname(&u) == 0 && sscanf(u.release, "%d.%d", &major, &minor) == 2 &&
        (major < 5 || (major == 5 && minor < 12)))
        return "they need Linux 5.12 or newer";
    if (statfs(dir, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC)
        return "the state folder lies on an overlay file system, as in a container: put it on "
               "a volume (--state-dir)";
    if (access("/sys/module/overlay", F_OK) != 0)
        return "the kernel has no overlay file system loaded: as root, modprobe overlay";
    return "put the state folder on a local file system such as ext4, xfs or btrfs "
           "(--state-dir)";
}

/* A layer with one file in a folder, for the changes that the probe makes. */
static int make_probe_layer(const char *root, struct err *e)
{
    char *dir = xasprintf("%s/layers/probe", root), *sub = xasprintf("%s/root/d", dir);
    char *file = xasprintf("%s/f", sub), *upper = xasprintf("%s/upper", root);
    char *layers = xasprintf("%s/layers", root);
    const struct ns_ids *ids = ns_ids();
    bool root_here = geteuid() == 0;
    int rc = chmod(root, 0711) != 0 || mkdir(layers, 0711) != 0 ? -1 : 0;
    if (rc == 0 && (ns_layer_make(dir, e) != 0 || ns_layer_make(upper, e) != 0))
        rc = -1;
    if (rc == 0 && mkdir(sub, 0755) == 0) {
        int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 || (root_here && (fchown(fd, ids->uid, ids->gid) != 0 ||
                                     lchown(sub, ids->uid, ids->gid) != 0)))
            rc = -1;
        if (fd >= 0)
            close(fd);
    }
    if (rc != 0 && e->code == 0)
        err_sys(e, 0, "cannot make '%s'", root);
    free(dir);
    free(sub);
    free(file);
    free(upper);
    free(layers);
    return rc == 0 ? 0 : e->code;
}

static int probe_layers_at(const char *root, const char *exe, struct err *e)
{
    char *layers_dir = xasprintf("%s/layers", root), *upper = xasprintf("%s/upper", root);
    const char *const layers[] = {"probe"};
    struct ns_spec s = {.id = "probe",
                        .exe = exe,
                        .layers_dir = layers_dir,
                        .layers = layers,
                        .n_layers = 1,
                        .upper = upper,
                        .config_fd = -1,
                        .listen_fd = -1,
                        .cgroup_fd = -1,
                        .isolated = true,
                        .probe = true};
    char text[256] = "";
    int sys = 0, rc = make_probe_layer(root, e);
    if (rc == 0 && try_start(&s, text, sizeof(text), &sys) != 0)
        rc = err_set(e, ERR_UNSUPPORTED,
                     "this system does not let cc-tui build templates from layers: %s; %s",
                     text[0] ? text : "the sandbox did not start", layers_advice(root));
    free(layers_dir);
    free(upper);
    return rc;
}

int ns_layers_probe(const char *state_dir, struct err *e)
{
    char *root = xasprintf("%s/probe.XXXXXX", state_dir);
    char *exe = ns_own_path();
    int rc;
    if (!exe)
        rc = err_sys(e, 0, "cannot find the path of this program");
    else if (!mkdtemp(root))
        rc = err_sys(e, 0, "cannot make a folder in '%s'", state_dir);
    else
        rc = probe_layers_at(root, exe, e);
    if (exe && access(root, F_OK) == 0)
        boxstore_remove_tree(root, NULL);
    free(exe);
    free(root);
    return rc;
}
