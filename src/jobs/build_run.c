/* One build from its recipe to the last line of its log. What the service has been told
 * stands in the row before the next thing is told, so that another process can go on. */
#include "builds_priv.h"

#include "looks_priv.h"
#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { GIVE_UP_MS = 30000, TAIL_LINE = 300 };
static const struct e2b_call_opts opts = {.give_up_ms = GIVE_UP_MS};

/* --- telling ------------------------------------------------------------------------- */

void build_flush(struct build_run *b)
{
    size_t len = b->out.len;

    if (len && b->req_id)
        jobs_chunk(b->j, b->req_id, 0, buf_detach(&b->out, NULL), len);
    buf_clear(&b->out);
}

void build_note(struct build_run *b, const char *level, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    char now[32];
    struct jw w;
    va_list ap;

    if (!b->req_id)
        return;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    clock_format_rfc3339(now, sizeof(now), clock_wall_ms());
    jw_init(&w, &b->out);
    jw_obj(&w, NULL);
    jw_str(&w, "type", "log");
    jw_str(&w, "timestamp", now);
    jw_str(&w, "level", level);
    jw_str(&w, "message", buf_str(&text));
    jw_str(&w, "step", "client");
    jw_end(&w);
    buf_addc(&b->out, '\n');
    buf_release(&text);
    build_flush(b);
}

static void set(char **field, const char *text)
{
    free(*field);
    *field = text && *text ? clean_line_dup(text, 0) : NULL;
}

/* The same for what tells of its steps: it goes to the disk. */
static void set_told(struct build_run *b, char **field, const char *text)
{
    char *without = text ? build_without_args(&b->options, b->args, text) : NULL;

    set(field, without);
    free(without);
}

static void phase(struct build_run *b, enum tb_state state, const char *name)
{
    b->row->state = state;
    set(&b->row->phase, name);
    set(&b->row->title, NULL);
    builds_row_changed(b, true);
}

/* --- the end ------------------------------------------------------------------------- */

static char *joined_tail(const struct build_run *b)
{
    struct buf t = BUF_INIT;

    for (size_t i = 0; i < b->tail.n; i++)
        buf_addf(&t, "%s%s", i ? "\n" : "", b->tail.v[i]);
    return t.len ? buf_detach(&t, NULL) : NULL;
}

/* Nothing more is asked or read; the run goes when nobody is in the midst of it. */
static void end(struct build_run *b, enum tb_state state, const struct err *e)
{
    struct jobs *j = b->j;

    if (b->over)
        return;
    b->over = true;
    core_call_cancel(j, b->client, b->call);
    b->call = 0;
    build_files_release(b);
    net_timer_cancel(j->o.net, b->timer);
    b->timer = 0;
    b->row->state = state;
    b->row->ended_at = clock_wall_ms();
    if (state == TB_READY) {
        set(&b->row->phase, NULL);
        set(&b->row->title, NULL);
    }
    set_told(b, &b->row->error, e ? e->text : NULL);
    if (e && !b->row->error)
        set(&b->row->error, "what was said of it may have values of its arguments, which are not "
            "kept; 'cc-tui builds --follow' shows it");
    if (state == TB_ERROR) {
        free(b->row->tail);
        b->row->tail = joined_tail(b);
    }
    if (e)
        b->end = *e;
    builds_row_changed(b, true);
    if (!b->req_id) /* who waits is told by the end itself */
        jobs_say(j, state == TB_READY ? 0 : state == TB_ERROR ? 2 : 1, 0, "template %s: %s%s%.300s",
                 b->row->name, state == TB_READY ? "the build is ready" : tb_state_name(state),
                 e ? ": " : "", e ? b->row->error : "");
    builds_run_over(b);
}

void build_fail(struct build_run *b, const struct err *e)
{
    end(b, TB_ERROR, e);
}

void build_stop(struct build_run *b, const char *why)
{
    struct err e;

    err_set(&e, ERR_CANCELLED, "%s", why);
    end(b, TB_CANCELLED, &e);
}

/* --- following ------------------------------------------------------------------------ */

static void drop_tail(struct build_run *b)
{
    for (size_t i = 0; i < b->tail.n; i++)
        free(b->tail.v[i]);
    b->tail.n = 0;
}

