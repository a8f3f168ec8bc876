/* CRC-32 as `cksum` has it: polynomial 04c11db7, high bit first, the length of the data
 * behind them (low byte first, without leading zeros), inverted. */
#include <cct/util/cksum.h>

static uint32_t step(uint32_t crc, unsigned char byte)
{
    static uint32_t table[256]; /* the same whoever fills it */
    uint32_t *at = &table[(crc >> 24 ^ byte) & 0xff], v = __atomic_load_n(at, __ATOMIC_RELAXED);

    if (!v && at != table) {
        v = (uint32_t)(at - table) << 24;
        for (int i = 0; i < 8; i++)
            v = v & 0x80000000u ? v << 1 ^ 0x04c11db7u : v << 1;
        __atomic_store_n(at, v, __ATOMIC_RELAXED);
    }
    return crc << 8 ^ v;
}

uint32_t cksum_add(uint32_t crc, const void *data, size_t len)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < len; i++)
        crc = step(crc, p[i]);
    return crc;
}

uint32_t cksum_end(uint32_t crc, uint64_t len)
{
    for (; len; len >>= 8)
        crc = step(crc, (unsigned char)len);
    return ~crc;
}
