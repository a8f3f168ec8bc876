/* The model: applying events on the main thread. */
#include <cct/model/model.h>

#include <cct/model/filter.h>
#include <cct/model/ledger.h>
#include <cct/util/arr.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

enum { MAX_EVENTS = 500, MAX_MESSAGES = 2000, MAX_BROADCASTS = 20,
       MAX_REST_BYTES = 1 << 20 /* of transcripts that nobody looks at */ };

struct model *model_new(void)
{
    struct model *m = xcalloc(1, sizeof(*m));
    m->priv = xcalloc(1, sizeof(*m->priv));
    m->priv->index = map_new();
    m->priv->transcripts = map_new();
    m->priv->procs = map_new();
    m->priv->asks = map_new();
    m->total_running = -1;
    return m;
}

static void free_transcript(void *p)
{
    transcript_release(p);
    free(p);
}

static void free_procs(void *p)
{
    procs_release(p);
    free(p);
}

static void broadcast_release(struct broadcast *b)
{
    for (size_t i = 0; i < b->n; i++)
        receipt_release(&b->v[i]);
    free(b->v);
    memset(b, 0, sizeof(*b));
}

static void free_projects(struct project *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        project_release(&v[i]);
    free(v);
}

static void free_builds(struct model *m)
{
    for (size_t i = 0; i < m->n_builds; i++)
        tbuild_release(&m->builds[i]);
    free(m->builds);
}

void model_free(struct model *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_sandboxes; i++)
        sandbox_release(&m->sandboxes[i]);
    for (size_t i = 0; i < m->n_events; i++)
        free(m->events[i].text);
    for (size_t i = 0; i < m->n_messages; i++)
        message_release(&m->messages[i]);
    while (m->n_broadcasts)
        broadcast_release(&m->broadcasts[--m->n_broadcasts]);
    free(m->broadcasts);
    free(m->sandboxes);
    free(m->events);
    for (size_t i = 0; i < m->n_asks; i++)
        question_release(&m->asks[i]);
    free(m->messages);
    free(m->asks);
    free(m->link_text);
    free(m->account);
    free(m->project);
    free(m->vault_locked);
    free_projects(m->projects, m->n_projects);
    saved_filters_free(m->filters, m->n_filters);
    if (m->kill)
        msg_free(&m->kill->m);
    ledger_report_free(m->usage);
    free_builds(m);
    if (m->hits)
        msg_free(&m->hits->m);
    map_free(m->priv->index, NULL);
    map_free(m->priv->transcripts, free_transcript);
    ARR_RELEASE(&m->priv->rest);
    map_free(m->priv->procs, free_procs);
    map_free(m->priv->asks, NULL);
    free(m->priv);
    free(m);
}

const struct transcript *model_transcript(const struct model *m, uint64_t sandbox)
{
    return map_get_id(m->priv->transcripts, sandbox);
}

const struct procs *model_procs(const struct model *m, uint64_t sandbox)
{
    return map_get_id(m->priv->procs, sandbox);
}

const struct message *model_message(const struct model *m, uint64_t id)
{
    for (size_t i = m->n_messages; i-- > 0;)
        if (m->messages[i].id == id)
            return &m->messages[i];
    return NULL;
}

const struct broadcast *model_broadcast(const struct model *m, uint64_t req_id)
{
    for (size_t i = m->n_broadcasts; i-- > 0;)
        if (m->broadcasts[i].req_id == req_id)
            return &m->broadcasts[i];
    return NULL;
}

const struct question *model_ask(const struct model *m, uint64_t sandbox)
{
    const struct question *answered = NULL;
    for (size_t i = 0; i < m->n_asks; i++) {
        if (m->asks[i].sandbox != sandbox)
            continue;
        if (!m->asks[i].answer)
            return &m->asks[i];
        if (!answered)
            answered = &m->asks[i];
    }
    return answered;
}

