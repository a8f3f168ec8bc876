/* Templates of the local provider, asked for with plain bytes: builds and their cache,
 * files for COPY, what fails and how it is said, sandboxes made from them, restarts. */
#include "../lib/localbed.h"
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 30000
#define BASE "\"fromImage\":\"e2bdev/base\""
#define RUN(cmd) "{\"type\":\"RUN\",\"args\":[\"" cmd "\"]}"

static struct localbed *bed;
static char hash[65]; /* of no content: a new one for each upload */

/* --- plain HTTP --------------------------------------------------------------- */

struct answer {
    int status;
    struct buf raw;
    const char *body; /* into raw */
    size_t len;
};

static int dial(int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

static struct answer exchange(int port, const char *p, size_t len)
{
    struct answer a = {0, BUF_INIT, "", 0};
    int fd = dial(port);
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

static struct answer call(const char *method, const char *path, const char *json)
{
    char *text = xasprintf("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
                           "Connection: close\r\nContent-Type: application/json\r\n"
                           "Content-Length: %zu\r\n\r\n%s",
                           method, path, bed->control, bed->key, json ? strlen(json) : 0,
                           json ? json : "");
    struct answer a = exchange(bed->control, text, strlen(text));
    free(text);
    return a;
}

static int status_of(const char *method, const char *path, const char *json)
{
    struct answer a = call(method, path, json);
    if (a.status >= 400) { /* every error has the shape that clients read */
        struct cJSON *j = json_parse(a.body, a.len, NULL);
        assert_int_equal(json_i64(j, "code", 0), a.status);
        assert_true(json_str(j, "message", "")[0] != '\0');
        json_free(j);
    }
    buf_release(&a.raw);
    return a.status;
}

static struct cJSON *get_json(const char *method, const char *path, const char *json, int want)
{
    struct answer a = call(method, path, json);
    if (a.status != want)
        fail_msg("%s %s: %d, not %d: %s", method, path, a.status, want, a.body);
    struct cJSON *j = json_parse(a.body, a.len, NULL);
    assert_non_null(j);
    buf_release(&a.raw);
    return j;
}

static void expect(const char *method, const char *path, const char *json, int want)
{
    int got = status_of(method, path, json);
    if (got != want)
        fail_msg("%s %s: %d, not %d", method, path, got, want);
}

/* --- builds ------------------------------------------------------------------- */

struct made {
    char tpl[24], build[40];
};

static struct made ask(const char *name)
{
    struct made m;
    char *json = xasprintf("{\"name\":\"%s\",\"cpuCount\":1,\"memoryMB\":512}", name);
    struct cJSON *j = get_json("POST", "/v3/templates", json, 202);
    str_copy(m.tpl, sizeof(m.tpl), json_str(j, "templateID", ""));
    str_copy(m.build, sizeof(m.build), json_str(j, "buildID", ""));
    assert_int_equal(strlen(m.tpl), 20);
    assert_int_equal(strlen(m.build), 36);
    json_free(j);
    free(json);
    return m;
}

static void start(const struct made *m, const char *json)
{
    char *path = xasprintf("/v2/templates/%s/builds/%s", m->tpl, m->build);
    struct answer a = call("POST", path, json);
    if (a.status != 202)
        fail_msg("start: %d: %s", a.status, a.body);
    assert_non_null(strstr(buf_str(&a.raw), "Content-Length: 0\r\n"));
    assert_int_equal(a.len, 0);
    buf_release(&a.raw);
    free(path);
}

static struct cJSON *look(const struct made *m, const char *query)
{
    char *path = xasprintf("/templates/%s/builds/%s/status%s", m->tpl, m->build, query);
    struct cJSON *j = get_json("GET", path, NULL, 200);
    free(path);
    return j;
}

/* The answer of the status call once the build has ended. */
static struct cJSON *await_end(const struct made *m)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    while (clock_mono_ms() < end) {
        struct cJSON *j = look(m, "");
        const char *s = json_str(j, "status", "");
        if (strcmp(s, "ready") == 0 || strcmp(s, "error") == 0)
            return j;
        json_free(j);
        poll(NULL, 0, 20);
    }
    fail_msg("the build did not end");
    return NULL;
}

static char *text_of(const struct cJSON *j)
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
static char *build(const char *name, const char *json, const char *want, struct made *m)
{
    *m = ask(name);
    start(m, json);
    struct cJSON *j = await_end(m);
    char *log = text_of(j);
    if (strcmp(json_str(j, "status", ""), want) != 0)
        fail_msg("%s: %s, not %s:\n%s", name, json_str(j, "status", ""), want, log);
    json_free(j);
    return log;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void has_not(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("'%s' is in:\n%s", part, text);
}

static char *reason_of(const struct made *m, const char *step)
{
    struct cJSON *j = look(m, "");
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

struct box {
    char id[24], token[72];
};

static struct box create(const char *ref)
{
    struct box b;
    char *json = xasprintf("{\"templateID\":\"%s\",\"timeout\":120}", ref);
    struct cJSON *j = get_json("POST", "/v2/sandboxes", json, 201);
    str_copy(b.id, sizeof(b.id), json_str(j, "sandboxID", ""));
    str_copy(b.token, sizeof(b.token), json_str(j, "envdAccessToken", ""));
    json_free(j);
    free(json);
    return b;
}

static void kill_box(const struct box *b)
{
    char *path = xasprintf("/sandboxes/%s", b->id);
    expect("DELETE", path, NULL, 204);
    free(path);
}

/* Standard output of a command in it, as the sandbox's own user and folder. */
static char *run_in(const struct box *b, const char *command)
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
             bed->traffic, b->id, b->token, n + 5);
    const char head[5] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    buf_add(&req, head, 5);
    buf_add(&req, json, n);
    struct answer a = exchange(bed->traffic, req.p, req.len);
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
                           bed->root, command);
    assert_int_equal(system(line), 0);
    char *path = xasprintf("%s/pack.tgz", bed->root);
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

static void new_hash(void)
{
    unsigned char r[32];
    rand_bytes(r, sizeof(r));
    hex_encode(hash, r, sizeof(r));
}

/* Path of an upload link; *present says whether the files are there. */
static char *link_for(const char *tpl, bool *present)
{
    char *path = xasprintf("/templates/%s/files/%s", tpl, hash);
    struct cJSON *j = get_json("GET", path, NULL, 201);
    const char *url = json_str(j, "url", "");
    char *origin = xasprintf("http://127.0.0.1:%d", bed->control);
    assert_true(str_starts(url, origin));
    char *link = xstrdup(url + strlen(origin));
    *present = json_bool(j, "present", false);
    json_free(j);
    free(origin);
    free(path);
    return link;
}

static int put(const char *method, const char *path, const char *length, const char *p,
               size_t len)
{
    struct buf req = BUF_INIT;
    buf_addf(&req, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n%s\r\n\r\n",
             method, path, bed->control, length);
    buf_add(&req, p, len);
    struct answer a = exchange(bed->control, req.p, req.len);
    buf_release(&a.raw);
    buf_release(&req);
    return a.status;
}

static void upload(const char *tpl, const char *command)
{
    bool present;
    struct buf b = BUF_INIT;
    char length[64];
    new_hash();
    char *link = link_for(tpl, &present);
    assert_false(present);
    pack(command, &b);
    snprintf(length, sizeof(length), "Content-Length: %zu", b.len);
    assert_int_equal(put("PUT", link, length, b.p, b.len), 200);
    buf_release(&b);
    free(link);
    link = link_for(tpl, &present);
    assert_true(present);
    free(link);
}

/* --- tests ---------------------------------------------------------------------- */

static void test_build_and_use(void **state)
{
    (void)state;
    struct made m;
    char *log = build(
        "whole",
        "{" BASE ",\"startCmd\":\"touch /opt/started; exec sleep 300\","
        "\"readyCmd\":\"test -e /opt/started\",\"steps\":["
        "{\"type\":\"ENV\",\"args\":[\"A\",\"x 'y\",\"B\",\"$A\"]},"
        "{\"type\":\"WORKDIR\",\"args\":[\"/work/deep\"]}," RUN(
            "echo \\\"$A|$B|$PWD\\\"; echo bad >&2; echo kept > f") ","
                                                                    "{\"type\":\"USER\","
                                                                    "\"args\":[\"root\"]}," RUN(
                                                                        "id -u") "]}",
        "ready", &m);
    has(log, "[base] FROM e2bdev/base\n");
    has(log, "[base] DEFAULT USER user");
    has(log, "[builder 3/5] RUN echo");
    has(log, "[builder 3/5] [stdout]: x 'y|$A|/work/deep\n");
    has(log, "[builder 3/5] [stderr]: bad\n");
    has(log, "[builder 5/5] [stdout]: 0\n");
    has(log, "[finalize] ");
    has(log, "[optimize] ");
    free(log);
    struct box b = create("local/whole:default");
    char *out = run_in(&b, "echo \\\"$A|$B|$PWD|$(id -un)\\\"; cat f; ls /opt/started");
    assert_string_equal(out, "x 'y|$A|/work/deep|root\nkept\n/opt/started\n");
    free(out);
    char *path = xasprintf("/sandboxes/%s", b.id);
    struct cJSON *j = get_json("GET", path, NULL, 200);
    assert_string_equal(json_str(j, "alias", ""), "whole");
    assert_string_equal(json_str(j, "templateID", ""), m.tpl);
    assert_int_equal(json_i64(j, "cpuCount", 0), 1);
    assert_int_equal(json_i64(j, "memoryMB", 0), 512);
    json_free(j);
    free(path);
    path = xasprintf("/templates/%s", m.tpl);
    j = get_json("GET", path, NULL, 200);
    assert_int_equal(json_i64(j, "spawnCount", 0), 1);
    assert_true(json_str(j, "lastSpawnedAt", NULL) != NULL);
    json_free(j);
    expect("DELETE", path, NULL, 400); /* used */
    kill_box(&b);
    expect("DELETE", path, NULL, 204);
    expect("DELETE", path, NULL, 404);
    expect("GET", path, NULL, 404);
    expect("POST", "/v2/sandboxes", "{\"templateID\":\"whole\"}", 404);
    free(path);
}

static void test_cache(void **state)
{
    (void)state;
    struct made m;
    static const char json[] =
        "{" BASE ",\"steps\":[" RUN("date +%N > ~/a") "," RUN("cat ~/a; date +%N > ~/b") "]}";
    static const char forced[] = "{" BASE ",\"force\":true,\"steps\":[" RUN(
        "date +%N > ~/a") "," RUN("cat ~/a; date +%N > ~/b") "]}";
    static const char from_two[] =
        "{" BASE ",\"steps\":[" RUN("date +%N > ~/a") ","
                                                      "{\"type\":\"RUN\",\"args\":[\"cat ~/a; "
                                                      "date +%N > ~/b\"],\"force\":true}]}";
    char *log = build("cache", json, "ready", &m);
    has_not(log, "CACHED");
    free(log);
    log = build("cache", json, "ready", &m);
    has(log, "CACHED [builder 1/2] RUN date");
    has(log, "CACHED [builder 2/2] RUN cat");
    has_not(log, "[stdout]");
    free(log);
    log = build("other", json, "ready", &m); /* one cache for all */
    has(log, "CACHED [builder 2/2]");
    free(log);
    log = build("cache", from_two, "ready", &m);
    has(log, "CACHED [builder 1/2]");
    has_not(log, "CACHED [builder 2/2]");
    free(log);
    log = build("cache", forced, "ready", &m);
    has_not(log, "CACHED");
    free(log);
}

static void test_failures(void **state)
{
    (void)state;
    struct made m;
    char *log = build("bad",
                      "{" BASE ",\"steps\":[" RUN("true") "," RUN(
                          "echo because >&2; exit 7") "," RUN("true") "]}",
                      "error", &m);
    has(log, "Build failed");
    has_not(log, "builder 3/3");
    free(log);
    char *why = reason_of(&m, "2");
    has(why, "exit status 7");
    has(why, "because");
    free(why);
    expect("POST", "/v2/sandboxes", "{\"templateID\":\"bad\"}", 400);
    free(build("bad", "{\"fromImage\":\"debian:12\",\"steps\":[]}", "error", &m));
    why = reason_of(&m, "base");
    has(why, "debian:12");
    has(why, "e2bdev/base");
    free(why);
    free(build("bad",
               "{" BASE ",\"fromImageRegistry\":{\"type\":\"registry\",\"username\":\"u\","
               "\"password\":\"canary-pass\"}}",
               "error", &m));
    why = reason_of(&m, "base");
    has(why, "registries");
    has_not(why, "canary-pass");
    free(why);
    free(build("bad", "{\"fromTemplate\":\"nobody\"}", "error", &m));
    free(reason_of(&m, "base"));
    free(
        build("bad", "{" BASE ",\"startCmd\":\"exit 4\",\"readyCmd\":\"false\"}", "error", &m));
    why = reason_of(&m, "finalize");
    has(why, "exit status 4");
    free(why);
    free(build("bad", "{" BASE ",\"steps\":[" RUN("kill -9 $$") "]}", "error", &m));
    free(reason_of(&m, "1"));
    free(build("bad", "{" BASE ",\"steps\":[{\"type\":\"USER\",\"args\":[\"nobody\"]}]}",
               "error", &m));
    free(reason_of(&m, "1"));
}

static void test_base_of_another(void **state)
{
    (void)state;
    struct made m;
    free(build("below",
               "{" BASE ",\"steps\":[{\"type\":\"ENV\",\"args\":[\"A\",\"1\"]},"
               "{\"type\":\"WORKDIR\",\"args\":[\"/base\"]}," RUN("echo low > f") "]}",
               "ready", &m));
    char *log = build("above",
                      "{\"fromTemplate\":\"below\",\"steps\":[" RUN(
                          "cat f; echo $A $PWD; rm f; echo new > g") "]}",
                      "ready", &m);
    has(log, "[stdout]: low\n");
    has(log, "[stdout]: 1 /base\n");
    free(log);
    char *path = xasprintf("/templates/%s", "below");
    expect("DELETE", path, NULL, 204); /* its layers stay for the other one */
    free(path);
    struct box b = create("above");
    char *out = run_in(&b, "ls; echo $A");
    assert_string_equal(out, "g\n1\n");
    free(out);
    kill_box(&b);
}

static void test_copy(void **state)
{
    (void)state;
    struct made m = ask("copy");
    upload(m.tpl, "mkdir -p dir/sub && echo 1 > dir/one && echo 2 > dir/sub/two && "
                  "echo 3 > \"a'b\\\" c\" && echo 4 > '$(touch evil)' && ln -s one dir/link");
#define COPY(args) "{\"type\":\"COPY\",\"args\":[" args "],\"filesHash\":\"%s\"}"
    char
        *json =
            xasprintf(
                "{" BASE
                ",\"steps\":[" COPY("\"dir\",\"/in/dir\",\"\",\"\"") "," COPY("\"dir/one\",\"/"
                                                                              "in/"
                                                                              "file\",\"\","
                                                                              "\"0600\"") "," COPY("\"dir/one\",\"/in/into/\",\"user\",\"\"") "," COPY("\"a'b\\\" c\",\"/in/q'\\\" \",\"\",\"\"") "," COPY(
                    "\"$(touch evil)\",\"/in/$(touch evil2)/\",\"\",\"\"") "," COPY("\"d*r/"
                                                                                    "o*\",\"/"
                                                                                    "in/glob/"
                                                                                    "\",\"\","
                                                                                    "\"\"") "," COPY("\".\",\"rel\",\"\",\"\"") "," RUN("cd /in; find . /home/user/rel | LC_ALL=C sort | tr '\\\\n' ','; echo; "
                                                                                                                                        "stat -c %%a file; cat file; ls -d /.cc* /evil* 2>/dev/null | wc -l") "]}",
                hash, hash, hash, hash, hash, hash, hash);
    start(&m, json);
    struct cJSON *j = await_end(&m);
    char *log = text_of(j);
    if (strcmp(json_str(j, "status", ""), "ready") != 0)
        fail_msg("%s", log);
    has(log, "[stdout]: .,./$(touch evil2),./$(touch evil2)/$(touch evil),./dir,./dir/link,"
             "./dir/one,./dir/sub,./dir/sub/two,./file,./glob,./glob/one,./into,./into/one,"
             "./q'\" ,/home/user/rel,/home/user/rel/$(touch evil),/home/user/rel/a'b\" c,"
             "/home/user/rel/dir,");
    has(log, "[stdout]: 600\n");
    has(log, "[stdout]: 1\n");
    has(log, "[stdout]: 0\n");
    json_free(j);
    free(log);
    free(json);
    /* names with a way up stay in the sandbox, and out of where they do not belong */
    m = ask("copy");
    upload(m.tpl, "echo x > in && tar -cPf ../evil.tar --transform 's,^in$,../../../up,' in && "
                  "mv ../evil.tar . && rm in");
    json = xasprintf("{" BASE ",\"steps\":[" COPY("\"none\",\"/x\",\"\",\"\"") "]}", hash);
    start(&m, json);
    j = await_end(&m);
    assert_string_equal(json_str(j, "status", ""), "error");
    json_free(j);
    char *why = reason_of(&m, "1");
    has(why, "not in the uploaded files");
    free(why);
    free(json);
    /* files that nobody sent */
    m = ask("copy");
    new_hash();
    json = xasprintf("{" BASE ",\"steps\":[" COPY("\"a\",\"/x\",\"\",\"\"") "]}", hash);
    start(&m, json);
    j = await_end(&m);
    json_free(j);
    why = reason_of(&m, "1");
    has(why, "not uploaded");
    free(why);
    free(json);
}

static void test_uploads(void **state)
{
    (void)state;
    struct made m = ask("uploads");
    bool present;
    char *path = xasprintf("/templates/%s/files/%s", m.tpl, "0123");
    expect("GET", path, NULL, 400);
    free(path);
    new_hash();
    path = xasprintf("/templates/%s/files/%s", "nothere", hash);
    expect("GET", path, NULL, 404);
    free(path);
    char *link = link_for(m.tpl, &present);
    assert_int_equal(put("POST", link, "Content-Length: 1", "x", 1), 405);
    assert_int_equal(put("PUT", link, "Transfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n", 11),
                     411);
    assert_int_equal(put("PUT", link, "Content-Length: 0", "", 0), 400);
    assert_int_equal(put("PUT", link, "Content-Length: 1073741825", "x", 1), 413);
    assert_int_equal(put("PUT", "/uploads/0123456789abcdef", "Content-Length: 1", "x", 1), 404);
    assert_int_equal(put("PUT", "/uploads/", "Content-Length: 1", "x", 1), 404);
    /* cut off in the middle: nothing is kept */
    struct buf req = BUF_INIT;
    buf_addf(&req, "PUT %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 9\r\n\r\nhalf",
             link, bed->control);
    int fd = dial(bed->control);
    assert_int_equal(send(fd, req.p, req.len, MSG_NOSIGNAL), (ssize_t)req.len);
    shutdown(fd, SHUT_WR);
    char byte;
    while (read(fd, &byte, 1) > 0)
        continue;
    close(fd);
    buf_release(&req);
    free(link);
    link = link_for(m.tpl, &present);
    assert_false(present);
    assert_int_equal(put("PUT", link, "Content-Length: 4", "body", 4), 200);
    assert_int_equal(put("PUT", link, "Content-Length: 4", "body", 4), 404); /* once */
    free(link);
    link = link_for(m.tpl, &present);
    assert_true(present);
    free(link);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int status;
    } asked[] = {
        {"{}", 400},
        {"{\"name\":7}", 400},
        {"{\"name\":\"Upper\"}", 400},
        {"{\"name\":\"a b\"}", 400},
        {"{\"name\":\"other/a\"}", 400},
        {"{\"name\":\"base\"}", 400},
        {"{\"name\":\"a\",\"tags\":\"x\"}", 400},
        {"{\"name\":\"a\",\"tags\":[\"not ok\"]}", 400},
        {"{\"name\":\"a\",\"tags\":[7]}", 400},
        {"{\"name\":\"a\",\"cpuCount\":0}", 400},
        {"{\"name\":\"a\",\"cpuCount\":3}", 400},
        {"{\"name\":\"a\",\"cpuCount\":33}", 400},
        {"{\"name\":\"a\",\"cpuCount\":\"2\"}", 400},
        {"{\"name\":\"a\",\"memoryMB\":127}", 400},
        {"{\"name\":\"a\",\"memoryMB\":513}", 400},
        {"{\"name\":\"a\",\"memoryMB\":64}", 400},
    };
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        expect("POST", "/v3/templates", asked[i].json, asked[i].status);
    expect("GET", "/templates/aliases/a", NULL, 404);
    struct made m = ask("refused");
    char *path = xasprintf("/v2/templates/%s/builds/%s", m.tpl, m.build);
    expect("POST", path, "{}", 400);
    expect("POST", path, "{" BASE ",\"steps\":[{\"type\":\"ADD\",\"args\":[\"a\"]}]}", 400);
    start(&m, "{" BASE ",\"steps\":[]}"); /* a refused start is none */
    expect("POST", path, "{" BASE "}", 400);
    free(path);
    json_free(await_end(&m));
    static const char unknown[] = "00000000-0000-4000-8000-000000000009";
    static const char *const tails[] = {"/status", "/logs", "/status?limit=101",
                                        "/logs?limit=-1"};
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        path =
            xasprintf("/templates/%s/builds/%s%s", m.tpl, i < 2 ? unknown : m.build, tails[i]);
        expect("GET", path, NULL, 400);
        free(path);
    }
    path = xasprintf("/templates/%s/builds/%s/status?level=loud", m.tpl, m.build);
    expect("GET", path, NULL, 400);
    free(path);
    expect("GET", "/templates/nothere/builds/x/status", NULL, 404);
    expect("DELETE", "/templates/base", NULL, 400);
    expect("PATCH", "/v2/templates/base", "{\"public\":true}", 400);
    expect("POST", "/v2/templates", "{\"alias\":\"x\"}", 501);
    expect("POST", "/templates", "{\"dockerfile\":\"FROM x\"}", 501);
    path = xasprintf("/templates/%s", m.tpl);
    expect("POST", path, "{\"dockerfile\":\"FROM x\"}", 501);
    expect("DELETE", path, NULL, 204);
    free(path);
}

