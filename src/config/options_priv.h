/* The option table as rows, for the two halves of the options. */
#ifndef CCT_CONFIG_OPTIONS_PRIV_H
#define CCT_CONFIG_OPTIONS_PRIV_H

#include <cct/config/options.h>

struct option_row {
    const char *section, *name;
    enum option_type type;
    const char *def, *min, *max, *help; /* of an ENUM: min has the choices */
    size_t offset;                      /* in struct options */
};
extern const struct option_row option_rows[];
extern const size_t option_count;

/* A number as the user would write it: "15m", "2G", "30". */
void option_format_number(enum option_type type, int64_t n, char *dst, size_t size);

#endif
