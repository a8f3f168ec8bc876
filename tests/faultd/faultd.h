/* faultd: a fake E2B (control plane and data plane on one port) with scripted faults,
 * and a TCP proxy that breaks connections. Written from the protocol's description; it
 * shares no protocol code with the client or the local provider. Loopback only. One
 * thread.
 *
 *   faultd [--listen PORT] [--listen6] [--tls-dir DIR [--name NAME]... [--h1]]
 *          [--sandboxes N] [--paused M] [--delay MIN-MAX] [--seed S] [--key KEY]
 *          [--page N] [--cap N] [--streams N] [--config JSON]
 *   faultd probe
 *   faultd proxy --to HOST:PORT [--listen PORT] --control PORT|PATH
 *
 * The first line on stdout is the address: http://127.0.0.1:PORT, or with --tls-dir
 * https://localhost:PORT. Then TLS is spoken with ALPN h2 and http/1.1 (--h1: only the
 * latter); DIR/ca.pem is the CA, made when it is not there, and the certificate is for
 * localhost, *.localhost, 127.0.0.1, ::1 and each --name. Plain HTTP/1.1 on that port is
 * understood for /_faultd/ alone. --listen6 listens on ::1 too. --streams: how many
 * streams an HTTP/2 connection may have at once (1000).
 *
 * GET /_faultd/log (?brief: without the requests) gives
 *
 *   {"running":N, "paused":N, "killed":N, "open":N, "most_open":N, "conns":N,
 *    "conns_open":N, "count":N, "requests":[{"ms":N, "us":N, "delay":N, "method":"GET",
 *    "path":"/...?...", "status":200, "conn":N, "h2":true, "over_ms":N, "bytes":N,
 *    "headers":"...", "body":"..."}]}
 *
 * where ms counts from the last reset, us is the monotonic clock, status 0 is a request
 * that was never answered, over_ms and bytes (of the answer's body) come when it is over,
 * and headers when the configuration wants them.
 *
 * POST /_faultd/config (or --config) takes
 *
 *   {"reset":true, "sandboxes":100, "paused":20, "delay":[100,200], "seed":7,
 *    "page":100, "cap":20, "cursor":"offset", "v2":false, "code":false, "date":false,
 *    "headers":true,
 *    "rules":[{"method":"DELETE", "path":"/sandboxes/i*", "skip":2, "times":3,
 *              "percent":50, "status":503, "retry_after":"2", "body":"...",
 *              "apply":false, "cut":40, "stall":true, "delay_ms":900}],
 *    "add":true, "template":"claude", "metadata":{"k":"v"}, "ttl":3600,
 *    "auto_resume":true, "auto_pause":true, "domain":"localhost:PORT", "templates":3,
 *    "uploads":"http://127.0.0.1:PORT",
 *    "logs":20, "build":{"steps":2, "step_ms":100, "wait_ms":0, "lines":2, "fail_at":1}}
 *
 * and refuses names that it does not know. reset forgets rules and log. Giving sandboxes or
 * paused replaces all sandboxes, with "add" it adds to them; template to auto_pause describe
 * the new ones. cursor: "offset" is the bad kind that skips rows when earlier ones were killed;
 * any other is stable. domain stands in the answers of create and connect. uploads: where files of
 * builds are to go, as a proxy in front; else to where they were asked for. templates: so many
 * that are ready. logs: lines that each sandbox has. build: how builds go that are started from
 * then on (steps 0: as many as the request has; fail_at: the step that fails).
 *
 * A rule plays for the requests that match it, after `skip` of them and `times` times
 * (0 = always), in `percent` of the cases. `apply` says whether the call is carried
 * out anyway: by default yes when only the transport is broken and no when the answer is
 * another (status): a status 204 for a DELETE that did nothing is a lie one line long.
 *
 *   delay_ms N     the answer waits that long; with delay_to M: N to M, by chance
 *   late_ms N      the call is carried out so much later, even if nobody waits any more
 *   cut N          the connection closes after N bytes of the answer (HTTP/2: of its body)
 *   cut_body N     the same, counted in bytes of the body
 *   rst            closes by RST instead of FIN; without a cut: at once, unanswered
 *   stall          silence instead of closing; without a cut: never answers. "connection":
 *                  nothing more is read or written on the whole connection
 *   rst_stream     HTTP/2: only the stream ends, by RST_STREAM; without a cut: at once
 *   refuse         the same with REFUSED_STREAM: it was not looked at (and is not applied)
 *   goaway         HTTP/2: GOAWAY (NO_ERROR) when the answer began; HTTP/1.1: close after
 *   drip N         the body goes out one byte each N ms
 *   back_ms N      what the call deleted is there again after N ms
 *   spawn N        so many sandboxes appear now, as if another client made them; with
 *                  spawn_meta {...} as their metadata
 *   after N        for the next three: when N events went out after `start` (0)
 *   trailer CODE   the stream ends with an error of that Connect code
 *   replay K       the last K events are sent again
 *   reorder K      from there on each K events come out in reversed order
 *
 * The data plane: E2b-Sandbox-Id with E2b-Sandbox-Port 49983, or a host name
 * 49983-ID.anything. Processes are real, see jail.h (`faultd probe` says whether this
 * machine lets them); they die with their sandbox and with faultd. The command
 * `faultd-lines RATE COUNT [SEED]` needs no process: see proc_lines.c. Rules match its
 * paths ("/process.Process/Start", "/files") too, and "sandbox":"GLOB" the sandbox. */