static void test_lists_and_tags(void **state)
{
    (void)state;
    struct made m;
    free(build("tagged", "{" BASE ",\"steps\":[]}", "ready", &m));
    struct cJSON *j = get_json("POST", "/templates/tags",
                               "{\"target\":\"tagged:default\",\"tags\":[\"v1\",\"v2\"]}", 201);
    assert_string_equal(json_str(j, "buildID", ""), m.build);
    json_free(j);
    expect("POST", "/templates/tags", "{\"target\":\"tagged:none\",\"tags\":[\"v3\"]}", 404);
    expect("POST", "/templates/tags", "{\"target\":\"tagged\",\"tags\":[]}", 400);
    expect("POST", "/templates/tags", "{\"tags\":[\"v3\"]}", 400);
    expect("DELETE", "/templates/tags", "{\"name\":\"tagged\",\"tags\":[\"v2\"]}", 204);
    expect("DELETE", "/templates/tags", "{\"name\":\"nobody\",\"tags\":[\"v2\"]}", 404);
    j = get_json("GET", "/templates/tagged/tags", NULL, 200);
    size_t n = 0;
    for (const struct cJSON *t = json_first(j); t; t = json_next(t), n++)
        assert_string_equal(json_str(t, "buildID", ""), m.build);
    assert_int_equal(n, 2);
    json_free(j);
    struct box b = create("tagged:v1");
    kill_box(&b);
    expect("POST", "/v2/sandboxes", "{\"templateID\":\"tagged:v2\"}", 404);
    j = get_json("GET", "/templates/aliases/tagged", NULL, 200);
    assert_string_equal(json_str(j, "templateID", ""), m.tpl);
    json_free(j);
    j = get_json("PATCH", "/v2/templates/tagged", "{\"public\":true}", 200);
    assert_string_equal(json_str_of(json_first(json_get(j, "names"))), "local/tagged");
    json_free(j);
    /* all pages together are the whole list, once */
    j = get_json("GET", "/templates", NULL, 200);
    size_t all = 0, seen = 0;
    for (const struct cJSON *t = json_first(j); t; t = json_next(t))
        all++;
    json_free(j);
    char *path = xstrdup("/v2/templates?limit=3"), last[24] = "";
    while (path) {
        struct answer a = call("GET", path, NULL);
        assert_int_equal(a.status, 200);
        j = json_parse(a.body, a.len, NULL);
        for (const struct cJSON *t = json_first(j); t; t = json_next(t), seen++) {
            assert_string_not_equal(json_str(t, "templateID", ""), last);
            str_copy(last, sizeof(last), json_str(t, "templateID", ""));
        }
        json_free(j);
        const char *token = strstr(buf_str(&a.raw), "X-Next-Token: ");
        free(path);
        path = NULL;
        if (token) {
            token += strlen("X-Next-Token: ");
            path = xasprintf("/v2/templates?limit=3&nextToken=%.*s", (int)strcspn(token, "\r"),
                             token);
        }
        buf_release(&a.raw);
    }
    assert_int_equal(seen, all);
    expect("GET", "/v2/templates?nextToken=junk", NULL, 400);
    expect("GET", "/v2/templates?limit=0", NULL, 400);
    expect("DELETE", "/templates/tagged", NULL, 204);
}

