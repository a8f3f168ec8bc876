/* Script lines that make rows of the list, the link and what a kill-all says. */
#include "screenscript.h"

#include <cct/model/pair.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_meta(struct sandbox *r, char *pair)
{
    size_t n = 0;
    while (r->meta && r->meta[n].k)
        n++;
    char *colon = strchr(pair, ':');
    if (colon)
        *colon = 0;
    r->meta = xrealloc(r->meta, (n + 2) * sizeof(*r->meta));
    r->meta[n].k = xstrdup(pair);
    r->meta[n].v = xstrdup(colon ? colon + 1 : "");
    memset(&r->meta[n + 1], 0, sizeof(*r->meta));
}

/* STATE,ROLE,ROUND,ROUNDS of claude and codex */
static struct pair *pair_of(const char *v)
{
    struct pair *p = xcalloc(1, sizeof(*p));
    char state[16] = "", role[16] = "";
    sscanf(v, "%15[a-z],%15[a-z],%d,%d", state, role, &p->round, &p->rounds);
    p->state = (enum pair_state)pair_state_parse(state);
    p->role = (enum pair_role)pair_role_parse(role);
    p->side[PAIR_DESIGNER] = (struct pair_side){.tool = xstrdup("claude"), .cost_usd = 0.0145,
                                                .tokens_in = 4844, .tokens_out = 67, .turns = 3};
    p->side[PAIR_CHECKER] = (struct pair_side){.tool = xstrdup("codex"),
                                               .model = xstrdup("gpt-6.2-sol"), .cost_usd = NAN,
                                               .turns = 1};
    if (p->state == PAIR_FAILED)
        p->reason = xstrdup("the checker (codex): 401 bad key; check the provider's key");
    return p;
}

static void row_number(struct script *s, struct sandbox *r, const char *key, const char *v)
{
    if (!strcmp(key, "left") && *v == '-')
        r->end_at = 0;
    else if (!strcmp(key, "started") && *v == '-')
        r->started_at = r->created_at = 0;
    else if (!strcmp(key, "left"))
        r->end_at = s->now + strtoll(v, NULL, 10) * 1000;
    else if (!strcmp(key, "project"))
        free(r->project), r->project = xstrdup(v);
    else if (!strcmp(key, "cost"))
        r->cost_usd = strtod(v, NULL);
    else if (!strcmp(key, "since"))
        r->agent_since = s->now - strtoll(v, NULL, 10) * 1000;
    else if (!strcmp(key, "pair"))
        r->pair = pair_of(v);
    else if (!strcmp(key, "step"))
        r->step = (enum sb_step)strtoll(v, NULL, 10);
    else if (!strcmp(key, "gone"))
        r->gone = (enum sb_gone)strtoll(v, NULL, 10);
    else if (!strcmp(key, "load")) /* percent of CPU and memory; MiB of disk, used and all */
        r->load.known = sscanf(v, "%d,%d,%d,%d", &r->load.cpu_pct, &r->load.mem_pct,
                               &r->load.disk_used_mb, &r->load.disk_total_mb) == 4;
    else if (!strcmp(key, "odd"))
        r->odd = xstrdup(v);
    else if (!strcmp(key, "started"))
        r->started_at = r->created_at = s->now - strtoll(v, NULL, 10) * 1000;
    else if (!strcmp(key, "tags")) {
        char tags[SANDBOX_TAGS_BYTES];
        if (sandbox_tags(v, tags))
            r->tags = xstrdup(tags);
    } else if (!strcmp(key, "id")) {
        free(r->sandbox_id);
        r->sandbox_id = *v ? xstrdup(v) : NULL;
    }
}

static bool row_flag(struct sandbox *r, const char *key)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"foreign", &r->foreign}, {"protect", &r->protect}, {"unsafe", &r->not_isolated},
                 {"unlisted", &r->unlisted}, {"pending", &r->pending},
                 {"changing", &r->changing}};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (!strcmp(key, flags[i].name))
            return *flags[i].flag = true;
    return false;
}

