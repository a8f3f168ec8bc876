/* The checksum that POSIX's `cksum` prints, so that a range of a file elsewhere can be
 * compared with bytes that came from it. Against accidents, not against forgers. */
#ifndef CCT_UTIL_CKSUM_H
#define CCT_UTIL_CKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Begin with 0, add any pieces, then end with the length of all of them. */
uint32_t cksum_add(uint32_t crc, const void *data, size_t len);
uint32_t cksum_end(uint32_t crc, uint64_t len);

#endif
