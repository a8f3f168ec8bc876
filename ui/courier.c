/* What goes out of the screen: copies by the first channel that works, which is said in full;
 * notifications; texts to an editor; commands of the user. */
#include <cct/ui/courier.h>

#include <cct/text/clean.h>
#include <cct/ui/term.h>
#include <cct/util/arr.h>
#include <cct/util/errand.h>
#include <cct/util/fs.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum channel { BY_COMMAND, BY_TMUX, BY_OSC52, BY_FILE, CHANNELS };
enum { COPY_TIMEOUT_MS = 5000, HOOK_TIMEOUT_MS = 30000 };

/* A copy that waits for the answer of a program, or for a file. */
struct copy {
    uint64_t id;
    enum channel by;
    size_t sent;      /* of it by OSC 52, the rest is in the file; 0 = nothing */
    struct ui_out out;
};
struct courier {
    struct errands *errands;
    struct around around;
    const char *command, *channel, *state_dir, *hook;
    enum osc_note osc;
    bool titles;
    uint64_t titled_rev; /* of the model, when the title was looked at */
    char title[200];
    ARR(struct copy) copies;
    uint64_t last_id, edit_id, show_id; /* 0 = no editor is open, no command runs */
};

struct courier *courier_new(const struct ui_opts *o, const struct around *a)
{
    struct courier *c = xcalloc(1, sizeof(*c));
    c->errands = errands_new();
    c->around = *a;
    c->command = o->copy_command ? o->copy_command : "";
    c->channel = o->copy_channel ? o->copy_channel : "auto";
    c->state_dir = o->state_dir;
    c->hook = o->notify_hook ? o->notify_hook : "";
    c->osc = around_note(a, o->notify_osc ? o->notify_osc : "auto");
    c->titles = o->title && a->title;
    return c;
}

void courier_free(struct courier *c)
{
    if (!c)
        return;
    errands_free(c->errands);
    for (size_t i = 0; i < c->copies.n; i++)
        ui_out_release(&c->copies.v[i].out);
    ARR_RELEASE(&c->copies);
    free(c);
}

int courier_fd(const struct courier *c)
{
    return errands_fd(c->errands);
}

/* --- channels ------------------------------------------------------------------------------ */

static bool has_channel(const struct courier *c, enum channel by)
{
    bool any = str_eq(c->channel, "auto");
    switch (by) {
    case BY_COMMAND:
        return *c->command != 0;
    case BY_TMUX:
        return any ? c->around.tmux : str_eq(c->channel, "tmux");
    case BY_OSC52:
        return any ? !c->around.plain : str_eq(c->channel, "osc52");
    default:
        return c->state_dir != NULL;
    }
}

static void post(struct courier *c, struct copy *k)
{
    static const char *const tmux[] = {"tmux", "load-buffer", "-w", "-", NULL};
    struct errand *e = errand_new(k->by == BY_FILE ? ERRAND_WRITE : ERRAND_RUN, k->id);
    buf_add(&e->input, k->out.text.p, k->out.text.len);
    e->timeout_ms = COPY_TIMEOUT_MS;
    if (k->by == BY_FILE)
        e->path = fs_join(c->state_dir, "copy.txt");
    else if (k->by == BY_COMMAND)
        errand_shell(e, c->command);
    else
        errand_argv(e, tmux);
    errands_post(c->errands, e);
}

/* True when it is done with; else an answer will come. */
static bool by_osc52(struct courier *c, struct ui *ui, struct copy *k)
{
    struct buf seq = BUF_INIT;
    size_t len = k->out.text.len, fits = around_osc52_fits(k->out.text.p, len);
    around_osc52(&c->around, &seq, k->out.text.p, fits);
    term_send(seq.p, seq.len);
    buf_release(&seq);
    if (fits < len && c->state_dir) { /* a terminal takes no more: all of it is kept */
        k->sent = fits;
        k->by = BY_FILE;
        post(c, k);
        return false;
    }
    if (fits < len)
        ui_status(ui, 1, "sent only %zu of %zu bytes by OSC 52: it takes no more", fits, len);
    else
        ui_status(ui, 0, "sent %zu bytes by OSC 52; if nothing pastes press {bare}", len);
    return true;
}

/* On with it by the first channel from `from` on; true when it ended here. */
static bool try_from(struct courier *c, struct ui *ui, struct copy *k, enum channel from)
{
    for (enum channel by = from; by < CHANNELS; by++) {
        if (!has_channel(c, by))
            continue;
        k->by = by;
        if (by == BY_OSC52)
            return by_osc52(c, ui, k);
        post(c, k);
        return false;
    }
    ui_status(ui, 2, "%s could not be copied: no way to a clipboard is left (see the log)",
              k->out.label);
    return true;
}

