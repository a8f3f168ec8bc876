/* Projects: names, settings, variables, presets. What has no place of its own in a table is
 * JSON: forms grow, and older programs leave alone what they do not know. */
#include "store_priv.h"

#include <cct/model/filter.h>
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define NO_PROJECT "default" /* when nothing else is said */

void st_projects_free(struct st_projects *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        project_release(&p->v[i]);
    free(p->v);
    saved_filters_free(p->filters, p->n_filters);
    free(p);
}

/* --- choices and settings as JSON --------------------------------------------------- */

/* whole: what is not chosen is said, too (null), for it takes the place of what was. */
static void write_choice(struct jw *w, const struct project_choice *c, bool whole)
{
    const struct {
        const char *name, *value;
    } texts[] = {{"tool", c->tool}, {"model", c->model},   {"template", c->template_id},
                 {"repo", c->repo}, {"branch", c->branch}, {"prompt", c->prompt}};

    const struct {
        const char *name;
        int value;
    } counts[] = {{"timeout", c->timeout_s}, {"copies", c->copies}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].value || whole)
            jw_str(w, texts[i].name, texts[i].value);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (counts[i].value)
            jw_i64(w, counts[i].name, counts[i].value);
        else if (whole)
            jw_null(w, counts[i].name);
    if (c->at_end_known)
        jw_bool(w, "pauseAtEnd", c->pause_at_end);
    else if (whole)
        jw_null(w, "pauseAtEnd");
}

static int small(const struct cJSON *j, const char *name)
{
    int64_t v = json_i64(j, name, 0);

    return v > 0 && v <= 1000000 ? (int)v : 0;
}

static void read_choice(const struct cJSON *j, struct project_choice *c)
{
    c->tool = xstrdup(json_str(j, "tool", NULL));
    c->model = xstrdup(json_str(j, "model", NULL));
    c->template_id = xstrdup(json_str(j, "template", NULL));
    c->repo = xstrdup(json_str(j, "repo", NULL));
    c->branch = xstrdup(json_str(j, "branch", NULL));
    c->prompt = xstrdup(json_str(j, "prompt", NULL));
    c->timeout_s = small(j, "timeout");
    c->copies = small(j, "copies");
    c->pause_at_end = json_bool(j, "pauseAtEnd", false);
    c->at_end_known = c->pause_at_end || !json_bool(j, "pauseAtEnd", true);
}

static char *choice_json(const struct project_choice *c)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    write_choice(&w, c, false);
    jw_end(&w);
    return buf_detach(&b, NULL);
}

static void write_budget(struct jw *w, const struct ledger_budget *b)
{
    jw_obj(w, "budget");
    for (int p = 0; p < LEDGER_PERIODS; p++)
        if (b->usd[p] > 0)
            jw_num(w, ledger_period_name((enum ledger_period)p), b->usd[p]);
        else
            jw_null(w, ledger_period_name((enum ledger_period)p));
    jw_end(w);
}

static void read_budget(const struct cJSON *j, struct ledger_budget *b)
{
    for (int p = 0; p < LEDGER_PERIODS; p++) {
        double usd = json_num(j, ledger_period_name((enum ledger_period)p), 0);

        b->usd[p] = usd > 0 && usd <= 1e6 ? usd : 0;
    }
}

/* As a patch of what is there: fields of a newer program stay as they are. */
static char *settings_patch(const struct project *p)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "prompt", p->prompt);
    jw_arr(&w, "skills");
    for (size_t i = 0; p->skills && p->skills[i]; i++)
        jw_str(&w, NULL, p->skills[i]);
    jw_end(&w);
    jw_obj(&w, "defaults");
    write_choice(&w, &p->defaults, true);
    jw_end(&w);
    write_budget(&w, &p->budget);
    jw_end(&w);
    return buf_detach(&b, NULL);
}

static char **read_skills(const struct cJSON *list)
{
    char **v = NULL;

    for (const struct cJSON *c = json_is_array(list) ? json_first(list) : NULL; c;
         c = json_next(c))
        if (json_is_string(c))
            v = str_list_add(v, xstrdup(json_str_of(c)));
    return v;
}

