/* Templates and builds: requests as the official clients make them, pages, uploads that
 * carry nothing of ours, and statuses of every kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/e2bbed.h"
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct e2bbed bed;

static int fresh(void **state)
{
    (void)state;
    bed.show = NULL;
    e2bbed_client(&bed);
    return 0;
}

#define HEARD(want) assert_string_equal(buf_str(&bed.heard), want)
#define SHOWN(want) assert_string_equal(buf_str(&bed.text), want)

static const char *s(const char *v)
{
    return v ? v : "-";
}

/* --- the same JSON, whatever the order of members --------------------------------- */

static bool json_same(const struct cJSON *a, const struct cJSON *b)
{
    size_t n = 0, m = 0;

    if (json_is_object(a) && json_is_object(b)) {
        for (const struct cJSON *i = json_first(a); i; i = json_next(i), n++)
            if (!json_get(b, json_name(i)) || !json_same(i, json_get(b, json_name(i))))
                return false;
        for (const struct cJSON *i = json_first(b); i; i = json_next(i))
            m++;
        return n == m;
    }
    char *x = json_text(a), *y = json_text(b);
    bool same = str_eq(x, y);
    free(x);
    free(y);
    if (same || !json_is_array(a) || !json_is_array(b))
        return same;
    const struct cJSON *i = json_first(a), *j = json_first(b);
    for (; i && j; i = json_next(i), j = json_next(j))
        if (!json_same(i, j))
            return false;
    return !i && !j;
}

/* Is the body heard last one that the official clients were captured with, at `path`? */
static bool as_captured(const char *path)
{
    size_t len = 0;
    char *all = fs_read("tests/fixtures/requests.jsonl", 8 << 20, false, &len, NULL), *at = NULL;
    const char *body = strchr(buf_str(&bed.heard), '{');
    struct cJSON *ours = body ? json_parse(body, strlen(body), NULL) : NULL;
    bool found = false;

    assert_non_null(all);
    assert_non_null(ours);
    for (char *line = strtok_r(all, "\n", &at); line && !found; line = strtok_r(NULL, "\n", &at)) {
        struct cJSON *j = json_parse(line, strlen(line), NULL);
        found = str_eq(json_str(j, "path", ""), path) && json_get(j, "json") &&
                json_same(json_get(j, "json"), ours);
        json_free(j);
    }
    json_free(ours);
    free(all);
    return found;
}

/* --- templates ---------------------------------------------------------------------- */

static const char *team;

static void start_templates(void *b)
{
    e2b_templates(bed.client, team, NULL, e2bbed_answer, b);
}

static void start_template(void *b)
{
    e2b_template(bed.client, "snap1:default", NULL, e2bbed_answer, b);
}

static void start_alias(void *b)
{
    e2b_template_alias(bed.client, "team/mine", NULL, e2bbed_answer, b);
}

static void start_delete(void *b)
{
    e2b_template_delete(bed.client, "snap1:default", NULL, e2bbed_answer, b);
}

static void show_templates(struct e2bbed *b, const struct e2b_result *r)
{
    for (size_t i = 0; i < r->n_templates; i++) {
        const struct e2b_template *t = &r->templates[i];
        buf_addf(&b->text, "%s %s %s %s %d/%d/%d %lld %lld %lld n%lld b%lld\n", t->template_id,
                 t->names ? t->names[0] : "-", s(t->status), s(t->build_id), t->cpu_count,
                 t->memory_mb, t->disk_mb, (long long)t->created_at, (long long)t->updated_at,
                 (long long)t->spawned_at, (long long)t->spawn_count, (long long)t->build_count);
    }
    for (size_t i = 0; i < r->n_builds; i++)
        buf_addf(&b->text, "  %s %s %s %lld %lld\n", s(r->builds[i].template_id),
                 r->builds[i].build_id, r->builds[i].status, (long long)r->builds[i].created_at,
                 (long long)r->builds[i].finished_at);
}

