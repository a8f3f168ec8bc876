/* Groups of processes; see the header. */
#include <cct/local/boxstore.h>
#include <cct/local/cgroup.h>
#include <cct/local/ns.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NAME "cc-tui-" /* of every base */
#define MAIN "cc-tui-main"
#define PERIOD_US 100000

static const struct {
    enum cgroup_limit bit;
    const char *name;
} controllers[] = {{CGROUP_MEMORY, "memory"}, {CGROUP_CPU, "cpu"}, {CGROUP_TASKS, "pids"}};

static char current[CGROUP_PATH_MAX]; /* base of this process's sandboxes */

/* --- files ---------------------------------------------------------------------- */

static int put(const char *dir, const char *file, const char *text)
{
    char path[CGROUP_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    return fs_put_value(path, text);
}

static bool get(const char *dir, const char *file, char *text, size_t size)
{
    char path[CGROUP_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)) != NULL; p += n)
        if ((p == text || p[-1] == ' ') && (p[n] == '\0' || p[n] == ' ' || p[n] == '\n'))
            return true;
    return false;
}

static bool is_cgroup2(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* --- where ------------------------------------------------------------------------ */

/* The mount of the v2 tree, and which of its groups the mount shows as its top. */
static bool find_mount(char *at, char *top)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[1024];
    bool found = false;
    while (f && !found && fgets(line, sizeof(line), f))
        found = strstr(line, " - cgroup2 ") != NULL &&
                sscanf(line, "%*d %*d %*s %255s %255s", top, at) == 2;
    if (f)
        fclose(f);
    return found;
}

/* This process's own group as a folder below the mount. */
static bool find_own(const char *at, const char *top, char own[CGROUP_PATH_MAX])
{
    char text[4096];
    get("", "/proc/self/cgroup", text, sizeof(text));
    char *p = str_starts(text, "0::") ? text : strstr(text, "\n0::");
    if (!p)
        return false;
    p = strchr(p, '/');
    if (!p || strstr(p, "/../"))
        return false;
    p[strcspn(p, "\n")] = '\0';
    size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);
    if (strncmp(p, top, n) != 0)
        return false;
    p += n;
    int len = snprintf(own, CGROUP_PATH_MAX, "%s%s", at, strcmp(p, "/") == 0 ? "" : p);
    if (len >= CGROUP_PATH_MAX - 64) /* room for the names below */
        return false;
    char *last = strrchr(own, '/');
    if (last && strcmp(last, "/" MAIN) == 0) /* an earlier provider moved us there */
        *last = '\0';
    return true;
}

/* The manager says of a group that it is handed over; else it is ours when nobody
 * else is in it. */
static bool is_ours(const char *dir)
{
    char text[4096];
    if (getxattr(dir, "user.delegate", text, sizeof(text)) == 1 && text[0] == '1')
        return true;
    return get(dir, "cgroup.procs", text, sizeof(text)) &&
           strtol(text, NULL, 10) == (long)getpid() &&
           strchr(text, '\n') == strrchr(text, '\n');
}

/* Controllers cannot be passed on by a group that has processes itself: those of a
 * group that is ours move to a leaf. */
static void make_room(const char *dir)
{
    char leaf[CGROUP_PATH_MAX], text[16384];
    if (!is_ours(dir))
        return;
    snprintf(leaf, sizeof(leaf), "%s/" MAIN, dir);
    if (mkdir(leaf, 0755) != 0 && errno != EEXIST)
        return;
    get(dir, "cgroup.procs", text, sizeof(text));
    for (char *p = text; *p != '\0';) {
        size_t n = strcspn(p, "\n");
        bool more = p[n] == '\n';
        p[n] = '\0';
        put(leaf, "cgroup.procs", p); /* one that ended meanwhile needs no place */
        p += n + more;
    }
}

static unsigned pass_on(const char *dir)
{
    char text[256], word[32];
    for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
        snprintf(word, sizeof(word), "+%s", controllers[i].name);
        put(dir, "cgroup.subtree_control", word); /* what holds is read back */
    }
    unsigned got = 0;
    get(dir, "cgroup.subtree_control", text, sizeof(text));
    for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
        if (has_word(text, controllers[i].name))
            got |= controllers[i].bit;
    return got;
}

static void say_why(struct cgroup_base *base, const char *what, const char *path)
{
    int saved = errno;
    base->path[0] = '\0';
    base->limits = 0;
    snprintf(base->why, sizeof(base->why), "%s '%.120s': %s", what, path, strerror(saved));
}

/* The group below which ours shall be. */
static bool find_parent(struct cgroup_base *base, char parent[CGROUP_PATH_MAX])
{
    char at[256], top[256];
    if (!find_mount(at, top)) {
        str_copy(base->why, sizeof(base->why), "no cgroup v2 tree is mounted here");
        return false;
    }
    if (!find_own(at, top, parent)) {
        str_copy(base->why, sizeof(base->why),
                 "the cgroup of this process is not in the mounted tree");
        return false;
    }
    if (geteuid() == 0 && access(at, W_OK) == 0)
        str_copy(parent, CGROUP_PATH_MAX, at); /* outlives the session of a login */
    return true;
}

