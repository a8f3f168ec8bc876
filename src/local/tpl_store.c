/* The templates in memory: loaded at start, found by id and name, saved on change. */
#include <cct/local/ctl.h>
#include <cct/local/tpl.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/log.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_MAX (8u << 20)
#define DAMAGED "damaged-" /* a folder set aside */
#define FLUSH_MS 2000
#define START_WITHIN_MS (60 * 60 * 1000LL)
#define LOG_UNUSED_MS 30000

static char *dir_of(const struct tpl_store *s, const struct tpl *t)
{
    return xasprintf("%s/templates/%s", s->p->state_dir, t->id);
}

/* --- saving -------------------------------------------------------------------- */

int tpl_save(struct tpl_store *s, struct tpl *t, struct err *e)
{
    struct err own = {0};
    struct buf b = BUF_INIT;
    t->dirty = false;
    if (t->builtin)
        return 0;
    char *dir = dir_of(s, t), *path = fs_join(dir, "template.json");
    tpl_write(&b, t);
    int rc = fs_write_private(path, b.p, b.len, &own);
    if (rc != 0) {
        log_error("template %s is not saved: %s", t->id, own.text);
        t->dirty = true; /* tried again with the next flush */
    }
    if (rc != 0 && e)
        *e = own;
    explicit_bzero(b.p, b.len);
    buf_release(&b);
    free(path);
    free(dir);
    return rc;
}

static void flush_later(struct tpl_store *s)
{
    struct timeval tv = {FLUSH_MS / 1000, 0};
    if (!evtimer_pending(s->flush, NULL))
        event_add(s->flush, &tv);
}

/* Logs that nobody reads any more leave memory. True while some are there. */
static bool close_logs(struct tpl *t)
{
    bool any = false;
    for (size_t i = 0; i < t->builds.n; i++) {
        struct tpl_build *b = t->builds.v[i];
        if (!b->log || b->job)
            continue;
        if (clock_mono_ms() - b->log_used_ms > LOG_UNUSED_MS) {
            tpl_log_free(b->log);
            b->log = NULL;
        }
        any = any || b->log;
    }
    return any;
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct tpl_store *s = arg;
    struct tpl *t;
    size_t it = 0;
    bool again = false;
    while ((t = map_next(s->by_id, &it, NULL, NULL)) != NULL) {
        if (t->dirty && tpl_save(s, t, NULL) != 0)
            again = true;
        again = close_logs(t) || again;
    }
    if (s->sweep_due && s->p->adopting > 0)
        again = true; /* what the sandboxes use is not known yet */
    else if (s->sweep_due)
        tpl_layers_sweep(s);
    if (again)
        flush_later(s);
}

void tpl_sweep_later(struct tpl_store *s)
{
    s->sweep_due = true;
    flush_later(s);
}

void tpl_count_spawn(struct tpl_store *s, struct tpl *t)
{
    t->spawns++;
    t->spawned_ms = clock_wall_ms();
    t->dirty = true;
    flush_later(s);
}

/* --- loading ------------------------------------------------------------------- */

/* Whatever was under way ended with the provider that did it. */
static bool end_unfinished(struct tpl *t)
{
    bool any = false;
    for (size_t i = 0; i < t->builds.n; i++) {
        struct tpl_build *b = t->builds.v[i];
        if (b->status != TPL_IS_BUILDING && !(b->status == TPL_IS_WAITING && b->started))
            continue;
        b->status = TPL_IS_ERROR;
        b->finished_ms = b->updated_ms = clock_wall_ms();
        free(b->reason);
        b->reason = xstrdup("the provider was restarted while the template was built; start "
                            "the build again");
        any = true;
    }
    return any;
}

