/* The flooding sandbox: a thread for each connection, plain blocking I/O. */
#include "flood.h"

#include "bench.h"
#include "storebox.h"

#include <arpa/inet.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/cksum.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 30000, /* of an output event; base64 of it needs no padding */
       LOOK_MS = 20, KEEPALIVE_MS = 1000 };

struct flood {
    const char *text;
    size_t len;
    struct buf wire; /* the text as output events, each of PIECE bytes but the last */
    ARR(size_t) at;  /* where the n-th of them begins */
    atomic_ullong there, sent;
    atomic_int tails, open;
    atomic_bool over;
    int fd, port;
    pthread_t thread;
};
struct conn {
    struct flood *f;
    int fd;
    struct buf in;
};

/* --- sending ---------------------------------------------------------------------- */

static bool put(struct conn *c, const void *data, size_t len)
{
    for (const char *p = data; len;) {
        ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || c->f->over)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

static bool puts_(struct conn *c, const char *text)
{
    return put(c, text, strlen(text));
}

static void add_json(struct buf *b, int flags, const char *json, size_t n)
{
    char head[5] = {(char)flags, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};

    buf_add(b, head, sizeof(head));
    buf_add(b, json, n);
}

static bool put_json(struct conn *c, int flags, const char *json)
{
    struct buf b = BUF_INIT;
    bool ok;

    add_json(&b, flags, json, strlen(json));
    ok = put(c, b.p, b.len);
    buf_release(&b);
    return ok;
}

static void add_output(struct buf *out, const char *data, size_t len)
{
    char *b64 = b64_encode(data, len);
    char *json = xasprintf("{\"event\":{\"data\":{\"stdout\":\"%s\"}}}", b64);

    add_json(out, 0, json, strlen(json));
    free(json);
    free(b64);
}

static bool begin(struct conn *c)
{
    return puts_(c, "HTTP/1.1 200 OK\r\nContent-Type: application/connect+json\r\n"
                    "Connection: close\r\n\r\n") &&
           put_json(c, 0, "{\"event\":{\"start\":{\"pid\":41}}}");
}

static bool whole(struct conn *c, const char *out)
{
    struct buf b = BUF_INIT;

    if (*out)
        add_output(&b, out, strlen(out));
    bool ok = begin(c) && put(c, buf_str(&b), b.len) &&
              put_json(c, 0, "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}") &&
              put_json(c, 2, "{}");
    buf_release(&b);
    return ok;
}

static bool answer(struct conn *c, int status, const char *body)
{
    char head[128];

    snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n", status,
             strlen(body));
    return puts_(c, head) && puts_(c, body);
}

/* --- the log ------------------------------------------------------------------------ */

/* Some bytes of the log from `from` on, at most up to the end of the text. */
static const char *log_at(const struct flood *f, uint64_t from, uint64_t to, size_t *n)
{
    size_t at = (size_t)(from % f->len);

    *n = to - from < f->len - at ? (size_t)(to - from) : f->len - at;
    return f->text + at;
}

static bool put_log(struct conn *c, uint64_t from, uint64_t to)
{
    while (from < to) {
        size_t n;
        const char *p = log_at(c->f, from, to, &n);

        if (!put(c, p, n))
            return false;
        atomic_fetch_add(&c->f->sent, n);
        from += n;
    }
    return true;
}

/* Output events for [from, to); *next: how far it came. */
static bool put_events(struct conn *c, uint64_t from, uint64_t to, uint64_t *next)
{
    struct flood *f = c->f;
    size_t n, at = (size_t)(from % f->len), i = at / PIECE, size;
    const char *p = log_at(f, from, to, &n);
    struct buf b = BUF_INIT;
    bool ok;

    size = f->len - i * PIECE < PIECE ? f->len - i * PIECE : PIECE;
    if (at % PIECE == 0 && n >= size) {
        n = size;
        ok = put(c, f->wire.p + f->at.v[i], f->at.v[i + 1] - f->at.v[i]);
    } else {
        n = n < size - at % PIECE ? n : size - at % PIECE;
        add_output(&b, p, n);
        ok = put(c, b.p, b.len);
        buf_release(&b);
    }
    atomic_fetch_add(&f->sent, n);
    *next = from + n;
    return ok;
}

/* Has the other side gone? Waits that long for it. */
static bool gone(struct conn *c, int ms)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN | POLLRDHUP};

    return c->f->over || poll(&p, 1, ms) > 0;
}

static void tail(struct conn *c, uint64_t from)
{
    struct flood *f = c->f;
    int64_t said = clock_mono_ms();
    bool ok = begin(c);

    atomic_fetch_add(&f->tails, 1);
    while (ok) {
        if (from < f->there) {
            ok = put_events(c, from, f->there, &from);
            said = clock_mono_ms();
        } else if (clock_mono_ms() - said >= KEEPALIVE_MS) {
            ok = put_json(c, 0, "{\"event\":{\"keepalive\":{}}}");
            said = clock_mono_ms();
        } else {
            ok = !gone(c, LOOK_MS);
        }
    }
    atomic_fetch_sub(&f->tails, 1);
}

