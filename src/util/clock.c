/* Time: three clocks, RFC 3339 both ways, short forms for the screen. */
#include <cct/util/clock.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t clock_mono_ms(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_boot_ms(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_wall_ms(void)
{
    return read_clock(CLOCK_REALTIME);
}

/* Days since 1970-01-01 of a proleptic Gregorian date; years start in March so
 * that the leap day comes last. */
static int64_t days_from_date(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void date_from_days(int64_t days, int64_t *y, int *m, int *d)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *d = (int)(doy - (153 * mp + 2) / 5 + 1);
    *m = (int)(mp < 10 ? mp + 3 : mp - 9);
    *y = yoe + era * 400 + (*m <= 2);
}

/* Exactly n digits at *s into *out; moves on. */
static bool digits(const char **s, int n, int *out)
{
    *out = 0;
    for (; n > 0; n--, ++*s) {
        if (**s < '0' || **s > '9')
            return false;
        *out = *out * 10 + (**s - '0');
    }
    return true;
}

static bool literal(const char **s, char c)
{
    if (**s != c)
        return false;
    ++*s;
    return true;
}

static int month_days(int y, int m)
{
    static const signed char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return days[m - 1] + (m == 2 && leap);
}

static bool parse_date(const char **s, int64_t *days)
{
    int y, m, d;
    if (!digits(s, 4, &y) || !literal(s, '-') || !digits(s, 2, &m) || !literal(s, '-') ||
        !digits(s, 2, &d))
        return false;
    if (m < 1 || m > 12 || d < 1 || d > month_days(y, m))
        return false;
    *days = days_from_date(y, m, d);
    return true;
}

static bool parse_time(const char **s, int64_t *ms)
{
    int h, m, sec;
    if (!digits(s, 2, &h) || !literal(s, ':') || !digits(s, 2, &m) || !literal(s, ':') ||
        !digits(s, 2, &sec))
        return false;
    if (h > 23 || m > 59 || sec > 60) /* 60: a leap second */
        return false;
    *ms = ((h * 60 + m) * 60 + sec) * (int64_t)1000;
    if (!literal(s, '.'))
        return true;
    int n = 0;
    for (int scale = 100; **s >= '0' && **s <= '9'; ++*s, scale /= 10, n++)
        *ms += (**s - '0') * scale;
    return n >= 1 && n <= 9;
}

static bool parse_offset(const char **s, int64_t *ms)
{
    int h, m;
    *ms = 0;
    if (literal(s, 'Z') || literal(s, 'z'))
        return true;
    int sign = literal(s, '-') ? -1 : literal(s, '+') ? 1 : 0;
    if (sign == 0 || !digits(s, 2, &h) || !literal(s, ':') || !digits(s, 2, &m) || h > 23 ||
        m > 59)
        return false;
    *ms = sign * (h * 60 + m) * (int64_t)60000;
    return true;
}

int clock_parse_rfc3339(const char *s, int64_t *out_ms)
{
    int64_t days, ms, offset;

    if (!s || !parse_date(&s, &days))
        return ERR_INVALID;
    if (!literal(&s, 'T') && !literal(&s, 't') && !literal(&s, ' '))
        return ERR_INVALID;
    if (!parse_time(&s, &ms) || !parse_offset(&s, &offset) || *s != '\0')
        return ERR_INVALID;
    *out_ms = days * 86400000 + ms - offset;
    return 0;
}

void clock_format_rfc3339(char *dst, size_t size, int64_t ms)
{
    const int64_t first = -62167219200000, last = 253402300799999; /* years 0 to 9999 */
    int64_t y;
    int m, d;

    ms = ms < first ? first : ms > last ? last : ms;
    int64_t days = ms / 86400000, rest = ms % 86400000;
    if (rest < 0) {
        rest += 86400000;
        days--;
    }
    date_from_days(days, &y, &m, &d);
    int t = (int)(rest / 1000);
    snprintf(dst, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)y, m, d, t / 3600,
             t / 60 % 60, t % 60, (int)(rest % 1000));
}

static void format_local(char *dst, size_t size, int64_t ms, bool seconds)
{
    time_t t = (time_t)(ms >= 0 ? ms / 1000 : (ms - 999) / 1000);
    struct tm tm;

    if (size == 0)
        return;
    dst[0] = '\0';
    if (!localtime_r(&t, &tm))
        return;
    if (seconds)
        snprintf(dst, size, "%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
    else
        snprintf(dst, size, "%02d:%02d", tm.tm_hour, tm.tm_min);
}

void clock_format_hms(char *dst, size_t size, int64_t ms)
{
    format_local(dst, size, ms, true);
}

void clock_format_hm(char *dst, size_t size, int64_t ms)
{
    format_local(dst, size, ms, false);
}

void clock_format_span(char *dst, size_t size, int64_t ms)
{
    long long s = ms > 0 ? ms / 1000 : 0;

    if (s < 60)
        snprintf(dst, size, "%llds", s);
    else if (s < 3600)
        snprintf(dst, size, "%lldm", s / 60);
    else if (s < 86400)
        snprintf(dst, size, "%lldh%02lld", s / 3600, s / 60 % 60);
    else if (s < 86400LL * 10000)
        snprintf(dst, size, "%lldd", s / 86400);
    else
        snprintf(dst, size, "%s", ">27y");
}
