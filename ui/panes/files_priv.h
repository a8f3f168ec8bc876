/* The two panes of a sandbox's files: the folder, and the file that is shown. */
#ifndef CCT_UI_FILES_PRIV_H
#define CCT_UI_FILES_PRIV_H

#include "textview.h"

#include <cct/model/files.h>
#include <cct/ui/ui.h>

struct file_work { /* a download, an upload, or something small */
    uint64_t req;    /* 0 = none */
    int op;          /* enum file_op */
    char *path, *to, *local;
    uint64_t done, total;
    size_t file, files;
};
struct files_pane {
    struct ui *ui;
    uint64_t sandbox;
    char *path;          /* of the folder, NULL: the home, not known yet */
    struct file_list list;
    bool have, dots;
    char *error;
    uint64_t req;
    char *back;          /* name that the cursor goes to once the list is there */
    size_t at, top;
    int page;
    struct file_work work;
    char title[200], note[120];
    /* file_view.c */
    char *shown;         /* path of the file shown, NULL = none */
    struct buf data;
    uint64_t view_req;
    struct textview view;
    char **line;
    size_t n_lines;
    char view_note[80], view_title[200];
};
struct files_pane *files_pane_of(struct ui *ui);
/* The entry at the cursor, or NULL; entries that are shown, in order. */
const struct file_entry *files_current(const struct files_pane *p);
size_t files_n(const struct files_pane *p);
void files_go(struct files_pane *p, const char *path);
/* files_work.c: what asks first */
void files_do(struct files_pane *p, enum action a);
void files_work_drop(struct files_pane *p);
/* file_view.c */
void file_view_open(struct files_pane *p, const struct file_entry *f);
void file_view_path(struct files_pane *p, char *path); /* takes it */
void file_view_drop(struct files_pane *p);

#endif
