/* Templates, builds and system logs for who asks: found by id or name, told as lines of
 * JSON, followed to the end. */
#include "builds_priv.h"
#include "looks_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { GIVE_UP_MS = 20000, ALL_MAX = 500, BUILD_PACE_MS = 400 };
static const struct e2b_call_opts opts = {.give_up_ms = GIVE_UP_MS};

/* --- life --------------------------------------------------------------------------- */

static struct looks *looks_of(struct jobs *j)
{
    if (!j->priv->looks) {
        j->priv->looks = xcalloc(1, sizeof(struct looks));
        j->priv->looks->builds = builds_new(j->o.net, &j->e2b, BUILD_PACE_MS);
    }
    return j->priv->looks;
}

static void look_free(struct look *l)
{
    net_timer_cancel(l->j->o.net, l->timer);
    core_call_cancel(l->j, l->client, l->call);
    for (size_t i = 0; i < l->ids.n; i++) {
        free(l->ids.v[i]);
        free(l->names.v[i]);
    }
    ARR_RELEASE(&l->ids);
    ARR_RELEASE(&l->names);
    buf_release(&l->out);
    free(l->word);
    free(l->part);
    free(l->build_id);
    free(l->sandbox_id);
    free(l);
}

void core_looks_release(struct jobs *j)
{
    struct looks *all = j->priv->looks;

    if (!all)
        return;
    for (size_t i = 0; i < all->v.n; i++)
        look_free(all->v.v[i]);
    ARR_RELEASE(&all->v);
    builds_free(all->builds);
    free(all);
    j->priv->looks = NULL;
}

void look_flush(struct look *l)
{
    size_t len = l->out.len;

    if (len)
        jobs_chunk(l->j, l->req_id, 0, buf_detach(&l->out, NULL), len);
}

void look_end(struct look *l, const struct err *e)
{
    struct looks *all = looks_of(l->j);

    look_flush(l);
    jobs_done(l->j, l->req_id, e && e->code ? e : NULL, l->row);
    for (size_t i = 0; i < all->v.n; i++)
        if (all->v.v[i] == l) {
            ARR_REMOVE(&all->v, i);
            break;
        }
    look_free(l);
}

/* --- following a build ----------------------------------------------------------------- */

static void on_line(void *ctx, const struct e2b_log *line)
{
    struct look *l = ctx;

    json_log(&l->out, "log", line);
    if (l->out.len > 64u << 10)
        look_flush(l);
}

static void end_of_build(struct look *l, const struct build_state *s)
{
    if (s->end == BUILD_UNKNOWN)
        l->end = s->err;
    else if (s->end == BUILD_FAILED)
        err_set(&l->end, ERR_CONFLICT, "the build of \"%.80s\" failed%s%.40s: %.200s", l->word,
                s->reason_step ? " at step " : "", s->reason_step ? s->reason_step : "",
                s->reason ? s->reason : "the service gives no reason");
    l->ended = true;
}

static void finish_build(void *ctx)
{
    struct look *l = ctx;

    l->timer = 0;
    builds_close(looks_of(l->j)->builds, l->viewer);
    look_end(l, &l->end);
}

static void on_state(void *ctx, const struct build_state *s)
{
    struct look *l = ctx;

    json_state(&l->out, s);
    look_flush(l);
    if (!s->end || l->ended)
        return;
    end_of_build(l, s);
    l->timer = net_timer(l->j->o.net, 0, finish_build, l); /* the watcher is not done with us */
}

static void follow(struct look *l)
{
    struct build_viewer v = {on_line, on_state, l};

    l->viewer = builds_open(looks_of(l->j)->builds, l->ids.v[0], l->build_id, &v);
}

void core_look_leave(struct jobs *j, uint64_t req_id)
{
    struct looks *all = looks_of(j);
    struct err e;

    for (size_t i = 0; i < all->v.n; i++) {
        struct look *l = all->v.v[i];

        if (l->req_id != req_id)
            continue;
        if (l->viewer)
            builds_close(all->builds, l->viewer);
        err_set(&e, ERR_CANCELLED, "not followed any more");
        look_end(l, &e);
        return;
    }
}

struct builds *builds_watches(struct jobs *j)
{
    return looks_of(j)->builds;
}

/* --- which build -------------------------------------------------------------------- */

static const struct e2b_build *newest(const struct e2b_result *r)
{
    const struct e2b_build *best = NULL;

    for (size_t i = 0; i < r->n_builds; i++)
        if (!best || r->builds[i].created_at > best->created_at)
            best = &r->builds[i];
    return best;
}

/* By its whole id, or by a begin of it that is no other's. */
static const struct e2b_build *by_id(const struct e2b_result *r, const char *word)
{
    const struct e2b_build *found = NULL;
    size_t len = strlen(word);

    for (size_t i = 0; i < r->n_builds; i++) {
        if (str_eq(r->builds[i].build_id, word))
            return &r->builds[i];
        if (len >= 6 && str_starts(r->builds[i].build_id, word)) {
            if (found)
                return NULL;
            found = &r->builds[i];
        }
    }
    return found;
}

static void no_build(struct look *l)
{
    struct err e;

    if (l->part)
        err_set(&e, ERR_NOTFOUND, "template \"%.80s\" has no build or tag \"%.60s\"; 'cc-tui builds "
                "%.80s' lists them", l->word, l->part, l->word);
    else
        err_set(&e, ERR_NOTFOUND, "template \"%.80s\" has no build yet", l->word);
    look_end(l, &e);
}

