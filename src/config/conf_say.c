#include "conf_say.h"

#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <stdarg.h>

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
        conf_say(c, line, "unknown %s \"%.60s\", did you mean \"%s\"?", what, word, known[near]);
    else
        conf_say(c, line, "unknown %s \"%.60s\"", what, word);
}
