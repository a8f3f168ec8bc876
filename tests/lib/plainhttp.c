/* Plain bytes to a port and back: see the header. */
#include "plainhttp.h"
#include "rawhttp.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

void plainhttp_send(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        p += n;
        len -= (size_t)n;
    }
}

/* 0 at the end. */
static size_t take(int fd, struct buf *b)
{
    char text[65536];
    struct pollfd p = {fd, POLLIN, 0};
    if (poll(&p, 1, PLAINHTTP_WAIT_MS) != 1)
        fail_msg("no byte and no end within %d ms after: %s", PLAINHTTP_WAIT_MS, buf_str(b));
    ssize_t n = read(fd, text, sizeof(text));
    if (n > 0)
        buf_add(b, text, (size_t)n);
    return n > 0 ? (size_t)n : 0;
}

struct plainhttp plainhttp_finish(int fd)
{
    struct plainhttp a = {.raw = BUF_INIT, .body = ""};
    while (take(fd, &a.raw) > 0)
        continue;
    close(fd);
    const char *text = buf_str(&a.raw);
    if (str_starts(text, "HTTP/1.1 "))
        a.status = (int)strtol(text + 9, NULL, 10);
    const char *body = strstr(text, "\r\n\r\n");
    if (body) {
        a.body = body + 4;
        a.body_len = a.raw.len - (size_t)(a.body - text);
    }
    return a;
}

struct plainhttp plainhttp_exchange(int port, const char *p, size_t len)
{
    int fd = rawhttp_dial(port);
    plainhttp_send(fd, p, len);
    return plainhttp_finish(fd);
}

struct plainhttp plainhttp_control(const struct localbed *l, const char *method,
                                   const char *path, const char *json)
{
    char *text =
        xasprintf("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-API-Key: %s\r\n"
                  "Connection: close\r\nContent-Type: application/json\r\n"
                  "Content-Length: %zu\r\n\r\n%s",
                  method, path, l->control, l->key, json ? strlen(json) : 0, json ? json : "");
    struct plainhttp a = plainhttp_exchange(l->control, text, strlen(text));
    free(text);
    return a;
}

void plainhttp_until(int fd, struct buf *b, const char *what)
{
    while (!strstr(buf_str(b), what))
        if (take(fd, b) == 0)
            fail_msg("ended before \"%s\": %s", what, buf_str(b));
}
