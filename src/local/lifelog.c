/* The file of lifecycle events and the index of its lines. */
#include <cct/local/lifelog.h>
#include <cct/secrets/digest.h>
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_MAX ((off_t)(2 * LIFELOG_BYTES_MAX))
#define KEEP_MS (LIFELOG_DAYS * 24 * 3600 * 1000LL)

struct place {
    off_t at;
    size_t len; /* without the line's end */
};

struct lifelog {
    char *path;
    int fd;
    off_t size; /* bytes of whole lines: where the next one goes */
    ARR(struct life_event) events;
    ARR(struct place) places; /* of the event with the same number */
    bool full;                /* the last write failed; said once */
};

static const char *const names[LIFE_N] = {
    "sandbox.lifecycle.created", "sandbox.lifecycle.updated", "sandbox.lifecycle.paused",
    "sandbox.lifecycle.resumed", "sandbox.lifecycle.killed"};

enum life life_parse(const char *name)
{
    for (int i = 0; i < LIFE_N; i++)
        if (str_eq(name, names[i]))
            return (enum life)i;
    return LIFE_N;
}

/* --- the text of an event ------------------------------------------------------ */

/* One run of a sandbox has one id: made from its start, so nobody has to keep it. */
static void execution_id(char dst[37], const struct sbox_rec *r)
{
    unsigned char hash[32];
    char text[64];
    snprintf(text, sizeof(text), "%s %lld", r->id, (long long)r->started_ms);
    digest_sha256(hash, text, strlen(text));
    uuid_format(dst, hash);
}

static void write_time(struct jw *w, const char *name, int64_t ms)
{
    char text[40];
    clock_format_rfc3339(text, sizeof(text), ms);
    jw_str(w, name, text);
}

static void write_data(struct jw *w, const struct sbox_rec *r, enum life type, const char *why,
                       int64_t now, bool metadata)
{
    jw_obj(w, "eventData");
    if (metadata && r->metadata) {
        char *text = json_text(r->metadata);
        jw_raw(w, "sandbox_metadata", text);
        free(text);
    } else {
        jw_obj(w, "sandbox_metadata");
        jw_end(w);
    }
    if (type == LIFE_UPDATED)
        write_time(w, "set_timeout", r->end_ms);
    if (type == LIFE_PAUSED || type == LIFE_KILLED) {
        int64_t until = r->state == SBOX_PAUSED ? r->end_ms : now;
        jw_obj(w, "execution");
        write_time(w, "started_at", r->started_ms);
        jw_i64(w, "vcpu_count", r->cpu);
        jw_i64(w, "memory_mb", r->mem_mb);
        jw_i64(w, "execution_time", until > r->started_ms ? until - r->started_ms : 0);
        jw_end(w);
    }
    if (why)
        jw_str(w, "reason", why);
    jw_end(w);
}

static void write_event(struct buf *b, const struct sbox_rec *r, enum life type,
                        const char *why, int64_t now, bool metadata)
{
    char id[37], run[37];
    rand_uuid(id);
    execution_id(run, r);
    struct jw w;
    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_str(&w, "version", "v2");
    jw_str(&w, "id", id);
    jw_str(&w, "type", names[type]);
    write_data(&w, r, type, why, now, metadata);
    jw_str(&w, "sandboxId", r->id);
    jw_str(&w, "sandboxExecutionId", run);
    jw_str(&w, "sandboxBuildId", r->build_id[0] ? r->build_id : LIFELOG_BUILD);
    jw_str(&w, "sandboxTeamId", LIFELOG_TEAM);
    jw_str(&w, "sandboxTemplateId", r->template_id);
    write_time(&w, "timestamp", now);
    jw_end(&w);
}

/* --- the file -------------------------------------------------------------------- */

static void index_add(struct lifelog *l, const struct life_event *ev, off_t at, size_t len)
{
    *ARR_PUSH(&l->events) = *ev;
    struct place *p = ARR_PUSH(&l->places);
    p->at = at;
    p->len = len;
}

/* What the index needs of a line; false when it is damaged. */
static bool line_parse(const char *line, size_t len, struct life_event *ev)
{
    struct cJSON *j = json_parse(line, len, NULL);
    const char *id = json_str(j, "sandboxId", "");
    ev->type = life_parse(json_str(j, "type", ""));
    bool ok = ev->type != LIFE_N && sbox_id_ok(id) && str_copy(ev->id, sizeof(ev->id), id) &&
              clock_parse_rfc3339(json_str(j, "timestamp", ""), &ev->ms) == 0;
    json_free(j);
    return ok;
}

/* All lines of the text, which starts at `from` in the file, into the index; true
 * when some of them should go. */
static bool index_text(struct lifelog *l, const char *text, size_t size, off_t from,
                       int64_t now)
{
    bool rubbish = from > 0;
    l->size = from;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        struct life_event ev;
        if (!end)
            return true; /* half a line: the next one is written over it */
        size_t len = (size_t)(end - text) - at;
        if (len <= LIFELOG_LINE_MAX && line_parse(text + at, len, &ev) &&
            ev.ms >= now - KEEP_MS)
            index_add(l, &ev, from + (off_t)at, len);
        else
            rubbish = true;
        at += len + 1;
        l->size = from + (off_t)at;
    }
    return rubbish;
}

