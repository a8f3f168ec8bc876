/* `templates`, `builds` and `logs --system`: the program against a service that plays a
 * script, and a real build of the local provider followed to its end. */
#include "../lib/miniserver.h"
#include "../lib/tplbed.h"
#include "../lib/tmpdir.h"
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];
static struct mini *srv;

/* What the service says at an address: in order, the last one stays. */
struct scene {
    const char *path; /* its begin */
    int status;
    const char *body;
    bool played;
};
static struct scene *scenes;
static struct buf heard;

static void handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    struct scene *now = NULL;

    (void)ctx;
    buf_addf(&heard, "%s %s\n", r->method, r->path);
    for (struct scene *s = scenes; s && s->path && !(now && !now->played); s++)
        if (str_starts(r->path, s->path))
            now = s;
    if (!now) {
        mini_reply(c, 404, "", "{\"code\":404,\"message\":\"not found\"}");
        return;
    }
    now->played = true;
    mini_reply(c, now->status, "", now->body);
}

static void play(struct scene *s)
{
    mini_sync(srv);
    scenes = s;
    buf_clear(&heard);
    mini_sync(srv);
}

/* --- running it ---------------------------------------------------------------------- */

static char *said; /* stderr of the last run */
static int rc;

/* stdout; free(). */
static char *run_at(const char *url, const char *key, const char *args)
{
    static char exe[256];
    struct buf out = BUF_INIT;
    char piece[65536], *err_file = xasprintf("%s/err", root);
    size_t n;

    snprintf(exe, sizeof(exe), "%s/cc-tui", getenv("B") ? getenv("B") : "build/debug");
    char *cmd = xasprintf("env -i PATH=/usr/bin:/bin HOME=%s XDG_RUNTIME_DIR=%s TZ=UTC "
                          "LC_ALL=C.UTF-8 E2B_API_KEY=%s E2B_API_URL=%s E2B_SANDBOX_URL=%s "
                          "timeout 60 %s %s 2>%s",
                          root, root, key, url, url, exe, args, err_file);
    FILE *f = popen(cmd, "r");
    assert_non_null(f);
    while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
        buf_add(&out, piece, n);
    int status = pclose(f);
    rc = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    free(said);
    said = fs_read(err_file, 1 << 20, false, &n, NULL);
    free(cmd);
    free(err_file);
    if (srv)
        mini_sync(srv);
    return buf_detach(&out, NULL);
}

static char *run(const char *args)
{
    char *url = mini_url(srv, ""), *out = run_at(url, "e2b_0123456789", args);

    free(url);
    return out;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        print_message("# '%s' is not in:\n%s\n# stderr: %s\n", part, text, said);
    assert_non_null(strstr(text, part));
}

static int count(const char *text, const char *part)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, part)); p += strlen(part))
        n++;
    return n;
}

#define NONE {"/v2/sandboxes?", 200, "[]", false}
#define END {NULL, 0, NULL, false}
#define TPL                                                                                  \
    {"/v2/templates", 200,                                                                   \
     "[{\"templateID\":\"tpl1\",\"names\":[\"team/claude\"],\"buildStatus\":\"building\","   \
     "\"cpuCount\":2,\"memoryMB\":1024,\"updatedAt\":\"2026-11-29T15:17:41.122Z\","          \
     "\"spawnCount\":7},{\"templateID\":\"tpl2\",\"names\":[\"team/\\u001b[2Jx\\u202ey\"]}]", \
     false}
#define BUILDS                                                                                \
    {"/templates/tpl1?", 200,                                                                 \
     "{\"templateID\":\"tpl1\",\"names\":[\"team/claude\"],\"builds\":["                      \
     "{\"buildID\":\"b-old-1\",\"status\":\"ready\",\"createdAt\":\"2026-11-28T15:17:41Z\","  \
     "\"finishedAt\":\"2026-11-28T15:19:41Z\"},"                                              \
     "{\"buildID\":\"b-new-2\",\"status\":\"building\",\"createdAt\":\"2026-11-29T15:17:41Z\"}]}", \
     false}

