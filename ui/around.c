/* The surroundings of the screen, by the environment, and sequences through them. */
#include <cct/ui/around.h>

#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <stdlib.h>
#include <string.h>

enum { SCREEN_CHUNK = 700, NOTE_TITLE = 100, NOTE_BODY = 400, TITLE_MAX = 200 };

static const char *word(char *(*env)(const char *), const char *name)
{
    const char *v = env(name);
    return v ? v : "";
}

/* Programs whose names stand in TERM_PROGRAM, TERM or a variable of their own. */
static enum osc_note note_of(char *(*env)(const char *))
{
    const char *term = word(env, "TERM"), *program = word(env, "TERM_PROGRAM");
    if (str_starts(term, "xterm-kitty") || *word(env, "KITTY_WINDOW_ID"))
        return OSC_NOTE_99;
    if (str_eq(program, "iTerm.app") || str_eq(program, "ghostty") || str_eq(program, "WezTerm") ||
        str_starts(term, "xterm-ghostty") || str_starts(term, "wezterm") ||
        *word(env, "WT_SESSION") || *word(env, "ConEmuPID") || *word(env, "WEZTERM_PANE"))
        return OSC_NOTE_9;
    if (*word(env, "VTE_VERSION") || str_starts(term, "foot") || str_starts(term, "rxvt-unicode"))
        return OSC_NOTE_777;
    return OSC_NOTE_NONE;
}

/* "foreground;background", a third word may stand between: 0-6 and 8 are dark. */
static int background_of(const char *s)
{
    const char *last = strrchr(s, ';');
    int64_t n;
    if (!last || !str_to_i64(last + 1, 0, 15, &n))
        return -1;
    return n == 7 || n > 8;
}

void around_read(struct around *a, char *(*env)(const char *))
{
    const char *term = word(env, "TERM"), *color = word(env, "COLORTERM");
    memset(a, 0, sizeof(*a));
    a->tmux = *word(env, "TMUX") != 0;
    a->screen = !a->tmux && *word(env, "STY") != 0;
    a->mosh = *word(env, "MOSH_CONNECTION") != 0;
    a->ssh = *word(env, "SSH_CONNECTION") != 0;
    a->plain = str_eq(term, "linux") || str_starts(term, "vt") || str_eq(term, "ansi") ||
               str_eq(term, "cons25") || str_eq(term, "dumb");
    a->title = !a->plain && (str_starts(term, "xterm") || str_starts(term, "screen") ||
                             str_starts(term, "tmux") || str_starts(term, "rxvt") ||
                             str_starts(term, "foot") || str_starts(term, "alacritty") ||
                             str_starts(term, "wezterm") || str_starts(term, "st-"));
    a->truecolor = str_eq(color, "truecolor") || str_eq(color, "24bit");
    a->background = background_of(word(env, "COLORFGBG"));
    a->note = a->plain ? OSC_NOTE_NONE : note_of(env);
}

enum osc_note around_note(const struct around *a, const char *how)
{
    return str_eq(how, "none") ? OSC_NOTE_NONE
           : str_eq(how, "9")  ? OSC_NOTE_9
           : str_eq(how, "777") ? OSC_NOTE_777
           : str_eq(how, "99") ? OSC_NOTE_99
                               : a->note;
}

/* tmux takes one string with each ESC doubled; screen hands on strings that are short. */
void around_pass(const struct around *a, struct buf *out, const char *seq, size_t len)
{
    if (a->tmux) {
        buf_adds(out, "\033Ptmux;");
        for (size_t i = 0; i < len; i++) {
            if (seq[i] == '\033')
                buf_addc(out, '\033');
            buf_addc(out, seq[i]);
        }
        buf_adds(out, "\033\\");
    } else if (a->screen) {
        for (size_t at = 0; at < len; at += SCREEN_CHUNK) {
            buf_adds(out, "\033P");
            buf_add(out, seq + at, len - at < SCREEN_CHUNK ? len - at : SCREEN_CHUNK);
            buf_adds(out, "\033\\");
        }
    } else {
        buf_add(out, seq, len);
    }
}

/* --- clipboard -------------------------------------------------------------------------- */

size_t around_osc52_fits(const char *text, size_t len)
{
    size_t most = OSC52_MAX / 4 * 3;
    if (len <= most)
        return len;
    while (most > 0 && ((unsigned char)text[most] & 0xC0) == 0x80)
        most--;
    return most;
}

void around_osc52(const struct around *a, struct buf *out, const char *text, size_t len)
{
    struct buf seq = BUF_INIT;
    char *coded = b64_encode(text, len);
    if (a->mosh) /* it drops a second one that is the same */
        buf_adds(&seq, "\033]52;c;\007");
    buf_adds(&seq, "\033]52;c;");
    buf_adds(&seq, coded);
    free(coded);
    buf_addc(&seq, '\007');
    around_pass(a, out, seq.p, seq.len);
    buf_release(&seq);
}

/* --- notifications and the title ----------------------------------------------------------- */

/* What may stand in an OSC string: no control character in 7 or 8 bits, no half character.
 * `semicolons` false: they would end a field. */
static void add_plain(struct buf *out, const char *s, size_t max, bool semicolons)
{
    size_t len = strlen(s), start = out->len;
    while (len) {
        uint32_t cp;
        size_t n = utf8_decode(s, len, &cp);
        if (!n || out->len - start + n > max)
            break;
        if (cp == ';' && !semicolons)
            buf_addc(out, ',');
        else if (cp == UTF8_BAD)
            buf_addc(out, '?');
        else if (cp >= 0x20 && !(cp >= 0x7F && cp < 0xA0))
            buf_add(out, s, n);
        s += n;
        len -= n;
    }
}

void around_notify(const struct around *a, enum osc_note how, struct buf *out, const char *id,
                   const char *title, const char *body)
{
    struct buf seq = BUF_INIT;
    if (how == OSC_NOTE_9) {
        buf_adds(&seq, "\033]9;");
        add_plain(&seq, title, NOTE_TITLE, true);
        buf_adds(&seq, *body ? ": " : "");
        add_plain(&seq, body, NOTE_BODY, true);
        buf_addc(&seq, '\007');
    } else if (how == OSC_NOTE_777) {
        buf_adds(&seq, "\033]777;notify;");
        add_plain(&seq, title, NOTE_TITLE, false);
        buf_addc(&seq, ';');
        add_plain(&seq, body, NOTE_BODY, false);
        buf_addc(&seq, '\007');
    } else if (how == OSC_NOTE_99) {
        buf_addf(&seq, "\033]99;i=cc-tui-%s:d=0;", id);
        add_plain(&seq, title, NOTE_TITLE, true);
        buf_addf(&seq, "\033\\\033]99;i=cc-tui-%s:p=body;", id);
        add_plain(&seq, body, NOTE_BODY, true);
        buf_adds(&seq, "\033\\");
    }
    if (seq.len)
        around_pass(a, out, seq.p, seq.len);
    buf_release(&seq);
}

void around_title(struct buf *out, const char *title)
{
    buf_adds(out, "\033]2;");
    add_plain(out, title, TITLE_MAX, true);
    buf_addc(out, '\007');
}
