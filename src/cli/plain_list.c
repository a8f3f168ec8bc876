/* Sandboxes, questions and events, read aloud: numbered, the state first. */
#include "plain_priv.h"

#include <cct/model/filter.h>
#include <cct/model/pair.h>
#include <cct/model/sort.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 10, SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR };

const char *plain_name(const struct sandbox *s)
{
    return s->name && *s->name ? s->name : s->sandbox_id ? s->sandbox_id : "a new sandbox";
}

void plain_span(char *dst, size_t size, int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *word;
    } units[] = {{DAY, "day"}, {HOUR, "hour"}, {MINUTE, "minute"}, {SECOND, "second"}};
    size_t i = 0;

    ms = ms < 0 ? 0 : ms;
    while (i < 3 && ms < 2 * units[i].ms) /* 90 minutes say more than one hour */
        i++;
    snprintf(dst, size, "%lld %s%s", (long long)(ms / units[i].ms), units[i].word,
             ms / units[i].ms == 1 ? "" : "s");
}

static void add_count(struct buf *b, size_t n, const char *one, const char *several)
{
    if (n)
        buf_addf(b, "%s%zu %s", b->len ? ", " : "", n, n == 1 ? one : several);
}

void plain_counts(struct plain *p, char *dst, size_t size)
{
    const struct model *m = app_model(p->app);
    size_t by[SB_STATE_COUNT], asks, working, idle, up = 0;
    struct buf b = BUF_INIT;

    model_counts(m, by, &asks, &working, &idle);
    for (int s = 0; s < SB_STATE_COUNT; s++)
        up += s == SB_KILLED ? 0 : by[s];
    add_count(&b, asks, "asks you", "ask you");
    add_count(&b, working, "works", "work");
    add_count(&b, idle, "is idle", "are idle");
    add_count(&b, by[SB_CREATING], "is being made", "are being made");
    add_count(&b, by[SB_PAUSED], "is paused", "are paused");
    add_count(&b, by[SB_ERROR], "failed", "failed");
    if (up)
        snprintf(dst, size, "%zu sandbox%s%s%s.", up, up == 1 ? "" : "es", b.len ? ": " : "",
                 buf_str(&b));
    else
        str_copy(dst, size, "No sandbox is up.");
    buf_release(&b);
}

/* --- the list ----------------------------------------------------------------------- */

static const char *state_of(const struct sandbox *s, char *room, size_t size)
{
    if (s->unlisted)
        return "not in the service's list";
    if (s->odd)
        return s->odd;
    if (s->pair && s->state == SB_RUNNING) {
        pair_doing(s->pair, room, size);
        return room;
    }
    return s->state == SB_RUNNING && s->agent != AG_NONE ? sb_agent_name(s->agent)
                                                         : sb_state_name(s->state);
}

static void say_row(struct plain *p, size_t number, const struct sandbox *s)
{
    const struct question *q = model_ask(app_model(p->app), s->id);
    struct buf b = BUF_INIT;
    char room[64], left[32];

    buf_addf(&b, "%zu. %s: %s", number, state_of(s, room, sizeof(room)), plain_name(s));
    if (s->tool && *s->tool)
        buf_addf(&b, ", %s", s->tool);
    if (s->foreign)
        buf_adds(&b, ", not made here");
    if (s->protect)
        buf_adds(&b, ", protected");
    if (s->state == SB_RUNNING && s->end_at > plain_now(p)) {
        plain_span(left, sizeof(left), s->end_at - plain_now(p));
        buf_addf(&b, ", %s left", left);
    }
    if (s->state == SB_ERROR)
        buf_addf(&b, ", %s", s->vm_up ? "and it still runs and bills" : "its machine is gone");
    if (s->state == SB_KILLED)
        buf_addf(&b, ", %s", sb_gone_text(s->gone));
    if (s->state == SB_ERROR && s->reason)
        buf_addf(&b, ". %s", s->reason);
    else if (q)
        buf_addf(&b, ". %s", q->question);
    else if (s->last_line && *s->last_line)
        buf_addf(&b, ". %s", s->last_line + strspn(s->last_line, " "));
    plain_say(p, "%s", buf_str(&b));
    buf_release(&b);
}

struct place {
    const struct sandbox *s;
    size_t nth;
    enum sort by;
};

/* Alike ones in the order in which they were made. */
static int before(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int c = sort_compare(x->by, false, x->s, y->s);

    return c ? c : x->nth < y->nth ? -1 : x->nth > y->nth;
}

