/* A recording's bytes become events, a piece at a time. */
#include "recording.h"

#include <cct/agent.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/limits.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 16 << 10 };

struct recording {
    int fd;
    const struct agent_adapter *a;
    uint64_t size; /* where it ends; less once a line was found that is none */
    uint64_t pos;  /* of the next byte */
    char last;     /* byte before it */
    bool cut;
    struct agent_dec *dec;
    struct buf line; /* the begin of one of events, from line_at on */
    uint64_t line_at;
    size_t number, events; /* lines; events that came of them */
    uint64_t base, end;    /* offsets of the run that is being taken; behind all of it */
    ARR(struct agent_event) v; /* those before `first` are gone */
    size_t first;
};

static void on_event(void *ctx, const struct agent_event *ev);

struct recording *recording_new(int take_fd, const struct agent_adapter *a)
{
    struct recording *r = xcalloc(1, sizeof(*r));
    struct stat st;

    r->fd = take_fd;
    r->a = a;
    r->size = fstat(r->fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
    buf_init(&r->line, LIM_JSON_BYTES);
    recording_rewind(r);
    return r;
}

void recording_free(struct recording *r)
{
    if (!r)
        return;
    while (recording_event(r))
        recording_drop(r);
    ARR_RELEASE(&r->v);
    agent_dec_free(r->dec);
    buf_release(&r->line);
    close(r->fd);
    free(r);
}

void recording_rewind(struct recording *r)
{
    while (recording_event(r))
        recording_drop(r);
    agent_dec_free(r->dec);
    r->dec = r->a ? agent_dec_new(r->a, 0, on_event, r) : NULL;
    buf_clear(&r->line);
    r->pos = r->line_at = r->base = r->end = 0;
    r->number = r->events = 0;
    r->last = '\n';
    posix_fadvise(r->fd, 0, 4 * PIECE_BYTES, POSIX_FADV_WILLNEED);
}

/* --- events ------------------------------------------------------------------------ */

/* A run that begins anew has small offsets again: its entries are others all the same. */
static void take(struct recording *r, struct agent_event *ev)
{
    if (r->base + ev->offset + 1 < r->end && r->events > 0 && ev->offset == 0)
        r->base = r->end;
    ev->offset += r->base;
    if (ev->offset + 1 > r->end)
        r->end = ev->offset + 1;
    r->events++;
    *ARR_PUSH(&r->v) = *ev;
}

static void on_event(void *ctx, const struct agent_event *ev)
{
    struct agent_event copy;

    agent_event_copy(&copy, ev);
    take(ctx, &copy);
}

struct agent_event *recording_event(struct recording *r)
{
    return r->first < r->v.n ? &r->v.v[r->first] : NULL;
}

void recording_drop(struct recording *r)
{
    agent_event_release(&r->v.v[r->first++]);
    if (r->first == r->v.n) {
        ARR_CLEAR(&r->v);
        r->first = 0;
    }
}

/* --- bytes ------------------------------------------------------------------------- */

/* Nothing counts from there on. */
static void end_at(struct recording *r, uint64_t at)
{
    r->size = r->pos = at;
    r->last = '\n';
    buf_clear(&r->line);
}

/* One that has no end was being written when it was copied, as a rule. */
static int take_line(struct recording *r, bool whole, struct err *e)
{
    struct agent_event ev;

    r->number++;
    if (r->line.len && agent_event_from_json(&ev, r->line.p, r->line.len, NULL) == 0)
        take(r, &ev);
    else if (r->line.len) {
        end_at(r, r->line_at);
        if (!whole && r->events)
            r->cut = true;
        else
            return err_set(e, ERR_INVALID, "line %zu is no event", r->number);
    }
    buf_clear(&r->line);
    return 0;
}

static int feed_lines(struct recording *r, const char *p, size_t len, struct err *e)
{
    uint64_t at = r->pos - len;

    while (len > 0) {
        const char *lf = memchr(p, '\n', len);
        size_t n = lf ? (size_t)(lf - p) : len;

        if (!r->line.len)
            r->line_at = at;
        if (buf_add(&r->line, p, n) != 0) {
            end_at(r, r->line_at);
            return err_set(e, ERR_INVALID, "line %zu is longer than an event can be",
                           r->number + 1);
        }
        if (lf && take_line(r, true, e) != 0)
            return ERR_INVALID;
        n += lf != NULL;
        p += n;
        at += n;
        len -= n;
    }
    return 0;
}

/* The last line is one, too. */
static int feed_end(struct recording *r, struct err *e)
{
    if (r->last == '\n')
        return 0;
    r->last = '\n';
    if (!r->dec)
        return take_line(r, false, e);
    agent_dec_feed(r->dec, "\n", 1);
    return 0;
}

bool recording_read(struct recording *r, struct err *e)
{
    char piece[PIECE_BYTES];
    size_t most = r->size - r->pos < sizeof(piece) ? r->size - r->pos : sizeof(piece);
    ssize_t n = most ? pread(r->fd, piece, most, (off_t)r->pos) : 0;

    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0) {
        err_sys(e, ERR_IO, "the recording cannot be read");
        end_at(r, r->pos);
        return false;
    }
    if (n == 0) { /* also when it became shorter meanwhile */
        r->size = r->pos;
        feed_end(r, e);
        return false;
    }
    r->pos += (uint64_t)n;
    r->last = piece[n - 1];
    posix_fadvise(r->fd, (off_t)r->pos, 64 * PIECE_BYTES, POSIX_FADV_WILLNEED);
    if (r->dec)
        agent_dec_feed(r->dec, piece, (size_t)n);
    else if (feed_lines(r, piece, (size_t)n, e) != 0)
        return false;
    return true;
}

bool recording_is_over(const struct recording *r)
{
    return r->pos >= r->size && r->last == '\n';
}

int recording_percent(const struct recording *r)
{
    return r->size ? (int)(r->pos / ((double)r->size / 100)) : 100;
}

bool recording_is_cut(const struct recording *r)
{
    return r->cut;
}
