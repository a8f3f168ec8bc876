/* The short form of a recipe: a [template] section whose lines are done from top to bottom. */
#include "recipe_priv.h"

#include <cct/config/ini.h>
#include <cct/model/env_file.h>
#include <cct/util/utf8.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define APT "apt-get update && DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get " \
            "install -y "

struct spec {
    struct recipe *r;
    const char *file;
    int ready_line;
    struct err *e; /* the first one counts */
};

bool recipe_is_spec(const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end) {
        while (text < end && strchr(" \t\r\n", *text))
            text++;
        if (text == end || *text != '#')
            break;
        while (text < end && *text != '\n')
            text++;
    }
    return end - text > 10 && strncmp(text, "[template]", 10) == 0;
}

/* Only the first one is told. */
__attribute__((format(printf, 3, 4))) static void bad(struct spec *s, int line, const char *fmt,
                                                      ...)
{
    struct buf b = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    if (!s->e->code)
        err_set(s->e, ERR_INVALID, "%s:%d: %s", s->file, line, buf_str(&b));
    buf_release(&b);
}

static void run(struct spec *s, const char *command, const char *user, int line)
{
    struct recipe_step *step = recipe_add(s->r, "RUN", line);

    recipe_arg(step, xstrdup(command));
    if (user)
        recipe_arg(step, xstrdup(user));
}

/* Names that a shell gets: nothing in them but what package names have. */
static bool is_package(const char *word)
{
    return *word != '-' &&
           strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                        "@/._+-:=~^") == strlen(word);
}

/* "@scope/name@1.2.3": the version that is said. */
static const char *version_of(const char *package)
{
    const char *at = strrchr(package, '@');

    return at && at > package && at[1] >= '0' && at[1] <= '9' ? at + 1 : NULL;
}

static void install(struct spec *s, const char *value, bool npm, int line)
{
    char **v = docker_words(value, '\\');
    struct buf b = BUF_INIT;

    buf_adds(&b, npm ? "npm install -g" : APT);
    for (size_t i = 0; v[i]; i++) {
        if (!is_package(v[i]))
            bad(s, line, "\"%.60s\" is no name of a package", v[i]);
        else if (npm && !version_of(v[i]))
            bad(s, line, "the package \"%.80s\" wants a version: NAME@1.2.3, so that the next build "
                "gives the same", v[i]);
        buf_addf(&b, npm || i ? " %s" : "%s", v[i]);
    }
    if (!v[0])
        bad(s, line, "%s names no package", npm ? "npm" : "apt");
    run(s, buf_str(&b), "root", line);
    buf_release(&b);
    docker_words_free(v);
}

static void copy(struct spec *s, const char *value, int line)
{
    char **v = docker_words(value, '\\');
    size_t n = 0;

    while (v[n])
        n++;
    if (n < 2)
        bad(s, line, "copy wants a source and a destination");
    for (size_t i = 0; n >= 2 && i + 1 < n && !s->e->code; i++) {
        char *src = docker_unquote(v[i], '\\'), *dest = docker_unquote(v[n - 1], '\\');

        recipe_copy(s->r, src, dest, NULL, NULL, s->file, line, s->e);
        free(src);
        free(dest);
    }
    docker_words_free(v);
}

static void env(struct spec *s, const char *name, const char *value, int line)
{
    struct recipe_step *step;

    if (!env_name_ok(name)) {
        bad(s, line, "\"%.60s\" is no name for a variable: letters, digits and _", name);
        return;
    }
    step = recipe_add(s->r, "ENV", line);
    recipe_arg(step, xstrdup(name));
    recipe_arg(step, recipe_env_literal(value));
}

static void number(struct spec *s, const char *value, int64_t min, int64_t max, int *out, int line)
{
    int64_t n = 0;

    if (!str_to_i64(value, min, max, &n))
        bad(s, line, "\"%.40s\" is no number that is possible here", value);
    else
        *out = (int)n;
}

static void step_of(struct spec *s, const char *type, const char *value, int line)
{
    recipe_arg(recipe_add(s->r, type, line), xstrdup(value));
}

