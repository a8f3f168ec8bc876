/* Options: the table, reading values, and the places they come from. */
#include <cct/config/ini.h>
#include <cct/config/options.h>

#include "options_priv.h"

#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 20, MAX_STR = 4096, MAX_NOTES = 100 };

#define OPTION_ROW(f, sec, name, type, def, min, max, help) \
    {sec, name, OPT_##type, def, min, max, help, offsetof(struct options, f)},
const struct option_row option_rows[] = {OPTIONS(OPTION_ROW)};
#undef OPTION_ROW
const size_t option_count = sizeof(option_rows) / sizeof(option_rows[0]);

_Static_assert(sizeof(option_rows) / sizeof(option_rows[0]) <=
                   sizeof(((struct options *)0)->source) / sizeof(enum option_source),
               "room for the source of every option");

void config_note(struct config *c, const char *fmt, ...)
{
    va_list ap;
    struct buf b = BUF_INIT;

    if (c->n_notes >= MAX_NOTES)
        return;
    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    c->notes = xrealloc(c->notes, (c->n_notes + 1) * sizeof(*c->notes));
    c->notes[c->n_notes++] = buf_detach(&b, NULL);
}

/* --- values ------------------------------------------------------------------ */

static int64_t limit(const char *text, int64_t def)
{
    int64_t n;
    return *text && str_to_i64(text, INT64_MIN, INT64_MAX, &n) ? n : def;
}

static bool parse_bool(const char *s, bool *out)
{
    static const char *const words[] = {"off", "on", "no", "yes", "false", "true", "0", "1"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (str_eq_nocase(s, words[i])) {
            *out = i & 1;
            return true;
        }
    return false;
}

/* "64K", "1M", "2G", plain bytes. */
static bool parse_size(const char *s, int64_t *out)
{
    static const char units[] = "KMGT";
    char number[24];
    size_t n = strlen(s);
    int shift = 0;
    int64_t v;

    if (n > 0 && n < sizeof(number)) {
        const char *u = strchr(units, toupper((unsigned char)s[n - 1]));
        if (u) {
            shift = 10 * (int)(u - units + 1);
            n--;
        }
        memcpy(number, s, n);
        number[n] = '\0';
        if (str_to_i64(number, 0, INT64_MAX >> shift, &v)) {
            *out = v << shift;
            return true;
        }
    }
    return false;
}

static bool is_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = choices; n && (p = strstr(p, word)); p += n)
        if ((p == choices || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return true;
    return false;
}

static int set_number(const struct option_row *r, void *at, const char *value, struct err *e)
{
    bool size = r->type == OPT_SIZE;
    int64_t n, min = limit(r->min, size ? 0 : INT32_MIN),
               max = limit(r->max, size ? INT64_MAX : INT32_MAX);
    bool ok = r->type == OPT_INT    ? str_to_i64(value, INT64_MIN, INT64_MAX, &n)
              : r->type == OPT_SPAN ? str_to_seconds(value, &n)
                                    : parse_size(value, &n);

    if (!ok)
        return err_set(e, ERR_INVALID, "'%s' cannot be that: it wants %s", r->name,
                       r->type == OPT_INT    ? "a number"
                       : r->type == OPT_SPAN ? "a time such as 90, 15m or 1h30m"
                                             : "a size such as 64K, 1M or 2G");
    if (n < min || n > max) {
        char lo[32], hi[32];
        option_format_number(r->type, min, lo, sizeof(lo));
        option_format_number(r->type, max, hi, sizeof(hi));
        return err_set(e, ERR_INVALID, "'%s' cannot be that: it is from %s to %s", r->name,
                       lo, hi);
    }
    if (size)
        *(int64_t *)at = n;
    else
        *(int *)at = (int)n;
    return 0;
}

bool config_usd(const char *s, double *out)
{
    s += *s == '$';
    size_t n = strspn(s, "0123456789"), more = s[n] == '.' ? strspn(s + n + 1, "0123456789") : 0;

    if (n + more == 0 || n > 15 || s[n + (s[n] == '.') + more])
        return false;
    *out = strtod(s, NULL);
    return true;
}

static int set_usd(const struct option_row *r, double *at, const char *value, struct err *e)
{
    double usd, max = strtod(r->max, NULL);

    if (!config_usd(value, &usd))
        return err_set(e, ERR_INVALID, "'%s' cannot be that: it wants USD such as 10 or 2.50",
                       r->name);
    if (usd > max)
        return err_set(e, ERR_INVALID, "'%s' cannot be that: it is from %s to %s", r->name,
                       r->min, r->max);
    *at = usd;
    return 0;
}

static int set_text(const struct option_row *r, char **at, const char *value, struct err *e)
{
    if (r->type == OPT_ENUM && !is_choice(r->min, value))
        return err_set(e, ERR_INVALID, "'%s' cannot be that: it is one of %s", r->name,
                       r->min);
    if (strlen(value) > MAX_STR)
        return err_set(e, ERR_INVALID, "'%s' is longer than %d bytes", r->name, MAX_STR);
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return err_set(e, ERR_INVALID, "'%s' holds a control character", r->name);
    char *copy = xstrdup(value);
    free(*at);
    *at = copy;
    return 0;
}

static int set_row(struct config *c, size_t i, const char *value, enum option_source src,
                   struct err *e)
{
    const struct option_row *r = &option_rows[i];
    void *at = (char *)&c->o + r->offset;
    int rc = 0;

    if (r->type == OPT_BOOL) {
        if (!parse_bool(value, at))
            rc = err_set(e, ERR_INVALID, "'%s' cannot be that: it is on or off", r->name);
    } else if (r->type == OPT_STR || r->type == OPT_ENUM) {
        rc = set_text(r, at, value, e);
    } else if (r->type == OPT_USD) {
        rc = set_usd(r, at, value, e);
    } else {
        rc = set_number(r, at, value, e);
    }
    if (rc == 0)
        c->o.source[i] = src;
    return rc;
}

/* --- names ------------------------------------------------------------------- */

/* Row of a name in a section; section NULL = in any. */
static int find_row(const char *section, const char *name)
{
    for (size_t i = 0; i < option_count; i++)
        if ((!section || strcmp(option_rows[i].section, section) == 0) &&
            strcmp(option_rows[i].name, name) == 0)
            return (int)i;
    return -1;
}

static bool is_section(const char *s)
{
    if (strcmp(s, "keys") == 0)
        return true;
    for (size_t i = 0; i < option_count; i++)
        if (strcmp(option_rows[i].section, s) == 0)
            return true;
    return false;
}

static const char *nearest_section(const char *word)
{
    const char *names[64] = {"keys"};
    size_t n = 1;

    for (size_t i = 0; i < option_count && n < 64; i++)
        names[n++] = option_rows[i].section;
    int at = str_nearest(word, names, n);
    return at < 0 ? NULL : names[at];
}

static const char *nearest_name(const char *section, const char *word)
{
    const char *names[64];
    size_t n = 0;

    for (size_t i = 0; i < option_count && n < 64; i++)
        if (!section || strcmp(option_rows[i].section, section) == 0)
            names[n++] = option_rows[i].name;
    int at = str_nearest(word, names, n);
    return at < 0 ? NULL : names[at];
}

int config_set(struct config *c, const char *name, const char *value, enum option_source src,
               struct err *e)
{
    const char *dot = strchr(name, '.');
    char *section = dot ? xstrndup(name, (size_t)(dot - name)) : NULL;
    const char *bare = dot ? dot + 1 : name;
    int i = find_row(section, bare), rc;

    if (i >= 0) {
        rc = set_row(c, (size_t)i, value, src, e);
    } else {
        const char *near = nearest_name(NULL, bare);
        rc = err_set(e, ERR_NOTFOUND, "there is no option '%.60s'%s%s%s", str_shown(name),
                     near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
    free(section);
    return rc;
}

/* --- files ------------------------------------------------------------------- */

struct loading {
    struct config *c;
    const char *file;
    enum option_source src;
};

static void unknown_key(struct loading *l, const char *section, const char *key, int line)
{
    int other = find_row(NULL, key);
    const char *near = nearest_name(section, key);

    if (!*section && other >= 0)
        config_note(l->c, "%s:%d: '%s' stands before any section; it belongs to [%s]", l->file,
                    line, key, option_rows[other].section);
    else if (other >= 0)
        config_note(l->c, "%s:%d: '%s' belongs to [%s], not to [%s]", l->file, line, key,
                    option_rows[other].section, section);
    else if (near)
        config_note(l->c, "%s:%d: unknown key '%s' (did you mean '%s'?)", l->file, line,
                    str_shown(key), near);
    else
        config_note(l->c, "%s:%d: unknown key '%s'", l->file, line, str_shown(key));
}

/* A project's file may come with a cloned repository: it says how things look and
 * what new sandboxes are like, never where keys go, what is trusted, what is deleted
 * or what a key press does. */
static bool project_may(const char *section, const char *key)
{
    static const char *const sandbox[] = {"timeout", "at_end", "tool", "project"};

    if (strcmp(section, "screen") == 0)
        return true;
    for (size_t i = 0; i < sizeof(sandbox) / sizeof(sandbox[0]); i++)
        if (strcmp(section, "sandbox") == 0 && strcmp(key, sandbox[i]) == 0)
            return true;
    return false;
}

static void add_key_line(struct loading *l, const char *action, const char *keys, int line)
{
    struct config *c = l->c;
    c->keys = xrealloc(c->keys, (c->n_keys + 1) * sizeof(*c->keys));
    struct key_line *k = &c->keys[c->n_keys++];
    k->action = xstrdup(action);
    k->keys = xstrdup(keys);
    snprintf(k->where, sizeof(k->where), "%s:%d", l->file, line);
}

static void take_line(void *ctx, const char *section, const char *key, const char *value,
                      int line)
{
    struct loading *l = ctx;
    struct err e = {0};

    if (!key) {
        const char *near = is_section(section) ? NULL : nearest_section(section);
        if (near)
            config_note(l->c, "%s:%d: unknown section '%s' (did you mean '%s'?)", l->file,
                        line, str_shown(section), near);
        else if (!is_section(section))
            config_note(l->c, "%s:%d: unknown section '%s'", l->file, line,
                        str_shown(section));
        return;
    }
    bool keys = strcmp(section, "keys") == 0;
    if (*section && !is_section(section))
        return; /* said at its header */
    int i = keys ? -1 : find_row(section, key);
    if (l->src == OPT_PROJECT && (keys || i >= 0) && !project_may(section, key))
        config_note(l->c, "%s:%d: '%s' is not taken from a project's file; set it in your own",
                    l->file, line, keys ? str_shown(key) : key);
    else if (keys)
        add_key_line(l, key, value, line);
    else if (i < 0)
        unknown_key(l, section, key, line);
    else if (set_row(l->c, (size_t)i, value, l->src, &e) != 0)
        config_note(l->c, "%s:%d: %s; the value stays as it was", l->file, line, e.text);
}

static void take_note(void *ctx, const char *message)
{
    config_note(((struct loading *)ctx)->c, "%s", message);
}

static void load_file(struct config *c, const char *file, enum option_source src)
{
    struct err e = {0};
    size_t len;
    char *text = fs_read_linked(file, MAX_FILE, &len, &e);

    if (!text && e.code == ERR_NOTFOUND)
        return;
    if (!text) {
        config_note(c, "%s", e.text);
        return;
    }
    struct loading l = {c, file, src};
    const struct ini_reader r = {take_line, take_note, &l};
    ini_parse(text, len, file, &r);
    free(text);
}

static void load_env(struct config *c)
{
    for (size_t i = 0; i < option_count; i++) {
        char name[96];
        struct err e = {0};
        snprintf(name, sizeof(name), "CC_TUI_%s_%s", option_rows[i].section,
                 option_rows[i].name);
        for (char *p = name; *p; p++)
            *p = (char)toupper((unsigned char)*p);
        const char *v = getenv(name);
        if (v && set_row(c, i, v, OPT_ENV, &e) != 0)
            config_note(c, "%s: %s; the value stays as it was", name, e.text);
    }
}

void config_load(struct config *c, const char *user_file, const char *project_file)
{
    struct err e = {0};

    memset(c, 0, sizeof(*c));
    for (size_t i = 0; i < option_count; i++)
        if (set_row(c, i, option_rows[i].def, OPT_DEFAULT, &e) != 0)
            BUG("the default of an option does not fit: %s", e.text);
    if (user_file)
        load_file(c, user_file, OPT_USER);
    if (project_file)
        load_file(c, project_file, OPT_PROJECT);
    load_env(c);
}

void config_release(struct config *c)
{
    for (size_t i = 0; i < option_count; i++)
        if (option_rows[i].type == OPT_STR || option_rows[i].type == OPT_ENUM)
            free(*(char **)((char *)&c->o + option_rows[i].offset));
    for (size_t i = 0; i < c->n_keys; i++) {
        free(c->keys[i].action);
        free(c->keys[i].keys);
    }
    for (size_t i = 0; i < c->n_notes; i++)
        free(c->notes[i]);
    free(c->keys);
    free(c->notes);
    memset(c, 0, sizeof(*c));
}
