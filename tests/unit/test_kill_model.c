/* The list and the kill dialogs under random keys, with anything happening between any
 * two of them: rows appear, vanish, trade places, names and ids, the account changes,
 * questions and reports arrive, pastes, keys typed ahead, other sizes. The judge reads
 * the picture as a user does. A kill may come from one thing alone: the key that the
 * picture names, by itself, for exactly what the picture shows; whatever else is a
 * failure. SEED=n repeats one run, RUNS=n makes more of them. */
#include "../lib/screenscript.h"

#include <cct/ui/ui.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 200, RUNS = 300, MAX_ROWS = 14, MAX_SEEN = 40 };

/* What the picture offers to end. */
enum kind { NOTHING, ONE, SEVERAL, ALL, REPORT };
struct seen_row {
    uint64_t row;
    char id[64];
    int64_t started_at;
};
struct shown {
    enum kind kind;
    char id[64], what[128]; /* one: id; all: whose sandboxes */
    long n;                 /* several, all: how many */
    char list[1024];        /* several: the lines that name them */
    struct seen_row rows[MAX_SEEN];
    size_t n_rows;
    bool number;            /* ... to be typed */
    /* what stood behind the picture */
    int64_t started_at;
    uint64_t set;
    size_t bad;
    char account[64];
};
struct run {
    struct script s;
    uint64_t seed, rng;
    struct shown shown;
    bool on_screen;       /* the picture reached the terminal */
    key_code key;         /* being handled, 0 = none */
    bool own;             /* ... and it came by itself */
    char typed[512];      /* digits since the question was opened */
    size_t n_typed;
    int at_once;          /* K was pressed where no question is wanted */
    struct buf story;     /* what happened, for the report of a failure */
    long kills, marked, confirms, retries, dialogs, offers;
    char wrong[256];
};

/* --- chance ---------------------------------------------------------------------- */

