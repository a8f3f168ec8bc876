/* A frame: from the cells of a canvas by curses' memory file, through colours, scrolling and
 * shortening, into one write that never blocks. */
#include "term_state.h"

#include <cct/util/clock.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <curses.h>

static const char use_margins[] = "\033[?69h";
static const char sync_begin[] = "\033[?2026h", sync_end[] = "\033[?2026l";

bool capture_begin(void)
{
    if (ftruncate(T.mem, 0) != 0 || lseek(T.mem, 0, SEEK_SET) != 0)
        return false;
    return dup2(T.mem, T.out) >= 0;
}

static void add_frame(void)
{
    struct buf *from = &T.raw;
    if (T.pal.slots && T.raw.len) {
        color_slots_spell(T.pal.slots, T.raw.p, T.raw.len, &T.spelled);
        from = &T.spelled;
    }
    if (T.shortener) {
        shortener_begin(T.shortener, LINES, COLS, T.fresh || T.returned, T.home);
        shortener_feed(T.shortener, buf_str(from), from->len, &T.frame);
    } else {
        buf_add(&T.frame, buf_str(from), from->len);
    }
    buf_clear(&T.spelled);
}

void capture_end(bool marks)
{
    fflush(T.outf);
    off_t n = lseek(T.mem, 0, SEEK_CUR);
    dup2(T.tty, T.out);
    fcntl(T.out, F_SETFD, FD_CLOEXEC);
    if (n <= 0 && !T.ahead.len)
        return;
    if (marks)
        buf_add(&T.frame, sync_begin, sizeof(sync_begin) - 1);
    buf_add(&T.frame, T.ahead.p ? T.ahead.p : "", T.ahead.len);
    buf_clear(&T.ahead);
    n = n > 0 ? n : 0;
    char *room = buf_reserve(&T.raw, (size_t)n);
    ssize_t got = room ? pread(T.mem, room, (size_t)n, 0) : 0;
    if (got > 0)
        T.raw.len += (size_t)got;
    if (T.returned)
        caps_drop_palette_reset(&T.raw);
    add_frame();
    T.returned = T.fresh = T.home = false;
    buf_clear(&T.raw);
    if (marks)
        buf_add(&T.frame, sync_end, sizeof(sync_end) - 1);
}

static void tell_curses(const struct canvas *c)
{
    if (T.shown.h != c->h || T.shown.w != c->w) {
        canvas_resize(&T.shown, c->h, c->w);
        T.full = true;
    }
    T.fresh = T.full;
    if (T.full) {
        caps_reset_region(&T.ahead);
        clearok(curscr, TRUE);
        erase();
    }
    int h = c->h < LINES ? c->h : LINES, w = c->w < COLS ? c->w : COLS;
    palette_tell(&T.pal, c, &T.shown, T.full);
    T.full = false;
    bool cursor = c->cursor_y >= 0 && c->cursor_y < h && c->cursor_x >= 0 && c->cursor_x < w;
    curs_set(cursor ? 1 : 0);
    leaveok(stdscr, !cursor); /* where it stands unseen is no matter */
    if (cursor)
        move(c->cursor_y, c->cursor_x);
}

/* Write what waits, without blocking for longer than a stuck line deserves. */
static void write_frame(void)
{
    set_blocking(false);
    while (T.frame.len && !T.gone) {
        ssize_t n = write(T.tty, T.frame.p, T.frame.len);
        if (n > 0) {
            T.stats.bytes += (uint64_t)n;
            T.stats.writes++;
            buf_consume(&T.frame, (size_t)n);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            break;
        } else {
            T.gone = true;
        }
    }
    set_blocking(true);
}

bool term_backed_up(void)
{
    if (T.frame.len)
        write_frame();
    return T.frame.len > 0;
}

/* Let the terminal move what has moved up, where it can. Curses draws the same, too, and is
 * ignored: from then on it believes that this is what the screen shows. */
static void scroll_ahead(const struct canvas *c)
{
    bool whole = c->scrolls.w == c->w; /* curses does that by itself */
    if (T.full || T.returned || whole || c->h != LINES || c->w != COLS ||
        key_decoder_margins(T.keys) <= 0)
        return;
    struct scroll s = scroll_find(&T.shown, c);
    if (!s.by)
        return;
    if (!T.margins)
        buf_add(&T.ahead, use_margins, sizeof(use_margins) - 1);
    scroll_spell(&s, &T.ahead); /* a frame of curses ends with normal attributes */
    T.margins = true;
    scroll_follow(&s, &T.shown);
    leaveok(stdscr, FALSE);
    move(0, 0); /* where the terminal's cursor is after it */
    wnoutrefresh(stdscr);
    doupdate();
    fflush(T.outf);
    T.home = true;
    if (ftruncate(T.mem, 0) != 0 || lseek(T.mem, 0, SEEK_SET) != 0)
        T.full = true; /* what it wrote goes out: all of it has to come again */
}

void term_send(const char *bytes, size_t len)
{
    if (T.gone || !T.open || T.lent)
        return;
    buf_add(&T.frame, bytes, len);
    write_frame();
}

bool term_flush(const struct canvas *c)
{
    if (T.gone || !T.open)
        return false;
    if (T.lent)
        return true;
    if (term_backed_up())
        return !T.gone;
    int64_t t0 = clock_mono_ms();
    if (!capture_begin()) {
        T.gone = true;
        return false;
    }
    scroll_ahead(c);
    tell_curses(c);
    wnoutrefresh(stdscr);
    doupdate();
    capture_end(key_decoder_sync(T.keys) > 0);
    T.stats.frames += T.frame.len > 0;
    write_frame();
    int64_t us = (clock_mono_ms() - t0) * 1000;
    if (us > T.stats.max_frame_us)
        T.stats.max_frame_us = us;
    return !T.gone;
}
