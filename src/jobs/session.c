/* A durable session: its life, where its sandbox is, and what the row says of it. */
#include "session_ask.h"
#include "session_follow.h"
#include "session_out.h"
#include "session_pair.h"
#include "session_priv.h"
#include "session_raw.h"
#include "session_relay.h"
#include "session_show.h"
#include "session_start.h"

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sandbox *session_row(struct session *s)
{
    return jobs_row(s->j, s->row);
}

const char *session_who(const struct session *s)
{
    return s->tool ? s->tool->name : s->raw ? "process" : "agent";
}

bool session_readonly(const struct session *s)
{
    return s->j->o.readonly;
}

struct session *session_of(struct jobs *j, uint64_t row)
{
    struct session *s = map_get_id(j->sessions, row);
    const struct sandbox *r;

    THREAD_ASSERT(THREAD_NET);
    if (s)
        return s;
    r = jobs_row(j, row);
    if (!r || !r->session || !*r->session)
        return NULL;
    s = xcalloc(1, sizeof(*s));
    s->j = j;
    s->row = row;
    s->name = xstrdup(r->session);
    s->tool = r->tool ? tools_find(j->o.tools, r->tool) : NULL;
    s->ad = s->tool ? agent_adapter_find(s->tool->adapter) : NULL;
    if (!s->ad && r->tool)
        s->ad = agent_adapter_find(r->tool);
    if (!s->ad)
        s->ad = agent_adapter_find("shell");
    s->ended.exit_code = -1;
    session_out_init(s);
    session_raw_init(s, r);
    session_pair_init(s);
    map_put_id(j->sessions, row, s);
    return s;
}

/* Whoever waits for something of it is told that nothing more comes. */
static void end_requests(struct session *s)
{
    struct err e = {0};

    err_set(&e, ERR_CANCELLED, "the sandbox is not followed any more: another E2B key is in force, "
            "its row was removed, or cc-tui ends");
    session_wait_fail_all(s, &e);
    session_logs_fail(s, &e);
    session_answer_end(s, &e);
    if (s->re.int_req)
        session_interrupt_done(s, &e);
    session_provision_left(s, &e);
}

void session_free(struct session *s)
{
    if (!s)
        return;
    session_follow_stop(s, FO_OFF);
    end_requests(s);
    session_raw_free(s);
    session_relay_release(s);
    session_provision_release(s);
    session_show_release(s);
    session_logs_release(s);
    session_turn_release(s);
    session_wait_release(s);
    session_others_release(s);
    session_ask_release(s);
    session_pair_release(s);
    jobs_store_forget(s->j, s);
    jobs_store_forget(s->j, &s->out);
    jobs_store_forget(s->j, &s->sh);
    jobs_ask_cancel(s->j, s->get_call);
    envd_free(s->envd);
    session_out_release(s);
    map_del_id(s->j->sessions, s->row);
    free(s->name);
    free(s->home);
    free(s->dir);
    free(s);
}

/* --- small helpers of the parts -------------------------------------------------- */

void session_cancel_timer(struct session *s, uint64_t *timer)
{
    if (*timer)
        net_timer_cancel(s->j->o.net, *timer);
    *timer = 0;
}

void session_timer(struct session *s, uint64_t *timer, int64_t ms, void (*fn)(void *ctx))
{
    session_cancel_timer(s, timer);
    *timer = net_timer(s->j->o.net, ms, fn, s);
}

void session_set_home(struct session *s, const char *home)
{
    if (!home || *home != '/' || str_eq(home, s->home))
        return;
    free(s->home);
    free(s->dir);
    s->home = xstrdup(home);
    s->dir = xasprintf("%s/" SESSION_ROOT "/%s", str_eq(home, "/") ? "" : home, s->name);
}

char *session_path(const struct session *s, const char *name)
{
    return xasprintf("%s/%s", s->dir, name);
}

char *session_tmp_path(const struct session *s, const char *id)
{
    char name[160], *p;

    snprintf(name, sizeof(name), SESSION_INBOX_TMP_FMT, s->j->o.owner);
    for (p = strrchr(name, '/') + 1; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '.')
            *p = '_';
    return xasprintf("%s/%s-%s", s->dir, name, id);
}

uint64_t session_sh(struct session *s, const char *script, const char *const *args, int ms,
                    void (*fn)(void *ctx, const struct envd_run_result *r), void *ctx)
{
    const char *argv[20] = {"-c", script, "sh"};
    struct envd_proc_spec spec = {.cmd = "sh", .args = argv, .timeout_ms = ms};

    for (size_t i = 3; i < 19 && *args; i++)
        argv[i] = *args++;
    return envd_run(s->envd, &spec, fn, ctx);
}