static bool write_all(int fd, const char *p, size_t len, off_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, p, len, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static int open_private(const char *path, int flags)
{
    return open(path, flags | O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
}

/* A new file with the events from number `first` on takes the old one's place. */
static void rewrite(struct lifelog *l, size_t first)
{
    struct buf all = BUF_INIT;
    char *tmp = xasprintf("%s.new", l->path);
    struct lifelog n = {.fd = -1};
    for (size_t i = first; i < l->events.n; i++) {
        char *line = lifelog_text(l, i);
        if (!line)
            continue;
        index_add(&n, &l->events.v[i], (off_t)all.len, l->places.v[i].len);
        buf_addf(&all, "%s\n", line);
        free(line);
    }
    unlink(tmp);
    n.fd = open_private(tmp, O_EXCL);
    bool ok = n.fd >= 0 && write_all(n.fd, all.p, all.len, 0) && rename(tmp, l->path) == 0;
    if (ok) {
        close(l->fd);
        ARR_RELEASE(&l->events);
        ARR_RELEASE(&l->places);
        l->fd = n.fd;
        l->size = (off_t)all.len;
        l->events = n.events;
        l->places = n.places;
    } else {
        log_warn("cannot shorten '%s': %s", l->path, strerror(errno));
        if (n.fd >= 0)
            close(n.fd);
        unlink(tmp);
        ARR_RELEASE(&n.events);
        ARR_RELEASE(&n.places);
    }
    free(tmp);
    buf_release(&all);
}

/* The file's text, or the end of it when somebody made it far too long. */
static char *read_file(const struct lifelog *l, size_t *len, off_t *from, struct err *e)
{
    struct stat st;
    if (fstat(l->fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        err_set(e, ERR_PERM, "'%s' is no file of ours", l->path);
        return NULL;
    }
    *from = st.st_size > READ_MAX ? st.st_size - READ_MAX : 0;
    *len = (size_t)(st.st_size - *from);
    char *text = xmalloc(*len + 1);
    for (size_t have = 0; have < *len;) {
        ssize_t n = pread(l->fd, text + have, *len - have, *from + (off_t)have);
        if (n <= 0) {
            err_sys(e, ERR_IO, "cannot read '%s'", l->path);
            free(text);
            return NULL;
        }
        have += (size_t)n;
    }
    return text;
}

static int load(struct lifelog *l, int64_t now, struct err *e)
{
    size_t len;
    off_t from;
    l->fd = open_private(l->path, 0);
    if (l->fd < 0 || fchmod(l->fd, 0600) != 0)
        return err_sys(e, 0, "cannot open '%s'", l->path);
    char *text = read_file(l, &len, &from, e);
    if (!text)
        return ERR_IO;
    bool rubbish = index_text(l, text, len, from, now);
    free(text);
    size_t first = l->events.n > LIFELOG_MAX ? l->events.n - LIFELOG_MAX : 0;
    if (rubbish || first > 0)
        rewrite(l, first);
    return 0;
}

struct lifelog *lifelog_open(const char *path, int64_t now, struct err *e)
{
    struct lifelog *l = xcalloc(1, sizeof(*l));
    l->path = xstrdup(path);
    if (load(l, now, e) == 0)
        return l;
    lifelog_free(l);
    return NULL;
}

void lifelog_free(struct lifelog *l)
{
    if (!l)
        return;
    if (l->fd >= 0)
        close(l->fd);
    ARR_RELEASE(&l->events);
    ARR_RELEASE(&l->places);
    free(l->path);
    free(l);
}

void lifelog_add(struct lifelog *l, const struct sbox_rec *r, enum life type, const char *why,
                 int64_t now)
{
    struct buf b = BUF_INIT;
    struct life_event ev = {.type = type, .ms = now};
    write_event(&b, r, type, why, now, true);
    if (b.len > LIFELOG_LINE_MAX) {
        buf_clear(&b);
        write_event(&b, r, type, why, now, false);
    }
    str_copy(ev.id, sizeof(ev.id), r->id);
    if (l->events.n >= LIFELOG_MAX || l->size > (off_t)LIFELOG_BYTES_MAX)
        rewrite(l, l->events.n / 4);
    size_t len = b.len;
    buf_addc(&b, '\n');
    if (write_all(l->fd, b.p, b.len, l->size)) {
        index_add(l, &ev, l->size, len);
        l->size += (off_t)b.len;
        l->full = false;
    } else {
        if (!l->full)
            log_warn("event not kept in '%s': %s", l->path, strerror(errno));
        l->full = true;
        if (ftruncate(l->fd, l->size) != 0) /* half a line would spoil the next */
            log_warn("cannot cut '%s': %s", l->path, strerror(errno));
    }
    buf_release(&b);
}

const struct life_event *lifelog_events(const struct lifelog *l, size_t *n)
{
    *n = l->events.n;
    return l->events.v;
}

char *lifelog_text(const struct lifelog *l, size_t i)
{
    const struct place *p = &l->places.v[i];
    char *text = xmalloc(p->len + 1);
    if (pread(l->fd, text, p->len, p->at) != (ssize_t)p->len) {
        free(text);
        return NULL;
    }
    text[p->len] = '\0';
    return text;
}