static void test_log_pages(void **state)
{
    (void)state;
    struct made m;
    free(build("logs",
               "{" BASE ",\"force\":true,\"steps\":[" RUN(
                   "for i in $(seq 250); do echo line-$i; done") "]}",
               "ready", &m));
    struct buf seen = BUF_INIT;
    size_t offset = 0;
    for (size_t n = 1; n > 0;) { /* as the SDK does it, until a page is empty */
        char query[64];
        snprintf(query, sizeof(query), "?logsOffset=%zu", offset);
        struct cJSON *j = look(&m, query);
        n = 0;
        for (const struct cJSON *e = json_first(json_get(j, "logEntries")); e;
             e = json_next(e), n++)
            buf_addf(&seen, "%s\n", json_str(e, "message", ""));
        assert_true(n <= 100);
        offset += n;
        json_free(j);
    }
    has(buf_str(&seen), "line-1\n");
    has(buf_str(&seen), "line-250\n");
    has(buf_str(&seen), "Build finished");
    buf_release(&seen);
    char *path =
        xasprintf("/templates/%s/builds/%s/logs?direction=backward&limit=1", m.tpl, m.build);
    struct cJSON *j = get_json("GET", path, NULL, 200);
    has(json_str(json_first(json_get(j, "logs")), "message", ""), "Build finished");
    json_free(j);
    free(path);
    path = xasprintf("/templates/%s/builds/%s/logs?level=error", m.tpl, m.build);
    j = get_json("GET", path, NULL, 200);
    assert_null(json_first(json_get(j, "logs")));
    json_free(j);
    free(path);
}

