/* Listing: query decoding, filters, order, cursors that survive changes between
 * two pages; names of templates. */
#include <cct/local/ctl.h>
#include <cct/local/provider.h>
#include <cct/util/json.h>
#include <cct/util/xalloc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N 250
static struct sbox_rec recs[N];

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++) {
        struct sbox_rec *r = &recs[i];
        snprintf(r->id, sizeof(r->id), "i%020d", (i * 7919) % N);
        snprintf(r->alias, sizeof(r->alias), "%s", i % 5 ? "base" : "demo");
        snprintf(r->template_id, sizeof(r->template_id), "tpl%d", i % 5 == 0);
        r->started_ms = 1700000000000 + i / 3 * 1000; /* threes share a time */
        r->state = i % 4 == 0 ? SBOX_PAUSED : SBOX_RUNNING;
        char meta[64];
        snprintf(meta, sizeof(meta), "{\"n\":\"%d\",\"k y\":\"a&b=c\"}", i % 10);
        r->metadata = json_parse(meta, strlen(meta), NULL);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++)
        sbox_rec_clear(&recs[i]);
    return 0;
}

/* One page; `skip`: this record is gone meanwhile. */
static size_t page(const char *query, const struct sbox_rec **out, size_t *running, char **next,
                   int skip)
{
    struct ctl_list q;
    struct err e = {0};
    assert_int_equal(ctl_list_parse(&q, query, &e), 0);
    size_t n = 0;
    for (int i = 0; i < N; i++)
        if (i != skip)
            out[n++] = &recs[i];
    n = ctl_list_select(&q, out, n, running, next);
    ctl_list_release(&q);
    return n;
}

static size_t walk(const char *base, const char *order, int limit)
{
    const struct sbox_rec *out[N];
    bool seen[N] = {false};
    size_t total = 0, running;
    char *next = NULL;
    int64_t last = -1;
    do {
        char *query = xasprintf("%s&order=%s&limit=%d%s%s", base, order, limit,
                                next ? "&nextToken=" : "", next ? next : "");
        free(next);
        size_t n = page(query, out, &running, &next, -1);
        free(query);
        assert_true(n <= (size_t)limit);
        for (size_t i = 0; i < n; i++) {
            size_t at = (size_t)(out[i] - recs);
            assert_false(seen[at]);
            seen[at] = true;
            if (last >= 0)
                assert_true(*order == 'a' ? out[i]->started_ms >= last
                                          : out[i]->started_ms <= last);
            last = out[i]->started_ms;
        }
        total += n;
        assert_true(n == (size_t)limit || !next);
    } while (next);
    return total;
}

static void test_paging(void **state)
{
    (void)state;
    static const int limits[] = {1, 2, 7, 50, 100};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(walk("state=running,paused", "desc", limits[i]), N);
        assert_int_equal(walk("state=running,paused", "asc", limits[i]), N);
        assert_int_equal(walk("state=paused", "asc", limits[i]), (N + 3) / 4);
    }
}

/* The cursor names a place, not a position: losing its item skips nobody. */
static void test_cursor_is_stable(void **state)
{
    (void)state;
    const struct sbox_rec *out[N], *rest[N];
    size_t running;
    char *next, *unused;
    assert_int_equal(page("limit=50", out, &running, &next, -1), 50);
    int gone = (int)(out[49] - recs);
    char *query = xasprintf("nextToken=%s", next);
    size_t n = page(query, rest, &running, &unused, gone);
    assert_int_equal(n, 100);
    free(unused);
    free(query);
    query = xasprintf("order=asc&nextToken=%s", next); /* of the other order */
    struct ctl_list q;
    struct err e = {0};
    assert_true(ctl_list_parse(&q, query, &e) < 0);
    ctl_list_release(&q);
    free(query);
    free(next);
}

static void test_filters(void **state)
{
    (void)state;
    const struct sbox_rec *out[N];
    size_t running;
    char *next;
    size_t n = page("limit=100&metadata=n%3D3", out, &running, &next, -1);
    assert_int_equal(n, N / 10);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(json_str(out[i]->metadata, "n", ""), "3");
    free(next);
    n = page("metadata=k%252520y%3Da%252526b%25253Dc%26n%3D0", out, &running, &next, -1);
    assert_int_equal(n, N / 10);
    free(next);
    assert_int_equal(page("metadata=n%3D3%26n%3D4", out, &running, &next, -1), 0);
    assert_int_equal(page("metadata=none%3D1", out, &running, &next, -1), 0);
    n = page("template=demo", out, &running, &next, -1);
    assert_int_equal(n, N / 5);
    free(next);
    n = page("template=tpl1&state=running&limit=1", out, &running, &next, -1);
    assert_int_equal(n, 1);
    assert_non_null(next);
    size_t want = 0;
    for (int i = 0; i < N; i++)
        want += i % 5 == 0 && i % 4 != 0;
    assert_int_equal(running, want); /* before paging */
    free(next);
    n = page("startedAfter=2023-11-14T22:14:20Z&limit=100", out, &running, &next, -1);
    assert_int_equal(n, N - 60 * 3); /* one minute later, inclusive */
    free(next);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "limit=0",
        "limit=101",
        "limit=x",
        "limit=",
        "limit=-1",
        "limit=1.5",
        "state=dead",
        "state=",
        "state=running,",
        "order=up",
        "startedAfter=yesterday",
        "nextToken=!!!",
        "nextToken=AAAA",
        "nextToken=MjAyMw",
        "metadata=x",
        "metadata=a%3Db%26c",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct ctl_list q;
        struct err e = {0};
        if (ctl_list_parse(&q, bad[i], &e) != ERR_INVALID)
            fail_msg("'%s' was taken", bad[i]);
        assert_true(e.text[0] != '\0');
        ctl_list_release(&q);
    }
}

