/* Lines of JSON: what is common to the adapters that read and write them. */
#include "agent_priv.h"

#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define HALF_LINE (64u << 10) /* a piece of a stream is shorter */
#define MAX_IDS 1024          /* beyond it the oldest is forgotten */

void agent_line_plain(struct agent_dec *d, const char *s, size_t len)
{
    struct agent_event ev = AGENT_EVENT(AGENT_RAW);

    if (agent_dec_cut(d) && *s == '{') {
        agent_line_notice(d, AGENT_WARN, "the output ends in the middle of a line");
        return;
    }
    ev.text = xmalloc(len + 1);
    for (size_t i = 0; i < len; i++)
        ev.text[i] = s[i] ? s[i] : ' ';
    ev.text[len] = 0;
    ev.final = true;
    agent_dec_emit(d, &ev);
    free(ev.text);
}

struct cJSON *agent_line_json(struct agent_dec *d, const char *s, size_t len)
{
    struct err e = {0};
    struct cJSON *j;

    while (len && s[len - 1] && strchr(" \t\r", s[len - 1]))
        len--;
    while (len && (*s == ' ' || *s == '\t'))
        s++, len--;
    if (!len)
        return NULL;
    j = *s == '{' ? json_parse_once(s, len, &e) : NULL;
    if (!j)
        agent_line_plain(d, s, len);
    return j;
}

/* --- halves ---------------------------------------------------------------------- */

/* The unit of a \uXXXX escape, or 0. */
static unsigned unit_at(const char *s, const char *end)
{
    unsigned v = 0;

    if (end - s < 6 || s[0] != '\\' || s[1] != 'u')
        return 0;
    for (int i = 2; i < 6; i++) {
        const char *hex = "0123456789abcdef", *at = s[i] ? strchr(hex, s[i] | 0x20) : NULL;

        if (!at)
            return 0;
        v = v << 4 | (unsigned)(at - hex);
    }
    return v;
}

static bool is_high(unsigned unit)
{
    return unit >= 0xD800 && unit <= 0xDBFF;
}

/* The end of a string whose first byte is at s; *last: a unit that ends it, or NULL. */
static const char *string_end(const char *s, const char *end, const char **last)
{
    *last = NULL;
    while (s < end && *s != '"') {
        *last = *s == '\\' && unit_at(s, end) ? s : NULL;
        s += *last ? 6 : *s == '\\' ? 2 : 1;
        if (*last && is_high(unit_at(*last, end)) && unit_at(s, end) >= 0xDC00 &&
            unit_at(s, end) <= 0xDFFF) {
            *last = NULL; /* a pair */
            s += 6;
        }
    }
    return s < end ? s : NULL;
}

/* May there be half a pair? Backslashes are rare. */
static bool has_half(const char *s, const char *end)
{
    while ((s = memchr(s, '\\', (size_t)(end - s))) && end - s > 2) {
        if (s[1] == 'u' && s[2] == 'd')
            return true;
        s += 2; /* the escaped one may be a backslash */
    }
    return false;
}

const char *agent_half_join(struct agent_half *h, const char *key, const char *s, size_t *len)
{
    const char *end = s + *len, *at, *close, *last;
    bool pending = h->unit[0] != 0;
    unsigned first;

    if (*len > HALF_LINE || (!pending && !has_half(s, end)))
        return s;
    at = memmem(s, *len, key, strlen(key));
    at = at ? at + strlen(key) : NULL;
    close = at ? string_end(at, end, &last) : NULL;
    if (!close)
        return s;
    first = unit_at(at, end);
    buf_clear(&h->line);
    buf_add(&h->line, s, (size_t)(at - s));
    if (pending && first >= 0xDC00 && first <= 0xDFFF)
        buf_adds(&h->line, h->unit);
    h->unit[0] = 0;
    if (last && is_high(unit_at(last, end)))
        memcpy(h->unit, last, 6);
    else
        last = close;
    buf_add(&h->line, at, (size_t)(last - at));
    buf_add(&h->line, close, (size_t)(end - close));
    *len = h->line.len;
    return h->line.p;
}

void agent_half_release(struct agent_half *h)
{
    buf_release(&h->line);
    h->unit[0] = 0;
}

/* --- turns, messages, counts ------------------------------------------------------ */

