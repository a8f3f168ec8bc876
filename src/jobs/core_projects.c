/* Projects on the net thread: which is current, what sandboxes made in it get, and changes.
 * The list is looked at as often as the stored keys: another cc-tui may have given a project
 * another name, and rows follow. */
#include "core_keys.h"

#include <cct/keys.h>
#include <cct/model/filter.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NO_PROJECT "default"

struct projects {
    struct st_projects *list; /* NULL: not read, or it cannot be */
    char *name, *id;          /* current; id NULL: it has no row yet */
    bool known, by_folder, making;
    unsigned n_asked, n_told; /* lists that the store was asked for, and told, in this order */
    unsigned old;             /* so many of them were asked for when another one was current */
    ARR(struct projop *) ops;
};

/* One change under way. */
struct projop {
    struct jobs *j;
    enum cmd_type type;
    uint64_t req_id;
    char *name, *id;      /* of the project */
    char *text, *value;   /* a new name; variable or preset, value */
    struct project *p;    /* settings, choices */
    bool of_user;
};

/* --- what is current ------------------------------------------------------------------ */

const char *jobs_project(const struct jobs *j)
{
    const struct projects *p = j->priv->projects;

    return p && p->name ? p->name : j->o.project ? j->o.project : NO_PROJECT;
}

const char *core_project_id(const struct jobs *j)
{
    return j->priv->projects ? j->priv->projects->id : NULL;
}

const char *core_project_id_of(const struct jobs *j, const char *name)
{
    const struct project *p = core_project(j, name);

    return str_eq(name, jobs_project(j)) ? core_project_id(j) : p ? p->id : NULL;
}

const char *core_project_ref(const struct jobs *j)
{
    const struct projects *p = j->priv->projects;

    return p && p->id ? p->id : p && p->name ? p->name : j->o.project;
}

bool core_projects_known(const struct jobs *j)
{
    return j->priv->projects && j->priv->projects->known;
}

const char *core_project_folder(const struct jobs *j)
{
    return j->priv->projects && !j->priv->projects->by_folder ? NULL : j->o.project_folder;
}

static const struct project *find(const struct jobs *j, const char *name_or_id)
{
    const struct st_projects *l = j->priv->projects->list;

    for (size_t i = 0; l && i < l->n; i++)
        if (str_eq(l->v[i].id, name_or_id))
            return &l->v[i];
    for (size_t i = 0; l && i < l->n; i++)
        if (str_eq(l->v[i].name, name_or_id))
            return &l->v[i];
    return NULL;
}

const struct project *core_project(const struct jobs *j, const char *name_or_id)
{
    return j->priv->projects ? find(j, name_or_id ? name_or_id : core_project_ref(j)) : NULL;
}

char *core_project_of_meta(const struct jobs *j, const struct kv *meta)
{
    const char *id = kv_get(meta, "cc-tui-project-id");
    const struct project *p = id ? core_project(j, id) : NULL;

    if (p && str_eq(p->id, id)) /* its name may have changed since */
        return xstrdup(p->name);
    return project_of_meta(kv_get(meta, "cc-tui-project"), kv_get(meta, "cc-tui-project-name"));
}

/* --- the list --------------------------------------------------------------------------- */

static void tell(struct jobs *j)
{
    const struct projects *p = j->priv->projects;
    struct ev_projects *ev = ev_new(EV_PROJECTS);

    ev->v = xcalloc(p->list->n + 1, sizeof(*ev->v));
    for (size_t i = 0; i < p->list->n; i++)
        project_copy(&ev->v[ev->n++], &p->list->v[i]);
    ev->current = p->list->current;
    ev->filters = saved_filters_copy(p->list->filters, p->list->n_filters);
    ev->n_filters = p->list->n_filters;
    ev->by_folder = p->by_folder;
    jobs_post(j, ev);
}

static void rename_rows(struct jobs *j, const char *old, const char *name)
{
    for (size_t i = 0; i < j->table.n; i++) {
        struct sandbox *row = &j->table.v[i];

        if (row->foreign || !str_eq(row->project, old))
            continue;
        core_row_set(&row->project, name); /* the store has said so already */
        core_row_shown(j, row);
    }
    jobs_say(j, 0, 0, "the project %s is called %s now", old, name);
}

static void follow_names(struct jobs *j, const struct st_projects *fresh)
{
    for (size_t i = 0; i < fresh->n; i++) {
        const struct project *old = fresh->v[i].id ? find(j, fresh->v[i].id) : NULL;

        if (old && str_eq(old->id, fresh->v[i].id) && !str_eq(old->name, fresh->v[i].name))
            rename_rows(j, old->name, fresh->v[i].name);
    }
}

