/* A stream from a descriptor, its events to a file as JSON lines. */
#include <cct/agent/decode.h>

#include <cct/util/json.h>
#include <errno.h>
#include <unistd.h>

struct sink {
    FILE *out;
    struct buf b, shown;
};

static void print_event(void *ctx, const struct agent_event *ev)
{
    struct sink *s = ctx;

    buf_clear(&s->b);
    agent_event_to_json(ev, &s->b);
    buf_addc(&s->b, '\n');
    buf_clear(&s->shown);
    json_for_terminal(s->b.p, s->b.len, &s->shown);
    fwrite(s->shown.p, 1, s->shown.len, s->out);
}

int agent_decode_fd(const struct agent_adapter *a, int fd, int exit_code, int sig,
                    const char *stderr_tail, FILE *out, struct err *e)
{
    struct sink s = {out, BUF_INIT, BUF_INIT};
    struct agent_dec *d = agent_dec_new(a, 0, print_event, &s);
    char block[64 << 10];
    ssize_t n;
    int rc = 0;

    while ((n = read(fd, block, sizeof(block))) != 0) {
        if (n > 0)
            agent_dec_feed(d, block, (size_t)n);
        else if (errno != EINTR)
            break;
    }
    if (n < 0)
        rc = err_sys(e, ERR_IO, "the stream cannot be read");
    else if (exit_code != AGENT_NO_EXIT)
        agent_dec_exit(d, exit_code, sig, stderr_tail);
    if (rc == 0 && (fflush(out) != 0 || ferror(out)))
        rc = err_sys(e, ERR_IO, "the events cannot be written");
    agent_dec_free(d);
    buf_release(&s.b);
    buf_release(&s.shown);
    return rc;
}
