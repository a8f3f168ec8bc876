/* OpenCode's server. A driver in the sandbox stands between it and the session's files:
 *
 * out: one line of JSON per event of GET /event, as the server sends it
 *      ({"id","type","properties"}). Before anything else, and whenever it goes on with a
 *      session that exists, a session.created of its own making:
 *      {"type":"session.created","properties":{"info":{"id":"ses_..."}}}
 *      Requests that fail: {"type":"driver.error","properties":{"message":"...",
 *      "path":"/...","status":400}}.
 * in:  one line of JSON per request: {"method":"POST","path":"/...","body":{...}}, in which
 *      {session} stands for the session's id; the driver puts it in and posts the body.
 *
 * A session below the main one (of a subagent) is told by its own sessionID: what it says
 * has that as its parent, its turns are none. */
#include "opencode_priv.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define ABORT_IDLES 4 /* session.status and session.idle, twice */

static void *serve_new(void)
{
    return xcalloc(1, sizeof(struct opencode));
}

static void serve_free(void *state)
{
    struct opencode *o = state;

    opencode_reset_turn(o);
    agent_ids_clear(&o->users);
    agent_ids_clear(&o->echoed);
    agent_ids_clear(&o->thinking);
    agent_asks_clear(&o->asks);
    free(o->session);
    free(o);
}

static void begin_turn(struct opencode *o, struct agent_dec *d)
{
    if (!agent_line_begin_turn(d))
        return;
    opencode_reset_turn(o);
    o->works = false;
}

/* NULL for the main session's own; a decoder that begins later takes the first it meets. */
static const char *parent_of(struct opencode *o, const struct cJSON *p)
{
    const char *id = json_str(p, "sessionID", NULL);

    if (id && !o->session)
        o->session = xstrdup(id);
    return id && !str_eq(id, o->session) ? id : NULL;
}

/* --- messages and their parts --------------------------------------------------------- */

static void on_created(struct opencode *o, struct agent_dec *d, const struct cJSON *p)
{
    const struct cJSON *info = json_get(p, "info");
    const char *id = json_str(info, "id", json_str(p, "sessionID", NULL));
    struct agent_event ev = AGENT_EVENT(AGENT_SESSION);

    if (!id || json_str(info, "parentID", NULL))
        return;
    str_set(&o->session, id);
    ev.id = o->session;
    ev.title = (char *)json_str(info, "version", NULL);
    agent_dec_emit(d, &ev);
}

/* The user's message begins the turn: its parts, which come later, name only its id. An
 * update of an old one has a summary. */
static void on_message(struct opencode *o, struct agent_dec *d, const struct cJSON *p)
{
    const struct cJSON *info = json_get(p, "info");

    if (parent_of(o, p) || !str_eq(json_str(info, "role", NULL), "user") ||
        !agent_ids_add(&o->users, json_str(info, "id", NULL)) || json_get(info, "summary"))
        return;
    begin_turn(o, d);
}

static void on_user_part(struct opencode *o, struct agent_dec *d, const struct cJSON *part)
{
    struct agent_event ev = AGENT_EVENT(AGENT_USER_ECHO);

    if (!str_eq(json_str(part, "type", NULL), "text") || json_bool(part, "synthetic", false) ||
        !agent_ids_add(&o->echoed, json_str(part, "id", NULL)))
        return;
    ev.text = (char *)json_str(part, "text", "");
    agent_dec_emit(d, &ev);
}

static void on_text(struct opencode *o, struct agent_dec *d, const struct cJSON *part,
                    const char *parent, bool thinking)
{
    struct agent_event ev = AGENT_EVENT(thinking ? AGENT_THINKING : AGENT_TEXT);

    if (!agent_dec_busy(d))
        return; /* after an abort all that was streamed comes once more */
    ev.id = (char *)json_str(part, "id", NULL);
    if (thinking)
        agent_ids_add(&o->thinking, ev.id);
    ev.text = (char *)json_str(part, "text", "");
    ev.mode = AGENT_REPLACE;
    ev.final = json_get(json_get(part, "time"), "end") != NULL;
    ev.parent = (char *)parent;
    if ((ev.final || *ev.text) && !json_bool(part, "synthetic", false))
        agent_dec_emit(d, &ev);
}

