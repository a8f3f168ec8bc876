/* See netprobe.h. */
#include "netprobe.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct netprobe netprobe;

void netprobe_begin(void)
{
    netprobe.srv = mini_start(netprobe_handler, NULL);
    netprobe.bed = bed_new(NULL);
}

void netprobe_end(void)
{
    bed_free(netprobe.bed);
    mini_stop(netprobe.srv);
    buf_release(&netprobe.heard);
}

void netprobe_handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    (void)ctx;
    buf_clear(&netprobe.heard);
    buf_addf(&netprobe.heard, "%s %s\n%s\n", r->method, r->path, r->head);
    buf_add(&netprobe.heard, r->body, r->len);
    if (str_eq(r->path, "/ok"))
        mini_reply(c, 200, "X-Next-Token: abc\r\n", "{\"a\":1}");
    else if (str_eq(r->path, "/slow")) {
        mini_sendf(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
        for (int i = 0; i < 3; i++) {
            mini_send(c, "x", 1);
            mini_wait(c, 20);
        }
    } else if (str_eq(r->path, "/cut")) {
        mini_sendf(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        mini_close(c);
    } else if (str_eq(r->path, "/drop") || (str_eq(r->path, "/flaky") && !netprobe.flaky++)) {
        mini_close(c);
    } else if (str_eq(r->path, "/mail")) {
        mini_sendf(c, "220 mail.example ready\r\n");
        mini_close(c);
    } else if (str_eq(r->path, "/flaky")) {
        mini_reply(c, 200, "", "at last");
    } else if (str_eq(r->path, "/stall")) {
        mini_sendf(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n12345");
    } else if (str_eq(r->path, "/pulse")) {
        mini_sendf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 10; i++) {
            mini_wait(c, 30);
            mini_send(c, "1\r\n.\r\n", 6);
        }
        mini_send(c, "0\r\n\r\n", 5);
    } else if (str_eq(r->path, "/late")) {
        mini_wait(c, 100);
        mini_reply(c, 200, "", "late");
    } else if (str_eq(r->path, "/hang")) {
        /* never */
    } else if (str_eq(r->path, "/big")) {
        char *mb = xcalloc(1, 1 << 20);
        mini_sendf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", 8 << 20);
        for (int i = 0; i < 8; i++)
            mini_send(c, mb, 1 << 20);
        free(mb);
    } else if (str_eq(r->path, "/busy"))
        mini_reply(c, 429, "Retry-After: 7\r\n", "{}");
    else if (str_eq(r->path, "/busydate"))
        mini_reply(c, 429, "Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n"
                   "Retry-After: Tue, 15 Nov 1994 08:12:41 GMT\r\n", "{}");
    else if (str_eq(r->path, "/redirect"))
        mini_reply(c, 302, "Location: /ok\r\n", "");
    else
        mini_reply(c, 404, "", "nothing");
}

static void on_head(void *ctx, int status)
{
    struct probe *p = ctx;
    const char *v = net_answer_header(netprobe.bed->net, p->id, "x-next-token");

    p->head = status;
    if (v)
        str_copy(p->next, sizeof(p->next), v);
}

static bool on_body(void *ctx, const char *data, size_t len)
{
    struct probe *p = ctx;

    (void)data;
    p->pieces++;
    p->bytes += len;
    if (p->cancel_on_data) {
        net_cancel(netprobe.bed->net, p->id);
        net_cancel(netprobe.bed->net, p->id);
        bed_tick(netprobe.bed);
    }
    return true;
}

void netprobe_done(void *ctx, const struct net_result *r)
{
    struct probe *p = ctx;

    p->r = *r;
    snprintf(p->body_copy, sizeof(p->body_copy), "%s", r->body ? r->body : "");
    p->done++;
    net_cancel(netprobe.bed->net, p->id); /* too late, and harmless */
    bed_tick(netprobe.bed);
}

void netprobe_submit(void *ctx)
{
    struct probe *p = ctx;
    struct net_req *q = net_req_new(p->method ? p->method : "GET",
                                    strstr(p->path, "://") ? xstrdup(p->path)
                                                           : mini_url(netprobe.srv, p->path));

    if (p->body)
        buf_adds(&q->body, p->body);
    if (p->secret)
        net_req_secret(q, "X-API-Key", p->secret);
    q->idle_ms = p->idle_ms;
    q->total_ms = p->total_ms;
    q->urgent = p->urgent;
    q->repeatable = p->repeatable;
    q->stream = p->stream;
    q->max_body = p->max_body;
    q->on_head = on_head;
    if (p->take_pieces || p->cancel_on_data)
        q->on_body = on_body;
    q->on_done = netprobe_done;
    q->ctx = p;
    p->id = net_submit(netprobe.bed->net, q);
}

void netprobe_fetch(struct probe *p)
{
    bed_reset(netprobe.bed);
    bed_run(netprobe.bed, netprobe_submit, p);
    assert_true(bed_wait(netprobe.bed, 1, NETPROBE_SLOW));
    mini_sync(netprobe.srv);
}
