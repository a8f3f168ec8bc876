/* Random bytes from the kernel. */
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

void rand_bytes(void *p, size_t len)
{
    unsigned char *at = p;

    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            die("no random bytes from the kernel: %s", strerror(errno));
        at += n;
        len -= (size_t)n;
    }
}

void rand_id(char *dst, size_t n)
{
    static const char set[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char pool[64];
    size_t left = 0;

    for (size_t i = 0; i < n;) {
        if (left == 0) {
            rand_bytes(pool, sizeof(pool));
            left = sizeof(pool);
        }
        unsigned char c = pool[--left];
        if (c < 252) /* 7 * 36: no letter is likelier than another */
            dst[i++] = set[c % 36];
    }
    dst[n] = '\0';
}

void uuid_format(char *dst, const unsigned char bytes[16])
{
    unsigned char b[16];
    char hex[33];
    memcpy(b, bytes, sizeof(b));
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* version 4 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80); /* and its variant */
    hex_encode(hex, b, sizeof(b));
    snprintf(dst, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

void rand_uuid(char *dst)
{
    unsigned char bytes[16];
    rand_bytes(bytes, sizeof(bytes));
    uuid_format(dst, bytes);
}
