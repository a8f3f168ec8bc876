/* The strict request-head parser and the chunk scanner (see the header). */
#include <cct/local/http_head.h>

#include <string.h>
#include <strings.h>

static long refuse(struct http_head *h, int status, const char *why)
{
    h->status = status;
    h->why = why;
    return -1;
}

static bool is_token_char(unsigned char c)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return true;
    return c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

bool http_slice_is(const struct http_slice *s, const char *text)
{
    return s->len == strlen(text) && memcmp(s->p, text, s->len) == 0;
}

bool http_slice_is_nocase(const struct http_slice *s, const char *text)
{
    return s->len == strlen(text) && strncasecmp(s->p, text, s->len) == 0;
}

static struct http_slice trimmed(const char *p, size_t len)
{
    while (len > 0 && (*p == ' ' || *p == '\t'))
        p++, len--;
    while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t'))
        len--;
    return (struct http_slice){p, len};
}

/* True if any comma-separated element equals `token`, in any case. */
static bool has_token(const struct http_slice *s, const char *token)
{
    size_t at = 0;
    while (at <= s->len) {
        const char *comma = memchr(s->p + at, ',', s->len - at);
        size_t end = comma ? (size_t)(comma - s->p) : s->len;
        struct http_slice one = trimmed(s->p + at, end - at);
        if (http_slice_is_nocase(&one, token))
            return true;
        at = end + 1;
    }
    return false;
}

const struct http_slice *http_head_get(const struct http_head *h, const char *name)
{
    for (size_t i = 0; i < h->n_fields; i++)
        if (http_slice_is_nocase(&h->fields[i].name, name))
            return &h->fields[i].value;
    return NULL;
}

/* A whole line ends in CRLF; a lone CR or LF, or any other control byte but a
 * tab, is refused as soon as it is seen. Returns the line's length without its
 * end, -1 when incomplete, -2 when refused. */
static long line_length(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c == '\r') {
            if (i + 1 == len)
                return -1;
            return p[i + 1] == '\n' ? (long)i : -2;
        }
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return -2;
    }
    return -1;
}

