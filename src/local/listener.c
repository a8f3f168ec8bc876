/* The listening sockets of the provider and of the init (see the header). */
#include <cct/local/listener.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>
#include <event2/listener.h>

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 512
#define AGAIN_US 100000 /* pause when no descriptor is left */

struct listener {
    struct evconnlistener *ev;
    struct event *again;
    listener_fn fn;
    void *arg;
};

static void on_accept(struct evconnlistener *ev, evutil_socket_t fd, struct sockaddr *sa,
                      int len, void *arg)
{
    struct listener *l = arg;
    (void)ev;
    (void)sa;
    (void)len;
    l->fn(l->arg, fd);
}

/* Out of descriptors: accepting again at once would only spin. */
static void on_error(struct evconnlistener *ev, void *arg)
{
    struct timeval tv = {0, AGAIN_US};
    evconnlistener_disable(ev);
    event_add(((struct listener *)arg)->again, &tv);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    evconnlistener_enable(((struct listener *)arg)->ev);
}

struct listener *listener_new(struct event_base *base, int take_fd, listener_fn fn, void *arg)
{
    struct listener *l = xcalloc(1, sizeof(*l));
    l->fn = fn;
    l->arg = arg;
    evutil_make_socket_nonblocking(take_fd);
    evutil_make_socket_closeonexec(take_fd);
    l->ev = evconnlistener_new(base, on_accept, l,
                               LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, take_fd);
    l->again = evtimer_new(base, on_again, l);
    if (!l->ev || !l->again)
        die("libevent is out of memory");
    evconnlistener_set_error_cb(l->ev, on_error);
    return l;
}

struct listener *listener_new_loopback(struct event_base *base, listener_fn fn, void *arg,
                                       unsigned *port, struct err *e)
{
    struct sockaddr_in sa = {.sin_family = AF_INET};
    socklen_t len = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, 0, "cannot make a socket"), NULL;
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&sa, len) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &len) != 0) {
        err_sys(e, 0, "cannot listen on 127.0.0.1");
        close(fd);
        return NULL;
    }
    *port = ntohs(sa.sin_port);
    return listener_new(base, fd, fn, arg);
}

void listener_free(struct listener *l)
{
    if (!l)
        return;
    evconnlistener_free(l->ev);
    event_free(l->again);
    free(l);
}
