/* Speed of the cleaner and of the width functions: MB/s over generated inputs, best
 * of a few passes. The adversarial inputs must not be far slower than the rest. */
#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/buf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 8 << 20, CHUNK = 32 << 10, PASSES = 5 };

/* CPU time: other programs on the machine do not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t sink;

static void take(void *ctx, const char *text, size_t len, const struct text_run *runs,
                 size_t n_runs)
{
    (void)ctx, (void)text, (void)runs;
    sink += len + n_runs;
}

static void run_clean(const struct buf *b)
{
    struct clean *c = clean_new();
    for (size_t i = 0; i < b->len; i += CHUNK)
        clean_feed(c, b->p + i, b->len - i < CHUNK ? b->len - i : CHUNK, take, NULL);
    clean_flush(c, take, NULL);
    clean_free(c);
}

static void run_width(const struct buf *b)
{
    sink += text_width(b->p, b->len);
}

static void run_wrap(const struct buf *b)
{
    sink += text_wrap_rows(b->p, b->len, 80);
}

static void measure(const char *what, const char *unit, size_t n,
                    void (*fn)(const struct buf *b))
{
    struct buf b = BUF_INIT;
    while (b.len < SIZE)
        buf_add(&b, unit, n);
    double best = 1e9;
    for (int i = 0; i < PASSES; i++) {
        double t = now();
        fn(&b);
        t = now() - t;
        if (t < best)
            best = t;
        if (t > 1)
            break;
    }
    printf("%-34s %8.0f MB/s\n", what, (double)b.len / best / 1e6);
    buf_release(&b);
}
#define MEASURE(what, fn, unit) measure(what, unit, sizeof(unit) - 1, fn)

#define LOG80 \
    "2024-01-01T10:00:00Z info  request done path=/v1/items status=200 in 12 ms total\n"
#define COLOUR \
    "\033[32mok\033[0m  \033[1mtests/unit/test_text_clean.c\033[0m 12 passed in 0.3 s\r\n"
#define MIXED                                                                      \
    "Il a d\xc3\xa9j\xc3\xa0 fini \xe2\x80\x94 r\xc3\xa9sum\xc3\xa9: 14 fichiers " \
    "chang\xc3\xa9s, 3 ajout\xc3\xa9s\n"
#define CJK "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe6\x96\x87\xe7\xab\xa0\n"

int main(void)
{
    MEASURE("clean, log lines", run_clean, LOG80);
    MEASURE("clean, one long line", run_clean, "plain text without an end ");
    MEASURE("clean, colours and CR LF", run_clean, COLOUR);
    MEASURE("clean, mostly ASCII", run_clean, MIXED);
    MEASURE("clean, CJK", run_clean, CJK);
    MEASURE("clean, colour on each letter", run_clean, "\033[31mx\033[32my");
    MEASURE("clean, progress bar", run_clean, "\r[=====>    ] 50% of 12 MB");
    MEASURE("clean, CR over a long line", run_clean, "abcdefghijklmnop\033[Km\ry");
    MEASURE("clean, BS flood", run_clean, "xy\b\b\b");
    MEASURE("clean, marks flood", run_clean, "\xcc\x81");
    MEASURE("clean, unterminated strings", run_clean, "\033]0;");
    MEASURE("clean, invalid bytes", run_clean, "\xff\xc0");
    MEASURE("width, ASCII", run_width, "plain text without an end ");
    MEASURE("width, mostly ASCII", run_width,
            "Il a d\xc3\xa9j\xc3\xa0 fini \xe2\x80\x94 14 fichiers chang\xc3\xa9s ");
    MEASURE("width, CJK", run_width, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e");
    MEASURE("wrap, ASCII", run_wrap, "plain text without an end ");
    MEASURE("wrap, CJK", run_wrap, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e");
    MEASURE("wrap, marks only", run_wrap, "\xcc\x81");
    return sink == 0;
}