/* --- where it is ----------------------------------------------------------------- */

int session_target(struct session *s, const struct e2b_sandbox *vm, struct err *e)
{
    const struct e2b_account *a = e2b_account_of(s->j->e2b);
    char *url = e2b_sandbox_url(a, vm->sandbox_id, vm->domain, e);
    struct envd_target t = {.base_url = url, .sandbox_id = vm->sandbox_id, .token = vm->token,
                             .keepalive_s = s->j->o.keepalive_s};

    if (!url)
        return e->code;
    session_wait_stop(s);
    envd_free(s->envd);
    s->life = s->life_call = 0;
    s->runner_pid = 0;
    s->envd = envd_new(s->j->o.net, &t);
    free(url);
    return 0;
}

void session_drop_target(struct session *s)
{
    session_relay_stop(s, false, NULL);
    session_life_close(s);
    envd_free(s->envd);
    s->envd = NULL;
    s->runner_pid = 0;
    if (s->prov_begun) /* its calls are gone with it; one that waits for a look goes on waiting */
        session_provision_stop(s, "the connection to the sandbox was lost");
}

void session_relocate(struct session *s)
{
    enum follow_state st = s->fo.state;

    THREAD_ASSERT(THREAD_NET);
    session_follow_stop(s, st == FO_OFF || st == FO_ENDED ? st : FO_STOPPED);
    session_provision_stop(s, "the connection to the provider was replaced");
    session_drop_target(s);
    if (s->fo.state == FO_STOPPED)
        session_follow(s);
    else if (s->fo.state == FO_ENDED)
        session_follow_ended(s);
}

void session_vm_state(struct session *s, enum sb_state st)
{
    const struct sandbox *r = session_row(s);

    THREAD_ASSERT(THREAD_NET);
    if (st == SB_RUNNING || (st == SB_ERROR && r && r->vm_up)) {
        if (s->fo.state == FO_STOPPED)
            session_follow(s);
        return;
    }
    if (st == SB_CREATING)
        return;
    session_follow_stop(s, FO_STOPPED);
    session_relay_stop(s, st != SB_PAUSED,
                       st == SB_PAUSED ? "the sandbox was paused" : "the sandbox is gone");
    session_logs_go(s);
}

/* --- what the row says ----------------------------------------------------------- */

void session_agent(struct session *s, enum sb_agent a)
{
    struct sandbox *r = session_row(s);

    s->out.agent = a;
    if (!r || r->agent == a || r->state == SB_KILLED)
        return;
    r->agent = a;
    r->agent_since = jobs_now(s->j);
    session_quiet_heard(s);
    jobs_row_changed(s->j, r);
}

void session_step(struct session *s, const char *fmt, ...)
{
    struct sandbox *r = session_row(s);
    struct buf b = BUF_INIT_MAX(400);
    va_list ap;
    char *text;

    if (!r || r->step == STEP_NONE)
        return;
    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    text = clean_line_dup(buf_str(&b), 0);
    buf_release(&b);
    if (!str_eq(text, r->step_text)) {
        free(r->step_text);
        r->step_text = text;
        text = NULL;
        jobs_row_changed(s->j, r);
    }
    free(text);
}

void session_failed(struct session *s, const char *text)
{
    struct sandbox *r = session_row(s);

    session_agent(s, AG_FAILED);
    if (r && r->state != SB_KILLED)
        jobs_row_error(s->j, r, true, text);
}

void session_lives(struct session *s)
{
    struct sandbox *r = session_row(s);

    if (r && r->state == SB_ERROR && r->vm_up) {
        r->state = SB_RUNNING;
        free(r->reason);
        r->reason = NULL;
        jobs_row_changed(s->j, r);
    }
}

void session_say(struct session *s, int level, const char *fmt, ...)
{
    va_list ap;
    struct buf b = BUF_INIT, clean = BUF_INIT;
    struct item it = {.kind = ITEM_NOTICE, .exit_code = -1, .state = level};

    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    clean_text(buf_str(&b), b.len, &clean, NULL);
    jobs_say(s->j, level, s->row, "%s", buf_str(&clean));
    it.time_ms = clock_wall_ms();
    it.offset = s->out.pos ? s->out.pos - 1 : 0;
    it.index = SESSION_SAY_INDEX + s->said++;
    it.text = buf_detach(&clean, &it.text_len);
    session_show_said(s, &it);
    session_items_put(s, &it);
    buf_release(&b);
}
