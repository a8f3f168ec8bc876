/* What every handler of the control API needs: errors, times, numbers. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>
#include <cct/util/clock.h>
#include <cct/util/limits.h>

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