bool model_asks_known(const struct model *m, uint64_t sandbox)
{
    return map_get_id(m->priv->asks, sandbox) != NULL;
}

static void drop_asks(struct model *m, uint64_t sandbox)
{
    size_t keep = 0;
    for (size_t i = 0; i < m->n_asks; i++) {
        if (m->asks[i].sandbox == sandbox)
            question_release(&m->asks[i]);
        else
            m->asks[keep++] = m->asks[i];
    }
    m->n_asks = keep;
    map_del_id(m->priv->asks, sandbox);
}

static void drop_transcript(struct model *m, uint64_t sandbox)
{
    struct transcript *t = map_del_id(m->priv->transcripts, sandbox);
    if (!t)
        return;
    if (t->rev > m->priv->gone_rev)
        m->priv->gone_rev = t->rev;
    if (t->item_rev > m->priv->gone_item_rev)
        m->priv->gone_item_rev = t->item_rev;
    free_transcript(t);
}

/* All that is known of a sandbox but its row, which is about to go. */
void model_forget(struct model *m, uint64_t sandbox)
{
    struct procs *p = map_del_id(m->priv->procs, sandbox);
    drop_transcript(m, sandbox);
    if (p)
        free_procs(p);
    drop_asks(m, sandbox);
}

static void wake(struct model *m, uint64_t sandbox)
{
    for (size_t i = m->priv->rest.n; i-- > 0;)
        if (m->priv->rest.v[i] == sandbox)
            ARR_REMOVE(&m->priv->rest, i);
}

/* Who comes back soon finds it at once; the store has them all. */
static void rest(struct model *m, uint64_t sandbox)
{
    size_t bytes = 0;
    wake(m, sandbox);
    *ARR_PUSH(&m->priv->rest) = sandbox;
    for (size_t i = m->priv->rest.n; i-- > 0;) {
        const struct transcript *t = model_transcript(m, m->priv->rest.v[i]);
        bytes += t ? t->bytes + t->n * sizeof(*t->v) : 0;
        if (t && bytes <= MAX_REST_BYTES)
            continue;
        drop_transcript(m, m->priv->rest.v[i]);
        ARR_REMOVE(&m->priv->rest, i);
    }
}

static void apply_items(struct model *m, struct ev_items *ev)
{
    struct transcript *t = map_get_id(m->priv->transcripts, ev->sandbox);
    if (ev->unshown) {
        rest(m, ev->sandbox);
        return;
    }
    if (ev->reset)
        wake(m, ev->sandbox);
    if (!t) {
        t = xcalloc(1, sizeof(*t));
        transcript_init(t);
        t->rev = m->priv->gone_rev;
        t->item_rev = m->priv->gone_item_rev;
        t->resets = (uint32_t)t->rev; /* a view of the one before does not take it for that */
        map_put_id(m->priv->transcripts, ev->sandbox, t);
    }
    transcript_apply(t, ev);
}

static void apply_message(struct model *m, struct ev_message *ev)
{
    struct message *to = NULL;
    for (size_t i = m->n_messages; !to && i-- > 0;)
        if (m->messages[i].id == ev->msg.id)
            to = &m->messages[i];
    if (to) {
        message_release(to);
    } else {
        if (m->n_messages == MAX_MESSAGES) {
            message_release(&m->messages[0]);
            memmove(m->messages, m->messages + 1, (MAX_MESSAGES - 1) * sizeof(*m->messages));
            m->n_messages--;
        }
        m->messages = xrealloc(m->messages, (m->n_messages + 1) * sizeof(*m->messages));
        to = &m->messages[m->n_messages++];
    }
    *to = ev->msg;
    memset(&ev->msg, 0, sizeof(ev->msg));
    m->messages_rev++;
}

