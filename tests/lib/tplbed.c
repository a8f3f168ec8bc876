/* Templates of a local provider of a test's own, by plain bytes. */
#include "tplbed.h"

#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 30000

struct localbed *tplbed;
char tplbed_hash[65];

/* --- plain HTTP --------------------------------------------------------------- */

int tplbed_dial(int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

struct tplbed_answer tplbed_exchange(int port, const char *p, size_t len)
{
    struct tplbed_answer a = {0, BUF_INIT, "", 0};
    int fd = tplbed_dial(port);
    char text[16384];
    struct pollfd pfd = {fd, POLLIN, 0};
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n <= 0)
            break; /* refused early: the answer says why */
        p += n;
        len -= (size_t)n;
    }
    for (ssize_t n = 1; n > 0;) {
        if (poll(&pfd, 1, WAIT_MS) != 1)
            fail_msg("no answer within %d ms", WAIT_MS);
        n = read(fd, text, sizeof(text));
        if (n > 0)
            buf_add(&a.raw, text, (size_t)n);
    }
    close(fd);
    const char *head = buf_str(&a.raw), *end = strstr(head, "\r\n\r\n");
    if (str_starts(head, "HTTP/1.1 "))
        a.status = (int)strtol(head + 9, NULL, 10);
    if (end) {
        a.body = end + 4;
        a.len = a.raw.len - (size_t)(a.body - head);
    }
    return a;
}

struct tplbed_answer tplbed_call(const char *method, const char *path, const char *json)
{
    char *text = xasprintf("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
                           "Connection: close\r\nContent-Type: application/json\r\n"
                           "Content-Length: %zu\r\n\r\n%s",
                           method, path, tplbed->control, tplbed->key, json ? strlen(json) : 0,
                           json ? json : "");
    struct tplbed_answer a = tplbed_exchange(tplbed->control, text, strlen(text));
    free(text);
    return a;
}

int tplbed_status_of(const char *method, const char *path, const char *json)
{
    struct tplbed_answer a = tplbed_call(method, path, json);
    if (a.status >= 400) { /* every error has the shape that clients read */
        struct cJSON *j = json_parse(a.body, a.len, NULL);
        assert_int_equal(json_i64(j, "code", 0), a.status);
        assert_true(json_str(j, "message", "")[0] != '\0');
        json_free(j);
    }
    buf_release(&a.raw);
    return a.status;
}

struct cJSON *tplbed_get_json(const char *method, const char *path, const char *json, int want)
{
    struct tplbed_answer a = tplbed_call(method, path, json);
    if (a.status != want)
        fail_msg("%s %s: %d, not %d: %s", method, path, a.status, want, a.body);
    struct cJSON *j = json_parse(a.body, a.len, NULL);
    assert_non_null(j);
    buf_release(&a.raw);
    return j;
}

void tplbed_expect(const char *method, const char *path, const char *json, int want)
{
    int got = tplbed_status_of(method, path, json);
    if (got != want)
        fail_msg("%s %s: %d, not %d", method, path, got, want);
}

/* --- builds ------------------------------------------------------------------- */

struct tplbed_made tplbed_ask(const char *name)
{
    struct tplbed_made m;
    char *json = xasprintf("{\"name\":\"%s\",\"cpuCount\":1,\"memoryMB\":512}", name);
    struct cJSON *j = tplbed_get_json("POST", "/v3/templates", json, 202);
    str_copy(m.tpl, sizeof(m.tpl), json_str(j, "templateID", ""));
    str_copy(m.build, sizeof(m.build), json_str(j, "buildID", ""));
    assert_int_equal(strlen(m.tpl), 20);
    assert_int_equal(strlen(m.build), 36);
    json_free(j);
    free(json);
    return m;
}

void tplbed_start(const struct tplbed_made *m, const char *json)
{
    char *path = xasprintf("/v2/templates/%s/builds/%s", m->tpl, m->build);
    struct tplbed_answer a = tplbed_call("POST", path, json);
    if (a.status != 202)
        fail_msg("start: %d: %s", a.status, a.body);
    assert_non_null(strstr(buf_str(&a.raw), "Content-Length: 0\r\n"));
    assert_int_equal(a.len, 0);
    buf_release(&a.raw);
    free(path);
}

struct cJSON *tplbed_look(const struct tplbed_made *m, const char *query)
{
    char *path = xasprintf("/templates/%s/builds/%s/status%s", m->tpl, m->build, query);
    struct cJSON *j = tplbed_get_json("GET", path, NULL, 200);
    free(path);
    return j;
}

