/* One request on one easy handle: options, headers, and what libcurl hands back. */
#include "net_priv.h"
#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SMALL_BODY = 16 << 10, BULK_PIECE = 128 << 10 };

/* The bit mask that libcurl knew before CURLOPT_PROTOCOLS_STR (7.85). */
enum { OLD_PROTOCOLS = CURLOPTTYPE_LONG + 181, OLD_HTTP = 1, OLD_HTTPS = 2 };
/* Newer than the headers this may be built with. */
enum { QUICK_EXIT = CURLOPTTYPE_LONG + 322, PROTOCOLS_STR = CURLOPTTYPE_STRINGPOINT + 318,
       PREREQ_FUNCTION = CURLOPTTYPE_FUNCTIONPOINT + 312,
       PREREQ_DATA = CURLOPTTYPE_OBJECTPOINT + 313, PREREQ_OK = 0, PREREQ_ABORT = 1 };

static void wipe_lines(struct xfer *x)
{
    for (struct curl_slist *l = x->headers; l; l = l->next)
        secret_wipe(l->data, strlen(l->data));
    if (x->headers)
        x->net->lib->slist_free_all(x->headers);
    x->headers = NULL;
}

/* The heads of the request are not needed once it is answered, and hold keys. */
static void forget_heads(struct xfer *x)
{
    x->net->lib->easy_setopt(x->easy, CURLOPT_HTTPHEADER, NULL);
    wipe_lines(x);
    xfer_drop_values(x->req);
}

size_t xfer_on_head(char *line, size_t size, size_t n, void *ctx)
{
    struct xfer *x = ctx;
    size_t len = size * n, all = len;
    long status = 0;

    x->byte_ms = clock_mono_ms();
    if (x->dead)
        return 0;
    if (x->status) /* trailers after the body */
        return all;
    while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
        len--;
    if (len >= 5 && memcmp(line, "HTTP/", 5) == 0)
        buf_clear(&x->head);
    if (len) {
        if (buf_add(&x->head, line, strnlen(line, len)) || buf_addc(&x->head, '\0')) {
            err_set(&x->fail, ERR_LIMIT, "the head of the answer is too long");
            return 0;
        }
        return all;
    }
    x->net->lib->easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) /* 100 Continue and its like */
        return all;
    x->status = (int)status;
    forget_heads(x);
    if (x->req->on_head)
        x->req->on_head(x->req->ctx, x->status);
    return x->dead ? 0 : all;
}

size_t xfer_on_body(char *data, size_t size, size_t n, void *ctx)
{
    struct xfer *x = ctx;
    size_t len = size * n;

    if (x->dead)
        return 0;
    if (x->paused) {
        x->held = true;
        return CURL_WRITEFUNC_PAUSE; /* libcurl keeps the piece */
    }
    x->byte_ms = clock_mono_ms();
    if (x->req->on_body) {
        if (x->req->on_body(x->req->ctx, data, len))
            return x->dead ? 0 : len;
        if (!x->dead)
            err_set(&x->fail, ERR_CANCELLED, "the transfer was stopped by its reader");
        return 0;
    }
    if (buf_add(&x->answer, data, len) == 0)
        return len;
    err_set(&x->fail, ERR_LIMIT, "the answer is longer than %zu bytes", x->answer.max);
    return 0;
}

/* What is no question and not marked as repeatable goes out once. libcurl sends a request
 * again by itself when a kept connection turns out dead, whatever its method, and a create
 * must not run twice. (HTTP/2 can say that it refused one unseen, but libcurl keeps that
 * to itself on a connection that was used before.) */
static bool once_only(const struct net_req *r)
{
    return r->read_body || (!r->repeatable && (r->body.len || strcmp(r->method, "POST") == 0));
}

/* Before each sending, on whatever connection. They are counted: who deletes wants to
 * know whether an earlier one may have been heard. */
static int on_sending(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
    struct xfer *x = ctx;

    (void)ip;
    (void)local_ip;
    (void)port;
    (void)local_port;
    if (x->dead || owner_check(x, &x->fail))
        return PREREQ_ABORT;
    if (x->sends++ > 0 && once_only(x->req)) {
        err_set(&x->fail, ERR_NETWORK, "the connection broke after the request was sent, and it is "
                "not sent twice");
        return PREREQ_ABORT;
    }
    return PREREQ_OK;
}

/* For a libcurl without that hook: a body that is read from us, without a seek function,
 * makes it give up instead. */
static size_t on_read(char *dst, size_t size, size_t n, void *ctx)
{
    struct xfer *x = ctx;
    size_t room = size * n, left = x->req->body.len - x->body_at;

    x->byte_ms = clock_mono_ms();
    if (x->dead)
        return CURL_READFUNC_ABORT;
    if (left > room)
        left = room;
    if (left)
        memcpy(dst, x->req->body.p + x->body_at, left);
    x->body_at += left;
    return left;
}

