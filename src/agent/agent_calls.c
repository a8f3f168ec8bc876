/* Tools that an agent called: what is known of each, until it is heard of no more. */
#include "agent_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CALLS 1024 /* calls remembered; the oldest goes */
#define ENDED_CALLS 64 /* beyond so many the oldest that has ended goes: it may be told of again,
                        * but not much later */
#define TITLE_BYTES 200
#define SMALL_OUTPUT 4096 /* up to here each change of a tool's output is shown at once */

static void call_clear(struct agent_call *t)
{
    free(t->id);
    free(t->name);
    free(t->parent);
}

void agent_calls_release(struct agent_calls *c)
{
    for (size_t i = 0; i < c->v.n; i++)
        call_clear(&c->v.v[i]);
    ARR_RELEASE(&c->v);
}

static void make_room(struct agent_calls *c)
{
    size_t i = 0;

    while (i < c->v.n && c->v.v[i].state == AGENT_TOOL_RUNNING)
        i++;
    if (i == c->v.n) {
        if (c->v.n < MAX_CALLS)
            return;
        i = 0;
    }
    call_clear(&c->v.v[i]);
    ARR_REMOVE(&c->v, i);
}

struct agent_call *agent_calls_at(struct agent_calls *c, const char *id)
{
    struct agent_call *t;

    for (size_t i = c->v.n; i > 0; i--)
        if (strcmp(c->v.v[i - 1].id, id) == 0)
            return &c->v.v[i - 1];
    if (c->v.n >= ENDED_CALLS)
        make_room(c);
    t = ARR_PUSH(&c->v);
    t->id = xstrdup(id);
    t->state = AGENT_TOOL_RUNNING;
    return t;
}

void agent_call_set(struct agent_call *t, const char *name, const char *parent)
{
    if (name)
        str_set(&t->name, name);
    if (parent)
        str_set(&t->parent, parent);
}

void agent_call_emit(struct agent_dec *d, const struct agent_call *t, struct agent_event *ev)
{
    ev->id = t->id;
    ev->name = t->name;
    ev->parent = t->parent;
    ev->state = t->state;
    agent_dec_emit(d, ev);
}

void agent_calls_begin(struct agent_calls *c, struct agent_dec *d, const char *id,
                       const char *name, const char *parent, const struct cJSON *input)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TOOL);
    struct agent_call *t;

    if (!id)
        return;
    t = agent_calls_at(c, id);
    agent_call_set(t, name, parent);
    ev.title = agent_calls_title(input, NULL);
    ev.input = json_text(input);
    agent_call_emit(d, t, &ev);
    free(ev.title);
    free(ev.input);
}

void agent_calls_close(struct agent_calls *c, struct agent_dec *d)
{
    for (size_t i = 0; i < c->v.n; i++) {
        struct agent_event ev = AGENT_EVENT(AGENT_TOOL);

        if (c->v.v[i].state != AGENT_TOOL_RUNNING)
            continue;
        c->v.v[i].state = AGENT_TOOL_UNKNOWN;
        agent_call_emit(d, &c->v.v[i], &ev);
    }
}

bool agent_call_news(struct agent_call *t, const char *output, const char *title)
{
    size_t len = output ? strlen(output) : 0;
    bool first = title && !t->titled;

    t->skipped += len;
    if (title)
        t->titled = true;
    if (t->state != AGENT_TOOL_RUNNING)
        return false;
    if (!first && (!len || (len == t->shown && len <= SMALL_OUTPUT)))
        return false;
    if (!first && len > SMALL_OUTPUT &&
        (len > t->shown ? len < t->shown + t->shown / 4 : t->skipped < 8 * len))
        return false;
    t->shown = len;
    t->skipped = 0;
    return true;
}

char *agent_calls_line(const char *s)
{
    size_t n = strcspn(s, "\r\n");

    if (n > TITLE_BYTES) {
        n = TITLE_BYTES;
        while (n && ((unsigned char)s[n] & 0xC0) == 0x80)
            n--;
    }
    return s[n] ? xasprintf("%.*s…", (int)n, s) : xstrdup(s);
}

char *agent_calls_title(const struct cJSON *input, const char *fallback)
{
    static const char *const keys[] = {
        "command", "file_path", "filePath", "notebook_path", "absolute_path", "pattern",
        "path",    "url",       "query",    "description",   "prompt"};
    const char *s = NULL;

    for (size_t i = 0; !s && i < sizeof(keys) / sizeof(keys[0]); i++)
        s = json_str(input, keys[i], NULL);
    if (!s)
        s = fallback;
    return s ? agent_calls_line(s) : NULL;
}

char *agent_calls_text(const struct cJSON *content)
{
    struct buf b = BUF_INIT;

    if (json_is_string(content))
        return xstrdup(json_str_of(content));
    for (const struct cJSON *k = json_first(content); k; k = json_next(k)) {
        const char *text = json_str(k, "text", NULL);

        if (b.len)
            buf_addc(&b, '\n');
        if (text)
            buf_adds(&b, text);
        else
            buf_addf(&b, "[%s]", json_str(k, "type", "data"));
    }
    return buf_detach(&b, NULL);
}