/* It is shortened when nothing is left in it that could be cut into a part of itself. */
static void add_tail(struct build_run *b, const char *text)
{
    char *without = build_without_args(&b->options, b->args, text);

    if (without && b->tail.n == BUILD_TAIL) {
        free(b->tail.v[0]);
        ARR_REMOVE(&b->tail, 0);
    }
    if (without)
        *ARR_PUSH(&b->tail) = clean_line_dup(without, TAIL_LINE);
    free(without);
}

static void on_line(void *ctx, const struct e2b_log *l)
{
    struct build_run *b = ctx;
    struct build_phase p;

    if (build_phase_parse(l->message, &p)) {
        drop_tail(b);
        if (p.kind == PHASE_STEP) {
            b->row->step = p.step;
            b->row->steps = p.steps;
        }
    } else {
        add_tail(b, tbuild_output(l->message));
    }
    if (!b->req_id)
        return;
    json_log(&b->out, "log", l);
    if (b->out.len > 64u << 10)
        build_flush(b);
}

static void failed(struct build_run *b, const struct build_state *s)
{
    char *without = s->reason ? build_without_args(&b->options, b->args, s->reason) : NULL;
    const char *reason = without ? without : s->reason;
    struct err e;

    if (s->end == BUILD_UNKNOWN)
        err_set(&e, s->err.code ? s->err.code : ERR_PROTO, "the build cannot be followed: %s",
                s->err.text);
    else
        err_set(&e, ERR_CONFLICT, "%s%.40s%s%.350s", s->reason_step ? "step " : "",
                s->reason_step ? s->reason_step : "", s->reason_step ? ": " : "",
                reason ? reason : "the service gives no reason");
    end(b, TB_ERROR, &e);
    free(without);
}

static void on_state(void *ctx, const struct build_state *s)
{
    struct build_run *b = ctx;
    enum tb_state state = str_eq(s->status, "waiting") ? TB_WAITING : TB_BUILDING;
    char name[40];
    bool moved;

    if (b->over)
        return;
    if (b->req_id) {
        json_state(&b->out, s);
        build_flush(b);
    }
    build_phase_text(&s->phase, name, sizeof(name));
    moved = !b->row->phase || !str_eq(b->row->phase, name) || b->row->state != state;
    b->row->state = state;
    b->row->cached = s->phase.cached;
    set(&b->row->phase, *name ? name : NULL);
    set_told(b, &b->row->title, s->phase.title);
    if (b->row->title && *b->options.args && strlen(s->phase.title) + 1 == sizeof(s->phase.title))
        b->row->title[strcspn(b->row->title, " ")] = '\0'; /* it may end within a value */
    if (s->end == BUILD_READY)
        end(b, TB_READY, NULL);
    else if (s->end)
        failed(b, s);
    else
        builds_row_changed(b, moved);
}

void build_follow(struct build_run *b)
{
    struct build_viewer v = {on_line, on_state, b};

    if (b->following || b->over)
        return;
    b->following = true;
    builds_started(b);
    b->viewer = builds_open(builds_watches(b->j), b->row->template_id, b->row->build_id, &v);
}

/* --- start ------------------------------------------------------------------------------- */

/* The start was refused, or its answer lost: the status tells whether it goes on. */
static void on_status(void *ctx, const struct e2b_result *r)
{
    struct build_run *b = ctx;
    const char *status = r->n_builds ? r->builds[0].status : "";

    b->call = 0;
    if (str_eq(status, "building") || str_eq(status, "ready") || str_eq(status, "error"))
        build_follow(b);
    else if (b->may_be_started) {
        b->may_be_started = false;
        build_begin(b);
    } else {
        build_fail(b, b->end.code ? &b->end : &r->err);
    }
}

static void ask_status(struct build_run *b)
{
    b->client = b->j->e2b;
    b->call = e2b_build_status(b->client, b->row->template_id, b->row->build_id, 0, &opts, on_status,
                               b);
}

static void on_started(void *ctx, const struct e2b_result *r)
{
    struct build_run *b = ctx;

    b->call = 0;
    if (r->err.code == 0) {
        phase(b, TB_WAITING, NULL);
        build_follow(b);
    } else if (r->sent && b->j->e2b) {
        b->end = r->err;
        ask_status(b);
    } else {
        build_fail(b, &r->err);
    }
}

