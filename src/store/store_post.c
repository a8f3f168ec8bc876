/* The calls of cct/store.h: each becomes a request on the queue. Any thread. */
#include "store_priv.h"

#include <cct/model/pair.h>
#include <cct/model/tbuild.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void free_letters(struct st_letter *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(v[i].text);
    free(v);
}

static void free_append(struct st_append *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n_events; i++) {
        if (!a->json)
            free(a->events[i].json);
        st_use_free(a->events[i].use);
    }
    free(a->json);
    free(a->events);
    free(a->raw);
    free(a);
}

static void free_request(struct msg *m)
{
    struct st_req *q = (struct st_req *)m;
    free(q->s1);
    free(q->s2);
    free(q->s3);
    st_keys_free(q->keys);
    if (q->project)
        project_release(q->project);
    free(q->project);
    pair_free(q->pair);
    if (q->build)
        tbuild_release(q->build);
    free(q->build);
    free_append(q->append);
    free_letters(q->letters, q->n_letters);
    free(q->sightings);
    free(q->ledger);
    free(q->spans);
    if (q->sandbox)
        sandbox_release(q->sandbox);
    free(q->sandbox);
    free(q);
}

static struct st_req *request(enum st_op op, struct st_to to, uint64_t id)
{
    struct st_req *q = xcalloc(1, sizeof(*q));
    msg_init(&q->m, op, sizeof(*q), free_request);
    q->m.req_id = to.req_id;
    q->to = to;
    q->id = id;
    return q;
}

static void post(struct store *s, struct st_req *q)
{
    size_t bytes = q->m.bytes + (q->s1 ? strlen(q->s1) : 0);
    if (q->append)
        bytes += q->append->len;
    for (size_t i = 0; i < q->n_letters; i++)
        bytes += strlen(q->letters[i].text);
    for (size_t i = 0; q->append && i < q->append->n_events; i++)
        bytes += q->append->events[i].len + sizeof(struct st_event);
    q->m.bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    atomic_fetch_add(&s->pending, (int64_t)q->m.bytes);
    atomic_fetch_add(&s->requests, 1);
    /* a kill that was confirmed does not queue behind rows */
    mq_post(s->in, q->m.type == OP_INTENT_ADD ? MQ_URGENT : MQ_NORMAL, &q->m);
}

void store_sandboxes(struct store *s, struct st_to to)
{
    post(s, request(OP_SANDBOXES, to, 0));
}

void store_put_sandbox(struct store *s, const struct sandbox *sb, struct st_to to)
{
    struct st_req *q = request(OP_PUT_SANDBOX, to, sb->id);
    q->sandbox = xmalloc(sizeof(*q->sandbox));
    sandbox_snapshot(q->sandbox, sb);
    post(s, q);
}

void store_own_sandbox(struct store *s, const struct sandbox *sb, struct st_to to)
{
    struct st_req *q = request(OP_PUT_SANDBOX, to, sb->id);
    q->sandbox = xmalloc(sizeof(*q->sandbox));
    sandbox_snapshot(q->sandbox, sb);
    q->flag = true;
    post(s, q);
}

void store_owned(struct store *s, bool all, struct st_to to)
{
    struct st_req *q = request(OP_OWNED, to, 0);
    q->flag = all;
    post(s, q);
}

void store_del_sandbox(struct store *s, uint64_t id, struct st_to to)
{
    post(s, request(OP_DEL_SANDBOX, to, id));
}

void store_run_open(struct store *s, uint64_t sandbox, const char *session, int64_t epoch,
                    struct st_to to)
{
    struct st_req *q = request(OP_RUN_OPEN, to, sandbox);
    q->s1 = xstrdup(session);
    q->n1 = epoch;
    post(s, q);
}

void store_append(struct store *s, struct st_append *take, struct st_to to)
{
    struct st_req *q = request(OP_APPEND, to, take->run);
    q->append = xmalloc(sizeof(*q->append));
    *q->append = *take;
    take->raw = take->json = NULL;
    take->events = NULL;
    take->len = take->n_events = 0;
    post(s, q);
}

void store_run_end(struct store *s, uint64_t run, int code, int sig, struct st_to to)
{
    struct st_req *q = request(OP_RUN_END, to, run);
    q->n1 = code;
    q->n2 = sig;
    post(s, q);
}

void store_events(struct store *s, uint64_t run, uint64_t offset, uint32_t index, bool before,
                  size_t limit, struct st_to to)
{
    struct st_req *q = request(OP_EVENTS, to, run);
    q->offset = offset < INT64_MAX ? offset : INT64_MAX;
    q->n1 = index;
    q->n2 = limit < INT32_MAX ? (int64_t)limit : INT32_MAX;
    q->flag = before;
    post(s, q);
}

