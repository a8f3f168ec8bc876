/* The transcript of one session: items keyed by their place in the stream, bounded in
 * bytes; applying the same event twice changes nothing. */
#include <cct/model/sandbox.h>

#include <cct/text/clean.h>
#include <cct/util/arr.h>
#include <cct/util/hash.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

enum { TRANSCRIPT_MAX_BYTES = 16 << 20, TRANSCRIPT_SLACK = 1 << 20 };
#define FAR_FROM_BEGIN ((uint64_t)1 << 40)

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
    map_free(t->by_id, NULL);
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

/* A message that the agent has not taken in: it stands after all that came. */
static bool is_waiting(const struct item *it)
{
    return it->kind == ITEM_USER && !it->offset && !it->index &&
           (it->state == MSG_QUEUED || it->state == MSG_SENT);
}

/* The place before the waiting messages. */
static size_t end_of_stream(const struct transcript *t)
{
    size_t i = t->n;
    while (i > 0 && is_waiting(&t->v[i - 1]))
        i--;
    return i;
}

static void changed(struct transcript *t, struct item *o)
{
    o->rev = ++t->item_rev;
}

/* --- items by id ------------------------------------------------------------------ */

/* Two ids that meet in it cost a search, no more. */
static uint64_t id_hash(enum item_kind kind, const char *id)
{
    uint64_t h = hash_add(HASH_BEGIN ^ (uint64_t)kind, id, strlen(id));

    return h ? h : 1;
}

/* Places moved. */
static void forget_index(struct transcript *t)
{
    map_free(t->by_id, NULL);
    t->by_id = NULL;
}

static void index_item(struct transcript *t, size_t i)
{
    const struct item *it = &t->v[i];
    if (t->by_id && it->id)
        map_put_id(t->by_id, id_hash(it->kind, it->id), (void *)(uintptr_t)(i + 1));
}

static bool is_item(const struct item *it, enum item_kind kind, const char *id)
{
    return it->kind == kind && str_eq(it->id, id);
}

/* The newest item of that kind and id. */
static struct item *find_by_id(struct transcript *t, enum item_kind kind, const char *id)
{
    if (!id)
        return NULL;
    if (!t->by_id) {
        t->by_id = map_new();
        for (size_t i = 0; i < t->n; i++)
            index_item(t, i);
    }
    size_t at = (size_t)(uintptr_t)map_get_id(t->by_id, id_hash(kind, id));
    if (!at)
        return NULL;
    if (is_item(&t->v[at - 1], kind, id))
        return &t->v[at - 1];
    for (size_t i = t->n; i-- > 0;)
        if (is_item(&t->v[i], kind, id))
            return &t->v[i];
    return NULL;
}

/* --- items by key ----------------------------------------------------------------- */

static int cmp_key(uint64_t offset, uint32_t index, uint64_t offset2, uint32_t index2)
{
    if (offset != offset2)
        return offset < offset2 ? -1 : 1;
    return index < index2 ? -1 : index > index2;
}

/* Whether `it` is older than (< 0), or the same event as (0), the newest one in o. */
static int cmp_last(const struct item *it, const struct item *o)
{
    int c = cmp_key(it->offset, it->index, o->offset, o->index);
    if (!o->last_offset && !o->last_index)
        return c;
    return cmp_key(it->offset, it->index, o->last_offset, o->last_index);
}

static void set_last(struct item *o, const struct item *it)
{
    o->last_offset = it->offset;
    o->last_index = it->index;
}

