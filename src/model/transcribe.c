/* Agent events become what the output pane and the list show. Every text passes the
 * cleaner here, once. */
#include <cct/model/transcribe.h>

#include <cct/model/question.h>
#include <cct/text/clean.h>
#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { LAST_LINE_CELLS = 200, TITLE_CELLS = 240, DETAIL_LINES = 12 };

static void set_text(struct item *it, const char *s)
{
    if (!s)
        return;
    struct buf b = BUF_INIT;
    struct text_runs runs = {NULL, 0, 0};
    clean_text(s, strlen(s), &b, &runs);
    it->text = buf_detach(&b, &it->text_len);
    it->runs = runs.v;
    it->n_runs = runs.n;
}

static struct item *add_item(struct ev_items *out, const struct agent_event *e,
                             enum item_kind kind, enum item_op op)
{
    struct item *it = ev_items_add(out, op);
    it->kind = kind;
    it->offset = e->offset;
    it->index = e->index;
    it->time_ms = e->time_ms;
    it->exit_code = -1;
    if (e->id && kind != ITEM_NOTICE)
        it->id = clean_line_dup(e->id, 0);
    return it;
}

static void add_block(const struct agent_event *e, const char *who, enum item_kind kind,
                      struct ev_items *out)
{
    struct item *it = add_item(out, e, kind, e->mode == AGENT_APPEND ? ITEM_APPEND : ITEM_PUT);
    it->who = clean_line_dup(who, 64);
    set_text(it, e->text ? e->text : "");
    it->streaming = !e->final;
}

static void add_tool(const struct agent_event *e, struct ev_items *out)
{
    struct item *it = add_item(out, e, ITEM_TOOL, ITEM_PUT);
    if (e->name)
        it->who = clean_line_dup(e->name, 64);
    if (e->title)
        it->title = clean_line_dup(e->title, TITLE_CELLS);
    if (e->input)
        it->input = clean_text_dup(e->input, strlen(e->input));
    set_text(it, e->output);
    it->state = (int)e->state;
    it->exit_code = e->exit_code;
    it->streaming = e->state == AGENT_TOOL_RUNNING;
}

static void add_notice(const struct agent_event *e, struct ev_items *out)
{
    struct item *it = add_item(out, e, ITEM_NOTICE, ITEM_PUT);
    it->state = (int)e->level;
    if (e->retry_max > 0) {
        char *t = xasprintf("retry %d/%d in %.1f s: %s", e->retry_attempt, e->retry_max,
                            e->retry_delay_ms / 1000, e->text ? e->text : "");
        set_text(it, t);
        free(t);
    } else {
        set_text(it, e->text ? e->text : "");
    }
}

static const char *key_hint(const struct agent_event *e)
{
    switch (e->error_class) {
    case AGENT_ERR_AUTH:
        return "\ncheck the agent's provider key: it is missing, expired or of another "
               "account";
    case AGENT_ERR_BILLING:
        return "\nthe provider account has no credit left";
    case AGENT_ERR_MODEL:
        return "\nthe model is unknown to the provider: choose another one";
    case AGENT_ERR_NETWORK:
        return "\nthe agent could not reach its model: check the sandbox's network";
    default:
        return "";
    }
}

static void add_turn_end(const struct agent_event *e, struct ev_items *out)
{
    struct item *it = add_item(out, e, ITEM_TURN_END, ITEM_PUT);
    it->state = (int)e->outcome;
    it->exit_code = e->exit_code;
    if (e->outcome == AGENT_OK)
        return; /* its text is the answer, shown already */
    char *t = xasprintf("%s%s", e->text ? e->text : "", key_hint(e));
    set_text(it, t);
    free(t);
}

static void add_exit(const struct agent_event *e, const char *who, struct ev_items *out)
{
    struct item *it = add_item(out, e, ITEM_SYSTEM, ITEM_PUT);
    bool ok = e->exit_code == 0 && e->signal == 0;
    char *how = e->signal          ? xasprintf("was ended by signal %d", e->signal)
                : e->exit_code < 0 ? xstrdup("is gone, its exit status is not known")
                                   : xasprintf("ended with exit status %d", e->exit_code);
    const char *tail = !ok && e->text && *e->text ? e->text : NULL;
    char *t = xasprintf("%s %s%s%s", who, how, tail ? "\n" : "", tail ? tail : "");
    set_text(it, t);
    it->state = ok ? AGENT_INFO : AGENT_ERROR;
    free(it->id);
    it->id = xasprintf("exit-%llu-%u", (unsigned long long)e->offset, e->index);
    free(t);
    free(how);
}

/* The dialog shows the rest. */
static void cut_lines(char *text)
{
    size_t n = 0;
    for (char *p = text; p && *p; p++)
        if (*p == '\n' && ++n == DETAIL_LINES) {
            *p = 0;
            return;
        }
}

