/* Floor of the local provider: libevent's own HTTP server and nothing else. GET
 * answers 204; POST answers with a stream of one chunk that stays open until the
 * client goes. Prints its port. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

static void on_close(struct evhttp_connection *c, void *arg)
{
    struct evhttp_request *req = arg;
    evhttp_connection_set_closecb(c, NULL, NULL);
    evhttp_send_reply_end(req);
}

static void on_request(struct evhttp_request *req, void *arg)
{
    (void)arg;
    if (evhttp_request_get_command(req) == EVHTTP_REQ_GET) {
        evhttp_send_reply(req, 204, NULL, NULL);
        return;
    }
    struct evbuffer *b = evbuffer_new();
    evbuffer_add_printf(b, "start");
    evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_close, req);
    evhttp_send_reply_start(req, 200, NULL);
    evhttp_send_reply_chunk(req, b);
    evbuffer_free(b);
}

int main(void)
{
    struct rlimit rl;
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
        rl.rlim_cur = rl.rlim_max;
        setrlimit(RLIMIT_NOFILE, &rl);
    }
    struct event_base *base = event_base_new();
    struct evhttp *http = base ? evhttp_new(base) : NULL;
    struct evhttp_bound_socket *s =
        http ? evhttp_bind_socket_with_handle(http, "127.0.0.1", 0) : NULL;
    struct sockaddr_in sa;
    socklen_t len = sizeof(sa);
    if (!s || getsockname(evhttp_bound_socket_get_fd(s), (struct sockaddr *)&sa, &len) != 0)
        return 1;
    evhttp_set_gencb(http, on_request, NULL);
    printf("%d\n", ntohs(sa.sin_port));
    fflush(stdout);
    event_base_dispatch(base);
    return 0;
}
