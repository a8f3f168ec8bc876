/* The local provider as a real program, spoken to with plain bytes: who may talk
 * to it, the life of a sandbox, restarts, refused namespaces. */
#include "../lib/plainhttp.h"
#include "../lib/rawhttp.h"
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
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

static char root[64];  /* scratch folder */
static char exe[4096]; /* the program under test */
static char state_dir[96], runtime_dir[96];
static int control, traffic;
static pid_t provider;
static char key[64];
static bool isolated = true; /* namespaces work here */

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
static int run(bool refused, struct buf *out, const char *command, const char *option)
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
        const char *mode = isolated || refused ? NULL : "--unsafe";
        execl(exe, exe, command, "--state-dir", state_dir, "--runtime-dir", runtime_dir,
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

static char *read_text(const char *path)
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

static void read_address(void)
{
    char path[160];
    struct stat st;
    snprintf(path, sizeof(path), "%s/local.json", runtime_dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    char *text = read_text(path);
    struct cJSON *j = json_parse(text, strlen(text), NULL);
    control = (int)json_i64(j, "controlPort", 0);
    traffic = (int)json_i64(j, "trafficPort", 0);
    provider = (pid_t)json_i64(j, "pid", 0);
    assert_true(str_copy(key, sizeof(key), json_str(j, "apiKey", "")));
    assert_int_equal(json_i64(j, "version", 0), 1);
    assert_int_equal(strlen(key), 44);
    json_free(j);
    free(text);
}

static void serve(const char *option)
{
    struct buf out = BUF_INIT;
    int rc = run(false, &out, "serve", option);
    if (rc != 0)
        fail_msg("serve: %d: %s", rc, buf_str(&out));
    buf_release(&out);
    read_address();
}

static bool await(bool (*is_true)(const char *arg), const char *arg)
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

static struct plainhttp call(const char *method, const char *path, const char *json)
{
    char *text =
        xasprintf("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
                  "Connection: close\r\nContent-Type: application/json\r\n"
                  "Content-Length: %zu\r\n\r\n%s",
                  method, path, control, key, json ? strlen(json) : 0, json ? json : "");
    struct plainhttp a = plainhttp_exchange(control, text, strlen(text));
    free(text);
    return a;
}

static int status_of(const char *method, const char *path, const char *json)
{
    struct plainhttp a = call(method, path, json);
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

static struct cJSON *get_json(const char *method, const char *path, const char *json, int want)
{
    struct plainhttp a = call(method, path, json);
    if (a.status != want)
        fail_msg("%s %s: %d, not %d: %s", method, path, a.status, want, a.body);
    struct cJSON *j = json_parse(a.body, strlen(a.body), NULL);
    assert_non_null(j);
    buf_release(&a.raw);
    return j;
}

static char *create(const char *json)
{
    struct cJSON *j = get_json("POST", "/v2/sandboxes", json, 201);
    char *id = xstrdup(json_str(j, "sandboxID", ""));
    assert_int_equal(strlen(id), 21);
    json_free(j);
    return id;
}

static char *box_path(const char *id, const char *tail)
{
    static char path[128];
    snprintf(path, sizeof(path), "/sandboxes/%s%s", id, tail);
    return path;
}

static struct plainhttp through(const char *id, const char *port, const char *path,
                                const char *headers)
{
    char *text = xasprintf("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nE2b-Sandbox-Id: %s\r\n"
                           "E2b-Sandbox-Port: %s\r\n%s\r\n",
                           path, traffic, id, port, headers);
    struct plainhttp a = plainhttp_exchange(traffic, text, strlen(text));
    free(text);
    return a;
}

static int through_status(const char *id, const char *port, const char *path,
                          const char *headers)
{
    struct plainhttp a = through(id, port, path, headers);
    buf_release(&a.raw);
    return a.status;
}

/* The init's pid, from the record. */
static pid_t init_pid(const char *id)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/boxes/%s/box.json", state_dir, id);
    char *text = read_text(path);
    assert_non_null(text);
    struct cJSON *j = json_parse(text, strlen(text), NULL);
    pid_t pid = (pid_t)json_i64(j, "pid", 0);
    assert_null(strstr(text, "canary-value"));
    json_free(j);
    free(text);
    assert_true(pid > 1);
    return pid;
}

static bool is_dead(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    char *text = read_text(path);
    char *p = text ? strrchr(text, ')') : NULL;
    bool dead = !p || p[2] == 'Z' || p[2] == 'X';
    free(text);
    return dead;
}

static bool is_gone(const char *id)
{
    return status_of("GET", box_path(id, ""), NULL) == 404;
}

static bool has_no_folder(const char *id)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/boxes/%s", state_dir, id);
    return access(path, F_OK) != 0;
}

static bool is_paused(const char *id)
{
    struct cJSON *j = get_json("GET", box_path(id, ""), NULL, 200);
    bool paused = strcmp(json_str(j, "state", ""), "paused") == 0;
    json_free(j);
    return paused;
}

/* --- who may talk -------------------------------------------------------------- */

struct raw_case {
    const char *text; /* %d: the port, %s: the key */
    int status;
};

static const struct raw_case raw_cases[] = {
    {"GET /v2/sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n\r\n", 200},
    {"GET /v2/sandboxes HTTP/1.0\r\nHost: localhost:%d\r\nX-API-Key: %s\r\n\r\n", 200},
    {"GET /health HTTP/1.0\r\nHost: localhost:%d\r\n\r\n", 204},
    {"GET /v2/sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n", 401},
    {"GET /v2/sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: x%s\r\n\r\n", 401},
    {"GET /v2/sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: \r\n\r\n", 401},
    {"GET /none HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n", 401},
    {"GET /none HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n\r\n", 404},
    {"GET / HTTP/1.1\r\nHost: evil.example:%d\r\nX-API-Key: %s\r\n\r\n", 403},
    {"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\nOrigin: null\r\n\r\n", 403},
    {"OPTIONS / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n\r\n", 405},
    {"GET / HTTP/1.1\nHost: 127.0.0.1:%d\nX-API-Key: %s\n\n", 400},
    {"GET / HTTP/1.1\r\nX-Not-Host: %d\r\nX-API-Key: %s\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost : 127.0.0.1:%d\r\nX-API-Key: %s\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\nContent-Length: 1\r\n"
     "Content-Length: 1\r\n\r\nx",
     400},
    {"POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\nContent-Length: 3\r\n"
     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     400},
    {"POST /sandboxes HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
     "Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n",
     400},
    {"POST /sandboxes HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
     "Content-Length: 5000000\r\n\r\n",
     413},
    {"POST /sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
     "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
     415},
    {"POST /sandboxes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
     "Content-Type: application/json\r\nContent-Length: 1\r\n\r\n{",
     400},
};

static void test_who_may_talk(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(raw_cases) / sizeof(raw_cases[0]); i++) {
        char text[1024];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof(text), raw_cases[i].text, control, key);
#pragma GCC diagnostic pop
        struct plainhttp a = plainhttp_exchange(control, text, strlen(text));
        if (a.status != raw_cases[i].status)
            fail_msg("case %zu: %d, not %d: %s", i, a.status, raw_cases[i].status,
                     buf_str(&a.raw));
        assert_null(strcasestr(buf_str(&a.raw), "access-control"));
        buf_release(&a.raw);
    }
}

