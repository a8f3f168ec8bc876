/* Floor: what a program that keeps lines cannot go below. Reads a socket into one piece of
 * memory and notes where each line begins; prints bytes, lines and its memory in kB.
 * linesink PORT        keeps them
 * linesink PORT -      only hands them on to stdout, for a terminal to keep */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 256 << 10 };
#define ARENA ((size_t)1 << 32)

static int dial(const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)strtol(port, NULL, 10))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0 || write(fd, "PLAIN\n", 6) != 6) {
        perror("linesink");
        exit(1);
    }
    return fd;
}

static int hand_on(int fd)
{
    static char b[PIECE];
    ssize_t n;

    while ((n = read(fd, b, sizeof(b))) > 0)
        for (ssize_t at = 0, w; at < n; at += w)
            if ((w = write(STDOUT_FILENO, b + at, (size_t)(n - at))) < 0)
                return 1;
    pause(); /* the last screen stays */
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    int fd = dial(argv[1]);
    if (argc > 2)
        return hand_on(fd);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *text = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, flags, -1, 0);
    uint32_t *line = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, flags, -1, 0);
    size_t len = 0, lines = 0;
    struct rusage use;
    ssize_t n;

    if (text == MAP_FAILED || line == MAP_FAILED)
        return 1;
    while ((n = read(fd, text + len, PIECE)) > 0) {
        char *p = text + len, *end = p + n;

        len += (size_t)n;
        while ((p = memchr(p, '\n', (size_t)(end - p))))
            line[lines++] = (uint32_t)(++p - text);
    }
    getrusage(RUSAGE_SELF, &use);
    printf("%zu %zu %ld\n", len, lines, use.ru_maxrss);
    return 0;
}
