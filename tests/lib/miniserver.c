/* The scripted server: one thread, poll, a list of steps for each connection. */
#include "miniserver.h"
#include <arpa/inet.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum step_kind { STEP_SEND, STEP_WAIT, STEP_CLOSE };
struct step {
    enum step_kind kind;
    struct buf data;
    int64_t ms; /* wait: length, then the time it ends */
    bool begun;
};
struct mini_conn {
    int fd;
    struct buf in;
    ARR(struct step) steps;
    bool dead;
};
struct mini {
    int listen_fd, wake_fd, port;
    pthread_t thread;
    pthread_mutex_t lock; /* held while a handler runs */
    mini_fn fn;
    void *ctx;
    atomic_int requests, accepted, open;
    ARR(struct mini_conn *) conns;
};

static struct step *add_step(struct mini_conn *c, enum step_kind kind)
{
    struct step *s = ARR_PUSH(&c->steps);

    s->kind = kind;
    return s;
}

void mini_send(struct mini_conn *c, const void *data, size_t len)
{
    buf_add(&add_step(c, STEP_SEND)->data, data, len);
}

void mini_sendf(struct mini_conn *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&add_step(c, STEP_SEND)->data, fmt, ap);
    va_end(ap);
}

void mini_wait(struct mini_conn *c, int ms)
{
    add_step(c, STEP_WAIT)->ms = ms;
}

void mini_close(struct mini_conn *c)
{
    add_step(c, STEP_CLOSE);
}

void mini_reply(struct mini_conn *c, int status, const char *extra, const char *body)
{
    if (status == 204)
        mini_sendf(c, "HTTP/1.1 204 No Content\r\n%s\r\n", extra);
    else
        mini_sendf(c, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                   "%s\r\n%s", status, strlen(body), extra, body);
}

bool mini_header(const struct mini_req *r, const char *name, char *dst, size_t size)
{
    size_t n = strlen(name);

    for (const char *p = r->head; p && *p; p = strstr(p, "\r\n") ? strstr(p, "\r\n") + 2 : NULL) {
        if (strncasecmp(p, name, n) != 0 || p[n] != ':')
            continue;
        p += n + 1;
        p += strspn(p, " ");
        snprintf(dst, size, "%.*s", (int)strcspn(p, "\r"), p);
        return true;
    }
    return false;
}

/* True when a whole request was taken from the input. */
static bool take_request(struct mini *m, struct mini_conn *c)
{
    char *text = c->in.p, *end, len_text[32], *path, *head;
    struct mini_req r = {0};
    size_t head_len;

    if (!text || !(end = strstr(text, "\r\n\r\n")))
        return false;
    head_len = (size_t)(end - text) + 4;
    head = strstr(text, "\r\n") + 2;
    r.head = head;
    if (mini_header(&r, "Content-Length", len_text, sizeof(len_text)))
        r.len = strtoul(len_text, NULL, 10);
    if (c->in.len < head_len + r.len)
        return false;
    path = strchr(text, ' ');
    *path++ = '\0';
    *strchr(path, ' ') = '\0';
    end[2] = '\0';
    char *body = xcalloc(1, r.len + 1);
    memcpy(body, text + head_len, r.len);
    r.method = text;
    r.path = path;
    r.body = body;
    atomic_fetch_add(&m->requests, 1);
    pthread_mutex_lock(&m->lock);
    m->fn(m->ctx, c, &r);
    pthread_mutex_unlock(&m->lock);
    free(body);
    buf_consume(&c->in, head_len + r.len);
    return true;
}

static void read_some(struct mini *m, struct mini_conn *c)
{
    char *room = buf_reserve(&c->in, 65536);
    ssize_t n = read(c->fd, room, 65535);

    if (n <= 0) {
        if (n == 0 || errno != EAGAIN)
            c->dead = true;
        return;
    }
    c->in.len += (size_t)n;
    c->in.p[c->in.len] = '\0';
    while (take_request(m, c))
        ;
}

/* Go on with the steps; returns the time of the next one, or -1. */
static int64_t work(struct mini_conn *c, bool *want_write)
{
    int64_t now = clock_mono_ms();

    while (c->steps.n && !c->dead) {
        struct step *s = &c->steps.v[0];
        if (s->kind == STEP_WAIT) {
            if (!s->begun)
                s->ms += now;
            s->begun = true;
            if (now < s->ms)
                return s->ms;
        } else if (s->kind == STEP_CLOSE) {
            c->dead = true;
        } else if (s->data.len) {
            ssize_t n = send(c->fd, s->data.p, s->data.len, MSG_NOSIGNAL);
            if (n < 0 && errno != EAGAIN)
                c->dead = true;
            if (n > 0)
                buf_consume(&s->data, (size_t)n);
            if (s->data.len) {
                *want_write = true;
                return -1;
            }
        }
        buf_release(&s->data);
        ARR_REMOVE(&c->steps, 0);
    }
    return -1;
}

