/* The shell tool: a terminal's text, line by line. A shell that marks its commands
 * with OSC 133 gives turns: C = output of a command begins, D;STATUS = it ended.
 * The marks themselves are not part of the text; behind each of them a place begins, so
 * that a message sent between two commands stands between their events.
 *
 * Nothing depends on how the bytes were cut: a line is shown when it is complete,
 * its unfinished rest at a mark or at the end. */
#include "agent_priv.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (64u << 10) /* a longer line is shown in pieces of this size */
#define ESC '\033'
#define BEL '\007'

enum raw_in { IN_TEXT, IN_ESC, IN_OSC, IN_OSC_ESC };

struct raw {
    enum raw_in in;
    struct buf line;   /* text of the current line that is not emitted yet */
    uint64_t line_off; /* where that line begins, or what is behind its last mark */
    bool begun;        /* line_off is set */
    bool shown;        /* a piece of this line is out already, behind the begin of a command */
    bool marked;       /* the byte at hand ended a mark of a command */
    size_t osc_len;
    char osc[64]; /* what follows ESC ] while it may be a mark */
};

static void *raw_new(void)
{
    return xcalloc(1, sizeof(struct raw));
}

static void raw_free(void *state)
{
    struct raw *r = state;

    buf_release(&r->line);
    free(r);
}

static void emit_text(struct raw *r, struct agent_dec *d, bool final)
{
    struct agent_event ev = AGENT_EVENT(AGENT_RAW);

    if (final && r->line.len && r->line.p[r->line.len - 1] == '\r')
        buf_truncate(&r->line, r->line.len - 1);
    if (r->line.len || (final && !r->shown)) {
        ev.text = (char *)buf_str(&r->line);
        ev.final = final;
        agent_dec_emit(d, &ev);
        r->shown = true;
    }
    buf_clear(&r->line);
}

/* A line that is rewritten by carriage returns, as progress bars do, is not a long one:
 * what its last two versions say is kept (the later one may be shorter), the rest is gone
 * from a terminal, too. True when that made room. */
static bool drop_rewritten(struct raw *r)
{
    char *p = r->line.p, *last = memrchr(p, '\r', r->line.len - 1);
    char *before = last && last > p ? memrchr(p, '\r', (size_t)(last - p)) : NULL;

    if (!before || before - p < (ptrdiff_t)PIECE_BYTES / 4)
        return false;
    buf_consume(&r->line, (size_t)(before - p) + 1);
    return true;
}

/* Emit a full piece, cut in front of a UTF-8 sequence that may go on. */
static void emit_piece(struct raw *r, struct agent_dec *d)
{
    size_t n = r->line.len, back = 0;
    char tail[4];

    while (back < 3 && ((unsigned char)r->line.p[n - 1 - back] & 0xC0) == 0x80)
        back++;
    if ((unsigned char)r->line.p[n - 1 - back] >= 0xC0)
        back++;
    else
        back = 0;
    memcpy(tail, r->line.p + n - back, back);
    buf_truncate(&r->line, n - back);
    emit_text(r, d, false);
    buf_add(&r->line, tail, back);
}

/* NUL bytes are padding on a terminal and would end a C string: they go. */
static void add_text(struct raw *r, struct agent_dec *d, const char *s, size_t len)
{
    while (len) {
        size_t room = PIECE_BYTES - r->line.len, n = len < room ? len : room;
        const char *nul = memchr(s, 0, n);

        if (nul)
            n = (size_t)(nul - s);
        buf_add(&r->line, s, n);
        if (r->line.len == PIECE_BYTES && !drop_rewritten(r))
            emit_piece(r, d);
        if (nul)
            n++;
        s += n;
        len -= n;
    }
}

static void turn_end(struct agent_dec *d, int code)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TURN_END);
    char text[32];

    ev.exit_code = code;
    if (code > 0) {
        snprintf(text, sizeof(text), "exit status %d", code);
        ev.text = text;
        /* 130 is what a shell says of a command ended by Ctrl-C */
        ev.outcome = code == 130 ? AGENT_INTERRUPTED : AGENT_FAILED;
        ev.error_class = ev.outcome == AGENT_FAILED ? AGENT_ERR_OTHER : AGENT_ERR_NONE;
    }
    agent_dec_emit(d, &ev);
}

