/* What the local provider takes from a client's JSON and query: options of a create,
 * plans of builds, records of templates and sandboxes, lists. The first byte says
 * which. */
#include <cct/local/ctl.h>
#include <cct/local/provider.h>
#include <cct/local/tpl.h>
#include <cct/local/tpl_plan.h>
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

static void plan(const struct cJSON *j)
{
    struct tpl_plan p = {0};
    struct err e = {0};
    if (tpl_plan_parse(&p, j, &e) == 0) {
        struct tpl_ctx c;
        tpl_ctx_init(&c, "base");
        for (size_t i = 0; i < p.n_steps; i++) {
            char key[TPL_KEY_LEN + 1];
            struct buf text = BUF_INIT;
            tpl_step_text(&text, &p.steps[i]);
            tpl_step_key(key, &c, &p.steps[i]);
            must(strlen(key) == TPL_KEY_LEN, "a key has its length");
            buf_release(&text);
            tpl_step_makes_layer(&c, &p.steps[i]);
            if (!tpl_step_user_ok(&p.steps[i], &e))
                continue;
            struct tpl_run run;
            tpl_step_run(&run, &c, &p.steps[i]);
            json_free(run.env);
            tpl_step_apply(&c, &p.steps[i], &e);
        }
        tpl_ctx_release(&c);
    } else {
        must(e.text[0] != '\0', "a refusal says why");
    }
    tpl_plan_release(&p);
}

/* What is read is written, and read again as the same. */
static void record(const char *text, size_t len)
{
    struct err e = {0};
    struct buf one = BUF_INIT, two = BUF_INIT;
    struct tpl *t = tpl_read(text, len, &e);
    if (t) {
        tpl_write(&one, t);
        struct tpl *again = tpl_read(one.p, one.len, &e);
        must(again != NULL, "what was written can be read");
        tpl_write(&two, again);
        must(one.len == two.len && memcmp(one.p, two.p, one.len) == 0, "it stays the same");
        tpl_free(again);
    }
    tpl_free(t);
    buf_release(&one);
    buf_release(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    char *text = xstrndup((const char *)data + 1, size - 1);
    size_t len = strlen(text);
    struct err e = {0};
    if (data[0] == 'q') {
        list(text);
    } else if (data[0] == 't') {
        record(text, len);
    } else {
        struct cJSON *j = json_parse(text, len, &e);
        if (json_is_object(j) && data[0] == 'b')
            plan(j);
        else if (json_is_object(j))
            options(j, data[0] == '2');
        json_free(j);
    }
    free(text);
    return 0;
}
