/* Kill all: the question with a fresh list behind it, the frozen set, the
 * intent, the retry. The deletes are in core_killrun.c, proof and report in
 * core_killproof.c. */
#include "core_priv.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/hash.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MS 10000
#define LOOK_MIN_MS 300
#define POST_MS 50
#define WAIT_MS 30000
#define INTENT_MS 2 /* the disk may not keep the kill waiting longer */

/* --- the set -------------------------------------------------------------------- */

bool killall_in_scope(const struct sandbox *row, bool account, const char *project)
{
    if (!core_row_live(row) || row->unlisted)
        return false; /* the fresh list is what counts */
    return account || (!row->foreign && str_eq(row->project, project));
}

const char *killall_project(const struct jobs *j)
{
    return jobs_project(j);
}

int killall_wait_ms(const struct jobs *j)
{
    return j->o.kill_wait_ms > 0 ? j->o.kill_wait_ms : WAIT_MS;
}

int killall_look_ms(int64_t until)
{
    int64_t left = until - clock_mono_ms();

    return left > LIST_MS ? LIST_MS : left < LOOK_MIN_MS ? LOOK_MIN_MS : (int)left;
}

size_t killall_count(const struct killall *k, int result)
{
    size_t n = 0;

    for (size_t i = 0; i < k->targets.n; i++)
        n += k->targets.v[i]->t.result == result;
    return n;
}

static void target_release(struct kill_target *t)
{
    free(t->sandbox_id);
    free(t->name);
    free(t->reason);
}

static void clear_targets(struct killall *k)
{
    for (size_t i = 0; i < k->targets.n; i++) {
        struct ka_target *t = k->targets.v[i];

        core_call_cancel(k->j, t->client, t->call);
        core_create_kill_drop(k->j, t);
        target_release(&t->t);
        free(t->mark);
        free(t);
    }
    k->targets.n = 0;
    for (size_t i = 0; i < k->newcomers.n; i++)
        target_release(&k->newcomers.v[i]);
    k->newcomers.n = 0;
}

static void add_target(struct killall *k, const struct sandbox *row)
{
    struct ka_target *t = xcalloc(1, sizeof(*t));

    t->j = k->j;
    t->row = row->id;
    t->t.sandbox_id = xstrdup(row->sandbox_id);
    t->t.name = xstrdup(row->name);
    t->t.state = row->state;
    t->mark = xstrdup(row->mark);
    if (row->protect) {
        t->t.result = 5;
        t->t.reason = xstrdup("protected");
    }
    *ARR_PUSH(&k->targets) = t;
}

/* Stands for those that would go, in any order: a create keeps its mark when it is there. */
static uint64_t set_of(const struct killall *k)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < k->targets.n; i++) {
        const struct ka_target *t = k->targets.v[i];
        const char *p = t->mark ? t->mark : t->t.sandbox_id ? t->t.sandbox_id : "";

        if (t->t.result == 0)
            sum += hash_add(HASH_BEGIN, p, strlen(p));
    }
    return sum;
}

/* What has no price is not in it. */
static double usd_per_hour(const struct jobs *j, const struct sandbox *row)
{
    struct sandbox priced = *row; /* borrowed */

    priced.usd_per_s = core_usage_rate(j, row);
    return sandbox_usd_per_hour(&priced);
}

/* What the question shows, from the table as it is now. */
static void survey(struct killall *k)
{
    struct jobs *j = k->j;

    clear_targets(k);
    k->n_project = k->n_account = k->n_protected = k->n_foreign = 0;
    k->usd_per_hour = 0;
    memset(k->by_state, 0, sizeof(k->by_state));
    for (size_t i = 0; i < j->table.n; i++) {
        const struct sandbox *row = &j->table.v[i];

        if (!killall_in_scope(row, true, NULL))
            continue;
        if (!row->protect) {
            k->n_account++;
            k->n_foreign += row->foreign;
            k->n_project += killall_in_scope(row, false, killall_project(j));
        }
        if (!killall_in_scope(row, k->account, killall_project(j)))
            continue;
        add_target(k, row);
        if (row->protect) {
            k->n_protected++;
            continue;
        }
        k->by_state[row->state]++;
        if (row->state == SB_RUNNING || row->state == SB_ERROR)
            k->usd_per_hour += usd_per_hour(j, row);
    }
    k->set = set_of(k);
}

