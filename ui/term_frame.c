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

bool term_capture_begin(void)
{
    if (ftruncate(the_term.mem, 0) != 0 || lseek(the_term.mem, 0, SEEK_SET) != 0)
        return false;
    return dup2(the_term.mem, the_term.out) >= 0;
}

static void add_frame(void)
{
    struct buf *from = &the_term.raw;
    if (the_term.pal.slots && the_term.raw.len) {
        color_slots_spell(the_term.pal.slots, the_term.raw.p, the_term.raw.len, &the_term.spelled);
        from = &the_term.spelled;
    }
    if (the_term.shortener) {
        shortener_begin(the_term.shortener, LINES, COLS, the_term.fresh || the_term.returned,
                        the_term.home);
        shortener_feed(the_term.shortener, buf_str(from), from->len, &the_term.frame);
    } else {
        buf_add(&the_term.frame, buf_str(from), from->len);
    }
    buf_clear(&the_term.spelled);
}

void term_capture_end(bool marks)
{
    fflush(the_term.outf);
    off_t n = lseek(the_term.mem, 0, SEEK_CUR);
    dup2(the_term.tty, the_term.out);
    fcntl(the_term.out, F_SETFD, FD_CLOEXEC);
    if (n <= 0 && !the_term.ahead.len)
        return;
    if (marks)
        buf_add(&the_term.frame, sync_begin, sizeof(sync_begin) - 1);
    buf_add(&the_term.frame, the_term.ahead.p ? the_term.ahead.p : "", the_term.ahead.len);
    buf_clear(&the_term.ahead);
    n = n > 0 ? n : 0;
    char *room = buf_reserve(&the_term.raw, (size_t)n);
    ssize_t got = room ? pread(the_term.mem, room, (size_t)n, 0) : 0;
    if (got > 0)
        the_term.raw.len += (size_t)got;
    if (the_term.returned)
        caps_drop_palette_reset(&the_term.raw);
    add_frame();
    the_term.returned = the_term.fresh = the_term.home = false;
    buf_clear(&the_term.raw);
    if (marks)
        buf_add(&the_term.frame, sync_end, sizeof(sync_end) - 1);
}

static void tell_curses(const struct canvas *c)
{
    if (the_term.shown.h != c->h || the_term.shown.w != c->w) {
        canvas_resize(&the_term.shown, c->h, c->w);
        the_term.full = true;
    }
    the_term.fresh = the_term.full;
    if (the_term.full) {
        caps_reset_region(&the_term.ahead);
        clearok(curscr, TRUE);
        erase();
    }
    int h = c->h < LINES ? c->h : LINES, w = c->w < COLS ? c->w : COLS;
    palette_tell(&the_term.pal, c, &the_term.shown, the_term.full);
    the_term.full = false;
    bool cursor = c->cursor_y >= 0 && c->cursor_y < h && c->cursor_x >= 0 && c->cursor_x < w;
    curs_set(cursor ? 1 : 0);
    leaveok(stdscr, !cursor); /* where it stands unseen is no matter */
    if (cursor)
        move(c->cursor_y, c->cursor_x);
}

/* Write what waits, without blocking for longer than a stuck line deserves. */
static void write_frame(void)
{
    term_set_blocking(false);
    while (the_term.frame.len && !the_term.gone) {
        ssize_t n = write(the_term.tty, the_term.frame.p, the_term.frame.len);
        if (n > 0) {
            the_term.stats.bytes += (uint64_t)n;
            the_term.stats.writes++;
            buf_consume(&the_term.frame, (size_t)n);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            break;
        } else {
            the_term.gone = true;
        }
    }
    term_set_blocking(true);
}

bool term_backed_up(void)
{
    if (the_term.frame.len)
        write_frame();
    return the_term.frame.len > 0;
}

/* Let the terminal move what has moved up, where it can. Curses draws the same, too, and is
 * ignored: from then on it believes that this is what the screen shows. */
static void scroll_ahead(const struct canvas *c)
{
    bool whole = c->scrolls.w == c->w; /* curses does that by itself */
    if (the_term.full || the_term.returned || whole || c->h != LINES || c->w != COLS ||
        key_decoder_margins(the_term.keys) <= 0)
        return;
    struct scroll s = scroll_find(&the_term.shown, c);
    if (!s.by)
        return;
    if (!the_term.margins)
        buf_add(&the_term.ahead, use_margins, sizeof(use_margins) - 1);
    scroll_spell(&s, &the_term.ahead); /* a frame of curses ends with normal attributes */
    the_term.margins = true;
    scroll_follow(&s, &the_term.shown);
    leaveok(stdscr, FALSE);
    move(0, 0); /* where the terminal's cursor is after it */
    wnoutrefresh(stdscr);
    doupdate();
    fflush(the_term.outf);
    the_term.home = true;
    if (ftruncate(the_term.mem, 0) != 0 || lseek(the_term.mem, 0, SEEK_SET) != 0)
        the_term.full = true; /* what it wrote goes out: all of it has to come again */
}

void term_send(const char *bytes, size_t len)
{
    if (the_term.gone || !the_term.open || the_term.lent)
        return;
    buf_add(&the_term.frame, bytes, len);
    write_frame();
}

bool term_flush(const struct canvas *c)
{
    if (the_term.gone || !the_term.open)
        return false;
    if (the_term.lent)
        return true;
    if (term_backed_up())
        return !the_term.gone;
    int64_t t0 = clock_mono_ms();
    if (!term_capture_begin()) {
        the_term.gone = true;
        return false;
    }
    scroll_ahead(c);
    tell_curses(c);
    wnoutrefresh(stdscr);
    doupdate();
    term_capture_end(key_decoder_sync(the_term.keys) > 0);
    the_term.stats.frames += the_term.frame.len > 0;
    write_frame();
    int64_t us = (clock_mono_ms() - t0) * 1000;
    if (us > the_term.stats.max_frame_us)
        the_term.stats.max_frame_us = us;
    return !the_term.gone;
}
