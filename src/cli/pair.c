/* cc-tui pair: designer and checker in one sandbox. */
#include "cli_priv.h"

#include <cct/model/pair.h>
#include <cct/text/clean.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- telling -------------------------------------------------------------------- */

void cli_pair_json(struct jw *w, const struct pair *p)
{
    jw_obj(w, "pair");
    jw_str(w, "state", pair_state_name(p->state));
    jw_str(w, "turn", pair_role_name(p->role));
    jw_i64(w, "round", p->round);
    jw_i64(w, "rounds", p->rounds);
    jw_str(w, "reason", p->reason);
    for (int i = 0; i < PAIR_ROLES; i++) {
        const struct pair_side *s = &p->side[i];

        jw_obj(w, pair_role_name((enum pair_role)i));
        jw_str(w, "tool", s->tool);
        jw_str(w, "model", s->model);
        jw_i64(w, "turns", s->turns);
        jw_num(w, "costUSD", s->cost_usd);
        jw_i64(w, "tokensIn", s->tokens_in);
        jw_i64(w, "tokensOut", s->tokens_out);
        jw_end(w);
    }
    jw_end(w);
}

static void print_side(const struct pair_side *s, enum pair_role role)
{
    char cost[32] = "unpriced";

    if (!isnan(s->cost_usd))
        snprintf(cost, sizeof(cost), "$%.4f est.", s->cost_usd);
    cli_out("%-8s  %s%s%s  %d %s  %lld tokens in, %lld out  %s\n", pair_role_name(role), s->tool,
           s->model ? ":" : "", s->model ? s->model : "", s->turns,
           s->turns == 1 ? "turn" : "turns",
           (long long)s->tokens_in, (long long)s->tokens_out, cost);
}

static void print_end(const struct cli *c, const struct sandbox *s)
{
    const struct pair *p = s->pair;
    struct buf b = BUF_INIT;
    struct jw w;

    if (cli_json(c)) {
        jw_init(&w, &b);
        jw_obj(&w, NULL);
        jw_str(&w, "sandboxID", s->sandbox_id);
        jw_str(&w, "name", s->name);
        cli_pair_json(&w, p);
        jw_end(&w);
        cli_out_json(&b);
        buf_release(&b);
        return;
    }
    cli_out("%s  round %d of %d%s%s\n", pair_state_name(p->state), p->round, p->rounds,
           p->reason ? ": " : "", p->reason ? p->reason : "");
    for (int i = 0; i < PAIR_ROLES; i++)
        print_side(&p->side[i], (enum pair_role)i);
}

static int status_of(const struct pair *p)
{
    return p->state == PAIR_PASSED    ? CLI_OK
           : p->state == PAIR_STOPPED ? CLI_INTERRUPTED
                                      : CLI_FAILED;
}

/* --- waiting -------------------------------------------------------------------- */

static struct {
    int64_t since; /* a pair as it stood before what was asked for is no answer */
    int64_t told;
} watch;

static const struct sandbox *row_of(const struct cli_app *a)
{
    return model_sandbox(app_model(a->app), a->sandbox);
}

static void tell_turn(const struct cli *c, const struct pair *p)
{
    if (p->rev == watch.told || p->state != PAIR_RUNNING)
        return;
    watch.told = p->rev;
    cli_say(c, "round %d of %d: the %s's turn (%s)", p->round, p->rounds, pair_role_name(p->role),
            p->side[p->role].tool);
}

static bool is_over(struct cli_app *a)
{
    const struct sandbox *s = row_of(a);

    if (!s || s->state == SB_KILLED || (s->state == SB_ERROR && !s->vm_up))
        return true;
    if (!s->pair || s->pair->rev <= watch.since)
        return false;
    tell_turn(a->c, s->pair);
    return s->pair->state != PAIR_RUNNING;
}

/* To the pair's end; its exit status. */
static int wait_end(struct cli_app *a, int64_t since)
{
    const struct sandbox *s = row_of(a);
    struct err e = {0};
    char *id = xstrdup(s && s->sandbox_id ? s->sandbox_id : "SANDBOX");
    int status;

    watch.since = since;
    app_follow(a->app, a->sandbox);
    if (cli_app_until(a, is_over, -1, &e) != 0) {
        if (a->signal)
            cli_say(a->c, "not waiting any longer: the turn at hand goes on, the next one begins "
                          "when cc-tui follows it again: cc-tui pair wait %s", id);
        status = cli_app_fail(a, &e);
    } else if ((s = row_of(a)) && s->pair && s->pair->state != PAIR_RUNNING) {
        print_end(a->c, s);
        status = status_of(s->pair);
    } else {
        err_set(&e, ERR_CONFLICT, "the pair did not come to its end: the sandbox %s is gone", id);
        status = cli_app_fail(a, &e);
    }
    free(id);
    return status;
}

/* --- a new one ------------------------------------------------------------------ */

struct texts { /* of one run of the command */
    char *tool[PAIR_ROLES], *prompt[PAIR_ROLES], *task;
};

