/* Templates of this provider: the built-in ones, and those that were built here, kept
 * in STATE/templates/ID/ (template.json, 0600, and BUILD.log for each build). Layers
 * lie in STATE/layers, files for COPY in STATE/uploads. One thread, one event loop. */
#ifndef CCT_LOCAL_TPL_H
#define CCT_LOCAL_TPL_H

#include <cct/local/provider.h>
#include <cct/local/tpl_plan.h>
#include <cct/util/arr.h>
#include <stdio.h>

#define TPL_MAX 500u         /* templates */
#define TPL_BUILDS_KEPT 20u  /* of one template, without those that tags name */
#define TPL_BUILDS_AT_ONCE 2 /* the others wait */
#define TPL_WAITING_MAX 64u  /* builds asked for and not started, of all */
#define TPL_TAG "default"

struct map;
struct tpl_job;
struct tpl_store;

enum tpl_status { TPL_IS_WAITING, TPL_IS_BUILDING, TPL_IS_READY, TPL_IS_ERROR };
const char *tpl_status_name(enum tpl_status s);

/* --- a build's log (tpl_log.c) ------------------------------------------------ */
enum tpl_level { TPL_DEBUG, TPL_INFO, TPL_WARN, TPL_ERROR };
const char *tpl_level_name(enum tpl_level l);

struct tpl_entry {
    int64_t ms; /* wall; never before the entry above */
    enum tpl_level level;
    char step[12];
    char *message;
};
#define TPL_LOG_ENTRIES_MAX 20000u
#define TPL_LOG_BYTES_MAX (2u << 20)
#define TPL_LOG_FILE_MAX (8 * TPL_LOG_BYTES_MAX) /* JSON spells a byte with up to six */
#define TPL_LINE_MAX (16u << 10)

struct tpl_log {
    ARR(struct tpl_entry) a;
    size_t bytes;
    bool full;
    int fd; /* -1: nothing can be added */
};
/* What the file holds; damaged lines are left out. NULL path: in memory only. */
struct tpl_log *tpl_log_open(const char *path, bool append);
void tpl_log_free(struct tpl_log *l);
/* One line; it is made valid UTF-8 without control characters but tabs and escape. */
void tpl_log_add(struct tpl_log *l, enum tpl_level level, const char *step, const char *text,
                 size_t len);
void tpl_log_addf(struct tpl_log *l, enum tpl_level level, const char *step, const char *fmt,
                  ...) __attribute__((format(printf, 4, 5)));

struct tpl_log_query {
    enum tpl_level min;
    size_t offset, limit; /* offset counts entries of the level */
    int64_t cursor;       /* wall ms, or -1: from the one end */
    bool backward;        /* newest first, up to the cursor */
};
/* Select at most q->limit entries into out; how many. Pure. */
size_t tpl_log_select(const struct tpl_log *l, const struct tpl_log_query *q,
                      const struct tpl_entry **out);

/* --- records (tpl_store.c, tpl_record.c) -------------------------------------- */
struct tpl_build {
    char id[40]; /* UUID */
    enum tpl_status status;
    bool started; /* a client may start it once */
    int64_t created_ms, updated_ms, finished_ms;
    int cpu, mem_mb;
    struct tpl_image image; /* owned */
    char **tags;            /* asked for; theirs once it is ready */
    size_t n_tags;
    char *reason, *reason_step; /* of an error */
    struct tpl_log *log;        /* loaded when needed */
    int64_t log_used_ms;
    struct tpl_job *job; /* under way or waiting for its turn */
};

struct tpl_tag {
    char name[TPL_NAME_MAX + 1];
    char build[40];
    int64_t created_ms;
};

struct tpl {
    char id[24];
    char name[TPL_NAME_MAX + 1];
    bool builtin, public;
    int64_t created_ms, updated_ms, spawned_ms; /* spawned: 0 = never */
    int64_t spawns, n_built;
    ARR(struct tpl_build *) builds; /* oldest first, never empty */
    ARR(struct tpl_tag) tags;
    bool dirty; /* counters changed; saved a little later */
};

struct tpl_upload {
    char hash[TPL_KEY_LEN + 1];
    int64_t until_ms; /* monotonic */
};

struct tpl_store {
    struct provider *p;
    struct map *by_id, *by_name; /* struct tpl */
    struct map *layers;          /* key -> name of the layer */
    struct map *uploads;         /* one-time token -> struct tpl_upload */
    ARR(struct tpl_job *) jobs;  /* in the order of their start */
    struct event *flush;
    bool sweep_due, ending;
    bool is_partial; /* a template could not be read: no layer that it may have goes */
};

/* Load everything; what is damaged is said in the log and set aside. Never fails: a
 * store that cannot be read is an empty one. */
struct tpl_store *tpl_store_new(struct provider *p);
/* Ends the builds (their sandboxes are killed) and saves counters. */
void tpl_store_free(struct tpl_store *s);

/* By id, name, "local/name", each with ":tag" (default: TPL_TAG). The template; and in
 * *b, if asked for, the build that sandboxes are made from. NULL with *e:
 * ERR_NOTFOUND, or ERR_INVALID when there is no finished build behind it. */