/* Requests in one packet are answered in order; a chunked body is taken. */
static void test_pipelined(void **state)
{
    (void)state;
    char *text =
        xasprintf("GET /templates/aliases/demo HTTP/1.1\r\nHost: localhost:%d\r\n"
                  "X-API-Key: %s\r\n\r\n"
                  "POST /sandboxes HTTP/1.1\r\nHost: localhost:%d\r\nX-API-Key: %s\r\n"
                  "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "10\r\n{\"templateID\":\"n\r\n5\r\none\"}\r\n0\r\n\r\n"
                  "GET /health HTTP/1.1\r\nHost: localhost:%d\r\n"
                  "Connection: close\r\n\r\n",
                  control, key, control, key, control);
    struct plainhttp a = plainhttp_exchange(control, text, strlen(text));
    const char *raw = buf_str(&a.raw);
    const char *first = strstr(raw, "HTTP/1.1 200 ");
    const char *second = strstr(raw, "HTTP/1.1 404 ");
    const char *third = strstr(raw, "HTTP/1.1 204 ");
    assert_non_null(first);
    assert_true(second > first);
    assert_true(third > second);
    assert_non_null(strstr(raw, "template 'none' not found"));
    buf_release(&a.raw);
    free(text);
}

/* --- life ------------------------------------------------------------------------ */

/* The provider was started with SIGINT ignored; a sandbox must not inherit it. */
static bool ignores_sigint(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    char *text = read_text(path);
    assert_non_null(text);
    const char *p = strstr(text, "SigIgn:");
    assert_non_null(p);
    bool ignored = strtoull(p + 7, NULL, 16) & 1ull << (SIGINT - 1);
    free(text);
    return ignored;
}

static void test_life(void **state)
{
    (void)state;
    char *id = create("{\"templateID\":\"demo\",\"timeout\":60,\"metadata\":{\"t\":\"life\"},"
                      "\"envVars\":{\"SECRET\":\"canary-value\"}}");
    pid_t pid = init_pid(id);
    assert_false(ignores_sigint(pid));
    struct cJSON *j = get_json("GET", box_path(id, ""), NULL, 200);
    assert_string_equal(json_str(j, "state", ""), "running");
    assert_string_equal(json_str(j, "alias", ""), "demo");
    assert_int_equal(json_bool(j, "isolated", !isolated), isolated);
    int64_t start, end;
    assert_int_equal(clock_parse_rfc3339(json_str(j, "startedAt", ""), &start), 0);
    assert_int_equal(clock_parse_rfc3339(json_str(j, "endAt", ""), &end), 0);
    assert_int_equal(end - start, 60000);
    char *token =
        xasprintf("X-Access-Token: %s\r\nX-CC-Control: %s\r\n",
                  json_str(j, "envdAccessToken", ""), json_str(j, "envdAccessToken", ""));
    json_free(j);
    assert_int_equal(through_status(id, "49983", "/health", ""), 204);
    assert_int_equal(through_status(id, "49983", "/envs", ""), 401);
    struct plainhttp envs = through(id, "49983", "/envs", token);
    assert_int_equal(envs.status, 200);
    assert_non_null(strstr(buf_str(&envs.raw), "canary-value"));
    assert_null(strstr(buf_str(&envs.raw), key));
    assert_null(strstr(buf_str(&envs.raw), "host-canary"));
    buf_release(&envs.raw);
    assert_int_equal(through_status(id, "49983", "/cc/logs", token), 404);
    assert_int_equal(through_status(id, "8080", "/", token), 502);
    assert_int_equal(through_status("izzzzzzzzzzzzzzzzzzzz", "49983", "/health", ""), 502);
    assert_int_equal(through_status("../x", "49983", "/health", ""), 400);
    assert_int_equal(through_status(id, "49983", "/health", "Origin: null\r\n"), 403);
    j = get_json("GET", box_path(id, "/metrics"), NULL, 200);
    assert_true(json_i64(json_first(j), "timestampUnix", 0) > 0);
    json_free(j);
    assert_int_equal(status_of("DELETE", box_path(id, ""), NULL), 204);
    assert_true(is_dead(pid));
    assert_int_equal(status_of("DELETE", box_path(id, ""), NULL), 404);
    assert_int_equal(through_status(id, "49983", "/health", ""), 502);
    assert_true(await(has_no_folder, id));
    free(token);
    free(id);
}

static void test_refused_creates(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"templateID\":7}",
        "{\"templateID\":\"base\",\"timeout\":0}",
        "{\"templateID\":\"base\",\"timeout\":-5}",
        "{\"templateID\":\"base\",\"timeout\":\"1\"}",
        "{\"templateID\":\"base\",\"timeout\":999999}",
        "{\"templateID\":\"base\",\"metadata\":{\"a\":1}}",
        "{\"templateID\":\"base\",\"envVars\":[]}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(status_of("POST", "/v2/sandboxes", bad[i]), 400);
    assert_int_equal(status_of("POST", "/v2/sandboxes", "{\"templateID\":\"none\"}"), 404);
    assert_int_equal(status_of("POST", "/volumes", "{\"name\":\"x\"}"), 501);
}

static void test_times(void **state)
{
    (void)state;
    char *id = create("{\"templateID\":\"base\",\"timeout\":60}");
    pid_t pid = init_pid(id);
    assert_int_equal(status_of("POST", box_path(id, "/resume"), "{}"), 409);
    assert_int_equal(status_of("POST", box_path(id, "/connect"), "{}"), 400);
    assert_int_equal(status_of("POST", box_path(id, "/connect"), "{\"timeout\":1}"), 200);
    assert_int_equal(status_of("POST", box_path(id, "/refreshes"), "{\"duration\":100}"), 204);
    struct cJSON *j = get_json("GET", box_path(id, ""), NULL, 200);
    int64_t end = 0;
    clock_parse_rfc3339(json_str(j, "endAt", ""), &end);
    assert_true(end - clock_wall_ms() > 90000); /* extended, and not shortened */
    json_free(j);
    assert_int_equal(status_of("POST", box_path(id, "/timeout"), "{\"timeout\":1}"), 204);
    assert_true(await(is_gone, id));
    assert_true(await(has_no_folder, id));
    assert_true(is_dead(pid));
    free(id);
}

static void test_pause(void **state)
{
    (void)state;
    char *id = create("{\"templateID\":\"base\",\"timeout\":1,\"autoPause\":true}");
    assert_true(await(is_paused, id));
    assert_int_equal(status_of("POST", box_path(id, "/pause"), NULL), 409);
    assert_int_equal(status_of("POST", box_path(id, "/timeout"), "{\"timeout\":5}"), 409);
    assert_int_equal(through_status(id, "49983", "/health", ""), 502);
    char path[96];
    snprintf(path, sizeof(path), "/v2/sandboxes/%s/connect", id);
    assert_int_equal(status_of("POST", path, NULL), 201);
    assert_int_equal(status_of("POST", path, NULL), 200);
    assert_int_equal(through_status(id, "49983", "/health", ""), 204);
    assert_int_equal(status_of("POST", box_path(id, "/pause"), "{}"), 204);
    assert_int_equal(status_of("DELETE", box_path(id, ""), NULL), 204);
    free(id);
}

static void test_auto_resume(void **state)
{
    (void)state;
    char *id = create("{\"templateID\":\"base\",\"timeout\":60,\"autoPause\":true,"
                      "\"autoResume\":{\"enabled\":true}}");
    assert_int_equal(status_of("POST", box_path(id, "/pause"), NULL), 204);
    assert_int_equal(through_status(id, "49983", "/health", ""), 204);
    assert_false(is_paused(id));
    assert_int_equal(status_of("DELETE", box_path(id, ""), NULL), 204);
    free(id);
}

static void test_list(void **state)
{
    (void)state;
    char *ids[3];
    for (int i = 0; i < 3; i++) {
        char json[160];
        snprintf(json, sizeof(json), "{\"templateID\":\"base\",\"metadata\":{\"n\":\"%d\"}}",
                 i);
        ids[i] = create(json);
    }
    /* the limit of this provider is three */
    struct plainhttp over = call("POST", "/v2/sandboxes", "{\"templateID\":\"base\"}");
    assert_int_equal(over.status, 429);
    assert_null(strcasestr(buf_str(&over.raw), "retry-after"));
    buf_release(&over.raw);
    assert_int_equal(status_of("POST", box_path(ids[0], "/pause"), NULL), 204);
    struct plainhttp page = call("GET", "/v2/sandboxes?limit=2&order=asc", NULL);
    assert_non_null(strstr(buf_str(&page.raw), "X-Total-Running: 2\r\n"));
    char *token = strstr(buf_str(&page.raw), "X-Next-Token: ");
    assert_non_null(token);
    char path[160];
    snprintf(path, sizeof(path), "/v2/sandboxes?limit=2&order=asc&nextToken=%.*s",
             (int)strcspn(token + 14, "\r"), token + 14);
    struct plainhttp last = call("GET", path, NULL);
    assert_non_null(strstr(last.body, ids[2]));
    assert_null(strstr(last.body, ids[1]));
    assert_null(strstr(buf_str(&last.raw), "X-Next-Token"));
    buf_release(&page.raw);
    buf_release(&last.raw);
    struct cJSON *j = get_json("GET", "/sandboxes", NULL, 200);
    assert_null(strstr(json_str(json_first(j), "sandboxID", ""), ids[0]));
    json_free(j);
    j = get_json("GET", "/v2/sandboxes?metadata=n%3D1", NULL, 200);
    assert_string_equal(json_str(json_first(j), "sandboxID", ""), ids[1]);
    assert_null(json_next(json_first(j)));
    json_free(j);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(status_of("DELETE", box_path(ids[i], ""), NULL), 204);
        free(ids[i]);
    }
}