/* --- telling -------------------------------------------------------------------- */

static struct kill_target target_copy(const struct kill_target *t)
{
    return (struct kill_target){xstrdup(t->sandbox_id), xstrdup(t->name), t->state, t->result,
                                xstrdup(t->reason)};
}

static void count_results(struct ev_kill *ev)
{
    for (size_t i = 0; i < ev->n; i++) {
        ev->killed += ev->v[i].result == 1;
        ev->already_gone += ev->v[i].result == 2;
        ev->failed += ev->v[i].result == 3;
        ev->still_alive += ev->v[i].result == 4;
    }
}

void killall_post_now(struct killall *k)
{
    struct ev_kill *ev = ev_new(EV_KILL);

    ev->phase = k->phase;
    ev->account_scope = k->account;
    ev->project = xstrdup(killall_project(k->j));
    ev->account = xstrdup(core_account_text(k->j));
    memcpy(ev->by_state, k->by_state, sizeof(ev->by_state));
    ev->n_project = k->n_project;
    ev->n_account = k->n_account;
    ev->n_protected = k->n_protected;
    ev->n_foreign = k->n_foreign;
    ev->set = k->set;
    ev->usd_per_hour = k->usd_per_hour;
    ev->verified = k->verified;
    ev->text = xstrdup(k->text);
    ev->v = xcalloc(k->targets.n + 1, sizeof(*ev->v));
    for (size_t i = 0; i < k->targets.n; i++)
        ev->v[ev->n++] = target_copy(&k->targets.v[i]->t);
    ev->newcomers = xcalloc(k->newcomers.n + 1, sizeof(*ev->newcomers));
    for (size_t i = 0; i < k->newcomers.n; i++)
        ev->newcomers[ev->n_newcomers++] = target_copy(&k->newcomers.v[i]);
    count_results(ev);
    jobs_post(k->j, ev);
}

static void post_due(void *ctx)
{
    struct killall *k = ctx;

    k->post_timer = 0;
    killall_post_now(k);
}

void killall_post(struct killall *k)
{
    if (!k->post_timer)
        k->post_timer = net_timer(k->j->o.net, POST_MS, post_due, k);
}

static void phase(struct killall *k, enum kill_phase ph, const char *text)
{
    k->phase = ph;
    core_row_set(&k->text, text);
    net_timer_cancel(k->j->o.net, k->post_timer);
    k->post_timer = 0;
    core_rows_flush(k->j);
    killall_post_now(k);
}

/* --- the question --------------------------------------------------------------- */

bool core_killall_busy(const struct jobs *j)
{
    const struct killall *k = j->priv->ka;

    return k && k->frozen && k->phase != KILL_REPORT;
}

bool core_killall_lists(const struct jobs *j)
{
    return j->priv->ka && j->priv->ka->phase == KILL_LISTING && j->priv->ka->list_call;
}

static void opened(struct killall *k, const struct err *e)
{
    uint64_t req = k->open_req;

    k->open_req = 0;
    jobs_done(k->j, req, e, 0);
}

static void cannot(struct killall *k, const struct err *e)
{
    phase(k, KILL_CANNOT, e->text);
    opened(k, e);
}

static void arm(struct killall *k)
{
    survey(k);
    e2b_warm(k->j->e2b, k->targets.n);
    phase(k, KILL_ARMED, NULL);
    opened(k, NULL);
}

static void on_list(void *ctx, const struct e2b_result *r)
{
    struct killall *k = ctx;
    struct err e = r->err;

    k->list_call = 0;
    if (e.code) {
        err_wrap(&e, "what would be killed cannot be listed");
        cannot(k, &e);
        core_link_err(k->j, &r->err);
        return;
    }
    k->had_count = r->total_running >= 0;
    k->phase = KILL_LISTING; /* the table tells us that it was renewed: not yet armed */
    core_poll_apply(k->j, r);
    arm(k);
}