static void on_part(struct opencode *o, struct agent_dec *d, const struct cJSON *p)
{
    const struct cJSON *part = json_get(p, "part");
    const char *type = json_str(part, "type", ""), *parent = parent_of(o, part);

    if (agent_ids_has(&o->users, json_str(part, "messageID", NULL)))
        on_user_part(o, d, part);
    else if (str_eq(type, "text") || str_eq(type, "reasoning"))
        on_text(o, d, part, parent, *type == 'r');
    else if (str_eq(type, "tool"))
        opencode_tool(o, d, part, parent);
    else if (str_eq(type, "step-finish"))
        opencode_step_finish(o, d, part, parent);
}

static void on_delta(struct opencode *o, struct agent_dec *d, const struct cJSON *p)
{
    const char *id = json_str(p, "partID", NULL);
    bool thinking = agent_ids_has(&o->thinking, id);
    struct agent_event ev = AGENT_EVENT(thinking ? AGENT_THINKING : AGENT_TEXT);

    ev.text = (char *)json_str(p, "delta", "");
    if (!str_eq(json_str(p, "field", NULL), "text") || !*ev.text)
        return;
    ev.id = (char *)id;
    ev.parent = (char *)parent_of(o, p);
    agent_dec_emit(d, &ev);
}

/* --- turns ------------------------------------------------------------------------------ */

/* Comes more than once: an aborted turn is idle as soon as it is aborted, and again, some
 * time later, when its last words are written down. A message may lie between the two, and
 * the second time is not the end of its turn. */
static void on_idle(struct opencode *o, struct agent_dec *d)
{
    bool late = o->owed > 0 && !o->works;

    if (o->owed)
        o->owed--;
    if (!agent_dec_busy(d) || (late && !o->error))
        return;
    o->owed = o->aborted ? ABORT_IDLES - 1 : 0;
    agent_asks_end(&o->asks, d);
    agent_calls_close(&o->calls, d);
    opencode_end_turn(o, d);
}

static void on_retry(struct agent_dec *d, const struct cJSON *status)
{
    struct agent_event ev = AGENT_EVENT(AGENT_NOTICE);
    char *words = agent_words(json_str(status, "message", "error"), &ev.http_status);

    /* how often it tries is not known */
    ev.text = xasprintf("try %d failed, it is tried again: %s",
                        agent_line_int(status, "attempt"), words);
    ev.level = AGENT_WARN;
    ev.error_class = agent_classify(ev.http_status, words);
    agent_dec_emit(d, &ev);
    free(ev.text);
    free(words);
}

static void on_status(struct opencode *o, struct agent_dec *d, const struct cJSON *p)
{
    const struct cJSON *status = json_get(p, "status");
    const char *type = json_str(status, "type", "");

    if (parent_of(o, p))
        return;
    if (str_eq(type, "busy")) {
        begin_turn(o, d);
        o->works = true;
        o->owed = 0;
    } else if (str_eq(type, "retry"))
        on_retry(d, status);
    else if (str_eq(type, "idle"))
        on_idle(o, d);
}

static void on_session_idle(struct opencode *o, struct agent_dec *d, const struct cJSON *p)
{
    if (!parent_of(o, p))
        on_idle(o, d);
}

static void on_session_error(struct opencode *o, struct agent_dec *d, const struct cJSON *p)
{
    if (parent_of(o, p))
        return;
    opencode_error(o, json_get(p, "error"));
    if (agent_dec_busy(d))
        return;
    if (!o->aborted) /* nothing was under way: no news, and no later turn's end */
        agent_line_notice(d, AGENT_WARN, o->error);
    opencode_reset_turn(o);
}

/* A request that was not taken: of a message nothing more will come. */
static void on_driver_error(struct opencode *o, struct agent_dec *d, const struct cJSON *p)
{
    const char *path = json_str(p, "path", "");
    char *text,
        *words = agent_words(json_str(p, "message", "the server refused a request"), NULL);

    if (str_ends(path, "/prompt_async") && !agent_dec_busy(d)) {
        begin_turn(o, d);
        o->error = words;
        o->http_status = agent_line_int(p, "status");
        o->cls = agent_classify(o->http_status, words);
        opencode_end_turn(o, d);
        return;
    }
    text = *path ? xasprintf("%s: %s", path, words) : xstrdup(words);
    agent_line_notice(d, AGENT_WARN, text);
    free(text);
    free(words);
}

