/* Pipes and ptys of one process: output to its streams, input from a bounded
 * queue. Nothing here blocks. */
#include "envd_process.h"
#include <cct/util/str.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const char *out_name(const struct proc *p, int i)
{
    return p->pty ? "pty" : i == PROC_OUT ? "stdout" : "stderr";
}

static void out_send(struct proc *p, int i, const char *data, size_t len)
{
    if (p->subs == NULL)
        return; /* nobody listens: dropped, there is no replay */
    struct buf b = BUF_INIT;
    char *b64 = b64_encode(data, len);
    buf_adds(&b, "{\"event\":{\"data\":{\"");
    buf_adds(&b, out_name(p, i));
    buf_adds(&b, "\":\"");
    buf_adds(&b, b64);
    buf_adds(&b, "\"}}}");
    free(b64);
    sub_send_all(p, b.p, b.len);
    buf_release(&b);
}

static void out_close(struct proc *p, int i)
{
    if (p->ev_out[i] != NULL)
        event_free(p->ev_out[i]);
    p->ev_out[i] = NULL;
    if (p->fd_out[i] >= 0 && p->fd_out[i] != p->fd_in)
        close(p->fd_out[i]);
    p->fd_out[i] = -1;
}

/* One read; false at the end of the file (a pty's is EIO) or when empty. */
static bool out_read(struct proc *p, int i, bool *eof)
{
    char data[ENVD_PIPE_CHUNK];
    size_t max = p->pty ? ENVD_PTY_CHUNK : ENVD_PIPE_CHUNK;
    ssize_t n;
    do
        n = read(p->fd_out[i], data, max);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        out_send(p, i, data, (size_t)n);
        return true;
    }
    *eof = n == 0 || errno != EAGAIN;
    return false;
}

static void on_output(evutil_socket_t fd, short what, void *arg)
{
    struct proc *p = arg;
    bool eof = false;
    int i = fd == p->fd_out[PROC_OUT] ? PROC_OUT : PROC_ERR;
    (void)what;
    if (out_read(p, i, &eof) || !eof)
        return;
    out_close(p, i);
    if (p->fd_out[PROC_OUT] < 0 && p->fd_out[PROC_ERR] < 0)
        proc_output_done(p);
}

void proc_io_final(struct proc *p)
{
    for (int i = 0; i < PROC_NOUT; i++) {
        bool eof = false;
        size_t left = PROC_FINAL_MAX / ENVD_PTY_CHUNK;
        while (p->fd_out[i] >= 0 && left-- > 0 && out_read(p, i, &eof))
            ;
    }
}

void proc_io_update(struct proc *p)
{
    for (int i = 0; i < PROC_NOUT; i++) {
        if (p->ev_out[i] == NULL)
            continue;
        if (p->nblocked > 0)
            event_del(p->ev_out[i]);
        else
            event_add(p->ev_out[i], NULL);
    }
}

/* --- input ---------------------------------------------------------------- */

static void in_close(struct proc *p)
{
    if (p->ev_in != NULL)
        event_free(p->ev_in);
    p->ev_in = NULL;
    /* a pty's master is also where its output comes from */
    if (p->fd_in >= 0 && p->fd_in != p->fd_out[PROC_OUT])
        close(p->fd_in);
    p->fd_in = -1;
    p->stdin_open = false;
    buf_release(&p->inq);
    proc_feeds_go_on(p);
}

static void in_flush(struct proc *p)
{
    while (p->inq.len > 0) {
        ssize_t n = write(p->fd_in, p->inq.p, p->inq.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            event_add(p->ev_in, NULL);
            return;
        }
        if (n < 0) { /* nobody reads it any more */
            in_close(p);
            return;
        }
        buf_consume(&p->inq, (size_t)n);
    }
    if (p->stdin_closing)
        in_close(p);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct proc *p = arg;
    (void)fd;
    (void)what;
    in_flush(p);
    if (p->inq.len == 0)
        proc_feeds_go_on(p);
}

bool proc_input(struct proc *p, const void *data, size_t len)
{
    if (buf_add(&p->inq, data, len) != 0)
        return false;
    in_flush(p);
    return true;
}

void proc_input_end(struct proc *p)
{
    p->stdin_closing = true;
    in_flush(p);
}

void proc_io_start(struct proc *p)
{
    buf_init(&p->inq, ENVD_STDIN_MAX);
    for (int i = 0; i < PROC_NOUT; i++) {
        if (p->fd_out[i] < 0)
            continue;
        evutil_make_socket_nonblocking(p->fd_out[i]);
        p->ev_out[i] = event_new(p->e->base, p->fd_out[i], EV_READ | EV_PERSIST, on_output, p);
        event_add(p->ev_out[i], NULL);
    }
    if (p->fd_in >= 0) {
        evutil_make_socket_nonblocking(p->fd_in);
        p->ev_in = event_new(p->e->base, p->fd_in, EV_WRITE, on_writable, p);
    }
}

void proc_io_close(struct proc *p)
{
    for (int i = 0; i < PROC_NOUT; i++)
        out_close(p, i);
    in_close(p);
}
