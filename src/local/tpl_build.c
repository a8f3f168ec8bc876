/* The order of a build: its turn, the base, the steps one after the other, each with a
 * layer of its own when it changes files, then the end. */
#include "tpl_priv.h"
#include <cct/secrets/digest.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/log.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_MS (60 * 60 * 1000LL)
#define READY_SLEEP_S 2

/* --- the job ----------------------------------------------------------------------- */

static void on_kick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct tpl_job *j = arg;
    j->next(j);
}

void tpl_job_next(struct tpl_job *j, void (*fn)(struct tpl_job *j), int ms)
{
    struct timeval tv = {ms / 1000, ms % 1000 * 1000};
    j->next = fn;
    event_add(j->kick, &tv);
}

struct tpl_log *tpl_job_log(struct tpl_job *j)
{
    return tpl_build_log(j->s, j->t, j->b);
}

void tpl_job_head(struct tpl_job *j, bool cached, const char *text, const char *key)
{
    tpl_log_addf(tpl_job_log(j), TPL_INFO, j->step, "%s%s %s%s%.12s%s", cached ? "CACHED " : "",
                 j->prefix, text, key ? " [" : "", key ? key : "", key ? "]" : "");
}

static void on_quiet(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct tpl_job *j = arg;
    struct timeval tv = {TPL_QUIET_S, 0};
    tpl_log_add(tpl_job_log(j), TPL_INFO, j->step, "...", 3);
    event_add(j->quiet, &tv);
}

static void set_phase(struct tpl_job *j, const char *step, const char *prefix)
{
    str_copy(j->step, sizeof(j->step), step);
    str_copy(j->prefix, sizeof(j->prefix), prefix);
}

static void begin(struct tpl_job *j);

/* Give the next ones their turn. */
static void pump(struct tpl_store *s)
{
    size_t running = 0;
    for (size_t i = 0; i < s->jobs.n; i++)
        running += s->jobs.v[i]->running;
    for (size_t i = 0; i < s->jobs.n && running < TPL_BUILDS_AT_ONCE; i++) {
        struct tpl_job *j = s->jobs.v[i];
        if (j->running || s->p->stopping || s->ending)
            continue;
        j->running = true;
        running++;
        tpl_job_next(j, begin, 0);
    }
}

/* Let go of everything but the record. */
static void job_free(struct tpl_job *j)
{
    struct tpl_store *s = j->s;
    for (size_t i = 0; i < s->jobs.n; i++)
        if (s->jobs.v[i] == j) {
            ARR_REMOVE(&s->jobs, i);
            break;
        }
    j->b->job = NULL;
    tpl_box_drop(j);
    tpl_copy_close(&j->copy);
    event_free(j->kick);
    event_free(j->quiet);
    buf_release(&j->line[0]);
    buf_release(&j->line[1]);
    tpl_plan_release(&j->plan);
    tpl_ctx_release(&j->ctx);
    free(j);
    tpl_sweep_later(s); /* of a layer that was not finished, too */
    pump(s);
}

/* What sandboxes get besides the layers. */
static void take_context(struct tpl_job *j)
{
    struct tpl_image *m = &j->b->image;
    free(m->workdir);
    free(m->user);
    json_free(m->env);
    m->workdir = xstrdup(j->ctx.workdir);
    m->user = xstrdup(j->ctx.user);
    m->env = j->ctx.env;
    j->ctx.env = NULL;
}

static void finish(struct tpl_job *j, enum tpl_status status)
{
    struct tpl_build *b = j->b;
    b->status = status;
    b->updated_ms = b->finished_ms = j->t->updated_ms = clock_wall_ms();
    tpl_save(j->s, j->t, NULL); /* what fails is said, and tried again a little later */
    job_free(j);
}

static void fail_with(struct tpl_job *j, const char *reason)
{
    struct tpl_build *b = j->b;
    b->reason = xstrdup(reason);
    b->reason_step = j->step[0] ? xstrdup(j->step) : NULL;
    tpl_log_addf(tpl_job_log(j), TPL_ERROR, j->step, "Build failed: %s", reason);
    log_info("template %s: build %s failed: %s", j->t->id, b->id, reason);
    finish(j, TPL_IS_ERROR);
}