static void forget_numbers(struct plain *p)
{
    for (size_t i = 0; i < p->numbers.n; i++)
        free(p->numbers.v[i]);
    ARR_CLEAR(&p->numbers);
}

/* How many, in *rows (the caller's). */
static size_t choose_rows(struct plain *p, bool all, struct place **rows)
{
    const struct model *m = app_model(p->app);
    struct place *v = *rows = xcalloc(m->n_sandboxes + 1, sizeof(*v));
    struct filter f;
    size_t n = 0;

    filter_parse(&f, p->filter ? p->filter : "");
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *s = &m->sandboxes[i];

        if (model_in_view(m, s) && (all || cli_is_up(s)) && filter_match(&f, s)) {
            v[n] = (struct place){s, n, (enum sort)p->sort};
            n++;
        }
    }
    qsort(v, n, sizeof(*v), before);
    return n;
}

void plain_do_list(struct plain *p, char *args)
{
    const struct model *m = app_model(p->app);
    struct place *rows;
    bool all = str_eq(args, "all");
    size_t n, elsewhere = model_elsewhere(m);

    if (*args && !all) {
        plain_say(p, "'list' is said alone, or as 'list all' for those that ended, too.");
        return;
    }
    n = choose_rows(p, all, &rows);
    forget_numbers(p);
    if (model_is_stale(m))
        plain_say(p, "The list cannot be had now; this is what was seen last.");
    if (p->filter)
        plain_say(p, "Only what has %s: %zu. 'filter' alone lists all again.", p->filter, n);
    else if (!n)
        plain_say(p, "No sandbox is up. 'new --tool TOOL --name NAME' makes one.");
    for (size_t i = 0; i < n; i++) {
        const struct sandbox *s = rows[i].s;

        *ARR_PUSH(&p->numbers) = xstrdup(s->sandbox_id ? s->sandbox_id : "");
        say_row(p, i + 1, s);
    }
    if (elsewhere)
        plain_say(p, "%zu of other projects: 'all projects' lists them, too.", elsewhere);
    free(rows);
}

void plain_do_filter(struct plain *p, char *args)
{
    str_set(&p->filter, *args ? args : NULL);
    plain_do_list(p, args + strlen(args));
}

void plain_do_sort(struct plain *p, char *args)
{
    int by = *args ? sort_parse(args) : SORT_DOING;

    if (by < 0) {
        plain_say(p, "There is no such order. 'help sort by' reads them.");
        return;
    }
    p->sort = by;
    plain_say(p, "The list is sorted: %s.", sort_help((enum sort)by));
}

/* --- questions and events ------------------------------------------------------------ */

void plain_do_asks(struct plain *p, char *args)
{
    const struct model *m = app_model(p->app);
    size_t n = 0;

    (void)args;
    for (size_t i = 0; i < m->n_asks; i++) {
        if (m->asks[i].answer)
            continue;
        n++;
        plain_say_question(p, &m->asks[i]);
        if (m->asks[i].detail)
            cli_out("%s\n", m->asks[i].detail);
    }
    if (!n)
        plain_say(p, "No agent asks you anything.");
}

void plain_do_events(struct plain *p, char *args)
{
    const struct model *m = app_model(p->app);
    int n = EVENTS;
    char at[16];

    if (!plain_count(p, args, 1, &n))
        return;
    if (!m->n_events)
        plain_say(p, "Nothing has happened yet.");
    for (size_t i = m->n_events > (size_t)n ? m->n_events - (size_t)n : 0; i < m->n_events; i++) {
        const struct model_event *ev = &m->events[i];
        const struct sandbox *s = ev->sandbox ? model_sandbox(m, ev->sandbox) : NULL;

        bool named = s && !str_starts(ev->text, plain_name(s));

        clock_format_hm(at, sizeof(at), ev->time_ms);
        plain_say(p, "%s, %s%s%s", at, named ? plain_name(s) : "", named ? ": " : "",
                  ev->text);
    }
}

void plain_do_hold(struct plain *p, char *args)
{
    if (*args && !str_eq(args, "on") && !str_eq(args, "off")) {
        plain_say(p, "'hold on' or 'hold off'.");
        return;
    }
    p->hold = !*args || str_eq(args, "on");
    plain_say(p, p->hold ? "News wait until you end a line; Enter alone reads them."
                         : "News are told as they come.");
}
