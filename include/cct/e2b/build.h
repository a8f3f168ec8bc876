/* Templates and their builds. Net thread only. */
#ifndef CCT_E2B_BUILD_H
#define CCT_E2B_BUILD_H

#include <cct/e2b/look.h>

struct e2b_template {
    char *template_id, *build_id; /* build_id: the newest good one */
    char **names;     /* "team/name", or its aliases; ends with NULL; may be NULL */
    bool is_public;
    int cpu_count, memory_mb, disk_mb;
    int64_t created_at, updated_at, spawned_at; /* wall ms, 0 unknown */
    int64_t spawn_count, build_count;           /* -1 unknown */
    char *envd_version, *status;                /* status: of the newest build; or NULL */
};
struct e2b_build {
    char *template_id, *build_id;
    char *status;     /* "waiting" "building" "ready" "error", or what was sent; "" */
    int64_t created_at, updated_at, finished_at;
    int cpu_count, memory_mb, disk_mb;
    char *envd_version;
    char *reason, *reason_step; /* of an error, or NULL */
};
struct e2b_tag {
    char *tag, *build_id;
    int64_t created_at;
};
/* Where a layer's archive goes. */
struct e2b_file {
    bool present;        /* it is there already */
    char *url;           /* NULL when present */
    struct kv *headers;  /* to send along; ends with k NULL, or NULL */
};

/* All pages (templates); the old unpaged route where the new one is missing. team_id
 * NULL: the key's. */
uint64_t e2b_templates(struct e2b *c, const char *team_id, const struct e2b_call_opts *o,
                       e2b_fn fn, void *ctx);
/* One template (templates) and all of its builds (builds), in the order they came. */
uint64_t e2b_template(struct e2b *c, const char *template_id, const struct e2b_call_opts *o,
                      e2b_fn fn, void *ctx);
/* Template of a name (templates: id and is_public). ERR_NOTFOUND none, ERR_AUTH with a
 * sentence: another team's. */
uint64_t e2b_template_alias(struct e2b *c, const char *alias, const struct e2b_call_opts *o,
                            e2b_fn fn, void *ctx);
uint64_t e2b_template_delete(struct e2b *c, const char *template_id,
                             const struct e2b_call_opts *o, e2b_fn fn, void *ctx);
uint64_t e2b_tags(struct e2b *c, const char *template_id, const struct e2b_call_opts *o,
                  e2b_fn fn, void *ctx); /* tags */
/* target "name:tag"; tags end with NULL. */
uint64_t e2b_tag_add(struct e2b *c, const char *target, const char *const *tags, e2b_fn fn,
                     void *ctx); /* tags */
uint64_t e2b_tag_delete(struct e2b *c, const char *name, const char *const *tags,
                        const struct e2b_call_opts *o, e2b_fn fn, void *ctx);

/* --- making one: request, upload what is not there, start ------------------------- */

struct e2b_build_new {
    const char *name;              /* may end in ":tag" */
    const char *const *tags;       /* ends with NULL, or NULL */
    int cpu_count, memory_mb;      /* 0 = the service's */
    int min_free_disk_mb;
};
/* The ids of a new build (builds). Never repeated by itself. */
uint64_t e2b_build_new(struct e2b *c, const struct e2b_build_new *q, e2b_fn fn, void *ctx);
/* Is the archive with this hash (64 hex digits) there, and where else to put it (file)? */
uint64_t e2b_build_file(struct e2b *c, const char *template_id, const char *hash,
                        const struct e2b_call_opts *o, e2b_fn fn, void *ctx);
/* PUT an archive where e2b_build_file said: that address and its headers alone, neither
 * key nor any header of ours. Https, or http on this machine when the API is there too;
 * anything else is ERR_PERM. The archive is the file `fd` from its begin, `len` bytes; the
 * call closes it. */
uint64_t e2b_upload(struct e2b *c, const struct e2b_file *f, int fd, uint64_t len, e2b_fn fn,
                    void *ctx);
/* Bytes of an upload under way that have gone out. */
int64_t e2b_sent(struct e2b *c, uint64_t call);
struct e2b_step {
    const char *type;              /* "RUN" "COPY" "ENV" "WORKDIR" "USER" ... */
    const char *const *args;       /* ends with NULL */
    const char *files_hash;        /* COPY; or NULL */
    bool force;
};
struct e2b_build_start {
    const char *from_image, *from_template; /* one of them, or neither */
    const char *user;              /* of a private image's registry, with password */
    const struct secret *password;
    const char *start_cmd, *ready_cmd; /* or NULL */
    const struct e2b_step *steps;
    size_t n_steps;
    bool force;                    /* no cache at all */
};
uint64_t e2b_build_start(struct e2b *c, const char *template_id, const char *build_id,
                         const struct e2b_build_start *q, e2b_fn fn, void *ctx);

/* --- following it --------------------------------------------------------------- */

/* Status (one in builds), the log from entry `offset` on (logs, at most 100 at a time)
 * and, of an error, the lines that explain it (reason_logs). A build that is not known
 * is ERR_INVALID. */
uint64_t e2b_build_status(struct e2b *c, const char *template_id, const char *build_id,
                          int64_t offset, const struct e2b_call_opts *o, e2b_fn fn, void *ctx);
/* A page of its log by time (logs). */
uint64_t e2b_build_logs(struct e2b *c, const char *template_id, const char *build_id,
                        const struct e2b_log_query *q, const struct e2b_call_opts *o, e2b_fn fn,
                        void *ctx);

#endif
