/* Listing: query string, filters, order, keyset cursor. Pure functions. */
#include <cct/local/ctl.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void unescape(char *s, char plus)
{
    char *to = s;
    for (; *s; s++) {
        int hi = s[0] == '%' ? hex_digit(s[1]) : -1;
        int lo = hi >= 0 ? hex_digit(s[2]) : -1;
        if (lo >= 0 && hi * 16 + lo != 0) {
            *to++ = (char)(hi * 16 + lo);
            s += 2;
        } else {
            *to++ = *s == '+' ? plus : *s;
        }
    }
    *to = '\0';
}

void ctl_unescape(char *s)
{
    unescape(s, ' ');
}

void ctl_unescape_path(char *s)
{
    unescape(s, '+');
}

char *ctl_query_get(const char *query, const char *name)
{
    size_t want = strlen(name);
    for (const char *p = query; *p;) {
        size_t len = strcspn(p, "&");
        if (len > want && strncmp(p, name, want) == 0 && p[want] == '=') {
            char *v = xstrndup(p + want + 1, len - want - 1);
            ctl_unescape(v);
            return v;
        }
        p += len;
        p += *p == '&';
    }
    return NULL;
}

static int parse_states(struct ctl_list *q, const char *query, struct err *e)
{
    char *v = ctl_query_get(query, "state");
    if (!v) {
        q->running = q->paused = true;
        return 0;
    }
    int rc = 0;
    for (char *p = v, *next; p; p = next) {
        next = strchr(p, ',');
        if (next)
            *next++ = '\0';
        if (strcmp(p, "running") == 0)
            q->running = true;
        else if (strcmp(p, "paused") == 0)
            q->paused = true;
        else
            rc = err_set(e, ERR_INVALID, "state must be 'running', 'paused' or both");
    }
    free(v);
    return rc;
}

/* The SDK encodes each key and value, the joined text, and the parameter: after
 * the parameter's own decoding, one level for the whole and one for each side. */
static int parse_metadata(struct ctl_list *q, const char *query, struct err *e)
{
    char *v = ctl_query_get(query, "metadata");
    if (!v)
        return 0;
    ctl_unescape(v);
    int rc = 0;
    for (char *p = v, *next; p && *p && rc == 0; p = next) {
        next = strchr(p, '&');
        if (next)
            *next++ = '\0';
        char *eq = strchr(p, '=');
        if (!eq || q->n_meta == CTL_META_MAX) {
            rc = err_set(e, ERR_INVALID,
                         eq ? "too many metadata pairs" : "metadata must be key=value pairs");
            break;
        }
        *eq = '\0';
        ctl_unescape(p);
        ctl_unescape(eq + 1);
        q->meta[q->n_meta].key = xstrdup(p);
        q->meta[q->n_meta++].value = xstrdup(eq + 1);
    }
    free(v);
    return rc;
}

static char *cursor_text(int64_t started_ms, const char *id, bool ascending)
{
    char time[40];
    clock_format_rfc3339(time, sizeof(time), started_ms);
    char *plain = xasprintf("%s__%s%s", time, id, ascending ? "__asc" : "");
    char *b64 = b64_encode(plain, strlen(plain));
    free(plain);
    for (char *p = b64; *p; p++) {
        if (*p == '+')
            *p = '-';
        else if (*p == '/')
            *p = '_';
        else if (*p == '=')
            *p = '\0';
        if (!*p)
            break;
    }
    return b64;
}

static bool parse_cursor(struct ctl_list *q, const char *token)
{
    size_t len;
    char *plain = b64_decode(token, strlen(token), &len);
    if (!plain)
        return false;
    char *id = strstr(plain, "__");
    bool ok = id != NULL && strlen(plain) == len;
    if (ok) {
        *id = '\0';
        id += 2;
        char *order = strstr(id, "__");
        if (order)
            *order = '\0';
        ok = (order != NULL) == q->ascending && sbox_id_ok(id) &&
             (!order || strcmp(order + 2, "asc") == 0) &&
             clock_parse_rfc3339(plain, &q->after_ms) == 0 &&
             str_copy(q->after_id, sizeof(q->after_id), id);
    }
    free(plain);
    return ok;
}