static void set_aside(struct tpl_store *s, const char *id, const char *why)
{
    s->is_partial = true;
    char *from = xasprintf("%s/templates/%s", s->p->state_dir, id);
    char *to = xasprintf("%s/templates/" DAMAGED "%s", s->p->state_dir, id);
    log_error("template %s is set aside as '%s': %s", id, to, why);
    if (rename(from, to) != 0 && (errno == ENOTEMPTY || errno == EEXIST)) {
        free(to);
        char hex[9];
        unsigned char r[4];
        rand_bytes(r, sizeof(r));
        hex_encode(hex, r, sizeof(r));
        to = xasprintf("%s/templates/" DAMAGED "%s-%s", s->p->state_dir, id, hex);
        if (rename(from, to) != 0)
            log_error("cannot move '%s': %s", from, strerror(errno));
    }
    free(from);
    free(to);
}

/* What is left where the provider was killed before the first record was written. */
static bool remove_unsaved(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *de;
    if (!d)
        return false;
    while ((de = readdir(d)) != NULL)
        if (str_starts(de->d_name, ".tmp-"))
            unlinkat(dirfd(d), de->d_name, 0);
    closedir(d);
    return rmdir(folder) == 0; /* anything else keeps it */
}

static void insert(struct tpl_store *s, struct tpl *t)
{
    map_put(s->by_id, t->id, t);
    map_put(s->by_name, t->name, t);
}

static void load_one(struct tpl_store *s, const char *id)
{
    struct err e = {0};
    size_t len = 0;
    char *path = xasprintf("%s/templates/%s/template.json", s->p->state_dir, id);
    char *text = fs_read(path, RECORD_MAX, true, &len, &e);
    struct tpl *t = text ? tpl_read(text, len, &e) : NULL;
    if (t && strcmp(t->id, id) != 0)
        err_set(&e, ERR_CORRUPT, "the record is of template %s", t->id);
    else if (t && map_get(s->by_name, t->name))
        err_set(&e, ERR_CORRUPT, "its name '%s' is taken", t->name);
    if (e.code != 0 || !t) {
        char *folder = xstrndup(path, (size_t)(strrchr(path, '/') - path));
        tpl_free(t);
        if (e.code != ERR_NOTFOUND || !remove_unsaved(folder))
            set_aside(s, id, e.text);
        free(folder);
    } else {
        insert(s, t);
        if (end_unfinished(t))
            tpl_save(s, t, NULL);
    }
    free(text);
    free(path);
}

static void add_builtins(struct tpl_store *s)
{
    size_t n;
    const struct ctl_template *all = ctl_template_all(&n);
    for (size_t i = 0; i < n; i++) {
        struct tpl *t = xcalloc(1, sizeof(*t));
        struct tpl_build *b = tpl_build_new();
        t->builtin = true;
        str_copy(t->id, sizeof(t->id), all[i].id);
        str_copy(t->name, sizeof(t->name), all[i].alias);
        t->created_ms = t->updated_ms = CTL_TEMPLATE_MADE_MS;
        t->n_built = 1;
        str_copy(b->id, sizeof(b->id), CTL_TEMPLATE_BUILD);
        b->status = TPL_IS_READY;
        b->started = true;
        b->created_ms = b->updated_ms = b->finished_ms = CTL_TEMPLATE_MADE_MS;
        *ARR_PUSH(&t->builds) = b;
        tpl_tag_put(t, TPL_TAG, b->id);
        t->tags.v[0].created_ms = CTL_TEMPLATE_MADE_MS;
        insert(s, t);
    }
}

