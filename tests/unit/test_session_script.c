/* The session folder's text forms: quoting is tried with a real shell, the look into the
 * folder with a real folder, the rest by examples. */
#include "../../src/jobs/session_script.h"
#include "../../src/jobs/session_start.h"
#include "../lib/tmpdir.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char home[64];

/* Output of sh -c script sh args...; HOME is our scratch folder. */
static char *sh(const char *script, const char *a, const char *b, const char *c, size_t *len,
                int *status)
{
    struct buf out = BUF_INIT;
    int fds[2], st = 0;
    char block[4096];
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
        setenv("HOME", home, 1);
        execlp("sh", "sh", "-c", script, "sh", a, b, c, (char *)NULL);
        _exit(99);
    }
    close(fds[1]);
    while ((n = read(fds[0], block, sizeof(block))) > 0)
        buf_add(&out, block, (size_t)n);
    close(fds[0]);
    waitpid(pid, &st, 0);
    if (status)
        *status = WIFEXITED(st) ? WEXITSTATUS(st) : -1;
    return buf_detach(&out, len);
}

static void put(const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/.cc-tui/s1/%s", home, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int setup(void **state)
{
    (void)state;
    return tmpdir_make(home, sizeof(home), "script");
}

static int teardown(void **state)
{
    (void)state;
    return tmpdir_remove(home);
}

static void quoting_survives_a_shell(void **state)
{
    static const char *const words[] = {
        "",     "plain", "it's", "a b\tc",     "$HOME `id` $(id)",
        "\\\"", "-n",    "''",   "line\nline", "*?[a]~!#;&|<>"};
    (void)state;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct buf b = BUF_INIT;
        size_t len;
        char *out;

        buf_adds(&b, "printf %s ");
        session_quote(&b, words[i]);
        out = sh(buf_str(&b), NULL, NULL, NULL, &len, NULL);
        assert_string_equal(out, words[i]);
        free(out);
        buf_release(&b);
    }
}

static void cli_script_runs_its_words(void **state)
{
    char *argv[] = {(char *)"printf", (char *)"<%s>", (char *)"a'b", (char *)"c d", NULL};
    char *claude[] = {(char *)"/opt/bin/claude", (char *)"-p", NULL};
    char *codex[] = {(char *)"codex", (char *)"exec", (char *)"--json", (char *)"-", NULL};
    char *flag[] = {(char *)"--resume", NULL};
    char *word[] = {(char *)"exec", (char *)"resume", NULL};
    struct session_cli c = {.argv = argv, .resume_id = "x"};
    struct buf b = BUF_INIT;
    size_t len;
    char *out;
    (void)state;

    session_cli_script(&b, &c);
    out = sh(buf_str(&b), NULL, NULL, NULL, &len, NULL);
    assert_string_equal(out, "<a'b><c d>");
    free(out);
    buf_clear(&b);
    c = (struct session_cli){.argv = claude, .resume = flag, .resume_id = "id-1"};
    session_cli_script(&b, &c);
    assert_non_null(strstr(buf_str(&b), "exec '/opt/bin/claude' '-p' \"$@\" '--resume' 'id-1'\n"));
    buf_clear(&b);
    c = (struct session_cli){.argv = codex, .resume = word, .resume_id = "id-2"};
    session_cli_script(&b, &c);
    assert_non_null(strstr(buf_str(&b), "exec 'codex' 'exec' 'resume' '--json' \"$@\" 'id-2' '-'\n"));
    buf_clear(&b);
    c = (struct session_cli){.argv = argv, .command = "echo \"$0\" 'q'"};
    session_cli_script(&b, &c);
    out = sh(buf_str(&b), NULL, NULL, NULL, &len, NULL);
    assert_string_equal(out, "sh q\n");
    free(out);
    buf_release(&b);
}

