/* CRC-32 as `cksum` has it: polynomial 04c11db7, high bit first, the length of the data
 * behind them (low byte first, without leading zeros), inverted. Eight bytes at a time, each
 * by a table that knows what it comes to that many bytes later; where the processor multiplies
 * without carries, much is folded onto sixteen bytes before that. */
#include <cct/util/cksum.h>
#include <pthread.h>
#include <stdbool.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { FOLD_BYTES = 16 };

static uint32_t table[8][256];
static uint32_t far128, far192; /* x^128 and x^192 by the polynomial */
static bool folds;
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static uint32_t times_x(uint32_t v)
{
    return v & 0x80000000u ? v << 1 ^ 0x04c11db7u : v << 1;
}

static uint32_t power(int n)
{
    uint32_t v = 1;

    while (n--)
        v = times_x(v);
    return v;
}

static void fill(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i << 24;

        for (int bit = 0; bit < 8; bit++)
            v = times_x(v);
        table[0][i] = v;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            table[k][i] = table[k - 1][i] << 8 ^ table[0][table[k - 1][i] >> 24];
    far128 = power(128);
    far192 = power(192);
#ifdef __x86_64__
    folds = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("ssse3");
#endif
}

static uint32_t step(uint32_t crc, unsigned char byte)
{
    return crc << 8 ^ table[0][crc >> 24 ^ byte];
}

static uint32_t by_tables(uint32_t crc, const unsigned char *p, size_t len)
{
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

#ifdef __x86_64__
/* Sixteen bytes are a polynomial; what they come to sixteen bytes later is added to those. */
__attribute__((target("pclmul,ssse3"))) static uint32_t by_folding(uint32_t crc,
                                                                 const unsigned char *p, size_t n)
{
    const __m128i turn = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i away = _mm_set_epi64x(far192, far128);
    unsigned char last[FOLD_BYTES];
    __m128i x = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p), turn);

    x = _mm_xor_si128(x, _mm_set_epi32((int)crc, 0, 0, 0));
    while (--n) {
        __m128i next = _mm_loadu_si128((const __m128i *)(p += FOLD_BYTES));

        x = _mm_xor_si128(_mm_clmulepi64_si128(x, away, 0x11), _mm_clmulepi64_si128(x, away, 0));
        x = _mm_xor_si128(x, _mm_shuffle_epi8(next, turn));
    }
    _mm_storeu_si128((__m128i *)last, _mm_shuffle_epi8(x, turn));
    return by_tables(0, last, sizeof(last));
}
#else
static uint32_t by_folding(uint32_t crc, const unsigned char *p, size_t n)
{
    return by_tables(crc, p, n * FOLD_BYTES);
}
#endif

uint32_t cksum_add(uint32_t crc, const void *data, size_t len)
{
    const unsigned char *p = data;

    pthread_once(&filled, fill);
    if (folds && len >= FOLD_BYTES) {
        size_t n = len / FOLD_BYTES;

        crc = by_folding(crc, p, n);
        p += n * FOLD_BYTES;
        len %= FOLD_BYTES;
    }
    return by_tables(crc, p, len);
}

uint32_t cksum_end(uint32_t crc, uint64_t len)
{
    pthread_once(&filled, fill);
    for (; len; len >>= 8)
        crc = step(crc, (unsigned char)len);
    return ~crc;
}
