/* Transcripts, read aloud: so many entries, those in front, those behind, the whole of one, and
 * what comes. They are what the output pane shows, from the same place. */
#include "plain_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 10, LINES = 12 };

static struct entry_key key_of(const struct item *it)
{
    return (struct entry_key){it->offset, it->index};
}

/* Of the newest event that went into it. */
static struct entry_key newest_of(const struct item *it)
{
    return it->last_offset || it->last_index ? (struct entry_key){it->last_offset, it->last_index}
                                             : key_of(it);
}

static int compare(struct entry_key a, struct entry_key b)
{
    if (a.offset != b.offset)
        return a.offset < b.offset ? -1 : 1;
    return a.index < b.index ? -1 : a.index > b.index;
}

static const char *agent_of(struct plain *p, uint64_t sandbox)
{
    const struct sandbox *s = model_sandbox(app_model(p->app), sandbox);

    return s && s->tool && *s->tool ? s->tool : "agent";
}

/* lead: its number, or the sandbox's name. */
static void say_item(struct plain *p, const char *lead, const struct item *it, uint64_t sandbox,
                     size_t most, bool numbered)
{
    struct buf b = BUF_INIT;
    size_t left = cli_spoken_text(it, agent_of(p, sandbox), most, &b);

    while (b.len && (b.p[b.len - 1] == ' ' || b.p[b.len - 1] == '\n'))
        buf_truncate(&b, b.len - 1);
    if (left)
        buf_addf(&b, "\n%zu more line%s%s", left, left == 1 ? "" : "s", numbered ? ", open reads them" : "");
    cli_out("%s%s%s\n", p->at_prompt ? "\n" : "", lead, buf_str(&b));
    p->at_prompt = false;
    buf_release(&b);
}

/* --- having it loaded --------------------------------------------------------------- */

static struct plain_follow *follow_of(const struct plain *p, uint64_t sandbox)
{
    for (size_t i = 0; i < p->follows.n; i++)
        if (p->follows.v[i].sandbox == sandbox)
            return &p->follows.v[i];
    return NULL;
}

bool plain_follows(const struct plain *p, uint64_t sandbox)
{
    return follow_of(p, sandbox) != NULL;
}

static struct entry_key end_of(struct plain *p, uint64_t sandbox)
{
    const struct transcript *t = model_transcript(app_model(p->app), sandbox);
    struct entry_key end = {0, 0};

    for (size_t i = 0; t && i < t->n; i++)
        if (compare(newest_of(&t->v[i]), end) > 0)
            end = newest_of(&t->v[i]);
    return end;
}

void plain_read_observe(struct plain *p, const struct msg *ev)
{
    const struct ev_items *items = (const struct ev_items *)ev;
    const struct ev_done *d = (const struct ev_done *)ev;

    if (ev->type == EV_DONE && p->await && d->sandbox == p->await && d->err.code) {
        plain_say(p, "%s.", d->err.text);
        p->arrived = true;
        p->await = 0;
    }
    if (ev->type != EV_ITEMS)
        return;
    if (items->sandbox == p->await && (items->reset || items->prepend || items->newer)) {
        p->arrived = true;
        p->await = 0;
    }
    struct plain_follow *f = follow_of(p, items->sandbox);
    if (f)
        f->dirty = true;
}

static bool has_arrived(struct plain *p)
{
    return p->arrived;
}

/* After the request that brings it. */
static bool await(struct plain *p, uint64_t sandbox)
{
    p->await = sandbox;
    p->arrived = false;
    bool came = plain_until(p, has_arrived);
    p->await = 0;
    return came && model_transcript(app_model(p->app), sandbox);
}

static void let_go(struct plain *p, uint64_t sandbox)
{
    if (sandbox && !plain_follows(p, sandbox) && p->reading.sandbox != sandbox)
        app_unfollow(p->app, sandbox);
}

/* --- reading ------------------------------------------------------------------------ */

static const struct item *item_at(const struct transcript *t, struct entry_key k)
{
    for (size_t i = 0; i < t->n; i++)
        if (compare(key_of(&t->v[i]), k) == 0)
            return &t->v[i];
    return NULL;
}

