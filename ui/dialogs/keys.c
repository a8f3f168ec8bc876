/* Keys on the screen: which is in force for each provider and what it hides; add or replace,
 * try, remove; the vault's passphrase. A key is never shown but for its last four. */
#include <cct/ui/box.h>
#include <cct/ui/secretfield.h>
#include <cct/ui/ui.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_CELLS = 100, ROWS_MAX = 16 };
enum keys_mode { KEYS_LIST, KEYS_TYPE, KEYS_REMOVE, KEYS_PASSPHRASE };

struct keys {
    enum keys_mode mode;
    size_t at;
    bool project;       /* level that add and remove act on */
    bool alone;         /* only the passphrase was asked for */
    uint64_t req;       /* under way */
    struct secretfield field;
    char said[400];
    bool bad;
};
static const struct overlay_ops keys_ops;

/* Answers go there; there is one at a time. */
static struct keys *open_now(struct ui *ui)
{
    for (int i = 0; i < ui->n_overlays; i++)
        if (ui->overlays[i].ops == &keys_ops)
            return ui->overlays[i].state;
    return NULL;
}

static void keys_close(void *state)
{
    struct keys *k = state;

    secretfield_release(&k->field);
    free(k);
}

static bool keys_update(struct ui *ui, void *state)
{
    (void)ui;
    (void)state;
    return true; /* what the model says of keys is all that is drawn */
}

static void say(struct keys *k, bool bad, const char *text)
{
    str_copy(k->said, sizeof(k->said), text);
    k->bad = bad;
}

/* Its own requests are told in the dialog. */
bool keys_dialog_done(struct ui *ui, const struct ev_done *d)
{
    struct keys *k = open_now(ui);

    if (!k || !k->req || d->m.req_id != k->req)
        return false;
    k->req = 0;
    say(k, d->err.code != 0, d->err.code ? d->err.text : d->text ? d->text : "done");
    if (k->alone && !d->err.code) {
        ui_status(ui, 0, "the vault is open");
        k->mode = KEYS_LIST;
        if (ui->overlays[ui->n_overlays - 1].state == k)
            ui_overlay_pop(ui);
    }
    return true;
}

static const struct app_key *row_at(struct ui *ui, const struct keys *k, size_t *n)
{
    const struct app_key *list = app_key_list(ui->app), *at = NULL;

    *n = 0;
    for (size_t i = 0; list && list[i].provider; i++, ++*n)
        if (i == k->at)
            at = &list[i];
    return at;
}

/* --- drawing ------------------------------------------------------------------------- */

static void draw_rows(struct ui *ui, struct keys *k, struct canvas *c, struct rect in)
{
    const struct app_key *list = app_key_list(ui->app);

    canvas_textf(c, in.y, in.x, in.w, ROLE_HINT, "%-16s %-9s %-9s %s", "PROVIDER", "YOU", "PROJECT",
                 "IN FORCE HERE");
    for (int i = 0; list && list[i].provider && i + 1 < in.h; i++) {
        enum theme_role role = (size_t)i == k->at ? ROLE_CURSOR : ROLE_DIALOG;
        canvas_fill(c, (struct rect){in.y + 1 + i, in.x, 1, in.w}, role, " ");
        canvas_textf(c, in.y + 1 + i, in.x, in.w, role, "%-16s %-9s %-9s %s", list[i].provider,
                     *list[i].user ? list[i].user : "-",
                     *list[i].project ? list[i].project : "-", list[i].text);
    }
    if (!list)
        canvas_text(c, in.y + 1, in.x, in.w, ROLE_DIALOG, "the stored keys are being read");
}

static void vault_line(const struct ui *ui, char *dst, size_t size)
{
    const struct model *m = ui->model;

    if (m->vault_opening)
        str_copy(dst, size, "the passphrase is being tried");
    else if (m->vault_locked)
        snprintf(dst, size, "%s", m->vault_locked);
    else if (m->vault_passphrase)
        str_copy(dst, size, "stored keys are sealed by a passphrase; the vault is open");
    else
        str_copy(dst, size, "stored keys are sealed; their data key lies in a key file");
    if (!secrets_memory_locked())
        str_copy(dst, size, "keys cannot be locked in memory and may reach swap: raise "
                            "RLIMIT_MEMLOCK (ulimit -l)");
}

