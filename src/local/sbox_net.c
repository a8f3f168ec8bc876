/* A new sandbox's wait for its private network. */
#include "sbox_priv.h"
#include <cct/local/privnet.h>
#include <cct/util/log.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sbox_net {
    struct sbox *b;
    int fd;
    struct event *said;
    char text[400];
    size_t len;
};

void sbox_net_free(struct sbox *b)
{
    if (!b->net)
        return;
    event_free(b->net->said);
    close(b->net->fd);
    free(b->net);
    b->net = NULL;
}

static void on_said(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct sbox_net *n = arg;
    struct sbox *b = n->b;
    char text[sizeof(n->text)];
    ssize_t got = read(fd, n->text + n->len, sizeof(n->text) - 1 - n->len);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0) {
        n->len += (size_t)got;
        return;
    }
    memcpy(text, n->text, sizeof(text));
    sbox_net_free(b);
    if (strcmp(text, "ok") == 0)
        sbox_net_is_up(b, NULL);
    else
        sbox_net_is_up(b, *text ? text : "its process ended at once");
}

void sbox_net_watch(struct sbox *b, int fd)
{
    struct sbox_net *n = xcalloc(1, sizeof(*n));
    n->b = b;
    n->fd = fd;
    n->said = event_new(b->p->base, fd, EV_READ | EV_PERSIST, on_said, n);
    if (!n->said)
        die("libevent is out of memory");
    event_add(n->said, NULL);
    b->net = n;
}