/* --- trial ---------------------------------------------------------------------- */

/* As an init does it, with its rights: a child that starts in `run`. */
static int start_inside(int run_fd, uid_t owner, int go)
{
    char byte;
    if (read(go, &byte, 1) != 1)
        return 1;
    if (geteuid() == 0 &&
        (setresgid(owner, owner, owner) != 0 || setresuid(owner, owner, owner) != 0))
        return 2;
    pid_t pid = cgroup_fork(run_fd);
    if (pid == 0)
        _exit(0);
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 3;
}

static bool try_with_child(const char *group, uid_t owner)
{
    int go[2], run_fd = cgroup_run_fd(group), status = 1;
    if (run_fd < 0 || pipe2(go, O_CLOEXEC) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        _exit(start_inside(run_fd, owner, go[0]));
    bool ok = pid > 0 && cgroup_enter(group, pid) == 0 && write(go[1], "g", 1) == 1;
    close(go[0]);
    close(go[1]);
    close(run_fd);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    errno = EPERM;
    return ok && status == 0 && cgroup_freeze(group, true) == 0 &&
           cgroup_freeze(group, false) == 0;
}

/* Once, at the start: later every step is an error. */
static bool try_all(struct cgroup_base *base)
{
    char group[CGROUP_PATH_MAX];
    unsigned set;
    struct err e = {0};
    uid_t owner = ns_ids()->uid;
    if (cgroup_make(base, "trial00000", owner, 1, 64, group, &set, &e) != 0) {
        str_copy(base->why, sizeof(base->why), e.text);
        base->path[0] = '\0';
        return false;
    }
    bool ok = try_with_child(group, owner);
    if (!ok)
        say_why(base, "processes cannot be started in", group);
    cgroup_remove(group, 1000);
    return ok;
}

/* --- base ----------------------------------------------------------------------- */

/* The top of all groups, which may have processes and pass controllers on. */
static bool is_top(const char *dir)
{
    char text[64];
    return !get(dir, "cgroup.type", text, sizeof(text));
}

static void open_named(struct cgroup_base *base, const char *name, bool may_move)
{
    char parent[CGROUP_PATH_MAX], text[256];
    memset(base, 0, sizeof(*base));
    if (!find_parent(base, parent))
        return;
    snprintf(base->path, sizeof(base->path), "%.180s/" NAME "%.40s", parent, name);
    if (mkdir(base->path, 0755) != 0 && errno != EEXIST) {
        say_why(base, "no group can be made in", parent);
        return;
    }
    if (!is_cgroup2(base->path)) {
        errno = ENOTSUP;
        say_why(base, "no group can be made in", parent);
        return;
    }
    if (may_move) {
        make_room(parent);
        pass_on(parent);
    }
    base->limits = pass_on(base->path);
    str_copy(current, sizeof(current), base->path);
    if (!try_all(base)) {
        rmdir(current);
    } else if (!may_move && (is_ours(parent) || is_top(parent)) &&
               get(parent, "cgroup.controllers", text, 256)) {
        for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
            if (has_word(text, controllers[i].name))
                base->limits |= controllers[i].bit;
    }
}

void cgroup_open(struct cgroup_base *base, const char *state_dir)
{
    uint32_t hash = 2166136261u; /* one base for each state folder */
    for (const char *p = state_dir; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    char name[16];
    snprintf(name, sizeof(name), "%08x", hash);
    open_named(base, name, true);
}

void cgroup_probe(struct cgroup_base *base)
{
    char name[24];
    snprintf(name, sizeof(name), "probe-%d", (int)getpid());
    open_named(base, name, false);
    cgroup_close(base);
}

void cgroup_close(struct cgroup_base *base)
{
    if (base->path[0])
        rmdir(base->path); /* not empty: sandboxes go on, and the next start has it */
}

/* --- groups ----------------------------------------------------------------------- */

static void set_limits(const struct cgroup_base *base, const char *path, int cpu, int mem_mb,
                       unsigned *set)
{
    char text[64];
    struct sysinfo si;
    *set = 0;
    snprintf(text, sizeof(text), "%lld", (long long)mem_mb << 20);
    /* more than the machine has would be no limit, and none is claimed then */
    if ((base->limits & CGROUP_MEMORY) && mem_mb > 0 && sysinfo(&si) == 0 &&
        ((uint64_t)mem_mb << 20) <= (uint64_t)si.totalram * si.mem_unit &&
        put(path, "memory.max", text) == 0)
        *set |= CGROUP_MEMORY;
    snprintf(text, sizeof(text), "%d %d", cpu * PERIOD_US, PERIOD_US);
    if ((base->limits & CGROUP_CPU) && cpu > 0 && cpu <= sysconf(_SC_NPROCESSORS_ONLN) &&
        put(path, "cpu.max", text) == 0)
        *set |= CGROUP_CPU;
    snprintf(text, sizeof(text), "%d", NS_PROCESSES + 1);
    if ((base->limits & CGROUP_TASKS) && put(path, "pids.max", text) == 0)
        *set |= CGROUP_TASKS;
}

/* The init moves nobody but may start processes in `run`, which needs the right to
 * write to the lists of both groups. */
static int hand_over(const char *dir, uid_t owner)
{
    char path[CGROUP_PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
    return geteuid() != 0 ? 0 : chown(path, owner, (gid_t)-1);
}

int cgroup_make(const struct cgroup_base *base, const char *id, uid_t owner, int cpu,
                int mem_mb, char path[CGROUP_PATH_MAX], unsigned *set, struct err *e)
{
    char run[CGROUP_PATH_MAX + 8];
    snprintf(path, CGROUP_PATH_MAX, "%.220s/%.24s", base->path, id);
    snprintf(run, sizeof(run), "%s/run", path);
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return err_sys(e, ERR_IO, "cannot make the group '%s'", path);
    set_limits(base, path, cpu, mem_mb, set);
    put(path, "cgroup.max.descendants", "1");
    if ((mkdir(run, 0755) != 0 && errno != EEXIST) || hand_over(path, owner) != 0 ||
        hand_over(run, owner) != 0) {
        err_sys(e, ERR_IO, "cannot make the group '%s'", run);
        cgroup_remove(path, 0);
        return ERR_IO;
    }
    return 0;
}

int cgroup_run_fd(const char *path)
{
    char run[CGROUP_PATH_MAX + 8];
    snprintf(run, sizeof(run), "%s/run", path);
    return open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int cgroup_enter(const char *path, pid_t pid)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", (int)pid);
    return put(path, "cgroup.procs", text);
}

int cgroup_freeze(const char *path, bool on)
{
    return put(path, "run/cgroup.freeze", on ? "1" : "0");
}

/* A path from a record: the group of a sandbox in a base, and nothing else. */
static bool is_sandbox(const char *path)
{
    const char *id = strrchr(path, '/');
    const char *base = id ? memrchr(path, '/', (size_t)(id - path)) : NULL;
    return base && str_starts(base, "/" NAME) && sbox_id_ok(id + 1) && is_cgroup2(path);
}

int cgroup_kill(const char *path)
{
    return is_sandbox(path) ? put(path, "cgroup.kill", "1") : -1;
}

/* True when no process is left; tells of a change by POLLPRI. */
static bool await_empty(const char *path, int wait_ms)
{
    char file[CGROUP_PATH_MAX + 16], text[128];
    snprintf(file, sizeof(file), "%s/cgroup.events", path);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    int64_t end = clock_mono_ms() + wait_ms, left = wait_ms;
    bool empty = fd < 0;
    while (!empty) {
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
        text[n > 0 ? n : 0] = '\0';
        empty = strstr(text, "populated 0") != NULL;
        struct pollfd p = {fd, POLLPRI, 0};
        if (!empty && (left <= 0 || poll(&p, 1, (int)left) < 0))
            break;
        left = end - clock_mono_ms();
    }
    if (fd >= 0)
        close(fd);
    return empty;
}

bool cgroup_remove(const char *path, int wait_ms)
{
    char part[CGROUP_PATH_MAX + 8];
    if (!is_sandbox(path))
        return true;
    if (!await_empty(path, wait_ms))
        return false;
    snprintf(part, sizeof(part), "%s/run", path);
    rmdir(part);
    if (rmdir(path) != 0 && errno != ENOENT)
        return false;
    str_copy(part, sizeof(part), path);
    *strrchr(part, '/') = '\0';
    if (strcmp(part, current) != 0) /* the base of an earlier provider */
        rmdir(part);
    return true;
}

void cgroup_each(const struct cgroup_base *base,
                 void (*fn)(void *arg, const char *id, const char *path), void *arg)
{
    DIR *d = base->path[0] ? opendir(base->path) : NULL;
    struct dirent *de;
    while (d && (de = readdir(d)) != NULL) {
        char path[CGROUP_PATH_MAX + 264];
        snprintf(path, sizeof(path), "%s/%s", base->path, de->d_name);
        if (sbox_id_ok(de->d_name) && is_sandbox(path))
            fn(arg, de->d_name, path);
    }
    if (d)
        closedir(d);
}

void cgroup_limit_names(unsigned limits, char *dst, size_t size)
{
    snprintf(dst, size, "%s%s%s", limits & CGROUP_MEMORY ? " memory" : "",
             limits & CGROUP_CPU ? " cpu" : "", limits & CGROUP_TASKS ? " tasks" : "");
    memmove(dst, dst + (*dst == ' '), strlen(dst) + (*dst != ' '));
}

pid_t cgroup_fork(int run_fd)
{
    struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
    args.cgroup = (uint64_t)run_fd;
    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}