static void texts_release(struct texts *t)
{
    for (int i = 0; i < PAIR_ROLES; i++) {
        free(t->tool[i]);
        free(t->prompt[i]);
    }
    free(t->task);
}

static char *read_prompt(const char *path, struct err *e)
{
    size_t len = 0;
    char *text = fs_read_linked(path, LIM_MESSAGE_BYTES, &len, e);

    if (!text || (len && !memchr(text, 0, len) && utf8_valid(text, len)))
        return text;
    err_set(e, ERR_INVALID, "'%s' holds no instructions: it is empty, or no text in UTF-8", path);
    free(text);
    return NULL;
}

static int take_side(const struct cli *c, enum pair_role role, struct texts *t, struct app_pair *p,
                     struct err *e)
{
    static const enum cli_flag who[] = {CLI_DESIGNER, CLI_CHECKER},
                               file[] = {CLI_DESIGNER_PROMPT, CLI_CHECKER_PROMPT};
    char *colon;

    if (!cli_has(c, who[role]))
        return err_set(e, ERR_INVALID, "'pair' wants --%s TOOL[:MODEL]", pair_role_name(role));
    t->tool[role] = xstrdup(c->value[who[role]]);
    colon = strchr(t->tool[role], ':');
    if (colon)
        *colon++ = 0;
    p->side[role].tool = t->tool[role];
    p->side[role].model = colon && *colon ? colon : NULL;
    if (!cli_has(c, file[role]))
        return 0;
    t->prompt[role] = read_prompt(c->value[file[role]], e);
    p->side[role].prompt = t->prompt[role];
    return t->prompt[role] ? 0 : e->code;
}

static int take_rounds(const struct cli *c, int *rounds, struct err *e)
{
    int64_t n = 0;

    if (cli_has(c, CLI_ROUNDS) && !str_to_i64(c->value[CLI_ROUNDS], 1, PAIR_MAX_ROUNDS, &n))
        return err_set(e, ERR_INVALID, "'--rounds' is a number from 1 to %d, not '%.60s'",
                       PAIR_MAX_ROUNDS, c->value[CLI_ROUNDS]);
    *rounds = (int)n;
    return 0;
}

static int take(const struct cli *c, struct texts *t, struct app_pair *p, struct app_create *n,
                struct err *e)
{
    int64_t s = c->config->o.timeout;
    int rc = take_rounds(c, &p->rounds, e);

    for (int i = 0; rc == 0 && i < PAIR_ROLES; i++)
        rc = take_side(c, (enum pair_role)i, t, p, e);
    if (rc)
        return rc;
    if (!cli_has(c, CLI_PROMPT))
        return err_set(e, ERR_INVALID, "'pair' wants a task: --prompt TEXT, or - for stdin");
    if (cli_has(c, CLI_TIMEOUT) &&
        (!str_to_seconds(c->value[CLI_TIMEOUT], &s) || s < 1 || s > LIM_TIMEOUT_MAX_S))
        return err_set(e, ERR_INVALID, "'--timeout' is a time such as 90, 15m or 1h30m, at most %d "
                       "s, not '%.60s'", LIM_TIMEOUT_MAX_S, c->value[CLI_TIMEOUT]);
    t->task = cli_text_arg(c->value[CLI_PROMPT], e);
    n->pair = p;
    n->prompt = t->task;
    n->timeout_s = (int)s;
    n->name = cli_has(c, CLI_NAME) ? c->value[CLI_NAME] : NULL;
    n->template_id = cli_has(c, CLI_TEMPLATE) ? c->value[CLI_TEMPLATE] : NULL;
    n->pause_at_end = str_eq(c->config->o.at_end, "pause");
    return t->task ? 0 : e->code;
}

static void print_id(const struct cli *c, const char *id)
{
    struct buf b = BUF_INIT;
    struct jw w;

    if (cli_json(c)) {
        jw_init(&w, &b);
        jw_obj(&w, NULL);
        jw_str(&w, "sandboxID", id);
        jw_end(&w);
    } else {
        buf_adds(&b, id);
    }
    cli_out_json(&b);
    buf_release(&b);
}

static int begun(const struct cli *c, struct cli_app *a, const struct app_create *n,
                 int64_t before)
{
    const struct sandbox *s = row_of(a);
    struct err e = {0};
    bool queued = false;

    if (!before)
        cli_app_tell_time(a, a->sandbox, n->timeout_s);
    if (cli_has(c, CLI_WAIT)) {
        cli_say(c, "the pair works in %s", s && s->sandbox_id ? s->sandbox_id : "its sandbox");
        return wait_end(a, before);
    }
    print_id(c, s && s->sandbox_id ? s->sandbox_id : "");
    if (cli_app_hand_over(a, a->sandbox, &queued, &e) != 0)
        return cli_app_fail(a, &e);
    cli_say(c, "the designer has its task; the turns that follow begin while cc-tui follows the "
               "sandbox: the screen, or cc-tui pair wait");
    return CLI_OK;
}

