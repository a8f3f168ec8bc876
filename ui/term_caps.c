/* What terminfo says of the terminal, where curses does not make use of it by itself. */
#include <cct/ui/term.h>

#include "term_priv.h"

#include <stdio.h>
#include <string.h>

#include <curses.h>
#include <term.h>

void caps_teach_keys(struct key_decoder *d)
{
    static const struct {
        const char *cap;
        key_code key;
    } caps[] = {{"kcuu1", K_UP},   {"kcud1", K_DOWN},  {"kcub1", K_LEFT},  {"kcuf1", K_RIGHT},
                {"khome", K_HOME}, {"kend", K_END},    {"kpp", K_PGUP},    {"knp", K_PGDN},
                {"kdch1", K_DELETE}, {"kich1", K_INSERT}, {"kcbt", K_BACKTAB}, {"kf1", K_F1},
                {"kf2", K_F1 + 1}, {"kf3", K_F1 + 2},  {"kf4", K_F1 + 3},  {"kf5", K_F1 + 4},
                {"kf6", K_F1 + 5}, {"kf7", K_F1 + 6},  {"kf8", K_F1 + 7},  {"kf9", K_F1 + 8},
                {"kf10", K_F1 + 9}, {"kf11", K_F1 + 10}, {"kf12", K_F1 + 11}};
    for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
        const char *seq = tigetstr(caps[i].cap);
        if (seq && seq != (const char *)-1)
            key_decoder_learn(d, seq, caps[i].key);
    }
}

static bool cap_is(const char *name, const char *text)
{
    char cap[8];
    snprintf(cap, sizeof(cap), "%s", name);
    const char *s = tigetstr(cap);
    return s && s != (const char *)-1 && strcmp(s, text) == 0;
}

struct shortener *caps_shortener(bool color)
{
    if ((color && !cap_is("op", "\033[39;49m")) || !cap_is("cup", "\033[%i%p1%d;%p2%dH"))
        return NULL;
    return shortener_new(cap_is("hpa", "\033[%i%p1%dG"), cap_is("vpa", "\033[%i%p1%dd"));
}

static bool has_flag(const char *name)
{
    char cap[8];
    snprintf(cap, sizeof(cap), "%s", name);
    return tigetflag(cap) > 0;
}

bool caps_rgb(void)
{
    return has_flag("RGB") || has_flag("Tc");
}

void caps_drop_palette_reset(struct buf *b)
{
    static char name[] = "oc";
    const char *oc = tigetstr(name);
    size_t n = oc && oc != (const char *)-1 ? strlen(oc) : 0;
    char *hit;
    while (n && b->len && (hit = memmem(b->p, b->len, oc, n)) != NULL) {
        memmove(hit, hit + n, b->len - (size_t)(hit - b->p) - n);
        buf_truncate(b, b->len - n);
    }
}

void caps_reset_region(struct buf *out)
{
    static char name[] = "csr";
    const char *csr = tigetstr(name);
    if (csr && csr != (const char *)-1)
        buf_adds(out, tiparm(csr, 0, LINES - 1));
}
