/* Gemini CLI, `-o stream-json`: one process per turn. Its pieces of text have no id: a block
 * begins with the first piece and ends at the next line that is something else, its key is
 * the place of its first line. A broken stream's text is simply said once more. The status
 * of a command is not told, retries only on stderr. */
#include "agent_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (1u << 20) /* of a block that can be said whole at its end */

struct gemini {
    struct agent_calls calls;
    struct buf text; /* of the open block */
    bool open;
    uint64_t block; /* where it began */
    struct buf id;
    struct agent_half half;
    char *error;
};

static void *gemini_new(void)
{
    struct gemini *g = xcalloc(1, sizeof(*g));

    buf_init(&g->text, BLOCK_BYTES);
    return g;
}

static void reset_turn(struct gemini *g)
{
    agent_calls_release(&g->calls);
    buf_clear(&g->text);
    g->open = false;
    free(g->error);
    g->error = NULL;
}

static void gemini_free(void *state)
{
    struct gemini *g = state;

    reset_turn(g);
    buf_release(&g->text);
    buf_release(&g->id);
    agent_half_release(&g->half);
    free(g);
}

static void begin_turn(struct gemini *g, struct agent_dec *d)
{
    if (agent_line_begin_turn(d))
        reset_turn(g);
}

/* --- text ---------------------------------------------------------------------------- */

static char *block_id(struct gemini *g)
{
    buf_clear(&g->id);
    buf_addf(&g->id, "%llu", (unsigned long long)g->block);
    return (char *)buf_str(&g->id);
}

static void end_block(struct gemini *g, struct agent_dec *d)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TEXT);

    if (!g->open)
        return;
    if (g->half.unit[0]) /* nothing whole follows that would put it right */
        buf_adds(&g->text, "\xEF\xBF\xBD");
    g->half.unit[0] = 0;
    ev.id = block_id(g);
    ev.final = true;
    ev.mode = g->text.over ? AGENT_APPEND : AGENT_REPLACE;
    ev.text = g->text.over ? (char *)"" : (char *)buf_str(&g->text);
    agent_dec_emit(d, &ev);
    buf_clear(&g->text);
    g->open = false;
}

static void on_message(struct gemini *g, struct agent_dec *d, const struct cJSON *j)
{
    bool user = str_eq(json_str(j, "role", NULL), "user");
    struct agent_event ev = AGENT_EVENT(user ? AGENT_USER_ECHO : AGENT_TEXT);

    begin_turn(g, d);
    ev.text = (char *)json_str(j, "content", "");
    if (user) {
        end_block(g, d);
        agent_dec_emit(d, &ev);
        return;
    }
    if (!*ev.text)
        return;
    if (!g->open)
        g->block = agent_dec_line(d);
    g->open = true;
    buf_adds(&g->text, ev.text); /* one that is too long is kept as pieces */
    ev.id = block_id(g);
    agent_dec_emit(d, &ev);
}

/* --- tools --------------------------------------------------------------------------- */

static void on_tool_use(struct gemini *g, struct agent_dec *d, const struct cJSON *j)
{
    begin_turn(g, d);
    end_block(g, d);
    agent_calls_begin(&g->calls, d, json_str(j, "tool_id", NULL),
                      json_str(j, "tool_name", NULL), NULL, json_get(j, "parameters"));
}

static void on_tool_result(struct gemini *g, struct agent_dec *d, const struct cJSON *j)
{
    const char *id = json_str(j, "tool_id", NULL), *status = json_str(j, "status", "");
    const struct cJSON *error = json_get(j, "error");
    const char *type = json_str(error, "type", "");
    struct agent_event ev = AGENT_EVENT(AGENT_TOOL);
    struct agent_call *t;

    begin_turn(g, d);
    end_block(g, d);
    if (!id)
        return;
    t = agent_calls_at(&g->calls, id);
    if (str_eq(status, "success"))
        t->state = AGENT_TOOL_OK;
    else
        t->state = strstr(type, "denied") || strstr(type, "policy") ? AGENT_TOOL_DENIED
                                                                    : AGENT_TOOL_FAILED;
    ev.output = (char *)json_str(j, "output", NULL);
    if (!ev.output || (!*ev.output && error))
        ev.output = (char *)json_str(error, "message", ev.output);
    agent_call_emit(d, t, &ev);
}

