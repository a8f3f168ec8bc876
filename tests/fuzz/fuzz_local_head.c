/* The provider's head parser and chunk scanner on any bytes: slices stay inside,
 * a prefix never says more than the whole, and any slicing of a chunked body
 * gives the same verdict and the same bytes. */
#include <cct/local/http_head.h>
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

static void inside(const struct http_slice *s, const char *p, size_t len)
{
    must(s->p >= p && s->p + s->len <= p + len, "slices stay inside");
    for (size_t i = 0; i < s->len; i++)
        must(s->p[i] != '\r' && s->p[i] != '\n' && s->p[i] != '\0', "no line ends in slices");
}

static void check_head(const char *p, size_t len)
{
    static struct http_head h, prefix;
    long n = http_head_parse(&h, p, len);
    if (n < 0) {
        must(h.status >= 400 && h.why != NULL, "a refusal says why");
        return;
    }
    if (n == 0)
        return;
    must((size_t)n <= len && memcmp(p + n - 4, "\r\n\r\n", 4) == 0,
         "ends after the blank line");
    inside(&h.method, p, (size_t)n);
    inside(&h.target, p, (size_t)n);
    must(h.host.len > 0 && h.target.p[0] == '/', "host and target are there");
    for (size_t i = 0; i < h.n_fields; i++) {
        inside(&h.fields[i].name, p, (size_t)n);
        inside(&h.fields[i].value, p, (size_t)n);
    }
    must(!(h.chunked && h.content_length >= 0), "one kind of framing");
    for (long cut = 0; cut < n; cut += 1 + n / 64)
        must(http_head_parse(&prefix, p, (size_t)cut) == 0, "a prefix is not whole");
    http_head_guard(&h, 4711);
}

struct sum {
    uint64_t hash;
    size_t len;
};

static bool add(void *arg, const char *p, size_t len)
{
    struct sum *s = arg;
    for (size_t i = 0; i < len; i++)
        s->hash = s->hash * 1099511628211u + (unsigned char)p[i];
    s->len += len;
    return true;
}

static int scan(const char *p, size_t len, size_t step, struct sum *s, size_t *end)
{
    struct http_chunks c;
    int rc = 0;
    size_t at = 0, used;
    http_chunks_init(&c);
    while (at < len && rc == 0) {
        rc = http_chunks_scan(&c, p + at, len - at < step ? len - at : step, &used, add, s);
        must(used > 0, "every scan makes progress");
        at += used;
    }
    must(at <= len && s->len <= len, "a body is not longer than its bytes");
    *end = at;
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *p = malloc(size + 1);
    memcpy(p, data, size);
    check_head(p, size);
    struct sum whole = {0}, cut = {0};
    size_t end = 0, cut_end = 0;
    int rc = scan(p, size, size + 1, &whole, &end);
    must(scan(p, size, 1 + size % 3, &cut, &cut_end) == rc && end == cut_end, "same verdict");
    must(whole.hash == cut.hash && whole.len == cut.len, "same bytes");
    free(p);
    return 0;
}
