/* What the local provider takes from a client's JSON and query: options of a create,
 * lists. The first byte says which. Templates have fuzz_local_tpl. */
#include <cct/local/ctl.h>
#include <cct/local/provider.h>
#include <cct/util/json.h>
#include <cct/util/xalloc.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "violated: %s\n", what);
    abort();
}

static void list(const char *query)
{
    struct ctl_list q;
    struct err e = {0};
    struct sbox_rec a = {.id = "iaaaaaaaaaaaaaaaaaaaa", .started_ms = 1000, .end_ms = 2000};
    struct sbox_rec b = {.id = "ibbbbbbbbbbbbbbbbbbbb", .started_ms = 1000, .end_ms = 2000};
    const struct sbox_rec *recs[] = {&a, &b};
    if (ctl_list_parse(&q, query, &e) == 0) {
        size_t running;
        char *next;
        must(q.limit >= 1 && q.limit <= 100, "a page has 1 to 100 items");
        size_t n = ctl_list_select(&q, recs, 2, &running, &next);
        must(n <= 2 && running <= 2, "a page holds what is there");
        free(next);
    } else {
        must(e.text[0] != '\0', "a refusal says why");
    }
    ctl_list_release(&q);
    char *v = ctl_query_get(query, "state");
    free(v);
}

static void options(const struct cJSON *j, bool v2)
{
    struct sbox_new n = {0};
    struct err e = {0};
    bool internet = true;
    if (ctl_options_parse(j, v2, &n, &e) == 0)
        must(n.timeout_s >= 1, "a sandbox lives a second at least");
    else
        must(e.text[0] != '\0', "a refusal says why");
    ctl_options_update(j, &internet, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    char *text = xstrndup((const char *)data + 1, size - 1);
    struct err e = {0};
    if (data[0] == 'q') {
        list(text);
    } else {
        struct cJSON *j = json_parse(text, strlen(text), &e);
        if (json_is_object(j))
            options(j, data[0] == '2');
        json_free(j);
    }
    free(text);
    return 0;
}