static long parse_request_line(struct http_head *h, const char *p, size_t len)
{
    const char *sp = memchr(p, ' ', len);
    if (!sp || sp == p || sp - p > 16)
        return refuse(h, 400, "malformed request line");
    h->method = (struct http_slice){p, (size_t)(sp - p)};
    for (size_t i = 0; i < h->method.len; i++)
        if (p[i] < 'A' || p[i] > 'Z')
            return refuse(h, 400, "malformed method");
    const char *t = sp + 1;
    const char *end = p + len;
    const char *sp2 = memchr(t, ' ', (size_t)(end - t));
    if (!sp2 || sp2 == t)
        return refuse(h, 400, "malformed request line");
    h->target = (struct http_slice){t, (size_t)(sp2 - t)};
    if (h->target.len > HTTP_TARGET_MAX)
        return refuse(h, 414, "request target is too long");
    if (*t != '/')
        return refuse(h, 400, "request target must start with '/'");
    for (size_t i = 0; i < h->target.len; i++)
        if ((unsigned char)t[i] < 0x21 || (unsigned char)t[i] > 0x7e || t[i] == '#')
            return refuse(h, 400, "bad byte in the request target");
    struct http_slice version = {sp2 + 1, (size_t)(end - sp2 - 1)};
    if (http_slice_is(&version, "HTTP/1.1"))
        h->minor = 1;
    else if (http_slice_is(&version, "HTTP/1.0"))
        h->minor = 0;
    else if (version.len == 8 && memcmp(version.p, "HTTP/", 5) == 0)
        return refuse(h, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    else
        return refuse(h, 400, "malformed request line");
    return 0;
}

static long parse_length(struct http_head *h, const struct http_slice *v)
{
    if (v->len == 0 || v->len > 18)
        return refuse(h, 400, "malformed Content-Length");
    int64_t n = 0;
    for (size_t i = 0; i < v->len; i++) {
        if (v->p[i] < '0' || v->p[i] > '9')
            return refuse(h, 400, "malformed Content-Length");
        n = n * 10 + (v->p[i] - '0');
    }
    h->content_length = n;
    return 0;
}

static long parse_field(struct http_head *h, const char *p, size_t len)
{
    if (*p == ' ' || *p == '\t')
        return refuse(h, 400, "folded header line");
    const char *colon = memchr(p, ':', len);
    if (!colon || colon == p)
        return refuse(h, 400, "malformed header line");
    for (const char *c = p; c < colon; c++)
        if (!is_token_char((unsigned char)*c))
            return refuse(h, 400, "bad byte in a header name");
    if (h->n_fields == HTTP_FIELDS_MAX)
        return refuse(h, 431, "too many headers");
    struct http_field *f = &h->fields[h->n_fields++];
    f->name = (struct http_slice){p, (size_t)(colon - p)};
    f->value = trimmed(colon + 1, (size_t)(p + len - colon - 1));
    return 0;
}

/* Headers that decide routing, framing or rights must not occur twice. */
static bool has_duplicates(const struct http_head *h)
{
    static const char *const once[] = {
        "host",
        "content-length",
        "transfer-encoding",
        "origin",
        "x-api-key",
        "x-access-token",
        "authorization",
        "e2b-sandbox-id",
        "content-type",
        "e2b-sandbox-port",
        "x-cc-control",
        "expect",
        "e2b-traffic-access-token",
    };
    for (size_t k = 0; k < sizeof(once) / sizeof(once[0]); k++) {
        int seen = 0;
        for (size_t i = 0; i < h->n_fields; i++)
            seen += http_slice_is_nocase(&h->fields[i].name, once[k]);
        if (seen > 1)
            return true;
    }
    return false;
}

static long check_framing(struct http_head *h)
{
    const struct http_slice *te = http_head_get(h, "transfer-encoding");
    const struct http_slice *cl = http_head_get(h, "content-length");
    if (te && cl)
        return refuse(h, 400, "both Content-Length and Transfer-Encoding");
    if (te && h->minor == 0)
        return refuse(h, 400, "Transfer-Encoding in HTTP/1.0");
    if (te && !http_slice_is_nocase(te, "chunked"))
        return refuse(h, 501, "only the chunked transfer encoding is known");
    h->chunked = te != NULL;
    return cl ? parse_length(h, cl) : 0;
}

static long check_fields(struct http_head *h)
{
    if (has_duplicates(h))
        return refuse(h, 400, "a header that may occur once occurs twice");
    const struct http_slice *host = http_head_get(h, "host");
    if (!host || host->len == 0)
        return refuse(h, 400, "no Host header");
    h->host = *host;
    if (check_framing(h) < 0)
        return -1;
    const struct http_slice *expect = http_head_get(h, "expect");
    if (expect && !http_slice_is_nocase(expect, "100-continue"))
        return refuse(h, 417, "unknown expectation");
    h->expect_continue = expect != NULL && h->minor == 1;
    h->keep_alive = h->minor == 1;
    for (size_t i = 0; i < h->n_fields; i++) {
        if (!http_slice_is_nocase(&h->fields[i].name, "connection"))
            continue;
        if (has_token(&h->fields[i].value, "close"))
            h->keep_alive = false;
        else if (h->minor == 0 && has_token(&h->fields[i].value, "keep-alive"))
            h->keep_alive = true;
    }
    return 0;
}

long http_head_parse(struct http_head *h, const char *p, size_t len)
{
    memset(h, 0, offsetof(struct http_head, fields));
    h->n_fields = 0;
    h->content_length = -1;
    h->chunked = h->keep_alive = h->expect_continue = false;
    h->status = 0;
    h->why = NULL;
    size_t at = 0;
    size_t room = len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX;
    for (int line = 0;; line++) {
        long n = line_length(p + at, room - at);
        if (n == -2)
            return refuse(h, 400, "control byte or bare line end in the head");
        if (n == -1) {
            if (len >= HTTP_HEAD_MAX)
                return refuse(h, 431, "request head is larger than 64 KiB");
            return 0;
        }
        if (line == 0 && parse_request_line(h, p + at, (size_t)n) < 0)
            return -1;
        if (line > 0 && n > 0 && parse_field(h, p + at, (size_t)n) < 0)
            return -1;
        at += (size_t)n + 2;
        if (line > 0 && n == 0)
            break;
    }
    return check_fields(h) < 0 ? -1 : (long)at;
}

static bool host_is_ours(const struct http_slice *host, unsigned port)
{
    const char *colon = memchr(host->p, ':', host->len);
    if (!colon)
        return false;
    struct http_slice name = {host->p, (size_t)(colon - host->p)};
    if (!http_slice_is(&name, "127.0.0.1") && !http_slice_is_nocase(&name, "localhost"))
        return false;
    size_t digits = host->len - name.len - 1;
    unsigned n = 0;
    if (digits == 0 || digits > 5 || colon[1] == '0')
        return false;
    for (size_t i = 0; i < digits; i++) {
        char c = colon[1 + i];
        if (c < '0' || c > '9')
            return false;
        n = n * 10 + (unsigned)(c - '0');
    }
    return n == port;
}

bool http_head_guard(struct http_head *h, unsigned port)
{
    if (!host_is_ours(&h->host, port))
        return refuse(h, 403, "this Host is not served here") == 0;
    if (http_head_get(h, "origin"))
        return refuse(h, 403, "requests of web pages are refused") == 0;
    if (http_slice_is(&h->method, "OPTIONS") || http_slice_is(&h->method, "TRACE") ||
        http_slice_is(&h->method, "CONNECT"))
        return refuse(h, 405, "method is not allowed") == 0;
    if (http_head_get(h, "upgrade"))
        return refuse(h, 400, "protocol upgrades are refused") == 0;
    return true;
}

/* --- chunked bodies ------------------------------------------------------- */

enum {
    CH_SIZE,
    CH_EXT,
    CH_SIZE_LF,
    CH_DATA,
    CH_DATA_CR,
    CH_DATA_LF,
    CH_LINE, /* after the last chunk: a trailer or the end */
    CH_NAME,
    CH_VALUE,
    CH_VALUE_LF,
    CH_END_LF,
    CH_DONE
};

void http_chunks_init(struct http_chunks *c)
{
    memset(c, 0, sizeof(*c));
    c->state = CH_SIZE;
}

static int hex_value(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    if (ch >= 'a' && ch <= 'f')
        return ch - 'a' + 10;
    if (ch >= 'A' && ch <= 'F')
        return ch - 'A' + 10;
    return -1;
}

static int size_byte(struct http_chunks *c, char ch)
{
    if ((ch == '\r' || ch == ';') && c->digits > 0) {
        c->state = ch == ';' ? CH_EXT : CH_SIZE_LF;
        c->skipped = 0;
        return 0;
    }
    int v = hex_value(ch);
    if (v < 0 || c->digits == 10)
        return -1;
    c->left = c->left * 16 + (uint64_t)v;
    c->digits++;
    return 0;
}

/* A byte of an extension or of a trailer's value, up to the line's end. */
static int skipped_byte(struct http_chunks *c, char ch, unsigned max, int next)
{
    unsigned char u = (unsigned char)ch;
    if (ch == '\r') {
        c->state = next;
        return 0;
    }
    return ++c->skipped > max || (u < 0x20 && u != '\t') || u == 0x7f ? -1 : 0;
}

/* A byte where a trailer's name is, or the empty line that ends it all. */
static int name_byte(struct http_chunks *c, char ch)
{
    bool first = c->state == CH_LINE;
    if (first && ch == '\r') {
        c->state = CH_END_LF;
        return 0;
    }
    c->state = !first && ch == ':' ? CH_VALUE : CH_NAME;
    if (c->state == CH_NAME && !is_token_char((unsigned char)ch))
        return -1;
    return ++c->skipped > HTTP_TRAILERS_MAX ? -1 : 0;
}

/* The one byte that may come here. */
static int step(struct http_chunks *c, char ch, char want, int next)
{
    c->state = next;
    return ch == want ? 0 : -1;
}

/* One byte of framing; 0 or -1. */
static int frame_byte(struct http_chunks *c, char ch)
{
    switch (c->state) {
    case CH_SIZE:
        return size_byte(c, ch);
    case CH_EXT:
        return skipped_byte(c, ch, HTTP_CHUNK_EXT_MAX, CH_SIZE_LF);
    case CH_SIZE_LF:
        c->skipped = 0;
        return step(c, ch, '\n', c->left > 0 ? CH_DATA : CH_LINE);
    case CH_DATA_CR:
        return step(c, ch, '\r', CH_DATA_LF);
    case CH_DATA_LF:
        c->digits = 0;
        return step(c, ch, '\n', CH_SIZE);
    case CH_LINE:
    case CH_NAME:
        return name_byte(c, ch);
    case CH_VALUE:
        return skipped_byte(c, ch, HTTP_TRAILERS_MAX, CH_VALUE_LF);
    case CH_VALUE_LF:
        return step(c, ch, '\n', CH_LINE);
    default:
        return step(c, ch, '\n', CH_DONE);
    }
}

int http_chunks_scan(struct http_chunks *c, const char *p, size_t len, size_t *used,
                     http_chunk_fn fn, void *arg)
{
    size_t at = 0;
    int rc = 0;
    while (at < len && c->state != CH_DONE && rc == 0) {
        if (c->state == CH_DATA) {
            size_t n = len - at < c->left ? len - at : (size_t)c->left;
            if (fn && !fn(arg, p + at, n))
                rc = -1;
            at += n;
            c->left -= n;
            if (c->left == 0)
                c->state = CH_DATA_CR;
        } else {
            rc = frame_byte(c, p[at++]);
        }
    }
    *used = at;
    if (rc < 0)
        return -1;
    return c->state == CH_DONE ? 1 : 0;
}
