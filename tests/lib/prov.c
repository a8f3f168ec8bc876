/* See prov.h. */
#include "prov.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000

struct prov prov = {.isolated = true};
static char root[64];  /* scratch folder */
static char exe[4096]; /* the program under test */

/* --- running the program ---------------------------------------------------- */

/* Refuse new user namespaces, as some container hosts do. */
static void refuse_namespaces(void)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
    if (seccomp_load(ctx) != 0)
        _exit(99);
}

/* Run with arguments; exit status, and what it printed. */
int prov_run(bool refused, struct buf *out, const char *command, const char *option)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        signal(SIGINT, SIG_IGN); /* must not reach the sandboxes */
        if (refused)
            refuse_namespaces();
        const char *mode = prov.isolated || refused ? NULL : "--unsafe";
        execl(exe, exe, command, "--state-dir", prov.state_dir, "--runtime-dir", prov.runtime_dir,
              option ? option : mode, option ? mode : NULL, (char *)NULL);
        _exit(98);
    }
    close(fds[1]);
    char text[1024];
    ssize_t n;
    while ((n = read(fds[0], text, sizeof(text))) > 0)
        if (out)
            buf_add(out, text, (size_t)n);
    close(fds[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

char *prov_read_text(const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return NULL;
    char text[4096];
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    return xstrdup(text);
}

void prov_read_address(void)
{
    char path[160];
    struct stat st;
    snprintf(path, sizeof(path), "%s/local.json", prov.runtime_dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    char *text = prov_read_text(path);
    struct cJSON *j = json_parse(text, strlen(text), NULL);
    prov.control = (int)json_i64(j, "controlPort", 0);
    prov.traffic = (int)json_i64(j, "trafficPort", 0);
    prov.pid = (pid_t)json_i64(j, "pid", 0);
    assert_true(str_copy(prov.key, sizeof(prov.key), json_str(j, "apiKey", "")));
    assert_int_equal(json_i64(j, "version", 0), 1);
    assert_int_equal(strlen(prov.key), 44);
    json_free(j);
    free(text);
}

void prov_serve(const char *option)
{
    struct buf out = BUF_INIT;
    int rc = prov_run(false, &out, "serve", option);
    if (rc != 0)
        fail_msg("serve: %d: %s", rc, buf_str(&out));
    buf_release(&out);
    prov_read_address();
}

bool prov_await(bool (*is_true)(const char *arg), const char *arg)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    while (clock_mono_ms() < end) {
        if (is_true(arg))
            return true;
        poll(NULL, 0, 10);
    }
    return false;
}

/* --- plain HTTP --------------------------------------------------------------- */

struct plainhttp prov_call(const char *method, const char *path, const char *json)
{
    char *text =
        xasprintf("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
                  "Connection: close\r\nContent-Type: application/json\r\n"
                  "Content-Length: %zu\r\n\r\n%s",
                  method, path, prov.control, prov.key, json ? strlen(json) : 0, json ? json : "");
    struct plainhttp a = plainhttp_exchange(prov.control, text, strlen(text));
    free(text);
    return a;
}

int prov_status_of(const char *method, const char *path, const char *json)
{
    struct plainhttp a = prov_call(method, path, json);
    if (a.status >= 400) { /* every error has the shape clients read */
        struct cJSON *j = json_parse(a.body, strlen(a.body), NULL);
        assert_int_equal(json_i64(j, "code", 0), a.status);
        assert_true(json_str(j, "message", "")[0] != '\0');
        assert_non_null(strstr(buf_str(&a.raw), "Content-Type: application/json\r\n"));
        json_free(j);
    }
    buf_release(&a.raw);
    return a.status;
}

struct cJSON *prov_get_json(const char *method, const char *path, const char *json, int want)
{
    struct plainhttp a = prov_call(method, path, json);
    if (a.status != want)
        fail_msg("%s %s: %d, not %d: %s", method, path, a.status, want, a.body);
    struct cJSON *j = json_parse(a.body, strlen(a.body), NULL);
    assert_non_null(j);
    buf_release(&a.raw);
    return j;
}

char *prov_create(const char *json)
{
    struct cJSON *j = prov_get_json("POST", "/v2/sandboxes", json, 201);
    char *id = xstrdup(json_str(j, "sandboxID", ""));
    assert_int_equal(strlen(id), 21);
    json_free(j);
    return id;
}

char *prov_box_path(const char *id, const char *tail)
{
    static char path[128];
    snprintf(path, sizeof(path), "/sandboxes/%s%s", id, tail);
    return path;
}

struct plainhttp prov_through(const char *id, const char *port, const char *path,
                                const char *headers)
{
    char *text = xasprintf("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nE2b-Sandbox-Id: %s\r\n"
                           "E2b-Sandbox-Port: %s\r\n%s\r\n",
                           path, prov.traffic, id, port, headers);
    struct plainhttp a = plainhttp_exchange(prov.traffic, text, strlen(text));
    free(text);
    return a;
}

int prov_through_status(const char *id, const char *port, const char *path,
                          const char *headers)
{
    struct plainhttp a = prov_through(id, port, path, headers);
    buf_release(&a.raw);
    return a.status;
}

/* The init's pid, from the record. */
pid_t prov_init_pid(const char *id)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/boxes/%s/box.json", prov.state_dir, id);
    char *text = prov_read_text(path);
    assert_non_null(text);
    struct cJSON *j = json_parse(text, strlen(text), NULL);
    pid_t pid = (pid_t)json_i64(j, "pid", 0);
    assert_null(strstr(text, "canary-value"));
    json_free(j);
    free(text);
    assert_true(pid > 1);
    return pid;
}

bool prov_is_dead(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    char *text = prov_read_text(path);
    char *p = text ? strrchr(text, ')') : NULL;
    bool dead = !p || p[2] == 'Z' || p[2] == 'X';
    free(text);
    return dead;
}

bool prov_is_gone(const char *id)
{
    return prov_status_of("GET", prov_box_path(id, ""), NULL) == 404;
}

bool prov_has_no_folder(const char *id)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/boxes/%s", prov.state_dir, id);
    return access(path, F_OK) != 0;
}

bool prov_is_paused(const char *id)
{
    struct cJSON *j = prov_get_json("GET", prov_box_path(id, ""), NULL, 200);
    bool paused = strcmp(json_str(j, "state", ""), "paused") == 0;
    json_free(j);
    return paused;
}

/* --- frame --------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

int prov_setup(void **state)
{
    (void)state;
    const char *b = getenv("B");
    char *real = realpath(b ? b : "build/debug", NULL);
    assert_non_null(real);
    snprintf(exe, sizeof(exe), "%s/cc-tui-local", real);
    free(real);
    snprintf(root, sizeof(root), "/tmp/cct-prov-XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(prov.state_dir, sizeof(prov.state_dir), "%s/state", root);
    snprintf(prov.runtime_dir, sizeof(prov.runtime_dir), "%s/run", root);
    setenv("E2B_API_KEY", "host-canary", 1);
    char *probe = xasprintf("%s probe > %s/probe.txt", exe, root);
    FILE *p = popen(probe, "r");
    prov.isolated = p && pclose(p) == 0;
    free(probe);
    if (!prov.isolated)
        print_message("# namespaces are refused here: unisolated sandboxes are tested\n");
    prov_serve("--max-running=3");
    return 0;
}

int prov_teardown(void **state)
{
    (void)state;
    prov_run(false, NULL, "stop", NULL);
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
