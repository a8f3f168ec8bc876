/* The table behind cct/config/models.h. */
#ifndef CCT_CONFIG_MODELS_PRIV_H
#define CCT_CONFIG_MODELS_PRIV_H

#include <cct/config/models.h>

struct model_row {
    const char *provider, *name, *label;
    double input, output, cache_read, cache_write; /* cache: 0 = not told */
};
extern const struct model_row model_rows[];
extern const size_t model_n_rows;
extern const char model_rows_date[];

#endif
