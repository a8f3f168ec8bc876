/* The thread of a recording, and what main holds of what it sent. Orders go one way, pieces the
 * other; a piece says of which pass through the file it is, for main may have gone back since. */
#include "reader.h"

#include <cct/agent.h>
#include <cct/util/fs.h>
#include <cct/util/log.h>
#include <cct/util/mq.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes that wait to be taken; what its thread gets for its end, unless the file hangs. */
enum { AHEAD_BYTES = 1 << 20, ORDERS_BYTES = 1 << 16, END_MS = 500 };

enum { FOUND, PERCENT, PIECE, /* to main */ AGAIN, MORE /* from it */ };

struct found {
    struct msg m; /* first */
    struct reader_found f;
};
struct percent {
    struct msg m; /* first */
    int percent;
};
struct piece {
    struct msg m; /* first */
    uint64_t pass;
    ARR(struct agent_event) v;
    size_t first; /* those before it are taken */
    bool last;
    struct err err;
};
struct order {
    struct msg m; /* first */
    uint64_t pass;
};

struct reader {
    pthread_t thread;
    bool running;
    struct mq *in, *out;
    /* the thread's */
    char *path;
    int fd;
    const struct agent_adapter *a;
    struct recording *rec; /* NULL: it cannot be opened */
    /* main's */
    struct msg *held;
    struct found *found;
    int percent;
    uint64_t pass;
    bool over;
    struct err err;
};

/* --- the thread --------------------------------------------------------------------- */

static void found_free(struct msg *m)
{
    survey_release(&((struct found *)m)->f.survey);
    free(m);
}

static struct found *found_new(void)
{
    struct found *f = xcalloc(1, sizeof(*f));

    msg_init(&f->m, FOUND, sizeof(*f), found_free);
    survey_init(&f->f.survey);
    return f;
}

static void piece_free(struct msg *m)
{
    struct piece *p = (struct piece *)m;

    for (size_t i = p->first; i < p->v.n; i++)
        agent_event_release(&p->v.v[i]);
    ARR_RELEASE(&p->v);
    free(p);
}

static void tell_percent(struct reader *r, int *told)
{
    int percent = recording_percent(r->rec);
    struct percent *p;

    if (percent == *told)
        return;
    *told = percent;
    p = xcalloc(1, sizeof(*p));
    msg_init(&p->m, PERCENT, sizeof(*p), NULL);
    p->percent = percent;
    mq_post(r->out, MQ_NORMAL, &p->m);
}

static void look_through(struct reader *r, struct reader_found *f)
{
    struct agent_event ev;
    bool more = true;
    int told = 0;

    while (more && !mq_closed(r->in)) {
        more = recording_read(r->rec, &f->err);
        while (recording_take(r->rec, &ev)) {
            survey_see(&f->survey, &ev);
            agent_event_release(&ev);
        }
        tell_percent(r, &told);
    }
    f->left = recording_left(r->rec);
}

static void look(struct reader *r)
{
    struct found *f = found_new();

    if (r->path)
        r->fd = fs_open(r->path, &f->f.err);
    f->f.unopened = r->fd < 0;
    if (r->fd >= 0) {
        r->rec = recording_new(r->fd, r->a);
        look_through(r, &f->f);
    }
    survey_end(&f->f.survey);
    mq_post(r->out, MQ_NORMAL, &f->m);
}

/* True: there may be more behind it. */
static bool send_piece(struct reader *r, uint64_t pass)
{
    struct piece *p = xcalloc(1, sizeof(*p));
    struct agent_event ev;
    bool last = !r->rec || !recording_read(r->rec, &p->err);
    size_t bytes = sizeof(*p);

    while (r->rec && recording_take(r->rec, &ev)) {
        bytes += sizeof(ev) + recording_event_bytes(&ev);
        *ARR_PUSH(&p->v) = ev;
    }
    msg_init(&p->m, PIECE, bytes, piece_free);
    p->pass = pass;
    p->last = last;
    mq_post(r->out, MQ_NORMAL, &p->m);
    return !last;
}

/* True: the begin was asked for, as pass *pass. */
static bool take_orders(struct reader *r, uint64_t *pass)
{
    bool again = false;

    for (struct msg *m = mq_take(r->in), *next; m; m = next) {
        next = m->next;
        if (m->type == AGAIN) {
            *pass = ((struct order *)m)->pass;
            again = true;
        }
        msg_free(m);
    }
    if (again && r->rec)
        recording_rewind(r->rec);
    return again;
}

