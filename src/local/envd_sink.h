/* One file on its way to the disk; private to envd_files*.c and envd_sink.c. */
#ifndef LOCAL_ENVD_SINK_H
#define LOCAL_ENVD_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Name of a file that is not whole yet, beside its place. Watchers of a folder do
 * not speak of it. */
#define SINK_TMP_PREFIX ".cc-upload-"

struct z_stream_s;

struct sink {
    char *path, *tmp; /* NULL: not open */
    int fd;
    mode_t mode;
    uint64_t written, max;
    struct z_stream_s *z; /* NULL: bytes are written as they are */
    bool z_ended;         /* the last gzip member is whole */
};

/* Make the folders and a temporary file for `path`, which gets `mode` at the end.
 * At most `max` bytes may be written. 0 or -1 with errno; so the others. */
int sink_open(struct sink *s, const char *path, mode_t mode, bool gzip, uint64_t max);
/* EBADMSG: what comes is no gzip; EFBIG: more than max. */
int sink_write(struct sink *s, const char *p, size_t len);
/* All came: the file appears under its name. */
int sink_commit(struct sink *s);
/* It will not be whole: nothing stays. Fine when it is not open. */
void sink_discard(struct sink *s);

#endif
