/* What a typed line means: words of the line mode, else a command of the table, which runs over
 * the application that is open. */
#include "plain_priv.h"

#include <cct/config/tools.h>
#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* What concerns the whole program stands where it is started. */
#define AT_START                                                                               \
    (CLI_BIT(LOCAL) | CLI_BIT(LOCAL_UNSAFE) | CLI_BIT(CONFIG) | CLI_BIT(DATA_DIR) |            \
     CLI_BIT(SET) | CLI_BIT(THEME) | CLI_BIT(MOUSE) | CLI_BIT(NO_MOUSE) | CLI_BIT(ASCII) |     \
     CLI_BIT(PLAIN) | CLI_BIT(PASSPHRASE_FD) | CLI_BIT(UNLOCK) | CLI_BIT(BENCH_FRAMES))

const struct cli_plain_word cli_plain_words[] = {
#define PLAIN_ROW(fn, name, aliases, args, help) {name, aliases, args, help},
    PLAIN_WORDS(PLAIN_ROW)
#undef PLAIN_ROW
        {NULL, NULL, NULL, NULL},
};
static void (*const functions[])(struct plain *p, char *args) = {
#define PLAIN_ROW(fn, name, aliases, args, help) plain_do_##fn,
    PLAIN_WORDS(PLAIN_ROW)
#undef PLAIN_ROW
};

/* --- words of a line ------------------------------------------------------------ */

char *plain_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t"), *end = word + strcspn(word, " \t");

    *rest = end + strspn(end, " \t");
    if (*end)
        *end = '\0';
    return word;
}

bool plain_count(struct plain *p, const char *word, int least, int *n)
{
    int64_t v = *n;

    if (*word && !str_to_i64(word, least, 10000, &v)) {
        plain_say(p, "'%.40s' is no number from %d to 10000.", word, least);
        return false;
    }
    *n = (int)v;
    return true;
}

const struct sandbox *plain_find(struct plain *p, const char *word)
{
    struct cli_app a = {.app = p->app, .c = p->c};
    struct err e = {0};
    const struct sandbox *s = NULL;

    if (!*word) {
        plain_say(p, "Which sandbox? Write its name, or its number in the list.");
        return NULL;
    }
    s = cli_app_find(&a, word, &e);
    if (!s)
        plain_say(p, "%s", e.text);
    return s;
}

/* The line begins with that name: how long it is, or 0. "@" needs no space behind it. */
static size_t begins(const char *line, const char *name, size_t n)
{
    char after = strncmp(line, name, n) == 0 ? line[n] : 'x';

    return after == '\0' || after == ' ' || (n == 1 && *name == '@') ? n : 0;
}

static size_t fits(const struct cli_plain_word *w, const char *line)
{
    size_t best = begins(line, w->name, strlen(w->name));

    for (const char *a = w->aliases; *a; a += strspn(a, " ")) {
        size_t n = strcspn(a, " "), len = strncmp(line, a, n) == 0 ? begins(line, a, n) : 0;

        best = len > best ? len : best;
        a += n;
    }
    return best;
}

/* --- commands of the table ------------------------------------------------------ */

/* 0, or negative: said why it cannot be done between these lines. */
static int refused(struct plain *p, const struct cli *c)
{
    bool reads = c->cmd == CLI_CMD_DECODE ||
                 (c->cmd == CLI_CMD_KEYS_ADD || c->cmd == CLI_CMD_PROJECTS_SECRET ||
                  c->cmd == CLI_CMD_SHELL || c->cmd == CLI_CMD_KEYS_PROTECT);

    if (c->given & AT_START) {
        for (int f = 0; f < CLI_FLAG_COUNT; f++)
            if (AT_START >> f & 1 && cli_has(c, (enum cli_flag)f))
                plain_say(p, "--%s is said when cc-tui is started, not here.", cli_flags[f].name);
        return -1;
    }
    if (c->cmd == CLI_CMD_REPLAY) {
        plain_say(p, "A replay runs by itself, beside this: cc-tui replay --plain %s.", c->args[0]);
        return -1;
    }
    if (c->cmd == CLI_CMD_DECODE || (reads && !p->tty && !cli_has(c, CLI_COMMAND))) {
        plain_say(p, "'%s' wants stdin for itself, which is where your lines come from: run it "
                  "beside this, as cc-tui %s.", cli_commands[c->cmd].name,
                  cli_commands[c->cmd].name);
        return -1;
    }
    return 0;
}

