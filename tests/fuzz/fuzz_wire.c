/* Envelopes and the events in them: any slicing gives the same frames, nothing is
 * read past the end, and the quick way of reading output agrees with the long one. */
#include "../../src/envd/event.h"
#include <cct/wire.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct frames {
    struct buf text; /* flags, length and payload of each */
    size_t stop_after;
};

static bool note(void *ctx, uint8_t flags, const char *payload, size_t len)
{
    struct frames *f = ctx;
    struct proc_event ev;
    char *copy = malloc(len + 1); /* exactly as long: reading past it is seen */

    memcpy(copy, payload, len);
    if (proc_event_parse(copy, len, &ev) == 0)
        buf_addf(&f->text, "%d %d %d %zu;", (int)ev.kind, ev.pid, ev.exit_code, ev.len);
    proc_event_release(&ev);
    free(copy);
    buf_addf(&f->text, "%u %zu ", flags, len);
    buf_add(&f->text, payload, len);
    return f->stop_after == 0 || --f->stop_after > 0;
}

static int run(const uint8_t *data, size_t size, size_t step, size_t stop, struct frames *f)
{
    struct wire_env w;
    int rc = 0;

    buf_init(&f->text, 0);
    f->stop_after = stop;
    wire_env_init(&w);
    for (size_t at = 0; at < size && rc == 0; at += step)
        rc = wire_env_feed(&w, (const char *)data + at, size - at < step ? size - at : step, note,
                           f, NULL);
    wire_env_release(&w);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frames whole, cut;
    size_t stop = size ? data[size - 1] % 4 : 0;
    int a = run(data, size, size ? size : 1, stop, &whole);
    int b = run(data, size, 1 + size % 7, stop, &cut);

    if (a != b || whole.text.len != cut.text.len ||
        (whole.text.len && memcmp(whole.text.p, cut.text.p, cut.text.len) != 0))
        abort();
    buf_release(&whole.text);
    buf_release(&cut.text);
    return 0;
}