static void test_query(void **state)
{
    (void)state;
    static const char query[] = "a=1&ab=2&b=x%20y+z&c=%zz%4&d=&e=%00&a=3";
    static const char *const want[][2] = {{"a", "1"}, {"ab", "2"},    {"b", "x y z"},
                                          {"d", ""},  {"c", "%zz%4"}, {"e", "%00"}};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        char *v = ctl_query_get(query, want[i][0]);
        if (*want[i][1] || v)
            assert_string_equal(v, want[i][1]);
        free(v);
    }
    assert_null(ctl_query_get(query, "none"));
    assert_null(ctl_query_get("", "a"));
}

static void test_templates(void **state)
{
    (void)state;
    size_t n;
    const struct ctl_template *all = ctl_template_all(&n);
    assert_int_equal(n, 7);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(strlen(all[i].id), 20);
        assert_true(sbox_id_ok(all[i].id));
    }
}

/* --- what a create may ask for ---------------------------------------------- */

static int options(const char *json, bool v2, struct sbox_new *n, struct cJSON **body,
                   struct err *e)
{
    *body = json_parse(json, strlen(json), NULL);
    assert_non_null(*body);
    *n = (struct sbox_new){0};
    *e = (struct err){0};
    return ctl_options_parse(*body, v2, n, e);
}

static void test_options_defaults(void **state)
{
    (void)state;
    struct sbox_new n;
    struct cJSON *body;
    struct err e;
    assert_int_equal(options("{\"unknown\":1,\"metadata\":null}", false, &n, &body, &e), 0);
    assert_int_equal(n.timeout_s, 15);
    assert_true(n.internet && !n.internet_asked && !n.auto_pause && !n.auto_pause_cold);
    assert_null(n.metadata);
    json_free(body);
    assert_int_equal(
        options("{\"autoPause\":true,\"autoResume\":{\"enabled\":true}}", true, &n, &body, &e),
        0);
    assert_int_equal(n.timeout_s, 300);
    assert_true(n.auto_pause && n.auto_resume);
    json_free(body);
    assert_int_equal(ctl_options_parse(NULL, true, &n, &e), 0);
}

static void test_options_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int code;
        const char *word;
    } bad[] = {
        {"{\"timeout\":0}", ERR_INVALID, "timeout"},
        {"{\"timeout\":-1}", ERR_INVALID, "timeout"},
        {"{\"timeout\":86401}", ERR_INVALID, "timeout"},
        {"{\"timeout\":\"5\"}", ERR_INVALID, "timeout"},
        {"{\"timeout\":1.5}", ERR_INVALID, "timeout"},
        {"{\"metadata\":[]}", ERR_INVALID, "metadata"},
        {"{\"metadata\":{\"a\":1}}", ERR_INVALID, "metadata"},
        {"{\"envVars\":{\"\":\"x\"}}", ERR_INVALID, "envVars"},
        {"{\"envVars\":{\"a=b\":\"x\"}}", ERR_INVALID, "envVars"},
        {"{\"autoPause\":1}", ERR_INVALID, "autoPause"},
        {"{\"autoPauseMemory\":false}", ERR_INVALID, "autoPauseMemory"},
        {"{\"autoPause\":true,\"autoPauseMemory\":false,\"autoResume\":{\"enabled\":true}}",
         ERR_INVALID, "autoResume"},
        {"{\"autoResume\":{}}", ERR_INVALID, "autoResume.enabled"},
        {"{\"secure\":\"yes\"}", ERR_INVALID, "secure"},
        {"{\"network\":{\"allowPublicTraffic\":false}}", ERR_INVALID, "secure"},
        {"{\"network\":{\"denyOut\":\"x\"}}", ERR_INVALID, "network.denyOut"},
        {"{\"network\":{\"denyOut\":[\"example.com\"]}}", ERR_INVALID, "denyOut"},
        {"{\"network\":{\"denyOut\":[\"1.2.3.4/x\"]}}", ERR_INVALID, "denyOut"},
        {"{\"network\":{\"allowOut\":[\"example.com\"]}}", ERR_INVALID, "allowOut"},
        {"{\"network\":{\"denyOut\":[\"8.8.8.8\"]}}", ERR_UNSUPPORTED, "denyOut"},
        {"{\"network\":{\"allowOut\":[\"8.8.8.8\"],\"denyOut\":[\"0.0.0.0/0\"]}}",
         ERR_UNSUPPORTED, "allowOut"},
        {"{\"allow_internet_access\":false,\"network\":{\"allowOut\":[\"a.b\"]}}",
         ERR_UNSUPPORTED, "allowOut"},
        {"{\"network\":{\"egressProxy\":{\"address\":\"x\"}}}", ERR_UNSUPPORTED, "egressProxy"},
        {"{\"network\":{\"rules\":{\"x\":[]}}}", ERR_UNSUPPORTED, "rules"},
        {"{\"network\":{\"httpsPorts\":[443]}}", ERR_UNSUPPORTED, "httpsPorts"},
        {"{\"mcp\":{\"x\":{}}}", ERR_UNSUPPORTED, "mcp"},
        {"{\"iam\":{\"x\":{}}}", ERR_UNSUPPORTED, "iam"},
        {"{\"volumeMounts\":[{\"name\":\"a\",\"path\":\"/x\"}]}", ERR_UNSUPPORTED, "volume"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sbox_new n;
        struct cJSON *body;
        struct err e;
        int rc = options(bad[i].json, false, &n, &body, &e);
        if (rc != bad[i].code || !strstr(e.text, bad[i].word))
            fail_msg("%s: %d %s", bad[i].json, rc, e.text);
        json_free(body);
    }
}

