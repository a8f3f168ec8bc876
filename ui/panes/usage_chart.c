/* Money per hour as bars: eighths of a cell, or # where no more than ASCII may be shown. */
#include "usage_priv.h"

#include <cct/util/clock.h>
#include <stdio.h>

enum { AXIS_W = 8, FEET = 3 /* title, axis, hours */, EIGHTHS = 8, LABEL_HOURS = 3 };

static double dearest(const struct ledger_report *r)
{
    double most = 0;
    for (int h = 0; h < LEDGER_HOURS; h++)
        most = r->hour[h] > most ? r->hour[h] : most;
    return most;
}

bool usage_any(const struct ledger_report *r)
{
    return dearest(r) > 0;
}

/* What of a bar `eighths` high stands in row `row` from the bottom; something is always seen
 * of what is not nothing. */
static const char *part(int eighths, int row, bool ascii)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int n = eighths - row * EIGHTHS;
    n = n < 0 ? 0 : n > EIGHTHS ? EIGHTHS : n;
    if (!ascii)
        return blocks[n];
    return n >= EIGHTHS / 2 ? "#" : n && row == 0 ? "." : " ";
}

static void draw_bars(const struct ledger_report *r, struct canvas *c, struct rect at, int bar,
                      double most)
{
    for (int h = 0; h < LEDGER_HOURS; h++) {
        int eighths = (int)(r->hour[h] / most * at.h * EIGHTHS + 0.5);
        int gap = bar > 2;
        if (r->hour[h] > 0 && eighths == 0)
            eighths = 1;
        for (int y = 0; y < at.h; y++)
            canvas_fill(c, (struct rect){at.y + at.h - 1 - y, at.x + h * bar, 1, bar - gap},
                        ROLE_WORKING, part(eighths, y, c->ascii));
    }
}

static void draw_axis(struct canvas *c, struct rect at, double most)
{
    char label[16];
    for (int y = 0; y < at.h; y++) {
        bool middle = at.h >= 4 && y == at.h / 2;
        snprintf(label, sizeof(label), "%6.*f", most < 0.1 ? 4 : 2,
                 y ? most * (at.h - y) / at.h : most);
        canvas_textf(c, at.y + y, at.x, AXIS_W, ROLE_HINT, "%s |", y == 0 || middle ? label : "      ");
    }
}

static void draw_feet(const struct ledger_report *r, struct canvas *c, int y, int x, int bar)
{
    canvas_text(c, y, x, AXIS_W, ROLE_HINT, "     0 +");
    canvas_fill(c, (struct rect){y, x + AXIS_W, 1, bar * LEDGER_HOURS}, ROLE_HINT, "-");
    for (int h = 0; h < LEDGER_HOURS; h++) {
        char hm[16];
        int64_t at = r->hour_from + h * INT64_C(3600000);
        clock_format_hm(hm, sizeof(hm), at);
        hm[2] = '\0';
        if ((hm[0] * 10 + hm[1] - '0' * 11) % LABEL_HOURS == 0)
            canvas_text(c, y + 1, x + AXIS_W + h * bar, -1, ROLE_HINT, hm);
    }
}

void usage_chart(const struct ledger_report *r, struct canvas *c, struct rect at)
{
    double most = dearest(r);
    int bar = (at.w - AXIS_W - 1) / LEDGER_HOURS, rows = at.h - FEET;
    if (most <= 0) {
        canvas_text(c, at.y, at.x, at.w, ROLE_HINT, "per hour: nothing was paid in the last 24 h");
        return;
    }
    bar = bar < 1 ? 1 : bar > 5 ? 5 : bar;
    canvas_textf(c, at.y, at.x, at.w, ROLE_TITLE, "per hour, last 24 h (max $%.*f)",
                 most < 0.1 ? 4 : 2, most);
    draw_axis(c, (struct rect){at.y + 1, at.x, rows, at.w}, most);
    draw_bars(r, c, (struct rect){at.y + 1, at.x + AXIS_W, rows, at.w}, bar, most);
    draw_feet(r, c, at.y + 1 + rows, at.x, bar);
}

void usage_spark(const struct ledger_report *r, struct canvas *c, struct rect at)
{
    double most = dearest(r);
    int x = at.x + canvas_text(c, at.y, at.x, at.w, ROLE_HINT, "per hour    ");
    if (most <= 0) {
        canvas_text(c, at.y, x, at.x + at.w - x, ROLE_HINT, "nothing in the last 24 h");
        return;
    }
    for (int h = 0; h < LEDGER_HOURS && x < at.x + at.w; h++, x++) {
        int eighths = (int)(r->hour[h] / most * EIGHTHS + 0.5);
        if (r->hour[h] > 0 && eighths == 0)
            eighths = 1;
        canvas_text(c, at.y, x, 1, ROLE_WORKING,
                    !c->ascii     ? part(eighths, 0, false)
                    : eighths > 5 ? "|"
                    : eighths > 2 ? ":"
                    : eighths     ? "."
                                  : " ");
    }
    canvas_textf(c, at.y, x + 1, at.x + at.w - x - 1, ROLE_HINT, "max %.*f", most < 0.1 ? 4 : 2, most);
}
