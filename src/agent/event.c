/* Events as values: names, release, copy, and their JSON form both ways. One
 * table says which field of which kind has which name. */
#include <cct/agent.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const kind_names[] = {
    "session", "turn_begin", "text",  "thinking", "tool", "user_echo",
    "ask",     "notice",     "usage", "turn_end", "exit", "raw",
};
static const char *const mode_names[] = {"append", "replace"};
static const char *const level_names[] = {"info", "warn", "error"};
static const char *const scope_names[] = {"call", "turn", "session_total"};
static const char *const class_names[] = {"none",    "auth",  "rate",    "overload",
                                          "billing", "model", "network", "other"};

const char *agent_kind_name(enum agent_kind k)
{
    return (size_t)k < COUNT(kind_names) ? kind_names[k] : "?";
}

#define K(kind) (1u << AGENT_##kind)
#define ALL ((1u << AGENT_KIND_COUNT) - 1)

enum ftype { F_STR, F_BOOL, F_INT, F_I64, F_NUM, F_ENUM };

#define EV(field) offsetof(struct agent_event, field)
#define ENUM(names) (names), COUNT(names)

static const struct field {
    unsigned kinds;
    const char *name;
    enum ftype type;
    size_t at;
    const char *const *words;
    size_t nwords;
} fields[] = {
    {ALL, "offset", F_I64, EV(offset), NULL, 0},
    {ALL, "index", F_INT, EV(index), NULL, 0},
    {ALL, "raw", F_I64, EV(raw_line), NULL, 0},
    {ALL, "time", F_I64, EV(time_ms), NULL, 0},
    {K(SESSION), "agent_session_id", F_STR, EV(id), NULL, 0},
    {K(SESSION), "model", F_STR, EV(name), NULL, 0},
    {K(SESSION), "tool_version", F_STR, EV(title), NULL, 0},
    {K(TEXT) | K(THINKING), "block_id", F_STR, EV(id), NULL, 0},
    {K(TOOL), "call_id", F_STR, EV(id), NULL, 0},
    {K(ASK), "ask_id", F_STR, EV(id), NULL, 0},
    {K(TURN_BEGIN) | K(TURN_END), "message", F_STR, EV(id), NULL, 0},
    {K(USER_ECHO), "by", F_STR, EV(name), NULL, 0},
    {K(TOOL), "name", F_STR, EV(name), NULL, 0},
    {K(ASK), "tool", F_STR, EV(name), NULL, 0},
    {K(TOOL) | K(ASK), "title", F_STR, EV(title), NULL, 0},
    {K(TOOL) | K(ASK), "input", F_STR, EV(input), NULL, 0},
    {K(TEXT) | K(THINKING) | K(USER_ECHO) | K(NOTICE) | K(TURN_END) | K(RAW) | K(ASK),
     "text", F_STR, EV(text), NULL, 0},
    {K(TEXT) | K(THINKING), "mode", F_ENUM, EV(mode), ENUM(mode_names)},
    {K(TEXT) | K(THINKING) | K(RAW) | K(ASK), "final", F_BOOL, EV(final), NULL, 0},
    {K(ASK), "choices", F_STR, EV(choices), NULL, 0},
    {K(USAGE), "agent_session_id", F_STR, EV(id), NULL, 0},
    {K(USAGE), "model", F_STR, EV(name), NULL, 0},
    {K(TOOL), "state", F_ENUM, EV(state), ENUM(agent_tool_state_words)},
    {K(TOOL), "output", F_STR, EV(output), NULL, 0},
    {K(TOOL) | K(TURN_END), "exit_code", F_INT, EV(exit_code), NULL, 0},
    {K(EXIT), "code", F_INT, EV(exit_code), NULL, 0},
    {K(EXIT), "signal", F_INT, EV(signal), NULL, 0},
    {K(EXIT), "stderr_tail", F_STR, EV(text), NULL, 0},
    {K(NOTICE), "level", F_ENUM, EV(level), ENUM(level_names)},
    {K(NOTICE), "retry_attempt", F_INT, EV(retry_attempt), NULL, 0},
    {K(NOTICE), "retry_max", F_INT, EV(retry_max), NULL, 0},
    {K(NOTICE), "retry_delay_ms", F_NUM, EV(retry_delay_ms), NULL, 0},
    {K(USAGE), "input", F_I64, EV(in_tokens), NULL, 0},
    {K(USAGE), "cache_read", F_I64, EV(cache_read), NULL, 0},
    {K(USAGE), "cache_write", F_I64, EV(cache_write), NULL, 0},
    {K(USAGE), "output", F_I64, EV(out_tokens), NULL, 0},
    {K(USAGE), "cost_usd", F_NUM, EV(cost_usd), NULL, 0},
    {K(USAGE), "scope", F_ENUM, EV(scope), ENUM(scope_names)},
    {K(TURN_END), "outcome", F_ENUM, EV(outcome), ENUM(agent_outcome_words)},
    {K(NOTICE) | K(TURN_END) | K(EXIT), "error_class", F_ENUM, EV(error_class),
     ENUM(class_names)},
    {K(NOTICE) | K(TURN_END), "http_status", F_INT, EV(http_status), NULL, 0},
    {K(TEXT) | K(THINKING) | K(TOOL) | K(USAGE) | K(NOTICE) | K(ASK), "parent", F_STR,
     EV(parent), NULL, 0},
    {ALL, "role", F_STR, EV(role), NULL, 0},
};