static void row_text(struct sandbox *r, char *line)
{
    while (*line) {
        char *kv = (char *)script_word(&line), *eq = strchr(kv, '=');
        if (!eq && !strcmp(kv, "dead"))
            r->vm_up = false;
        if (!eq)
            continue;
        *eq = 0;
        char *all = *line ? xasprintf("%s %s", eq + 1, line) : xstrdup(eq + 1);
        if (!strcmp(kv, "last"))
            r->last_line = all;
        else if (!strcmp(kv, "reason"))
            r->reason = all;
        else if (!strcmp(kv, "doing"))
            r->step_text = all;
        else {
            free(all);
            *eq = '=';
            continue;
        }
        return;
    }
}

static struct sandbox *new_row(struct script *s, struct ev_sandboxes *ev, uint64_t id)
{
    struct sandbox *r = ev->v = xcalloc(1, sizeof(*r));
    ev->n = 1;
    r->id = id;
    r->sandbox_id = xasprintf("i%020d", (int)id);
    r->project = xstrdup("default");
    r->created_at = r->started_at = s->now - 8 * 60000;
    r->end_at = s->now + 41 * 60000;
    r->cpu_count = 2;
    r->memory_mb = 1024;
    r->usd_per_s = 2 * 0.000014 + 0.0000045;
    return r;
}

/* row ID NAME TOOL STATE AGENT [key=value ...] */
static void row(struct script *s, char *line)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    struct sandbox *r = new_row(s, ev, (uint64_t)strtoll(script_word(&line), NULL, 10));
    r->name = xstrdup(script_word(&line));
    r->tool = xstrdup(script_word(&line));
    if (!strcmp(r->tool, "-"))
        free(r->tool), r->tool = NULL;
    r->state = (enum sb_state)sb_state_parse(script_word(&line));
    const char *what = script_word(&line);
    r->agent = strcmp(what, "asks") == 0 ? AG_ASKS : (enum sb_agent)sb_agent_parse(what);
    r->vm_up = r->state == SB_ERROR;
    char *rest = xstrdup(line);
    while (*line) {
        char *kv = (char *)script_word(&line), *eq = strchr(kv, '=');
        if (!eq) {
            row_flag(r, kv);
            continue;
        }
        *eq = 0;
        if (!strcmp(kv, "last") || !strcmp(kv, "reason") || !strcmp(kv, "doing"))
            break;
        if (!strcmp(kv, "meta"))
            add_meta(r, eq + 1);
        else
            row_number(s, r, kv, eq + 1);
    }
    row_text(r, rest);
    free(rest);
    if (!r->foreign)
        r->session = xasprintf("s%d", (int)r->id);
    script_post(s, ev);
}

/* rows N FIRST-ID */
static void many_rows(struct script *s, char *line)
{
    int n = (int)strtoll(script_word(&line), NULL, 10), first = (int)strtoll(script_word(&line), NULL, 10);
    for (int i = 0; i < n; i++) {
        struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
        struct sandbox *r = new_row(s, ev, (uint64_t)(first + i));
        r->name = xasprintf("box-%d", first + i);
        r->tool = xstrdup("claude");
        r->state = SB_RUNNING;
        r->agent = AG_IDLE;
        r->session = xasprintf("s%d", first + i);
        script_post(s, ev);
    }
}

#define HIDING "E2B key ****4f2a (environment) at https://api.self.example, hides " \
               "****9f21 (project key), ****1111 (user key)"

static void link_line(struct script *s, char *line)
{
    static const char *const names[] = {"connecting", "ok", "slow", "down", "auth", "limited"};
    struct ev_link *ev = ev_new(EV_LINK);
    const char *st = script_word(&line), *where = script_word(&line);
    for (int i = 0; i < 6; i++)
        if (!strcmp(names[i], st))
            ev->state = (enum link_state)i;
    ev->local = strcmp(where, "cloud") != 0 && strcmp(where, "hiding") != 0;
    ev->unsafe = strcmp(where, "unsafe") == 0;
    ev->account = xstrdup(ev->local                   ? "local provider"
                          : strcmp(where, "hiding") ? "E2B key ****4f2a (environment)"
                                                    : HIDING);
    ev->text = *line ? xstrdup(line) : NULL;
    ev->total_running = -1;
    ev->listed_at = s->listed_at;
    script_post(s, ev);
}

