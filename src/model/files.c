/* What envd says of files, read with care. */
#include <cct/model/files.h>

#include <cct/text/clean.h>
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 4096, BINARY_LOOK = 8192 };

void file_entry_release(struct file_entry *f)
{
    free(f->name);
    free(f->shown);
    free(f->path);
    free(f->target);
    free(f->owner);
    memset(f, 0, sizeof(*f));
}

void file_list_release(struct file_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        file_entry_release(&l->v[i]);
    free(l->v);
    free(l->path);
    memset(l, 0, sizeof(*l));
}

void file_list_copy(struct file_list *dst, const struct file_list *src)
{
    *dst = *src;
    dst->path = xstrdup(src->path);
    dst->v = xcalloc(src->n + 1, sizeof(*dst->v));
    for (size_t i = 0; i < src->n; i++) {
        struct file_entry *d = &dst->v[i];
        *d = src->v[i];
        d->name = xstrdup(d->name);
        d->shown = xstrdup(d->shown);
        d->path = xstrdup(d->path);
        d->target = xstrdup(d->target);
        d->owner = xstrdup(d->owner);
    }
}

/* envd tells them as Go does: letters for what a file is and which special bits it has, or one
 * '-', before nine for the rights. People know them as ls tells them: one letter, and the special
 * bits in place of an x. What is told otherwise stays as it is. */
static void take_perms(struct file_entry *f, const char *told)
{
    static const char special[] = "ugt", with_x[] = "sst", without[] = "SST";
    char text[32], *rights;
    size_t n = 0, flags;

    for (const char *s = told; *s && n + 1 < sizeof(text); s++)
        if (*s == '-' || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z'))
            text[n++] = *s;
    text[n] = '\0';
    if (n < 10 || strspn(text + n - 9, "rwx-") != 9) {
        str_copy(f->perms, sizeof(f->perms), text);
        return;
    }
    flags = n - 9;
    rights = text + flags;
    for (size_t i = 0; i < 3; i++)
        if (memchr(text, special[i], flags))
            rights[3 * i + 2] = rights[3 * i + 2] == 'x' ? with_x[i] : without[i];
    f->perms[0] = memchr(text, 'd', flags)                             ? 'd'
                  : memchr(text, 'L', flags) || memchr(text, 'l', flags) ? 'l'
                  : memchr(text, 'p', flags)                           ? 'p'
                  : memchr(text, 'S', flags)                           ? 's'
                  : memchr(text, 'c', flags)                           ? 'c'
                  : memchr(text, 'D', flags)                           ? 'b'
                                                                       : '-';
    memcpy(f->perms + 1, rights, 10);
}

/* A name that is a path of its own could lead anywhere. */
static bool name_ok(const char *s)
{
    return *s && strlen(s) <= NAME_BYTES && !strchr(s, '/') && strcmp(s, ".") != 0 &&
           strcmp(s, "..") != 0;
}

static bool take_entry(struct file_entry *f, const struct cJSON *j)
{
    const char *name = json_str(j, "name", ""), *type = json_str(j, "type", "");
    const char *target = json_str(j, "symlinkTarget", NULL);
    int64_t mode = json_i64s(j, "mode", 0);

    memset(f, 0, sizeof(*f));
    if (!name_ok(name))
        return false;
    f->name = xstrdup(name);
    f->shown = clean_line_dup(name, 0);
    f->target = target ? clean_line_dup(target, 1000) : NULL;
    f->owner = clean_line_dup(json_str(j, "owner", ""), 64);
    f->kind = str_eq(type, "FILE_TYPE_FILE")        ? FILE_PLAIN
              : str_eq(type, "FILE_TYPE_DIRECTORY") ? FILE_FOLDER
                                                    : FILE_STRANGE;
    f->size = json_i64s(j, "size", 0);
    f->size = f->size > 0 ? f->size : 0;
    f->mode = (unsigned)mode & 07777;
    if (clock_parse_rfc3339(json_str(j, "modifiedTime", ""), &f->mtime_ms) != 0)
        f->mtime_ms = 0;
    take_perms(f, json_str(j, "permissions", ""));
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct file_entry *p = a, *q = b;

    if ((p->kind == FILE_FOLDER) != (q->kind == FILE_FOLDER))
        return p->kind == FILE_FOLDER ? -1 : 1;
    return strcmp(p->name, q->name);
}

int file_list_parse(struct file_list *l, const char *json, size_t len, struct err *e)
{
    struct cJSON *j = json_parse(json, len, NULL);
    const struct cJSON *v = json_get(j, "entries");
    ARR(struct file_entry) got = ARR_INIT;

    memset(l, 0, sizeof(*l));
    if (!json_is_object(j) || (v && !json_is_array(v))) {
        json_free(j);
        return err_set(e, ERR_PROTO, "the sandbox sent a list of files that makes no sense");
    }
    for (const struct cJSON *c = v ? json_first(v) : NULL; c; c = json_next(c)) {
        struct file_entry f;

        if (got.n < FILES_MAX && take_entry(&f, c))
            *ARR_PUSH(&got) = f;
        else
            l->left_out++;
    }
    l->v = got.v;
    l->n = got.n;
    if (l->n)
        qsort(l->v, l->n, sizeof(*l->v), by_name);
    json_free(j);
    return 0;
}

bool file_entry_parse(struct file_entry *f, const char *json, size_t len)
{
    struct cJSON *j = json_parse(json, len, NULL);
    const struct cJSON *entry = json_get(j, "entry");
    const char *path = json_str(entry, "path", "");
    bool root = str_eq(path, "/"); /* which has no name */
    bool ok = take_entry(f, entry);

    if (root && !ok) {
        *f = (struct file_entry){.name = xstrdup("/"), .shown = xstrdup("/"),
                                 .owner = xstrdup(""), .kind = FILE_FOLDER};
        ok = true;
    }
    if (ok && *path == '/')
        f->path = xstrdup(path);
    json_free(j);
    return ok;
}

char *file_path_join(const char *dir, const char *name)
{
    return xasprintf("%s%s%s", dir, str_ends(dir, "/") ? "" : "/", name);
}

char *file_path_parent(const char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 1 && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n ? xstrndup(path, n) : xstrdup("/");
}

const char *file_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool file_is_binary(const char *data, size_t len)
{
    size_t odd = 0, n = len < BINARY_LOOK ? len : BINARY_LOOK;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)data[i];

        if (!c)
            return true;
        odd += c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\033' && c != '\b' &&
               c != '\f';
    }
    return odd * 20 > n;
}

void file_size_format(int64_t size, char dst[8])
{
    static const char units[] = "KMGTP";
    double v = (double)size;
    int u = -1;

    if (size < 1000) {
        snprintf(dst, 8, "%d", (int)size);
        return;
    }
    while (v >= 999.5 && u + 2 < (int)sizeof(units)) {
        v /= 1024;
        u++;
    }
    snprintf(dst, 8, v < 9.95 ? "%.1f%c" : "%.0f%c", v, units[u]);
}
