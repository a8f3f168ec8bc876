/* TCP ports that programs of one sandbox opened, seen from inside of it. With the
 * host's network shared, the kernel's tables list everybody's sockets, so a port
 * counts only when a process of the sandbox holds the socket that would get the
 * connection. Reads /proc of the caller's namespaces; does not wait. */
#ifndef CCT_LOCAL_PORTS_H
#define CCT_LOCAL_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ports_entry {
    int family;             /* AF_INET or AF_INET6 */
    unsigned char addr[16]; /* network order; the first 4 of an AF_INET one */
    uint64_t inode;
    bool is_ours;
};

/* One line of /proc/net/tcp or tcp6: 1 = a socket that listens on `port`, 0 = one
 * that listens on another, -1 = anything else. */
int ports_parse(const char *line, int family, unsigned port, struct ports_entry *out);

/* Does a process count as the sandbox's? */
typedef bool (*ports_owner)(void *arg, pid_t pid);

/* Connect to `port` without waiting for the answer. Returns the socket, connected
 * or still connecting, or -1 with errno: ECONNREFUSED when no socket of an owner
 * would get the connection. */
int ports_dial(unsigned port, ports_owner is_owner, void *arg);

#endif