static void test_templates_of_all_pages(void **state)
{
    (void)state;
    bed.show = show_templates;
    team = NULL;
    E2B_PLAY(&bed,
             {200, "x-next-token: n/1\r\n",
              "[{\"templateID\":\"tpl0\",\"buildID\":\"b0\",\"cpuCount\":2,\"memoryMB\":512,"
              "\"diskSizeMB\":1024,\"public\":true,\"createdAt\":\"2026-11-29T15:17:41.122Z\","
              "\"updatedAt\":1795965461,\"createdBy\":null,\"lastSpawnedAt\":null,\"spawnCount\":3,"
              "\"buildCount\":1,\"envdVersion\":\"0.6.13\",\"aliases\":[\"base\"],"
              "\"names\":[\"e2b/base\"],\"buildStatus\":\"ready\"},null,{}]"},
             {200, "", "[{\"templateID\":\"tpl0\"},{\"templateID\":\"tpl1\",\"names\":null,"
                       "\"aliases\":[7,\"old\"],\"buildStatus\":null,\"cpuCount\":\"x\"}]"});
    e2bbed_run(&bed, start_templates);
    HEARD("GET /v2/templates?limit=100 \nGET /v2/templates?limit=100&nextToken=n%2F1 \n");
    SHOWN("tpl0 e2b/base ready b0 2/512/1024 1795965461122 1795965461000 0 n3 b1\n"
          "tpl1 old - - 0/0/0 0 0 0 n-1 b-1\n");
    team = "team-1";
    E2B_PLAY(&bed, {404, "", "{\"code\":404,\"message\":\"no route\"}"},
             {200, "", "[{\"templateID\":\"tpl0\"}]"});
    e2bbed_run(&bed, start_templates);
    HEARD("GET /v2/templates?limit=100&teamID=team-1 \nGET /templates?teamID=team-1 \n");
    assert_int_equal(bed.r.n_templates, 1);
}

static void test_builds_of_all_pages(void **state)
{
    (void)state;
    bed.show = show_templates;
    E2B_PLAY(&bed,
             {200, "X-Next-Token: 2\r\n",
              "{\"templateID\":\"t\",\"names\":[\"a/b\"],\"builds\":[{\"buildID\":\"b2\",\"status\":"
              "\"building\",\"createdAt\":\"2026-11-29T15:17:41Z\"},{\"buildID\":\"b1\",\"status\":7}]}"},
             {200, "", "{\"templateID\":\"t\",\"builds\":[{\"buildID\":\"b1\"},{\"buildID\":\"b0\","
                       "\"status\":\"error\",\"finishedAt\":\"2026-11-29T15:17:41Z\"},{}]}"},
             {404, "", "{\"code\":404,\"message\":\"none\"}"});
    e2bbed_run(&bed, start_template);
    HEARD("GET /templates/snap1%3Adefault?limit=100 \n"
          "GET /templates/snap1%3Adefault?limit=100&nextToken=2 \n");
    SHOWN("t a/b - - 0/0/0 0 0 0 n-1 b-1\n  t b2 building 1795965461000 0\n  t b1 7 0 0\n"
          "  t b0 error 0 1795965461000\n");
    e2bbed_run(&bed, start_template);
    assert_int_equal(bed.r.err.code, ERR_NOTFOUND);
}