static void load_all(struct tpl_store *s)
{
    static const char *const folders[] = {"templates", "layers", "uploads"};
    struct err e = {0};
    for (size_t i = 0; i < 3; i++) {
        char *path = fs_join(s->p->state_dir, folders[i]);
        if (fs_mkdir_private(path, &e) != 0)
            log_error("templates cannot be kept: %s", e.text);
        free(path);
    }
    char *path = fs_join(s->p->state_dir, "templates");
    DIR *d = opendir(path);
    struct dirent *de;
    while (d && (de = readdir(d)) != NULL) {
        if (strlen(de->d_name) == 20 && sbox_id_ok(de->d_name)) {
            load_one(s, de->d_name);
        } else if (str_starts(de->d_name, "gone-")) { /* its removal was cut off */
            char *gone = fs_join(path, de->d_name);
            provider_remove_tree(gone);
            free(gone);
        } else if (str_starts(de->d_name, DAMAGED)) {
            char *aside = fs_join(path, de->d_name);
            if (!remove_unsaved(aside))
                s->is_partial = true;
            free(aside);
        }
    }
    if (d)
        closedir(d);
    else
        s->is_partial = true;
    if (s->is_partial)
        log_warn("not all templates of '%s' can be read: until those set aside as '" DAMAGED
                 "ID' are mended or removed, no finished layer is",
                 path);
    free(path);
}

struct tpl_store *tpl_store_new(struct provider *p)
{
    struct tpl_store *s = xcalloc(1, sizeof(*s));
    s->p = p;
    s->by_id = map_new();
    s->by_name = map_new();
    s->layers = map_new();
    s->uploads = map_new();
    s->flush = evtimer_new(p->base, on_flush, s);
    if (!s->flush)
        die("libevent is out of memory");
    add_builtins(s);
    load_all(s);
    tpl_layers_load(s);
    tpl_uploads_load(s);
    tpl_sweep_later(s);
    return s;
}

/* Sandboxes of builds are of no use without them, also those just being made. */
static void end_hidden(struct provider *p)
{
    size_t it = 0;
    struct sbox *b;
    while ((b = map_next(p->boxes, &it, NULL, NULL)) != NULL)
        if (b->rec.hidden && b->phase != SBOX_KILLING)
            sbox_kill(b, NULL, NULL);
}

void tpl_store_free(struct tpl_store *s)
{
    size_t it;
    struct tpl *t;
    if (!s)
        return;
    while (s->jobs.n > 0)
        tpl_build_stop(s, "the provider was stopped while the template was built");
    end_hidden(s->p);
    it = 0;
    while ((t = map_next(s->by_id, &it, NULL, NULL)) != NULL) {
        if (t->dirty)
            tpl_save(s, t, NULL);
        tpl_free(t);
    }
    ARR_RELEASE(&s->jobs);
    event_free(s->flush);
    map_free(s->by_id, NULL);
    map_free(s->by_name, NULL);
    map_free(s->layers, free);
    map_free(s->uploads, free);
    free(s);
}

/* --- looking up ------------------------------------------------------------------ */

struct tpl_build *tpl_build_find(const struct tpl *t, const char *id)
{
    for (size_t i = 0; i < t->builds.n; i++)
        if (strcmp(t->builds.v[i]->id, id) == 0)
            return t->builds.v[i];
    return NULL;
}

const struct tpl_build *tpl_build_last_good(const struct tpl *t)
{
    for (size_t i = t->builds.n; i-- > 0;)
        if (t->builds.v[i]->status == TPL_IS_READY)
            return t->builds.v[i];
    return NULL;
}

static struct tpl *find(const struct tpl_store *s, const char *ref, struct tpl_ref *r,
                        struct err *e)
{
    struct tpl *t = NULL;
    if (tpl_ref_parse(r, ref, NULL) == 0) {
        t = map_get(s->by_id, r->name);
        t = t ? t : map_get(s->by_name, r->name);
    }
    if (!t)
        err_set(e, ERR_NOTFOUND, "template '%.80s' not found", ref);
    return t;
}

struct tpl *tpl_find(const struct tpl_store *s, const char *ref, struct err *e)
{
    struct tpl_ref r;
    return find(s, ref, &r, e);
}

