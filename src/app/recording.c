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

enum { PIECE_BYTES = 16 << 10, FOREIGN_LINES = 100 };

struct recording {
    int fd;
    const struct agent_adapter *a;
    uint64_t size; /* where it ends; less once it could not be read on */
    uint64_t pos;  /* of the next byte */
    char last;     /* byte before it */
    struct recording_left left;
    struct agent_dec *dec;
    struct buf line; /* the begin of one of events */
    bool too_long;   /* it has gone on beyond all that one can be */
    size_t number, events; /* lines; events that came of them */
    uint64_t base, end;    /* offsets of the run that is being taken; behind all of it */
    ARR(struct agent_event) v; /* those before `first` are gone */
    size_t first;
};

static void on_event(void *ctx, const struct agent_event *ev);

static void drop_events(struct recording *r)
{
    struct agent_event ev;

    while (recording_take(r, &ev))
        agent_event_release(&ev);
}

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
    drop_events(r);
    ARR_RELEASE(&r->v);
    agent_dec_free(r->dec);
    buf_release(&r->line);
    close(r->fd);
    free(r);
}

void recording_rewind(struct recording *r)
{
    drop_events(r);
    agent_dec_free(r->dec);
    r->dec = r->a ? agent_dec_new(r->a, 0, on_event, r) : NULL;
    buf_clear(&r->line);
    r->pos = r->base = r->end = 0;
    r->number = r->events = 0;
    r->left = (struct recording_left){0};
    r->too_long = false;
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

bool recording_take(struct recording *r, struct agent_event *dst)
{
    if (r->first == r->v.n)
        return false;
    *dst = r->v.v[r->first++];
    if (r->first == r->v.n) {
        ARR_CLEAR(&r->v);
        r->first = 0;
    }
    return true;
}

size_t recording_event_bytes(const struct agent_event *ev)
{
    const char *const v[] = {ev->text, ev->input, ev->output};
    size_t n = 0;

    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
        n += v[i] ? strlen(v[i]) : 0;
    return n;
}

/* --- bytes ------------------------------------------------------------------------- */

/* Nothing counts from here on. */
static void end_here(struct recording *r)
{
    r->size = r->pos;
    r->last = '\n';
    buf_clear(&r->line);
}

/* One that has no end was being written when it was copied, as a rule. */
static void take_line(struct recording *r, bool whole)
{
    struct agent_event ev;

    r->number++;
    if (!r->too_long && r->line.len &&
        agent_event_from_json(&ev, r->line.p, r->line.len, NULL) == 0) {
        take(r, &ev);
    } else if (!whole && (r->line.len || r->too_long)) {
        r->left.cut = true;
    } else if (r->line.len || r->too_long) {
        if (r->left.lines++ == 0)
            r->left.first = r->number;
    }
    buf_clear(&r->line);
    r->too_long = false;
}

static int feed_lines(struct recording *r, const char *p, size_t len, struct err *e)
{
    while (len > 0) {
        const char *lf = memchr(p, '\n', len);
        size_t n = lf ? (size_t)(lf - p) : len;

        if (!r->too_long && buf_add(&r->line, p, n) != 0) {
            r->too_long = true;
            buf_clear(&r->line);
        }
        if (lf)
            take_line(r, true);
        if (!r->events && r->left.lines == FOREIGN_LINES) {
            end_here(r);
            return err_set(e, ERR_INVALID, "none of its first %d lines is an event", FOREIGN_LINES);
        }
        n += lf != NULL;
        p += n;
        len -= n;
    }
    return 0;
}

/* The last line is one, too. */
static void feed_end(struct recording *r)
{
    if (r->last == '\n')
        return;
    r->last = '\n';
    if (r->dec)
        agent_dec_feed(r->dec, "\n", 1);
    else
        take_line(r, false);
}

bool recording_read(struct recording *r, struct err *e)
{
    char piece[PIECE_BYTES];
    size_t most = r->size - r->pos < sizeof(piece) ? r->size - r->pos : sizeof(piece);
    ssize_t n = most ? pread(r->fd, piece, most, (off_t)r->pos) : 0;

    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0)
        err_sys(e, ERR_IO, "cannot read on at byte %llu", (unsigned long long)r->pos);
    else if (n == 0 && most)
        err_set(e, ERR_IO, "cannot read on: the file has become shorter, it ends at byte %llu",
                (unsigned long long)r->pos);
    if (n <= 0) {
        if (n == 0)
            feed_end(r);
        end_here(r);
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

int recording_percent(const struct recording *r)
{
    return r->size ? (int)(r->pos / ((double)r->size / 100)) : 100;
}

struct recording_left recording_left(const struct recording *r)
{
    return r->left;
}
