/* Files of a sandbox as its envd tells of them. A name may come from anybody: `name` is what
 * paths are made of, `shown` what may be on a screen. Plain data, any thread. */
#ifndef CCT_MODEL_FILES_H
#define CCT_MODEL_FILES_H

#include <cct/util/err.h>
#include <cct/util/mq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum file_kind { FILE_PLAIN, FILE_FOLDER, FILE_STRANGE /* a device, a link to nowhere */ };
struct file_entry {
    char *name, *shown;
    char *path;       /* absolute, as the sandbox says; NULL in lists */
    char *target;     /* of a link, cleaned; NULL: it is none */
    char *owner;      /* cleaned; "" = not told */
    char perms[32];   /* "-rw-r--r--" as ls has it, only letters and '-' */
    enum file_kind kind; /* of what a link leads to */
    int64_t size;
    int64_t mtime_ms; /* 0 = not told */
    unsigned mode;    /* permission bits */
};
enum { FILES_MAX = 20000 };
struct file_list {
    char *path;       /* of the folder, as it was asked for */
    struct file_entry *v; /* folders first, each by name */
    size_t n;
    size_t left_out;  /* beyond FILES_MAX, or with a name that makes no sense */
};
/* Of ListDir's answer; 0 or ERR_PROTO. */
int file_list_parse(struct file_list *l, const char *json, size_t len, struct err *e);
void file_list_release(struct file_list *l);
void file_list_copy(struct file_list *dst, const struct file_list *src);
/* Of the entry in the answer of Stat, MakeDir and Move; false: there is none. */
bool file_entry_parse(struct file_entry *f, const char *json, size_t len);
void file_entry_release(struct file_entry *f);

/* "/a" and "b" to "/a/b", new string. The folder above, "/" above that; new string. */
char *file_path_join(const char *dir, const char *name);
char *file_path_parent(const char *path);
const char *file_path_name(const char *path); /* behind the last slash; borrowed */
/* Bytes that are no text: a NUL in it, or much that is none. */
bool file_is_binary(const char *data, size_t len);
/* "812", "4.0K", "12M": at most five characters. */
void file_size_format(int64_t size, char dst[8]);

/* --- requests about files (app_file), and what is told beside bytes and the end ------- */
enum file_op {
    FILE_OP_LIST,    /* path: EV_FILES */
    FILE_OP_STAT,    /* path: EV_FILES with that one */
    FILE_OP_READ,    /* path, max: EV_CHUNK */
    FILE_OP_GET,     /* path, a file or a folder, to local */
    FILE_OP_PUT,     /* local, a file or a folder, to path */
    FILE_OP_MKDIR,   /* path */
    FILE_OP_MOVE,    /* path to `to` */
    FILE_OP_REMOVE,  /* path, with all that is in it */
    FILE_OP_CHANGES  /* max: of the diff. EV_CHUNK for changes_parse(), cct/model/changes.h */
};
struct ev_files {
    struct msg m; /* type EV_FILES */
    struct file_list list;
};
struct ev_progress {
    struct msg m; /* type EV_PROGRESS */
    uint64_t done, total; /* bytes; total 0 = not known */
    size_t file, files;   /* the how manieth of how many */
};
enum { EV_FILES = 66, EV_PROGRESS = 67 };

#endif
