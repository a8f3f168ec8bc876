/* What is seen of a sandbox at a time, for tests of the ledger. Times are wall ms. */
#ifndef CCT_TESTS_LIB_SIGHTINGS_H
#define CCT_TESTS_LIB_SIGHTINGS_H

#include <cct/model/ledger.h>

/* It runs since `start`, and would end two hours later. */
struct sighting sighting_up(int64_t start, int64_t now);
struct sighting sighting_paused(int64_t start, int64_t at, int64_t now);
struct sighting sighting_gone(enum sb_gone why, int64_t start, int64_t end_at, int64_t ended,
                              int64_t now);

#endif
