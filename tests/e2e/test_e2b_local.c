/* The control-plane client against the local provider, every call of it: two programs
 * that share no protocol code must mean the same. */
#include "../lib/e2bbed.h"
#include "../lib/tplbed.h"
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct e2bbed bed; /* its client alone; no script is played */
static char id[40], tpl[40], build[60], hash[65];

static void make_client(void *ctx)
{
    struct e2b_account a = {0};

    (void)ctx;
    e2b_free(bed.client);
    localbed_account(tplbed, &a);
    bed.client = e2b_new(bed.bed->net, &a);
    e2b_account_release(&a);
}

#define CALL(name, expr)                 \
    static void name(void *b)            \
    {                                    \
        struct e2b *c = bed.client;      \
        expr;                            \
    }
#define ANSWER e2bbed_answer, b

static void must(void (*start)(void *b))
{
    e2bbed_run(&bed, start);
    if (bed.r.err.code)
        fail_msg("%s", bed.r.err.text);
}

/* --- sandboxes -------------------------------------------------------------------------- */

static const struct kv meta[] = {{(char *)"team name", (char *)"blue/green %&+=\xc3\xa9"},
                                 {(char *)"line", (char *)"a\nb"}, {NULL, NULL}};
static struct e2b_list_query query;
static int seconds;
static const char *ids[1] = {id};

CALL(create, e2b_create(c, &(struct e2b_create){.template_id = "shell", .timeout_s = 300,
                                                .meta = meta}, ANSWER))
CALL(list_where, e2b_list_where(c, &query, NULL, ANSWER))
CALL(get, e2b_get(c, id, NULL, ANSWER))
CALL(set_timeout, e2b_set_timeout(c, id, seconds, ANSWER))
CALL(refresh, e2b_refresh(c, id, 600, ANSWER))
CALL(pause_it, e2b_pause(c, id, ANSWER))
CALL(connect_it, e2b_connect(c, id, 120, ANSWER))
CALL(metrics, e2b_metrics(c, ids, 1, NULL, ANSWER))
CALL(metrics_of, e2b_metrics_of(c, id, 0, 0, NULL, ANSWER))
CALL(logs, e2b_logs(c, id, &(struct e2b_log_query){.limit = 100}, NULL, ANSWER))
CALL(events, e2b_events(c, &(struct e2b_event_query){.sandbox_id = id, .oldest_first = true}, NULL,
                        ANSWER))
CALL(team, e2b_team_metrics(c, "local", 0, 0, NULL, ANSWER))
CALL(kill_it, e2b_kill(c, id, NULL, ANSWER))

static void show(struct e2bbed *b, const struct e2b_result *r)
{
    for (size_t i = 0; i < r->n; i++)
        buf_addf(&b->text, "%s %s %s\n", r->v[i].sandbox_id, r->v[i].state,
                 r->v[i].meta ? r->v[i].meta[0].k : "-");
    for (size_t i = 0; i < r->n_events; i++)
        buf_addf(&b->text, "%s\n", r->events[i].type);
    for (size_t i = 0; i < r->n_logs; i++)
        buf_addf(&b->text, "%s\n", r->logs[i].message);
    for (size_t i = 0; i < r->n_metrics; i++)
        buf_addf(&b->text, "load of %s %d\n", r->metrics[i].sandbox_id,
                 r->metrics[i].mem_total > 0 && r->metrics[i].time_ms > 0);
    for (size_t i = 0; i < r->n_templates; i++)
        buf_addf(&b->text, "template %s\n", r->templates[i].template_id);
    for (size_t i = 0; i < r->n_tags; i++)
        buf_addf(&b->text, "tag %s\n", r->tags[i].tag);
    if (r->n == 1 && !id[0])
        str_copy(id, sizeof(id), r->v[0].sandbox_id);
    if (r->n_builds && r->builds[0].template_id) {
        str_copy(tpl, sizeof(tpl), r->builds[0].template_id);
        str_copy(build, sizeof(build), r->builds[0].build_id);
    }
}

static void says(const char *text)
{
    if (!strstr(buf_str(&bed.text), text))
        fail_msg("'%s' is missing in:\n%s", text, buf_str(&bed.text));
}

static int64_t end_of(void)
{
    must(get);
    return bed.r.n ? 1 : 0;
}

static void test_a_sandbox(void **state)
{
    (void)state;
    id[0] = '\0';
    must(create);
    assert_true(id[0]);
    query = (struct e2b_list_query){.meta = meta, .template_id = "shell",
                                    .started_after = clock_wall_ms() - 3600000};
    must(list_where);
    assert_int_equal(bed.r.n, 1);
    assert_int_equal(bed.r.total_running, 1);
    says("team name");
    query = (struct e2b_list_query){.states = "paused", .meta = meta};
    must(list_where);
    assert_int_equal(bed.r.n, 0);
    query = (struct e2b_list_query){.meta = (const struct kv[]){{(char *)"team name", (char *)"no"},
                                                                {NULL, NULL}}};
    must(list_where);
    assert_int_equal(bed.r.n, 0);
    assert_int_equal(end_of(), 1);
    seconds = 200;
    must(set_timeout);
    must(refresh);
    must(metrics);
    says(id);
    must(metrics_of);
    must(logs);
    must(pause_it);
    e2bbed_run(&bed, pause_it);
    assert_int_equal(bed.r.err.code, ERR_CONFLICT);
    must(connect_it);
    must(events);
    says("sandbox.lifecycle.created\n");
    says("sandbox.lifecycle.paused\n");
    says("sandbox.lifecycle.resumed\n");
    e2bbed_run(&bed, team); /* another team's, or ours: an answer with sense */
    assert_true(bed.r.err.code == 0 || bed.r.err.code == ERR_AUTH);
    must(kill_it);
    e2bbed_run(&bed, kill_it);
    assert_int_equal(bed.r.err.code, ERR_NOTFOUND);
    e2bbed_run(&bed, connect_it);
    assert_int_equal(bed.r.err.code, ERR_NOTFOUND);
}

