/* The cleaner on any bytes: what comes out is pure, any slicing gives the same, the
 * short forms stay within their width, and wrapping goes on to the end. */
#include "../lib/hostile.h"
#include "../lib/sliced.h"

#include <cct/text/clean.h>
#include <cct/text/width.h>
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

static void check_slicing(const char *s, size_t len)
{
    static const size_t steps[] = {1, 3, 7};
    struct buf text = BUF_INIT, runs = BUF_INIT;
    size_t at;
    sliced_clean(s, len, 0, &text, &runs);
    must(!hostile_impure(buf_str(&text), text.len, true, &at), "pure lines");
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        struct buf t = BUF_INIT, r = BUF_INIT;
        sliced_clean(s, len, steps[i], &t, &r);
        must(t.len == text.len && strcmp(buf_str(&t), buf_str(&text)) == 0, "same text");
        must(strcmp(buf_str(&r), buf_str(&runs)) == 0, "same runs");
        buf_release(&t);
        buf_release(&r);
    }
    buf_release(&text);
    buf_release(&runs);
}

static void check_wrap(const char *s, size_t len, size_t cells)
{
    size_t rows = 0;
    for (size_t at = 0, next; at < len; at = next, rows++) {
        size_t end = text_wrap(s, len, at, cells, &next);
        int w;
        must(end > at && next >= end && next <= len, "wrapping goes on");
        must(text_width(s + at, end - at) <= cells ||
                 end - at == text_cluster(s + at, len - at, &w),
             "a row fits");
    }
    must(text_wrap_rows(s, len, cells) == (rows ? rows : 1), "count of rows");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *s = (const char *)data;
    size_t at;
    struct buf text = BUF_INIT, line = BUF_INIT, cut = BUF_INIT, again = BUF_INIT;
    struct text_runs runs = {NULL, 0, 0};
    check_slicing(s, size);
    clean_text(s, size, &text, &runs);
    must(!hostile_impure(buf_str(&text), text.len, true, &at), "pure text");
    for (size_t i = 0; i < runs.n; i++)
        must(runs.v[i].at < text.len && (!i || runs.v[i].at > runs.v[i - 1].at),
             "runs in order");
    clean_text(buf_str(&text), text.len, &again, NULL);
    must(again.len == text.len && strcmp(buf_str(&again), buf_str(&text)) == 0,
         "cleaning twice changes nothing");
    clean_line(s, size, &line, 0);
    must(!hostile_impure(buf_str(&line), line.len, false, &at), "pure line");
    clean_line(s, size, &cut, 17);
    must(!hostile_impure(buf_str(&cut), cut.len, false, &at), "pure cut line");
    must(text_width(buf_str(&cut), cut.len) <= 17, "width of a cut line");
    check_wrap(buf_str(&line), line.len, 1 + size % 9);
    buf_release(&text);
    buf_release(&line);
    buf_release(&cut);
    buf_release(&again);
    text_runs_release(&runs);
    return 0;
}
