/* envd's list of processes: whatever it says, what comes out is bounded, in order, and safe
 * to show. The bytes again as lines of several streams: none is lost. */
#include "../../src/jobs/foreign_priv.h"
#include "../lib/hostile.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_pure(const char *s)
{
    size_t at;

    if (s && hostile_impure(s, strlen(s), false, &at))
        abort();
}

static void check_list(const char *text, size_t size)
{
    struct proc_list l;
    struct err e = {0};

    if (proc_list_parse(&l, text, size, 7, &e) != 0) {
        if (l.v || l.n || e.code != ERR_PROTO)
            abort();
        return;
    }
    if (l.n > PROC_LIST_MAX + 1)
        abort();
    for (size_t i = 0; i < l.n; i++) {
        if (l.v[i].pid <= 0 || !l.v[i].ident || !l.v[i].command ||
            (i && l.v[i].pid <= l.v[i - 1].pid))
            abort();
        must_be_pure(l.v[i].command);
        must_be_pure(l.v[i].brief);
        must_be_pure(l.v[i].cwd);
        must_be_pure(l.v[i].tag);
    }
    proc_list_release(&l);
}

static void count(void *ctx, const char *data, size_t len)
{
    (void)data;
    *(size_t *)ctx += len;
}

static void check_lanes(const char *text, size_t size)
{
    struct lanes l = {0};
    size_t in = 0, out = 0, parts = 0;

    for (size_t at = 0; at < size;) {
        size_t n = 1 + (unsigned char)text[at] % 40;

        n = n < size - at ? n : size - at;
        lanes_add(&l, (enum envd_stream)((unsigned char)text[at] % LANES), text + at, n, count, &out);
        in += n;
        at += n;
    }
    for (int i = 0; i < LANES; i++)
        parts += l.part[i].len > 0;
    lanes_flush(&l, count, &out);
    if (out != in + parts) /* each unfinished line got an end */
        abort();
    lanes_release(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    check_list(text, size);
    check_lanes(text, size);
    free(text);
    return 0;
}
