/* Times that sums are asked for. */
#include <cct/model/ledger.h>

#include <cct/util/str.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *ledger_period_name(enum ledger_period p)
{
    static const char *const names[LEDGER_PERIODS] = {"day", "week", "month"};

    return names[p];
}

const char *ledger_period_words(enum ledger_period p)
{
    static const char *const words[LEDGER_PERIODS] = {"today", "this week", "this month"};

    return words[p];
}

static int64_t midnight(int year, int month, int day)
{
    struct tm t = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_isdst = -1};

    return (int64_t)mktime(&t) * 1000;
}

static bool read_date(const char *text, size_t len, int *y, int *m, int *d)
{
    char copy[11];
    int end = 0;

    if (len != 10)
        return false;
    memcpy(copy, text, 10);
    copy[10] = 0;
    return sscanf(copy, "%4d-%2d-%2d%n", y, m, d, &end) == 3 && end == 10 && *y >= 1970 && *m >= 1 &&
           *m <= 12 && *d >= 1 && *d <= 31;
}

static bool read_dates(const char *text, struct ledger_query *q)
{
    const char *dots = strstr(text, "..");
    const char *last = dots ? dots + 2 : text;
    int y, m, d;

    if (!read_date(text, dots ? (size_t)(dots - text) : strlen(text), &y, &m, &d))
        return false;
    q->from = midnight(y, m, d);
    if (!read_date(last, strlen(last), &y, &m, &d))
        return false;
    q->to = midnight(y, m, d + 1);
    return q->to > q->from;
}

static void fill_periods(struct ledger_query *q, const struct tm *tm)
{
    int y = tm->tm_year + 1900, m = tm->tm_mon + 1, d = tm->tm_mday;
    int monday = d - (tm->tm_wday + 6) % 7;

    q->period[PERIOD_DAY] = (struct ledger_time){midnight(y, m, d), midnight(y, m, d + 1)};
    q->period[PERIOD_WEEK] = (struct ledger_time){midnight(y, m, monday), midnight(y, m, monday + 7)};
    q->period[PERIOD_MONTH] = (struct ledger_time){midnight(y, m, 1), midnight(y, m + 1, 1)};
}

static int period_parse(const char *text)
{
    for (int p = 0; p < LEDGER_PERIODS; p++)
        if (str_eq(text, ledger_period_name((enum ledger_period)p)))
            return p;
    return str_eq(text, "today") ? PERIOD_DAY : -1;
}

int ledger_range(const char *text, int64_t now, struct ledger_query *q, struct err *e)
{
    time_t t = (time_t)(now / 1000);
    int p = period_parse(text);
    struct tm tm;

    localtime_r(&t, &tm);
    *q = (struct ledger_query){.now = now, .to = INT64_MAX};
    fill_periods(q, &tm);
    if (p >= 0) {
        q->from = q->period[p].from;
        q->to = q->period[p].to;
    } else if (!str_eq(text, "all") && !read_dates(text, q)) {
        return err_set(e, ERR_INVALID,
                       "'%.60s' is no time: give day, week, month, all, YYYY-MM-DD or "
                       "YYYY-MM-DD..YYYY-MM-DD", text);
    }
    return 0;
}
