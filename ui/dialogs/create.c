/* The form for a new sandbox: checked while typing, nothing is spent before it holds. */
#include "create_priv.h"

#include <cct/util/arr.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_BYTES = 9, COPIES_BYTES = 2, PATH_BYTES = 1000 };

static const char *const field_names[F_COUNT] = {
    "name", "tool",   "model",  "template", "timeout", "at_end", "env",
    "env_file", "ask", "repo", "branch", "prompt", "copies",  "preset", ""};

bool form_is_text(enum field f)
{
    return f != F_TOOL && f != F_END && f != F_ASK && f != F_CREATE;
}

const struct app_tool *form_tool(struct ui *ui, const struct form *f)
{
    return &app_tools(ui->app)[f->tool];
}

static size_t count_tools(struct ui *ui)
{
    size_t n = 0;
    while (app_tools(ui->app)[n].name)
        n++;
    return n;
}

bool form_asks(const struct app_tool *t, const struct form *f)
{
    return t->can_ask && (f->ask ? f->ask > 0 : t->asks);
}

const char *form_text(struct form *f, enum field id)
{
    const char *s = inputline_text(&f->lines[id]);
    return *s ? s : NULL;
}

int form_copies(struct form *f)
{
    int64_t n = 1;
    const char *s = form_text(f, F_COPIES);
    return s && str_to_i64(s, 1, APP_COPIES_MAX, &n) ? (int)n : 1;
}

int form_timeout(struct form *f)
{
    int64_t s = 0;
    const char *text = form_text(f, F_TIMEOUT);
    if (!str_to_seconds(text ? text : form_timeout_hint(), &s) || s < 1 || s > LIM_TIMEOUT_MAX_S)
        return 0;
    return (int)s;
}

/* --- checks ------------------------------------------------------------------------ */

/* "A=1 B=2", one pair per line; memory is cut in place. */
static int parse_env(char *text, struct kv **out, struct err *e)
{
    ARR(struct kv) v = ARR_INIT;
    char *save = NULL;
    for (char *s = strtok_r(text, "\n", &save); s; s = strtok_r(NULL, "\n", &save)) {
        s = str_trim(s);
        if (!*s)
            continue;
        char *eq = strchr(s, '=');
        if (!eq || eq == s) {
            ARR_RELEASE(&v);
            return err_set(e, ERR_INVALID, "environment: write NAME=value, one a line");
        }
        *eq = 0;
        struct kv *kv = ARR_PUSH(&v);
        kv->k = s;
        kv->v = eq + 1;
    }
    ARR_PUSH(&v);
    *out = v.v;
    return 0;
}

static int to_spec(struct ui *ui, struct form *f, bool anew, struct app_create *q, char **env_text,
                   struct kv **env, const char **field, struct err *e)
{
    int64_t copies = 1;
    const char *n = form_text(f, F_COPIES);

    *q = (struct app_create){.name = form_text(f, F_NAME),
                             .tool = form_tool(ui, f)->name,
                             .model = form_text(f, F_MODEL),
                             .template_id = form_text(f, F_TEMPLATE),
                             .timeout_s = form_timeout(f),
                             .env_file = form_text(f, F_ENV_FILE),
                             .repo = form_text(f, F_REPO),
                             .branch = form_text(f, F_BRANCH),
                             .prompt = form_text(f, F_PROMPT),
                             .ask = f->ask > 0 ? "yes" : f->ask < 0 ? "no" : NULL,
                             .pause_at_end = f->pause};
    *field = "timeout";
    if (q->timeout_s == 0)
        return err_set(e, ERR_INVALID, "timeout: write 900, 15m or 1h30m, at most 24h");
    *field = "copies";
    if (n && !str_to_i64(n, 1, APP_COPIES_MAX, &copies))
        return err_set(e, ERR_INVALID, "copies: a number from 1 to %d", APP_COPIES_MAX);
    q->copies = (int)copies;
    *field = "env";
    *env_text = xstrdup(inputline_text(&f->lines[F_ENV]));
    int rc = parse_env(*env_text, env, e);
    if (rc)
        return rc;
    q->env = *env;
    f->unread = !app_look_at_files(ui->app, q, anew);
    return app_check_create(ui->app, q, field, e);
}

/* Templates that exist and have no finished build are refused here; one that is in no list
 * may be another team's. */
static int check_template(struct ui *ui, const struct app_create *q, const char **field,
                          struct err *e)
{
    const char *name = q->template_id ? q->template_id : "";
    const struct app_template *t = app_template_find(ui->app, name);

    if (!t || t->ready)
        return 0;
    *field = "template";
    return err_set(e, ERR_CONFLICT, "the template \"%.60s\" has no finished build (%.20s): wait for it, "
                   "or choose another; 'cc-tui builds %.60s' shows it", name, t->status, name);
}

