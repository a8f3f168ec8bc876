/* The ini reader, the tool table, and what tools.conf does to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cct/agent.h>
#include <cct/config/ini.h>
#include <cct/config/tools.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_line(void *ctx, const char *section, const char *key, const char *value,
                    int line)
{
    if (key)
        buf_addf(ctx, "%d %s.%s=<%s>\n", line, section, key, value);
    else
        buf_addf(ctx, "%d [%s]\n", line, section);
}

static void on_say(void *ctx, const char *message)
{
    buf_addf(ctx, "! %s\n", message);
}

static void check_ini(const char *text, size_t len, int bad, const char *want)
{
    struct buf b = BUF_INIT;
    const struct ini_reader r = {on_line, on_say, &b};

    assert_int_equal(ini_parse(text, len, "f", &r), bad);
    assert_string_equal(buf_str(&b), want);
    buf_release(&b);
}

#define S(x) x, sizeof(x) - 1

static void test_ini(void **state)
{
    (void)state;
    check_ini(S(""), 0, "");
    check_ini(
        S("\xEF\xBB\xBFtop = 1\r\n\r\n  # note\n[ screen ]  # more\n theme=dark # why\nb =\n"),
        0, "1 .top=<1>\n4 [screen]\n5 screen.theme=<dark>\n6 screen.b=<>\n");
    check_ini(S("[c]\nfg = #ff8800\nx = a # b # c\ny = a#b\nz = #\n"), 0,
              "1 [c]\n2 c.fg=<#ff8800>\n3 c.x=<a>\n4 c.y=<a#b>\n5 c.z=<>\n");
    check_ini(S("a = \" x # \\\"y\\\" \\\\ \\n\\t\\q \" # note\ncmd = run \"a # b\" c\ne==\n"),
              0, "1 .a=< x # \"y\" \\ \n\t\\q >\n2 .cmd=<run \"a # b\" c>\n3 .e=<=>\n");
    check_ini(S("nothing\n= 3\n[open\n[a] b\nx = \"open\ny = \"a\" b\nn\0l = 1\nlast = ok"), 7,
              "! f:1: expected \"key = value\" or \"[section]\"\n"
              "! f:2: expected \"key = value\" or \"[section]\"\n"
              "! f:3: expected \"[section]\"\n"
              "! f:4: expected \"[section]\"\n"
              "! f:5: the quoted value does not end with a quote\n"
              "! f:6: the quoted value does not end with a quote\n"
              "! f:7: a NUL byte in the line\n"
              "8 .last=<ok>\n");
}

static char *join(char *const *words)
{
    struct buf b = BUF_INIT;

    for (size_t i = 0; words[i]; i++)
        buf_addf(&b, "%s%s", i ? "|" : "", words[i]);
    return buf_detach(&b, NULL);
}

static void check_words(const char *command, const char *want)
{
    struct err e = {0};
    char **words = tool_words(command, &e), *got;

    if (!want) {
        assert_null(words);
        assert_int_equal(e.code, ERR_INVALID);
        return;
    }
    assert_non_null(words);
    got = join(words);
    assert_string_equal(got, want);
    free(got);
    str_list_free(words);
}

static void test_provider_names(void **state)
{
    const char *names[TOOL_NAMES];
    (void)state;

    assert_int_equal(tool_provider_names(0, names), 0);
    assert_null(names[0]);
    assert_int_equal(tool_provider_names(TOOL_OPENAI | TOOL_GITHUB, names), 2);
    assert_true(str_eq(names[0], "openai") && str_eq(names[1], "github") && !names[2]);
    assert_int_equal(tool_provider_names(~0u, names), 5); /* and no unknown bit */
}

static void test_words(void **state)
{
    (void)state;
    check_words("  a  b\tc ", "a|b|c");
    check_words("run 'two words' \"and \\\"more\\\"\" x'y'z\\ w '' \"a'b\"",
                "run|two words|and \"more\"|xyz w||a'b");
    check_words("echo $HOME `ls` '\\n'", "echo|$HOME|`ls`|\\n");
    check_words("", NULL);
    check_words("  \n", NULL);
    check_words("a 'b", NULL);
    check_words("a \"b\\\"", NULL);
}

