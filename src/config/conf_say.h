/* What is wrong with a file of the user's, line by line. */
#ifndef CCT_CONFIG_CONF_SAY_H
#define CCT_CONFIG_CONF_SAY_H

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

#endif
