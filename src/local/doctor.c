/* See the header. Every finding says what it means and what to do. */
#include <cct/local/cgroup.h>
#include <cct/local/doctor.h>
#include <cct/local/ns.h>
#include <cct/local/privnet.h>
#include <cct/util/arr.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/xalloc.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define OLD_MAJOR 5 /* before 5.12 templates need more than there is */
#define OLD_MINOR 12
#define FILES_MIN 4096      /* descriptors: two for each open stream */
#define DISK_MIN (1u << 30) /* bytes free */

enum grade { OK, WARN, FAIL };

struct finding {
    const char *what;
    enum grade grade;
    char *text;
};
struct look {
    ARR(struct finding) v;
    const char *exe, *state_dir;
    bool isolated;
};

static void find(struct look *l, const char *what, enum grade g, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void find(struct look *l, const char *what, enum grade g, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    *ARR_PUSH(&l->v) = (struct finding){what, g, buf_detach(&b, NULL)};
}

static void look_isolation(struct look *l)
{
    struct err e = {0};
    bool root = false;
    l->isolated = ns_probe_root(l->exe, &root, &e) == 0;
    if (!l->isolated) {
        find(l, "isolation", FAIL, "%s", e.text);
        return;
    }
    find(l, "isolation", OK, "isolated sandboxes work here");
    if (root)
        find(l, "user root", OK,
             "commands of the user root are root of their sandbox's own files");
    else
        find(l, "user root", WARN,
             "this kernel allows no user namespace inside another, so commands of the user "
             "root run as the ordinary user; as root: sysctl -w "
             "user.max_user_namespaces=15000");
}

static void look_templates(struct look *l)
{
    struct err e = {0};
    if (!l->isolated)
        return;
    if (fs_mkdir_private(l->state_dir, &e) != 0)
        find(l, "templates", FAIL, "%s", e.text);
    else if (ns_layers_probe(l->state_dir, &e) == 0)
        find(l, "templates", OK, "layers work in '%s', so templates can be built",
             l->state_dir);
    else
        find(l, "templates", WARN, "%s", e.text);
}

static void look_groups(struct look *l)
{
    static const char user_cure[] =
        "for limits, start the provider where a group is handed over: systemd-run --user "
        "--scope -p Delegate=yes cc-tui local start";
    static const char root_cure[] =
        "the memory and cpu controllers are not in the cgroup v2 tree: boot with "
        "systemd.unified_cgroup_hierarchy=1, or cgroup_no_v1=all";
    const char *cure = geteuid() == 0 ? root_cure : user_cure;
    const unsigned real = CGROUP_MEMORY | CGROUP_CPU;
    struct cgroup_base base;
    char names[40];
    cgroup_probe(&base);
    cgroup_limit_names(base.limits, names, sizeof(names));
    if (!base.path[0])
        find(l, "memory and CPU", WARN,
             "not limited: %s; a sandbox may use all of the machine, and a pause stops it by "
             "signals; %s",
             base.why, cure);
    else if ((base.limits & real) != real)
        find(l, "memory and CPU", WARN, "not limited%s%s; a pause freezes a sandbox; %s",
             *names ? ", only: " : "", names, cure);
    else
        find(l, "memory and CPU", OK, "a sandbox is limited (%s), and a pause freezes it",
             names);
}

static void look_network(struct look *l)
{
    struct err e = {0};
    if (!l->isolated)
        return;
    if (privnet_probe(l->exe, &e) == 0)
        find(l, "network", OK,
             "sandboxes can have private networks (network = private in [local])");
    else
        find(l, "network", WARN,
             "sandboxes share this machine's network and reach what listens on its loopback; "
             "%s",
             e.text);
}

static void look_limits(struct look *l)
{
    struct rlimit files, tasks;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max < FILES_MIN)
        find(l, "descriptors", WARN,
             "only %llu for a process; many streams at once will be refused; raise ulimit -Hn",
             (unsigned long long)files.rlim_max);
    else
        find(l, "descriptors", OK, "enough for many streams");
    if (getrlimit(RLIMIT_NPROC, &tasks) == 0 && tasks.rlim_cur < 2 * NS_PROCESSES)
        find(l, "processes", WARN,
             "only %llu for this user, and a sandbox may have %d; raise ulimit -u",
             (unsigned long long)tasks.rlim_cur, NS_PROCESSES);
    else
        find(l, "processes", OK, "a sandbox is limited to %d, and a file to %llu GiB",
             NS_PROCESSES, NS_FILE_MAX >> 30);
}

/* Free space where sandboxes keep their files, or will. */
static void look_disk(struct look *l)
{
    struct statvfs v;
    char *dir = xstrdup(l->state_dir);
    while (statvfs(dir, &v) != 0) {
        char *slash = strrchr(dir, '/');
        if (!slash || slash == dir)
            break;
        *slash = '\0';
    }
    if (statvfs(dir, &v) == 0) {
        unsigned long long bytes = (unsigned long long)v.f_bavail * v.f_frsize;
        find(l, "disk", bytes < DISK_MIN ? WARN : OK,
             "%.1f GiB free in '%s'; what a sandbox writes is not limited in all%s",
             (double)bytes / (1 << 30), dir,
             bytes < DISK_MIN ? "; make room, or put the state folder elsewhere" : "");
    }
    free(dir);
}

static void look_kernel(struct look *l)
{
    struct utsname u;
    int major = 0, minor = 0;
    if (uname(&u) != 0 || sscanf(u.release, "%d.%d", &major, &minor) != 2)
        return;
    bool old = major < OLD_MAJOR || (major == OLD_MAJOR && minor < OLD_MINOR);
    find(l, "kernel", old ? WARN : OK, "Linux %s%s", u.release,
         old ? "; templates need 5.12, the limit of processes 5.14" : "");
}

static void print_json(const struct look *l)
{
    static const char *const names[] = {"ok", "warn", "fail"};
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < l->v.n; i++) {
        jw_obj(&w, NULL);
        jw_str(&w, "what", l->v.v[i].what);
        jw_str(&w, "status", names[l->v.v[i].grade]);
        jw_str(&w, "text", l->v.v[i].text);
        jw_end(&w);
    }
    jw_end(&w);
    puts(buf_str(&b));
    buf_release(&b);
}

int doctor_print(const char *exe, const char *state_dir, bool json)
{
    static const char *const marks[] = {"ok", "warn", "FAIL"};
    char *base = state_dir ? NULL : fs_place(FS_STATE, NULL);
    char *dir = state_dir ? xstrdup(state_dir) : fs_join(base ? base : "/tmp", "local");
    struct look l = {ARR_INIT, exe, dir, false};
    look_kernel(&l);
    look_isolation(&l);
    look_templates(&l);
    look_groups(&l);
    look_network(&l);
    look_limits(&l);
    look_disk(&l);
    if (json)
        print_json(&l);
    for (size_t i = 0; i < l.v.n; i++) {
        if (!json)
            printf("%-4s  %-15s  %s\n", marks[l.v.v[i].grade], l.v.v[i].what, l.v.v[i].text);
        free(l.v.v[i].text);
    }
    ARR_RELEASE(&l.v);
    free(dir);
    free(base);
    return l.isolated ? 0 : 1;
}
