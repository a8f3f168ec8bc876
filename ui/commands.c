/* Commands of the palette: their words, and what they do. */
#include <cct/ui/commands.h>

#include <cct/config/options.h>
#include <cct/model/filter.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MOST = 300 };

static const struct {
    const char *name, *args, *help;
    bool changes;
} commands[COMMAND_COUNT] = {
#define COMMAND_ROW(id, name, args, changes, help) {name, args, help, changes},
    COMMANDS(COMMAND_ROW)
#undef COMMAND_ROW
};

const char *command_name(enum command c)
{
    return commands[c].name;
}

const char *command_args(enum command c)
{
    return commands[c].args;
}

const char *command_help(enum command c)
{
    return commands[c].help;
}

bool command_listens(const struct model *m, const struct sandbox *s)
{
    return s->state != SB_KILLED && !s->foreign && model_in_view(m, s);
}

/* "set screen.wrap on": its value is there to be changed. */
static bool option_choice(struct ui *ui, size_t i, char *dst, size_t size)
{
    const char *section, *name, *help;
    enum option_source src;
    char value[64];
    if (!ui->opts.config ||
        !config_at(ui->opts.config, i, &section, &name, value, sizeof(value), &src, &help))
        return false;
    snprintf(dst, size, "set %s.%s %s ", section, name, value);
    return true;
}

/* Those of the sandbox that is shown, which were looked at: what was changed, then the folder. */
static bool file_choice(struct ui *ui, size_t i, char *dst, size_t size)
{
    size_t changed = 0;
    const char *path = changes_path(ui, ui->selected, i);
    while (!path && changes_path(ui, ui->selected, changed))
        changed++;
    if (!path && i <= FILES_MOST)
        path = files_path(ui, ui->selected, i - changed);
    if (path && snprintf(dst, size, "file %s", path) >= (int)size)
        snprintf(dst, size, "file "); /* goes on by hand */
    return path != NULL;
}

bool command_choice(struct ui *ui, enum command c, size_t i, char *dst, size_t size)
{
    const struct model *m = ui->model;
    switch (c) {
    case COMMAND_PROJECT:
        if (i < m->n_projects)
            snprintf(dst, size, "project %s", m->projects[i].name);
        return i < m->n_projects;
    case COMMAND_THEME:
        if (theme_shipped(i))
            snprintf(dst, size, "theme %s", theme_shipped(i));
        return theme_shipped(i) != NULL;
    case COMMAND_SORT:
        if (i < SORT_COUNT)
            snprintf(dst, size, "sort by %s", sort_word((enum sort)i));
        return i < SORT_COUNT;
    case COMMAND_SET:
        return option_choice(ui, i, dst, size);
    case COMMAND_FILTER_USE:
    case COMMAND_FILTER_DROP:
        if (i < m->n_filters)
            snprintf(dst, size, "%s %s", commands[c].name, m->filters[i].name);
        return i < m->n_filters;
    case COMMAND_FILE:
        return file_choice(ui, i, dst, size);
    case COMMAND_SAY: /* names are offered by themselves */
        return false;
    default:
        str_copy(dst, size, commands[c].name);
        return i == 0;
    }
}

const char *command_choice_help(struct ui *ui, enum command c, size_t i)
{
    const char *section, *name, *help;
    enum option_source src;
    char value[8];
    if (c == COMMAND_SET && ui->opts.config &&
        config_at(ui->opts.config, i, &section, &name, value, sizeof(value), &src, &help))
        return help;
    if (c == COMMAND_FILTER_USE && i < ui->model->n_filters)
        return ui->model->filters[i].words;
    return c == COMMAND_SORT ? sort_help((enum sort)i) : commands[c].help;
}

/* --- what they do ----------------------------------------------------------------- */

static void pause_idle(struct ui *ui, const char *args)
{
    int64_t seconds = APP_IDLE_S;
    size_t n;
    if (*args && !str_to_seconds(args, &seconds)) {
        ui_status(ui, 1, "'%.40s' is no time: write 90, 15m or 1h30m; nothing was paused", args);
        return;
    }
    n = app_pause_idle(ui->app, ui_server_now(ui, ui->now), seconds);
    ui_status(ui, 0, n == 1 ? "pausing one idle sandbox" : "pausing %zu idle sandboxes", n);
    if (!n)
        ui_status(ui, 0, "no sandbox is idle for so long");
}

static void go_project(struct ui *ui, const char *name)
{
    const struct model *m = ui->model;
    for (size_t i = 0; i < m->n_projects; i++)
        if (str_eq(m->projects[i].name, name)) {
            app_project_view(ui->app, false);
            app_project_switch(ui->app, name);
            ui_status(ui, 0, "the project is %s", name);
            return;
        }
    ui_status(ui, 1, "no project is called '%.60s'; gp makes one", name);
}

static void sort_by(struct ui *ui, const char *column)
{
    int by = sort_parse(column);
    if (by >= 0)
        list_sort(ui, (enum sort)by, false);
    else
        ui_status(ui, 1, "there is no column '%.40s' to sort by", column);
}

static void set_option(struct ui *ui, const char *args)
{
    size_t n = strcspn(args, " =");
    char *name = xstrndup(args, n), *value = xstrdup(args + n + strspn(args + n, " =")), *end;
    for (end = value + strlen(value); end > value && end[-1] == ' '; end--)
        end[-1] = 0;
    ui_set_option(ui, name, value);
    free(name);
    free(value);
}

