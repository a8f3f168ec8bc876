/* Events of a process stream. Output is nearly all of the traffic and has one shape,
 * which is read without building a JSON tree; anything else goes the long way. */
#include "event.h"
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

struct cursor {
    const char *p, *end;
};

/* The encoder varies its blanks. */
static void blanks(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\r' || *c->p == '\t'))
        c->p++;
}

static bool eat(struct cursor *c, const char *token)
{
    size_t n = strlen(token);

    blanks(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, token, n) != 0)
        return false;
    c->p += n;
    return true;
}

static bool eat_key(struct cursor *c, const char *quoted)
{
    return eat(c, quoted) && eat(c, ":");
}

/* {"event":{"data":{"stdout":"<base64>"}}} and nothing else. */
static bool parse_output(const char *json, size_t len, struct proc_event *ev)
{
    static const char *const names[] = {"\"stdout\"", "\"stderr\"", "\"pty\""};
    struct cursor c = {json, json + len};
    const char *text, *quote;
    int s = 0;

    if (!eat(&c, "{") || !eat_key(&c, "\"event\"") || !eat(&c, "{") || !eat_key(&c, "\"data\"") ||
        !eat(&c, "{"))
        return false;
    while (s < 3 && !eat_key(&c, names[s]))
        s++;
    if (s == 3 || !eat(&c, "\""))
        return false;
    text = c.p;
    quote = memchr(text, '"', (size_t)(c.end - text));
    if (!quote)
        return false;
    c.p = quote + 1;
    if (!eat(&c, "}") || !eat(&c, "}") || !eat(&c, "}"))
        return false;
    blanks(&c);
    if (c.p != c.end)
        return false;
    ev->data = b64_decode(text, (size_t)(quote - text), &ev->len);
    ev->kind = PROC_DATA;
    ev->stream = (enum envd_stream)s;
    return ev->data != NULL;
}

static int parse_data(const struct cJSON *data, struct proc_event *ev)
{
    static const char *const names[] = {"stdout", "stderr", "pty"};

    for (int s = 0; s < 3; s++) {
        const char *text = json_str(data, names[s], NULL);
        if (!text)
            continue;
        ev->kind = PROC_DATA;
        ev->stream = (enum envd_stream)s;
        ev->data = b64_decode(text, strlen(text), &ev->len);
        return ev->data ? 0 : ERR_PROTO;
    }
    return 0; /* an empty piece */
}

int proc_event_parse(const char *json, size_t len, struct proc_event *ev)
{
    struct cJSON *j;
    const struct cJSON *event, *part;
    int64_t n;
    int rc = 0;

    *ev = (struct proc_event){.kind = PROC_OTHER};
    if (parse_output(json, len, ev))
        return 0;
    *ev = (struct proc_event){.kind = PROC_OTHER};
    j = json_parse(json, len, NULL);
    if (!json_is_object(j)) {
        json_free(j);
        return ERR_PROTO;
    }
    event = json_get(j, "event");
    if ((part = json_get(event, "start"))) {
        n = json_i64s(part, "pid", 0);
        ev->kind = PROC_START;
        ev->pid = n > 0 && n <= INT32_MAX ? (int)n : 0;
    } else if ((part = json_get(event, "data"))) {
        rc = parse_data(part, ev);
    } else if ((part = json_get(event, "end"))) {
        n = json_i64s(part, "exitCode", json_i64s(part, "exit_code", 0));
        ev->kind = PROC_END;
        ev->exit_code = n >= INT32_MIN && n <= INT32_MAX ? (int)n : -1;
        ev->exited = json_bool(part, "exited", false);
        ev->status = xstrdup(json_str(part, "status", NULL));
    }
    json_free(j);
    return rc;
}

void proc_event_release(struct proc_event *ev)
{
    free(ev->data);
    free(ev->status);
    ev->data = ev->status = NULL;
}
