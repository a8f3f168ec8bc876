/* Several agents that take turns in one session: each run begins with a line that says whose
 * it is, the rest is in that one's own dialect and is read by a decoder of its own. Events
 * carry the role. */
#include "agent_priv.h"

#include <cct/model/pair.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

struct pair_dec {
    struct agent_dec *d;     /* ours */
    struct agent_dec *child; /* of the run at hand; NULL: none */
    char *role, *message;
    bool ended;    /* its turn has ended */
    bool closing;  /* it is put aside before its end was told */
    unsigned late; /* runs that a next one followed before we heard of their end */
};

static void *pair_new(void)
{
    return xcalloc(1, sizeof(struct pair_dec));
}

static void run_clear(struct pair_dec *p)
{
    agent_dec_free(p->child);
    p->child = NULL;
    free(p->role);
    free(p->message);
    p->role = p->message = NULL;
    p->ended = false;
}

static void pair_state_free(void *state)
{
    struct pair_dec *p = state;

    run_clear(p);
    free(p);
}

/* Programs count their blocks and calls anew in each run. */
static char *own_id(const struct pair_dec *p, const char *id)
{
    return id ? xasprintf("%s:%s", p->message ? p->message : "", id) : NULL;
}

static void emit_with_ids(struct pair_dec *p, struct agent_event *ev)
{
    char *id = own_id(p, ev->id), *parent = own_id(p, ev->parent);

    ev->id = id;
    ev->parent = parent;
    agent_dec_emit(p->d, ev);
    free(id);
    free(parent);
}

/* A run is one turn, whatever its program says of turns, and its message stands in our
 * own line. */
static void on_event(void *ctx, const struct agent_event *from)
{
    struct pair_dec *p = ctx;
    struct agent_event ev = *from;

    if (ev.kind == AGENT_TURN_BEGIN || ev.kind == AGENT_USER_ECHO ||
        (ev.kind == AGENT_EXIT && p->closing))
        return;
    if (ev.kind == AGENT_TURN_END) {
        if (p->ended)
            return;
        p->ended = true;
        ev.id = p->message;
    }
    ev.role = p->role;
    if (ev.kind == AGENT_TEXT || ev.kind == AGENT_THINKING || ev.kind == AGENT_TOOL ||
        ev.kind == AGENT_ASK)
        emit_with_ids(p, &ev);
    else
        agent_dec_emit(p->d, &ev);
}

/* {"cc_tui":"turn","at":MS,"role":"checker","adapter":"codex","message":ID,"by":"pair",
 * "text":...} */
static void begin(struct pair_dec *p, const struct cJSON *j)
{
    const struct agent_adapter *a = agent_adapter_find(json_str(j, "adapter", ""));
    struct agent_event ev = AGENT_EVENT(AGENT_TURN_BEGIN), echo = AGENT_EVENT(AGENT_USER_ECHO);

    agent_dec_set_time(p->d, json_i64(j, "at", 0));
    if (p->child) {
        p->late++;
        p->closing = true;
        agent_dec_exit(p->child, -1, 0, NULL);
        p->closing = false;
    }
    run_clear(p);
    p->role = xstrdup(json_str(j, "role", NULL));
    p->message = xstrdup(json_str(j, "message", NULL));
    if (!a || a->pty || a == &agent_pair)
        a = &agent_claude;
    p->child = agent_dec_new(a, 0, on_event, p);
    /* the turn is open from here on: a program that says nothing of it ends it by its exit */
    agent_dec_emit(p->child, &ev);
    ev = AGENT_EVENT(AGENT_TURN_BEGIN);
    ev.id = p->message;
    ev.role = p->role;
    agent_dec_emit(p->d, &ev);
    echo.text = (char *)json_str(j, "text", "");
    echo.name = (char *)json_str(j, "by", NULL);
    echo.role = p->role;
    agent_dec_emit(p->d, &echo);
}

static void pair_line(void *state, struct agent_dec *d, const char *s, size_t len)
{
    static const char mark[] = "{\"cc_tui\":\"turn\",";
    struct pair_dec *p = state;
    struct err e = {0};
    struct cJSON *j;

    p->d = d;
    j = len > sizeof(mark) && memcmp(s, mark, sizeof(mark) - 1) == 0 ? json_parse(s, len, &e)
                                                                     : NULL;
    if (j) {
        begin(p, j);
        json_free(j);
    } else if (p->child) {
        agent_dec_feed(p->child, s, len);
        if (!agent_dec_cut(d))
            agent_dec_feed(p->child, "\n", 1);
    } else if (len) { /* in front of the first run; none is known to print there */
        agent_line_plain(d, s, len);
    }
}

static bool pair_dropped(void *state, struct agent_dec *d, const char *head, size_t len)
{
    struct pair_dec *p = state;

    p->d = d;
    return p->child && agent_dec_dropped(p->child, head, len);
}

static void pair_end(void *state, struct agent_dec *d, int code, int sig,
                     const char *stderr_tail)
{
    struct pair_dec *p = state;

    p->d = d;
    if (p->late) {
        p->late--;
        return;
    }
    agent_dec_place_exit(d);
    if (p->child)
        agent_dec_exit(p->child, code, sig, stderr_tail);
    else
        agent_end_default(d, code, sig, stderr_tail);
    run_clear(p);
}

static int pair_encode(const char *text, size_t len, struct buf *out, struct err *e)
{
    const char *body;

    pair_addressee(text, &body);
    return agent_line_stdin(body, len - (size_t)(body - text), out, e);
}

const struct agent_adapter agent_pair = {.name = "pair",
                                         .mode = AGENT_ONE_RUN,
                                         .echoes = true,
                                         .state_new = pair_new,
                                         .state_free = pair_state_free,
                                         .line = pair_line,
                                         .dropped = pair_dropped,
                                         .end = pair_end,
                                         .encode_message = pair_encode};
