/* Arguments of the command line: flags, commands, mistakes, help, completion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cct/cli.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS(...) ((const char *const[]){"cc-tui", __VA_ARGS__, NULL})

static int parse(struct cli *c, const char *const *argv, struct err *e)
{
    int n = 0;
    while (argv[n])
        n++;
    memset(e, 0, sizeof(*e));
    return cli_parse(c, n, argv, e);
}

static void refused(const char *const *argv, const char *text)
{
    struct cli c;
    struct err e;
    assert_int_equal(parse(&c, argv, &e), ERR_INVALID);
    assert_string_equal(e.text, text);
    cli_release(&c);
}

static void test_commands(void **state)
{
    static const struct {
        const char *argv[4];
        enum cli_cmd_id cmd;
    } cases[] = {
        {{"cc-tui"}, CLI_CMD_SCREEN},
        {{"cc-tui", "ls"}, CLI_CMD_LS},
        {{"cc-tui", "list"}, CLI_CMD_LS},
        {{"cc-tui", "kl", "x"}, CLI_CMD_KILL},
        {{"cc-tui", "lg", "x"}, CLI_CMD_LOGS},
        {{"cc-tui", "local", "start"}, CLI_CMD_LOCAL_START},
        {{"cc-tui", "config", "keys"}, CLI_CMD_CONFIG_KEYS},
        {{"cc-tui", "--version"}, CLI_CMD_VERSION},
        {{"cc-tui", "-V"}, CLI_CMD_VERSION},
        {{"cc-tui", "--local", "ls"}, CLI_CMD_LS},
        {{"cc-tui", "--local"}, CLI_CMD_SCREEN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cli c;
        struct err e;
        assert_int_equal(parse(&c, cases[i].argv, &e), 0);
        assert_int_equal(c.cmd, cases[i].cmd);
        cli_release(&c);
    }
}

static void test_flags(void **state)
{
    struct cli c;
    struct err e;
    (void)state;
    assert_int_equal(parse(&c,
                           ARGS("new", "--tool=shell", "--env", "A=1", "-qe", "B=x=y", "-nfoo",
                                "--json", "--set=net.poll=4", "--", "echo", "--json", "--"),
                           &e),
                     0);
    assert_int_equal(c.cmd, CLI_CMD_NEW);
    assert_string_equal(c.value[CLI_TOOL], "shell");
    assert_string_equal(c.value[CLI_NAME], "foo");
    assert_int_equal(c.n_envs, 2);
    assert_string_equal(c.envs[0], "A=1");
    assert_string_equal(c.envs[1], "B=x=y");
    assert_int_equal(c.n_sets, 1);
    assert_true(cli_has(&c, CLI_QUIET));
    assert_true(cli_json(&c));
    assert_int_equal(c.n_args, 3);
    assert_int_equal(c.n_plain, 0);
    assert_string_equal(c.args[1], "--json");
    assert_string_equal(c.args[2], "--");
    cli_release(&c);

    /* "-" is an argument, a value may begin with a dash, order is free */
    assert_int_equal(parse(&c, ARGS("--wait", "send", "box", "-"), &e), 0);
    assert_string_equal(c.args[1], "-");
    assert_true(cli_has(&c, CLI_WAIT));
    cli_release(&c);
    assert_int_equal(parse(&c, ARGS("decode", "--tool", "claude", "--exit-code", "-1"), &e), 0);
    assert_string_equal(c.value[CLI_EXIT_CODE], "-1");
    cli_release(&c);
    assert_int_equal(parse(&c, ARGS("ls", "--format", "json"), &e), 0);
    assert_true(cli_json(&c));
    cli_release(&c);
    assert_int_equal(parse(&c, ARGS("ls", "--format", "pretty"), &e), 0);
    assert_false(cli_json(&c));
    cli_release(&c);
}

static void test_mistakes(void **state)
{
    (void)state;
    refused(ARGS("kil"), "unknown command 'kil' (did you mean 'kill'?)");
    refused(ARGS("frobnicate"), "unknown command 'frobnicate'; see cc-tui --help");
    refused(ARGS("confg", "show"), "unknown command 'confg' (did you mean 'config'?)");
    refused(ARGS("local"), "'local' wants one of: start, stop, status, env");
    refused(ARGS("local", "stat"), "unknown command 'stat' (did you mean 'start'?)");
    refused(ARGS("ls", "--jsn"), "unknown option '--jsn' (did you mean '--json'?)");
    refused(ARGS("ls", "-z"), "unknown option '-z'; see cc-tui --help");
    refused(ARGS("ls", "--json=yes"), "option '--json' takes no value");
    refused(ARGS("ls", "--project"), "option '--project' wants NAME");
    refused(ARGS("ls", "-t"), "option '-t' wants TOOL");
    refused(ARGS("ls", "x"), "'ls' takes no argument 'x'; see cc-tui ls --help");
    struct cli c;
    struct err e;
    assert_int_equal(parse(&c, ARGS("send", "a", "b", "--", "-x y"), &e), 0);
    assert_int_equal(c.n_args, 3);
    assert_int_equal(c.n_plain, 2);
    cli_release(&c);
    refused(ARGS("timeout", "x"), "'timeout' wants SANDBOX SPAN; see cc-tui timeout --help");
    refused(ARGS("ls", "--wait"), "'ls' knows no option '--wait'; see cc-tui ls --help");
    refused(ARGS("--wait"), "option '--wait' needs a command");
    refused(ARGS("ls", "--format", "xml"), "'--format' is json or pretty, not 'xml'");
    refused(ARGS("--", "ls"), "unknown argument 'ls'; see cc-tui --help");
}

