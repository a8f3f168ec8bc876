/* The pass over foreign bytes before cJSON sees them. One look at each byte,
 * and no copy unless something needs repair: inside strings lone surrogate
 * escapes and \u0000 become \ufffd, invalid UTF-8 and raw NUL become U+FFFD.
 * Depth is refused here, before any recursion, and so is a document that ends
 * early, which some versions of cJSON read past. */
#include <cJSON.h>
#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/utf8.h>
#include <string.h>

#include "json_run.h"
#include "json_scratch.h"

struct pass {
    const char *text;
    size_t len;
    size_t i;       /* where we are */
    size_t copied;  /* text[0..copied) is in `out`, repaired */
    struct buf out; /* empty while nothing was repaired */
};

/* Put `with` in place of the next `skip` bytes. */
static void repair(struct pass *p, size_t skip, const char *with)
{
    buf_add(&p->out, p->text + p->copied, p->i - p->copied);
    buf_adds(&p->out, with);
    p->i += skip;
    p->copied = p->i;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The unit of a \uXXXX escape at text[at], or -1. */
static int unit_at(const struct pass *p, size_t at)
{
    int v = 0;

    if (at > p->len || p->len - at < 6 || p->text[at] != '\\' || p->text[at + 1] != 'u')
        return -1;
    for (size_t k = at + 2; k < at + 6; k++) {
        int h = hex_value(p->text[k]);
        if (h < 0)
            return -1;
        v = v << 4 | h;
    }
    return v;
}

/* At a backslash inside a string. A \u without four digits ends the pass here:
 * cJSON would take it for NUL. Other odd escapes are left for cJSON to refuse. */
static bool escape(struct pass *p)
{
    int unit = unit_at(p, p->i);

    if (unit < 0) {
        if (p->len - p->i > 1 && p->text[p->i + 1] == 'u')
            return false;
        p->i += 2;
    } else if (unit >= 0xD800 && unit <= 0xDBFF) {
        int low = unit_at(p, p->i + 6);
        if (low >= 0xDC00 && low <= 0xDFFF)
            p->i += 12;
        else
            repair(p, 6, "\\ufffd");
    } else if (unit == 0 || (unit >= 0xDC00 && unit <= 0xDFFF)) {
        repair(p, 6, "\\ufffd");
    } else {
        p->i += 6;
    }
    return true;
}

/* From behind the opening quote to behind the closing one; false when there is
 * none, or at an escape that is none. */
static bool string(struct pass *p)
{
    while (p->i < p->len) {
        p->i += json_run(p->text + p->i, p->len - p->i);
        if (p->i >= p->len)
            break;
        unsigned char c = (unsigned char)p->text[p->i];
        if (c == '"') {
            p->i++;
            return true;
        }
        if (c == '\\') {
            if (!escape(p))
                return false;
        } else if (c >= 0x80) {
            uint32_t cp;
            size_t n = utf8_decode(p->text + p->i, p->len - p->i, &cp);
            if (n == 0 || cp == UTF8_BAD)
                repair(p, 1, "\xEF\xBF\xBD");
            else
                p->i += n;
        } else if (c == 0) {
            repair(p, 1, "\xEF\xBF\xBD");
        } else {
            p->i++;
        }
    }
    return false;
}

static int walk(struct pass *p, struct err *e)
{
    unsigned depth = 0;

    while (p->i < p->len) {
        switch (p->text[p->i++]) {
        case '"':
            if (!string(p))
                return err_set(e, ERR_PROTO,
                               "JSON has a string that is broken at byte %zu of %zu",
                               p->i < p->len ? p->i : p->len, p->len);
            break;
        case '{':
        case '[':
            if (++depth > LIM_JSON_DEPTH)
                return err_set(e, ERR_LIMIT, "JSON is nested deeper than %u", LIM_JSON_DEPTH);
            break;
        case '}':
        case ']':
            if (depth-- == 0)
                return err_set(e, ERR_PROTO, "JSON closes more than it opens at byte %zu",
                               p->i - 1);
            break;
        case '\0':
            return err_set(e, ERR_PROTO, "JSON has a NUL at byte %zu", p->i - 1);
        default:
            break;
        }
    }
    if (depth > 0)
        return err_set(e, ERR_PROTO, "JSON ends too early, after %zu bytes", p->len);
    return 0;
}

static size_t skip_space(const char *s, size_t i, size_t len)
{
    while (i < len && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r'))
        i++;
    return i;
}

static cJSON *read_whole(const char *text, size_t len, struct err *e)
{
    const char *end = NULL;
    cJSON *j = cJSON_ParseWithLengthOpts(text, len, &end, 0);
    size_t at = end ? (size_t)(end - text) : 0;

    if (!j) {
        err_set(e, ERR_PROTO, "JSON is malformed at byte %zu of %zu", at, len);
        return NULL;
    }
    if (skip_space(text, at, len) != len) {
        cJSON_Delete(j);
        err_set(e, ERR_PROTO, "JSON is followed by other text at byte %zu of %zu", at, len);
        return NULL;
    }
    return j;
}

struct cJSON *json_parse(const char *text, size_t len, struct err *e)
{
    struct pass p = {.text = text, .len = len};
    cJSON *j = NULL;

    if (len > LIM_JSON_BYTES) {
        err_set(e, ERR_LIMIT, "JSON of %zu bytes is larger than %u", len, LIM_JSON_BYTES);
        return NULL;
    }
    if (skip_space(text, 0, len) == len) {
        err_set(e, ERR_PROTO, "JSON is empty");
        return NULL;
    }
    if (walk(&p, e) == 0) {
        if (p.copied > 0) {
            buf_add(&p.out, text + p.copied, len - p.copied);
            j = read_whole(buf_str(&p.out), p.out.len, e);
        } else {
            j = read_whole(text, len, e);
        }
    }
    buf_release(&p.out);
    return j;
}

struct cJSON *json_parse_once(const char *text, size_t len, struct err *e)
{
    bool scratch = json_scratch_begin();
    struct cJSON *j = json_parse(text, len, e);

    if (scratch)
        json_scratch_end(j);
    return j;
}