void store_events_summed(struct store *s, uint64_t run, uint64_t offset, uint32_t index,
                         size_t limit, struct st_to to)
{
    struct st_req *q = request(OP_EVENTS_SUMMED, to, run);
    q->offset = offset < INT64_MAX ? offset : INT64_MAX;
    q->n1 = index;
    q->n2 = (int64_t)limit;
    post(s, q);
}

void store_raw(struct store *s, uint64_t run, uint64_t offset, size_t max, struct st_to to)
{
    struct st_req *q = request(OP_RAW, to, run);
    q->offset = offset < INT64_MAX ? offset : INT64_MAX;
    q->n1 = max < INT32_MAX ? (int64_t)max : INT32_MAX;
    post(s, q);
}

void store_message_add(struct store *s, uint64_t sandbox, const char *text, struct st_to to)
{
    struct st_req *q = request(OP_MESSAGE_ADD, to, sandbox);
    q->s1 = xstrdup(text);
    post(s, q);
}

void store_message_add_first(struct store *s, uint64_t sandbox, const char *text,
                             struct st_to to)
{
    struct st_req *q = request(OP_MESSAGE_ADD, to, sandbox);
    q->s1 = xstrdup(text);
    q->flag = true;
    post(s, q);
}

void store_messages_add(struct store *s, const struct st_letter *v, size_t n, bool first,
                        struct st_to to)
{
    struct st_req *q = request(OP_MESSAGES_ADD, to, 0);
    q->letters = xcalloc(n + 1, sizeof(*q->letters));
    q->n_letters = n;
    q->flag = first;
    for (size_t i = 0; i < n; i++)
        q->letters[i] = (struct st_letter){v[i].sandbox, xstrdup(v[i].text)};
    post(s, q);
}

void store_messages(struct store *s, uint64_t sandbox, size_t limit, struct st_to to)
{
    struct st_req *q = request(OP_MESSAGES, to, sandbox);
    q->n1 = limit < INT32_MAX ? (int64_t)limit : INT32_MAX;
    post(s, q);
}

void store_message(struct store *s, uint64_t id, struct st_to to)
{
    post(s, request(OP_MESSAGE, to, id));
}

void store_message_claim(struct store *s, uint64_t sandbox, const char *owner, int ttl_ms,
                         struct st_to to)
{
    struct st_req *q = request(OP_MESSAGE_CLAIM, to, sandbox);
    q->s1 = xstrdup(owner);
    q->n1 = ttl_ms;
    post(s, q);
}

void store_message_unclaim(struct store *s, uint64_t sandbox, const char *owner)
{
    struct st_req *q = request(OP_MESSAGE_UNCLAIM, (struct st_to){NULL, 0}, sandbox);
    q->s1 = xstrdup(owner);
    post(s, q);
}

void store_message_state(struct store *s, uint64_t id, enum msg_state from,
                         enum msg_state to_state, const char *error, struct st_to to)
{
    struct st_req *q = request(OP_MESSAGE_STATE, to, id);
    q->n1 = from;
    q->n2 = to_state;
    q->s1 = xstrdup(error);
    post(s, q);
}

static struct st_req *on_answer(enum st_op op, const struct st_ask *a, struct st_to to)
{
    struct st_req *q = request(op, to, a->run);
    q->offset = a->offset;
    q->n1 = a->index;
    return q;
}

void store_answer_add(struct store *s, const struct st_ask *a, int choice, const char *text,
                      struct st_to to)
{
    struct st_req *q = on_answer(OP_ANSWER_ADD, a, to);
    q->n2 = choice;
    q->s1 = xstrdup(text);
    post(s, q);
}

void store_answer_sent(struct store *s, const struct st_ask *a, struct st_to to)
{
    post(s, on_answer(OP_ANSWER_SENT, a, to));
}

void store_answers(struct store *s, uint64_t run, struct st_to to)
{
    post(s, request(OP_ANSWERS, to, run));
}

void store_pair(struct store *s, uint64_t sandbox, struct st_to to)
{
    post(s, request(OP_PAIR, to, sandbox));
}

void store_pair_put(struct store *s, const struct pair *p, const char *message, int call_off,
                    struct st_to to)
{
    struct st_req *q = request(OP_PAIR_PUT, to, p->sandbox);
    q->pair = pair_dup(p, true);
    q->s1 = xstrdup(message);
    q->n1 = call_off;
    post(s, q);
}

void store_lease(struct store *s, const char *name, const char *owner, int ttl_ms,
                 struct st_to to)
{
    struct st_req *q = request(OP_LEASE, to, 0);
    q->s1 = xstrdup(name);
    q->s2 = xstrdup(owner);
    q->n1 = ttl_ms;
    post(s, q);
}