struct tpl *tpl_find(const struct tpl_store *s, const char *ref, struct err *e);
struct tpl *tpl_resolve(const struct tpl_store *s, const char *ref, struct tpl_build **b,
                        struct err *e);
struct tpl_build *tpl_build_find(const struct tpl *t, const char *id);
const struct tpl_build *tpl_build_last_good(const struct tpl *t);
struct tpl_log *tpl_build_log(struct tpl_store *s, struct tpl *t, struct tpl_build *b);

/* A new build of the template of that name, which is made if there is none. */
int tpl_request(struct tpl_store *s, const char *name, const char *const *tags, size_t n_tags,
                int cpu, int mem_mb, struct tpl **t, struct tpl_build **b, struct err *e);
void tpl_tag_put(struct tpl *t, const char *tag, const char *build);
bool tpl_tag_drop(struct tpl *t, const char *tag);
/* Builds under way are called off; the files go in a child. */
void tpl_delete(struct tpl_store *s, struct tpl *t);
/* A sandbox was made from it. */
void tpl_count_spawn(struct tpl_store *s, struct tpl *t);
/* Write template.json; what fails is said in the log too, and tried again later. */
int tpl_save(struct tpl_store *s, struct tpl *t, struct err *e);
/* A sandbox that was made from it and lives, or NULL. */
const struct sbox *tpl_used_by(const struct tpl_store *s, const struct tpl *t);
/* Builds that nothing names and that are past TPL_BUILDS_KEPT go. */
void tpl_prune(struct tpl_store *s, struct tpl *t);

/* --- used between tpl*.c only ------------------------------------------------- */
struct tpl_build *tpl_build_new(void);
void tpl_build_free(struct tpl_build *b);
void tpl_image_clear(struct tpl_image *i);
void tpl_image_copy(struct tpl_image *to, const struct tpl_image *from);
void tpl_free(struct tpl *t);
void tpl_write(struct buf *b, const struct tpl *t);                /* template.json's text */
struct tpl *tpl_read(const char *text, size_t len, struct err *e); /* every field checked */

/* --- layers and uploads on disk (tpl_layers.c) --------------------------------- */
#define TPL_LAYERS_MAX 100u /* of one template */
void tpl_layers_load(struct tpl_store *s);
/* An empty layer that nothing refers to yet; name has TPL_LAYER_LEN + 1 bytes. */
int tpl_layer_new(struct tpl_store *s, char *name, struct err *e);
/* Make place for COPY's archive where the sandbox finds it (TPL_COPY_DIR), and open both:
 * it is copied, since whoever runs in the sandbox may write to its file, and the archive
 * may serve other templates. tpl_copy_more() is called until it gives 0, or < 0. */
struct tpl_copy {
    int from, to;
};
#define TPL_COPY_INIT {-1, -1}
int tpl_copy_open(struct tpl_copy *c, struct tpl_store *s, const char *name, const char *hash,
                  struct err *e);
int tpl_copy_more(struct tpl_copy *c, struct err *e);
void tpl_copy_close(struct tpl_copy *c);
/* From here on the layer may be used by others, and is found by its key. */
int tpl_layer_publish(struct tpl_store *s, const char *name, const char *key, struct err *e);
/* Layers and uploads without use go, in a child. */
void tpl_layers_sweep(struct tpl_store *s);
void tpl_sweep_later(struct tpl_store *s); /* soon, when nothing else is to be done */

/* --- archives for COPY (tpl_upload.c) ------------------------------------------ */
#define TPL_TOKEN_LEN 48
#define TPL_UPLOAD_MAX (1LL << 30)
char *tpl_upload_path(const struct tpl_store *s, const char *hash);
void tpl_uploads_load(struct tpl_store *s); /* what a provider before left half goes */
bool tpl_upload_is_there(const struct tpl_store *s, const char *hash);
/* A link for one upload of these files; token has TPL_TOKEN_LEN + 1 bytes. */
void tpl_upload_offer(struct tpl_store *s, const char *hash, char *token);
/* Use the link up; false: there is no such link any more. */
bool tpl_upload_take(struct tpl_store *s, const char *token, char *hash);
/* An archive that comes in pieces; it counts once it was kept. keep and drop free. */
struct tpl_inflow *tpl_inflow_new(struct tpl_store *s, const char *hash, struct err *e);
int tpl_inflow_add(struct tpl_inflow *f, const char *p, size_t len, struct err *e);
int tpl_inflow_keep(struct tpl_inflow *f, struct err *e);
void tpl_inflow_drop(struct tpl_inflow *f);

/* --- builds (tpl_build.c) ------------------------------------------------------ */
/* Takes the plan over in every case. The build runs when its turn comes. */
void tpl_build_start(struct tpl_store *s, struct tpl *t, struct tpl_build *b,
                     struct tpl_plan *take);
/* End the newest job because the provider ends, with the reason. */
void tpl_build_stop(struct tpl_store *s, const char *why);
/* Is a build just writing this layer? */
bool tpl_layer_in_work(const struct tpl_store *s, const char *name);
/* Call it off: nothing of it is left; the build's status is not changed. */
void tpl_build_cancel(struct tpl_build *b);

#endif