/* --- a template from its files to its end ----------------------------------------------- */

static struct e2b_file place;
static const char *const tags[] = {"beta", NULL};
static char *archive;
static size_t archive_len;

CALL(new_build, e2b_build_new(c, &(struct e2b_build_new){.name = "by-client", .cpu_count = 1,
                                                         .memory_mb = 512}, ANSWER))
CALL(file, e2b_build_file(c, tpl, hash, NULL, ANSWER))
CALL(status, e2b_build_status(c, tpl, build, 0, NULL, ANSWER))
CALL(build_logs, e2b_build_logs(c, tpl, build, &(struct e2b_log_query){.limit = 100}, NULL, ANSWER))
CALL(templates, e2b_templates(c, NULL, NULL, ANSWER))
CALL(template, e2b_template(c, tpl, NULL, ANSWER))
CALL(alias, e2b_template_alias(c, "by-client", NULL, ANSWER))
CALL(tag_add, e2b_tag_add(c, "by-client:default", tags, ANSWER))
CALL(tag_list, e2b_tags(c, tpl, NULL, ANSWER))
CALL(tag_delete, e2b_tag_delete(c, "by-client", tags, NULL, ANSWER))
CALL(delete_it, e2b_template_delete(c, tpl, NULL, ANSWER))

static void upload(void *b)
{
    int fd = fs_temp(NULL);

    if (fd < 0 || fs_write_all(fd, archive, archive_len) != 0)
        die("there is no file to send");
    e2b_upload(bed.client, &place, fd, archive_len, ANSWER);
}

static void start_build(void *b)
{
    static const char *const copy[] = {"hello.txt", "/opt/", "", "", NULL};
    static const char *const run[] = {"cat /opt/hello.txt", NULL};
    const struct e2b_step steps[] = {{"COPY", copy, hash, false}, {"RUN", run, NULL, false}};

    e2b_build_start(bed.client, tpl, build,
                    &(struct e2b_build_start){.from_image = "e2bdev/base", .steps = steps,
                                              .n_steps = 2}, ANSWER);
}

static void show_file(struct e2bbed *b, const struct e2b_result *r)
{
    (void)b;
    free(place.url);
    place = (struct e2b_file){.present = r->file && r->file->present,
                              .url = r->file ? xstrdup(r->file->url) : NULL};
}

static void show_status(struct e2bbed *b, const struct e2b_result *r)
{
    if (r->n_builds)
        buf_addf(&b->text, "%s", r->builds[0].status);
}

static void make_archive(void)
{
    char *dir = xasprintf("%s/up", tplbed->root);
    char *cmd = xasprintf("mkdir -p %s && echo hello from a file >%s/hello.txt && "
                          "tar -C %s -czf %s.tgz hello.txt", dir, dir, dir, dir);
    char *path = xasprintf("%s.tgz", dir);

    assert_int_equal(system(cmd), 0);
    archive = fs_read(path, 1 << 20, false, &archive_len, NULL);
    assert_non_null(archive);
    memset(hash, 'a', 64);
    free(dir);
    free(cmd);
    free(path);
}

static void await_build(void)
{
    int64_t end = clock_mono_ms() + 60000;

    bed.show = show_status;
    do {
        must(status);
    } while (strcmp(buf_str(&bed.text), "ready") != 0 && strcmp(buf_str(&bed.text), "error") != 0 &&
             clock_mono_ms() < end);
    assert_string_equal(buf_str(&bed.text), "ready");
    bed.show = show;
}

static void test_a_template(void **state)
{
    (void)state;
    make_archive();
    must(new_build);
    assert_true(tpl[0] && build[0]);
    bed.show = show_file;
    must(file);
    assert_false(place.present);
    assert_non_null(place.url);
    must(upload);
    must(file);
    assert_true(place.present);
    bed.show = show;
    must(start_build);
    e2bbed_run(&bed, start_build);
    assert_int_equal(bed.r.err.code, ERR_INVALID); /* it was started already */
    await_build();
    must(status);
    says("[builder 2/2] [stdout]: hello from a file\n");
    must(build_logs);
    says("[builder 1/2] COPY");
    must(templates);
    says(tpl);
    must(template);
    says(tpl);
    must(alias);
    says(tpl);
    must(tag_add);
    must(tag_list);
    says("tag beta\n");
    must(tag_delete);
    must(tag_list);
    assert_null(strstr(buf_str(&bed.text), "beta"));
    must(delete_it);
    e2bbed_run(&bed, template);
    assert_int_equal(bed.r.err.code, ERR_NOTFOUND);
    free(archive);
    free(place.url);
}

static int setup(void **state)
{
    if (tplbed_setup(state) != 0)
        return -1;
    e2bbed_open(&bed);
    bed_run(bed.bed, make_client, NULL);
    bed.show = show;
    return 0;
}

static int teardown(void **state)
{
    e2bbed_close(&bed);
    return tplbed_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sandbox),
        cmocka_unit_test(test_a_template),
    };

    if (!tplbed_is_possible())
        return 0;
    return cmocka_run_group_tests_name("e2b_local", tests, setup, teardown);
}