static void look_at_keys(struct ui *ui, struct form *f)
{
    struct app_create q = {.tool = form_tool(ui, f)->name,
                           .model = form_text(f, F_MODEL),
                           .env_file = form_text(f, F_ENV_FILE),
                           .repo = form_text(f, F_REPO)};
    struct kv *env = NULL;
    struct err e = {0};
    char *text = xstrdup(inputline_text(&f->lines[F_ENV]));

    parse_env(text, &env, &e);
    q.env = env;
    app_create_keys(ui->app, &q, &f->key, &f->repo_key);
    free(env);
    free(text);
}

static void tell(struct form *f, const char *field, const struct err *e)
{
    str_copy(f->error, sizeof(f->error), e->text);
    for (int i = 0; i < F_COUNT; i++)
        if (field && strcmp(field, field_names[i]) == 0)
            f->bad = (enum field)i;
    if (field && strcmp(field, "key") == 0)
        f->bad = F_TOOL;
}

/* LOOK: as it stands. SUBMIT: what files hold is read again, then it is created: now, or
 * by AGAIN when they were. True when it went out. */
enum how { LOOK, SUBMIT, AGAIN };
static bool check(struct ui *ui, struct form *f, enum how how)
{
    struct app_create q;
    struct kv *env = NULL;
    char *env_text = NULL;
    const char *field = NULL;
    uint64_t reqs[APP_COPIES_MAX];
    struct err e = {0};
    f->error[0] = 0;
    f->bad = F_COUNT;
    bool ok = to_spec(ui, f, how == SUBMIT, &q, &env_text, &env, &field, &e) == 0 &&
              check_template(ui, &q, &field, &e) == 0;
    look_at_keys(ui, f);
    f->waits = ok && how != LOOK && f->unread;
    bool go = ok && how != LOOK && !f->unread;
    if (!ok) {
        tell(f, field, &e);
    } else if (go) {
        form_remember(ui, f);
        app_create_copies(ui->app, &q, true, reqs);
    }
    free(env);
    free(env_text);
    return go;
}

/* What comes after a check that was to create. */
static int went(struct ui *ui, struct form *f, bool out)
{
    int copies = form_copies(f);
    if (!out) {
        if (f->waits)
            ui_status(ui, 0, "reading the files that go with it");
        else if (f->bad < F_COUNT)
            f->at = f->bad;
        return UI_HANDLED;
    }
    ui_await_new(ui);
    if (copies > 1)
        ui_status(ui, 0, "creating %d sandboxes", copies);
    else
        ui_status(ui, 0, "creating %s", form_text(f, F_NAME) ? form_text(f, F_NAME) : "a sandbox");
    return UI_CLOSE;
}

/* Answers about templates, keys and files came. */
static bool form_update(struct ui *ui, void *state)
{
    struct form *f = state;

    if (f->waits && ui->overlays[ui->n_overlays - 1].state == f) {
        if (went(ui, f, check(ui, f, AGAIN)) == UI_CLOSE)
            ui_overlay_pop(ui);
        return true;
    }
    if (f->unread || (*f->error && (f->bad == F_TOOL || f->bad == F_TEMPLATE)))
        check(ui, f, LOOK); /* it may be mended */
    else
        look_at_keys(ui, f);
    return true;
}

/* --- keys --------------------------------------------------------------------------- */

static int submit(struct ui *ui, struct form *f)
{
    return went(ui, f, check(ui, f, SUBMIT));
}

static bool choose(struct ui *ui, struct form *f, int step)
{
    size_t n = count_tools(ui);
    bool taken = true;
    if (f->at == F_TOOL && n) {
        f->tool = (f->tool + n + (size_t)(step + (int)n)) % n;
        inputline_set(&f->lines[F_MODEL], ""); /* it was another tool's */
        f->ask = 0;
    } else if (f->at == F_ASK) {
        taken = form_tool(ui, f)->can_ask;
        f->ask = !taken ? 0 : form_asks(form_tool(ui, f), f) ? -1 : 1;
    } else if (f->at == F_END) {
        f->pause = !f->pause;
    } else if (f->at == F_MODEL || f->at == F_TEMPLATE || f->at == F_PRESET) {
        taken = form_step(ui, f, step);
    } else {
        return false;
    }
    if (taken)
        check(ui, f, LOOK);
    return taken;
}