/* All of them by this, so that which is current now is not taken from an older one. */
static void ask_list(struct jobs *j, int64_t have, struct st_to to)
{
    j->priv->projects->n_asked++;
    store_projects(j->o.store, core_project_ref(j), have, to);
}

static void take_list(struct jobs *j, struct st_reply *r)
{
    struct projects *p = j->priv->projects;
    const struct project *now;
    bool first = !p->known;

    p->known = true;
    if ((int)(++p->n_told - p->old) <= 0)
        return; /* the switch asks for one itself */
    if (r->err.code && first)
        jobs_say(j, 2, 0, "the stored projects cannot be read: %s", r->err.text);
    if (!r->projects)
        return;
    if (p->list)
        follow_names(j, r->projects);
    st_projects_free(p->list);
    p->list = r->projects;
    r->projects = NULL;
    now = &p->list->v[p->list->current];
    free(p->name);
    free(p->id);
    p->name = xstrdup(now->name);
    p->id = xstrdup(now->id);
    if (!first)
        tell(j); /* main has read the first for itself */
}

static void on_list(void *ctx, struct st_reply *r)
{
    struct jobs *j = ctx;
    bool first = !j->priv->projects->known;

    take_list(j, r);
    if (first)
        core_run_held(j);
}

void core_projects_look(struct jobs *j)
{
    const struct projects *p = j->priv->projects;

    ask_list(j, p->list ? p->list->revision : -1, jobs_store(j, on_list, j, p));
}

/* --- a row for the current one ------------------------------------------------------------ */

static void on_row(void *ctx, struct st_reply *r)
{
    struct jobs *j = ctx;
    struct projects *p = j->priv->projects;

    p->making = false;
    if (r->err.code == 0 && !p->id) {
        p->id = xstrdup(r->text);
        core_projects_look(j);
    }
}

void core_project_ensure(struct jobs *j)
{
    struct projects *p = j->priv->projects;

    if (p->id || p->making || j->o.readonly)
        return;
    p->making = true;
    store_project(j->o.store, jobs_project(j), jobs_store(j, on_row, j, p));
}

/* --- changes ---------------------------------------------------------------------------------- */

static void op_free(struct projop *op)
{
    free(op->name);
    free(op->id);
    free(op->text);
    free(op->value);
    if (op->p)
        project_release(op->p);
    free(op->p);
    free(op);
}

static void op_end(struct projop *op, const struct err *e)
{
    struct projects *p = op->j->priv->projects;

    for (size_t i = 0; i < p->ops.n; i++)
        if (p->ops.v[i] == op) {
            ARR_REMOVE(&p->ops, i);
            break;
        }
    jobs_done(op->j, op->req_id, e, 0);
    op_free(op);
}

static void on_end(void *ctx, struct st_reply *r)
{
    (void)r;
    op_end(ctx, NULL);
}

static void on_fresh(void *ctx, struct st_reply *r)
{
    struct projop *op = ctx;
    struct jobs *j = op->j;

    take_list(j, r);
    /* main hears of the keys, and the account is chosen, before the end is told */
    store_keys(j->o.store, core_project_ref(j), core_project_folder(j), -1,
               (struct st_to){j->o.events, 0});
    keys_look(j->priv->keys, true);
    store_projects(j->o.store, NULL, j->priv->projects->list ? j->priv->projects->list->revision
                                                             : -1,
                   jobs_store(j, on_end, op, j->priv->projects));
}

static void on_change(void *ctx, struct st_reply *r)
{
    struct projop *op = ctx;

    if (r->err.code)
        op_end(op, &r->err);
    else
        ask_list(op->j, -1, jobs_store(op->j, on_fresh, op, op->j->priv->projects));
}

/* From here on new sandboxes are of that project, and its keys count. */
static void switch_to(struct projop *op, struct st_to to)
{
    struct projects *p = op->j->priv->projects;

    free(p->name);
    free(p->id);
    p->name = xstrdup(op->name);
    p->id = xstrdup(op->id);
    p->by_folder = false; /* the user's own word */
    p->old = p->n_asked;
    if (op->id && !op->j->o.readonly)
        store_project_used(op->j->o.store, op->id, to);
    else /* no change: the answer alone is wanted */
        store_projects(op->j->o.store, NULL, -1, to);
}

