/* The builds' two panes: the list, and the log of the one that is pointed at. */
#ifndef CCT_UI_BUILDS_PRIV_H
#define CCT_UI_BUILDS_PRIV_H

#include <cct/ui/ui.h>

#include <cct/model/tbuild.h>
#include <cct/util/arr.h>

/* A row: a build that was begun here, or a template that the service has beside those. */
struct builds_row {
    const struct tbuild *b;
    const struct app_template *t;
};
struct builds_pane {
    uint64_t at;        /* build under the cursor, 0: the template */
    char template[130]; /* of that row */
    size_t top;
    int page;
    uint64_t seen;
    /* the service's templates that were not built here; made for these */
    ARR(size_t) others;
    const struct app_template *others_of;
    size_t others_n;
    uint64_t others_rev;
    bool awaits;        /* one was asked for: the cursor goes to it */
    uint64_t newer_than;
    char note[80];
};
/* Row under the cursor; both NULL: there is none. */
struct builds_row builds_cursor(struct ui *ui);

/* The log (build_log.c) goes to that build. */
void build_log_of(struct ui *ui, const struct tbuild *b);
void build_log_leave(struct ui *ui); /* nobody looks any more */
/* cc-tui-build-NAME-20261130-142450.log in the folder that cc-tui was started in. */
void build_log_export(struct ui *ui);

#endif
