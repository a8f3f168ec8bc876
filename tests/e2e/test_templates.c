/* Templates of the local provider, asked for with plain bytes: builds and their cache,
 * files for COPY, sandboxes made from them, turns, restarts. */
#include "../lib/tplbed.h"
#include <cct/util/json.h>
#include <cct/util/xalloc.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE "\"fromImage\":\"e2bdev/base\""
#define RUN(cmd) "{\"type\":\"RUN\",\"args\":[\"" cmd "\"]}"

static void test_build_and_use(void **state)
{
    (void)state;
    static const char json[] =
        "{" BASE ",\"startCmd\":\"touch /opt/started; exec sleep 300\","
        "\"readyCmd\":\"test -e /opt/started\",\"steps\":["
        "{\"type\":\"ENV\",\"args\":[\"A\",\"x 'y\",\"B\",\"<$HOME>\",\"PATH\","
        "\"/opt/bin:$PATH\"]},"
        "{\"type\":\"WORKDIR\",\"args\":[\"/work/deep\"]},"
        "{\"type\":\"RUN\",\"args\":[\"echo \\\"$A|$B|$PWD\\\"; echo ${PATH%%:*}; "
        "echo bad >&2; echo kept > f\"]},"
        "{\"type\":\"USER\",\"args\":[\"root\"]},"
        "{\"type\":\"RUN\",\"args\":[\"id -u\"]}]}";
    struct tplbed_made m;
    char *log = tplbed_build("whole", json, "ready", &m);
    tplbed_has(log, "[base] FROM e2bdev/base\n");
    tplbed_has(log, "[base] DEFAULT USER user");
    tplbed_has(log, "[builder 3/5] RUN echo");
    tplbed_has(log, "[builder 3/5] [stdout]: x 'y|</home/user>|/work/deep\n");
    tplbed_has(log, "[stdout]: /opt/bin\n");
    tplbed_has(log, "[builder 3/5] [stderr]: bad\n");
    tplbed_has(log, "[builder 5/5] [stdout]: 0\n");
    tplbed_has(log, "[finalize] ");
    tplbed_has(log, "[optimize] ");
    free(log);
    struct tplbed_box b = tplbed_create("local/whole:default");
    char *out = tplbed_run_in(&b, "echo \\\"$A|$B|$PWD|$(id -un)\\\"; cat f; ls /opt/started");
    assert_string_equal(out, "x 'y|</home/user>|/work/deep|root\nkept\n/opt/started\n");
    free(out);
    char *path = xasprintf("/sandboxes/%s", b.id);
    struct cJSON *j = tplbed_get_json("GET", path, NULL, 200);
    assert_string_equal(json_str(j, "alias", ""), "whole");
    assert_string_equal(json_str(j, "templateID", ""), m.tpl);
    assert_int_equal(json_i64(j, "cpuCount", 0), 1);
    assert_int_equal(json_i64(j, "memoryMB", 0), 512);
    json_free(j);
    free(path);
    path = xasprintf("/templates/%s", m.tpl);
    j = tplbed_get_json("GET", path, NULL, 200);
    assert_int_equal(json_i64(j, "spawnCount", 0), 1);
    assert_true(json_str(j, "lastSpawnedAt", NULL) != NULL);
    json_free(j);
    tplbed_expect("DELETE", path, NULL, 400); /* used */
    tplbed_kill_box(&b);
    tplbed_expect("DELETE", path, NULL, 204);
    tplbed_expect("DELETE", path, NULL, 404);
    tplbed_expect("GET", path, NULL, 404);
    tplbed_expect("POST", "/v2/sandboxes", "{\"templateID\":\"whole\"}", 404);
    free(path);
}

