/* The log of one build: JSON lines in a file, the same in memory while somebody looks
 * at it. Bounded: past the maximum one last entry says that the rest is not kept. */
#include <cct/local/tpl.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {"debug", "info", "warn", "error"};

const char *tpl_level_name(enum tpl_level l)
{
    return level_names[l];
}

static bool level_parse(const char *s, enum tpl_level *out)
{
    for (int i = 0; i < 4; i++)
        if (strcmp(s, level_names[i]) == 0) {
            *out = (enum tpl_level)i;
            return true;
        }
    return false;
}

static void keep(struct tpl_log *l, int64_t ms, enum tpl_level level, const char *step,
                 const char *message)
{
    struct tpl_entry *e = ARR_PUSH(&l->a);
    e->ms = ms;
    e->level = level;
    str_copy(e->step, sizeof(e->step), step);
    e->message = xstrdup(message);
    l->bytes += strlen(message) + 64;
}

static void load_line(struct tpl_log *l, const char *line, size_t len)
{
    struct cJSON *j = json_parse(line, len, NULL);
    const char *message = json_str(j, "message", NULL);
    int64_t ms = json_i64(j, "at", 0);
    enum tpl_level level;
    if (message && ms > 0 && level_parse(json_str(j, "level", ""), &level))
        keep(l, ms, level, json_str(j, "step", ""), message);
    json_free(j);
}

struct tpl_log *tpl_log_open(const char *path, bool append)
{
    struct tpl_log *l = xcalloc(1, sizeof(*l));
    l->fd = -1;
    if (!path)
        return l;
    size_t len = 0;
    char *text = fs_read(path, TPL_LOG_FILE_MAX, true, &len, NULL);
    for (char *p = text, *end = text + len; p && p < end;) {
        char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);
        load_line(l, p, n);
        p += n + 1;
    }
    free(text);
    l->full = l->a.n >= TPL_LOG_ENTRIES_MAX || l->bytes >= TPL_LOG_BYTES_MAX;
    if (append) {
        l->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (l->fd < 0)
            log_warn("a build's log is kept in memory only: cannot open '%s': %s", path,
                     strerror(errno));
    }
    return l;
}

void tpl_log_free(struct tpl_log *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->a.n; i++)
        free(l->a.v[i].message);
    ARR_RELEASE(&l->a);
    if (l->fd >= 0)
        close(l->fd);
    free(l);
}

/* The last entry, to the file. */
static void put(struct tpl_log *l)
{
    const struct tpl_entry *e = &l->a.v[l->a.n - 1];
    if (l->fd < 0)
        return;
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_i64(&w, "at", e->ms);
    jw_str(&w, "level", tpl_level_name(e->level));
    jw_str(&w, "step", e->step);
    jw_str(&w, "message", e->message);
    jw_end(&w);
    buf_addc(&b, '\n');
    if (fs_write_all(l->fd, b.p, b.len) != 0) {
        log_warn("a build's log is kept in memory only: cannot write: %s", strerror(errno));
        close(l->fd);
        l->fd = -1;
    }
    buf_release(&b);
}

static void add(struct tpl_log *l, enum tpl_level level, const char *step, const char *message)
{
    int64_t now = clock_wall_ms();
    if (l->a.n > 0 && l->a.v[l->a.n - 1].ms > now)
        now = l->a.v[l->a.n - 1].ms; /* the clock may be set back; pages must not */
    keep(l, now, level, step, message);
    put(l);
}

void tpl_log_add(struct tpl_log *l, enum tpl_level level, const char *step, const char *text,
                 size_t len)
{
    /* what says how it ended fits in any case */
    if (l->full && level < TPL_ERROR)
        return;
    struct buf b = BUF_INIT;
    buf_add(&b, text, len < TPL_LINE_MAX ? len : TPL_LINE_MAX);
    for (size_t i = 0; i < b.len; i++) {
        unsigned char c = (unsigned char)b.p[i];
        if ((c < 0x20 && c != '\t' && c != 0x1b) || c == 0x7f)
            b.p[i] = ' ';
    }
    add(l, level, step, buf_str(&b));
    buf_release(&b);
    if (!l->full && (l->a.n >= TPL_LOG_ENTRIES_MAX || l->bytes >= TPL_LOG_BYTES_MAX)) {
        l->full = true;
        add(l, TPL_WARN, step, "the log is full, the rest of the output is not kept");
    }
}

void tpl_log_addf(struct tpl_log *l, enum tpl_level level, const char *step, const char *fmt,
                  ...)
{
    struct buf b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    tpl_log_add(l, level, step, buf_str(&b), b.len);
    buf_release(&b);
}

size_t tpl_log_select(const struct tpl_log *l, const struct tpl_log_query *q,
                      const struct tpl_entry **out)
{
    size_t n = 0, skip = q->offset;
    for (size_t i = 0; i < l->a.n && n < q->limit; i++) {
        const struct tpl_entry *e = &l->a.v[q->backward ? l->a.n - 1 - i : i];
        if (e->level < q->min)
            continue;
        if (q->cursor >= 0 && (q->backward ? e->ms > q->cursor : e->ms < q->cursor))
            continue;
        if (skip > 0)
            skip--;
        else
            out[n++] = e;
    }
    return n;
}
