/* An entry of a transcript in words, for those who hear it: who, what, and how it ended; no sign
 * stands for anything. */
#include "cli_priv.h"

#include <cct/agent.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <string.h>

/* Lines from `from` on until `most` of them were added; how many are left out. */
static size_t add_lines(struct buf *b, const char *text, size_t most)
{
    size_t n = 0, left = 0;

    while (text && *text) {
        size_t len = strcspn(text, "\n");
        bool blank = strspn(text, " \t") >= len;

        if (!blank && n++ < most)
            buf_addf(b, "%s%.*s", b->len && b->p[b->len - 1] != ' ' ? "\n" : "", (int)len, text);
        else if (!blank)
            left++;
        text += len + (text[len] == '\n');
    }
    return left;
}

static size_t count_lines(const char *text)
{
    struct buf b = BUF_INIT;
    size_t n = add_lines(&b, text, 0);

    buf_release(&b);
    return n;
}

static const char *how_it_ended(const struct item *it)
{
    switch ((enum agent_tool_state)it->state) {
    case AGENT_TOOL_RUNNING:
        return "runs";
    case AGENT_TOOL_OK:
        return "done";
    case AGENT_TOOL_FAILED:
        return "failed";
    case AGENT_TOOL_DENIED:
        return "not allowed";
    default:
        return "its end is not known";
    }
}

static size_t add_tool(const struct item *it, size_t most, struct buf *b)
{
    size_t lines = it->streaming ? 0 : count_lines(it->text), left = 0;

    buf_addf(b, "%s, %s", it->who ? it->who : "tool", how_it_ended(it));
    if (!it->streaming && it->exit_code > 0)
        buf_addf(b, " with status %d", it->exit_code);
    if (it->title && *it->title)
        buf_addf(b, ": %s", it->title);
    if (most == SIZE_MAX)
        left = add_lines(b, it->text, most);
    else if (lines)
        buf_addf(b, " (%zu line%s of output)", lines, lines == 1 ? "" : "s");
    return left;
}

static const char *message_state(const struct item *it)
{
    return it->state == MSG_QUEUED        ? ", waiting its turn"
           : it->state == MSG_FAILED      ? ", not sent"
           : it->state == MSG_UNCONFIRMED ? ", nobody knows whether it came"
           : it->state == MSG_CANCELLED   ? ", taken back"
                                          : "";
}

bool cli_spoken(const struct item *it)
{
    switch (it->kind) {
    case ITEM_THINKING:
        return false;
    case ITEM_TURN_END:
        return it->state != AGENT_OK || (it->text && *it->text);
    case ITEM_TEXT:
    case ITEM_RAW:
        return it->text && it->text[strspn(it->text, " \t\n")];
    default:
        return true;
    }
}

size_t cli_spoken_text(const struct item *it, const char *who, size_t most, struct buf *b)
{
    switch (it->kind) {
    case ITEM_USER:
        buf_addf(b, "%s%s: ", it->who ? it->who : "you", message_state(it));
        break;
    case ITEM_TEXT:
        buf_addf(b, "%s: ", it->who && *it->who ? it->who : who);
        break;
    case ITEM_TOOL:
        return add_tool(it, most, b);
    case ITEM_ASK:
        if (it->state)
            buf_addf(b, "asked: %s Answered: %s", it->title ? it->title : "",
                     it->input && *it->input ? it->input : "by nobody");
        else
            buf_addf(b, "asks you: %s ", it->title ? it->title : "");
        return it->state ? 0 : add_lines(b, it->text, most);
    case ITEM_TURN_END:
        buf_addf(b, "the turn ended, %s. ", agent_outcome_name((enum agent_outcome)it->state));
        break;
    case ITEM_NOTICE:
        buf_addf(b, "%s: ", it->state == AGENT_ERROR ? "error"
                            : it->state == AGENT_WARN ? "warning"
                                                      : "note");
        break;
    case ITEM_SYSTEM:
    case ITEM_RAW:
    case ITEM_THINKING:
        break;
    }
    return add_lines(b, it->text, most);
}
