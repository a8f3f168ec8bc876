/* Packing a file for a reader: a piece each turn of the loop, and none while the
 * reader is behind, so neither memory nor the other streams suffer. */
#include "envd_gzip.h"
#include "envd.h"
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>

#define PIECE (64u << 10)
#define UNSENT_MAX (256u << 10)

struct packing {
    struct http_req *req;
    struct event *again;
    int fd;
    int64_t left;
    z_stream z;
};

static void packing_free(struct packing *p)
{
    event_free(p->again);
    deflateEnd(&p->z);
    close(p->fd);
    free(p);
}

static void on_close(struct http_req *req, void *arg)
{
    packing_free(arg);
    http_stream_end(req);
}

/* What the packer gives for these bytes; `flush` Z_FINISH for the last ones. */
static void send_packed(struct packing *p, unsigned char *in, size_t len, int flush)
{
    unsigned char out[PIECE];
    p->z.next_in = in;
    p->z.avail_in = (uInt)len;
    do {
        p->z.next_out = out;
        p->z.avail_out = sizeof(out);
        deflate(&p->z, flush);
        struct iovec piece = {out, sizeof(out) - p->z.avail_out};
        if (piece.iov_len > 0)
            http_stream_send(p->req, &piece, 1);
    } while (p->z.avail_out == 0);
}

static void on_turn(evutil_socket_t unused, short what, void *arg)
{
    struct packing *p = arg;
    unsigned char in[PIECE];
    size_t want = p->left < (int64_t)sizeof(in) ? (size_t)p->left : sizeof(in);
    ssize_t n;
    (void)unused;
    (void)what;
    do
        n = want > 0 ? read(p->fd, in, want) : 0;
    while (n < 0 && errno == EINTR);
    struct http_req *req = p->req;
    if (n <= 0 && want > 0) { /* shorter than it was: no proper end is sent */
        packing_free(p);
        http_stream_cut(req);
        return;
    }
    p->left -= n;
    send_packed(p, in, (size_t)n, p->left == 0 ? Z_FINISH : Z_NO_FLUSH);
    if (p->left == 0) {
        packing_free(p);
        http_stream_end(req);
    } else if (http_stream_unsent(req) < UNSENT_MAX) {
        event_active(p->again, EV_TIMEOUT, 0);
    }
}

static void on_drained(struct http_req *req, void *arg)
{
    struct packing *p = arg;
    (void)req;
    event_active(p->again, EV_TIMEOUT, 0);
}

void envd_gzip_reply(struct envd *e, struct http_req *req, const char *type, int take_fd,
                     int64_t size)
{
    struct packing *p = xcalloc(1, sizeof(*p));
    p->req = req;
    p->fd = take_fd;
    p->left = size;
    p->again = event_new(e->base, -1, 0, on_turn, p);
    if (deflateInit2(&p->z, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        packing_free(p);
        envd_reply_error(req, 500, "no memory for packing the file");
        return;
    }
    http_reply_header(req, "Content-Encoding", "gzip");
    http_req_watch(req, on_close, on_drained, p);
    http_stream_begin(req, 200, type);
    event_active(p->again, EV_TIMEOUT, 0);
}
