/* Files in a message: "@part" is completed by Tab, and only what was chosen so is read, for
 * a paste may name any file. The text is read when the message is sent. */
#include "input_priv.h"

#include <cct/text/clean.h>
#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_ENTRIES = 20000, SHOWN_BYTES = 160 };

static char *real_path(const char *path)
{
    const char *home = getenv("HOME");
    return str_starts(path, "~/") && home ? xasprintf("%s%s", home, path + 1) : xstrdup(path);
}

/* --- sending ------------------------------------------------------------------------ */

static bool is_text(const char *s, size_t len)
{
    if (!utf8_valid(s, len))
        return false;
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)s[i] < ' ' && !strchr("\t\n\r", s[i])) || s[i] == 0x7F || !s[i])
            return false;
    return true;
}

static int add_file(struct buf *b, const char *path, struct err *e)
{
    char *real = real_path(path), *text;
    size_t len = 0;
    text = fs_read(real, LIM_MESSAGE_BYTES, false, &len, e);
    free(real);
    if (!text)
        return err_wrap(e, "@%s cannot go along", path);
    if (!is_text(text, len)) {
        free(text);
        return err_set(e, ERR_INVALID, "@%s is not text: copy it into the sandbox instead", path);
    }
    buf_addf(b, "\n\n--- %s ---\n", path);
    buf_add(b, text, len);
    buf_addf(b, "%s--- end of %s ---", len && text[len - 1] == '\n' ? "" : "\n", path);
    free(text);
    return 0;
}

/* The same file twice goes along once. */
static bool is_repeated(const struct inputline *l, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (str_eq(inputline_file(l, k), inputline_file(l, i)))
            return true;
    return false;
}

char *input_compose(struct inputline *l, struct err *e)
{
    struct buf b = BUF_INIT;
    const char *path;
    int rc = 0;
    buf_adds(&b, inputline_text(l));
    for (size_t i = 0; rc == 0 && (path = inputline_file(l, i)); i++)
        if (!is_repeated(l, i))
            rc = add_file(&b, path, e);
    if (rc == 0 && b.len > LIM_MESSAGE_BYTES)
        rc = err_set(e, ERR_LIMIT, "with its files it has %zu bytes, at most %u go into a message",
                     b.len, LIM_MESSAGE_BYTES);
    if (rc == 0)
        return buf_detach(&b, NULL);
    buf_release(&b);
    return NULL;
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
        char *word = xstrndup(at + 1, n), *real = real_path(word);
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
    char *real = real_path(*dir ? dir : ".");
    DIR *d = opendir(real);
    struct dirent *one;
    for (int i = 0; d && i < MAX_ENTRIES && (one = readdir(d)); i++) {
        const char *name = one->d_name;
        if (!str_starts(name, base) || (*name == '.' && *base != '.') || str_eq(name, ".") ||
            str_eq(name, "..") || !is_text(name, strlen(name)) || strpbrk(name, "\t\r\n"))
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
        ui_status(ui, 0, "write @ and the begin of a file's name, then Tab");
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
