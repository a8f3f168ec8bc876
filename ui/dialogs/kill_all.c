/* Killing all sandboxes of a project or an account, and the report of it. */
#include "kill_priv.h"

#include <cct/ui/box.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kill_all {
    bool account;       /* scope */
    uint64_t since;     /* what the model knew before this question was opened */
    char *shown;        /* what the picture asks or reports; a yes is to this alone */
    size_t shown_count; /* the number in it */
    bool at_once;       /* configured, and the key was one of its own */
    bool confirmed;
    uint64_t confirmed_rev; /* the answer comes after this */
    struct inputline number;
    int scroll, page, rows;
};

/* What this dialog is about: an answer older than the question does not count, nor one
 * for the other scope. */
static const struct ev_kill *current(const struct ui *ui, const struct kill_all *a)
{
    const struct ev_kill *k = ui->model->kill;
    if (!k || ui->model->kill_rev == a->since)
        return NULL;
    bool question = k->phase == KILL_LISTING || k->phase == KILL_ARMED || k->phase == KILL_CANNOT;
    return question && k->account_scope != a->account ? NULL : k;
}

static void open_list(struct ui *ui, struct kill_all *a, bool account)
{
    a->account = account;
    a->since = ui->model->kill_rev;
    a->confirmed = false;
    free(a->shown);
    a->shown = NULL;
    a->scroll = 0;
    inputline_set(&a->number, "");
    app_kill_all_open(ui->app, account);
}

static size_t targets(const struct kill_all *a, const struct ev_kill *k)
{
    return a->account ? k->n_account : k->n_project;
}

static bool wants_number(const struct ui *ui, const struct kill_all *a, const struct ev_kill *k)
{
    const char *how = ui->opts.kill_all_confirm ? ui->opts.kill_all_confirm : "count";
    return strcmp(how, "always") == 0 || targets(a, k) >= APP_NUMBER_FROM;
}

/* Everything that a yes, or a retry, would be the answer to. */
static char *all_named(const struct kill_all *a, const struct ev_kill *k)
{
    return xasprintf("%d %d %zu %zu %llx\n%s\n%s", (int)k->phase, a->account, targets(a, k),
                     2 * (k->failed + k->still_alive) + k->verified, (unsigned long long)k->set,
                     k->account ? k->account : "", k->project ? k->project : "");
}

static bool is_shown(const struct kill_all *a, const struct ev_kill *k)
{
    char *now = all_named(a, k);
    bool same = a->shown && strcmp(now, a->shown) == 0;
    free(now);
    return same;
}

static void add_whose(struct ui *ui, const struct kill_all *a, const struct ev_kill *k, struct buf *b)
{
    buf_addf(b, "account  %s\n", k->account ? k->account : "-");
    buf_addf(b, "scope    %sproject %s: %zu%s   %severything: %zu%s   (%s)\n",
             a->account ? " " : "[", k->project ? k->project : "-", k->n_project,
             a->account ? " " : "]", a->account ? "[" : " ", k->n_account, a->account ? "]" : " ",
             ui_keys(ui, "{other-scope}"));
}

static void add_losses(struct ui *ui, const struct kill_all *a, const struct ev_kill *k,
                       struct buf *b)
{
    const struct model *m = ui->model;
    ARR(uint64_t) ids = ARR_INIT;
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *s = &m->sandboxes[i];
        bool up = s->state != SB_KILLED && (s->state != SB_ERROR || s->vm_up);
        if (up && !s->protect && (a->account || (!s->foreign && str_eq(s->project, k->project))))
            *ARR_PUSH(&ids) = s->id;
    }
    kill_add_losses(ui, b, "   ", ids.v, ids.n);
    ARR_RELEASE(&ids);
}

/* brief: there is little room, and what matters most comes first. */
static void question_text(struct ui *ui, const struct kill_all *a, const struct ev_kill *k,
                          bool brief, struct buf *b)
{
    size_t n = targets(a, k);
    if (brief)
        add_whose(ui, a, k, b);
    if (n) {
        buf_addf(b, "This ends %zu sandbox%s and cannot be undone:\n", n, n == 1 ? "" : "es");
        buf_addf(b, "   %zu running  %zu paused  %zu creating  %zu error\n",
                 k->by_state[SB_RUNNING], k->by_state[SB_PAUSED], k->by_state[SB_CREATING],
                 k->by_state[SB_ERROR]);
    } else {
        buf_adds(b, "There is nothing to kill in this scope.\n");
    }
    if (a->account && k->n_foreign)
        buf_addf(b, "   %zu of them not started here\n", k->n_foreign);
    if (k->n_protected)
        buf_addf(b, "   %zu protected %s left\n", k->n_protected,
                 k->n_protected == 1 ? "is" : "are");
    if (n)
        add_losses(ui, a, k, b);
    if (!ui->model->local && n)
        buf_addf(b, "stops $%.2f per hour.  ", k->usd_per_hour);
    buf_adds(b, n ? "Transcripts stay on this machine.\n\n" : "\n");
    if (!brief)
        add_whose(ui, a, k, b);
}

