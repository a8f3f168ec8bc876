/* The screen and its surroundings on a real pseudo terminal: signals, crashes, job control,
 * other programs that have the terminal for a while, the clipboard, the mouse. */
#include "../lib/screenrig.h"

#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_first_screen_and_quit(void **state)
{
    (void)state;
    struct ptyrig r;
    screenrig_start(&r, 24, 80);
    screenrig_shows(&r, "ASKS YOU");
    assert_true(r.judge.alt && r.judge.paste && r.judge.focus);
    assert_true(r.asked_sync);
    rig_type(&r, "q");
    screenrig_ends(&r, AT_ONCE);
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0);
    screenrig_shows(&r, "still running"); /* said on the shell's own screen */
    rig_stop(&r);
}
static void end_by(int sig, int status)
{
    struct ptyrig r;
    screenrig_start(&r, 24, 80);
    kill(r.pid, sig);
    screenrig_ends(&r, AT_ONCE);
    if (!WIFEXITED(r.status) || WEXITSTATUS(r.status) != status)
        fail_msg("signal %d: status %x", sig, r.status);
    rig_stop(&r);
}
static void test_signals(void **state)
{
    (void)state;
    end_by(SIGTERM, 143);
    end_by(SIGINT, 130);
    end_by(SIGQUIT, 131);
    end_by(SIGHUP, 129);
}
static pid_t thread_named(pid_t pid, const char *name)
{
    char *dir = xasprintf("/proc/%d/task", (int)pid);
    DIR *d = opendir(dir);
    struct dirent *e;
    pid_t found = 0;
    while (d && (e = readdir(d)) != NULL) {
        char *path = xasprintf("%s/%s/comm", dir, e->d_name), comm[32] = "";
        FILE *f = fopen(path, "r");
        if (f && fgets(comm, sizeof(comm), f) && strncmp(comm, name, strlen(name)) == 0)
            found = (pid_t)strtol(e->d_name, NULL, 10);
        if (f)
            fclose(f);
        free(path);
    }
    if (d)
        closedir(d);
    free(dir);
    return found;
}
/* A crash of any thread gives the terminal back. */
static void test_crash(void **state)
{
    (void)state;
    static const int sigs[] = {SIGSEGV, SIGABRT, SIGBUS};
    for (size_t i = 0; i < 3; i++) {
        struct ptyrig r;
        screenrig_start(&r, 24, 80);
        pid_t tid = 0; /* it names itself once it runs */
        for (int64_t end = clock_mono_ms() + SOON; !tid && clock_mono_ms() < end; sched_yield())
            tid = thread_named(r.pid, "worker");
        assert_true(tid > 0);
        syscall(SYS_tgkill, r.pid, tid, sigs[i]);
        screenrig_ends(&r, SOON);
        assert_true(WIFSIGNALED(r.status) && WTERMSIG(r.status) == sigs[i]);
        rig_stop(&r);
    }
}
static void test_hang_up(void **state)
{
    (void)state;
    struct ptyrig r;
    screenrig_start(&r, 24, 80);
    rig_hang_up(&r);
    assert_true(rig_wait_exit(&r, AT_ONCE));
    rig_stop(&r);
}
static pid_t child_of(pid_t pid)
{
    char *path = xasprintf("/proc/%d/task/%d/children", (int)pid, (int)pid), text[32] = "";
    FILE *f = fopen(path, "r");
    if (f && !fgets(text, sizeof(text), f))
        text[0] = 0;
    if (f)
        fclose(f);
    free(path);
    return (pid_t)strtol(text, NULL, 10);
}
/* The terminal is the shell's until that ends or is left; the screen comes back as it was. */
static void test_shell(void **state)
{
    (void)state;
    struct ptyrig r;
    screenrig_start(&r, 24, 80);
    rig_type(&r, "j");
    rig_type(&r, "s");
    screenrig_shows(&r, "a shell in api-tests; Ctrl-] leaves it running");
    screenrig_shows(&r, "fake shell");
    assert_false(r.judge.alt || r.judge.paste || r.judge.focus);
    rig_type(&r, "typed-there");
    screenrig_shows(&r, "typed-there");
    rig_resize(&r, 30, 90);
    screenrig_shows(&r, "size 90 30");
    rig_type(&r, "\035");
    screenrig_shows(&r, "goes on as process 1207: s comes back");
    screenrig_shows(&r, "fix-login");
    assert_true(r.judge.alt && r.judge.paste && r.judge.focus);
    rig_type(&r, "E");
    screenrig_shows(&r, "process 1207 in api-tests");
    rig_type(&r, "!");
    screenrig_shows(&r, "the shell in api-tests ended with status 3");
    rig_type(&r, "sqq-ahead\035"); /* at once: the two keys are not ours when it is left */
    screenrig_shows(&r, "goes on as process 1207: s comes back");
    rig_type(&r, "s");
    screenrig_shows(&r, "process 1207 in api-tests");
    rig_type(&r, "!");
    screenrig_shows(&r, "the shell in api-tests ended with status 3");
    rig_type(&r, "s");
    screenrig_shows(&r, "a shell in api-tests");
    kill(r.pid, SIGTERM);
    assert_true(rig_wait_exit(&r, SOON)); /* its own bytes were on the wire, too */
    assert_null(rig_not_restored(&r));
    assert_int_equal(WEXITSTATUS(r.status), 143);
    rig_stop(&r);
    screenrig_start(&r, 24, 80);
    rig_type(&r, "G");
    rig_type(&r, "s"); /* paused: nothing wakes it */
    screenrig_shows(&r, "spike-wasm is paused: r resumes it");
    screenrig_quit(&r, SOON);
}
/* ^Z under a real shell with job control, the same by a signal from outside, and back. */
static void test_suspend(void **state)
{
    (void)state;
    struct ptyrig r;
    char *argv[] = {(char *)"bash", (char *)"--norc", (char *)"--noprofile", (char *)"-i", NULL};
    const char *env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "PS1=shell> ", "HISTFILE=", NULL};
    if (access("/bin/bash", X_OK) != 0)
        skip();
    setenv("S", screenrig_rows, 1);
    rig_start(&r, 24, 80, argv, env);
    unsetenv("S");
    screenrig_shows(&r, "shell>");
    char *command = xasprintf("%s --screen \"$S\"\r", screenrig_self());
    rig_type(&r, command);
    screenrig_shows(&r, "ASKS YOU");
    rig_type(&r, "\032");
    screenrig_shows(&r, "Stopped");
    assert_false(r.judge.alt);
    rig_type(&r, "echo $((40 + 2))\r");
    screenrig_shows(&r, "42");
    rig_type(&r, "fg\r");
    screenrig_shows(&r, "ASKS YOU");
    assert_true(r.judge.alt && r.judge.focus);
    pid_t pid = child_of(r.pid);
    assert_true(pid > 0);
    kill(pid, SIGTSTP);
    assert_true(rig_wait_gone(&r, "ASKS YOU", SOON));
    screenrig_shows(&r, "Stopped"); /* the first one's, when the main screen is back */
    rig_wait_quiet(&r, 150, SOON);
    assert_false(r.judge.alt || r.judge.focus); /* the shell itself takes pastes */
    rig_type(&r, "fg\r");
    screenrig_shows(&r, "ASKS YOU");
    rig_type(&r, "q");
    screenrig_shows(&r, "still running");
    rig_type(&r, "exit\r");
    assert_true(rig_wait_exit(&r, SOON));
    free(command);
    rig_stop(&r);
}
/* Nobody reads for a while, though text streams: keys still count, nothing piles up, the
 * picture is right again at once; and a stuck line does not hold the end up. */
