/* Pairs as the core sees them: how one begins, which keys its sandbox gets, and what the user
 * says of it. */
#include "core_priv.h"

#include <cct/config/tools.h>
#include <cct/model/pair.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

static struct kv *side_env(struct jobs *j, const struct pair_side *side, struct core_env_q q,
                           char **missing, struct err *e)
{
    q.t = tools_find(j->o.tools, side->tool);
    q.model = side->model;
    if (q.t)
        return core_keys_env(j, &q, missing, e);
    err_set(e, ERR_NOTFOUND, "the tool \"%s\" is not known here: add it to tools.conf",
            side->tool);
    return NULL;
}

struct kv *core_pair_env(struct jobs *j, const struct pair *p, const struct core_env_q *q,
                         char **missing, struct err *e)
{
    char *lacks[PAIR_ROLES] = {NULL, NULL};
    struct kv *first = side_env(j, &p->side[PAIR_DESIGNER], *q, &lacks[0], e), *both = NULL;
    struct core_env_q second = *q;

    second.own = first;
    if (first)
        both = side_env(j, &p->side[PAIR_CHECKER], second, &lacks[1], e);
    keys_env_free(first);
    *missing = lacks[0] ? lacks[0] : lacks[1];
    if (lacks[0])
        free(lacks[1]);
    return both;
}

const char *core_pair_template(struct jobs *j, const struct pair *p)
{
    const struct tool *t = tools_find(j->o.tools, p->side[PAIR_DESIGNER].tool);

    return t ? t->template_id : NULL;
}

void core_pair_begin(struct jobs *j, struct pair *p, uint64_t sandbox, struct st_to to)
{
    struct pair_event ev = {.kind = PAIR_BEGIN};
    struct pair_act act;
    char *text;

    p->sandbox = sandbox;
    rand_id(p->uid, 8);
    pair_apply(p, &ev, &act, NULL);
    text = pair_message(p);
    store_pair_put(j->o.store, p, text, 0, to);
    free(text);
}

/* The task and the roles come as in a create. */
static void begin_again(struct jobs *j, struct cmd *c, struct session *s)
{
    struct pair *p = c->create ? c->create->pair : NULL;

    if (!p) {
        core_done_err(j, c->m.req_id, c->sandbox, ERR_INVALID, "a pair wants two roles and a task");
        return;
    }
    c->create->pair = NULL;
    session_pair_again(s, p, c->m.req_id);
}

void core_pair_action(struct jobs *j, struct cmd *c, struct sandbox *row)
{
    struct session *s = row->foreign ? NULL : session_of(j, row->id);
    struct pair_event ev = {.kind = (enum pair_event_kind)c->n,
                            .rounds = c->id < PAIR_MAX_ROUNDS ? (int)c->id : PAIR_MAX_ROUNDS,
                            .text = c->text};
    bool up = row->state == SB_RUNNING || (row->state == SB_ERROR && row->vm_up);
    const char *name = row->name ? row->name : row->sandbox_id ? row->sandbox_id : "?";
    bool works = ev.kind == PAIR_RESUME || ev.kind == PAIR_REJECT || ev.kind == PAIR_BEGIN;

    if (!s || !str_eq(row->tool, "pair"))
        core_done_err(j, c->m.req_id, row->id, ERR_UNSUPPORTED, "\"%s\" was not made for a pair: "
                      "cc-tui pair without a sandbox makes one that is", name);
    else if (works && row->state == SB_ERROR)
        core_done_err(j, c->m.req_id, row->id, ERR_CONFLICT, "\"%s\" has no agent that runs: "
                      "restart it first", name);
    else if (!up && works)
        core_done_err(j, c->m.req_id, row->id, ERR_CONFLICT, "\"%s\" is %s: its pair cannot work",
                      name, sb_state_name(row->state));
    else if (ev.kind == PAIR_BEGIN)
        begin_again(j, c, s);
    else
        session_pair_wish(s, &ev, c->m.req_id);
}
