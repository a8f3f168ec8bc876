/* Models: the table, what models.conf makes of it, and what tokens cost. */
#include "models_priv.h"

#include "conf_say.h"

#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define DATE_LEN 9 /* "-20250929" */

struct models {
    ARR(struct model_info *) all;
    struct sandbox_rate sandbox;
};

static struct model_info *info_new(const char *provider, const char *name)
{
    struct model_info *i = xcalloc(1, sizeof(*i));

    i->provider = provider ? xstrdup(provider) : NULL;
    i->name = xstrdup(name);
    i->input = i->output = i->cache_read = i->cache_write = (double)NAN;
    return i;
}

static void info_free(struct model_info *i)
{
    free(i->provider);
    free(i->name);
    free(i->label);
    free(i->date);
    free(i);
}

struct models *models_new(void)
{
    struct models *m = xcalloc(1, sizeof(*m));

    for (size_t k = 0; k < model_n_rows; k++) {
        const struct model_row *r = &model_rows[k];
        struct model_info *i = info_new(r->provider, r->name);

        i->label = xstrdup(r->label);
        i->date = xstrdup(model_rows_date);
        i->input = r->input;
        i->output = r->output;
        if (r->cache_read > 0)
            i->cache_read = r->cache_read;
        if (r->cache_write > 0)
            i->cache_write = r->cache_write;
        *ARR_PUSH(&m->all) = i;
    }
    m->sandbox = (struct sandbox_rate){0.000014, 0.0000045, xstrdup("2026-08-06"), false};
    return m;
}

void models_free(struct models *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->all.n; i++)
        info_free(m->all.v[i]);
    ARR_RELEASE(&m->all);
    free(m->sandbox.date);
    free(m);
}

const struct model_info *models_at(const struct models *m, size_t i)
{
    return i < m->all.n ? m->all.v[i] : NULL;
}

/* --- finding ------------------------------------------------------------------------ */

static struct model_info *find_n(const struct models *m, const char *name, size_t len)
{
    for (size_t i = 0; i < m->all.n; i++) {
        struct model_info *k = m->all.v[i];
        size_t n = k->provider ? strlen(k->provider) : 0;

        if (strlen(k->name) == len && !memcmp(k->name, name, len))
            return k;
        if (n && len > n + 1 && name[n] == '/' && !memcmp(k->provider, name, n) &&
            strlen(k->name) == len - n - 1 && !memcmp(k->name, name + n + 1, len - n - 1))
            return k;
    }
    return NULL;
}

const struct model_info *models_find(const struct models *m, const char *name)
{
    size_t len = name ? strlen(name) : 0;
    const struct model_info *i = len ? find_n(m, name, len) : NULL;
    const char *date = len > DATE_LEN ? name + len - DATE_LEN : NULL;

    if (!i && date && *date == '-' && strspn(date + 1, "0123456789") == DATE_LEN - 1)
        i = find_n(m, name, len - DATE_LEN);
    return i;
}

const struct model_info *models_for(const struct models *m, const struct tool *t, size_t n)
{
    for (size_t p = 0; t->models && t->models[p]; p++)
        for (size_t i = 0; i < m->all.n; i++)
            if (str_eq(m->all.v[i]->provider, t->models[p]) && n-- == 0)
                return m->all.v[i];
    return NULL;
}

char *model_word(const struct tool *t, const struct model_info *i)
{
    return t->qualified ? xasprintf("%s/%s", i->provider, i->name) : xstrdup(i->name);
}

static double part(int64_t tokens, double price, double otherwise)
{
    return tokens > 0 ? (double)tokens * (isnan(price) ? otherwise : price) / 1e6 : 0;
}

double models_cost(const struct models *m, const char *name, int64_t input, int64_t cache_read,
                   int64_t cache_write, int64_t output)
{
    const struct model_info *i = models_find(m, name);

    if (!i || isnan(i->input) || isnan(i->output))
        return (double)NAN;
    return part(input, i->input, 0) + part(cache_read, i->cache_read, i->input) +
           part(cache_write, i->cache_write, i->input) + part(output, i->output, 0);
}

const struct sandbox_rate *models_sandbox(const struct models *m)
{
    return &m->sandbox;
}

double sandbox_rate_of(const struct sandbox_rate *r, int cpu_count, int memory_mb)
{
    return cpu_count > 0 && memory_mb > 0
               ? cpu_count * r->vcpu_second + memory_mb / 1024.0 * r->gib_second
               : (double)NAN;
}

double models_sandbox_rate(const struct models *m, const char *account, int cpu_count,
                           int memory_mb)
{
    return str_eq(account, "local") ? 0 : sandbox_rate_of(&m->sandbox, cpu_count, memory_mb);
}

/* --- models.conf -------------------------------------------------------------------- */

struct load {
    struct models *m;
    struct model_info *cur; /* NULL = section is left out */
    bool sandbox;           /* this one is of the sandboxes */
    struct conf_say out;
};