static int form_action(struct ui *ui, void *state, enum action a)
{
    struct form *f = state;
    switch (a) {
    case ACT_FIELD_ENTER:
        if (f->at == F_CREATE)
            return submit(ui, f);
        check(ui, f, LOOK);
        f->at = (enum field)(f->at + 1);
        return UI_HANDLED;
    case ACT_FIELD_NEXT:
        check(ui, f, LOOK);
        f->at = (enum field)((f->at + 1) % F_COUNT);
        return UI_HANDLED;
    case ACT_FIELD_PREV:
        check(ui, f, LOOK);
        f->at = f->at ? (enum field)(f->at - 1) : F_CREATE;
        return UI_HANDLED;
    case ACT_SUBMIT:
        return submit(ui, f);
    case ACT_EDIT_FIELD: /* in another field it is the prompt that is meant */
        f->at = form_is_text(f->at) && f->lines[f->at].multiline ? f->at : F_PROMPT;
        f->waits = false;
        return ui_edit(ui, &f->lines[f->at], f);
    case ACT_PRESET_SAVE:
        form_save_preset(ui, f);
        return UI_HANDLED;
    case ACT_PRESET_REMOVE:
        form_remove_preset(ui, f);
        return UI_HANDLED;
    case ACT_FORM_CANCEL:
        return UI_CLOSE;
    case ACT_CHOICE_PREV:
    case ACT_CHOICE_NEXT: /* or it moves the text cursor, or is text */
        if (form_is_text(f->at) && ui->last_key == ' ')
            return UI_IGNORED;
        return choose(ui, f, a == ACT_CHOICE_NEXT ? 1 : -1) ? UI_HANDLED : UI_IGNORED;
    default:
        return UI_IGNORED;
    }
}

static int form_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct form *f = state;
    f->waits = false; /* it is changed once more */
    if (!form_is_text(f->at))
        return UI_HANDLED;
    ui_line_key(ui, &f->lines[f->at], k, paste, len);
    f->removes = false;
    if (f->at == F_PRESET)
        f->preset_said[0] = 0;
    if (*f->error)
        check(ui, f, LOOK);
    return UI_HANDLED;
}

static enum key_scope form_scope(void *state)
{
    const struct form *f = state;
    bool chosen = !form_is_text(f->at) || f->at == F_MODEL || f->at == F_TEMPLATE || f->at == F_PRESET;
    return chosen && f->at != F_CREATE ? SCOPE_CHOICE : SCOPE_FORM;
}

static void form_close(void *state)
{
    struct form *f = state;
    for (int i = 0; i < F_COUNT; i++)
        inputline_release(&f->lines[i]);
    free(f);
}

static const struct overlay_ops form_ops = {.name = "new sandbox",
                                            .scope = SCOPE_FORM,
                                            .scope_now = form_scope,
                                            .close = form_close,
                                            .update = form_update,
                                            .draw = form_draw,
                                            .action = form_action,
                                            .key = form_key,
                                            .takes_paste = true};

void overlay_create(struct ui *ui, bool prompt_first)
{
    static const size_t bytes[F_COUNT] = {
        [F_NAME] = 64,         [F_MODEL] = 200,         [F_TEMPLATE] = LIM_NAME_BYTES,
        [F_TIMEOUT] = TIMEOUT_BYTES, [F_ENV] = LIM_MESSAGE_BYTES, [F_ENV_FILE] = PATH_BYTES,
        [F_REPO] = PATH_BYTES, [F_BRANCH] = 200,        [F_PROMPT] = LIM_MESSAGE_BYTES,
        [F_COPIES] = COPIES_BYTES, [F_PRESET] = 64};
    if (!app_tools(ui->app)[0].name) {
        ui_status(ui, 2, "no agent can be chosen: see 'cc-tui doctor'");
        return;
    }
    struct form *f = xcalloc(1, sizeof(*f));
    f->bad = F_COUNT;
    f->at = prompt_first ? F_PROMPT : F_NAME;
    for (int i = 0; i < F_COUNT; i++)
        if (form_is_text((enum field)i))
            inputline_init(&f->lines[i], i == F_ENV || i == F_PROMPT, bytes[i]);
    app_prepare(ui->app);
    form_begin(ui, f);
    ui_overlay_push(ui, &form_ops, f);
    check(ui, f, LOOK);
    f->error[0] = 0; /* nothing was done wrong yet; what lacks stands among the checks */
    f->bad = F_COUNT;
}

void overlay_create_from(struct ui *ui, const char *template_name, const char *tool)
{
    int before = ui->n_overlays;
    struct form *f;

    overlay_create(ui, false);
    if (ui->n_overlays == before)
        return;
    f = ui->overlays[ui->n_overlays - 1].state;
    for (size_t i = 0; tool && app_tools(ui->app)[i].name; i++)
        if (str_eq(app_tools(ui->app)[i].name, tool))
            f->tool = i;
    inputline_set(&f->lines[F_TEMPLATE], template_name);
    check(ui, f, LOOK);
}
