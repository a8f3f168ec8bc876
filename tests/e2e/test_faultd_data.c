/* The fault server's data plane, asked by libcurl: processes, files, lines, and streams
 * that are broken event by event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/curlask.h"
#include "../lib/faultproc.h"
#include <arpa/inet.h>
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct faultd *server;
static char box[64], header_id[96], header_token[96];

/* A stream's messages, taken apart. */
struct events {
    ARR(struct cJSON *) v;
    char *end; /* text of the end envelope, or NULL */
    struct buf out;
    int64_t pid;
};

static struct reply ask_box(const char *method, const char *path, const char *body, size_t len,
                            const char *type, const char *more)
{
    char *url = xasprintf("%s%s", faultd_url(server), path);
    struct ask q = {.url = url,
                    .method = method,
                    .body = body,
                    .len = len,
                    .ca = faultd_ca(server),
                    .head = {header_id, "E2b-Sandbox-Port: 49983", header_token, type, more}};
    struct reply r = ask(NULL, &q);

    free(url);
    return r;
}

static struct cJSON *unary(const char *method, const char *body, long status)
{
    char *path = xasprintf("/%s", method);
    struct reply r = ask_box("POST", path, body, 0, "Content-Type: application/json", NULL);
    struct cJSON *j = json_parse(buf_str(&r.body), r.body.len, NULL);

    if (r.status != status)
        print_error("%s: %ld %s\n", method, r.status, buf_str(&r.body));
    assert_int_equal(r.status, status);
    reply_release(&r);
    free(path);
    return j;
}

static void must(const char *method, const char *body, long status)
{
    json_free(unary(method, body, status));
}

static void take_event(struct events *e, struct cJSON *j)
{
    const struct cJSON *data = json_path(j, "event.data");
    const char *text = json_str(data, "stdout", json_str(data, "pty", NULL));
    size_t len;
    char *bytes = text ? b64_decode(text, strlen(text), &len) : NULL;

    if (bytes)
        buf_add(&e->out, bytes, len);
    free(bytes);
    if (json_path(j, "event.start"))
        e->pid = json_i64(json_path(j, "event.start"), "pid", 0);
    *ARR_PUSH(&e->v) = j;
}

static struct events take_apart(const struct reply *r)
{
    struct events e = {ARR_INIT, NULL, BUF_INIT, 0};
    const char *p = r->body.p, *end = p + r->body.len;
    uint32_t n;

    while (p && end - p >= 5) {
        memcpy(&n, p + 1, sizeof(n));
        n = ntohl(n);
        if ((size_t)(end - p) < 5 + (size_t)n)
            break;
        if (p[0] == 2)
            e.end = xstrndup(p + 5, n);
        else
            take_event(&e, json_parse(p + 5, n, NULL));
        p += 5 + n;
    }
    return e;
}

static void events_release(struct events *e)
{
    for (size_t i = 0; i < e->v.n; i++)
        json_free(e->v.v[i]);
    ARR_RELEASE(&e->v);
    buf_release(&e->out);
    free(e->end);
}

static struct events stream(const char *method, const char *json, const char *more)
{
    struct buf b = BUF_INIT;
    uint32_t n = htonl((uint32_t)strlen(json));
    char *path = xasprintf("/process.Process/%s", method);

    buf_addc(&b, 0);
    buf_add(&b, &n, sizeof(n));
    buf_adds(&b, json);
    struct reply r =
        ask_box("POST", path, b.p, b.len, "Content-Type: application/connect+json", more);
    struct events e = take_apart(&r);
    reply_release(&r);
    buf_release(&b);
    free(path);
    return e;
}

static struct events shell(const char *command)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",");
    buf_add_json(&b, command, strlen(command));
    buf_adds(&b, "],\"envs\":{\"MINE\":\"m\"}},\"stdin\":false}");
    struct events e = stream("Start", b.p, NULL);
    buf_release(&b);
    return e;
}

static const struct cJSON *last(const struct events *e)
{
    return e->v.n ? json_path(e->v.v[e->v.n - 1], "event.end") : NULL;
}

/* ---- processes ---- */