static void on_tags(void *ctx, const struct e2b_result *r)
{
    struct look *l = ctx;

    l->call = 0;
    for (size_t i = 0; i < r->n_tags && !l->build_id; i++)
        if (str_eq(r->tags[i].tag, l->part))
            l->build_id = xstrdup(r->tags[i].build_id);
    if (l->build_id)
        follow(l);
    else if (r->err.code && r->err.code != ERR_NOTFOUND && r->err.code != ERR_PROTO)
        look_end(l, &r->err);
    else
        no_build(l);
}

static void choose_build(struct look *l, const struct e2b_result *r)
{
    const struct e2b_build *b = l->part ? by_id(r, l->part) : newest(r);

    if (b) {
        l->build_id = xstrdup(b->build_id);
        follow(l);
    } else if (l->part) {
        l->call = e2b_tags(l->client, l->ids.v[0], &opts, on_tags, l);
    } else {
        no_build(l);
    }
}

/* --- builds of the templates found --------------------------------------------------- */

static void ask_builds(struct look *l);

static void on_template(void *ctx, const struct e2b_result *r)
{
    struct look *l = ctx;

    l->call = 0;
    if (r->err.code && !(r->err.code == ERR_NOTFOUND && !l->word)) { /* one may go meanwhile */
        look_end(l, &r->err);
    } else if (l->what == CMD_BUILD_FOLLOW) {
        choose_build(l, r);
    } else {
        for (size_t i = 0; i < r->n_builds; i++)
            json_build(&l->out, &r->builds[i], l->ids.v[l->at], l->names.v[l->at]);
        look_flush(l);
        l->at++;
        ask_builds(l);
    }
}

static void ask_builds(struct look *l)
{
    if (l->at >= l->ids.n) {
        look_end(l, NULL);
        return;
    }
    if (!l->j->e2b) {
        look_end(l, &l->j->priv->account_err);
        return;
    }
    l->client = l->j->e2b;
    l->call = e2b_template(l->client, l->ids.v[l->at], &opts, on_template, l);
}

static void add_template(struct look *l, const struct e2b_template *t)
{
    if (l->ids.n >= ALL_MAX)
        return;
    *ARR_PUSH(&l->ids) = xstrdup(t->template_id);
    *ARR_PUSH(&l->names) = xstrdup(t->names ? t->names[0] : NULL);
}

/* "claude" is "team/claude", and either may have a tag behind it. */
static bool is_called(const struct e2b_template *t, const char *word)
{
    if (str_eq(t->template_id, word))
        return true;
    for (char **n = t->names; n && *n; n++) {
        const char *slash = strrchr(*n, '/'), *tail = slash ? slash + 1 : *n;
        size_t full = strcspn(*n, ":"), bare = strcspn(tail, ":"), len = strlen(word);

        if (str_eq(*n, word) || (full == len && strncmp(*n, word, len) == 0) ||
            (bare == len && strncmp(tail, word, len) == 0))
            return true;
    }
    return false;
}

static void on_alias(void *ctx, const struct e2b_result *r)
{
    struct look *l = ctx;
    struct err e;

    l->call = 0;
    if (r->err.code == ERR_NOTFOUND)
        err_set(&e, ERR_NOTFOUND, "there is no template \"%.80s\"; 'cc-tui templates' lists them",
                l->word);
    else
        e = r->err;
    if (e.code) {
        look_end(l, &e);
        return;
    }
    add_template(l, &r->templates[0]);
    ask_builds(l);
}

static void on_templates(void *ctx, const struct e2b_result *r)
{
    struct look *l = ctx;

    l->call = 0;
    if (r->err.code) {
        look_end(l, &r->err);
        return;
    }
    for (size_t i = 0; i < r->n_templates; i++)
        if (l->what == CMD_TEMPLATES)
            json_template(&l->out, &r->templates[i]);
        else if (!l->word || (!l->ids.n && is_called(&r->templates[i], l->word)))
            add_template(l, &r->templates[i]);
    if (l->what == CMD_TEMPLATES) {
        look_end(l, NULL);
    } else if (l->word && !l->ids.n) { /* another team's public ones are in no list */
        l->call = e2b_template_alias(l->client, l->word, &opts, on_alias, l);
    } else {
        ask_builds(l);
    }
}

/* --- begin --------------------------------------------------------------------------- */

static void split_word(struct look *l)
{
    char *colon = l->what == CMD_BUILD_FOLLOW && l->word ? strrchr(l->word, ':') : NULL;

    if (!colon)
        return;
    l->part = colon[1] ? xstrdup(colon + 1) : NULL;
    *colon = '\0';
}

void core_look(struct jobs *j, struct cmd *c)
{
    const struct sandbox *row = c->sandbox ? jobs_row(j, c->sandbox) : NULL;
    struct look *l;

    if (!j->e2b) {
        jobs_done(j, c->m.req_id, &j->priv->account_err, 0);
        return;
    }
    if (c->m.type == CMD_SYSTEM_LOGS && (!row || !row->sandbox_id)) {
        core_done_err(j, c->m.req_id, c->sandbox, ERR_NOTFOUND,
                      "that sandbox has no system log: it is not there yet, or forgotten");
        return;
    }
    l = xcalloc(1, sizeof(*l));
    *ARR_PUSH(&looks_of(j)->v) = l;
    l->j = j;
    l->what = (enum cmd_type)c->m.type;
    l->req_id = c->m.req_id;
    l->row = c->sandbox;
    l->follow = c->on;
    l->word = xstrdup(c->text);
    split_word(l);
    if (l->what == CMD_SYSTEM_LOGS) {
        l->sandbox_id = xstrdup(row->sandbox_id);
        look_logs(l);
        return;
    }
    l->client = j->e2b;
    l->call = e2b_templates(l->client, NULL, &opts, on_templates, l);
}