/* The status in ";STATUS" or ";STATUS;more"; -1 when there is none. */
static int mark_status(const char *arg)
{
    char num[12] = "";
    int64_t code;

    if (*arg == ';')
        snprintf(num, sizeof(num), "%.*s", (int)strcspn(arg + 1, ";"), arg + 1);
    return str_to_i64(num, 0, 255, &code) ? (int)code : -1;
}

static void end_mark(struct raw *r, struct agent_dec *d)
{
    char what = r->osc_len > 4 ? r->osc[4] : 0;
    struct agent_event ev = AGENT_EVENT(AGENT_TURN_BEGIN);

    r->osc[r->osc_len] = 0;
    r->in = IN_TEXT;
    if (what != 'C' && what != 'D')
        return; /* prompt marks */
    r->marked = true;
    emit_text(r, d, false);
    if (what == 'C')
        r->shown = false; /* as for a decoder that begins with this turn */
    if ((what == 'C') == agent_dec_busy(d))
        return;
    if (what == 'C')
        agent_dec_emit(d, &ev);
    else
        turn_end(d, mark_status(r->osc + 5));
}

/* What was held back is no mark: it is text. */
static void not_a_mark(struct raw *r, struct agent_dec *d)
{
    bool esc = r->in == IN_OSC_ESC;

    add_text(r, d, r->in == IN_ESC ? "\033" : "\033]", r->in == IN_ESC ? 1 : 2);
    if (r->in != IN_ESC)
        add_text(r, d, r->osc, r->osc_len);
    if (esc)
        add_text(r, d, "\033", 1);
    r->in = IN_TEXT;
}

/* One byte inside a possible mark; false = it has to be read as text again. */
static bool escape_byte(struct raw *r, struct agent_dec *d, char c)
{
    if (r->in == IN_ESC && c == ']') {
        r->in = IN_OSC;
        r->osc_len = 0;
        return true;
    }
    if (r->in == IN_OSC && c == ESC && r->osc_len > 4) {
        r->in = IN_OSC_ESC;
        return true;
    }
    if ((r->in == IN_OSC && c == BEL && r->osc_len > 4) || (r->in == IN_OSC_ESC && c == '\\')) {
        end_mark(r, d);
        return true;
    }
    if (r->in == IN_OSC && (unsigned char)c >= ' ' && r->osc_len < sizeof(r->osc) - 1 &&
        (r->osc_len >= 4 || c == "133;"[r->osc_len])) {
        r->osc[r->osc_len++] = c;
        return true;
    }
    not_a_mark(r, d);
    return false;
}

/* An escape that may be a mark, or NULL. */
static const char *find_mark(const char *s, const char *end)
{
    while ((s = memchr(s, ESC, (size_t)(end - s))) && s + 1 < end && s[1] != ']')
        s++;
    return s;
}

/* How much of it, from the begin of a line on, are whole lines that are nothing but text of
 * an ordinary length; *n: how many; *stop: no more of them before that. */
static size_t plain_lines(const char *s, size_t len, size_t *n, size_t *stop)
{
    const char *end = memrchr(s, '\n', len), *at = s, *nl, *mark;

    *n = 0;
    *stop = len;
    if (!end)
        return 0;
    end++;
    mark = find_mark(s, end);
    if (mark)
        *stop = (size_t)(mark - s) + 1;
    for (; at < end; at = nl + 1) {
        nl = memchr(at, '\n', (size_t)(end - at));
        if (mark && nl > mark)
            break;
        if (nl - at >= (ptrdiff_t)PIECE_BYTES) {
            *stop = (size_t)(nl - s);
            break;
        }
        ++*n;
    }
    return (size_t)(at - s);
}

