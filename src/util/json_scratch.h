/* Memory for JSON documents. Of those that are read and thrown away again one at a time has
 * its values side by side, and they go all at once. Whoever comes while that place is taken,
 * or needs more, gets ordinary memory. Any thread. */
#ifndef CCT_UTIL_JSON_SCRATCH_H
#define CCT_UTIL_JSON_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;
/* The place is the caller's until json_scratch_end() without a document, or until its document
 * is freed; false: it is taken. */
bool json_scratch_begin(void);
/* Memory that cJSON_Delete frees, or NULL; scratch: json_scratch_begin() said true. */
void *json_scratch_take(bool scratch, size_t n);
/* The document, or NULL: nothing came of it. */
void json_scratch_end(const struct cJSON *root);
/* True: it was that document, and is gone. */
bool json_scratch_free(struct cJSON *j);

#endif
