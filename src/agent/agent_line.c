/* Lines of JSON: what is common to the adapters that read and write them. */
#include "agent_priv.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_IDS 1024 /* beyond it the oldest is forgotten */

/* No JSON: shown as it is, but half an object at the end is only said to be one. */
static void plain_line(struct agent_dec *d, const char *s, size_t len)
{
    bool half = agent_dec_cut(d) && *s == '{';
    struct agent_event ev = AGENT_EVENT(half ? AGENT_NOTICE : AGENT_RAW);
    char *copy = NULL;

    if (half) {
        ev.level = AGENT_WARN;
        ev.text = (char *)"the output ends in the middle of a line";
    } else {
        copy = xmalloc(len + 1);
        for (size_t i = 0; i < len; i++)
            copy[i] = s[i] ? s[i] : ' ';
        copy[len] = 0;
        ev.text = copy;
        ev.final = true;
    }
    agent_dec_emit(d, &ev);
    free(copy);
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
    j = *s == '{' ? json_parse(s, len, &e) : NULL;
    if (!j)
        plain_line(d, s, len);
    return j;
}

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
