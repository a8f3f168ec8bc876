/* Which addresses may be called at all. */
#include <arpa/inet.h>
#include <cct/net.h>
#include <cct/util/str.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Hosts that are this machine, whatever a proxy would think of them. libcurl resolves
 * localhost and what ends in .localhost by itself. */
static bool is_loopback(const char *host)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct in_addr v4;
    struct in6_addr v6;
    size_t n = strlen(host);

    if (n && host[n - 1] == '.')
        n--;
    if ((n == 9 && strncasecmp(host, "localhost", 9) == 0) ||
        (n > 10 && strncasecmp(host + n - 10, ".localhost", 10) == 0))
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&v6) ||
           (memcmp(&v6, mapped, sizeof(mapped)) == 0 && v6.s6_addr[12] == 127);
}

/* Only these may be called in the clear: a name with a dot at its end, or one below
 * localhost, may be looked up elsewhere by an older libcurl. */
static bool is_plain_ok(const char *host)
{
    return str_eq_nocase(host, "localhost") ||
           (is_loopback(host) && (strchr(host, ':') || isdigit((unsigned char)host[0])));
}

/* Other spellings of an address ("127.1", "0x7f000001", "2130706433") are understood by
 * some resolvers and not by others, "0.0.0.0" means this machine to the kernel alone,
 * and encoded or foreign letters are turned into others on the way: all of them could
 * name another host for libcurl than for us. */
static bool is_odd(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    size_t n = strlen(host);
    char copy[256];

    for (size_t i = 0; i < n; i++)
        if (host[i] == '%' || (unsigned char)host[i] >= 0x80)
            return true;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_UNSPECIFIED(&v6);
    memcpy(copy, host, n + 1);
    if (n && copy[n - 1] == '.')
        copy[n - 1] = '\0';
    return inet_aton(copy, &v4) && (inet_pton(AF_INET, host, &v4) != 1 || v4.s_addr == 0);
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
    bool tls = str_starts(url, "https://");
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
    if (is_odd(host))
        return err_set(e, ERR_INVALID, "cannot use the address \"%.100s\": write its host as a "
                       "plain name or a whole address", url);
    if (loopback)
        *loopback = is_loopback(host);
    if (!tls && !is_plain_ok(host))
        return err_set(e, ERR_INVALID, "cannot use the address \"%.100s\": plain http would show "
                       "the key on the network; use https://", url);
    return 0;
}
