/* The usage panel: what it draws from. */
#ifndef CCT_UI_USAGE_PRIV_H
#define CCT_UI_USAGE_PRIV_H

#include <cct/model/ledger.h>
#include <cct/ui/ui.h>
#include <cct/util/arr.h>

enum { USAGE_RANGES = LEDGER_PERIODS + 1 /* and all there is */, USAGE_MANY_IDLE = 4,
       USAGE_HIDE_MS = 3600000 };
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
    uint64_t idle_ids[USAGE_MANY_IDLE]; /* as found at idle_at, n_idle of them */
    size_t n_idle;
    int64_t idle_at; /* wall ms, 0: not looked yet */
    uint64_t idle_shape;
    ARR(struct usage_hidden) hidden;
    char note[80];
};
/* Idle but running, those first that have cost most so far: at most USAGE_MANY_IDLE of them into
 * `out`; returns how many there are. `others` are named in the line of the last one. */
size_t usage_idle_ones(struct ui *ui, struct usage_pane *u, const struct sandbox **out,
                       int64_t server);
void usage_draw_idle(struct ui *ui, const struct sandbox *s, bool first, size_t others,
                     struct canvas *c, int y, struct rect r, int64_t server);
bool usage_is_hidden(const struct usage_pane *u, uint64_t sandbox, int64_t now);
/* Tables side by side; rows behind u->top. */
void usage_tables(struct usage_pane *u, const struct ledger_report *r, struct canvas *c,
                  struct rect at);
/* One table as a line: "by agent  claude 7.02  codex 2.90", as many as fit. */
void usage_line(const struct ledger_report *r, enum ledger_by b, struct canvas *c, struct rect at);
/* The same hours as one line. */
void usage_spark(const struct ledger_report *r, struct canvas *c, struct rect at);
bool usage_any(const struct ledger_report *r); /* something was paid in them */
/* The pane beside others: sums, where it went, the hours, what runs for nothing. */
void usage_small(struct ui *ui, struct usage_pane *u, struct canvas *c, struct rect r);
/* Bars of the last 24 hours with axis and hours, at least 5 rows. */
void usage_chart(const struct ledger_report *r, struct canvas *c, struct rect at);

#endif
