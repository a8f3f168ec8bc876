/* The transcript of one session: items keyed by their place in the stream, bounded in
 * bytes; applying the same event twice changes nothing. */
#include <cct/model/sandbox.h>

#include <cct/text/clean.h>
#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

enum { TRANSCRIPT_MAX_BYTES = 16 << 20, TRANSCRIPT_SLACK = 1 << 20 };

void item_release(struct item *it)
{
    free(it->id);
    free(it->who);
    free(it->title);
    free(it->text);
    free(it->runs);
    free(it->input);
    memset(it, 0, sizeof(*it));
}

void transcript_init(struct transcript *t)
{
    memset(t, 0, sizeof(*t));
}

void transcript_release(struct transcript *t)
{
    for (size_t i = 0; i < t->n; i++)
        item_release(&t->v[i]);
    free(t->v);
    memset(t, 0, sizeof(*t));
}

static size_t item_bytes(const struct item *it)
{
    return sizeof(*it) + it->text_len + it->n_runs * sizeof(struct text_run) +
           (it->input ? strlen(it->input) : 0);
}

static bool is_local(const struct item *it)
{
    return it->kind == ITEM_USER || it->kind == ITEM_SYSTEM;
}

/* Blocks and calls are found by id near the end, where they nearly always are. */
static struct item *find_by_id(struct transcript *t, enum item_kind kind, const char *id)
{
    for (size_t i = t->n; id && i-- > 0;)
        if (t->v[i].kind == kind && str_eq(t->v[i].id, id))
            return &t->v[i];
    return NULL;
}

static struct item *find_by_key(struct transcript *t, const struct item *it)
{
    if (is_local(it) && it->id)
        return NULL;
    for (size_t i = t->n; i-- > 0;) {
        struct item *o = &t->v[i];
        if (o->offset == it->offset && o->index == it->index && o->kind == it->kind &&
            o->offset + o->index > 0)
            return o;
        if (o->offset < it->offset && !is_local(o))
            break;
    }
    return NULL;
}

/* New value into an old place: the key of the first appearance stays, so that the order
 * on the screen does. */
static void replace_item(struct transcript *t, struct item *o, struct item *n)
{
    uint32_t rev = o->rev + 1;
    uint64_t offset = o->offset;
    uint32_t index = o->index;
    int64_t time_ms = o->time_ms ? o->time_ms : n->time_ms;
    /* a result line of a tool carries no name, title or input of its own */
    if (!n->who && o->who)
        n->who = o->who, o->who = NULL;
    if (!n->title && o->title)
        n->title = o->title, o->title = NULL;
    if (!n->input && o->input)
        n->input = o->input, o->input = NULL;
    if (!n->text && o->text) {
        n->text = o->text, n->text_len = o->text_len;
        n->runs = o->runs, n->n_runs = o->n_runs;
        o->text = NULL, o->runs = NULL;
    }
    t->bytes -= item_bytes(o);
    item_release(o);
    *o = *n;
    memset(n, 0, sizeof(*n));
    o->rev = rev;
    if (offset || index)
        o->offset = offset, o->index = index;
    o->time_ms = time_ms;
    t->bytes += item_bytes(o);
}

/* Items arrive in stream order but for late ones (a load racing the live part). */
static size_t place_of(const struct transcript *t, const struct item *it)
{
    size_t i = t->n;
    if (is_local(it))
        return i;
    while (i > 0 && !is_local(&t->v[i - 1]) &&
           (t->v[i - 1].offset > it->offset ||
            (t->v[i - 1].offset == it->offset && t->v[i - 1].index > it->index)))
        i--;
    return i;
}

static void put_item(struct transcript *t, struct item *it)
{
    struct item *o = it->kind == ITEM_NOTICE ? NULL : find_by_id(t, it->kind, it->id);
    if (!o)
        o = find_by_key(t, it);
    if (o) {
        replace_item(t, o, it);
        return;
    }
    t->bytes += item_bytes(it);
    size_t at = place_of(t, it);
    *ARR_INSERT(t, at) = *it;
    memset(it, 0, sizeof(*it));
}

static void append_text(struct transcript *t, struct item *it)
{
    struct item *o = find_by_id(t, it->kind, it->id);
    if (!o) {
        put_item(t, it);
        return;
    }
    /* a replay of bytes already shown, or a block that has its final text */
    if (!o->streaming || it->offset < o->offset ||
        (it->offset == o->offset && it->index <= o->index) || !it->text_len)
        return;
    o->text = xrealloc(o->text, o->text_len + it->text_len + 1);
    memcpy(o->text + o->text_len, it->text, it->text_len + 1);
    if (it->n_runs) {
        o->runs = xrealloc(o->runs, (o->n_runs + it->n_runs) * sizeof(*o->runs));
        for (size_t i = 0; i < it->n_runs; i++) {
            o->runs[o->n_runs] = it->runs[i];
            o->runs[o->n_runs++].at += (uint32_t)o->text_len;
        }
    }
    o->text_len += it->text_len;
    o->offset = it->offset;
    o->index = it->index;
    o->rev++;
    t->bytes += it->text_len + it->n_runs * sizeof(*o->runs);
}

static void trim(struct transcript *t)
{
    if (t->bytes <= TRANSCRIPT_MAX_BYTES)
        return;
    size_t drop = 0;
    while (drop + 1 < t->n && t->bytes > TRANSCRIPT_MAX_BYTES - TRANSCRIPT_SLACK) {
        t->bytes -= item_bytes(&t->v[drop]);
        item_release(&t->v[drop++]);
    }
    memmove(t->v, t->v + drop, (t->n - drop) * sizeof(*t->v));
    t->n -= drop;
    t->base += drop;
}

/* Older items in front; those whose key is held already are skipped. */
static void prepend(struct transcript *t, struct ev_items *ev)
{
    size_t n = 0;
    for (size_t i = 0; i < ev->n; i++)
        if (!find_by_key(t, &ev->v[i]) && !find_by_id(t, ev->v[i].kind, ev->v[i].id))
            n++;
    if (!n)
        return;
    struct item *v = xcalloc(n + t->n, sizeof(*v));
    size_t k = 0;
    for (size_t i = 0; i < ev->n; i++) {
        if (find_by_key(t, &ev->v[i]) || find_by_id(t, ev->v[i].kind, ev->v[i].id))
            continue;
        t->bytes += item_bytes(&ev->v[i]);
        v[k++] = ev->v[i];
        memset(&ev->v[i], 0, sizeof(ev->v[i]));
    }
    if (t->n)
        memcpy(v + k, t->v, t->n * sizeof(*v));
    free(t->v);
    t->v = v;
    t->n += k;
    t->cap = t->n;
    t->base = t->base >= k ? t->base - k : 0;
}

void transcript_apply(struct transcript *t, struct ev_items *ev)
{
    if (ev->reset) {
        uint64_t rev = t->rev;
        transcript_release(t);
        t->rev = rev;
    }
    if (ev->prepend) {
        prepend(t, ev);
    } else {
        for (size_t i = 0; i < ev->n; i++) {
            if (ev->v[i].offset > t->last_offset)
                t->last_offset = ev->v[i].offset;
            if (ev->op && ev->op[i] == ITEM_APPEND)
                append_text(t, &ev->v[i]);
            else
                put_item(t, &ev->v[i]);
        }
        trim(t);
    }
    t->more_before = ev->reset || ev->prepend ? ev->more_before : t->more_before || t->base > 0;
    t->rev++;
}
