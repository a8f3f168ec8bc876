/* Which addresses may be called at all. */
#include <arpa/inet.h>
#include <cct/net.h>
#include <cct/util/str.h>
#include <string.h>

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (str_eq_nocase(host, "localhost"))
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* Host part of "host:port" or "[v6]:port" into dst; false when it makes no sense. */
static bool split_host(const char *at, size_t len, char *dst, size_t size)
{
    const char *end, *host = at;
    size_t n;

    if (len && *at == '[') {
        host = at + 1;
        end = memchr(host, ']', len - 1);
        if (!end)
            return false;
        at = end + 1;
    } else {
        end = memchr(at, ':', len);
        if (!end)
            end = at + len;
        at = end;
    }
    n = (size_t)(end - host);
    if (n == 0 || n >= size)
        return false;
    memcpy(dst, host, n);
    dst[n] = '\0';
    return *at == ':' || *at == '/' || *at == '?' || *at == '#' || *at == '\0';
}

int net_url_check(const char *url, bool *loopback, struct err *e)
{
    char host[256];
    bool tls = str_starts(url, "https://"), local;
    const char *at = url + (tls ? 8 : 7);
    size_t len;

    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '\\')
            return err_set(e, ERR_INVALID, "cannot use the address \"%.100s\": it holds blanks or "
                           "control characters", url);
    if (!tls && !str_starts(url, "http://"))
        return err_set(e, ERR_INVALID, "cannot use the address \"%.100s\": it must begin with "
                       "https://", url);
    len = strcspn(at, "/?#");
    if (memchr(at, '@', len))
        return err_set(e, ERR_INVALID, "cannot use the address \"%s...\": a user name or password "
                       "in it is not taken", tls ? "https://" : "http://");
    if (!split_host(at, len, host, sizeof(host)))
        return err_set(e, ERR_INVALID, "cannot use the address \"%.100s\": it names no host", url);
    local = is_loopback(host);
    if (loopback)
        *loopback = local;
    if (!tls && !local)
        return err_set(e, ERR_INVALID, "cannot use the address \"%.100s\": plain http would show "
                       "the key on the network; use https://", url);
    return 0;
}
