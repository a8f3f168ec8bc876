/* Script lines of what agents say and ask, of messages and what becomes of them. */
#include "screenscript.h"

#include <cct/agent/decode.h>
#include <cct/model/transcribe.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* agent ID {json of a common event} */
static void agent(struct script *s, char *line)
{
    struct ev_items *ev = ev_new(EV_ITEMS);
    struct agent_event e;
    ev->sandbox = (uint64_t)strtoll(script_word(&line), NULL, 10);
    const struct sandbox *r = model_sandbox(s->app->model, ev->sandbox);
    if (agent_event_from_json(&e, line, strlen(line), NULL) || !r)
        script_bad(s, line);
    transcribe(&e, r->tool, ev);
    agent_event_release(&e);
    script_post(s, ev);
}

/* lines ID N TEXT */
static void text_lines(struct script *s, char *line)
{
    uint64_t id = (uint64_t)strtoll(script_word(&line), NULL, 10);
    int n = (int)strtoll(script_word(&line), NULL, 10);
    const struct sandbox *r = model_sandbox(s->app->model, id);
    for (int i = 1; r && i <= n; i++) {
        struct ev_items *ev = ev_new(EV_ITEMS);
        struct agent_event e = {.kind = AGENT_RAW, .final = true, .offset = s->offset++};
        ev->sandbox = id;
        e.text = xasprintf("%s %d", line, i);
        transcribe(&e, r->tool, ev);
        free(e.text);
        script_post(s, ev);
    }
}

/* asks ID [since AGO_S [words] QID QUESTION [// DETAIL] [| CHOICE]...]: all that is open; a
 * line without a question: nothing is. One more by "and" instead of "asks". */
static void some_asks(struct script *s, char *line, bool more)
{
    struct ev_asks *ev = ev_new(EV_ASKS);
    struct question *q;
    char *part, *labels = NULL, *detail;
    ev->sandbox = (uint64_t)strtoll(script_word(&line), NULL, 10);
    const struct model *m = s->app->model;
    for (size_t i = 0; more && i < m->n_asks; i++)
        if (m->asks[i].sandbox == ev->sandbox) {
            ev->v = xrealloc(ev->v, (ev->n + 1) * sizeof(*ev->v));
            question_copy(&ev->v[ev->n++], &m->asks[i]);
        }
    if (*line) {
        ev->v = xrealloc(ev->v, (ev->n + 1) * sizeof(*ev->v));
        q = memset(&ev->v[ev->n++], 0, sizeof(*q));
        q->sandbox = ev->sandbox;
        q->since = s->now - strtoll(script_word(&line), NULL, 10) * 1000;
        q->words = !strncmp(line, "words ", 6);
        if (q->words)
            script_word(&line);
        q->id = xstrdup(script_word(&line));
        for (part = strstr(line, " | "); part; part = strstr(part + 1, " | ")) {
            char *next = xasprintf("%s%s%s", labels ? labels : "", labels ? "\n" : "", part + 3);
            next[strlen(next) - strlen(part + 3) + strcspn(part + 3, "|")] = 0;
            free(labels);
            labels = str_trim(next);
        }
        line[strcspn(line, "|")] = 0;
        detail = strstr(line, " // ");
        if (detail) {
            *detail = 0;
            q->detail = xstrdup(str_trim(detail + 4));
            for (char *p = q->detail; *p; p++)
                *p = *p == '\\' ? '\n' : *p;
        }
        q->question = xstrdup(str_trim(line));
        q->choices = question_choices(labels);
        free(labels);
    }
    script_post(s, ev);
}

static void asks_line(struct script *s, char *line)
{
    some_asks(s, line, false);
}

static void and_line(struct script *s, char *line)
{
    some_asks(s, line, true);
}

