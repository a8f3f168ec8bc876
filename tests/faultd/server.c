/* HTTP/1.1 on loopback: one request at a time on each connection, answers that wait
 * their time, break off or never come. */
#include "faultd.h"
#include <arpa/inet.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { IN_MAX = 17 << 20 };

struct conn {
    int fd;
    struct buf in, out;
    int64_t due;      /* when the answer goes out; -1 = nothing waits */
    bool answering, stalled, close_after, dead;
};
struct server {
    struct plane *plane;
    ARR(struct conn *) conns;
};

int listen_on(const char *where, bool announce)
{
    int64_t port = 0;
    int fd, one = 1;

    if (where[0] == '/') {
        struct sockaddr_un u = {.sun_family = AF_UNIX};
        str_copy(u.sun_path, sizeof(u.sun_path), where);
        unlink(where);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (bind(fd, (struct sockaddr *)&u, sizeof(u)) || listen(fd, 16))
            die("faultd: cannot listen on %s: %s", where, strerror(errno));
        return fd;
    }
    if (!str_to_i64(where, 0, 65535, &port))
        die("faultd: %s is no port", where);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 4096) ||
        getsockname(fd, (struct sockaddr *)&a, &n))
        die("faultd: cannot listen on port %s: %s", where, strerror(errno));
    if (announce) {
        printf("http://127.0.0.1:%d\n", ntohs(a.sin_port));
        fflush(stdout);
    }
    return fd;
}

/* Body of a chunked request: its length in wire bytes, 0 = not complete, or -1. The
 * decoded bytes are appended to out. */
static int64_t dechunk(const char *p, size_t len, struct buf *out)
{
    const char *begin = p, *end = p + len;

    for (;;) {
        const char *eol = memmem(p, (size_t)(end - p), "\r\n", 2);
        char *stop;
        if (!eol)
            return 0;
        unsigned long n = strtoul(p, &stop, 16);
        if (stop == p || n > IN_MAX)
            return -1;
        p = eol + 2;
        if ((size_t)(end - p) < n + 2)
            return 0;
        buf_add(out, p, n);
        p += n + 2;
        if (n == 0)
            return p - begin;
    }
}

static void render(struct conn *c, const struct answer *a)
{
    bool empty = a->status == 204 || a->status == 304;

    buf_addf(&c->out, "HTTP/1.1 %d Scripted\r\n", a->status);
    if (!empty)
        buf_addf(&c->out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", a->body.len);
    buf_add(&c->out, a->head.p ? a->head.p : "", a->head.len);
    buf_adds(&c->out, "\r\n");
    if (!empty)
        buf_add(&c->out, a->body.p ? a->body.p : "", a->body.len);
    if (a->cut >= 0) {
        if ((size_t)a->cut < c->out.len)
            buf_truncate(&c->out, (size_t)a->cut);
        c->close_after = true;
    }
    c->stalled = a->stall;
    c->due = clock_mono_ms() + a->delay_ms;
}

static void answer(struct server *s, struct conn *c, struct request *r)
{
    struct answer a = {.status = 500, .cut = -1};
    char text[64];

    c->answering = true;
    if (++s->plane->open > s->plane->most_open)
        s->plane->most_open = s->plane->open;
    if (header_value(r->head, "Connection", text, sizeof(text)) && str_eq_nocase(text, "close"))
        c->close_after = true;
    script_answer(s->plane, r, &a);
    render(c, &a);
    buf_release(&a.head);
    buf_release(&a.body);
}

/* Split the head in place; false when it is no request. */
static bool parse_head(char *head, struct request *r)
{
    char *line_end = strstr(head, "\r\n"), *path, *version, *q;

    *line_end = '\0';
    path = strchr(head, ' ');
    version = path ? strchr(path + 1, ' ') : NULL;
    if (!version)
        return false;
    *path++ = '\0';
    *version = '\0';
    q = strchr(path, '?');
    if (q)
        *q++ = '\0';
    *r = (struct request){.method = head, .path = path, .query = q ? q : "", .head = line_end + 2};
    return true;
}

static void take_request(struct server *s, struct conn *c)
{
    char *end = c->in.len ? memmem(c->in.p, c->in.len, "\r\n\r\n", 4) : NULL, *head;
    struct buf body = BUF_INIT;
    struct request r;
    char text[64];
    int64_t n = 0, used;
    size_t head_len;

    if (!end || c->answering)
        return;
    head_len = (size_t)(end - c->in.p) + 4;
    head = xstrndup(c->in.p, head_len - 2);
    if (!parse_head(head, &r)) {
        c->dead = true;
    } else if (header_value(r.head, "Transfer-Encoding", text, sizeof(text))) {
        used = dechunk(c->in.p + head_len, c->in.len - head_len, &body);
        c->dead = used < 0;
        n = used > 0 ? used : -1;
    } else {
        if (header_value(r.head, "Content-Length", text, sizeof(text)) &&
            !str_to_i64(text, 0, IN_MAX, &n))
            c->dead = true;
        if (c->in.len - head_len < (size_t)n)
            n = -1;
        else
            buf_add(&body, c->in.p + head_len, (size_t)n);
    }
    if (!c->dead && n >= 0) {
        r.body = buf_str(&body);
        r.len = body.len;
        buf_consume(&c->in, head_len + (size_t)n);
        answer(s, c, &r);
    }
    buf_release(&body);
    free(head);
}

static void read_some(struct server *s, struct conn *c)
{
    char *room = buf_reserve(&c->in, 65536);
    ssize_t n = room ? recv(c->fd, room, 65535, 0) : 0;

    if (n > 0)
        c->in.len += (size_t)n;
    else if (n == 0 || errno != EAGAIN)
        c->dead = true;
    if (!c->dead)
        take_request(s, c);
}

static void done(struct server *s, struct conn *c)
{
    if (c->answering)
        s->plane->open--;
    c->answering = false;
    c->due = -1;
}

/* Send what is due. True when the socket is full. */
static bool write_some(struct server *s, struct conn *c, int64_t now)
{
    while (c->answering && !c->stalled && c->due <= now && !c->dead) {
        ssize_t n = c->out.len ? send(c->fd, c->out.p, c->out.len, MSG_NOSIGNAL) : 0;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n < 0) {
            c->dead = true;
            break;
        }
        buf_consume(&c->out, (size_t)n);
        if (c->out.len)
            continue;
        done(s, c);
        if (c->close_after)
            c->dead = true;
        else
            take_request(s, c);
    }
    return false;
}