static const char *const keys[] = {"base", "template", "tool", "version", "apt", "npm",
                                   "run", "root", "copy", "user", "workdir", "start", "ready",
                                   "cpu", "memory"};

static void unknown(struct spec *s, const char *key, int line)
{
    int near = str_nearest(key, keys, sizeof(keys) / sizeof(keys[0]));
    char *text = near >= 0 ? xasprintf("; did you mean \"%s\"?", keys[near]) : xstrdup("");

    if (!s->e->code) {
        err_set(s->e, ERR_INVALID, "a template has no \"%s\"%s", str_shown(key), text);
        err_wrap(s->e, "%s:%d", s->file, line);
    }
    free(text);
}

static void value_of(struct spec *s, const char *key, const char *v, int line)
{
    struct recipe *r = s->r;

    if (!*v)
        bad(s, line, "\"%.40s\" has no value", key);
    else if (str_eq(key, "base"))
        str_set(&r->from_image, v);
    else if (str_eq(key, "template"))
        str_set(&r->from_template, v);
    else if (str_eq(key, "tool"))
        str_set(&r->tool, v);
    else if (str_eq(key, "version"))
        str_set(&r->version, v);
    else if (str_eq(key, "start"))
        str_set(&r->start_cmd, v);
    else if (str_eq(key, "ready"))
        s->ready_line = line, str_set(&r->ready_cmd, v);
    else if (str_eq(key, "apt") || str_eq(key, "npm"))
        install(s, v, *key == 'n', line);
    else if (str_eq(key, "run") || str_eq(key, "root"))
        run(s, v, str_eq(key, "root") ? "root" : NULL, line);
    else if (str_eq(key, "copy"))
        copy(s, v, line);
    else if (str_eq(key, "user"))
        step_of(s, "USER", v, line);
    else if (str_eq(key, "workdir"))
        step_of(s, "WORKDIR", v, line);
    else if (str_eq(key, "cpu"))
        number(s, v, 1, 32, &r->cpu_count, line);
    else if (str_eq(key, "memory"))
        number(s, v, 128, 1 << 20, &r->memory_mb, line);
    else if (str_starts(key, "env."))
        env(s, key + 4, v, line);
    else
        unknown(s, key, line);
}

static void on_line(void *ctx, const char *section, const char *key, const char *value, int line)
{
    struct spec *s = ctx;

    if (!str_eq(section, "template"))
        bad(s, line, "\"%.40s\" does not belong into a recipe: everything stands below [template]",
            *section ? section : key ? key : "");
    else if (s->r->steps.n >= RECIPE_STEPS)
        bad(s, line, "too many steps");
    else if (key)
        value_of(s, key, value, line);
}

static void on_say(void *ctx, const char *message)
{
    struct spec *s = ctx;

    if (!s->e->code)
        err_set(s->e, ERR_INVALID, "%s", message);
}

static int check(struct spec *s)
{
    struct recipe *r = s->r;

    if (s->e->code)
        return s->e->code;
    if (!r->from_image == !r->from_template)
        return err_set(s->e, ERR_INVALID, "%s: a template begins with one of base = IMAGE and "
                       "template = NAME", s->file);
    if (r->ready_cmd && !r->start_cmd)
        bad(s, s->ready_line, "ready wants a start command: what is to become ready?");
    else if (r->start_cmd && !r->ready_cmd)
        r->ready_cmd = xstrdup("sleep 20");
    return s->e->code;
}

int recipe_parse_spec(struct recipe *r, const char *text, size_t len, const char *file,
                      const struct kv *args, struct err *e)
{
    struct err own = {0};
    struct spec s = {r, file, 0, e ? e : &own};
    struct ini_reader reader = {on_line, on_say, &s};

    err_clear(s.e);
    if (!utf8_valid(text, len))
        return err_set(s.e, ERR_INVALID, "%s: the file is not text in UTF-8", file);
    if (args && args->k)
        return err_set(s.e, ERR_INVALID, "%s: build arguments are for a Dockerfile's ARGs; this file "
                       "has none", file);
    ini_parse(text, len, file, &reader);
    return check(&s);
}
