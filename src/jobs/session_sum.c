/* Is what we took the log's own bytes? A stream is believed only so far: one that says
 * something twice, leaves something out or turns it round would shift every byte behind
 * it. So the bytes taken are summed up, and the sandbox is asked for the sum of the same
 * range, with each look into the folder and, while a tail is open, when it falls silent. */
#include "session_follow.h"
#include "session_out.h"
#include "session_priv.h"

#include <cct/util/cksum.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SUM_BYTES (64u << 20) /* more is not read over again in the sandbox */
#define SUM_CALL_MS 20000
#define SUM_EVERY_MS 10000
#define PARTIAL_MS 300 /* silence after which a line without its end is shown */
#define SILENT_MS 2000

static void on_silence(void *ctx);

static void add(struct session_sum *u, const char *data, size_t len)
{
    u->crc = cksum_add(u->crc, data, len);
    u->len += len;
}

void session_sum_add(struct session *s, const char *data, size_t len)
{
    struct follow *f = &s->fo;

    if (f->sum.from + f->sum.len != s->out.pos) { /* another run, another reader's bytes */
        f->sum = (struct session_sum){.from = s->out.pos};
        session_sum_close(s);
    }
    add(&f->sum, data, len);
    if (f->sum_call)
        add(&f->sum_next, data, len);
    f->heard_ms = clock_mono_ms();
    if (!f->quiet_timer || f->partial_done)
        session_timer(s, &f->quiet_timer, PARTIAL_MS, on_silence);
    f->partial_done = false;
}

/* Where the range begins and how long it is, as arguments; "0" when there is none. */
void session_sum_range(struct session *s, char from[32], char len[32])
{
    const struct session_sum *u = &s->fo.sum;
    bool usable = s->out.open && u->len && u->len <= SUM_BYTES && u->from + u->len == s->out.pos;

    snprintf(from, 32, "%" PRIu64, usable ? u->from : 0);
    snprintf(len, 32, "%" PRIu64, usable ? u->len : 0);
    if (u->len > SUM_BYTES)
        s->fo.sum = (struct session_sum){.from = s->out.pos};
}

/* "CRC LEN" as cksum prints it; no number (no such program there) is no objection. */
static bool agrees(const struct session_sum *u, const char *text)
{
    uint64_t crc, len;

    if (!text || sscanf(text, "%" SCNu64 " %" SCNu64, &crc, &len) != 2)
        return true;
    return len == u->len && crc == cksum_end(u->crc, u->len);
}

bool session_sum_agrees(struct session *s, const char *text)
{
    struct follow *f = &s->fo;
    bool ok = agrees(&f->sum, text);

    if (ok && text && *text)
        f->sum = (struct session_sum){.from = f->sum.from + f->sum.len};
    return ok;
}

/* --- while the tail is open ------------------------------------------------------ */

static void on_sum(void *ctx, const struct envd_run_result *r)
{
    struct session *s = ctx;
    struct follow *f = &s->fo;

    f->sum_call = 0;
    if (r->err.code)
        return; /* the tail meets the same trouble */
    if (!agrees(&f->sum_asked, r->out)) {
        session_follow_again(s); /* the look finds the same and begins anew */
        return;
    }
    f->sum = f->sum_next;
}

static void ask(struct session *s)
{
    struct follow *f = &s->fo;
    char from[32], len[32], *path;
    const char *args[] = {NULL, from, len, NULL};

    session_sum_range(s, from, len);
    if (str_eq(len, "0") || !s->dir)
        return;
    path = session_path(s, SESSION_OUT_LOG);
    args[0] = path;
    f->sum_asked = f->sum;
    f->sum_next = (struct session_sum){.from = s->out.pos};
    f->sum_ms = clock_mono_ms();
    f->sum_call = session_sh(s, session_sum_script, args, SUM_CALL_MS, on_sum, s);
    free(path);
}

static void on_silence(void *ctx)
{
    struct session *s = ctx;
    struct follow *f = &s->fo;
    int64_t now = clock_mono_ms(), quiet = now - f->heard_ms, wait;

    f->quiet_timer = 0;
    if (quiet < PARTIAL_MS) {
        session_timer(s, &f->quiet_timer, PARTIAL_MS - quiet, on_silence);
        return;
    }
    if (!f->partial_done && f->state == FO_TAIL)
        session_out_partial(s);
    f->partial_done = true;
    if (f->state != FO_TAIL || f->sum_call || !f->sum.len)
        return;
    wait = SILENT_MS - quiet;
    if (f->sum_ms && f->sum_ms + SUM_EVERY_MS - now > wait)
        wait = f->sum_ms + SUM_EVERY_MS - now;
    if (wait > 0)
        session_timer(s, &f->quiet_timer, wait, on_silence);
    else
        ask(s);
}

void session_sum_close(struct session *s)
{
    if (s->fo.sum_call)
        envd_cancel(s->envd, s->fo.sum_call);
    s->fo.sum_call = 0;
    session_cancel_timer(s, &s->fo.quiet_timer);
}