/* --- restarts ----------------------------------------------------------------------- */

static bool provider_is_dead(const char *arg)
{
    (void)arg;
    return is_dead(provider);
}

static void test_taken_over(void **state)
{
    (void)state;
    char *kept = create("{\"templateID\":\"base\",\"timeout\":120}");
    char *lost = create("{\"templateID\":\"base\",\"timeout\":120}");
    char *late = create("{\"templateID\":\"base\",\"timeout\":1}");
    pid_t kept_pid = init_pid(kept), lost_pid = init_pid(lost), late_pid = init_pid(late);
    char old_key[64];
    str_copy(old_key, sizeof(old_key), key);
    kill(provider, SIGKILL);
    assert_true(await(provider_is_dead, NULL));
    kill(lost_pid, SIGKILL);
    while (!is_dead(lost_pid))
        poll(NULL, 0, 10);
    assert_false(is_dead(kept_pid));
    serve(NULL);
    assert_string_not_equal(key, old_key);
    assert_int_equal(through_status(kept, "49983", "/health", ""), 204);
    assert_int_equal(init_pid(kept), kept_pid);
    assert_true(is_gone(lost));
    assert_true(await(is_gone, late));
    assert_true(await(has_no_folder, late));
    assert_true(is_dead(late_pid));
    /* the one taken over is ended like any other */
    assert_int_equal(status_of("DELETE", box_path(kept, ""), NULL), 204);
    assert_true(is_dead(kept_pid));
    free(kept);
    free(lost);
    free(late);
}

