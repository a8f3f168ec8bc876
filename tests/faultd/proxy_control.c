/* What the chaos proxy is told, and its seeded schedule; see proxy.h. */
#include "proxy.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WORDS = 5, LINE = 512 };

struct client {
    struct watch w;
    struct proxy *proxy;
};

static void heal(struct proxy *p)
{
    p->down_until = p->delay_ms = p->rate = p->steps = 0;
    p->limit[TO] = p->limit[FROM] = -1;
    loop_timer_stop(&p->step);
    p->blocked_until[TO] = 0;
    proxy_block(p, FROM, 0);
}

/* ---- the schedule ---- */

static int64_t below(struct proxy *p, int64_t n)
{
    return (int64_t)(text_random(&p->seed) % (uint64_t)n);
}

static void one_fault(struct proxy *p)
{
    int64_t ms = 1 + below(p, p->step_ms);
    int lane = (int)below(p, 2);

    p->delay_ms = p->rate = 0;
    p->limit[TO] = p->limit[FROM] = -1;
    switch (below(p, 9)) {
    case 0:
        proxy_cut(p, false);
        break;
    case 1:
        proxy_cut(p, true);
        break;
    case 2:
        proxy_cut(p, false);
        p->down_until = loop_now() + ms;
        break;
    case 3:
        proxy_block(p, TO, ms);
        proxy_block(p, FROM, ms);
        break;
    case 4:
        proxy_block(p, lane, ms);
        break;
    case 5:
        p->delay_ms = ms;
        break;
    case 6:
        p->rate = 200 + below(p, 20000);
        break;
    default: /* the likeliest: broken in the middle of something */
        p->limit[lane] = below(p, 8000);
        p->how[lane] = (enum ending)below(p, 2);
        proxy_cut(p, below(p, 2));
        break;
    }
}

static void on_step(struct timer *t)
{
    struct proxy *p = OWNER_OF(t, struct proxy, step);

    if (--p->steps < 0) {
        heal(p);
        return;
    }
    one_fault(p);
    loop_timer(t, 1 + below(p, p->step_ms));
}

/* ---- commands ---- */

static bool number(const char *word, int64_t max, int64_t *n)
{
    return word && str_to_i64(word, 0, max, n);
}

/* Bits of the lanes that a word names. */
static int lanes(const char *word)
{
    return str_eq(word, "to")     ? 1 << TO
           : str_eq(word, "from") ? 1 << FROM
           : str_eq(word, "both") ? 3
                                  : 0;
}

static bool limit(struct proxy *p, char **w)
{
    int which = lanes(w[1]);
    int64_t n;
    enum ending how = str_eq(w[3], "rst")     ? END_RST
                      : str_eq(w[3], "stall") ? END_SILENCE
                                              : END_FIN;

    if (!which || !number(w[2], INT64_MAX, &n))
        return false;
    for (int d = TO; d <= FROM; d++)
        if (which & 1 << d) {
            p->limit[d] = n;
            p->how[d] = how;
        }
    return true;
}

static bool stall(struct proxy *p, int which, const char *word)
{
    int64_t ms;

    if (!which || !number(word, 3600000, &ms))
        return false;
    for (int d = TO; d <= FROM; d++)
        if (which & 1 << d)
            proxy_block(p, d, ms);
    return true;
}

static bool schedule(struct proxy *p, char **w)
{
    int64_t seed, ms, n;

    if (!number(w[1], INT64_MAX, &seed) || !number(w[2], 3600000, &ms) || ms < 1 ||
        !number(w[3], 1000000, &n))
        return false;
    p->seed = (uint64_t)seed;
    p->step_ms = ms;
    p->steps = n;
    p->step.fire = on_step;
    loop_timer(&p->step, 1 + below(p, ms));
    return true;
}