/* --- errors, the end of a turn --------------------------------------------------------- */

/* A warning is shown; the result of the turn does not repeat the words of an error. */
static void on_error(struct gemini *g, struct agent_dec *d, const struct cJSON *j)
{
    char *words = agent_words(json_str(j, "message", "the agent warns of something"), NULL);

    begin_turn(g, d);
    end_block(g, d);
    if (str_eq(json_str(j, "severity", NULL), "warning")) {
        agent_line_notice(d, AGENT_WARN, words);
        free(words);
        return;
    }
    free(g->error);
    g->error = words;
}

static void emit_usage(struct agent_dec *d, const struct cJSON *stats)
{
    const struct cJSON *model;
    struct agent_event ev = AGENT_EVENT(AGENT_USAGE);

    if (!json_is_object(stats))
        return;
    ev.scope = AGENT_SCOPE_TURN;
    ev.cache_read = agent_line_count(stats, "cached");
    ev.in_tokens = agent_line_without(stats, "input_tokens", ev.cache_read);
    ev.out_tokens = agent_line_count(stats, "output_tokens");
    model = json_first(json_get(stats, "models"));
    if (model && !json_next(model)) /* several share the figures */
        ev.name = (char *)json_name(model);
    agent_dec_emit(d, &ev);
}

static void on_result(struct gemini *g, struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TURN_END);
    const char *text;

    begin_turn(g, d);
    text = json_str(json_get(j, "error"), "message", g->error);
    end_block(g, d);
    agent_calls_close(&g->calls, d);
    emit_usage(d, json_get(j, "stats"));
    if (!str_eq(json_str(j, "status", NULL), "success")) {
        ev.outcome = AGENT_FAILED;
        ev.text = agent_words(text ? text : "the turn failed", &ev.http_status);
        ev.error_class = agent_classify(ev.http_status, ev.text);
    }
    agent_dec_emit(d, &ev);
    free(ev.text);
}

/* --- lines ----------------------------------------------------------------------------- */

static void on_init(struct gemini *g, struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_SESSION);

    ev.id = (char *)json_str(j, "session_id", NULL);
    ev.name = (char *)json_str(j, "model", NULL);
    agent_dec_emit(d, &ev);
    begin_turn(g, d);
}

static const struct {
    const char *type;
    void (*fn)(struct gemini *g, struct agent_dec *d, const struct cJSON *j);
} types[] = {
    {"message", on_message}, {"tool_use", on_tool_use}, {"tool_result", on_tool_result},
    {"error", on_error},     {"result", on_result},     {"init", on_init},
};

static void gemini_line(void *state, struct agent_dec *d, const char *s, size_t len)
{
    struct gemini *g = state;
    const char *line = agent_half_join(&g->half, "\"content\":\"", s, &len);
    struct cJSON *j = agent_line_json(d, line, len);
    const char *type = json_str(j, "type", "");

    agent_line_stamp(d, j);
    for (size_t i = 0; j && i < sizeof(types) / sizeof(types[0]); i++)
        if (str_eq(type, types[i].type))
            types[i].fn(g, d, j);
    json_free(j);
}

static void gemini_end(void *state, struct agent_dec *d, int code, int sig,
                       const char *stderr_tail)
{
    struct gemini *g = state;

    agent_dec_place_exit(d);
    end_block(g, d);
    agent_calls_close(&g->calls, d);
    agent_end_error(d, code, sig, stderr_tail, g->error, 0);
    reset_turn(g);
}

const struct agent_adapter agent_gemini = {
    .name = "gemini",
    .mode = AGENT_ONE_RUN,
    .echoes = false,
    .pty = false,
    .state_new = gemini_new,
    .state_free = gemini_free,
    .line = gemini_line,
    .end = gemini_end,
    .encode_message = agent_line_stdin,
    .encode_interrupt = NULL,
};