/* In the sandbox of an earlier one. */
static int again(const struct cli *c, const struct app_create *n)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK;
    const struct sandbox *s = cli_app_begin(&a, c, c->args[0], &status);
    int64_t before;

    if (!s)
        return status;
    before = s->pair ? s->pair->rev : 0;
    a.sandbox = s->id;
    app_follow(a.app, s->id);
    if (cli_has(c, CLI_DRY_RUN))
        cli_say(c, "would give the pair in %s a new task", s->sandbox_id ? s->sandbox_id : "it");
    else if (cli_app_wait(&a, app_pair_in(a.app, s->id, n), &e) != 0)
        status = cli_app_fail(&a, &e);
    else
        status = begun(c, &a, n, before);
    cli_app_close(&a);
    return status;
}

static int create(const struct cli *c, const struct app_create *n)
{
    struct cli_app a;
    struct err e = {0};
    const char *field = NULL;
    int status = CLI_OK;

    if (cli_app_open(&a, c, &e) != 0)
        return cli_fail(&e);
    if (cli_app_known(&a, &e) != 0 || cli_app_files(&a, n, &e) != 0 ||
        app_check_create(a.app, n, &field, &e) != 0) {
        status = cli_app_fail(&a, &e);
    } else if (cli_has(c, CLI_DRY_RUN)) {
        cli_say(c, "would create a sandbox with %s as designer and %s as checker",
                n->pair->side[PAIR_DESIGNER].tool, n->pair->side[PAIR_CHECKER].tool);
    } else if (cli_app_wait(&a, app_create(a.app, n, true), &e) != 0) {
        if (a.sandbox_id)
            cli_tell("the sandbox %s exists", a.sandbox_id);
        status = cli_app_fail(&a, &e);
    } else {
        status = begun(c, &a, n, 0);
    }
    cli_app_close(&a);
    return status;
}

int cli_pair(struct cli *c)
{
    struct err e = {0};
    struct kv *env = xcalloc(c->n_envs + 1, sizeof(*env));
    struct app_create n = {.env = env};
    struct app_pair p = {0};
    struct texts t = {0};
    int rc = take(c, &t, &p, &n, &e), status;

    if (rc == 0)
        rc = cli_take_env(c, env, &e);
    status = rc != 0 ? cli_fail(&e) : c->n_args ? again(c, &n) : create(c, &n);
    texts_release(&t);
    cli_free_env(env);
    return status;
}

/* --- the user's word ------------------------------------------------------------- */

static int tell_pair(struct cli *c, enum pair_event_kind kind, const char *note)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK, rounds = 0;
    const struct sandbox *s;
    int64_t before;

    if (cli_has(c, CLI_ROUNDS) && take_rounds(c, &rounds, &e) != 0)
        return cli_fail(&e);
    s = cli_app_begin(&a, c, c->args[0], &status);
    if (!s)
        return status;
    before = s->pair ? s->pair->rev : 0;
    a.sandbox = s->id;
    app_follow(a.app, s->id);
    if (cli_app_wait(&a, app_pair_do(a.app, s->id, (int)kind, rounds, note), &e) != 0)
        status = cli_app_fail(&a, &e);
    else if (cli_has(c, CLI_WAIT))
        status = wait_end(&a, before);
    else if (kind == PAIR_RESUME || kind == PAIR_REJECT) {
        bool queued = false;

        if (cli_app_hand_over(&a, a.sandbox, &queued, &e) != 0)
            status = cli_app_fail(&a, &e);
        else
            cli_say(c, "the pair goes on; the turns that follow begin while cc-tui follows it");
    } else
        cli_say(c, kind == PAIR_STOP ? "the pair is stopped" : "the work is accepted");
    cli_app_close(&a);
    return status;
}

int cli_pair_stop(struct cli *c)
{
    return tell_pair(c, PAIR_STOP, NULL);
}

int cli_pair_resume(struct cli *c)
{
    return tell_pair(c, PAIR_RESUME, NULL);
}

int cli_pair_accept(struct cli *c)
{
    return tell_pair(c, PAIR_ACCEPT, NULL);
}

int cli_pair_reject(struct cli *c)
{
    struct err e = {0};
    char *why = c->n_args > 1 ? cli_text_arg(c->args[1], &e) : NULL;
    int status = c->n_args > 1 && !why ? cli_fail(&e) : tell_pair(c, PAIR_REJECT, why);

    free(why);
    return status;
}

int cli_pair_wait(struct cli *c)
{
    struct cli_app a;
    int status = CLI_OK;
    const struct sandbox *s = cli_app_begin(&a, c, c->args[0], &status);
    struct err e = {0};

    if (!s)
        return status;
    a.sandbox = s->id;
    if (!s->pair) {
        err_set(&e, ERR_CONFLICT, "no pair works in '%.60s': cc-tui pair starts one", c->args[0]);
        status = cli_app_fail(&a, &e);
    } else {
        status = wait_end(&a, 0);
    }
    cli_app_close(&a);
    return status;
}
