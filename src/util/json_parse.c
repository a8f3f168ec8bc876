/* Foreign JSON becomes a tree as cJSON has it, so that its functions serve for the rest: one
 * pass, no recursion, no copy of the text. It takes what cJSON takes; strings are repaired on
 * the way (json_string.h). */
#include <cJSON.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "json_scratch.h"
#include "json_string.h"

enum {
    NUMBER_BYTES = 63,  /* a longer one is none */
    EXACT_DIGITS = 15,  /* so many a double holds, whatever they are */
};

struct parse {
    const char *text, *s, *end;
    bool scratch;
    cJSON *open[LIM_JSON_DEPTH]; /* containers that we are in */
    unsigned depth;
    cJSON *root;
    struct err *e;
};

static bool broken(struct parse *p, const char *at, const char *what)
{
    err_set(p->e, ERR_PROTO, "%s at byte %zu of %zu", what, (size_t)(at - p->text),
            (size_t)(p->end - p->text));
    return false;
}

static bool malformed(struct parse *p)
{
    if (p->s < p->end)
        return broken(p, p->s, "JSON is malformed");
    err_set(p->e, ERR_PROTO, "JSON ends too early, after %zu bytes", (size_t)(p->end - p->text));
    return false;
}

static void *take(struct parse *p, size_t n)
{
    void *at = json_scratch_take(p->scratch, n);

    if (!at)
        err_set(p->e, ERR_LIMIT, "JSON of %zu bytes needs more memory than there is",
                (size_t)(p->end - p->text));
    return at;
}

/* As cJSON has it: what controls there are between values says nothing. */
static void skip_space(struct parse *p)
{
    while (p->s < p->end && (unsigned char)*p->s <= ' ' && *p->s)
        p->s++;
}

/* --- values ------------------------------------------------------------------------ */

static char *read_string(struct parse *p)
{
    struct json_string js;
    const char *at = json_string_scan(p->s + 1, p->end, &js);
    char *text;

    if (at) {
        broken(p, at, "JSON has a string that is broken");
        return NULL;
    }
    text = take(p, js.room);
    if (!text)
        return NULL;
    if (!json_string_read(&js, text)) {
        broken(p, p->s, "JSON has a string with an escape that is none");
        cJSON_free(text);
        return NULL;
    }
    p->s = js.from + js.len + 1;
    return text;
}

/* A new value, the last one of the container that is open. */
static cJSON *add(struct parse *p)
{
    cJSON *j = take(p, sizeof(*j)), *in = p->depth ? p->open[p->depth - 1] : NULL;

    if (!j)
        return NULL;
    memset(j, 0, sizeof(*j));
    if (!in) {
        p->root = j;
    } else if (!in->child) {
        in->child = j->prev = j;
    } else {
        j->prev = in->child->prev;
        j->prev->next = in->child->prev = j;
    }
    return j;
}

static void set_number(cJSON *j, double v)
{
    j->type = cJSON_Number;
    j->valuedouble = v;
    j->valueint = v >= INT_MAX ? INT_MAX : v <= (double)INT_MIN ? INT_MIN : (int)v;
}