void tpl_job_fail(struct tpl_job *j, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (j->s->p->stopping)
        str_copy(text, sizeof(text), "the provider was stopped while the template was built");
    fail_with(j, text);
}

/* A ready command that only sleeps, as the clients send it by default, has been waited
 * for in the build. Each sandbox starts the start command anew, but must not take that
 * long for it. */
static void shorten_ready(struct tpl_job *j)
{
    struct tpl_image *m = &j->b->image;
    int64_t s;
    if (!m->ready_cmd || !str_starts(m->ready_cmd, "sleep ") ||
        !str_to_i64(m->ready_cmd + strlen("sleep "), 0, INT32_MAX, &s) || s <= READY_SLEEP_S)
        return;
    free(m->ready_cmd);
    m->ready_cmd = xasprintf("sleep %d", READY_SLEEP_S);
    tpl_log_addf(tpl_job_log(j), TPL_INFO, j->step,
                 "Sandboxes wait %d s for the start command, not %lld s", READY_SLEEP_S,
                 (long long)s);
}

void tpl_job_done(struct tpl_job *j)
{
    struct tpl_build *b = j->b;
    shorten_ready(j);
    set_phase(j, "optimize", "[optimize]");
    tpl_job_head(j, false, "Layers are kept as they are", NULL);
    take_context(j);
    tpl_log_addf(tpl_job_log(j), TPL_INFO, j->step, "Build finished, took %.1f s",
                 (double)(clock_mono_ms() - j->begun_ms) / 1000);
    for (size_t i = 0; i < b->n_tags; i++)
        tpl_tag_put(j->t, b->tags[i], b->id);
    j->t->n_built++;
    log_info("template %s: build %s is ready", j->t->id, b->id);
    struct tpl_store *s = j->s;
    struct tpl *t = j->t;
    finish(j, TPL_IS_READY);
    tpl_prune(s, t);
}

/* --- the base ------------------------------------------------------------------------ */

static void run_step(struct tpl_job *j);

static bool check_base(struct tpl_job *j)
{
    const struct tpl_plan *p = &j->plan;
    if (j->s->p->unsafe) {
        tpl_job_fail(j, "templates are layers over this machine's files, which needs the "
                        "namespaces that this provider runs without; start it without "
                        "--unsafe (cc-tui doctor says what is missing)");
    } else if (p->has_registry || (p->image && !tpl_image_is_base(p->image))) {
        tpl_job_fail(j,
                     "image '%.200s' cannot be used: the local provider has no container "
                     "images%s, its templates start from this machine's own programs; use the "
                     "base image (" TPL_BASE_IMAGE
                     ") or a template of this provider, and install what is missing in a step",
                     p->image ? p->image : "", p->has_registry ? " and no registries" : "");
    } else {
        return true;
    }
    return false;
}

/* A key for everything below the first step. */
static void base_key(char *key, const struct tpl_image *from)
{
    unsigned char sum[32];
    struct buf b = BUF_INIT;
    buf_adds(&b, "base 1");
    for (size_t i = 0; from && i < from->n_layers; i++)
        buf_addf(&b, ",%s", from->layers[i]);
    digest_sha256(sum, b.p, b.len);
    hex_encode(key, sum, sizeof(sum));
    buf_release(&b);
}

/* Layers, environment, folder, user and commands of another template. */
static bool take_base(struct tpl_job *j)
{
    struct tpl_image *m = &j->b->image;
    struct err e = {0};
    char key[TPL_KEY_LEN + 1];
    struct tpl_build *from = NULL;
    if (j->plan.from && !tpl_resolve(j->s, j->plan.from, &from, &e)) {
        tpl_job_fail(j, "base template cannot be used: %s", e.text);
        return false;
    }
    tpl_image_clear(m);
    if (from)
        tpl_image_copy(m, &from->image);
    base_key(key, m);
    tpl_ctx_init(&j->ctx, key);
    if (m->env) {
        tpl_ctx_take_env(&j->ctx, m->env);
        m->env = NULL;
    }
    if (m->workdir) {
        free(j->ctx.workdir);
        j->ctx.workdir = xstrdup(m->workdir);
    }
    if (m->user) {
        free(j->ctx.user);
        j->ctx.user = xstrdup(m->user);
    }
    if (j->plan.start_cmd || j->plan.ready_cmd) { /* those of the base are not for this one */
        free(m->start_cmd);
        free(m->ready_cmd);
        m->start_cmd = xstrdup(j->plan.start_cmd);
        m->ready_cmd = xstrdup(j->plan.ready_cmd);
    }
    return true;
}