static void test_exit_codes(void **state)
{
    (void)state;
    assert_int_equal(cli_exit_of(ERR_OK), 0);
    assert_int_equal(cli_exit_of(ERR_INVALID), 2);
    assert_int_equal(cli_exit_of(ERR_AUTH), 4);
    assert_int_equal(cli_exit_of(ERR_NOTFOUND), 5);
    assert_int_equal(cli_exit_of(ERR_NETWORK), 6);
    assert_int_equal(cli_exit_of(ERR_TIMEOUT), 6);
    assert_int_equal(cli_exit_of(ERR_CANCELLED), 130);
    assert_int_equal(cli_exit_of(ERR_CORRUPT), 1);
}

static void has(char *text, const char *what)
{
    assert_non_null(text);
    if (!strstr(text, what))
        fail_msg("no \"%s\" in:\n%s", what, text);
}

/* A flag at the begin of an explanation: behind two spaces, or behind its letter. */
static bool flag_line(const char *text, const char *flag)
{
    size_t n = strlen(flag);

    for (const char *p = text; (p = strstr(p, flag)); p += n) {
        const char *line = p;
        while (line > text && line[-1] != '\n')
            line--;
        if ((p[n] == ' ' || p[n] == '\n') && p - line == 6 && line[0] == ' ' && line[1] == ' ')
            return true;
    }
    return false;
}

static void test_help(void **state)
{
    struct cli c;
    struct err e;
    char *text = cli_help_text(CLI_CMD_SCREEN, NULL);
    (void)state;
    for (const struct cli_cmd *cmd = cli_commands + 1; cmd->name; cmd++)
        has(text, cmd->name);
    has(text, "--readonly");
    free(text);
    text = cli_help_text(CLI_CMD_SEND, NULL);
    has(text, "usage: cc-tui send [OPTIONS] SANDBOX TEXT|-");
    has(text, "--wait");
    has(text, "--json");
    free(text);
    text = cli_help_text(CLI_CMD_SCREEN, "local");
    has(text, "local env");
    assert_null(strstr(text, "decode"));
    free(text);
    /* each command's help has its own flags and those of every command, and no other */
    for (const struct cli_cmd *cmd = cli_commands + 1; cmd->name; cmd++) {
        text = cli_help_text(cmd->id, NULL);
        for (int f = 0; f < CLI_FLAG_COUNT; f++) {
            char *line = xasprintf("--%s%s%s", cli_flags[f].name, *cli_flags[f].value ? " " : "",
                                   cli_flags[f].value);
            bool there = flag_line(text, line);
            if (there != (bool)((cmd->flags | CLI_GLOBAL) >> f & 1))
                fail_msg("help of '%s' %s %s", cmd->name, there ? "has" : "lacks", line);
            free(line);
        }
        free(text);
    }
    /* help is given however incomplete the rest is */
    assert_int_equal(parse(&c, ARGS("send", "--help"), &e), 0);
    assert_int_equal(c.cmd, CLI_CMD_SEND);
    cli_release(&c);
    assert_int_equal(parse(&c, ARGS("local", "-h"), &e), 0);
    assert_string_equal(c.group, "local");
    cli_release(&c);
    refused(ARGS("nothing", "--help"), "unknown command 'nothing'; see cc-tui --help");
}

/* A command's help has every option that it takes and none that it refuses. */
static void test_help_of_options(void **state)
{
    (void)state;
    for (int id = 1; cli_commands[id].name; id++) {
        const struct cli_cmd *cmd = &cli_commands[id];
        char *text = cli_help_text((enum cli_cmd_id)id, NULL);

        for (int f = 0; f < CLI_FLAG_COUNT; f++) {
            bool takes = (CLI_GLOBAL | cmd->flags) >> f & 1;
            char line[128];

            snprintf(line, sizeof(line), "--%s%s%s", cli_flags[f].name,
                     *cli_flags[f].value ? " " : "", cli_flags[f].value);
            const char *at = strstr(text, "\nOptions");
            while (at && (at = strstr(at, line)) && !strchr(" \n", at[strlen(line)]))
                at++;
            if (takes != (at != NULL))
                fail_msg("'%s --help' and %s: %s", cmd->name, line, takes ? "lacks it" : "has it");
        }
        free(text);
    }
}

/* Names and letters of flags are there once; rows stand where their ids say. */
static void test_tables(void **state)
{
    (void)state;
    for (int i = 0; i < CLI_FLAG_COUNT; i++)
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(cli_flags[i].name, cli_flags[k].name);
            if (cli_flags[i].letter)
                assert_int_not_equal(cli_flags[i].letter, cli_flags[k].letter);
        }
    for (int i = 1; i < CLI_CMD_COUNT; i++)
        assert_int_equal(cli_commands[i].id, i);
    assert_null(cli_commands[CLI_CMD_COUNT].name);
}

static void test_completion(void **state)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char *text = cli_completion_text(shells[i]);
        has(text, "doctor");
        has(text, "kill-all-confirm");
        free(text);
    }
    assert_null(cli_completion_text("tcsh"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),   cmocka_unit_test(test_flags),
        cmocka_unit_test(test_mistakes),   cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_help),       cmocka_unit_test(test_help_of_options),
        cmocka_unit_test(test_tables),     cmocka_unit_test(test_completion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
