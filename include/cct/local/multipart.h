/* A multipart/form-data body read as it arrives: any slicing of the same bytes gives
 * the same parts and the same verdict. Nothing but a part's head is kept. */
#ifndef CCT_LOCAL_MULTIPART_H
#define CCT_LOCAL_MULTIPART_H

#include <cct/local/files_parse.h>

struct multipart;

/* Each returns false to stop. Bytes are borrowed; those of one part may come in any
 * number of pieces, none for an empty one. */
struct multipart_ops {
    bool (*begin)(void *arg, const struct files_part *part);
    bool (*data)(void *arg, const char *p, size_t len);
    bool (*end)(void *arg);
};

/* The boundary has 1..70 bytes and no carriage return (files_boundary). */
struct multipart *multipart_new(const char *boundary, const struct multipart_ops *ops,
                                void *arg);
/* False when the form is damaged or a callback stopped it; then and later. */
bool multipart_feed(struct multipart *m, const char *p, size_t len);
/* The closing delimiter was seen. */
bool multipart_is_whole(const struct multipart *m);
void multipart_free(struct multipart *m); /* NULL is fine */

#endif
