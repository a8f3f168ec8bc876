/* Hostile strings for everything that shows foreign text (tests/fixtures/
 * hostile.txt) and the judge of what may come out. Independent of src/text. */
#ifndef CCT_TESTS_LIB_HOSTILE_H
#define CCT_TESTS_LIB_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>

struct hostile_item {
    unsigned line; /* in the file */
    char *comment;
    char *s; /* decoded bytes, NUL may be among them; s[len] is NUL */
    size_t len;
    bool survives; /* starts with "AB" and ends with "YZ", and both stay readable */
};
struct hostile_set {
    struct hostile_item *v;
    size_t n;
};

/* Read the corpus (path NULL = the fixture). Ends the program with a message when
 * the file is missing or a line is malformed. File format: see its first lines. */
void hostile_load(struct hostile_set *set, const char *path);
void hostile_free(struct hostile_set *set);

/* NULL when s is valid UTF-8 without control bytes (LF only if allowed), C1, bidi,
 * zero-width or tag characters; else what is wrong, and *at where. */
const char *hostile_impure(const char *s, size_t len, bool allow_lf, size_t *at);

#endif