static void linger(struct conn *c)
{
    while (!gone(c, KEEPALIVE_MS) && put_json(c, 0, "{\"event\":{\"keepalive\":{}}}"))
        ;
}

static bool read_range(struct conn *c, const char *head)
{
    const char *range = strstr(head, "ange: bytes=");
    uint64_t from = 0, to = 0, there = c->f->there;
    char text[256];

    if (!range || sscanf(range, "ange: bytes=%" SCNu64 "-%" SCNu64, &from, &to) < 1 ||
        from >= there) {
        snprintf(text, sizeof(text), "HTTP/1.1 416 X\r\nContent-Range: bytes */%" PRIu64
                                     "\r\nContent-Length: 0\r\n\r\n", there);
        return puts_(c, text);
    }
    to = to && to < there ? to + 1 : there;
    snprintf(text, sizeof(text), "HTTP/1.1 206 X\r\nContent-Range: bytes %" PRIu64 "-%" PRIu64
                                 "/%" PRIu64 "\r\nContent-Length: %" PRIu64 "\r\n\r\n",
             from, to - 1, there, to - from);
    return puts_(c, text) && put_log(c, from, to);
}

static void add_sum(const struct flood *f, struct buf *out, uint64_t from, uint64_t len)
{
    uint32_t crc = 0;

    for (uint64_t at = from; at < from + len;) {
        size_t n;
        const char *p = log_at(f, at, from + len, &n);

        crc = cksum_add(crc, p, n);
        at += n;
    }
    buf_addf(out, "%" PRIu32 " %" PRIu64 "\n", cksum_end(crc, len), len);
}

/* --- processes and the control plane -------------------------------------------------- */

static const char *arg(const struct cJSON *args, int n)
{
    const struct cJSON *a = json_first(args);

    while (a && n-- > 0)
        a = json_next(a);
    return a && json_is_string(a) ? json_str_of(a) : "";
}

static bool start_process(struct conn *c, const char *body, size_t len)
{
    struct cJSON *j = len > 5 ? json_parse(body + 5, len - 5, NULL) : NULL;
    const struct cJSON *p = json_get(j, "process"), *args = json_get(p, "args");
    uint64_t from = strtoull(arg(args, 4), NULL, 10), n = strtoull(arg(args, 5), NULL, 10);
    struct buf out = BUF_INIT;
    bool ok = true;

    if (str_eq(json_str(p, "cmd", ""), "tail")) {
        tail(c, strtoull(arg(args, 1) + 1, NULL, 10) - 1);
        ok = false;
    } else if (strstr(arg(args, 1), "echo \"home $HOME\"")) {
        buf_addf(&out, "home /home/user\nfound\nstarted\ncli\nepoch 1\nsize %llu\nalive\n",
                 (unsigned long long)c->f->there);
        if (n) {
            buf_adds(&out, "sum ");
            add_sum(c->f, &out, from, n);
        }
        buf_adds(&out, "starts 1\nerr\n");
        ok = whole(c, buf_str(&out));
    } else if (strstr(arg(args, 1), "cksum")) {
        add_sum(c->f, &out, from, n);
        ok = whole(c, buf_str(&out));
    } else if (str_eq(arg(args, 2), "bury")) {
        ok = begin(c);
        linger(c);
    } else {
        ok = whole(c, "");
    }
    buf_release(&out);
    json_free(j);
    return ok && false; /* these answers end with their connection */
}

#define BOX                                                                                \
    "{\"sandboxID\":\"" FLOOD_ID "\",\"templateID\":\"base\",\"alias\":\"base\","            \
    "\"clientID\":\"c1\",\"startedAt\":\"%s\",\"endAt\":\"%s\",\"cpuCount\":2,"              \
    "\"memoryMB\":512,\"diskSizeMB\":1024,\"state\":\"running\",\"metadata\":{},"            \
    "\"envdAccessToken\":\"token\",\"envdVersion\":\"0.6.4\"}"

static bool control(struct conn *c, const char *path)
{
    char start[40], end[40], text[1024];
    int64_t now = clock_wall_ms() / 60000 * 60000;

    clock_format_rfc3339(start, sizeof(start), now - 600000);
    clock_format_rfc3339(end, sizeof(end), now + 3600000);
    snprintf(text, sizeof(text), strstr(path, FLOOD_ID) ? BOX : "[" BOX "]", start, end);
    return answer(c, 200, text);
}

static bool serve(struct conn *c, const char *line, const char *head, const char *body, size_t len)
{
    const char *path = strchr(line, ' ');

    path = path ? path + 1 : "";
    if (str_starts(path, "/process.Process/Start"))
        return start_process(c, body, len);
    if (str_starts(path, "/process.Process/Connect")) {
        begin(c);
        linger(c);
        return false;
    }
    if (str_starts(path, "/process.Process/List"))
        return answer(c, 200, "{\"processes\":[]}");
    if (str_starts(path, "/files?"))
        return read_range(c, head);
    if (str_starts(path, "/health"))
        return answer(c, 204, "");
    if (strstr(line, "/sandboxes"))
        return control(c, path);
    return answer(c, 200, "{}");
}