/* The file's name, with ~ for the home folder: it has to fit the status line. */
static char *home_short(const char *dir)
{
    const char *home = getenv("HOME");
    size_t n = home && *home ? strlen(home) : 0;
    bool below = n && strncmp(dir, home, n) == 0 && dir[n] == '/';
    return xasprintf("%s%s/copy.txt", below ? "~" : "", below ? dir + n : dir);
}

static void say_copied(const struct courier *c, struct ui *ui, const struct copy *k)
{
    size_t n = k->out.text.len;
    char *file = c->state_dir ? home_short(c->state_dir) : NULL;
    if (k->by == BY_COMMAND)
        ui_status(ui, 0, "gave %zu bytes to '%.60s'", n, c->command);
    else if (k->by == BY_TMUX)
        ui_status(ui, 0, "gave %zu bytes to tmux (set-clipboard hands them on)", n);
    else if (k->sent)
        ui_status(ui, 1, "sent only %zu of %zu bytes by OSC 52; all: %s", k->sent, n, file);
    else
        ui_status(ui, 0, "wrote %zu bytes to %s", n, file);
    free(file);
}

static void begin_copy(struct courier *c, struct ui *ui, struct ui_out *take)
{
    struct copy k = {.id = ++c->last_id, .out = *take};
    if (try_from(c, ui, &k, BY_COMMAND))
        ui_out_release(&k.out);
    else
        *ARR_PUSH(&c->copies) = k;
}

static void copy_answer(struct courier *c, struct ui *ui, size_t i, const struct errand_done *d)
{
    struct copy *k = &c->copies.v[i];
    bool over = true;
    if (!d->err.code) {
        say_copied(c, ui, k);
    } else {
        char *why = clean_line_dup(d->output.len ? d->output.p : "", 200);
        log_warn("copying: %s%s%s", d->err.text, *why ? ": " : "", why);
        free(why);
        over = try_from(c, ui, k, k->by + 1);
    }
    ui->said = true;
    if (!over)
        return;
    ui_out_release(&k->out);
    ARR_REMOVE(&c->copies, i);
}

/* --- an editor -------------------------------------------------------------------------------- */

bool courier_edits(const struct courier *c)
{
    return c->edit_id != 0 || c->show_id != 0;
}

static const char *editor(void)
{
    const char *visual = getenv("VISUAL"), *ed = getenv("EDITOR");
    return visual && *visual ? visual : ed && *ed ? ed : "vi";
}

static void begin_edit(struct courier *c, struct ui *ui, const struct ui_out *out)
{
    struct errand *e = errand_new(ERRAND_EDIT, ++c->last_id);
    struct err err = {0};
    char *dir = fs_place(FS_RUNTIME, &err);
    char *why = NULL;
    if (!dir)
        why = xstrdup(err.text);
    else if (!errand_words(e, editor()))
        why = xasprintf("'%.60s' is no editor: set VISUAL or EDITOR", editor());
    if (why) {
        ui_edited(ui, NULL, 0, why);
        msg_free(&e->m);
    } else {
        e->path = xasprintf("%s/edit-%ld-%llu.md", dir, (long)getpid(),
                            (unsigned long long)e->id);
        buf_add(&e->input, out->text.p ? out->text.p : "", out->text.len);
        c->edit_id = e->id;
        term_lend(NULL);
        errands_post(c->errands, e);
    }
    free(dir);
    free(why);
}

static void edit_answer(struct courier *c, struct ui *ui, const struct errand_done *d)
{
    c->edit_id = 0;
    c->title[0] = 0; /* it may be another one by now */
    term_take();
    char *why = d->err.code ? xasprintf("nothing is changed: %s", d->err.text) : NULL;
    ui_edited(ui, why ? NULL : d->output.p ? d->output.p : "", d->output.len, why);
    free(why);
}

/* --- a command of the user -------------------------------------------------------------------- */

/* It ends, and what it said can be read; ^C is for the command alone. */
static const char shown[] = "trap : INT QUIT; printf '\\n$ %s\\n' \"$1\"; sh -c \"$1\"; "
                            "printf '\\n[status %s] back by Enter: ' \"$?\"; read -r x </dev/tty";