/* n entries: behind `from` (way > 0), in front of it (way < 0), or the last ones (way 0). Their
 * places to v; how many there are. */
static size_t choose(const struct transcript *t, struct entry_key from, int way, size_t n,
                     size_t *v)
{
    size_t got = 0;

    for (size_t i = 0; way > 0 && i < t->n && got < n; i++)
        if (compare(key_of(&t->v[i]), from) > 0 && cli_spoken(&t->v[i]))
            v[got++] = i;
    for (size_t i = t->n; way <= 0 && i > 0 && got < n; i--)
        if ((way == 0 || compare(key_of(&t->v[i - 1]), from) < 0) && cli_spoken(&t->v[i - 1]))
            v[got++] = i - 1;
    for (size_t i = 0; way <= 0 && i < got / 2; i++) {
        size_t other = v[i];
        v[i] = v[got - 1 - i];
        v[got - 1 - i] = other;
    }
    return got;
}

static size_t read_out(struct plain *p, int way, size_t n)
{
    struct plain_reading *r = &p->reading;
    const struct transcript *t = model_transcript(app_model(p->app), r->sandbox);
    size_t *v = xcalloc(n + 1, sizeof(*v)), got = t ? choose(t, way > 0 ? r->last : r->first, way, n, v) : 0;
    char lead[24];

    if (got)
        ARR_CLEAR(&r->keys);
    for (size_t i = 0; i < got; i++) {
        const struct item *it = &t->v[v[i]];

        *ARR_PUSH(&r->keys) = key_of(it);
        snprintf(lead, sizeof(lead), "%zu. ", i + 1);
        say_item(p, lead, it, r->sandbox, LINES, true);
    }
    if (got) {
        r->first = r->keys.v[0];
        r->last = r->keys.v[got - 1];
        r->any = true;
    }
    free(v);
    return got;
}

static bool is_reading(struct plain *p)
{
    bool any = p->reading.sandbox && p->reading.any;

    if (!any)
        plain_say(p, "Nothing was read yet: 'read NAME' begins.");
    return any;
}

void plain_do_read(struct plain *p, char *args)
{
    char *name = plain_word(&args), *count = plain_word(&args);
    const struct sandbox *s = plain_find(p, name);
    uint64_t before = p->reading.sandbox, id = s ? s->id : 0;
    int n = ENTRIES;

    if (!s || !plain_count(p, count, 1, &n))
        return;
    p->reading.sandbox = id;
    p->reading.any = false;
    if (before != id)
        let_go(p, before);
    if (before != id || !model_transcript(app_model(p->app), id)) {
        app_follow(p->app, id);
        if (!await(p, id))
            return;
    }
    if (!read_out(p, 0, (size_t)n))
        plain_say(p, "It has said nothing yet.");
}

void plain_do_more(struct plain *p, char *args)
{
    uint64_t id = p->reading.sandbox;
    int n = ENTRIES;

    if (!is_reading(p) || !plain_count(p, args, 1, &n) || read_out(p, 1, (size_t)n))
        return;
    const struct transcript *t = model_transcript(app_model(p->app), id);
    if (t && t->more_after) { /* it went back so far that the newest ones made room */
        app_load_newer(p->app, id);
        if (await(p, id) && read_out(p, 1, (size_t)n))
            return;
    }
    plain_say(p, "That was the last entry.");
}

void plain_do_back(struct plain *p, char *args)
{
    uint64_t id = p->reading.sandbox;
    int n = ENTRIES;

    if (!is_reading(p) || !plain_count(p, args, 1, &n) || read_out(p, -1, (size_t)n))
        return;
    const struct transcript *t = model_transcript(app_model(p->app), id);
    if (t && t->more_before) {
        app_load_older(p->app, id);
        if (await(p, id) && read_out(p, -1, (size_t)n))
            return;
    }
    plain_say(p, "That was the first entry.");
}