/* The answer of the status call once the build has ended. */
struct cJSON *tplbed_await_end(const struct tplbed_made *m)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    while (clock_mono_ms() < end) {
        struct cJSON *j = tplbed_look(m, "");
        const char *s = json_str(j, "status", "");
        if (strcmp(s, "ready") == 0 || strcmp(s, "error") == 0)
            return j;
        json_free(j);
        poll(NULL, 0, 20);
    }
    fail_msg("the build did not end");
    return NULL;
}

char *tplbed_text_of(const struct cJSON *j)
{
    struct buf b = BUF_INIT;
    for (const struct cJSON *e = json_first(json_get(j, "logEntries")); e; e = json_next(e)) {
        int64_t ms;
        assert_int_equal(clock_parse_rfc3339(json_str(e, "timestamp", ""), &ms), 0);
        assert_true(json_str(e, "level", "")[0] != '\0');
        buf_addf(&b, "%s\n", json_str(e, "message", ""));
    }
    return buf_detach(&b, NULL);
}

/* Build it; its log. Fails the test unless it ends as wanted. */
char *tplbed_build(const char *name, const char *json, const char *want, struct tplbed_made *m)
{
    *m = tplbed_ask(name);
    tplbed_start(m, json);
    struct cJSON *j = tplbed_await_end(m);
    char *log = tplbed_text_of(j);
    if (strcmp(json_str(j, "status", ""), want) != 0)
        fail_msg("%s: %s, not %s:\n%s", name, json_str(j, "status", ""), want, log);
    json_free(j);
    return log;
}

void tplbed_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

void tplbed_has_not(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("'%s' is in:\n%s", part, text);
}

char *tplbed_reason_of(const struct tplbed_made *m, const char *step)
{
    struct cJSON *j = tplbed_look(m, "");
    const struct cJSON *r = json_get(j, "reason");
    assert_non_null(r);
    assert_string_equal(json_str(r, "step", ""), step);
    assert_true(json_is_array(json_get(r, "logEntries")));
    assert_non_null(json_first(json_get(r, "logEntries")));
    char *text = xstrdup(json_str(r, "message", ""));
    json_free(j);
    return text;
}

/* --- sandboxes ------------------------------------------------------------------ */

struct tplbed_box tplbed_create(const char *ref)
{
    struct tplbed_box b;
    char *json = xasprintf("{\"templateID\":\"%s\",\"timeout\":120}", ref);
    struct cJSON *j = tplbed_get_json("POST", "/v2/sandboxes", json, 201);
    str_copy(b.id, sizeof(b.id), json_str(j, "sandboxID", ""));
    str_copy(b.token, sizeof(b.token), json_str(j, "envdAccessToken", ""));
    json_free(j);
    free(json);
    return b;
}

void tplbed_kill_box(const struct tplbed_box *b)
{
    char *path = xasprintf("/sandboxes/%s", b->id);
    tplbed_expect("DELETE", path, NULL, 204);
    free(path);
}

/* Standard output of a command in it, as the sandbox's own user and folder. */
char *tplbed_run_in(const struct tplbed_box *b, const char *command)
{
    struct buf req = BUF_INIT, out = BUF_INIT;
    char *json = xasprintf("{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\","
                           "\"%s\"]}}",
                           command);
    size_t n = strlen(json);
    buf_addf(&req,
             "POST /process.Process/Start HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n"
             "E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\nX-Access-Token: %s\r\n"
             "Content-Type: application/connect+json\r\nContent-Length: %zu\r\n\r\n",
             tplbed->traffic, b->id, b->token, n + 5);
    const char head[5] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    buf_add(&req, head, 5);
    buf_add(&req, json, n);
    struct tplbed_answer a = tplbed_exchange(tplbed->traffic, req.p, req.len);
    static const char mark[] = "\"stdout\":\"";
    for (const char *p = a.body, *end = a.body + a.len;
         p < end && (p = memmem(p, (size_t)(end - p), mark, sizeof(mark) - 1)) != NULL;) {
        p += sizeof(mark) - 1;
        size_t len;
        char *text = b64_decode(p, strcspn(p, "\""), &len);
        assert_non_null(text);
        buf_add(&out, text, len);
        free(text);
    }
    buf_release(&a.raw);
    buf_release(&req);
    free(json);
    return buf_detach(&out, NULL);
}

