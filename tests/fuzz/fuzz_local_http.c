/* The provider's HTTP server on any bytes of one connection: any slicing gives the
 * same answers, the connection comes to its end and nothing is left of it. */
#include "../lib/httpbed.h"
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "violated: %s\n", what);
    abort();
}

static struct httpbed bed;

static void bed_down(void)
{
    httpbed_down(&bed);
}

/* The client says all it has to say and waits for the end of the connection. */
static char *talk(const char *p, size_t len, size_t step)
{
    struct buf in = BUF_INIT;
    int fd = httpbed_connect(&bed);
    for (size_t at = 0; at < len; at += step) {
        httpbed_send(&bed, fd, p + at, len - at < step ? len - at : step, step);
        if (bed.kept && bed.kept->is_paused)
            http_body_resume(bed.kept);
    }
    shutdown(fd, SHUT_WR);
    int64_t until = clock_mono_ms() + 10000;
    while (!httpbed_recv(&bed, fd, &in) || http_srv_conns(bed.srv) > 0) {
        must(clock_mono_ms() < until, "a connection comes to its end");
        if (bed.kept && bed.kept->is_paused)
            http_body_resume(bed.kept);
        httpbed_turn(&bed);
    }
    close(fd);
    must(!bed.kept, "no request outlives its connection");
    return buf_detach(&in, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = size < 4000 ? size : 4000;
    char *p = malloc(len + 1);
    memcpy(p, data, len);
    p[len] = '\0';
    if (!bed.base) {
        httpbed_up(&bed, false);
        http_srv_limits(bed.srv, 0, 1000);
        bed.refuse_at = 10;
        atexit(bed_down);
    }
    /* these wait for somebody, and a client that has gone leaves them at once */
    if (!memmem(p, len, "/keep", 5) && !memmem(p, len, "/stream", 7)) {
        char *whole = talk(p, len, len + 1);
        char *statuses = xstrdup(httpbed_statuses(whole));
        char *cut = talk(p, len, 1 + size % 13);
        must(strcmp(statuses, httpbed_statuses(cut)) == 0, "same answers");
        free(whole);
        free(statuses);
        free(cut);
    }
    free(p);
    return 0;
}