/* An end brings the answer alone, in `input`: what was asked is kept. */
static void add_ask(const struct agent_event *e, const char *who, struct ev_items *out)
{
    struct item *it = add_item(out, e, ITEM_ASK, ITEM_PUT);
    it->state = e->final;
    if (e->final) {
        it->input = clean_text_dup(e->text ? e->text : "", e->text ? strlen(e->text) : 0);
        return;
    }
    char **choices = question_choices(e->choices);
    char *line = question_choices_line(choices);
    char *detail = question_detail(e->name, e->title, e->input);
    cut_lines(detail);
    it->who = clean_line_dup(e->name ? e->name : who, 64);
    it->title = question_line(e->name, e->title);
    it->text = xasprintf("%s%s%s", detail ? detail : "", detail && *line ? "\n" : "", line);
    it->text_len = strlen(it->text);
    free(detail);
    free(line);
    str_list_free(choices);
}

void transcribe(const struct agent_event *e, const char *who, struct ev_items *out)
{
    if (e->role)
        who = e->role;
    switch (e->kind) {
    case AGENT_TEXT:
        add_block(e, who, ITEM_TEXT, out);
        break;
    case AGENT_THINKING:
        add_block(e, who, ITEM_THINKING, out);
        break;
    case AGENT_TOOL:
        add_tool(e, out);
        break;
    case AGENT_USER_ECHO: {
        struct item *it = add_item(out, e, ITEM_USER, ITEM_PUT);
        it->who = e->name ? clean_line_dup(e->name, 64) : xstrdup("you");
        set_text(it, e->text ? e->text : "");
        it->state = MSG_DELIVERED;
        if (!it->id)
            it->id = xasprintf("echo-%llu-%u", (unsigned long long)e->offset, e->index);
        break;
    }
    case AGENT_ASK:
        add_ask(e, who, out);
        break;
    case AGENT_NOTICE:
        add_notice(e, out);
        break;
    case AGENT_TURN_END:
        add_turn_end(e, out);
        break;
    case AGENT_EXIT:
        add_exit(e, who, out);
        break;
    case AGENT_RAW: {
        struct item *it = add_item(out, e, ITEM_RAW, ITEM_PUT);
        set_text(it, e->text ? e->text : "");
        it->streaming = !e->final;
        break;
    }
    case AGENT_SESSION:
    case AGENT_TURN_BEGIN:
    case AGENT_USAGE:
    case AGENT_KIND_COUNT:
        break;
    }
}

bool transcribe_agent_state(const struct agent_event *e, enum sb_agent *agent)
{
    enum sb_agent a = *agent;
    switch (e->kind) {
    case AGENT_TURN_BEGIN:
    case AGENT_USER_ECHO:
        a = AG_WORKING;
        break;
    case AGENT_TEXT:
    case AGENT_THINKING:
    case AGENT_TOOL:
        if (a == AG_STARTING || a == AG_UNKNOWN || a == AG_ASKS)
            a = AG_WORKING;
        break;
    case AGENT_ASK:
        a = !e->final ? AG_ASKS : a == AG_ASKS ? AG_WORKING : a;
        break;
    case AGENT_TURN_END:
        a = AG_IDLE;
        break;
    case AGENT_EXIT:
        a = e->exit_code == 0 && e->signal == 0 ? AG_EXITED : AG_FAILED;
        break;
    default:
        break;
    }
    if (a == *agent)
        return false;
    *agent = a;
    return true;
}

/* Last line of a text that is not blank. */
static char *tail_line(const char *s)
{
    size_t end = strlen(s);
    while (end > 0) {
        size_t start = end;
        while (start > 0 && s[start - 1] != '\n')
            start--;
        if (strspn(s + start, " \t\r\n") < end - start) {
            struct buf b = BUF_INIT;
            clean_line(s + start, end - start, &b, LAST_LINE_CELLS);
            char *line = buf_detach(&b, NULL);
            if (*str_trim(line))
                return line;
            free(line);
        }
        end = start > 0 ? start - 1 : 0;
    }
    return NULL;
}

static char *ask_line(const struct agent_event *e)
{
    char **choices = question_choices(e->choices);
    char *what = question_choices_line(choices), *question = question_line(e->name, e->title);
    char *text = xasprintf("%s%s%s", question, *what ? " " : "", what);
    char *line = clean_line_dup(text, LAST_LINE_CELLS);
    free(text);
    free(question);
    free(what);
    str_list_free(choices);
    return line;
}

char *transcribe_last_line(const struct agent_event *e)
{
    switch (e->kind) {
    case AGENT_TEXT:
        return e->mode == AGENT_REPLACE && e->text ? tail_line(e->text) : NULL;
    case AGENT_RAW:
        return e->text ? tail_line(e->text) : NULL;
    case AGENT_TOOL:
        if (e->output && *e->output)
            return tail_line(e->output);
        if (e->title)
            return clean_line_dup(e->title, LAST_LINE_CELLS);
        return NULL;
    case AGENT_ASK:
        return e->final ? NULL : ask_line(e);
    case AGENT_NOTICE:
        return e->text ? tail_line(e->text) : NULL;
    case AGENT_TURN_END:
        return e->outcome != AGENT_OK && e->text ? tail_line(e->text) : NULL;
    case AGENT_EXIT:
        return e->exit_code != 0 && e->text ? tail_line(e->text) : NULL;
    default:
        return NULL;
    }
}