void store_lease_drop(struct store *s, const char *name, const char *owner)
{
    struct st_req *q = request(OP_LEASE_DROP, (struct st_to){NULL, 0}, 0);
    q->s1 = xstrdup(name);
    q->s2 = xstrdup(owner);
    post(s, q);
}

void store_intent_add(struct store *s, bool account, const char *project, const char *target,
                      struct st_to to)
{
    struct st_req *q = request(OP_INTENT_ADD, to, 0);
    q->flag = account;
    q->s1 = xstrdup(project);
    q->s2 = xstrdup(target);
    post(s, q);
}

void store_intent_done(struct store *s, uint64_t id, struct st_to to)
{
    post(s, request(OP_INTENT_DONE, to, id));
}

void store_intents(struct store *s, struct st_to to)
{
    post(s, request(OP_INTENTS, to, 0));
}

void store_log_add(struct store *s, int level, uint64_t sandbox, const char *text)
{
    struct st_req *q = request(OP_LOG_ADD, (struct st_to){NULL, 0}, sandbox);
    q->n1 = level;
    q->n2 = clock_wall_ms();
    q->s1 = xstrdup(text);
    post(s, q);
}

void store_log(struct store *s, size_t limit, struct st_to to)
{
    struct st_req *q = request(OP_LOG, to, 0);
    q->n1 = limit < INT32_MAX ? (int64_t)limit : INT32_MAX;
    post(s, q);
}

void store_keys(struct store *s, const char *project, const char *folder, int64_t known,
                struct st_to to)
{
    struct st_req *q = request(OP_KEYS, to, 0);
    q->s1 = xstrdup(project);
    q->s2 = xstrdup(folder);
    q->n1 = known;
    post(s, q);
}

void store_project(struct store *s, const char *name, struct st_to to)
{
    struct st_req *q = request(OP_PROJECT, to, 0);
    q->s1 = xstrdup(name);
    q->n1 = clock_wall_ms();
    post(s, q);
}

void store_project_rename(struct store *s, const char *id, const char *name, struct st_to to)
{
    struct st_req *q = request(OP_PROJECT_RENAME, to, 0);
    q->s1 = xstrdup(id);
    q->s2 = xstrdup(name);
    post(s, q);
}

void store_project_folder(struct store *s, const char *id, const char *folder, struct st_to to)
{
    struct st_req *q = request(OP_PROJECT_FOLDER, to, 0);
    q->s1 = xstrdup(id);
    q->s2 = xstrdup(folder);
    post(s, q);
}

void store_projects(struct store *s, const char *name, int64_t known, struct st_to to)
{
    struct st_req *q = request(OP_PROJECTS, to, 0);
    q->s1 = xstrdup(name);
    q->n1 = known;
    post(s, q);
}

void store_project_put(struct store *s, const struct project *p, struct st_to to)
{
    struct st_req *q = request(OP_PROJECT_PUT, to, 0);
    q->project = xcalloc(1, sizeof(*q->project));
    project_copy(q->project, p);
    post(s, q);
}

void store_project_del(struct store *s, const char *id, struct st_to to)
{
    struct st_req *q = request(OP_PROJECT_DEL, to, 0);
    q->s1 = xstrdup(id);
    post(s, q);
}

void store_project_used(struct store *s, const char *id, struct st_to to)
{
    struct st_req *q = request(OP_PROJECT_USED, to, 0);
    q->s1 = xstrdup(id);
    q->n1 = clock_wall_ms();
    post(s, q);
}

void store_project_var(struct store *s, const char *id, const char *name, const char *value,
                       struct st_to to)
{
    struct st_req *q = request(OP_PROJECT_VAR, to, 0);
    q->s1 = xstrdup(id);
    q->s2 = xstrdup(name);
    q->s3 = xstrdup(value);
    q->n1 = clock_wall_ms();
    post(s, q);
}

void store_project_var_del(struct store *s, const char *id, const char *name, struct st_to to)
{
    struct st_req *q = request(OP_PROJECT_VAR_DEL, to, 0);
    q->s1 = xstrdup(id);
    q->s2 = xstrdup(name);
    post(s, q);
}

void store_preset(struct store *s, const char *project, const char *name,
                  const struct project_choice *c, struct st_to to)
{
    struct st_req *q = request(OP_PRESET, to, 0);
    q->s1 = xstrdup(project);
    q->s2 = xstrdup(name);
    q->project = c ? xcalloc(1, sizeof(*q->project)) : NULL;
    if (c)
        project_choice_copy(&q->project->defaults, c);
    post(s, q);
}

void store_filter(struct store *s, const char *name, const char *words, struct st_to to)
{
    struct st_req *q = request(OP_FILTER, to, 0);
    q->s1 = xstrdup(name);
    q->s2 = words ? xstrdup(words) : NULL;
    post(s, q);
}

