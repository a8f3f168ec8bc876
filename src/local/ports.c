/* Who listens on a port, and a connection to it (see the header). */
#include <cct/local/ports.h>
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS 5 /* loopback answers at once, or its queue is full */
#define CACHE 32
#define RECENT 8
#define RECENT_MS 1000

typedef ARR(struct ports_entry) entries;

/* Where a socket was found; looked at first the next time, never believed. */
static struct {
    uint64_t inode;
    pid_t pid;
    int fd;
} cache[CACHE];

/* Addresses found lately. To read the tables takes milliseconds (the kernel walks
 * its hash of all connections), so for a moment it is enough that the socket is
 * still held: as long as it is, its address is not given to another. */
static struct {
    unsigned port;
    struct ports_entry to;
    uint64_t inode; /* that got the connection */
    int64_t until_ms;
} recent[RECENT];

/* --- the kernel's tables ---------------------------------------------------- */

/* "0100007F": each group of eight digits is a word of the host's byte order. */
static bool parse_addr(const char *hex, int family, unsigned char *out)
{
    for (int i = 0; i < (family == AF_INET ? 1 : 4); i++) {
        char word[9], *end;
        memcpy(word, hex + i * 8, 8);
        word[8] = '\0';
        uint32_t v = (uint32_t)strtoul(word, &end, 16);
        if (end != word + 8)
            return false;
        memcpy(out + i * 4, &v, 4);
    }
    return true;
}

/* ::ffff:1.2.3.4 is an IPv4 address, whatever the socket's family. */
static void unmap(struct ports_entry *e)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (e->family != AF_INET6 || memcmp(e->addr, mapped, sizeof(mapped)) != 0)
        return;
    e->family = AF_INET;
    memmove(e->addr, e->addr + 12, 4);
    memset(e->addr + 4, 0, 12);
}

int ports_parse(const char *line, int family, unsigned port, struct ports_entry *out)
{
    char addr[33];
    unsigned p, state;
    unsigned long long inode;
    if (sscanf(line, " %*u: %32[0-9A-F]:%4X %*32[0-9A-F]:%*4X %2X %*s %*s %*s %*u %*u %llu",
               addr, &p, &state, &inode) != 4)
        return -1;
    if (state != 0x0A || strlen(addr) != (family == AF_INET ? 8 : 32))
        return -1;
    memset(out, 0, sizeof(*out));
    out->family = family;
    out->inode = inode;
    if (!parse_addr(addr, family, out->addr))
        return -1;
    unmap(out);
    return p == port;
}

/* Sockets that listen come first in the table, whatever else is in it. */
static void read_table(const char *path, int family, unsigned port, entries *all)
{
    FILE *f = fopen(path, "re"); /* no tcp6: the kernel has no IPv6 */
    if (!f)
        return;
    char line[512];
    if (fgets(line, sizeof(line), f)) /* the heading */
        while (fgets(line, sizeof(line), f)) {
            struct ports_entry e;
            int rc = ports_parse(line, family, port, &e);
            if (rc < 0)
                break;
            if (rc > 0)
                *ARR_PUSH(all) = e;
        }
    fclose(f);
}

/* --- whose they are --------------------------------------------------------- */

/* The socket's inode that a descriptor's link names, or 0. */
static uint64_t link_inode(int dir, const char *name)
{
    char to[64];
    ssize_t n = readlinkat(dir, name, to, sizeof(to) - 1);
    if (n <= 0)
        return 0;
    to[n] = '\0';
    return str_starts(to, "socket:[") ? strtoull(to + 8, NULL, 10) : 0;
}

static bool cache_holds(uint64_t inode)
{
    for (size_t i = 0; i < CACHE; i++) {
        if (cache[i].inode != inode)
            continue;
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)cache[i].pid, cache[i].fd);
        return link_inode(AT_FDCWD, path) == inode;
    }
    return false;
}

static void cache_put(uint64_t inode, pid_t pid, const char *fd)
{
    static size_t next;
    cache[next].inode = inode;
    cache[next].pid = pid;
    cache[next].fd = (int)strtol(fd, NULL, 10);
    next = (next + 1) % CACHE;
}

/* Mark the entries that this process holds; returns how many. */
static size_t mark_held(pid_t pid, entries *all)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path); /* refused for those that hide: not reachable then */
    if (!d)
        return 0;
    size_t marked = 0;
    struct dirent *de;
    while ((de = readdir(d)) != NULL) {
        uint64_t inode = link_inode(dirfd(d), de->d_name);
        for (size_t i = 0; inode != 0 && i < all->n; i++) {
            if (all->v[i].inode != inode || all->v[i].is_ours)
                continue;
            all->v[i].is_ours = true;
            marked++;
            cache_put(inode, pid, de->d_name);
        }
    }
    closedir(d);
    return marked;
}

