/* Records of sandboxes on disk, and identity of processes by start time. */
#include <cct/local/boxstore.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/pidstat.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RECORD_MAX (256u << 10)

bool sbox_id_ok(const char *id)
{
    size_t n = strlen(id);
    if (n < 8 || n > 23)
        return false;
    return strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == n;
}

char *boxstore_dir(const char *state_dir, const char *id)
{
    return xasprintf("%s/boxes/%s", state_dir, id);
}

static void write_object(struct jw *w, const char *name, const struct cJSON *o)
{
    char *text = o ? json_text(o) : NULL;
    if (text)
        jw_raw(w, name, text);
    free(text);
}

static void record_text(struct buf *b, const struct sbox_rec *r)
{
    struct jw w;
    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_i64(&w, "version", 1);
    jw_str(&w, "id", r->id);
    jw_str(&w, "token", r->token);
    jw_str(&w, "trafficToken", r->traffic_token);
    jw_str(&w, "templateID", r->template_id);
    jw_str(&w, "buildID", r->build_id);
    jw_str(&w, "alias", r->alias);
    jw_i64(&w, "pid", r->pid);
    jw_i64(&w, "startTicks", (int64_t)r->start_ticks);
    jw_i64(&w, "startedAt", r->started_ms);
    jw_i64(&w, "endAt", r->end_ms);
    jw_i64(&w, "endBoot", r->end_boot_ms);
    jw_str(&w, "state", r->state == SBOX_PAUSED ? "paused" : "running");
    jw_bool(&w, "isolated", r->isolated);
    jw_bool(&w, "internet", r->internet);
    jw_bool(&w, "autoPause", r->auto_pause);
    jw_bool(&w, "autoResume", r->auto_resume);
    jw_bool(&w, "hidden", r->hidden);
    jw_bool(&w, "internetAsked", r->internet_asked);
    jw_bool(&w, "autoPauseCold", r->auto_pause_cold);
    jw_bool(&w, "cold", r->cold);
    jw_i64(&w, "cpu", r->cpu);
    jw_i64(&w, "mem", r->mem_mb);
    jw_i64(&w, "limits", r->limits);
    jw_str(&w, "cgroup", r->cgroup);
    jw_str(&w, "socket", r->sock);
    write_object(&w, "metadata", r->metadata);
    write_object(&w, "network", r->network);
    jw_end(&w);
}

/* Atomic but without fsync: after a power failure there is no sandbox left that
 * the record could describe, and the loop must not wait for a disk. */
static int replace_file(const char *path, const char *data, size_t len, struct err *e)
{
    char *tmp = xasprintf("%s.new", path);
    unlink(tmp);
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = 0;
    if (fd < 0 || fs_write_all(fd, data, len) != 0)
        rc = err_sys(e, 0, "cannot write '%s'", tmp);
    if (fd >= 0)
        close(fd);
    if (rc == 0 && rename(tmp, path) != 0)
        rc = err_sys(e, 0, "cannot replace '%s'", path);
    if (rc != 0)
        unlink(tmp);
    free(tmp);
    return rc;
}

int boxstore_save(const char *state_dir, const struct sbox_rec *r, struct err *e)
{
    struct buf b = BUF_INIT;
    record_text(&b, r);
    char *dir = boxstore_dir(state_dir, r->id);
    char *path = fs_join(dir, "box.json");
    int rc = replace_file(path, b.p, b.len, e);
    free(path);
    free(dir);
    buf_release(&b);
    return rc;
}

static bool take_str(const struct cJSON *j, const char *name, char *dst, size_t size)
{
    const char *s = json_str(j, name, NULL);
    return s && *s && str_copy(dst, size, s);
}

static struct cJSON *copy_object(const struct cJSON *o)
{
    return json_is_object(o) ? json_copy(o) : NULL;
}