/* An init that hangs delays nobody else, and can still be killed. */
static void test_wedged(void **state)
{
    (void)state;
    char *id = create("{\"templateID\":\"base\",\"timeout\":60}");
    pid_t pid = init_pid(id);
    kill(pid, SIGSTOP);
    int hanging = rawhttp_dial(control);
    char *text = xasprintf("POST /sandboxes/%s/pause HTTP/1.0\r\nHost: localhost:%d\r\n"
                           "X-API-Key: %s\r\n\r\n",
                           id, control, key);
    assert_int_equal(write(hanging, text, strlen(text)), (ssize_t)strlen(text));
    int64_t start = clock_mono_ms();
    assert_int_equal(status_of("GET", "/v2/sandboxes", NULL), 200);
    char *other = create("{\"templateID\":\"base\",\"timeout\":60}");
    assert_int_equal(status_of("DELETE", box_path(other, ""), NULL), 204);
    assert_true(clock_mono_ms() - start < 4000);
    assert_int_equal(status_of("DELETE", box_path(id, ""), NULL), 204);
    assert_true(is_dead(pid));
    struct plainhttp a = plainhttp_finish(hanging); /* the pause that could not be */
    assert_int_equal(a.status, 404);
    buf_release(&a.raw);
    free(other);
    free(text);
    free(id);
}