/* gone ID: the whole list without that row */
static void gone(struct script *s, char *line)
{
    uint64_t id = (uint64_t)strtoll(line, NULL, 10);
    const struct model *m = s->app->model;
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    ev->full = true;
    ev->v = xcalloc(m->n_sandboxes + 1, sizeof(*ev->v));
    for (size_t i = 0; i < m->n_sandboxes; i++)
        if (m->sandboxes[i].id != id)
            sandbox_copy(&ev->v[ev->n++], &m->sandboxes[i]);
    script_post(s, ev);
}

/* kill PHASE N_PROJECT N_ACCOUNT KILLED ALREADY FAILED ALIVE */
static void kill_line(struct script *s, char *line)
{
    static const char *const names[] = {"listing", "armed", "running", "verifying", "report",
                                        "cannot"};
    struct ev_kill *k = ev_new(EV_KILL);
    const char *phase = script_word(&line);
    for (int i = 0; i < 6; i++)
        if (!strcmp(names[i], phase))
            k->phase = (enum kill_phase)i;
    k->project = xstrdup("default");
    const char *account = app_model(s->app)->account;
    bool hiding = account && strcmp(account, HIDING) == 0;
    k->account = xstrdup(hiding ? account : "E2B key ****4f2a (environment)");
    k->n_project = (size_t)strtoll(script_word(&line), NULL, 10);
    k->n_account = (size_t)strtoll(script_word(&line), NULL, 10);
    k->by_state[SB_RUNNING] = k->n_project;
    k->usd_per_hour = 0.117 * (double)k->n_project;
    k->killed = (size_t)strtoll(script_word(&line), NULL, 10);
    k->already_gone = (size_t)strtoll(script_word(&line), NULL, 10);
    k->failed = (size_t)strtoll(script_word(&line), NULL, 10);
    k->still_alive = (size_t)strtoll(script_word(&line), NULL, 10);
    k->verified = strcmp(line, "unverified") != 0;
    if (k->phase == KILL_CANNOT)
        k->text = xstrdup("cannot reach the service; check the network");
    if (k->phase == KILL_RUNNING && !strcmp(line, "grace"))
        k->text = xstrdup("killing in 3 s (u calls it off)");
    k->account_scope = !strcmp(line, "account");
    k->n = k->n_project;
    k->v = xcalloc(k->n + 1, sizeof(*k->v));
    for (size_t i = 0; i < k->n; i++) {
        k->v[i].name = xasprintf("box-%zu", i + 1);
        k->v[i].sandbox_id = xasprintf("i%020zu", i + 1);
        k->v[i].result = i < k->killed ? 1 : i < k->killed + k->already_gone ? 2
                         : i < k->killed + k->already_gone + k->failed ? 3
                         : i < k->killed + k->already_gone + k->failed + k->still_alive ? 4 : 0;
        k->v[i].reason = k->v[i].result == 3 ? xstrdup("service error 500") : NULL;
    }
    script_post(s, k);
}

/* build NAME STATE: the only one */
static void build_line(struct script *s, char *line)
{
    struct ev_builds *ev = ev_new(EV_BUILDS);
    ev->v = xcalloc(1, sizeof(*ev->v));
    ev->n = 1;
    ev->v->id = 1;
    ev->v->name = xstrdup(script_word(&line));
    ev->v->state = (enum tb_state)tb_state_parse(script_word(&line));
    script_post(s, ev);
}

const struct script_verb script_row_verbs[] = {
    {"row", row}, {"rows", many_rows}, {"gone", gone}, {"link", link_line}, {"kill", kill_line},
    {"build", build_line}, {NULL, NULL}};
