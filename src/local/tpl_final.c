/* The end of a build: does the start command come up, as the ready command says? It is
 * tried in a sandbox of the finished layers; what it writes is not kept. */
#include "tpl_priv.h"
#include <cct/util/clock.h>

#define READY_MS 60000
#define READY_AGAIN_MS 300
#define START_MS 1000 /* without a ready command: it must last this long or succeed */

static void kept(struct tpl_job *j)
{
    tpl_job_done(j);
}

static void ask_ready(struct tpl_job *j);

/* The start command ended with an error: nothing can become ready. */
static bool check_started(struct tpl_job *j)
{
    if (!j->start_ended || j->start_code == 0)
        return true;
    tpl_box_flush(j);
    if (j->start_code < 0)
        tpl_job_fail(j, "the start command was ended before it was ready");
    else
        tpl_job_fail(j, "the start command ended with exit status %d before it was ready%s%s",
                     j->start_code, j->last_line[0] ? ": " : "", j->last_line);
    return false;
}

static void is_ready(struct tpl_job *j)
{
    tpl_box_flush(j);
    tpl_job_head(j, false, "Ready", NULL);
    tpl_box_end(j, kept);
}

static void on_start_end(void *arg, int code, const char *why)
{
    struct tpl_job *j = arg;
    (void)why;
    j->x = NULL;
    j->start_ended = true;
    j->start_code = code;
}

static void on_ready_end(void *arg, int code, const char *why)
{
    struct tpl_job *j = arg;
    j->probe = NULL;
    if (code == 0)
        tpl_job_next(j, is_ready, 0);
    else if (!check_started(j))
        return;
    else if (clock_mono_ms() + READY_AGAIN_MS <= j->ready_until)
        tpl_job_next(j, ask_ready, READY_AGAIN_MS);
    else if (why)
        tpl_job_fail(j, "the ready command did not succeed within %d s: %s", READY_MS / 1000,
                     why);
    else
        tpl_job_fail(j,
                     "the ready command did not succeed within %d s; it last ended with exit "
                     "status %d",
                     READY_MS / 1000, code);
}

static void run_in_box(struct tpl_job *j, const char *command, struct initexec **x,
                       initexec_end end, int64_t timeout_ms)
{
    struct initexec_spec s = {.command = command,
                              .user = j->ctx.user,
                              .cwd = j->ctx.workdir,
                              .env = j->ctx.env,
                              .tag = x == &j->x ? "start" : "ready",
                              .timeout_ms = timeout_ms};
    if (!tpl_box_run(j, &s, x, end))
        tpl_job_fail(j, "the sandbox of this step ended by itself");
}

static void ask_ready(struct tpl_job *j)
{
    int64_t left = j->ready_until - clock_mono_ms();
    if (!check_started(j))
        return;
    run_in_box(j, j->b->image.ready_cmd, &j->probe, on_ready_end, left > 1000 ? left : 1000);
}

static void look_once(struct tpl_job *j)
{
    if (check_started(j))
        is_ready(j);
}

static void started(struct tpl_job *j)
{
    const struct tpl_image *m = &j->b->image;
    j->ready_until = clock_mono_ms() + READY_MS;
    j->last_line[0] = '\0';
    if (m->ready_cmd)
        tpl_job_next(j, ask_ready, m->start_cmd ? 50 : 0);
    else
        tpl_job_next(j, look_once, START_MS);
    if (m->start_cmd)
        run_in_box(j, m->start_cmd, &j->x, on_start_end, 0);
}

void tpl_final(struct tpl_job *j)
{
    const struct tpl_image *m = &j->b->image;
    tpl_job_head(j, false, "Finalizing template build", j->ctx.key);
    if (!m->start_cmd && !m->ready_cmd)
        tpl_job_done(j);
    else
        tpl_box_start(j, NULL, started);
}
