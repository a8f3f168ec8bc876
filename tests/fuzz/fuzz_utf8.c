/* The UTF-8 decoder on any bytes: goes on, stays inside, agrees with its encoder,
 * and the same bytes are judged the same when more follow. */
#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/utf8.h>
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

static size_t check_one(const char *s, size_t len)
{
    uint32_t cp = 0, longer = 0;
    char back[4], more[8];
    size_t n = utf8_decode(s, len, &cp);
    must(n <= len && n <= 4, "stays inside");
    if (n == 0) {
        /* may still become valid: some next byte must not make it bad at once */
        must(len < 4, "a cut character is short");
        bool open = false;
        for (int b = 0x80; b < 0xC0 && !open; b++) {
            memcpy(more, s, len);
            more[len] = (char)b;
            n = utf8_decode(more, len + 1, &longer);
            open = n == 0 || longer != UTF8_BAD;
        }
        must(open, "a cut character can be completed");
        return 0;
    }
    must(utf8_decode(s, n, &longer) == n || cp == UTF8_BAD, "no need of more");
    if (cp == UTF8_BAD) {
        must(n == 1, "a bad byte is one byte");
        return n;
    }
    must(cp <= 0x10FFFF && (cp < 0xD800 || cp > 0xDFFF), "a scalar value");
    must(utf8_encode(back, cp) == n && memcmp(back, s, n) == 0, "encodes back");
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *s = (const char *)data;
    size_t at = 0, n;
    int w;
    while (at < size && (n = check_one(s + at, size - at)) > 0)
        at += n;
    must(size - at < 4, "only a cut character is left");
    /* the width functions take anything */
    size_t cells = 0, used;
    for (at = 0; at < size; at += n) {
        n = text_cluster(s + at, size - at, &w);
        must(n > 0 && n <= size - at && w >= 0 && w <= 2, "a cluster");
        must(text_cluster_before(s, at + n) > 0, "a cluster before");
        cells += (size_t)w;
    }
    must(text_width(s, size) == cells, "width is the sum of clusters");
    must(text_fit(s, size, cells, &used) == size && used == cells, "everything fits");
    struct buf ascii = BUF_INIT;
    clean_ascii(s, size, &ascii);
    for (size_t i = 0; i < ascii.len; i++)
        must(ascii.p[i] >= ' ' && ascii.p[i] <= '~', "ASCII only");
    buf_release(&ascii);
    return 0;
}
