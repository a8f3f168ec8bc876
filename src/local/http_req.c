/* One request of the HTTP server: what its head says, who takes its body. */
#include "http_conn.h"
#include <cct/util/xalloc.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void http_req_free(struct http_req *r)
{
    free(r->path);
    free(r->query);
    free(r->fields);
    buf_release(&r->body);
    buf_release(&r->headers);
    free(r);
}

const char *http_req_header(const struct http_req *r, const char *name)
{
    for (const char *p = r->fields; *p != '\0';) {
        const char *value = p + strlen(p) + 1;
        if (strcasecmp(p, name) == 0)
            return value;
        p = value + strlen(value) + 1;
    }
    return NULL;
}

int http_req_fd(const struct http_req *r)
{
    return r->conn ? bufferevent_getfd(r->conn->bev) : -1;
}

const char *http_req_next(const struct http_req *r, const char *name, const char **value)
{
    if (name == NULL) {
        name = r->fields;
    } else {
        name += strlen(name) + 1;
        name += strlen(name) + 1;
    }
    *value = name + strlen(name) + 1;
    return *name != '\0' ? name : NULL;
}

void http_req_watch(struct http_req *r, http_handler on_close, http_handler on_drained,
                    void *arg)
{
    r->on_close = on_close;
    r->on_drained = on_drained;
    r->watch_arg = arg;
}

static char *fields_copy(const struct http_head *h)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < h->n_fields; i++) {
        buf_add(&b, h->fields[i].name.p, h->fields[i].name.len);
        buf_addc(&b, '\0');
        buf_add(&b, h->fields[i].value.p, h->fields[i].value.len);
        buf_addc(&b, '\0');
    }
    buf_addc(&b, '\0');
    return buf_detach(&b, NULL);
}

struct http_req *http_req_new(struct http_conn *c, const struct http_head *h, size_t body_max)
{
    struct http_req *r = xcalloc(1, sizeof(*r));
    r->conn = c;
    memcpy(r->method, h->method.p, h->method.len);
    const char *q = memchr(h->target.p, '?', h->target.len);
    size_t path_len = q ? (size_t)(q - h->target.p) : h->target.len;
    r->path = xstrndup(h->target.p, path_len);
    r->query = q ? xstrndup(q + 1, h->target.len - path_len - 1) : xstrdup("");
    r->fields = fields_copy(h);
    r->key = http_req_header(r, "x-api-key");
    const char *type = http_req_header(r, "content-type");
    r->is_json = type && strncasecmp(type, "application/json", 16) == 0 &&
                 (type[16] == '\0' || type[16] == ';' || type[16] == ' ');
    r->is_head = strcmp(r->method, "HEAD") == 0;
    r->minor = h->minor;
    r->content_length = h->content_length;
    r->has_body = h->chunked || h->content_length > 0;
    buf_init(&r->body, body_max);
    buf_init(&r->headers, 0);
    return r;
}

/* --- its body ------------------------------------------------------------- */

void http_body_take(struct http_req *r, const struct http_body_ops *ops, void *arg)
{
    r->taker = ops;
    r->taker_arg = arg;
}

void http_body_pause(struct http_req *r)
{
    r->is_paused = true;
    if (r->conn) {
        bufferevent_disable(r->conn->bev, EV_READ);
        http_conn_set_timer(r->conn);
    }
}

void http_body_resume(struct http_req *r)
{
    struct http_conn *c = r->conn;
    if (!r->is_paused)
        return;
    r->is_paused = false;
    if (!c)
        return;
    bufferevent_enable(c->bev, EV_READ);
    http_conn_set_timer(c);
    if (!c->is_looping)
        http_conn_work(c);
}

void http_req_end_pause(struct http_req *r)
{
    if (r->is_paused)
        bufferevent_enable(r->conn->bev, EV_READ);
    r->is_paused = false;
}
