/* Questions about what cc-tui did not start: end a process, adopt a sandbox. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { BOX_CELLS = 72 };

/* --- end a process --------------------------------------------------------------- */

struct end {
    uint64_t sandbox;
    struct proc p;
    bool drawn; /* the question was on the screen */
};

static void end_close(void *state)
{
    struct end *k = state;
    proc_release(&k->p);
    free(k);
}

/* A very long command line must not push the keys off the screen. */
static void add_command(struct buf *b, const char *command)
{
    enum { SHOWN = 400 };
    size_t n = strlen(command);
    size_t cut = n > SHOWN ? SHOWN : n;
    while (cut < n && cut > 0 && ((unsigned char)command[cut] & 0xC0) == 0x80)
        cut--;
    buf_add(b, command, cut);
    buf_adds(b, cut < n ? " ...\n" : "\n");
}

static void end_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen, int64_t now)
{
    struct end *k = state;
    const struct sandbox *s = model_sandbox(ui->model, k->sandbox);
    struct buf b = BUF_INIT;
    (void)now;
    if (s) {
        buf_addf(&b, "sandbox  %s%s%s\n", s->sandbox_id ? s->sandbox_id : "-",
                 str_eq(s->name, s->sandbox_id) ? "" : "  ",
                 str_eq(s->name, s->sandbox_id) ? "" : s->name);
        buf_addf(&b, "process  %d\n", k->p.pid);
        buf_adds(&b, "command  ");
        add_command(&b, k->p.command);
        if (!s->foreign && !s->adopted)
            buf_adds(&b, "\nIt may be part of the session that cc-tui runs here.\n");
        buf_adds(&b, "\nThe signal goes to this process alone, not to what it has started.");
    } else {
        buf_adds(&b, "The sandbox is gone already.");
    }
    int w = screen.w < BOX_CELLS ? screen.w : BOX_CELLS;
    int rows = box_text_rows(buf_str(&b), w - 4);
    struct rect in = box_draw(c, screen, rows + 4, w, "end this process?", NULL);
    box_text(c, (struct rect){in.y, in.x, in.h - 1, in.w}, ROLE_DIALOG, buf_str(&b));
    canvas_fill(c, (struct rect){in.y + in.h - 1, in.x, 1, in.w}, ROLE_DIALOG, " ");
    canvas_hints(c, in.y + in.h - 1, in.x, in.w, ROLE_DANGER,
                 ui_keys(ui, s ? "{yes}  SIGTERM: asks it to end\t{end-at-once}  SIGKILL: at once\t"
                                 "{close}  leave it"
                               : "{close}  close"));
    buf_release(&b);
    ui->asks_anew |= !k->drawn;
    k->drawn = true;
}

static int end_action(struct ui *ui, void *state, enum action a)
{
    struct end *k = state;
    bool at_once = a == ACT_END_AT_ONCE;
    if (a == ACT_CLOSE || a == ACT_NO || !model_sandbox(ui->model, k->sandbox))
        return UI_CLOSE;
    if ((a != ACT_YES && !at_once) || !k->drawn || !ui_key_meant(ui))
        return UI_HANDLED;
    app_proc_kill(ui->app, k->sandbox, k->p.pid, k->p.ident, at_once);
    ui_status(ui, 0, "%s to process %d", at_once ? "SIGKILL" : "SIGTERM", k->p.pid);
    return UI_CLOSE;
}

static const struct overlay_ops end_ops = {.name = "end process",
                                           .scope = SCOPE_CONFIRM,
                                           .close = end_close,
                                           .draw = end_draw,
                                           .action = end_action};

void overlay_process_end(struct ui *ui, uint64_t sandbox, const struct proc *p)
{
    struct end *k = xcalloc(1, sizeof(*k));
    k->sandbox = sandbox;
    proc_copy(&k->p, p);
    ui_overlay_push(ui, &end_ops, k);
}

/* --- adopt ----------------------------------------------------------------------- */

struct adopt {
    uint64_t sandbox;
    struct proc p;  /* pid 0: none at hand */
    bool with;      /* that process too */
    struct inputline name;
    char error[160];
};