/* False when there is no such command. */
static bool command(struct proxy *p, char **w)
{
    int64_t n = 0;

    if (str_eq(w[0], "cut") || str_eq(w[0], "fin")) {
        proxy_cut(p, str_eq(w[0], "fin"));
    } else if (str_eq(w[0], "down") && number(w[1], 3600000, &n)) {
        proxy_cut(p, false);
        p->down_until = loop_now() + n;
    } else if (str_eq(w[0], "hole")) {
        return stall(p, 3, w[1]);
    } else if (str_eq(w[0], "stall")) {
        return stall(p, lanes(w[1]), w[2]);
    } else if (str_eq(w[0], "delay") && number(w[1], 3600000, &n)) {
        p->delay_ms = n;
    } else if (str_eq(w[0], "slow") && number(w[1], INT64_MAX, &n)) {
        p->rate = n;
    } else if (str_eq(w[0], "limit")) {
        return limit(p, w);
    } else if (str_eq(w[0], "schedule")) {
        return schedule(p, w);
    } else if (str_eq(w[0], "heal")) {
        heal(p);
    } else if (str_eq(w[0], "quit")) {
        loop_stop();
    } else {
        return false;
    }
    return true;
}

static bool answer(struct proxy *p, int fd, char *line)
{
    char text[160] = "ok\n", *w[WORDS + 1] = {NULL}, *save = NULL;
    int n = 0;

    for (char *at = strtok_r(line, " ", &save); at && n < WORDS;
         at = strtok_r(NULL, " ", &save))
        w[n++] = at;
    if (str_eq(w[0], "stat"))
        snprintf(text, sizeof(text),
                 "conns %zu bytes %llu total %llu cuts %llu schedule %lld\n", p->links.n,
                 (unsigned long long)p->bytes, (unsigned long long)p->total,
                 (unsigned long long)p->cuts, (long long)(p->steps > 0 ? p->steps : 0));
    else if (!n || !command(p, w))
        snprintf(text, sizeof(text), "unknown command\n");
    return send(fd, text, strlen(text), MSG_NOSIGNAL) > 0;
}

/* Lines come whole from test scripts; a long or cut one is an unknown command. */
static void on_client(struct watch *w, uint32_t events)
{
    struct client *c = OWNER_OF(w, struct client, w);
    char text[LINE];
    ssize_t n = recv(w->fd, text, sizeof(text) - 1, 0);
    bool ok = n > 0;

    (void)events;
    if (n < 0 && errno == EAGAIN)
        return;
    text[n > 0 ? n : 0] = '\0';
    for (char *at = text, *eol; ok && *at; at = eol) {
        eol = at + strcspn(at, "\n");
        if (*eol)
            *eol++ = '\0';
        if (*str_trim(at))
            ok = answer(c->proxy, w->fd, str_trim(at));
    }
    if (ok)
        return;
    loop_unwatch(w);
    close(w->fd);
    loop_bury(c);
}

static void on_control(struct watch *w, uint32_t events)
{
    int fd;

    (void)events;
    while ((fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct client *c = xcalloc(1, sizeof(*c));
        c->w = (struct watch){.fd = fd, .ready = on_client};
        c->proxy = OWNER_OF(w, struct proxy, control);
        loop_watch(&c->w, EPOLLIN);
    }
}

void control_open(struct proxy *p, const char *where)
{
    struct sockaddr_un u = {.sun_family = AF_UNIX};
    int64_t port = 0;

    p->control.ready = on_control;
    if (where[0] != '/') {
        if (!str_to_i64(where, 1, 65535, &port))
            die("faultd proxy: --control needs a port or the path of a socket");
        loop_listen(&p->control, AF_INET, (int)port);
        return;
    }
    str_copy(u.sun_path, sizeof(u.sun_path), where);
    unlink(where);
    p->control.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(p->control.fd, (struct sockaddr *)&u, sizeof(u)) || listen(p->control.fd, 16))
        die("faultd proxy: cannot listen on %s: %s", where, strerror(errno));
    loop_watch(&p->control, EPOLLIN);
}