static void test_names_and_ends(void **state)
{
    (void)state;
    bed.show = show_templates;
    E2B_PLAY(&bed, {200, "", "{\"templateID\":\"tpl1\",\"public\":false}"},
             {404, "", "{\"code\":404,\"message\":\"not found\"}"},
             {403, "", "{\"code\":403,\"message\":\"no\"}"}, {204, "", ""},
             {400, "", "{\"code\":400,\"message\":\"sandboxes use it\"}"});
    e2bbed_run(&bed, start_alias);
    assert_true(str_starts(buf_str(&bed.text), "tpl1 "));
    e2bbed_run(&bed, start_alias);
    assert_int_equal(bed.r.err.code, ERR_NOTFOUND);
    e2bbed_run(&bed, start_alias);
    assert_int_equal(bed.r.err.code, ERR_AUTH);
    assert_non_null(strstr(bed.r.err.text, "another team"));
    e2bbed_run(&bed, start_delete);
    assert_int_equal(bed.r.err.code, 0);
    e2bbed_run(&bed, start_delete);
    assert_int_equal(bed.r.err.code, ERR_INVALID);
    assert_non_null(strstr(bed.r.err.text, "sandboxes use it"));
    assert_true(str_ends(buf_str(&bed.heard), "GET /templates/aliases/team%2Fmine \n"
                                              "DELETE /templates/snap1%3Adefault \n"
                                              "DELETE /templates/snap1%3Adefault \n"));
}

/* --- tags --------------------------------------------------------------------------- */

static const char *const prod[] = {"prod", "v\"2", NULL};

static void start_tags(void *b)
{
    e2b_tags(bed.client, "my-tpl", NULL, e2bbed_answer, b);
}

static void start_tag_add(void *b)
{
    e2b_tag_add(bed.client, "my-tpl:v1", prod, e2bbed_answer, b);
}

static void start_tag_delete(void *b)
{
    static const struct e2b_call_opts o = {.give_up_ms = 20000};
    e2b_tag_delete(bed.client, "my-tpl", prod, &o, e2bbed_answer, b);
}

static void show_tags(struct e2bbed *b, const struct e2b_result *r)
{
    for (size_t i = 0; i < r->n_tags; i++)
        buf_addf(&b->text, "%s=%s@%lld ", r->tags[i].tag, s(r->tags[i].build_id),
                 (long long)r->tags[i].created_at);
}

static void test_tags(void **state)
{
    (void)state;
    bed.show = show_tags;
    E2B_PLAY(&bed, {200, "", "[{\"tag\":\"default\",\"buildID\":\"b0\",\"createdAt\":"
                             "\"2026-11-29T15:17:41Z\"},{\"buildID\":\"b1\"},7]"},
             {201, "", "{\"tags\":[\"prod\"],\"buildID\":\"b0\"}"}, {503, "", ""}, {204, "", ""});
    e2bbed_run(&bed, start_tags);
    SHOWN("default=b0@1795965461000 ");
    e2bbed_run(&bed, start_tag_add);
    SHOWN("prod=b0@0 ");
    e2bbed_run(&bed, start_tag_delete); /* its body goes out again with the second try */
    assert_int_equal(bed.r.err.code, 0);
    HEARD("GET /templates/my-tpl/tags \n"
          "POST /templates/tags {\"target\":\"my-tpl:v1\",\"tags\":[\"prod\",\"v\\\"2\"]}\n"
          "DELETE /templates/tags {\"name\":\"my-tpl\",\"tags\":[\"prod\",\"v\\\"2\"]}\n"
          "DELETE /templates/tags {\"name\":\"my-tpl\",\"tags\":[\"prod\",\"v\\\"2\"]}\n");
}

/* --- making one ---------------------------------------------------------------------- */

static struct e2b_build_new new_build;
static struct e2b_build_start start;

static void start_new(void *b)
{
    e2b_build_new(bed.client, &new_build, e2bbed_answer, b);
}

static void start_start(void *b)
{
    e2b_build_start(bed.client, "tplnew1", "b-1", &start, e2bbed_answer, b);
}

static void show_build(struct e2bbed *b, const struct e2b_result *r)
{
    for (size_t i = 0; i < r->n_builds; i++)
        buf_addf(&b->text, "%s %s %s %s %s\n", s(r->builds[i].template_id), r->builds[i].build_id,
                 r->builds[i].status, s(r->builds[i].reason), s(r->builds[i].reason_step));
    for (size_t i = 0; i < r->n_logs; i++)
        buf_addf(&b->text, "log %s\n", r->logs[i].message);
    for (size_t i = 0; i < r->n_reason_logs; i++)
        buf_addf(&b->text, "why %s\n", r->reason_logs[i].message);
}