/* --- lists ---------------------------------------------------------------------------- */

static void test_templates(void **state)
{
    (void)state;
    struct scene s[] = {NONE, TPL, END};
    play(s);
    char *out = run("templates");
    assert_int_equal(rc, 0);
    has(out, "team/claude");
    has(out, "building");
    has(out, "2 vCPU 1024 MiB");
    has(out, "2026-11-29 15:17");
    assert_null(strchr(out, '\033'));
    assert_null(strstr(out, "\xe2\x80\xae"));
    free(out);
    out = run("templates --json");
    struct cJSON *j = json_parse(out, strlen(out), NULL);
    assert_non_null(j);
    assert_string_equal(json_str(json_first(j), "templateID", ""), "tpl1");
    json_free(j);
    free(out);
    out = run("templates -q");
    assert_string_equal(out, "tpl1\ntpl2\n");
    free(out);
}

static void test_builds(void **state)
{
    (void)state;
    struct scene s[] = {NONE, TPL, BUILDS, END};
    play(s);
    char *out = run("builds claude");
    assert_int_equal(rc, 0);
    has(out, "b-old-1");
    has(out, "2m");
    free(out);
    out = run("builds --json"); /* of all; one template has gone meanwhile */
    assert_int_equal(rc, 0);
    assert_int_equal(count(out, "\"buildID\""), 2);
    free(out);
    free(run("builds nothing"));
    assert_int_equal(rc, 5);
    has(said, "cc-tui templates");
}

static void test_service_without_templates(void **state)
{
    (void)state;
    struct scene s[] = {NONE, END};
    play(s);
    free(run("templates"));
    assert_int_equal(rc, 1);
    has(said, "GET /templates");
    has(said, "E2B_API_URL");
}

/* --- following -------------------------------------------------------------------------- */

static char *forty(const char *status, const char *more)
{
    struct buf b = BUF_INIT;

    buf_addf(&b, "{\"status\":\"%s\",\"logEntries\":[", status);
    for (int i = 0; i < 40; i++)
        buf_addf(&b, "%s{\"timestamp\":%s,\"message\":\"[builder 2/2] [stdout]: last %d\"}", i ? "," : "",
                 i % 3 == 0 ? "\"0001-01-01T00:00:00Z\"" : i % 3 == 1 ? "null" : "1795965473315", i);
    buf_addf(&b, "]%s}", more);
    return buf_detach(&b, NULL);
}

#define STATUS "/templates/tpl1/builds/b-new-2/status"

static void test_follow_to_ready(void **state)
{
    (void)state;
    char *last = forty("ready", "");
    struct scene s[] = {NONE, TPL, BUILDS, {STATUS, 200, "{\"status\":\"waiting\"}", false},
                        {STATUS, 200, "{\"status\":\"building\",\"logEntries\":["
                                      "{\"timestamp\":\"2026-11-29T15:17:41.122Z\",\"message\":\"[base] FROM a\"},"
                                      "{\"timestamp\":\"2026-11-29T15:17:42.122Z\",\"message\":\"CACHED [builder 1/2] RUN a [0aff]\"},"
                                      "{\"timestamp\":\"2026-11-29T17:17:43+02:00\",\"message\":\"[builder 2/2] RUN b\"}]}", false},
                        {STATUS, 200, last, false}, {STATUS, 200, "{\"status\":\"ready\",\"logEntries\":[]}", false},
                        END};
    play(s);
    char *out = run("builds --follow claude");
    assert_int_equal(rc, 0);
    has(out, "15:17:41 base  FROM a\n");
    has(out, "15:17:42 step 1 of 2  (cached) RUN a\n");
    has(out, "15:17:43 step 2 of 2  RUN b\n");
    has(out, "-          last 0\n-          last 1\n15:17:53   last 2\n"); /* in order of arrival */
    assert_int_equal(count(out, "last "), 40);
    has(said, "waiting");
    has(said, "building");
    has(said, "the build is ready");
    has(buf_str(&heard), "logsOffset=43");
    assert_int_equal(count(buf_str(&heard), "/status"), 4);
    free(out);
    free(last);
}

