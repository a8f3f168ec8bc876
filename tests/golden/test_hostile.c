/* Every string of the hostile corpus in every place where foreign text is shown, by the
 * ways of production: agent events through transcribe(), rows and kill targets through the
 * one-line cleaner, pastes into the input as they are. No cell of any screen may hold a
 * control, a C1, a direction mark or another hidden character. */
#include "../lib/hostile.h"
#include "../lib/screenscript.h"

#include <cct/model/transcribe.h>
#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
    struct script s;
    const struct hostile_item *item;
    const char *where;
};

static void check_cells(struct place *p, const char *where)
{
    const struct canvas *c = &p->s.ui.canvas;
    script_draw(&p->s);
    for (size_t i = 0; i < (size_t)c->h * (size_t)c->w; i++) {
        size_t at;
        const char *ch = c->cells[i].ch, *why = hostile_impure(ch, strlen(ch), false, &at);
        if (why)
            fail_msg("corpus line %u, %s, %dx%d: %s", p->item->line, where, c->w, c->h, why);
    }
}

static char *line(const char *s)
{
    return clean_line_dup(s, 0);
}

static void hostile_row(struct place *p, const char *t)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    struct sandbox *r = ev->v = xcalloc(1, sizeof(*r));
    static const enum sb_state states[] = {SB_RUNNING, SB_ERROR, SB_PAUSED};
    ev->n = 1;
    r->id = 1;
    r->sandbox_id = line(t);
    r->name = line(t);
    r->tool = line(t);
    r->project = line(t);
    r->template_id = line(t);
    r->alias = line(t);
    r->state = states[p->item->line % 3];
    r->vm_up = true;
    r->agent = AG_IDLE;
    r->reason = line(t);
    r->last_line = line(t);
    r->meta = xcalloc(2, sizeof(*r->meta));
    r->meta[0].k = line(t);
    r->meta[0].v = line(t);
    script_post(&p->s, ev);
}

static void an_event(struct place *p, struct agent_event *e, const char *who)
{
    static uint64_t offset = 1;
    struct ev_items *ev = ev_new(EV_ITEMS);
    ev->sandbox = 1;
    ev->reset = e->kind == AGENT_USER_ECHO; /* the first one of each string */
    e->offset = offset++;
    transcribe(e, who, ev);
    free(transcribe_last_line(e));
    script_post(&p->s, ev);
}

static void hostile_talk(struct place *p, char *t)
{
    struct agent_event e[] = {
        {.kind = AGENT_USER_ECHO, .text = t},
        {.kind = AGENT_THINKING, .text = t, .id = t, .final = true},
        {.kind = AGENT_TEXT, .text = t, .id = t, .final = true, .mode = AGENT_REPLACE},
        {.kind = AGENT_TOOL, .name = t, .title = t, .input = t, .output = t, .id = t,
         .state = AGENT_TOOL_OK, .exit_code = -1},
        {.kind = AGENT_NOTICE, .text = t, .level = AGENT_WARN},
        {.kind = AGENT_ASK, .name = t, .title = t, .input = t, .id = t},
        {.kind = AGENT_TURN_END, .text = t, .outcome = AGENT_FAILED},
        {.kind = AGENT_EXIT, .text = t, .exit_code = 1},
        {.kind = AGENT_RAW, .text = t, .final = true}};
    for (size_t i = 0; i < sizeof(e) / sizeof(e[0]); i++)
        an_event(p, &e[i], t);
}

static void hostile_kill(struct place *p, const char *t, enum kill_phase phase)
{
    struct ev_kill *k = ev_new(EV_KILL);
    k->phase = phase;
    k->project = line(t);
    k->account = line(t);
    k->text = line(t);
    k->n_project = k->n = 1;
    k->v = xcalloc(2, sizeof(*k->v));
    k->v[0].name = line(t);
    k->v[0].sandbox_id = line(t);
    k->v[0].reason = line(t);
    k->v[0].result = 3;
    k->failed = 1;
    script_post(&p->s, k);
}

static void hostile_words(struct place *p, const char *t)
{
    struct ev_event *ev = ev_new(EV_EVENT);
    struct ev_link *lk = ev_new(EV_LINK);
    struct ev_message *m = ev_new(EV_MESSAGE);
    ev->sandbox = 1;
    ev->text = line(t);
    script_post(&p->s, ev);
    lk->state = LINK_DOWN;
    lk->text = line(t);
    lk->account = line(t);
    script_post(&p->s, lk);
    m->msg.id = 1;
    m->msg.sandbox = 1;
    m->msg.state = MSG_QUEUED;
    m->msg.text = xstrdup(t); /* as the user gave it */
    script_post(&p->s, m);
}

