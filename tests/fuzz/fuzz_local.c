/* What the local provider's init reads from a request: ranges, multipart heads,
 * envelopes, time-outs. The first byte says which. */
#include <cct/local/connect_json.h>
#include <cct/local/files_parse.h>
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

static void range(const char *text, int64_t size)
{
    int64_t first = -1, last = -1;
    if (files_range(text, size, &first, &last) != RANGE_PART)
        return;
    must(first >= 0 && first <= last && last < size, "a part lies within the file");
}

static void part(const char *p, size_t len)
{
    static struct files_part part;
    files_part_head(p, len, &part);
    must(memchr(part.name, '\0', sizeof(part.name)) != NULL, "the name ends");
    must(memchr(part.filename, '\0', sizeof(part.filename)) != NULL, "the file's name ends");
}

static void boundary(const char *text)
{
    char b[80];
    if (files_boundary(text, b, sizeof(b)))
        must(b[0] != '\0' && strlen(b) <= 70, "a boundary has 1 to 70 bytes");
}

static void envelopes(const char *p, size_t len)
{
    struct connect_frame f;
    const char *why = NULL;
    enum connect_code code = connect_request_body(p, len, &f, &why);
    must(code == CONNECT_OK || why != NULL, "a refusal says why");
    if (code == CONNECT_OK)
        must(f.body >= p && f.len + CONNECT_HEAD_BYTES == len, "one message is all there is");
    while (len > 0) {
        long used = connect_frame_parse(p, len, 1 << 16, &f);
        must(used <= (long)len, "stays inside");
        if (used <= 0)
            break;
        must(used >= CONNECT_HEAD_BYTES, "goes on");
        p += used;
        len -= (size_t)used;
    }
}

static void timeout(const char *text)
{
    int64_t ms;
    if (connect_timeout_parse(text, &ms))
        must(ms >= 0 && ms <= 9999999999ll, "a time-out has at most 10 digits");
    connect_type_is(text, "application/json");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    /* exact memory, so that a sanitizer sees one byte too many */
    char *text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    char *raw = malloc(size - 1 > 0 ? size - 1 : 1);
    memcpy(raw, data + 1, size - 1);
    switch (data[0] % 5) {
    case 0:
        range(text, (int64_t)size * 3);
        range(text, 0);
        break;
    case 1:
        part(raw, size - 1);
        break;
    case 2:
        boundary(text);
        break;
    case 3:
        envelopes(raw, size - 1);
        break;
    default:
        timeout(text);
    }
    free(text);
    free(raw);
    return 0;
}
