/* cc-tui kill: named sandboxes, or all. What is said at the end is what a fresh list
 * shows, not what was hoped. */
#include "cli_priv.h"

#include <cct/util/arr.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One sandbox that was to be killed, and what became of it. */
struct target {
    uint64_t id;
    char *sandbox_id, *name, *reason;
    enum { T_KILLED, T_GONE, T_FAILED, T_ALIVE, T_PROTECTED, T_NEWCOMER } result;
};
struct report {
    ARR(struct target) v;
    size_t count[T_NEWCOMER + 1];
    bool verified;
    char *why; /* it is not */
};

static struct target *add(struct report *r, const char *sandbox_id, const char *name)
{
    struct target *t = ARR_PUSH(&r->v);
    t->sandbox_id = xstrdup(sandbox_id ? sandbox_id : "");
    t->name = xstrdup(name ? name : "");
    return t;
}

static void report_release(struct report *r)
{
    for (size_t i = 0; i < r->v.n; i++) {
        free(r->v.v[i].sandbox_id);
        free(r->v.v[i].name);
        free(r->v.v[i].reason);
    }
    ARR_RELEASE(&r->v);
    free(r->why);
}

static void count(struct report *r)
{
    memset(r->count, 0, sizeof(r->count));
    for (size_t i = 0; i < r->v.n; i++)
        r->count[r->v.v[i].result]++;
}

static void json_ids(struct jw *w, const char *name, const struct report *r, int result)
{
    jw_arr(w, name);
    for (size_t i = 0; i < r->v.n; i++)
        if ((int)r->v.v[i].result == result)
            jw_str(w, NULL, r->v.v[i].sandbox_id);
    jw_end(w);
}

static void report_json(const struct report *r, bool dry)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_i64(&w, "listed", (int64_t)(r->v.n - r->count[T_NEWCOMER]));
    if (dry) {
        jw_bool(&w, "dryRun", true);
        json_ids(&w, "sandboxes", r, T_KILLED);
        json_ids(&w, "protected", r, T_PROTECTED);
    } else {
        jw_i64(&w, "killed", (int64_t)r->count[T_KILLED]);
        jw_i64(&w, "alreadyGone", (int64_t)r->count[T_GONE]);
        jw_arr(&w, "failed");
        for (size_t i = 0; i < r->v.n; i++)
            if (r->v.v[i].result == T_FAILED) {
                jw_obj(&w, NULL);
                jw_str(&w, "sandboxID", r->v.v[i].sandbox_id);
                jw_str(&w, "reason", r->v.v[i].reason);
                jw_end(&w);
            }
        jw_end(&w);
        json_ids(&w, "stillAlive", r, T_ALIVE);
        json_ids(&w, "protected", r, T_PROTECTED);
        json_ids(&w, "startedMeanwhile", r, T_NEWCOMER);
        jw_bool(&w, "verified", r->verified);
    }
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

static void report_text(const struct cli *c, const struct report *r)
{
    static const char *const words[] = {"killed", "already gone", "failed", "still alive",
                                        "protected, left alone", "started meanwhile, left alone"};
    for (size_t i = 0; i < r->v.n; i++) {
        const struct target *t = &r->v.v[i];
        bool bad = t->result >= T_FAILED;
        char *text = xasprintf("%s%s%s%s: %s%s%s\n", t->sandbox_id, *t->name ? " (" : "", t->name,
                               *t->name ? ")" : "",
                               t->result == T_KILLED && !r->verified ? "told to go"
                                                                     : words[t->result],
                               t->reason ? ": " : "", t->reason ? t->reason : "");

        if (bad)
            cli_err("%s", text);
        else
            cli_out("%s", text);
        free(text);
    }
    cli_say(c, "%zu %s, %zu already gone, %zu failed, %zu still alive", r->count[T_KILLED],
            r->verified ? "killed" : "told to go", r->count[T_GONE], r->count[T_FAILED],
            r->count[T_ALIVE]);
    if (r->count[T_NEWCOMER])
        cli_say(c, "%zu started meanwhile and left alone: they were not asked about",
                r->count[T_NEWCOMER]);
}

/* Print, and the exit status: 3 when something is left. */
static int tell(const struct cli *c, struct report *r)
{
    count(r);
    if (cli_json(c))
        report_json(r, false);
    else if (cli_has(c, CLI_QUIET))
        cli_out("%zu\n", r->count[T_KILLED]);
    else
        report_text(c, r);
    if (!r->verified)
        cli_say(c, "NOT VERIFIED: %s",
                r->why ? r->why : "the list could not be had again; look at 'cc-tui ls'");
    size_t left = r->count[T_FAILED] + r->count[T_ALIVE] + r->count[T_PROTECTED] +
                  r->count[T_NEWCOMER];
    return left || !r->verified ? CLI_SOME_FAILED : CLI_OK;
}

