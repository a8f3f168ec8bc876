/* Metadata of files in extended attributes: see the header. */
#include <cct/local/fs_meta.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define PREFIX "user.e2b."
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define NAMES_MAX 65536 /* XATTR_LIST_MAX */

static bool is_printable(const char *s)
{
    for (; *s != '\0'; s++)
        if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e)
            return false;
    return true;
}

static bool refuse(struct fs_meta *m, const char *text)
{
    if (m->why[0] == '\0')
        str_copy(m->why, sizeof(m->why), text);
    return false;
}

static bool is_fine(struct fs_meta *m, const char *key, const char *value)
{
    if (strlen(key) > FS_META_KEY_MAX)
        return refuse(m, "a metadata key is longer than 246 bytes");
    if (!is_printable(key) || !is_printable(value))
        return refuse(m, "a metadata key or value holds a byte that is no printable ASCII");
    if (m->total + PREFIX_LEN + strlen(key) + strlen(value) > FS_META_TOTAL_MAX)
        return refuse(m, "the metadata is larger than 4096 bytes");
    return true;
}

void fs_meta_add(struct fs_meta *m, const char *key, const char *value)
{
    for (size_t i = 0; i < m->a.n; i++)
        if (str_eq_nocase(m->a.v[i].key, key))
            return;
    if (key[0] == '\0' || !is_fine(m, key, value))
        return;
    struct fs_meta_pair *p = ARR_PUSH(&m->a);
    p->key = xstrdup(key);
    p->value = xstrdup(value);
    for (char *c = p->key; *c != '\0'; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c + ('a' - 'A'));
    m->total += PREFIX_LEN + strlen(key) + strlen(value);
}

void fs_meta_release(struct fs_meta *m)
{
    for (size_t i = 0; i < m->a.n; i++) {
        free(m->a.v[i].key);
        free(m->a.v[i].value);
    }
    ARR_RELEASE(&m->a);
    m->total = 0;
}

static const struct fs_meta_pair *find(const struct fs_meta *m, const char *key)
{
    for (size_t i = 0; i < m->a.n; i++)
        if (str_eq(m->a.v[i].key, key))
            return &m->a.v[i];
    return NULL;
}

int fs_meta_write(int fd, const struct fs_meta *m)
{
    char name[PREFIX_LEN + FS_META_KEY_MAX + 1];
    char *names = xmalloc(NAMES_MAX);
    ssize_t n = flistxattr(fd, names, NAMES_MAX);
    int rc = n < 0 && m->a.n == 0 && errno == ENOTSUP ? 0 : n < 0 ? -1 : 0;
    for (const char *p = names; rc == 0 && n > 0 && p < names + n; p += strlen(p) + 1)
        if (str_starts(p, PREFIX) && find(m, p + PREFIX_LEN) == NULL &&
            fremovexattr(fd, p) != 0 && errno != ENODATA)
            rc = -1;
    for (size_t i = 0; rc == 0 && i < m->a.n; i++) {
        snprintf(name, sizeof(name), PREFIX "%s", m->a.v[i].key);
        rc = fsetxattr(fd, name, m->a.v[i].value, strlen(m->a.v[i].value), 0);
    }
    int saved = errno;
    free(names);
    errno = saved;
    return rc;
}

/* What a program in the sandbox has set may be anything: only text is shown. */
static void put_value(const char *link, const char *name, struct jw *w, bool *open)
{
    char value[FS_META_TOTAL_MAX * 2];
    ssize_t n = getxattr(link, name, value, sizeof(value));
    if (n < 0 || !utf8_valid(name, strlen(name)) || !utf8_valid(value, (size_t)n))
        return;
    if (!*open)
        jw_obj(w, "metadata");
    *open = true;
    jw_strn(w, name + PREFIX_LEN, value, (size_t)n);
}

void fs_meta_json(int fd, struct jw *w)
{
    char link[40], names[4096];
    bool open = false;
    char *big = NULL;
    const char *list = names;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = listxattr(link, names, sizeof(names));
    if (n < 0 && errno == ERANGE) {
        list = big = xmalloc(NAMES_MAX);
        n = listxattr(link, big, NAMES_MAX);
    }
    for (const char *p = list; n > 0 && p < list + n; p += strlen(p) + 1)
        if (str_starts(p, PREFIX))
            put_value(link, p, w, &open);
    if (open)
        jw_end(w);
    free(big);
}