static void test_follow_to_error(void **state)
{
    (void)state;
    char *last = forty("error", ",\"reason\":{\"message\":\"exit 1\\u001b[2J\",\"step\":\"2\",\"logEntries\":"
                                "[{\"message\":\"E: Unable to locate\",\"level\":\"error\"}]}");
    struct scene s[] = {NONE, TPL, BUILDS, {STATUS, 200, last, false},
                        {STATUS, 200, "{\"status\":\"error\",\"logEntries\":[],\"reason\":{\"message\":\"exit 1\\u001b[2J\","
                                      "\"step\":\"2\",\"logEntries\":[{\"message\":\"E: Unable to locate\",\"level\":\"error\"}]}}", false},
                        END};
    play(s);
    char *out = run("builds -f tpl1:b-new-2");
    assert_int_equal(rc, 1);
    assert_int_equal(count(out, "last "), 40);
    has(out, "error: E: Unable to locate\n");
    has(said, "failed at step 2: exit 1");
    assert_null(strchr(said, '\033'));
    free(out);
    play(s);
    for (struct scene *p = s; p->path; p++)
        p->played = false;
    out = run("builds -f tpl1:b-new-2 --json");
    assert_int_equal(rc, 1);
    assert_int_equal(count(out, "\"type\":\"log\""), 41);
    for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
        struct cJSON *j = json_parse(line, strlen(line), NULL);
        assert_non_null(j);
        json_free(j);
    }
    free(out);
    free(last);
}

static void test_follow_by_tag_and_unknown(void **state)
{
    (void)state;
    struct scene s[] = {NONE, TPL, BUILDS,
                        {"/templates/tpl1/tags", 200, "[{\"tag\":\"prod\",\"buildID\":\"b-new-2\"}]", false},
                        {STATUS, 200, "{\"status\":\"ready\",\"logEntries\":[]}", false}, END};
    play(s);
    free(run("builds --follow team/claude:prod"));
    assert_int_equal(rc, 0);
    free(run("builds --follow claude:beta"));
    assert_int_equal(rc, 5);
    has(said, "no build or tag");
    free(run("builds --follow"));
    assert_int_equal(rc, 2);
}

/* --- the system's log ------------------------------------------------------------------- */

static void test_system_log(void **state)
{
    (void)state;
    struct buf body = BUF_INIT;
    struct scene s[] = {{"/v2/sandboxes?", 200, "[{\"sandboxID\":\"iforeign1\",\"state\":\"running\","
                                                "\"endAt\":\"2099-01-01T00:00:00Z\"}]", false},
                        {"/v2/sandboxes/iforeign1/logs", 200, NULL, false}, END};

    buf_adds(&body, "{\"logs\":[{\"timestamp\":\"2026-11-29T15:17:41Z\",\"level\":\"info\",\"message\":\"");
    for (int i = 0; i < 200 * 1024; i++)
        buf_addc(&body, (char)('a' + i % 26));
    buf_adds(&body, "\"},{\"timestamp\":null,\"message\":\"one\"},{\"timestamp\":\"0001-01-01T00:00:00Z\","
                    "\"level\":null,\"message\":\"two\\u001b]0;x\\u0007\"},"
                    "{\"timestamp\":1795965473315,\"message\":\"three\",\"fields\":{\"a\":\"b\"}}]}");
    s[1].body = buf_str(&body);
    play(s);
    char *out = run("logs --system iforeign1");
    assert_int_equal(rc, 0);
    assert_true(strlen(out) > 200 * 1024);
    has(out, "-        -     one\n-        -     two\n15:17:53 -     three  {\"a\":\"b\"}\n");
    assert_null(strchr(out, '\007'));
    free(out);
    out = run("logs --system iforeign1 --json");
    assert_int_equal(count(out, "\n"), 4);
    has(out, "{\"timestamp\":null,\"level\":\"\",\"message\":\"one\"}\n");
    free(out);
    free(run("logs --system --raw iforeign1"));
    assert_int_equal(rc, 2);
    buf_release(&body);
}