static void test_stuck_line(void **state)
{
    (void)state;
    static const char *const env[] = {"RIG_STREAM=20", NULL};
    struct ptyrig r;
    screenrig_start_with(&r, 50, 160, screenrig_rows, env);
    screenrig_shows(&r, "streamed");
    poll(NULL, 0, 1500); /* the reader is away: that is the test */
    uint64_t before = r.bytes;
    rig_type(&r, "d");
    screenrig_shows(&r, "any key closes");
    assert_true(r.bytes - before < 400000);
    screenrig_is_clean(&r);
    kill(r.pid, SIGSTOP); /* fill the line to the brim, then ask it to end */
    kill(r.pid, SIGCONT);
    poll(NULL, 0, 1000);
    kill(r.pid, SIGTERM);
    int64_t t0 = rig_now_ms();
    while (!r.exited && rig_now_ms() - t0 < 3000) { /* still nobody reads */
        r.exited = waitpid(r.pid, &r.status, WNOHANG) == r.pid;
        poll(NULL, 0, 5);
    }
    assert_true(r.exited);
    assert_true(rig_now_ms() - t0 < AT_ONCE);
    rig_stop(&r);
}
/* What is selected goes to the clipboard, through what lies between, and the screen stays. */
static void copies_by(const char *more, const char *told, unsigned osc52)
{
    const char *const env[] = {"TMUX", "STY", more, NULL};
    struct ptyrig r;
    screenrig_start_with(&r, 24, 80, screenrig_rows, env);
    screenrig_shows(&r, "ASKS YOU");
    rig_type(&r, "2vky");
    screenrig_shows(&r, told);
    screenrig_is_clean(&r);
    assert_int_equal(r.judge.osc[0], osc52);
    rig_type(&r, "1"); /* what is said goes with the next key */
    /* the rig is no tmux: newer libvterms print what is wrapped for one */
    if (strncmp(more, "TMUX=", 5) != 0)
        screenrig_same_as_fresh(&r);
    rig_type(&r, "qq");
    screenrig_ends(&r, AT_ONCE);
    rig_stop(&r);
}
/* What fills the screen, the palette, standing still, and the output alone. */
static void test_whole_screens(void **state)
{
    (void)state;
    struct ptyrig r;
    screenrig_start(&r, 24, 80);
    rig_type(&r, "W");
    screenrig_shows(&r, "= wall =");
    rig_type(&r, ":wall\r");
    screenrig_shows(&r, "LAST LINE");
    rig_type(&r, "Z");
    screenrig_shows(&r, "FROZEN");
    rig_type(&r, "nD");
    rig_type(&r, "Z");
    assert_true(rig_wait_gone(&r, "FROZEN", SOON));
    rig_type(&r, "\033l");
    assert_true(rig_wait_gone(&r, "LAST LINE", SOON));
    assert_true(rig_wait_gone(&r, "----", SOON));
    rig_type(&r, "\033l");
    screenrig_shows(&r, "LAST LINE");
    rig_type(&r, ">");
    screenrig_shows(&r, "sorted by name");
    screenrig_quit(&r, AT_ONCE);
}
static void test_copy(void **state)
{
    (void)state;
    copies_by("A=B", "sent 48 bytes by OSC 52", 1);
    copies_by("STY=1.x", "sent 48 bytes by OSC 52", 1);
    /* no server of that name: on with the next channel, in tmux's wrapping */
    copies_by("TMUX=/nonexistent/socket,1,0", "sent 48 bytes by OSC 52", 1);
    copies_by("TERM=linux", "could not be copied", 0);
}
/* An editor has the terminal, text goes there and back; nothing of it stays behind. */
static void test_editor(void **state)
{
    (void)state;
    char dir[] = "/tmp/screen-edit-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *run = xasprintf("CC_TUI_RUNTIME_DIR=%s", dir);
    const char *const env[] = {run,
                               "VISUAL=sh -c 'stty -a | grep -q \" icanon\" && echo IT READS; "
                               "read x; printf \"%s and $x\n\" \"$(cat \"$1\")\" > \"$1\"' edit",
                               NULL};
    struct ptyrig r;
    screenrig_start_with(&r, 24, 80, screenrig_rows, env);
    screenrig_shows(&r, "ASKS YOU");
    rig_type(&r, "ifirst\030\005");
    screenrig_shows(&r, "IT READS");
    assert_false(r.judge.alt || r.judge.paste || r.judge.focus);
    rig_type(&r, "more\r");
    screenrig_shows(&r, "first and more");
    screenrig_shows(&r, "ASKS YOU");
    assert_true(r.judge.alt && r.judge.paste && r.judge.focus);
    rig_type(&r, "\003\003");
    rig_wait_quiet(&r, 50, SOON);
    screenrig_quit(&r, AT_ONCE);
    if (rmdir(dir) != 0) /* its file is gone */
        fail_msg("%s is not empty", dir);
    free(run);
}
/* A command of the user has the terminal until it ends and Enter is pressed; what is pasted with
 * its line's end runs nothing. */
