#include "tape.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bool ok, const char *what, const struct buf *json)
{
    if (ok)
        return;
    fprintf(stderr, "tape: %s: %.*s\n", what, (int)json->len, json->p ? json->p : "");
    abort();
}

static void check_json(const struct agent_event *ev, struct buf *json)
{
    struct agent_event back;
    struct buf again = BUF_INIT;
    struct err e = {0};

    check(agent_event_from_json(&back, json->p, json->len, &e) == 0, e.text, json);
    agent_event_to_json(&back, &again);
    check(again.len == json->len && memcmp(again.p, json->p, again.len) == 0,
          "an event changes on its way through JSON", json);
    check(back.kind == ev->kind && back.offset == ev->offset, "another event came back", json);
    agent_event_release(&back);
    buf_release(&again);
}

static void on_event(void *ctx, const struct agent_event *ev)
{
    struct tape *t = ctx;
    struct buf one = BUF_INIT;
    const struct agent_event *last = t->ev.n ? &t->ev.v[t->ev.n - 1] : NULL;

    agent_event_to_json(ev, &one);
    check_json(ev, &one);
    check(!last || ev->offset > last->offset ||
              (ev->offset == last->offset && ev->index > last->index),
          "the key did not grow", &one);
    agent_event_copy(ARR_PUSH(&t->ev), ev);
    buf_add(&t->json, one.p, one.len);
    buf_addc(&t->json, '\n');
    buf_release(&one);
}

void tape_run(struct tape *t, const struct agent_adapter *a, const char *data, size_t len,
              size_t chunk, int code, int sig, const char *stderr_tail)
{
    struct agent_dec *d;

    memset(t, 0, sizeof(*t));
    d = agent_dec_new(a, 0, on_event, t);
    for (size_t i = 0; i < len; i += chunk) {
        size_t n = len - i < chunk ? len - i : chunk;
        char *copy = xmalloc(n); /* its own block: reading past it is seen */

        memcpy(copy, data + i, n);
        agent_dec_feed(d, copy, n);
        free(copy);
    }
    if (agent_dec_offset(d) != len)
        abort();
    if (code != TAPE_NO_EXIT)
        agent_dec_exit(d, code, sig, stderr_tail);
    agent_dec_free(d);
}

void tape_release(struct tape *t)
{
    for (size_t i = 0; i < t->ev.n; i++)
        agent_event_release(&t->ev.v[i]);
    ARR_RELEASE(&t->ev);
    buf_release(&t->json);
}

const struct agent_event *tape_find(const struct tape *t, enum agent_kind kind, size_t from)
{
    for (size_t i = from; i < t->ev.n; i++)
        if (t->ev.v[i].kind == kind)
            return &t->ev.v[i];
    return NULL;
}

size_t tape_count(const struct tape *t, enum agent_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < t->ev.n; i++)
        n += t->ev.v[i].kind == kind;
    return n;
}

/* The text of one block: everything of that id from its first event on. */
static void block_text(const struct tape *t, size_t first, struct buf *out)
{
    const struct agent_event *b = &t->ev.v[first];
    size_t at = out->len;

    for (size_t i = first; i < t->ev.n; i++) {
        const struct agent_event *ev = &t->ev.v[i];

        if (ev->kind != b->kind || !str_eq(ev->id, b->id))
            continue;
        if (ev->mode == AGENT_REPLACE)
            buf_truncate(out, at);
        buf_adds(out, ev->text);
    }
}

char *tape_texts(const struct tape *t, enum agent_kind kind)
{
    struct buf out = BUF_INIT;
    bool any = false;

    for (size_t i = 0; i < t->ev.n; i++) {
        const struct agent_event *ev = &t->ev.v[i];
        size_t k = 0;

        if (ev->kind != kind || ev->parent)
            continue;
        while (k < i && !(t->ev.v[k].kind == kind && str_eq(t->ev.v[k].id, ev->id)))
            k++;
        if (k < i)
            continue;
        if (any)
            buf_addc(&out, '|');
        block_text(t, i, &out);
        any = true;
    }
    return buf_detach(&out, NULL);
}

char *tape_tools(const struct tape *t)
{
    struct buf out = BUF_INIT;

    for (size_t i = 0; i < t->ev.n; i++) {
        const struct agent_event *first = &t->ev.v[i], *last = first;
        size_t k = 0;

        if (first->kind != AGENT_TOOL)
            continue;
        while (k < i && !(t->ev.v[k].kind == AGENT_TOOL && str_eq(t->ev.v[k].id, first->id)))
            k++;
        if (k < i)
            continue;
        for (k = i; k < t->ev.n; k++)
            if (t->ev.v[k].kind == AGENT_TOOL && str_eq(t->ev.v[k].id, first->id))
                last = &t->ev.v[k];
        buf_addf(&out, "%s%s:%s:%d", out.len ? " " : "", last->name ? last->name : "?",
                 agent_tool_state_name(last->state), last->exit_code);
    }
    return buf_detach(&out, NULL);
}

bool tape_same_but_line(const char *a, const char *b)
{
    static const char field[] = "\"raw\":";

    while (*a && *a == *b) {
        if (str_starts(a, field)) {
            a += sizeof(field) - 1;
            b += sizeof(field) - 1;
            a += strspn(a, "0123456789");
            b += strspn(b, "0123456789");
            continue;
        }
        a++;
        b++;
    }
    return *a == *b;
}