static size_t on_read_body(char *dst, size_t size, size_t n, void *ctx)
{
    struct xfer *x = ctx;
    size_t got;

    x->byte_ms = clock_mono_ms();
    if (x->dead)
        return CURL_READFUNC_ABORT;
    got = x->req->read_body(x->req->ctx, dst, size * n);
    x->body_at += got;
    return got || x->body_at == x->req->body_len ? got : CURL_READFUNC_ABORT;
}

static bool watch_sendings(struct xfer *x)
{
    const struct curl_lib *c = x->net->lib;

    if (c->easy_setopt(x->easy, (CURLoption)PREREQ_FUNCTION, on_sending))
        return false;
    c->easy_setopt(x->easy, (CURLoption)PREREQ_DATA, x);
    return true;
}

static bool header_value_ok(const char *v, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)v[i] < ' ' || v[i] == 0x7f)
            return false;
    return true;
}

/* The list owns copies; they are wiped when it goes. */
static int add_line(struct xfer *x, const char *name, const char *value, size_t len, struct err *e)
{
    struct curl_slist *l;
    size_t n = strlen(name);
    char *line;

    if (!header_value_ok(value, len) || !header_value_ok(name, n))
        return err_set(e, ERR_INVALID, "cannot send the header \"%s\": its value holds control "
                       "characters", name);
    line = xmalloc(n + len + 4);
    memcpy(line, name, n);
    memcpy(line + n, ": ", 2);
    memcpy(line + n + 2, value, len);
    line[n + 2 + len] = '\0';
    if (!len) { /* libcurl's way to say: leave this one out */
        line[n] = ':';
        line[n + 1] = '\0';
    }
    l = x->net->lib->slist_append(x->headers, line);
    secret_wipe(line, n + len + 4);
    free(line);
    if (!l)
        return err_set(e, ERR_BUG, "cannot build the headers of a request");
    x->headers = l;
    return 0;
}

static int add_headers(struct xfer *x, struct err *e)
{
    int rc = add_line(x, "Expect", "", 0, e);

    for (size_t i = 0; i < x->req->n_headers && rc == 0; i++) {
        const struct net_header *h = &x->req->headers[i];
        if (h->secret)
            rc = add_line(x, h->name, secret_value(h->secret), secret_len(h->secret), e);
        else
            rc = add_line(x, h->name, h->value, strlen(h->value), e);
    }
    return rc;
}

static void set_body(struct xfer *x)
{
    const struct curl_lib *c = x->net->lib;
    struct net_req *r = x->req;
    bool post = strcmp(r->method, "POST") == 0, watched = watch_sendings(x);

    if (strcmp(r->method, "GET") == 0) {
        c->easy_setopt(x->easy, CURLOPT_HTTPGET, 1L);
        return;
    }
    if (r->read_body) {
        c->easy_setopt(x->easy, CURLOPT_POST, 1L);
        c->easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
        c->easy_setopt(x->easy, CURLOPT_READFUNCTION, on_read_body);
        c->easy_setopt(x->easy, CURLOPT_READDATA, x);
        if (!post)
            c->easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, r->method);
        return;
    }
    if (!post && !r->body.len) { /* DELETE */
        c->easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, r->method);
        return;
    }
    c->easy_setopt(x->easy, CURLOPT_POST, 1L);
    c->easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
    if (r->body.len <= SMALL_BODY) /* the buffer stays for as long as the answer lasts */
        c->easy_setopt(x->easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)SMALL_BODY);
    if (watched || r->repeatable || !r->body.len) {
        c->easy_setopt(x->easy, CURLOPT_POSTFIELDS, buf_str(&r->body));
    } else {
        c->easy_setopt(x->easy, CURLOPT_READFUNCTION, on_read);
        c->easy_setopt(x->easy, CURLOPT_READDATA, x);
    }
    if (!post)
        c->easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, r->method);
}