static void test_cache(void **state)
{
    (void)state;
    struct tplbed_made m;
    static const char json[] =
        "{" BASE ",\"steps\":[" RUN("date +%N > ~/a") "," RUN("cat ~/a; date +%N > ~/b") "]}";
    static const char forced[] =
        "{" BASE ",\"force\":true,"
        "\"steps\":[" RUN("date +%N > ~/a") "," RUN("cat ~/a; date +%N > ~/b") "]}";
    static const char from_two[] =
        "{" BASE ",\"steps\":[" RUN("date +%N > ~/a") ","
                                                      "{\"type\":\"RUN\",\"args\":[\"cat ~/a; "
                                                      "date +%N > ~/b\"],\"force\":true}]}";
    char *log = tplbed_build("cache", json, "ready", &m);
    tplbed_has_not(log, "CACHED");
    free(log);
    log = tplbed_build("cache", json, "ready", &m);
    tplbed_has(log, "CACHED [builder 1/2] RUN date");
    tplbed_has(log, "CACHED [builder 2/2] RUN cat");
    tplbed_has_not(log, "[stdout]");
    free(log);
    log = tplbed_build("other", json, "ready", &m); /* one cache for all */
    tplbed_has(log, "CACHED [builder 2/2]");
    free(log);
    log = tplbed_build("cache", from_two, "ready", &m);
    tplbed_has(log, "CACHED [builder 1/2]");
    tplbed_has_not(log, "CACHED [builder 2/2]");
    free(log);
    log = tplbed_build("cache", forced, "ready", &m);
    tplbed_has_not(log, "CACHED");
    free(log);
}

static void test_base_of_another(void **state)
{
    (void)state;
    struct tplbed_made m;
    free(tplbed_build("below",
                      "{" BASE ",\"steps\":[{\"type\":\"ENV\",\"args\":[\"A\",\"1\"]},"
                      "{\"type\":\"WORKDIR\",\"args\":[\"/base\"]}," RUN("echo low > f") "]}",
                      "ready", &m));
    char *log = tplbed_build("above",
                             "{\"fromTemplate\":\"below\",\"steps\":[" RUN(
                                 "cat f; echo $A $PWD; rm f; echo new > g") "]}",
                             "ready", &m);
    tplbed_has(log, "[stdout]: low\n");
    tplbed_has(log, "[stdout]: 1 /base\n");
    free(log);
    char *path = xasprintf("/templates/%s", "below");
    tplbed_expect("DELETE", path, NULL, 204); /* its layers stay for the other one */
    free(path);
    struct tplbed_box b = tplbed_create("above");
    char *out = tplbed_run_in(&b, "ls; echo $A");
    assert_string_equal(out, "g\n1\n");
    free(out);
    tplbed_kill_box(&b);
}

/* One more COPY of the files under tplbed_hash. */
static void add_copy(struct buf *b, const char *src, const char *dest, const char *user,
                     const char *mode)
{
    const char *args[] = {src, dest, user, mode};
    buf_adds(b, b->len ? "," : "{" BASE ",\"steps\":[");
    buf_adds(b, "{\"type\":\"COPY\",\"args\":[");
    for (size_t i = 0; i < 4; i++) {
        buf_adds(b, i ? "," : "");
        buf_add_json(b, args[i], strlen(args[i]));
    }
    buf_addf(b, "],\"filesHash\":\"%s\"}", tplbed_hash);
}