/* A text that cannot be read counts as empty: nothing is refused for it. */
static void read_settings(const char *text, struct project *p)
{
    struct cJSON *j = text ? json_parse(text, strlen(text), NULL) : NULL;

    p->prompt = xstrdup(json_str(j, "prompt", NULL));
    p->skills = read_skills(json_get(j, "skills"));
    read_choice(json_get(j, "defaults"), &p->defaults);
    read_budget(json_get(j, "budget"), &p->budget);
    json_free(j);
}

/* --- reading --------------------------------------------------------------------------- */

struct list {
    ARR(struct project) v;
};

static struct project *by_id(struct list *l, const char *id)
{
    for (size_t i = 0; i < l->v.n; i++)
        if (str_eq(l->v.v[i].id, id))
            return &l->v.v[i];
    return NULL;
}

/* With a row, the one used last first; then names that only sandboxes carry. */
static int read_names(struct store *s, struct list *l, struct err *e)
{
    sqlite3_stmt *q = st_query(
        s, e,
        "SELECT uid, name, settings, createdAt, usedAt FROM projects UNION ALL "
        "SELECT NULL, project, NULL, min(createdAt), 0 FROM sandboxes WHERE isForeign<>1"
        " AND project<>'' AND project NOT IN (SELECT name FROM projects) GROUP BY project"
        " ORDER BY 5 DESC, 2", "");
    int rc = q ? 0 : e->code;

    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        struct project *p = ARR_PUSH(&l->v);
        p->id = st_text(q, 0);
        p->name = st_text(q, 1);
        read_settings((const char *)sqlite3_column_text(q, 2), p);
        p->created_at = sqlite3_column_int64(q, 3);
        p->used_at = sqlite3_column_int64(q, 4);
        rc = 0;
    }
    return rc;
}

static int read_vars(struct store *s, struct list *l, struct err *e)
{
    sqlite3_stmt *q = st_query(s, e,
                               "SELECT project, name, value, lastFour, sealed IS NOT NULL"
                               " FROM projectVariables ORDER BY project, name", "");
    int rc = q ? 0 : e->code;

    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        struct project *p = by_id(l, (const char *)sqlite3_column_text(q, 0));
        const char *last = (const char *)sqlite3_column_text(q, 3);
        struct project_var *v;

        rc = 0;
        if (!p)
            continue;
        p->vars = xrealloc(p->vars, (p->n_vars + 1) * sizeof(*p->vars));
        v = &p->vars[p->n_vars++];
        *v = (struct project_var){.name = st_text(q, 1), .secret = sqlite3_column_int(q, 4) != 0};
        v->value = v->secret ? NULL : st_text(q, 2);
        str_copy(v->last4, sizeof(v->last4), v->secret && last ? last : "");
    }
    return rc;
}

static void add_preset(struct project *p, const char *name, bool of_user, const char *choice)
{
    struct cJSON *j = choice ? json_parse(choice, strlen(choice), NULL) : NULL;
    struct project_preset *to;

    p->presets = xrealloc(p->presets, (p->n_presets + 1) * sizeof(*p->presets));
    to = &p->presets[p->n_presets++];
    *to = (struct project_preset){.name = xstrdup(name), .of_user = of_user};
    read_choice(j, &to->c);
    json_free(j);
}

static int read_presets(struct store *s, struct list *l, struct err *e)
{
    sqlite3_stmt *q = st_query(s, e,
                               "SELECT project, name, choice FROM presets"
                               " ORDER BY project IS NULL, name", "");
    int rc = q ? 0 : e->code;

    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        const char *project = (const char *)sqlite3_column_text(q, 0);
        const char *name = (const char *)sqlite3_column_text(q, 1);
        const char *choice = (const char *)sqlite3_column_text(q, 2);

        for (size_t i = 0; i < l->v.n; i++)
            if (!project || str_eq(l->v.v[i].id, project))
                add_preset(&l->v.v[i], name, !project, choice);
        rc = 0;
    }
    return rc;
}

