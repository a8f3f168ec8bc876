/* Sandboxes that cc-tui did not make, on the real local provider: their processes listed,
 * watched, ended and adopted, by the facade and by the commands. */
#include "../lib/foreignbed.h"
#include "../lib/rawhttp.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct localbed *local;

static int start_provider(void **state)
{
    char url[64];

    (void)state;
    local = localbed_new();
    if (!local)
        return -1;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", local->control);
    setenv("E2B_API_URL", url, 1);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", local->traffic);
    setenv("E2B_SANDBOX_URL", url, 1);
    return 0;
}

static int stop_provider(void **state)
{
    (void)state;
    localbed_free(local);
    return 0;
}

static void open_app(struct appbed *b, const char *project)
{
    struct app_opts o = {.follow_all = true, .poll_ms = 200, .project = project};

    setenv("E2B_API_KEY", local->key, 1);
    appbed_open(b, &o);
}

static int setup(void **state)
{
    struct appbed *b = appbed_new();

    setenv("HOME", b->root, 1);
    open_app(b, NULL);
    *state = b;
    return 0;
}

static struct rawhttp_box boxes[4]; /* of the test at hand */
static size_t n_boxes;

/* Nothing of one test is left for the next one. */
static int teardown(void **state)
{
    int fd = rawhttp_dial(local->control);

    appbed_free(*state);
    while (n_boxes)
        rawhttp_box_call(local, fd, &boxes[--n_boxes], "DELETE", "", NULL);
    close(fd);
    return 0;
}

static struct foreign_box new_box(void)
{
    struct foreign_box x = {.port = local->traffic};
    struct rawhttp_box *raw = &boxes[n_boxes++];
    int fd = rawhttp_dial(local->control);

    assert_int_equal(rawhttp_create(local, fd, "{\"templateID\":\"base\",\"timeout\":600}", raw),
                     201);
    close(fd);
    str_copy(x.id, sizeof(x.id), raw->id);
    str_copy(x.token, sizeof(x.token), raw->token);
    return x;
}

/* --- listed ----------------------------------------------------------------------- */

static void test_processes_are_listed(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box();
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, "exec sleep 300 # \033]0;evil\007\n\t\xe2\x80\xae");
    const struct sandbox *s = foreign_listed(b, x.id);
    uint64_t id = s->id;
    const struct proc *p;

    assert_true(s->foreign);
    assert_false(s->adopted);
    assert_null(s->session);
    p = foreign_proc(b, id, pid);
    assert_non_null(p);
    assert_non_null(strstr(p->command, "sleep 300"));
    assert_null(strchr(p->command, '\033'));
    assert_null(strchr(p->command, '\n'));
    assert_null(strstr(p->command, "\xe2\x80\xae"));
    assert_null(foreign_proc(b, id, pid + 1000));
}

/* --- watched ---------------------------------------------------------------------- */

/* The gate holds the process until we are connected: what comes is known. */
#define GATED(text) "while [ ! -e gate ]; do sleep 0.05; done; " text
#define OPEN_GATE "touch gate"

static void test_watched_to_its_end(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box();
    int pid = foreign_start_until(&x, FOREIGN_NO_INPUT,
                                  "echo before; " GATED("echo out; echo err >&2; "
                                                        "printf 'no end'; exit 3"),
                                  "YmVmb3JlCg=="); /* before */
    uint64_t id = foreign_listed(b, x.id)->id;
    char *text;

    appbed_must(b, app_proc_watch(b->app, id, pid, 0));
    foreign_watch_is(b, id, WATCH_LIVE);
    foreign_shows(b, id, "nothing from before and nothing is kept");
    foreign_start(&x, FOREIGN_NO_INPUT, OPEN_GATE);
    foreign_shows(b, id, "ended with exit status 3");
    foreign_watch_is(b, id, WATCH_ENDED);
    text = foreign_text(b, id);
    assert_non_null(strstr(text, "\nout\n"));
    assert_non_null(strstr(text, "\nerr\n"));
    assert_non_null(strstr(text, "\nno end\n"));
    assert_null(strstr(text, "\nbefore\n"));
    free(text);
}

