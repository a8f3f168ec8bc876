/* Agents whose start was begun by a cc-tui that is gone. How each is to be started is stored
 * before its sandbox is asked for, and forgotten when it runs or failed; whoever makes or
 * resumes one holds a lease. The steps inside the sandbox may be done twice. */
#include "core_priv.h"

#include <cct/config/tools.h>
#include <cct/jobs/session.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <inttypes.h>
#include <stdlib.h>

#define LEASE_MS 15000
#define RENEW_MS 5000

struct resume {
    struct jobs *j;
    uint64_t row;
    bool busy, said;     /* said: why it cannot go on now */
    struct start_lease lease;
    struct cmd_create *q;
    struct core_repo_key repo_key;
};

/* --- the lease -------------------------------------------------------------------- */

static char *lease_name(uint64_t row)
{
    return xasprintf(SESSION_LEASE "%" PRIu64, row);
}

static void renew(void *ctx)
{
    struct start_lease *l = ctx;
    char *name = lease_name(l->row);

    store_lease(l->j->o.store, name, l->j->o.owner, LEASE_MS, (struct st_to){NULL, 0});
    l->timer = net_timer(l->j->o.net, RENEW_MS, renew, l);
    free(name);
}

void core_start_lease(struct start_lease *l, struct jobs *j, uint64_t row)
{
    if (!row || l->timer)
        return;
    *l = (struct start_lease){j, row, 0};
    renew(l);
}

void core_start_lease_end(struct start_lease *l)
{
    char *name;

    if (!l->timer)
        return;
    net_timer_cancel(l->j->o.net, l->timer);
    name = lease_name(l->row);
    store_lease_drop(l->j->o.store, name, l->j->o.owner);
    free(name);
    *l = (struct start_lease){NULL, 0, 0};
}

/* --- the recipe -------------------------------------------------------------------- */

char *core_start_text(const struct cmd_create *q)
{
    char *skills = q->skills_len ? b64_encode(q->skills, q->skills_len) : NULL;
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "tool", q->tool);
    jw_str(&w, "command", q->command);
    jw_str(&w, "model", q->model);
    jw_str(&w, "repo", q->repo);
    jw_str(&w, "branch", q->branch);
    jw_str(&w, "systemPrompt", q->system_prompt);
    jw_str(&w, "ask", q->ask);
    jw_str(&w, "skills", skills);
    jw_end(&w);
    free(skills);
    return buf_detach(&b, NULL);
}

struct cmd_create *core_start_parse(const char *text)
{
    struct cJSON *v = text ? json_parse(text, strlen(text), NULL) : NULL;
    const char *skills = json_str(v, "skills", NULL);
    struct cmd_create *q;

    if (!json_is_object(v)) {
        json_free(v);
        return NULL;
    }
    q = xcalloc(1, sizeof(*q));
    q->tool = xstrdup(json_str(v, "tool", ""));
    q->command = xstrdup(json_str(v, "command", NULL));
    q->model = xstrdup(json_str(v, "model", NULL));
    q->repo = xstrdup(json_str(v, "repo", NULL));
    q->branch = xstrdup(json_str(v, "branch", NULL));
    q->system_prompt = xstrdup(json_str(v, "systemPrompt", NULL));
    q->ask = xstrdup(json_str(v, "ask", NULL));
    q->skills = skills ? b64_decode(skills, strlen(skills), &q->skills_len) : NULL;
    json_free(v);
    return q;
}

/* --- going on ----------------------------------------------------------------------- */

static struct resume *of_row(struct jobs *j, uint64_t row)
{
    for (size_t i = 0; i < j->priv->resumes.n; i++)
        if (j->priv->resumes.v[i]->row == row)
            return j->priv->resumes.v[i];
    return NULL;
}

/* It is tried again when the session looks again. */
static void rest(struct resume *r)
{
    core_start_lease_end(&r->lease);
    cmd_create_free(r->q);
    r->q = NULL;
    core_repo_key_release(&r->repo_key);
    r->busy = false;
}

static void resume_free(struct resume *r)
{
    jobs_store_forget(r->j, r);
    rest(r);
    free(r);
}

static void cannot(struct resume *r, const struct err *e)
{
    if (!r->said)
        jobs_say(r->j, 1, r->row, "its start was interrupted and cannot go on yet: %s", e->text);
    r->said = true;
    rest(r);
}

