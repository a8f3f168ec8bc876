/* Memory for one JSON document at a time that is read and thrown away again: its values lie
 * side by side, and go all at once. Whoever comes while it is taken, or needs more, gets
 * ordinary memory. Any thread. */
#ifndef CCT_UTIL_JSON_SCRATCH_H
#define CCT_UTIL_JSON_SCRATCH_H

#include <stdbool.h>

struct cJSON;
/* What this thread parses between the two gets its memory there; false: it is taken. */
bool json_scratch_begin(void);
/* The document, or NULL: nothing came of it. */
void json_scratch_end(const struct cJSON *root);
/* True: it was that document, and is gone. */
bool json_scratch_free(struct cJSON *j);

#endif