/* --- connections ------------------------------------------------------------------------ */

static bool fill(struct conn *c)
{
    char *room = buf_reserve(&c->in, 65536);
    ssize_t n = recv(c->fd, room, 65535, 0);

    if (n <= 0)
        return n < 0 && errno == EINTR;
    c->in.len += (size_t)n;
    c->in.p[c->in.len] = '\0';
    return true;
}

static bool one_request(struct conn *c)
{
    const char *end = NULL, *cl;
    size_t head, len;
    char *text;

    while (!c->in.len || !(end = strstr(c->in.p, "\r\n\r\n"))) {
        if (c->in.len && str_starts(c->in.p, "PLAIN\n"))
            return put_log(c, 0, c->f->there ? c->f->there : c->f->len) && false;
        if (!fill(c))
            return false;
    }
    head = (size_t)(end - c->in.p) + 4;
    cl = strcasestr(c->in.p, "\r\ncontent-length: ");
    len = cl && cl < end ? strtoul(cl + 18, NULL, 10) : 0;
    while (c->in.len < head + len)
        if (!fill(c))
            return false;
    text = xstrndup(c->in.p, head);
    bool more = serve(c, text, text, c->in.p + head, len);
    free(text);
    buf_consume(&c->in, head + len);
    return more;
}

static void *run_conn(void *arg)
{
    struct conn *c = arg;
    struct flood *f = c->f;

    while (!f->over && one_request(c))
        ;
    close(c->fd);
    buf_release(&c->in);
    free(c);
    atomic_fetch_sub(&f->open, 1);
    return NULL;
}

static void *run_flood(void *arg)
{
    struct flood *f = arg;
    struct timeval patience = {1, 0};

    while (!f->over) {
        struct pollfd p = {.fd = f->fd, .events = POLLIN};
        int fd = poll(&p, 1, LOOK_MS) > 0 ? accept4(f->fd, NULL, NULL, SOCK_CLOEXEC) : -1, one = 1;
        pthread_t t;

        if (fd < 0)
            continue;
        struct conn *c = xcalloc(1, sizeof(*c));
        *c = (struct conn){.f = f, .fd = fd, .in = BUF_INIT};
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        atomic_fetch_add(&f->open, 1);
        if (pthread_create(&t, NULL, run_conn, c) != 0)
            die("cannot start a thread");
        pthread_detach(t);
    }
    return NULL;
}

/* --- life ------------------------------------------------------------------------------- */

struct flood *flood_start(const char *text, size_t len)
{
    struct flood *f = xcalloc(1, sizeof(*f));
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);

    f->text = text;
    f->len = len;
    buf_init(&f->wire, 0);
    for (size_t at = 0; at < len; at += PIECE) {
        *ARR_PUSH(&f->at) = f->wire.len;
        add_output(&f->wire, text + at, len - at < PIECE ? len - at : PIECE);
    }
    *ARR_PUSH(&f->at) = f->wire.len;
    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (f->fd < 0 || bind(f->fd, (struct sockaddr *)&a, sizeof(a)) != 0 ||
        listen(f->fd, 64) != 0 || getsockname(f->fd, (struct sockaddr *)&a, &size) != 0)
        die("no port on loopback: %s", strerror(errno));
    f->port = ntohs(a.sin_port);
    if (pthread_create(&f->thread, NULL, run_flood, f) != 0)
        die("cannot start a thread");
    return f;
}

void flood_stop(struct flood *f)
{
    f->over = true;
    pthread_join(f->thread, NULL);
    while (f->open) /* each looks within a moment */
        poll(NULL, 0, 1);
    close(f->fd);
    buf_release(&f->wire);
    ARR_RELEASE(&f->at);
    free(f);
}

int flood_port(const struct flood *f)
{
    return f->port;
}

void flood_grow(struct flood *f, uint64_t to)
{
    f->there = to;
}

bool flood_followed(struct flood *f, int ms)
{
    int64_t end = clock_mono_ms() + ms;

    while (!f->tails && clock_mono_ms() < end)
        poll(NULL, 0, 1);
    return f->tails > 0;
}

uint64_t flood_sent(struct flood *f)
{
    return f->sent;
}

char **flood_env(const struct flood *f, const char *dir)
{
    char **env = bench_env(dir, f->port);
    size_t n = 0;

    while (env[n])
        n++;
    env[n] = xasprintf("E2B_SANDBOX_URL=http://127.0.0.1:%d", f->port);
    return env;
}

void flood_store(const char *dir, const char *tool)
{
    struct storebox b;
    char id[] = FLOOD_ID, name[] = "flood", session[] = "flood", project[] = "default",
         base[] = "base";
    struct sandbox sb = {.sandbox_id = id, .name = name, .session = session, .tool = (char *)tool,
                         .project = project, .template_id = base, .state = SB_RUNNING,
                         .agent = AG_IDLE, .cpu_count = 2, .memory_mb = 512};

    storebox_start(&b, dir);
    sb.created_at = sb.started_at = clock_wall_ms() - 600000;
    sb.end_at = sb.started_at + 3600000;
    store_put_sandbox(b.s, &sb, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    storebox_stop(&b);
}