static bool from_json(struct sbox_rec *r, const struct cJSON *j)
{
    bool ok =
        take_str(j, "id", r->id, sizeof(r->id)) && sbox_id_ok(r->id) &&
        take_str(j, "token", r->token, sizeof(r->token)) &&
        take_str(j, "templateID", r->template_id, sizeof(r->template_id)) &&
        str_copy(r->alias, sizeof(r->alias), json_str(j, "alias", "")) &&
        take_str(j, "socket", r->sock, sizeof(r->sock)) &&
        str_copy(r->traffic_token, sizeof(r->traffic_token), json_str(j, "trafficToken", ""));
    str_copy(r->build_id, sizeof(r->build_id), json_str(j, "buildID", ""));
    r->pid = (pid_t)json_i64(j, "pid", 0);
    r->start_ticks = (uint64_t)json_i64(j, "startTicks", 0);
    r->started_ms = json_i64(j, "startedAt", 0);
    sbox_rec_set_end(r, json_i64(j, "endAt", 0));
    /* a process outlives no reboot, so its record was made on this boot's clock */
    r->end_boot_ms = json_i64(j, "endBoot", r->end_boot_ms);
    const char *state = json_str(j, "state", "");
    r->state = strcmp(state, "paused") == 0 ? SBOX_PAUSED : SBOX_RUNNING;
    r->isolated = json_bool(j, "isolated", false);
    r->internet = json_bool(j, "internet", true);
    r->auto_pause = json_bool(j, "autoPause", false);
    r->auto_resume = json_bool(j, "autoResume", false);
    r->hidden = json_bool(j, "hidden", false);
    r->internet_asked = json_bool(j, "internetAsked", false);
    r->auto_pause_cold = json_bool(j, "autoPauseCold", false);
    r->cold = json_bool(j, "cold", false);
    r->cpu = (int)json_i64(j, "cpu", 1);
    r->mem_mb = (int)json_i64(j, "mem", 512);
    r->metadata = copy_object(json_get(j, "metadata"));
    r->network = copy_object(json_get(j, "network"));
    r->limits = (unsigned)json_i64(j, "limits", 0);
    if (!str_copy(r->cgroup, sizeof(r->cgroup), json_str(j, "cgroup", "")))
        r->cgroup[0] = '\0';
    return ok && r->pid > 1 && r->start_ticks > 0 && r->started_ms > 0 && r->end_ms > 0;
}

int boxstore_load(const char *state_dir, const char *id, struct sbox_rec *r, struct err *e)
{
    memset(r, 0, sizeof(*r));
    char *dir = boxstore_dir(state_dir, id);
    char *path = fs_join(dir, "box.json");
    size_t len = 0;
    char *text = fs_read(path, RECORD_MAX, true, &len, e);
    struct cJSON *j = text ? json_parse(text, len, e) : NULL;
    int rc = 0;
    if (!j)
        rc = text ? ERR_CORRUPT : ERR_NOTFOUND;
    else if (!from_json(r, j) || strcmp(r->id, id) != 0)
        rc = err_set(e, ERR_CORRUPT, "record '%s' is damaged", path);
    if (rc != 0)
        sbox_rec_clear(r);
    json_free(j);
    free(text);
    free(path);
    free(dir);
    return rc;
}

void sbox_rec_clear(struct sbox_rec *r)
{
    json_free(r->metadata);
    json_free(r->network);
    memset(r, 0, sizeof(*r));
}

void sbox_rec_set_end(struct sbox_rec *r, int64_t end_ms)
{
    r->end_ms = end_ms;
    r->end_boot_ms = clock_boot_ms() + end_ms - clock_wall_ms();
}

int64_t sbox_rec_end_now(const struct sbox_rec *r)
{
    return clock_wall_ms() + r->end_boot_ms - clock_boot_ms();
}