static void set_security(struct xfer *x)
{
    const struct curl_lib *c = x->net->lib;
    CURL *h = x->easy;

    c->easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    c->easy_setopt(h, CURLOPT_SSL_VERIFYPEER, 1L);
    c->easy_setopt(h, CURLOPT_SSL_VERIFYHOST, 2L);
    c->easy_setopt(h, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (c->easy_setopt(h, (CURLoption)PROTOCOLS_STR, x->loopback ? "http,https" : "https"))
        c->easy_setopt(h, (CURLoption)OLD_PROTOCOLS,
                       (long)(x->loopback ? OLD_HTTP | OLD_HTTPS : OLD_HTTPS));
    if (x->net->ca_file)
        c->easy_setopt(h, CURLOPT_CAINFO, x->net->ca_file);
    if (x->loopback) {
        c->easy_setopt(h, CURLOPT_PROXY, "");
        c->easy_setopt(h, CURLOPT_NOPROXY, "*");
    }
    c->easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

/* A path that swallows packets is noticed: a kept connection 50 s after its last byte,
 * a request that is not even acknowledged after 20 s instead of a quarter of an hour. */
static int on_socket_made(void *ctx, curl_socket_t fd, curlsocktype kind)
{
    static const unsigned unacked_ms = 20000;

    (void)ctx;
    if (kind == CURLSOCKTYPE_IPCXN)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
    return CURL_SOCKOPT_OK;
}

/* The receive buffer stays as large as libcurl makes it: with less than a whole HTTP/2
 * frame (16 kB) in it 7.88 loses sight of streams that share a connection. */
static void set_transport(struct xfer *x)
{
    const struct curl_lib *c = x->net->lib;
    const struct net_req *r = x->req;
    bool tls = str_starts(r->url, "https:");
    CURL *h = x->easy;

    c->easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    /* A slow resolver must not hold up a cancel or the end of the program. */
    c->easy_setopt(h, (CURLoption)QUICK_EXIT, 1L);
    c->easy_setopt(h, CURLOPT_SHARE, x->net->share);
    c->easy_setopt(h, CURLOPT_HTTP_VERSION,
                   (long)(tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    c->easy_setopt(h, CURLOPT_PIPEWAIT, tls && !r->fresh ? 1L : 0L);
    if (x->again || r->fresh)
        c->easy_setopt(h, CURLOPT_FRESH_CONNECT, 1L);
    c->easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)(r->connect_ms > 0 ? r->connect_ms : 10000));
    if (r->total_ms > 0)
        c->easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)r->total_ms + 1000);
    c->easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    c->easy_setopt(h, CURLOPT_TCP_KEEPIDLE, 30L);
    c->easy_setopt(h, CURLOPT_TCP_KEEPINTVL, 10L);
    c->easy_setopt(h, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
    c->easy_setopt(h, CURLOPT_USERAGENT, x->net->user_agent);
}

/* A kept connection may be closed by its server while a request is on the way to it
 * (HTTP/2 says GOAWAY). That is no fault of the network: what may be repeated goes out
 * once more, over a new connection. */
bool xfer_may_repeat(struct xfer *x, CURLcode rc)
{
    const struct net_req *r = x->req;
    long fresh = 1;

    if (x->again || x->status || x->fail.code || once_only(r))
        return false;
    if (rc != CURLE_RECV_ERROR && rc != CURLE_SEND_ERROR && rc != CURLE_GOT_NOTHING &&
        rc != CURLE_HTTP2 && rc != CURLE_HTTP2_STREAM && rc != CURLE_PARTIAL_FILE)
        return false;
    x->net->lib->easy_getinfo(x->easy, CURLINFO_NUM_CONNECTS, &fresh);
    return fresh == 0;
}

int xfer_setup(struct xfer *x, struct err *e)
{
    const struct curl_lib *c = x->net->lib;
    struct net_req *r = x->req;
    int rc = net_url_check(r->url, &x->loopback, e);

    if (rc == 0)
        rc = owner_check(x, e);
    if (rc)
        return rc;
    x->easy = c->easy_init();
    if (!x->easy)
        return err_set(e, ERR_BUG, "cannot make a request: libcurl gave no handle");
    rc = add_headers(x, e);
    if (rc)
        return rc;
    buf_init(&x->answer, r->max_body ? r->max_body : LIM_HTTP_BODY);
    set_security(x);
    set_transport(x);
    silence_setup(x);
    set_body(x);
    c->easy_setopt(x->easy, CURLOPT_URL, r->url);
    c->easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers);
    c->easy_setopt(x->easy, CURLOPT_PRIVATE, x);
    c->easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->curl_text);
    c->easy_setopt(x->easy, CURLOPT_HEADERFUNCTION, xfer_on_head);
    c->easy_setopt(x->easy, CURLOPT_HEADERDATA, x);
    c->easy_setopt(x->easy, CURLOPT_WRITEFUNCTION, xfer_on_body);
    c->easy_setopt(x->easy, CURLOPT_WRITEDATA, x);
    if (r->bulk)
        c->easy_setopt(x->easy, CURLOPT_BUFFERSIZE, (long)BULK_PIECE);
    return 0;
}

void xfer_teardown(struct xfer *x)
{
    if (x->easy)
        x->net->lib->easy_cleanup(x->easy);
    x->easy = NULL;
    wipe_lines(x);
}
