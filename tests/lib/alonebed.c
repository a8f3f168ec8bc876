/* A session alone: see the header. */
#include "alonebed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct session *alone_session(const struct alone *q)
{
    return session_of(&q->b->j, q->row);
}

void alone_run(struct alone *q, void (*fn)(void *ctx), const char *text)
{
    q->text = text;
    jobsbed_run(q->b, fn, q);
}

void alone_wait(const struct alone *q)
{
    assert_true(jobsbed_wait(q->b, jobsbed_came, NULL, ALONE_MS));
}

void alone_open(void *ctx)
{
    struct alone *q = ctx;

    jobsbed_expect();
    session_open(alone_session(q), q->epoch, jobsbed_opened);
}

void alone_at_live_end(void *ctx)
{
    struct session *s = alone_session(ctx);

    s->fo.state = FO_TAIL;
    s->out.caught_up = true;
    s->out.agent = AG_IDLE;
}

struct alone alone_bed(const char *dir)
{
    struct alone q = {.b = jobsbed_new(dir, "a", NULL), .epoch = 1};

    q.row = jobsbed_row(q.b, "claude", "vm1");
    alone_run(&q, alone_open, NULL);
    alone_wait(&q);
    alone_run(&q, alone_at_live_end, NULL);
    return q;
}
