/* Decisions about notifications. Each row has at most one thing that waits to be told: the
 * newest. */
#include <cct/model/notify.h>

#include <cct/model/tbuild.h>
#include <cct/util/arr.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOLD_MS = 1000, SANDBOX_MS = 60000, EVENT_MS = 5000 };

static const struct {
    const char *name, *one, *several;
} events[NOTE_EVENTS_COUNT] = {
#define NOTE_ROW(id, name, def, one, several) {name, one, several},
    NOTE_EVENTS(NOTE_ROW)
#undef NOTE_ROW
};

struct words {
    char name[130], last[400];
};
/* There are as many as rows, and each is looked at with every change of all of them: what only
 * some need stands apart. */
struct watched {
    uint64_t id;
    enum sb_state state;
    enum sb_agent agent;
    bool ending, known;
    bool waits;
    size_t at, nth;         /* of notify.waiting, of notify.line */
    enum note_event event;
    int64_t due, told;      /* told 0 = never */
    const char *before, *now;
    struct words *words;    /* owned; of no row: a row has its own, when it is told */
};
struct notify {
    struct map *rows;       /* sandbox id -> struct watched */
    ARR(struct watched *) line; /* the same ones in the order in which they were first seen */
    size_t behind;          /* of it: the one behind that which was looked at last */
    ARR(struct watched *) waiting; /* in the order in which they came; NULL: no longer */
    size_t waits;                  /* so many are not NULL */
    ARR(struct watched *) others;  /* of no row; owned here */
    int64_t told[NOTE_EVENTS_COUNT];
    int64_t next;           /* nothing is due before; counts while something waits */
    bool each;              /* by itself, and as often as it happens */
};

const char *note_event_name(enum note_event e)
{
    return (unsigned)e < NOTE_EVENTS_COUNT ? events[e].name : "?";
}

int note_channels(const char *words, struct err *e)
{
    static const struct {
        const char *word;
        int bit;
    } table[] = {{"none", 0}, {"mark", NOTE_MARK}, {"bell", NOTE_BELL}, {"osc", NOTE_OSC},
                 {"hook", NOTE_HOOK}};
    int bits = 0;
    char *copy = xstrdup(words), *save = NULL;
    for (char *w = strtok_r(copy, " ,\t", &save); w; w = strtok_r(NULL, " ,\t", &save)) {
        size_t i = 0;
        while (i < 5 && !str_eq(w, table[i].word))
            i++;
        if (i == 5) {
            bits = -1;
            err_set(e, ERR_INVALID, "'%s' is no way to be notified: some of none, mark, bell, "
                    "osc, hook", str_shown(w));
            break;
        }
        bits |= table[i].bit;
    }
    free(copy);
    return bits;
}

struct notify *notify_new(void)
{
    struct notify *n = xcalloc(1, sizeof(*n));
    n->rows = map_new();
    return n;
}

struct notify *notify_new_each(void)
{
    struct notify *n = notify_new();
    n->each = true;
    return n;
}

static void free_watched(void *p)
{
    struct watched *w = p;
    free(w->words);
    free(w);
}

void notify_free(struct notify *n)
{
    if (!n)
        return;
    map_free(n->rows, free_watched);
    for (size_t i = 0; i < n->others.n; i++)
        free_watched(n->others.v[i]);
    ARR_RELEASE(&n->line);
    ARR_RELEASE(&n->others);
    ARR_RELEASE(&n->waiting);
    free(n);
}

/* --- what rows look like ------------------------------------------------------------------- */

static void unwait(struct notify *n, struct watched *w)
{
    if (!w->waits)
        return;
    w->waits = false;
    n->waits--;
    if (n->waiting.v[w->at] != w)
        BUG("a note waits elsewhere than at %zu of %zu", w->at, n->waiting.n);
    n->waiting.v[w->at] = NULL; /* the others keep their places */
}

static void close_up(struct notify *n)
{
    size_t keep = 0;
    for (size_t i = 0; i < n->waiting.n; i++) {
        struct watched *w = n->waiting.v[i];
        if (!w)
            continue;
        w->at = keep;
        n->waiting.v[keep++] = w;
    }
    n->waiting.n = keep;
}