/* --- questions ---------------------------------------------------------------------------- */

static void ask(struct opencode *o, struct agent_dec *d, const struct cJSON *p,
                const char *name, const char *title, const char *choices)
{
    struct agent_event ev = AGENT_EVENT(AGENT_ASK);

    ev.id = (char *)json_str(p, "id", NULL);
    if (!agent_asks_open(&o->asks, d, ev.id, NULL))
        return;
    ev.name = (char *)name;
    ev.title = title ? agent_calls_line(title) : NULL;
    ev.input = json_text(p);
    ev.choices = (char *)choices;
    ev.parent = (char *)parent_of(o, p);
    agent_dec_emit(d, &ev);
    free(ev.title);
    free(ev.input);
}

static void on_permission(struct opencode *o, struct agent_dec *d, const struct cJSON *p)
{
    const char *name = json_str(p, "permission", json_str(p, "type", "a tool"));
    char *title = agent_calls_title(json_get(p, "metadata"), json_str(p, "title", NULL));
    struct buf b = BUF_INIT;

    for (const struct cJSON *k = json_first(json_get(p, "patterns")); k && !title;
         k = json_next(k)) {
        buf_adds(&b, b.len ? ", " : "");
        buf_adds(&b, json_str_of(k) ? json_str_of(k) : "");
    }
    ask(o, d, p, name, title ? title : buf_str(&b), "yes\nyes, and do not ask again\nno");
    buf_release(&b);
    free(title);
}

/* The model's own questions; only one can be a choice. */
static void on_question(struct opencode *o, struct agent_dec *d, const struct cJSON *p)
{
    const struct cJSON *first = json_first(json_get(p, "questions"));
    struct buf b = BUF_INIT;

    for (const struct cJSON *k = json_first(json_get(first, "options")); k; k = json_next(k))
        agent_line_label(&b, json_str(k, "label", ""));
    if (first)
        ask(o, d, p, "question", json_str(first, "question", ""),
            b.len && !json_next(first) ? buf_str(&b) : NULL);
    buf_release(&b);
}

static void on_replied(struct opencode *o, struct agent_dec *d, const struct cJSON *p)
{
    const char *reply = json_str(p, "reply", json_str(p, "response", NULL));

    agent_asks_close(&o->asks, d, json_str(p, "requestID", json_str(p, "permissionID", NULL)),
                     str_eq(reply, "once")     ? "yes"
                     : str_eq(reply, "always") ? "yes, and do not ask again"
                     : str_eq(reply, "reject") ? "no"
                                               : NULL);
}

/* --- lines ------------------------------------------------------------------------------- */

static const struct {
    const char *type;
    void (*fn)(struct opencode *o, struct agent_dec *d, const struct cJSON *p);
} types[] = {
    {"message.part.delta", on_delta},      {"message.part.updated", on_part},
    {"message.updated", on_message},       {"session.status", on_status},
    {"session.idle", on_session_idle},     {"session.error", on_session_error},
    {"session.created", on_created},       {"permission.asked", on_permission},
    {"permission.updated", on_permission}, {"permission.replied", on_replied},
    {"question.asked", on_question},       {"question.replied", on_replied},
    {"question.rejected", on_replied},     {"driver.error", on_driver_error},
};

static void serve_line(void *state, struct agent_dec *d, const char *s, size_t len)
{
    struct cJSON *j = agent_line_json(d, s, len);
    const struct cJSON *p = json_get(j, "properties");
    const char *type = json_str(j, "type", "");

    agent_dec_set_time(d, agent_line_count(p, "time"));
    for (size_t i = 0; j && i < sizeof(types) / sizeof(types[0]); i++)
        if (str_eq(type, types[i].type))
            types[i].fn(state, d, p);
    json_free(j);
}

static void serve_end(void *state, struct agent_dec *d, int code, int sig,
                      const char *stderr_tail)
{
    struct opencode *o = state;

    agent_dec_place_exit(d);
    agent_asks_end(&o->asks, d);
    agent_calls_close(&o->calls, d);
    agent_end_error(d, code, sig, stderr_tail, o->error, o->http_status);
    opencode_reset_turn(o);
}

/* --- what goes in --------------------------------------------------------------------------
 */

