/* The judge of test_kill_model: the picture as a user reads it, and what may come of a key. */
#include "killjudge.h"

#include <cct/ui/ui.h>
#include <cct/util/str.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the picture, read as a user does ---------------------------------------------- */

/* The lines of the box with this title, its frame cut off; NULL when there is none. */
static char *box_of(const char *screen, const char *title)
{
    const char *at = strstr(screen, title), *line = at;
    struct buf b = BUF_INIT;
    if (!at)
        return NULL;
    while (line > screen && line[-1] != '\n')
        line--;
    size_t x = (size_t)(at - line) - 2; /* "+ title" */
    buf_addf(&b, "%.*s\n", (int)strcspn(at, "\n"), at);
    for (line += strcspn(line, "\n"); *line++ == '\n'; line += strcspn(line, "\n")) {
        size_t n = strcspn(line, "\n");
        if (n <= x + 1 || line[x] == '+')
            break;
        buf_addf(&b, "%.*s\n", (int)strcspn(line + x + 1, "|\n"), line + x + 1);
    }
    return buf_detach(&b, NULL);
}

/* Text behind `label` to the line's end. */
static bool after(const char *box, const char *label, char *dst, size_t size)
{
    const char *p = strstr(box, label);
    if (!p)
        return false;
    p += strlen(label);
    size_t n = strcspn(p, "\n");
    while (n && p[n - 1] == ' ')
        n--;
    snprintf(dst, size, "%.*s", (int)n, p);
    return true;
}

static void read_all(struct run *r, const char *box)
{
    char text[128], what[128];
    bool type = after(box, "type ", text, sizeof(text));
    bool yes = after(box, "y  kill ", text, sizeof(text));
    if ((!yes && !type) || !after(box, "kill ALL sandboxes of ", what, sizeof(what)))
        return;
    r->shown.kind = ALL;
    r->shown.number = !yes;
    snprintf(r->shown.what, sizeof(r->shown.what), "%.*s", (int)strcspn(what, "?"), what);
    r->shown.n = strtol(text, NULL, 10);
}

static void read_one(struct run *r, const char *box)
{
    const struct model *m = r->s.app->model;
    char text[64];
    if (!after(box, "y  kill it", text, sizeof(text)) ||
        !after(box, "id       ", r->shown.id, sizeof(r->shown.id)))
        return;
    r->shown.kind = ONE;
    for (size_t i = 0; i < m->n_sandboxes; i++)
        if (str_eq(m->sandboxes[i].sandbox_id, r->shown.id))
            r->shown.started_at = m->sandboxes[i].started_at;
}

static void read_several(struct run *r, const char *box)
{
    const struct model *model = r->s.app->model;
    char text[64];
    if (!after(box, "y  kill ", text, sizeof(text)))
        return;
    r->shown.kind = SEVERAL;
    r->shown.n = strtol(text, NULL, 10);
    snprintf(r->shown.list, sizeof(r->shown.list), "%s", box);
    for (size_t i = 0; i < model->n_sandboxes && i < MAX_SEEN; i++) {
        const struct sandbox *s = &model->sandboxes[i];
        struct seen_row *m = &r->shown.rows[r->shown.n_rows++];
        m->row = s->id;
        snprintf(m->id, sizeof(m->id), "%s", s->sandbox_id ? s->sandbox_id : "");
        m->started_at = s->started_at;
    }
}

void killjudge_look(struct run *r)
{
    const struct model *m = r->s.app->model;
    char *screen, *one, *several, *all, *told, text[16];

    memset(&r->shown, 0, sizeof(r->shown));
    if (!r->s.ui.n_overlays || r->s.ui.tiny)
        return; /* nothing is asked */
    screen = canvas_dump(&r->s.ui.canvas, false);
    one = box_of(screen, "kill this sandbox?");
    several = box_of(screen, "kill the marked sandboxes?");
    all = box_of(screen, "kill ALL sandboxes of ");
    told = box_of(screen, "kill all: ");
    snprintf(r->shown.account, sizeof(r->shown.account), "%s", m->account ? m->account : "");
    if (one)
        read_one(r, one);
    else if (several)
        read_several(r, several);
    else if (all)
        read_all(r, all);
    else if (told && (after(told, "R  retry", text, sizeof(text)) ||
                      after(told, "R  look again", text, sizeof(text))))
        r->shown.kind = REPORT;
    if (m->kill) {
        r->shown.set = m->kill->set;
        r->shown.bad = m->kill->failed + m->kill->still_alive;
        if (r->shown.kind == ALL && m->kill->account)
            snprintf(r->shown.account, sizeof(r->shown.account), "%s", m->kill->account);
    }
    r->offers += r->shown.kind != NOTHING;
    free(one);
    free(several);
    free(all);
    free(told);
    free(screen);
}

/* --- the judge ------------------------------------------------------------------- */

