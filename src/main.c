/* cc-tui: prepare the process, read arguments and configuration, then run one command
 * or the screen. */
#include <cct/app.h>
#include <cct/app/passage.h>
#include <cct/cli.h>
#include <cct/keys.h>
#include <cct/model/project.h>
#include <cct/secrets/secret.h>
#include <cct/text/width.h>
#include <cct/ui/around.h>
#include <cct/ui/ui.h>
#include <cct/util/fs.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the process --------------------------------------------------------------- */

/* Started with a closed stdin, stdout or stderr, the next file we open would take its
 * number and be written over: hold the place with something that refuses. */
static void hold_stdio(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(CLI_FAILED);
}

static int prepare(struct err *e)
{
    xkeep_small();
    hold_stdio();
    if (getuid() != geteuid() || getgid() != getegid())
        return err_set(e, ERR_PERM, "cc-tui does not run set-user-ID or set-group-ID");
    signal(SIGCHLD, SIG_DFL); /* else no command tells how it ended */
    thread_set_role(THREAD_MAIN);
    if (secrets_init(e) != 0)
        return e->code;
    keys_take_env();
    setlocale(LC_CTYPE, ""); /* numbers and dates are the same everywhere */
    return 0;
}

/* Before any thread: the screen's loop reads them by descriptor. */
static void block_signals(void)
{
    sigset_t set;
    ui_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* --- configuration ---------------------------------------------------------------- */

/* .cc-tui here or in a folder above, up to HOME; outside of HOME only here. */
static char *find_project_file(void)
{
    char *dir = realpath(".", NULL), *home_env = getenv("HOME");
    char *home = home_env ? realpath(home_env, NULL) : NULL, *found = NULL;
    size_t n = home ? strlen(home) : 0;
    bool below = dir && home && strncmp(dir, home, n) == 0 && (dir[n] == '/' || !dir[n]);

    while (dir && !found) {
        struct stat st;
        char *path = fs_join(dir, ".cc-tui"), *slash = strrchr(dir, '/');
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
            found = path;
        else
            free(path);
        if (!below || strcmp(dir, home) == 0 || !slash || slash == dir)
            break;
        *slash = '\0';
    }
    free(dir);
    free(home);
    return found;
}

struct files {
    char *dir, *user, *project; /* dir: the configuration's folder */
    char *folder;               /* of the project's file, when that chose the project */
};

static void find_files(const struct cli *c, struct files *f)
{
    char *dir = fs_place(FS_CONFIG, NULL);
    f->user = cli_has(c, CLI_CONFIG) ? xstrdup(c->value[CLI_CONFIG])
              : dir                  ? fs_join(dir, "cc-tui.conf")
                                     : NULL;
    f->project = find_project_file();
    f->dir = dir;
    f->folder = NULL;
}

/* Flags stand above everything. */
static int apply_flags(const struct cli *c, struct config *cfg, struct err *e)
{
    static const struct {
        enum cli_flag flag;
        const char *option;
    } names[] = {{CLI_THEME, "screen.theme"},
                 {CLI_PROJECT, "sandbox.project"},
                 {CLI_KILL_ALL_CONFIRM, "sandbox.kill_all_confirm"}};
    int rc = 0;

    for (size_t i = 0; i < c->n_sets && rc == 0; i++) {
        const char *eq = strchr(c->sets[i], '=');
        if (!eq)
            return err_set(e, ERR_INVALID, "'--set' wants SECTION.NAME=VALUE, not '%.60s'",
                           c->sets[i]);
        char *name = xstrndup(c->sets[i], (size_t)(eq - c->sets[i]));
        rc = config_set(cfg, name, eq + 1, OPT_FLAG, e);
        free(name);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rc == 0; i++)
        if (cli_has(c, names[i].flag))
            rc = config_set(cfg, names[i].option, c->value[names[i].flag], OPT_FLAG, e);
    if (rc == 0 && cli_has(c, CLI_ASCII))
        rc = config_set(cfg, "screen.ascii", "on", OPT_FLAG, e);
    if (rc == 0 && (cli_has(c, CLI_MOUSE) || cli_has(c, CLI_NO_MOUSE)))
        rc = config_set(cfg, "screen.mouse", cli_has(c, CLI_NO_MOUSE) ? "off" : "on", OPT_FLAG, e);
    return rc;
}

static enum option_source project_source(const struct config *cfg)
{
    const char *section, *name, *help;
    enum option_source src;
    char value[8];

    for (size_t i = 0; config_at(cfg, i, &section, &name, value, sizeof(value), &src, &help); i++)
        if (str_eq(section, "sandbox") && str_eq(name, "project"))
            return src;
    return OPT_DEFAULT;
}

/* --project, CC_TUI_PROJECT, the configuration (a .cc-tui before the user's file), else the
 * one used last, which the database knows. */
static const char *say_project(const struct cli *c, enum option_source *src)
{
    const char *env = getenv("CC_TUI_PROJECT");

    *src = project_source(c->config);
    if (*src < OPT_ENV && env && *env) {
        *src = OPT_ENV;
        return env;
    }
    return *c->config->o.project ? c->config->o.project : NULL;
}

static int choose_project(struct cli *c, struct files *f, struct err *e)
{
    enum option_source src;

    c->project = say_project(c, &src);
    c->project_source = src;
    if (c->project && !project_name_ok(c->project)) {
        if (src >= OPT_ENV)
            return err_set(e, ERR_INVALID, "'%s' is 1 to 64 of A-Z a-z 0-9 - _ . /, no / at its "
                           "ends, not '%.70s'", src == OPT_FLAG ? "--project" : "CC_TUI_PROJECT",
                           c->project);
        config_note(c->config, "sandbox.project: '%s' is no name (A-Z a-z 0-9 - _ . /); the "
                    "project used last counts", str_shown(c->project));
        c->project = NULL;
    }
    if (f->project && c->project && src == OPT_PROJECT) {
        f->folder = xstrndup(f->project, (size_t)(strrchr(f->project, '/') - f->project));
        c->project_folder = f->folder;
    }
    return 0;
}

static void start_log(const struct config *cfg)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    struct err e = {0};
    int level = LOG_INFO;
    for (int i = 0; i < 4; i++)
        if (str_eq(levels[i], cfg->o.log_level))
            level = i;
    char *dir = fs_place(FS_STATE, &e), *path = dir ? fs_join(dir, "cc-tui.log") : NULL;
    if (!dir || fs_mkdir_private(dir, &e) != 0 || log_open(path, (enum log_level)level) != 0) {
        log_open(NULL, (enum log_level)level);
        log_warn("there is no log file: %s", e.code ? e.text : "it cannot be opened");
    }
    free(path);
    free(dir);
}

