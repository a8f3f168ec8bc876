/* JSON from outside, read with care; JSON of our own, written with buf.
 *
 * json_parse() repairs what foreign writers do before cJSON sees it: a lone
 * surrogate escape and \u0000 become \ufffd, invalid UTF-8 becomes U+FFFD;
 * depth and size are bounded, trailing garbage is refused. The getters are
 * exact in case, type and range: a wrong type counts as absent. Any thread. */
#ifndef CCT_UTIL_JSON_H
#define CCT_UTIL_JSON_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON; /* <cJSON.h> itself only where STYLE allows */

/* Parse one document; NULL with *e set. Free with json_free(). */
struct cJSON *json_parse(const char *text, size_t len, struct err *e);
/* The same, quicker, for a document that is only read and freed soon. */
struct cJSON *json_parse_once(const char *text, size_t len, struct err *e);
void json_free(struct cJSON *j);
/* Member of an object by exact name (last one wins), NULL when absent or when
 * `j` is no object. Borrowed. */
const struct cJSON *json_get(const struct cJSON *j, const char *name);
/* Path form "a.b.c" of json_get. */
const struct cJSON *json_path(const struct cJSON *j, const char *path);
/* String member, else `def`. Borrowed. json_str_of: the item itself. */
const char *json_str(const struct cJSON *j, const char *name, const char *def);
const char *json_str_of(const struct cJSON *item);
/* Number member that is finite and within range, else def. Numbers from 2^53
 * up are refused for i64, as a double no longer tells them apart. The form with an s takes
 * a decimal string too (protobuf's 64-bit integers). */
int64_t json_i64(const struct cJSON *j, const char *name, int64_t def);
int64_t json_i64s(const struct cJSON *j, const char *name, int64_t def);
double json_num(const struct cJSON *j, const char *name, double def);
bool json_bool(const struct cJSON *j, const char *name, bool def);
bool json_is_object(const struct cJSON *j);
bool json_is_array(const struct cJSON *j);
bool json_is_string(const struct cJSON *j);
/* Iterate children of an array or object: first = json_first(j), next =
 * json_next(child); name of an object's child by json_name(). */
const struct cJSON *json_first(const struct cJSON *j);
const struct cJSON *json_next(const struct cJSON *child);
const char *json_name(const struct cJSON *child);
/* Compact text of a value; new string, free(). NULL for NULL. */
char *json_text(const struct cJSON *j);
/* A value of its own, json_free(); NULL for NULL. */
struct cJSON *json_copy(const struct cJSON *j);

/* Writer: appends to a buf, keeps commas right. Depth at most 32.
 *     struct jw w; jw_init(&w, &b);
 *     jw_obj(&w, NULL); jw_str(&w, "a", "x"); jw_end(&w);          */
struct buf;
struct jw {
    struct buf *b;
    int depth;
    bool comma[32];
    char close[32];
};
void jw_init(struct jw *w, struct buf *b);
void jw_obj(struct jw *w, const char *name); /* name NULL inside arrays, at top */
void jw_arr(struct jw *w, const char *name);
void jw_end(struct jw *w);                                  /* closes the innermost */
void jw_str(struct jw *w, const char *name, const char *s); /* NULL -> null */
void jw_strn(struct jw *w, const char *name, const char *s, size_t len);
void jw_i64(struct jw *w, const char *name, int64_t v);
void jw_num(struct jw *w, const char *name, double v); /* NaN, inf -> null */
void jw_bool(struct jw *w, const char *name, bool v);
void jw_null(struct jw *w, const char *name);
void jw_raw(struct jw *w, const char *name, const char *json); /* checked text */

/* The same JSON with what a terminal acts on (controls, C1, bidi) written as escapes: it says
 * the same to the character. Appends to out. */
void json_for_terminal(const char *json, size_t len, struct buf *out);

#endif