static void find_owners(entries *all, ports_owner is_owner, void *arg)
{
    size_t left = 0;
    for (size_t i = 0; i < all->n; i++) {
        all->v[i].is_ours = cache_holds(all->v[i].inode);
        left += !all->v[i].is_ours;
    }
    DIR *d = left > 0 ? opendir("/proc") : NULL;
    struct dirent *de;
    while (d && left > 0 && (de = readdir(d)) != NULL) {
        int64_t pid;
        if (str_to_i64(de->d_name, 1, INT32_MAX, &pid) && is_owner(arg, (pid_t)pid))
            left -= mark_held((pid_t)pid, all);
    }
    if (d)
        closedir(d);
}

/* --- which address reaches them --------------------------------------------- */

static bool is_any(const struct ports_entry *e)
{
    static const unsigned char zero[16];
    return memcmp(e->addr, zero, sizeof(zero)) == 0;
}

static bool is_at(const struct ports_entry *e, const struct ports_entry *to)
{
    return e->family == to->family && memcmp(e->addr, to->addr, sizeof(e->addr)) == 0;
}

/* How near a socket is to an address: the kernel gives a connection to the
 * nearest. 0: never. */
static int nearness(const struct ports_entry *e, const struct ports_entry *to)
{
    if (is_at(e, to))
        return 3;
    if (!is_any(e))
        return 0;
    if (e->family == to->family)
        return 2;
    return e->family == AF_INET6 ? 1 : 0; /* [::] may take IPv4 as well */
}

/* The socket that a connection to this address gets, if it is the sandbox's; of
 * several equals (SO_REUSEPORT) each must be. */
static const struct ports_entry *nearest(const entries *all, const struct ports_entry *to)
{
    const struct ports_entry *found = NULL;
    int best = 0;
    for (size_t i = 0; i < all->n; i++)
        if (nearness(&all->v[i], to) > best)
            best = nearness(&all->v[i], to);
    for (size_t i = 0; i < all->n; i++)
        if (best > 0 && nearness(&all->v[i], to) == best) {
            found = &all->v[i];
            if (!found->is_ours)
                return NULL;
        }
    return found;
}

static int dial(const struct ports_entry *to, unsigned port)
{
    union {
        struct sockaddr sa;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {.sa = {0}};
    int fd = socket(to->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    socklen_t len = to->family == AF_INET ? sizeof(a.v4) : sizeof(a.v6);
    a.sa.sa_family = (sa_family_t)to->family;
    if (to->family == AF_INET) {
        a.v4.sin_port = htons((uint16_t)port);
        memcpy(&a.v4.sin_addr, to->addr, sizeof(a.v4.sin_addr));
    } else {
        a.v6.sin6_port = htons((uint16_t)port);
        memcpy(&a.v6.sin6_addr, to->addr, sizeof(a.v6.sin6_addr));
    }
    int why = connect(fd, &a.sa, len) == 0 ? 0 : errno;
    struct pollfd p = {fd, POLLOUT, 0};
    socklen_t size = sizeof(why);
    if (why == EINPROGRESS) {
        why = 0;
        if (poll(&p, 1, ANSWER_MS) > 0)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size);
    }
    if (why == 0)
        return fd;
    close(fd);
    errno = why;
    return -1;
}

static int dial_recent(unsigned port)
{
    for (size_t i = 0; i < RECENT; i++)
        if (recent[i].port == port && recent[i].until_ms > clock_mono_ms() &&
            cache_holds(recent[i].inode))
            return dial(&recent[i].to, port);
    return -1;
}

static void remember(unsigned port, const struct ports_entry *to, uint64_t inode)
{
    size_t at = 0;
    for (size_t i = 0; i < RECENT && recent[at].port != port; i++)
        if (recent[i].port == port || recent[i].until_ms < recent[at].until_ms)
            at = i;
    recent[at].port = port;
    recent[at].to = *to;
    recent[at].inode = inode;
    recent[at].until_ms = clock_mono_ms() + RECENT_MS;
}

int ports_dial(unsigned port, ports_owner is_owner, void *arg)
{
    int fd = dial_recent(port), why = ECONNREFUSED;
    if (fd >= 0)
        return fd;
    entries all = ARR_INIT;
    struct ports_entry to = {.family = AF_INET, .addr = {127, 0, 0, 1}};
    read_table("/proc/net/tcp", AF_INET, port, &all);
    read_table("/proc/net/tcp6", AF_INET6, port, &all);
    if (all.n > 0)
        find_owners(&all, is_owner, arg);
    for (size_t i = 0; fd < 0 && i < all.n + 2; i++) {
        if (i == 1)
            to = (struct ports_entry){.family = AF_INET6, .addr = {[15] = 1}};
        else if (i > 1)
            to = all.v[i - 2];
        const struct ports_entry *gets = nearest(&all, &to);
        if (!gets || (i > 1 && is_any(&to)))
            continue;
        fd = dial(&to, port);
        why = fd < 0 ? errno : 0;
        if (fd >= 0)
            remember(port, &to, gets->inode);
    }
    ARR_RELEASE(&all);
    errno = why;
    return fd;
}