static void begin_show(struct courier *c, struct ui *ui, const struct ui_out *out)
{
    if (courier_edits(c)) {
        ui_status(ui, 1, "not run: the terminal is in use");
        return;
    }
    struct errand *e = errand_new(ERRAND_SHOW, ++c->last_id);
    errand_argv(e, (const char *const[]){"/bin/sh", "-c", shown, "sh", out->text.p, NULL});
    errand_setenv(e, "CC_TUI_SANDBOX", out->label);
    c->show_id = e->id;
    term_lend(NULL);
    errands_post(c->errands, e);
}

static void show_answer(struct courier *c, struct ui *ui, const struct errand_done *d)
{
    c->show_id = 0;
    c->title[0] = 0; /* it may be another one by now */
    term_take();
    if (d->err.code && d->status < 0)
        ui_status(ui, 2, "not run: %s", d->err.text);
    ui->said = true;
}

/* --- notifications ---------------------------------------------------------------------------- */

/* The hook gets all of it in its environment, where nothing is taken for a command. */
static void run_hook(struct courier *c, const struct ui_out *out)
{
    const struct note *n = out->note;
    char count[24];
    struct errand *e = errand_new(ERRAND_RUN, 0);
    errand_shell(e, c->hook);
    snprintf(count, sizeof(count), "%zu", n->count);
    errand_setenv(e, "CC_TUI_EVENT", note_event_name(n->event));
    errand_setenv(e, "CC_TUI_TITLE", n->title);
    errand_setenv(e, "CC_TUI_COUNT", count);
    errand_setenv(e, "CC_TUI_SANDBOX", out->label);
    errand_setenv(e, "CC_TUI_NAME", n->name);
    errand_setenv(e, "CC_TUI_OLD", n->before);
    errand_setenv(e, "CC_TUI_NEW", n->now);
    errand_setenv(e, "CC_TUI_LAST_LINE", n->body);
    e->timeout_ms = HOOK_TIMEOUT_MS;
    errands_post(c->errands, e);
}

static void notify(struct courier *c, const struct ui_out *out)
{
    struct buf seq = BUF_INIT;
    bool osc = out->channels & NOTE_OSC;
    if (osc)
        around_notify(&c->around, c->osc, &seq, note_event_name(out->note->event),
                      out->note->title, out->note->body);
    /* tmux may keep the rest to itself, but it watches bells */
    if (out->channels & NOTE_BELL || (osc && (c->around.tmux || !seq.len)))
        buf_addc(&seq, '\007');
    if (seq.len)
        term_send(seq.p, seq.len);
    buf_release(&seq);
    if (out->channels & NOTE_HOOK && *c->hook)
        run_hook(c, out);
}

static void hook_answer(const struct errand_done *d)
{
    char *text = clean_line_dup(d->output.len ? d->output.p : "", 300);
    if (d->err.code)
        log_warn("the hook of notifications: %s%s%s", d->err.text, *text ? ": " : "", text);
    else if (*text)
        log_info("the hook of notifications says: %s", text);
    free(text);
}

void courier_title(struct courier *c, const struct ui *ui)
{
    char title[sizeof(c->title)];
    struct buf seq = BUF_INIT;
    if (!c->titles || (c->title[0] && c->titled_rev == ui->model->rev))
        return;
    c->titled_rev = ui->model->rev;
    ui_title(ui, title, sizeof(title));
    if (str_eq(title, c->title))
        return;
    if (!c->title[0])
        term_keep_title();
    str_copy(c->title, sizeof(c->title), title);
    around_title(&seq, title);
    term_send(seq.p, seq.len);
    buf_release(&seq);
}

void courier_turn(struct courier *c, struct ui *ui)
{
    struct errand_done *d;
    struct ui_out out;
    while (ui_out_take(ui, &out)) {
        if (out.kind == UI_OUT_NOTE) {
            notify(c, &out);
            ui_out_release(&out);
        } else if (out.kind == UI_OUT_EDIT) {
            begin_edit(c, ui, &out);
            ui_out_release(&out);
        } else if (out.kind == UI_OUT_RUN) {
            begin_show(c, ui, &out);
            ui_out_release(&out);
        } else {
            begin_copy(c, ui, &out);
            ui->said = true;
        }
    }
    while ((d = errands_take(c->errands)) != NULL) {
        if (!d->id)
            hook_answer(d);
        else if (d->id == c->edit_id)
            edit_answer(c, ui, d);
        else if (d->id == c->show_id)
            show_answer(c, ui, d);
        for (size_t i = 0; i < c->copies.n; i++)
            if (c->copies.v[i].id == d->id) {
                copy_answer(c, ui, i, d);
                break;
            }
        msg_free(&d->m);
    }
}