/* `stop` also ends what a provider that died left behind. */
static void test_stop_leftovers(void **state)
{
    (void)state;
    serve(NULL);
    char *id = create("{\"templateID\":\"base\",\"timeout\":60}");
    pid_t pid = init_pid(id);
    kill(provider, SIGKILL);
    assert_true(await(provider_is_dead, NULL));
    assert_false(is_dead(pid));
    assert_int_equal(run(false, NULL, "stop", NULL), 0);
    assert_true(is_dead(pid));
    assert_true(has_no_folder(id));
    free(id);
}

static void test_one_only(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_int_equal(run(false, &out, "serve", NULL), 0);
    assert_non_null(strstr(buf_str(&out), "already running"));
    buf_clear(&out);
    assert_int_equal(run(false, &out, "status", NULL), 0);
    assert_non_null(strstr(buf_str(&out), "running: pid"));
    buf_release(&out);
}

static void test_stop(void **state)
{
    (void)state;
    char *id = create("{\"templateID\":\"base\",\"timeout\":60}");
    char path[160];
    pid_t pid = init_pid(id);
    assert_int_equal(run(false, NULL, "stop", NULL), 0);
    assert_true(is_dead(pid));
    assert_true(is_dead(provider));
    assert_true(has_no_folder(id));
    snprintf(path, sizeof(path), "%s/local.json", runtime_dir);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(run(false, NULL, "status", NULL), 1);
    assert_int_equal(run(false, NULL, "stop", NULL), 0);
    struct buf out = BUF_INIT;
    assert_int_equal(run(false, &out, "stop", "--state-dir=here"), 1);
    assert_non_null(strstr(buf_str(&out), "'here' must be an absolute path"));
    buf_release(&out);
    free(id);
}