/* A prompt is seen although its line has no end, and becomes the line later. */
static void test_unfinished_line(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box();
    int pid = foreign_start(&x, FOREIGN_PTY,
                            GATED("printf 'Password: '; while [ ! -e two ]; do sleep 0.05; done; "
                                  "echo given; sleep 300"));
    uint64_t id = foreign_listed(b, x.id)->id;
    char *text;

    appbed_must(b, app_proc_watch(b->app, id, pid, 0));
    foreign_watch_is(b, id, WATCH_LIVE);
    foreign_start(&x, FOREIGN_NO_INPUT, OPEN_GATE);
    foreign_shows(b, id, "Password: ");
    foreign_start(&x, FOREIGN_NO_INPUT, "touch two");
    foreign_shows(b, id, "Password: given");
    text = foreign_text(b, id);
    const char *once = strstr(strchr(text, '\n'), "Password"); /* the first line is the command */
    assert_non_null(once);
    assert_null(strstr(once + 1, "Password"));
    free(text);
}

static void test_no_such_process(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box();
    uint64_t id = foreign_listed(b, x.id)->id;

    appbed_must(b, app_proc_watch(b->app, id, 99999, 0));
    foreign_watch_is(b, id, WATCH_ENDED);
    foreign_shows(b, id, "no process 99999 runs in the sandbox");
}

static bool is_state(struct appbed *b, const void *arg)
{
    const struct sandbox *s = &app_model(b->app)->sandboxes[0];

    return s->state == *(const enum sb_state *)arg && !s->pending;
}

/* Paused it is asked nothing; resumed it goes on, with a mark. */
static void test_paused_while_watched(void **state)
{
    struct appbed *b = *state;
    enum sb_state paused = SB_PAUSED, running = SB_RUNNING;
    struct foreign_box x = new_box();
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, "while :; do echo tick; sleep 0.1; done");
    uint64_t id = foreign_listed(b, x.id)->id;

    appbed_must(b, app_proc_watch(b->app, id, pid, 0));
    foreign_shows(b, id, "tick");
    appbed_must(b, app_pause(b->app, id));
    assert_true(appbed_wait(b, is_state, &paused));
    foreign_watch_is(b, id, WATCH_PAUSED);
    assert_int_equal(appbed_finish(b, app_proc_list(b->app, id)), ERR_CONFLICT);
    assert_non_null(strstr(b->err.text, "paused: resume it first"));
    assert_int_equal(appbed_finish(b, app_proc_kill(b->app, id, pid, 0, false)), ERR_CONFLICT);
    appbed_must(b, app_resume(b->app, id, 600));
    assert_true(appbed_wait(b, is_state, &running));
    foreign_watch_is(b, id, WATCH_LIVE);
    foreign_shows(b, id, "was not seen");
}

/* --- ended ------------------------------------------------------------------------ */

static void test_ended_by_signal(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box();
    int soft = foreign_start(&x, FOREIGN_NO_INPUT, "exec sleep 300");
    int hard = foreign_start(&x, FOREIGN_NO_INPUT, "trap '' TERM; while :; do sleep 0.1; done");
    uint64_t id = foreign_listed(b, x.id)->id;
    uint64_t ident = foreign_proc(b, id, soft)->ident;

    appbed_must(b, app_proc_watch(b->app, id, soft, ident));
    foreign_watch_is(b, id, WATCH_LIVE);
    appbed_must(b, app_proc_kill(b->app, id, soft, ident, false));
    foreign_watch_is(b, id, WATCH_ENDED);
    foreign_shows(b, id, "ended by signal 15");
    assert_null(foreign_proc(b, id, soft));
    assert_int_equal(appbed_finish(b, app_proc_kill(b->app, id, hard, 0, false)), ERR_CONFLICT);
    assert_non_null(strstr(b->err.text, "still runs; SIGKILL"));
    assert_non_null(foreign_proc(b, id, hard));
    appbed_must(b, app_proc_kill(b->app, id, hard, 0, true));
    assert_null(foreign_proc(b, id, hard));
    assert_int_equal(appbed_finish(b, app_proc_kill(b->app, id, hard, 0, true)), ERR_NOTFOUND);
}