void boxstore_each(const char *state_dir, void (*fn)(void *arg, const char *id), void *arg)
{
    char *path = fs_join(state_dir, "boxes");
    DIR *d = opendir(path);
    free(path);
    if (!d)
        return;
    struct dirent *de;
    while ((de = readdir(d)) != NULL)
        if (sbox_id_ok(de->d_name))
            fn(arg, de->d_name);
    closedir(d);
}

/* Depth-first removal with a bounded number of open folders: what lies deeper is
 * first moved up beside the top folder's own entries, and the top looked at again. */
#define REMOVE_DEPTH 24

struct removal {
    int top;
    unsigned serial; /* of names for folders that were moved up */
    bool again;
};

/* Another process may remove the same tree. */
static int unless_gone(void)
{
    return errno == ENOENT ? 0 : -1;
}

static int move_up(struct removal *r, int parent, const char *name)
{
    char to[32];
    do
        snprintf(to, sizeof(to), ".deep-%u", r->serial++);
    while (renameat2(parent, name, r->top, to, RENAME_NOREPLACE) != 0 && errno == EEXIST);
    struct stat st;
    if (fstatat(r->top, to, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return unless_gone();
    r->again = true;
    return 0;
}

static int empty_folder(struct removal *r, DIR *d, int depth);

static int remove_at(struct removal *r, int parent, const char *name, int depth)
{
    if (unlinkat(parent, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return unless_gone();
    struct stat st;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return unless_gone();
    if (!S_ISDIR(st.st_mode))
        return -1;
    if ((st.st_mode & 0700) != 0700 && fchmodat(parent, name, 0700, AT_SYMLINK_NOFOLLOW) != 0)
        return unless_gone();
    if (depth > REMOVE_DEPTH)
        return move_up(r, parent, name);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        int rc = unless_gone();
        if (fd >= 0)
            close(fd);
        return rc;
    }
    if (r->top < 0)
        r->top = fd;
    int rc;
    do {
        r->again = depth == 0 ? false : r->again;
        rc = empty_folder(r, d, depth);
    } while (depth == 0 && r->again);
    closedir(d);
    return unlinkat(parent, name, AT_REMOVEDIR) != 0 && unless_gone() != 0 ? -1 : rc;
}

/* Errors do not end it: as much as can be is removed. */
static int empty_folder(struct removal *r, DIR *d, int depth)
{
    int rc = 0;
    struct dirent *de;
    rewinddir(d);
    while ((de = readdir(d)) != NULL)
        if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0 &&
            remove_at(r, dirfd(d), de->d_name, depth + 1) != 0)
            rc = -1;
    return rc;
}

int boxstore_remove_tree(const char *path, struct err *e)
{
    struct removal r = {.top = -1};
    if (remove_at(&r, AT_FDCWD, path, 0) != 0)
        return err_sys(e, ERR_IO, "cannot remove '%s' completely", path);
    return 0;
}

int proc_open_checked(pid_t pid, uint64_t ticks)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return -1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    /* the descriptor pins the process, so looking after opening is race-free */
    if (pidstat_start(pid) == ticks && ticks != 0)
        return fd;
    close(fd);
    return -1;
}

int proc_signal(int pidfd, int sig)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

pid_t proc_find_init(const char *id)
{
    DIR *d = opendir("/proc");
    if (!d)
        return 0;
    pid_t found = 0;
    struct dirent *de;
    while (found == 0 && (de = readdir(d)) != NULL) {
        int64_t pid;
        char path[64], text[512];
        if (!str_to_i64(de->d_name, 2, INT32_MAX, &pid))
            continue;
        snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
        if (fd >= 0)
            close(fd);
        text[n > 0 ? n : 0] = '\0';
        const char *word = text + strlen(text) + 1; /* after the program's name */
        if (word < text + n && strcmp(word, "sandbox-init") == 0 &&
            word + sizeof("sandbox-init") < text + n &&
            strcmp(word + sizeof("sandbox-init"), id) == 0)
            found = (pid_t)pid;
    }
    closedir(d);
    return found;
}
