#include "conf_say.h"

#include <cct/config/ini.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#define FILE_BYTES (1u << 20)

void conf_say(const struct conf_say *c, int line, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;

    buf_adds(&b, c->path);
    if (line)
        buf_addf(&b, ":%d", line);
    buf_adds(&b, ": ");
    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    c->say(c->ctx, buf_str(&b));
    buf_release(&b);
}

void conf_say_unknown(const struct conf_say *c, int line, const char *what, const char *word,
                      const char *const *known, size_t n)
{
    int near = str_nearest(word, known, n);

    if (near >= 0)
        conf_say(c, line, "unknown %s \"%s\", did you mean \"%s\"?", what, str_shown(word), known[near]);
    else
        conf_say(c, line, "unknown %s \"%s\"", what, str_shown(word));
}

struct reading {
    const struct conf_say *c;
    conf_line_fn fn;
    void *ctx;
};

static void on_line(void *ctx, const char *section, const char *key, const char *value, int line)
{
    const struct reading *r = ctx;

    r->fn(r->ctx, section, key, value, line);
}

static void on_bad_line(void *ctx, const char *message)
{
    const struct reading *r = ctx;

    r->c->say(r->c->ctx, message);
}

int conf_load(const struct conf_say *c, conf_line_fn fn, void *ctx, struct err *e)
{
    struct reading reading = {c, fn, ctx};
    const struct ini_reader r = {on_line, on_bad_line, &reading};
    struct err why = {0};
    size_t len;
    char *text = fs_read(c->path, FILE_BYTES, false, &len, &why);

    if (!text) {
        if (why.code == ERR_NOTFOUND || why.sys == ENOENT)
            return 0;
        return err_set(e, why.code, "%s", why.text);
    }
    ini_parse(text, len, c->path, &r);
    free(text);
    return 0;
}
