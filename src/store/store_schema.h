/* The schema as data; for store_open.c. */
#ifndef CCT_STORE_SCHEMA_H
#define CCT_STORE_SCHEMA_H

#include "store_priv.h"

enum { STORE_STEP_PARTS = 8 };
/* An event's kind is the first thing in its JSON: session, usage, exit, turn_end (and
 * turn_begin). */
#define STORE_SUMMED "substr(json, 10, 5) IN ('sessi', 'usage', 'exit\"', 'turn_')"
/* Turns are summed by half hours (ms), and by days of so many of these. */
#define STORE_SLOT_MS INT64_C(1800000)
#define STORE_SLOT_TEXT "1800000"
enum { STORE_DAY = 48 };
#define STORE_DAY_TEXT "48"
/* What brings `version` to the next one; ends with NULL. */
const char *const *store_step(int64_t version);
extern const char *const store_tables[]; /* ends with NULL */

#endif
