/* Following: after a look into the folder (session_look.c), read what we lack, then the live
 * end; after any loss the same again from the exact byte. The tail's own deadline ends it in
 * the sandbox even if we are gone; when store or screen lag it is closed, so the agent never
 * waits. */
#include "session_ask.h"
#include "session_follow.h"
#include "session_out.h"
#include "session_priv.h"
#include "session_raw.h"
#include "session_relay.h"
#include "session_show.h"
#include "session_start.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE (512u << 10) /* a turn of the loop */
#define TAIL_MS 600000
#define HOLD_MS 50
#define SHORT_TAIL_MS 1000
#define STEADY_TAIL_MS 5000
#define UNKNOWN_MS 15000
#define LOOK_AGAIN_MS 5000
#define LOOK_ENDED_MS 30000
#define BACK_OFF_MS 5000 /* current again soon after the network is well */

static void go(struct session *s);
static void on_get(void *ctx, const struct e2b_result *r);

static void ignore(void *ctx, const struct envd_result *r)
{
    (void)ctx;
    (void)r;
}

static void close_calls(struct session *s)
{
    struct follow *f = &s->fo;

    session_cancel_timer(s, &f->timer);
    if (f->call)
        envd_cancel(s->envd, f->call);
    if (f->stream)
        envd_close(s->envd, f->stream);
    jobs_ask_cancel(s->j, s->get_call);
    session_runs_close(s);
    session_sum_close(s);
    session_raw_close(s);
    f->call = f->stream = s->get_call = 0;
    f->tail_pid = 0;
}

void session_follow_stop(struct session *s, enum follow_state st)
{
    close_calls(s);
    session_life_close(s);
    session_quiet_close(s);
    if (s->out.open)
        session_keep_flush(s);
    s->out.caught_up = false;
    s->fo.again = false;
    s->fo.attempt = 0;
    s->fo.state = st;
    if (st == FO_OFF)
        session_probe_release(&s->fo.p);
}

static void look_at_ended(void *ctx);

/* Another cc-tui may start the agent again, and tells nobody. */
static void look_later(struct session *s)
{
    int poll_ms = s->j->o.poll_ms;

    session_timer(s, &s->fo.timer, poll_ms > 0 ? 10 * poll_ms : LOOK_ENDED_MS, look_at_ended);
}

static void look_at_ended(void *ctx)
{
    struct session *s = ctx;

    s->fo.timer = 0;
    if (s->prov) /* we start it ourselves, and look when that is done */
        look_later(s);
    else
        go(s);
}

void session_follow_ended(struct session *s)
{
    session_follow_stop(s, FO_ENDED);
    s->fo.ended_at = clock_mono_ms();
    look_later(s);
}

/* --- loss ------------------------------------------------------------------------ */

/* The way is up, so the tail that we leave can be ended before its deadline. */
static void end_tail(struct session *s)
{
    if (s->fo.tail_pid)
        envd_signal(s->envd, s->fo.tail_pid, true, ignore, s);
    if (s->fo.runs_pid)
        envd_signal(s->envd, s->fo.runs_pid, true, ignore, s);
}

static void retry(void *ctx)
{
    struct session *s = ctx;

    s->fo.timer = 0;
    go(s);
}

void session_follow_wait(struct session *s, int64_t ms)
{
    s->fo.state = FO_WAIT;
    session_timer(s, &s->fo.timer, ms, retry);
}

static void back_off(struct session *s)
{
    session_follow_wait(s, net_backoff_ms(s->fo.attempt++, 200, BACK_OFF_MS));
}

static void ask_control_plane(struct session *s)
{
    const struct sandbox *r = session_row(s);

    if (r && r->sandbox_id && s->j->e2b)
        s->get_call = jobs_ask(s->j, r->sandbox_id, s->sh.on, on_get, s);
    else
        session_follow_stop(s, FO_STOPPED);
}

static void on_health(void *ctx, const struct envd_result *r)
{
    struct session *s = ctx;

    s->fo.call = 0;
    /* once is enough: what changes later, the list says */
    if (r->err.code == 0 || s->fo.asked) {
        back_off(s);
        return;
    }
    s->fo.asked = true;
    ask_control_plane(s);
}

