/* Rows of the list pane. */
#ifndef CCT_UI_LIST_PRIV_H
#define CCT_UI_LIST_PRIV_H

#include <cct/model/filter.h>
#include <cct/model/sort.h>
#include <cct/ui/ui.h>
#include <cct/util/map.h>

/* All the model's rows as they are to stand; see list_order.c. */
struct order {
    enum sort by;
    bool inverted, made;
    uint64_t seen;
    uint64_t rev;      /* grows with any change of it */
    ARR(uint64_t) ids; /* unless by SORT_MADE, which is the model's own order */
};
void order_update(struct order *o, const struct model *m);
size_t order_count(const struct order *o, const struct model *m);
const struct sandbox *order_at(const struct order *o, const struct model *m, size_t i); /* or NULL */
void order_by(struct order *o, enum sort by, bool inverted);
const struct order *list_order(struct ui *ui); /* up to date */

/* Those of an order that are in view and fit a filter; see list_shown.c. Zeroed to begin with. */
struct shown {
    ARR(uint64_t) ids;           /* living ones first, then ended ones */
    size_t living;               /* so many of them */
    struct filter terms;
    ARR(uint64_t) ended;         /* while they are lined up */
    ARR(unsigned char) places;   /* of each row of the model */
    char filter[FILTER_BYTES];
    uint64_t stays;              /* a row that is shown though it does not fit, 0 = none */
    uint64_t seen, shape, ordered;
};
void shown_update(struct shown *sh, const struct order *o, const struct model *m,
                  const char *filter, uint64_t stays);
void shown_release(struct shown *sh);
/* Its place in ids, SIZE_MAX = it is not shown; at once if it is where one guessed. */
size_t shown_at(const struct shown *sh, uint64_t id, size_t guess);
bool shown_has(const struct shown *sh, const struct model *m, uint64_t id);
void list_draw_head(struct canvas *c, struct rect r, const struct order *o);
/* The cells of one sandbox at row y of r; the cursor's mark is the list's business. */
void list_draw_row(struct ui *ui, struct canvas *c, int y, struct rect r,
                   const struct sandbox *s, int64_t now);

/* What its agent does and the time left, as the list says it. */
void list_doing(const struct sandbox *s, int w, int64_t now, char *dst, size_t size);
void list_left(const struct ui *ui, const struct sandbox *s, int64_t now, char *dst, size_t size,
               bool *warn);
enum theme_role list_role(const struct sandbox *s);
const char *list_glyph(const struct sandbox *s);

#endif