void plain_do_open(struct plain *p, char *args)
{
    const struct transcript *t = model_transcript(app_model(p->app), p->reading.sandbox);
    int64_t n;

    if (!is_reading(p))
        return;
    if (!str_to_i64(args, 1, (int64_t)p->reading.keys.n, &n)) {
        plain_say(p, "Which entry? They have the numbers 1 to %zu.", p->reading.keys.n);
        return;
    }
    const struct item *it = t ? item_at(t, p->reading.keys.v[n - 1]) : NULL;
    if (it)
        say_item(p, "", it, p->reading.sandbox, SIZE_MAX, false);
    else
        plain_say(p, "It is no longer held here: read it again.");
}

/* --- following ---------------------------------------------------------------------- */

/* Tools are told when they begin and when they have ended, all else once it is whole. */
static void say_new(struct plain *p, struct plain_follow *f)
{
    const struct transcript *t = model_transcript(app_model(p->app), f->sandbox);
    const struct sandbox *s = model_sandbox(app_model(p->app), f->sandbox);
    struct entry_key end = end_of(p, f->sandbox);
    char *lead = xasprintf("%s, ", s ? plain_name(s) : "it");

    if (compare(end, f->seen) < 0)
        f->seen = (struct entry_key){0, 0}; /* its log began anew */
    for (size_t i = 0; t && i < t->n; i++) {
        const struct item *it = &t->v[i];
        bool whole = !it->streaming || it->kind == ITEM_TOOL;
        bool yours = it->kind == ITEM_USER && str_eq(it->who, "you");

        if (compare(newest_of(it), f->seen) > 0 && whole && !yours && it->kind != ITEM_ASK &&
            cli_spoken(it))
            say_item(p, lead, it, f->sandbox, LINES, false);
    }
    f->seen = end;
    free(lead);
}

void plain_read_news(struct plain *p)
{
    if (p->hold && !p->running)
        return; /* it is all there when the line has ended */
    for (size_t i = 0; i < p->follows.n; i++) {
        struct plain_follow *f = &p->follows.v[i];

        if (f->dirty && f->loaded)
            say_new(p, f);
        f->dirty = f->dirty && !f->loaded;
    }
}

void plain_do_follow(struct plain *p, char *args)
{
    const struct sandbox *s;
    struct plain_follow *f;

    if (!*args && p->follows.n) {
        for (size_t i = 0; i < p->follows.n; i++)
            if ((s = model_sandbox(app_model(p->app), p->follows.v[i].sandbox)))
                plain_say(p, "%s is followed.", plain_name(s));
        return;
    }
    s = plain_find(p, plain_word(&args));
    if (!s)
        return;
    uint64_t id = s->id;
    if (plain_follows(p, id)) {
        plain_say(p, "%s is followed already.", plain_name(s));
        return;
    }
    *ARR_PUSH(&p->follows) = (struct plain_follow){.sandbox = id};
    app_follow(p->app, id);
    bool came = await(p, id);
    f = follow_of(p, id);
    if (!came) {
        ARR_REMOVE(&p->follows, f - p->follows.v);
        let_go(p, id);
        return;
    }
    f->seen = end_of(p, id);
    f->loaded = true;
    s = model_sandbox(app_model(p->app), id);
    plain_say(p, "Following %s; 'stop' ends it.", s ? plain_name(s) : "it");
}

void plain_do_stop(struct plain *p, char *args)
{
    const struct sandbox *s = *args ? plain_find(p, plain_word(&args)) : NULL;
    bool named = s != NULL;
    size_t n = 0;

    if (!s && *args)
        return;
    for (size_t i = p->follows.n; i > 0; i--) {
        uint64_t id = p->follows.v[i - 1].sandbox;

        if (named && id != s->id)
            continue;
        ARR_REMOVE(&p->follows, i - 1);
        let_go(p, id);
        n++;
    }
    plain_say(p, n ? "No longer followed." : "Nothing is followed.");
}

void plain_do_say(struct plain *p, char *args)
{
    char *name = plain_word(&args);
    const char *words[] = {"send", name, "--", args};

    if (!*name || !*args)
        plain_say(p, "Write 'say NAME' and the text.");
    else
        plain_command(p, words, 4);
}

void plain_read_release(struct plain *p)
{
    ARR_RELEASE(&p->follows);
    ARR_RELEASE(&p->reading.keys);
}
