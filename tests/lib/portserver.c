/* The server in the sandbox: see the header. */
#include "portserver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORTS_MAX 8
#define HEAD_MAX 65536

void portserver_fill(char *dst, size_t len, uint64_t at)
{
    for (size_t i = 0; i < len; i++, at++)
        dst[i] = (char)(at * 31 + (at >> 10));
}

uint64_t portserver_hash(uint64_t h, const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        h = h * 1099511628211u + (unsigned char)p[i] + 1;
    return h;
}

static int listen_at(const char *spec, unsigned *port)
{
    char addr[64];
    snprintf(addr, sizeof(addr), "%s", spec);
    char *at = strchr(addr, '@');
    *port = at ? (unsigned)strtoul(at + 1, NULL, 10) : 0;
    if (at)
        *at = '\0';
    bool only = strcmp(addr, "6only") == 0;
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)*port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    bool is_v4 = inet_pton(AF_INET, addr, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, only ? "::" : addr, &v6.sin6_addr) != 1)
        return -1;
    int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM, 0), on = 1;
    if (fd < 0)
        return -1;
    if (only)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    struct sockaddr *sa = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    socklen_t len = is_v4 ? sizeof(v4) : sizeof(v6);
    if (bind(fd, sa, len) != 0 || listen(fd, 512) != 0 || getsockname(fd, sa, &len) != 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
    return fd;
}

static bool put(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

static void put_text(int fd, const char *type, const char *body)
{
    char head[256];
    int n = snprintf(head, sizeof(head),
                     "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n\r\n", type);
    if (put(fd, head, (size_t)n))
        put(fd, body, strlen(body));
}

static void put_bytes(int fd, uint64_t n)
{
    static char block[65536];
    put_text(fd, "application/octet-stream", "");
    for (uint64_t at = 0; at < n; at += sizeof(block)) {
        size_t len = n - at < sizeof(block) ? (size_t)(n - at) : sizeof(block);
        portserver_fill(block, len, at);
        if (!put(fd, block, len))
            return;
    }
}

/* Length or chunks: all bytes of the body as they come over the wire. */
static void put_sum(int fd, const char *head, const char *rest, size_t have)
{
    static char block[65536];
    const char *length = strcasestr(head, "\r\ncontent-length:");
    uint64_t want = length ? strtoull(length + 17, NULL, 10) : UINT64_MAX, n = 0, h = 0;
    char tail[5] = "";
    while (have > 0 || n < want) {
        h = portserver_hash(h, rest, have);
        n += have;
        for (size_t i = have > 5 ? have - 5 : 0; i < have; i++) {
            memmove(tail, tail + 1, 4);
            tail[4] = rest[i];
        }
        if (n >= want || (!length && memcmp(tail, "0\r\n\r\n", 5) == 0))
            break;
        ssize_t got = read(fd, block, sizeof(block));
        if (got <= 0)
            return;
        rest = block;
        have = (size_t)got;
    }
    char text[64];
    snprintf(text, sizeof(text), "%llu %llx", (unsigned long long)n, (unsigned long long)h);
    put_text(fd, "text/plain", text);
}

static void serve(int fd, unsigned port)
{
    static char head[HEAD_MAX + 1];
    size_t len = 0;
    char *end = NULL, text[64];
    while (!end && len < HEAD_MAX) {
        ssize_t n = read(fd, head + len, HEAD_MAX - len);
        if (n <= 0)
            return;
        len += (size_t)n;
        head[len] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    if (!end)
        return;
    const char *rest = end + 4;
    size_t have = len - (size_t)(rest - head);
    end[2] = '\0';
    char *path = strchr(head, ' ');
    if (!path)
        return;
    path++;
    snprintf(text, sizeof(text), "hello %u", port);
    if (strncmp(path, "/hello", 6) == 0)
        put_text(fd, "text/plain", text);
    else if (strncmp(path, "/head", 5) == 0)
        put_text(fd, "text/plain", head);
    else if (strncmp(path, "/bytes/", 7) == 0)
        put_bytes(fd, strtoull(path + 7, NULL, 10));
    else if (strncmp(path, "/sum", 4) == 0)
        put_sum(fd, head, rest, have);
    else if (strncmp(path, "/events", 7) == 0) {
        put_text(fd, "text/event-stream", "data: first\n\n");
        while (read(fd, text, sizeof(text)) > 0) /* until the reader leaves */
            continue;
    }
}

static int write_ports(const char *file, const unsigned *ports, int n)
{
    char tmp[256];
    snprintf(tmp, sizeof(tmp), "%s.new", file);
    FILE *f = fopen(tmp, "w");
    if (!f)
        return -1;
    for (int i = 0; i < n; i++)
        fprintf(f, "%u\n", ports[i]);
    return fclose(f) == 0 ? rename(tmp, file) : -1;
}

int portserver_main(int argc, char **argv)
{
    struct pollfd fds[PORTS_MAX];
    unsigned ports[PORTS_MAX];
    int n = argc - 1 < PORTS_MAX ? argc - 1 : PORTS_MAX;
    for (int i = 0; i < n; i++) {
        fds[i] = (struct pollfd){listen_at(argv[i + 1], &ports[i]), POLLIN, 0};
        if (fds[i].fd < 0)
            ports[i] = 0;
    }
    signal(SIGCHLD, SIG_IGN);
    if (n < 1 || write_ports(argv[0], ports, n) != 0)
        return 1;
    while (poll(fds, (nfds_t)n, -1) > 0)
        for (int i = 0; i < n; i++) {
            int fd = fds[i].revents ? accept(fds[i].fd, NULL, NULL) : -1;
            if (fd < 0)
                continue;
            pid_t pid = fork();
            for (int k = 0; pid == 0 && k < n; k++)
                close(fds[k].fd);
            if (pid <= 0) /* past the limit of processes: one after the other */
                serve(fd, ports[i]);
            if (pid == 0)
                _exit(0);
            close(fd);
        }
    return 1;
}
