/* template.json: written whole, read with every field checked. */
#include <cct/local/tpl.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <stdlib.h>
#include <string.h>

static const char *const status_names[] = {"waiting", "building", "ready", "error"};

const char *tpl_status_name(enum tpl_status s)
{
    return status_names[s];
}

static bool uuid_ok(const char *s)
{
    return strlen(s) == 36 && strspn(s, "0123456789abcdef-") == 36;
}

/* --- memory ------------------------------------------------------------------- */

struct tpl_build *tpl_build_new(void)
{
    struct tpl_build *b = xcalloc(1, sizeof(*b));
    rand_uuid(b->id);
    b->created_ms = b->updated_ms = clock_wall_ms();
    b->cpu = PROV_CPU;
    b->mem_mb = PROV_MEM_MB;
    return b;
}

static char **copy_list(char *const *list, size_t n)
{
    char **out = xcalloc(n + 1, sizeof(out[0]));
    for (size_t i = 0; i < n; i++)
        out[i] = xstrdup(list[i]);
    return out;
}

static void free_list(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

void tpl_image_clear(struct tpl_image *i)
{
    free_list(i->layers, i->n_layers);
    json_free(i->env);
    free(i->workdir);
    free(i->user);
    free(i->start_cmd);
    free(i->ready_cmd);
    memset(i, 0, sizeof(*i));
}

void tpl_image_copy(struct tpl_image *to, const struct tpl_image *from)
{
    memset(to, 0, sizeof(*to));
    to->layers = copy_list(from->layers, from->n_layers);
    to->n_layers = from->n_layers;
    to->env = json_copy(from->env);
    to->workdir = xstrdup(from->workdir);
    to->user = xstrdup(from->user);
    to->start_cmd = xstrdup(from->start_cmd);
    to->ready_cmd = xstrdup(from->ready_cmd);
}

void tpl_build_free(struct tpl_build *b)
{
    if (!b)
        return;
    tpl_image_clear(&b->image);
    free_list(b->tags, b->n_tags);
    free(b->reason);
    free(b->reason_step);
    tpl_log_free(b->log);
    free(b);
}

void tpl_free(struct tpl *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->builds.n; i++)
        tpl_build_free(t->builds.v[i]);
    ARR_RELEASE(&t->builds);
    ARR_RELEASE(&t->tags);
    free(t);
}

/* --- writing ------------------------------------------------------------------ */

static void write_list(struct jw *w, const char *name, char *const *list, size_t n)
{
    jw_arr(w, name);
    for (size_t i = 0; i < n; i++)
        jw_str(w, NULL, list[i]);
    jw_end(w);
}

static void write_image(struct jw *w, const struct tpl_image *i)
{
    jw_obj(w, "image");
    write_list(w, "layers", i->layers, i->n_layers);
    if (i->env) {
        char *text = json_text(i->env);
        jw_raw(w, "env", text);
        free(text);
    }
    jw_str(w, "workdir", i->workdir);
    jw_str(w, "user", i->user);
    jw_str(w, "startCmd", i->start_cmd);
    jw_str(w, "readyCmd", i->ready_cmd);
    jw_end(w);
}

static void write_build(struct jw *w, const struct tpl_build *b)
{
    jw_obj(w, NULL);
    jw_str(w, "id", b->id);
    jw_str(w, "status", tpl_status_name(b->status));
    jw_bool(w, "started", b->started);
    jw_i64(w, "createdAt", b->created_ms);
    jw_i64(w, "updatedAt", b->updated_ms);
    jw_i64(w, "finishedAt", b->finished_ms);
    jw_i64(w, "cpu", b->cpu);
    jw_i64(w, "mem", b->mem_mb);
    write_image(w, &b->image);
    write_list(w, "tags", b->tags, b->n_tags);
    jw_str(w, "reason", b->reason);
    jw_str(w, "reasonStep", b->reason_step);
    jw_end(w);
}

void tpl_write(struct buf *b, const struct tpl *t)
{
    struct jw w;
    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_i64(&w, "version", 1);
    jw_str(&w, "id", t->id);
    jw_str(&w, "name", t->name);
    jw_bool(&w, "public", t->public);
    jw_i64(&w, "createdAt", t->created_ms);
    jw_i64(&w, "updatedAt", t->updated_ms);
    jw_i64(&w, "spawnedAt", t->spawned_ms);
    jw_i64(&w, "spawns", t->spawns);
    jw_i64(&w, "built", t->n_built);
    jw_arr(&w, "builds");
    for (size_t i = 0; i < t->builds.n; i++)
        write_build(&w, t->builds.v[i]);
    jw_end(&w);
    jw_arr(&w, "tags");
    for (size_t i = 0; i < t->tags.n; i++) {
        jw_obj(&w, NULL);
        jw_str(&w, "name", t->tags.v[i].name);
        jw_str(&w, "build", t->tags.v[i].build);
        jw_i64(&w, "createdAt", t->tags.v[i].created_ms);
        jw_end(&w);
    }
    jw_end(&w);
    jw_end(&w);
}