static void read_main(void *arg)
{
    struct reader *r = arg;
    uint64_t pass = 0;
    bool more = false;

    look(r);
    while (!mq_closed(r->in)) {
        more |= take_orders(r, &pass);
        if (more && !mq_full(r->out))
            more = send_piece(r, pass);
        else
            mq_wait(r->in, -1);
    }
    recording_free(r->rec);
}

/* --- main ---------------------------------------------------------------------------- */

static void post_order(struct reader *r, uint32_t type)
{
    struct order *o = xcalloc(1, sizeof(*o));

    msg_init(&o->m, type, sizeof(*o), NULL);
    o->pass = r->pass;
    mq_post(r->in, MQ_NORMAL, &o->m);
}

struct reader *reader_new(const char *path, int take_fd, const struct agent_adapter *a)
{
    struct reader *r = xcalloc(1, sizeof(*r));

    r->in = mq_new(ORDERS_BYTES);
    r->out = mq_new(AHEAD_BYTES);
    r->path = path ? xstrdup(path) : NULL;
    r->fd = path ? -1 : take_fd;
    r->a = a;
    r->running = thread_start(&r->thread, THREAD_WORK, "reader", read_main, r) == 0;
    if (!r->running) {
        struct found *f = found_new();

        f->f.unopened = r->over = true;
        err_set(&f->f.err, ERR_IO, "no thread can be started to read it; try again");
        mq_post(r->out, MQ_NORMAL, &f->m);
    }
    return r;
}

static void drop_held(struct reader *r)
{
    for (struct msg *m = r->held, *next; m; m = next) {
        next = m->next;
        msg_free(m);
    }
    r->held = NULL;
}

void reader_free(struct reader *r)
{
    if (!r)
        return;
    mq_close(r->in);
    if (r->running && !thread_join_ms(r->thread, END_MS)) {
        log_warn("what reads the recording did not end in %d ms: it is left behind", END_MS);
        return;
    }
    if (!r->running && r->fd >= 0)
        close(r->fd);
    drop_held(r);
    if (r->found)
        msg_free(&r->found->m);
    mq_free(r->in);
    mq_free(r->out);
    free(r->path);
    free(r);
}

int reader_fd(const struct reader *r)
{
    return mq_fd(r->out);
}

/* The first piece of this pass that still holds an event, or NULL. */
static struct piece *advance(struct reader *r)
{
    while (r->held || (r->held = mq_take(r->out))) {
        struct msg *m = r->held;
        bool piece = m->type == PIECE;
        struct piece *p = piece && ((struct piece *)m)->pass == r->pass ? (struct piece *)m : NULL;

        if (p && p->first < p->v.n)
            return p;
        if (p && p->last) {
            r->over = true;
            r->err = p->err;
        }
        r->held = m->next;
        if (m->type == PERCENT)
            r->percent = ((struct percent *)m)->percent;
        if (m->type == FOUND)
            r->found = (struct found *)m;
        else
            msg_free(m);
        if (!r->held && piece)
            post_order(r, MORE); /* there is room again */
    }
    return NULL;
}

bool reader_take_found(struct reader *r, struct reader_found *dst)
{
    advance(r);
    if (!r->found)
        return false;
    *dst = r->found->f;
    survey_init(&r->found->f.survey);
    msg_free(&r->found->m);
    r->found = NULL;
    r->percent = 100;
    return true;
}

int reader_percent(const struct reader *r)
{
    return r->percent;
}

void reader_rewind(struct reader *r)
{
    r->pass++;
    r->over = !r->running;
    err_clear(&r->err);
    post_order(r, AGAIN);
}

const struct agent_event *reader_event(struct reader *r)
{
    const struct piece *p = advance(r);

    return p ? &p->v.v[p->first] : NULL;
}

void reader_drop(struct reader *r)
{
    struct piece *p = advance(r);

    agent_event_release(&p->v.v[p->first++]);
}

bool reader_is_over(const struct reader *r)
{
    return r->over;
}

bool reader_trouble(struct reader *r, struct err *e)
{
    if (!r->err.code)
        return false;
    *e = r->err;
    err_clear(&r->err);
    return true;
}
