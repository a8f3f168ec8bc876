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
                            .kind = (enum call_kind)(size % (CALL_CONNECT + 1))};
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct cJSON *j;

    memcpy(text, data, size);
    text[size] = '\0';
    j = json_parse(text, size, NULL);
    check_sandboxes(j);
    json_free(j);
    check_refusal(text, size);
    free(text);
    return 0;
}