static void show_help(const struct cli *c)
{
    char *text = cli_help_text(c->cmd, c->group);

    cli_out("%s", text);
    free(text);
}

/* What holds for the program holds for the command. */
static void inherit(struct plain *p, struct cli *c)
{
    const struct cli *from = p->c;
    const struct model *m = app_model(p->app);

    c->given |= (from->given & (CLI_BIT(READONLY) | CLI_BIT(LOCAL) | CLI_BIT(NO_INPUT))) |
                CLI_BIT(NO_COLOR);
    c->config = from->config;
    c->user_file = from->user_file;
    c->project_file = from->project_file;
    c->project = m->project ? m->project : from->project;
    c->project_source = from->project_source;
    c->project_folder = from->project_folder;
    c->host = from->host;
}

int plain_command(struct plain *p, const char *const *words, size_t n)
{
    const char **argv = xcalloc(n + 2, sizeof(*argv));
    struct err e = {0};
    struct cli c;
    int status = CLI_USAGE;

    argv[0] = "cc-tui";
    memcpy(argv + 1, words, n * sizeof(*argv));
    if (cli_parse(&c, (int)n + 1, argv, &e) != 0)
        plain_say(p, "%s", e.text);
    else if (cli_has(&c, CLI_HELP))
        show_help(&c);
    else if (c.cmd == CLI_CMD_SCREEN)
        plain_say(p, "There is no screen between these lines. Type help for what there is.");
    else if (refused(p, &c) == 0) {
        inherit(p, &c);
        p->endless = cli_has(&c, CLI_FOLLOW) || c.cmd == CLI_CMD_WATCH;
        p->leavable = p->endless || cli_has(&c, CLI_WAIT) || c.cmd == CLI_CMD_PAIR_WAIT;
        status = cli_call(&c);
        p->endless = p->leavable = false;
        cli_out_go_on();
        if (status == CLI_INTERRUPTED && !p->stop)
            plain_say(p, "Left. What was begun may go on.");
    }
    cli_release(&c);
    free(argv);
    return status;
}

static void run_words(struct plain *p, const char *line)
{
    struct err e = {0};
    char **words = tool_words(line, &e);

    if (words)
        plain_command(p, (const char *const *)words, str_list_count(words));
    else
        plain_say(p, "%s", e.code ? e.text : "there is nothing in that line");
    str_list_free(words);
}

/* --- the line ------------------------------------------------------------------- */

static bool is_greeted(struct plain *p)
{
    return p->greeted;
}

/* Nothing but Enter: what was held back, and how things stand. */
static void empty_line(struct plain *p)
{
    char text[200];
    bool held = p->held.n > 0;

    plain_tell_held(p);
    plain_counts(p, text, sizeof(text));
    if (!held)
        plain_say(p, "%s", text);
}

void plain_line(struct plain *p, char *line)
{
    size_t best = 0, which = 0;

    if (!utf8_valid(line, strlen(line))) {
        plain_say(p, "That line is no text in UTF-8, and was not taken.");
        return;
    }
    line = str_trim(line);
    if (str_starts(line, "cc-tui "))
        line = str_trim(line + 7); /* as our own hints write it */
    if (!*line) {
        empty_line(p);
        return;
    }
    plain_tell_held(p);
    for (size_t i = 0; cli_plain_words[i].name; i++) {
        size_t n = fits(&cli_plain_words[i], line);

        if (n > best) {
            best = n;
            which = i;
        }
    }
    char *args = line + best + strspn(line + best, " ");
    bool at_once = best && (functions[which] == plain_do_quit || functions[which] == plain_do_words);
    if (!at_once && !plain_until(p, is_greeted)) /* only then it is known what there is */
        return;
    if (best && *args != '-')
        functions[which](p, args);
    else
        run_words(p, line);
}