static void test_processes(void **state)
{
    struct events e =
        shell("printf '%s ' \"$MINE\" \"$HOME\" \"$SET\"; pwd; ls -A /tmp; ls /proc/self/fd;"
              "touch /etc/x 2>/dev/null || echo no; exit 3");

    (void)state;
    assert_true(e.pid > 0);
    assert_string_equal(buf_str(&e.out), "m /home/user yes /home/user\n0\n1\n2\n3\nno\n");
    assert_int_equal(json_i64(last(&e), "exitCode", 0), 3);
    assert_true(json_bool(last(&e), "exited", false));
    assert_string_equal(json_str(last(&e), "error", ""), "exit status 3");
    assert_string_equal(e.end, "{}");
    events_release(&e);
    e = shell("kill -9 $$");
    assert_string_equal(json_str(last(&e), "status", ""), "signal: killed");
    events_release(&e);
    e = stream("Start", "{\"process\":{\"cmd\":\"/no/such\"}}", NULL);
    assert_non_null(strstr(e.end, "invalid_argument"));
    events_release(&e);
    e = stream("Start", "{\"process\":{\"cmd\":\"true\",\"cwd\":\"/no/such\"}}", NULL);
    assert_non_null(strstr(e.end, "folder"));
    events_release(&e);
    e = stream("Start", "{\"process\":{\"cmd\":\"tty\"},\"pty\":{\"size\":{}}}", NULL);
    assert_non_null(strstr(buf_str(&e.out), "/dev/pts/"));
    events_release(&e);
    e = stream("Start", "{\"process\":{\"cmd\":\"sleep\",\"args\":[\"1000\"]}}",
               "Connect-Timeout-Ms: 100");
    assert_non_null(strstr(e.end, "deadline_exceeded"));
    events_release(&e);
    e = stream("Connect", "{\"process\":{\"pid\":99}}", NULL);
    assert_non_null(strstr(e.end, "not_found"));
    events_release(&e);
}

static void *cat(void *arg)
{
    struct events *e = arg;

    *e = stream("Start", "{\"process\":{\"cmd\":\"cat\"},\"tag\":\"t\"}", NULL);
    return NULL;
}

static int64_t listed(void)
{
    struct cJSON *j = unary("process.Process/List", "{}", 200);
    int64_t pid = 0;

    for (const struct cJSON *c = json_first(json_get(j, "processes")); c; c = json_next(c))
        if (str_eq(json_str(c, "tag", NULL), "t"))
            pid = json_i64(c, "pid", 0);
    json_free(j);
    return pid;
}

static void test_input(void **state)
{
    struct events e, late;
    char text[128];
    pthread_t th;
    int64_t pid = 0;

    (void)state;
    pthread_create(&th, NULL, cat, &e);
    for (int64_t end = clock_mono_ms() + 20000; !pid && clock_mono_ms() < end;)
        pid = listed();
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%d},\"input\":{\"stdin\":\"aGkK\"}}",
             (int)pid);
    must("process.Process/SendInput", text, 200);
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGINT\"}",
             (int)pid);
    must("process.Process/SendSignal", text, 501);
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%d}}", (int)pid);
    must("process.Process/CloseStdin", text, 200);
    pthread_join(th, NULL);
    assert_int_equal(e.pid, pid);
    assert_string_equal(buf_str(&e.out), "hi\n");
    late = stream("Connect", text, NULL); /* who comes late hears the end */
    assert_int_equal(late.v.n, 2);
    assert_non_null(last(&late));
    assert_int_equal(listed(), 0);
    events_release(&late);
    events_release(&e);
}

/* ---- files ---- */

static void get_file(const char *query, const char *range, long status, const char *want)
{
    char *path = xasprintf("/files?path=%s", query);
    struct reply r = ask_box("GET", path, NULL, 0, range, NULL);

    assert_int_equal(r.status, status);
    if (want)
        assert_string_equal(buf_str(&r.body), want);
    reply_release(&r);
    free(path);
}

static void put_file(const char *path, const char *type, const char *body, size_t len,
                     long status)
{
    struct reply r = ask_box("POST", path, body, len, type, NULL);

    assert_int_equal(r.status, status);
    reply_release(&r);
}