static uint64_t next(struct run *r)
{
    r->rng += 0x9e3779b97f4a7c15u;
    uint64_t z = r->rng;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int upto(struct run *r, int n)
{
    return (int)(next(r) % (uint64_t)n);
}

static bool chance(struct run *r, int percent)
{
    return upto(r, 100) < percent;
}

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

static void look(struct run *r)
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

/* Looks at what the facade was told since the last time. */
static void judge(struct run *r)
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

/* --- what can happen ------------------------------------------------------------- */

static void draw(struct run *r)
{
    ui_update(&r->s.ui);
    judge(r);
    if (!r->s.ui.n_overlays && chance(r, 70)) { /* nothing is asked: time is saved */
        memset(&r->shown, 0, sizeof(r->shown));
        return;
    }
    ui_draw(&r->s.ui, r->s.now);
    judge(r);
    r->on_screen = !chance(r, 8); /* a slow line: what was seen last is older */
    r->s.ui.unseen = !r->on_screen;
    if (r->on_screen)
        look(r);
}

static void tell_key(struct run *r, key_code k)
{
    if (k > ' ' && k < 0x7F)
        buf_addf(&r->story, " %c", (int)k);
    else
        buf_addf(&r->story, " %s", k == K_ENTER ? "Enter" : k == K_ESC ? "Esc" : k == K_TAB ? "Tab"
                                                                                          : "key");
    buf_addf(&r->story, "%s%s", r->own ? "" : "(heap)", r->on_screen ? "" : "(blind)");
}

static void press(struct run *r, key_code k)
{
    r->key = k;
    r->own = !chance(r, 12);
    r->s.ui.crowded = !r->own;
    tell_key(r, k);
    if (k >= '0' && k <= '9' && r->n_typed < sizeof(r->typed))
        r->typed[r->n_typed++] = (char)k;
    ui_key(&r->s.ui, k, NULL, 0);
    judge(r);
    r->key = 0;
    if (chance(r, 80))
        draw(r);
}

static void random_row(struct run *r, struct sandbox *s, uint64_t id)
{
    static const enum sb_state states[] = {SB_RUNNING, SB_RUNNING, SB_PAUSED, SB_CREATING,
                                           SB_KILLED, SB_ERROR};
    s->id = id;
    s->state = states[upto(r, 6)];
    s->agent = (enum sb_agent)upto(r, 8);
    s->vm_up = chance(r, 70);
    s->name = xasprintf("box-%d", upto(r, 6)); /* names are no identity */
    s->sandbox_id = s->state == SB_CREATING && chance(r, 50)
                        ? NULL
                        : xasprintf("i%dx%d", (int)id, chance(r, 80) ? 0 : upto(r, 3));
    s->tool = chance(r, 80) ? xstrdup("claude") : NULL;
    s->project = xstrdup("default");
    s->started_at = r->s.now - (chance(r, 90) ? 600000 : upto(r, 9) * 1000);
    s->end_at = r->s.now + upto(r, 7200) * 1000 - 600000;
    s->protect = chance(r, 10);
    s->foreign = chance(r, 20);
    s->unlisted = chance(r, 10);
}

/* Some rows are as they were, others differ, come or go; in any order. */
static void refresh(struct run *r)
{
    const struct model *m = r->s.app->model;
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    ev->full = chance(r, 60);
    ev->v = xcalloc(2 * MAX_ROWS, sizeof(*ev->v));
    for (size_t i = 0; i < m->n_sandboxes && i < MAX_ROWS; i++)
        if (chance(r, ev->full ? 92 : 20)) {
            struct sandbox *s = &ev->v[ev->n++];
            if (chance(r, 85))
                sandbox_copy(s, &m->sandboxes[i]);
            else
                random_row(r, s, m->sandboxes[i].id);
        }
    while (ev->n < MAX_ROWS && chance(r, 35)) {
        uint64_t id = (uint64_t)upto(r, 40) + 1;
        bool there = false;
        for (size_t i = 0; i < ev->n; i++)
            there |= ev->v[i].id == id;
        if (!there)
            random_row(r, &ev->v[ev->n++], id);
    }
    for (size_t i = ev->n; i > 1 && ev->full; i--) {
        size_t at = (size_t)upto(r, (int)i);
        struct sandbox t = ev->v[i - 1];
        ev->v[i - 1] = ev->v[at];
        ev->v[at] = t;
    }
    buf_addf(&r->story, " [%zu rows%s]", ev->n, ev->full ? " in all" : "");
    script_post(&r->s, ev);
}

static const char *account(struct run *r)
{
    return chance(r, 85) ? "E2B key ****4f2a (environment)" : "E2B key ****9999 (user)";
}

static void link_event(struct run *r)
{
    struct ev_link *ev = ev_new(EV_LINK);
    ev->state = chance(r, 60) ? LINK_OK : (enum link_state)upto(r, 6);
    ev->account = xstrdup(account(r));
    ev->text = ev->state == LINK_OK ? NULL : xstrdup("cannot reach the service");
    ev->total_running = -1;
    buf_adds(&r->story, " [link]");
    script_post(&r->s, ev);
}

static void kill_event(struct run *r, enum kill_phase phase)
{
    struct ev_kill *k = ev_new(EV_KILL);
    const struct ev_kill *old = r->s.app->model->kill;
    k->phase = phase;
    k->account_scope = chance(r, 85) && old ? old->account_scope : chance(r, 50);
    k->project = xstrdup(chance(r, 90) ? "default" : "other");
    k->account = xstrdup(account(r));
    k->n_project = old && chance(r, 50) ? old->n_project : (size_t)upto(r, chance(r, 60) ? 10 : 300);
    k->n_account = k->n_project + (size_t)upto(r, 3);
    k->set = old && chance(r, 50) ? old->set : next(r) | 1;
    k->by_state[SB_RUNNING] = k->n_project;
    k->failed = chance(r, 40) ? (size_t)upto(r, 3) : 0;
    k->still_alive = chance(r, 20);
    k->verified = chance(r, 70);
    k->text = phase == KILL_RUNNING && chance(r, 30) ? xstrdup("killing in 3 s") : NULL;
    k->n = k->n_project < 20 ? k->n_project : 20;
    k->v = xcalloc(k->n + 1, sizeof(*k->v));
    for (size_t i = 0; i < k->n; i++)
        k->v[i] = (struct kill_target){.sandbox_id = xasprintf("i%zux", i),
                                       .name = xstrdup("box"), .result = upto(r, 6)};
    buf_addf(&r->story, " [kill %d %s %zu/%zu]", phase, k->account_scope ? "account" : "project",
             k->n_project, k->n_account);
    script_post(&r->s, k);
}

/* As the jobs answer an open question, mostly. */
static void arm(struct run *r)
{
    kill_event(r, chance(r, 80) ? KILL_ARMED : (enum kill_phase)upto(r, 6));
    for (int i = 0; i < 2 && chance(r, 30); i++)
        refresh(r);
}

static void paste(struct run *r)
{
    static const char *const texts[] = {"y", "Dy", "K10\r", "y\ny\n", "RRR", "Ky12\n"};
    const char *t = texts[upto(r, 6)];
    r->key = K_PASTE;
    r->own = false;
    buf_adds(&r->story, " <paste>");
    ui_key(&r->s.ui, K_PASTE, t, strlen(t));
    judge(r);
    r->key = 0;
}

static void resize(struct run *r)
{
    bool usual = chance(r, 85);
    int h = usual ? 24 : 5 + upto(r, 50), w = usual ? 80 : 20 + upto(r, 180);
    buf_addf(&r->story, " [%dx%d]", h, w);
    ui_resize(&r->s.ui, h, w);
}

static void between(struct run *r)
{
    int what = upto(r, 20);
    if (what < 9)
        refresh(r);
    else if (what < 11)
        link_event(r);
    else if (what < 14)
        arm(r);
    else if (what < 16)
        kill_event(r, (enum kill_phase)upto(r, 6));
    else if (what < 17)
        paste(r);
    else if (what < 18)
        resize(r);
    else
        r->s.now += upto(r, 90000);
    if (chance(r, 70))
        draw(r);
    else if (chance(r, 60)) {
        ui_update(&r->s.ui); /* known, but not drawn yet */
        judge(r);
    }
}

static void type_number(struct run *r)
{
    char text[24];
    const struct ev_kill *k = r->s.app->model->kill;
    long n = r->shown.kind == ALL && chance(r, 80) ? r->shown.n : k ? (long)k->n_account : 1;
    snprintf(text, sizeof(text), "%ld", n);
    for (const char *p = text; *p; p++) {
        press(r, (key_code)*p);
        if (chance(r, 10))
            between(r);
    }
    press(r, K_ENTER);
}

/* Somebody who means to kill, disturbed. */
static void intend(struct run *r)
{
    bool all = chance(r, 50);
    for (int i = upto(r, 4); !all && i > 0 && chance(r, 40); i--)
        press(r, ' ');
    press(r, all ? 'K' : 'D');
    while (chance(r, 35))
        between(r);
    if (all && chance(r, 80))
        arm(r);
    if (all && chance(r, 20))
        press(r, K_TAB), arm(r);
    if (chance(r, 85))
        draw(r);
    while (chance(r, 25))
        between(r);
    if (all && r->shown.kind == ALL && r->shown.number)
        type_number(r);
    else
        press(r, 'y');
    while (all && chance(r, 30))
        kill_event(r, (enum kill_phase)(KILL_RUNNING + upto(r, 3))), draw(r);
    if (all && chance(r, 50))
        press(r, 'R');
    if (chance(r, 60))
        press(r, K_ESC);
}

static void any_key(struct run *r)
{
    static const char keys[] = "yyyYnNDDDKKKRRujjjkkgG/iqQ pPrtXdRU?:bacs<>IS0123456789]-WZ+fx";
    static const key_code special[] = {K_ENTER, K_ESC, K_ESC, K_TAB, K_UP, K_DOWN, K_BACKSPACE,
                                       K_DELETE, K_PGDN, K_FOCUS_IN, K_FOCUS_OUT, 'C' & 0x1F};
    if (chance(r, 70))
        press(r, (key_code)keys[upto(r, sizeof(keys) - 1)]);
    else
        press(r, special[upto(r, sizeof(special) / sizeof(special[0]))]);
}

/* --- runs ------------------------------------------------------------------------ */

static bool one_run(struct run *r, uint64_t seed)
{
    static int failures; /* the first few tell enough */
    static const char *const confirm[] = {"count", "count", "count", "always", "never"};
    r->seed = r->rng = seed;
    script_init(&r->s);
    r->s.opts.ascii = true;
    r->s.opts.kill_all_confirm = confirm[upto(r, 5)];
    script_run(&r->s, "loaded");
    link_event(r);
    refresh(r);
    script_draw(&r->s);
    draw(r);
    for (int i = 0; i < STEPS && !*r->wrong; i++) {
        if (chance(r, 25))
            intend(r);
        else
            any_key(r);
        if (chance(r, 55))
            between(r);
    }
    if (*r->wrong && ++failures <= 3)
        printf("# seed %llu: %s\n# the last of it:%s\n", (unsigned long long)seed, r->wrong,
               buf_str(&r->story) + (r->story.len > 600 ? r->story.len - 600 : 0));
    script_release(&r->s);
    buf_release(&r->story);
    return !*r->wrong;
}

int main(void)
{
    const char *runs = getenv("RUNS"), *seed = getenv("SEED");
    long n = seed ? 1 : runs ? strtol(runs, NULL, 10) : RUNS, bad = 0;
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    long kills = 0, marked = 0, confirms = 0, retries = 0, offers = 0;

    for (long i = 0; i < n; i++) {
        struct run r = {0};
        bad += !one_run(&r, first + (uint64_t)i);
        kills += r.kills;
        marked += r.marked;
        confirms += r.confirms;
        retries += r.retries;
        offers += r.offers;
    }
    printf("# %ld runs of %d steps from seed %llu on: %ld kills (%ld of marked ones), %ld of all, "
           "%ld retries; a question was seen %ld times\n", n, STEPS, (unsigned long long)first,
           kills, marked, confirms, retries, offers);
    printf("%sok 1 - nothing is killed but what the confirmed question named\n", bad ? "not " : "");
    bool useful = seed || (kills >= n && confirms >= n / 2 && retries >= n / 4);
    printf("%sok 2 - and the runs did reach what they are to judge\n", useful ? "" : "not ");
    puts("1..2");
    return bad || !useful;
}