static void adopt_close(void *state)
{
    struct adopt *a = state;
    proc_release(&a->p);
    inputline_release(&a->name);
    free(a);
}

static void adopt_text(struct ui *ui, const struct adopt *a, const struct sandbox *s,
                       struct buf *b)
{
    buf_addf(b, "%s was not made by cc-tui. Adopted it counts as yours in project %s: "
                "'kill all' of the project takes it from then on.\n",
             s->sandbox_id ? s->sandbox_id : s->name,
             ui->model->project ? ui->model->project : "default");
    if (a->p.pid && a->with) {
        buf_addf(b, "\n[x] with process %d: ", a->p.pid);
        add_command(b, a->p.command);
        buf_adds(b, "What it puts out is kept from now on, while a cc-tui runs; messages go to "
                    "its input. It cannot be interrupted or restarted from here.\n");
    } else if (a->p.pid) {
        buf_addf(b, "\n[ ] with process %d: ", a->p.pid);
        add_command(b, a->p.command);
        buf_adds(b, "The sandbox alone: no output is kept.\n");
    }
}

static void adopt_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                       int64_t now)
{
    struct adopt *a = state;
    const struct sandbox *s = model_sandbox(ui->model, a->sandbox);
    struct buf b = BUF_INIT;
    (void)now;
    if (s)
        adopt_text(ui, a, s, &b);
    else
        buf_adds(&b, "It is gone already.");
    while (b.len && b.p[b.len - 1] == '\n')
        buf_truncate(&b, b.len - 1);
    int w = screen.w < BOX_CELLS ? screen.w : BOX_CELLS;
    int rows = box_text_rows(buf_str(&b), w - 4);
    struct rect in = box_draw(c, screen, rows + 6, w, "adopt this sandbox?",
                              a->p.pid ? ui_keys(ui, "{line-complete} with, without the process") : NULL);
    int y = in.y + in.h - 3;
    box_text(c, (struct rect){in.y, in.x, in.h - 4, in.w}, ROLE_DIALOG, buf_str(&b));
    int n = canvas_text(c, y, in.x, in.w, ROLE_PROMPT, "name") + 1;
    inputline_draw(&a->name, c, (struct rect){y, in.x + n, 1, in.w - n}, ROLE_FIELD, true);
    bool bad = *a->error;
    canvas_hints(c, in.y + in.h - 1, in.x, in.w, bad ? ROLE_STATUS_BAD : ROLE_HINT,
                 bad ? a->error : ui_keys(ui, "{take-line}  adopt it\t{leave-line}  leave it"));
    buf_release(&b);
}

static int adopt_it(struct ui *ui, struct adopt *a)
{
    const struct sandbox *s = model_sandbox(ui->model, a->sandbox);
    const char *name = inputline_text(&a->name);
    struct app_adopt how = {.pid = a->with ? a->p.pid : 0, .ident = a->with ? a->p.ident : 0};
    if (!s)
        return UI_CLOSE;
    if (*name && !sandbox_name_ok(name)) {
        str_copy(a->error, sizeof(a->error), "a name has 1 to 64 of A-Z a-z 0-9 _ -");
        return UI_HANDLED;
    }
    how.name = *name && !str_eq(name, s->name) ? name : NULL;
    app_adopt(ui->app, a->sandbox, &how);
    output_as_fits(ui, a->sandbox);
    ui_status(ui, 0, "adopting %s", s->name);
    return UI_CLOSE;
}

static int adopt_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct adopt *a = state;
    if (ui->found == ACT_LEAVE_LINE)
        return UI_CLOSE;
    if (ui->found == ACT_TAKE_LINE)
        return adopt_it(ui, a);
    a->error[0] = 0;
    if (ui->found == ACT_LINE_TAB)
        a->with = a->p.pid && !a->with;
    else
        ui_line_key(ui, &a->name, k, paste, len);
    return UI_HANDLED;
}

static const struct overlay_ops adopt_ops = {.name = "adopt",
                                             .scope = SCOPE_ASK,
                                             .close = adopt_close,
                                             .draw = adopt_draw,
                                             .key = adopt_key,
                                             .takes_paste = true};

/* --- give back ------------------------------------------------------------------- */

