/* The sandbox of a step: started, used for one command, ended. Whoever awaits its
 * start or end holds a ticket, since the build may be called off meanwhile. */
#include "tpl_priv.h"
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>

#include <stdlib.h>
#include <string.h>

#define BOX_S 7200 /* longer than any step may take */

struct tpl_ticket {
    struct tpl_job *j; /* NULL: nobody waits any more */
    void (*fn)(struct tpl_job *j);
};

static struct tpl_ticket *ticket_new(struct tpl_job *j, void (*fn)(struct tpl_job *j))
{
    struct tpl_ticket *k = xcalloc(1, sizeof(*k));
    k->j = j;
    k->fn = fn;
    j->ticket = k;
    return k;
}

/* --- start and end --------------------------------------------------------------- */

static void on_started(void *arg, struct sbox *b, const struct err *e)
{
    struct tpl_ticket *k = arg;
    struct tpl_job *j = k->j;
    void (*fn)(struct tpl_job * j) = k->fn;
    free(k);
    if (!j) {
        if (b)
            sbox_kill(b, NULL, NULL);
        return;
    }
    j->ticket = NULL;
    if (!b) {
        tpl_job_fail(j, "the sandbox of this step did not start: %s", e->text);
        return;
    }
    str_copy(j->box, sizeof(j->box), b->rec.id);
    tpl_job_next(j, fn, 0);
}

void tpl_box_start(struct tpl_job *j, const char *layer, void (*fn)(struct tpl_job *j))
{
    struct tpl_image image = j->b->image; /* its strings stay the build's */
    image.env = NULL;
    image.workdir = image.user = image.start_cmd = image.ready_cmd = NULL;
    struct sbox_new n = {.image = &image,
                         .build_layer = layer,
                         .hidden = true,
                         .template_id = j->t->id,
                         .alias = j->t->name,
                         .timeout_s = BOX_S,
                         .internet = true};
    struct err e = {0};
    struct tpl_ticket *k = ticket_new(j, fn);
    if (sbox_create(j->s->p, &n, on_started, k, &e) != 0) {
        j->ticket = NULL;
        free(k);
        tpl_job_fail(j, "the sandbox of this step did not start: %s", e.text);
    }
}

static void on_gone(void *arg, struct sbox *b, const struct err *e)
{
    struct tpl_ticket *k = arg;
    struct tpl_job *j = k->j;
    void (*fn)(struct tpl_job * j) = k->fn;
    (void)b;
    free(k);
    if (!j)
        return;
    j->ticket = NULL;
    if (e)
        tpl_job_fail(j, "%s", e->text);
    else
        tpl_job_next(j, fn, 0);
}

static struct sbox *box_of(const struct tpl_job *j)
{
    struct sbox *b = j->box[0] ? map_get(j->s->p->boxes, j->box) : NULL;
    return b && b->phase != SBOX_KILLING ? b : NULL;
}

void tpl_box_end(struct tpl_job *j, void (*fn)(struct tpl_job *j))
{
    struct sbox *b = box_of(j);
    j->box[0] = '\0';
    initexec_cancel(j->x);
    initexec_cancel(j->probe);
    j->x = j->probe = NULL;
    event_del(j->quiet);
    if (b)
        sbox_kill(b, on_gone, ticket_new(j, fn));
    else
        tpl_job_fail(j, "the sandbox of this step ended by itself");
}

void tpl_box_drop(struct tpl_job *j)
{
    struct sbox *b = box_of(j);
    initexec_cancel(j->x);
    initexec_cancel(j->probe);
    j->x = j->probe = NULL;
    if (j->ticket)
        j->ticket->j = NULL;
    j->ticket = NULL;
    j->box[0] = '\0';
    if (b)
        sbox_kill(b, NULL, NULL);
}

/* --- output ---------------------------------------------------------------------- */

static void say_line(struct tpl_job *j, int stream, const char *p, size_t len)
{
    static const char *const names[] = {"stdout", "stderr"};
    struct buf b = BUF_INIT;
    while (len > 0 && p[len - 1] == '\r')
        len--;
    /* of a progress bar that was painted over, the last state */
    const char *cr = len > 0 ? memrchr(p, '\r', len) : NULL;
    if (cr) {
        len -= (size_t)(cr + 1 - p);
        p = cr + 1;
    }
    if (stream == 1 && len > 0) {
        size_t n = len < sizeof(j->last_line) - 1 ? len : sizeof(j->last_line) - 1;
        memcpy(j->last_line, p, n);
        j->last_line[n] = '\0';
    }
    buf_addf(&b, "%s [%s]: ", j->prefix, names[stream]);
    buf_add(&b, p, len);
    tpl_log_add(tpl_job_log(j), stream ? TPL_WARN : TPL_INFO, j->step, b.p, b.len);
    buf_release(&b);
}

static void still_there(struct tpl_job *j)
{
    struct timeval tv = {TPL_QUIET_S, 0};
    event_add(j->quiet, &tv);
}

static void on_output(void *arg, enum initexec_stream s, const char *p, size_t len)
{
    struct tpl_job *j = arg;
    int stream = s == INITEXEC_STDERR;
    struct buf *line = &j->line[stream];
    still_there(j);
    if (tpl_job_log(j)->full) { /* only the last words can still be of interest */
        size_t keep = stream == 0 ? 0 : len < 4096 ? len : 4096;
        p += len - keep;
        len = keep;
    }
    while (len > 0) {
        const char *nl = memchr(p, '\n', len);
        size_t n = nl ? (size_t)(nl - p) : len, room = TPL_LINE_MAX - line->len;
        bool cut = n > room;
        n = cut ? room : n;
        buf_add(line, p, n);
        if (nl || cut) {
            say_line(j, stream, buf_str(line), line->len);
            buf_clear(line);
        }
        n += nl && !cut;
        p += n;
        len -= n;
    }
}

void tpl_box_flush(struct tpl_job *j)
{
    event_del(j->quiet);
    for (int i = 0; i < 2; i++) {
        if (j->line[i].len > 0)
            say_line(j, i, j->line[i].p, j->line[i].len);
        buf_clear(&j->line[i]);
    }
}

bool tpl_box_run(struct tpl_job *j, const struct initexec_spec *s, struct initexec **x,
                 initexec_end end)
{
    struct sbox *b = box_of(j);
    if (!b)
        return false;
    bool is_probe = x == &j->probe;
    *x = initexec_start(j->s->p->base, b->rec.sock, b->rec.token, s,
                        is_probe ? NULL : on_output, end, j);
    if (!is_probe)
        still_there(j);
    return true;
}
