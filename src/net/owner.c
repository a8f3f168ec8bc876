/* Ports of this machine and the processes they are meant for. A port is free as soon as its
 * process has ended, and any program here may take it next: keys are not for that one. */
#include "net_priv.h"
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct owner *owner_of(struct net *n, int port)
{
    for (size_t i = 0; i < n->owners.n; i++)
        if (n->owners.v[i].port == port)
            return &n->owners.v[i];
    return NULL;
}

void net_port_owner(struct net *n, int port, int take_pidfd)
{
    struct owner *o = owner_of(n, port);

    THREAD_ASSERT(THREAD_NET);
    if (o)
        close(o->pidfd);
    else
        o = ARR_PUSH(&n->owners);
    *o = (struct owner){port, take_pidfd};
}

/* Of a URL that was checked; 0 when it names none. */
static int port_of(const char *url)
{
    const char *at = strstr(url, "://"), *colon;
    char digits[8] = "";
    int64_t port = 0;
    size_t n;

    at = at ? at + 3 : url;
    n = strcspn(at, "/?#");
    colon = memrchr(at, ':', n);
    if (colon && (n -= (size_t)(colon + 1 - at)) < sizeof(digits))
        memcpy(digits, colon + 1, n);
    return str_to_i64(digits, 1, 65535, &port) ? (int)port : 0;
}

int owner_check(struct xfer *x, struct err *e)
{
    const struct owner *o = x->loopback ? owner_of(x->net, port_of(x->req->url)) : NULL;
    struct pollfd p = {o ? o->pidfd : -1, POLLIN, 0};

    if (!o || poll(&p, 1, 0) == 0)
        return 0;
    return err_set(e, ERR_NETWORK, "cannot reach port %d of this machine: the process that it was "
                   "of has ended", o->port);
}

void owners_free(struct net *n)
{
    for (size_t i = 0; i < n->owners.n; i++)
        close(n->owners.v[i].pidfd);
    ARR_RELEASE(&n->owners);
}
