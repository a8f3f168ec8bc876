/* The control API: routes and their answers, in the cloud's shapes. */
#ifndef CCT_LOCAL_CTL_H
#define CCT_LOCAL_CTL_H

#include <cct/local/boxstore.h>
#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_req;
struct provider;

/* Handler of the control port (http_srv.h); `arg` is the provider. */
void ctl_handle(struct http_req *r, void *arg);
/* Its look at the head: only the owner's bodies are read. */
void ctl_head(struct http_req *r, void *arg);

/* --- queries (pure) --------------------------------------------------------- */
/* Value of a query parameter, percent-decoded once ('+' is a space), or NULL when
 * absent; new string. Malformed escapes stay as they are. */
char *ctl_query_get(const char *query, const char *name);
/* Undo one level of query encoding in place. */
void ctl_unescape(char *s);
/* The same for a piece of a path, where '+' is itself. */
void ctl_unescape_path(char *s);

#define CTL_META_MAX 16u
struct ctl_list {
    bool running, paused;
    bool ascending;        /* by start; default newest first */
    int64_t started_after; /* wall ms, 0 = any */
    int limit;             /* 1..100 */
    char *tpl;             /* template id or alias, or NULL */
    struct {
        char *key, *value;
    } meta[CTL_META_MAX];
    size_t n_meta;
    int64_t after_ms; /* cursor: last item of the page before */
    char after_id[24];
};
/* 0, or ERR_INVALID with the sentence of the 400. Release in both cases. */
int ctl_list_parse(struct ctl_list *q, const char *query, struct err *e);
void ctl_list_release(struct ctl_list *q);
/* Sort and select: recs[0..n) is reordered so that the page is recs[0..result).
 * *running = matching running ones before paging; *next = cursor or NULL (new
 * string). */
size_t ctl_list_select(const struct ctl_list *q, const struct sbox_rec **recs, size_t n,
                       size_t *running, char **next);

/* --- what a create asks for (pure) ------------------------------------------- */
struct cJSON;
struct sbox_new;
/* Check a body and fill all of *n but the template. `body` may be NULL; what it
 * points to is borrowed. ERR_INVALID (400) or ERR_UNSUPPORTED (501) with *e set. */
int ctl_options_parse(const struct cJSON *body, bool v2, struct sbox_new *n, struct err *e);
/* Body of a change of the network: what it comes to. */
int ctl_options_update(const struct cJSON *body, bool *internet, struct err *e);

/* --- metrics (pure) ----------------------------------------------------------- */
struct jw;
/* An init's samples (init.h) as the API's metrics: at most one for each `step`
 * seconds, the mean of those that fall together. */
void ctl_metrics_thin(struct jw *w, const struct cJSON *samples, int64_t step);

/* --- built-in templates (ctl_template.c) ------------------------------------ */
#define CTL_TEMPLATE_MADE_MS 1767225600000 /* 2026-01-01 */
#define CTL_TEMPLATE_BUILD "00000000-0000-4000-8000-000000000000"
struct ctl_template {
    const char *id, *alias;
};
const struct ctl_template *ctl_template_all(size_t *n);

/* Path of the upload links that templates' files go to; the link itself is the
 * permission. */
#define CTL_UPLOADS "/uploads/"

#endif