static int64_t due_at(const struct notify *n, const struct watched *w)
{
    int64_t again = n->told[w->event] && !n->each ? n->told[w->event] + EVENT_MS : 0;
    return w->due > again ? w->due : again;
}

static void let_wait(struct notify *n, struct watched *w, enum note_event e, int64_t now)
{
    enum { HOLES = 64 };
    unwait(n, w);
    if (n->waiting.n > 2 * n->waits + HOLES)
        close_up(n);
    w->waits = true;
    w->at = n->waiting.n;
    w->event = e;
    w->due = now + HOLD_MS;
    if (!n->each && w->told && w->told + SANDBOX_MS > w->due)
        w->due = w->told + SANDBOX_MS;
    *ARR_PUSH(&n->waiting) = w;
    int64_t due = due_at(n, w);
    if (!n->waits++ || due < n->next)
        n->next = due;
}

static bool quiet(enum sb_agent a)
{
    return a == AG_IDLE || a == AG_EXITED;
}

static bool busy(enum sb_agent a)
{
    return a == AG_WORKING || a == AG_ASKS;
}

/* Which event the change is, or none (NOTE_EVENTS_COUNT). */
static enum note_event event_of(const struct watched *w, const struct sandbox *s, bool ending)
{
    bool up = s->state == SB_RUNNING;
    if (s->state == SB_ERROR && w->state != SB_ERROR)
        return NOTE_ERROR;
    if (up && s->agent == AG_ASKS && w->agent != AG_ASKS)
        return NOTE_ASKS;
    if (up && quiet(s->agent) && busy(w->agent))
        return NOTE_FINISHED;
    return up && ending && !w->ending ? NOTE_ENDING : NOTE_EVENTS_COUNT;
}

/* What waits is no longer so. */
static bool over(const struct watched *w, const struct sandbox *s, bool ending)
{
    switch (w->event) {
    case NOTE_ASKS:
        return s->agent != AG_ASKS || s->state != SB_RUNNING;
    case NOTE_FINISHED:
        return !quiet(s->agent) || s->state != SB_RUNNING;
    case NOTE_ERROR:
        return s->state != SB_ERROR;
    default:
        return !ending || s->state != SB_RUNNING;
    }
}

static const char *word_of(enum sb_state state, enum sb_agent agent)
{
    return state == SB_RUNNING && agent != AG_NONE ? sb_agent_name(agent) : sb_state_name(state);
}

/* All rows are looked at in turn as a rule: the one behind the last one is tried first. */
static struct watched *watched_of(struct notify *n, uint64_t id)
{
    struct watched *w = n->behind < n->line.n ? n->line.v[n->behind] : NULL;
    if (!w || w->id != id)
        w = map_get_id(n->rows, id);
    if (!w) {
        w = xcalloc(1, sizeof(*w));
        w->id = id;
        w->nth = n->line.n;
        *ARR_PUSH(&n->line) = w;
        map_put_id(n->rows, id, w);
    }
    n->behind = w->nth + 1;
    return w;
}

void notify_look(struct notify *n, const struct sandbox *s, bool ending, int64_t now)
{
    struct watched *w = watched_of(n, s->id);
    enum note_event e = w->known ? event_of(w, s, ending) : NOTE_EVENTS_COUNT;
    if (w->waits && over(w, s, ending))
        unwait(n, w);
    if (e != NOTE_EVENTS_COUNT) {
        w->before = word_of(w->state, w->agent);
        w->now = e == NOTE_ENDING ? "about to end" : word_of(s->state, s->agent);
        let_wait(n, w, e, now);
    }
    w->known = true;
    w->state = s->state;
    w->agent = s->agent;
    w->ending = ending;
}

void notify_event(struct notify *n, enum note_event e, const char *name, const char *text,
                  int64_t now)
{
    struct watched *w = xcalloc(1, sizeof(*w));
    w->words = xcalloc(1, sizeof(*w->words));
    str_copy(w->words->name, sizeof(w->words->name), name);
    str_copy(w->words->last, sizeof(w->words->last), text);
    w->before = w->now = "";
    *ARR_PUSH(&n->others) = w;
    let_wait(n, w, e, now);
}