#ifndef CCT_TESTS_FAULTD_H
#define CCT_TESTS_FAULTD_H

#include "loop.h"
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange;
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
};

struct rule {
    char *method, *path, *retry_after, *body, *spawn_meta;
    int64_t skip, times, percent, status, cut, cut_body, delay_ms, drip, late_ms, back_ms,
        spawn, delay_to;
    int64_t replay, reorder, after;
    char *trailer, *sandbox;
    bool rst, stall, stall_all, rst_stream, refuse, goaway, apply, endless;
};
struct data;
struct box {
    char id[24], *template_id, *meta, *env; /* meta, env: JSON text or NULL */
    bool running, gone, auto_resume, auto_pause;
    struct plane *plane;
    struct data *data; /* its data plane, once it was asked for */
    int64_t started_ms, end_ms;
    struct timer ttl, back;
};
struct event {
    int64_t at_ms, started_ms;
    const char *what;
    char box[24], template_id[64];
};
struct fill { /* what sandboxes that are just there look like */
    const char *template_id, *meta;
    int64_t ttl;
    bool add, auto_resume, auto_pause;
};
struct entry {
    int64_t at_ms, over_ms, conn, bytes; /* over_ms -1: not yet; bytes: of the body */
    int64_t at_us, delay_ms;             /* at_us: monotonic, as clock_gettime says */
    char method[8], *path, *body, *head; /* path with query */
    int status;
    bool h2;
};
struct tpl;
struct plane {
    char *key, *domain, *uploads_at;
    ARR(struct box *) boxes;
    ARR(struct event) events;
    ARR(struct tpl *) tpls;
    ARR(char *) uploads; /* hashes of files that are there */
    ARR(struct rule) rules;
    ARR(struct entry) log;
    int64_t delay_min, delay_max, page, cap, streams, logs;
    struct {
        int64_t steps, step_ms, wait_ms, lines, fail_at;
    } build;
    uint64_t seed;
    bool tls, offset_cursor, no_v2, no_code, no_date, log_headers;
    int64_t start_ms, log_no; /* log_no: which log this is */
    int open, most_open;      /* requests being answered: now, and at most */
    int64_t conns_total, conns_open, requests;
};

/* plane.c */
void plane_init(struct plane *p);
void plane_fill(struct plane *p, int64_t running, int64_t paused, const struct fill *f);
void box_come_back(struct plane *p, const char *id, int64_t in_ms); /* a killed one, later */
void plane_route(struct plane *p, const struct request *r, struct answer *a);
struct box *plane_find(struct plane *p, const char *id, size_t len);
/* text.c */
uint64_t text_random(uint64_t *seed); /* the same seed gives the same row everywhere */
bool header_value(const char *head, const char *name, char *dst, size_t size);
char *query_text(const char *query, const char *name); /* decoded; NULL when absent */
void query_value(const char *query, const char *name, char *dst, size_t size);
void text_url_decode(char *s);
/* Is it an object with only these names? */
bool text_known(const struct cJSON *j, const char *const *names, char *why, size_t size);
/* script.c: the answer to one request, with rules, log and /_faultd/ */
void script_begin(struct exchange *x);
void script_end(struct exchange *x); /* it is over */
/* False with the reason, for instance a name that is not known. */
bool script_config(struct plane *p, const char *json, size_t len, char *why, size_t size);
/* proxy.c */
int proxy_run(const char *listen_at, const char *to, const char *control);

#endif
