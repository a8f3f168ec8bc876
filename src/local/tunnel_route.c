/* Routing of the traffic port (see the header). */
#include <cct/local/files_parse.h>
#include <cct/local/provider.h>
#include <cct/local/tunnel_route.h>
#include <cct/secrets/digest.h>
#include <cct/util/clock.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <stdlib.h>
#include <string.h>

static void refuse(struct tunnel_route *r, int status, const char *why)
{
    r->to = TUNNEL_REFUSE;
    r->status = status;
    r->why = why;
}

/* Digits only, as a client writes them: no sign, no list, no leading zero. */
static bool parse_port(const struct http_slice *s, unsigned *port)
{
    *port = 0;
    if (s->len == 0 || s->len > 5 || s->p[0] == '0')
        return false;
    for (size_t i = 0; i < s->len; i++) {
        if (s->p[i] < '0' || s->p[i] > '9')
            return false;
        *port = *port * 10 + (unsigned)(s->p[i] - '0');
    }
    return *port <= 65535;
}

static bool parse_id(const struct http_slice *s, char *id, size_t size)
{
    const char *dash = memchr(s->p, '-', s->len); /* old id-client form */
    size_t len = dash ? (size_t)(dash - s->p) : s->len;
    if (len >= size)
        return false;
    memcpy(id, s->p, len);
    id[len] = '\0';
    return sbox_id_ok(id);
}

/* The query of a request for /files, as new memory, or NULL. */
static char *files_query_of(const struct http_head *h)
{
    static const char path[] = "/files?";
    if (h->target.len < sizeof(path) || memcmp(h->target.p, path, sizeof(path) - 1) != 0)
        return NULL;
    return xstrndup(h->target.p + sizeof(path) - 1, h->target.len - sizeof(path) + 1);
}

static const char *operation_of(const struct http_head *h)
{
    if (http_slice_is(&h->method, "GET"))
        return "read";
    return http_slice_is(&h->method, "POST") ? "write" : NULL;
}

/* A signed URL made by the official SDK for one origin names no sandbox. All are
 * tried, so the time it takes does not tell which one it was. */
static struct sbox *find_signed(const struct provider *p, const struct http_head *h)
{
    const char *op = operation_of(h);
    char *query = op ? files_query_of(h) : NULL;
    if (!query)
        return NULL;
    struct sbox *found = NULL, *b;
    size_t it = 0;
    if (strstr(query, "signature="))
        while ((b = map_next(p->boxes, &it, NULL, NULL)) != NULL)
            if (sbox_is_visible(b) &&
                files_signed(query, op, b->rec.token, clock_wall_ms() / 1000))
                found = b;
    free(query);
    return found;
}

static bool is_token(const struct http_head *h, const char *header, const char *right)
{
    const struct http_slice *given = http_head_get(h, header);
    return given && digest_equal(given->p, given->len, right, strlen(right));
}

/* A body from somebody without the token must not get as far as the init. */
static bool may_send(const struct sbox *b, const struct http_head *h)
{
    if (!h->chunked && h->content_length <= 0)
        return true;
    if (is_token(h, "x-access-token", b->rec.token))
        return true;
    char *query = files_query_of(h);
    bool ok = query && files_signed(query, "write", b->rec.token, clock_wall_ms() / 1000);
    free(query);
    return ok;
}

/* Which sandbox and port are meant; false when that is refused. */
static bool find(const struct provider *p, const struct http_head *h, struct tunnel_route *r)
{
    const struct http_slice *id = http_head_get(h, "e2b-sandbox-id");
    const struct http_slice *port = http_head_get(h, "e2b-sandbox-port");
    r->port = TUNNEL_ENVD_PORT;
    if ((port && !parse_port(port, &r->port)) || (id && !parse_id(id, r->id, sizeof(r->id)))) {
        r->id[0] = '\0';
        refuse(r, 400, "malformed sandbox id or port");
        return false;
    }
    if (id) {
        r->b = sbox_find(p, r->id);
        if (!r->b)
            refuse(r, 502, "The sandbox was not found");
        return r->b != NULL;
    }
    r->b = r->port == TUNNEL_ENVD_PORT ? find_signed(p, h) : NULL;
    if (!r->b) {
        refuse(r, 400,
               "no E2b-Sandbox-Id says which sandbox is meant, and the URL is signed by none");
        return false;
    }
    str_copy(r->id, sizeof(r->id), r->b->rec.id);
    return true;
}

void tunnel_route(const struct provider *p, const struct http_head *h, struct tunnel_route *r)
{
    memset(r, 0, sizeof(*r));
    if (!find(p, h, r))
        return;
    const struct sbox_rec *rec = &r->b->rec;
    bool is_envd = r->port == TUNNEL_ENVD_PORT;
    if (!is_envd && rec->traffic_token[0] &&
        !is_token(h, "e2b-traffic-access-token", rec->traffic_token))
        refuse(r, 403, "The traffic access token is missing or wrong");
    else if (rec->state == SBOX_PAUSED && (!rec->auto_resume || rec->cold))
        refuse(r, 502, "The sandbox is paused");
    else if (is_envd && h->target.len >= 4 && memcmp(h->target.p, "/cc/", 4) == 0)
        refuse(r, 404, "not served here");
    else if (rec->state == SBOX_PAUSED)
        r->to = TUNNEL_WAKE;
    else if (is_envd && !may_send(r->b, h))
        refuse(r, 401, "the access token or signature is missing or wrong");
    else
        r->to = is_envd ? TUNNEL_INIT : TUNNEL_PORT;
}