static void test_options_network(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        bool internet;
    } good[] = {
        {"{\"allow_internet_access\":false}", false},
        {"{\"allow_internet_access\":true}", true},
        {"{\"network\":{}}", true},
        {"{\"network\":{\"denyOut\":[]}}", true},
        {"{\"network\":{\"denyOut\":[\"0.0.0.0/0\"]}}", false},
        {"{\"network\":{\"denyOut\":[\"0.0.0.0/0\",\"8.8.8.8\"]}}", false},
        {"{\"network\":{\"allowOut\":[\"8.8.8.8\",\"2001:db8::/32\"]}}", true},
        {"{\"network\":{\"allowOut\":[\"0.0.0.0/0\"],\"denyOut\":[\"0.0.0.0/0\"]}}", true},
        {"{\"secure\":true,\"network\":{\"allowPublicTraffic\":false}}", true},
        {"{\"mcp\":{},\"volumeMounts\":[],\"network\":{\"rules\":{},\"egressProxy\":null}}",
         true},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct sbox_new n;
        struct cJSON *body;
        struct err e;
        if (options(good[i].json, false, &n, &body, &e) != 0 || n.internet != good[i].internet)
            fail_msg("%s: %d %s", good[i].json, n.internet, e.text);
        json_free(body);
    }
}

/* --- samples ------------------------------------------------------------------ */

static struct cJSON *thin(const char *rows, int64_t step)
{
    struct buf b = BUF_INIT;
    struct jw w;
    struct cJSON *samples = json_parse(rows, strlen(rows), NULL);
    assert_non_null(samples);
    jw_init(&w, &b);
    jw_arr(&w, NULL);
    ctl_metrics_thin(&w, samples, step);
    jw_end(&w);
    struct cJSON *out = json_parse(buf_str(&b), b.len, NULL);
    assert_non_null(out);
    json_free(samples);
    buf_release(&b);
    return out;
}

static void test_thin(void **state)
{
    (void)state;
    static const char rows[] = "[[100,10,2,1000,9000,50,7,70],[105,20,2,3000,9000,50,7,70],[1],"
                               "\"x\",[119,60,2,5000,9000,50,7,70],[120,1,2,1,9000,50,8,70]]";
    struct cJSON *j = thin(rows, 5);
    size_t n = 0;
    for (const struct cJSON *c = json_first(j); c; c = json_next(c))
        n++;
    assert_int_equal(n, 4); /* as they were taken; what is no sample is left out */
    json_free(j);
    j = thin("[[100,10,2,1000,9000,50,7,70],[105,20,2,3000,9000,50,7,70],"
             "[119,60,2,5000,9000,50,7,70],[120,1,2,1,9000,50,8,70]]",
             30);
    const struct cJSON *first = json_first(j), *second = json_next(first);
    assert_int_equal(json_i64(first, "timestampUnix", 0), 119);
    assert_int_equal(json_i64(first, "memUsed", 0), 3000);
    assert_true(json_num(first, "cpuUsedPct", 0) == 30);
    assert_int_equal(json_i64(second, "timestampUnix", 0), 120);
    assert_null(json_next(second));
    json_free(j);
    j = thin("[]", 30);
    assert_null(json_first(j));
    json_free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paging),
        cmocka_unit_test(test_cursor_is_stable),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_options_defaults),
        cmocka_unit_test(test_options_refused),
        cmocka_unit_test(test_options_network),
        cmocka_unit_test(test_thin),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
