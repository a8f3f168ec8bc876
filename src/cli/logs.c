/* cc-tui logs: what an agent put out, as text, as events, or as its exact bytes. */
#include "cli_priv.h"

#include <cct/agent.h>
#include <cct/model/transcribe.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct out {
    const char *who; /* the agent's tool */
    bool open_line;  /* a piece of a line was printed last */
    char *tool;      /* call whose heading was printed last, or NULL */
    struct buf part; /* of a text that is not whole yet */
    char *part_id;   /* which text that is */
};

static void put_bytes(void *ctx, const char *data, size_t len)
{
    (void)ctx;
    cli_out_bytes(data, len); /* --raw: as it is */
}

static void put_json(void *ctx, const char *data, size_t len)
{
    (void)ctx;
    cli_out_json_part(data, len);
}

static void end_line(struct out *o)
{
    if (o->open_line)
        cli_out("\n");
    o->open_line = false;
}

static void put_block(struct out *o, const char *lead, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    while (n > 0 && text[n - 1] == '\n')
        n--;
    end_line(o);
    cli_out("%s%s%.*s\n", lead, *lead && n ? " " : "", (int)n, text ? text : "");
}

/* A call is announced when it begins, its output comes when it is done. */
static void put_tool(struct out *o, const struct item *it)
{
    char lead[160];
    if (!o->tool || !str_eq(o->tool, it->id)) {
        snprintf(lead, sizeof(lead), "[%s]", it->who ? it->who : "tool");
        put_block(o, lead, it->title);
        free(o->tool);
        o->tool = xstrdup(it->id);
    }
    if (!it->streaming && it->text && *it->text)
        put_block(o, "", it->text);
}

static void put_item(struct out *o, const struct item *it)
{
    switch (it->kind) {
    case ITEM_USER:
        put_block(o, ">", it->text);
        break;
    case ITEM_TEXT:
        put_block(o, "", it->text);
        break;
    case ITEM_TOOL:
        put_tool(o, it);
        break;
    case ITEM_RAW:
        cli_out("%s", it->text ? it->text : "");
        o->open_line = it->streaming;
        if (!it->streaming)
            cli_out("\n");
        break;
    case ITEM_ASK:
        if (it->state && it->input && *it->input)
            put_block(o, "  answered:", it->input);
        else if (!it->state)
            put_block(o, "?", it->title ? it->title : it->text);
        break;
    case ITEM_TURN_END:
        if (it->text && *it->text)
            put_block(o, "!", it->text);
        else if (it->state != AGENT_OK)
            put_block(o, "--", agent_outcome_name((enum agent_outcome)it->state));
        break;
    case ITEM_NOTICE:
    case ITEM_SYSTEM:
        put_block(o, "--", it->text);
        break;
    case ITEM_THINKING:
        break; /* with --json */
    }
}

/* Deltas are kept until the whole text comes; when it does not, they are all there is. */
static void put_part(struct out *o)
{
    if (o->part.len)
        put_block(o, "", buf_str(&o->part));
    buf_clear(&o->part);
}

static void add_part(struct out *o, const struct item *it)
{
    if (!str_eq(o->part_id, it->id)) {
        put_part(o);
        free(o->part_id);
        o->part_id = it->id ? xstrdup(it->id) : NULL;
    }
    buf_adds(&o->part, it->text ? it->text : "");
}

static void take_part(struct out *o, const struct ev_items *items, size_t i)
{
    const struct item *it = &items->v[i];

    if (it->kind == ITEM_TEXT && it->streaming && items->op[i] == ITEM_APPEND)
        add_part(o, it);
    else if (it->kind == ITEM_TEXT)
        buf_clear(&o->part);
    else if (it->kind == ITEM_SYSTEM || it->kind == ITEM_TURN_END)
        put_part(o); /* not at a message: it may be said while its answer is written */
}

/* Blocks that grow are printed once they are whole. */
static void put_event(void *ctx, const char *json, size_t len)
{
    struct out *o = ctx;
    struct agent_event ev;

    if (agent_event_from_json(&ev, json, len, NULL) != 0)
        return;
    struct ev_items *items = ev_new(EV_ITEMS);
    transcribe(&ev, o->who, items);
    for (size_t i = 0; i < items->n; i++) {
        const struct item *it = &items->v[i];

        take_part(o, items, i);
        if (items->op[i] == ITEM_PUT &&
            (!it->streaming || it->kind == ITEM_RAW || it->kind == ITEM_TOOL))
            put_item(o, it);
    }
    msg_free(&items->m);
    agent_event_release(&ev);
}

/* Events come as lines of JSON, several at a time. */
static void put_events(void *ctx, const char *json, size_t len)
{
    cli_each_line(json, len, put_event, ctx);
}

int cli_logs(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK;
    bool follow = cli_has(c, CLI_FOLLOW), raw = cli_has(c, CLI_RAW);

    if (cli_has(c, CLI_SYSTEM) && raw)
        return cli_usage("'logs --system' has no raw bytes, but --json");
    if (cli_has(c, CLI_SYSTEM))
        return cli_system_logs(c);
    if (raw && cli_json(c))
        return cli_usage("'logs' prints raw bytes or JSON, not both");
    const struct sandbox *s = cli_app_begin(&a, c, c->args[0], &status);
    if (!s)
        return status;
    char *tool = xstrdup(s->tool ? s->tool : "agent");
    struct out o = {.who = tool};
    uint64_t id = s->id;
    app_follow(a.app, id);
    uint64_t req =
        raw ? app_raw(a.app, id, 0, follow, put_bytes, NULL)
            : app_events(a.app, id, follow, cli_json(c) ? put_json : put_events, &o);
    if (cli_app_wait(&a, req, &e) != 0)
        status = cli_app_fail(&a, &e);
    put_part(&o);
    end_line(&o);
    cli_app_close(&a);
    free(tool);
    free(o.tool);
    free(o.part_id);
    buf_release(&o.part);
    return status;
}
