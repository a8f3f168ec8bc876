/* Keys with a mark in them go through a whole session with the service over TLS: commands,
 * a refused key, a certificate that cannot be trusted, an agent that gets a provider's
 * key, the screen and its crash; at the highest level of the log. Then all that was
 * written, drawn, sent or shown by the process table is searched for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/bench.h"
#include "../lib/canary.h"
#include "../lib/faultproc.h"
#include "../lib/miniserver.h"
#include "../lib/rawpty.h"
#include "../lib/tmpdir.h"
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEADLINE = 60000 };

static char dir[] = "/tmp/cct-canary-XXXXXX";
static char *e2b_key, *agent_key, *program;
static struct faultd *srv;
static struct mini *other, *proxy; /* another origin, and one that all is told to go through */

static void hear(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    (void)ctx;
    (void)r;
    mini_reply(c, 502, "", "");
}

/* --- runs ------------------------------------------------------------------------------------ */

/* The environment of a run; trusted: it knows the server's CA. */
static char **environment(bool trusted, const char *key)
{
    char **env = bench_env(dir, 0), *by = mini_url(proxy, "");
    size_t n = 0;

    while (env[n])
        n++;
    env = xrealloc(env, (n + 12) * sizeof(*env));
    env[n++] = xasprintf("E2B_API_URL=%s", faultd_url(srv));
    env[n++] = xasprintf("E2B_SANDBOX_URL=%s", faultd_url(srv));
    env[n++] = xasprintf("E2B_API_KEY=%s", key);
    env[n++] = xasprintf("ANTHROPIC_API_KEY=%s", agent_key);
    env[n++] = xasprintf("http_proxy=%s", by);
    env[n++] = xasprintf("HTTPS_PROXY=%s", by);
    env[n++] = xasprintf("ALL_PROXY=%s", by);
    env[n++] = xasprintf("SSLKEYLOGFILE=%s/keylog", dir);
    if (trusted)
        env[n++] = xasprintf("SSL_CERT_FILE=%s", faultd_ca(srv));
    env[n] = NULL;
    free(by);
    return env;
}

static void env_free(char **env)
{
    for (size_t i = 0; env[i]; i++)
        free(env[i]);
    free(env);
}

static char *in_dir(const char *name)
{
    return fs_join(dir, name);
}

/* A command; what it says goes to a file that is searched too. Its exit status. */
static int run(bool trusted, const char *key, const char *const *args)
{
    const char *argv[16] = {program, "--set", "log.level=debug", "-v"};
    char *out = in_dir("said"), **env = environment(trusted, key);
    posix_spawn_file_actions_t fa;
    int status = -1;
    size_t n = 4;
    pid_t pid;

    while (*args && n < 15)
        argv[n++] = *args++;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, out, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&fa, 1, 2);
    assert_int_equal(posix_spawn(&pid, program, &fa, NULL, (char *const *)(uintptr_t)argv, env), 0);
    canary_watch(pid);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    posix_spawn_file_actions_destroy(&fa);
    env_free(env);
    free(out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool was_said(const char *text)
{
    char *path = in_dir("said");
    size_t len = 0;
    char *all = fs_read(path, 1 << 20, false, &len, NULL);
    bool yes = all && strstr(all, text);

    free(all);
    free(path);
    return yes;
}

/* Requests of the server's log that carried the key. */
static int arrived(void)
{
    char *log = faultd_http(srv, "GET", "/_faultd/log", NULL), *needle;
    int n = 0;

    needle = xasprintf("x-api-key: %s", e2b_key); /* as JSON writes it */
    for (char *p = log; p && (p = strcasestr(p, needle)); p++)
        n++;
    free(needle);
    free(log);
    return n;
}

/* --- the tests ------------------------------------------------------------------------------ */

static void test_the_search_finds(void **state)
{
    static const char *const wraps[] = {"%s", "x%s", "Authorization: %s!", "{\"k\":\"%s\"}"};
    char *path = in_dir("planted");

    (void)state;
    for (size_t i = 0; i < sizeof(wraps) / sizeof(wraps[0]); i++)
        for (int coded = 0; coded < 2; coded++) {
            char *at = strstr(wraps[i], "%s");
            char *text = xasprintf("%.*s%s%s", (int)(at - wraps[i]), wraps[i], e2b_key, at + 2);
            char *b64 = b64_encode(text, strlen(text));
            FILE *f = fopen(path, "w");
            assert_non_null(f);
            fprintf(f, "before %s after", coded ? b64 : text);
            fclose(f);
            assert_int_equal(canary_in_files(dir), 1);
            free(text);
            free(b64);
        }
    assert_string_equal(canary_in("a=e2b_canary%2Bx7q%2FZk%3D9&", 28), "url-encoded");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(canary_in_files(dir), 0);
    free(path);
}

static void test_commands(void **state)
{
    static const char *const ls[] = {"ls", NULL}, *const doctor[] = {"doctor", NULL};
    static const char *const argument[] = {"--key", "e2b_0123456789abcdef", "ls", NULL};
    char *wrong = xasprintf("%sX", e2b_key), *redirect;

    (void)state;
    assert_int_equal(run(true, e2b_key, ls), 0);
    assert_true(arrived() > 0); /* at its own origin, and the log would show it elsewhere */
    assert_int_equal(run(true, wrong, ls), 4);
    assert_int_equal(run(false, e2b_key, ls), 6);
    assert_true(was_said("cannot trust \"localhost"));
    run(true, e2b_key, doctor);
    assert_int_equal(run(true, e2b_key, argument), 2);
    redirect = xasprintf("{\"rules\":[{\"path\":\"/v2/sandboxes\",\"status\":307,\"times\":1,"
                         "\"retry_after\":\"1\\r\\nLocation: http://127.0.0.1:%d/\"},"
                         "{\"path\":\"/v2/sandboxes\",\"status\":401,\"times\":2}]}",
                         mini_port(other));
    assert_true(faultd_config(srv, redirect));
    run(true, e2b_key, ls);
    run(true, e2b_key, ls);
    assert_true(faultd_config(srv, "{\"rules\":[]}"));
    free(redirect);
    free(wrong);
}

static void test_session(void **state)
{
    static const char *const create[] = {"new", "--tool", "guarded", "--name", "guarded", NULL};
    static const char *const ask[] = {"send", "guarded", "echo length=${#ANTHROPIC_API_KEY}",
                                      "--wait", NULL};
    static const char *const logs[] = {"logs", "guarded", NULL};
    char *words = xasprintf("length=%zu", strlen(agent_key)), *probe = bench_program("faultd");
    char *command = xasprintf("'%s' probe > /dev/null 2>&1", probe);

    (void)state;
    if (system(command) != 0) {
        print_message("# no processes in sandboxes on this machine\n");
        free(command);
        free(probe);
        free(words);
        skip();
    }
    assert_int_equal(run(true, e2b_key, create), 0);
    assert_int_equal(run(true, e2b_key, ask), 0);
    assert_true(was_said(words)); /* the agent has it */
    assert_int_equal(run(true, e2b_key, logs), 0);
    free(command);
    free(probe);
    free(words);
}

static int cores(void)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d)))
        n += str_starts(e->d_name, "core");
    if (d)
        closedir(d);
    return n;
}

