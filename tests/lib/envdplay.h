/* The client of a sandbox's data plane in front of a server that plays one answer: for the suites of
 * that client, each of which includes it once. */
#ifndef CCT_TESTS_ENVDPLAY_H
#define CCT_TESTS_ENVDPLAY_H

#include "miniserver.h"
#include "netbed.h"
#include <cct/envd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOW 20000

static struct mini *srv;
static struct netbed *bed;
static struct envd *client;
static struct buf heard;    /* requests: line, head, body (envelope head left out) */

/* The answer: status, extra head lines, body; cut into two writes at `cut`. */
static struct {
    int status;
    const char *head;
    char body[8192];
    size_t len, cut;
    bool chunked, stay_open, pings;
} play;

static inline void handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    size_t skip = r->len > 5 && r->body[0] == '\0' ? 5 : 0;

    (void)ctx;
    buf_clear(&heard);
    buf_addf(&heard, "%s %s\n%s\n", r->method, r->path, r->head);
    buf_add(&heard, r->body + skip, r->len - skip);
    mini_sendf(c, "HTTP/1.1 %d X\r\nContent-Type: application/connect+json\r\n%s", play.status,
               play.head ? play.head : "");
    if (!play.chunked && !play.stay_open)
        mini_sendf(c, "Content-Length: %zu\r\nConnection: close\r\n", play.len);
    mini_send(c, "\r\n", 2);
    if (play.cut && play.cut < play.len) {
        mini_send(c, play.body, play.cut);
        mini_wait(c, 1);
        mini_send(c, play.body + play.cut, play.len - play.cut);
    } else {
        mini_send(c, play.body, play.len);
    }
    for (int i = 0; play.pings && i < 30; i++) {
        mini_wait(c, 100);
        mini_send(c, "\0\0\0\0\x1a{\"event\":{\"keepalive\":{}}}", 31);
    }
    if (!play.stay_open)
        mini_close(c);
}

static inline void script(int status, const char *head, const char *body)
{
    memset(&play, 0, sizeof(play));
    play.status = status;
    play.head = head;
    play.len = strlen(body);
    memcpy(play.body, body, play.len);
}

struct log {
    char text[4096];
    struct envd_end end;
    char status[64];
    int ended;
    bool stop, close, drop;
    uint64_t stream;
};
static struct log seen;

static inline void drop_client(void *ctx)
{
    (void)ctx;
    envd_free(client);
    client = NULL;
}

static struct envd_proc_spec spec;
static int join_pid;

static inline void make_client(void *ctx)
{
    char *url = mini_url(srv, "");
    struct secret *token = secret_new("ea_token_of_a_sandbox", 21);
    struct envd_target t = {.base_url = url, .sandbox_id = "iabc", .token = token};

    (void)ctx;
    client = envd_new(bed->net, &t);
    secret_free(token);
    free(url);
}

static inline int fresh(void **state)
{
    (void)state;
    spec = (struct envd_proc_spec){.cmd = "/bin/sh"};
    join_pid = 0;
    bed_run(bed, make_client, NULL);
    return 0;
}

static inline int done(void **state)
{
    (void)state;
    bed_run(bed, drop_client, NULL);
    return 0;
}

#endif
