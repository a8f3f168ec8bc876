/* What build commands print of a log; src/cli/templates.c. */
#ifndef CCT_CLI_TEMPLATES_H
#define CCT_CLI_TEMPLATES_H

#include "cli_priv.h"

struct templates_tail {
    const struct cli *c;
    char status[40], trouble[200];
    int64_t quiet;
};
/* Lines of JSON for people, and as they are; ctx is a struct templates_tail. */
void templates_follow(void *ctx, const char *json, size_t len);
void templates_put(void *ctx, const char *json, size_t len);

#endif