static void test_idle_exit(void **state)
{
    (void)state;
    serve("--idle-exit=1");
    assert_true(await(provider_is_dead, NULL));
}

static void test_usage(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_int_equal(run(false, &out, "bogus", NULL), 2);
    assert_int_equal(run(false, &out, "serve", "--bogus"), 2);
    assert_int_equal(run(false, &out, "serve", "--idle-exit=0"), 2);
    assert_int_equal(run(false, &out, "serve", "--state-dir=relative"), 1);
    assert_non_null(strstr(buf_str(&out), "must be an absolute path"));
    buf_release(&out);
}

static void test_refused_namespaces(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_int_equal(run(true, &out, "serve", NULL), 1);
    assert_non_null(strstr(buf_str(&out), "step 'namespaces' failed"));
    assert_non_null(strstr(buf_str(&out), "seccomp=unconfined"));
    buf_clear(&out);
    assert_int_equal(run(true, &out, "serve", "--unsafe"), 0);
    read_address();
    struct plainhttp a =
        call("POST", "/v2/sandboxes", "{\"templateID\":\"base\",\"timeout\":60}");
    assert_int_equal(a.status, 201);
    assert_non_null(strstr(buf_str(&a.raw), "X-CC-Isolated: no\r\n"));
    assert_non_null(strstr(a.body, "\"isolated\":false"));
    buf_release(&a.raw);
    assert_int_equal(run(false, &out, "stop", NULL), 0);
    buf_release(&out);
}

/* --- frame --------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static int setup(void **state)
{
    (void)state;
    const char *b = getenv("B");
    char *real = realpath(b ? b : "build/debug", NULL);
    assert_non_null(real);
    snprintf(exe, sizeof(exe), "%s/cc-tui-local", real);
    free(real);
    snprintf(root, sizeof(root), "/tmp/cct-prov-XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(state_dir, sizeof(state_dir), "%s/state", root);
    snprintf(runtime_dir, sizeof(runtime_dir), "%s/run", root);
    setenv("E2B_API_KEY", "host-canary", 1);
    char *probe = xasprintf("%s probe > %s/probe.txt", exe, root);
    FILE *p = popen(probe, "r");
    isolated = p && pclose(p) == 0;
    free(probe);
    if (!isolated)
        print_message("# namespaces are refused here: unisolated sandboxes are tested\n");
    serve("--max-running=3");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    run(false, NULL, "stop", NULL);
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_may_talk),   cmocka_unit_test(test_pipelined),
        cmocka_unit_test(test_life),           cmocka_unit_test(test_refused_creates),
        cmocka_unit_test(test_times),          cmocka_unit_test(test_pause),
        cmocka_unit_test(test_auto_resume),    cmocka_unit_test(test_list),
        cmocka_unit_test(test_one_only),       cmocka_unit_test(test_taken_over),
        cmocka_unit_test(test_wedged),         cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_leftovers), cmocka_unit_test(test_idle_exit),
        cmocka_unit_test(test_usage),          cmocka_unit_test(test_refused_namespaces),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