/* The number that was confirmed belongs to another process by now: nothing happens. */
static void test_pid_of_another(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box();
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, "exec sleep 300");
    uint64_t id = foreign_listed(b, x.id)->id;
    struct app_adopt how = {.pid = pid, .ident = 12345};

    assert_int_equal(appbed_finish(b, app_proc_kill(b->app, id, pid, 12345, true)), ERR_CONFLICT);
    assert_non_null(strstr(b->err.text, "is another one by now"));
    assert_int_equal(appbed_finish(b, app_adopt(b->app, id, &how)), ERR_CONFLICT);
    assert_true(foreign_row(b, x.id)->foreign);
    assert_non_null(foreign_proc(b, id, pid));
}

/* --- adopted ---------------------------------------------------------------------- */

static void test_scope_of_kill_all(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box(), y = new_box();
    uint64_t id = foreign_listed(b, x.id)->id;
    struct app_adopt how = {.name = "mine"};

    foreign_listed(b, y.id);
    assert_int_equal(foreign_kill_count(b, false), 0);
    assert_int_equal(foreign_kill_count(b, true), 2);
    appbed_must(b, app_adopt(b->app, id, &how));
    assert_true(foreign_row(b, x.id)->adopted);
    assert_string_equal(foreign_row(b, x.id)->name, "mine");
    assert_string_equal(foreign_row(b, x.id)->project, "default");
    assert_int_equal(foreign_kill_count(b, false), 1);
    assert_int_equal(foreign_kill_count(b, true), 2);
    /* it survives a restart and lists that know nothing of it */
    appbed_close(b);
    open_app(b, NULL);
    foreign_listed(b, y.id);
    appbed_must(b, app_refresh(b->app));
    assert_true(foreign_row(b, x.id)->adopted);
    assert_int_equal(foreign_kill_count(b, false), 1);
    id = foreign_row(b, x.id)->id;
    appbed_must(b, app_unadopt(b->app, id));
    assert_true(foreign_row(b, x.id)->foreign);
    assert_string_equal(foreign_row(b, x.id)->name, x.id);
    assert_int_equal(foreign_kill_count(b, false), 0);
    assert_int_equal(appbed_finish(b, app_unadopt(b->app, id)), ERR_CONFLICT);
    /* and what kill-all takes is exactly the adopted one */
    appbed_must(b, app_adopt(b->app, id, &how));
    appbed_must(b, app_kill_all_open(b->app, false));
    appbed_must(b, app_kill_all_confirm(b->app, false, 1));
    assert_int_equal(foreign_row(b, x.id)->state, SB_KILLED);
    assert_int_equal(foreign_row(b, y.id)->state, SB_RUNNING);
}

static void test_names_and_projects(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box(), y = new_box();
    uint64_t one = foreign_listed(b, x.id)->id, two = foreign_listed(b, y.id)->id;
    struct app_adopt how = {.name = "worker", .project = "shop"}, odd = {.name = "a b"};

    assert_int_equal(appbed_finish(b, app_adopt(b->app, one, &odd)), ERR_INVALID);
    odd = (struct app_adopt){.project = "../x"};
    assert_int_equal(appbed_finish(b, app_adopt(b->app, one, &odd)), ERR_INVALID);
    appbed_must(b, app_adopt(b->app, one, &how));
    assert_string_equal(foreign_row(b, x.id)->project, "shop");
    assert_int_equal(foreign_kill_count(b, false), 0); /* of project default */
    assert_int_equal(appbed_finish(b, app_adopt(b->app, two, &how)), ERR_CONFLICT);
    assert_non_null(strstr(b->err.text, "in use"));
    how = (struct app_adopt){.name = "renamed"};
    appbed_must(b, app_adopt(b->app, one, &how)); /* again: the project stays */
    assert_string_equal(foreign_row(b, x.id)->project, "shop");
    assert_string_equal(foreign_row(b, x.id)->name, "renamed");
    /* what cannot be done with it is said */
    assert_int_equal(appbed_finish(b, app_send(b->app, one, "hi", false)), ERR_UNSUPPORTED);
    assert_int_equal(appbed_finish(b, app_interrupt(b->app, one)), ERR_UNSUPPORTED);
    assert_int_equal(appbed_finish(b, app_restart_agent(b->app, one)), ERR_UNSUPPORTED);
}

