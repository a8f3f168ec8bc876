/* Lists of sandboxes: pages by a stable cursor or a bad one, filters, the old list. */
#include "plane.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct filter {
    char state[64], tpl[128];
    int64_t since;
    ARR(char *) pairs; /* "key=value" of the metadata, all must match */
};

void list_put(struct plane *p, struct jw *w, const char *name, const struct box *b, bool detail)
{
    char token[32];

    jw_obj(w, name);
    jw_str(w, "templateID", b->template_id);
    jw_str(w, "sandboxID", b->id);
    jw_str(w, "clientID", "0000aaaa");
    jw_str(w, "alias", b->template_id);
    plane_time(w, "startedAt", b->started_ms);
    plane_time(w, "endAt", b->end_ms);
    jw_i64(w, "cpuCount", 2);
    jw_i64(w, "memoryMB", 1024);
    jw_i64(w, "diskSizeMB", 1024);
    jw_str(w, "state", b->running ? "running" : "paused");
    jw_str(w, "envdVersion", "0.6.13");
    if (b->meta)
        jw_raw(w, "metadata", b->meta);
    if (detail) {
        snprintf(token, sizeof(token), "ea_%s", b->id);
        jw_str(w, "envdAccessToken", token);
        jw_null(w, "trafficAccessToken");
        jw_str(w, "domain", p->domain);
        jw_obj(w, "lifecycle");
        jw_bool(w, "autoResume", b->auto_resume);
        jw_str(w, "onTimeout", b->auto_pause ? "pause" : "kill");
        jw_end(w);
    }
    jw_end(w);
}

/* ---- filters ---- */

/* The query says it encoded three times: once as a parameter, once as a whole, once each
 * key and value. The first is undone already. */
static void metadata_pairs(struct filter *f, char *text)
{
    char *save = NULL;

    text_url_decode(text);
    for (char *at = strtok_r(text, "&", &save); at; at = strtok_r(NULL, "&", &save)) {
        text_url_decode(at);
        *ARR_PUSH(&f->pairs) = xstrdup(at);
    }
}

static void filter_init(struct filter *f, const struct request *r)
{
    char since[64], *meta = query_text(r->query, "metadata");

    *f = (struct filter){.since = INT64_MIN};
    query_value(r->query, "state", f->state, sizeof(f->state));
    query_value(r->query, "template", f->tpl, sizeof(f->tpl));
    query_value(r->query, "startedAfter", since, sizeof(since));
    if (*since)
        clock_parse_rfc3339(since, &f->since);
    if (meta)
        metadata_pairs(f, meta);
    free(meta);
}

static void filter_release(struct filter *f)
{
    for (size_t i = 0; i < f->pairs.n; i++)
        free(f->pairs.v[i]);
    ARR_RELEASE(&f->pairs);
}

static bool meta_fits(const struct filter *f, const struct box *b)
{
    struct cJSON *j = b->meta ? json_parse(b->meta, strlen(b->meta), NULL) : NULL;
    bool ok = true;

    for (size_t i = 0; i < f->pairs.n && ok; i++) {
        char *key = xstrdup(f->pairs.v[i]), *eq = strchr(key, '=');
        if (eq)
            *eq = '\0';
        ok = eq && str_eq(json_str(j, key, NULL), eq + 1);
        free(key);
    }
    json_free(j);
    return ok;
}

static bool fits(const struct filter *f, const struct box *b)
{
    return !b->gone && (!*f->state || strstr(f->state, b->running ? "running" : "paused")) &&
           (!*f->tpl || str_eq(f->tpl, b->template_id)) && b->started_ms >= f->since &&
           (!f->pairs.n || meta_fits(f, b));
}

/* ---- pages ---- */

static void put_token(struct answer *a, const char *text)
{
    char *b64 = b64_encode(text, strlen(text));

    for (char *p = b64; *p; p++)
        *p = (char)(*p == '+' ? '-' : *p == '/' ? '_' : *p);
    buf_addf(&a->head, "X-Next-Token: %.*s\r\n", (int)strcspn(b64, "="), b64);
    free(b64);
}