/* Names are data: quotes, spaces and what a shell would run stay what they are. */
static void test_copy(void **state)
{
    (void)state;
    struct tplbed_made m = tplbed_ask("copy");
    struct buf b = BUF_INIT;
    tplbed_upload(m.tpl,
                  "mkdir -p dir/sub && echo 1 > dir/one && echo 2 > dir/sub/two && "
                  "echo 3 > \"a'b\\\" c\" && echo 4 > '$(touch evil)' && ln -s one dir/link");
    add_copy(&b, "dir", "/in/dir", "", "");
    add_copy(&b, "dir/one", "/in/file", "", "0600");
    add_copy(&b, "dir/one", "/in/into/", "user", "");
    add_copy(&b, "a'b\" c", "/in/q'\" ", "", "");
    add_copy(&b, "$(touch evil)", "/in/$(touch evil2)/", "", "");
    add_copy(&b, "d*r/o*", "/in/glob/", "", "");
    add_copy(&b, ".", "rel", "", "");
    buf_adds(&b, "," RUN("cd /in; find . /home/user/rel | LC_ALL=C sort | tr '\\n' ','; "
                         "echo; stat -c %a file; cat file; "
                         "ls -d /.cc* /evil* 2>/dev/null | wc -l") "]}");
    tplbed_start(&m, buf_str(&b));
    struct cJSON *j = tplbed_await_end(&m);
    char *log = tplbed_text_of(j);
    tplbed_has(log, "[stdout]: .,./$(touch evil2),./$(touch evil2)/$(touch evil),./dir,"
                    "./dir/link,./dir/one,./dir/sub,./dir/sub/two,./file,./glob,./glob/one,"
                    "./into,./into/one,./q'\" ,/home/user/rel,/home/user/rel/$(touch evil),"
                    "/home/user/rel/a'b\" c,/home/user/rel/dir,");
    tplbed_has(log, "[stdout]: 600\n");
    tplbed_has(log, "[stdout]: 1\n");
    tplbed_has(log, "[stdout]: 0\n");
    json_free(j);
    free(log);
    buf_release(&b);
}

/* A build of one COPY, which must fail. */
static void copy_fails(const struct tplbed_made *m, const char *src, const char *want)
{
    struct buf b = BUF_INIT;
    add_copy(&b, src, "/x", "", "");
    buf_adds(&b, "]}");
    tplbed_start(m, buf_str(&b));
    json_free(tplbed_await_end(m));
    char *why = tplbed_reason_of(m, "1");
    tplbed_has(why, want);
    free(why);
    buf_release(&b);
}

static void test_copy_refused(void **state)
{
    (void)state;
    struct tplbed_made m = tplbed_ask("copy");
    tplbed_upload(m.tpl, "echo x > in");
    copy_fails(&m, "none", "'none' is not in the uploaded files");
    m = tplbed_ask("copy");
    copy_fails(&m, "n*ne", "'n*ne' is not in the uploaded files");
    m = tplbed_ask("copy");
    tplbed_new_hash();
    copy_fails(&m, "in", "not uploaded");
    m = tplbed_ask("copy");
    bool present;
    char *link = tplbed_link_for(m.tpl, &present);
    assert_int_equal(tplbed_put("PUT", link, "Content-Length: 9", "no archive", 9), 200);
    copy_fails(&m, "in", "exit status");
    free(link);
}

static void test_log_pages(void **state)
{
    (void)state;
    struct tplbed_made m;
    free(tplbed_build("logs",
                      "{" BASE ",\"force\":true,\"steps\":[" RUN(
                          "for i in $(seq 250); do echo line-$i; done") "]}",
                      "ready", &m));
    struct buf seen = BUF_INIT;
    size_t offset = 0;
    for (size_t n = 1; n > 0;) { /* as the SDK does it, until a page is empty */
        char query[64];
        snprintf(query, sizeof(query), "?logsOffset=%zu", offset);
        struct cJSON *j = tplbed_look(&m, query);
        n = 0;
        for (const struct cJSON *e = json_first(json_get(j, "logEntries")); e;
             e = json_next(e), n++)
            buf_addf(&seen, "%s\n", json_str(e, "message", ""));
        assert_true(n <= 100);
        offset += n;
        json_free(j);
    }
    tplbed_has(buf_str(&seen), "line-1\n");
    tplbed_has(buf_str(&seen), "line-250\n");
    tplbed_has(buf_str(&seen), "Build finished");
    buf_release(&seen);
    char *path =
        xasprintf("/templates/%s/builds/%s/logs?direction=backward&limit=1", m.tpl, m.build);
    struct cJSON *j = tplbed_get_json("GET", path, NULL, 200);
    tplbed_has(json_str(json_first(json_get(j, "logs")), "message", ""), "Build finished");
    json_free(j);
    free(path);
    path = xasprintf("/templates/%s/builds/%s/logs?level=error", m.tpl, m.build);
    j = tplbed_get_json("GET", path, NULL, 200);
    assert_null(json_first(json_get(j, "logs")));
    json_free(j);
    free(path);
}

