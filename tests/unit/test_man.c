/* The manual pages say what the tables of the program say: they are written here from
 * the tables (UPDATE=1) and compared with the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cct/cli.h>
#include <cct/config/options.h>
#include <cct/config/tools.h>
#include <cct/ui/keymap.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text for roff: what means something to it is escaped. */
static void add(struct buf *b, const char *s)
{
    for (bool start = true; *s; s++) {
        if (*s == '\\')
            buf_adds(b, "\\e");
        else if (*s == '-')
            buf_adds(b, "\\-");
        else if ((*s == '.' || *s == '\'') && start)
            buf_addf(b, "\\&%c", *s);
        else
            buf_addc(b, *s);
        start = *s == '\n';
    }
}

static void add_flags(struct buf *b, cli_set which)
{
    for (int f = 0; f < CLI_FLAG_COUNT; f++) {
        const struct cli_flag_row *r = &cli_flags[f];
        if (!(which >> f & 1))
            continue;
        buf_adds(b, ".TP\n");
        if (r->letter)
            buf_addf(b, "\\fB\\-%c\\fR, ", r->letter);
        buf_adds(b, "\\fB\\-\\-");
        add(b, r->name);
        buf_adds(b, "\\fR");
        if (*r->value) {
            buf_adds(b, " \\fI");
            add(b, r->value);
            buf_adds(b, "\\fR");
        }
        buf_adds(b, "\n");
        add(b, r->help);
        buf_adds(b, "\n");
    }
}

static void add_command(struct buf *b, const struct cli_cmd *cmd)
{
    buf_adds(b, ".SS \"");
    add(b, cmd->name);
    if (*cmd->args) {
        buf_adds(b, " ");
        add(b, cmd->args);
    }
    buf_adds(b, "\"\n");
    add(b, cmd->help);
    buf_adds(b, ".\n");
    if (*cmd->aliases) {
        buf_adds(b, "Also: ");
        add(b, cmd->aliases);
        buf_adds(b, ".\n");
    }
    add_flags(b, cmd->flags);
}

static void add_plain_words(struct buf *b)
{
    buf_adds(b, ".SH LINE MODE\nWith\n.B \\-\\-plain\ncc\\-tui works by lines, for screen readers and "
                "for terminals that cannot place text: it says in\nwhole sentences who asks, who has "
                "finished or failed, whose time is nearly up and what has ended,\nand takes the commands "
                "above, these words, and numbers of the list in the place of names.\n");
    for (const struct cli_plain_word *w = cli_plain_words; w->name; w++) {
        buf_adds(b, ".TP\n.B ");
        add(b, w->name);
        if (*w->args) {
            buf_adds(b, " ");
            add(b, w->args);
        }
        buf_adds(b, "\n");
        add(b, w->help);
        if (*w->aliases) {
            buf_adds(b, " (also: ");
            add(b, w->aliases);
            buf_adds(b, ")");
        }
        buf_adds(b, "\n");
    }
}

static const char synopsis[] =
    ".TH CC\\-TUI 1\n.SH NAME\ncc\\-tui \\- dashboard for AI agents in E2B sandboxes\n"
    ".SH SYNOPSIS\n.B cc\\-tui\n[\\fIoptions\\fR]\n.br\n.B cc\\-tui\n[\\fIoptions\\fR] "
    "\\fIcommand\\fR [\\fIarguments\\fR]\n.SH DESCRIPTION\n"
    "Without a command the screen is opened; each command does one thing without it.\n"
    "A sandbox is named by its id, the begin of one (6 characters and more), or its name.\n"
    "Without any key the local provider is used. Keys are never arguments.\n";

static const char ending[] =
    ".SH KEYS OF ACCOUNTS\nOne order holds for E2B and for the providers of agents: the environment, "
    "the project's stored key,\nthe user's stored key, and for E2B at last the file of the E2B CLI. "
    "The nearest level that has a key wins,\neven when its key is refused or cannot be opened; "
    "nothing falls back in silence. A stored E2B key is sent\nonly to the service that it was "
    "added for. Keys of a project that a\n.I .cc\\-tui\nfile chose are used after\n"
    ".BR \"cc\\-tui keys trust\" .\nWith\n.B \\-\\-local\nno E2B key is used. Stored keys are "
    "sealed; the data key lies in\n.I ~/.config/cc\\-tui/vault\\-*.key\nor is sealed by a "
    "passphrase.\n"
    ".SH ENVIRONMENT\n.TP\n.B E2B_API_KEY\nkey of the account; it is taken out of the "
    "environment at the start\n.TP\n.BR E2B_DOMAIN \", \" E2B_API_URL \", \" E2B_SANDBOX_URL\n"
    "another deployment than the cloud\n"
    ".TP\n.BR SSL_CERT_FILE \", \" CURL_CA_BUNDLE\n"
    "certificates to trust instead of the system's; the option net.ca_file stands above them\n"
    ".TP\n.BR https_proxy \", \" ALL_PROXY \", \" NO_PROXY\n"
    "a proxy for what is not on this machine\n.TP\n.B CC_TUI_\\fISECTION\\fR_\\fINAME\\fR\n"
    "an option of cc\\-tui.conf(5)\n.TP\n.BR CC_TUI_CONFIG_DIR \", \" CC_TUI_DATA_DIR \", \" "
    "CC_TUI_STATE_DIR \", \" CC_TUI_RUNTIME_DIR \", \" CC_TUI_CACHE_DIR\nplaces instead of the XDG ones\n.TP\n"
    ".BR NO_COLOR \", \" CLICOLOR_FORCE\ncolours never, always\n"
    ".SH EXIT STATUS\n0 done; 1 failed; 2 wrong usage or no terminal; 3 some of several "
    "failed;\n4 key missing or refused; 5 not found; 6 cannot reach the service;\n"
    "7 declined at the question; 130 interrupted. With\n.B send \\-\\-wait\n"
    "the turn's outcome: 0 ok, 1 failed or truncated, 130 interrupted.\n"
    ".SH SEE ALSO\n.BR cc\\-tui.conf (5)\n";