static void keys(struct place *p, const char *keys)
{
    script_line(&p->s, keys, "hostile");
}

/* What surrounds the attack must still be read, in an output of its own. */
static void check_readable(struct place *p)
{
    char *t = line(p->item->s);
    bool short_enough = text_width(t, strlen(t)) < 150;
    free(t);
    if (!p->item->survives || !short_enough || memchr(p->item->s, 0, p->item->len))
        return;
    struct ev_items *ev = ev_new(EV_ITEMS);
    struct agent_event e = {.kind = AGENT_TEXT, .text = p->item->s, .id = (char *)"only",
                            .final = true, .mode = AGENT_REPLACE, .offset = 1};
    ev->sandbox = 1;
    ev->reset = true;
    transcribe(&e, "claude", ev);
    script_post(&p->s, ev);
    char *screen = script_screen(&p->s);
    char *begin = strstr(screen, "AB");
    if (!begin || !strstr(begin, "YZ"))
        fail_msg("corpus line %u: AB..YZ cannot be read", p->item->line);
    free(screen);
}

static void one_string(struct place *p, int h, int w)
{
    char *t = p->item->s;
    ui_resize(&p->s.ui, h, w);
    hostile_row(p, t);
    hostile_talk(p, t);
    hostile_words(p, t);
    check_cells(p, "list");
    keys(p, "keys 2 f zR");
    check_cells(p, "output");
    keys(p, "keys i");
    ui_key(&p->s.ui, K_PASTE, t, p->item->len);
    check_cells(p, "input");
    keys(p, "keys ^C Alt-q");
    check_cells(p, "queued message");
    keys(p, "keys ^C Esc 5");
    check_cells(p, "events");
    keys(p, "keys 1 d");
    check_cells(p, "details");
    keys(p, "keys Esc D");
    check_cells(p, "kill one");
    keys(p, "keys Esc K");
    hostile_kill(p, t, KILL_ARMED);
    check_cells(p, "kill all");
    hostile_kill(p, t, KILL_REPORT);
    check_cells(p, "report");
    keys(p, "keys Esc K");
    hostile_kill(p, t, KILL_CANNOT);
    check_cells(p, "cannot");
    keys(p, "keys Esc 2");
    check_readable(p);
    keys(p, "keys f 1");
}

/* Every string, or each step-th one: which cells there are does not hang on the size. */
static void run(int h, int w, size_t step)
{
    struct hostile_set set;
    struct place p;
    hostile_load(&set, NULL);
    script_init(&p.s);
    script_run(&p.s, "loaded\nlink ok cloud\n");
    p.item = &set.v[0];
    hostile_row(&p, "first");
    script_draw(&p.s);
    assert_true(set.n > 700);
    for (size_t i = 0; i < set.n; i += step) {
        p.item = &set.v[i];
        one_string(&p, h, w);
        buf_clear(&p.s.app->calls);
    }
    script_release(&p.s);
    hostile_free(&set);
}

static void test_small(void **state)
{
    (void)state;
    run(24, 80, 1);
}

static void test_large(void **state)
{
    (void)state;
    run(60, 200, 6);
}

/* Files of this machine may be called anything, too: completing them after @, and telling that
 * one cannot be read. */
static void test_file_names(void **state)
{
    char dir[] = "/tmp/cct-names.XXXXXX";
    struct hostile_set set;
    struct place p;
    size_t made = 0;
    (void)state;

    assert_non_null(mkdtemp(dir));
    hostile_load(&set, NULL);
    script_init(&p.s);
    script_run(&p.s, "loaded\nlink ok cloud\nrow 1 box claude running idle\nkeys 2 i");
    for (size_t i = 0; i < set.n; i += 5) {
        char *path = xasprintf("%s/x%s", dir, set.v[i].s), *typed = xasprintf("@%s/x", dir);
        FILE *f = memchr(set.v[i].s, 0, set.v[i].len) || strchr(set.v[i].s, '/') ||
                          set.v[i].len > 200
                      ? NULL
                      : fopen(path, "w");

        p.item = &set.v[i];
        if (f) {
            made++;
            fclose(f);
            ui_key(&p.s.ui, K_PASTE, typed, strlen(typed));
            script_line(&p.s, "keys Tab", "names");
            check_cells(&p, "completed");
            script_line(&p.s, "keys Tab", "names");
            check_cells(&p, "completed again");
            unlink(path);
            script_line(&p.s, "keys Enter", "names");
            check_cells(&p, "cannot be read");
            script_line(&p.s, "keys ^C i ^U", "names");
        }
        free(path);
        free(typed);
    }
    assert_true(made > 80);
    script_release(&p.s);
    hostile_free(&set);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small), cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_file_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