/* --- the screen -------------------------------------------------------------------- */

static char *keys_table(const struct config *cfg)
{
    struct keymap *k = keymap_new();
    if (cfg)
        keymap_bind_all(k, cfg->keys, cfg->n_keys, NULL, NULL);
    char *text = keymap_table(k);
    keymap_free(k);
    return text;
}

static void bad_key(void *ctx, const struct key_line *l, const struct err *e)
{
    config_note(ctx, "%s: %s", l->where, e->text);
}

static void check_keys(struct config *cfg)
{
    if (!cfg->n_keys)
        return;
    struct keymap *k = keymap_new();
    keymap_bind_all(k, cfg->keys, cfg->n_keys, bad_key, cfg);
    keymap_free(k);
}

/* Channels of each event; a line that makes no sense is told, and its default counts. */
static void read_notify(struct config *cfg, int channels[NOTE_EVENTS_COUNT])
{
    const struct options *o = &cfg->o;
    const struct {
        const char *name, *words, *def;
    } rows[NOTE_EVENTS_COUNT] = {
        {"asks", o->notify_asks, "bell osc"}, {"finished", o->notify_finished, "mark"},
        {"error", o->notify_error, "bell osc"}, {"ending", o->notify_ending, "mark"},
        {"build", o->notify_build, "mark"}, {"budget", o->notify_budget, "mark"}};
    for (int i = 0; i < NOTE_EVENTS_COUNT; i++) {
        struct err e = {0};
        channels[i] = note_channels(rows[i].words, &e);
        if (channels[i] >= 0)
            continue;
        config_note(cfg, "notify.%s: %s; '%s' counts", rows[i].name, e.text, rows[i].def);
        channels[i] = note_channels(rows[i].def, NULL);
    }
}

static int shell_leave_key(const struct config *cfg)
{
    int key = passage_key_parse(cfg->o.shell_leave);
    return key == PASSAGE_KEY_BAD ? passage_key_parse("^]") : key; /* which was told */
}

static void check_screen(struct config *cfg, const char *config_dir)
{
    struct theme theme;
    struct err e = {0};
    int channels[NOTE_EVENTS_COUNT];

    if (theme_load(&theme, cfg->o.theme, config_dir, &e) != 0)
        config_note(cfg, "%s", e.text);
    check_keys(cfg);
    read_notify(cfg, channels);
}