/* Only a list says that it is gone; an answer to a delete is a promise. */
static const char *result_word(const struct ev_kill *k, int r)
{
    static const char *const words[] = {"waiting", "gone", "already gone", "failed",
                                        "still alive", "left"};
    bool proved = k->phase == KILL_REPORT && k->verified;
    return (r == 1 || r == 2) && !proved ? "told to go" : r >= 0 && r < 6 ? words[r] : "?";
}

static void report_head(const struct ev_kill *k, struct buf *b)
{
    const struct {
        size_t n;
        const char *word;
    } parts[] = {{k->killed, k->verified ? "killed" : "told to go"},
                 {k->already_gone, "already gone"},
                 {k->failed, "failed"}, {k->still_alive, "still alive"}};
    size_t said = 0;
    for (size_t i = 0; i < 4; i++)
        if (parts[i].n)
            buf_addf(b, "%s%zu %s", said++ ? ", " : "", parts[i].n, parts[i].word);
    buf_addf(b, "%s: %s\n\n", said ? "" : "nothing to kill",
             !k->verified                  ? "NOT PROVED"
             : k->failed || k->still_alive ? "some are left"
             : k->n_newcomers              ? "proved by a new list, others came"
                                           : "proved by a new list");
    if (k->text && (!k->verified || k->n_newcomers))
        buf_addf(b, "%s\n\n", k->text);
}

static void report_text(const struct ev_kill *k, struct buf *b)
{
    if (k->phase == KILL_REPORT)
        report_head(k, b);
    else if (k->text && k->phase == KILL_RUNNING)
        buf_addf(b, "%s\n\n", k->text); /* the time to call it off */
    else
        buf_addf(b, "%s  %zu of %zu\n\n",
                 k->phase == KILL_VERIFYING ? "asking for the list again" : "killing",
                 k->killed + k->already_gone, k->n);
    for (size_t i = 0; i < k->n; i++) {
        const struct kill_target *t = &k->v[i];
        bool bad = t->result == 3 || t->result == 4;
        if (k->phase == KILL_REPORT && k->n > 12 && !bad)
            continue; /* many: name what needs attention */
        kill_add_cells(b, t->name, 17);
        kill_add_cells(b, t->sandbox_id, 21);
        buf_addf(b, "%s%s%s\n", result_word(k, t->result), t->reason ? ": " : "",
                 t->reason ? t->reason : "");
    }
    for (size_t i = 0; i < k->n_newcomers; i++) {
        kill_add_cells(b, k->newcomers[i].name, 17);
        kill_add_cells(b, k->newcomers[i].sandbox_id, 21);
        buf_adds(b, "new: left alone\n");
    }
}

static bool may_retry(const struct ev_kill *k)
{
    return k->phase == KILL_REPORT && (k->failed || k->still_alive || !k->verified);
}

/* The text of the dialog as things stand; returns the line of keys below it. */
static const char *all_text(struct ui *ui, struct kill_all *a, const struct ev_kill *k,
                            bool brief, struct buf *b)
{
    if (!k || k->phase == KILL_LISTING) {
        buf_adds(b, "asking for the full list of sandboxes ...");
        return ui_keys(ui, "{close}  leave");
    }
    if (k->phase == KILL_CANNOT) {
        buf_addf(b, "nothing was killed: %s", k->text ? k->text : "the list could not be had");
        return ui_keys(ui, "{retry}  try again\t{close}  leave");
    }
    if (k->phase == KILL_ARMED && targets(a, k) == 0) {
        question_text(ui, a, k, brief, b);
        return ui_keys(ui, "{other-scope}  other scope\t{close}  close");
    }
    if (k->phase == KILL_ARMED) {
        question_text(ui, a, k, brief, b);
        return a->confirmed ? "killing"
                            : ui_keys(ui, "{yes}  kill %zu\t{other-scope}  other scope\t{close}  leave them",
                                      targets(a, k));
    }
    report_text(k, b);
    if (may_retry(k) && !k->failed && !k->still_alive)
        return ui_keys(ui, "{retry}  look again\t{close}  close");
    if (may_retry(k))
        return ui_keys(ui, "{retry}  retry what is left\t{close}  close");
    return ui_keys(ui, k->phase == KILL_RUNNING && k->text ? "{call-off}  call it off\t{close}  hide"
                       : k->phase == KILL_REPORT           ? "{close}  close"
                                                           : "{close}  hide, it goes on");
}

