/* Lifecycle events, of one sandbox (also of one that is gone) or of all. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>
#include <cct/local/lifelog.h>
#include <cct/local/provider.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <stdlib.h>
#include <string.h>

struct wanted {
    int64_t offset, limit, since_ms;
    bool ascending;
    unsigned types; /* bit for each; 0 = all */
    const char *id; /* of the sandbox, or NULL */
};

/* The parameter may be repeated, and each may be a list. False after a 400. */
static bool take_types(const struct ctl_call *c, unsigned *out)
{
    *out = 0;
    for (const char *p = c->r->query; *p;) {
        size_t len = strcspn(p, "&");
        char *pair = xstrndup(p, len);
        p += len + (p[len] == '&');
        if (!str_starts(pair, "types=")) {
            free(pair);
            continue;
        }
        ctl_unescape(pair);
        for (char *name = pair + strlen("types="), *next; name; name = next) {
            next = strchr(name, ',');
            if (next)
                *next++ = '\0';
            enum life type = life_parse(name);
            if (type == LIFE_N && strcmp(name, "sandbox.lifecycle.checkpointed") != 0) {
                http_reply_error(c->r, 400, "'%.80s' is no type of event", name);
                free(pair);
                return false;
            }
            *out |= 1u << type; /* the bit past the last matches nothing */
        }
        free(pair);
    }
    return true;
}

static bool take_wanted(const struct ctl_call *c, struct wanted *w)
{
    static const char *const answers[] = {"false", "true", NULL};
    size_t ascending = 0;
    w->since_ms = clock_wall_ms() - LIFELOG_DAYS * 24 * 3600 * 1000LL;
    if (!ctl_take_word(c, "orderAsc", answers, &ascending))
        return false;
    w->ascending = ascending == 1;
    return ctl_take_number(c, "offset", 0, 0, 1 << 30, &w->offset) &&
           ctl_take_number(c, "limit", 10, 1, 100, &w->limit) && take_types(c, &w->types);
}

static bool matches(const struct wanted *w, const struct life_event *ev)
{
    return ev->ms >= w->since_ms && (w->types == 0 || (w->types & 1u << ev->type)) &&
           (!w->id || strcmp(w->id, ev->id) == 0);
}

static void write_events(struct jw *w, const struct lifelog *l, const struct wanted *q)
{
    size_t n;
    const struct life_event *evs = lifelog_events(l, &n);
    int64_t skip = q->offset, left = q->limit;
    for (size_t k = 0; k < n && left > 0; k++) {
        size_t i = q->ascending ? k : n - 1 - k;
        if (!matches(q, &evs[i]) || skip-- > 0)
            continue;
        char *text = lifelog_text(l, i);
        if (text)
            jw_raw(w, NULL, text);
        free(text);
        left--;
    }
}

static void reply_events(struct ctl_call *c, const char *id)
{
    struct wanted q = {.id = id};
    if (!take_wanted(c, &q))
        return;
    if (!c->p->life) {
        http_reply_error(c->r, 500, "events are not kept: see local.log in the state folder");
        return;
    }
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_arr(&w, NULL);
    write_events(&w, c->p->life, &q);
    jw_end(&w);
    ctl_reply_buf(c->r, 200, &out);
}

void ctl_events_all(struct ctl_call *c)
{
    reply_events(c, NULL);
}

void ctl_events_one(struct ctl_call *c)
{
    char *dash = strchr(c->part[0], '-');
    if (dash)
        *dash = '\0'; /* the old id-client form */
    reply_events(c, c->part[0]);
}