/* Who only reads what there is need not wait any more. */
static void say_loss(struct session *s, const char *what, const struct err *e)
{
    s->fo.said_loss = true;
    session_say(s, AGENT_WARN, "%s: %s", what, e->code ? e->text : "the answer is empty");
    session_logs_go(s);
}

/* Paused, gone, or only the way to it? */
void session_follow_lost(struct session *s, const struct err *e)
{
    close_calls(s);
    session_life_close(s); /* the same line as likely as not, and it listens less often */
    s->out.caught_up = false;
    if (s->fo.attempt == 3)
        say_loss(s, "connection to the agent lost, trying again", e);
    s->fo.state = FO_ASK;
    if (e->code == ERR_AUTH) { /* its token may have changed */
        session_drop_target(s);
        back_off(s);
        return;
    }
    s->fo.call = envd_health(s->envd, on_health, s);
}

static void on_get(void *ctx, const struct e2b_result *r)
{
    struct session *s = ctx;

    s->get_call = 0;
    if (r->err.code == ERR_NOTFOUND) {
        /* whether it is gone for good is for the complete list to say */
        session_follow_stop(s, FO_STOPPED);
        session_drop_target(s);
        s->fo.unknown_until = clock_mono_ms() + UNKNOWN_MS;
        session_timer(s, &s->fo.timer, UNKNOWN_MS, retry);
        jobs_row_missing(s->j, session_row(s));
    } else if (r->err.code || !r->n) {
        if (s->fo.attempt == 3 && !s->fo.said_loss)
            say_loss(s, "the sandbox is not reached, trying again", &r->err);
        back_off(s);
    } else if (str_eq(r->v[0].state, "paused")) {
        session_vm_state(s, SB_PAUSED);
    } else if (!s->envd) {
        struct err e = {0};

        if (session_target(s, &r->v[0], &e) == 0) {
            go(s);
            return;
        }
        err_wrap(&e, "the sandbox cannot be reached");
        session_say(s, AGENT_ERROR, "%s", e.text);
        session_follow_stop(s, FO_STOPPED);
        session_wait_fail_all(s, &e);
        session_logs_go(s);
    } else {
        back_off(s);
    }
}

/* --- bytes ----------------------------------------------------------------------- */

/* Bytes behind the end of a run that is being told (session_runs.c) are of the next one, and wait
 * for it: how many do not. */
static size_t before_end(const struct session *s, size_t len)
{
    const struct follow *f = &s->fo;
    uint64_t room = f->runs_end.offset > s->out.pos ? f->runs_end.offset - s->out.pos : 0;

    if (!f->runs_call)
        return len;
    return f->held.len ? 0 : len < room ? len : (size_t)room;
}

void session_follow_held(struct session *s)
{
    size_t len;
    char *data;

    if (s->fo.runs_call || !s->fo.held.len)
        return; /* another run ended meanwhile */
    data = buf_detach(&s->fo.held, &len);
    session_follow_feed(s, data, len);
    free(data);
}

void session_follow_feed(struct session *s, const char *data, size_t len)
{
    session_quiet_heard(s);
    while (len) {
        uint64_t room = session_look_next_end(s) - s->out.pos;
        size_t n = before_end(s, len);

        if (!n) {
            buf_add(&s->fo.held, data, len);
            break;
        }
        if (n > room)
            n = (size_t)room;
        session_sum_add(s, data, n);
        session_out_feed(s, data, n);
        data += n;
        len -= n;
        session_look_ends(s);
        session_runs_go(s);
    }
    /* a line that breaks after every few bytes must not be taken up at once each time */
    if (s->fo.attempt > 2)
        s->fo.attempt = 2;
    s->fo.asked = false;
}

/* --- back pressure --------------------------------------------------------------- */

static void hold_over(void *ctx)
{
    struct session *s = ctx;

    s->fo.timer = 0;
    if (session_keep_lags(s))
        session_timer(s, &s->fo.timer, HOLD_MS, hold_over);
    else if (s->fo.again)
        go(s);
    else
        session_follow_read(s);
}

static void hold(struct session *s)
{
    end_tail(s);
    close_calls(s);
    s->out.caught_up = false;
    s->fo.state = FO_HOLD;
    session_timer(s, &s->fo.timer, HOLD_MS, hold_over);
}

