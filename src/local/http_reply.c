/* Answers of the HTTP server: whole, from a file, as a stream. */
#include "http_conn.h"
#include <cct/util/json.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include <stdarg.h>
#include <stdio.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *text;
    } known[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].status == status)
            return known[i].text;
    return status < 400 ? "Done" : "Refused";
}

/* By this clock a client tells a time that was up from one that was not. */
static void add_status(struct buf *b, int status)
{
    char date[40];
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    buf_addf(b, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, reason_of(status), date);
}

void http_error_text(struct buf *b, int status, const char *json, size_t len)
{
    add_status(b, status);
    buf_addf(b, "Content-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
             len);
    buf_add(b, json, len);
}

void http_error_json(struct buf *b, int status, const char *message)
{
    struct jw w;
    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_i64(&w, "code", status);
    jw_str(&w, "message", message);
    jw_end(&w);
}

void http_conn_write_error(struct http_conn *c, int status, const char *why)
{
    struct buf json = BUF_INIT, all = BUF_INIT;
    http_error_json(&json, status, why);
    http_error_text(&all, status, json.p, json.len);
    bufferevent_write(c->bev, all.p, all.len);
    buf_release(&json);
    buf_release(&all);
}

/* --- heads ---------------------------------------------------------------- */

void http_reply_header(struct http_req *r, const char *name, const char *value)
{
    buf_addf(&r->headers, "%s: %s\r\n", name, value);
}

void http_reply_headerf(struct http_req *r, const char *name, const char *fmt, ...)
{
    va_list ap;
    buf_addf(&r->headers, "%s: ", name);
    va_start(ap, fmt);
    buf_addv(&r->headers, fmt, ap);
    va_end(ap);
    buf_adds(&r->headers, "\r\n");
}

/* Status line, what the handler added, how the connection goes on. */
static void write_head(struct http_req *r, int status, const char *type)
{
    struct http_conn *c = r->conn;
    struct buf b = BUF_INIT;
    add_status(&b, status);
    if (type)
        buf_addf(&b, "Content-Type: %s\r\n", type);
    buf_adds(&b, buf_str(&r->headers));
    if (!http_conn_keeps(c))
        buf_adds(&b, "Connection: close\r\n");
    else if (r->minor == 0)
        buf_adds(&b, "Connection: keep-alive\r\n");
    buf_adds(&b, "\r\n");
    bufferevent_write(c->bev, b.p, b.len);
    buf_release(&b);
}

/* --- whole answers -------------------------------------------------------- */

void http_reply_bytes(struct http_req *r, int status, const char *type, const void *p,
                      size_t len)
{
    if (r->conn) {
        if (status != 204)
            http_reply_headerf(r, "Content-Length", "%zu", len);
        write_head(r, status, type);
        if (len > 0 && !r->is_head)
            bufferevent_write(r->conn->bev, p, len);
    }
    http_conn_answered(r);
}

void http_reply(struct http_req *r, int status, const char *json, size_t len)
{
    bool empty = status == 204 || json == NULL;
    http_reply_bytes(r, status, empty ? NULL : "application/json", json, empty ? 0 : len);
}

void http_reply_error(struct http_req *r, int status, const char *fmt, ...)
{
    struct buf text = BUF_INIT, b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    http_error_json(&b, status, buf_str(&text));
    http_reply(r, status, b.p, b.len);
    buf_release(&text);
    buf_release(&b);
}

/* The bytes go from the disk to the socket by sendfile: nothing of the file is in
 * memory. The end of a shortened file looks like a failed write there. */
void http_reply_file(struct http_req *r, int status, const char *type, int take_fd, int64_t at,
                     int64_t len)
{
    bool sends = r->conn && len > 0 && !r->is_head;
    if (r->conn) {
        http_reply_headerf(r, "Content-Length", "%lld", (long long)len);
        write_head(r, status, type);
    }
    if (!sends) {
        close(take_fd);
    } else if (evbuffer_add_file(bufferevent_get_output(r->conn->bev), take_fd, at, len) != 0) {
        close(take_fd);
        r->conn->keep_alive = false; /* only the cut tells the reader */
    }
    http_conn_answered(r);
}

/* --- streams -------------------------------------------------------------- */

void http_stream_begin(struct http_req *r, int status, const char *type)
{
    r->is_stream = true;
    r->is_chunked = r->minor > 0;
    if (!r->conn)
        return;
    if (r->is_chunked)
        http_reply_header(r, "Transfer-Encoding", "chunked");
    else
        r->conn->keep_alive = false; /* its end is the end of the connection */
    write_head(r, status, type);
    http_conn_patient(r->conn, true);
}

void http_stream_send(struct http_req *r, const struct iovec *pieces, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += pieces[i].iov_len;
    if (!r->conn || r->is_head || len == 0)
        return;
    struct evbuffer *out = bufferevent_get_output(r->conn->bev);
    if (r->is_chunked)
        evbuffer_add_printf(out, "%zx\r\n", len);
    for (size_t i = 0; i < n; i++)
        evbuffer_add(out, pieces[i].iov_base, pieces[i].iov_len);
    if (r->is_chunked)
        evbuffer_add(out, "\r\n", 2);
}

size_t http_stream_unsent(const struct http_req *r)
{
    return r->conn ? evbuffer_get_length(bufferevent_get_output(r->conn->bev)) : 0;
}

void http_stream_end(struct http_req *r)
{
    if (r->conn) {
        if (r->is_chunked && !r->is_head)
            bufferevent_write(r->conn->bev, "0\r\n\r\n", 5);
        http_conn_patient(r->conn, false);
    }
    http_conn_answered(r);
}

void http_stream_cut(struct http_req *r)
{
    if (r->conn) {
        r->conn->keep_alive = false; /* only the cut tells the reader */
        http_conn_patient(r->conn, false);
    }
    http_conn_answered(r);
}