/* The one asked for has a place in the list even when it is no more than a name. */
static size_t find_current(struct list *l, const char *name)
{
    if (!name && l->v.n && l->v.v[0].used_at)
        return 0;
    name = name ? name : NO_PROJECT;
    if (by_id(l, name))
        return (size_t)(by_id(l, name) - l->v.v);
    for (size_t i = 0; i < l->v.n; i++)
        if (str_eq(l->v.v[i].name, name))
            return i;
    ARR_PUSH(&l->v)->name = xstrdup(name);
    return l->v.n - 1;
}

int st_op_projects(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int64_t revision;
    struct list l = {ARR_INIT};
    struct st_projects *p;
    size_t current = 0;
    int rc = st_number(s, &r->err, 0, &revision, "SELECT n FROM counters WHERE name='projects'",
                       "");

    if (rc != 0 || revision == q->n1)
        return rc;
    rc = read_names(s, &l, &r->err);
    if (rc == 0)
        current = find_current(&l, q->s1);
    if (rc == 0)
        rc = read_vars(s, &l, &r->err);
    if (rc == 0)
        rc = read_presets(s, &l, &r->err);
    p = xcalloc(1, sizeof(*p));
    *p = (struct st_projects){revision, l.v.v, l.v.n, current, NULL, 0};
    if (rc == 0)
        rc = st_filters(s, p, &r->err);
    if (rc != 0) {
        st_projects_free(p);
        return rc;
    }
    r->projects = p;
    r->got = true;
    return 0;
}

int st_project_of(struct store *s, const char *name, char **uid, struct err *e)
{
    sqlite3_stmt *q =
        name ? st_query(s, e,
                        "SELECT uid FROM projects WHERE uid=?1 OR name=?1 ORDER BY uid<>?1", "t",
                        name)
             : st_query(s, e,
                        "SELECT uid FROM projects WHERE usedAt>0 OR name='" NO_PROJECT "'"
                        " ORDER BY usedAt DESC, name LIMIT 1", "");
    int rc = q ? st_step(s, q, e) : e->code;

    if (rc != 1)
        return rc;
    *uid = st_text(q, 0);
    sqlite3_reset(q);
    return 0;
}

/* --- writing ----------------------------------------------------------------------------- */

int st_projects_changed(struct store *s, struct err *e)
{
    return st_run(s, e, "UPDATE counters SET n=n+1 WHERE name='projects'", "");
}

/* Keys hang on it: who holds them looks again. */
static int keys_changed(struct store *s, struct err *e)
{
    int rc = st_run(s, e, "UPDATE vault SET revision=revision+1", "");

    return rc == 0 ? st_projects_changed(s, e) : rc;
}

static int no_such(struct err *e)
{
    return err_set(e, ERR_NOTFOUND, "there is no such project any more: cc-tui projects ls shows "
                   "those that are");
}

/* Rows of sandboxes carry the name, so they follow; what was said to be killed, too. */
static int rename_all(struct store *s, const char *old, const char *name, struct err *e)
{
    int rc = st_run(s, e, "UPDATE sandboxes SET project=? WHERE project=? AND isForeign<>1", "tt",
                    name, old);

    if (rc == 0)
        rc = st_ledger_rename(s, old, name, e);
    if (rc == 0)
        rc = st_run(s, e, "UPDATE OR IGNORE budgetNotes SET project=? WHERE project=?", "tt", name,
                    old);
    if (rc == 0) /* a scope is PLACE/PROJECT, and a place has no slash */
        rc = st_run(s, e,
                    "UPDATE killIntents SET project=substr(project, 1, instr(project, '/'))||?1"
                    " WHERE substr(project, instr(project, '/')+1)=?2 AND instr(project, '/')>0",
                    "tt", name, old);
    return rc;
}