static struct killall *fresh(struct jobs *j)
{
    core_killall_release(j);
    j->priv->ka = xcalloc(1, sizeof(*j->priv->ka));
    j->priv->ka->j = j;
    return j->priv->ka;
}

void core_killall_open(struct jobs *j, uint64_t req_id, bool account)
{
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = LIST_MS, .warm = true};
    struct killall *k;
    size_t up = 0;

    if (core_killall_busy(j)) {
        killall_post_now(j->priv->ka);
        core_done_err(j, req_id, 0, ERR_BUSY, "everything is being killed already");
        return;
    }
    k = fresh(j);
    k->account = account;
    k->open_req = req_id;
    if (!j->e2b) {
        cannot(k, &j->priv->account_err);
        return;
    }
    for (size_t i = 0; i < j->table.n; i++)
        up += core_row_live(&j->table.v[i]);
    e2b_warm(j->e2b, up);
    phase(k, KILL_LISTING, NULL);
    core_poll_yield(j);
    k->client = j->e2b;
    k->list_call = e2b_list(j->e2b, &o, on_list, k);
}

/* The report stays true while it is shown. */
static void come_back(struct killall *k)
{
    size_t n = 0;

    for (size_t i = 0; i < k->targets.n; i++) {
        struct ka_target *t = k->targets.v[i];
        const struct sandbox *row = t->t.result == 1 || t->t.result == 2 ? killall_row(t) : NULL;

        if (!k->verified || !row || row->unlisted || row->pending ||
            !(row->state == SB_RUNNING || row->state == SB_PAUSED))
            continue;
        t->t.result = 4;
        core_row_set(&t->t.reason, "it was gone and is listed again");
        jobs_say(k->j, 2, row->id, "%s was killed and is listed again",
                 row->name ? row->name : t->t.sandbox_id);
        n++;
    }
    if (n)
        killall_post(k);
}

/* The question stays true while it is open. */
void core_killall_listed(struct jobs *j)
{
    struct killall *k = j->priv->ka;
    size_t project, account, n;
    uint64_t set;

    if (k && k->phase == KILL_REPORT)
        come_back(k);
    if (!k || k->phase != KILL_ARMED || k->frozen)
        return;
    project = k->n_project;
    account = k->n_account;
    n = k->targets.n;
    set = k->set;
    survey(k);
    if (k->n_project != project || k->n_account != account || k->targets.n != n || k->set != set)
        phase(k, KILL_ARMED, NULL);
}

/* --- going ---------------------------------------------------------------------- */

static void go(struct killall *k)
{
    net_timer_cancel(k->j->o.net, k->go_timer);
    k->go_timer = 0;
    if (k->gone_on)
        return;
    k->gone_on = true;
    killall_run(k);
}

static void go_timed(void *ctx)
{
    struct killall *k = ctx;

    k->go_timer = 0;
    go(k);
}

static void on_intent(void *ctx, struct st_reply *r)
{
    struct killall *k = ctx;

    if (r->err.code)
        log_warn("the kill intent is not stored: %s", r->err.text);
    else if (r->n_intents)
        k->intent = r->intents[0].id;
    go(k);
}

/* Who runs it, then the ids and, of creates without one, the marks. */
static char *intent_words(const struct killall *k)
{
    struct buf b = BUF_INIT;

    buf_addf(&b, "by:%s", k->j->o.owner ? k->j->o.owner : "");
    for (size_t i = 0; i < k->targets.n; i++) {
        const struct ka_target *t = k->targets.v[i];

        if (t->t.result != 0)
            continue;
        if (t->t.sandbox_id)
            buf_addf(&b, " %s", t->t.sandbox_id);
        else if (t->mark)
            buf_addf(&b, " m:%s", t->mark);
    }
    return buf_detach(&b, NULL);
}

