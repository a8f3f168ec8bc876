/* Lines of text that are scrolled through, wrapped. */
#ifndef CCT_UI_TEXTVIEW_H
#define CCT_UI_TEXTVIEW_H

#include <cct/ui/pane.h>
#include <cct/util/arr.h>

struct textview_row {
    uint32_t line, at, len; /* bytes of the line */
};
struct textview { /* zeroed at the start */
    char *const *line; /* cleaned, borrowed */
    size_t n;
    size_t top;        /* first row shown */
    int w, page;
    ARR(struct textview_row) rows; /* at width w */
};
/* Other lines; from their begin on. */
void textview_set(struct textview *v, char *const *line, size_t n);
void textview_release(struct textview *v);
void textview_draw(struct textview *v, struct canvas *c, struct rect r,
                   enum theme_role (*role)(const char *line));
/* Movements; UI_IGNORED for everything else. */
int textview_action(struct textview *v, enum action a);
/* A new place among n entries of a list for a movement, or -1. */
int64_t list_moved(enum action a, size_t at, size_t n, int page);
/* First entry to be shown so that `at` is on the page. */
size_t list_top(size_t top, size_t at, size_t n, int page);

#endif