int st_op_project_rename(struct store *s, const struct st_req *q, struct st_reply *r)
{
    sqlite3_stmt *p = st_query(s, &r->err, "SELECT name FROM projects WHERE uid=?", "t", q->s1);
    int rc = p ? st_step(s, p, &r->err) : r->err.code;
    char *old;

    if (rc != 1)
        return rc ? rc : no_such(&r->err);
    old = st_text(p, 0);
    sqlite3_reset(p);
    rc = st_run(s, &r->err, "UPDATE projects SET name=? WHERE uid=?", "tt", q->s2, q->s1);
    if (rc == ERR_CONFLICT)
        err_set(&r->err, rc, "there is a project '%.64s' already", q->s2);
    if (rc == 0)
        rc = rename_all(s, old, q->s2, &r->err);
    free(old);
    return rc == 0 ? keys_changed(s, &r->err) : rc;
}

int st_op_project_put(struct store *s, const struct st_req *q, struct st_reply *r)
{
    char *patch = settings_patch(q->project);
    int rc = st_run(s, &r->err,
                    "UPDATE projects SET settings=json_patch(CASE WHEN json_valid(settings)"
                    " THEN settings ELSE '{}' END, ?) WHERE uid=?", "tt", patch,
                    q->project->id);

    free(patch);
    if (rc == 0 && sqlite3_changes(s->db) == 0)
        return no_such(&r->err);
    return rc == 0 ? st_projects_changed(s, &r->err) : rc;
}

int st_op_project_del(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int64_t live;
    int rc = st_number(s, &r->err, 0, &live,
                       "SELECT count(*) FROM sandboxes WHERE isForeign<>1 AND project="
                       "(SELECT name FROM projects WHERE uid=?) AND (state IN ('creating',"
                       " 'running', 'paused') OR (state='error' AND vmUp))", "t", q->s1);

    if (rc == 0 && live)
        return err_set(&r->err, ERR_CONFLICT, "%lld sandbox%s of the project still there: end "
                       "them first (cc-tui kill --all --project NAME)", (long long)live,
                       live == 1 ? " is" : "es are");
    if (rc == 0)
        rc = st_run(s, &r->err, "DELETE FROM projects WHERE uid=?", "t", q->s1);

    if (rc == 0 && sqlite3_changes(s->db) == 0)
        return no_such(&r->err);
    return rc == 0 ? keys_changed(s, &r->err) : rc;
}

int st_op_project_used(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = st_run(s, &r->err,
                    "UPDATE projects SET usedAt=max(?1, 1+(SELECT max(usedAt) FROM projects))"
                    " WHERE uid=?2", "it", q->n1, q->s1);

    if (rc == 0 && sqlite3_changes(s->db) == 0)
        return no_such(&r->err);
    return rc == 0 ? st_projects_changed(s, &r->err) : rc;
}

int st_op_project_var(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = st_run(s, &r->err,
                    "INSERT OR REPLACE INTO projectVariables(project, name, value, createdAt)"
                    " VALUES(?,?,?,?)",
                    "ttti", q->s1, q->s2, q->s3, q->n1);

    if (rc == ERR_CONFLICT)
        return no_such(&r->err);
    return rc == 0 ? keys_changed(s, &r->err) : rc;
}

int st_op_project_var_del(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = st_run(s, &r->err, "DELETE FROM projectVariables WHERE project=? AND name=?", "tt",
                    q->s1, q->s2);

    if (rc == 0 && sqlite3_changes(s->db) == 0)
        return err_set(&r->err, ERR_NOTFOUND, "the project has no variable %.64s", q->s2);
    return rc == 0 ? keys_changed(s, &r->err) : rc;
}

int st_op_preset(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = st_run(s, &r->err,
                    "DELETE FROM presets WHERE ifnull(project, '')=ifnull(?, '') AND name=?", "tt",
                    q->s1, q->s2);
    char *json;

    if (rc == 0 && !q->project && sqlite3_changes(s->db) == 0)
        return err_set(&r->err, ERR_NOTFOUND, "there is no preset '%.64s' here", q->s2);
    if (rc == 0 && q->project) {
        json = choice_json(&q->project->defaults);
        rc = st_run(s, &r->err, "INSERT INTO presets(project, name, choice) VALUES(?,?,?)", "ttt",
                    q->s1, q->s2, json);
        free(json);
        if (rc == ERR_CONFLICT)
            return no_such(&r->err);
    }
    return rc == 0 ? st_projects_changed(s, &r->err) : rc;
}
