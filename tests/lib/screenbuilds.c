/* Script lines of the builds' panes. */
#include "screenscript.h"

#include <cct/model/tbuild.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 30 };
static struct tbuild kept[MOST];
static size_t n_kept;
static int64_t log_at; /* time of the last line */

static char *next(char **rest)
{
    char *w = strsep(rest, " ");

    return w ? w : (char *)(uintptr_t)"-";
}

static char *part(char **rest, bool lines)
{
    char *s = *rest ? str_trim(strsep(rest, "|")) : NULL;

    for (char *p = s; lines && p && *p; p++)
        *p = *p == '\\' ? '\n' : *p;
    return s && *s ? xstrdup(s) : NULL;
}

static char *or_null(const char *w)
{
    return str_eq(w, "-") ? NULL : xstrdup(w);
}

static struct tbuild *slot(uint64_t id)
{
    for (size_t i = 0; i < n_kept; i++)
        if (kept[i].id == id) {
            tbuild_release(&kept[i]);
            return &kept[i];
        }
    return n_kept < MOST ? &kept[n_kept++] : &kept[0];
}

/* ID NAME TOOL VERSION STATE AGO_S [ENDED_AGO_S|- STEP/STEPS [PHASE | TITLE | ERROR | TAIL]] */
static void tbuild_line(struct script *s, char *line)
{
    uint64_t id = strtoull(next(&line), NULL, 10);
    struct tbuild *b = slot(id);
    struct ev_builds *ev = ev_new(EV_BUILDS);
    char *w;

    memset(b, 0, sizeof(*b));
    b->id = id;
    b->name = xstrdup(next(&line));
    b->tool = or_null(next(&line));
    b->version = or_null(next(&line));
    b->state = (enum tb_state)tb_state_parse(next(&line));
    b->started_at = s->now - strtoll(next(&line), NULL, 10) * 1000;
    w = next(&line);
    b->ended_at = str_eq(w, "-") ? 0 : s->now - strtoll(w, NULL, 10) * 1000;
    w = next(&line);
    b->step = (int)strtol(w, &w, 10);
    b->steps = *w == '/' ? (int)strtol(w + 1, NULL, 10) : 0;
    b->phase = part(&line, false);
    b->title = part(&line, false);
    b->error = part(&line, false);
    b->tail = part(&line, true);
    if (b->state >= TB_WAITING) {
        b->template_id = xasprintf("tpl%llu", (unsigned long long)id);
        b->build_id = xasprintf("bld%llu", (unsigned long long)id);
    } else if (b->state == TB_UPLOADING) {
        b->sent = 1258291;
        b->total = 3565158;
    }
    ev->v = xcalloc(n_kept, sizeof(*ev->v));
    for (size_t i = 0; i < n_kept; i++)
        tbuild_copy(&ev->v[ev->n++], &kept[i]);
    script_post(s, ev);
}

/* LEVEL TEXT, or phase|cached NAME TITLE with _ for the blanks of NAME */
static void buildlog_line(struct script *s, char *line)
{
    char *w = next(&line), *name, t[32];
    bool head = str_eq(w, "phase") || str_eq(w, "cached");
    struct buf b = BUF_INIT;
    struct jw j;

    log_at = log_at ? log_at + 1000 : s->now - 60000;
    clock_format_rfc3339(t, sizeof(t), log_at);
    jw_init(&j, &b);
    jw_obj(&j, NULL);
    jw_str(&j, "type", "log");
    jw_str(&j, "timestamp", t);
    jw_str(&j, "level", head ? "info" : w);
    if (head) {
        name = next(&line);
        for (char *p = name; *p; p++)
            *p = *p == '_' ? ' ' : *p;
        jw_str(&j, "phase", name);
        jw_str(&j, "title", line ? line : "");
        jw_bool(&j, "cached", str_eq(w, "cached"));
    } else {
        jw_str(&j, "message", line ? line : "");
    }
    jw_end(&j);
    buf_addc(&b, '\n');
    if (s->app->log_fn)
        s->app->log_fn(s->app->log_ctx, b.p, b.len);
    buf_release(&b);
}

void script_builds_release(void)
{
    log_at = 0;
    while (n_kept)
        tbuild_release(&kept[--n_kept]);
}

const struct script_verb script_build_verbs[] = {
    {"tbuild", tbuild_line}, {"buildlog", buildlog_line}, {NULL, NULL}};
