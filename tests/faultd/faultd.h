/* faultd: a fake E2B control plane with scripted faults, and a TCP proxy that breaks
 * connections. Written from the protocol's description; it shares no protocol code
 * with the client or the local provider. Loopback only. One thread.
 *
 *   faultd [--listen PORT] [--sandboxes N] [--paused M] [--delay MIN-MAX] [--seed S]
 *          [--key KEY] [--page N] [--cap N] [--config JSON]
 *   faultd proxy --to HOST:PORT [--listen PORT] --control PORT|PATH
 *
 * The first line on stdout is the address it listens on. GET /_faultd/log tells what
 * came; POST /_faultd/config (or --config) takes
 *
 *   {"reset":true, "sandboxes":100, "paused":20, "delay":[100,200], "seed":7,
 *    "page":100, "cap":20, "cursor":"offset", "v2":false, "code":false,
 *    "rules":[{"method":"DELETE", "path":"/sandboxes/i*", "skip":2, "times":3,
 *              "percent":50, "status":503, "retry_after":"2", "body":"...",
 *              "apply":false, "cut":40, "stall":true, "delay_ms":900}]}
 *
 * A rule plays for the requests that match it, after `skip` of them and `times` times
 * (0 = always), in `percent` of the cases. `apply` says whether the call is carried
 * out anyway: by default yes when only the transport is broken (cut, stall, delay_ms)
 * and no when the answer is another (status): a status 204 for a DELETE that did
 * nothing is a lie one line long. `cut` closes after that many bytes of the answer,
 * `stall` never answers. */
#ifndef CCT_TESTS_FAULTD_H
#define CCT_TESTS_FAULTD_H

#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request {
    const char *method, *path, *query; /* path without query; query may be "" */
    const char *head;                  /* all header lines */
    const char *body;
    size_t len;
};
struct answer {
    int status;
    struct buf head; /* extra header lines, each with CRLF */
    struct buf body;
    int delay_ms;
    int64_t cut;     /* bytes of the whole answer, -1 = all */
    bool stall;
};

struct rule {
    char *method, *path, *retry_after, *body;
    int64_t skip, times, percent, status, cut, delay_ms;
    bool stall, apply, endless;
};
struct box {
    char id[24], *template_id, *meta; /* meta: JSON text or NULL */
    bool running, gone;
    int64_t started_ms, end_ms;
};
struct entry {
    int64_t at_ms;
    char method[8], *path, *body; /* path with query */
    int status;
};
struct plane {
    char *key;
    ARR(struct box) boxes;
    ARR(struct rule) rules;
    ARR(struct entry) log;
    int64_t delay_min, delay_max, page, cap;
    uint64_t seed;
    bool offset_cursor, no_v2, no_code;
    int64_t start_ms;
    int open, most_open; /* requests being answered: now, and at most */
};

/* plane.c */
void plane_init(struct plane *p);
void plane_release(struct plane *p);
void plane_fill(struct plane *p, int64_t running, int64_t paused);
void plane_route(struct plane *p, const struct request *r, struct answer *a);
uint64_t plane_random(struct plane *p);
bool header_value(const char *head, const char *name, char *dst, size_t size);
/* script.c: the answer to one request, with rules, log and /_faultd/ */
void script_answer(struct plane *p, const struct request *r, struct answer *a);
bool script_config(struct plane *p, const char *json, size_t len);
/* server.c */
int server_run(struct plane *p, int port);
int listen_on(const char *where, bool announce); /* a port, or a path of a socket */
/* proxy.c */
int proxy_run(const char *listen_at, const char *to, const char *control);

#endif