static bool is_part(char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* As far as strtod takes it; the rest is malformed by itself. */
static bool any_number(struct parse *p, cJSON *j)
{
    char text[NUMBER_BYTES + 1], *after;
    size_t n = 0;

    for (; n < NUMBER_BYTES && p->s + n < p->end && is_part(p->s[n]); n++)
        text[n] = p->s[n] == '.' ? *localeconv()->decimal_point : p->s[n];
    text[n] = '\0';
    set_number(j, strtod(text, &after));
    p->s += after - text;
    return after != text || malformed(p);
}

static bool number(struct parse *p, cJSON *j)
{
    const char *s = p->s + (*p->s == '-'), *first = s;
    int64_t v = 0;

    for (; s < p->end && s - first < EXACT_DIGITS && *s >= '0' && *s <= '9'; s++)
        v = 10 * v + (*s - '0');
    if (s == first || (s < p->end && is_part(*s)) || (v == 0 && *p->s == '-'))
        return any_number(p, j);
    set_number(j, (double)(*p->s == '-' ? -v : v));
    p->s = s;
    return true;
}

static bool word(struct parse *p, cJSON *j, const char *text, int type)
{
    size_t n = strlen(text);

    if ((size_t)(p->end - p->s) < n || memcmp(p->s, text, n) != 0)
        return malformed(p);
    j->type = type;
    j->valueint = type == cJSON_True;
    p->s += n;
    return true;
}

static bool enter(struct parse *p, cJSON *j, int type)
{
    if (p->depth == LIM_JSON_DEPTH) {
        err_set(p->e, ERR_LIMIT, "JSON is nested deeper than %u", LIM_JSON_DEPTH);
        return false;
    }
    j->type = type;
    p->open[p->depth++] = j;
    p->s++;
    return true;
}

/* A value, or the begin of a container. */
static bool value(struct parse *p, cJSON *j)
{
    if (p->s >= p->end)
        return malformed(p);
    switch (*p->s) {
    case '"':
        j->valuestring = read_string(p);
        j->type = cJSON_String;
        return j->valuestring != NULL;
    case '{':
        return enter(p, j, cJSON_Object);
    case '[':
        return enter(p, j, cJSON_Array);
    case 't':
        return word(p, j, "true", cJSON_True);
    case 'f':
        return word(p, j, "false", cJSON_False);
    case 'n':
        return word(p, j, "null", cJSON_NULL);
    default:
        return *p->s == '-' || (*p->s >= '0' && *p->s <= '9') ? number(p, j) : malformed(p);
    }
}

/* --- containers --------------------------------------------------------------------- */

/* The name of a member and its colon. */
static bool name_of(struct parse *p, cJSON *j)
{
    if (p->s >= p->end || *p->s != '"')
        return malformed(p);
    j->string = read_string(p);
    if (!j->string)
        return false;
    skip_space(p);
    if (p->s >= p->end || *p->s != ':')
        return malformed(p);
    p->s++;
    skip_space(p);
    return true;
}

static bool next_value(struct parse *p)
{
    cJSON *in = p->depth ? p->open[p->depth - 1] : NULL, *j = add(p);

    skip_space(p);
    return j && (!in || in->type != cJSON_Object || name_of(p, j)) && value(p, j);
}

/* Behind a value: containers that end here are left; true: another value follows. */
static bool goes_on(struct parse *p, bool *ok)
{
    while (p->depth) {
        const cJSON *in = p->open[p->depth - 1];
        char c;

        skip_space(p);
        c = p->s < p->end ? *p->s : '\0';
        if (c == (in->type == cJSON_Object ? '}' : ']')) {
            p->s++;
            p->depth--;
            continue;
        }
        *ok = c == ',' || malformed(p);
        p->s += *ok;
        return *ok;
    }
    return false;
}

/* The first of a container's values has no comma before it. */
static bool ends_at_once(struct parse *p)
{
    skip_space(p);
    return p->s < p->end && *p->s == (p->open[p->depth - 1]->type == cJSON_Object ? '}' : ']');
}

static bool document(struct parse *p)
{
    bool ok = true;

    for (;;) {
        unsigned depth = p->depth;

        if (!next_value(p))
            return false;
        if (p->depth > depth && !ends_at_once(p))
            continue;
        if (!goes_on(p, &ok))
            return ok;
    }
}

/* --- the whole ---------------------------------------------------------------------- */

static bool whole(struct parse *p)
{
    static const char bom[] = "\xEF\xBB\xBF";

    if ((size_t)(p->end - p->s) > LIM_JSON_BYTES) {
        err_set(p->e, ERR_LIMIT, "JSON of %zu bytes is larger than %u", (size_t)(p->end - p->s),
                LIM_JSON_BYTES);
        return false;
    }
    if (p->end - p->s >= 3 && memcmp(p->s, bom, 3) == 0)
        p->s += 3;
    skip_space(p);
    if (p->s == p->end) {
        err_set(p->e, ERR_PROTO, "JSON is empty");
        return false;
    }
    if (!document(p))
        return false;
    skip_space(p);
    return p->s == p->end || broken(p, p->s, "JSON is followed by other text");
}

static cJSON *parse(const char *text, size_t len, bool scratch, struct err *e)
{
    struct parse p; /* its stack stays as it is until it is used */

    p.text = p.s = text;
    p.end = text + len;
    p.scratch = scratch;
    p.depth = 0;
    p.root = NULL;
    p.e = e;
    if (whole(&p))
        return p.root;
    cJSON_Delete(p.root);
    return NULL;
}

struct cJSON *json_parse(const char *text, size_t len, struct err *e)
{
    return parse(text, len, false, e);
}

struct cJSON *json_parse_once(const char *text, size_t len, struct err *e)
{
    bool scratch = json_scratch_begin();
    struct cJSON *j = parse(text, len, scratch, e);

    if (scratch)
        json_scratch_end(j);
    return j;
}
