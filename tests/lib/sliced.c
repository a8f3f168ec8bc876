/* See sliced.h. */
#include "sliced.h"

#include <cct/text/clean.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sink {
    struct buf *text, *runs;
    unsigned line;
};

static void take_line(void *ctx, const char *text, size_t len, const struct text_run *runs,
                      size_t n_runs)
{
    struct sink *k = ctx;
    buf_add(k->text, text, len);
    buf_addc(k->text, '\n');
    for (size_t i = 0; i < n_runs; i++) {
        if (runs[i].at > len || (i > 0 && runs[i].at <= runs[i - 1].at)) {
            fprintf(stderr, "run %zu at %u is out of order or range\n", i, runs[i].at);
            abort();
        }
        buf_addf(k->runs, "%u:%u fg=%x bg=%x f=%x\n", k->line, runs[i].at, runs[i].attr.fg,
                 runs[i].attr.bg, runs[i].attr.flags);
    }
    k->line++;
}

static void check_pending(const struct buf *text, const char *was, size_t was_len,
                          size_t before)
{
    if (text->len == before) {
        if (was_len > 0)
            abort();
    } else if (text->len - before < was_len + 1 ||
               (was_len && memcmp(text->p + before, was, was_len) != 0)) {
        fprintf(stderr, "the pending line changed at the end of input\n");
        abort();
    }
}

void sliced_clean(const char *s, size_t len, size_t step, struct buf *text, struct buf *runs)
{
    struct sink k = {text, runs, 0};
    struct clean *c = clean_new();
    if (step == 0)
        step = len;
    for (size_t i = 0; i < len; i += step)
        clean_feed(c, s + i, len - i < step ? len - i : step, take_line, &k);
    const struct text_run *pr;
    size_t n, nr;
    const char *p = clean_pending(c, &n, &pr, &nr);
    char *was = malloc(n + 1);
    if (!was)
        abort();
    memcpy(was, p, n);
    size_t before = text->len;
    clean_flush(c, take_line, &k);
    bool cut_char = len > 0 && (unsigned char)s[len - 1] >= 0x80;
    if (!cut_char)
        check_pending(text, was, n, before);
    free(was);
    clean_free(c);
}