static char **string_at(struct agent_event *ev, size_t i)
{
    char **all[] = {&ev->id,    &ev->text,   &ev->name,  &ev->title,
                    &ev->input, &ev->output, &ev->parent, &ev->choices, &ev->role};

    return i < COUNT(all) ? all[i] : NULL;
}

void agent_event_release(struct agent_event *ev)
{
    char **p;

    for (size_t i = 0; (p = string_at(ev, i)); i++) {
        free(*p);
        *p = NULL;
    }
}

void agent_event_copy(struct agent_event *dst, const struct agent_event *src)
{
    char **p;

    *dst = *src;
    for (size_t i = 0; (p = string_at(dst, i)); i++)
        *p = xstrdup(*p);
}

static int enum_get(const void *p)
{
    int v; /* every enum here has the size of int */

    memcpy(&v, p, sizeof(v));
    return v;
}

static void put_field(struct jw *w, const struct field *f, const struct agent_event *ev)
{
    const void *p = (const char *)ev + f->at;
    int v;

    switch (f->type) {
    case F_STR:
        if (*(char *const *)p)
            jw_str(w, f->name, *(char *const *)p);
        break;
    case F_BOOL:
        jw_bool(w, f->name, *(const bool *)p);
        break;
    case F_INT:
        jw_i64(w, f->name, *(const int *)p);
        break;
    case F_I64:
        /* a time stamp is rare; the rest is shown even when it is 0 */
        if (f->at != EV(time_ms) || ev->time_ms)
            jw_i64(w, f->name, *(const int64_t *)p);
        break;
    case F_NUM:
        jw_num(w, f->name, *(const double *)p);
        break;
    case F_ENUM:
        v = enum_get(p);
        jw_str(w, f->name, v >= 0 && (size_t)v < f->nwords ? f->words[v] : "?");
        break;
    }
}

/* Left out where they say nothing, as most events carry none of them. */
static bool worth_it(const struct field *f, const struct agent_event *ev)
{
    if (ev->kind == AGENT_NOTICE && f->at == EV(error_class))
        return ev->error_class != 0;
    if (ev->kind == AGENT_NOTICE && f->at == EV(http_status))
        return ev->http_status != 0;
    if (ev->kind == AGENT_TURN_END && f->at == EV(exit_code))
        return ev->exit_code != -1;
    if (f->at == EV(retry_attempt) || f->at == EV(retry_max) || f->at == EV(retry_delay_ms))
        return ev->retry_attempt != 0;
    return true;
}

void agent_event_to_json(const struct agent_event *ev, struct buf *out)
{
    struct jw w;

    jw_init(&w, out);
    jw_obj(&w, NULL);
    jw_str(&w, "kind", agent_kind_name(ev->kind));
    for (size_t i = 0; i < COUNT(fields); i++)
        if ((fields[i].kinds & (1u << ev->kind)) && worth_it(&fields[i], ev))
            put_field(&w, &fields[i], ev);
    if (ev->kind == AGENT_TOOL && ev->output)
        jw_str(&w, "output_mode", "replace");
    jw_end(&w);
}

static int word_index(const char *const *words, size_t n, const char *s)
{
    for (size_t i = 0; s && i < n; i++)
        if (strcmp(words[i], s) == 0)
            return (int)i;
    return -1;
}

static void get_field(const struct cJSON *j, const struct field *f, struct agent_event *ev)
{
    void *p = (char *)ev + f->at;
    int64_t n;
    int v;

    switch (f->type) {
    case F_STR:
        *(char **)p = xstrdup(json_str(j, f->name, NULL));
        break;
    case F_BOOL:
        *(bool *)p = json_bool(j, f->name, false);
        break;
    case F_INT:
        n = json_i64(j, f->name, *(int *)p);
        if (n >= INT32_MIN && n <= INT32_MAX)
            *(int *)p = (int)n;
        break;
    case F_I64:
        *(int64_t *)p = json_i64(j, f->name, 0);
        break;
    case F_NUM:
        *(double *)p = json_num(j, f->name, *(double *)p);
        break;
    case F_ENUM:
        v = word_index(f->words, f->nwords, json_str(j, f->name, NULL));
        if (v >= 0)
            memcpy(p, &v, sizeof(v));
        break;
    }
}

int agent_event_from_json(struct agent_event *ev, const char *json, size_t len, struct err *e)
{
    struct cJSON *j = json_parse(json, len, e);
    int kind;

    *ev = AGENT_EVENT(AGENT_RAW);
    if (!j)
        return err_wrap(e, "an event cannot be read"), ERR_INVALID;
    kind = word_index(kind_names, COUNT(kind_names), json_str(j, "kind", NULL));
    if (kind < 0) {
        json_free(j);
        return err_set(e, ERR_INVALID, "an event cannot be read: no known kind");
    }
    ev->kind = (enum agent_kind)kind;
    for (size_t i = 0; i < COUNT(fields); i++)
        if (fields[i].kinds & (1u << kind))
            get_field(j, &fields[i], ev);
    json_free(j);
    return 0;
}
