/* Answers of the control plane: any JSON gives a sandbox or none, and any refusal a
 * sentence without control bytes. */
#include "../../src/e2b/e2b_priv.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sandboxes(const struct cJSON *j)
{
    struct e2b_sandbox s;

    for (const struct cJSON *i = json_first(j); i; i = json_next(i)) {
        if (!sandbox_parse(i, &s))
            continue;
        if (!s.sandbox_id || !s.sandbox_id[0] || !s.state || s.cpu_count < 0 || s.started_at < 0)
            abort();
        for (const struct kv *m = s.meta; m && m->k; m++)
            if (!m->v)
                abort();
        e2b_sandbox_clear(&s);
    }
    if (sandbox_parse(j, &s))
        e2b_sandbox_clear(&s);
}

static void check_refusal(const char *text, size_t size)
{
    static const int statuses[] = {200, 302, 400, 401, 403, 404, 409, 429, 500, 503};
    struct e2b client = {.account = {.mask = "****abcd"}};
    struct e2b_call call = {.e2b = &client, .method = size % 2 ? "POST" : "DELETE",
                            .kind = (enum call_kind)(size % CALL_COUNT)};
    struct net_result n = {.body = text, .len = size, .retry_after_ms = size % 3 ? -1 : 1000};
    struct err e;

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        e = (struct err){0};
        n.status = statuses[i];
        answer_error(&call, &n, &e);
        if (!e.code || !e.text[0])
            abort();
        for (const char *p = e.text; *p; p++)
            if ((unsigned char)*p < ' ' || *p == 0x7f)
                abort();
    }
}

/* Every kind of answer: rows are whole, times and counts are not below their least. */
static void check_rows(const struct cJSON *j)
{
    static int (*const takes[])(struct e2b_call *k, const struct cJSON *j) = {
        take_list,      take_one,      take_metric_range, take_logs,      take_events,
        take_team,      take_templates, take_template,    take_alias,     take_tags,
        take_tag_added, take_build_new, take_file,        take_build_status};

    for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]); i++) {
        struct e2b client = {.account = {.mask = "****abcd"}};
        struct e2b_call call = {.e2b = &client, .subject = (char *)"ib1"};

        if (takes[i](&call, j) > 0)
            abort();
        for (size_t n = 0; n < call.got.logs.n; n++)
            if (!call.got.logs.v[n].message || !call.got.logs.v[n].level ||
                call.got.logs.v[n].time_ms < 0)
                abort();
        for (size_t n = 0; n < call.got.builds.n; n++)
            if (!call.got.builds.v[n].build_id || !call.got.builds.v[n].status)
                abort();
        map_free(call.ids, NULL);
        got_release(&call.got);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct cJSON *j;

    memcpy(text, data, size);
    text[size] = '\0';
    j = json_parse(text, size, NULL);
    check_sandboxes(j);
    check_rows(j);
    json_free(j);
    check_refusal(text, size);
    free(text);
    return 0;
}