static int serve_message(const char *text, size_t len, struct buf *out, struct err *e)
{
    return agent_line_message(
        "{\"method\":\"POST\",\"path\":\"/session/{session}/prompt_async\","
        "\"body\":{\"parts\":[{\"type\":\"text\",\"text\":",
        text, len, "}]}}", out, e);
}

static int serve_interrupt(const char *request_id, struct buf *out)
{
    (void)request_id;
    return buf_adds(out, "{\"method\":\"POST\",\"path\":\"/session/{session}/abort\","
                         "\"body\":{}}\n");
}

/* An id becomes part of a path. */
static bool plain_id(const char *id)
{
    return *id && strlen(id) < 200 &&
           strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               strlen(id);
}

static void request_begin(struct jw *w, struct buf *line, const char *what, const char *id,
                          const char *end)
{
    char *path = xasprintf("/%s/%s/%s", what, id, end);

    jw_init(w, line);
    jw_obj(w, NULL);
    jw_str(w, "method", "POST");
    jw_str(w, "path", path);
    jw_obj(w, "body");
    free(path);
}

static int answer_permission(const struct agent_answer *a, struct buf *line, struct err *e)
{
    static const char *const replies[] = {"once", "always", "reject"};
    bool words = a->choice < 0 && a->text && *a->text;
    struct jw w;

    if (a->choice > 2 || (a->choice < 0 && !words))
        return err_set(e, ERR_INVALID,
                       "a permission is given or not: choose 1, 2 or 3, or type "
                       "what the agent shall do instead");
    request_begin(&w, line, "permission", a->ask_id, "reply");
    jw_str(&w, "reply", words ? "reject" : replies[a->choice]);
    if (a->text && *a->text)
        jw_str(&w, "message", a->text);
    jw_end(&w);
    jw_end(&w);
    return 0;
}

/* One answer a line; the label of a choice is looked up. */
static int answer_question(const struct agent_answer *a, const struct cJSON *questions,
                           struct buf *line, struct err *e)
{
    const struct cJSON *q = json_first(questions), *o = json_first(json_get(q, "options"));
    const char *text = a->text ? a->text : "";
    struct jw w;

    for (int i = 0; i < a->choice && o; i++)
        o = json_next(o);
    if (a->choice >= 0 ? !o || json_next(q) != NULL : !text[strspn(text, " \t\r\n")])
        return err_set(e, ERR_INVALID,
                       "that is no answer to the question: choose one of its "
                       "answers, or type one line for each question");
    request_begin(&w, line, "question", a->ask_id, "reply");
    jw_arr(&w, "answers");
    for (; q; q = json_next(q)) {
        size_t n = json_next(q) ? strcspn(text, "\n") : strlen(text);

        jw_arr(&w, NULL);
        if (a->choice >= 0)
            jw_str(&w, NULL, json_str(o, "label", ""));
        else if (n)
            jw_strn(&w, NULL, text, n);
        jw_end(&w);
        text += n + (text[n] == '\n');
    }
    jw_end(&w);
    jw_end(&w);
    jw_end(&w);
    return 0;
}

static int serve_answer(const struct agent_answer *a, struct buf *out, struct err *e)
{
    struct cJSON *asked = agent_line_asked(a);
    const struct cJSON *questions = json_get(asked, "questions");
    struct buf line = BUF_INIT;
    int rc;

    if (!plain_id(a->ask_id) || (a->text && strlen(a->text) > LIM_MESSAGE_BYTES))
        rc = err_set(e, ERR_INVALID,
                     "the question cannot be answered: its id or the answer is "
                     "not what the agent takes");
    else
        rc = json_is_array(questions) ? answer_question(a, questions, &line, e)
                                      : answer_permission(a, &line, e);
    if (rc == 0) {
        buf_addc(&line, '\n');
        rc = buf_add(out, line.p, line.len);
    }
    buf_release(&line);
    json_free(asked);
    return rc;
}

const struct agent_adapter agent_opencode_serve = {
    .name = "opencode-serve",
    .mode = AGENT_PERSISTENT,
    .echoes = true,
    .pty = false,
    .state_new = serve_new,
    .state_free = serve_free,
    .line = serve_line,
    .end = serve_end,
    .encode_message = serve_message,
    .encode_interrupt = serve_interrupt,
    .encode_answer = serve_answer,
};