/* The model stands behind the words of the tool, quoted; none where none was chosen. */
static void cli_script_gets_what_was_chosen(void **state)
{
    char *argv[] = {(char *)"printf", (char *)"<%s>", (char *)"a", NULL};
    struct session_cli c = {.argv = argv, .model_flag = "--model", .prompt_flag = "--prompt"};
    struct buf b = BUF_INIT;
    size_t len;
    char *out;
    (void)state;

    session_cli_script(&b, &c);
    out = sh(buf_str(&b), NULL, NULL, NULL, &len, NULL);
    assert_string_equal(out, "<a>");
    free(out);
    buf_clear(&b);
    c.model = "it's $HOME";
    session_cli_script(&b, &c);
    out = sh(buf_str(&b), NULL, NULL, NULL, &len, NULL);
    assert_string_equal(out, "<a><--model><it's $HOME>");
    free(out);
    buf_release(&b);
}

static void what_git_says_is_told_clean(void **state)
{
    static const struct {
        const char *said, *told;
    } t[] = {
        {"", ""},
        {"Cloning into 'web'...\nfatal: Remote branch x not found in upstream origin\n",
         "fatal: Remote branch x not found in upstream origin"},
        {"Cloning into 'web'...\r\nremote: Repository not found.\r\n"
         "fatal: repository 'https://me:pa55@github.com/a/b.git/' not found\n",
         "remote: Repository not found; fatal: repository 'https://github.com/a/b.git/' not found"},
        {"fatal: unable to connect to h:\nh: errno=Connection refused\n\n",
         "fatal: unable to connect to h: h: errno=Connection refused"},
        {"\033[31mfatal:\033[0m no \033]0;title\007good\n", "fatal: no good"},
        {"error: the header x-key-0123456789 was refused\n",
         "error: the header **** was refused"},
        {"remote: Counting objects: 100% (3/3)\nfatal: early EOF\n", "fatal: early EOF"},
        {"something else\nand more\n", "and more"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        char *s = session_git_says(t[i].said, strlen(t[i].said), "x-key-0123456789");

        assert_string_equal(s, t[i].told);
        free(s);
    }
    char long_text[4000];
    memset(long_text, 'x', sizeof(long_text));
    char *s = session_git_says(long_text, sizeof(long_text), NULL);
    assert_true(strlen(s) <= 300);
    free(s);
}

static void inbox_names(void **state)
{
    char name[96];
    (void)state;

    session_inbox_name(name, sizeof(name), 1764437000123, "abc_9");
    assert_string_equal(name, "1764437000123-abc_9");
    session_inbox_name(name, sizeof(name), 5, "a-b/../c");
    assert_string_equal(name, "0000000000005-a_b____c");
    session_inbox_name(name, 16, 5, "abcdef");
    assert_string_equal(name, "0000000000005-a");
}

static void texts_match_but_for_white_space(void **state)
{
    (void)state;
    assert_true(session_same_text("go on", " go on\r\n"));
    assert_true(session_same_text("", "\n"));
    assert_false(session_same_text("go on", "go  on"));
    assert_false(session_same_text("go", "go on"));
    assert_false(session_same_text(NULL, ""));
}

static void runner_is_found_in_the_list(void **state)
{
    static const char list[] = "{\"processes\":[{\"config\":{\"cmd\":\"sh\",\"args\":[\"/h/"
                               ".cc-tui/b/runner.sh\",\"/h/.cc-tui/b\"]},"
                               "\"pid\":7},{\"config\":{\"cmd\":\"tail\",\"args\":[\"-f\",\"/h/"
                               ".cc-tui/a\"]},\"pid\":8},"
                               "{\"config\":{\"cmd\":\"sh\",\"args\":[\"/h/.cc-tui/a/"
                               "runner.sh\",\"/h/.cc-tui/a\",\"bury\"]},"
                               "\"pid\":9}]}";
    (void)state;
    assert_int_equal(session_runner_pid(list, strlen(list), "/h/.cc-tui/a"), 9);
    assert_int_equal(session_runner_pid(list, strlen(list), "/h/.cc-tui/c"), 0);
    assert_int_equal(session_runner_pid("[1", 2, "/h"), 0);
}

static void look_at_nothing(void **state)
{
    struct session_probe p;
    size_t len;
    char *out = sh(session_probe_script, "s1", NULL, NULL, &len, NULL);
    (void)state;

    session_probe_parse(&p, out, len);
    assert_string_equal(p.home, home);
    assert_false(p.found);
    session_probe_release(&p);
    free(out);
}

static void look_at_an_ended_session(void **state)
{
    struct session_probe p;
    size_t len;
    int status;
    char *out = sh(session_prepare_script, "s1", "sh", NULL, &len, &status);
    (void)state;

    assert_int_equal(status, 0);
    assert_memory_equal(out, home, strlen(home));
    free(out);
    free(sh(session_prepare_script, "s1", "no-such-program-1", NULL, &len, &status));
    assert_int_equal(status, 127);
    put("out.log", "0123456789");
    put("err.log", "first\nerr\nlast words\n");
    put("epoch", "3\n");
    put("model", "openrouter/openai/x y\n");
    put("exit", "143 1764437000000 2\n");
    put("diskfull", "");
    put("cut", "err 55\nout 8\n");
    put("runs", "run 1 start 5 out-offset 0 err-offset 0 message - keeper 1-1\n"
                "run 1 exit lost 6 out-offset 4 err-offset 0\n\nnonsense\n"
                "run 2 start 7 out-offset 4 err-offset 6 message - keeper 1-2\n"
                "run 2 interrupt 7\nrun 2 exit 143 8 out-offset 10 err-offset 21\nrun 3 exi");
    out = xasprintf("%s/.cc-tui/s1/keeper", home);
    assert_int_equal(symlink("1-1", out), 0);
    free(out);
    out = sh(session_probe_script, "s1", NULL, NULL, &len, NULL);
    session_probe_parse(&p, out, len);
    assert_true(p.found && p.started && p.exited && p.diskfull && !p.alive && !p.lost);
    assert_int_equal(p.exit_code, 143);
    assert_int_equal(p.epoch, 3);
    assert_int_equal(p.size, 10);
    assert_int_equal(p.cut_at, 8);
    assert_int_equal(p.starts, 2);
    assert_int_equal(p.ends.n, 2);
    assert_int_equal(p.ends.v[0].code, -1);
    assert_int_equal(p.ends.v[0].offset, 4);
    assert_int_equal(p.ends.v[1].run, 2);
    assert_int_equal(p.ends.v[1].code, 143);
    assert_true(!p.ends.v[0].interrupted && p.ends.v[1].interrupted);
    assert_false(session_probe_running(&p));
    assert_string_equal(p.err_tail, "err\nlast words\n"); /* of the last run alone */
    assert_int_equal(p.err_run, 2);
    assert_string_equal(p.model, "openrouter/openai/x y");
    session_probe_release(&p);
    free(out);
}

/* The log was lost before run 4 began, and run 3 had gone on in one that was emptied. */
static void ends_in_another_log_are_left_out(void **state)
{
    static const char said[] = "home /root\nfound\nstarted\nalive\nepoch 2\nsize 900\n"
                               "run 4 start 4 out-offset 0 err-offset 0 message x keeper 1-1\n"
                               "run 1 exit 0 1 out-offset 50 err-offset 0\n"
                               "run 2 exit 0 2 out-offset 700 err-offset 0\n"
                               "run 3 exit 0 3 out-offset 60 err-offset 0\n"
                               "run 4 exit 0 5 out-offset 800 err-offset 0\n";
    struct session_probe p;
    (void)state;

    session_probe_parse(&p, said, sizeof(said) - 1);
    assert_int_equal(p.ends.n, 1);
    assert_int_equal(p.ends.v[0].run, 4);
    assert_false(session_probe_running(&p));
    session_probe_release(&p);
    session_probe_parse(&p, said, (size_t)(strstr(said, "run 4 exit") - said));
    assert_int_equal(p.ends.n, 0);
    assert_true(session_probe_running(&p));
    session_probe_release(&p);
}

static void a_living_keeper_is_seen(void **state)
{
    char stat[64], path[128], keeper[64], line[1024], *f;
    struct session_probe p;
    unsigned long long ticks = 0;
    size_t len;
    FILE *fp;
    (void)state;

    snprintf(stat, sizeof(stat), "/proc/%d/stat", (int)getpid());
    fp = fopen(stat, "r");
    assert_non_null(fgets(line, sizeof(line), fp));
    fclose(fp);
    f = strrchr(line, ')') + 2;
    for (int i = 3; i < 22; i++)
        f = strchr(f, ' ') + 1;
    ticks = strtoull(f, NULL, 10);
    snprintf(path, sizeof(path), "%s/.cc-tui/s1/keeper", home);
    unlink(path);
    snprintf(keeper, sizeof(keeper), "%d-%llu", (int)getpid(), ticks);
    assert_int_equal(symlink(keeper, path), 0);
    f = sh(session_probe_script, "s1", NULL, NULL, &len, NULL);
    session_probe_parse(&p, f, len);
    assert_true(p.alive);
    session_probe_release(&p);
    free(f);
    unlink(path);
    snprintf(keeper, sizeof(keeper), "%d-%llu", (int)getpid(), ticks + 1);
    assert_int_equal(symlink(keeper, path), 0);
    f = sh(session_probe_script, "s1", NULL, NULL, &len, NULL);
    session_probe_parse(&p, f, len);
    assert_true(p.started && !p.alive);
    session_probe_release(&p);
    free(f);
}

static enum session_taken taken(const char *id, bool *ended, uint64_t *from)
{
    char *dir = xasprintf("%s/.cc-tui/s1", home), *out;
    enum session_taken t;
    size_t len;

    out = sh(session_taken_script, dir, id, NULL, &len, NULL);
    t = session_taken_parse(out, ended, from);
    free(out);
    free(dir);
    return t;
}

static void what_became_of_a_message(void **state)
{
    bool ended;
    uint64_t from;
    char path[128];
    (void)state;

    snprintf(path, sizeof(path), "%s/.cc-tui/s1/sent", home);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/.cc-tui/s1/unsure", home);
    mkdir(path, 0700);
    put("sent/0000000000001-k1", "x");
    put("sent/0000000000002-k3_99", "x");
    put("unsure/0000000000003-k2", "x");
    put("sent/0000000000004-k5", "x");
    put("out.log", "41 bytes, and then the message was taken.");
    put("taken", "k1 17\nk3_98 18 40\nk3_99 19 41\nk2 20 50\nk5 21 60\n");
    assert_int_equal(taken("k1", &ended, &from), TAKEN_YES);
    assert_true(ended);
    assert_int_equal(from, 0); /* an older runner did not say it */
    assert_int_equal(taken("k2", &ended, &from), TAKEN_UNSURE);
    assert_int_equal(taken("k3", &ended, &from), TAKEN_YES);
    assert_int_equal(from, 42);
    assert_int_equal(taken("k5", &ended, &from), TAKEN_YES);
    assert_int_equal(from, 0); /* of a log that was longer than this one */
    assert_int_equal(taken("k4", &ended, &from), TAKEN_NO);
    put("mode", "one-run\n");
    assert_int_equal(taken("k1", &ended, &from), TAKEN_NO);
    put("runs", "run 3 start 7 out-offset 4 err-offset 0 message k1 keeper 1-2\n");
    assert_int_equal(taken("k1", &ended, &from), TAKEN_YES);
    assert_int_equal(from, 3);
    snprintf(path, sizeof(path), "%s/.cc-tui/s1/exit", home);
    unlink(path);
    assert_int_equal(taken("k1", &ended, &from), TAKEN_YES);
    assert_false(ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quoting_survives_a_shell),
        cmocka_unit_test(cli_script_runs_its_words),
        cmocka_unit_test(cli_script_gets_what_was_chosen),
        cmocka_unit_test(what_git_says_is_told_clean),
        cmocka_unit_test(inbox_names),
        cmocka_unit_test(texts_match_but_for_white_space),
        cmocka_unit_test(runner_is_found_in_the_list),
        cmocka_unit_test(look_at_nothing),
        cmocka_unit_test(look_at_an_ended_session),
        cmocka_unit_test(ends_in_another_log_are_left_out),
        cmocka_unit_test(a_living_keeper_is_seen),
        cmocka_unit_test(what_became_of_a_message),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("session_script", tests, setup, teardown);
}
