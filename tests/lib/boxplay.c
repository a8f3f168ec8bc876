/* A sandbox that is played: see the header. */
#include "boxplay.h"

#include <cct/util/cksum.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEPALIVE "{\"event\":{\"keepalive\":{}}}"

/* --- parts of an answer ---------------------------------------------------------- */

void boxplay_head(struct mini_conn *c)
{
    mini_sendf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/connect+json\r\n"
                  "Connection: close\r\n\r\n");
}

void boxplay_json(struct mini_conn *c, int flags, const char *json)
{
    size_t n = strlen(json);
    unsigned char head[5] = {(unsigned char)flags, (unsigned char)(n >> 24),
                             (unsigned char)(n >> 16), (unsigned char)(n >> 8), (unsigned char)n};

    mini_send(c, head, sizeof(head));
    mini_send(c, json, n);
}

void boxplay_begin(struct mini_conn *c)
{
    boxplay_head(c);
    boxplay_json(c, 0, "{\"event\":{\"start\":{\"pid\":41}}}");
}

void boxplay_out(struct mini_conn *c, const char *data, size_t len)
{
    char *b64 = b64_encode(data, len);
    char *json = xasprintf("{\"event\":{\"data\":{\"stdout\":\"%s\"}}}", b64);

    boxplay_json(c, 0, json);
    free(json);
    free(b64);
}

void boxplay_log(struct boxplay *b, struct mini_conn *c, size_t from, size_t to)
{
    if (to > from)
        boxplay_out(c, b->log.p + from, to - from);
    if (to > b->there)
        b->there = to;
}

void boxplay_keep(struct mini_conn *c, int n, int ms)
{
    for (int i = 0; i < n; i++) {
        mini_wait(c, ms);
        boxplay_json(c, 0, KEEPALIVE);
    }
}

static void whole(struct mini_conn *c, const char *out)
{
    boxplay_begin(c);
    if (*out)
        boxplay_out(c, out, strlen(out));
    boxplay_json(c, 0, "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}");
    boxplay_json(c, 2, "{}");
    mini_close(c);
}

/* --- processes ------------------------------------------------------------------- */

static const char *arg(const struct cJSON *args, int n)
{
    const struct cJSON *a = json_first(args);

    while (a && n-- > 0)
        a = json_next(a);
    return a && json_is_string(a) ? json_str_of(a) : "";
}

static void sum_text(struct boxplay *b, struct buf *out, const char *from_text, const char *len_text)
{
    uint64_t from = strtoull(from_text, NULL, 10), len = strtoull(len_text, NULL, 10);

    from = from < b->there ? from : b->there;
    len = len < b->there - from ? len : b->there - from;
    buf_addf(out, "%" PRIu32 " %" PRIu64 "\n",
             cksum_end(cksum_add(0, b->log.len ? b->log.p + from : "", len), len), len);
}

static void look(struct boxplay *b, struct mini_conn *c, const struct cJSON *args)
{
    struct buf out = BUF_INIT;

    b->looks++;
    buf_addf(&out, "home /home/user\nfound\nstarted\ncli\nepoch 1\nsize %zu\n", (size_t)b->there);
    buf_adds(&out, b->exited ? "exit 0 1 1\n" : "alive\n");
    if (strtoull(arg(args, 5), NULL, 10) > 0) {
        buf_adds(&out, "sum ");
        sum_text(b, &out, arg(args, 4), arg(args, 5));
    }
    buf_adds(&out, "starts 1\nerr\n");
    whole(c, buf_str(&out));
    buf_release(&out);
}

static void start_process(struct boxplay *b, struct mini_conn *c, const struct mini_req *r)
{
    struct cJSON *j = json_parse(r->body + 5, r->len - 5, NULL);
    const struct cJSON *p = json_get(j, "process"), *args = json_get(p, "args");
    struct buf out = BUF_INIT;

    if (str_eq(json_str(p, "cmd", ""), "tail")) {
        b->tail(b, c, strtoull(arg(args, 1) + 1, NULL, 10) - 1, ++b->tails);
    } else if (strstr(arg(args, 1), "echo \"home $HOME\"")) {
        look(b, c, args);
    } else if (strstr(arg(args, 1), "cksum")) {
        b->sums++;
        sum_text(b, &out, arg(args, 4), arg(args, 5));
        whole(c, buf_str(&out));
    } else if (str_eq(arg(args, 2), "bury")) { /* the runner: it stays */
        boxplay_begin(c);
        boxplay_keep(c, 600, 1000);
    } else {
        b->others++;
        whole(c, "");
    }
    buf_release(&out);
    json_free(j);
}

static void connect_process(struct boxplay *b, struct mini_conn *c)
{
    b->connects++;
    if (b->no_runner) {
        boxplay_head(c);
        boxplay_json(c, 2, "{\"error\":{\"code\":\"internal\",\"message\":\"no\"}}");
        mini_close(c);
        return;
    }
    boxplay_begin(c);
    boxplay_keep(c, 600, 1000);
}