/* The text in r from the row a->scroll on; says when there is more than fits. */
static void scrolled_text(struct kill_all *a, struct canvas *c, struct rect r, struct buf *b)
{
    a->rows = box_text_rows(buf_str(b), r.w);
    a->page = r.h;
    int most = a->rows > r.h ? a->rows - r.h : 0;
    a->scroll = a->scroll > most ? most : a->scroll < 0 ? 0 : a->scroll;
    struct rect old = canvas_clip(c, r);
    box_text(c, (struct rect){r.y - a->scroll, r.x, a->rows, r.w}, ROLE_DIALOG, buf_str(b));
    canvas_unclip(c, old);
}

static void all_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                     int64_t now)
{
    struct kill_all *a = state;
    const struct ev_kill *k = current(ui, a);
    struct buf b = BUF_INIT;
    (void)now;
    int w = screen.w < KILL_CELLS + 8 ? screen.w : KILL_CELLS + 8;
    const char *foot = all_text(ui, a, k, false, &b);
    if (k && k->phase == KILL_ARMED && box_text_rows(buf_str(&b), w - 4) + 4 > screen.h) {
        buf_clear(&b);
        foot = all_text(ui, a, k, true, &b);
    }
    bool armed = k && k->phase == KILL_ARMED && !a->confirmed;
    bool number = armed && targets(a, k) && wants_number(ui, a, k);
    char title[96];
    bool asks = !k || k->phase == KILL_LISTING || k->phase == KILL_ARMED;
    snprintf(title, sizeof(title), asks ? "kill ALL sandboxes of %s?" : "kill all: %s",
             a->account ? "this account" : k && k->project ? k->project : "this project");
    while (b.len && b.p[b.len - 1] == '\n')
        buf_truncate(&b, b.len - 1);
    int rows = box_text_rows(buf_str(&b), w - 4);
    struct rect in = box_draw(c, screen, rows + 4, w, title,
                              rows + 4 > screen.h ? ui_keys(ui, "{box-down} {box-up} scroll") : NULL);
    int y = in.y + in.h - 1;
    scrolled_text(a, c, (struct rect){in.y, in.x, in.h > 2 ? in.h - 2 : in.h - 1, in.w}, &b);
    if (number) {
        int x = in.x + canvas_text(c, y, in.x, in.w, ROLE_DANGER,
                                   ui_keys(ui, in.w < 60 ? "type %zu, {choose}: "
                                                         : "type %zu and {choose} to kill them ({close} "
                                                           "leaves them): ",
                                           targets(a, k)));
        inputline_draw(&a->number, c, (struct rect){y, x, 1, 8}, ROLE_FIELD_FOCUS, true);
    } else {
        canvas_hints(c, y, in.x, in.w, ROLE_DANGER, foot);
    }
    kill_shows(ui, &a->shown, k && !a->confirmed ? all_named(a, k) : NULL);
    a->shown_count = armed ? targets(a, k) : 0;
    buf_release(&b);
}

/* The number on the screen is what was agreed to; another one is refused by the app. */
static int confirm(struct ui *ui, struct kill_all *a, size_t n)
{
    a->confirmed = true;
    a->confirmed_rev = ui->model->kill_rev;
    app_kill_all_confirm(ui->app, a->account, n);
    return UI_HANDLED;
}

static int number_given(struct ui *ui, struct kill_all *a)
{
    int64_t n;
    if (!ui_key_meant(ui))
        return UI_HANDLED;
    if (str_to_i64(inputline_text(&a->number), 0, INT32_MAX, &n) && (size_t)n == a->shown_count)
        return confirm(ui, a, a->shown_count);
    ui_status(ui, 1, "not killed: the number typed is not %zu", a->shown_count);
    inputline_set(&a->number, "");
    return UI_HANDLED;
}

static bool scroll(struct kill_all *a, enum action what)
{
    int by = what == ACT_BOX_DOWN   ? 1
             : what == ACT_BOX_UP   ? -1
             : what == ACT_BOX_PGDN ? a->page
             : what == ACT_BOX_PGUP ? -a->page
                                    : 0;
    a->scroll += by;
    return by != 0;
}