static void test_table(void **state)
{
    struct tools *t = tools_new();
    const struct tool *c = tools_find(t, "claude"), *k;
    char *s;

    (void)state;
    assert_non_null(c);
    s = join(c->argv);
    assert_string_equal(s, "claude|-p|--input-format|stream-json|--output-format|stream-json|"
                           "--verbose|--include-partial-messages|--replay-user-messages|"
                           "--dangerously-skip-permissions");
    free(s);
    s = join(c->env);
    assert_string_equal(s,
                        "IS_SANDBOX=1|DISABLE_AUTOUPDATER=1|DISABLE_TELEMETRY=1|"
                        "DISABLE_ERROR_REPORTING=1|CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1|"
                        "CLAUDE_CODE_MAX_RETRIES=3");
    free(s);
    assert_string_equal(c->template_id, "claude");
    assert_int_equal(c->needs, TOOL_ANTHROPIC | TOOL_ANTHROPIC_TOKEN);
    assert_true(tools_find(t, "demo")->local_only);
    assert_string_equal(tools_find(t, "demo")->argv[0], "demo-agent");
    assert_string_equal(tools_find(t, "demo")->adapter, "claude");
    assert_int_equal(tools_find(t, "shell")->needs, 0);
    /* every tool has a decoder, and they agree about how it is driven */
    for (size_t i = 0; (k = tools_at(t, i)); i++) {
        const struct agent_adapter *a = agent_adapter_find(k->adapter);

        if (a)
            assert_int_equal((int)a->mode, (int)k->mode);
        assert_true(k->argv[0] && k->label && k->template_id && k->env);
    }
    tools_free(t);
}

static void check_command(const struct tool *t, struct tool_choice c, const char *want)
{
    char **words = tool_command(t, &c), *got = join(words);

    assert_string_equal(got, want);
    free(got);
    str_list_free(words);
}

static void test_command(void **state)
{
    struct tools *t = tools_new();
    const struct tool *codex = tools_find(t, "codex"), *pi = tools_find(t, "pi");

    (void)state;
#define CODEX "--json|--dangerously-bypass-approvals-and-sandbox|--skip-git-repo-check|-c|" \
              "check_for_update_on_startup=false|-c|analytics.enabled=false|"
    check_command(codex, (struct tool_choice){0}, "codex|exec|" CODEX "-m|gpt-6.2-sol|-");
    check_command(codex, (struct tool_choice){.model = "m", .resume_id = "id-1"},
                  "codex|exec|resume|" CODEX "-m|m|id-1|-");
    check_command(pi, (struct tool_choice){.resume_id = "s", .prompt_path = "/p", .ask = true},
                  "pi|--mode|rpc|--append-system-prompt|/p|--session|s");
    /* each version has a catalogue of its own: no name of ours may be missing in it */
    assert_null(pi->model);
    assert_null(tools_find(t, "opencode")->model);
    assert_null(tools_find(t, "opencode-serve")->model);
    assert_null(tools_find(t, "claude")->model);
    check_command(tools_find(t, "claude"), (struct tool_choice){.ask = true},
                  "claude|-p|--input-format|stream-json|--output-format|stream-json|--verbose|"
                  "--include-partial-messages|--replay-user-messages|--permission-prompt-tool|"
                  "stdio");
    check_command(tools_find(t, "shell"),
                  (struct tool_choice){.model = "m", .prompt_path = "/p", .resume_id = "s"}, "sh");
    assert_int_equal(tool_needs(pi, NULL), TOOL_OPENROUTER | TOOL_ANTHROPIC | TOOL_OPENAI);
    assert_int_equal(tool_needs(pi, "anthropic/x"), TOOL_ANTHROPIC);
    assert_int_equal(tool_needs(pi, "github/x"), pi->needs);
    assert_int_equal(tool_needs(pi, "plain"), pi->needs);
    assert_int_equal(tool_needs(codex, "anthropic/x"), TOOL_OPENAI);
    assert_int_equal(tools_find(t, "gemini")->needs, 0);
    assert_string_equal(tool_needs_env(tools_find(t, "gemini"), NULL)[0], "GEMINI_API_KEY");
    assert_null(tool_needs_env(codex, NULL));
    tools_free(t);
}

