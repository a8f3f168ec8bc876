/* What envd lists, read with care: everything in it may come from somebody who means us
 * ill, and the environments in it are not ours to keep. And lines of several streams. */
#include "foreign_priv.h"

#include <cct/text/clean.h>
#include <cct/util/hash.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_BYTES = 16 << 10, COMMAND_CELLS = 2000, CWD_CELLS = 300, TAG_CELLS = 64,
       LINE_BYTES = 64 << 10 };

/* --- the list -------------------------------------------------------------------- */

void proc_list_release(struct proc_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        proc_release(&l->v[i]);
    free(l->v);
    memset(l, 0, sizeof(*l));
}

const struct proc *proc_list_find(const struct proc_list *l, int pid)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].pid == pid)
            return &l->v[i];
    return NULL;
}

/* Over a word and its end: "a b" and "a", "b" differ. */
static uint64_t hash_word(uint64_t h, const char *s)
{
    return hash_add(h, s, strlen(s) + 1);
}

/* A word as a reader tells it from its neighbours. */
static void add_word(struct buf *b, const char *s)
{
    bool plain = *s && !s[strcspn(s, " \t\r\n\"'")];

    if (b->over)
        return;
    if (b->len)
        buf_addc(b, ' ');
    if (plain)
        buf_adds(b, s);
    else
        buf_addf(b, strchr(s, '\'') ? "\"%s\"" : "'%s'", s);
}

static char *cleaned(const char *s, unsigned cells)
{
    return s && *s ? clean_line_dup(s, cells) : NULL;
}

/* What the SDK makes of a command: /bin/bash -l -c COMMAND. */
static const char *shell_command(const char *cmd, const struct cJSON *args)
{
    const struct cJSON *a = json_is_array(args) ? json_first(args) : NULL;
    const char *base = strrchr(cmd, '/');

    base = base ? base + 1 : cmd;
    if (!str_eq(base, "bash") && !str_eq(base, "sh"))
        return NULL;
    if (a && str_eq(json_str_of(a), "-l"))
        a = json_next(a);
    if (!a || !str_eq(json_str_of(a), "-c"))
        return NULL;
    a = json_next(a);
    return a && !json_next(a) ? json_str_of(a) : NULL;
}

static void read_command(struct proc *p, const struct cJSON *config)
{
    const char *cmd = json_str(config, "cmd", "");
    const struct cJSON *args = json_get(config, "args");
    const char *brief = shell_command(cmd, args);
    struct buf b = BUF_INIT_MAX(COMMAND_BYTES);

    p->ident = hash_word(HASH_BEGIN, cmd);
    add_word(&b, *cmd ? cmd : "?");
    for (const struct cJSON *a = json_is_array(args) ? json_first(args) : NULL; a;
         a = json_next(a)) {
        const char *s = json_str_of(a);

        p->ident = hash_word(p->ident, s ? s : "?");
        add_word(&b, s ? s : "?");
    }
    if (!p->ident)
        p->ident = 1; /* 0 means: any */
    if (b.over) {
        b.max = 0;
        buf_adds(&b, " ...");
    }
    p->command = clean_line_dup(buf_str(&b), COMMAND_CELLS);
    p->brief = cleaned(brief, COMMAND_CELLS);
    buf_release(&b);
}

static bool read_proc(struct proc *p, const struct cJSON *j)
{
    const struct cJSON *config = json_get(j, "config");
    int64_t pid = json_i64s(j, "pid", 0);

    memset(p, 0, sizeof(*p));
    if (pid <= 0 || pid > INT32_MAX)
        return false;
    p->pid = (int)pid;
    read_command(p, config);
    p->cwd = cleaned(json_str(config, "cwd", NULL), CWD_CELLS);
    p->tag = cleaned(json_str(j, "tag", NULL), TAG_CELLS);
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct proc *p = a, *q = b;

    return (p->pid > q->pid) - (p->pid < q->pid);
}

/* envd tells them in any order; the same pid told twice counts once. */
static void sort_list(struct proc_list *l)
{
    size_t keep = 0;

    if (l->n)
        qsort(l->v, l->n, sizeof(*l->v), by_pid);
    for (size_t i = 0; i < l->n; i++) {
        if (keep && l->v[keep - 1].pid == l->v[i].pid)
            proc_release(&l->v[i]);
        else
            l->v[keep++] = l->v[i];
    }
    l->n = keep;
}

int proc_list_parse(struct proc_list *l, const char *json, size_t len, int wanted,
                    struct err *e)
{
    struct cJSON *j = json_parse(json, len, NULL);
    const struct cJSON *v = json_get(j, "processes");
    ARR(struct proc) got = ARR_INIT;

    memset(l, 0, sizeof(*l));
    if (!json_is_object(j) || (v && !json_is_array(v))) {
        json_free(j);
        return err_set(e, ERR_PROTO, "the sandbox sent a list of processes that makes no sense");
    }
    for (const struct cJSON *c = v ? json_first(v) : NULL; c; c = json_next(c)) {
        struct proc p;

        if (got.n >= PROC_LIST_MAX && (!wanted || json_i64s(c, "pid", 0) != wanted)) {
            l->more++;
            continue;
        }
        if (read_proc(&p, c))
            *ARR_PUSH(&got) = p;
    }
    l->v = got.v;
    l->n = got.n;
    sort_list(l);
    json_free(j);
    return 0;
}

/* --- ends ------------------------------------------------------------------------ */

int proc_end_signal(const char *status)
{
    static const struct {
        const char *word;
        int sig;
    } known[] = {{"killed", SIGKILL},       {"terminated", SIGTERM}, {"interrupt", SIGINT},
                 {"hangup", SIGHUP},        {"quit", SIGQUIT},       {"aborted", SIGABRT},
                 {"segmentation", SIGSEGV}, {"broken pipe", SIGPIPE}, {"bus error", SIGBUS},
                 {"floating", SIGFPE},      {"illegal", SIGILL},      {"alarm", SIGALRM}};

    if (!status || !str_starts(status, "signal: "))
        return 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (str_starts(status + 8, known[i].word))
            return known[i].sig;
    return 0;
}

/* --- lines ----------------------------------------------------------------------- */

void lanes_add(struct lanes *l, enum envd_stream s, const char *data, size_t len, lanes_fn fn,
               void *ctx)
{
    struct buf *part = &l->part[s];
    const char *lf = len ? memrchr(data, '\n', len) : NULL;
    size_t whole = lf ? (size_t)(lf - data) + 1 : 0;

    if (whole) {
        buf_add(part, data, whole);
        fn(ctx, part->p, part->len);
        buf_clear(part);
    }
    if (len > whole) {
        buf_add(part, data + whole, len - whole);
        l->last = s;
    }
    if (part->len >= LINE_BYTES) {
        fn(ctx, part->p, part->len);
        buf_clear(part);
    }
}

void lanes_flush(struct lanes *l, lanes_fn fn, void *ctx)
{
    for (int i = 0; i < LANES; i++) {
        if (!l->part[i].len)
            continue;
        buf_addc(&l->part[i], '\n');
        fn(ctx, l->part[i].p, l->part[i].len);
        buf_clear(&l->part[i]);
    }
}

const struct buf *lanes_part(const struct lanes *l)
{
    return l->part[l->last].len ? &l->part[l->last] : NULL;
}

void lanes_release(struct lanes *l)
{
    for (int i = 0; i < LANES; i++)
        buf_release(&l->part[i]);
}
