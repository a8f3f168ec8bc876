/* Commands in sandboxes, by bytes. */
#include "boxrun.h"
#include "plainhttp.h"
#include "rawhttp.h"

#include <cct/local/http_head.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static bool keep(void *arg, const char *p, size_t len)
{
    return buf_add(arg, p, len) == 0;
}

/* The status; the body without its chunks in *body. */
static int take_answer(struct plainhttp a, struct buf *body)
{
    size_t used;
    if (a.status == 0)
        fail_msg("no answer: '%.200s'", buf_str(&a.raw));
    const char *te = strcasestr(buf_str(&a.raw), "\r\nTransfer-Encoding: chunked");
    if (body && te && te < a.body) {
        struct http_chunks ch;
        http_chunks_init(&ch);
        assert_int_equal(http_chunks_scan(&ch, a.body, a.body_len, &used, keep, body), 1);
    } else if (body) {
        buf_add(body, a.body, a.body_len);
    }
    buf_release(&a.raw);
    return a.status;
}

int boxrun_control(const struct localbed *l, const char *method, const char *path,
                   const char *json, struct buf *body)
{
    return take_answer(plainhttp_control(l, method, path, json), body);
}

static int open_call(const struct boxrun *b, const char *method, const char *path,
                     const char *headers, const char *bytes, size_t len)
{
    char *head =
        xasprintf("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nE2b-Sandbox-Id: %s\r\n"
                  "E2b-Sandbox-Port: 49983\r\nX-Access-Token: %s\r\nConnection: close\r\n"
                  "%sContent-Length: %zu\r\n\r\n",
                  method, path, b->bed->traffic, b->id, b->token, headers, len);
    int fd = rawhttp_dial(b->bed->traffic);
    plainhttp_send(fd, head, strlen(head));
    plainhttp_send(fd, bytes, len);
    free(head);
    return fd;
}

int boxrun_call(const struct boxrun *b, const char *method, const char *path,
                const char *headers, const char *json, struct buf *body)
{
    return take_answer(
        plainhttp_finish(open_call(b, method, path, headers, json, strlen(json))), body);
}

void boxrun_create(struct boxrun *b, const struct localbed *l, const char *extra)
{
    struct buf body = BUF_INIT;
    char *json =
        xasprintf("{\"templateID\":\"base\",\"timeout\":300,\"secure\":true%s}", extra);
    int status = boxrun_control(l, "POST", "/v2/sandboxes", json, &body);
    if (status != 201)
        fail_msg("create: %d %s", status, buf_str(&body));
    struct cJSON *j = json_parse(buf_str(&body), body.len, NULL);
    b->bed = l;
    assert_true(str_copy(b->id, sizeof(b->id), json_str(j, "sandboxID", "")));
    assert_true(str_copy(b->token, sizeof(b->token), json_str(j, "envdAccessToken", "")));
    json_free(j);
    free(json);
    buf_release(&body);
}

void boxrun_kill(const struct boxrun *b)
{
    char path[64];
    snprintf(path, sizeof(path), "/sandboxes/%s", b->id);
    assert_int_equal(boxrun_control(b->bed, "DELETE", path, "", NULL), 204);
}

pid_t boxrun_init_pid(const struct boxrun *b)
{
    char *path = xasprintf("%s/state/boxes/%s/box.json", b->bed->root, b->id);
    size_t len;
    char *text = fs_read(path, 1 << 16, true, &len, NULL);
    assert_non_null(text);
    struct cJSON *j = json_parse(text, len, NULL);
    pid_t pid = (pid_t)json_i64(j, "pid", 0);
    json_free(j);
    free(text);
    free(path);
    assert_true(pid > 1);
    return pid;
}

static int start(const struct boxrun *b, const char *user, const char *command)
{
    struct buf frame = BUF_INIT, headers = BUF_INIT;
    rawhttp_start_frame(&frame, "/bin/bash", command);
    buf_adds(&headers, "Content-Type: application/connect+json\r\n"
                       "Connect-Protocol-Version: 1\r\n");
    if (user) {
        char *pair = xasprintf("%s:", user), *b64 = b64_encode(pair, strlen(pair));
        buf_addf(&headers, "Authorization: Basic %s\r\n", b64);
        free(pair);
        free(b64);
    }
    int fd =
        open_call(b, "POST", "/process.Process/Start", buf_str(&headers), frame.p, frame.len);
    buf_release(&frame);
    buf_release(&headers);
    return fd;
}

static void add_output(const struct cJSON *data, const char *name, struct buf *out)
{
    const char *b64 = json_str(data, name, NULL);
    size_t len;
    char *plain = b64 ? b64_decode(b64, strlen(b64), &len) : NULL;
    if (plain && out)
        buf_add(out, plain, len);
    free(plain);
}

/* One message of the stream; sets *code at the end event. */
static void take_event(const struct cJSON *event, struct buf *out, int *code)
{
    const struct cJSON *data = json_get(event, "data"), *end = json_get(event, "end");
    add_output(data, "stdout", out);
    add_output(data, "stderr", out);
    if (end) {
        const char *status = json_str(end, "status", "");
        *code = (int)json_i64(end, "exitCode", 0);
        if (!json_bool(end, "exited", false))
            *code = 128 + (strstr(status, "killed") ? 9 : 0);
    }
}

int boxrun_sh(const struct boxrun *b, const char *user, const char *command, struct buf *out)
{
    struct buf body = BUF_INIT;
    int code = -1;
    int status = take_answer(plainhttp_finish(start(b, user, command)), &body);
    if (status != 200)
        fail_msg("start: %d %s", status, buf_str(&body));
    const unsigned char *p = (const unsigned char *)body.p;
    for (size_t left = body.len; left >= 5;) {
        size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        assert_true(left - 5 >= n);
        struct cJSON *j = json_parse((const char *)p + 5, n, NULL);
        take_event(json_get(j, "event"), out, &code);
        if (json_get(j, "error"))
            fail_msg("'%s': %.*s", command, (int)n, (const char *)p + 5);
        json_free(j);
        p += 5 + n;
        left -= 5 + n;
    }
    buf_release(&body);
    return code;
}

char *boxrun_text(const struct boxrun *b, const char *user, const char *command)
{
    struct buf out = BUF_INIT;
    int code = boxrun_sh(b, user, command, &out);
    if (code != 0)
        fail_msg("'%s' ended with %d: %s", command, code, buf_str(&out));
    return buf_detach(&out, NULL);
}

void boxrun_spawn(const struct boxrun *b, const char *user, const char *command)
{
    int fd = start(b, user, command);
    char text[4096];
    struct pollfd p = {fd, POLLIN, 0};
    size_t have = 0;
    do {
        assert_int_equal(poll(&p, 1, BOXRUN_WAIT_MS), 1);
        ssize_t n = read(fd, text + have, sizeof(text) - have);
        assert_true(n > 0);
        have += (size_t)n;
    } while (!memmem(text, have, "\"pid\":", 6));
    close(fd);
}