static void test_request_a_build(void **state)
{
    static const char *const tags[] = {"beta", NULL};

    (void)state;
    bed.show = show_build;
    new_build = (struct e2b_build_new){.name = "my-tpl:v1", .tags = tags, .cpu_count = 2,
                                       .memory_mb = 2048};
    E2B_PLAY(&bed, {202, "", "{\"templateID\":\"tplnew1\",\"buildID\":\"b-1\",\"public\":false}"});
    e2bbed_run(&bed, start_new);
    SHOWN("tplnew1 b-1  - -\n");
    assert_true(as_captured("/v3/templates"));
    new_build = (struct e2b_build_new){.name = "fail-tpl"};
    E2B_PLAY(&bed, {429, "", "{\"code\":429,\"message\":\"20 builds\"}"});
    e2bbed_run(&bed, start_new);
    assert_true(as_captured("/v3/templates"));
    assert_int_equal(bed.r.err.code, ERR_LIMIT);
    assert_non_null(strstr(bed.r.err.text, "limit of builds"));
    assert_int_equal(bed.at, 1);
    E2B_PLAY(&bed, {202, "", "{\"buildID\":\"b-1\"}"}, {202, "", "{}"}, {202, "", ""});
    for (int i = 0; i < 3; i++) {
        e2bbed_run(&bed, start_new);
        assert_int_equal(bed.r.err.code, ERR_PROTO);
    }
}

static void test_start_a_build(void **state)
{
    static const char *const env[] = {"A", "1", "B", "2", NULL}, *const run[] = {"echo one", NULL},
                      *const dir[] = {"/app", NULL}, *const user[] = {"user", NULL},
                      *const both[] = {"a && b", "root", NULL};
    static const struct e2b_step steps[] = {{"ENV", env, NULL, false}, {"RUN", run, NULL, false},
                                            {"WORKDIR", dir, NULL, false},
                                            {"USER", user, NULL, false}};
    static const struct e2b_step one[] = {{"RUN", both, NULL, true}};
    struct secret *password = secret_new("p\"w", 3);

    (void)state;
    start = (struct e2b_build_start){.from_image = "debian:12", .steps = steps, .n_steps = 4};
    E2B_PLAY(&bed, {202, "Content-Length: 0\r\n", ""});
    e2bbed_run(&bed, start_start);
    assert_int_equal(bed.r.err.code, 0);
    assert_true(as_captured("/v2/templates/{template}/builds/{build}"));
    start = (struct e2b_build_start){.from_template = "base", .steps = one, .n_steps = 1};
    E2B_PLAY(&bed, {202, "", ""});
    e2bbed_run(&bed, start_start);
    assert_true(as_captured("/v2/templates/{template}/builds/{build}"));
    start = (struct e2b_build_start){.from_image = "private/img", .user = "u",
                                     .password = password, .force = true, .start_cmd = "node s.js",
                                     .ready_cmd = "sleep 1"};
    E2B_PLAY(&bed, {400, "", "{\"code\":400,\"message\":\"already started\"}"});
    e2bbed_run(&bed, start_start);
    HEARD("POST /v2/templates/tplnew1/builds/b-1 {\"fromImage\":\"private/img\","
          "\"fromImageRegistry\":{\"type\":\"registry\",\"username\":\"u\",\"password\":\"p\\\"w\"},"
          "\"startCmd\":\"node s.js\",\"readyCmd\":\"sleep 1\",\"force\":true,\"steps\":[]}\n");
    assert_int_equal(bed.r.err.code, ERR_INVALID);
    assert_non_null(strstr(bed.r.err.text, "already started"));
    secret_free(password);
}

/* --- files ---------------------------------------------------------------------------- */

static struct e2b_file place;

static void start_file(void *b)
{
    e2b_build_file(bed.client, "tplnew1", "4dd5", NULL, e2bbed_answer, b);
}