static int tell_dry(const struct cli *c, struct report *r)
{
    count(r);
    if (cli_json(c)) {
        report_json(r, true);
        return CLI_OK;
    }
    for (size_t i = 0; i < r->v.n; i++)
        if (r->v.v[i].result == T_KILLED)
            cli_out("%s %s\n", r->v.v[i].sandbox_id, r->v.v[i].name);
    cli_say(c, "would kill %zu", r->count[T_KILLED]);
    if (r->count[T_PROTECTED])
        cli_say(c, "%zu protected would be left alone", r->count[T_PROTECTED]);
    return CLI_OK;
}

/* 0 = go; else the exit status. */
static int may_kill(const struct cli *c, const char *question)
{
    if (cli_has(c, CLI_YES))
        return CLI_OK;
    if (cli_ask(question))
        return CLI_OK;
    cli_tell("nothing was killed");
    return CLI_DECLINED;
}

/* --- named ones ---------------------------------------------------------------- */

static int find_named(struct cli_app *a, struct report *r, struct err *e)
{
    const struct cli *c = a->c;
    for (int i = 0; i < c->n_args; i++) {
        const struct sandbox *s = cli_app_find(a, c->args[i], e);
        if (!s)
            return e->code;
        bool twice = false;
        for (size_t k = 0; k < r->v.n; k++)
            twice |= r->v.v[k].id == s->id;
        if (!twice)
            add(r, s->sandbox_id, s->name)->id = s->id;
    }
    return 0;
}

static int ask_named(const struct cli *c, const struct report *r)
{
    struct buf b = BUF_INIT;
    buf_addf(&b, "kill %zu sandbox%s:", r->v.n, r->v.n == 1 ? "" : "es");
    for (size_t i = 0; i < r->v.n; i++)
        buf_addf(&b, "%s %s", i ? "," : "",
                 *r->v.v[i].name ? r->v.v[i].name : r->v.v[i].sandbox_id);
    buf_adds(&b, "?");
    int status = may_kill(c, buf_str(&b));
    buf_release(&b);
    return status;
}

/* All at once: one list proves them together. */
static int kill_named(struct cli_app *a, struct report *r, struct err *e)
{
    struct cli_wait *w = xcalloc(r->v.n, sizeof(*w));
    for (size_t i = 0; i < r->v.n; i++) {
        struct target *t = &r->v.v[i];
        const struct sandbox *s = model_sandbox(app_model(a->app), t->id);
        w[i].done = !s || !cli_is_up(s);
        t->result = w[i].done ? T_GONE : T_KILLED;
        w[i].req = w[i].done ? 0 : app_kill(a->app, t->id);
    }
    int rc = cli_app_wait_all(a, w, r->v.n, e);
    for (size_t i = 0; i < r->v.n; i++) {
        struct target *t = &r->v.v[i];
        if (!w[i].err.code)
            continue;
        t->result = w[i].err.code == ERR_NOTFOUND ? T_GONE : T_FAILED;
        t->reason = t->result == T_FAILED ? xstrdup(w[i].err.text) : NULL;
    }
    free(w);
    if (rc != 0)
        return rc;
    r->verified = cli_app_refresh(a, e) == 0;
    for (size_t i = 0; i < r->v.n && r->verified; i++) {
        struct target *t = &r->v.v[i];
        const struct sandbox *s = model_sandbox(app_model(a->app), t->id);
        if (t->result != T_FAILED && s && cli_is_up(s))
            t->result = T_ALIVE;
    }
    return a->signal ? e->code : 0;
}

/* --- all ----------------------------------------------------------------------- */

static bool is_reported(struct cli_app *a)
{
    const struct ev_kill *k = app_model(a->app)->kill;
    return (k && k->phase == KILL_REPORT) || a->done;
}

static void add_targets(const struct ev_kill *k, struct report *r)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct kill_target *kt = &k->v[i];
        struct target *t = add(r, kt->sandbox_id, kt->name);
        t->result = kt->result == 1   ? T_KILLED
                    : kt->result == 2 ? T_GONE
                    : kt->result == 4 ? T_ALIVE
                    : kt->result == 5 ? T_PROTECTED
                                      : T_FAILED;
        if (k->phase == KILL_ARMED && kt->result == 0)
            t->result = T_KILLED; /* it would be */
        else if (t->result == T_FAILED)
            t->reason = xstrdup(kt->reason ? kt->reason : "not tried");
        else if (t->result == T_ALIVE)
            t->reason = xstrdup(kt->reason);
    }
    for (size_t i = 0; i < k->n_newcomers; i++)
        add(r, k->newcomers[i].sandbox_id, k->newcomers[i].name)->result = T_NEWCOMER;
    r->verified = k->verified;
    r->why = xstrdup(k->verified ? NULL : k->text);
}

/* In the line mode as the screen does it. */
static int may_kill_all(const struct cli *c, const char *question, size_t n)
{
    const char *how = c->config->o.kill_all_confirm;

    if (!cli_shared() || cli_has(c, CLI_YES))
        return may_kill(c, question);
    if (str_eq(how, "never"))
        return CLI_OK;
    if (n < APP_NUMBER_FROM && !str_eq(how, "always"))
        return may_kill(c, question);
    if (cli_ask_number(question, n))
        return CLI_OK;
    cli_tell("nothing was killed");
    return CLI_DECLINED;
}