static void test_files(void **state)
{
    static const char raw[] = "Content-Type: application/octet-stream",
                      form[] = "Content-Type: multipart/form-data; boundary=b0";
    static const char parts[] = "--b0\r\nContent-Disposition: form-data; name=\"file\"; "
                                "filename=\"/tmp/p\"\r\n\r\none\r\n\r\n--b0--\r\n";
    struct cJSON *j;

    (void)state;
    put_file("/files?path=/home/user/a%20b/c.txt", raw, "0123456789", 10, 200);
    get_file("~/a%20b/c.txt", NULL, 200, "0123456789");
    get_file("a%20b/../a%20b/c.txt", "Range: bytes=3-5", 206, "345");
    get_file("a%20b/c.txt", "Range: bytes=8-", 206, "89");
    get_file("a%20b/c.txt", "Range: bytes=-2", 206, "89");
    get_file("a%20b/c.txt", "Range: bytes=10-", 416, "");
    get_file("/home/user/none", NULL, 404, NULL);
    get_file("/home/user", NULL, 400, NULL);
    put_file("/files", form, parts, sizeof(parts) - 1, 200);
    get_file("/tmp/p", NULL, 200, "one\r\n");
    put_file("/files?path=/etc/new", raw, "x", 1, 500); /* the machine's files are not ours */
    put_file("/files?path=empty", raw, "", 0, 200);
    get_file("empty", NULL, 200, "");
    must("filesystem.Filesystem/MakeDir", "{\"path\":\"/home/user/d/e\"}", 200);
    must("filesystem.Filesystem/MakeDir", "{\"path\":\"/home/user/d/e\"}", 409);
    must("filesystem.Filesystem/Move",
         "{\"source\":\"/home/user/a b/c.txt\",\"destination\":\"/home/user/d/e/f\"}", 200);
    j = unary("filesystem.Filesystem/ListDir", "{\"path\":\"/home/user/d\",\"depth\":2}", 200);
    const struct cJSON *first = json_first(json_get(j, "entries"));
    assert_string_equal(json_str(first, "type", ""), "FILE_TYPE_DIRECTORY");
    assert_string_equal(json_str(json_next(first), "path", ""), "/home/user/d/e/f");
    assert_string_equal(json_str(json_next(first), "size", ""), "10");
    json_free(j);
    must("filesystem.Filesystem/Stat", "{\"path\":\"/home/user/d/e/f\"}", 200);
    must("filesystem.Filesystem/Remove", "{\"path\":\"/home/user/d\"}", 200);
    must("filesystem.Filesystem/Stat", "{\"path\":\"/home/user/d\"}", 404);
    must("filesystem.Filesystem/WatchDir", "{\"path\":\"/\"}", 501);
}

/* ---- who is let in ---- */

static long status_of(const char *host, const char *h1, const char *h2, const char *h3)
{
    char *url = xasprintf("https://%s%s/metrics", host, strrchr(faultd_url(server), ':'));
    struct ask q = {.url = url, .ca = faultd_ca(server), .head = {h1, h2, h3}};
    struct reply r = ask(NULL, &q);
    long status = r.rc == CURLE_OK ? r.status : -1;

    if (r.rc != CURLE_OK)
        print_error("%s: %s\n", url, curl_easy_strerror(r.rc));
    reply_release(&r);
    free(url);
    return status;
}

static void test_addresses(void **state)
{
    char host[128], other[128];

    (void)state;
    snprintf(host, sizeof(host), "49983-%s.localhost", box);
    snprintf(other, sizeof(other), "8080-%s.localhost", box);
    assert_int_equal(status_of("localhost", header_id, "E2b-Sandbox-Port: 49983", header_token),
                     200);
    assert_int_equal(status_of(host, header_token, NULL, NULL), 200);
    assert_int_equal(status_of(host, "X-Access-Token: ea_wrong", NULL, NULL), 401);
    assert_int_equal(status_of(other, header_token, NULL, NULL), 502);
    assert_int_equal(status_of("49983-inone.localhost", header_token, NULL, NULL), 502);
    assert_int_equal(status_of("localhost", header_id, header_token, NULL), 400);
    assert_int_equal(status_of("localhost", header_token, NULL, NULL), 401); /* control plane */
}

/* ---- streams that are broken ---- */

static void rule(const char *more)
{
    char *config = xasprintf("{\"rules\":[{\"path\":\"/process.Process/Start\",%s}]}", more);

    assert_true(faultd_config(server, config));
    free(config);
}

/* Line numbers in the order they came, as "1 2 3". */
static void expect_lines(const char *fault, const char *want, const char *end)
{
    struct buf got = BUF_INIT;
    struct events e;
    char *save = NULL;

    rule(fault);
    e = stream("Start", "{\"process\":{\"cmd\":\"faultd-lines\",\"args\":[\"0\",\"6\",\"9\"]}}",
               NULL);
    for (char *at = e.out.len ? strtok_r(e.out.p, "\n", &save) : NULL; at;
         at = strtok_r(NULL, "\n", &save))
        buf_addf(&got, "%s%.*s", got.len ? " " : "", (int)strcspn(at, ":"), at);
    assert_string_equal(buf_str(&got), want);
    if (end)
        assert_non_null(strstr(e.end, end));
    else
        assert_null(e.end);
    buf_release(&got);
    events_release(&e);
}

