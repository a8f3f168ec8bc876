/* Templates, builds and log lines as JSON with E2B's own names. Strings stay foreign:
 * who shows them cleans them. */
#include "looks_priv.h"

#include <cct/util/clock.h>
#include <cct/util/json.h>

static void put_time(struct jw *w, const char *name, int64_t ms)
{
    char t[32] = "";

    if (ms > 0)
        clock_format_rfc3339(t, sizeof(t), ms);
    jw_str(w, name, ms > 0 ? t : NULL);
}

static void put_count(struct jw *w, const char *name, int64_t n)
{
    if (n < 0)
        jw_null(w, name);
    else
        jw_i64(w, name, n);
}

void json_template(struct buf *b, const struct e2b_template *t)
{
    struct jw w;

    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", t->template_id);
    jw_arr(&w, "names");
    for (char **n = t->names; n && *n; n++)
        jw_str(&w, NULL, *n);
    jw_end(&w);
    jw_str(&w, "buildID", t->build_id);
    jw_str(&w, "buildStatus", t->status);
    jw_bool(&w, "public", t->is_public);
    jw_i64(&w, "cpuCount", t->cpu_count);
    jw_i64(&w, "memoryMB", t->memory_mb);
    jw_i64(&w, "diskSizeMB", t->disk_mb);
    put_time(&w, "createdAt", t->created_at);
    put_time(&w, "updatedAt", t->updated_at);
    put_time(&w, "lastSpawnedAt", t->spawned_at);
    put_count(&w, "spawnCount", t->spawn_count);
    put_count(&w, "buildCount", t->build_count);
    jw_str(&w, "envdVersion", t->envd_version);
    jw_end(&w);
    buf_addc(b, '\n');
}

void json_build(struct buf *b, const struct e2b_build *v, const char *template_id,
                const char *name)
{
    struct jw w;

    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", template_id);
    jw_str(&w, "name", name);
    jw_str(&w, "buildID", v->build_id);
    jw_str(&w, "status", v->status);
    put_time(&w, "createdAt", v->created_at);
    put_time(&w, "updatedAt", v->updated_at);
    put_time(&w, "finishedAt", v->finished_at);
    jw_i64(&w, "cpuCount", v->cpu_count);
    jw_i64(&w, "memoryMB", v->memory_mb);
    jw_i64(&w, "diskSizeMB", v->disk_mb);
    jw_str(&w, "envdVersion", v->envd_version);
    jw_end(&w);
    buf_addc(b, '\n');
}

/* The line that opens a phase of a build says which. */
static void put_phase(struct jw *w, const char *message)
{
    struct build_phase p;
    char text[40];

    if (!build_phase_parse(message, &p))
        return;
    build_phase_text(&p, text, sizeof(text));
    jw_str(w, "phase", text);
    jw_str(w, "title", p.title);
    jw_bool(w, "cached", p.cached);
}

void json_log(struct buf *b, const char *type, const struct e2b_log *l)
{
    struct jw w;

    jw_init(&w, b);
    jw_obj(&w, NULL);
    if (type)
        jw_str(&w, "type", type);
    put_time(&w, "timestamp", l->time_ms);
    jw_str(&w, "level", l->level);
    jw_str(&w, "message", l->message);
    if (l->step)
        jw_str(&w, "step", l->step);
    if (l->fields)
        jw_raw(&w, "fields", l->fields);
    if (type)
        put_phase(&w, l->message);
    jw_end(&w);
    buf_addc(b, '\n');
}

static const char *end_name(enum build_end e)
{
    return e == BUILD_READY ? "ready" : e == BUILD_FAILED ? "error"
                                    : e == BUILD_UNKNOWN  ? "unknown" : NULL;
}

void json_state(struct buf *b, const struct build_state *s)
{
    char phase[40];
    struct jw w;

    build_phase_text(&s->phase, phase, sizeof(phase));
    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_str(&w, "type", "state");
    jw_str(&w, "templateID", s->template_id);
    jw_str(&w, "buildID", s->build_id);
    jw_str(&w, "status", s->status);
    jw_str(&w, "phase", phase);
    if (s->phase.kind == PHASE_STEP)
        jw_i64(&w, "step", s->phase.step);
    if (s->phase.kind == PHASE_STEP && s->phase.steps)
        jw_i64(&w, "steps", s->phase.steps);
    if (s->phase.title[0])
        jw_str(&w, "title", s->phase.title);
    jw_i64(&w, "lines", (int64_t)s->lines);
    jw_i64(&w, "secondsSinceLastLine", s->quiet_ms / 1000);
    if (s->reason)
        jw_str(&w, "reason", s->reason);
    if (s->reason_step)
        jw_str(&w, "reasonStep", s->reason_step);
    if (s->err.code)
        jw_str(&w, "trouble", s->err.text);
    jw_str(&w, "end", end_name(s->end));
    jw_end(&w);
    buf_addc(b, '\n');
}