static bool name_ok(const char *name)
{
    size_t n = strlen(name);

    return n && n <= 128 && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789-_.:/@+") == n && *name != '-';
}

static void on_section(struct load *l, const char *section, int line)
{
    const char *name = section + strlen("model");

    l->cur = NULL;
    l->sandbox = str_eq(section, "sandbox");
    if (l->sandbox)
        return;
    if (!str_starts(section, "model ") || !*(name += strspn(name, " \t"))) {
        conf_say(&l->out, line, "unknown section \"%s\", expected \"model NAME\" or \"sandbox\"",
                 str_shown(section));
        return;
    }
    if (!name_ok(name)) {
        conf_say(&l->out, line, "\"%s\" is no name of a model", str_shown(name));
        return;
    }
    l->cur = find_n(l->m, name, strlen(name));
    if (l->cur)
        return;
    l->cur = info_new(NULL, name);
    *ARR_PUSH(&l->m->all) = l->cur;
}

static void set_text(char **field, const char *value)
{
    str_set(field, *value ? value : NULL);
}

static bool price_of(const char *value, double *price)
{
    char *end;
    double d;

    if (!*value) {
        *price = (double)NAN;
        return true;
    }
    if (!isdigit((unsigned char)*value))
        return false;
    d = strtod(value, &end);
    if (*end || !isfinite(d) || d > 1e6)
        return false;
    *price = d;
    return true;
}

static bool date_ok(const char *s)
{
    for (size_t i = 0; i < 10; i++)
        if (i == 4 || i == 7 ? s[i] != '-' : !isdigit((unsigned char)s[i]))
            return false;
    return s[10] == 0;
}

static void set_price(struct load *l, const char *key, const char *value, int line,
                      double *price)
{
    if (!price_of(value, price))
        conf_say(&l->out, line, "%s: expected USD for 1M tokens, like 2.50", key);
}

static void set_date(struct load *l, const char *value, int line, char **date)
{
    if (date_ok(value))
        set_text(date, value);
    else
        conf_say(&l->out, line, "date: expected YYYY-MM-DD");
}

static void on_key(struct load *l, const char *key, const char *value, int line)
{
    static const char *const keys[] = {"provider",   "label",       "input", "output",
                                       "cache_read", "cache_write", "date"};
    struct model_info *i = l->cur;

    if (str_eq(key, "provider"))
        set_text(&i->provider, value);
    else if (str_eq(key, "label"))
        set_text(&i->label, value);
    else if (str_eq(key, "input"))
        set_price(l, key, value, line, &i->input);
    else if (str_eq(key, "output"))
        set_price(l, key, value, line, &i->output);
    else if (str_eq(key, "cache_read"))
        set_price(l, key, value, line, &i->cache_read);
    else if (str_eq(key, "cache_write"))
        set_price(l, key, value, line, &i->cache_write);
    else if (str_eq(key, "date"))
        set_date(l, value, line, &i->date);
    else
        conf_say_unknown(&l->out, line, "key", key, keys, COUNT(keys));
}

static void on_sandbox_key(struct load *l, const char *key, const char *value, int line)
{
    static const char *const keys[] = {"vcpu_second", "gib_second", "date"};
    struct sandbox_rate *r = &l->m->sandbox;
    bool vcpu = str_eq(key, "vcpu_second");

    if (vcpu || str_eq(key, "gib_second")) {
        if (price_of(value, vcpu ? &r->vcpu_second : &r->gib_second))
            r->own = true;
        else
            conf_say(&l->out, line, "%s: expected USD a second, like 0.000014", key);
    } else if (str_eq(key, "date")) {
        set_date(l, value, line, &r->date);
    } else {
        conf_say_unknown(&l->out, line, "key", key, keys, COUNT(keys));
    }
}

static void on_line(void *ctx, const char *section, const char *key, const char *value, int line)
{
    struct load *l = ctx;

    if (!key)
        on_section(l, section, line);
    else if (l->sandbox)
        on_sandbox_key(l, key, value, line);
    else if (l->cur)
        on_key(l, key, value, line);
    else if (!*section)
        conf_say(&l->out, line, "\"%s\" stands before the first [model NAME]", str_shown(key));
}

/* A new one may have its provider in its name; one without any is nobody's to choose, but
 * its price counts. */
static void complete(struct model_info *i)
{
    char *slash = strchr(i->name, '/');

    if (!i->provider && slash) {
        i->provider = xstrndup(i->name, (size_t)(slash - i->name));
        memmove(i->name, slash + 1, strlen(slash + 1) + 1);
    }
    if (!i->label)
        i->label = xstrdup(i->name);
}

int models_load(struct models *m, const char *path,
                void (*say)(void *ctx, const char *message), void *ctx, struct err *e)
{
    struct load l = {.m = m, .out = {path, say, ctx}};
    int rc = conf_load(&l.out, on_line, &l, e);

    if (rc)
        return rc;
    for (size_t i = 0; i < m->all.n; i++)
        complete(m->all.v[i]);
    return 0;
}
