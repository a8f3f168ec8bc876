/* The schema as data; for store_open.c. */
#ifndef CCT_STORE_SCHEMA_H
#define CCT_STORE_SCHEMA_H

#include "store_priv.h"

/* Entry i brings user_version i to i + 1. */
extern const char *const store_migrations[STORE_SCHEMA];
extern const char *const store_tables[]; /* ends with NULL */

#endif
