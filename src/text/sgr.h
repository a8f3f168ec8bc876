/* Select graphic rendition: parameters of CSI ... m and what they do to an
 * attribute. Private to src/text. */
#ifndef CCT_TEXT_SGR_H
#define CCT_TEXT_SGR_H

#include <cct/text/clean.h>
#include <stdbool.h>

enum { SGR_PARAMS = 32 };

struct sgr {
    unsigned n;             /* parameters begun, at most SGR_PARAMS count */
    unsigned v[SGR_PARAMS]; /* saturated at 65535; empty = 0 */
    bool colon[SGR_PARAMS]; /* belongs to the parameter before it */
};

void sgr_begin(struct sgr *g);
/* One of 0-9 ; : of the parameter string. */
void sgr_feed(struct sgr *g, char c);
void sgr_apply(const struct sgr *g, struct text_attr *a);

#endif