void agent_line_text(const char *line, size_t len, struct buf *out)
{
    const char *end = line + len, *nul;

    while (end > line && (end[-1] == '\n' || !end[-1]))
        end--;
    if (end > line && end[-1] == '\r')
        end--;
    for (; (nul = memchr(line, 0, (size_t)(end - line))); line = nul + 1)
        buf_add(out, line, (size_t)(nul - line));
    buf_add(out, line, (size_t)(end - line));
}

/* Such lines all at once: bytes taken. Not worth a try again before *stop. */
static size_t feed_plain(struct raw *r, struct agent_dec *d, const char *s, size_t len,
                         size_t *stop)
{
    size_t n, taken;

    *stop = 0;
    if (r->in != IN_TEXT || r->line.len || r->shown)
        return 0;
    taken = plain_lines(s, len, &n, stop);
    if (!taken || !agent_dec_emit_lines(d, s, taken, n))
        return 0;
    r->line_off += taken;
    return taken;
}

static void new_place(struct raw *r, struct agent_dec *d, uint64_t offset)
{
    r->marked = false;
    r->line_off = offset;
    agent_dec_place_within(d, offset);
}

static void raw_feed(void *state, struct agent_dec *d, const char *s, size_t len)
{
    struct raw *r = state;
    uint64_t base = agent_dec_offset(d);
    size_t i = 0, again = agent_dec_takes_lines(d) ? 0 : len;

    if (!r->begun)
        r->line_off = base;
    r->begun = true;
    agent_dec_place(d, r->line_off);
    while (i < len) {
        size_t n = i;

        if (i >= again && base + i == r->line_off) {
            size_t stop, taken = feed_plain(r, d, s + i, len - i, &stop);

            again = i + stop;
            i = n = i + taken;
            if (i == len)
                break;
        }
        agent_dec_read_to(d, base + i + 1); /* where a mark's turn begins, or ends */
        if (r->in != IN_TEXT && escape_byte(r, d, s[i])) {
            i++;
            if (r->marked)
                new_place(r, d, base + i);
            continue;
        }
        while (n < len && s[n] != '\n' && s[n] != ESC)
            n++;
        add_text(r, d, s + i, n - i);
        i = n;
        if (i == len)
            break;
        if (s[i] == ESC) {
            r->in = IN_ESC;
        } else {
            emit_text(r, d, true);
            r->line_off = base + i + 1;
            r->shown = false;
            agent_dec_place(d, r->line_off);
        }
        i++;
    }
}

static const char *raw_rest(void *state)
{
    struct raw *r = state;

    return r->line.len ? buf_str(&r->line) : NULL;
}

static void raw_end(void *state, struct agent_dec *d, int code, int sig,
                    const char *stderr_tail)
{
    struct raw *r = state;

    if (r->in != IN_TEXT)
        not_a_mark(r, d);
    emit_text(r, d, false);
    r->begun = r->shown = false;
    agent_dec_place_exit(d);
    /* a command like `exit 3` ends the shell and with it its own turn */
    if (agent_dec_busy(d) && code >= 0 && !sig)
        turn_end(d, code);
    agent_end_default(d, code, sig, stderr_tail);
}

/* Commands travel as one line of base64, so that one of many lines is one message. */
static int raw_encode(const char *text, size_t len, struct buf *out, struct err *e)
{
    size_t at = out->len;
    char *b64;
    int rc;

    if (len > LIM_MESSAGE_BYTES)
        return err_set(e, ERR_LIMIT, "a command of %zu bytes cannot be sent: %u are the limit",
                       len, LIM_MESSAGE_BYTES);
    b64 = b64_encode(text, len);
    rc = buf_adds(out, b64);
    free(b64);
    if (rc == 0)
        rc = buf_addc(out, '\n');
    if (rc == 0)
        return 0;
    buf_truncate(out, at);
    return err_set(e, ERR_LIMIT, "a command cannot be sent: the message is too long");
}

const struct agent_adapter agent_shell = {
    .name = "shell",
    .mode = AGENT_PERSISTENT,
    .echoes = false,
    .pty = true,
    .state_new = raw_new,
    .state_free = raw_free,
    .line = raw_feed,
    .rest = raw_rest,
    .end = raw_end,
    .encode_message = raw_encode,
    .encode_interrupt = NULL,
};
