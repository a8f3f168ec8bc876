/* The configuration while the screen is open: read again on a thread of its own when one of
 * its files changes or somebody asks; the main thread takes what was read. */
#ifndef CCT_UI_RELOAD_H
#define CCT_UI_RELOAD_H

#include <cct/config/options.h>
#include <cct/ui/theme.h>

struct settings {
    struct config config;
    struct theme theme; /* that it names; name "" when it is "auto", or cannot be had */
};
void settings_free(struct settings *s);
struct reload;
struct reload_opts {
    /* Everything from the files and flags into *c, on the other thread. */
    void (*load)(void *ctx, struct config *c);
    void *ctx;
    const char *files[2];   /* looked after, NULL = none */
    const char *config_dir; /* of themes; all borrowed, must live */
};
/* NULL when there can be no thread, which is logged: then nothing is read again. */
struct reload *reload_new(const struct reload_opts *o);
void reload_free(struct reload *r); /* waits for the thread; NULL is fine */
/* Read it now. */
void reload_ask(struct reload *r);
/* From now on that option has this value, above files and flags; read it now. What does not
 * fit is told by a note of the configuration and forgotten. */
void reload_set(struct reload *r, const char *name, const char *value);
/* Readable when something was read; -1 without a thread. */
int reload_fd(const struct reload *r);
/* What was read last, the caller's to free; NULL = nothing new. */
struct settings *reload_take(struct reload *r);

#endif
