/* An agent that works and says nothing for long: some CLIs print nothing while they try again
 * behind our back. The row says since when, nothing is done about it. */
#include "session_follow.h"
#include "session_priv.h"

#include <cct/util/clock.h>

static void on_quiet(void *ctx);

static int64_t quiet_ms(const struct session *s)
{
    return s->j->o.quiet_ms ? s->j->o.quiet_ms : 60000;
}

static void tell(struct session *s, int64_t since)
{
    struct sandbox *r = session_row(s);

    if (!r || r->quiet_since == since)
        return;
    r->quiet_since = since;
    jobs_row_changed(s->j, r);
}

static void on_quiet(void *ctx)
{
    struct session *s = ctx;
    int64_t quiet = clock_mono_ms() - s->quiet.heard;

    s->quiet.timer = 0;
    if (s->out.agent != AG_WORKING || s->raw)
        return;
    if (quiet < quiet_ms(s))
        session_timer(s, &s->quiet.timer, quiet_ms(s) - quiet, on_quiet);
    else
        tell(s, jobs_now(s->j) - quiet);
}

void session_quiet_heard(struct session *s)
{
    s->quiet.heard = clock_mono_ms();
    tell(s, 0);
    if (s->out.agent == AG_WORKING && !s->quiet.timer)
        session_timer(s, &s->quiet.timer, quiet_ms(s), on_quiet);
}

void session_quiet_close(struct session *s)
{
    session_cancel_timer(s, &s->quiet.timer);
    tell(s, 0);
}