static int play(struct cli *c, struct replay *r);

static const struct cli_host host = {keys_table, check_screen, term_probe_colors, play};

/* What of the configuration may change while the screen is open. */
static void fill_screen(struct ui_opts *uo, const struct config *cfg)
{
    const struct options *o = &cfg->o;
    uo->warn_left_ms = o->warn_left * INT64_C(1000);
    uo->time_stamps = o->times;
    uo->sort = o->sort;
    uo->wrap = o->wrap;
    uo->kill_all_confirm = o->kill_all_confirm;
    uo->tool = o->tool;
    uo->timeout_s = o->timeout;
    uo->pause_at_end = str_eq(o->at_end, "pause");
    uo->keys = cfg->keys;
    uo->n_keys = cfg->n_keys;
}

/* Files and flags once more; on another thread, nobody writes to the arguments meanwhile. */
static void load_again(void *ctx, struct config *cfg)
{
    const struct cli *c = ctx;
    struct err e = {0};
    config_load(cfg, c->user_file, c->project_file);
    if (apply_flags(c, cfg, &e) != 0)
        config_note(cfg, "%s", e.text);
    check_keys(cfg);
}

/* What each screen has, one that only shows as well. The theme is filled in; a mistake is in *e. */
static struct ui_opts begin_screen(const struct cli *c, const char *config_dir, struct theme *theme,
                                   struct err *e)
{
    const struct options *o = &c->config->o;
    struct around around;
    around_read(&around, getenv);
    bool by_terminal = str_eq(o->theme, "auto");
    const char *name = !by_terminal ? o->theme : around.background == 1 ? "light" : "dark";
    theme_load(theme, name, config_dir, e);
    static struct theme light; /* read before the terminal is asked: nobody waits for a file then */
    if (by_terminal)
        theme_load(&light, "light", config_dir, NULL);
    text_ambiguous_wide(o->ambiguous_wide);
    block_signals();
    log_beside();
    struct ui_opts uo = {
        .ascii = o->ascii,
        .color = {.word = o->color,
                  .no_color_flag = cli_has(c, CLI_NO_COLOR),
                  .truecolor = around.truecolor,
                  .no_color = getenv("NO_COLOR")},
        .theme = theme,
        .theme_light = by_terminal ? &light : NULL,
        .config_dir = config_dir,
        .max_fps = o->fps,
        .copy_command = o->copy_command,
        .copy_channel = o->copy_channel,
        .title = o->title,
        .mouse = o->mouse,
    };
    fill_screen(&uo, c->config);
    return uo;
}

/* Whoever holds the lock was here first; a second screen says that it is one. */
static int first_screen(struct ui_opts *uo, const char *data_dir)
{
    struct err e = {0};
    char *dir = data_dir ? xstrdup(data_dir) : fs_place(FS_DATA, NULL), *path = dir ? fs_join(dir, "screen.lock") : NULL;
    int fd = path ? fs_lock(path, &e) : -1;

    uo->second = e.code == ERR_BUSY;
    if (uo->second && !uo->note)
        uo->note = "another cc-tui has this open: both show the same, either may act";
    else if (e.code && !uo->second)
        log_warn("%s", e.text);
    free(path);
    free(dir);
    return fd;
}

static int run_screen(const struct cli *c, const char *config_dir)
{
    struct config *cfg = c->config;
    const struct options *o = &cfg->o;
    struct theme theme;
    int channels[NOTE_EVENTS_COUNT];
    struct app_opts ao;
    struct err e = {0};

    struct ui_opts uo = begin_screen(c, config_dir, &theme, &e);
    if (e.code)
        config_note(cfg, "%s", e.text);
    check_keys(cfg);
    read_notify(cfg, channels);
    if (passage_key_parse(o->shell_leave) == PASSAGE_KEY_BAD)
        config_note(cfg, "screen.shell_detach_key: '%s' is neither ^ and a letter nor none; ^] "
                    "counts", str_shown(o->shell_leave));
    cli_app_opts(c, &ao);
    ao.follow_all = true;
    ao.pictures = true;
    ao.first_demo = true;
    err_clear(&e);
    if (cli_passphrase(c, &ao, &e) != 0) {
        cli_tell("%s", e.text);
        return cli_exit_of(e.code);
    }
    struct app *app = app_new(&ao, &e);
    if (!app || app_start(app, &e) != 0) {
        app_free(app);
        cli_tell("%s", e.text);
        return cli_exit_of(e.code);
    }
    for (size_t i = 0; i < cfg->n_notes; i++)
        app_event_add(app, 1, 0, cfg->notes[i]);
    char note[200];
    if (cfg->n_notes == 1)
        str_copy(note, sizeof(note), cfg->notes[0]);
    else
        snprintf(note, sizeof(note), "%zu mistakes in the configuration: 5 shows them",
                 cfg->n_notes);
    uo.readonly = ao.readonly;
    uo.bench_frames = c->value[CLI_BENCH_FRAMES];
    uo.shell_leave = shell_leave_key(cfg);
    uo.config = cfg;
    uo.fill = fill_screen;
    uo.reload = (struct reload_opts){load_again, (void *)(uintptr_t)c,
                                     {c->user_file, c->project_file}, config_dir};
    uo.notify = channels;
    uo.notify_osc = o->notify_osc;
    uo.notify_hook = o->notify_hook;
    uo.note = cfg->n_notes ? note : NULL;
    int lock = first_screen(&uo, ao.data_dir);
    char *state = fs_place(FS_STATE, NULL), *drafts = state ? fs_join(state, "drafts.json") : NULL;
    uo.drafts = drafts;
    uo.state_dir = state;
    int status = ui_run(app, &uo);
    if (lock >= 0)
        close(lock);
    free(state);
    free(drafts);
    app_stop(app);
    app_free(app);
    return status;
}

