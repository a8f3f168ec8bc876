/* What was typed and not sent, kept over a quit in one private file. Several of us may run:
 * at the end each puts its own changes into what the file has by then. */
#include <cct/ui/ui.h>

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/log.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_MS (INT64_C(30) * 24 * 3600 * 1000)
enum { MAX_BYTES = 8 << 20, MAX_DRAFTS = 200, END_MS = 2000 };
#define BROADCAST "*" /* no session is called so */

struct draft {
    char *text;
    int64_t at;
    bool touched; /* here, since it was read */
};

static void draft_free(void *p)
{
    struct draft *d = p;
    free(d->text);
    free(d);
}

static void put(struct map *m, const char *key, const char *text, int64_t at, bool touched)
{
    struct draft *d = xcalloc(1, sizeof(*d));
    *d = (struct draft){xstrdup(text), at, touched};
    d = map_put(m, key, d);
    if (d)
        draft_free(d);
}

/* Drafts in the file; none when there is no such file or it is no such file. */
static struct map *read_file(const char *path)
{
    struct map *m = map_new();
    struct err e = {0};
    size_t len = 0;
    char *text = path ? fs_read(path, MAX_BYTES, true, &len, &e) : NULL;
    struct cJSON *j = text ? json_parse(text, len, &e) : NULL;
    if (path && e.code && e.code != ERR_NOTFOUND)
        log_error("drafts are not read: %s", e.text);
    const struct cJSON *all = json_get(j, "drafts");
    for (const struct cJSON *one = json_first(all); one; one = json_next(one)) {
        const char *key = json_str(one, "for", NULL), *what = json_str(one, "text", NULL);
        if (key && what && *what && map_count(m) < MAX_DRAFTS)
            put(m, key, what, json_i64(one, "at", 0), false);
    }
    json_free(j);
    free(text);
    return m;
}

void drafts_init(struct ui *ui)
{
    ui->drafts = read_file(ui->opts.drafts);
}

void drafts_release(struct ui *ui)
{
    map_free(ui->drafts, draft_free);
    ui->drafts = NULL;
}

const char *drafts_get(const struct ui *ui, const char *key)
{
    const struct draft *d = key ? map_get(ui->drafts, key) : NULL;
    return d ? d->text : "";
}

void drafts_put(struct ui *ui, const char *key, const char *text)
{
    if (key && !str_eq(drafts_get(ui, key), text))
        put(ui->drafts, key, text, clock_wall_ms(), true);
}

void drafts_broadcast(struct ui *ui, const char *text)
{
    drafts_put(ui, BROADCAST, text);
}

const char *drafts_of_broadcast(const struct ui *ui)
{
    return drafts_get(ui, BROADCAST);
}

static void write_all(struct map *m, struct buf *b)
{
    int64_t now = clock_wall_ms();
    struct jw w;
    size_t it = 0;
    const char *key;
    const struct draft *d;
    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_i64(&w, "version", 1);
    jw_arr(&w, "drafts");
    while ((d = map_next(m, &it, &key, NULL))) {
        if (!*d->text || (d->at && now - d->at > KEEP_MS))
            continue;
        jw_obj(&w, NULL);
        jw_str(&w, "for", key);
        jw_i64(&w, "at", d->at);
        jw_str(&w, "text", d->text);
        jw_end(&w);
    }
    jw_end(&w);
    jw_end(&w);
}

static int write_file(const char *path, struct map *m, struct err *e)
{
    struct buf b = BUF_INIT;
    const char *slash = strrchr(path, '/');
    char *dir = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
    int rc = fs_mkdir_private(dir, e);
    write_all(m, &b);
    if (rc == 0)
        rc = fs_write_private(path, buf_str(&b), b.len, e);
    buf_release(&b);
    free(dir);
    return rc;
}

/* What is to be put into the file, by a thread: a disk may not answer. */
struct saving {
    char *path;
    struct map *mine;
};

static void save_main(void *arg)
{
    struct saving *w = arg;
    struct map *m = read_file(w->path);
    struct err e = {0};
    size_t it = 0;
    const char *key;
    const struct draft *d;
    while ((d = map_next(w->mine, &it, &key, NULL)))
        put(m, key, d->text, d->at, true);
    if (write_file(w->path, m, &e) != 0)
        log_error("drafts are lost: %s", e.text);
    map_free(m, draft_free);
}

static struct map *touched(const struct map *drafts)
{
    struct map *mine = map_new();
    size_t it = 0;
    const char *key;
    const struct draft *d;
    while ((d = map_next(drafts, &it, &key, NULL)))
        if (d->touched)
            put(mine, key, d->text, d->at, true);
    return mine;
}

void drafts_save(struct ui *ui)
{
    pthread_t t;
    if (!ui->opts.drafts)
        return;
    pane_input_drafts(ui);
    struct saving *w = xcalloc(1, sizeof(*w));
    *w = (struct saving){xstrdup(ui->opts.drafts), touched(ui->drafts)};
    bool some = map_count(w->mine) > 0;
    if (some && thread_start(&t, THREAD_WORK, "drafts", save_main, w) != 0) {
        log_error("drafts are lost: no thread can be started to write them");
    } else if (some && !thread_join_ms(t, END_MS)) {
        log_error("drafts are lost: the disk did not answer in %d ms", END_MS);
        return; /* it uses them */
    }
    map_free(w->mine, draft_free);
    free(w->path);
    free(w);
}
