/* Logs of a sandbox: the life of it from the provider's events, what its processes
 * and files did from its init, put together by time. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>
#include <cct/local/initcall.h>
#include <cct/local/lifelog.h>
#include <cct/local/provider.h>
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOGS_MS 3000
#define LOGS_MAX 1000
#define SEARCH_MAX 256u
#define LIFE_MAX 1000u /* entries about the sandbox's own life, the newest */

struct wanted {
    struct http_req *req;
    struct lifelog *life;
    char id[24];
    int64_t from_ms, until_ms; /* both included */
    int64_t limit;
    int level;
    char *search; /* or NULL */
    bool backward, v2;
};

struct entry {
    int64_t ms;
    size_t order; /* as they came: those of one moment stay so */
    int level;
    char *message, *fields; /* fields: text of an object */
};

struct entries {
    ARR(struct entry) list;
};

static int level_of(const char *name)
{
    for (int i = 0; ctl_levels[i]; i++)
        if (str_eq(name, ctl_levels[i]))
            return i;
    return -1;
}

static void add(struct entries *a, const struct wanted *q, int64_t ms, int level,
                const char *message, const char *fields)
{
    if (ms < q->from_ms || ms > q->until_ms || level < q->level ||
        (q->search && !strstr(message, q->search)))
        return;
    struct entry *en = ARR_PUSH(&a->list);
    en->ms = ms;
    en->order = a->list.n;
    en->level = level;
    en->message = xstrdup(message);
    en->fields = xstrdup(fields);
}

/* --- from the provider's events -------------------------------------------------- */

static char *life_message(const struct lifelog *l, size_t i, enum life type)
{
    static const char *const what[] = {"sandbox created", "timeout moved", "sandbox paused",
                                       "sandbox resumed", "sandbox killed"};
    char *text = lifelog_text(l, i);
    struct cJSON *j = text ? json_parse(text, strlen(text), NULL) : NULL;
    const char *to = json_str(json_get(j, "eventData"), "set_timeout", NULL);
    const char *why = json_str(json_get(j, "eventData"), "reason", NULL);
    char *out = to    ? xasprintf("%s to %s", what[type], to)
                : why ? xasprintf("%s (%s)", what[type], why)
                      : xstrdup(what[type]);
    json_free(j);
    free(text);
    return out;
}

/* Readers go on behind the time of the last entry, so no two may share one: the
 * inits' are odd, these are even and rise. Who follows has read what came before,
 * therefore upwards; but a sandbox is made before anything happens in it. */
static int64_t life_time(const struct life_event *ev, int64_t last_ms)
{
    int64_t ms = ev->type == LIFE_CREATED ? ev->ms & ~1LL : (ev->ms + 1) & ~1LL;
    return ms > last_ms ? ms : last_ms + 2;
}

static void add_life(struct entries *a, const struct wanted *q)
{
    size_t n = 0, seen = 0;
    const struct life_event *evs = q->life ? lifelog_events(q->life, &n) : NULL;
    size_t first = n;
    while (first > 0 && seen < LIFE_MAX)
        seen += strcmp(evs[--first].id, q->id) == 0;
    int64_t ms = 0;
    for (size_t i = first; i < n; i++) {
        if (strcmp(evs[i].id, q->id) != 0)
            continue;
        ms = life_time(&evs[i], ms);
        if (ms < q->from_ms || ms > q->until_ms)
            continue;
        char *message = life_message(q->life, i, evs[i].type);
        add(a, q, ms, 1, message, "{\"logger\":\"sandbox\"}");
        free(message);
    }
}

/* --- from the init ----------------------------------------------------------------- */

static void add_notes(struct entries *a, const struct wanted *q, const struct cJSON *list)
{
    for (const struct cJSON *c = json_first(list); c; c = json_next(c)) {
        int level = level_of(json_str(c, "level", NULL));
        const struct cJSON *fields = json_get(c, "fields");
        char *text = json_is_object(fields) ? json_text(fields) : NULL;
        if (level >= 0)
            add(a, q, json_i64(c, "ts", 0), level, json_str(c, "message", ""),
                text ? text : "{}");
        free(text);
    }
}

/* --- the answer ---------------------------------------------------------------------- */

