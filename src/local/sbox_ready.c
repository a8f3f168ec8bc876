/* A template's start command, and waiting until its ready command says yes. A
 * cloud sandbox wakes up with the start command running; here it is started
 * anew, so that whoever made the sandbox finds the same. */
#include "sbox_priv.h"
#include <cct/local/initexec.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>

#include <stdlib.h>
#include <string.h>

#define READY_MS 60000 /* until then the ready command must have said yes */
#define POLL_MS 20     /* doubled up to ... */
#define POLL_MAX_MS 250
#define TAIL_MAX 400 /* of what a failed command printed */

struct sbox_ready {
    struct sbox *b;
    struct tpl_image image; /* commands and settings only; owned */
    struct initexec *start, *poll;
    struct event *timer;
    struct buf tail; /* last output of the start command */
    int64_t until;   /* monotonic */
    int wait_ms;     /* before the ready command is asked again */
    sbox_done done;
    void *arg;
};

static void destroy(struct sbox_ready *r)
{
    initexec_cancel(r->start); /* a process that runs goes on */
    initexec_cancel(r->poll);
    event_free(r->timer);
    buf_release(&r->tail);
    json_free(r->image.env);
    free(r->image.workdir);
    free(r->image.user);
    free(r->image.start_cmd);
    free(r->image.ready_cmd);
    free(r);
}

/* Tell the result; `r` is gone. */
static void finish(struct sbox_ready *r, const struct err *e)
{
    struct sbox *b = r->b;
    sbox_done done = r->done;
    void *arg = r->arg;
    b->ready = NULL;
    destroy(r);
    done(arg, e ? NULL : b, e);
}

void sbox_ready_stop(struct sbox *b, const struct err *e)
{
    if (b->ready)
        finish(b->ready, e);
}

static struct initexec *run(struct sbox_ready *r, const char *command, struct initexec_spec s,
                            initexec_out out, initexec_end end)
{
    s.command = command;
    s.user = r->image.user;
    s.cwd = r->image.workdir;
    s.env = r->image.env;
    return initexec_start(r->b->p->base, r->b->rec.sock, r->b->rec.token, &s, out, end, r);
}

/* --- ready ---------------------------------------------------------------------- */

static void arm(struct sbox_ready *r, int ms)
{
    struct timeval tv = {ms / 1000, ms % 1000 * 1000};
    event_add(r->timer, &tv);
}

static void on_poll_end(void *arg, int code, const char *why)
{
    struct sbox_ready *r = arg;
    r->poll = NULL;
    if (code == 0) {
        finish(r, NULL);
        return;
    }
    if (clock_mono_ms() < r->until) {
        arm(r, r->wait_ms);
        r->wait_ms = r->wait_ms * 2 < POLL_MAX_MS ? r->wait_ms * 2 : POLL_MAX_MS;
        return;
    }
    struct err e = {0};
    if (why)
        err_set(&e, ERR_TIMEOUT, "the ready command did not succeed within %d s: %s",
                READY_MS / 1000, why);
    else
        err_set(
            &e, ERR_TIMEOUT,
            "the ready command did not succeed within %d s; it last ended with exit code %d",
            READY_MS / 1000, code);
    finish(r, &e);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct sbox_ready *r = arg;
    int64_t left = r->until - clock_mono_ms();
    if (!r->image.ready_cmd) {
        finish(r, NULL);
        return;
    }
    struct initexec_spec s = {.timeout_ms = left > 1 ? left : 1};
    r->poll = run(r, r->image.ready_cmd, s, NULL, on_poll_end);
}

/* --- start ---------------------------------------------------------------------- */

static void on_start_out(void *arg, enum initexec_stream s, const char *p, size_t len)
{
    struct sbox_ready *r = arg;
    size_t keep = len < TAIL_MAX ? len : TAIL_MAX;
    (void)s;
    buf_add(&r->tail, p + len - keep, keep);
    if (r->tail.len > TAIL_MAX)
        buf_consume(&r->tail, r->tail.len - TAIL_MAX);
}

static void on_begun(void *arg, int pid)
{
    (void)pid;
    arm(arg, 0);
}

/* A start command may end well, having left a service behind. */
static void on_start_end(void *arg, int code, const char *why)
{
    struct sbox_ready *r = arg;
    struct err e = {0};
    r->start = NULL;
    if (code == 0)
        return;
    if (why)
        err_set(&e, ERR_SERVER, "the start command did not run: %s", why);
    else
        err_set(&e, ERR_SERVER, "the start command ended with exit code %d: %s", code,
                r->tail.len ? str_trim(r->tail.p) : "it printed nothing");
    finish(r, &e);
}

static char *copy(const char *s)
{
    return s && *s ? xstrdup(s) : NULL;
}

void sbox_run_ready(struct sbox *b, const struct tpl_image *image, sbox_done done, void *arg)
{
    struct sbox_ready *r = xcalloc(1, sizeof(*r));
    r->b = b;
    r->done = done;
    r->arg = arg;
    r->until = clock_mono_ms() + READY_MS;
    r->wait_ms = POLL_MS;
    buf_init(&r->tail, 0);
    r->image.workdir = copy(image->workdir);
    r->image.user = copy(image->user);
    r->image.start_cmd = copy(image->start_cmd);
    r->image.ready_cmd = copy(image->ready_cmd);
    r->image.env = json_copy(image->env);
    r->timer = evtimer_new(b->p->base, on_timer, r);
    if (!r->timer)
        die("libevent is out of memory");
    b->ready = r;
    struct initexec_spec s = {.tag = "start", .begun = on_begun};
    if (r->image.start_cmd)
        r->start = run(r, r->image.start_cmd, s, on_start_out, on_start_end);
    else
        arm(r, 0);
}
