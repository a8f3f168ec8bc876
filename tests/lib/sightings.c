/* See sightings.h. */
#include "sightings.h"

struct sighting sighting_up(int64_t start, int64_t now)
{
    return (struct sighting){.up = true, .started_at = start, .end_at = start + 2 * 3600000, .now = now};
}

struct sighting sighting_paused(int64_t start, int64_t at, int64_t now)
{
    return (struct sighting){.paused = true, .started_at = start, .end_at = at, .now = now};
}

struct sighting sighting_gone(enum sb_gone why, int64_t start, int64_t end_at, int64_t ended,
                              int64_t now)
{
    return (struct sighting){
        .gone = why, .started_at = start, .end_at = end_at, .ended_at = ended, .now = now};
}
