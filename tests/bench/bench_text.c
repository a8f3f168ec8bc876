/* Speed of the cleaner and of the width functions: MB/s of CPU time over generated inputs.
 * The adversarial ones must not be far slower than the rest. The floor of the width is
 * the C library's own way, mbrtowc() and wcwidth() for each character. */
#include "../lib/bench.h"

#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/buf.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

enum { SIZE = 8 << 20, CHUNK = 32 << 10, PASSES = 5, MAX_PASS_S = 1 };

static const char section[] = "text";

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

static void run_libc(const struct buf *b)
{
    mbstate_t st = {0};
    wchar_t c;
    for (size_t i = 0, n; i < b->len; i += n ? n : 1) {
        n = mbrtowc(&c, b->p + i, b->len - i, &st);
        if (n > b->len)
            break;
        sink += (size_t)wcwidth(c);
    }
}

static void pass(const struct buf *b, void (*fn)(const struct buf *b), struct bench_set *out)
{
    double t = now();
    fn(b);
    bench_add(out, (double)b->len / (now() - t) / 1e6);
}

/* floor NULL: the speed must be `bar` MB/s, else `bar` times the floor's. */
static void measure(const char *what, const char *unit, size_t n,
                    void (*fn)(const struct buf *b), void (*floor_fn)(const struct buf *b),
                    double bar)
{
    struct buf b = BUF_INIT;
    struct bench_set floor = {0}, ours = {0};
    while (b.len < SIZE)
        buf_add(&b, unit, n);
    for (int i = 0; i < PASSES; i++) {
        double t = now();
        if (floor_fn)
            pass(&b, floor_fn, &floor);
        pass(&b, fn, &ours);
        if (now() - t > MAX_PASS_S)
            break;
    }
    bench_print(section, &(struct bench_row){what, "MB/s", floor_fn ? &floor : NULL, &ours,
                                             floor_fn ? BENCH_RATIO_MIN : BENCH_VALUE_MIN, bar,
                                             false});
    buf_release(&b);
}
#define CLEAN(what, unit, bar) measure(what, unit, sizeof(unit) - 1, run_clean, NULL, bar)
#define WIDTH(what, unit, bar) measure(what, unit, sizeof(unit) - 1, run_width, run_libc, bar)
#define WRAP(what, unit, bar) measure(what, unit, sizeof(unit) - 1, run_wrap, run_libc, bar)

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
    setlocale(LC_ALL, "C.UTF-8");
    CLEAN("clean, log lines", LOG80, 20);
    CLEAN("clean, one long line", "plain text without an end ", 20);
    CLEAN("clean, colours and CR LF", COLOUR, 20);
    CLEAN("clean, mostly ASCII", MIXED, 20);
    CLEAN("clean, CJK", CJK, 20);
    CLEAN("clean, colour on each letter", "\033[31mx\033[32my", 20);
    CLEAN("clean, progress bar", "\r[=====>    ] 50% of 12 MB", 20);
    CLEAN("clean, CR over a long line", "abcdefghijklmnop\033[Km\ry", 20);
    CLEAN("clean, BS flood", "xy\b\b\b", 20);
    CLEAN("clean, marks flood", "\xcc\x81", 20);
    CLEAN("clean, unterminated strings", "\033]0;", 20);
    CLEAN("clean, invalid bytes", "\xff\xc0", 20);
    WIDTH("width, ASCII", "plain text without an end ", 2);
    WIDTH("width, mostly ASCII", "Il a d\xc3\xa9j\xc3\xa0 fini \xe2\x80\x94 14 fichiers chang\xc3\xa9s ", 2);
    WIDTH("width, CJK", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 2);
    WRAP("wrap, ASCII", "plain text without an end ", 1);
    WRAP("wrap, CJK", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 1);
    WRAP("wrap, marks only", "\xcc\x81", 1);
    return sink == 0;
}
