/* One file on its way to the disk; private to envd_files*.c and envd_sink.c. */
#ifndef LOCAL_ENVD_SINK_H
#define LOCAL_ENVD_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct z_stream_s;

struct fs_root;
struct fs_meta;

struct sink {
    char *name;   /* in the folder `dir`; NULL: not open */
    char tmp[48]; /* until it is whole */
    int dir, fd;
    mode_t mode;
    uint64_t written, max;
    struct z_stream_s *z; /* NULL: bytes are written as they are */
    bool z_ended;         /* the last gzip member is whole */
};

/* Make the folders and a temporary file for `path`, which gets `mode` at the end, or
 * 0644 when it is 0: then the file is new. At most `max` bytes may be written. 0 or -1
 * with errno; so the others. */
int sink_open(struct sink *s, const struct fs_root *root, const char *path, mode_t mode,
              bool gzip, uint64_t max);
/* EBADMSG: what comes is no gzip; EFBIG: more than max. */
int sink_write(struct sink *s, const char *p, size_t len);
/* All came: the file appears under its name, with these pairs as its metadata.
 * *kept is false when the file system keeps none; the file is there all the same. */
int sink_commit(struct sink *s, const struct fs_meta *meta, bool *kept);
/* It will not be whole: nothing stays. Fine when it is not open. */
void sink_discard(struct sink *s);

#endif
