/* See sessionbed.h. */
#include "sessionbed.h"

#include <cct/model/agent_event.h>
#include <cct/secrets/secret.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct localbed *session_local;
char *session_db;

bool sessionbed_begin(void)
{
    struct err e = {0};

    cmocka_set_test_filter(getenv("CCT_ONLY"));
    if (secrets_init(&e) != 0)
        die("%s", e.text);
    session_local = localbed_new();
    return session_local != NULL;
}

int sessionbed_none(const char *what)
{
    printf("1..1\nok 1 - %s # SKIP the local provider cannot be started here\n", what);
    return 0;
}

int sessionbed_end(int rc)
{
    localbed_free(session_local);
    return rc;
}

/* --- looking at the model -------------------------------------------------------- */

const struct item *look_item(const struct look *l, enum item_kind kind, const char *text)
{
    const struct transcript *t = model_transcript(l->b->model, l->row);

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].kind == kind && t->v[i].text && strstr(t->v[i].text, text))
            return &t->v[i];
    return NULL;
}

int look_count(const struct look *l, enum item_kind kind, const char *text)
{
    const struct transcript *t = model_transcript(l->b->model, l->row);
    int n = 0;

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].kind == kind && t->v[i].text && strstr(t->v[i].text, text))
            n++;
    return n;
}

bool look_text(void *ctx)
{
    struct look *l = ctx;

    return look_item(l, ITEM_TEXT, l->text) || look_item(l, ITEM_RAW, l->text) ||
           look_item(l, ITEM_TOOL, l->text);
}

static bool agent_is(void *ctx)
{
    struct look *l = ctx;
    const struct sandbox *r = model_sandbox(l->b->model, l->row);

    return r && (int)r->agent == l->what;
}

static bool message_is(void *ctx)
{
    struct look *l = ctx;

    for (size_t i = 0; i < l->b->model->n_messages; i++)
        if (l->b->model->messages[i].id == (uint64_t)l->n)
            return (int)l->b->model->messages[i].state == l->what;
    return false;
}

bool wait_agent(struct jobsbed *b, uint64_t row, enum sb_agent a)
{
    struct look l = {.b = b, .row = row, .what = (int)a};

    return jobsbed_wait(b, agent_is, &l, LONG_MS);
}

static bool state_is(void *ctx)
{
    struct look *l = ctx;
    const struct sandbox *r = model_sandbox(l->b->model, l->row);

    return r && (int)r->state == l->what;
}

bool wait_state(struct jobsbed *b, uint64_t row, enum sb_state st)
{
    struct look l = {.b = b, .row = row, .what = (int)st};

    return jobsbed_wait(b, state_is, &l, LONG_MS);
}

bool wait_message(struct jobsbed *b, uint64_t id, enum msg_state st)
{
    struct look l = {.b = b, .n = (int)id, .what = (int)st};

    return jobsbed_wait(b, message_is, &l, LONG_MS);
}

bool wait_text(struct jobsbed *b, uint64_t row, const char *text)
{
    struct look l = {.b = b, .row = row, .text = text};

    return jobsbed_wait(b, look_text, &l, LONG_MS);
}

/* --- doing things on the net thread ---------------------------------------------- */

void do_show(void *ctx)
{
    struct act *a = ctx;

    session_show(session_of(&a->b->j, a->row), true);
}

void do_follow(void *ctx)
{
    struct act *a = ctx;

    session_follow(session_of(&a->b->j, a->row));
}

void do_interrupt(void *ctx)
{
    struct act *a = ctx;

    session_interrupt(session_of(&a->b->j, a->row), a->req);
}

void do_restart(void *ctx)
{
    struct act *a = ctx;

    session_restart(session_of(&a->b->j, a->row), NULL, a->req);
}

void do_raw(void *ctx)
{
    struct act *a = ctx;

    session_raw(session_of(&a->b->j, a->row), a->req, a->from, a->follow);
}

void do_raw_end(void *ctx)
{
    struct act *a = ctx;

    session_logs_end(session_of(&a->b->j, a->row), a->req);
}

void act(struct jobsbed *b, void (*fn)(void *ctx), uint64_t row, uint64_t req)
{
    struct act a = {.b = b, .row = row, .req = req};

    jobsbed_run(b, fn, &a);
}

struct jobsbed *open_bed(const char *owner)
{
    struct e2b_account a;
    struct jobsbed *b;

    localbed_account(session_local, &a);
    b = jobsbed_new(session_db, owner, &a);
    e2b_account_release(&a);
    return b;
}

uint64_t start(struct jobsbed *b, const char *tool, const char *command,
                      const char *prompt)
{
    struct jobsbed_start q = {.tool = tool, .command = command, .prompt = prompt};
    struct err e = {0};
    uint64_t row = jobsbed_create(b, &q, &e);

    if (!row)
        fail_msg("%s", e.text);
    act(b, do_show, row, 0);
    return row;
}

int new_db(void **state)
{
    static int n;

    (void)state;
    session_db = xasprintf("%s/db%d", session_local->root, ++n);
    return 0;
}

int drop_db(void **state)
{
    (void)state;
    free(session_db);
    return 0;
}

bool look_tool(void *ctx)
{
    struct look *l = ctx;

    return look_item(l, ITEM_TOOL, l->text) != NULL;
}