static void commit(struct killall *k)
{
    struct jobs *j = k->j;
    char *scope = kill_scope(j->priv->place, k->account ? NULL : killall_project(j));
    char *words = intent_words(k);

    store_intent_add(j->o.store, k->account, scope, words, jobs_store(j, on_intent, k, k));
    k->committed = true;
    k->gone_on = false;
    k->verified = false;
    k->go_timer = net_timer(j->o.net, INTENT_MS, go_timed, k);
    phase(k, KILL_RUNNING, NULL);
    free(scope);
    free(words);
}

static void count_down(void *ctx)
{
    struct killall *k = ctx;
    char *text;

    k->go_timer = 0;
    if (k->wait_s <= 0) {
        commit(k);
        return;
    }
    text = xasprintf("killing in %d s (u calls it off)", k->wait_s);
    phase(k, KILL_RUNNING, text);
    free(text);
    k->wait_s--;
    k->go_timer = net_timer(k->j->o.net, 1000, count_down, k);
}

void core_killall_confirm(struct jobs *j, uint64_t req_id, bool account, int64_t expected,
                          uint64_t set)
{
    struct killall *k = j->priv->ka;
    size_t n;

    if (!k || k->phase != KILL_ARMED || k->frozen) {
        core_done_err(j, req_id, 0, ERR_CONFLICT, "nothing was killed: the question is not open");
        return;
    }
    k->account = account;
    survey(k);
    n = killall_count(k, 0);
    if (expected >= 0 && n != (size_t)expected) {
        phase(k, KILL_ARMED, NULL);
        core_done_err(j, req_id, 0, ERR_CONFLICT, "nothing was killed: %zu sandboxes would go "
                      "now, not %lld; look again", n, (long long)expected);
        return;
    }
    if (set && set != k->set) {
        phase(k, KILL_ARMED, NULL);
        core_done_err(j, req_id, 0, ERR_CONFLICT, "nothing was killed: others would go now than "
                      "those that were shown; look again");
        return;
    }
    k->frozen = true;
    k->req = req_id;
    k->wait_s = j->o.kill_all_grace_s;
    count_down(k);
}

void core_killall_cancel(struct jobs *j)
{
    struct killall *k = j->priv->ka;
    struct err e = {0};

    if (!k || k->committed)
        return; /* it runs: what was confirmed is done */
    if (k->frozen) /* who sees it count down sees that it stopped */
        phase(k, KILL_CANNOT, "it was called off");
    err_set(&e, ERR_CANCELLED, "kill all was called off, nothing was killed");
    opened(k, &e);
    jobs_done(j, k->req, &e, 0);
    k->req = 0;
    core_killall_release(j);
}

void core_killall_retry(struct jobs *j, uint64_t req_id)
{
    struct killall *k = j->priv->ka;
    size_t n = 0;

    if (!k || k->phase != KILL_REPORT || !j->e2b) {
        core_done_err(j, req_id, 0, ERR_CONFLICT, "there is no report to try again from");
        return;
    }
    for (size_t i = 0; i < k->targets.n; i++) {
        struct kill_target *t = &k->targets.v[i]->t;

        if (t->result != 3 && t->result != 4)
            continue;
        t->result = 0;
        k->targets.v[i]->refused = false;
        core_row_set(&t->reason, NULL);
        n++;
    }
    if (!n && k->verified) {
        core_done_err(j, req_id, 0, ERR_CONFLICT, "nothing is left to be killed");
        return;
    }
    k->req = req_id;
    commit(k); /* with nothing to tell again, it asks for the proof */
}

void core_killall_release(struct jobs *j)
{
    struct killall *k = j->priv->ka;

    if (!k)
        return;
    j->priv->ka = NULL;
    jobs_store_forget(j, k);
    killall_stop(k);
    net_timer_cancel(j->o.net, k->post_timer);
    net_timer_cancel(j->o.net, k->go_timer);
    clear_targets(k);
    ARR_RELEASE(&k->targets);
    ARR_RELEASE(&k->newcomers);
    free(k->text);
    free(k);
}