static void start_upload(void *b)
{
    int fd = fs_temp(NULL);

    if (fd < 0 || fs_write_all(fd, "\x1f\x8b\0tar", 6) != 0)
        die("there is no file to send");
    e2b_upload(bed.client, &place, fd, 6, e2bbed_answer, b);
}

static void show_file(struct e2bbed *b, const struct e2b_result *r)
{
    if (r->file)
        buf_addf(&b->text, "%d %s %s\n", r->file->present, s(r->file->url),
                 r->file->headers ? r->file->headers[0].v : "-");
}

static void test_where_files_go(void **state)
{
    (void)state;
    bed.show = show_file;
    E2B_PLAY(&bed, {201, "", "{\"present\":false,\"url\":\"https://s.example/x\","
                             "\"headers\":{\"x-ms-blob-type\":\"BlockBlob\"}}"},
             {201, "", "{\"present\":true,\"url\":\"\"}"}, {201, "", "{\"present\":false}"});
    e2bbed_run(&bed, start_file);
    HEARD("GET /templates/tplnew1/files/4dd5 \n");
    SHOWN("0 https://s.example/x BlockBlob\n");
    e2bbed_run(&bed, start_file);
    SHOWN("1 - -\n");
    e2bbed_run(&bed, start_file);
    assert_int_equal(bed.r.err.code, ERR_PROTO);
}

/* Neither the key nor any header of ours goes to the storage. */
static void test_upload_carries_nothing_of_ours(void **state)
{
    static struct kv headers[] = {{(char *)"x-ms-blob-type", (char *)"BlockBlob"}, {NULL, NULL}};
    char *url = mini_url(bed.srv, "/upload/4dd5?X-Sig=abc");

    (void)state;
    place = (struct e2b_file){.url = url, .headers = headers};
    E2B_PLAY(&bed, {200, "", ""});
    e2bbed_run(&bed, start_upload);
    assert_int_equal(bed.r.err.code, 0);
    assert_true(str_starts(buf_str(&bed.heard), "PUT /upload/4dd5?X-Sig=abc \x1f\x8b"));
    const char *heads = buf_str(&bed.heads);
    assert_non_null(strstr(heads, "Content-Length: 6\r\n"));
    assert_non_null(strstr(heads, "x-ms-blob-type: BlockBlob\r\n"));
    assert_null(strcasestr(heads, "api-key"));
    assert_null(strcasestr(heads, "e2b_"));
    assert_null(strcasestr(heads, "content-type"));
    assert_null(strcasestr(heads, "chunked"));
    E2B_PLAY(&bed, {403, "", "<Error>expired</Error>"});
    e2bbed_run(&bed, start_upload);
    assert_int_equal(bed.r.err.code, ERR_INVALID);
    assert_null(strstr(bed.r.err.text, "****"));
    free(url);
}

static void far_client(void *ctx)
{
    struct e2b_account a = {.api_url = (char *)"https://api.e2b.app", .key = secret_new("e2b_1", 5)};

    (void)ctx;
    e2b_free(bed.client);
    bed.client = e2b_new(bed.bed->net, &a);
    secret_free(a.key);
}