static void apply_broadcast(struct model *m, struct ev_broadcast *ev)
{
    if (m->n_broadcasts == MAX_BROADCASTS) {
        broadcast_release(&m->broadcasts[0]);
        memmove(m->broadcasts, m->broadcasts + 1,
                (MAX_BROADCASTS - 1) * sizeof(*m->broadcasts));
        m->n_broadcasts--;
    }
    if (!m->broadcasts)
        m->broadcasts = xcalloc(MAX_BROADCASTS, sizeof(*m->broadcasts));
    m->broadcasts[m->n_broadcasts++] = (struct broadcast){ev->m.req_id, ev->v, ev->n};
    ev->v = NULL;
    ev->n = 0;
    m->messages_rev++;
}

static void apply_link(struct model *m, struct ev_link *ev)
{
    m->link = ev->state;
    str_set(&m->link_text, ev->text);
    if (ev->account)
        str_set(&m->account, ev->account);
    m->local = ev->local;
    m->unsafe = ev->unsafe;
    m->clock = ev->clock;
    m->listed_at = ev->listed_at;
    m->total_running = ev->total_running;
    m->link_rev++;
}

static void apply_event(struct model *m, struct ev_event *ev)
{
    if (!m->events)
        m->events = xcalloc(MAX_EVENTS, sizeof(*m->events));
    if (m->n_events == MAX_EVENTS) {
        free(m->events[0].text);
        memmove(m->events, m->events + 1, (MAX_EVENTS - 1) * sizeof(*m->events));
        m->n_events--;
    }
    struct model_event *e = &m->events[m->n_events++];
    e->time_ms = ev->time_ms;
    e->level = ev->level;
    e->sandbox = ev->sandbox;
    e->text = ev->text;
    ev->text = NULL;
    m->events_rev++;
}

static void apply_procs(struct model *m, struct ev_procs *ev)
{
    struct procs *p = map_get_id(m->priv->procs, ev->sandbox);
    if (!p) {
        p = xcalloc(1, sizeof(*p));
        map_put_id(m->priv->procs, ev->sandbox, p);
    }
    uint64_t rev = p->rev;
    procs_release(p);
    *p = ev->p;
    p->rev = rev + 1;
    memset(&ev->p, 0, sizeof(ev->p));
    m->procs_rev++;
}

static void apply_usage(struct model *m, struct ev_usage *ev)
{
    ledger_report_free(m->usage);
    m->usage = ev->report;
    ev->report = NULL;
    m->usage_rev++;
    if (ev->m.req_id)
        m->usage_asked++;
    else
        m->figures_rev++;
}

static void apply_projects(struct model *m, struct ev_projects *ev)
{
    free_projects(m->projects, m->n_projects);
    saved_filters_free(m->filters, m->n_filters);
    m->filters = ev->filters;
    m->n_filters = ev->n_filters;
    ev->filters = NULL;
    ev->n_filters = 0;
    m->projects = ev->v;
    m->n_projects = ev->n;
    m->project_at = ev->current;
    m->project_by_folder = ev->by_folder;
    ev->v = NULL;
    ev->n = 0;
    if (ev->current < m->n_projects)
        str_set(&m->project, m->projects[ev->current].name);
    m->projects_rev++;
    model_rows_view(m);
}

static void apply_vault(struct model *m, struct ev_vault *ev)
{
    free(m->vault_locked);
    m->vault_locked = ev->locked;
    ev->locked = NULL;
    m->vault_passphrase = ev->passphrase;
    m->vault_opening = ev->opening;
    m->vault_rev++;
}

static void apply_view(struct model *m, const struct ev_view *ev)
{
    m->all_projects = ev->all;
    m->projects_rev++;
    model_rows_view(m);
}

static void apply_asks(struct model *m, struct ev_asks *ev)
{
    static char known;
    drop_asks(m, ev->sandbox);
    map_put_id(m->priv->asks, ev->sandbox, &known);
    if (ev->n)
        m->asks = xrealloc(m->asks, (m->n_asks + ev->n) * sizeof(*m->asks));
    for (size_t i = 0; i < ev->n; i++) {
        size_t at = m->n_asks++;
        while (at > 0 && m->asks[at - 1].since > ev->v[i].since) {
            m->asks[at] = m->asks[at - 1];
            at--;
        }
        m->asks[at] = ev->v[i];
    }
    ev->n = 0;
    m->asks_rev++;
}

