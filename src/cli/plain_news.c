/* What the line mode tells by itself: who asks, who has finished or failed, whose time is nearly
 * up, what is gone, builds that ended, budgets, the way to the service. Each once. */
#include "plain_priv.h"

#include <cct/util/clock.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MINUTE_MS = 60000 };

/* --- events as they come, before the model has them -------------------------------- */

/* What a command of the user does is told by the command. */
static void look_at_end(struct plain *p, const struct sandbox *now)
{
    const struct sandbox *before = model_sandbox(app_model(p->app), now->id);

    if (!before || before->state == SB_KILLED || (before->state == SB_ERROR && !before->vm_up))
        return; /* one that the list lacks may still turn out to be gone */
    if (now->state == SB_KILLED && !(p->running && now->gone == GONE_HERE))
        plain_tell(p, "%s is gone: %s.", plain_name(now), sb_gone_text(now->gone));
    else if (p->running)
        return;
    else if (now->state == SB_PAUSED && before->state == SB_RUNNING)
        plain_tell(p, "%s is paused.", plain_name(now));
    else if (now->state == SB_RUNNING && before->state == SB_CREATING)
        plain_tell(p, "%s runs.", plain_name(now));
}

static void rows_change(struct plain *p, const struct ev_sandboxes *ev)
{
    for (size_t i = 0; i < ev->n; i++) {
        *ARR_PUSH(&p->changed) = ev->v[i].id;
        if (p->greeted)
            look_at_end(p, &ev->v[i]);
    }
}

/* Trouble of the program itself; that of sandboxes is in their states. */
static void event_comes(struct plain *p, const struct ev_event *ev)
{
    if (ev->budget)
        notify_event(p->notify, NOTE_BUDGET, "a budget", ev->text ? ev->text : "", clock_mono_ms());
    else if (ev->level > 0 && !ev->sandbox && !str_eq(p->last_trouble, ev->text)) {
        str_set(&p->last_trouble, ev->text);
        plain_tell(p, "%s.", ev->text);
    }
}

void plain_news_observe(struct plain *p, const struct msg *ev)
{
    const struct ev_done *d = (const struct ev_done *)ev;
    const struct ev_builds *b = (const struct ev_builds *)ev;

    if (ev->type == EV_SANDBOXES)
        rows_change(p, (const struct ev_sandboxes *)ev);
    if (ev->type == EV_EVENT)
        event_comes(p, (const struct ev_event *)ev);
    for (size_t i = 0; ev->type == EV_BUILDS && i < b->n; i++)
        notify_build(p->notify, model_build(app_model(p->app), b->v[i].id), &b->v[i],
                     clock_mono_ms());
    if (ev->type == EV_DONE && !p->running && d->err.code && d->err.code != ERR_CANCELLED)
        plain_tell(p, "%s.", d->err.text);
}

/* --- questions -------------------------------------------------------------------- */

void plain_say_question(struct plain *p, const struct question *q)
{
    const struct sandbox *s = model_sandbox(app_model(p->app), q->sandbox);
    struct buf b = BUF_INIT;

    for (size_t i = 0; q->choices && q->choices[i]; i++)
        buf_addf(&b, "%s%zu %s", i ? ", " : " ", i + 1, q->choices[i]);
    if (q->words)
        buf_addf(&b, "%s your own words", q->choices ? ", or" : " Answer in");
    plain_tell(p, "%s asks you: %s%s", s ? plain_name(s) : "an agent", q->question, buf_str(&b));
    buf_release(&b);
}

static void tell_questions(struct plain *p)
{
    const struct model *m = app_model(p->app);

    if (p->seen_asks == m->asks_rev)
        return;
    p->seen_asks = m->asks_rev;
    for (size_t i = 0; i < m->n_asks; i++) {
        const struct question *q = &m->asks[i];
        char *key = xasprintf("%llu %s", (unsigned long long)q->sandbox, q->id);

        if (!q->answer && !map_put(p->told_asks, key, p))
            plain_say_question(p, q);
        free(key);
    }
}

/* --- notes ------------------------------------------------------------------------ */

static bool is_ending(const struct plain *p, const struct sandbox *s)
{
    return s->end_at && s->end_at - plain_now(p) <= p->c->config->o.warn_left * INT64_C(1000);
}

