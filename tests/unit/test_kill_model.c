/* The list and the kill dialogs under random keys, with anything happening between any
 * two of them: rows appear, vanish, trade places, names and ids, the account changes,
 * questions and reports arrive, pastes, keys typed ahead, other sizes. The judge reads
 * the picture as a user does. A kill may come from one thing alone: the key that the
 * picture names, by itself, for exactly what the picture shows; whatever else is a
 * failure. SEED=n repeats one run, RUNS=n makes more of them. */
#include "../lib/killjudge.h"
#include "../lib/screenscript.h"

#include <cct/ui/ui.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 200, RUNS = 300, MAX_ROWS = 14 };

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

/* --- what can happen ------------------------------------------------------------- */

static void draw(struct run *r)
{
    ui_update(&r->s.ui);
    killjudge_judge(r);
    if (!r->s.ui.n_overlays && chance(r, 70)) { /* nothing is asked: time is saved */
        memset(&r->shown, 0, sizeof(r->shown));
        return;
    }
    ui_draw(&r->s.ui, r->s.now);
    killjudge_judge(r);
    r->on_screen = !chance(r, 8); /* a slow line: what was seen last is older */
    r->s.ui.unseen = !r->on_screen;
    if (r->on_screen)
        killjudge_look(r);
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
    killjudge_judge(r);
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
    killjudge_judge(r);
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
        killjudge_judge(r);
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