static void say(struct ui *ui, const char *args)
{
    const struct model *m = ui->model;
    size_t n = strcspn(args, " ");
    const struct sandbox *to = NULL;
    char *name = xstrndup(args, n);
    for (size_t i = 0; i < m->n_sandboxes; i++)
        if (command_listens(m, &m->sandboxes[i]) && str_eq(m->sandboxes[i].name, name))
            to = &m->sandboxes[i];
    args += n + strspn(args + n, " ");
    if (!to)
        ui_status(ui, 1, "not sent: no sandbox in view is called '%.60s'", name);
    else if (!*args)
        ui_status(ui, 1, "not sent: write @%.60s and what to say", name);
    else if (to->state == SB_PAUSED)
        ui_status(ui, 1, "not sent: %s is paused; {resume} resumes it", name);
    else {
        app_send(ui->app, to->id, args, false);
        ui_status(ui, 0, to->agent == AG_IDLE ? "sent to %s" : "%s works: the message waits its turn",
                  to->name);
    }
    free(name);
}

static const struct saved_filter *saved(const struct model *m, const char *name)
{
    for (size_t i = 0; i < m->n_filters; i++)
        if (str_eq(m->filters[i].name, name))
            return &m->filters[i];
    return NULL;
}

static void keep_filter(struct ui *ui, const char *args)
{
    size_t n = strcspn(args, " ");
    const char *words = args + n + strspn(args + n, " ");
    char *name = xstrndup(args, n);
    words = *words ? words : list_filter_words(ui);
    if (!*words)
        ui_status(ui, 1, "nothing to keep: the list is not narrowed");
    else if (strlen(words) >= FILTER_BYTES)
        ui_status(ui, 1, "too long to be a filter: at most %d bytes", FILTER_BYTES - 1);
    else {
        app_filter(ui->app, name, words);
        ui_status(ui, 0, "kept as %s: %s", name, words);
    }
    free(name);
}

/* `use`: else it is dropped. */
static void with_filter(struct ui *ui, const char *name, bool use)
{
    const struct saved_filter *f = saved(ui->model, name);
    if (!f) {
        ui_status(ui, 1, "no filter is kept as '%.60s'", name);
    } else if (use) {
        list_filter(ui, f->words);
    } else {
        ui_status(ui, 0, "the filter %s is forgotten", name);
        app_filter(ui->app, name, NULL);
    }
}

static void show_file(struct ui *ui, const char *path)
{
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    if (s)
        files_show_path(ui, s, path);
    else
        ui_status(ui, 1, "no sandbox is shown: there is no file to look at");
}

static void run(struct ui *ui, enum command c, const char *args)
{
    switch (c) {
    case COMMAND_PAUSE_IDLE:
        pause_idle(ui, args);
        break;
    case COMMAND_PROJECT:
        go_project(ui, args);
        break;
    case COMMAND_SORT:
        sort_by(ui, args);
        break;
    case COMMAND_FILTER:
        list_filter(ui, args);
        break;
    case COMMAND_FILTER_USE:
    case COMMAND_FILTER_DROP:
        with_filter(ui, args, c == COMMAND_FILTER_USE);
        break;
    case COMMAND_FILTER_KEEP:
        keep_filter(ui, args);
        break;
    case COMMAND_SET:
        set_option(ui, args);
        break;
    case COMMAND_RELOAD:
        reload_ask(ui->reload);
        ui_status(ui, ui->reload ? 0 : 1, ui->reload ? "reading the configuration"
                                                     : "the configuration is not read again here");
        break;
    case COMMAND_ALL_PROJECTS:
        app_project_view(ui->app, true);
        ui_status(ui, 0, "sandboxes of all projects are shown");
        break;
    case COMMAND_THEME:
        if (ui->reload) /* its file is read beside the screen */
            ui_set_option(ui, "screen.theme", args);
        else
            ui_set_theme(ui, args);
        break;
    case COMMAND_SAY:
        say(ui, args);
        break;
    case COMMAND_FILE:
        show_file(ui, args);
        break;
    case COMMAND_SHELL:
        if (ui_key_meant(ui)) /* what was pasted runs nothing */
            ui_run_command(ui, args);
        break;
    case COMMAND_COUNT:
        break;
    }
}

/* The words behind the name, or NULL when the line is not of this command. */
static const char *args_of(const char *line, enum command c)
{
    const char *name = commands[c].name, *rest = line + strlen(name);
    if (!str_starts(line, name))
        return NULL;
    if (c != COMMAND_SAY && c != COMMAND_SHELL && *rest && *rest != ' ')
        return NULL;
    rest += strspn(rest, " ");
    if ((c == COMMAND_SAY || c == COMMAND_SET) && !rest[strcspn(rest, " ")])
        return NULL; /* a name alone is not whole */
    if (!*commands[c].args && *rest)
        return NULL;
    return *rest || commands[c].args[0] == '[' || !*commands[c].args ? rest : NULL;
}

/* One run is shown: only how it looks can be changed. */
static bool is_of_replay(enum command c)
{
    return c == COMMAND_SET || c == COMMAND_RELOAD || c == COMMAND_THEME;
}

int command_run(struct ui *ui, const char *line)
{
    line += strspn(line, " ");
    for (int c = 0; c < COMMAND_COUNT; c++) {
        const char *args = args_of(line, (enum command)c);
        if (!args)
            continue;
        if (ui->opts.replay && !is_of_replay((enum command)c))
            return ui_replay_refuse(ui);
        if (ui->opts.readonly && commands[c].changes)
            ui_status(ui, 1, "read-only: started with --readonly, nothing is changed");
        else
            run(ui, (enum command)c, args);
        return UI_HANDLED | UI_REDRAW;
    }
    return UI_IGNORED;
}
