/* The control-plane client in front of a server that plays a script. */
#include "e2bbed.h"

#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 30000 };

static void handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    struct e2bbed *b = ctx;
    const struct e2b_scene *s = &b->scene[b->at < b->n_scenes ? b->at : b->n_scenes - 1];

    b->at++;
    buf_addf(&b->heard, "%s %s %.*s\n", r->method, r->path, (int)r->len, r->body);
    buf_adds(&b->heads, r->head);
    mini_reply(c, s->status, s->head ? s->head : "", s->body ? s->body : "");
}

static void make(void *ctx)
{
    struct e2bbed *b = ctx;
    char *url = mini_url(b->srv, "");
    struct e2b_account a = {.api_url = url, .domain = (char *)"e2b.app",
                            .key = secret_new("e2b_0123456789abcdef", 20),
                            .source = (char *)"environment", .mask = "****cdef"};

    e2b_free(b->client);
    b->client = e2b_new(b->bed->net, &a);
    secret_free(a.key);
    free(url);
}

static void drop(void *ctx)
{
    struct e2bbed *b = ctx;

    e2b_free(b->client);
    b->client = NULL;
}

void e2bbed_open(struct e2bbed *b)
{
    memset(b, 0, sizeof(*b));
    b->srv = mini_start(handler, b);
    b->bed = bed_new(NULL);
    e2bbed_client(b);
}

void e2bbed_client(struct e2bbed *b)
{
    bed_run(b->bed, make, b);
}

void e2bbed_close(struct e2bbed *b)
{
    bed_run(b->bed, drop, b);
    bed_free(b->bed);
    mini_stop(b->srv);
    buf_release(&b->heard);
    buf_release(&b->heads);
    buf_release(&b->text);
}

void e2bbed_play(struct e2bbed *b, const struct e2b_scene *s, size_t n)
{
    mini_sync(b->srv);
    b->scene = s;
    b->n_scenes = (int)n;
    b->at = 0;
    buf_clear(&b->heard);
    buf_clear(&b->heads);
    mini_sync(b->srv);
}

void e2bbed_answer(void *ctx, const struct e2b_result *r)
{
    struct e2bbed *b = ctx;

    b->answers++;
    b->r = *r;
    buf_clear(&b->text);
    if (b->show)
        b->show(b, r);
    bed_tick(b->bed);
}

void e2bbed_run(struct e2bbed *b, void (*start)(void *b))
{
    b->answers = 0;
    bed_reset(b->bed);
    bed_run(b->bed, start, b);
    if (!bed_wait(b->bed, 1, WAIT_MS))
        die("no answer came");
    mini_sync(b->srv);
}