static void draw_foot(struct ui *ui, struct keys *k, struct canvas *c, struct rect in)
{
    const char *project = ui->model->project ? ui->model->project : "default";
    size_t n;
    const struct app_key *row = row_at(ui, k, &n);
    bool locked = ui->model->vault_passphrase && ui->model->vault_locked;
    char vault[300], hint[200], level[90];
    const char *keys;
    int y = in.y + in.h - 4;

    vault_line(ui, vault, sizeof(vault));
    for (char *part; (int)strlen(vault) > in.w && (part = strrchr(vault, ';'));)
        *part = 0; /* whole clauses */
    snprintf(level, sizeof(level), k->project ? "the project %s" : "you", project);
    canvas_text(c, y, in.x, in.w, ROLE_HINT, vault);
    if (*k->said || row) /* the row may not have had room for all of it */
        box_text(c, (struct rect){y + 1, in.x, 2, in.w}, k->bad ? ROLE_STATUS_BAD : ROLE_DIALOG,
                 *k->said ? k->said : row->text);
    if (k->mode == KEYS_TYPE) {
        snprintf(hint, sizeof(hint), "key of %s for %s: ", row ? row->provider : "?", level);
        canvas_fill(c, (struct rect){y + 1, in.x, 2, in.w}, ROLE_DIALOG, " ");
        int x = in.x + canvas_text(c, y + 1, in.x, in.w, ROLE_PROMPT, hint);
        secretfield_draw(&k->field, c, y + 1, x, in.x + in.w - x);
        if (*k->said)
            canvas_text(c, y + 2, in.x, in.w, k->bad ? ROLE_STATUS_BAD : ROLE_DIALOG, k->said);
        keys = ui_keys(ui, "{take-line} store it, sealed\t{cut-to-begin} clear\t{leave-line} leave it");
    } else if (k->mode == KEYS_PASSPHRASE) {
        int x = in.x + canvas_text(c, y + 1, in.x, in.w, ROLE_PROMPT, "passphrase of the vault: ");
        canvas_fill(c, (struct rect){y + 2, in.x, 1, in.w}, ROLE_DIALOG, " ");
        secretfield_draw(&k->field, c, y + 1, x, in.x + in.w - x);
        if (*k->said)
            canvas_text(c, y + 2, in.x, in.w, k->bad ? ROLE_STATUS_BAD : ROLE_DIALOG, k->said);
        keys = ui_keys(ui, "{take-line} open the vault\t{leave-line} leave it locked");
    } else if (k->mode == KEYS_REMOVE) {
        keys = ui_keys(ui, "{yes}  remove the %s key %s of %s\tother keys  keep it",
                 row ? row->provider : "?", row ? (k->project ? row->project : row->user) : "",
                 level);
    } else {
        keys = ui_keys(ui, "{key-add} add, replace%s\t[for %s] {key-level}\t{key-remove} remove\t"
                           "{key-try} try%s\t{close} close",
                       locked ? ui_keys(ui, "\t{vault-open} open the vault") : "", level,
                       ui->model->vault_passphrase && !locked ? ui_keys(ui, "\t{vault-lock} lock") : "");
    }
    canvas_hints(c, y + 3, in.x, in.w, k->mode == KEYS_REMOVE ? ROLE_DANGER : ROLE_HINT, keys);
}

static void keys_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                      int64_t now)
{
    struct keys *k = state;
    int w = screen.w < KEYS_CELLS ? screen.w : KEYS_CELLS;
    struct rect in;

    (void)now;
    if (k->alone) {
        in = box_draw(c, screen, 8, w, "the vault is locked", NULL);
    } else {
        in = box_draw(c, screen, ROWS_MAX - 1, w, "keys", "all of them are shown by their last four");
        draw_rows(ui, k, c, (struct rect){in.y, in.x, in.h - 5, in.w});
    }
    if (in.h >= 4)
        draw_foot(ui, k, c, in);
}

/* --- keys -------------------------------------------------------------------------------- */

static void field_enter(struct ui *ui, struct keys *k)
{
    struct err e = {0};
    struct secret *s = secretfield_take(&k->field, false);
    size_t n;
    const struct app_key *row = row_at(ui, k, &n);

    if (k->mode == KEYS_PASSPHRASE) {
        if (!s) {
            say(k, true, "nothing was typed");
            return;
        }
        k->req = app_unlock(ui->app, s);
        say(k, false, "opening the vault");
        if (!k->alone)
            k->mode = KEYS_LIST;
        return;
    }
    s = app_key_clean(s, row ? row->provider : "", &e);
    if (!s) {
        say(k, true, e.text);
        return;
    }
    k->req = app_key_add(ui->app, row->provider, k->project, s);
    say(k, false, "storing it");
    k->mode = KEYS_LIST;
}

static int field_key(struct ui *ui, struct keys *k, key_code code, const char *paste, size_t len)
{
    if (ui->found == ACT_LEAVE_LINE) {
        secretfield_clear(&k->field);
        say(k, false, "");
        k->mode = KEYS_LIST;
        return k->alone ? UI_CLOSE : UI_HANDLED;
    }
    if (ui->found == ACT_TAKE_LINE)
        field_enter(ui, k);
    else if (!secretfield_key(&k->field, ui->found, code, paste, len) && code == K_PASTE)
        say(k, true, "that is too long for a key; nothing was taken");
    return UI_HANDLED;
}

