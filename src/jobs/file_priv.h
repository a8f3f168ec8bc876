/* One request about files; its parts in one file each. */
#ifndef CCT_JOBS_FILE_PRIV_H
#define CCT_JOBS_FILE_PRIV_H

#include "foreign_priv.h"

#include <cct/model/files.h>

struct file_item {
    char *local, *remote; /* local: of a download from its folder on */
    uint64_t size;
    unsigned mode;        /* permission bits */
};
/* A file here while it is written: under another name, in the folder that it is for. */
struct here {
    int dir;    /* -1 = none */
    char *temp; /* NULL: none is there */
    char *base; /* its name at the end */
};
struct filejob {
    struct jobs *j;
    uint64_t row, req_id, timer;
    struct cmd_file *f;
    char *session; /* of the row, or NULL */
    struct reach reach;
    struct envd *envd;
    /* reading */
    const char *remote; /* the file under way */
    uint64_t at, total;
    int tries;
    bool sized;     /* total is known */
    int fd;         /* of the local file, -1 = none */
    char *name;     /* here, as it is told */
    unsigned mode;  /* permission bits there */
    struct here here;
    int64_t told;   /* mono ms of the last progress */
    /* several */
    ARR(struct file_item) items;
    size_t item, skipped;
    uint64_t sent_before, sum;
    char *far_temp;
    /* a whole folder to here */
    int root;            /* the folder here, -1 = none */
    ARR(char *) folders; /* there, from its top on; those before `folder` were looked into */
    size_t folder, unread;
    char *why_unread;    /* the first one, and why */
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
/* --- file_get.c: READ and GET */
void filejob_get(struct filejob *w);
void filejob_read(struct filejob *w, const char *remote); /* from its begin; remote stays */
/* --- file_tree.c: a folder, to w->name */
void filejob_tree(struct filejob *w);
void filejob_tree_read(struct filejob *w, const struct err *e); /* a file of it is here, or not */
/* --- file_sync.c: what was written is brought to the disk on a thread, as that may take long */
/* `whole`: with all else on its file system. fn: e code 0, or why not; it may be called at once,
 * and is not called when the job has ended before. */
void file_sync(struct filejob *w, int fd, bool whole, void (*fn)(struct filejob *w, const struct err *e));
void file_sync_forget(struct filejob *w);
void file_sync_done(struct jobs *j, uint64_t id); /* CMD_FILE_SYNCED */
void file_sync_release(struct jobs *j);           /* waits for what is under way */
/* --- file_here.c */
/* A new file in the folder `dir`, which is taken also when it fails; its descriptor. */
int here_begin(struct here *h, int dir, const char *base, struct err *e);
/* It gets its name, with the usual rights and those of `mode` to execute it. over: what has that
 * name is replaced, else ERR_CONFLICT. */
int here_end(struct here *h, int fd, unsigned mode, bool over, struct err *e);
void here_release(struct here *h); /* what has no name yet is removed */
/* A folder below root, through no link, made where it is missing; -1 with *e. */
int here_folder(int root, const char *path, struct err *e);
void filejob_put(struct filejob *w);     /* file_put.c */
void filejob_changes(struct filejob *w); /* file_changes.c */

#endif