/* --- files for COPY --------------------------------------------------------------- */

/* What a shell command leaves in an empty folder, as an archive. */
static void pack(const char *command, struct buf *b)
{
    char *line = xasprintf("d='%s/pack' && rm -rf \"$d\" && mkdir \"$d\" && cd \"$d\" && %s && "
                           "tar -czf ../pack.tgz .",
                           tplbed->root, command);
    assert_int_equal(system(line), 0);
    char *path = xasprintf("%s/pack.tgz", tplbed->root);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    char text[65536];
    size_t n;
    while ((n = fread(text, 1, sizeof(text), f)) > 0)
        buf_add(b, text, n);
    fclose(f);
    free(path);
    free(line);
}

void tplbed_new_hash(void)
{
    unsigned char r[32];
    rand_bytes(r, sizeof(r));
    hex_encode(tplbed_hash, r, sizeof(r));
}

/* Path of an upload link; *present says whether the files are there. */
char *tplbed_link_for(const char *tpl, bool *present)
{
    char *path = xasprintf("/templates/%s/files/%s", tpl, tplbed_hash);
    struct cJSON *j = tplbed_get_json("GET", path, NULL, 201);
    const char *url = json_str(j, "url", "");
    char *origin = xasprintf("http://127.0.0.1:%d", tplbed->control);
    assert_true(str_starts(url, origin));
    char *link = xstrdup(url + strlen(origin));
    *present = json_bool(j, "present", false);
    json_free(j);
    free(origin);
    free(path);
    return link;
}

int tplbed_put(const char *method, const char *path, const char *length, const char *p,
               size_t len)
{
    struct buf req = BUF_INIT;
    buf_addf(&req, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n%s\r\n\r\n",
             method, path, tplbed->control, length);
    buf_add(&req, p, len);
    struct tplbed_answer a = tplbed_exchange(tplbed->control, req.p, req.len);
    buf_release(&a.raw);
    buf_release(&req);
    return a.status;
}

void tplbed_upload(const char *tpl, const char *command)
{
    bool present;
    struct buf b = BUF_INIT;
    char length[64];
    tplbed_new_hash();
    char *link = tplbed_link_for(tpl, &present);
    assert_false(present);
    pack(command, &b);
    snprintf(length, sizeof(length), "Content-Length: %zu", b.len);
    assert_int_equal(tplbed_put("PUT", link, length, b.p, b.len), 200);
    buf_release(&b);
    free(link);
    link = tplbed_link_for(tpl, &present);
    assert_true(present);
    free(link);
}

const char *tplbed_status_now(const struct tplbed_made *m)
{
    static char text[16];
    struct cJSON *j = tplbed_look(m, "");
    str_copy(text, sizeof(text), json_str(j, "status", ""));
    json_free(j);
    return text;
}

void tplbed_await_status(const struct tplbed_made *m, const char *want)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    while (strcmp(tplbed_status_now(m), want) != 0) {
        if (clock_mono_ms() > end)
            fail_msg("the build is never %s", want);
        poll(NULL, 0, 20);
    }
}

void tplbed_await_log(const struct tplbed_made *m, const char *part)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    for (bool found = false; !found; poll(NULL, 0, 20)) {
        struct cJSON *j = tplbed_look(m, "");
        char *log = tplbed_text_of(j);
        found = strstr(log, part) != NULL;
        free(log);
        json_free(j);
        if (clock_mono_ms() > end)
            fail_msg("'%s' is never in the log", part);
    }
}

void tplbed_await_count(const char *name, size_t want)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    char *folder = xasprintf("state/%s", name);
    int n;
    while ((n = localbed_entries(tplbed, folder)) != (int)want) {
        if (clock_mono_ms() > end)
            fail_msg("%s: %d, not %zu", name, n, want);
        poll(NULL, 0, 20);
    }
    free(folder);
}

int tplbed_setup(void **state)
{
    (void)state;
    tplbed = localbed_new();
    return tplbed ? 0 : -1;
}

int tplbed_teardown(void **state)
{
    (void)state;
    localbed_free(tplbed);
    return 0;
}

bool tplbed_may_run(void)
{
    struct localbed *probe = localbed_new();
    bool isolated = probe && probe->isolated;
    localbed_free(probe);
    return isolated;
}

bool tplbed_is_possible(void)
{
    bool isolated = tplbed_may_run();
    if (!isolated)
        printf("1..1\nok 1 - templates # SKIP namespaces are refused here\n");
    return isolated;
}