static bool ignores_sigpipe(pid_t pid)
{
    char path[64], line[200];
    unsigned long long set = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        if (str_starts(line, "SigIgn:"))
            set = strtoull(line + 7, NULL, 16);
    if (f)
        fclose(f);
    return set >> (SIGPIPE - 1) & 1;
}

static void test_screen_and_its_crash(void **state)
{
    static const char *const up[] = {"NAV", NULL};
    const char *argv[] = {program, "--set", "log.level=debug", NULL};
    char **env = environment(true, e2b_key);
    struct rawpty p;
    siginfo_t end = {0};

    (void)state;
    rawpty_start(&p, argv, env, 30, 100);
    env_free(env);
    canary_watch(p.pid);
    assert_true(rawpty_until(&p, up, DEADLINE));
    rawpty_send(&p, "5"); /* the log, then help */
    rawpty_watch(&p, 400);
    rawpty_send(&p, "?");
    rawpty_watch(&p, 400);
    assert_true(arrived() > 0);
    assert_true(ignores_sigpipe(p.pid));
    kill(p.pid, SIGSEGV);
    rawpty_settle(&p, 200, 5000);
    assert_int_equal(waitid(P_PID, (id_t)p.pid, &end, WEXITED | WNOWAIT), 0);
    assert_int_not_equal(end.si_code, CLD_DUMPED);
    assert_int_equal(cores(), 0);
    assert_true(p.seen.len > 1000);
    assert_null(canary_in(p.seen.p, p.seen.len));
    assert_int_equal(rawpty_end(&p, 10000), 128 + SIGSEGV);
}

static void test_nowhere_else(void **state)
{
    char *keylog = in_dir("keylog");

    (void)state;
    struct canary_seen s = canary_watch_stop();
    assert_int_equal(canary_in_files(dir), 0);
    print_message("# %d files, %d looks at the process table, %d environments\n", canary_files(),
                  s.rounds, s.processes);
    assert_true(canary_files() >= 3);
    assert_true(s.rounds > 10);
    if (geteuid() == 0) /* who else may not look into a process that cannot be dumped */
        assert_true(s.processes > 0);
    assert_int_equal(s.hits, 0);
    assert_int_equal(mini_accepted(proxy), 0);
    assert_int_equal(mini_accepted(other), 0);
    assert_int_not_equal(access(keylog, F_OK), 0);
    free(keylog);
}

/* --- before and after ----------------------------------------------------------------------- */

static void write_tools(void)
{
    char *path = in_dir("tools.conf");
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(dprintf(fd, "[tool guarded]\nadapter = shell\ntemplate = base\ncommand = sh\n"
                            "needs = anthropic\n") > 0);
    close(fd);
    free(path);
}

static int begin(void **state)
{
    const char *args[] = {"--key", NULL, "--sandboxes", "3", "--paused", "1", "--config",
                          "{\"headers\":true}", NULL};
    const char *build = getenv("B");
    struct rlimit core = {RLIM_INFINITY, RLIM_INFINITY};

    (void)state;
    if (!mkdtemp(dir))
        return -1;
    e2b_key = xstrdup("e2b_canary+x7q/Zk=9");
    agent_key = xasprintf("sk-ant-canary-%d-mark", (int)getpid());
    canary_add(e2b_key);
    canary_add(agent_key);
    args[1] = e2b_key;
    srv = faultd_start_tls(args);
    other = mini_start(hear, NULL);
    proxy = mini_start(hear, NULL);
    program = realpath(build ? build : "build/debug", NULL);
    char *all = fs_join(program, "cc-tui");
    free(program);
    program = all;
    write_tools();
    setrlimit(RLIMIT_CORE, &core);
    canary_watch_start();
    return 0;
}

static int end(void **state)
{
    (void)state;
    faultd_stop(srv);
    mini_stop(other);
    mini_stop(proxy);
    canary_clear();
    free(program);
    free(e2b_key);
    free(agent_key);
    return tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_search_finds),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_screen_and_its_crash),
        cmocka_unit_test(test_nowhere_else),
    };

    return cmocka_run_group_tests_name("canary", tests, begin, end);
}
