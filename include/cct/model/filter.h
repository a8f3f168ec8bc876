/* What the list is narrowed to: words that all must fit. Pure.
 *
 *   login            stands in the name, the tool, a state, the project, the last line ...
 *   state:running    agent:claude  doing:asks  project:acme  name:fix  id:ibx  template:node
 *   tag:wip          the whole word, as it was given
 *   is:protected     also foreign, adopted, idle, unpriced
 *   state:error,killed   one of several           -agent:codex   none of these
 *
 * Case does not matter; a word before ':' that is none of the above is part of the word. */
#ifndef CCT_MODEL_FILTER_H
#define CCT_MODEL_FILTER_H

#include <cct/model/sandbox.h>

/* One that was kept under a name. */
struct saved_filter {
    char *name, *words;
};
void saved_filters_free(struct saved_filter *v, size_t n);
struct saved_filter *saved_filters_copy(const struct saved_filter *v, size_t n);

enum { FILTER_TERMS = 16, FILTER_BYTES = 256 };
struct filter {
    char text[FILTER_BYTES]; /* cut into the terms' values */
    struct filter_term {
        int key; /* -1: any of the fields */
        bool not;
        const char *value; /* "a,b": one of them */
    } terms[FILTER_TERMS];
    int n;
};
/* What goes beyond FILTER_BYTES or FILTER_TERMS is left out. */
void filter_parse(struct filter *f, const char *text);
bool filter_match(const struct filter *f, const struct sandbox *s);
/* Words that may stand before ':', in order; NULL behind the last one. */
const char *filter_key(size_t i);

#endif
