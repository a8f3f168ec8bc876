/* Claude Code's questions: may a tool be used, and the model's own AskUserQuestion. Both
 * come as a control request and are answered by one line, which the CLI repeats on its
 * stdout when it has taken it in: that, the tool's result, its own word or the end of the
 * turn ends the question. */
#include "claude_priv.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define YES "yes"
#define NO "no"
#define ALWAYS "yes, and do not ask again for "
/* What the model reads as the reason of a plain no. */
#define REFUSED "The user does not allow this."

/* --- what may be answered --------------------------------------------------------- */

/* The model's own questions with options; NULL for a permission. */
static const struct cJSON *questions_of(const char *tool, const struct cJSON *input)
{
    const struct cJSON *q = json_get(input, "questions");

    return str_eq(tool, "AskUserQuestion") && json_is_array(q) && json_first(q) ? q : NULL;
}

/* Asked anew each time, whatever was said before. */
static bool no_rule_for(const char *tool)
{
    return !tool || str_eq(tool, "ExitPlanMode") || str_eq(tool, "EnterPlanMode") ||
           str_eq(tool, "AskUserQuestion");
}

/* A label stands on one line. */
static void add_label(struct buf *b, const char *label)
{
    if (b->len)
        buf_addc(b, '\n');
    for (; *label; label++)
        buf_addc(b, *label == '\n' || *label == '\r' ? ' ' : *label);
}

static void add_choices(struct buf *b, const char *tool, const struct cJSON *questions)
{
    char *always;

    if (!questions) {
        add_label(b, YES);
        if (!no_rule_for(tool)) {
            always = xasprintf(ALWAYS "%s", tool);
            add_label(b, always);
            free(always);
        }
        add_label(b, NO);
    } else if (!json_next(json_first(questions))) { /* several cannot be one choice */
        for (const struct cJSON *o = json_first(json_get(json_first(questions), "options")); o;
             o = json_next(o))
            add_label(b, json_str(o, "label", ""));
    }
}

static char *title_of(const struct cJSON *request, const struct cJSON *questions)
{
    const char *text = json_str(json_first(questions), "question", NULL);
    size_t n = 0;
    char *title;

    if (!text)
        return agent_calls_title(json_get(request, "input"),
                                 json_str(request, "description", NULL));
    for (const struct cJSON *q = json_first(questions); q; q = json_next(q))
        n++;
    title = n > 1 ? xasprintf("%s (and %zu more)", text, n - 1) : xstrdup(text);
    title[strcspn(title, "\r\n")] = 0;
    return title;
}

/* --- open and closed -------------------------------------------------------------- */

void claude_ask(struct claude *c, struct agent_dec *d, const struct cJSON *j)
{
    const struct cJSON *r = json_get(j, "request"), *input = json_get(r, "input"), *questions;
    const char *id = json_str(j, "request_id", NULL), *tool = json_str(r, "tool_name", NULL);
    const char *call = json_str(r, "tool_use_id", NULL);
    struct agent_event ev = AGENT_EVENT(AGENT_ASK);
    struct buf choices = BUF_INIT;

    if (!id || !str_eq(json_str(r, "subtype", NULL), "can_use_tool"))
        return;
    agent_asks_close(&c->asks, d, id, NULL);
    if (!agent_asks_open(&c->asks, d, id, call))
        return;
    questions = questions_of(tool, input);
    add_choices(&choices, tool, questions);
    ev.id = (char *)id;
    ev.name = (char *)tool;
    ev.title = title_of(r, questions);
    ev.input = json_text(input);
    ev.choices = choices.len ? (char *)buf_str(&choices) : NULL;
    agent_dec_emit(d, &ev);
    free(ev.title);
    free(ev.input);
    buf_release(&choices);
}

void claude_ask_cancel(struct claude *c, struct agent_dec *d, const struct cJSON *j)
{
    agent_asks_close(&c->asks, d, json_str(j, "request_id", NULL), NULL);
}

/* The words of an answer, as its choice was called, or what was typed. New string. */
static char *answer_words(const struct cJSON *answer)
{
    const struct cJSON *answers = json_path(answer, "updatedInput.answers"), *rule;
    const char *text = json_str(answer, "message", "");
    struct buf b = BUF_INIT;

    if (!str_eq(json_str(answer, "behavior", NULL), "allow"))
        return xstrdup(str_eq(text, REFUSED) || !*text ? NO : text);
    for (const struct cJSON *a = json_first(answers); a; a = json_next(a)) {
        if (b.len)
            buf_addc(&b, '\n');
        buf_adds(&b, json_str_of(a) ? json_str_of(a) : "");
    }
    if (b.len)
        return buf_detach(&b, NULL);
    rule = json_first(json_get(json_first(json_get(answer, "updatedPermissions")), "rules"));
    text = json_str(rule, "toolName", NULL);
    return text ? xasprintf(ALWAYS "%s", text) : xstrdup(YES);
}

void claude_ask_answered(struct claude *c, struct agent_dec *d, const struct cJSON *response)
{
    const char *id = json_str(response, "request_id", NULL);
    char *how = answer_words(json_get(response, "response"));

    agent_asks_close(&c->asks, d, id, how);
    free(how);
}

/* --- answering -------------------------------------------------------------------- */

