/* Arguments: the tables, and what the user typed against them. */
#include <cct/cli.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cli_cmd cli_commands[] = {
    {CLI_CMD_SCREEN, NULL, NULL, NULL, 0, 0, 0, NULL},
#define CLI_ROW(id, fn, name, aliases, args, least, most, flags, help) \
    {CLI_CMD_##id, name, aliases, args, least, most, flags, help},
    CLI_COMMANDS(CLI_ROW)
#undef CLI_ROW
        {CLI_CMD_SCREEN, NULL, NULL, NULL, 0, 0, 0, NULL},
};

const struct cli_flag_row cli_flags[CLI_FLAG_COUNT] = {
#define CLI_ROW(id, name, sh, value, help) {name, sh, value, help},
    CLI_FLAGS(CLI_ROW)
#undef CLI_ROW
};

int cli_exit_of(int code)
{
    switch (code) {
    case ERR_OK:
        return CLI_OK;
    case ERR_INVALID:
        return CLI_USAGE;
    case ERR_AUTH:
        return CLI_KEY;
    case ERR_NOTFOUND:
        return CLI_NOT_FOUND;
    case ERR_NETWORK:
    case ERR_TIMEOUT:
    case ERR_SERVER:
    case ERR_UNTRUSTED:
        return CLI_NO_SERVICE;
    case ERR_CANCELLED:
        return CLI_INTERRUPTED;
    default:
        return CLI_FAILED;
    }
}

bool cli_json(const struct cli *c)
{
    return cli_has(c, CLI_JSON) ||
           (cli_has(c, CLI_FORMAT) && str_eq(c->value[CLI_FORMAT], "json"));
}

bool cli_is_plain(enum cli_cmd_id cmd)
{
    switch (cmd) {
    case CLI_CMD_VERSION:
    case CLI_CMD_HELP:
    case CLI_CMD_COMPLETION:
    case CLI_CMD_CONFIG_EXAMPLE:
    case CLI_CMD_DECODE:
        return true;
    default:
        return false;
    }
}

/* --- commands ---------------------------------------------------------------- */

