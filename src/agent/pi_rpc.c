/* Pi's rpc mode: what it answers to commands, what its extensions ask the user, and the
 * lines that go in. */
#include "pi_priv.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* --- answers to commands ------------------------------------------------------------- */

static void on_state(struct agent_dec *d, const struct cJSON *data)
{
    struct agent_event ev = AGENT_EVENT(AGENT_SESSION);

    ev.id = (char *)json_str(data, "sessionId", NULL);
    ev.name = (char *)json_str(json_get(data, "model"), "id", NULL);
    if (ev.id)
        agent_dec_emit(d, &ev);
}

void pi_response(struct pi *p, struct agent_dec *d, const struct cJSON *j)
{
    const char *command = json_str(j, "command", "");
    const struct cJSON *data = json_get(j, "data");
    char *words, *text;

    if (json_bool(j, "success", false)) {
        if (str_eq(command, "get_state") || str_eq(command, "get_session_stats"))
            on_state(d, data);
        if (str_eq(json_str(data, "disposition", NULL), "handled") && !agent_dec_busy(d)) {
            pi_begin_turn(p, d); /* a command of an extension: there is nothing more to come */
            pi_end_turn(p, d, false);
        }
        return;
    }
    words = agent_words(json_str(j, "error", "no reason given"), NULL);
    if (str_eq(command, "prompt") && !agent_dec_busy(d)) { /* all that comes of a message */
        pi_begin_turn(p, d);
        p->stop = xstrdup("error");
        p->error = words;
        pi_end_turn(p, d, false);
        return;
    }
    text = xasprintf("the agent refused \"%s\": %s", command, words);
    agent_line_notice(d, AGENT_WARN, text);
    free(text);
    free(words);
}

/* --- questions of extensions ----------------------------------------------------------- */

static char *choices_of(const char *method, const struct cJSON *j)
{
    struct buf b = BUF_INIT;

    if (str_eq(method, "confirm"))
        return xstrdup("Yes\nNo");
    if (!str_eq(method, "select"))
        return NULL;
    for (const struct cJSON *k = json_first(json_get(j, "options")); k; k = json_next(k))
        agent_line_label(&b, json_is_string(k) ? json_str_of(k) : json_str(k, "label", ""));
    return buf_detach(&b, NULL);
}

static void ask(struct pi *p, struct agent_dec *d, const char *method, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_ASK);
    const char *title = json_str(j, "title", ""), *message = json_str(j, "message", NULL);
    char *whole = message ? xasprintf("%s: %s", title, message) : xstrdup(title);

    ev.id = (char *)json_str(j, "id", NULL);
    if (agent_asks_open(&p->asks, d, ev.id, NULL)) {
        ev.title = agent_calls_line(whole);
        ev.name = (char *)"pi";
        ev.input = json_text(j);
        ev.choices = choices_of(method, j);
        agent_dec_emit(d, &ev);
        free(ev.title);
        free(ev.input);
        free(ev.choices);
    }
    free(whole);
}

void pi_ui_request(struct pi *p, struct agent_dec *d, const struct cJSON *j)
{
    static const char *const asking[] = {"select", "confirm", "input", "editor"};
    const char *method = json_str(j, "method", ""), *kind = json_str(j, "notifyType", "info");

    for (size_t i = 0; i < sizeof(asking) / sizeof(asking[0]); i++)
        if (str_eq(method, asking[i]))
            ask(p, d, method, j);
    if (str_eq(method, "notify"))
        agent_line_notice(d,
                          str_eq(kind, "error")     ? AGENT_ERROR
                          : str_eq(kind, "warning") ? AGENT_WARN
                                                    : AGENT_INFO,
                          json_str(j, "message", ""));
}

/* --- what goes in ------------------------------------------------------------------------ */

int pi_message(const char *text, size_t len, struct buf *out, struct err *e)
{
    /* in the middle of a turn it waits for the end; without the word it would be refused */
    return agent_line_message("{\"id\":\"prompt\",\"type\":\"prompt\",\"message\":", text, len,
                              ",\"streamingBehavior\":\"followUp\"}", out, e);
}

int pi_steer(const char *text, size_t len, struct buf *out, struct err *e)
{
    return agent_line_message("{\"id\":\"steer\",\"type\":\"steer\",\"message\":", text, len,
                              "}", out, e);
}

int pi_interrupt(const char *request_id, struct buf *out)
{
    struct buf line = BUF_INIT;
    int rc;

    buf_adds(&line, "{\"id\":");
    buf_add_json(&line, request_id, strlen(request_id));
    buf_adds(&line, ",\"type\":\"abort\"}\n");
    rc = buf_add(out, line.p, line.len);
    buf_release(&line);
    return rc;
}

/* Which of a question's options is meant; NULL: none. */
static const char *option_at(const struct cJSON *request, int choice)
{
    const struct cJSON *k = json_first(json_get(request, "options"));

    while (k && choice-- > 0)
        k = json_next(k);
    return !k ? NULL : json_is_string(k) ? json_str_of(k) : json_str(k, "label", NULL);
}

int pi_answer(const struct agent_answer *a, struct buf *out, struct err *e)
{
    struct cJSON *request = agent_line_asked(a);
    const char *method = json_str(request, "method", "");
    const char *value = a->choice >= 0 ? option_at(request, a->choice) : a->text;
    struct buf line = BUF_INIT;
    struct jw w;
    int rc = 0;

    jw_init(&w, &line);
    jw_obj(&w, NULL);
    jw_str(&w, "type", "extension_ui_response");
    jw_str(&w, "id", a->ask_id);
    if (str_eq(method, "confirm") && (a->choice == 0 || a->choice == 1))
        jw_bool(&w, "confirmed", a->choice == 0);
    else if (!str_eq(method, "confirm") && value && strlen(value) <= LIM_MESSAGE_BYTES)
        jw_str(&w, "value", value);
    else
        rc = err_set(e, ERR_INVALID,
                     "that is no answer to the question: choose one of its "
                     "answers, or type a text where it has none");
    jw_end(&w);
    buf_addc(&line, '\n');
    if (rc == 0)
        rc = buf_add(out, line.p, line.len);
    buf_release(&line);
    json_free(request);
    return rc;
}
