/* Random bytes from the kernel. */
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
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