/* A recorded run, by an application without threads, files and network. */
static int play(struct cli *c, struct replay *r)
{
    struct theme theme;
    struct app_opts ao;
    struct err e = {0};
    char *dir = fs_place(FS_CONFIG, NULL), *state = fs_place(FS_STATE, NULL);
    struct ui_opts uo = begin_screen(c, dir, &theme, &e);

    if (e.code)
        log_warn("%s", e.text);
    cli_app_opts(c, &ao);
    ao.readonly = true;
    struct app *app = app_new_shown(&ao, "this is a replay: nothing is done", &e);
    int status = CLI_FAILED;
    if (app) {
        uo.readonly = true;
        uo.state_dir = state;
        uo.replay = r;
        status = ui_run(app, &uo);
    } else {
        cli_tell("%s", e.text);
    }
    app_free(app);
    free(dir);
    free(state);
    return status;
}

/* --- all of it ----------------------------------------------------------------------- */

static int run(struct cli *c)
{
    struct config cfg;
    struct files f;
    struct err e = {0};
    int status;

    if (cli_has(c, CLI_HELP) || cli_is_plain(c->cmd))
        return cli_run(c);
    find_files(c, &f);
    config_load(&cfg, f.user, f.project);
    c->config = &cfg;
    c->host = &host;
    c->user_file = f.user;
    c->project_file = f.project;
    if (cli_has(c, CLI_CONFIG) && access(f.user, R_OK) != 0)
        err_sys(&e, ERR_INVALID, "cannot read '%s'", f.user);
    if (e.code != 0 || apply_flags(c, &cfg, &e) != 0 || choose_project(c, &f, &e) != 0) {
        cli_tell("%s", e.text);
        status = CLI_USAGE;
    } else {
        start_log(&cfg);
        bool screen = c->cmd == CLI_CMD_SCREEN && !cli_has(c, CLI_PLAIN);
        for (size_t i = 0; i < cfg.n_notes && !screen &&
                           c->cmd != CLI_CMD_CONFIG_CHECK && c->cmd != CLI_CMD_DOCTOR;
             i++)
            cli_tell("%s", cfg.notes[i]);
        status = screen                       ? run_screen(c, f.dir)
                 : c->cmd == CLI_CMD_SCREEN ? cli_plain(c)
                                            : cli_run(c);
        log_close();
    }
    config_release(&cfg);
    free(f.user);
    free(f.project);
    free(f.dir);
    free(f.folder);
    return status;
}

/* Everything of ours is written and closed by now. What fifty libraries do at their end
 * helps nobody, and a network thread that hangs in one of them must not find it gone. */
static void end_now(int status)
{
    fflush(NULL);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* they report at the end */
    exit(status);
#else
    _exit(status);
#endif
}

int main(int argc, char **argv)
{
    struct cli c;
    struct err e = {0};
    int status;

    if (prepare(&e) != 0) {
        cli_tell("%s", e.text);
        return CLI_FAILED;
    }
    if (cli_parse(&c, argc, (const char *const *)argv, &e) != 0) {
        log_redact(e.text, strlen(e.text)); /* a key may stand where none belongs */
        cli_tell("%s", e.text);
        status = CLI_USAGE;
    } else {
        status = run(&c);
    }
    cli_release(&c);
    end_now(status);
}
