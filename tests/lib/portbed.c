/* Programs with ports in sandboxes, and requests for them: see the header. */
#include "portbed.h"
#include "rawhttp.h"

#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct localbed *portbed;

/* --- asking ------------------------------------------------------------------- */

struct plainhttp portbed_control(const char *method, const char *path, const char *json)
{
    return plainhttp_control(portbed, method, path, json);
}

int portbed_control_status(const char *method, const char *id, const char *tail,
                           const char *json)
{
    char *path = xasprintf("/sandboxes%s%s%s", *id ? "/" : "", id, tail);
    struct plainhttp a = portbed_control(method, path, json);
    buf_release(&a.raw);
    free(path);
    return a.status;
}

void portbed_take(struct portbed_box *b, const char *path, const char *json, int want)
{
    struct plainhttp a = portbed_control("POST", path, json);
    if (a.status != want)
        fail_msg("POST %s: %d: %s", path, a.status, a.body);
    struct cJSON *j = json_parse(a.body, a.body_len, NULL);
    memset(b, 0, sizeof(*b));
    assert_true(str_copy(b->id, sizeof(b->id), json_str(j, "sandboxID", "")));
    assert_true(str_copy(b->token, sizeof(b->token), json_str(j, "envdAccessToken", "")));
    assert_non_null(json_get(j, "trafficAccessToken"));
    str_copy(b->traffic_token, sizeof(b->traffic_token), json_str(j, "trafficAccessToken", ""));
    json_free(j);
    buf_release(&a.raw);
}

/* A request's bytes for a port of a sandbox, up to the end of the head. */
void portbed_request(struct buf *b, const char *id, const char *port, const char *line,
                     const char *headers)
{
    buf_addf(b,
             "%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nE2b-Sandbox-Id: %s\r\n"
             "E2b-Sandbox-Port: %s\r\n%s\r\n",
             line, portbed->traffic, id, port, headers);
}

int portbed_begin(const struct portbed_box *b, int port, const char *line, const char *headers)
{
    struct buf text = BUF_INIT;
    char number[16];
    snprintf(number, sizeof(number), "%d", port);
    portbed_request(&text, b->id, number, line, headers);
    int fd = rawhttp_dial(portbed->traffic);
    plainhttp_send(fd, text.p, text.len);
    buf_release(&text);
    return fd;
}

struct plainhttp portbed_ask(const struct portbed_box *b, int port, const char *line,
                             const char *headers)
{
    return plainhttp_finish(portbed_begin(b, port, line, headers));
}

int portbed_status(const struct portbed_box *b, int port, const char *line, const char *headers)
{
    struct plainhttp a = portbed_ask(b, port, line, headers);
    buf_release(&a.raw);
    return a.status;
}

/* --- what runs in a sandbox ------------------------------------------------------ */

static void put_program(const struct portbed_box *b)
{
    FILE *f = fopen("/proc/self/exe", "re");
    struct buf text = BUF_INIT, file = BUF_INIT;
    assert_non_null(f);
    char block[65536], length[256];
    size_t n;
    while ((n = fread(block, 1, sizeof(block), f)) > 0)
        buf_add(&file, block, n);
    fclose(f);
    snprintf(length, sizeof(length),
             "X-Access-Token: %s\r\nContent-Type: application/octet-stream\r\n"
             "Content-Length: %zu\r\n",
             b->token, file.len);
    portbed_request(&text, b->id, "49983", "POST /files?path=srv", length);
    buf_add(&text, file.p, file.len);
    struct plainhttp a = plainhttp_exchange(portbed->traffic, text.p, text.len);
    assert_int_equal(a.status, 200);
    buf_release(&a.raw);
    buf_release(&text);
    buf_release(&file);
}

/* Start a shell command; it goes on without us. */
static void start(const struct portbed_box *b, const char *user, const char *command)
{
    struct buf text = BUF_INIT;
    char *json = xasprintf("{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"%s\"]},"
                           "\"stdin\":false}",
                           command);
    char *as = user ? xasprintf("%s:", user) : NULL;
    char *basic = as ? b64_encode(as, strlen(as)) : NULL;
    char *headers = xasprintf("X-Access-Token: %s\r\nContent-Type: application/connect+json\r\n"
                              "Connect-Protocol-Version: 1\r\nContent-Length: %zu\r\n%s%s%s",
                              b->token, strlen(json) + 5, as ? "Authorization: Basic " : "",
                              as ? basic : "", as ? "\r\n" : "");
    uint32_t len = htonl((uint32_t)strlen(json));
    portbed_request(&text, b->id, "49983", "POST /process.Process/Start", headers);
    buf_addc(&text, 0);
    buf_add(&text, (char *)&len, 4);
    buf_adds(&text, json);
    int fd = rawhttp_dial(portbed->traffic);
    plainhttp_send(fd, text.p, text.len);
    buf_clear(&text);
    plainhttp_until(fd, &text, "\r\n\r\n");
    close(fd);
    buf_release(&text);
    free(headers);
    free(basic);
    free(as);
    free(json);
}

/* Run the server for these addresses and learn its ports. */
void portbed_serve(struct portbed_box *b, const char *user, const char *addresses)
{
    char *command =
        xasprintf("cd %s; rm -f ports; chmod +x srv; exec ./srv --port-server ports %s",
                  user ? "/home/user" : ".", addresses);
    char token[128];
    int64_t end = clock_mono_ms() + PLAINHTTP_WAIT_MS;
    start(b, user, command);
    free(command);
    snprintf(token, sizeof(token), "X-Access-Token: %s\r\n", b->token);
    for (;;) {
        struct plainhttp a = portbed_ask(b, 49983, "GET /files?path=ports", token);
        const char *p = a.body;
        char *next;
        for (int i = 0; a.status == 200 && i < 8 && *p; i++, p = next + (*next == '\n'))
            b->ports[i] = (int)strtol(p, &next, 10);
        buf_release(&a.raw);
        if (a.status == 200)
            return;
        if (clock_mono_ms() > end)
            fail_msg("the server in the sandbox does not start: %d", a.status);
        poll(NULL, 0, 10);
    }
}

void portbed_make(struct portbed_box *b, const char *options, const char *addresses)
{
    char *json = xasprintf("{\"templateID\":\"base\",\"timeout\":300%s}", options);
    portbed_take(b, "/v2/sandboxes", json, 201);
    free(json);
    put_program(b);
    portbed_serve(b, NULL, addresses);
}

void portbed_drop(const struct portbed_box *b)
{
    assert_int_equal(portbed_control_status("DELETE", b->id, "", NULL), 204);
}