/* What counts while nothing is asked. */
static int told(struct ui *ui, struct kill_all *a, const struct ev_kill *k, enum action what)
{
    if (k->phase == KILL_CANNOT && what == ACT_RETRY) {
        a->at_once = false;
        open_list(ui, a, a->account);
    } else if (what == ACT_RETRY && may_retry(k) && is_shown(a, k) && ui_key_meant(ui)) {
        app_kill_all_retry(ui->app);
    } else if (k->phase == KILL_RUNNING && k->text && what == ACT_CALL_OFF) {
        app_kill_all_cancel(ui->app);
    }
    return UI_HANDLED;
}

static int leave(struct ui *ui, const struct kill_all *a, const struct ev_kill *k)
{
    bool asked = !k || k->phase == KILL_LISTING || k->phase == KILL_ARMED;
    if (asked && !a->confirmed)
        app_kill_all_cancel(ui->app);
    return UI_CLOSE;
}

/* The question is on the screen as it stands now. */
static bool answerable(const struct ui *ui, const struct kill_all *a, const struct ev_kill *k)
{
    return k && k->phase == KILL_ARMED && a->shown && !a->confirmed && !ui->unseen;
}

static bool is_digit(key_code k)
{
    return k >= '0' && k <= '9';
}

static int all_action(struct ui *ui, void *state, enum action what)
{
    struct kill_all *a = state;
    const struct ev_kill *k = current(ui, a);
    bool text = ui->last_key >= ' ' && !(ui->last_key & (KEYC_SPECIAL | KEYC_ALT));
    if (text && k && k->phase == KILL_ARMED && targets(a, k) && wants_number(ui, a, k))
        return is_digit(ui->last_key) || !scroll(a, what) ? UI_IGNORED : UI_HANDLED;
    if (what == ACT_CLOSE && !text) /* words typed ahead must not end it: their rest would act */
        return leave(ui, a, k);
    if (!k || scroll(a, what))
        return UI_HANDLED;
    if (k->phase != KILL_ARMED)
        return told(ui, a, k, what);
    if (!answerable(ui, a, k))
        return UI_HANDLED;
    if (what == ACT_OTHER_SCOPE) {
        a->at_once = false; /* that was said of the first scope */
        open_list(ui, a, !a->account);
        return UI_HANDLED;
    }
    if (a->shown_count == 0 || !is_shown(a, k))
        return UI_HANDLED; /* it changed since it was drawn: look first */
    if (wants_number(ui, a, k))
        return what == ACT_CHOOSE ? number_given(ui, a) : UI_HANDLED;
    return what == ACT_YES && ui_key_meant(ui) ? confirm(ui, a, a->shown_count) : UI_HANDLED;
}

/* The number's digits, whatever else such a key means here. */
static int all_key(struct ui *ui, void *state, key_code key, const char *paste, size_t len)
{
    struct kill_all *a = state;
    const struct ev_kill *k = current(ui, a);
    bool pending;
    (void)paste;
    (void)len;
    if (!answerable(ui, a, k) || !a->shown_count || !is_shown(a, k) || !wants_number(ui, a, k))
        return UI_HANDLED;
    enum action line = keymap_find(ui->keys, SCOPE_LINE, key, &pending);
    keymap_reset(ui->keys);
    if (is_digit(key) || line == ACT_ERASE)
        inputline_key(&a->number, line, key);
    return UI_HANDLED;
}

/* "never": goes as soon as the list is there, once; what is refused is asked about. */
static bool all_update(struct ui *ui, void *state)
{
    struct kill_all *a = state;
    const struct ev_kill *k = current(ui, a);
    if (a->at_once && k && k->phase == KILL_ARMED && targets(a, k)) {
        a->at_once = false;
        confirm(ui, a, targets(a, k));
    } else if (a->confirmed && ui->model->kill_rev != a->confirmed_rev) {
        a->confirmed = false; /* it goes, or was refused since the number changed */
    }
    return true;
}

static void all_close(void *state)
{
    struct kill_all *a = state;
    inputline_release(&a->number);
    free(a->shown);
    free(a);
}

static const struct overlay_ops all_ops = {.name = "kill all",
                                           .scope = SCOPE_CONFIRM,
                                           .close = all_close,
                                           .update = all_update,
                                           .draw = all_draw,
                                           .action = all_action,
                                           .key = all_key};

void overlay_kill_all(struct ui *ui)
{
    struct kill_all *a = xcalloc(1, sizeof(*a));
    const char *how = ui->opts.kill_all_confirm;
    inputline_init(&a->number, false, 8);
    a->at_once = how && strcmp(how, "never") == 0 && !ui->crowded;
    open_list(ui, a, false);
    ui_overlay_push(ui, &all_ops, a);
}