bool agent_line_begin_turn(struct agent_dec *d)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TURN_BEGIN);

    if (agent_dec_busy(d))
        return false;
    agent_dec_emit(d, &ev);
    return true;
}

static int fits(size_t len, struct err *e)
{
    if (!len)
        return err_set(e, ERR_INVALID, "an empty message cannot be sent");
    if (len > LIM_MESSAGE_BYTES)
        return err_set(e, ERR_LIMIT, "a message of %zu bytes cannot be sent: %u are the limit",
                       len, LIM_MESSAGE_BYTES);
    return 0;
}

int agent_line_message(const char *before, const char *text, size_t len, const char *after,
                       struct buf *out, struct err *e)
{
    size_t at = out->len;
    int rc = fits(len, e);

    if (rc)
        return rc;
    if (buf_adds(out, before) != 0 || buf_add_json(out, text, len) != 0 ||
        buf_adds(out, after) != 0 || buf_addc(out, '\n') != 0) {
        buf_truncate(out, at);
        return err_set(e, ERR_LIMIT, "a message cannot be sent: it is too long");
    }
    /* a line break too many would be a line that is no JSON, and some CLIs end at it */
    if ((char *)memchr(out->p + at, '\n', out->len - at) != out->p + out->len - 1)
        BUG("a message became more than one line");
    return 0;
}

int agent_line_stdin(const char *text, size_t len, struct buf *out, struct err *e)
{
    int rc = fits(len, e);

    if (rc)
        return rc;
    if (buf_add(out, text, len) != 0)
        return err_set(e, ERR_LIMIT, "a message cannot be sent: it is too long");
    return 0;
}

int64_t agent_line_count(const struct cJSON *j, const char *name)
{
    int64_t n = json_i64(j, name, 0);

    return n < 0 ? 0 : n; /* at most 2^53 */
}

int agent_line_int(const struct cJSON *j, const char *name)
{
    int64_t n = json_i64(j, name, 0);

    return n < 0 || n > INT_MAX ? 0 : (int)n;
}

int64_t agent_line_without(const struct cJSON *j, const char *name, int64_t part)
{
    int64_t n = agent_line_count(j, name) - part;

    return n < 0 ? 0 : n;
}

void agent_line_stamp(struct agent_dec *d, const struct cJSON *j)
{
    const char *stamp = json_str(j, "timestamp", NULL);
    int64_t ms;

    if (stamp && clock_parse_rfc3339(stamp, &ms) == 0)
        agent_dec_set_time(d, ms);
}

struct cJSON *agent_line_asked(const struct agent_answer *a)
{
    return a->input ? json_parse(a->input, strlen(a->input), NULL) : NULL;
}

void agent_line_label(struct buf *labels, const char *label)
{
    char *line = agent_calls_line(label);

    if (labels->len)
        buf_addc(labels, '\n');
    buf_adds(labels, line);
    free(line);
}

void agent_line_notice(struct agent_dec *d, enum agent_level level, const char *text)
{
    struct agent_event ev = AGENT_EVENT(AGENT_NOTICE);

    ev.level = level;
    ev.text = (char *)text;
    agent_dec_emit(d, &ev);
}

static size_t id_at(const struct agent_ids *ids, const char *id)
{
    size_t i = ids->v.n;

    while (i > 0 && !str_eq(ids->v.v[i - 1], id))
        i--;
    return i; /* place + 1 */
}

bool agent_ids_has(const struct agent_ids *ids, const char *id)
{
    return id && id_at(ids, id) > 0;
}

bool agent_ids_add(struct agent_ids *ids, const char *id)
{
    if (!id)
        return true;
    if (id_at(ids, id))
        return false;
    if (ids->v.n == MAX_IDS) {
        free(ids->v.v[0]);
        ARR_REMOVE(&ids->v, 0);
    }
    *ARR_PUSH(&ids->v) = xstrdup(id);
    return true;
}

bool agent_ids_remove(struct agent_ids *ids, const char *id)
{
    size_t i = id ? id_at(ids, id) : 0;

    if (!i)
        return false;
    free(ids->v.v[i - 1]);
    ARR_REMOVE(&ids->v, i - 1);
    return true;
}

void agent_ids_clear(struct agent_ids *ids)
{
    for (size_t i = 0; i < ids->v.n; i++)
        free(ids->v.v[i]);
    ARR_RELEASE(&ids->v);
}