/* Pages overlap in the millisecond of the cursor: what was seen is left out, what really
 * came twice stays. */
static void test_pages_of_a_log_overlap(void **state)
{
    (void)state;
    struct buf first = BUF_INIT;
    struct scene s[] = {{"/v2/sandboxes?", 200, "[{\"sandboxID\":\"iforeign1\",\"state\":\"running\"}]", false},
                        {"/v2/sandboxes/iforeign1/logs", 200, NULL, false},
                        {"/v2/sandboxes/iforeign1/logs?cursor=1795965473999", 200,
                         "{\"logs\":[{\"timestamp\":1795965473999,\"message\":\"n 998\"},"
                         "{\"timestamp\":1795965473999,\"message\":\"twice\"},"
                         "{\"timestamp\":1795965473999,\"message\":\"twice\"},"
                         "{\"timestamp\":1795965474001,\"message\":\"after\"}]}", false}, END};

    buf_adds(&first, "{\"logs\":[");
    for (int i = 0; i < 998; i++)
        buf_addf(&first, "{\"timestamp\":%lld,\"message\":\"n %d\"},", 1795965473000LL + i, i);
    buf_adds(&first, "{\"timestamp\":1795965473999,\"message\":\"n 998\"},"
                     "{\"timestamp\":1795965473999,\"message\":\"twice\"}]}");
    s[1].body = buf_str(&first);
    play(s);
    char *out = run("logs --system iforeign1");
    assert_int_equal(rc, 0);
    assert_int_equal(count(out, "\n"), 1002);
    assert_int_equal(count(out, "n 998\n"), 1);
    assert_int_equal(count(out, "twice\n"), 2);
    assert_true(str_ends(out, "twice\n15:17:54 -     after\n"));
    free(out);
    buf_release(&first);
}

/* --- a real one --------------------------------------------------------------------------- */

static void test_build_of_the_local_provider(void **state)
{
    (void)state;
    struct tplbed_made m = tplbed_ask("looked");
    char *url = xasprintf("http://127.0.0.1:%d", tplbed->control);

    tplbed_start(&m, "{\"fromImage\":\"e2bdev/base\",\"steps\":["
                     "{\"type\":\"RUN\",\"args\":[\"sleep 1; echo built\"]},"
                     "{\"type\":\"RUN\",\"args\":[\"echo no >&2; exit 3\"]}]}");
    char *out = run_at(url, tplbed->key, "builds --follow looked");
    has(out, "step 1 of 2  RUN sleep 1");
    has(out, "  built\n");
    has(out, "step 2 of 2  RUN echo no");
    assert_int_equal(rc, 1);
    has(said, "failed at step 2");
    free(out);
    out = run_at(url, tplbed->key, "builds looked --json");
    assert_int_equal(rc, 0);
    has(out, m.build);
    has(out, "\"status\":\"error\"");
    free(out);
    free(url);
}

static int setup(void **state)
{
    (void)state;
    assert_int_equal(tmpdir_make(root, sizeof(root), "looks"), 0);
    srv = mini_start(handler, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mini_stop(srv);
    srv = NULL;
    free(said);
    buf_release(&heard);
    return tmpdir_remove(root);
}

int main(void)
{
    const struct CMUnitTest scripted[] = {
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_builds),
        cmocka_unit_test(test_service_without_templates),
        cmocka_unit_test(test_follow_to_ready),
        cmocka_unit_test(test_follow_to_error),
        cmocka_unit_test(test_follow_by_tag_and_unknown),
        cmocka_unit_test(test_system_log),
        cmocka_unit_test(test_pages_of_a_log_overlap),
        cmocka_unit_test_setup_teardown(test_build_of_the_local_provider, tplbed_setup,
                                        tplbed_teardown),
    };
    size_t n = sizeof(scripted) / sizeof(scripted[0]);

    if (!tplbed_may_run())
        n--; /* no namespaces here: without the real build */
    return _cmocka_run_group_tests("looks", scripted, n, setup, teardown);
}