#define SLEEPS(n) "{" BASE ",\"steps\":[" RUN("echo go-" n "; sleep 300") "]}"

/* Two at once, the third one waits; deleting calls off. */
static void test_turns(void **state)
{
    (void)state;
    struct tplbed_made a = tplbed_ask("turn-a"), b = tplbed_ask("turn-b"),
                       c = tplbed_ask("turn-c");
    tplbed_start(&a, SLEEPS("a"));
    tplbed_start(&b, SLEEPS("b"));
    tplbed_start(&c, SLEEPS("c"));
    tplbed_await_log(&a, "[stdout]: go-a");
    tplbed_await_log(&b, "[stdout]: go-b");
    assert_string_equal(tplbed_status_now(&c), "waiting");
    struct cJSON *j = tplbed_get_json("GET", "/v2/sandboxes", NULL, 200);
    assert_null(json_first(j)); /* nobody sees the sandboxes of builds */
    json_free(j);
    tplbed_expect("DELETE", "/templates/turn-a", NULL, 204);
    tplbed_await_status(&c, "building");
    tplbed_expect("DELETE", "/templates/turn-b", NULL, 204);
    tplbed_expect("DELETE", "/templates/turn-c", NULL, 204);
    tplbed_await_count("boxes", 0);
}

static void test_restart(void **state)
{
    (void)state;
    struct tplbed_made kept, cut;
    free(tplbed_build("kept", "{" BASE ",\"steps\":[" RUN("echo here > ~/f") "]}", "ready",
                      &kept));
    cut = tplbed_ask("cut");
    tplbed_start(&cut, SLEEPS("x"));
    tplbed_await_log(&cut, "[stdout]: go-x");
    localbed_kill(tplbed);
    assert_true(localbed_start(tplbed));
    tplbed_await_status(&cut, "error");
    struct cJSON *j = tplbed_look(&cut, "");
    tplbed_has(json_str(json_get(j, "reason"), "message", ""), "restarted");
    char *log = tplbed_text_of(j);
    tplbed_has(log, "go-x"); /* the log is kept, too */
    free(log);
    json_free(j);
    tplbed_await_count("boxes", 0);
    struct tplbed_box b = tplbed_create("kept");
    char *out = tplbed_run_in(&b, "cat ~/f");
    assert_string_equal(out, "here\n");
    free(out);
    tplbed_kill_box(&b);
    log = tplbed_build("kept", "{" BASE ",\"steps\":[" RUN("echo here > ~/f") "]}", "ready",
                       &kept);
    tplbed_has(log, "CACHED [builder 1/1]");
    free(log);
    /* with the last template the last layer goes */
    j = tplbed_get_json("GET", "/templates", NULL, 200);
    for (const struct cJSON *t = json_first(j); t; t = json_next(t)) {
        char *path = xasprintf("/templates/%s", json_str(t, "templateID", ""));
        if (strncmp(path, "/templates/local", 16) != 0)
            tplbed_expect("DELETE", path, NULL, 204);
        free(path);
    }
    json_free(j);
    tplbed_await_count("layers", 0);
    tplbed_await_count("templates", 0);
}

int main(void)
{
    if (!tplbed_is_possible())
        return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build_and_use),   cmocka_unit_test(test_cache),
        cmocka_unit_test(test_base_of_another), cmocka_unit_test(test_copy),
        cmocka_unit_test(test_copy_refused),    cmocka_unit_test(test_log_pages),
        cmocka_unit_test(test_turns),           cmocka_unit_test(test_restart),
    };
    return cmocka_run_group_tests(tests, tplbed_setup, tplbed_teardown);
}