void notify_build(struct notify *n, const struct tbuild *before, const struct tbuild *b,
                  int64_t now)
{
    char what[160], text[300], all[340];

    if (!before || tb_is_over(before->state) || !tb_is_over(b->state))
        return;
    snprintf(what, sizeof(what), "the build of %s", b->name ? b->name : "a template");
    tbuild_text(b, text, sizeof(text));
    snprintf(all, sizeof(all), "%s%s%s", tb_state_name(b->state), *text ? ": " : "", text);
    notify_event(n, NOTE_BUILD, what, all, now);
}

/* --- telling ---------------------------------------------------------------------------------- */

static void drop_other(struct notify *n, struct watched *w)
{
    for (size_t i = 0; !w->id && i < n->others.n; i++)
        if (n->others.v[i] == w) {
            ARR_REMOVE(&n->others, i);
            free_watched(w);
            return;
        }
}

static void append(char *dst, size_t size, const char *s)
{
    size_t len = strlen(dst);
    str_copy(dst + len, size - len, s);
}

static const char *name_of(const struct watched *w, const struct sandbox *s)
{
    return !s ? w->words->name : s->name ? s->name : "a sandbox";
}

static const char *last_of(const struct watched *w, const struct sandbox *s)
{
    const char *last = !s ? w->words->last
                       : s->state == SB_ERROR && s->reason ? s->reason : s->last_line;
    return last ? last : "";
}

static void add_to(struct note *out, const struct watched *w, const struct sandbox *s)
{
    const char *name = name_of(w, s);
    if (out->count++ == 0) {
        out->event = w->event;
        out->sandbox = w->id;
        out->before = w->before;
        out->now = w->now;
        str_copy(out->name, sizeof(out->name), name);
        str_copy(out->body, sizeof(out->body), last_of(w, s));
        snprintf(out->title, sizeof(out->title), "%s %s", name, events[w->event].one);
    } else if (out->count == 2) {
        str_copy(out->body, sizeof(out->body), out->name);
        out->sandbox = 0;
    }
    if (out->count <= 16)
        out->ids[out->count - 1] = w->id;
    if (out->count > 1) {
        append(out->body, sizeof(out->body), ", ");
        append(out->body, sizeof(out->body), name);
    }
}

/* When something is due: of those that wait, which have closed up. */
static int64_t earliest(const struct notify *n)
{
    int64_t next = 0;
    for (size_t i = 0; i < n->waiting.n; i++) {
        int64_t due = due_at(n, n->waiting.v[i]);
        next = i == 0 || due < next ? due : next;
    }
    return next;
}

bool notify_next(struct notify *n, int64_t now,
                 const struct sandbox *(*row)(void *ctx, uint64_t sandbox), void *ctx,
                 struct note *out)
{
    memset(out, 0, sizeof(*out));
    if (!n->waits || now < n->next)
        return false;
    for (size_t i = 0; i < n->waiting.n && !(n->each && out->count); i++) {
        struct watched *w = n->waiting.v[i];
        if (!w || due_at(n, w) > now || (out->count && w->event != out->event))
            continue;
        unwait(n, w);
        const struct sandbox *s = w->id ? row(ctx, w->id) : NULL;
        if (!w->id || s) {
            add_to(out, w, s);
            w->told = now ? now : 1;
        }
        drop_other(n, w);
    }
    close_up(n);
    if (!out->count) {
        n->next = earliest(n);
        return false;
    }
    n->told[out->event] = now ? now : 1;
    if (out->count > 1) {
        snprintf(out->title, sizeof(out->title), "%zu %s", out->count,
                 events[out->event].several);
        out->before = out->now = "";
        out->name[0] = 0;
    }
    return true;
}

int64_t notify_wait(const struct notify *n, int64_t now)
{
    return !n->waits ? -1 : n->next > now ? n->next - now : 0;
}
