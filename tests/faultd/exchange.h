/* One request and its answer, whatever carries it. A carrier (h1.c, h2.c) makes it,
 * script.c fills it, and the carrier takes the answer out again, broken as its faults
 * say.
 *
 * Life: exchange_new -> script_begin -> exchange_ready (head and what there is of the
 * body may go) -> exchange_add ... -> exchange_end; the carrier frees it when all was
 * sent or the peer is gone, and then `gone` is called, if set, once. */
#ifndef CCT_TESTS_FAULTD_EXCHANGE_H
#define CCT_TESTS_FAULTD_EXCHANGE_H

#include "faultd.h"
#include "loop.h"

/* How an answer that is cut short ends. */
enum ending { END_FIN, END_RST, END_SILENCE, END_STREAM };

struct fault {
    int64_t cut, cut_body; /* bytes that still go out, -1 = all */
    int64_t drip_ms;       /* one byte each so many ms, 0 = at once */
    enum ending how;
    bool stall_all, goaway, refuse;
    int64_t replay, reorder, after; /* events */
    char *trailer;                  /* Connect code the stream ends with after `after` events */
};

struct exchange;
struct carrier {
    void (*wake)(struct exchange *x); /* there is more to send, or its end */
};

struct exchange {
    struct plane *plane;
    struct request req;
    struct buf text; /* what req points into */
    struct answer a;
    struct fault fault;
    bool stream; /* the length is not known beforehand */
    bool ready, ended;
    size_t taken;   /* body bytes the carrier took */
    struct buf out; /* body bytes not taken yet begin at out_at */
    size_t out_at;
    struct timer due;  /* the answer's delay */
    struct timer drip; /* the next byte */
    bool dripping;
    const struct carrier *carrier;
    void *wire;        /* the carrier's */
    int32_t stream_id; /* HTTP/2 */
    int64_t conn_no;
    bool h2, plain;    /* plain: no TLS on a port that speaks it */
    struct rule *rule; /* of a call that is carried out late */
    struct timer late;
    size_t entry; /* in the log, from 1 on */
    int64_t log_no;
    bool counted;   /* as a request that is being answered */
    int64_t events; /* of a stream, and those held back or kept */
    ARR(struct buf) kept;
    void *owner; /* the handler's */
    void (*gone)(struct exchange *x);
    void (*drained)(struct exchange *x); /* a full answer has room again */
    bool full;
};

enum { EXCHANGE_HIGH = 256 << 10, EXCHANGE_LOW = 64 << 10 };

struct exchange *exchange_new(struct plane *p, const struct carrier *c, void *wire);
/* The request as text: parts are copied. `head` is lines with CRLF. */
void exchange_request(struct exchange *x, const char *method, const char *target,
                      const char *head, const char *body, size_t len);
void exchange_free(struct exchange *x);
/* Body bytes of an answer. exchange_add says false when the peer lags: more than
 * EXCHANGE_HIGH waits, and `drained` will be called below EXCHANGE_LOW. */
void exchange_ready(struct exchange *x);
bool exchange_add(struct exchange *x, const void *data, size_t len);
void exchange_end(struct exchange *x);
/* The peer sees the answer break off here, in the way of fault.how. */
void exchange_break(struct exchange *x, enum ending how);
/* For carriers: take up to max body bytes to dst. PULL_WAIT: wake will be called.
 * PULL_CUT: it breaks off now, as fault.how says. */
enum pull { PULL_MORE, PULL_WAIT, PULL_END, PULL_CUT };
enum pull exchange_pull(struct exchange *x, char *dst, size_t max, size_t *n);

#endif