static void begin(struct tpl_job *j)
{
    struct tpl_build *b = j->b;
    char *text;
    j->begun_ms = clock_mono_ms();
    b->status = TPL_IS_BUILDING;
    b->updated_ms = clock_wall_ms();
    tpl_save(j->s, j->t, NULL); /* what fails is said; the end is saved again */
    set_phase(j, "base", "[base]");
    text = xasprintf("FROM %.200s", j->plan.image ? j->plan.image : j->plan.from);
    tpl_job_head(j, false, text, NULL);
    free(text);
    if (!check_base(j) || !take_base(j))
        return;
    text = xasprintf("DEFAULT USER %s", j->ctx.user);
    tpl_job_head(j, false, text, j->ctx.key);
    free(text);
    tpl_job_next(j, run_step, 0);
}

/* --- the steps ----------------------------------------------------------------------- */

static void step_over(struct tpl_job *j)
{
    struct err e = {0};
    if (tpl_step_apply(&j->ctx, &j->plan.steps[j->at], &e) != 0) {
        tpl_job_fail(j, "%s", e.text);
        return;
    }
    j->at++;
    tpl_job_next(j, run_step, 0);
}

/* A layer is on top of the others from here on. */
static void push_layer(struct tpl_job *j, const char *name)
{
    struct tpl_image *m = &j->b->image;
    m->layers = xrealloc(m->layers, (m->n_layers + 2) * sizeof(m->layers[0]));
    m->layers[m->n_layers++] = xstrdup(name);
    str_copy(j->ctx.key, sizeof(j->ctx.key), j->key);
    step_over(j);
}

/* The sandbox is gone, and with it everything that could still write. */
static void keep_layer(struct tpl_job *j)
{
    struct err e = {0};
    char name[TPL_LAYER_LEN + 1];
    if (tpl_layer_publish(j->s, j->layer, j->key, &e) != 0) {
        tpl_job_fail(j, "the layer of this step cannot be kept: %s", e.text);
        return;
    }
    str_copy(name, sizeof(name), j->layer);
    j->layer[0] = '\0';
    push_layer(j, name);
}

static void on_step_end(void *arg, int code, const char *why)
{
    struct tpl_job *j = arg;
    j->x = NULL;
    tpl_box_flush(j);
    if (code == 0)
        tpl_box_end(j, keep_layer);
    else if (code < 0)
        tpl_job_fail(j, "the command of step %s did not end: %s", j->step, why);
    else
        tpl_job_fail(j, "the command of step %s failed with exit status %d%s%s", j->step, code,
                     j->last_line[0] ? ": " : "", j->last_line);
}

static void run_command(struct tpl_job *j)
{
    struct tpl_run r;
    tpl_step_run(&r, &j->ctx, &j->plan.steps[j->at]);
    struct initexec_spec s = {.command = r.command,
                              .user = r.user,
                              .cwd = r.cwd,
                              .env = r.env,
                              .tag = "build",
                              .timeout_ms = STEP_MS};
    j->last_line[0] = '\0';
    bool ok = tpl_box_run(j, &s, &j->x, on_step_end);
    json_free(r.env);
    if (!ok)
        tpl_job_fail(j, "the sandbox of this step ended by itself");
}

static void copy_files(struct tpl_job *j)
{
    struct err e = {0};
    int rc = tpl_copy_more(&j->copy, &e);
    if (rc > 0) {
        tpl_job_next(j, copy_files, 0);
        return;
    }
    tpl_copy_close(&j->copy);
    if (rc < 0)
        tpl_job_fail(j, "the layer of this step cannot be made: %s", e.text);
    else
        tpl_box_start(j, j->layer, run_command);
}