/* --- words of our own that are commands in other words ---------------------------- */

void plain_do_kill(struct plain *p, char *args)
{
    const char *words[] = {"kill", "--all", "--scope", "account"};

    if (*args && !str_eq(args, "everything"))
        plain_say(p, "'kill all' is said alone, or as 'kill all everything'. A single one: "
                  "kill NAME.");
    else
        plain_command(p, words, *args ? 4 : 2);
}

void plain_do_idle(struct plain *p, char *args)
{
    int64_t seconds = APP_IDLE_S;
    size_t n;

    if (*args && !str_to_seconds(args, &seconds)) {
        plain_say(p, "'%.40s' is no time: write 90, 15m or 1h30m. Nothing was paused.", args);
        return;
    }
    if (cli_has(p->c, CLI_READONLY)) {
        plain_say(p, "Nothing is paused with --readonly.");
        return;
    }
    n = app_pause_idle(p->app, plain_now(p), seconds);
    if (n)
        plain_say(p, "Pausing %zu idle sandbox%s.", n, n == 1 ? "" : "es");
    else
        plain_say(p, "No sandbox is idle for so long.");
}

void plain_do_project(struct plain *p, char *args)
{
    const struct model *m = app_model(p->app);
    const char *words[] = {"projects", "use", args};

    if (!*args) {
        plain_say(p, "The project is %s.", m->project ? m->project : "not known yet");
        return;
    }
    app_project_view(p->app, false);
    plain_command(p, words, 3);
}

void plain_do_view(struct plain *p, char *args)
{
    (void)args;
    app_project_view(p->app, true);
    plain_say(p, "The sandboxes of all projects are listed from now on.");
}

void plain_do_unlock(struct plain *p, char *args)
{
    struct cli_app a;
    struct err e = {0};

    (void)args;
    if (!app_model(p->app)->vault_passphrase) {
        plain_say(p, "No passphrase protects the stored keys.");
        return;
    }
    if (!p->tty) {
        plain_say(p, "A passphrase is typed on a terminal alone, which this is not: start cc-tui "
                  "with --passphrase-fd.");
        return;
    }
    if (cli_app_open(&a, p->c, &e) != 0 || cli_app_unlock(&a, &e) != 0)
        plain_say(p, "%s", e.code ? e.text : "it is still locked");
    else
        plain_say(p, "The stored keys can be used.");
    cli_app_close(&a);
}

void plain_do_words(struct plain *p, char *args)
{
    const char *words[] = {"help", args};
    size_t best = 0, which = 0;

    for (size_t i = 0; *args && cli_plain_words[i].name; i++)
        if (fits(&cli_plain_words[i], args) > best) {
            best = fits(&cli_plain_words[i], args);
            which = i;
        }
    if (best) {
        const struct cli_plain_word *w = &cli_plain_words[which];
        plain_say(p, "%s%s%s: %s.", w->name, *w->args ? " " : "", w->args, w->help);
        return;
    }
    if (*args) {
        char **list = tool_words(args, NULL);

        words[1] = list ? list[0] : "";
        plain_command(p, words, 2);
        str_list_free(list);
        return;
    }
    for (const struct cli_plain_word *w = cli_plain_words; w->name; w++)
        plain_say(p, "%s%s%s: %s.", w->name, *w->args ? " " : "", w->args, w->help);
    plain_say(p, "Every command of cc-tui works, too: answer, new, pause, resume, timeout, interrupt, "
              "kill NAME, builds, usage, search and others. 'cc-tui --help' lists them, 'help new' "
              "explains one.");
    plain_say(p, "Enter alone says how things stand. Ctrl-R shows again what you have typed.");
}

void plain_do_quit(struct plain *p, char *args)
{
    (void)args;
    p->stop = true;
}
