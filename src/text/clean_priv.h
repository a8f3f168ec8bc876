/* What the whole-text forms need of the streaming cleaner. Private to src/text. */
#ifndef CCT_TEXT_CLEAN_PRIV_H
#define CCT_TEXT_CLEAN_PRIV_H

#include <cct/text/clean.h>

/* A cleaner whose input is one line: LF, CR and TAB are spaces, BS vanishes. */
struct clean *clean_new_one_line(void);
/* Cells of the unfinished line before the cursor. */
size_t clean_columns(const struct clean *c);

#endif