static int ask_all(const struct cli *c, const struct ev_kill *k, size_t n)
{
    char *q = xasprintf(
        "kill %s %zu sandbox%s of %s%s%s, %s (%zu running, %zu paused, %zu creating, %zu error; "
        "%zu not started here; $%.2f/h)?",
        n == 1 ? "the" : "all", n, n == 1 ? "" : "es",
        k->account_scope ? "everything" : "project ",
        k->account_scope ? "" : (k->project ? k->project : "default"),
        k->account_scope ? " under this key" : "", k->account ? k->account : "no account",
        k->by_state[SB_RUNNING], k->by_state[SB_PAUSED], k->by_state[SB_CREATING],
        k->by_state[SB_ERROR], k->account_scope ? k->n_foreign : 0, k->usd_per_hour);
    int status = may_kill_all(c, q, n);
    free(q);
    return status;
}

/* The user stopped the wait, not the deletes: nothing is proved yet. */
static int cut_short(struct cli_app *a, const struct err *e)
{
    const struct ev_kill *k = app_model(a->app)->kill;
    size_t answered = 0, n = 0;

    for (size_t i = 0; k && k->phase != KILL_LISTING && i < k->n; i++) {
        n += k->v[i].result != 5;
        answered += k->v[i].result != 0 && k->v[i].result != 5;
    }
    if (e->code == ERR_CANCELLED && n)
        cli_say(a->c, "NOT VERIFIED: %zu of %zu deletes were answered, the others may have gone "
                "out too; 'cc-tui ls' shows what is left, the same command ends it", answered, n);
    return cli_app_fail(a, e);
}

/* The exit status; *r is told unless it is negative. */
static int kill_all(struct cli_app *a, struct report *r, struct err *e)
{
    const struct cli *c = a->c;
    bool account = str_eq(c->value[CLI_SCOPE], "account");
    const struct ev_kill *k;

    if (cli_app_wait(a, app_kill_all_open(a->app, account), e) != 0)
        return cli_app_fail(a, e);
    k = app_model(a->app)->kill;
    size_t n = account ? k->n_account : k->n_project;
    if (cli_has(c, CLI_DRY_RUN)) {
        add_targets(k, r);
        app_kill_all_cancel(a->app);
        return tell_dry(c, r);
    }
    if (n == 0)
        cli_say(c, "there is nothing to kill in this scope");
    int status = n == 0 ? CLI_OK : ask_all(c, k, n);
    if (status != CLI_OK) {
        app_kill_all_cancel(a->app);
        return status;
    }
    a->progress = cli_has(c, CLI_VERBOSE);
    a->done = false;
    a->wanted = app_kill_all_confirm(a->app, account, cli_has(c, CLI_YES) ? SIZE_MAX : n);
    if (cli_app_until(a, is_reported, -1, e) != 0)
        return cut_short(a, e);
    k = app_model(a->app)->kill;
    if (!k || k->phase != KILL_REPORT)
        return cli_fail(&a->err);
    add_targets(k, r);
    return tell(c, r);
}

/* --- both ---------------------------------------------------------------------- */

static int run(struct cli *c, struct cli_app *a, struct report *r)
{
    struct err e = {0};
    if (cli_has(c, CLI_ALL))
        return kill_all(a, r, &e); /* with a list of its own */
    if (cli_app_refresh(a, &e) != 0)
        return cli_app_fail(a, &e);
    if (find_named(a, r, &e) != 0)
        return cli_app_fail(a, &e);
    if (cli_has(c, CLI_DRY_RUN))
        return tell_dry(c, r);
    int status = ask_named(c, r);
    if (status != CLI_OK)
        return status;
    if (kill_named(a, r, &e) != 0)
        return cli_app_fail(a, &e);
    return tell(c, r);
}

int cli_kill(struct cli *c)
{
    const char *scope = c->value[CLI_SCOPE];
    bool all = cli_has(c, CLI_ALL);
    struct report r = {.verified = false};
    struct cli_app a;
    struct err e = {0};

    if (cli_has(c, CLI_PROCESS))
        return cli_kill_process(c);
    if (cli_has(c, CLI_SIGNAL))
        return cli_usage("'--signal' goes with --process: a sandbox is ended as a whole");
    if (all == (c->n_args > 0))
        return cli_usage("'kill' wants sandboxes or --all, one of the two");
    if (scope && strcmp(scope, "project") != 0 && strcmp(scope, "account") != 0)
        return cli_usage("'--scope' is project or account, not '%.60s'", scope);
    if (scope && !all)
        return cli_usage("'--scope' goes with --all");
    if (!cli_has(c, CLI_YES) && !cli_has(c, CLI_DRY_RUN) && !cli_can_ask(c))
        return cli_usage("'kill' cannot ask here; give --yes to do it");
    if (cli_has(c, CLI_READONLY) && !cli_has(c, CLI_DRY_RUN))
        return cli_usage("'kill' does nothing with --readonly");
    if (cli_app_open(&a, c, &e) != 0)
        return cli_fail(&e);
    int status = run(c, &a, &r);
    cli_app_close(&a);
    report_release(&r);
    return status;
}