void session_follow_drained(struct session *s)
{
    if (s->fo.state == FO_HOLD && !s->raw && !session_keep_lags(s))
        session_timer(s, &s->fo.timer, 0, hold_over);
}

/* --- the live end ---------------------------------------------------------------- */

static void on_tail_start(void *ctx, int pid)
{
    struct session *s = ctx;

    s->fo.tail_pid = pid;
    s->fo.tail_since = clock_mono_ms();
    s->out.caught_up = true;
    if (s->fo.said_loss)
        session_say(s, AGENT_INFO, "connected to the agent again");
    s->fo.said_loss = false;
    if (!s->prov)
        session_lives(s);
    if (s->out.agent == AG_UNKNOWN || s->out.agent == AG_STARTING || s->out.agent == AG_NONE ||
        s->out.agent == AG_EXITED || s->out.agent == AG_FAILED)
        s->out.agent = AG_IDLE; /* it lives and said nothing yet */
    if (s->ad->mode == AGENT_ONE_RUN && session_probe_running(&s->fo.p)) {
        s->out.agent = AG_WORKING; /* some say nothing before they are done */
        session_turn_run(s, &s->fo.p.last);
    }
    session_ask_ready(s);
    session_agent(s, s->out.agent);
    session_quiet_heard(s);
    session_provision_alive(s);
    session_life(s);
    session_show_acked(s);
    session_relay(s);
}

static bool on_tail_data(void *ctx, enum envd_stream st, const char *data, size_t len)
{
    struct session *s = ctx;

    if (st != ENVD_STDOUT) {
        /* GNU tail begins at 0 when the file got shorter: not with our decoder */
        if (!memmem(data, len, "truncated", 9))
            return true;
        s->fo.again = true;
    } else {
        session_follow_feed(s, data, len);
        if (!session_keep_lags(s) && s->fo.held.len < PIECE)
            return true;
    }
    s->fo.stream = 0; /* closed by our answer */
    hold(s);
    return false;
}

static void on_tail_end(void *ctx, const struct envd_end *end)
{
    struct session *s = ctx;
    int64_t lasted = clock_mono_ms() - s->fo.tail_since;

    s->fo.stream = 0;
    s->fo.tail_pid = 0;
    s->out.caught_up = false;
    if (lasted >= STEADY_TAIL_MS)
        s->fo.attempt = 0;
    if (end->silent && !s->fo.said_loss) {
        s->fo.said_loss = true;
        session_say(s, AGENT_WARN, "connecting to the agent again: %s", end->err.text);
    }
    if (!end->ended && end->err.code && end->err.code != ERR_TIMEOUT)
        session_follow_lost(s, &end->err);
    else if (lasted < SHORT_TAIL_MS)
        back_off(s);
    else
        go(s);
}

static void tail(struct session *s)
{
    char from[32], *path = session_path(s, SESSION_OUT_LOG);
    const char *args[] = {"-c", from, "-f", path, NULL};
    struct envd_proc_cb cb = {on_tail_start, on_tail_data, on_tail_end, s};
    struct envd_proc_spec spec = {.cmd = "tail", .args = args, .timeout_ms = TAIL_MS};

    snprintf(from, sizeof(from), "+%" PRIu64, s->out.pos + 1);
    session_runs_follow(s);
    s->fo.state = FO_TAIL;
    s->fo.tail_since = clock_mono_ms();
    s->fo.stream = envd_start(s->envd, &spec, &cb);
    free(path);
}

/* --- the backlog ----------------------------------------------------------------- */

static void on_piece(void *ctx, const struct envd_result *r)
{
    struct session *s = ctx;

    s->fo.call = 0;
    if (r->err.code) {
        /* what came before the line broke is good; a slow line would never bring more */
        if (r->len && (!r->total || r->total >= s->out.pos + r->len))
            session_follow_feed(s, r->body, r->len);
        if (s->fo.state == FO_BACKLOG)
            session_follow_lost(s, &r->err);
        return;
    }
    if (r->total && r->total < s->out.pos)
        s->fo.again = true; /* it got shorter */
    else
        session_follow_feed(s, r->body, r->len);
    if (s->fo.state != FO_BACKLOG)
        return;
    if (s->fo.again) {
        go(s);
    } else if (session_keep_lags(s)) {
        hold(s);
    } else if (s->fo.p.exited && s->out.pos >= s->fo.p.size) {
        session_look_finish(s);
    } else if (r->len == PIECE) {
        session_follow_read(s);
    } else if (s->fo.p.exited && !r->len) {
        back_off(s); /* a complete log that cannot be read to its end */
    } else if (s->fo.p.exited) {
        session_follow_read(s);
    } else {
        tail(s);
    }
}

