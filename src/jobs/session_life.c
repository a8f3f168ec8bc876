/* The runner in the sandbox: its stream ends with the keeper of the session, and lines
 * to its stdin make the keeper look into the inbox. Any runner will do; ours is started
 * with "bury", which starts no CLI: it follows a living keeper or tidies up after a dead
 * one. */
#include "session_follow.h"
#include "session_priv.h"
#include "session_start.h"

#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define STEADY_MS 5000
#define BACK_OFF_MS 15000

/* The tail is the one that notices a dead line first. */
static int keepalive_s(const struct session *s)
{
    return 2 * (s->j->o.keepalive_s > 0 ? s->j->o.keepalive_s : 15);
}

static void on_start(void *ctx, int pid)
{
    struct session *s = ctx;

    s->runner_pid = pid;
    if (s->life_wake)
        session_life_wake(s);
}

static bool on_data(void *ctx, enum envd_stream st, const char *data, size_t len)
{
    struct session *s = ctx;

    if (st == ENVD_STDERR)
        buf_add(&s->life_err, data, len);
    return true;
}

static void look(void *ctx)
{
    struct session *s = ctx;

    s->life_timer = 0;
    session_follow_again(s);
}

/* At once when it had lived; a runner that cannot be had is no reason to look again and
 * again as fast as the network allows. */
static void look_soon(struct session *s)
{
    if (clock_mono_ms() - s->life_since >= STEADY_MS)
        s->life_attempt = 0;
    if (s->life_attempt++ == 0)
        session_follow_again(s);
    else
        session_timer(s, &s->life_timer, net_backoff_ms(s->life_attempt - 2, 400, BACK_OFF_MS),
                      look);
}

static void on_end(void *ctx, const struct envd_end *end)
{
    struct session *s = ctx;
    const char *why = s->life_err.len ? str_trim(s->life_err.p) : end->err.text;
    bool over = end->ended || end->err.code == 0 || end->err.code == ERR_NOTFOUND;

    s->life = 0;
    if (over)
        s->runner_pid = 0;
    /* status 0: the session has ended, its files tell how */
    if (end->ended && (!end->exited || end->exit_code != 0))
        session_provision_runner_ended(s, why);
    buf_clear(&s->life_err);
    look_soon(s);
}

static struct envd_proc_cb callbacks(struct session *s)
{
    s->life_since = clock_mono_ms();
    s->life_err.max = LIM_STDERR_TAIL;
    buf_clear(&s->life_err);
    return (struct envd_proc_cb){on_start, on_data, on_end, s};
}

static void start(struct session *s, const struct kv *env, bool bury)
{
    char *script = session_path(s, SESSION_RUNNER);
    const char *args[] = {script, s->dir, bury ? "bury" : NULL, NULL};
    struct envd_proc_cb cb = callbacks(s);
    struct envd_proc_spec spec = {
        .cmd = "sh", .args = args, .env = env, .stdin_open = true, .keepalive_s = keepalive_s(s)};

    s->life = envd_start(s->envd, &spec, &cb);
    free(script);
}

static void connect_to(struct session *s, int pid)
{
    struct envd_proc_cb cb = callbacks(s);

    s->life = envd_connect(s->envd, pid, keepalive_s(s), &cb);
}

static void on_list(void *ctx, const struct envd_result *r)
{
    struct session *s = ctx;
    int pid;

    s->life_call = 0;
    if (r->err.code)
        return; /* the tail meets the same trouble and asks again */
    pid = session_runner_pid(r->body, r->len, s->dir);
    if (pid)
        connect_to(s, pid);
    else if (!session_readonly(s))
        start(s, NULL, true);
}

void session_life(struct session *s)
{
    if (s->life || s->life_call || s->life_timer || !s->dir || !s->envd)
        return;
    if (s->runner_pid)
        connect_to(s, s->runner_pid);
    else
        s->life_call = envd_list(s->envd, on_list, s);
}

void session_life_start(struct session *s, const struct kv *env)
{
    session_life_close(s);
    start(s, env, false);
}

void session_life_close(struct session *s)
{
    if (s->life)
        envd_close(s->envd, s->life);
    if (s->life_call)
        envd_cancel(s->envd, s->life_call);
    session_cancel_timer(s, &s->life_timer);
    s->life = s->life_call = 0;
    buf_release(&s->life_err);
}

static void on_woken(void *ctx, const struct envd_result *r)
{
    struct session *s = ctx;

    if (!r->err.code)
        return;
    /* the runner we knew is gone, or the line is: a new one looks by itself once */
    if (r->err.code == ERR_NOTFOUND) {
        session_life_close(s);
        s->runner_pid = 0;
    }
    s->life_wake = true;
    session_life(s);
}

void session_life_wake(struct session *s)
{
    s->life_wake = !s->runner_pid;
    if (s->runner_pid)
        envd_send_input(s->envd, s->runner_pid, "\n", 1, on_woken, s);
    else
        session_life(s);
}
