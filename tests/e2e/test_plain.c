/* The line mode of the real program: by pipes with the local provider and the demo agent, on a
 * dumb terminal with a service that has many sandboxes. */
#include "../lib/faultproc.h"
#include "../lib/linerig.h"
#include "../lib/ptyrig.h"
#include "../lib/runcmd.h"

#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON = 20000, OFTEN = 20 };

static struct runcmd home;
static struct faultd *fake;
static char *program, *env[24];
static struct linerig rig;

static int set_up(void **state)
{
    static const char *const names[] = {"CONFIG", "DATA", "STATE", "RUNTIME"};
    const char *b = getenv("B");
    size_t n = 0;

    (void)state;
    program = xasprintf("%s/cc-tui", b ? b : "build/debug");
    runcmd_init(&home);
    for (int i = 0; i < 4; i++)
        env[n++] = xasprintf("CC_TUI_%s_DIR=%s", names[i], home.home);
    env[n++] = xasprintf("HOME=%s", home.home);
    env[n++] = xasprintf("PATH=%s", getenv("PATH"));
    env[n++] = xstrdup("LC_ALL=C.UTF-8");
    env[n++] = xstrdup("TERM=dumb");
    for (int i = 0; i < 3; i++) {
        static const char *const kept[] = {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"};
        if (getenv(kept[i]))
            env[n++] = xasprintf("%s=%s", kept[i], getenv(kept[i]));
    }
    return 0;
}

/* A provider that was started lives on: it is ended by its own command. */
static int tear_down(void **state)
{
    static const char *const stop[] = {"local", "stop", "--yes", NULL};

    (void)state;
    runcmd_start(&home, stop, NULL);
    runcmd_end(&home, SOON);
    runcmd_release(&home);
    for (size_t i = 0; env[i]; i++)
        free(env[i]);
    free(program);
    return 0;
}

static void start(bool pty, const char *flag)
{
    const char *argv[] = {program, "--plain", flag, NULL};

    line_start(&rig, argv, env, pty);
}

static void says(const char *text)
{
    if (line_says(&rig, text, SOON))
        return;
    fprintf(stderr, "%s\n", buf_str(&rig.seen));
    fail_msg("'%s' is not said", text);
}

static void ask(const char *line, const char *answer)
{
    line_type(&rig, line);
    says(answer);
}

static void end(int status)
{
    int is = line_end(&rig, SOON);

    if (is != status) {
        fprintf(stderr, "%s\n", buf_str(&rig.seen));
        fail_msg("ended with %d", is);
    }
    buf_release(&rig.seen);
}

static void no_control(void)
{
    for (size_t i = 0; i < rig.seen.len; i++)
        if ((unsigned char)rig.seen.p[i] < ' ' && rig.seen.p[i] != '\n')
            fail_msg("byte %d in: %.*s", rig.seen.p[i], 40, rig.seen.p + i);
}

static size_t count(const char *text)
{
    size_t n = 0;

    for (const char *p = buf_str(&rig.seen); (p = strstr(p, text)); p += strlen(text))
        n++;
    return n;
}

/* --- by pipes --------------------------------------------------------------------------- */

static void test_talk(void **state)
{
    (void)state;
    start(false, "--local");
    says("cc-tui, project default, local provider. ");
    says(" runs.\n"); /* the one that the first start makes */
    ask("new --tool demo --ask yes --name box", "\n");
    ask("list", "idle: box, demo, ");
    char *row = strstr(rig.seen.p + rig.at, ": box"); /* "2. idle: box" */
    while (row > rig.seen.p && row[-1] != '\n')
        row--;
    char number = *row;
    ask("follow box", "Following box; 'stop' ends it.\n");
    char *text = xasprintf("say %c run echo it is $((6 * 7)), isn't it", number);
    ask(text, "box asks you: run `echo it is $((6 * 7)), isn't it`? 1 yes, 2 yes, and");
    free(text);
    says("sent to box\n");
    assert_int_equal(count("asks you:"), 1);
    ask("asks", "box asks you: run `echo it");
    ask("answer box 3", "answered: no\n");
    says("box has finished");
    ask("say box run seq 40", "asks you: run `seq 40`?");
    ask("answer box 1", "box, Bash, done: seq 40 (40 lines of output)\n");
    says("box has finished.\n"); /* its words were read */
    ask("stop", "No longer followed.\n");
    ask("read box 3", "1. Bash, done: seq 40 (40 lines of output)\n2. asked: run `seq 40`? Answered: "
                      "yes\n3. demo: exit status 0\n");
    ask("open 1", "\n39\n40\n");
    ask("back 1", "1. you: run seq 40\n");
    ask("more 1", "1. Bash, done: seq 40 (40 lines of output)\n");
    ask("more", "2. demo: exit status 0\n");
    ask("more", "That was the last entry.\n");
    ask("back 99", "1. demo: I am the demo agent");
    ask("back", "That was the first entry.\n");
    ask("events 1", ", box: ");
    end((line_type(&rig, "quit"), 0));
}

static void test_hold(void **state)
{
    (void)state;
    start(false, "--local");
    says("Type help");
    ask("say box run true", "asks you: run `true`");
    ask("hold on", "News wait");
    ask("answer box 1", "answered: yes");
    for (int i = 0; i < 400 && !line_said(&rig, "box has finished"); i++) {
        assert_false(line_says(&rig, "box has finished", 20)); /* while no line ends */
        ask("", "\n");
    }
    assert_true(line_said(&rig, "box has finished: exit status 0\n"));
    ask("hold off", "as they come");
    end((line_type(&rig, "quit"), 0));
}

static char *database(size_t *len)
{
    char *path = xasprintf("%s/cc-tui.db", home.home);
    struct err e = {0};
    char *bytes = fs_read(path, 64 << 20, false, len, &e);

    if (!bytes)
        fail_msg("%s", e.text);
    free(path);
    return bytes;
}

/* What was said can be played again, and nothing that is kept is touched by it. */
static void test_replay(void **state)
{
    const char *argv[] = {program, "replay", "box", "--speed", "max", NULL};
    size_t before, after;
    char *was = database(&before), *is;

    (void)state;
    line_start(&rig, argv, env, false);
    says("replay of box, demo, ");
    says("  you: run seq 40\n");
    says("  Bash, done\n1\n2\n");
    says("the end of the replay\n");
    end(0);
    is = database(&after);
    assert_int_equal(before, after);
    assert_memory_equal(was, is, before);
    free(was);
    free(is);
}

/* On the screen by its keys, and all is given back at the end. */
static void test_replay_screen(void **state)
{
    char *argv[] = {program, (char *)"replay", (char *)"--tool", (char *)"claude", (char *)"--speed",
                    (char *)"0.01", (char *)"tests/fixtures/recordings/claude-tool.jsonl", NULL};
    const char *vars[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "E2B_API_KEY", env[0], env[1],
                          env[2], env[3], NULL};
    struct ptyrig r;

    (void)state;
    rig_start(&r, 24, 80, argv, vars);
    assert_true(rig_wait(&r, "REPLAY of claude-tool.jsonl, claude", SOON));
    assert_true(rig_wait(&r, "playing  0:00 of", SOON));
    rig_type(&r, " ");
    assert_true(rig_wait(&r, "paused", SOON));
    rig_type(&r, "\033[C");
    assert_true(rig_wait(&r, "Done: hello.txt holds one line.", SOON));
    rig_type(&r, "\033[D");
    assert_true(rig_wait_gone(&r, "Done: hello.txt", SOON));
    rig_type(&r, "++");
    assert_true(rig_wait(&r, "0.04x", SOON));
    rig_type(&r, "-K");
    assert_true(rig_wait(&r, "this is a replay", SOON));
    assert_true(rig_wait(&r, "0.04x", SOON)); /* slow enough: it is not made faster by that */
    rig_type(&r, "q");
    assert_true(rig_wait_exit(&r, SOON));
    assert_int_equal(WEXITSTATUS(r.status), 0);
    assert_null(rig_not_restored(&r));
    assert_string_equal(r.judge.bad, "");
    rig_stop(&r);
}

static void test_words_that_are_none(void **state)
{
    static const char *const lines[][2] = {
        {"no-such-word", "unknown command 'no-such-word'"},
        {"sent box hello", "did you mean 'send'"},
        {"decode --tool claude", "wants stdin for itself"},
        {"replay box", "A replay runs by itself"},
        {"shell box", "wants stdin for itself"},
        {"keys add e2b", "wants stdin for itself"},
        {"send box -", "'-' is no text here"},
        {"list --local", "--local is said when cc-tui is started, not here"},
        {"--readonly", "There is no screen between these lines"},
        {"say box", "Write 'say NAME' and the text"},
        {"send \"open quote", "quote"},
        {"say box \377\376", "no text in UTF-8"},
        {"read nobody", "there is no sandbox 'nobody'"},
        {"read box many", "'many' is no number"},
        {"more", "Nothing was read yet"},
        {"open 1", "Nothing was read yet"},
        {"stop", "Nothing is followed."},
        {"pause all idle soon", "'soon' is no time"},
        {"pause all idle 9h", "No sandbox is idle for so long."},
        {"kill all of them", "'kill all' is said alone"},
        {"kill", "wants sandboxes or --all"},
        {"project", "The project is default."},
        {"projects set other tool=demo", "'other' is not the current project"},
        {"unlock", "No passphrase protects"},
        {"cc-tui timeout box 20m", "box set\n"}, /* hints can be typed as they stand */
        {"help kill all", "kill all [everything]: kill all of the project"},
        {"help timeout", "usage: cc-tui timeout"},
        {"templates", "1. local/base, "},
        {"timeout box --json 20m", "\"done\":\"set\""},
        {"ls -q", "\ni"},
    };

    (void)state;
    start(false, "--local");
    says("Type help");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        ask(lines[i][0], lines[i][1] + (lines[i][1][0] == '\n'));
    line_send(&rig, "kill box\ny\n");
    says("1 line was typed before the question, and is not taken.\n");
    says("kill 1 sandbox: box? Type y to do it; anything else is no.\n");
    ask("n", "nothing was killed\n");
    line_send(&rig, "kill box\ny");
    says("Type y to do it; anything else is no.\n");
    ask("", "was begun before the question, and is not taken.\n");
    says("nothing was killed\n");
    assert_int_equal(write(rig.in, "say box one\0two\n", 16), 16);
    says("no text in UTF-8");
    line_type(&rig, "logs --follow box");
    ask("stop", "Left. What was begun may go on.\n");
    ask("say box run true", "asks you: run `true`"); /* what was left goes on, and is not heard of */
    ask("answer box 1", "answered: yes");
    assert_false(line_said(&rig, "\033"));
    no_control();
    line_close(&rig);
    says("still running (on this machine, free)");
    end(0);
}

static void test_ends(void **state)
{
    (void)state;
    start(false, "--readonly");
    says("Type help");
    ask("pause all idle", "Nothing is paused with --readonly.");
    ask("kill box", "does nothing with --readonly");
    kill(rig.pid, SIGTERM);
    says("still running");
    end(128 + SIGTERM);
    start(false, "--local");
    line_send(&rig, "kill box\ny"); /* all there is, at once */
    line_close(&rig);
    says("'kill' cannot ask here; give --yes");
    says("unknown command 'y'");
    end(0);
    start(false, "--local");
    line_send(&rig, "list"); /* a last line without its end */
    line_close(&rig);
    says(": box, demo, ");
    end(0);
    start(false, "--local");
    says("Type help");
    ask("timeout box 1", "box set\n");
    says("box is gone: timed out.\n");
    ask("kill all", " of project default, local provider (1 running");
    ask("y", "1 killed");
    ask("list", "No sandbox is up.");
    close(rig.out); /* nobody reads any more */
    rig.out = open("/dev/null", O_RDONLY);
    line_type(&rig, "list");
    line_type(&rig, "list");
    end(0);
}

/* Far more lines at once than one may be long: each is done. */
static void test_script(void **state)
{
    enum { LINES = 300, WIDE = 1000 };
    struct buf b = BUF_INIT;

    (void)state;
    start(false, "--local");
    for (int i = 0; i < LINES; i++)
        buf_addf(&b, "project%*s\n", WIDE, "");
    line_send(&rig, buf_str(&b));
    buf_clear(&b);
    for (int i = 0; i < 80 * WIDE; i++)
        buf_add(&b, "x", 1);
    line_type(&rig, buf_str(&b)); /* no end in sight: this one alone is not taken */
    buf_release(&b);
    ask("nonesuch", "unknown command 'nonesuch'");
    assert_int_equal(count("The project is default."), LINES);
    assert_int_equal(count("That line is too long"), 1);
    line_close(&rig);
    end(0);
}

/* Where nothing happens any more a line that came before the greeting is done all the same. */
static void test_quiet(void **state)
{
    char *was[] = {env[2], env[3]};

    (void)state;
    env[2] = xstrdup("CC_TUI_STATE_DIR=/dev/null/none");
    env[3] = xasprintf("CC_TUI_RUNTIME_DIR=%s/none", home.home);
    start(false, "--local");
    line_send(&rig, "list\n");
    line_close(&rig);
    says("the local provider did not start");
    says("'new --tool TOOL --name NAME' makes one.");
    end(0);
    free(env[2]);
    free(env[3]);
    memcpy(&env[2], was, sizeof(was));
}

/* Somebody who never stops typing is asked all the same. */
static void test_flood(void **state)
{
    const char *argv[] = {"/bin/sh", "-c",
                          "{ printf 'new --tool demo --name late\\nkill all\\n'; yes; } | "
                          "\"$0\" --plain --local",
                          program, NULL};

    (void)state;
    line_start(&rig, argv, env, false);
    says("before the question, and are not taken.\n");
    says("Type y to do it; anything else is no.\n");
    close(rig.out); /* what it makes of all the others is not wanted */
    rig.out = open("/dev/null", O_RDONLY);
    line_end(&rig, SOON);
    assert_int_not_equal(rig.status, -1);
    buf_release(&rig.seen);
}

/* --- on a terminal ---------------------------------------------------------------------- */

static void extra(const char *name, const char *value)
{
    size_t n = 0;

    while (env[n])
        n++;
    env[n] = xasprintf("%s=%s", name, value);
}

/* What narrows and orders the list of the screen does so here. */
static void list_is_narrowed(void)
{
    for (int i = 0; i < 400 && !line_said(&rig, "12. "); i++) {
        line_type(&rig, "list");
        line_says(&rig, "12. ", 50);
    }
    size_t paused = count(". paused: "), running = count(". running: ");
    ask("filter state:paused", "Only what has state:paused: 1.");
    ask("filter nonesuch", "Only what has nonesuch: 0.");
    assert_int_equal(count(". paused: "), paused + 1);
    assert_int_equal(count(". running: "), running);
    ask("filter", "12. ");
    ask("sort by cost", "The list is sorted: the most expensive.");
    ask("sort by colour", "There is no such order.");
    ask("help sort by", "made name agent state doing left age cost");
    ask("sort", "The list is sorted: those that ask you");
}

/* Who comes back after a day is told the newest, and how much there was. */
static void much_is_held(void)
{
    faultd_config(fake, "{\"reset\":true,\"sandboxes\":250}");
    start(false, "--no-color");
    ask("all projects", "from now on");
    for (int i = 0; i < 400 && !line_said(&rig, "250"); i++) {
        line_type(&rig, "list");
        line_says(&rig, "250", 50);
    }
    ask("hold on", "News wait");
    faultd_config(fake, "{\"reset\":true,\"sandboxes\":0}");
    static const char left[] = "50 older pieces of news are left out here; 'events' has what";
    for (int i = 0; i < 400 && !line_said(&rig, left); i++) {
        assert_false(line_says(&rig, left, 100)); /* while no line ends */
        ask("", "\n");
    }
    says(left);
    ask("hold off", "as they come");
    assert_int_equal(count(" is gone: "), 200);
    end((line_type(&rig, "quit"), 0));
}

static void test_terminal(void **state)
{
    (void)state;
    fake = faultd_start((const char *[]){"--sandboxes", "11", "--paused", "1", NULL});
    extra("E2B_API_URL", faultd_url(fake));
    extra("E2B_SANDBOX_URL", faultd_url(fake));
    extra("E2B_API_KEY", "e2b_0123456789abcdef0123456789abcdef01234567");
    start(true, "--no-color");
    says("Type help for the words.\r\n> ");
    assert_true(line_said(&rig, "****4567"));
    assert_false(line_said(&rig, "89abcdef"));
    line_send(&rig, "half a line");
    line_says(&rig, "half a line", SOON);
    line_send(&rig, "\003");
    says("The line is cleared. Ctrl-C once more within a second");
    says("\r\n> ");
    ask("all projects", "from now on");
    list_is_narrowed();
    ask("kill all everything", "Type the number 12 to do it; anything else is no.\r\n> ");
    ask("y", "nothing was killed");
    ask("kill all everything", "Type the number 12 to do it");
    ask("11", "nothing was killed");
    ask("kill all everything", "Type the number 12 to do it");
    line_send(&rig, "\003"); /* that is no, and no step towards the end */
    says("nothing was killed");
    ask("kill all everything", "Type the number 12 to do it");
    ask("12", "12 killed");
    ask("list", "No sandbox is up.");
    int pressed = 0;
    do { /* twice within a second, however slow this machine is */
        line_send(&rig, "\003");
    } while (line_says(&rig, "The line is cleared", SOON) && ++pressed < OFTEN);
    assert_true(pressed < OFTEN);
    assert_false(line_said(&rig, "\033"));
    end(0);
    start(true, "--no-color");
    says("\r\n> ");
    line_close(&rig);
    end(0);
    start(true, "--no-color");
    says("\r\n> ");
    kill(rig.pid, SIGHUP);
    end(128 + SIGHUP);
    much_is_held();
    faultd_stop(fake);
}

int main(void)
{
    const struct CMUnitTest local[] = {
        cmocka_unit_test(test_talk),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_replay_screen),
        cmocka_unit_test(test_words_that_are_none),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_script),
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_terminal),
    };

    return cmocka_run_group_tests(local, set_up, tear_down);
}