void session_follow_read(struct session *s)
{
    char *path;

    s->fo.state = FO_BACKLOG;
    if (s->fo.p.exited && s->out.pos >= s->fo.p.size) {
        session_look_finish(s);
        return;
    }
    path = session_path(s, SESSION_OUT_LOG);
    s->fo.call = envd_read(s->envd, path, s->out.pos, PIECE, on_piece, s);
    free(path);
}

static void on_goodbye(void *ctx, const struct envd_result *r)
{
    (void)r;
    ((struct session *)ctx)->j->goodbyes--;
}

static void goodbye(struct session *s, int pid)
{
    if (!pid || !s->envd)
        return;
    s->j->goodbyes++;
    envd_signal(s->envd, pid, true, on_goodbye, s);
}

/* A tail that nobody reads would stay until its deadline, one for each command. */
void session_leave(struct session *s)
{
    int tail_pid = s->fo.tail_pid, runs_pid = s->fo.runs_pid;

    close_calls(s);
    session_relay_leave(s);
    session_out_row_now(s);
    s->out.caught_up = false;
    s->fo.state = FO_STOPPED;
    goodbye(s, tail_pid);
    goodbye(s, runs_pid);
}

static void go(struct session *s)
{
    const struct sandbox *r = session_row(s);

    close_calls(s);
    if (s->j->leaving) {
        s->fo.state = FO_STOPPED;
        return;
    }
    s->fo.again = false;
    if (!r || !r->sandbox_id || !s->j->e2b || r->state == SB_PAUSED || r->state == SB_KILLED ||
        (r->state == SB_ERROR && !r->vm_up)) {
        session_follow_stop(s, FO_STOPPED);
        session_logs_go(s);
    } else if (!s->envd && clock_mono_ms() < s->fo.unknown_until) {
        s->fo.state = FO_STOPPED; /* asked not long ago: a list that names it is no news */
        session_timer(s, &s->fo.timer, UNKNOWN_MS, retry);
    } else if (s->raw) {
        session_raw_go(s);
    } else if (!s->envd) {
        s->fo.state = FO_TARGET;
        ask_control_plane(s);
    } else {
        session_look(s);
    }
}

void session_follow(struct session *s)
{
    THREAD_ASSERT(THREAD_NET);
    if (s->prov && s->prov_begun && !s->prov_ready)
        return; /* it goes on by itself when the CLI runs */
    if (s->fo.state == FO_OFF || s->fo.state == FO_STOPPED)
        go(s);
    /* somebody may have restarted it meanwhile */
    else if (s->fo.state == FO_ENDED && clock_mono_ms() - s->fo.ended_at > LOOK_AGAIN_MS)
        go(s);
}

bool session_current(const struct session *s)
{
    return s->fo.state == FO_TAIL && s->out.caught_up;
}

void session_follow_again(struct session *s)
{
    switch (s->fo.state) {
    case FO_TAIL:
        end_tail(s);
        s->out.caught_up = false;
        go(s);
        break;
    case FO_HOLD:
    case FO_WAIT:
    case FO_ENDED:
        go(s);
        break;
    case FO_OFF:
    case FO_STOPPED:
        break;
    default:
        s->fo.again = true;
    }
}

void session_woke(struct session *s)
{
    s->fo.attempt = 0;
    s->fo.asked = false;
    if (s->fo.state == FO_WAIT)
        go(s);
}

void session_follow_reset(struct session *s)
{
    enum follow_state st = s->fo.state;

    if (st == FO_OPEN)
        return; /* about to begin at what is stored */
    session_out_close(s);
    s->fo.runs_done = 0;
    /* what looks for an adopted process would come back to a record that is closed */
    if (s->raw ? st == FO_OFF
               : st != FO_BACKLOG && st != FO_TAIL && st != FO_HOLD && st != FO_ENDED)
        return;
    end_tail(s);
    go(s);
}