static int by_time(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    if (a->ms != b->ms)
        return a->ms < b->ms ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static int by_time_down(const void *x, const void *y)
{
    return by_time(y, x);
}

static void write_entry(struct jw *w, const struct entry *en)
{
    jw_obj(w, NULL);
    ctl_write_time(w, "timestamp", en->ms);
    jw_str(w, "level", ctl_levels[en->level]);
    jw_str(w, "message", en->message);
    jw_raw(w, "fields", en->fields);
    jw_end(w);
}

/* The old form: a line that is JSON text itself, which the CLI parses. */
static void write_line(struct jw *w, const struct entry *en)
{
    struct buf line = BUF_INIT;
    struct cJSON *fields = json_parse(en->fields, strlen(en->fields), NULL);
    struct jw in;
    jw_init(&in, &line);
    jw_obj(&in, NULL);
    jw_str(&in, "level", ctl_levels[en->level]);
    jw_str(&in, "message", en->message);
    jw_str(&in, "logger", json_str(fields, "logger", "sandbox"));
    for (const struct cJSON *c = json_first(fields); c; c = json_next(c))
        if (json_is_string(c) && strcmp(json_name(c), "logger") != 0)
            jw_str(&in, json_name(c), json_str_of(c));
    jw_end(&in);
    jw_obj(w, NULL);
    ctl_write_time(w, "timestamp", en->ms);
    jw_str(w, "line", buf_str(&line));
    jw_end(w);
    json_free(fields);
    buf_release(&line);
}

static void reply(const struct wanted *q, const struct entries *a)
{
    if (a->list.n > 1)
        qsort(a->list.v, a->list.n, sizeof(a->list.v[0]), q->backward ? by_time_down : by_time);
    size_t n = a->list.n < (size_t)q->limit ? a->list.n : (size_t)q->limit;
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    jw_arr(&w, "logs");
    for (size_t i = 0; i < n; i++) {
        if (q->v2)
            write_entry(&w, &a->list.v[i]);
        else
            write_line(&w, &a->list.v[i]);
    }
    jw_end(&w);
    if (!q->v2) {
        jw_arr(&w, "logEntries");
        for (size_t i = 0; i < n; i++)
            write_entry(&w, &a->list.v[i]);
        jw_end(&w);
    }
    jw_end(&w);
    ctl_reply_buf(q->req, 200, &out);
}

static void on_notes(void *arg, int status, const char *body, size_t len)
{
    struct wanted *q = arg;
    struct cJSON *j = status == 200 ? json_parse(body, len, NULL) : NULL;
    struct entries a = {ARR_INIT};
    add_notes(&a, q, json_get(j, "entries")); /* the init acts before it is told */
    add_life(&a, q);
    reply(q, &a);
    for (size_t i = 0; i < a.list.n; i++) {
        free(a.list.v[i].message);
        free(a.list.v[i].fields);
    }
    ARR_RELEASE(&a.list);
    json_free(j);
    free(q->search);
    free(q);
}

/* --- the question --------------------------------------------------------------------- */

static bool take_window(const struct ctl_call *c, struct wanted *q)
{
    int64_t now = clock_wall_ms(), at;
    const char *name = c->v2 ? "cursor" : "start";
    if (!ctl_take_number(c, name, -1, 0, CTL_SECONDS_MAX * 1000, &at) ||
        !ctl_take_number(c, "limit", LOGS_MAX, 0, c->v2 ? LOGS_MAX : INT32_MAX, &q->limit))
        return false;
    q->until_ms = INT64_MAX;
    q->from_ms = now - LIFELOG_DAYS * 24 * 3600 * 1000LL;
    if (at >= 0 && q->backward) /* the entry of that time was seen */
        q->until_ms = at - 1;
    else if (at > q->from_ms)
        q->from_ms = at;
    return true;
}

static size_t count_chars(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static bool take_filters(const struct ctl_call *c, struct wanted *q)
{
    static const char *const directions[] = {"backward", "forward", NULL};
    size_t direction = 0, level = 0;
    if (!ctl_take_word(c, "direction", directions, &direction) ||
        !ctl_take_word(c, "level", ctl_levels, &level))
        return false;
    q->backward = direction == 0;
    q->level = (int)level;
    q->search = ctl_query_get(c->r->query, "search");
    if (!q->search || count_chars(q->search) <= SEARCH_MAX)
        return true;
    http_reply_error(c->r, 400, "search must not be longer than %u characters", SEARCH_MAX);
    return false;
}

void ctl_logs(struct ctl_call *c)
{
    struct wanted *q = xcalloc(1, sizeof(*q));
    char path[64];
    q->req = c->r;
    q->life = c->p->life;
    q->v2 = c->v2;
    str_copy(q->id, sizeof(q->id), c->b->rec.id);
    if ((c->v2 && !take_filters(c, q)) || !take_window(c, q)) {
        free(q->search);
        free(q);
        return;
    }
    snprintf(path, sizeof(path), "/cc/logs?start=%lld", (long long)q->from_ms);
    initcall_start(c->p->base, c->b->rec.sock, c->b->rec.token, "GET", path, NULL, LOGS_MS,
                   on_notes, q);
}
