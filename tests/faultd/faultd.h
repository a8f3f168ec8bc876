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
 * GET /_faultd/log tells what came (?brief: without the requests); POST /_faultd/config
 * (or --config) takes
 *
 *   {"reset":true, "sandboxes":100, "paused":20, "delay":[100,200], "seed":7,
 *    "page":100, "cap":20, "cursor":"offset", "v2":false, "code":false, "headers":true,
 *    "rules":[{"method":"DELETE", "path":"/sandboxes/i*", "skip":2, "times":3,
 *              "percent":50, "status":503, "retry_after":"2", "body":"...",
 *              "apply":false, "cut":40, "stall":true, "delay_ms":900}]}
 *
 * A rule plays for the requests that match it, after `skip` of them and `times` times
 * (0 = always), in `percent` of the cases. `apply` says whether the call is carried
 * out anyway: by default yes when only the transport is broken and no when the answer is
 * another (status): a status 204 for a DELETE that did nothing is a lie one line long.
 *
 *   delay_ms N     the answer waits that long
 *   cut N          the connection closes after N bytes of the answer (HTTP/2: of its body)
 *   cut_body N     the same, counted in bytes of the body
 *   rst            closes by RST instead of FIN; without a cut: at once, unanswered
 *   stall          silence instead of closing; without a cut: never answers. "connection":
 *                  nothing more is read or written on the whole connection
 *   rst_stream     HTTP/2: only the stream ends, by RST_STREAM; without a cut: at once
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
    int64_t skip, times, percent, status, cut, cut_body, delay_ms, drip, back_ms, spawn;
    int64_t replay, reorder, after;
    char *trailer, *sandbox;
    bool rst, stall, stall_all, rst_stream, goaway, apply, endless;
};
struct data;
struct box {
    char id[24], *template_id, *meta, *env; /* meta, env: JSON text or NULL */
    bool running, gone, auto_resume;
    struct data *data; /* its data plane, once it was asked for */
    int64_t started_ms, end_ms, back_at; /* back_at: mono, a deleted one lives again */
};
struct entry {
    int64_t at_ms, conn;
    char method[8], *path, *body, *head; /* path with query */
    int status;
    bool h2;
};
struct plane {
    char *key;
    ARR(struct box *) boxes;
    ARR(struct rule) rules;
    ARR(struct entry) log;
    int64_t delay_min, delay_max, page, cap, streams;
    uint64_t seed;
    bool offset_cursor, no_v2, no_code, log_headers;
    int64_t start_ms;
    int open, most_open; /* requests being answered: now, and at most */
    int64_t conns_total, conns_open, requests;
};

/* plane.c */
void plane_init(struct plane *p);
void plane_release(struct plane *p);
void plane_fill(struct plane *p, int64_t running, int64_t paused);
/* N more running ones; meta (JSON text) may be NULL. */
void plane_add(struct plane *p, int64_t n, const char *meta);
void plane_come_back(struct plane *p, const char *id, int64_t ms); /* a deleted one, later */
void plane_revive(struct plane *p);
void plane_route(struct plane *p, const struct request *r, struct answer *a);
struct box *plane_find(struct plane *p, const char *id, size_t len);
uint64_t plane_random(struct plane *p);
/* text.c */
bool header_value(const char *head, const char *name, char *dst, size_t size);
char *query_text(const char *query, const char *name); /* decoded; NULL when absent */
void query_value(const char *query, const char *name, char *dst, size_t size);
void text_url_decode(char *s);
/* script.c: the answer to one request, with rules, log and /_faultd/ */
void script_begin(struct exchange *x);
void script_end(struct exchange *x); /* it is over */
bool script_config(struct plane *p, const char *json, size_t len);
/* proxy.c */
int proxy_run(const char *listen_at, const char *to, const char *control);

#endif