static void conn_free(struct mini *m, size_t i)
{
    struct mini_conn *c = m->conns.v[i];

    close(c->fd);
    for (size_t s = 0; s < c->steps.n; s++)
        buf_release(&c->steps.v[s].data);
    ARR_RELEASE(&c->steps);
    buf_release(&c->in);
    free(c);
    ARR_REMOVE(&m->conns, i);
    atomic_fetch_sub(&m->open, 1);
}

static void accept_some(struct mini *m)
{
    int fd, one = 1;

    while ((fd = accept4(m->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct mini_conn *c = xcalloc(1, sizeof(*c));
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        c->fd = fd;
        *ARR_PUSH(&m->conns) = c;
        atomic_fetch_add(&m->accepted, 1);
        atomic_fetch_add(&m->open, 1);
    }
}

static void *serve(void *arg)
{
    struct mini *m = arg;
    ARR(struct pollfd) fds = ARR_INIT;

    for (;;) {
        int64_t next = -1;
        ARR_CLEAR(&fds);
        *ARR_PUSH(&fds) = (struct pollfd){.fd = m->wake_fd, .events = POLLIN};
        *ARR_PUSH(&fds) = (struct pollfd){.fd = m->listen_fd, .events = POLLIN};
        for (size_t i = m->conns.n; i-- > 0;) {
            bool out = false;
            int64_t t = work(m->conns.v[i], &out);
            if (m->conns.v[i]->dead) {
                conn_free(m, i);
                continue;
            }
            if (t >= 0 && (next < 0 || t < next))
                next = t;
            *ARR_PUSH(&fds) = (struct pollfd){.fd = m->conns.v[i]->fd,
                                              .events = (short)(POLLIN | (out ? POLLOUT : 0))};
        }
        int64_t wait = next < 0 ? -1 : next - clock_mono_ms();
        poll(fds.v, fds.n, next >= 0 && wait < 0 ? 0 : (int)wait);
        if (fds.v[0].revents)
            break;
        for (size_t i = 2; i < fds.n; i++)
            for (size_t k = 0; fds.v[i].revents & (POLLIN | POLLHUP | POLLERR) && k < m->conns.n; k++)
                if (m->conns.v[k]->fd == fds.v[i].fd)
                    read_some(m, m->conns.v[k]);
        if (fds.v[1].revents)
            accept_some(m);
    }
    while (m->conns.n)
        conn_free(m, m->conns.n - 1);
    ARR_RELEASE(&fds);
    return NULL;
}

static struct mini *start(const struct sockaddr *at, socklen_t len, mini_fn fn, void *ctx)
{
    struct mini *m = xcalloc(1, sizeof(*m));
    struct sockaddr_in6 got; /* its port stands where that of an IPv4 address does */
    socklen_t n = sizeof(got);

    pthread_mutex_init(&m->lock, NULL);
    m->fn = fn;
    m->ctx = ctx;
    m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->listen_fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(m->listen_fd, at, len) || listen(m->listen_fd, 1024) ||
        getsockname(m->listen_fd, (struct sockaddr *)&got, &n)) {
        close(m->listen_fd);
        close(m->wake_fd);
        free(m);
        return NULL;
    }
    m->port = ntohs(got.sin6_port);
    if (pthread_create(&m->thread, NULL, serve, m))
        die("test server: no thread");
    return m;
}

struct mini *mini_start(mini_fn fn, void *ctx)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct mini *m = start((struct sockaddr *)&a, sizeof(a), fn, ctx);

    if (!m)
        die("test server: %s", strerror(errno));
    return m;
}

struct mini *mini_start6(mini_fn fn, void *ctx)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    return start((struct sockaddr *)&a, sizeof(a), fn, ctx);
}

void mini_stop(struct mini *m)
{
    eventfd_write(m->wake_fd, 1);
    pthread_join(m->thread, NULL);
    pthread_mutex_destroy(&m->lock);
    close(m->listen_fd);
    close(m->wake_fd);
    ARR_RELEASE(&m->conns);
    free(m);
}

int mini_port(const struct mini *m)
{
    return m->port;
}

int mini_requests(struct mini *m)
{
    return atomic_load(&m->requests);
}

int mini_accepted(struct mini *m)
{
    return atomic_load(&m->accepted);
}

int mini_open(struct mini *m)
{
    return atomic_load(&m->open);
}

void mini_sync(struct mini *m)
{
    pthread_mutex_lock(&m->lock);
    pthread_mutex_unlock(&m->lock);
}

char *mini_url(const struct mini *m, const char *path)
{
    return xasprintf("http://127.0.0.1:%d%s", m->port, path);
}