/* How many of the rows, in their order, come before the page. The cursor names the last
 * row given or, as bad servers do, counts rows: that one skips rows when earlier ones were
 * deleted in between. -1: it makes no sense. */
static int64_t rows_before(struct plane *p, const char *token, bool asc)
{
    size_t len;
    char *text = b64_decode(token, strlen(token), &len), *id;
    int64_t skip = -1;

    if (!text)
        return -1;
    id = strstr(text, "__");
    if (p->offset_cursor)
        str_to_i64(text, 0, INT64_MAX, &skip);
    else if (id && str_ends(text, "__asc") == asc) {
        id[2 + strcspn(id + 2, "_")] = '\0';
        for (size_t i = 0; i < p->boxes.n; i++)
            if (str_eq(p->boxes.v[i]->id, id + 2))
                skip = (int64_t)(asc ? i + 1 : p->boxes.n - i);
    }
    free(text);
    return skip;
}

static void next_token(struct plane *p, struct answer *a, const struct box *last, int64_t given,
                       bool asc)
{
    char text[96], at[32];

    clock_format_rfc3339(at, sizeof(at), last->started_ms);
    if (p->offset_cursor)
        snprintf(text, sizeof(text), "%lld", (long long)given);
    else
        snprintf(text, sizeof(text), "%s__%s%s", at, last->id, asc ? "__asc" : "");
    put_token(a, text);
}

/* Rows from the cursor on, at most `limit`; more: the next page's token. */
static void put_rows(struct plane *p, struct answer *a, const struct filter *f, int64_t skip,
                     int64_t limit, bool asc)
{
    int64_t given = 0, seen = 0;
    const struct box *last = NULL;
    struct jw w;

    jw_init(&w, &a->body);
    jw_arr(&w, NULL);
    for (size_t k = 0; k < p->boxes.n; k++) {
        const struct box *b = p->boxes.v[asc ? k : p->boxes.n - 1 - k];
        if ((!p->offset_cursor && (int64_t)k < skip) || !fits(f, b))
            continue;
        if (p->offset_cursor && seen++ < skip)
            continue;
        if (given == limit) {
            next_token(p, a, last, skip + given, asc);
            break;
        }
        list_put(p, &w, NULL, b, false);
        last = b;
        given++;
    }
    jw_end(&w);
}

void list_pages(struct plane *p, const struct request *r, struct answer *a)
{
    char token[128], order[8];
    int64_t limit, skip = 0, total = 0;
    struct filter f;
    bool asc;

    if (!plane_number(p, r, a, "limit", 100, 1, 100, &limit))
        return;
    query_value(r->query, "nextToken", token, sizeof(token));
    query_value(r->query, "order", order, sizeof(order));
    asc = str_eq(order, "asc");
    if (*token && (skip = rows_before(p, token, asc)) < 0) {
        plane_refuse(p, a, 400, "the page token makes no sense");
        return;
    }
    filter_init(&f, r);
    for (size_t i = 0; i < p->boxes.n; i++)
        total += p->boxes.v[i]->running && fits(&f, p->boxes.v[i]);
    if (!*f.state || strstr(f.state, "running"))
        buf_addf(&a->head, "X-Total-Running: %lld\r\n", (long long)total);
    a->status = 200;
    put_rows(p, a, &f, skip, limit < p->page ? limit : p->page, asc);
    filter_release(&f);
}

void list_old(struct plane *p, const struct request *r, struct answer *a)
{
    struct filter f;
    struct jw w;

    filter_init(&f, r);
    str_copy(f.state, sizeof(f.state), "running");
    plane_answer(a, 200, &w);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < p->boxes.n; i++)
        if (fits(&f, p->boxes.v[i]))
            list_put(p, &w, NULL, p->boxes.v[i], false);
    jw_end(&w);
    filter_release(&f);
}
