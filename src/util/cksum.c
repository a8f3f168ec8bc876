/* CRC-32 as `cksum` has it: polynomial 04c11db7, high bit first, the length of the data
 * behind them (low byte first, without leading zeros), inverted. Eight bytes at a time, each
 * by a table that knows what it comes to that many bytes later. */
#include <cct/util/cksum.h>
#include <pthread.h>

static uint32_t table[8][256];
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void fill(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i << 24;

        for (int bit = 0; bit < 8; bit++)
            v = v & 0x80000000u ? v << 1 ^ 0x04c11db7u : v << 1;
        table[0][i] = v;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            table[k][i] = table[k - 1][i] << 8 ^ table[0][table[k - 1][i] >> 24];
}

static uint32_t step(uint32_t crc, unsigned char byte)
{
    return crc << 8 ^ table[0][crc >> 24 ^ byte];
}

uint32_t cksum_add(uint32_t crc, const void *data, size_t len)
{
    const unsigned char *p = data;

    pthread_once(&filled, fill);
    for (; len >= 8; p += 8, len -= 8) {
        crc ^= (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
        crc = table[7][crc >> 24] ^ table[6][crc >> 16 & 0xff] ^ table[5][crc >> 8 & 0xff] ^
              table[4][crc & 0xff] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^
              table[0][p[7]];
    }
    while (len--)
        crc = step(crc, *p++);
    return crc;
}

uint32_t cksum_end(uint32_t crc, uint64_t len)
{
    pthread_once(&filled, fill);
    for (; len; len >>= 8)
        crc = step(crc, (unsigned char)len);
    return ~crc;
}