static void test_providers(void **state)
{
    (void)state;
    assert_string_equal(tool_provider_name(TOOL_OPENROUTER), "openrouter");
    assert_int_equal(tool_provider_bit("anthropic_token"), TOOL_ANTHROPIC_TOKEN);
    assert_int_equal(tool_provider_bit("e2b"), 0);
    assert_null(tool_provider_name(1u << 20));
    assert_string_equal(tool_provider_env(TOOL_ANTHROPIC, 0), "ANTHROPIC_API_KEY");
    assert_null(tool_provider_env(TOOL_ANTHROPIC, 1));
    assert_string_equal(tool_provider_env(TOOL_OPENAI, 1), "CODEX_API_KEY");
    assert_null(tool_provider_env(TOOL_OPENAI, 2));
    assert_null(tool_provider_env(0, 0));
}

/* Load `text`; what was said is in `said`, without the folder's name. */
static struct tools *load(const char *text, struct buf *said)
{
    char path[] = "/tmp/cct-tools-XXXXXX";
    const char *p;
    struct tools *t = tools_new();
    struct err e = {0};
    struct buf b = BUF_INIT;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    assert_int_equal(tools_load(t, path, on_say, &b, &e), 0);
    for (const char *s = buf_str(&b); *s; s = p) {
        p = strstr(s, path);
        buf_add(said, s, p ? (size_t)(p - s) : strlen(s));
        p = p ? p + strlen(path) : strchr(s, 0);
    }
    unlink(path);
    buf_release(&b);
    return t;
}

static void test_override(void **state)
{
    struct buf said = BUF_INIT;
    struct tools *t =
        load("[tool claude]\ntemplate = mine\ntimeout = 1h30m\nneeds = openrouter\n"
             "env.DISABLE_TELEMETRY = 0\nenv.NO_COLOR = 1\nlabel = My Claude\n"
             "[tool new-one]\nadapter = claude\n"
             "command = agent --json 'two words'\nneeds = anthropic openai\n"
             "resume = chat go-on\nmodels = openai\nmodel_names = qualified\nask = yes\n"
             "ask_command = agent --ask\nmodel = m\nmodel_flag = -m\nskills = .s\n"
             "prompt_flag = --sys\nprompt_file = .mine/RULES\n"
             "needs_env = MY_API_KEY MY_TOKEN\n[tool gemini]\nneeds_env = none\n"
             "[tool far]\nadapter = claude\ncommand = /opt/x/claude -p\n"
             "[tool pi]\ncommand = sh -c 'exec pi'\n",
             &said);
    const struct tool *c = tools_find(t, "claude"), *n = tools_find(t, "new-one");
    char *s;

    (void)state;
    assert_string_equal(buf_str(&said), "");
    assert_string_equal(c->template_id, "mine");
    assert_string_equal(c->label, "My Claude");
    assert_string_equal(c->argv[0], "claude");
    assert_int_equal(c->timeout_s, 5400);
    assert_int_equal(c->needs, TOOL_OPENROUTER);
    s = join(c->env);
    assert_non_null(strstr(s, "|DISABLE_TELEMETRY=0|"));
    assert_null(strstr(s, "DISABLE_TELEMETRY=1"));
    assert_true(str_ends(s, "|NO_COLOR=1"));
    free(s);
    assert_non_null(n);
    s = join(n->argv);
    assert_string_equal(s, "agent|--json|two words");
    free(s);
    assert_string_equal(n->label, "new-one");
    assert_string_equal(n->template_id, "base");
    assert_int_equal(n->needs, TOOL_ANTHROPIC | TOOL_OPENAI);
    assert_int_equal(n->timeout_s, 0);
    assert_false(n->local_only);
    assert_string_equal(tools_find(t, "far")->resume[0], "--resume");
    assert_null(tools_find(t, "pi")->resume);
    assert_true(n->qualified && n->asks && str_eq(n->ask_argv[1], "--ask"));
    assert_true(str_eq(n->resume[0], "chat") && str_eq(n->resume[1], "go-on"));
    assert_true(str_eq(n->models[0], "openai") && str_eq(n->model, "m"));
    assert_true(str_eq(n->model_flag, "-m") && str_eq(n->prompt_flag, "--sys"));
    assert_true(str_eq(n->prompt_file, ".mine/RULES") && str_eq(n->skills_dir, ".s"));
    assert_true(str_eq(n->needs_env[0], "MY_API_KEY") && str_eq(n->needs_env[1], "MY_TOKEN"));
    assert_null(n->needs_env[2]);
    assert_null(tools_find(t, "gemini")->needs_env);
    assert_null(tool_needs_env(n, "anthropic/x")); /* that key, and no other */
    assert_ptr_equal(tool_needs_env(n, "google/x"), n->needs_env);
    tools_free(t);
    buf_release(&said);
}