static void look(struct plain *p, int64_t now)
{
    const struct model *m = app_model(p->app);
    bool all = now - p->looked_at >= MINUTE_MS; /* time alone can bring an end near */

    for (size_t i = 0; all && i < m->n_sandboxes; i++)
        notify_look(p->notify, &m->sandboxes[i], is_ending(p, &m->sandboxes[i]), now);
    for (size_t i = 0; !all && i < p->changed.n; i++) {
        const struct sandbox *s = model_sandbox(m, p->changed.v[i]);
        if (s)
            notify_look(p->notify, s, is_ending(p, s), now);
    }
    ARR_CLEAR(&p->changed);
    if (all)
        p->looked_at = now;
}

static const struct sandbox *row(void *ctx, uint64_t sandbox)
{
    const struct plain *p = ctx;

    return model_sandbox(app_model(p->app), sandbox);
}

static void tell_note(struct plain *p, const struct note *n)
{
    const struct sandbox *s = model_sandbox(app_model(p->app), n->sandbox);
    const struct question *q = s ? model_ask(app_model(p->app), s->id) : NULL;
    const char *body = n->body + strspn(n->body, " ");
    char left[32];

    if (n->event == NOTE_ASKS && q)
        return; /* told with its words */
    if (n->event == NOTE_FINISHED && s && s->agent == AG_EXITED) {
        plain_tell(p, "%s: its agent has ended%s%s", n->name, *body ? ". " : ".", body);
    } else if (n->event == NOTE_ENDING && s) {
        plain_span(left, sizeof(left), s->end_at - plain_now(p));
        plain_tell(p, "%s ends in %s. 'timeout %s 1h' gives it an hour.", n->name, left, n->name);
    } else if (n->event == NOTE_FINISHED && s && plain_follows(p, s->id)) {
        plain_tell(p, "%s.", n->title); /* its words were read */
    } else {
        plain_tell(p, "%s%s%s", n->title, *body ? ": " : ".", body);
    }
}

/* --- the service, the vault --------------------------------------------------------- */

static bool is_bad(enum link_state s)
{
    return s == LINK_DOWN || s == LINK_AUTH || s == LINK_LIMITED;
}

static void tell_link(struct plain *p)
{
    const struct model *m = app_model(p->app);
    bool down = is_bad(m->link);

    if (p->seen_vault != m->vault_rev) {
        p->seen_vault = m->vault_rev;
        if (m->vault_locked && m->vault_passphrase && !m->vault_opening)
            plain_tell(p, "The stored keys are locked: %s. 'unlock' opens them.", m->vault_locked);
    }
    if (p->seen_link == m->link_rev)
        return;
    p->seen_link = m->link_rev;
    if (down && !str_eq(p->last_trouble, m->link_text)) {
        str_set(&p->last_trouble, m->link_text);
        plain_tell(p, "Trouble with the service: %s.", m->link_text ? m->link_text : "no answer");
    } else if (!down && p->link_down && m->link == LINK_OK) {
        plain_tell(p, "The service answers again.");
        str_set(&p->last_trouble, NULL);
    }
    if (down || m->link == LINK_OK)
        p->link_down = down;
}

/* Once, when it is known what there is. */
static bool greet(struct plain *p)
{
    const struct model *m = app_model(p->app);
    char counts[200];

    if (p->greeted)
        return true;
    if (!m->loaded || !(m->listed_at || is_bad(m->link)))
        return false;
    p->greeted = true;
    plain_counts(p, counts, sizeof(counts));
    plain_say(p, "cc-tui, project %s, %s. %s Type help for the words.",
              m->project ? m->project : "default", m->account ? m->account : "no account", counts);
    for (size_t i = 0; i < m->n_sandboxes; i++)
        notify_look(p->notify, &m->sandboxes[i], is_ending(p, &m->sandboxes[i]), clock_mono_ms());
    p->looked_at = clock_mono_ms();
    return true;
}

int plain_news(struct plain *p)
{
    int64_t now = clock_mono_ms(), wait, minute;
    struct note note;

    if (!greet(p))
        return -1;
    look(p, now);
    tell_link(p);
    tell_questions(p);
    while (notify_next(p->notify, now, row, p, &note))
        tell_note(p, &note);
    plain_read_news(p);
    wait = notify_wait(p->notify, now);
    minute = app_model(p->app)->n_sandboxes ? p->looked_at + MINUTE_MS - now : -1;
    return (int)(wait < 0 || (minute >= 0 && minute < wait) ? minute : wait);
}