static const char *status_now(const struct made *m)
{
    static char text[16];
    struct cJSON *j = look(m, "");
    str_copy(text, sizeof(text), json_str(j, "status", ""));
    json_free(j);
    return text;
}

static void await_status(const struct made *m, const char *want)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    while (strcmp(status_now(m), want) != 0) {
        if (clock_mono_ms() > end)
            fail_msg("the build is never %s", want);
        poll(NULL, 0, 20);
    }
}

static void await_log(const struct made *m, const char *part)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    for (bool found = false; !found; poll(NULL, 0, 20)) {
        struct cJSON *j = look(m, "");
        char *log = text_of(j);
        found = strstr(log, part) != NULL;
        free(log);
        json_free(j);
        if (clock_mono_ms() > end)
            fail_msg("'%s' is never in the log", part);
    }
}

static size_t count_in(const char *name)
{
    char *path = xasprintf("%s/state/%s", bed->root, name);
    DIR *d = opendir(path);
    size_t n = 0;
    struct dirent *de;
    while (d && (de = readdir(d)) != NULL)
        n += de->d_name[0] != '.';
    if (d)
        closedir(d);
    free(path);
    return n;
}

static void await_count(const char *name, size_t want)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    while (count_in(name) != want) {
        if (clock_mono_ms() > end)
            fail_msg("%s: %zu, not %zu", name, count_in(name), want);
        poll(NULL, 0, 20);
    }
}