static void drop(struct server *s, size_t i)
{
    struct conn *c = s->conns.v[i];

    done(s, c);
    close(c->fd);
    buf_release(&c->in);
    buf_release(&c->out);
    free(c);
    s->conns.v[i] = s->conns.v[--s->conns.n];
}

static void accept_some(struct server *s, int listen_fd)
{
    int fd, one = 1;

    while ((fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct conn *c = xcalloc(1, sizeof(*c));
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        c->fd = fd;
        c->due = -1;
        buf_init(&c->in, IN_MAX);
        *ARR_PUSH(&s->conns) = c;
    }
}

int server_run(struct plane *p, int port)
{
    struct server s = {.plane = p};
    ARR(struct pollfd) fds = ARR_INIT;
    char where[16];
    int listen_fd;

    snprintf(where, sizeof(where), "%d", port);
    listen_fd = listen_on(where, true);
    for (;;) {
        int64_t now = clock_mono_ms(), next = -1;
        ARR_CLEAR(&fds);
        *ARR_PUSH(&fds) = (struct pollfd){.fd = listen_fd, .events = POLLIN};
        for (size_t i = s.conns.n; i-- > 0;) {
            struct conn *c = s.conns.v[i];
            bool full = write_some(&s, c, now);
            if (c->dead) {
                drop(&s, i);
                continue;
            }
            if (c->answering && !c->stalled && !full && (next < 0 || c->due < next))
                next = c->due;
        }
        for (size_t i = 0; i < s.conns.n; i++)
            *ARR_PUSH(&fds) = (struct pollfd){
                .fd = s.conns.v[i]->fd,
                .events = (short)(POLLIN | (s.conns.v[i]->answering && s.conns.v[i]->due <= now &&
                                            !s.conns.v[i]->stalled ? POLLOUT : 0))};
        poll(fds.v, fds.n, next < 0 ? -1 : next > now ? (int)(next - now) : 0);
        for (size_t i = 1; i < fds.n; i++)
            if (fds.v[i].revents & (POLLIN | POLLHUP | POLLERR))
                read_some(&s, s.conns.v[i - 1]);
        if (fds.v[0].revents)
            accept_some(&s, listen_fd);
    }
}