static void test_broken_streams(void **state)
{
    (void)state;
    expect_lines("\"drip\":0", "1 2 3 4 5 6", "{}");
    expect_lines("\"after\":2,\"trailer\":\"unavailable\"", "1 2", "unavailable");
    expect_lines("\"trailer\":\"internal\"", "", "internal");
    expect_lines("\"after\":4,\"replay\":2", "1 2 3 4 3 4 5 6", "{}");
    expect_lines("\"after\":1,\"reorder\":3", "1 4 3 2 6 5", "{}");
    expect_lines("\"cut_body\":150", "1", NULL);
    assert_true(faultd_config(server, "{\"rules\":[]}"));
}

/* ---- the end ---- */

static bool runs(const char *mark)
{
    DIR *d = opendir("/proc");
    bool found = false;
    char path[300], text[256];

    for (struct dirent *e; !found && (e = readdir(d));) {
        snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
        FILE *f = fopen(path, "r");
        size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
        if (f)
            fclose(f);
        found = n && memmem(text, n, mark, strlen(mark));
    }
    closedir(d);
    return found;
}

static bool ends(const char *mark)
{
    for (int64_t end = clock_mono_ms() + 20000; clock_mono_ms() < end;)
        if (!runs(mark))
            return true;
    return false;
}

/* What a sandbox started ends with it, children that went their own way included; a pause
 * stops it; and all ends with the server, even by SIGKILL. */
static void test_all_ends(void **state)
{
    char command[128], mark[64], path[128];
    struct events e;

    (void)state;
    snprintf(mark, sizeof(mark), "8640%d", (int)getpid());
    snprintf(command, sizeof(command), "setsid sleep %s >/dev/null 2>&1 & echo on", mark);
    e = shell(command);
    assert_string_equal(buf_str(&e.out), "on\n");
    events_release(&e);
    assert_true(runs(mark));
    snprintf(path, sizeof(path), "%s/sandboxes/%s", faultd_url(server), box);
    struct ask q = {
        .url = path, .method = "DELETE", .head = {"X-API-Key: k"}, .ca = faultd_ca(server)};
    struct reply r = ask(NULL, &q);
    assert_int_equal(r.status, 204);
    reply_release(&r);
    assert_true(ends(mark));
    assert_int_equal(status_of("localhost", header_id, "E2b-Sandbox-Port: 49983", header_token),
                     502);
}

static void new_box(void)
{
    char *url = xasprintf("%s/v2/sandboxes", faultd_url(server));
    struct ask q = {.url = url,
                    .method = "POST",
                    .head = {"X-API-Key: k"},
                    .body = "{\"templateID\":\"t\",\"envVars\":{\"SET\":\"yes\"}}",
                    .ca = faultd_ca(server)};
    struct reply r = ask(NULL, &q);
    struct cJSON *j = json_parse(buf_str(&r.body), r.body.len, NULL);

    str_copy(box, sizeof(box), json_str(j, "sandboxID", ""));
    snprintf(header_id, sizeof(header_id), "E2b-Sandbox-Id: %s", box);
    snprintf(header_token, sizeof(header_token), "X-Access-Token: %s",
             json_str(j, "envdAccessToken", ""));
    json_free(j);
    reply_release(&r);
    free(url);
}

static void test_server_killed(void **state)
{
    char command[128], mark[64];
    struct events e;

    (void)state;
    new_box();
    snprintf(mark, sizeof(mark), "8641%d", (int)getpid());
    snprintf(command, sizeof(command), "setsid sleep %s >/dev/null 2>&1 & echo on", mark);
    e = shell(command);
    events_release(&e);
    assert_true(runs(mark));
    kill(faultd_pid(server), SIGKILL);
    assert_true(ends(mark));
}

static int begin(void **state)
{
    (void)state;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    server = faultd_start_tls(NULL);
    new_box();
    return 0;
}

static int end(void **state)
{
    (void)state;
    faultd_stop(server);
    curl_global_cleanup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),      cmocka_unit_test(test_input),
        cmocka_unit_test(test_files),          cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_broken_streams), cmocka_unit_test(test_all_ends),
        cmocka_unit_test(test_server_killed),
    };

    if (!faultd_can_run()) {
        puts("1..1\nok 1 - the fault server's data plane # SKIP no namespaces here");
        return 0;
    }
    return cmocka_run_group_tests_name("the fault server's data plane", tests, begin, end);
}