/* From the adoption on its output is ours: kept over a restart of cc-tui, and what went by
 * meanwhile is marked. */
static void test_output_is_kept(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box();
    int pid = foreign_start(&x, FOREIGN_NO_INPUT,
                            "n=0; while :; do n=$((n+1)); echo line-$n; sleep 0.1; done");
    uint64_t id = foreign_listed(b, x.id)->id;
    struct app_adopt how = {.pid = pid};
    char *text;

    app_follow(b->app, id);
    appbed_must(b, app_adopt(b->app, id, &how));
    foreign_shows(b, id, "adopted at ");
    foreign_shows(b, id, "line-");
    appbed_close(b);
    open_app(b, NULL);
    id = foreign_listed(b, x.id)->id;
    app_follow(b->app, id);
    foreign_shows(b, id, "what came in between was not seen");
    text = foreign_text(b, id);
    assert_non_null(strstr(text, "adopted at ")); /* of the life before */
    free(text);
    assert_string_equal(foreign_row(b, x.id)->tool, "process");
    appbed_must(b, app_proc_kill(b->app, id, pid, 0, true));
    foreign_shows(b, id, "process was ended by signal 9");
}

static bool message_is(struct appbed *b, const void *arg)
{
    const struct model *m = app_model(b->app);

    return m->n_messages && m->messages[m->n_messages - 1].state == *(const enum msg_state *)arg;
}

static void test_input(void **state)
{
    static const enum foreign_input kinds[] = {FOREIGN_STDIN, FOREIGN_PTY};
    enum msg_state delivered = MSG_DELIVERED, failed = MSG_FAILED;
    struct appbed *b = *state;

    for (size_t i = 0; i < 2; i++) {
        struct foreign_box x = new_box();
        int pid = foreign_start(&x, kinds[i], "read a; echo got-$a; read b; echo then-$b; cat");
        uint64_t id = foreign_listed(b, x.id)->id;
        struct app_adopt how = {.pid = pid};

        app_follow(b->app, id);
        appbed_must(b, app_adopt(b->app, id, &how));
        appbed_must(b, app_send(b->app, id, "one", false));
        foreign_shows(b, id, "got-one");
        appbed_must(b, app_send(b->app, id, "two", false));
        foreign_shows(b, id, "then-two");
        assert_true(appbed_wait(b, message_is, &delivered));
        assert_int_equal(appbed_finish(b, app_send(b->app, id, "x", true)), ERR_UNSUPPORTED);
    }
    struct foreign_box x = new_box();
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, "exec sleep 300");
    uint64_t id = foreign_listed(b, x.id)->id;
    struct app_adopt how = {.pid = pid};
    appbed_must(b, app_adopt(b->app, id, &how));
    appbed_must(b, app_send(b->app, id, "anybody?", false));
    assert_true(appbed_wait(b, message_is, &failed));
    assert_non_null(strstr(app_model(b->app)->messages[app_model(b->app)->n_messages - 1].error,
                           "takes no input"));
}

static bool is_error(struct appbed *b, const void *id)
{
    const struct sandbox *s = foreign_row(b, id);

    return s->state == SB_ERROR && s->vm_up;
}

