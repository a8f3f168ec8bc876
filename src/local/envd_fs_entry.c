/* EntryInfo: what Stat, ListDir and watchers say about one file. */
#include "envd.h"
#include <cct/local/fs_meta.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_LIFE_MS 1000 /* names of users are looked up again after this */

/* The mode as Go's FileMode prints it: a letter for each kind and special bit, or a
 * dash, then the nine permissions. */
static void permissions(char dst[24], mode_t m)
{
    static const char bits[] = "rwxrwxrwx";
    char *p = dst;
    bool is_device = S_ISCHR(m) || S_ISBLK(m);
    const struct {
        bool set;
        char letter;
    } kinds[] = {
        {S_ISDIR(m), 'd'},         {S_ISLNK(m), 'L'},  {is_device, 'D'},
        {S_ISFIFO(m), 'p'},        {S_ISSOCK(m), 'S'}, {(m & S_ISUID) != 0, 'u'},
        {(m & S_ISGID) != 0, 'g'}, {S_ISCHR(m), 'c'},  {(m & S_ISVTX) != 0, 't'},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].set)
            *p++ = kinds[i].letter;
    if (p == dst)
        *p++ = '-';
    for (int i = 0; i < 9; i++)
        *p++ = m & (mode_t)(0400 >> i) ? bits[i] : '-';
    *p = '\0';
}

/* --- names of users and groups -------------------------------------------- */

/* Read from the file itself: the library would ask services that are not here. */
static bool look_up(bool is_group, unsigned id, char *dst, size_t size)
{
    char text[2048];
    bool found = false;
    FILE *f = fopen(is_group ? "/etc/group" : "/etc/passwd", "re");
    while (f != NULL && !found) {
        struct passwd pw, *p = NULL;
        struct group gr, *g = NULL;
        if (is_group ? fgetgrent_r(f, &gr, text, sizeof(text), &g) != 0
                     : fgetpwent_r(f, &pw, text, sizeof(text), &p) != 0)
            break;
        if (is_group ? g->gr_gid == id : p->pw_uid == id)
            found = str_copy(dst, size, is_group ? g->gr_name : p->pw_name);
    }
    if (f != NULL)
        fclose(f);
    return found;
}

/* A list of a folder asks the same few ids thousands of times. */
static const char *name_of(const struct envd *e, bool is_group, unsigned id)
{
    static struct {
        int64_t until;
        unsigned id;
        char name[64];
    } known[2][8];
    int64_t now = clock_mono_ms();
    size_t i = id % 8;
    if (known[is_group][i].until > now && known[is_group][i].id == id)
        return known[is_group][i].name;
    char *name = known[is_group][i].name;
    size_t size = sizeof(known[0][0].name);
    known[is_group][i].until = now + NAME_LIFE_MS;
    known[is_group][i].id = id;
    /* without isolation the sandbox's user is whoever runs this */
    if (!e->isolated && id == (is_group ? getgid() : getuid()))
        str_copy(name, size, e->user);
    else if (!look_up(is_group, id, name, size))
        snprintf(name, size, "%u", id);
    return name;
}

/* --- the entry ------------------------------------------------------------ */

static void put_time(struct jw *w, const char *name, struct timespec t)
{
    char text[48];
    struct tm tm;
    if ((t.tv_sec == 0 && t.tv_nsec == 0) || gmtime_r(&t.tv_sec, &tm) == NULL)
        return;
    size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    if (t.tv_nsec != 0)
        n += (size_t)snprintf(text + n, sizeof(text) - n, ".%09ld", t.tv_nsec);
    snprintf(text + n, sizeof(text) - n, "Z");
    jw_str(w, name, text);
}

/* Pipes, sockets and devices, and links to nowhere, are of no kind that the
 * protocol has a name for. */
static const char *type_of(mode_t m)
{
    return S_ISREG(m) ? "FILE_TYPE_FILE" : S_ISDIR(m) ? "FILE_TYPE_DIRECTORY" : NULL;
}

/* `fd` is the entry itself, `of` what it leads to, -1 for a link to nowhere. */
static void put_entry(struct envd *e, struct jw *w, const char *name, const char *path,
                      const struct stat *st, const struct stat *to, int of)
{
    char text[64];
    const char *type = type_of(to->st_mode);
    bool is_link = S_ISLNK(st->st_mode);
    jw_obj(w, NULL);
    jw_str(w, "name", name);
    if (type != NULL)
        jw_str(w, "type", type);
    jw_str(w, "path", path);
    snprintf(text, sizeof(text), "%lld", (long long)st->st_size);
    jw_str(w, "size", text);
    jw_i64(w, "mode", of >= 0 ? to->st_mode & 0777 : 0);
    permissions(text, st->st_mode);
    jw_str(w, "permissions", text);
    jw_str(w, "owner", name_of(e, false, st->st_uid));
    jw_str(w, "group", name_of(e, true, st->st_gid));
    put_time(w, "modifiedTime", st->st_mtim);
    if (is_link) {
        char *target = of >= 0 ? fs_root_where(of) : NULL;
        jw_str(w, "symlinkTarget", target != NULL ? target : path);
        free(target);
    }
    if (of >= 0)
        fs_meta_json(of, w);
    jw_end(w);
}

int envd_fs_entry(struct envd *e, struct jw *w, const char *name, const char *path)
{
    struct stat st, to;
    int fd = fs_root_open(&e->files, path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0) {
        close(fd);
        return -1;
    }
    int of = S_ISLNK(st.st_mode) ? fs_root_open(&e->files, path, O_PATH, 0) : fd;
    if (of < 0 || fstat(of, &to) != 0)
        to = st;
    put_entry(e, w, name, path, &st, &to, of);
    if (of >= 0 && of != fd)
        close(of);
    close(fd);
    return 0;
}
