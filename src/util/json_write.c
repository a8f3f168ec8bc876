/* The JSON writer. A refused addition shows in the buffer's `over`. */
#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void jw_init(struct jw *w, struct buf *b)
{
    *w = (struct jw){.b = b};
}

/* Comma and name in front of a value. */
static void lead(struct jw *w, const char *name)
{
    if (w->depth > 0) {
        if (!name != (w->close[w->depth - 1] == ']'))
            BUG("JSON value %s a name inside '%c'", name ? "with" : "without",
                w->close[w->depth - 1]);
        if (w->comma[w->depth - 1])
            buf_addc(w->b, ',');
        w->comma[w->depth - 1] = true;
    }
    if (name) {
        buf_add_json(w->b, name, strlen(name));
        buf_addc(w->b, ':');
    }
}

static void open_level(struct jw *w, const char *name, char open, char close)
{
    lead(w, name);
    if (w->depth == (int)sizeof(w->close))
        BUG("JSON written deeper than %d", w->depth);
    buf_addc(w->b, open);
    w->close[w->depth] = close;
    w->comma[w->depth++] = false;
}

void jw_obj(struct jw *w, const char *name)
{
    open_level(w, name, '{', '}');
}

void jw_arr(struct jw *w, const char *name)
{
    open_level(w, name, '[', ']');
}

void jw_end(struct jw *w)
{
    if (w->depth == 0)
        BUG("JSON closed more often than opened");
    buf_addc(w->b, w->close[--w->depth]);
}

void jw_strn(struct jw *w, const char *name, const char *s, size_t len)
{
    lead(w, name);
    buf_add_json(w->b, s, len);
}

void jw_str(struct jw *w, const char *name, const char *s)
{
    if (s)
        jw_strn(w, name, s, strlen(s));
    else
        jw_null(w, name);
}

void jw_i64(struct jw *w, const char *name, int64_t v)
{
    lead(w, name);
    buf_addi(w->b, v);
}

void jw_num(struct jw *w, const char *name, double v)
{
    char text[40];

    if (!isfinite(v)) {
        jw_null(w, name);
        return;
    }
    lead(w, name);
    snprintf(text, sizeof(text), "%.15g", v);
    double back;
    if (sscanf(text, "%lf", &back) != 1 || back != v)
        snprintf(text, sizeof(text), "%.17g", v);
    char *comma = strchr(text, ','); /* some locales write one */
    if (comma)
        *comma = '.';
    buf_adds(w->b, text);
}

void jw_bool(struct jw *w, const char *name, bool v)
{
    lead(w, name);
    buf_adds(w->b, v ? "true" : "false");
}

void jw_null(struct jw *w, const char *name)
{
    lead(w, name);
    buf_adds(w->b, "null");
}

void jw_raw(struct jw *w, const char *name, const char *json)
{
    lead(w, name);
    buf_adds(w->b, json ? json : "null");
}

/* --- on a terminal ----------------------------------------------------------------------- */

static bool acts(uint32_t cp)
{
    return (cp < 0x20 && cp != '\n' && cp != '\t' && cp != '\r') || (cp >= 0x7f && cp < 0xa0) ||
           cp == 0x61c || (cp >= 0x200e && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
           (cp >= 0x2066 && cp <= 0x2069);
}

/* Outside of strings JSON has neither of them, so each stands in one. */
void json_for_terminal(const char *json, size_t len, struct buf *out)
{
    for (size_t at = 0; at < len;) {
        uint32_t cp = 0;
        size_t n = utf8_decode(json + at, len - at, &cp);

        n = n ? n : len - at; /* cut: the rest comes later */
        if (acts(cp))
            buf_addf(out, "\\u%04x", (unsigned)cp);
        else
            buf_add(out, json + at, n);
        at += n;
    }
}
