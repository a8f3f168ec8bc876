/* See httpbed.h. */
#include "httpbed.h"
#include <cct/util/clock.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_path(const struct http_req *r, const char *path)
{
    return strcmp(r->path, path) == 0;
}

/* --- handlers -------------------------------------------------------------- */

static void on_close(struct http_req *r, void *arg)
{
    struct httpbed *b = arg;
    b->closes++;
    if (r->is_stream) {
        if (b->kept == r)
            b->kept = NULL;
        http_stream_end(r);
    }
}

static void on_drained(struct http_req *r, void *arg)
{
    (void)r;
    ((struct httpbed *)arg)->drains++;
}

static void handle(struct http_req *r, void *arg)
{
    struct httpbed *b = arg;
    b->served++;
    if (is_path(r, "/echo")) {
        struct buf t = BUF_INIT;
        buf_addf(&t, "%s %s ", r->method, r->query);
        buf_add(&t, r->body.p, r->body.len);
        http_reply_bytes(r, 200, "text/plain", t.p, t.len);
        buf_release(&t);
    } else if (is_path(r, "/none")) {
        http_reply(r, 204, NULL, 0);
    } else if (is_path(r, "/file")) {
        http_reply_file(r, 206, "text/plain", dup(b->file_fd), b->file_at, b->file_len);
    } else if (is_path(r, "/keep") || is_path(r, "/stream")) {
        b->kept = r;
        http_req_watch(r, on_close, on_drained, b);
        if (is_path(r, "/stream"))
            http_stream_begin(r, 200, "text/plain");
    } else {
        http_reply_error(r, 404, "there is nothing at %s", r->path);
    }
}

static void take_piece(void *arg, const char *p, size_t len)
{
    struct httpbed *b = arg;
    struct http_req *r = b->kept;
    b->pieces++;
    buf_add(&b->got, p, len);
    if (is_path(r, "/pause"))
        http_body_pause(r);
    if (is_path(r, "/refuse") && b->got.len >= b->refuse_at) {
        b->kept = NULL;
        http_reply_error(r, 507, "no more than %zu bytes", b->refuse_at);
    }
}

static void take_end(void *arg)
{
    struct httpbed *b = arg;
    struct http_req *r = b->kept;
    char text[32];
    b->kept = NULL;
    b->served++;
    snprintf(text, sizeof(text), "%zu bytes", b->got.len);
    http_reply_bytes(r, 200, "text/plain", text, strlen(text));
}

static void take_cut(void *arg)
{
    struct httpbed *b = arg;
    b->kept = NULL;
    b->cuts++;
}

static const struct http_body_ops take_ops = {take_piece, take_end, take_cut};

static void on_head(struct http_req *r, void *arg)
{
    struct httpbed *b = arg;
    if (is_path(r, "/early")) {
        http_reply_error(r, 401, "no");
    } else if (is_path(r, "/take") || is_path(r, "/refuse") || is_path(r, "/pause")) {
        buf_clear(&b->got);
        b->kept = r;
        http_body_take(r, &take_ops, b);
    }
}

/* --- up and down ----------------------------------------------------------- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
}

static int listen_unix(struct httpbed *b)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(b->dir, sizeof(b->dir), "/tmp/cct-http-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    snprintf(b->sock, sizeof(b->sock), "%s/s", b->dir);
    memcpy(sa.sun_path, b->sock, strlen(b->sock));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(fd, 64), 0);
    return fd;
}

void httpbed_up(struct httpbed *b, bool tcp)
{
    struct err e = {0};
    struct timeval tv = {0, 2000};
    signal(SIGPIPE, SIG_IGN); /* as both programs do */
    memset(b, 0, sizeof(*b));
    b->file_fd = -1;
    b->base = event_base_new();
    b->tick = event_new(b->base, -1, EV_PERSIST, on_tick, b);
    event_add(b->tick, &tv);
    b->srv = tcp ? http_srv_new(b->base, handle, b, &e)
                 : http_srv_new_fd(b->base, listen_unix(b), handle, b);
    assert_non_null(b->srv);
    http_srv_on_head(b->srv, on_head);
}

void httpbed_down(struct httpbed *b)
{
    http_srv_free(b->srv);
    event_free(b->tick);
    event_base_free(b->base);
    buf_release(&b->got);
    if (b->file_fd >= 0)
        close(b->file_fd);
    if (b->dir[0] != '\0') {
        unlink(b->sock);
        rmdir(b->dir);
    }
}

void httpbed_turn(struct httpbed *b)
{
    event_base_loop(b->base, EVLOOP_ONCE);
}

/* --- the client ------------------------------------------------------------ */

int httpbed_connect(struct httpbed *b)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET};
    bool tcp = b->sock[0] == '\0';
    int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons((uint16_t)http_srv_port(b->srv));
    memcpy(un.sun_path, b->sock, strlen(b->sock));
    assert_int_equal(tcp ? connect(fd, (struct sockaddr *)&in, sizeof(in))
                         : connect(fd, (struct sockaddr *)&un, sizeof(un)),
                     0);
    evutil_make_socket_nonblocking(fd);
    return fd;
}

void httpbed_send(struct httpbed *b, int fd, const char *p, size_t len, size_t step)
{
    int64_t until = clock_mono_ms() + 20000;
    while (len > 0) {
        size_t want = step > 0 && step < len ? step : len;
        ssize_t n = send(fd, p, want, MSG_NOSIGNAL);
        if (n < 0 && errno == EPIPE)
            return; /* the server has said what it had to say */
        if (n < 0 && errno != EAGAIN)
            fail_msg("send: %s", strerror(errno));
        if (clock_mono_ms() > until)
            fail_msg("the server takes nothing");
        p += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
        if (step > 0 || n < 0)
            event_base_loop(b->base, n < 0 ? EVLOOP_ONCE : EVLOOP_NONBLOCK);
    }
}

bool httpbed_recv(struct httpbed *b, int fd, struct buf *in)
{
    (void)b;
    char tmp[16384];
    ssize_t n;
    while ((n = recv(fd, tmp, sizeof(tmp), 0)) > 0)
        buf_add(in, tmp, (size_t)n);
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

char *httpbed_finish(struct httpbed *b, int fd)
{
    struct buf in = BUF_INIT;
    HTTPBED_UNTIL(b, httpbed_recv(b, fd, &in));
    close(fd);
    return buf_detach(&in, NULL);
}

char *httpbed_talk(struct httpbed *b, const char *text, size_t step)
{
    int fd = httpbed_connect(b);
    httpbed_send(b, fd, text, strlen(text), step);
    return httpbed_finish(b, fd);
}

const char *httpbed_statuses(const char *text)
{
    static char out[128];
    size_t n = 0;
    out[0] = '\0';
    for (const char *p = text; (p = strstr(p, "HTTP/1.1 ")) != NULL && n + 5 < sizeof(out);) {
        p += 9;
        if (*p >= '1' && *p <= '5') /* and no sentence about the version */
            n += (size_t)snprintf(out + n, sizeof(out) - n, "%.3s ", p);
    }
    return out;
}

void httpbed_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is missing in:\n%.2000s", part, text);
}
