/* Many lines of plain text at once. The store keeps their bytes anyway and is only told which
 * they are; the screen gets the newest of them with its next picture, and older ones from the
 * store when somebody looks for them. */
#include "session_out.h"
#include "session_priv.h"

#include <cct/model/transcribe.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_LINES 1000u      /* with one picture */
#define LAST_BYTES (4u << 10)  /* among them the last line that is not blank is looked for */

int session_stored_event(struct agent_event *ev, const struct st_event *e)
{
    struct buf b = BUF_INIT;
    int rc = 0;

    if (e->plain) {
        *ev = AGENT_EVENT(AGENT_RAW);
        agent_line_text(e->json, e->len, &b);
        ev->text = buf_detach(&b, NULL);
        ev->raw_line = e->line;
        ev->final = true;
    } else {
        rc = agent_event_from_json(ev, e->json, e->len, NULL);
    }
    ev->offset = e->offset;
    ev->index = e->index;
    return rc;
}

/* Where the last n lines begin in a text of whole ones. */
static size_t last_lines(const char *text, size_t len, size_t n)
{
    while (len && n--) {
        const char *nl = len > 1 ? memrchr(text, '\n', len - 1) : NULL;

        len = nl ? (size_t)(nl - text) + 1 : 0;
    }
    return len;
}

/* The last line, or several when it may be blank, as the event that is looked at for the
 * row. */
static void tell_row(struct session *s, const struct agent_lines *l)
{
    size_t last = last_lines(l->text, l->len, 1);
    size_t from = l->len > LAST_BYTES ? l->len - LAST_BYTES : 0;
    struct agent_event ev = AGENT_EVENT(AGENT_RAW);
    struct buf b = BUF_INIT;

    if (from > last)
        from = last;
    agent_line_text(l->text + from, l->len - from, &b);
    ev.text = buf_detach(&b, NULL);
    ev.offset = l->offset + last;
    ev.final = true;
    session_out_follow(s, &ev);
    free(ev.text);
}

static void keep(struct session *s, const struct agent_lines *l)
{
    struct st_event *e;

    e = ARR_PUSH(&s->out.ev);
    e->offset = l->offset;
    e->len = l->len;
    e->plain = true;
    e->line = s->out.line_base + l->raw_line;
}

/* --- for the screen ---------------------------------------------------------------- */

static void drop_front(struct session *s)
{
    size_t keep_n = SHOWN_LINES, at = last_lines(s->out.lines.text.p, s->out.lines.text.len, keep_n);

    s->out.lines.line += s->out.lines.n - keep_n;
    s->out.lines.offset += at;
    s->out.lines.n = keep_n;
    s->out.lines.cut = true;
    buf_consume(&s->out.lines.text, at);
}

static void show(struct session *s, const struct agent_lines *l)
{
    size_t skip = l->n > SHOWN_LINES ? last_lines(l->text, l->len, SHOWN_LINES) : 0;

    if (skip || !s->out.lines.n) {
        bool cut = skip || s->out.lines.cut;

        session_lines_drop(s);
        s->out.lines.offset = l->offset + skip;
        s->out.lines.line = s->out.line_base + l->raw_line + (skip ? l->n - SHOWN_LINES : 0);
        s->out.lines.cut = cut;
    }
    buf_add(&s->out.lines.text, l->text + skip, l->len - skip);
    s->out.lines.n += skip ? SHOWN_LINES : l->n;
    if (s->out.lines.n > 2 * SHOWN_LINES)
        drop_front(s);
    session_items_soon(s);
}

void session_lines_drop(struct session *s)
{
    buf_clear(&s->out.lines.text);
    s->out.lines.n = 0;
    s->out.lines.cut = false;
}

void session_lines_settle(struct session *s, struct ev_items *into)
{
    const char *p = s->out.lines.text.p, *end = p + s->out.lines.text.len, *nl;
    size_t first = into->n;
    struct buf b = BUF_INIT;

    if (!s->out.lines.n)
        return;
    for (uint64_t line = s->out.lines.line; p < end; p = nl + 1, line++) {
        struct agent_event ev = AGENT_EVENT(AGENT_RAW);

        nl = memchr(p, '\n', (size_t)(end - p));
        buf_clear(&b);
        agent_line_text(p, (size_t)(nl - p), &b);
        ev.text = (char *)buf_str(&b);
        ev.offset = s->out.lines.offset + (uint64_t)(p - s->out.lines.text.p);
        ev.raw_line = line;
        ev.final = true;
        transcribe(&ev, session_who(s), into);
    }
    if (s->out.lines.cut && into->n > first)
        into->op[first] = ITEM_SKIP;
    buf_release(&b);
    session_lines_drop(s);
}

/* --- the decoder's sink ------------------------------------------------------------- */

/* One after the other when somebody waits for their text as an answer, when whoever looks is no
 * screen but prints each, when the store has none of them to show later, and where some of them
 * were seen before. */
bool session_lines(void *ctx, const struct agent_lines *l)
{
    struct session *s = ctx;
    struct out *o = &s->out;
    struct agent_event at = AGENT_EVENT(AGENT_RAW);

    if (s->waits.v.n || s->pair || o->store_down || (s->sh.on && !s->j->o.pictures && !o->feeding_again))
        return false;
    if (o->feeding_again) {
        tell_row(s, l);
        return true;
    }
    if (session_key_reaches(&o->seen, l->offset, 0) ||
        (s->sh.on && session_key_reaches(&s->sh.loaded, l->offset, 0)))
        return false;
    at.offset = l->offset + last_lines(l->text, l->len, 1);
    session_key_newer(&o->seen, &at);
    keep(s, l);
    tell_row(s, l);
    if (s->sh.on)
        show(s, l);
    return true;
}