struct back {
    uint64_t sandbox;
    struct proc p; /* pid 0: none at hand that is not kept already */
    bool drawn;
};

static void back_close(void *state)
{
    struct back *k = state;
    proc_release(&k->p);
    free(k);
}

static void back_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                      int64_t now)
{
    struct back *k = state;
    const struct sandbox *s = model_sandbox(ui->model, k->sandbox);
    struct buf b = BUF_INIT;
    (void)now;
    if (s)
        buf_addf(&b, "%s is adopted into project %s. Given back it is foreign again: it goes on, "
                     "'kill all' of the project leaves it, and what was kept of its output comes "
                     "back when the same process is adopted again.\n",
                 s->name, s->project ? s->project : "-");
    else
        buf_adds(&b, "It is gone already.\n");
    if (s && k->p.pid) {
        buf_addf(&b, "\nprocess %d: ", k->p.pid);
        add_command(&b, k->p.command);
    }
    buf_truncate(&b, b.len - 1);
    int w = screen.w < BOX_CELLS ? screen.w : BOX_CELLS;
    int rows = box_text_rows(buf_str(&b), w - 4);
    struct rect in = box_draw(c, screen, rows + 4, w, "adopted", NULL);
    box_text(c, (struct rect){in.y, in.x, in.h - 1, in.w}, ROLE_DIALOG, buf_str(&b));
    canvas_hints(c, in.y + in.h - 1, in.x, in.w, ROLE_HINT,
                 ui_keys(ui, !s         ? "{close}  close"
                             : k->p.pid ? "{yes}  give it back\t{keep-process}  keep this process\t"
                                          "{close}  leave it"
                                        : "{yes}  give it back\t{close}  leave it"));
    buf_release(&b);
    ui->asks_anew |= !k->drawn;
    k->drawn = true;
}

static int back_action(struct ui *ui, void *state, enum action a)
{
    struct back *k = state;
    const struct sandbox *s = model_sandbox(ui->model, k->sandbox);
    struct app_adopt how = {.pid = k->p.pid, .ident = k->p.ident};
    bool keep = a == ACT_KEEP_PROCESS && k->p.pid;
    if (a == ACT_CLOSE || a == ACT_NO || !s)
        return UI_CLOSE;
    if ((a != ACT_YES && !keep) || !k->drawn || !ui_key_meant(ui))
        return UI_HANDLED;
    if (keep)
        app_adopt(ui->app, k->sandbox, &how);
    else
        app_unadopt(ui->app, k->sandbox);
    output_as_fits(ui, k->sandbox);
    return UI_CLOSE;
}

static const struct overlay_ops back_ops = {
    .name = "adopted", .scope = SCOPE_CONFIRM, .close = back_close, .draw = back_draw,
    .action = back_action};

static bool is_kept(const struct sandbox *s, const struct proc *p)
{
    int pid;
    uint64_t ident;
    return proc_session_parse(s->session, &pid, &ident) && pid == p->pid && ident == p->ident;
}

void overlay_adopt(struct ui *ui, uint64_t sandbox, const struct proc *p)
{
    const struct sandbox *s = model_sandbox(ui->model, sandbox);
    bool up = s && s->state != SB_KILLED && !(s->state == SB_ERROR && !s->vm_up);
    if (!s)
        return;
    if (!s->foreign && !s->adopted) {
        ui_status(ui, 0, "%s was made by cc-tui: there is nothing to adopt", s->name);
    } else if (s->adopted) {
        struct back *k = xcalloc(1, sizeof(*k));
        k->sandbox = sandbox;
        if (p && up && !is_kept(s, p))
            proc_copy(&k->p, p);
        ui_overlay_push(ui, &back_ops, k);
    } else if (!up) {
        ui_status(ui, 0, "%s is gone: there is nothing to adopt", s->name);
    } else {
        struct adopt *a = xcalloc(1, sizeof(*a));
        a->sandbox = sandbox;
        if (p)
            proc_copy(&a->p, p);
        a->with = p != NULL;
        inputline_init(&a->name, false, 64);
        inputline_set(&a->name, s->name);
        ui_overlay_push(ui, &adopt_ops, a);
    }
}
