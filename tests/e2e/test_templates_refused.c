/* Templates of the local provider: what is refused or fails, and how it is said; lists
 * and tags. */
#include "../lib/tplbed.h"
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE "\"fromImage\":\"e2bdev/base\""
#define RUN(cmd) "{\"type\":\"RUN\",\"args\":[\"" cmd "\"]}"

static void test_failures(void **state)
{
    (void)state;
    struct tplbed_made m;
    char *log = tplbed_build("bad",
                             "{" BASE ",\"steps\":[" RUN("true") "," RUN(
                                 "echo because >&2; exit 7") "," RUN("true") "]}",
                             "error", &m);
    tplbed_has(log, "Build failed");
    tplbed_has_not(log, "builder 3/3");
    free(log);
    char *why = tplbed_reason_of(&m, "2");
    tplbed_has(why, "exit status 7");
    tplbed_has(why, "because");
    free(why);
    tplbed_expect("POST", "/v2/sandboxes", "{\"templateID\":\"bad\"}", 400);
    free(tplbed_build("bad", "{\"fromImage\":\"debian:12\",\"steps\":[]}", "error", &m));
    why = tplbed_reason_of(&m, "base");
    tplbed_has(why, "debian:12");
    tplbed_has(why, "e2bdev/base");
    free(why);
    free(tplbed_build("bad",
                      "{" BASE
                      ",\"fromImageRegistry\":{\"type\":\"registry\",\"username\":\"u\","
                      "\"password\":\"canary-pass\"}}",
                      "error", &m));
    why = tplbed_reason_of(&m, "base");
    tplbed_has(why, "registries");
    tplbed_has_not(why, "canary-pass");
    free(why);
    free(tplbed_build("bad", "{\"fromTemplate\":\"nobody\"}", "error", &m));
    free(tplbed_reason_of(&m, "base"));
    free(tplbed_build("bad", "{" BASE ",\"startCmd\":\"exit 4\",\"readyCmd\":\"false\"}",
                      "error", &m));
    why = tplbed_reason_of(&m, "finalize");
    tplbed_has(why, "exit status 4");
    free(why);
    free(tplbed_build("bad", "{" BASE ",\"steps\":[" RUN("kill -9 $$") "]}", "error", &m));
    free(tplbed_reason_of(&m, "1"));
    free(tplbed_build("bad", "{" BASE ",\"steps\":[{\"type\":\"USER\",\"args\":[\"nobody\"]}]}",
                      "error", &m));
    free(tplbed_reason_of(&m, "1"));
}

/* The init of the one sandbox that is there, from its record. */
static pid_t only_init(void)
{
    char *line = xasprintf(
        "sed -n 's/.*\"pid\":\\([0-9]*\\).*/\\1/p' %s/state/boxes/*/box.json", tplbed->root);
    FILE *f = popen(line, "re");
    int pid = 0;
    assert_int_equal(fscanf(f, "%d", &pid), 1);
    pclose(f);
    free(line);
    return pid;
}

/* The sandbox of a step dies: the build says so, and the next one is not harmed. */
static void test_killed(void **state)
{
    (void)state;
    struct tplbed_made m = tplbed_ask("killed");
    tplbed_start(&m, "{" BASE ",\"steps\":[" RUN("echo half > ~/f; echo go-k; sleep 300") "]}");
    tplbed_await_log(&m, "[stdout]: go-k");
    assert_int_equal(kill(only_init(), SIGKILL), 0);
    tplbed_await_status(&m, "error");
    char *why = tplbed_reason_of(&m, "1");
    tplbed_has(why, "the sandbox is gone");
    free(why);
    tplbed_await_count("boxes", 0);
    char *log = tplbed_build("killed", "{" BASE ",\"steps\":[" RUN("ls -A ~; echo end") "]}",
                             "ready", &m);
    tplbed_has_not(log, "[stdout]: f\n");
    free(log);
    tplbed_expect("DELETE", "/templates/killed", NULL, 204);
}

