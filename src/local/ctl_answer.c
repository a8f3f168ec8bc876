/* What every handler of the control API needs: errors, times, numbers. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>
#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>

#include <stdlib.h>
#include <string.h>

void ctl_reply_err(struct http_req *r, const struct err *e)
{
    int status = 500;
    switch (e->code) {
    case ERR_INVALID:
        status = 400;
        break;
    case ERR_NOTFOUND:
        status = 404;
        break;
    case ERR_CONFLICT:
        status = 409;
        break;
    case ERR_LIMIT:
        status = 429;
        break;
    case ERR_BUSY:
        status = 503;
        break;
    case ERR_UNSUPPORTED:
        status = 501;
        break;
    default:
        break;
    }
    http_reply_error(r, status, "%s", e->text);
}

void ctl_reply_buf(struct http_req *r, int status, struct buf *out)
{
    http_reply(r, status, out->p, out->len);
    buf_release(out);
}

void ctl_write_time(struct jw *w, const char *name, int64_t ms)
{
    char text[40];
    clock_format_rfc3339(text, sizeof(text), ms);
    jw_str(w, name, text);
}

bool ctl_take_seconds(const struct ctl_call *c, const char *name, int64_t def, int64_t min,
                      int64_t *out)
{
    const struct cJSON *v = json_get(c->body, name);
    *out = v ? json_i64(c->body, name, -1) : def;
    if (*out >= min && *out <= LIM_TIMEOUT_MAX_S)
        return true;
    http_reply_error(c->r, 400, "%s must be a number of seconds from %d to %d", name, (int)min,
                     LIM_TIMEOUT_MAX_S);
    return false;
}

bool ctl_take_number(const struct ctl_call *c, const char *name, int64_t def, int64_t min,
                     int64_t max, int64_t *out)
{
    char *v = ctl_query_get(c->r->query, name);
    *out = def;
    bool ok = !v || str_to_i64(v, min, max, out);
    free(v);
    if (!ok)
        http_reply_error(c->r, 400, "%s must be a whole number from %lld to %lld", name,
                         (long long)min, (long long)max);
    return ok;
}

const char *const ctl_levels[] = {"debug", "info", "warn", "error", NULL};

bool ctl_take_word(const struct ctl_call *c, const char *name, const char *const *words,
                   size_t *which)
{
    char *text = ctl_query_get(c->r->query, name);
    size_t n = 0, at = *which;
    bool ok = !text || !*text;
    struct buf all = BUF_INIT;
    for (; words[n]; n++) {
        buf_addf(&all, "%s%s", n ? ", " : "", words[n]);
        if (text && strcmp(text, words[n]) == 0) {
            at = n;
            ok = true;
        }
    }
    if (!ok)
        http_reply_error(c->r, 400, "%s must be one of %s", name, buf_str(&all));
    *which = at;
    buf_release(&all);
    free(text);
    return ok;
}

bool ctl_take_span(const struct ctl_call *c, int64_t start_def, struct ctl_span *out)
{
    int64_t now = clock_wall_ms() / 1000;
    if (!ctl_take_number(c, "start", start_def, 0, CTL_SECONDS_MAX, &out->start) ||
        !ctl_take_number(c, "end", now, 0, CTL_SECONDS_MAX, &out->end))
        return false;
    if (out->end < out->start) {
        http_reply_error(c->r, 400, "end must not be before start");
        return false;
    }
    return true;
}

int64_t ctl_span_step(const struct ctl_span *s)
{
    static const struct {
        int64_t below_s, step_s;
    } steps[] = {
        {3600, 5}, {6 * 3600, 30}, {12 * 3600, 60}, {24 * 3600, 120}, {7 * 86400, 300}};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (s->end - s->start < steps[i].below_s)
            return steps[i].step_s;
    return 900;
}
