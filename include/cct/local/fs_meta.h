/* What users attach to a file: the pairs of an upload's X-Metadata-<key> headers,
 * kept as extended attributes "user.e2b.<key>" of the file, so they move with it.
 * Other user.* attributes are none of it. Each upload replaces them all. */
#ifndef CCT_LOCAL_FS_META_H
#define CCT_LOCAL_FS_META_H

#include <cct/util/arr.h>
#include <cct/util/json.h>
#include <stdbool.h>
#include <stddef.h>

#define FS_META_HEADER "X-Metadata-"
#define FS_META_KEY_MAX 246    /* bytes; with the prefix what the system takes */
#define FS_META_TOTAL_MAX 4096 /* keys with their prefix and values of one file */

struct fs_meta_pair {
    char *key, *value;
};
struct fs_meta {
    ARR(struct fs_meta_pair) a;
    size_t total;
    char why[160]; /* the first refusal, "" when there was none */
};

/* A header without its prefix; the key becomes lower case, and of two with the same
 * key the first counts. Both must be printable US-ASCII within the limits, else
 * `why` says what is wrong. */
void fs_meta_add(struct fs_meta *m, const char *key, const char *value);
void fs_meta_release(struct fs_meta *m);
/* Make them the file's only ones. 0 or -1 with errno; ENOTSUP when the file system
 * keeps no attributes. */
int fs_meta_write(int fd, const struct fs_meta *m);
/* Add "metadata":{...} when the file has any; an O_PATH descriptor is fine. */
void fs_meta_json(int fd, struct jw *w);

#endif