static void test_uploads(void **state)
{
    (void)state;
    struct tplbed_made m = tplbed_ask("uploads");
    bool present;
    char *path = xasprintf("/templates/%s/files/%s", m.tpl, "0123");
    tplbed_expect("GET", path, NULL, 400);
    free(path);
    tplbed_new_hash();
    path = xasprintf("/templates/%s/files/%s", "nothere", tplbed_hash);
    tplbed_expect("GET", path, NULL, 404);
    free(path);
    char *link = tplbed_link_for(m.tpl, &present);
    assert_int_equal(tplbed_put("POST", link, "Content-Length: 1", "x", 1), 405);
    assert_int_equal(
        tplbed_put("PUT", link, "Transfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n", 11), 411);
    assert_int_equal(tplbed_put("PUT", link, "Content-Length: 0", "", 0), 400);
    assert_int_equal(tplbed_put("PUT", link, "Content-Length: 1073741825", "x", 1), 413);
    assert_int_equal(
        tplbed_put("PUT", "/uploads/0123456789abcdef", "Content-Length: 1", "x", 1), 404);
    assert_int_equal(tplbed_put("PUT", "/uploads/", "Content-Length: 1", "x", 1), 404);
    /* cut off in the middle: nothing is kept */
    struct buf req = BUF_INIT;
    buf_addf(&req, "PUT %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 9\r\n\r\nhalf",
             link, tplbed->control);
    int fd = tplbed_dial(tplbed->control);
    assert_int_equal(send(fd, req.p, req.len, MSG_NOSIGNAL), (ssize_t)req.len);
    shutdown(fd, SHUT_WR);
    char byte;
    while (read(fd, &byte, 1) > 0)
        continue;
    close(fd);
    buf_release(&req);
    free(link);
    link = tplbed_link_for(m.tpl, &present);
    assert_false(present);
    assert_int_equal(tplbed_put("PUT", link, "Content-Length: 4", "body", 4), 200);
    assert_int_equal(tplbed_put("PUT", link, "Content-Length: 4", "body", 4), 404); /* once */
    free(link);
    link = tplbed_link_for(m.tpl, &present);
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
        tplbed_expect("POST", "/v3/templates", asked[i].json, asked[i].status);
    tplbed_expect("GET", "/templates/aliases/a", NULL, 404);
    struct tplbed_made m = tplbed_ask("refused");
    char *path = xasprintf("/v2/templates/%s/builds/%s", m.tpl, m.build);
    tplbed_expect("POST", path, "{}", 400);
    tplbed_expect("POST", path, "{" BASE ",\"steps\":[{\"type\":\"ADD\",\"args\":[\"a\"]}]}",
                  400);
    tplbed_start(&m, "{" BASE ",\"steps\":[]}"); /* a refused start is none */
    tplbed_expect("POST", path, "{" BASE "}", 400);
    free(path);
    json_free(tplbed_await_end(&m));
    static const char unknown[] = "00000000-0000-4000-8000-000000000009";
    static const char *const tails[] = {"/status", "/logs", "/status?limit=101",
                                        "/logs?limit=-1"};
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        path =
            xasprintf("/templates/%s/builds/%s%s", m.tpl, i < 2 ? unknown : m.build, tails[i]);
        tplbed_expect("GET", path, NULL, 400);
        free(path);
    }
    path = xasprintf("/templates/%s/builds/%s/status?level=loud", m.tpl, m.build);
    tplbed_expect("GET", path, NULL, 400);
    free(path);
    tplbed_expect("GET", "/templates/nothere/builds/x/status", NULL, 404);
    tplbed_expect("DELETE", "/templates/base", NULL, 400);
    tplbed_expect("PATCH", "/v2/templates/base", "{\"public\":true}", 400);
    tplbed_expect("POST", "/v2/templates", "{\"alias\":\"x\"}", 501);
    tplbed_expect("POST", "/templates", "{\"dockerfile\":\"FROM x\"}", 501);
    path = xasprintf("/templates/%s", m.tpl);
    tplbed_expect("POST", path, "{\"dockerfile\":\"FROM x\"}", 501);
    tplbed_expect("DELETE", path, NULL, 204);
    free(path);
}

static void test_lists_and_tags(void **state)
{
    (void)state;
    struct tplbed_made m;
    free(tplbed_build("tagged", "{" BASE ",\"steps\":[]}", "ready", &m));
    struct cJSON *j =
        tplbed_get_json("POST", "/templates/tags",
                        "{\"target\":\"tagged:default\",\"tags\":[\"v1\",\"v2\"]}", 201);
    assert_string_equal(json_str(j, "buildID", ""), m.build);
    json_free(j);
    tplbed_expect("POST", "/templates/tags", "{\"target\":\"tagged:none\",\"tags\":[\"v3\"]}",
                  404);
    tplbed_expect("POST", "/templates/tags", "{\"target\":\"tagged\",\"tags\":[]}", 400);
    tplbed_expect("POST", "/templates/tags", "{\"tags\":[\"v3\"]}", 400);
    tplbed_expect("DELETE", "/templates/tags", "{\"name\":\"tagged\",\"tags\":[\"v2\"]}", 204);
    tplbed_expect("DELETE", "/templates/tags", "{\"name\":\"nobody\",\"tags\":[\"v2\"]}", 404);
    j = tplbed_get_json("GET", "/templates/tagged/tags", NULL, 200);
    size_t n = 0;
    for (const struct cJSON *t = json_first(j); t; t = json_next(t), n++)
        assert_string_equal(json_str(t, "buildID", ""), m.build);
    assert_int_equal(n, 2);
    json_free(j);
    struct tplbed_box b = tplbed_create("tagged:v1");
    tplbed_kill_box(&b);
    tplbed_expect("POST", "/v2/sandboxes", "{\"templateID\":\"tagged:v2\"}", 404);
    j = tplbed_get_json("GET", "/templates/aliases/tagged", NULL, 200);
    assert_string_equal(json_str(j, "templateID", ""), m.tpl);
    json_free(j);
    j = tplbed_get_json("PATCH", "/v2/templates/tagged", "{\"public\":true}", 200);
    assert_string_equal(json_str_of(json_first(json_get(j, "names"))), "local/tagged");
    json_free(j);
    /* all pages together are the whole list, once */
    j = tplbed_get_json("GET", "/templates", NULL, 200);
    size_t all = 0, seen = 0;
    for (const struct cJSON *t = json_first(j); t; t = json_next(t))
        all++;
    json_free(j);
    char *path = xstrdup("/v2/templates?limit=3"), last[24] = "";
    while (path) {
        struct tplbed_answer a = tplbed_call("GET", path, NULL);
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
    tplbed_expect("GET", "/v2/templates?nextToken=junk", NULL, 400);
    tplbed_expect("GET", "/v2/templates?limit=0", NULL, 400);
    tplbed_expect("DELETE", "/templates/tagged", NULL, 204);
}

int main(void)
{
    if (!tplbed_is_possible())
        return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures),       cmocka_unit_test(test_killed),
        cmocka_unit_test(test_uploads),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_lists_and_tags),
    };
    return cmocka_run_group_tests(tests, tplbed_setup, tplbed_teardown);
}