static void make_layer(struct tpl_job *j, const struct tpl_step *s)
{
    struct err e = {0};
    if (j->b->image.n_layers >= TPL_LAYERS_MAX) {
        tpl_job_fail(j, "a template has at most %u layers; join some RUN steps with &&",
                     TPL_LAYERS_MAX);
        return;
    }
    if (s->type == TPL_COPY && !tpl_upload_is_there(j->s, s->hash)) {
        tpl_job_fail(j,
                     "the files of this COPY were not uploaded (hash %.12s...); start the "
                     "build again",
                     s->hash);
        return;
    }
    int rc = tpl_layer_new(j->s, j->layer, &e);
    if (rc == 0 && s->type == TPL_COPY)
        rc = tpl_copy_open(&j->copy, j->s, j->layer, s->hash, &e);
    if (rc != 0)
        tpl_job_fail(j, "the layer of this step cannot be made: %s", e.text);
    else if (s->type == TPL_COPY)
        tpl_job_next(j, copy_files, 0);
    else
        tpl_box_start(j, j->layer, run_command);
}

static const char *cached_layer(struct tpl_job *j)
{
    const char *name = j->force ? NULL : map_get(j->s->layers, j->key);
    if (!name)
        return NULL;
    char *path = xasprintf("%s/layers/%s/root", j->s->p->state_dir, name);
    if (access(path, F_OK) != 0)
        name = NULL; /* somebody cleaned up by hand */
    free(path);
    return name;
}

static void run_step(struct tpl_job *j)
{
    char step[12], prefix[40];
    struct err e = {0};
    if (j->at == j->plan.n_steps) {
        set_phase(j, "finalize", "[finalize]");
        tpl_final(j);
        return;
    }
    const struct tpl_step *s = &j->plan.steps[j->at];
    snprintf(step, sizeof(step), "%zu", j->at + 1);
    snprintf(prefix, sizeof(prefix), "[builder %zu/%zu]", j->at + 1, j->plan.n_steps);
    set_phase(j, step, prefix);
    j->force = j->force || s->force;
    bool has_layer = tpl_step_makes_layer(&j->ctx, s);
    tpl_step_key(j->key, &j->ctx, s);
    const char *cached = has_layer ? cached_layer(j) : NULL;
    struct buf text = BUF_INIT;
    tpl_step_text(&text, s);
    tpl_job_head(j, cached != NULL, buf_str(&text), j->key);
    buf_release(&text);
    if (!tpl_step_user_ok(s, &e))
        tpl_job_fail(j, "%s", e.text);
    else if (!has_layer)
        step_over(j);
    else if (cached)
        push_layer(j, cached);
    else
        make_layer(j, s);
}

/* --- from outside ----------------------------------------------------------------------- */

void tpl_build_start(struct tpl_store *s, struct tpl *t, struct tpl_build *b,
                     struct tpl_plan *take)
{
    struct tpl_job *j = xcalloc(1, sizeof(*j));
    j->s = s;
    j->t = t;
    j->b = b;
    j->plan = *take;
    j->copy = (struct tpl_copy)TPL_COPY_INIT;
    memset(take, 0, sizeof(*take));
    j->force = j->plan.force;
    j->kick = evtimer_new(s->p->base, on_kick, j);
    j->quiet = evtimer_new(s->p->base, on_quiet, j);
    if (!j->kick || !j->quiet)
        die("libevent is out of memory");
    b->job = j;
    b->started = true;
    b->updated_ms = clock_wall_ms();
    *ARR_PUSH(&s->jobs) = j;
    pump(s);
    if (!j->running) /* a turn saves it anyway */
        tpl_save(s, t, NULL);
}

void tpl_build_stop(struct tpl_store *s, const char *why)
{
    struct tpl_job *j = s->jobs.v[s->jobs.n - 1];
    s->ending = true; /* no other one gets its turn */
    fail_with(j, why);
}

void tpl_build_cancel(struct tpl_build *b)
{
    log_info("build %s is called off", b->id);
    job_free(b->job);
}

bool tpl_layer_in_work(const struct tpl_store *s, const char *name)
{
    for (size_t i = 0; i < s->jobs.n; i++)
        if (strcmp(s->jobs.v[i]->layer, name) == 0)
            return true;
    return false;
}