void store_vault_put(struct store *s, struct st_keys *take, struct st_to to)
{
    struct st_req *q = request(OP_VAULT_PUT, to, 0);
    q->keys = take;
    post(s, q);
}

void store_key_put(struct store *s, const char *vault, const struct st_key *k, struct st_to to)
{
    struct st_req *q = request(OP_KEY_PUT, to, 0);
    q->s1 = xstrdup(vault);
    q->keys = xcalloc(1, sizeof(*q->keys));
    q->keys->v = xcalloc(1, sizeof(*q->keys->v));
    q->keys->n = 1;
    st_key_copy(q->keys->v, k);
    post(s, q);
}

void store_key_del(struct store *s, const char *project, const char *provider, const char *api,
                   struct st_to to)
{
    struct st_req *q = request(OP_KEY_DEL, to, 0);
    q->s1 = xstrdup(project);
    q->s2 = xstrdup(provider);
    q->s3 = xstrdup(api);
    post(s, q);
}

void store_prune(struct store *s, struct st_to to)
{
    post(s, request(OP_PRUNE, to, 0));
}

void store_sightings(struct store *s, const struct st_sighting *v, size_t n,
                     const char *rate_date)
{
    struct st_req *q = request(OP_SIGHTINGS, (struct st_to){NULL, 0}, 0);
    q->sightings = xcalloc(n + 1, sizeof(*v));
    memcpy(q->sightings, v, n * sizeof(*v));
    q->n_sightings = n;
    q->s1 = xstrdup(rate_date);
    post(s, q);
}

void store_ledger(struct store *s, const struct ledger_query *query, struct st_to to)
{
    struct st_req *q = request(OP_LEDGER, to, 0);
    q->ledger = xmalloc(sizeof(*q->ledger));
    *q->ledger = *query;
    post(s, q);
}

void store_doubts(struct store *s, const char *account, int64_t now, size_t limit,
                  struct st_to to)
{
    struct st_req *q = request(OP_DOUBTS, to, 0);
    q->s1 = xstrdup(account);
    q->n1 = now;
    q->n2 = (int64_t)limit;
    post(s, q);
}

void store_runs_told(struct store *s, const char *sandbox_id, int64_t from, const struct span *v,
                     size_t n, bool settled, struct st_to to)
{
    struct st_req *q = request(OP_RUNS_TOLD, to, 0);
    q->s1 = xstrdup(sandbox_id);
    q->n1 = from;
    q->spans = xcalloc(n + 1, sizeof(*v));
    if (n)
        memcpy(q->spans, v, n * sizeof(*v));
    q->n_spans = n;
    q->flag = settled;
    post(s, q);
}

void store_start_put(struct store *s, uint64_t sandbox, const char *recipe, struct st_to to)
{
    struct st_req *q = request(OP_START_PUT, to, sandbox);
    q->s1 = xstrdup(recipe);
    post(s, q);
}

void store_start_of(struct store *s, uint64_t sandbox, struct st_to to)
{
    post(s, request(OP_START, to, sandbox));
}

void store_budget_told(struct store *s, const char *period, int64_t begin, const char *project,
                       int pct, struct st_to to)
{
    struct st_req *q = request(OP_BUDGET_TOLD, to, 0);
    q->s1 = xstrdup(period);
    q->s2 = xstrdup(project ? project : "");
    q->n1 = begin;
    q->n2 = pct;
    post(s, q);
}

void store_ledger_forget(struct store *s, uint64_t run, uint64_t below)
{
    struct st_req *q = request(OP_LEDGER_FORGET, (struct st_to){NULL, 0}, run);
    q->offset = below < INT64_MAX ? below : INT64_MAX;
    post(s, q);
}

void store_builds(struct store *s, bool only_changed, struct st_to to)
{
    struct st_req *q = request(OP_BUILDS, to, 0);
    q->n1 = only_changed;
    post(s, q);
}

void store_build_put(struct store *s, const struct tbuild *b, struct st_to to)
{
    struct st_req *q = request(OP_BUILD_PUT, to, b->id);
    q->build = xcalloc(1, sizeof(*q->build));
    tbuild_copy(q->build, b);
    post(s, q);
}

void store_build_del(struct store *s, uint64_t id, struct st_to to)
{
    post(s, request(OP_BUILD_DEL, to, id));
}

void store_runs(struct store *s, uint64_t sandbox, struct st_to to)
{
    post(s, request(OP_RUNS, to, sandbox));
}

void store_search(struct store *s, const char *words, uint64_t sandbox, size_t limit,
                  uint64_t before, bool whole, struct st_to to)
{
    struct st_req *q = request(OP_SEARCH, to, sandbox);
    q->s1 = xstrdup(words);
    q->n1 = (int64_t)(limit < 10000 ? limit : 10000);
    q->offset = before;
    q->flag = whole;
    post(s, q);
}