/* The event's memory becomes the model's: it is large and only the newest counts. */
static void apply_hits(struct model *m, struct ev_hits *ev)
{
    struct ev_hits *k = ev_new(EV_HITS);
    struct msg head = k->m;
    *k = *ev;
    k->m = head;
    k->m.req_id = ev->m.req_id;
    ev->v = NULL;
    ev->n = 0;
    if (m->hits)
        msg_free(&m->hits->m);
    m->hits = k;
    m->hits_rev++;
}

static void apply_kill(struct model *m, struct ev_kill *ev)
{
    struct ev_kill *k = ev_new(EV_KILL);
    struct msg head = k->m;
    *k = *ev;
    k->m = head;
    ev->project = ev->account = ev->text = NULL;
    ev->v = ev->newcomers = NULL;
    ev->n = ev->n_newcomers = 0;
    if (m->kill)
        msg_free(&m->kill->m);
    m->kill = k;
    m->kill_rev++;
}

static void apply_builds(struct model *m, struct ev_builds *ev)
{
    free_builds(m);
    m->builds = ev->v;
    m->n_builds = ev->n;
    ev->v = NULL;
    ev->n = 0;
    m->builds_rev++;
}

const struct tbuild *model_build(const struct model *m, uint64_t id)
{
    for (size_t i = 0; i < m->n_builds; i++)
        if (m->builds[i].id == id)
            return &m->builds[i];
    return NULL;
}

void model_apply(struct model *m, struct msg *ev)
{
    THREAD_ASSERT(THREAD_MAIN);
    struct msg *e = ev; /* payloads move into the model: the event is left empty */
    uint64_t figures = m->figures_rev;
    switch (e->type) {
    case EV_SANDBOXES:
        model_rows_apply(m, (struct ev_sandboxes *)e);
        break;
    case EV_ITEMS:
        apply_items(m, (struct ev_items *)e);
        break;
    case EV_MESSAGE:
        apply_message(m, (struct ev_message *)e);
        break;
    case EV_LINK:
        apply_link(m, (struct ev_link *)e);
        break;
    case EV_EVENT:
        apply_event(m, (struct ev_event *)e);
        break;
    case EV_KILL:
        apply_kill(m, (struct ev_kill *)e);
        break;
    case EV_PROCS:
        apply_procs(m, (struct ev_procs *)e);
        break;
    case EV_BROADCAST:
        apply_broadcast(m, (struct ev_broadcast *)e);
        break;
    case EV_HITS:
        apply_hits(m, (struct ev_hits *)e);
        break;
    case EV_USAGE:
        apply_usage(m, (struct ev_usage *)e);
        break;
    case EV_BUILDS:
        apply_builds(m, (struct ev_builds *)e);
        break;
    case EV_PROJECTS:
        apply_projects(m, (struct ev_projects *)e);
        break;
    case EV_VIEW:
        apply_view(m, (struct ev_view *)e);
        break;
    case EV_ASKS:
        apply_asks(m, (struct ev_asks *)e);
        break;
    case EV_VAULT:
        apply_vault(m, (struct ev_vault *)e);
        break;
    case EV_LOADED:
        m->loaded = true;
        m->sandboxes_rev++;
        break;
    default:
        return;
    }
    m->rev += figures == m->figures_rev;
}

const struct project *model_project(const struct model *m)
{
    return m->project_at < m->n_projects ? &m->projects[m->project_at] : NULL;
}

bool model_is_stale(const struct model *m)
{
    return m->link == LINK_DOWN || m->link == LINK_AUTH || m->link == LINK_LIMITED;
}
