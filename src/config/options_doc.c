/* What is written about the options: values as text, the example file, the table. */
#include <cct/config/options.h>

#include "options_priv.h"

#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <stdio.h>
#include <string.h>

static void format_span(int64_t n, char *dst, size_t size)
{
    static const struct {
        char unit;
        int64_t s;
    } units[] = {{'d', 86400}, {'h', 3600}, {'m', 60}};
    size_t used = 0;

    *dst = '\0';
    for (size_t i = 0; i < 3 && used < size; i++)
        if (n >= units[i].s) {
            used += (size_t)snprintf(dst + used, size - used, "%lld%c",
                                     (long long)(n / units[i].s), units[i].unit);
            n %= units[i].s;
        }
    if ((n > 0 || used == 0) && used < size)
        snprintf(dst + used, size - used, "%lld%s", (long long)n, n ? "s" : "");
}

static void format_size(int64_t n, char *dst, size_t size)
{
    static const char units[] = "\0KMGT";
    int u = 0;

    while (n && n % 1024 == 0 && u < 4) {
        n /= 1024;
        u++;
    }
    char unit[2] = {units[u], '\0'};
    snprintf(dst, size, "%lld%s", (long long)n, unit);
}

void option_format_number(enum option_type type, int64_t n, char *dst, size_t size)
{
    if (type == OPT_SPAN)
        format_span(n, dst, size);
    else if (type == OPT_SIZE)
        format_size(n, dst, size);
    else
        snprintf(dst, size, "%lld", (long long)n);
}

bool config_at(const struct config *c, size_t i, const char **section, const char **name,
               char *value, size_t size, enum option_source *src, const char **help)
{
    if (i >= option_count)
        return false;
    const struct option_row *r = &option_rows[i];
    const void *at = (const char *)&c->o + r->offset;

    *section = r->section;
    *name = r->name;
    *src = c->o.source[i];
    *help = r->help;
    switch (r->type) {
    case OPT_BOOL:
        str_copy(value, size, *(const bool *)at ? "on" : "off");
        break;
    case OPT_STR:
    case OPT_ENUM:
        str_copy(value, size, *(char *const *)at);
        break;
    case OPT_SIZE:
        option_format_number(r->type, *(const int64_t *)at, value, size);
        break;
    case OPT_USD:
        snprintf(value, size, "%.15g", *(const double *)at);
        break;
    default:
        option_format_number(r->type, *(const int *)at, value, size);
    }
    return true;
}

static void add_limit(struct buf *b, const struct option_row *r, const char *text)
{
    char s[32];
    int64_t n;

    if (str_to_i64(text, INT64_MIN, INT64_MAX, &n)) {
        option_format_number(r->type, n, s, sizeof(s));
        buf_adds(b, s);
    }
}

/* "on or off", "kill, pause", "2 to 60". */
static void add_values(struct buf *b, const struct option_row *r)
{
    if (r->type == OPT_BOOL) {
        buf_adds(b, "on, off");
    } else if (r->type == OPT_STR) {
        buf_adds(b, "text");
    } else if (r->type == OPT_ENUM) {
        for (const char *p = r->min; *p; p++)
            buf_adds(b, *p == ' ' ? ", " : (char[]){*p, '\0'});
    } else if (r->type == OPT_USD) {
        buf_adds(b, "USD (2.50)");
    } else if (*r->max) {
        add_limit(b, r, r->min);
        buf_adds(b, " to ");
        add_limit(b, r, r->max);
    } else {
        buf_adds(b, r->type == OPT_SIZE ? "a size (64K, 1M, 2G)" : "a number");
    }
}

char *config_example(void)
{
    struct buf b = BUF_INIT;
    const char *section = "";

    buf_adds(&b, "# cc-tui.conf: every option with its default. Copy it to\n"
                 "# ~/.config/cc-tui/cc-tui.conf and take the # off what you change.\n"
                 "# A project may have some of them in a file .cc-tui; a flag\n"
                 "# (--set section.name=value) and a variable (CC_TUI_SECTION_NAME) win.\n");
    for (size_t i = 0; i < option_count; i++) {
        const struct option_row *r = &option_rows[i];
        if (strcmp(section, r->section) != 0)
            buf_addf(&b, "\n[%s]\n", r->section);
        section = r->section;
        buf_addf(&b, "# %s (", r->help);
        add_values(&b, r);
        buf_addf(&b, ")\n#%s =%s%s\n", r->name, *r->def ? " " : "", r->def);
    }
    buf_adds(&b, "\n# Keys: ACTION = KEY KEY ...; 'cc-tui config keys' lists the actions.\n"
                 "[keys]\n#kill = D F9\n#kill-all = K\n");
    return buf_detach(&b, NULL);
}

char *config_table(void)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, "| Option | Default | Values | Meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < option_count; i++) {
        const struct option_row *r = &option_rows[i];
        buf_addf(&b, "| `%s.%s` | %s%s%s | ", r->section, r->name, *r->def ? "`" : "", r->def,
                 *r->def ? "`" : "");
        add_values(&b, r);
        buf_addf(&b, " | %s |\n", r->help);
    }
    return buf_detach(&b, NULL);
}