static void test_command_here(void **state)
{
    (void)state;
    struct ptyrig r;
    screenrig_start(&r, 24, 80);
    screenrig_shows(&r, "ASKS YOU");
    rig_type(&r, ":");
    screenrig_shows(&r, "> ");
    rig_type(&r, "!echo never-$((1 + 1))\r");
    screenrig_shows(&r, "this key counts only");
    rig_type(&r, ":");
    screenrig_shows(&r, "> ");
    rig_type(&r, "!echo here-$((40 + 2)); stty -a | grep ' icanon'; false");
    screenrig_shows(&r, "icanon'; false");
    rig_wait_quiet(&r, 50, SOON);
    rig_type(&r, "\r");
    screenrig_shows(&r, "here-42");
    screenrig_shows(&r, "[status 1] back by Enter");
    assert_false(r.judge.alt || r.judge.paste || r.judge.focus);
    rig_type(&r, "\r");
    screenrig_shows(&r, "ASKS YOU");
    assert_true(r.judge.alt && r.judge.paste && r.judge.focus);
    char *screen = rig_screen(&r);
    assert_null(strstr(screen, "never-2"));
    free(screen);
    rig_type(&r, ":");
    screenrig_shows(&r, "> ");
    rig_type(&r, "!trap 'exit 3' INT; echo up-$((1 + 1)); read x");
    screenrig_shows(&r, "; read x");
    rig_wait_quiet(&r, 50, SOON);
    rig_type(&r, "\r");
    screenrig_shows(&r, "up-2");
    rig_type(&r, "\003"); /* for the command, not for us */
    screenrig_shows(&r, "[status 3] back by Enter");
    rig_type(&r, "\r");
    screenrig_shows(&r, "ASKS YOU");
    screenrig_quit(&r, AT_ONCE);
}
/* On request alone; after an absence it is on again, at the end it is off. */
static void test_mouse(void **state)
{
    (void)state;
    struct ptyrig r;
    screenrig_start(&r, 24, 80);
    r.judge.may_mouse = true;
    assert_false(r.judge.mouse);
    rig_type(&r, "\033[<0;10;4M"); /* not asked for: nothing */
    rig_wait_quiet(&r, 100, SOON);
    assert_true(rig_wait_row(&r, 2, " > ?", true, SOON));
    rig_type(&r, "\033m");
    screenrig_shows(&r, "mouse on");
    assert_true(r.judge.mouse);
    rig_type(&r, "\033[<0;10;4M\033[<0;10;4m");
    assert_true(rig_wait_row(&r, 3, " > *", true, SOON));
    rig_type(&r, "\033[<64;10;4M\033[<35;9;9M\033[<4;9;3M\033[<0;999;999M\033[<0;0;0M");
    assert_true(rig_wait_row(&r, 2, " > ?", true, SOON));
    rig_type(&r, "\033m");
    screenrig_shows(&r, "mouse off");
    assert_false(r.judge.mouse);
    rig_type(&r, "\033m");
    screenrig_shows(&r, "mouse on");
    screenrig_quit(&r, AT_ONCE);
}
int main(int argc, char **argv)
{
    screenrig_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_screen_and_quit), cmocka_unit_test(test_signals),
        cmocka_unit_test(test_crash), cmocka_unit_test(test_hang_up),
        cmocka_unit_test(test_shell), cmocka_unit_test(test_suspend),
        cmocka_unit_test(test_stuck_line), cmocka_unit_test(test_whole_screens),
        cmocka_unit_test(test_copy), cmocka_unit_test(test_editor),
        cmocka_unit_test(test_command_here), cmocka_unit_test(test_mouse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