/* --- reading ------------------------------------------------------------------ */

static bool read_list(const struct cJSON *j, char ***list, size_t *n, bool (*ok)(const char *))
{
    size_t count = 0;
    for (const struct cJSON *c = json_first(j); c; c = json_next(c))
        count++;
    *list = xcalloc(count + 1, sizeof(**list));
    *n = 0;
    for (const struct cJSON *c = json_first(j); c; c = json_next(c)) {
        if (!json_is_string(c) || !ok(json_str_of(c)))
            return false;
        (*list)[(*n)++] = xstrdup(json_str_of(c));
    }
    return true;
}

static bool read_image(const struct cJSON *j, struct tpl_image *i)
{
    if (!read_list(json_get(j, "layers"), &i->layers, &i->n_layers, tpl_layer_name_ok))
        return false;
    const struct cJSON *env = json_get(j, "env");
    for (const struct cJSON *c = json_first(env); c; c = json_next(c))
        if (!json_is_string(c))
            return false;
    i->env = json_is_object(env) ? json_copy(env) : NULL;
    i->workdir = xstrdup(json_str(j, "workdir", NULL));
    i->user = xstrdup(json_str(j, "user", NULL));
    i->start_cmd = xstrdup(json_str(j, "startCmd", NULL));
    i->ready_cmd = xstrdup(json_str(j, "readyCmd", NULL));
    return true;
}

static bool read_status(const char *s, enum tpl_status *out)
{
    for (int i = 0; i < 4; i++)
        if (strcmp(s, status_names[i]) == 0) {
            *out = (enum tpl_status)i;
            return true;
        }
    return false;
}

static bool read_build(const struct cJSON *j, struct tpl_build *b)
{
    const char *id = json_str(j, "id", "");
    str_copy(b->id, sizeof(b->id), id);
    b->started = json_bool(j, "started", false);
    b->created_ms = json_i64(j, "createdAt", 0);
    b->updated_ms = json_i64(j, "updatedAt", 0);
    b->finished_ms = json_i64(j, "finishedAt", 0);
    b->cpu = (int)json_i64(j, "cpu", 0);
    b->mem_mb = (int)json_i64(j, "mem", 0);
    b->reason = xstrdup(json_str(j, "reason", NULL));
    b->reason_step = xstrdup(json_str(j, "reasonStep", NULL));
    return uuid_ok(id) && read_status(json_str(j, "status", ""), &b->status) &&
           b->created_ms > 0 && b->cpu > 0 && b->mem_mb > 0 &&
           read_image(json_get(j, "image"), &b->image) &&
           read_list(json_get(j, "tags"), &b->tags, &b->n_tags, tpl_tag_ok);
}

static bool read_tags(struct tpl *t, const struct cJSON *j)
{
    for (const struct cJSON *c = json_first(j); c; c = json_next(c)) {
        const char *name = json_str(c, "name", ""), *build = json_str(c, "build", "");
        if (!tpl_tag_ok(name) || !tpl_build_find(t, build))
            return false;
        tpl_tag_put(t, name, build);
        t->tags.v[t->tags.n - 1].created_ms = json_i64(c, "createdAt", t->created_ms);
    }
    return true;
}

static bool read_all(struct tpl *t, const struct cJSON *j)
{
    str_copy(t->id, sizeof(t->id), json_str(j, "id", ""));
    str_copy(t->name, sizeof(t->name), json_str(j, "name", ""));
    t->public = json_bool(j, "public", false);
    t->created_ms = json_i64(j, "createdAt", 0);
    t->updated_ms = json_i64(j, "updatedAt", t->created_ms);
    t->spawned_ms = json_i64(j, "spawnedAt", 0);
    t->spawns = json_i64(j, "spawns", 0);
    t->n_built = json_i64(j, "built", 0);
    if (strlen(t->id) != 20 || !sbox_id_ok(t->id) || !tpl_name_ok(t->name) ||
        t->created_ms <= 0 || json_i64(j, "version", 0) != 1)
        return false;
    for (const struct cJSON *c = json_first(json_get(j, "builds")); c; c = json_next(c)) {
        struct tpl_build *b = xcalloc(1, sizeof(*b));
        *ARR_PUSH(&t->builds) = b;
        if (!read_build(c, b))
            return false;
    }
    return t->builds.n > 0 && read_tags(t, json_get(j, "tags"));
}

struct tpl *tpl_read(const char *text, size_t len, struct err *e)
{
    struct cJSON *j = json_parse(text, len, e);
    if (!j)
        return NULL;
    struct tpl *t = xcalloc(1, sizeof(*t));
    if (!read_all(t, j)) {
        err_set(e, ERR_CORRUPT, "the record is damaged");
        tpl_free(t);
        t = NULL;
    }
    json_free(j);
    return t;
}
