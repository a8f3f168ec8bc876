/* FNV-1a; see hash.h. */
#include <cct/util/hash.h>

uint64_t hash_add(uint64_t h, const void *data, size_t len)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}
