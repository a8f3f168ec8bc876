/* Connections to ports that programs of the sandbox opened. The init makes them,
 * from inside, and hands them to the provider: the bytes do not pass here. */
#include "envd.h"
#include <cct/local/http_srv.h>
#include <cct/local/ports.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The byte in front of the answer that carries the descriptor. */
static int send_fd(int conn, int fd)
{
    char byte = '\n';
    struct iovec io = {&byte, 1};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr m = {.msg_iov = &io,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof(control.room)};
    memset(&control, 0, sizeof(control));
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(int));
    return sendmsg(conn, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -1;
}

static bool is_ours(void *arg, pid_t pid)
{
    return envd_tree_has(arg, pid);
}

void envd_port(struct envd *e, struct http_req *req)
{
    struct err err = {0};
    struct cJSON *j = json_parse(buf_str(&req->body), req->body.len, &err);
    int64_t port = json_i64(j, "port", 0);
    json_free(j);
    if (port < 1 || port > 65535) {
        envd_reply_error(req, 400, "port is no number from 1 to 65535");
        return;
    }
    int fd = ports_dial((unsigned)port, is_ours, e);
    if (fd < 0) {
        envd_reply_error(req, errno == ECONNREFUSED ? 404 : 500, "no connection to port %d: %s",
                         (int)port, strerror(errno));
        return;
    }
    if (send_fd(http_req_fd(req), fd) == 0)
        envd_reply_empty(req, 204);
    else
        envd_reply_error(req, 500, "the connection cannot be handed over: %s", strerror(errno));
    close(fd);
}