struct tpl *tpl_resolve(const struct tpl_store *s, const char *ref, struct tpl_build **b,
                        struct err *e)
{
    struct tpl_ref r;
    struct tpl *t = find(s, ref, &r, e);
    if (!t)
        return NULL;
    const char *tag = r.tag[0] ? r.tag : TPL_TAG;
    for (size_t i = 0; i < t->tags.n; i++)
        if (strcmp(t->tags.v[i].name, tag) == 0) {
            *b = tpl_build_find(t, t->tags.v[i].build);
            return t;
        }
    if (!tpl_build_last_good(t))
        err_set(e, ERR_INVALID, "template '%s' has no finished build", t->name);
    else
        err_set(e, ERR_NOTFOUND, "template '%s' has no build with the tag '%s'", t->name, tag);
    return NULL;
}

struct tpl_log *tpl_build_log(struct tpl_store *s, struct tpl *t, struct tpl_build *b)
{
    b->log_used_ms = clock_mono_ms();
    if (!b->log && t->builtin) {
        b->log = tpl_log_open(NULL, false);
    } else if (!b->log) {
        char *path = xasprintf("%s/templates/%s/%s.log", s->p->state_dir, t->id, b->id);
        b->log = tpl_log_open(path, b->status != TPL_IS_READY && b->status != TPL_IS_ERROR);
        free(path);
    }
    flush_later(s);
    return b->log;
}

/* --- changing ---------------------------------------------------------------------- */

void tpl_tag_put(struct tpl *t, const char *tag, const char *build)
{
    tpl_tag_drop(t, tag);
    struct tpl_tag *g = ARR_PUSH(&t->tags);
    str_copy(g->name, sizeof(g->name), tag);
    str_copy(g->build, sizeof(g->build), build);
    g->created_ms = clock_wall_ms();
}

bool tpl_tag_drop(struct tpl *t, const char *tag)
{
    for (size_t i = 0; i < t->tags.n; i++)
        if (strcmp(t->tags.v[i].name, tag) == 0) {
            ARR_REMOVE(&t->tags, i);
            return true;
        }
    return false;
}

static void add_tag(struct tpl_build *b, const char *tag)
{
    for (size_t i = 0; i < b->n_tags; i++)
        if (strcmp(b->tags[i], tag) == 0)
            return;
    b->tags = xrealloc(b->tags, (b->n_tags + 1) * sizeof(b->tags[0]));
    b->tags[b->n_tags++] = xstrdup(tag);
}

/* One that was asked for and not started for long never will be. */
static bool is_open(const struct tpl_build *b)
{
    return b->status == TPL_IS_BUILDING ||
           (b->status == TPL_IS_WAITING &&
            (b->started || clock_wall_ms() - b->created_ms < START_WITHIN_MS));
}

static size_t count_open(const struct tpl_store *s)
{
    size_t it = 0, n = 0;
    struct tpl *t;
    while ((t = map_next(s->by_id, &it, NULL, NULL)) != NULL)
        for (size_t i = 0; i < t->builds.n; i++)
            n += is_open(t->builds.v[i]);
    return n;
}

static struct tpl *new_template(struct tpl_store *s, const char *name, struct err *e)
{
    if (map_count(s->by_id) >= TPL_MAX) {
        err_set(e, ERR_LIMIT, "the limit of %u templates is reached; delete some", TPL_MAX);
        return NULL;
    }
    struct tpl *t = xcalloc(1, sizeof(*t));
    rand_id(t->id, 20);
    str_copy(t->name, sizeof(t->name), name);
    t->created_ms = clock_wall_ms();
    char *dir = dir_of(s, t);
    if (fs_mkdir_private(dir, e) != 0) {
        tpl_free(t);
        t = NULL;
    }
    free(dir);
    return t;
}

/* Of a template that could not be saved even once. */
static void drop_folder(struct tpl_store *s, const struct tpl *t)
{
    char *dir = dir_of(s, t);
    if (rmdir(dir) != 0)
        log_warn("cannot remove '%s': %s", dir, strerror(errno));
    free(dir);
}