static void on_provisioned(void *ctx, const struct err *e)
{
    struct resume *r = ctx;
    struct jobs *j = r->j;
    struct sandbox *row = jobs_row(j, r->row);
    struct session *s = row ? session_of(j, r->row) : NULL;

    if (e && e->code == ERR_CANCELLED) { /* paused, killed, or we end */
        rest(r);
        return;
    }
    store_start_put(j->o.store, r->row, NULL, (struct st_to){NULL, 0});
    if (e && row && row->state != SB_KILLED)
        jobs_row_error(j, row, true, e->text);
    if (!e && row) {
        row->state = SB_RUNNING;
        row->pending = false;
        core_row_step_over(row);
        jobs_row_changed(j, row);
        jobs_say(j, 0, row->id, "%s runs: its start was interrupted and went on here",
                 core_row_name(row));
    }
    rest(r);
    if (!e && s) {
        session_relay(s);
        session_follow(s);
    }
}

static struct kv *env_of(struct resume *r, const struct sandbox *row, const struct tool *t,
                         struct err *e)
{
    const struct core_env_q q = {.t = t, .model = r->q->model, .project = row->project,
                                 .restart = true, .own_names = kv_get(row->meta, "cc-tui-own")};
    char *missing = NULL;
    struct kv *env = row->pair ? core_pair_env(r->j, row->pair, &q, &missing, e)
                               : core_keys_env(r->j, &q, &missing, e);

    free(missing); /* was said when it was made */
    if (env && core_keys_repo(r->j, r->q->repo, NULL, &r->repo_key, e) != 0) {
        keys_env_free(env);
        env = NULL;
    }
    return env;
}

static void go_on(struct resume *r)
{
    struct sandbox *row = jobs_row(r->j, r->row);
    struct session *s = row ? session_of(r->j, r->row) : NULL;
    const struct tool *t = tools_find(r->j->o.tools, r->q->tool);
    struct err e = {0};
    struct kv *env;

    if (!row || !s || row->state == SB_KILLED) {
        rest(r);
        return;
    }
    if (!t) {
        err_set(&e, ERR_NOTFOUND, "the tool \"%s\" is not known here", r->q->tool);
        cannot(r, &e);
        return;
    }
    env = env_of(r, row, t, &e);
    if (!env) {
        cannot(r, &e);
        return;
    }
    struct session_start q = {.tool = r->q->tool,
                              .command = r->q->command,
                              .model = r->q->model,
                              .system_prompt = r->q->system_prompt,
                              .ask = r->q->ask,
                              .skills = r->q->skills,
                              .skills_len = r->q->skills_len,
                              .repo = r->q->repo,
                              .branch = r->q->branch,
                              .env = env,
                              .repo_key = r->repo_key.key,
                              .repo_key_name = r->repo_key.name};
    session_provision(s, &q, on_provisioned, r);
    keys_env_free(env);
}

static void on_lease(void *ctx, struct st_reply *reply)
{
    struct resume *r = ctx;

    if (reply->err.code || !reply->got) { /* somebody starts it */
        rest(r);
        return;
    }
    core_start_lease(&r->lease, r->j, r->row);
    go_on(r);
}

static void on_recipe(void *ctx, struct st_reply *reply)
{
    struct resume *r = ctx;
    char *name;

    r->q = core_start_parse(reply->text);
    if (!r->q) {
        rest(r);
        return;
    }
    name = lease_name(r->row);
    store_lease(r->j->o.store, name, r->j->o.owner, LEASE_MS,
                jobs_store(r->j, on_lease, r, r));
    free(name);
}

void jobs_agent_missing(struct jobs *j, uint64_t row)
{
    struct resume *r = of_row(j, row);

    if (j->o.readonly || core_create_runs(j, row) || (r && r->busy))
        return;
    if (!r) {
        r = xcalloc(1, sizeof(*r));
        r->j = j;
        r->row = row;
        *ARR_PUSH(&j->priv->resumes) = r;
    }
    r->busy = true;
    store_start_of(j->o.store, row, jobs_store(j, on_recipe, r, r));
}

void jobs_agent_found(struct jobs *j, uint64_t row)
{
    if (!j->o.readonly && !core_create_runs(j, row) && !of_row(j, row))
        store_start_put(j->o.store, row, NULL, (struct st_to){NULL, 0});
}

void core_resume_release(struct jobs *j)
{
    for (size_t i = 0; i < j->priv->resumes.n; i++)
        resume_free(j->priv->resumes.v[i]);
    ARR_RELEASE(&j->priv->resumes);
}
