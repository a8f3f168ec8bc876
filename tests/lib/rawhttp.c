/* The provider's client of few bytes. */
#include "rawhttp.h"
#include <cct/util/json.h>
#include <cct/util/str.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int rawhttp_dial(int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
        perror("connect");
        exit(1);
    }
    return fd;
}

static void put(int fd, const struct buf *b)
{
    if (write(fd, b->p, b->len) != (ssize_t)b->len) {
        perror("write");
        exit(1);
    }
}

static void begin(struct buf *b, const char *method, const char *path, int port)
{
    buf_clear(b);
    buf_addf(b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", method, path, port);
}

int rawhttp_call(int fd, int port, const char *key, const char *method, const char *path,
                 const char *json, struct buf *out)
{
    struct buf b = BUF_INIT;
    begin(&b, method, path, port);
    if (key)
        buf_addf(&b, "X-API-Key: %s\r\n", key);
    if (json)
        buf_addf(&b, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(json));
    buf_addf(&b, "\r\n%s", json ? json : "");
    put(fd, &b);
    buf_clear(&b);
    const char *end = NULL;
    size_t want = 0;
    for (;;) {
        char *p = buf_reserve(&b, 4096);
        ssize_t n = read(fd, p, 4096);
        if (n <= 0)
            break;
        b.len += (size_t)n;
        end = end ? end : strstr(buf_str(&b), "\r\n\r\n");
        if (!end)
            continue;
        const char *cl = strstr(buf_str(&b), "Content-Length: ");
        want = cl ? (size_t)strtoul(cl + 16, NULL, 10) : 0;
        end = strstr(buf_str(&b), "\r\n\r\n");
        if (b.len >= (size_t)(end + 4 - b.p) + want)
            break;
    }
    int status = b.len > 12 ? (int)strtol(buf_str(&b) + 9, NULL, 10) : 0;
    if (out && end)
        buf_add(out, end + 4, want);
    buf_release(&b);
    return status;
}

void rawhttp_start_frame(struct buf *b, const char *shell, const char *command)
{
    struct buf msg = BUF_INIT;
    struct jw w;
    jw_init(&w, &msg);
    jw_obj(&w, NULL);
    jw_obj(&w, "process");
    jw_str(&w, "cmd", shell);
    jw_arr(&w, "args");
    jw_str(&w, NULL, "-c");
    jw_str(&w, NULL, command);
    jw_end(&w);
    jw_end(&w);
    jw_bool(&w, "stdin", false);
    jw_end(&w);
    size_t n = msg.len;
    char head[5] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    buf_add(b, head, sizeof(head));
    buf_add(b, msg.p, msg.len);
    buf_release(&msg);
}

int rawhttp_stream(const struct localbed *l, const struct rawhttp_box *x, const char *command,
                   int minor)
{
    struct buf frame = BUF_INIT, b = BUF_INIT;
    rawhttp_start_frame(&frame, "/bin/sh", command);
    int fd = rawhttp_dial(l->traffic);
    buf_addf(&b,
             "POST /process.Process/Start HTTP/1.%d\r\nHost: 127.0.0.1:%d\r\n"
             "E2b-Sandbox-Id: %s\r\nX-Access-Token: %s\r\n"
             "Content-Type: application/connect+json\r\nContent-Length: %zu\r\n\r\n",
             minor, l->traffic, x->id, x->token, frame.len);
    buf_add(&b, frame.p, frame.len);
    put(fd, &b);
    buf_release(&b);
    buf_release(&frame);
    return fd;
}

bool rawhttp_await(int fd, const char *text)
{
    struct buf b = BUF_INIT;
    bool seen = false;
    while (!seen) {
        char *p = buf_reserve(&b, 4096);
        ssize_t n = read(fd, p, 4096);
        if (n <= 0)
            break;
        b.len += (size_t)n;
        seen = memmem(b.p, b.len, text, strlen(text)) != NULL;
    }
    buf_release(&b);
    return seen;
}

int rawhttp_create(const struct localbed *l, int fd, const char *json, struct rawhttp_box *x)
{
    struct buf out = BUF_INIT;
    int status = rawhttp_call(fd, l->control, l->key, "POST", "/v2/sandboxes", json, &out);
    struct cJSON *j = json_parse(buf_str(&out), out.len, NULL);
    str_copy(x->id, sizeof(x->id), json_str(j, "sandboxID", ""));
    str_copy(x->token, sizeof(x->token), json_str(j, "envdAccessToken", ""));
    json_free(j);
    buf_release(&out);
    return status;
}

int rawhttp_box_call(const struct localbed *l, int fd, const struct rawhttp_box *x,
                     const char *method, const char *tail, const char *json)
{
    char path[96];
    snprintf(path, sizeof(path), "/sandboxes/%s%s", x->id, tail);
    return rawhttp_call(fd, l->control, l->key, method, path, json, NULL);
}

long rawhttp_status_of(pid_t pid, const char *field)
{
    char path[64], line[256];
    long v = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, field, strlen(field)) == 0)
            v = strtol(line + strlen(field) + 1, NULL, 10);
    if (f)
        fclose(f);
    return v;
}

int rawhttp_fds_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}