static void test_upload_refuses_odd_places(void **state)
{
    static const char *const bad[] = {"http://s.example/x", "ftp://s.example/x", "", "file:///etc/x",
                                      "https://user:pw@s.example/", "http://127.0.0.1:1/x",
                                      "http://[::1]:1/x", "https://localhost/x"};
    static struct kv host[] = {{(char *)"Host", (char *)"a"}, {NULL, NULL}};
    static struct kv many[14];
    static struct kv split[] = {{(char *)"a: b\r\nc", (char *)"a"}, {NULL, NULL}};

    (void)state;
    bed_run(bed.bed, far_client, NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        place = (struct e2b_file){.url = (char *)bad[i]};
        e2bbed_run(&bed, start_upload);
        assert_int_equal(bed.r.err.code, ERR_PERM);
    }
    place = (struct e2b_file){.url = (char *)"https://s.example/x", .headers = host};
    e2bbed_run(&bed, start_upload);
    assert_int_equal(bed.r.err.code, ERR_PERM);
    place.headers = split;
    e2bbed_run(&bed, start_upload);
    assert_int_equal(bed.r.err.code, ERR_PERM);
    for (int i = 0; i < 13; i++)
        many[i] = (struct kv){(char *)"x-a", (char *)"b"};
    place.headers = many;
    e2bbed_run(&bed, start_upload);
    assert_int_equal(bed.r.err.code, ERR_PERM);
    assert_non_null(strstr(bed.r.err.text, "asks for 13 headers"));
    place = (struct e2b_file){.url = NULL};
    e2bbed_run(&bed, start_upload);
    assert_int_equal(bed.r.err.code, ERR_PERM);
}

/* --- following it --------------------------------------------------------------------- */

static int64_t offset;

static void start_status(void *b)
{
    e2b_build_status(bed.client, "tplnew1", "b-1", offset, NULL, e2bbed_answer, b);
}

static void start_build_logs(void *b)
{
    e2b_build_logs(bed.client, "tplnew1", "b-1",
                   &(struct e2b_log_query){.from_ms = 5, .limit = 300, .level = "warn"}, NULL,
                   e2bbed_answer, b);
}

static void test_build_status(void **state)
{
    (void)state;
    bed.show = show_build;
    offset = 40;
    E2B_PLAY(&bed,
             {200, "", "{\"templateID\":\"tplnew1\",\"buildID\":\"b-1\",\"status\":\"error\",\"logs\":[],"
                       "\"logEntries\":[{\"message\":\"[builder 1/2] RUN a\",\"step\":\"1\"}],"
                       "\"reason\":{\"message\":\"exit 1\",\"step\":\"1\",\"logEntries\":[{\"message\":"
                       "\"E: no\"}]}}"},
             {200, "", "{\"status\":\"building\",\"logs\":[\"old line\"],\"reason\":null}"},
             {200, "", "{\"status\":\"error\",\"reason\":\"words\"}"},
             {400, "", "{\"code\":400,\"message\":\"no such build\"}"}, {200, "", "{}"});
    e2bbed_run(&bed, start_status);
    HEARD("GET /templates/tplnew1/builds/b-1/status?logsOffset=40 \n");
    SHOWN("tplnew1 b-1 error exit 1 1\nlog [builder 1/2] RUN a\nwhy E: no\n");
    e2bbed_run(&bed, start_status);
    SHOWN("- b-1 building - -\nlog old line\n");
    e2bbed_run(&bed, start_status);
    SHOWN("- b-1 error words -\n");
    e2bbed_run(&bed, start_status);
    assert_int_equal(bed.r.err.code, ERR_INVALID);
    e2bbed_run(&bed, start_status);
    assert_int_equal(bed.r.err.code, ERR_PROTO);
    E2B_PLAY(&bed, {200, "", "{\"logs\":[{\"message\":\"one\"}]}"});
    e2bbed_run(&bed, start_build_logs);
    HEARD("GET /templates/tplnew1/builds/b-1/logs?direction=forward&cursor=5&limit=100&level=warn \n");
    SHOWN("log one\n");
}

#define CASE(f) cmocka_unit_test_setup(f, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_templates_of_all_pages), CASE(test_builds_of_all_pages),
        CASE(test_names_and_ends), CASE(test_tags), CASE(test_request_a_build),
        CASE(test_start_a_build), CASE(test_where_files_go),
        CASE(test_upload_carries_nothing_of_ours), CASE(test_upload_refuses_odd_places),
        CASE(test_build_status),
    };
    int rc;

    e2bbed_open(&bed);
    rc = cmocka_run_group_tests_name("e2b_builds", tests, NULL, NULL);
    e2bbed_close(&bed);
    return rc;
}