void build_files_done(struct build_run *b)
{
    const struct recipe *r = &b->work->recipe;
    struct e2b_step *steps;
    struct e2b_build_start q = {.from_image = r->from_image, .from_template = r->from_template,
                                .start_cmd = r->start_cmd, .ready_cmd = r->ready_cmd,
                                .n_steps = r->steps.n, .force = b->options.no_cache};

    if (!b->j->e2b) {
        build_fail(b, &b->j->priv->account_err);
        return;
    }
    steps = xcalloc(r->steps.n + 1, sizeof(*steps));
    for (size_t i = 0; i < r->steps.n; i++)
        steps[i] = (struct e2b_step){r->steps.v[i].type, (const char *const *)r->steps.v[i].args,
                                     r->steps.v[i].hash[0] ? r->steps.v[i].hash : NULL, false};
    q.steps = steps;
    b->row->steps = (int)r->steps.n;
    phase(b, TB_WAITING, "starting");
    b->client = b->j->e2b;
    b->call = e2b_build_start(b->client, b->row->template_id, b->row->build_id, &q, on_started, b);
    free(steps);
}

static void on_new(void *ctx, const struct e2b_result *r)
{
    struct build_run *b = ctx;

    b->call = 0;
    if (r->err.code) {
        build_fail(b, &r->err);
        return;
    }
    set(&b->row->template_id, r->builds[0].template_id);
    set(&b->row->build_id, r->builds[0].build_id);
    phase(b, TB_UPLOADING, "files");
    build_note(b, "info", "template %s, build %s", b->row->template_id, b->row->build_id);
    build_files_begin(b);
}

static void ask_new(struct build_run *b)
{
    struct e2b_build_new q = {.name = b->row->name,
                              .tags = b->options.tags && *b->options.tags
                                          ? (const char *const *)b->options.tags
                                          : NULL,
                              .cpu_count = b->options.cpu_count,
                              .memory_mb = b->options.memory_mb};

    if (!q.cpu_count)
        q.cpu_count = b->work->recipe.cpu_count;
    if (!q.memory_mb)
        q.memory_mb = b->work->recipe.memory_mb;
    b->client = b->j->e2b;
    b->call = e2b_build_new(b->client, &q, on_new, b);
}

static void take_recipe(struct build_run *b)
{
    const struct recipe *r = &b->work->recipe;

    if (r->tool && !b->row->tool)
        set(&b->row->tool, r->tool);
    if (r->version)
        set(&b->row->version, r->version);
    for (size_t i = 0; i < r->notes.n; i++)
        build_note(b, "warn", "%s", r->notes.v[i]);
}

void build_worked(struct build_run *b)
{
    struct build_work *w = b->work;

    build_work_join(w);
    if (b->over) {
        return;
    } else if (w->pack != SIZE_MAX) {
        build_files_packed(b);
    } else if (w->err.code) {
        build_fail(b, &w->err);
    } else if (!b->j->e2b) {
        build_fail(b, &b->j->priv->account_err);
    } else if (b->row->template_id && b->row->build_id) { /* asked for in an earlier life */
        take_recipe(b);
        phase(b, TB_UPLOADING, "files");
        build_files_begin(b);
    } else {
        take_recipe(b);
        ask_new(b);
    }
}

void build_begin(struct build_run *b)
{
    struct err e = {0};

    if (b->may_be_started && b->j->e2b) { /* its start may have been told */
        ask_status(b);
        return;
    }
    if (!b->work && build_options_check(&b->options, b->args, b->row->name, &e) != 0) {
        build_fail(b, &e);
        return;
    }
    phase(b, TB_PREPARING, "files");
    if (!b->work)
        b->work = build_work_new(b->j, b->row, b->args);
    if (build_work_start(b->work, SIZE_MAX, &e) != 0)
        build_fail(b, &e);
}

void build_run_free(struct build_run *b)
{
    struct jobs *j = b->j;

    core_call_cancel(j, b->client, b->call);
    build_files_release(b);
    if (b->following)
        builds_close(builds_watches(j), b->viewer);
    net_timer_cancel(j->o.net, b->timer);
    net_timer_cancel(j->o.net, b->lease_timer);
    net_timer_cancel(j->o.net, b->end_timer);
    build_work_leave(b->work);
    build_options_release(&b->options);
    build_args_free(b->args);
    drop_tail(b);
    ARR_RELEASE(&b->tail);
    buf_release(&b->out);
    free(b);
}