/* The pieces of a raw line lie in one item: any of their keys finds it. */
static struct item *find_by_key(struct transcript *t, const struct item *it)
{
    if (is_local(it) && (it->id || it->offset + it->index == 0))
        return NULL;
    for (size_t i = t->n; i-- > 0;) {
        struct item *o = &t->v[i];
        int c = cmp_key(it->offset, it->index, o->offset, o->index);
        if (o->kind == it->kind &&
            (c == 0 || (c > 0 && o->kind == ITEM_RAW && cmp_last(it, o) <= 0)))
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
    uint64_t offset = o->offset;
    uint32_t index = o->index;
    int64_t time_ms = o->time_ms ? o->time_ms : n->time_ms;
    struct item last = {.offset = n->offset, .index = n->index};
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
    if (!str_eq(o->id, n->id))
        forget_index(t);
    t->bytes -= item_bytes(o);
    item_release(o);
    *o = *n;
    memset(n, 0, sizeof(*n));
    changed(t, o);
    if (!is_local(o) || offset || index)
        o->offset = offset, o->index = index;
    if (!is_local(o))
        set_last(o, &last);
    o->time_ms = time_ms;
    t->bytes += item_bytes(o);
}

/* Some agents say what they were told only when the first block of the answer is whole:
 * the message stands before the block that is being written. */
static size_t before_answer(const struct transcript *t, size_t i)
{
    while (i > 0 && t->v[i - 1].streaming &&
           (t->v[i - 1].kind == ITEM_TEXT || t->v[i - 1].kind == ITEM_THINKING))
        i--;
    return i;
}

/* Items arrive in stream order but for late ones (a load racing the live part). */
static size_t place_of(const struct transcript *t, const struct item *it)
{
    size_t i = is_waiting(it) ? t->n : end_of_stream(t);
    if (it->kind == ITEM_USER && it->state == MSG_DELIVERED && it->offset)
        return before_answer(t, i);
    if (is_local(it))
        return i;
    if (it->streaming && (i == 0 || t->v[i - 1].kind == ITEM_TURN_END))
        while (i < t->n && t->v[i].state == MSG_SENT)
            i++; /* what begins now answers what was sent */
    while (i > 0 && !is_local(&t->v[i - 1]) &&
           (t->v[i - 1].offset > it->offset ||
            (t->v[i - 1].offset == it->offset && t->v[i - 1].index > it->index)))
        i--;
    return i;
}

static void add_text(struct transcript *t, struct item *o, const struct item *it)
{
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
    set_last(o, it);
    changed(t, o);
    t->bytes += it->text_len + it->n_runs * sizeof(*o->runs);
}

/* A line without its end goes on in the next raw event. */
static bool go_on(struct transcript *t, const struct item *it)
{
    size_t end = end_of_stream(t);
    struct item *o = end ? &t->v[end - 1] : NULL;
    if (it->kind != ITEM_RAW || !o || o->kind != ITEM_RAW || !o->streaming ||
        cmp_last(it, o) <= 0)
        return false;
    if (it->text_len)
        add_text(t, o, it);
    set_last(o, it);
    o->streaming = it->streaming;
    changed(t, o);
    return true;
}

/* What grows in the stream only goes forward: an older state said again is a replay. */
static bool is_replay(const struct item *it, const struct item *o)
{
    switch (it->kind) {
    case ITEM_TEXT:
    case ITEM_THINKING:
    case ITEM_TOOL:
        return cmp_last(it, o) < 0;
    case ITEM_RAW:
        return cmp_last(it, o) < 0 || o->last_offset + o->last_index > 0;
    default:
        return false;
    }
}

static void take_out(struct transcript *t, struct item *o)
{
    t->bytes -= item_bytes(o);
    item_release(o);
    ARR_REMOVE(t, (size_t)(o - t->v));
    forget_index(t);
}

static void put_item(struct transcript *t, struct item *it)
{
    struct item *o = it->kind == ITEM_NOTICE ? NULL : find_by_id(t, it->kind, it->id);
    if (o && is_waiting(o) && !is_waiting(it)) {
        take_out(t, o); /* the echo has a place of its own */
        o = NULL;
    }
    if (!o)
        o = find_by_key(t, it);
    if (o) {
        if (!is_replay(it, o))
            replace_item(t, o, it);
        return;
    }
    if (go_on(t, it))
        return;
    t->bytes += item_bytes(it);
    size_t at = place_of(t, it);
    if (at < t->n)
        forget_index(t);
    *ARR_INSERT(t, at) = *it;
    changed(t, &t->v[at]);
    index_item(t, at);
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
    if (o->streaming && cmp_last(it, o) > 0 && it->text_len)
        add_text(t, o, it);
}

/* Their bytes are not counted any more. */
static void drop_front(struct transcript *t, size_t n)
{
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        item_release(&t->v[i]);
    forget_index(t);
    memmove(t->v, t->v + n, (t->n - n) * sizeof(*t->v));
    t->n -= n;
    t->base += n;
    t->more_before = true;
}

static void trim(struct transcript *t)
{
    size_t drop = 0;
    if (t->bytes <= TRANSCRIPT_MAX_BYTES)
        return;
    while (drop + 1 < t->n && t->bytes > TRANSCRIPT_MAX_BYTES - TRANSCRIPT_SLACK)
        t->bytes -= item_bytes(&t->v[drop++]);
    drop_front(t, drop);
}

static bool has_place(const struct item *it)
{
    return it->offset || it->index || !is_local(it);
}

void transcript_first_key(const struct transcript *t, uint64_t *offset, uint32_t *index)
{
    size_t i = 0;
    while (t && i < t->n && !has_place(&t->v[i]))
        i++;
    *offset = t && i < t->n ? t->v[i].offset : INT64_MAX;
    *index = t && i < t->n ? t->v[i].index : UINT32_MAX;
}

void transcript_last_key(const struct transcript *t, uint64_t *offset, uint32_t *index)
{
    *offset = *index = 0;
    for (size_t i = 0; t && i < t->n; i++) {
        const struct item *it = &t->v[i];
        bool grown = it->last_offset || it->last_index;
        uint64_t at = grown ? it->last_offset : it->offset;
        uint32_t idx = grown ? it->last_index : it->index;
        if (cmp_key(at, idx, *offset, *index) > 0)
            *offset = at, *index = idx;
    }
}

/* Newest ones make room for older ones: the store has them. */
static void drop_end(struct transcript *t)
{
    size_t end = end_of_stream(t), keep = end;
    while (keep > 1 && t->bytes > TRANSCRIPT_MAX_BYTES)
        t->bytes -= item_bytes(&t->v[--keep]);
    if (keep == end)
        return;
    for (size_t i = keep; i < end; i++)
        item_release(&t->v[i]);
    memmove(t->v + keep, t->v + end, (t->n - end) * sizeof(*t->v));
    t->n -= end - keep;
    forget_index(t);
    t->more_after = true;
}

/* Its place is behind the newest one that is held; a message that waited for it is here. */
static void pass_by(struct transcript *t, const struct item *it)
{
    struct item *o = it->kind == ITEM_USER ? find_by_id(t, it->kind, it->id) : NULL;
    if (o && is_waiting(o))
        take_out(t, o);
}

/* What stands before this item goes; what is not a part of the stream yet stays. Where nothing
 * is held there is something before it all the same. */
static void skip_to(struct transcript *t, const struct item *it)
{
    size_t drop = 0, end = end_of_stream(t);
    if (end == 0) {
        t->more_before = true;
        t->base = t->base > FAR_FROM_BEGIN ? t->base : FAR_FROM_BEGIN;
    }
    while (drop < end && cmp_last(it, &t->v[drop]) > 0)
        t->bytes -= item_bytes(&t->v[drop++]);
    drop_front(t, drop);
}

static void apply_one(struct transcript *t, struct item *it, uint8_t op)
{
    if (op == ITEM_SKIP)
        skip_to(t, it);
    if (op == ITEM_APPEND)
        append_text(t, it);
    else
        put_item(t, it);
}

/* What is held is the newer state, but its name and input may stand in older events. */
static void fill_in(struct transcript *t, struct item *held, struct item *old)
{
    size_t before = item_bytes(held);
    bool more = false;
    if (!held->who && old->who)
        held->who = old->who, old->who = NULL, more = true;
    if (!held->title && old->title)
        held->title = old->title, old->title = NULL, more = true;
    if (!held->input && old->input)
        held->input = old->input, old->input = NULL, more = true;
    if (more)
        changed(t, held);
    t->bytes += item_bytes(held) - before;
}

static void oldest_key(const struct transcript *t, uint64_t *offset, uint32_t *index)
{
    *offset = UINT64_MAX;
    *index = UINT32_MAX;
    for (size_t i = 0; i < t->n; i++)
        if (has_place(&t->v[i]) &&
            cmp_key(t->v[i].offset, t->v[i].index, *offset, *index) < 0)
            *offset = t->v[i].offset, *index = t->v[i].index;
}

/* Older items in front; those that are held already are skipped. What would exceed the
 * limit is left out, oldest first: it can be loaded again. True: something was. */
static bool prepend(struct transcript *t, struct ev_items *ev)
{
    struct transcript older;
    size_t n = 0, skip = 0;
    uint64_t offset;
    uint32_t index;
    transcript_init(&older);
    older.item_rev = t->item_rev;
    for (size_t i = 0; i < ev->n; i++)
        apply_one(&older, &ev->v[i], ev->op ? ev->op[i] : ITEM_PUT);
    t->item_rev = older.item_rev;
    oldest_key(t, &offset, &index);
    for (size_t i = 0; i < older.n; i++) {
        struct item *it = &older.v[i];
        struct item *held = it->kind == ITEM_NOTICE ? NULL : find_by_id(t, it->kind, it->id);
        if (held)
            fill_in(t, held, it);
        bool older_than_all = cmp_key(it->offset, it->index, offset, index) < 0;
        if (held || (!older_than_all && find_by_key(t, it))) {
            older.bytes -= item_bytes(it);
            item_release(it);
            continue;
        }
        older.v[n++] = *it;
    }
    while (skip < n && older.bytes > TRANSCRIPT_MAX_BYTES / 2) {
        older.bytes -= item_bytes(&older.v[skip]);
        item_release(&older.v[skip++]);
    }
    n -= skip;
    if (n > 0) {
        forget_index(t);
        struct item *v = xcalloc(n + t->n, sizeof(*v));
        memcpy(v, older.v + skip, n * sizeof(*v));
        if (t->n)
            memcpy(v + n, t->v, t->n * sizeof(*v));
        free(t->v);
        t->v = v;
        t->cap = t->n += n;
        t->bytes += older.bytes;
        t->base = t->base >= n ? t->base - n : 0;
        drop_end(t);
    }
    free(older.v);
    forget_index(&older);
    return skip > 0;
}

/* Somebody went elsewhere while it was on its way. */
static bool is_late(const struct transcript *t, const struct ev_items *ev)
{
    uint64_t offset;
    uint32_t index;
    if (!ev->placed)
        return false;
    if (ev->newer && !t->more_after)
        return true;
    (ev->newer ? transcript_last_key : transcript_first_key)(t, &offset, &index);
    return cmp_key(offset, index, ev->at_offset, ev->at_index) != 0;
}

static void reset(struct transcript *t, const struct ev_items *ev)
{
    struct transcript was = *t;
    transcript_release(t);
    t->rev = was.rev;
    t->item_rev = was.item_rev;
    t->resets = was.resets + 1;
    t->loads = was.loads;
    if (ev->more_before)
        t->base = FAR_FROM_BEGIN; /* older ones have numbers below it */
}

void transcript_apply(struct transcript *t, struct ev_items *ev)
{
    t->loads += ev->reset || ev->prepend || ev->newer;
    if (is_late(t, ev))
        return;
    if (ev->reset)
        reset(t, ev);
    bool cut = false, live = !ev->reset && !ev->newer;
    if (ev->prepend) {
        cut = prepend(t, ev);
    } else {
        for (size_t i = 0; i < ev->n; i++) {
            if (ev->v[i].offset > t->last_offset)
                t->last_offset = ev->v[i].offset;
            if (live && t->more_after && !is_waiting(&ev->v[i]))
                pass_by(t, &ev->v[i]);
            else
                apply_one(t, &ev->v[i], ev->op ? ev->op[i] : ITEM_PUT);
        }
        trim(t);
    }
    if (ev->reset || ev->newer)
        t->more_after = ev->more_after;
    if (ev->reset || ev->prepend)
        t->more_before = ev->more_before || cut;
    t->rev++;
}