/* "2" or, where several may be chosen, "1, 3" as labels; else what was typed. */
static void add_reply(struct buf *out, const struct cJSON *question, const char *text,
                      size_t len)
{
    bool several = json_bool(question, "multiSelect", false);
    struct buf labels = BUF_INIT;
    size_t i = 0, picked = 0;

    while (i < len) {
        const struct cJSON *o = json_first(json_get(question, "options"));
        unsigned n = 0;

        if (strchr(", \t", text[i])) {
            i++;
            continue;
        }
        for (; i < len && text[i] >= '0' && text[i] <= '9' && n < 100; i++)
            n = n * 10 + (unsigned)(text[i] - '0');
        for (unsigned k = 1; o && k < n; k++)
            o = json_next(o);
        if (!n || !o || (i < len && !strchr(", \t", text[i])) || (picked && !several)) {
            picked = 0;
            break;
        }
        buf_adds(&labels, picked++ ? ", " : "");
        buf_adds(&labels, json_str(o, "label", ""));
    }
    if (picked)
        buf_add_json(out, labels.p, labels.len);
    else
        buf_add_json(out, text, len);
    buf_release(&labels);
}

/* One answer a line; on one line ';' parts them. */
static int add_replies(struct buf *out, const struct cJSON *questions, const char *text,
                       struct err *e)
{
    size_t n = 0, done = 0;
    const char *ends = strchr(text, '\n') ? "\n" : ";";

    for (const struct cJSON *q = json_first(questions); q; q = json_next(q))
        n++;
    for (const struct cJSON *q = json_first(questions); q; q = json_next(q), done++) {
        size_t len = n == 1 ? strlen(text) : strcspn(text, ends), end = len;
        const char *name = json_str(q, "question", "");

        while (len && strchr(" \t\r\n", text[len - 1]))
            len--;
        if (!len)
            break;
        if (done)
            buf_addc(out, ',');
        buf_add_json(out, name, strlen(name));
        buf_addc(out, ':');
        add_reply(out, q, text, len);
        text += end;
        text += *text ? 1 : 0;
        text += strspn(text, " \t\r\n");
    }
    if (done == n && !*text)
        return 0;
    return err_set(e, ERR_INVALID,
                   "there are %zu questions: answer each on a line of its own (or with ';' "
                   "between), by the number of an option or in your own words",
                   n);
}

static int pick(const struct cJSON *question, int choice, const char **label, struct err *e)
{
    const struct cJSON *o = json_first(json_get(question, "options"));

    for (int i = 0; o && i < choice; i++)
        o = json_next(o);
    *label = json_str(o, "label", "");
    return o ? 0 : err_set(e, ERR_INVALID, "the question has no choice %d", choice + 1);
}

static int answer_questions(struct buf *out, const struct agent_answer *a,
                            const struct cJSON *input, const struct cJSON *questions,
                            struct err *e)
{
    char *text = json_text(input);
    const char *said = a->text ? a->text + strspn(a->text, " \t\r\n") : "";
    int rc = 0;

    if (a->choice >= 0 && json_next(json_first(questions)))
        rc = err_set(e, ERR_INVALID, "it is several questions: answer them in words");
    else if (a->choice >= 0)
        rc = pick(json_first(questions), a->choice, &said, e);
    text[strlen(text) - 1] = 0;
    buf_addf(out, "\"behavior\":\"allow\",\"updatedInput\":%s,\"answers\":{", text);
    if (rc == 0 && a->choice >= 0) {
        const char *name = json_str(json_first(questions), "question", "");

        buf_add_json(out, name, strlen(name));
        buf_addc(out, ':');
        buf_add_json(out, said, strlen(said));
    } else if (rc == 0) {
        rc = *said ? add_replies(out, questions, said, e)
                   : err_set(e, ERR_INVALID, "the answer is empty");
    }
    buf_adds(out, "}}");
    free(text);
    return rc;
}

static int answer_permission(struct buf *out, const struct agent_answer *a,
                             const struct cJSON *input, struct err *e)
{
    bool rule = !no_rule_for(a->tool);
    const char *why = a->text && *a->text ? a->text : REFUSED;
    char *text;

    if (a->choice < 0 && (!a->text || !*a->text))
        return err_set(e, ERR_INVALID, "the answer is empty");
    if (a->choice < 0 || a->choice == (rule ? 2 : 1)) { /* words alone say what to do instead */
        buf_adds(out, "\"behavior\":\"deny\",\"message\":");
        return buf_add_json(out, why, strlen(why));
    }
    if (a->choice > (rule ? 2 : 1))
        return err_set(e, ERR_INVALID, "the question has no choice %d", a->choice + 1);
    text = input ? json_text(input) : xstrdup("{}");
    buf_addf(out, "\"behavior\":\"allow\",\"updatedInput\":%s", text);
    free(text);
    if (a->choice == 1) {
        buf_adds(out,
                 ",\"updatedPermissions\":[{\"type\":\"addRules\",\"rules\":[{\"toolName\":");
        buf_add_json(out, a->tool, strlen(a->tool));
        buf_adds(out, "}],\"behavior\":\"allow\",\"destination\":\"session\"}]");
    }
    return 0;
}

int claude_answer(const struct agent_answer *a, struct buf *out, struct err *e)
{
    struct cJSON *input = agent_line_asked(a);
    const struct cJSON *questions = questions_of(a->tool, input);
    struct buf line = BUF_INIT;
    int rc;

    buf_adds(&line, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\","
                    "\"request_id\":");
    buf_add_json(&line, a->ask_id, strlen(a->ask_id));
    buf_adds(&line, ",\"response\":{");
    rc = questions ? answer_questions(&line, a, input, questions, e)
                   : answer_permission(&line, a, json_is_object(input) ? input : NULL, e);
    buf_adds(&line, "}}}\n");
    if (rc == 0 && line.len > LIM_LINE_BYTES)
        rc = err_set(e, ERR_LIMIT, "the answer is too long");
    if (rc == 0)
        rc = buf_add(out, line.p, line.len);
    buf_release(&line);
    json_free(input);
    return rc;
}