static void go(struct projop *op)
{
    struct jobs *j = op->j;
    struct st_to to = jobs_store(j, on_change, op, j->priv->projects);

    switch (op->type) {
    case CMD_PROJECT:
        switch_to(op, to);
        break;
    case CMD_PROJECT_RENAME:
        store_project_rename(j->o.store, op->id, op->text, to);
        break;
    case CMD_PROJECT_RM:
        store_project_del(j->o.store, op->id, to);
        break;
    case CMD_PROJECT_SET:
        free(op->p->id);
        op->p->id = xstrdup(op->id);
        store_project_put(j->o.store, op->p, to);
        break;
    case CMD_PROJECT_VAR:
        if (op->value)
            store_project_var(j->o.store, op->id, op->text, op->value, to);
        else
            store_project_var_del(j->o.store, op->id, op->text, to);
        break;
    case CMD_PRESET:
        store_preset(j->o.store, op->of_user ? NULL : op->id, op->text,
                     op->p ? &op->p->defaults : NULL, to);
        break;
    case CMD_FILTER:
        store_filter(j->o.store, op->text, op->value, to);
        break;
    default: /* CMD_PROJECT_ADD: it has its row */
        store_projects(j->o.store, NULL, -1, to);
        break;
    }
}

static void on_id(void *ctx, struct st_reply *r)
{
    struct projop *op = ctx;

    if (r->err.code) {
        op_end(op, &r->err);
        return;
    }
    free(op->id);
    op->id = xstrdup(r->text);
    go(op);
}

/* --- what is refused ---------------------------------------------------------------------------- */

static int bad_name(const char *name, struct err *e)
{
    return project_name_ok(name) ? 0
                                 : err_set(e, ERR_INVALID, "'%.70s' cannot be the name of a "
                                           "project: 1 to 64 of A-Z a-z 0-9 - _ . /, no / at its "
                                           "ends", name ? name : "");
}

static bool variable_name_ok(const char *s)
{
    size_t n = s ? strlen(s) : 0;

    if (!n || n > 64 || isdigit((unsigned char)*s))
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    return true;
}

int core_variable_check(const char *name, size_t len, struct err *e)
{
    const char *provider = name ? keys_variable_of(name) : NULL;

    if (!variable_name_ok(name))
        return err_set(e, ERR_INVALID, "'%.70s' cannot be the name of a variable: letters, digits "
                       "and _, no digit first", name ? name : "");
    if (provider)
        return err_set(e, ERR_INVALID, "%s holds the key of %s, which is stored as a key: run "
                       "cc-tui keys add %s --project NAME", name, provider, provider);
    if (len > LIM_VARIABLE_BYTES)
        return err_set(e, ERR_INVALID, "the value of %s has %zu bytes, at most %d are possible",
                       name, len, LIM_VARIABLE_BYTES);
    return 0;
}

static int refuse(struct jobs *j, const struct cmd *c, struct err *e)
{
    const struct project *p = find(j, c->text ? c->text : "");

    if (j->o.readonly && c->m.type != CMD_PROJECT)
        return err_set(e, ERR_PERM, c->m.type == CMD_FILTER
                                        ? "no filter is kept: this cc-tui only reads"
                                        : "no project is changed: this cc-tui only reads");
    switch ((enum cmd_type)c->m.type) {
    case CMD_PROJECT:
        if (core_killall_busy(j))
            return err_set(e, ERR_CONFLICT, "the project cannot be changed while everything is "
                           "being killed");
        return bad_name(c->text, e);
    case CMD_PROJECT_ADD:
        if (p && p->id)
            return err_set(e, ERR_CONFLICT, "there is a project '%s' already", p->name);
        return bad_name(c->text, e);
    case CMD_PROJECT_RENAME:
        if (!p)
            return err_set(e, ERR_NOTFOUND, "there is no project '%.64s': cc-tui projects ls shows "
                           "those that are", c->text);
        if (core_killall_busy(j))
            return err_set(e, ERR_CONFLICT, "nothing is renamed while everything is being killed");
        return bad_name(c->text2, e);
    case CMD_PROJECT_RM:
        if (!p || !p->id)
            return err_set(e, ERR_NOTFOUND, "nothing is stored of a project '%.64s': cc-tui "
                           "projects ls shows those that are", c->text);
        return 0;
    case CMD_PROJECT_VAR:
        return core_variable_check(c->text, c->text2 ? strlen(c->text2) : 0, e);
    case CMD_PRESET:
        return sandbox_name_ok(c->text)
                   ? 0
                   : err_set(e, ERR_INVALID, "'%.70s' cannot be the name of a preset: 1 to 64 of "
                             "A-Z a-z 0-9 - _", c->text ? c->text : "");
    case CMD_FILTER:
        return sandbox_name_ok(c->text)
                   ? 0
                   : err_set(e, ERR_INVALID, "'%.70s' cannot be the name of a filter: 1 to 64 of "
                             "A-Z a-z 0-9 - _", c->text ? c->text : "");
    default:
        return 0;
    }
}