static int parse_paging(struct ctl_list *q, const char *query, struct err *e)
{
    int rc = 0;
    int64_t limit = 100;
    char *order = ctl_query_get(query, "order");
    char *v = ctl_query_get(query, "limit");
    char *after = ctl_query_get(query, "startedAfter");
    char *token = ctl_query_get(query, "nextToken");
    if (order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
        rc = err_set(e, ERR_INVALID, "order must be 'asc' or 'desc'");
    q->ascending = order && strcmp(order, "asc") == 0;
    if (v && !str_to_i64(v, 1, 100, &limit))
        rc = err_set(e, ERR_INVALID, "limit must be a number from 1 to 100");
    q->limit = (int)limit;
    if (after && clock_parse_rfc3339(after, &q->started_after) != 0)
        rc = err_set(e, ERR_INVALID, "startedAfter must be an RFC 3339 time");
    if (rc == 0 && token && *token && !parse_cursor(q, token))
        rc = err_set(e, ERR_INVALID, "nextToken is not one of this listing");
    free(order);
    free(v);
    free(after);
    free(token);
    return rc;
}

int ctl_list_parse(struct ctl_list *q, const char *query, struct err *e)
{
    memset(q, 0, sizeof(*q));
    int rc = parse_states(q, query, e);
    if (rc == 0)
        rc = parse_metadata(q, query, e);
    if (rc == 0)
        rc = parse_paging(q, query, e);
    q->tpl = ctl_query_get(query, "template");
    return rc;
}

void ctl_list_release(struct ctl_list *q)
{
    for (size_t i = 0; i < q->n_meta; i++) {
        free(q->meta[i].key);
        free(q->meta[i].value);
    }
    free(q->tpl);
    memset(q, 0, sizeof(*q));
}

static bool matches(const struct ctl_list *q, const struct sbox_rec *r)
{
    if (r->state == SBOX_RUNNING ? !q->running : !q->paused)
        return false;
    if (q->started_after && r->started_ms < q->started_after)
        return false;
    if (q->tpl && strcmp(q->tpl, r->alias) != 0 && strcmp(q->tpl, r->template_id) != 0)
        return false;
    for (size_t i = 0; i < q->n_meta; i++) {
        const char *v = json_str(r->metadata, q->meta[i].key, NULL);
        if (!v || strcmp(v, q->meta[i].value) != 0)
            return false;
    }
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct sbox_rec *x = *(const struct sbox_rec *const *)a;
    const struct sbox_rec *y = *(const struct sbox_rec *const *)b;
    if (x->started_ms != y->started_ms)
        return x->started_ms < y->started_ms ? -1 : 1;
    return strcmp(x->id, y->id);
}

static int by_start_down(const void *a, const void *b)
{
    return by_start(b, a);
}

/* Does the record come after the cursor in the listing's order? */
static bool is_after(const struct ctl_list *q, const struct sbox_rec *r)
{
    if (!q->after_id[0])
        return true;
    int c = strcmp(r->id, q->after_id);
    if (r->started_ms != q->after_ms)
        c = r->started_ms < q->after_ms ? -1 : 1;
    return q->ascending ? c > 0 : c < 0;
}

size_t ctl_list_select(const struct ctl_list *q, const struct sbox_rec **recs, size_t n,
                       size_t *running, char **next)
{
    size_t kept = 0;
    *running = 0;
    *next = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!matches(q, recs[i]))
            continue;
        *running += recs[i]->state == SBOX_RUNNING;
        if (is_after(q, recs[i]))
            recs[kept++] = recs[i];
    }
    if (kept > 1)
        qsort(recs, kept, sizeof(recs[0]), q->ascending ? by_start : by_start_down);
    if (kept <= (size_t)q->limit)
        return kept;
    const struct sbox_rec *last = recs[q->limit - 1];
    *next = cursor_text(last->started_ms, last->id, q->ascending);
    return (size_t)q->limit;
}