int tpl_request(struct tpl_store *s, const char *name, const char *const *tags, size_t n_tags,
                int cpu, int mem_mb, struct tpl **out, struct tpl_build **build, struct err *e)
{
    struct tpl_ref r;
    int rc = tpl_ref_parse(&r, name, e);
    for (size_t i = 0; i < n_tags && rc == 0; i++)
        rc = tpl_tag_check(tags[i], e);
    if (rc != 0)
        return rc;
    if (count_open(s) >= TPL_WAITING_MAX)
        return err_set(e, ERR_LIMIT, "%u builds are waiting or under way already",
                       TPL_WAITING_MAX);
    struct tpl *t = map_get(s->by_name, r.name), *made = NULL;
    if (t && t->builtin)
        return err_set(e, ERR_INVALID,
                       "template '%s' is a built-in one; choose another name for yours",
                       r.name);
    if (!t)
        t = made = new_template(s, r.name, e);
    if (!t)
        return e ? e->code : ERR_IO;
    struct tpl_build *b = tpl_build_new();
    b->cpu = cpu;
    b->mem_mb = mem_mb;
    if (r.tag[0])
        add_tag(b, r.tag);
    for (size_t i = 0; i < n_tags; i++)
        add_tag(b, tags[i]);
    if (b->n_tags == 0)
        add_tag(b, TPL_TAG);
    *ARR_PUSH(&t->builds) = b;
    t->updated_ms = b->created_ms;
    rc = tpl_save(s, t, e);
    if (rc != 0) {
        ARR_REMOVE(&t->builds, t->builds.n - 1);
        tpl_build_free(b);
        if (made)
            drop_folder(s, made);
        tpl_free(made);
        return rc;
    }
    if (made)
        insert(s, made);
    tpl_prune(s, t);
    *out = t;
    *build = b;
    return 0;
}

static bool is_tagged(const struct tpl *t, const struct tpl_build *b)
{
    for (size_t i = 0; i < t->tags.n; i++)
        if (strcmp(t->tags.v[i].build, b->id) == 0)
            return true;
    return false;
}

const struct sbox *tpl_used_by(const struct tpl_store *s, const struct tpl *t)
{
    size_t it = 0;
    const struct sbox *b;
    while ((b = map_next(s->p->boxes, &it, NULL, NULL)) != NULL)
        if (!b->rec.hidden && b->phase != SBOX_KILLING &&
            strcmp(b->rec.template_id, t->id) == 0)
            return b;
    return NULL;
}

void tpl_prune(struct tpl_store *s, struct tpl *t)
{
    size_t loose = 0;
    if (tpl_used_by(s, t))
        return; /* it may be on the layers of an old build */
    for (size_t i = t->builds.n; i-- > 0;) {
        struct tpl_build *b = t->builds.v[i];
        if (b->job || is_tagged(t, b) || loose++ < TPL_BUILDS_KEPT)
            continue;
        char *path = xasprintf("%s/templates/%s/%s.log", s->p->state_dir, t->id, b->id);
        if (unlink(path) != 0 && errno != ENOENT)
            log_warn("cannot remove '%s': %s", path, strerror(errno));
        free(path);
        ARR_REMOVE(&t->builds, i);
        tpl_build_free(b);
        t->dirty = true;
        tpl_sweep_later(s);
    }
}

void tpl_delete(struct tpl_store *s, struct tpl *t)
{
    for (size_t i = 0; i < t->builds.n; i++)
        if (t->builds.v[i]->job)
            tpl_build_cancel(t->builds.v[i]);
    char *dir = dir_of(s, t);
    char *gone = xasprintf("%s/templates/gone-%s", s->p->state_dir, t->id);
    if (rename(dir, gone) == 0)
        provider_remove_tree(gone);
    else
        log_error("cannot remove '%s': %s", dir, strerror(errno));
    free(dir);
    free(gone);
    map_del(s->by_id, t->id);
    map_del(s->by_name, t->name);
    tpl_free(t);
    tpl_sweep_later(s);
}
