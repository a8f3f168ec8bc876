/* The streaming multipart reader on any bytes: any slicing gives the same parts, the
 * same bytes and the same verdict, and data never holds the delimiter. The first line
 * of the input is the boundary. */
#include <cct/local/multipart.h>
#include <cct/util/buf.h>
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

struct reading {
    struct buf text, part;
    bool inside;
    int refuse_at, calls;
    const char *delim;
};

static bool go_on(struct reading *r)
{
    return r->refuse_at == 0 || ++r->calls < r->refuse_at;
}

static bool on_begin(void *arg, const struct files_part *p)
{
    struct reading *r = arg;
    must(!r->inside, "one part at a time");
    r->inside = true;
    buf_clear(&r->part);
    buf_addf(&r->text, "<%s|%s|%d:", p->name, p->filename, p->cut);
    return go_on(r);
}

static bool on_data(void *arg, const char *p, size_t len)
{
    struct reading *r = arg;
    must(r->inside && len > 0, "data belongs to a part");
    buf_add(&r->part, p, len);
    buf_add(&r->text, p, len);
    return true;
}

static bool on_end(void *arg)
{
    struct reading *r = arg;
    size_t n = strlen(r->delim);
    must(r->inside, "an end after a begin");
    for (size_t i = 0; i + n <= r->part.len; i++)
        must(memcmp(r->part.p + i, r->delim, n) != 0, "no delimiter in a part");
    r->inside = false;
    buf_addc(&r->text, '>');
    return go_on(r);
}

static const struct multipart_ops ops = {on_begin, on_data, on_end};

/* 0 stopped, 1 not to its end, 2 whole. */
static int read_form(const char *boundary, const char *p, size_t len, size_t step,
                     struct reading *r)
{
    struct multipart *m = multipart_new(boundary, &ops, r);
    bool ok = true;
    for (size_t at = 0; at < len; at += step) {
        bool now = multipart_feed(m, p + at, len - at < step ? len - at : step);
        must(ok || !now, "stopped is stopped");
        ok = now;
    }
    int verdict = !ok ? 0 : multipart_is_whole(m) ? 2 : 1;
    multipart_free(m);
    return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char boundary[71] = "b", delim[80];
    const uint8_t *nl = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t n = nl ? (size_t)(nl - data) : 0, out = 0;
    for (size_t i = 0; i < n && out < 70; i++)
        if (data[i] >= 0x20 && data[i] < 0x7f)
            boundary[out++] = (char)data[i];
    if (out > 0)
        boundary[out] = '\0';
    snprintf(delim, sizeof(delim), "\r\n--%s", boundary);
    size_t from = nl ? n + 1 : 0, len = size - from;
    char *p = malloc(len + 1);
    memcpy(p, data + from, len);
    for (int refuse_at = 0; refuse_at < 3; refuse_at++) {
        static const size_t steps[] = {1, 2, 7, 64};
        struct reading whole = {.delim = delim, .refuse_at = refuse_at};
        int verdict = read_form(boundary, p, len, len + 1, &whole);
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
            struct reading cut = {.delim = delim, .refuse_at = refuse_at};
            must(read_form(boundary, p, len, steps[i], &cut) == verdict, "same verdict");
            must(cut.text.len == whole.text.len &&
                     memcmp(buf_str(&cut.text), buf_str(&whole.text), cut.text.len) == 0,
                 "same reading");
            buf_release(&cut.text);
            buf_release(&cut.part);
        }
        buf_release(&whole.text);
        buf_release(&whole.part);
    }
    free(p);
    return 0;
}