#define SLEEPS(n) "{" BASE ",\"steps\":[" RUN("echo go-" n "; sleep 300") "]}"

/* Two at once, the third one waits; deleting calls off. */
static void test_turns(void **state)
{
    (void)state;
    struct made a = ask("turn-a"), b = ask("turn-b"), c = ask("turn-c");
    start(&a, SLEEPS("a"));
    start(&b, SLEEPS("b"));
    start(&c, SLEEPS("c"));
    await_log(&a, "[stdout]: go-a");
    await_log(&b, "[stdout]: go-b");
    assert_string_equal(status_now(&c), "waiting");
    struct cJSON *j = get_json("GET", "/v2/sandboxes", NULL, 200);
    assert_null(json_first(j)); /* nobody sees the sandboxes of builds */
    json_free(j);
    expect("DELETE", "/templates/turn-a", NULL, 204);
    await_status(&c, "building");
    expect("DELETE", "/templates/turn-b", NULL, 204);
    expect("DELETE", "/templates/turn-c", NULL, 204);
    await_count("boxes", 0);
}

static void test_restart(void **state)
{
    (void)state;
    struct made kept, cut;
    free(build("kept", "{" BASE ",\"steps\":[" RUN("echo here > ~/f") "]}", "ready", &kept));
    cut = ask("cut");
    start(&cut, SLEEPS("x"));
    await_log(&cut, "[stdout]: go-x");
    localbed_kill(bed);
    assert_true(localbed_start(bed));
    await_status(&cut, "error");
    struct cJSON *j = look(&cut, "");
    has(json_str(json_get(j, "reason"), "message", ""), "restarted");
    char *log = text_of(j);
    has(log, "go-x"); /* the log is kept, too */
    free(log);
    json_free(j);
    await_count("boxes", 0);
    struct box b = create("kept");
    char *out = run_in(&b, "cat ~/f");
    assert_string_equal(out, "here\n");
    free(out);
    kill_box(&b);
    log = build("kept", "{" BASE ",\"steps\":[" RUN("echo here > ~/f") "]}", "ready", &kept);
    has(log, "CACHED [builder 1/1]");
    free(log);
    /* with the last template the last layer goes */
    j = get_json("GET", "/templates", NULL, 200);
    for (const struct cJSON *t = json_first(j); t; t = json_next(t)) {
        char *path = xasprintf("/templates/%s", json_str(t, "templateID", ""));
        if (strncmp(path, "/templates/local", 16) != 0)
            expect("DELETE", path, NULL, 204);
        free(path);
    }
    json_free(j);
    await_count("layers", 0);
    await_count("templates", 0);
}

static int setup(void **state)
{
    (void)state;
    bed = localbed_new();
    return bed ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    localbed_free(bed);
    return 0;
}

/* Without namespaces there are no layers: that is said, and nothing else works. */
static int only_refused(void)
{
    printf("1..1\nok 1 - templates # SKIP namespaces are refused here\n");
    return 0;
}

int main(void)
{
    struct localbed *probe = localbed_new();
    bool isolated = probe && probe->isolated;
    localbed_free(probe);
    if (!isolated)
        return only_refused();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build_and_use), cmocka_unit_test(test_cache),
        cmocka_unit_test(test_failures),      cmocka_unit_test(test_base_of_another),
        cmocka_unit_test(test_copy),          cmocka_unit_test(test_uploads),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_lists_and_tags),
        cmocka_unit_test(test_log_pages),     cmocka_unit_test(test_turns),
        cmocka_unit_test(test_restart),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