/* It failed: the row says so and that the VM still runs; another process may be adopted. */
static void test_adopted_one_fails(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box();
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, GATED("exit 7"));
    int next = foreign_start(&x, FOREIGN_NO_INPUT, "exec sleep 300");
    uint64_t id = foreign_listed(b, x.id)->id;
    struct app_adopt how = {.pid = pid};

    app_follow(b->app, id);
    appbed_must(b, app_adopt(b->app, id, &how));
    foreign_shows(b, id, "adopted at ");
    foreign_start(&x, FOREIGN_NO_INPUT, OPEN_GATE);
    assert_true(appbed_wait(b, is_error, x.id));
    assert_non_null(strstr(foreign_row(b, x.id)->reason, "status 7"));
    how.pid = next;
    appbed_must(b, app_adopt(b->app, id, &how));
    assert_int_equal(foreign_row(b, x.id)->state, SB_RUNNING);
}

static void test_readonly(void **state)
{
    struct appbed *b = *state;
    struct app_opts o = {.follow_all = true, .poll_ms = 200, .readonly = true};
    struct foreign_box x = new_box();
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, "exec sleep 300");
    struct app_adopt how = {.name = "no"};
    uint64_t id;

    appbed_close(b);
    setenv("E2B_API_KEY", local->key, 1);
    appbed_open(b, &o);
    id = foreign_listed(b, x.id)->id;
    assert_non_null(foreign_proc(b, id, pid));
    appbed_must(b, app_proc_watch(b->app, id, pid, 0));
    foreign_watch_is(b, id, WATCH_LIVE);
    assert_int_equal(appbed_finish(b, app_adopt(b->app, id, &how)), ERR_PERM);
    assert_int_equal(appbed_finish(b, app_proc_kill(b->app, id, pid, 0, true)), ERR_PERM);
    appbed_close(b);
}

/* --- the commands ----------------------------------------------------------------- */

/* A shell's line, with a database of its own for cc-tui. */
static FILE *begin(const struct appbed *b, const char *text)
{
    char *line = xasprintf("export E2B_API_KEY=%s CC_TUI_DATA_DIR=%s/cli CC_TUI_CONFIG_DIR=%s/cli "
                           "CC_TUI_STATE_DIR=%s/cli CC_TUI_RUNTIME_DIR=%s/cli; exec </dev/null; %s",
                           local->key, b->root, b->root, b->root, b->root, text);
    FILE *f = popen(line, "r");

    assert_non_null(f);
    free(line);
    return f;
}

static char *finish(FILE *f, int *status)
{
    struct buf out = BUF_INIT;
    char piece[4096];
    size_t n;
    int rc;

    while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
        buf_add(&out, piece, n);
    rc = pclose(f);
    *status = WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
    return buf_detach(&out, NULL);
}

/* stdout (and with 2>&1 in it stderr) of a command line; its status. */
static char *run(const struct appbed *b, const char *args, int *status)
{
    char *text = xasprintf("exec cc-tui %s", args);
    char *out = finish(begin(b, text), status);

    free(text);
    return out;
}

