/* One request about files; its parts in one file each. */
#ifndef CCT_JOBS_FILE_PRIV_H
#define CCT_JOBS_FILE_PRIV_H

#include "foreign_priv.h"

#include <cct/model/files.h>

struct put_item {
    char *local, *remote;
    uint64_t size;
};
struct filejob {
    struct jobs *j;
    uint64_t row, req_id, timer;
    struct cmd_file *f;
    char *session; /* of the row, or NULL */
    struct reach reach;
    struct envd *envd;
    /* reading */
    uint64_t at, total;
    int tries;
    bool sized;     /* total is known */
    int fd;         /* of the local file, -1 = none */
    char *temp, *name; /* here: while it is written, and then */
    int64_t told;   /* mono ms of the last progress */
    /* upload */
    ARR(struct put_item) items;
    size_t item, skipped;
    uint64_t sent_before, sum;
    char *far_temp;
    /* changes */
    uint64_t stream;
    bool held;
    struct buf says;
};
/* NULL e: done. The job is gone afterwards. */
void filejob_end(struct filejob *w, const struct err *e);
void filejob_progress(struct filejob *w, uint64_t done, uint64_t total, bool now);
/* The bytes are on their way to main; false: main is behind. */
bool filejob_chunk(struct filejob *w, const char *data, size_t len);
void filejob_get(struct filejob *w);     /* file_get.c: READ and GET */
void filejob_put(struct filejob *w);     /* file_put.c */
void filejob_changes(struct filejob *w); /* file_changes.c */

#endif