static int remove_it(struct ui *ui, struct keys *k)
{
    size_t n;
    const struct app_key *row = row_at(ui, k, &n);

    k->mode = KEYS_LIST;
    if (ui->found != ACT_YES || !row || !ui_key_meant(ui))
        return UI_HANDLED;
    k->req = app_key_rm(ui->app, row->provider, k->project);
    say(k, false, "removing it");
    return UI_HANDLED;
}

static int on_row(struct ui *ui, struct keys *k, enum action a)
{
    size_t n;
    const struct app_key *row = row_at(ui, k, &n);

    if (!row)
        return UI_HANDLED;
    if (a == ACT_KEY_TRY) {
        k->req = str_eq(row->provider, "e2b") ? app_refresh(ui->app)
                                              : app_key_test(ui->app, row->provider);
        say(k, false, "asking the service");
    } else if (ui->opts.readonly) {
        say(k, true, "read-only: no key is changed");
    } else if (a == ACT_KEY_ADD || a == ACT_CHOOSE) {
        k->mode = KEYS_TYPE;
        say(k, false, "");
    } else if (*(k->project ? row->project : row->user)) {
        k->mode = KEYS_REMOVE;
        say(k, false, "");
    } else {
        say(k, true, ui_keys(ui, k->project ? "no key of it is stored for the project ({key-level}: for you)"
                                            : "no key of it is stored for you ({key-level}: for the project)"));
    }
    return UI_HANDLED;
}

static int keys_action(struct ui *ui, void *state, enum action a)
{
    struct keys *k = state;
    size_t n;

    if (k->mode != KEYS_LIST || k->alone)
        return UI_IGNORED;
    row_at(ui, k, &n);
    switch (a) {
    case ACT_CLOSE:
        return UI_CLOSE;
    case ACT_BOX_DOWN:
        k->at += k->at + 1 < n;
        break;
    case ACT_BOX_UP:
        k->at -= k->at > 0;
        break;
    case ACT_BOX_PGDN: /* there are but a few */
        k->at = n ? n - 1 : 0;
        break;
    case ACT_BOX_PGUP:
        k->at = 0;
        break;
    case ACT_KEY_LEVEL:
        k->project = !k->project;
        break;
    case ACT_VAULT_OPEN:
        if (ui->model->vault_locked && ui->model->vault_passphrase)
            k->mode = KEYS_PASSPHRASE;
        break;
    case ACT_VAULT_LOCK:
        k->req = app_lock(ui->app);
        break;
    case ACT_KEY_ADD:
    case ACT_KEY_TRY:
    case ACT_KEY_REMOVE:
    case ACT_CHOOSE:
        return on_row(ui, k, a);
    default:
        break;
    }
    return UI_HANDLED;
}

static int keys_key(struct ui *ui, void *state, key_code code, const char *paste, size_t len)
{
    struct keys *k = state;

    if (k->mode == KEYS_TYPE || k->mode == KEYS_PASSPHRASE)
        return field_key(ui, k, code, paste, len);
    if (code == K_PASTE) {
        say(k, true, ui_keys(ui, "press {key-add} first, then paste the key"));
        return UI_HANDLED;
    }
    if (k->alone)
        return UI_CLOSE;
    return k->mode == KEYS_REMOVE ? remove_it(ui, k) : UI_HANDLED;
}

static enum key_scope keys_scope(void *state)
{
    const struct keys *k = state;

    return k->mode == KEYS_LIST     ? SCOPE_KEYRING
           : k->mode == KEYS_REMOVE ? SCOPE_CONFIRM
                                    : SCOPE_ASK;
}

static const struct overlay_ops keys_ops = {.name = "keys",
                                            .scope = SCOPE_KEYRING,
                                            .scope_now = keys_scope,
                                            .close = keys_close,
                                            .update = keys_update,
                                            .draw = keys_draw,
                                            .action = keys_action,
                                            .key = keys_key,
                                            .takes_paste = true};

static struct keys *open_dialog(struct ui *ui)
{
    struct keys *k = xcalloc(1, sizeof(*k));

    secretfield_init(&k->field);
    ui_overlay_push(ui, &keys_ops, k);
    return k;
}

void overlay_keys(struct ui *ui)
{
    if (!open_now(ui))
        open_dialog(ui);
}

/* Not over another question: it is asked for again when that is closed. */
void overlay_unlock(struct ui *ui)
{
    struct keys *k;

    if (open_now(ui) || ui->n_overlays)
        return;
    k = open_dialog(ui);
    k->alone = true;
    k->mode = KEYS_PASSPHRASE;
}