static char *page_program(void)
{
    struct buf b = BUF_INIT;
    buf_adds(&b, synopsis);
    buf_adds(&b, ".SH OPTIONS\nThese stand with every command.\n");
    add_flags(&b, CLI_GLOBAL);
    buf_adds(&b, ".SH COMMANDS\n");
    for (const struct cli_cmd *cmd = cli_commands + 1; cmd->name; cmd++)
        add_command(&b, cmd);
    add_plain_words(&b);
    buf_adds(&b, ending);
    return buf_detach(&b, NULL);
}

static void add_actions(struct buf *b)
{
    struct keymap *k = keymap_new();
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
        buf_adds(b, ".TP\n.B ");
        add(b, action_name((enum action)a));
        buf_adds(b, "\n");
        add(b, action_help((enum action)a));
        buf_adds(b, " (");
        add(b, keymap_keys(k, (enum action)a));
        buf_adds(b, ")\n");
    }
    keymap_free(k);
}

static void add_tools(struct buf *b)
{
    const char *key, *help;

    buf_adds(b, ".SH TOOLS\nThe file\n.I ~/.config/cc\\-tui/tools.conf\nchanges the agents that "
                "are known and adds others, one section [tool NAME] each:\n.PP\n.nf\n"
                "[tool qwen]\nneeds = none\nneeds_env = DASHSCOPE_API_KEY\n"
                "[tool mine]\nadapter = claude\ncommand = \"my-agent --json 'two words'\"\n"
                "needs = anthropic openrouter\n.fi\n.PP\n"
                "What lacks is told before a sandbox is made, with the places where it could be "
                "set.\n");
    for (size_t i = 0; (key = tools_key(i, &help)); i++) {
        buf_adds(b, ".TP\n.B ");
        add(b, key);
        buf_adds(b, "\n");
        add(b, help);
        buf_adds(b, "\n");
    }
    buf_adds(b, ".SH MODELS\nThe file\n.I ~/.config/cc\\-tui/models.conf\nadds models to choose "
                "from and changes prices: sections [model PROVIDER/NAME] with label, provider, "
                "input, output, cache_read and cache_write (USD for 1M tokens) and date, and "
                "[sandbox] with vcpu_second, gib_second (USD) and date.\n"
                "Both files, the theme and this one are looked at by\n"
                ".BR \"cc\\-tui config check\" .\n");
}

static char *page_config(void)
{
    struct buf b = BUF_INIT;
    struct config c;
    const char *section, *name, *help, *last = "";
    char value[64];
    enum option_source src;

    config_load(&c, NULL, NULL);
    buf_adds(&b, ".TH CC\\-TUI.CONF 5\n.SH NAME\ncc\\-tui.conf \\- options of cc\\-tui\n"
                 ".SH DESCRIPTION\n"
                 "Read from ~/.config/cc\\-tui/cc\\-tui.conf. Lines are [section], key = value, "
                 "and comments that begin with #.\nA flag wins over the environment, that "
                 "over the file .cc\\-tui of a project, that over this file. A project's file\n"
                 "may set how things look and what new sandboxes are like, nothing else.\n"
                 "A mistake is told with its line, and the value stays as it was.\n"
                 ".SH OPTIONS\n");
    for (size_t i = 0; config_at(&c, i, &section, &name, value, sizeof(value), &src, &help);
         i++) {
        if (strcmp(last, section) != 0)
            buf_addf(&b, ".SS [%s]\n", section);
        last = section;
        buf_adds(&b, ".TP\n.B ");
        add(&b, name);
        buf_adds(&b, " = ");
        add(&b, value);
        buf_adds(&b, "\n");
        add(&b, help);
        buf_adds(&b, "\n");
    }
    config_release(&c);
    buf_adds(&b, ".SS [keys]\nAn action and its keys, such as\n.B kill = D F9\n");
    add_actions(&b);
    add_tools(&b);
    buf_adds(&b, ".SH SEE ALSO\n.BR cc\\-tui (1)\n");
    return buf_detach(&b, NULL);
}

static void compare(const char *path, char *want)
{
    struct err e = {0};
    if (getenv("UPDATE")) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(want, f);
        assert_int_equal(fclose(f), 0);
    }
    char *have = fs_read(path, 1 << 20, false, NULL, &e);
    assert_non_null(have);
    assert_string_equal(have, want);
    free(have);
    free(want);
}

static void test_program(void **state)
{
    (void)state;
    compare("docs/cc-tui.1", page_program());
}

static void test_config(void **state)
{
    (void)state;
    compare("docs/cc-tui.conf.5", page_config());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_program),
                                       cmocka_unit_test(test_config)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