static bool names_a_project(enum cmd_type t)
{
    return t == CMD_PROJECT || t == CMD_PROJECT_ADD || t == CMD_PROJECT_RENAME ||
           t == CMD_PROJECT_RM;
}

void core_projects_cmd(struct jobs *j, struct cmd *c)
{
    struct projop *op;
    struct err e = {0};
    const struct project *p;
    bool named = names_a_project((enum cmd_type)c->m.type);

    if (refuse(j, c, &e) != 0) {
        jobs_done(j, c->m.req_id, &e, 0);
        return;
    }
    op = *ARR_PUSH(&j->priv->projects->ops) = xcalloc(1, sizeof(*op));
    op->j = j;
    op->type = (enum cmd_type)c->m.type;
    op->req_id = c->m.req_id;
    p = core_project(j, named ? c->text : NULL);
    op->name = xstrdup(p ? p->name : named ? c->text : jobs_project(j));
    op->id = xstrdup(p ? p->id : NULL);
    op->text = xstrdup(named ? c->text2 : c->text);
    op->value = named ? NULL : xstrdup(c->text2);
    op->of_user = c->on;
    op->p = c->project;
    c->project = NULL;
    if (op->id || j->o.readonly || (op->type == CMD_PRESET && op->of_user) ||
        op->type == CMD_FILTER)
        go(op);
    else
        store_project(j->o.store, op->name, jobs_store(j, on_id, op, j->priv->projects));
}

/* --- what its sandboxes get -------------------------------------------------------------------- */

static void add(struct kv **list, size_t *n, const char *name, const char *value)
{
    *list = xrealloc(*list, (*n + 2) * sizeof(**list)); /* pointers only: no value moves */
    (*list)[*n] = (struct kv){xstrdup(name), xstrdup(value)};
    (*list)[++*n] = (struct kv){NULL, NULL};
}

static int add_secret(struct jobs *j, const struct project *p, const char *name, struct kv **list,
                      size_t *n, struct err *e)
{
    const struct st_key *row = core_keys_row(j, p->id, ST_VARIABLE, name);
    struct secret *s = row ? core_keys_open(j, row, e) : NULL;

    if (!row)
        return err_set(e, ERR_BUSY, "the variable %s of the project %s was changed just now; try "
                       "again", name, p->name);
    if (!s)
        return err_wrap(e, "the variable %s of the project %s", name, p->name);
    add(list, n, name, secret_value(s));
    secret_free(s);
    return 0;
}

struct kv *core_project_env(struct jobs *j, const char *project, bool plain, bool secrets,
                            struct err *e)
{
    const struct project *p = core_project(j, project);
    struct kv *list = xcalloc(1, sizeof(*list));
    size_t n = 0;
    int rc = 0;

    for (size_t i = 0; p && i < p->n_vars && rc == 0; i++) {
        if (!p->vars[i].secret && plain)
            add(&list, &n, p->vars[i].name, p->vars[i].value ? p->vars[i].value : "");
        else if (p->vars[i].secret && secrets)
            rc = add_secret(j, p, p->vars[i].name, &list, &n, e);
    }
    if (rc == 0)
        return list;
    keys_env_free(list);
    return NULL;
}

/* --- life ---------------------------------------------------------------------------------------- */

void core_projects_start(struct jobs *j)
{
    struct projects *p = j->priv->projects = xcalloc(1, sizeof(*p));

    p->by_folder = j->o.project_folder != NULL;
    p->name = xstrdup(j->o.project);
    core_projects_look(j);
}

void core_projects_release(struct jobs *j)
{
    struct projects *p = j->priv->projects;

    if (!p)
        return;
    jobs_store_forget(j, p);
    for (size_t i = 0; i < p->ops.n; i++)
        op_free(p->ops.v[i]);
    ARR_RELEASE(&p->ops);
    st_projects_free(p->list);
    free(p->name);
    free(p->id);
    free(p);
    j->priv->projects = NULL;
}
