/* What became of a message that was sent: the sandbox is asked, again and again, whether the
 * agent's program took it in. */
#include "session_follow.h"
#include "session_out.h"
#include "session_priv.h"
#include "session_relay.h"
#include "session_show.h"

#include <cct/util/str.h>

#define CALL_MS 20000

/* The first looks come soon for tools that do not echo, later for those that do. */
int64_t session_taken_delay(const struct session *s)
{
    static const int quick[] = {150, 300, 600, 1000}, slow[] = {2000, 3000, 5000};
    int n = s->re.checks;

    if (n > 8)
        return 15000;
    if (!s->ad->echoes)
        return n < 4 ? quick[n] : 2000;
    return n < 3 ? slow[n] : 5000;
}

/* Its run was the last one, and is over: nothing more comes of it. */
static bool run_is_over(const struct session *s)
{
    const struct session_probe *p = &s->fo.p;

    return s->ad->mode == AGENT_ONE_RUN && str_eq(p->last.message, s->re.id) &&
           !session_probe_running(p);
}

/* The agent's program has read it. Since we published it its whole log was read here, and there
 * was no turn: that is still to come, however long the program takes to begin. */
static bool is_to_come(const struct session *s)
{
    const struct relay *re = &s->re;

    return s->ad->echoes && re->moving && !re->turn_seen && !re->lost &&
           re->opened == s->out.n_opened;
}

/* Where its sender would have put it: should that one still do so, the message is there once. When
 * that place is not known, another one's is echoed by the one that delivers it. */
static void echo_taken(struct session *s, uint64_t from)
{
    const struct session_run_line *last = &s->fo.p.last;
    struct relay *re = &s->re;
    uint64_t at = s->out.pos;
    bool known = re->moving;

    if (from && s->ad->mode != AGENT_ONE_RUN) {
        at = from - 1;
        session_others_place(s, from, &at);
        known = true;
    } else if (from && from == last->run && last->offset <= at) {
        at = last->offset;
        known = true;
    }
    if (known) {
        session_out_echo(s, at, re->msg.text, re->msg.key);
        return;
    }
    re->echo_id = re->msg.id;
    re->echo_at = at;
}

/* The sandbox does not say where its turn is. */
static void taken_somewhere(struct session *s, bool ended)
{
    const struct relay *re = &s->re;
    bool echoes = s->ad->echoes, ours = re->moving && s->ad->mode == AGENT_PERSISTENT;

    if (!echoes && ours && !ended && !re->lost)
        session_turn_due(s, re->msg.id);
    if (is_to_come(s) && !ended)
        session_wait_delivered(s, re->msg.id);
    else if (echoes || re->lost || run_is_over(s)) /* perhaps its turn has gone by, too */
        session_wait_missed(s, re->msg.id);
}

void session_relay_taken(struct session *s, bool ended, uint64_t from)
{
    const struct relay *re = &s->re;
    bool unseen = s->ad->echoes ? ended || !is_to_come(s) : re->lost || run_is_over(s);

    if (!s->ad->echoes)
        echo_taken(s, from);
    if (!from || re->lost)
        taken_somewhere(s, ended);
    else if (session_wait_placed(s, re->msg.id, from) && !s->ad->echoes &&
             s->ad->mode == AGENT_PERSISTENT && !ended && !agent_dec_busy(s->out.dec))
        session_turn_due(s, re->msg.id); /* it is still to begin */
    if (unseen && s->sh.on)
        session_show(s, true);
    session_relay_delivered(s, re->msg.id);
}

static void on_check(void *ctx, const struct envd_run_result *r)
{
    struct session *s = ctx;
    struct relay *re = &s->re;
    bool ended = false, moved_on;
    uint64_t from;
    enum session_taken t = session_taken_parse(r->out ? r->out : "", &ended, &from);

    re->call = 0;
    if (re->step != RE_SENT)
        return;
    re->checks++;
    moved_on = !s->ad->echoes || (re->turn_seen && re->checks > 1) || re->checks > 6;
    if (r->err.code == 0 && t == TAKEN_UNSURE) {
        session_relay_unconfirmed(s, "the agent ended while it was being handed over");
        session_relay(s);
    } else if (r->err.code == 0 && t == TAKEN_YES && moved_on) {
        session_relay_taken(s, ended, from);
    } else if (r->err.code == 0 && ended) {
        session_relay_unconfirmed(s, "the agent ended before it was taken in");
    } else {
        if (r->err.code == 0 && t == TAKEN_NO)
            session_life_wake(s); /* the line that wakes the keeper may have been lost */
        session_timer(s, &re->timer, session_taken_delay(s), session_taken_check);
    }
}

void session_taken_check(void *ctx)
{
    struct session *s = ctx;
    const char *args[] = {s->dir, s->re.id, NULL};

    s->re.timer = 0;
    if (!s->envd || !s->dir || s->fo.state == FO_STOPPED) {
        session_timer(s, &s->re.timer, 5000, session_taken_check);
        return;
    }
    s->re.call = session_sh(s, session_taken_script, args, CALL_MS, on_check, s);
}