static bool is_alias(const char *aliases, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = aliases; n && (p = strstr(p, word)); p += n)
        if ((p == aliases || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return true;
    return false;
}

/* "local" of "local start"; 0 when the name has one word. */
static size_t group_len(const char *name)
{
    const char *sp = strchr(name, ' ');
    return sp ? (size_t)(sp - name) : 0;
}

static bool in_group(const struct cli_cmd *cmd, const char *group)
{
    size_t n = group_len(cmd->name);
    return n && strlen(group) == n && strncmp(cmd->name, group, n) == 0;
}

static bool is_group(const char *word)
{
    for (const struct cli_cmd *cmd = cli_commands + 1; cmd->name; cmd++)
        if (in_group(cmd, word))
            return true;
    return false;
}

/* "unknown X 'w' (did you mean 'y'?); see cc-tui --help" */
static int unknown(struct err *e, const char *what, const char *word, const char *const *names,
                   size_t n)
{
    int near = str_nearest(word, names, n);
    if (near >= 0)
        return err_set(e, ERR_INVALID, "unknown %s '%.60s' (did you mean '%s'?)", what, word,
                       names[near]);
    return err_set(e, ERR_INVALID, "unknown %s '%.60s'; see cc-tui --help", what, word);
}

static int unknown_command(const char *word, struct err *e)
{
    const char *names[128];
    char *own[128];
    size_t n = 0, n_own = 0;
    for (const struct cli_cmd *cmd = cli_commands + 1; cmd->name && n < 120; cmd++) {
        size_t g = group_len(cmd->name);
        own[n_own] = g ? xstrndup(cmd->name, g) : xstrdup(cmd->name);
        names[n++] = own[n_own++];
    }
    int rc = unknown(e, "command", word, names, n);
    while (n_own)
        free(own[--n_own]);
    return rc;
}

static int unknown_in_group(const char *group, const char *word, struct err *e)
{
    const char *names[32];
    size_t n = 0, skip = strlen(group) + 1;
    for (const struct cli_cmd *cmd = cli_commands + 1; cmd->name && n < 32; cmd++)
        if (in_group(cmd, group))
            names[n++] = cmd->name + skip;
    if (word)
        return unknown(e, "command", word, names, n);
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        buf_addf(&b, "%s%s", i ? ", " : "", names[i]);
    int rc = err_set(e, ERR_INVALID, "'%s' wants one of: %s", group, buf_str(&b));
    buf_release(&b);
    return rc;
}

static void drop_args(struct cli *c, int n)
{
    memmove(c->args, c->args + n, (size_t)(c->n_args - n) * sizeof(*c->args));
    c->n_args -= n;
    c->n_plain -= n;
    c->args[c->n_args] = NULL;
}

/* The first words name the command. `help X` and `X --help` are the same. */
static int find_command(struct cli *c, struct err *e)
{
    if (c->n_plain == 0) {
        if (c->n_args > 0)
            return err_set(e, ERR_INVALID, "unknown argument '%.60s'; see cc-tui --help",
                           c->args[0]);
        return 0;
    }
    const char *word = c->args[0], *second = c->n_plain > 1 ? c->args[1] : NULL;
    if (is_group(word)) {
        c->group = word;
        for (const struct cli_cmd *cmd = cli_commands + 1; second && cmd->name; cmd++)
            if (in_group(cmd, word) && strcmp(cmd->name + strlen(word) + 1, second) == 0) {
                c->cmd = cmd->id;
                drop_args(c, 2);
                return 0;
            }
        for (const struct cli_cmd *cmd = cli_commands + 1; cmd->name; cmd++)
            if (strcmp(cmd->name, word) == 0) { /* the group's name is a command itself */
                c->cmd = cmd->id;
                drop_args(c, 1);
                return second && !cmd->most ? unknown_in_group(word, second, e) : 0;
            }
        if (!second && cli_has(c, CLI_HELP))
            return 0;
        for (const struct cli_cmd *cmd = cli_commands + 1; !second && cmd->name; cmd++)
            if (in_group(cmd, word) && str_ends(cmd->name, " ls")) {
                c->cmd = cmd->id;
                drop_args(c, 1);
                return 0;
            }
        return unknown_in_group(word, second, e);
    }
    for (const struct cli_cmd *cmd = cli_commands + 1; cmd->name; cmd++)
        if (strcmp(cmd->name, word) == 0 || is_alias(cmd->aliases, word)) {
            c->cmd = cmd->id;
            drop_args(c, 1);
            return 0;
        }
    return unknown_command(word, e);
}

/* --- flags ------------------------------------------------------------------- */

static int find_flag(const char *name, size_t len)
{
    for (int i = 0; i < CLI_FLAG_COUNT; i++)
        if (strlen(cli_flags[i].name) == len && strncmp(cli_flags[i].name, name, len) == 0)
            return i;
    return -1;
}

static int unknown_flag(const char *arg, size_t len, struct err *e)
{
    const char *names[CLI_FLAG_COUNT];
    char *word = xstrndup(arg + 2, len);
    for (int i = 0; i < CLI_FLAG_COUNT; i++)
        names[i] = cli_flags[i].name;
    int near = str_nearest(word, names, CLI_FLAG_COUNT);
    free(word);
    if (near >= 0)
        return err_set(e, ERR_INVALID, "unknown option '%.60s' (did you mean '--%s'?)", arg,
                       names[near]);
    return err_set(e, ERR_INVALID, "unknown option '%.60s'; see cc-tui --help", arg);
}

static void take_flag(struct cli *c, int f, const char *value)
{
    c->given |= (cli_set)1 << f;
    c->value[f] = value;
    if (f == CLI_SET)
        c->sets[c->n_sets++] = value;
    if (f == CLI_ENV || f == CLI_BUILD_ARG)
        c->envs[c->n_envs++] = value;
    if (f == CLI_SKILL || f == CLI_TAG)
        c->skills[c->n_skills++] = value;
    if (f == CLI_FILE)
        c->files[c->n_files++] = value;
}

/* --name, --name=value, --name value */
static int take_long(struct cli *c, int argc, const char *const *argv, int *i, struct err *e)
{
    const char *arg = argv[*i], *eq = strchr(arg, '=');
    size_t len = eq ? (size_t)(eq - arg) - 2 : strlen(arg) - 2;
    int f = find_flag(arg + 2, len);

    if (f < 0)
        return unknown_flag(arg, len, e);
    bool wants = cli_flags[f].value[0] != '\0';
    if (eq && !wants)
        return err_set(e, ERR_INVALID, "option '--%s' takes no value", cli_flags[f].name);
    if (wants && !eq && *i + 1 >= argc)
        return err_set(e, ERR_INVALID, "option '--%s' wants %s", cli_flags[f].name,
                       cli_flags[f].value);
    take_flag(c, f, !wants ? "" : eq ? eq + 1 : argv[++*i]);
    return 0;
}

/* -q, -qf, -t claude, -tclaude */
static int take_short(struct cli *c, int argc, const char *const *argv, int *i, struct err *e)
{
    for (const char *p = argv[*i] + 1; *p; p++) {
        int f = 0;
        while (f < CLI_FLAG_COUNT && cli_flags[f].letter != *p)
            f++;
        if (f == CLI_FLAG_COUNT)
            return err_set(e, ERR_INVALID, "unknown option '-%c'; see cc-tui --help", *p);
        if (!cli_flags[f].value[0]) {
            take_flag(c, f, "");
            continue;
        }
        if (!p[1] && *i + 1 >= argc)
            return err_set(e, ERR_INVALID, "option '-%c' wants %s", *p, cli_flags[f].value);
        take_flag(c, f, p[1] ? p + 1 : argv[++*i]);
        break;
    }
    return 0;
}

/* --- the whole --------------------------------------------------------------- */

static int check_flags(const struct cli *c, struct err *e)
{
    const struct cli_cmd *cmd = &cli_commands[c->cmd];
    const char *format = c->value[CLI_FORMAT];

    for (int f = 0; f < CLI_FLAG_COUNT; f++)
        if (cli_has(c, (enum cli_flag)f) && !((CLI_GLOBAL | cmd->flags) >> f & 1)) {
            if (c->cmd == CLI_CMD_SCREEN)
                return err_set(e, ERR_INVALID, "option '--%s' needs a command",
                               cli_flags[f].name);
            return err_set(e, ERR_INVALID, "'%s' knows no option '--%s'; see cc-tui %s --help",
                           cmd->name, cli_flags[f].name, cmd->name);
        }
    if (format && strcmp(format, "json") != 0 && strcmp(format, "pretty") != 0)
        return err_set(e, ERR_INVALID, "'--format' is json or pretty, not '%.60s'", format);
    return 0;
}

static int check_args(const struct cli *c, struct err *e)
{
    const struct cli_cmd *cmd = &cli_commands[c->cmd];

    if (c->cmd == CLI_CMD_SCREEN)
        return 0;
    if (c->n_args < cmd->least)
        return err_set(e, ERR_INVALID, "'%s' wants %s; see cc-tui %s --help", cmd->name,
                       cmd->args, cmd->name);
    if (cmd->most >= 0 && c->n_args > cmd->most)
        return err_set(e, ERR_INVALID, "'%s' takes no argument '%.60s'; see cc-tui %s --help",
                       cmd->name, c->args[cmd->most], cmd->name);
    return 0;
}

int cli_parse(struct cli *c, int argc, const char *const *argv, struct err *e)
{
    size_t room = (size_t)argc + 1;
    bool plain = true;
    int rc = 0;

    memset(c, 0, sizeof(*c));
    c->args = xcalloc(room, sizeof(*c->args));
    c->sets = xcalloc(room, sizeof(*c->sets));
    c->envs = xcalloc(room, sizeof(*c->envs));
    c->skills = xcalloc(room, sizeof(*c->skills));
    c->files = xcalloc(room, sizeof(*c->files));
    for (int i = 1; i < argc && rc == 0; i++) {
        const char *arg = argv[i];
        if (plain && strcmp(arg, "--") == 0) {
            plain = false;
        } else if (!plain || arg[0] != '-' || arg[1] == '\0') {
            c->args[c->n_args++] = arg;
            c->n_plain += plain;
        } else if (arg[1] == '-') {
            rc = take_long(c, argc, argv, &i, e);
        } else {
            rc = take_short(c, argc, argv, &i, e);
        }
    }
    if (rc == 0 && cli_has(c, CLI_VERSION) && c->n_args == 0)
        c->cmd = CLI_CMD_VERSION;
    else if (rc == 0)
        rc = find_command(c, e);
    if (rc == 0 && cli_has(c, CLI_HELP))
        return 0;
    if (rc == 0)
        rc = check_flags(c, e);
    if (rc == 0)
        rc = check_args(c, e);
    return rc;
}

void cli_release(struct cli *c)
{
    free(c->args);
    free(c->sets);
    free(c->envs);
    free(c->skills);
    free(c->files);
    memset(c, 0, sizeof(*c));
}
