/* A file of the user's: read line by line, and what is wrong with it is said. */
#ifndef CCT_CONFIG_CONF_SAY_H
#define CCT_CONFIG_CONF_SAY_H

#include <cct/util/err.h>
#include <stddef.h>

struct conf_say {
    const char *path;
    void (*say)(void *ctx, const char *message);
    void *ctx;
};
/* "PATH:LINE: ..."; line 0 = the file as a whole. */
void conf_say(const struct conf_say *c, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Unknown `word`: named with the nearest one that is known. */
void conf_say_unknown(const struct conf_say *c, int line, const char *what, const char *word,
                      const char *const *known, size_t n);

/* What a line of the file gets: as ini_reader.line. */
typedef void (*conf_line_fn)(void *ctx, const char *section, const char *key,
                             const char *value, int line);
/* Hand over the lines of c->path. A missing file is an empty one; 0, or an error when it
 * exists and cannot be read. */
int conf_load(const struct conf_say *c, conf_line_fn fn, void *ctx, struct err *e);

#endif