/* --- files and the control plane ------------------------------------------------- */

static void read_file(struct boxplay *b, struct mini_conn *c, const struct mini_req *r)
{
    char range[64] = "";
    uint64_t from = 0, to = 0;
    size_t there = b->there;
    int pad = b->pad;

    b->reads++;
    mini_header(r, "Range", range, sizeof(range));
    if (sscanf(range, "bytes=%" SCNu64 "-%" SCNu64, &from, &to) < 1 || from >= there) {
        mini_sendf(c, "HTTP/1.1 416 X\r\nContent-Range: bytes */%zu\r\nContent-Length: 0\r\n\r\n",
                   there);
        return;
    }
    from -= from < (uint64_t)pad ? from : (uint64_t)pad;
    to = to && to < there ? to + 1 : there;
    mini_sendf(c, "HTTP/1.1 206 X\r\nContent-Range: bytes %" PRIu64 "-%" PRIu64 "/%zu\r\n"
                  "Content-Length: %" PRIu64 "\r\n\r\n", from, to - 1, there, to - from);
    mini_send(c, b->log.p + from, (size_t)(to - from));
}

static const char box_json[] =
    "{\"sandboxID\":\"" BOXPLAY_ID "\",\"templateID\":\"base\",\"state\":\"running\","
    "\"startedAt\":\"2030-01-01T00:00:00Z\",\"endAt\":\"2030-01-01T01:00:00Z\","
    "\"envdAccessToken\":\"token\",\"envdVersion\":\"0.6.4\"}";

static void handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    struct boxplay *b = ctx;
    bool control = str_starts(r->path, "/sandboxes");

    b->healths += str_eq(r->path, "/health");
    b->gets += control;
    if (b->gone)
        mini_reply(c, control ? 404 : 502, "",
                   control ? "{\"code\":404,\"message\":\"no such sandbox\"}"
                           : "{\"sandboxId\":\"" BOXPLAY_ID "\",\"message\":\"gone\",\"code\":502}");
    else if (control)
        mini_reply(c, 200, "", box_json);
    else if (str_eq(r->path, "/health"))
        mini_reply(c, 204, "", "");
    else if (str_eq(r->path, "/process.Process/Start"))
        start_process(b, c, r);
    else if (str_eq(r->path, "/process.Process/Connect"))
        connect_process(b, c);
    else if (str_eq(r->path, "/process.Process/List"))
        mini_reply(c, 200, "", "{\"processes\":[]}");
    else if (str_starts(r->path, "/files?"))
        read_file(b, c, r);
    else
        mini_reply(c, 200, "", "{}");
}

/* --- life ------------------------------------------------------------------------ */

struct boxplay *boxplay_start(boxplay_fn tail)
{
    struct boxplay *b = xcalloc(1, sizeof(*b));

    b->tail = tail;
    b->srv = mini_start(handler, b);
    return b;
}

void boxplay_stop(struct boxplay *b)
{
    mini_stop(b->srv);
    buf_release(&b->log);
    free(b);
}

void boxplay_lines(struct boxplay *b, int n, int width)
{
    for (int i = 1; i <= n; i++) {
        size_t at = b->log.len;

        buf_addf(&b->log, "<%d> ", i);
        while (b->log.len - at + 1 < (size_t)width)
            buf_addc(&b->log, (char)('a' + i % 26));
        buf_addc(&b->log, '\n');
    }
    b->there = b->log.len;
}

size_t boxplay_line_at(struct boxplay *b, int n)
{
    const char *p = b->log.p;

    while (--n > 0 && p)
        p = strchr(p, '\n') + 1;
    return (size_t)(p - b->log.p);
}

static void show(void *ctx)
{
    struct jobsbed *j = ctx;
    struct sandbox *r = &j->j.table.v[j->j.table.n - 1];

    session_show(session_of(&j->j, r->id), true);
    session_follow(session_of(&j->j, r->id));
}

struct jobsbed *boxplay_jobs(struct boxplay *b, int keepalive_s)
{
    struct e2b_account a = {.api_url = mini_url(b->srv, ""),
                            .sandbox_url = mini_url(b->srv, ""),
                            .domain = xstrdup("local"),
                            .key = secret_new("e2b_0000", 8),
                            .source = xstrdup("a test")};
    struct jobsbed *j = jobsbed_new(NULL, "a", &a);

    j->j.o.keepalive_s = keepalive_s;
    e2b_account_release(&a);
    return j;
}

uint64_t boxplay_row(struct jobsbed *j)
{
    uint64_t row = jobsbed_row(j, "shell", BOXPLAY_ID);

    jobsbed_run(j, show, j);
    return row;
}
