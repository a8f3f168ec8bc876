/* A shell in a sandbox in the place of the screen. */
#include <cct/ui/ui.h>

#include <cct/app/passage.h>
#include <cct/secrets/secret.h>
#include <cct/util/str.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct left_shell *find_left(struct ui *ui, uint64_t sandbox)
{
    for (size_t i = 0; i < ui->shells.n; i++)
        if (ui->shells.v[i].sandbox == sandbox)
            return &ui->shells.v[i];
    return NULL;
}

static void remember(struct ui *ui, uint64_t sandbox, const struct passage_end *end)
{
    struct left_shell *l = find_left(ui, sandbox);

    if (end->left && end->pid) {
        if (!l)
            l = ARR_PUSH(&ui->shells);
        *l = (struct left_shell){sandbox, end->ident, end->pid};
    } else if (l) {
        ARR_REMOVE(&ui->shells, l - ui->shells.v);
    }
}

static void tell(struct ui *ui, const char *name, const struct passage_end *end)
{
    if (end->err.code)
        ui_status(ui, 2, "%s", end->err.text);
    else if (end->left && end->pid)
        ui_status(ui, 0, "the shell in %s goes on as process %d: {shell} comes back to it", name,
                  end->pid);
    else if (end->left)
        ui_status(ui, 0, "the shell in %s was left before it was there", name);
    else if (end->status > 128)
        ui_status(ui, 1, "the shell in %s was ended by signal %d", name, end->status - 128);
    else if (end->status < 0)
        ui_status(ui, 1, "the shell in %s has ended, its status is not known", name);
    else
        ui_status(ui, end->status != 0, "the shell in %s ended with status %d", name, end->status);
}

void ui_ask_shell(struct ui *ui, const struct sandbox *s)
{
    if (s->state == SB_PAUSED)
        ui_status(ui, 1, "%s is paused: {resume} resumes it, then {shell}", s->name);
    else if (s->state == SB_CREATING)
        ui_status(ui, 1, "%s is still being made", s->name);
    else if (s->state == SB_KILLED || (s->state == SB_ERROR && !s->vm_up))
        ui_status(ui, 1, "%s has ended: there is nothing to have a shell in", s->name);
    else
        ui->shell = s->id;
}

int ui_shell(struct ui *ui)
{
    uint64_t id = ui->shell;
    const struct sandbox *s = model_sandbox(ui->model, id);
    const struct left_shell *l = find_left(ui, id);
    struct passage_opts o = {.sandbox = id, .leave_key = ui->opts.shell_leave};
    struct passage_end end;
    struct buf typed = BUF_INIT; /* behind the key that asked for it */
    char name[128];

    ui->shell = 0;
    if (!s)
        return 0;
    str_copy(name, sizeof(name), s->name ? s->name : s->sandbox_id);
    o.name = name; /* the row may go meanwhile */
    if (l) {
        o.pid = l->pid;
        o.ident = l->ident;
    }
    term_lend(&typed);
    o.typed = typed.p;
    o.typed_len = typed.len;
    passage_run(ui->app, &o, &end);
    if (o.pid && !end.live && !end.left && !end.signal && !end.hung_up) {
        o.pid = 0; /* it has ended meanwhile: a new one */
        o.ident = 0;
        passage_run(ui->app, &o, &end);
    }
    secret_wipe(typed.p, typed.cap); /* it may be a password for what runs there */
    buf_release(&typed);
    if (end.signal || end.hung_up)
        return 128 + (end.signal ? end.signal : SIGHUP);
    term_take();
    remember(ui, id, &end);
    ui->away = false;
    ui_update(ui);
    tell(ui, name, &end);
    return 0;
}