static void test_mistakes(void **state)
{
    struct buf said = BUF_INIT;
    struct tools *t =
        load("stray = 1\n[tools]\nx = 1\n[tool claude]\ntemplat = t\ntimeout = soon\n"
             "needs = antropic none\nenv.1X = 1\ncommand = 'open\nzzzzzzzz = 1\n"
             "[tool UP]\nadapter = claude\n[tool a]\nadapter = cloude\ncommand = x\n"
             "[tool b]\nadapter = shell\n[tool shell]\nlabel = Sh\nask = maybe\n"
             "[tool codex]\nask = yes\nresume = a b c\n"
             "needs_env = PATH XDG_KEY OPENAI_API_KEY A-B OK_KEY\n",
             &said);

    (void)state;
    assert_string_equal(buf_str(&said),
                        "! :1: \"stray\" stands before the first [tool NAME]\n"
                        "! :2: unknown section \"tools\", expected \"tool NAME\"\n"
                        "! :5: unknown key \"templat\", did you mean \"template\"?\n"
                        "! :6: timeout: expected a time like 90, 15m or 1h30m up to 24h\n"
                        "! :7: unknown provider \"antropic\", did you mean \"anthropic\"?\n"
                        "! :8: \"1X\" is no name of an environment variable\n"
                        "! :9: the command has an open quote\n"
                        "! :10: unknown key \"zzzzzzzz\"\n"
                        "! :11: \"UP\" is no name of a tool: a-z, 0-9, - and _, at most 32\n"
                        "! :20: ask: expected yes or no\n"
                        "! :24: \"PATH\" is no variable that a tool's key is in\n"
                        "! :24: \"XDG_KEY\" is no variable that a tool's key is in\n"
                        "! :24: OPENAI_API_KEY holds the key of openai: write needs = openai\n"
                        "! :24: \"A-B\" is no name of an environment variable\n"
                        "! :21: tool \"codex\" does not ask: it has no ask_command\n"
                        "! :21: tool \"codex\" does not resume: its resume has more than two "
                        "words\n"
                        "! :13: tool \"a\" is left out: adapter \"cloude\" is not known, did you "
                        "mean \"claude\"?\n"
                        "! :16: tool \"b\" is left out: it has no command\n");
    assert_string_equal(tools_find(t, "codex")->needs_env[0], "OK_KEY");
    assert_null(tools_find(t, "codex")->needs_env[1]);
    assert_null(tools_find(t, "a"));
    assert_null(tools_find(t, "b"));
    assert_string_equal(tools_find(t, "claude")->argv[0], "claude");
    assert_string_equal(tools_find(t, "shell")->label, "Sh");
    tools_free(t);
    buf_release(&said);
}

static void test_files(void **state)
{
    struct tools *t = tools_new();
    struct err e = {0};
    struct buf b = BUF_INIT;

    (void)state;
    assert_int_equal(tools_load(t, "/nonexistent/tools.conf", on_say, &b, &e), 0);
    assert_int_equal(b.len, 0);
    assert_true(tools_load(t, "/tmp", on_say, &b, &e) < 0);
    assert_true(e.text[0]);
    tools_free(t);
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ini),      cmocka_unit_test(test_provider_names),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_table),    cmocka_unit_test(test_command),
        cmocka_unit_test(test_providers),
        cmocka_unit_test(test_override), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests_name("config_tools", tests, NULL, NULL);
}
