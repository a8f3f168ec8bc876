/* What a message may name of this machine's files; a thread for each look, which ends with it. */
#include <cct/ui/ownfiles.h>

#include <cct/app.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_ENTRIES = 20000, SHOWN_BYTES = 160, END_MS = 200, QUEUE_BYTES = 1 << 20 };

struct ownfiles {
    struct mq *out;
    struct own_look *running[OWN_KINDS];
    struct msg *done; /* taken, oldest first */
};

static void look_free(struct msg *m)
{
    struct own_look *k = (struct own_look *)m;
    free(k->text);
    str_list_free(k->paths);
    free(k->found);
    free(k->list);
    free(k);
}

struct own_look *own_look_new(enum own_kind kind, uint64_t sandbox, const char *text)
{
    struct own_look *k = xcalloc(1, sizeof(*k));
    msg_init(&k->m, kind, sizeof(*k) + strlen(text), look_free);
    k->sandbox = sandbox;
    k->text = xstrdup(text);
    return k;
}

/* --- the thread: what a path could become -------------------------------------------------- */

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

static void take_name(struct own_look *k, struct buf *list, const char *name, const char *base,
                      bool dir)
{
    if (!k->found)
        k->found = xstrdup(name);
    size_t same = 0;
    while (k->found[same] && k->found[same] == name[same])
        same++;
    while (same && ((unsigned char)name[same] & 0xC0) == 0x80)
        same--; /* not inside of a character */
    k->found[same] = 0;
    k->dir = dir;
    k->whole |= !dir && str_eq(name, base);
    k->n++;
    if (list->len < SHOWN_BYTES)
        buf_addf(list, "%s%s%s", list->len ? "  " : "", name, dir ? "/" : "");
    else if (!str_ends(buf_str(list), "..."))
        buf_adds(list, " ...");
}

/* Entries of the folder that begin as the text does; hidden ones only when it does, too. */
static void look_for_matches(struct own_look *k)
{
    const char *slash = strrchr(k->text, '/'), *base = slash ? slash + 1 : k->text;
    char *dir = slash ? xstrndup(k->text, (size_t)(base - k->text)) : xstrdup(".");
    char *real = app_own_path(dir);
    struct buf list = BUF_INIT;
    DIR *d = opendir(real);
    struct dirent *one;
    for (int i = 0; d && i < MAX_ENTRIES && (one = readdir(d)); i++) {
        const char *name = one->d_name;
        if (!str_starts(name, base) || (*name == '.' && *base != '.') || str_eq(name, ".") ||
            str_eq(name, "..") || !app_is_text(name, strlen(name)) || strpbrk(name, "\t\r\n"))
            continue;
        take_name(k, &list, name, base, is_dir(real, one));
    }
    k->there = d != NULL;
    k->list = buf_detach(&list, NULL);
    if (d)
        closedir(d);
    free(real);
    free(dir);
}

/* --- the thread: what a message names ------------------------------------------------------ */

static bool begins_word(const char *text, const char *at)
{
    return at == text || strchr(" \t\n(", at[-1]);
}

static bool is_file(const char *path)
{
    char *real = app_own_path(path);
    struct stat st;
    bool is = stat(real, &st) == 0 && S_ISREG(st.st_mode);
    free(real);
    return is;
}

static void look_for_named(struct own_look *k)
{
    for (const char *at = k->text; !k->found && (at = strchr(at, '@')); at++) {
        size_t n = strcspn(at + 1, " \t\n");
        char *word = begins_word(k->text, at) && n ? xstrndup(at + 1, n) : NULL;
        if (word && is_file(word))
            k->found = xstrdup(word);
        free(word);
    }
}

static void look_main(void *arg)
{
    struct own_look *k = arg;
    if (k->m.type == OWN_MATCHES)
        look_for_matches(k);
    else if (k->m.type == OWN_NAMED)
        look_for_named(k);
    else
        k->found = app_text_with_files(k->text, (const char *const *)k->paths, &k->err);
    mq_post(k->out, MQ_NORMAL, &k->m); /* main's from here on */
}

/* --- main ---------------------------------------------------------------------------------- */

struct ownfiles *ownfiles_new(void)
{
    struct ownfiles *x = xcalloc(1, sizeof(*x));
    x->out = mq_new(QUEUE_BYTES);
    return x;
}

void ownfiles_free(struct ownfiles *x)
{
    bool left = false;
    if (!x)
        return;
    for (int i = 0; i < OWN_KINDS; i++)
        left |= x->running[i] && !thread_join_ms(x->running[i]->thread, END_MS);
    for (struct msg *m = x->done, *next; m; m = next) {
        next = m->next;
        msg_free(m);
    }
    if (left) /* the queue is its, too */
        log_warn("a look at files of this machine did not end in %d ms: it is left behind", END_MS);
    else
        mq_free(x->out);
    free(x);
}

bool ownfiles_busy(const struct ownfiles *x, enum own_kind k)
{
    return x->running[k] != NULL;
}

bool ownfiles_post(struct ownfiles *x, struct own_look *k)
{
    enum own_kind kind = (enum own_kind)k->m.type;
    if (x->running[kind]) {
        msg_free(&k->m);
        return false;
    }
    k->out = x->out;
    if (thread_start(&k->thread, THREAD_WORK, "ownfiles", look_main, k) == 0) {
        x->running[kind] = k;
        return true;
    }
    err_set(&k->err, ERR_IO, "no thread can be started to read files; try again");
    mq_post(x->out, MQ_NORMAL, &k->m);
    return true;
}

int ownfiles_fd(const struct ownfiles *x)
{
    return mq_fd(x->out);
}

bool ownfiles_wait(const struct ownfiles *x, int ms)
{
    struct pollfd p = {.fd = ownfiles_fd(x), .events = POLLIN};
    return x->done || poll(&p, 1, ms) > 0;
}

struct own_look *ownfiles_take(struct ownfiles *x)
{
    struct own_look *k;
    if (!x->done)
        x->done = mq_take(x->out);
    if (!x->done)
        return NULL;
    k = (struct own_look *)x->done;
    x->done = k->m.next;
    if (x->running[k->m.type] == k) { /* it has posted and ends */
        pthread_join(k->thread, NULL);
        x->running[k->m.type] = NULL;
    }
    return k;
}