/* answered ID QID TEXT */
static void answered_line(struct script *s, char *line)
{
    struct ev_asks *ev = ev_new(EV_ASKS);
    const struct model *m = s->app->model;
    ev->sandbox = (uint64_t)strtoll(script_word(&line), NULL, 10);
    const char *id = script_word(&line);
    for (size_t i = 0; i < m->n_asks; i++) {
        if (m->asks[i].sandbox != ev->sandbox)
            continue;
        ev->v = xrealloc(ev->v, (ev->n + 1) * sizeof(*ev->v));
        question_copy(&ev->v[ev->n++], &m->asks[i]);
        if (!strcmp(m->asks[i].id, id))
            ev->v[ev->n - 1].answer = xstrdup(line);
    }
    script_post(s, ev);
}

/* hits whole|part NAME WHO TEXT | NAME WHO TEXT ...; <match> in the text */
static void hits_line(struct script *s, char *line)
{
    struct ev_hits *ev = ev_new(EV_HITS);
    char *save = NULL;
    ev->m.req_id = s->app->next;
    ev->complete = !strcmp(script_word(&line), "whole");
    ev->v = xcalloc(16, sizeof(*ev->v));
    for (char *one = strtok_r(line, "|", &save); one && ev->n < 16;
         one = strtok_r(NULL, "|", &save)) {
        struct found *f = &ev->v[ev->n++];
        one += *one == ' ';
        f->id = 100 - ev->n;
        f->sandbox = 1;
        f->time_ms = s->ui.now;
        f->name = xstrdup(script_word(&one));
        f->who = xstrdup(script_word(&one));
        f->text = xstrdup(one);
        for (char *c = f->text; *c; c++)
            *c = (char)(*c == '<' ? 2 : *c == '>' ? 3 : *c);
    }
    script_post(s, ev);
}

static void message_line(struct script *s, char *line)
{
    struct ev_message *ev = ev_new(EV_MESSAGE);
    ev->msg.id = (uint64_t)strtoll(script_word(&line), NULL, 10);
    ev->msg.sandbox = (uint64_t)strtoll(script_word(&line), NULL, 10);
    ev->msg.state = (enum msg_state)msg_state_parse(script_word(&line));
    ev->msg.text = xstrdup(line);
    if (s->ui_open)
        ui_observe(&s->ui, &ev->m);
    script_post(s, ev);
}

/* receipts SANDBOX MESSAGE|! NAME [WHY], with '|' between: of the broadcast asked for last */
static void receipts_line(struct script *s, char *line)
{
    struct ev_broadcast *ev = ev_new(EV_BROADCAST);
    char *save = NULL;
    ev->m.req_id = s->app->next;
    ev->v = xcalloc(16, sizeof(*ev->v));
    for (char *one = strtok_r(line, "|", &save); one && ev->n < 16;
         one = strtok_r(NULL, "|", &save)) {
        struct receipt *r = &ev->v[ev->n++];
        one += *one == ' ';
        r->sandbox = (uint64_t)strtoll(script_word(&one), NULL, 10);
        const char *id = script_word(&one);
        r->message = *id == '!' ? 0 : (uint64_t)strtoll(id, NULL, 10);
        r->name = xstrdup(script_word(&one));
        r->error = *id == '!' ? xstrdup(one) : NULL;
    }
    ui_observe(&s->ui, &ev->m);
    script_post(s, ev);
}

static void event_line(struct script *s, char *line)
{
    struct ev_event *ev = ev_new(EV_EVENT);
    ev->level = (int)strtoll(script_word(&line), NULL, 10);
    ev->sandbox = (uint64_t)strtoll(script_word(&line), NULL, 10);
    ev->time_ms = s->now;
    ev->text = xstrdup(line);
    script_post(s, ev);
}

/* budget TEXT: one is used up */
static void budget_line(struct script *s, char *text)
{
    struct ev_event *ev = ev_new(EV_EVENT);
    ev->level = 2;
    ev->budget = true;
    ev->text = xstrdup(text);
    script_post(s, ev);
}

const struct script_verb script_talk_verbs[] = {
    {"agent", agent}, {"lines", text_lines}, {"asks", asks_line}, {"and", and_line},
    {"answered", answered_line}, {"hits", hits_line}, {"message", message_line},
    {"receipts", receipts_line}, {"event", event_line}, {"budget", budget_line}, {NULL, NULL}};
