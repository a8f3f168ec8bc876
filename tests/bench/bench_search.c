/* Search in a million messages: the time of a question, and what being found costs whoever
 * writes. ROWS = how many (1,000,000). */
#include "../lib/bench.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char section[] = "search";
enum { BATCH = 100, WORDS = 5000, ASKED = 200, PIECES = 10 };

static uint64_t seed = 88172645463325252u;

static uint32_t any(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed % n);
}

/* Some words are said often, most seldom, as people do. */
static void word(char *dst, size_t size)
{
    uint32_t n = any(4) ? any(WORDS / 50) : any(WORDS);

    snprintf(dst, size, "w%c%c%u", 'a' + n % 26, 'a' + n / 26 % 26, n);
}

static void message(struct buf *b, const char *kind)
{
    char w[24];

    buf_clear(b);
    buf_addf(b, "{\"kind\":\"%s\",\"text\":\"", kind);
    for (int i = 0; i < 12; i++) {
        word(w, sizeof(w));
        buf_addf(b, "%s%s", i ? " " : "", w);
    }
    buf_adds(b, "\",\"mode\":\"replace\",\"final\":true}");
}

/* Rows a second until they are committed. */
static double write_rows(struct storebox *b, uint64_t run, uint64_t at, int rows,
                         const char *kind)
{
    struct buf text = BUF_INIT;
    int64_t t = bench_now_us();

    for (int i = 0; i < rows; i += BATCH) {
        struct st_append a = {.run = run, .n_events = BATCH};

        a.events = xcalloc(BATCH, sizeof(*a.events));
        for (int k = 0; k < BATCH; k++) {
            message(&text, kind);
            a.events[k] = (struct st_event){at++, 0, xstrndup(text.p, text.len), text.len,
                                               NULL, false, 0};
        }
        store_append(b->s, &a, i + BATCH >= rows ? storebox_to(b) : (struct st_to){NULL, 0});
        if (store_busy(b->s)) {
            store_events(b->s, run, 0, 0, false, 1, storebox_to(b));
            msg_free(&storebox_wait(b)->m);
        }
    }
    struct st_reply *r = storebox_wait(b);
    if (r->err.code)
        die("%s", r->err.text);
    msg_free(&r->m);
    buf_release(&text);
    return rows / ((double)(bench_now_us() - t) / 1e6);
}

static double ask(struct storebox *b, const char *words, bool *whole)
{
    int64_t t = bench_now_us();

    store_search(b->s, words, 0, 50, 0, false, storebox_to(b));
    struct st_reply *r = storebox_wait(b);
    if (r->err.code)
        die("%s", r->err.text);
    if (whole)
        *whole = r->got;
    msg_free(&r->m);
    return (double)(bench_now_us() - t) / 1000;
}

static void ask_many(struct storebox *b)
{
    struct bench_set one = {0}, two = {0}, begin = {0};
    char w[24], v[24], q[64];

    for (int i = 0; i < ASKED; i++) {
        word(w, sizeof(w));
        word(v, sizeof(v));
        snprintf(q, sizeof(q), "%s ", w);
        bench_add(&one, ask(b, q, NULL));
        snprintf(q, sizeof(q), "%s %s ", w, v);
        bench_add(&two, ask(b, q, NULL));
        snprintf(q, sizeof(q), "%.2s", w);
        bench_add(&begin, ask(b, q, NULL));
    }
    bench_print(section, &(struct bench_row){"one word, median", "ms", NULL, &one,
                                             BENCH_VALUE_MAX, 10, true});
    bench_value(section, "one word, worst of 200", "ms", bench_max(&one), BENCH_VALUE_MAX, 30,
                true);
    bench_print(section, &(struct bench_row){"two words, median", "ms", NULL, &two,
                                             BENCH_VALUE_MAX, 10, true});
    bench_value(section, "two words, worst of 200", "ms", bench_max(&two), BENCH_VALUE_MAX, 30,
                true);
    bench_print(section, &(struct bench_row){"two letters of a word, median", "ms", NULL,
                                             &begin, BENCH_VALUE_MAX, 10, false});
    bench_value(section, "two letters, worst of 200", "ms", bench_max(&begin), BENCH_VALUE_MAX,
                30, false);
}

int main(void)
{
    const char *env = getenv("ROWS");
    int rows = env ? atoi(env) / BATCH * BATCH : 1000000;
    struct bench_set with = {0}, without = {0};
    struct storebox b;
    char *dir = storebox_dir();

    if (rows < BATCH * PIECES)
        die("ROWS is too small");
    storebox_start(&b, dir);
    uint64_t box = storebox_sandbox(&b, "bench");
    uint64_t found = storebox_run(&b, box, "found"), other = storebox_run(&b, box, "other");
    int64_t t = bench_now_us();
    write_rows(&b, found, 0, rows, "text");
    for (bool whole = false; !whole;)
        ask(&b, "nothing ", &whole);
    bench_value(section, "rows written and indexed", "/s",
                rows / ((double)(bench_now_us() - t) / 1e6), BENCH_INFO, 0, false);
    ask_many(&b);
    for (int i = 0; i < PIECES; i++) {
        uint64_t at = (uint64_t)rows + (uint64_t)i * 5000;

        bench_add(&without, write_rows(&b, other, at, 5000, "thinking"));
        bench_add(&with, write_rows(&b, found, at, 5000, "text"));
    }
    bench_print(section,
                &(struct bench_row){"rows a second, to be found, to those that are not", "/s",
                                    &without, &with, BENCH_RATIO_MIN, 0.3, true});
    storebox_stop(&b);
    tmpdir_remove(dir);
    free(dir);
    return 0;
}
