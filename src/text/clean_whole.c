/* Whole-text forms of the cleaner. */
#include "clean_priv.h"

#include "cellline.h"
#include "scan.h"
#include <cct/text/width.h>
#include <cct/util/arr.h>
#include <cct/util/limits.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

struct collect {
    struct buf *out;
    struct text_runs *runs;
    size_t base; /* out->len when the text began */
    bool first;
};

void text_runs_release(struct text_runs *r)
{
    free(r->v);
    memset(r, 0, sizeof(*r));
}

static void add_run(struct text_runs *r, size_t at, const struct text_attr *a)
{
    struct text_attr last = r->n ? r->v[r->n - 1].attr : ATTR_DEFAULT;
    if (cellline_attr_same(&last, a))
        return;
    if (r->n == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 16;
        r->v = xrealloc(r->v, r->cap * sizeof(*r->v));
    }
    r->v[r->n].at = (uint32_t)at;
    r->v[r->n++].attr = *a;
}

static void collect_line(void *ctx, const char *text, size_t len, const struct text_run *runs,
                         size_t n_runs)
{
    struct collect *c = ctx;
    if (!c->first)
        (void)buf_addc(c->out, '\n'); /* a full buffer says so itself: out->over */
    c->first = false;
    size_t at = c->out->len;
    if (buf_add(c->out, text, len) != 0 || !c->runs)
        return;
    if (len > 0 && (n_runs == 0 || runs[0].at > 0))
        add_run(c->runs, at, &ATTR_DEFAULT);
    for (size_t i = 0; i < n_runs; i++)
        add_run(c->runs, at + runs[i].at, &runs[i].attr);
}

/* Most texts are printable ASCII, which the cleaner would hand out as it came. */
static bool is_clean(const char *s, size_t len, bool lines)
{
    for (size_t i = 0; i < len; i++) {
        i += scan_plain(s + i, len - i);
        if (i < len && !(lines && s[i] == '\n'))
            return false;
    }
    return len <= LIM_LINE_BYTES;
}

static bool fits(const struct buf *out, size_t len)
{
    return !out->max || (out->len <= out->max && len <= out->max - out->len);
}

void clean_text(const char *s, size_t len, struct buf *out, struct text_runs *runs)
{
    if ((!runs || !runs->n) && fits(out, len) && is_clean(s, len, true)) {
        (void)buf_add(out, s, len);
        return;
    }
    struct collect ctx = {out, runs, out->len, true};
    struct clean *c = clean_new();
    clean_feed(c, s, len, collect_line, &ctx);
    if (len > 0 && s[len - 1] == '\n')
        (void)buf_addc(out, '\n');
    else
        clean_flush(c, collect_line, &ctx);
    clean_free(c);
}

struct lines {
    ARR(char *) v;
};

static void take_line(void *ctx, const char *text, size_t len, const struct text_run *runs,
                      size_t n_runs)
{
    struct lines *l = ctx;
    (void)runs, (void)n_runs;
    *ARR_PUSH(&l->v) = xstrndup(text, len);
}

char **clean_lines(const char *s, size_t len, size_t *n)
{
    struct lines l = {ARR_INIT};
    struct clean *c = clean_new();
    clean_feed(c, s, len, take_line, &l);
    clean_flush(c, take_line, &l);
    clean_free(c);
    *n = l.v.n;
    *ARR_PUSH(&l.v) = NULL;
    return l.v.v;
}

static void no_line(void *ctx, const char *text, size_t len, const struct text_run *runs,
                    size_t n_runs)
{
    (void)ctx, (void)text, (void)len, (void)runs, (void)n_runs;
    BUG("a line came out of the one-line cleaner");
}

struct one_line {
    struct buf *out;
    unsigned max_cells;
};

static void take_one_line(void *ctx, const char *text, size_t len, const struct text_run *runs,
                          size_t n_runs)
{
    struct one_line *o = ctx;
    (void)runs, (void)n_runs;
    size_t used;
    if (o->max_cells == 0 || text_fit(text, len, o->max_cells, &used) == len) {
        (void)buf_add(o->out, text, len);
        return;
    }
    unsigned dots = o->max_cells < 3 ? o->max_cells : 3;
    (void)buf_add(o->out, text, text_fit(text, len, o->max_cells - dots, &used));
    (void)buf_add(o->out, "...", dots);
}

void clean_line(const char *s, size_t len, struct buf *out, unsigned max_cells)
{
    enum { STEP = 4096 };
    struct one_line ctx = {out, max_cells};
    struct clean *c;
    while (len > 0 && (s[len - 1] == '\n' || s[len - 1] == '\r'))
        len--;
    if ((max_cells == 0 || len <= max_cells) && is_clean(s, len, false)) {
        (void)buf_add(out, s, len);
        return;
    }
    c = clean_new_one_line();
    /* no more than a row of a huge text is looked at */
    while (len > 0 && (max_cells == 0 || clean_columns(c) <= max_cells)) {
        size_t n = len < STEP || max_cells == 0 ? len : STEP;
        clean_feed(c, s, n, no_line, NULL);
        s += n;
        len -= n;
    }
    clean_flush(c, take_one_line, &ctx);
    clean_free(c);
}

char *clean_line_dup(const char *s, unsigned max_cells)
{
    struct buf b = BUF_INIT;
    if (s)
        clean_line(s, strlen(s), &b, max_cells);
    return buf_detach(&b, NULL);
}

char *clean_text_dup(const char *s, size_t len)
{
    struct buf b = BUF_INIT;
    clean_text(s, len, &b, NULL);
    return buf_detach(&b, NULL);
}

void clean_ascii(const char *s, size_t len, struct buf *out)
{
    while (len > 0) {
        uint32_t cp;
        size_t n = utf8_decode(s, len, &cp);
        if (n == 0) { /* cut at the end: each byte by itself */
            n = 1;
            cp = UTF8_BAD;
        }
        if (cp == UTF8_BAD)
            (void)buf_addf(out, "<%02X>", (unsigned)(unsigned char)*s);
        else if (cp < 0x20 || cp > 0x7E)
            (void)buf_addf(out, "<U+%04X>", (unsigned)cp);
        else
            (void)buf_addc(out, *s);
        s += n;
        len -= n;
    }
}
