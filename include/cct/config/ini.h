/* The format of our configuration files: `[section]`, `key = value`, comments.
 *
 *     # a comment              a value ends at " # " too
 *     [screen]
 *     theme = dark
 *     title = "with # and \"quotes\", \n \t \\"   only a value that begins with a quote
 *
 * Pure function of the text; any thread. */
#ifndef CCT_CONFIG_INI_H
#define CCT_CONFIG_INI_H

#include <stddef.h>

struct ini_reader {
    /* One call per section header (key and value NULL) and per setting, in order.
     * `section` is "" before the first header. Strings are borrowed for the call. */
    void (*line)(void *ctx, const char *section, const char *key, const char *value, int line);
    /* What is wrong with a line: "FILE:LINE: ..."; the line is left out. */
    void (*say)(void *ctx, const char *message);
    void *ctx;
};

/* Read `len` bytes of text; `file` is only named in messages. Returns the number
 * of lines that could not be read; the others were handed over. */
int ini_parse(const char *text, size_t len, const char *file, const struct ini_reader *r);

#endif