static void run_says(const struct appbed *b, int want, const char *text, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void run_says(const struct appbed *b, int want, const char *text, const char *fmt, ...)
{
    char args[512], *out;
    int status;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(args, sizeof(args), fmt, ap);
    va_end(ap);
    out = run(b, args, &status);
    if (status != want || (text && !strstr(out, text)))
        fail_msg("cc-tui %s: status %d, want %d with '%s': %s", args, status, want,
                 text ? text : "", out);
    free(out);
}

static void test_commands(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box();
    int sleeper = foreign_start(&x, FOREIGN_NO_INPUT, "exec sleep 300");
    int status;
    char *out;

    run_says(b, 0, "exec sleep 300", "ps %s", x.id);
    run_says(b, 0, "\"command\":\"/bin/sh -c 'exec sleep 300'\"", "ps %s --json", x.id);
    run_says(b, 5, "no sandbox", "ps nothing-here 2>&1");
    run_says(b, 2, "named by its number", "watch %s abc 2>&1", x.id);
    run_says(b, 5, "no process 99999", "watch %s 99999 2>&1", x.id);
    run_says(b, 2, "cannot ask", "kill %s --process %d 2>&1", x.id, sleeper);
    run_says(b, 2, "TERM or KILL", "kill %s --process %d --signal HUP --yes 2>&1", x.id, sleeper);
    run_says(b, 0, "would get SIGTERM", "kill %s --process %d --dry-run 2>&1", x.id, sleeper);
    run_says(b, 0, "has ended", "kill %s --process %d --yes 2>&1", x.id, sleeper);
    run_says(b, 5, "no process", "kill %s --process %d --signal KILL --yes 2>&1", x.id, sleeper);
    run_says(b, 0, "would kill 0", "kill --all --dry-run 2>&1");
    run_says(b, 0, "adopted into project shop", "adopt %s --name box --project shop 2>&1", x.id);
    run_says(b, 0, "\"adopted\":true", "ls --json");
    run_says(b, 0, "would kill 0", "kill --all --dry-run 2>&1");
    run_says(b, 0, "would kill 1", "kill --all --project shop --dry-run 2>&1");
    run_says(b, 0, "foreign again", "adopt box --undo 2>&1");
    run_says(b, 0, "\"foreign\":true", "ls --json");
    out = run(b, "ps box 2>&1", &status);
    assert_int_equal(status, 5);
    free(out);
}

/* The bytes of each stream in their place, the process's own status at the end. */
static void test_watch_command(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box();
    int pid = foreign_start(&x, FOREIGN_NO_INPUT,
                            "while [ ! -e gate ]; do echo tick; sleep 0.1; done;"
                            "printf 'a\\tb\\033[1m'; echo bad >&2; exit 9");
    char *args = xasprintf("exec cc-tui watch %s %d 2>/dev/null", x.id, pid), line[32], *rest;
    FILE *f = begin(b, args);
    int status;

    assert_non_null(fgets(line, sizeof(line), f));
    assert_string_equal(line, "tick\n");
    foreign_start(&x, FOREIGN_NO_INPUT, OPEN_GATE);
    rest = finish(f, &status);
    assert_int_equal(status, 9);
    assert_true(str_ends(rest, "a\tb\033[1m"));
    assert_null(strstr(rest, "bad"));
    free(rest);
    free(args);
}

/* Ctrl-C leaves the process running. */
static void test_watch_is_left(void **state)
{
    struct appbed *b = *state;
    struct foreign_box x = new_box();
    int pid = foreign_start(&x, FOREIGN_NO_INPUT, "while :; do echo tick; sleep 0.1; done");
    uint64_t id = foreign_listed(b, x.id)->id;
    char *args = xasprintf("echo pid $$; exec cc-tui watch %s %d 2>&1", x.id, pid);
    FILE *f = begin(b, args);
    char line[64] = "", *rest;
    int status, shell = 0;

    while (!shell && fgets(line, sizeof(line), f))
        sscanf(line, "pid %d", &shell);
    assert_true(shell > 0);
    assert_non_null(fgets(line, sizeof(line), f));
    assert_string_equal(line, "tick\n");
    kill(shell, SIGINT);
    rest = finish(f, &status);
    assert_int_equal(status, 130);
    assert_non_null(strstr(rest, "goes on"));
    assert_non_null(foreign_proc(b, id, pid));
    free(rest);
    free(args);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_processes_are_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watched_to_its_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unfinished_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_such_process, setup, teardown),
        cmocka_unit_test_setup_teardown(test_paused_while_watched, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ended_by_signal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pid_of_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scope_of_kill_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_and_projects, setup, teardown),
        cmocka_unit_test_setup_teardown(test_output_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_input, setup, teardown),
        cmocka_unit_test_setup_teardown(test_adopted_one_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readonly, setup, teardown),
        cmocka_unit_test_setup_teardown(test_commands, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_command, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_is_left, setup, teardown),
    };

    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, start_provider, stop_provider);
}
