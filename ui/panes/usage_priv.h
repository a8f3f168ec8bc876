/* The usage panel: what it draws from. */
#ifndef CCT_UI_USAGE_PRIV_H
#define CCT_UI_USAGE_PRIV_H

#include <cct/model/ledger.h>
#include <cct/ui/ui.h>
#include <cct/util/arr.h>

enum { USAGE_RANGES = LEDGER_PERIODS + 1 }; /* and all there is */
struct usage_hidden {
    uint64_t sandbox;
    int64_t until; /* wall ms */
};
struct usage_pane {
    int range;        /* enum ledger_period, or all */
    int first;        /* enum ledger_by of the table at the left */
    size_t top;       /* rows of the tables scrolled away */
    size_t most_rows; /* of a table that was drawn, and of rows it had */
    int rows;
    uint64_t idle;    /* sandbox that the line of idle ones names first, 0 = none */
    uint64_t seen;
    ARR(struct usage_hidden) hidden;
    char note[80];
};
bool usage_is_hidden(const struct usage_pane *u, uint64_t sandbox, int64_t now);
/* Tables side by side; rows behind u->top. */
void usage_tables(struct usage_pane *u, const struct ledger_report *r, struct canvas *c,
                  struct rect at);
/* Bars of the last 24 hours with axis and hours, at least 5 rows. */
void usage_chart(const struct ledger_report *r, struct canvas *c, struct rect at);

#endif
