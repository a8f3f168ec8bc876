/* Files in a message: "@part" is completed by Tab, and only what was chosen so is read, for
 * a paste may name any file. The text is read when the message is sent. */
#include "input_priv.h"

#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_ENTRIES = 20000, SHOWN_BYTES = 160 };

/* --- sending ------------------------------------------------------------------------ */

char *input_compose(struct inputline *l, struct err *e)
{
    const char **paths = xcalloc(1, sizeof(*paths)), *path;
    char *text;
    for (size_t i = 0; (path = inputline_file(l, i)); i++) {
        paths = xrealloc(paths, (i + 2) * sizeof(*paths));
        paths[i] = path;
        paths[i + 1] = NULL;
    }
    text = app_text_with_files(inputline_text(l), paths, e);
    free(paths);
    return text;
}

static bool begins_word(const char *text, const char *at)
{
    return at == text || strchr(" \t\n(", at[-1]);
}

bool input_names_file(const char *text, char *name, size_t size)
{
    for (const char *at = text; (at = strchr(at, '@')); at++) {
        size_t n = strcspn(at + 1, " \t\n");
        struct stat st;
        if (!begins_word(text, at) || !n || n >= size)
            continue;
        char *word = xstrndup(at + 1, n), *real = app_own_path(word);
        bool is = stat(real, &st) == 0 && S_ISREG(st.st_mode);
        if (is)
            snprintf(name, size, "%s", word);
        free(word);
        free(real);
        if (is)
            return true;
    }
    return false;
}

/* --- completing --------------------------------------------------------------------- */

struct matches {
    size_t n;
    char *common;    /* what all of them begin with */
    bool dir;        /* the last one is a folder */
    bool whole;      /* one is called exactly so, and is a file */
    struct buf list; /* names, for the status line */
};

static bool is_dir(const char *dir, const struct dirent *d)
{
    if (d->d_type != DT_UNKNOWN && d->d_type != DT_LNK)
        return d->d_type == DT_DIR;
    char *path = fs_join(dir, d->d_name);
    struct stat st;
    bool is = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    free(path);
    return is;
}

static void take_name(struct matches *f, const char *name, const char *base, bool dir)
{
    if (!f->common)
        f->common = xstrdup(name);
    size_t same = 0;
    while (f->common[same] && f->common[same] == name[same])
        same++;
    while (same && ((unsigned char)name[same] & 0xC0) == 0x80)
        same--; /* not inside of a character */
    f->common[same] = 0;
    f->dir = dir;
    f->whole |= !dir && str_eq(name, base);
    f->n++;
    if (f->list.len < SHOWN_BYTES)
        buf_addf(&f->list, "%s%s%s", f->list.len ? "  " : "", name, dir ? "/" : "");
    else if (!str_ends(buf_str(&f->list), "..."))
        buf_adds(&f->list, " ...");
}

/* Entries of dir that begin with base; hidden ones only when it does, too. */
static bool look(const char *dir, const char *base, struct matches *f)
{
    char *real = app_own_path(*dir ? dir : ".");
    DIR *d = opendir(real);
    struct dirent *one;
    for (int i = 0; d && i < MAX_ENTRIES && (one = readdir(d)); i++) {
        const char *name = one->d_name;
        if (!str_starts(name, base) || (*name == '.' && *base != '.') || str_eq(name, ".") ||
            str_eq(name, "..") || !app_is_text(name, strlen(name)) || strpbrk(name, "\t\r\n"))
            continue;
        take_name(f, name, base, is_dir(real, one));
    }
    free(real);
    if (d)
        closedir(d);
    return d != NULL;
}

static void complete_with(struct ui *ui, struct inputline *l, size_t start, const char *dir,
                          const char *base, const struct matches *f)
{
    bool one_file = f->n == 1 && !f->dir;
    const char *rest = f->common + strlen(base);
    if (one_file || (f->whole && !*rest)) {
        char *path = xasprintf("%s%s", dir, one_file ? f->common : base);
        if (!inputline_attach(l, start, path))
            ui_status(ui, 1, "nothing was put in: the message holds at most %zu bytes", l->max);
        else
            ui_status(ui, 0, "the text of %s goes with the message", path);
        free(path);
        return;
    }
    if (*rest)
        inputline_insert(l, rest, strlen(rest));
    if (f->n == 1)
        inputline_insert(l, "/", 1);
    else if (!*rest)
        ui_status(ui, 0, "%s", buf_str((struct buf *)&f->list));
}

void input_complete(struct ui *ui, struct inputline *l)
{
    size_t start = l->cursor;
    const char *text = l->text.p;
    while (start && !strchr(" \t\n(", text[start - 1]))
        start--;
    if (start == l->cursor || text[start] != '@') {
        ui_status(ui, 0, "write @ and the begin of a file's name, then {complete}");
        return;
    }
    char *path = xstrndup(text + start + 1, l->cursor - start - 1);
    char *slash = strrchr(path, '/'), *base = xstrdup(slash ? slash + 1 : path);
    if (slash)
        slash[1] = 0;
    else
        path[0] = 0;
    struct matches f = {.list = BUF_INIT};
    bool there = look(path, base, &f);
    if (f.n)
        complete_with(ui, l, start, path, base, &f);
    else if (there)
        ui_status(ui, 1, "no file in %s begins with '%s'", *path ? path : "this folder", base);
    else
        ui_status(ui, 1, "there is no folder %s that can be read", path);
    free(f.common);
    buf_release(&f.list);
    free(base);
    free(path);
}