static void wrong(struct run *r, const char *call, const char *why)
{
    if (!*r->wrong)
        snprintf(r->wrong, sizeof(r->wrong), "%.80s: %s", call, why);
}

/* One of several: by its key, still itself, with its name and id in the picture, and not
 * more of them than it said. */
static void judge_marked(struct run *r, const char *call, uint64_t row)
{
    const struct sandbox *s = model_sandbox(r->s.app->model, row);
    const struct seen_row *m = NULL;
    r->marked++;
    for (size_t i = 0; i < r->shown.n_rows; i++)
        if (r->shown.rows[i].row == row)
            m = &r->shown.rows[i];
    if (r->key != 'y' || r->shown.n-- <= 0)
        wrong(r, call, "without its key, or more than it said");
    else if (!m || !s || !str_eq(s->sandbox_id ? s->sandbox_id : "", m->id) ||
             s->started_at != m->started_at)
        wrong(r, call, "another one than the picture meant");
    else if (strstr(r->shown.list, "j k  all"))
        ; /* more than fit: it was scrolled through before */
    else if (!strstr(r->shown.list, s->name) || (*m->id && !strstr(r->shown.list, m->id)))
        wrong(r, call, "one that the picture did not name");
    else if (!str_eq(r->s.app->model->account ? r->s.app->model->account : "", r->shown.account))
        wrong(r, call, "in another account than the one shown");
}

static void judge_one(struct run *r, const char *call, uint64_t row)
{
    const struct sandbox *s = model_sandbox(r->s.app->model, row);
    r->kills++;
    if (r->shown.kind == SEVERAL) {
        judge_marked(r, call, row);
        return;
    }
    if (r->shown.kind != ONE || r->key != 'y')
        wrong(r, call, "without its question or its key");
    else if (!s || strcmp(s->sandbox_id ? s->sandbox_id : "(being created)", r->shown.id) != 0)
        wrong(r, call, "another sandbox than the one shown");
    else if (s->started_at != r->shown.started_at && s->sandbox_id)
        wrong(r, call, "the one shown was replaced");
    else if (!str_eq(r->s.app->model->account ? r->s.app->model->account : "", r->shown.account))
        wrong(r, call, "in another account than the one shown");
}

/* Are the digits of n among what was typed, in their order? */
static bool was_typed(const struct run *r, long n)
{
    char want[24];
    size_t at = 0;
    snprintf(want, sizeof(want), "%ld", n);
    for (size_t i = 0; i < r->n_typed && want[at]; i++)
        at += r->typed[i] == want[at];
    return !want[at];
}

static void judge_all(struct run *r, const char *call, bool account, long n)
{
    const struct ev_kill *k = r->s.app->model->kill;
    r->confirms++;
    if (!r->key && r->at_once == 1 && !account && k && n == (long)k->n_project) {
        r->at_once = 0;
        return;
    }
    if (r->shown.kind != ALL || n != r->shown.n || !k || k->phase != KILL_ARMED)
        wrong(r, call, "without its question, or another number");
    else if (strcmp(r->shown.what, account ? "this account" : k->project) != 0)
        wrong(r, call, "in another scope than the one shown");
    else if (k->set != r->shown.set || !str_eq(k->account, r->shown.account))
        wrong(r, call, "others than those the question was about");
    else if (r->key != (r->shown.number ? K_ENTER : 'y') || (r->shown.number && !was_typed(r, n)))
        wrong(r, call, "without its key or its number");
}

static void judge_retry(struct run *r, const char *call)
{
    const struct ev_kill *k = r->s.app->model->kill;
    r->retries++;
    if (r->shown.kind != REPORT || r->key != 'R' || !k ||
        r->shown.bad != k->failed + k->still_alive)
        wrong(r, call, "without its report or its key");
}

void killjudge_judge(struct run *r)
{
    const char *p = buf_str(&r->s.app->calls);
    char scope[16];
    unsigned long row;
    long n;

    for (; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        bool kills = str_starts(p, "call kill ") || str_starts(p, "call kill_all_confirm") ||
                     str_starts(p, "call kill_all_retry");
        if (kills && r->key && (!r->own || !r->on_screen))
            wrong(r, p, "by a key that was typed ahead, pasted or pressed blindly");
        if (sscanf(p, "call kill %lu", &row) == 1)
            judge_one(r, p, row);
        else if (sscanf(p, "call kill_all_confirm %15s %ld", scope, &n) == 2)
            judge_all(r, p, strcmp(scope, "account") == 0, n);
        else if (str_starts(p, "call kill_all_retry"))
            judge_retry(r, p);
        else if (str_starts(p, "call kill_all_open")) {
            r->dialogs++;
            r->n_typed = 0;
            r->at_once = r->key == 'K' && r->own && r->s.opts.kill_all_confirm &&
                         !strcmp(r->s.opts.kill_all_confirm, "never");
        }
    }
    buf_clear(&r->s.app->calls);
}
