/* The net thread's insides, shared by the files of src/net. */
#ifndef CCT_NET_PRIV_H
#define CCT_NET_PRIV_H

#include "curl_dl.h"
#include <cct/net.h>
#include <cct/util/arr.h>
#include <cct/util/map.h>
#include <pthread.h>

/* Sets of connections, so that nobody waits behind another kind: ordinary requests
 * are capped per host, urgent ones and streams go beside them. Over TLS all have a
 * small cap: HTTP/2 carries a hundred requests on each connection, and libcurl, once
 * the first is full, would open one for every request that waits. Plain ones are
 * local and carry one request each. */
enum lane_id { LANE_URGENT, LANE_URGENT_PLAIN, LANE_NORMAL, LANE_NORMAL_PLAIN, LANE_STREAM,
               LANE_STREAM_PLAIN, LANE_COUNT };

struct lane {
    struct net *net;
    CURLM *multi;
    int64_t due; /* when libcurl wants a call, or -1 */
    bool wide;   /* many connections at once: its server has no HTTP/2 */
};

struct timer {
    int64_t due;
    uint64_t id;
    size_t at; /* place in the heap */
    void (*fn)(void *ctx);
    void *ctx;
};

struct watch {
    int fd;
    void (*fn)(void *ctx, int fd);
    void *ctx;
};

/* Who must be alive for requests to a port of this machine to go out. */
struct owner {
    int port, pidfd;
};

/* One transfer, from net_submit to its end. */
struct xfer {
    struct net *net;
    uint64_t id;
    struct net_req *req;
    enum lane_id lane;
    CURL *easy;
    struct curl_slist *headers;
    struct buf head, answer; /* head: the lines of the last answer head */
    size_t body_at;          /* bytes of the request's body handed to libcurl */
    char curl_text[CURL_ERROR_SIZE];
    struct err fail;         /* why it was ended by us; code 0 = it was not */
    int status;              /* 0 until the head is complete */
    int sends;               /* times the request went out, where libcurl tells (7.80) */
    int64_t start_ms, byte_ms;
    uint64_t idle_timer, total_timer;
    bool loopback, added, queued;
    bool again;              /* sent once more over a fresh connection */
    bool dead;               /* cancelled: no callback any more */
    bool done;               /* on_done is running or ran */
    bool paused;             /* as asked */
    bool held;               /* as libcurl was told */
    struct xfer *next;       /* in net.todo */
};

struct net {
    struct mq *mq;
    pthread_t thread;
    bool started, stuck;
    struct net_hooks hooks;
    char *user_agent, *ca_file;
    int max_per_host;
    /* below: the net thread alone */
    int epfd;
    const struct curl_lib *lib; /* NULL: lib_err says why */
    struct err lib_err;
    CURLSH *share;
    struct lane lanes[LANE_COUNT];
    int in_curl;       /* depth of calls into libcurl: it must not be called back */
    struct map *xfers; /* id -> struct xfer, until it ended */
    struct xfer *todo; /* to be added, paused or removed once libcurl returned */
    uint64_t next_id;
    ARR(struct timer *) heap;
    struct map *timers, *watches;
    struct map *sockets; /* number -> the lane whose libcurl waits for it */
    ARR(struct owner) owners;
    int64_t doubt_ms; /* when a request last waited in vain; 0 = never */
    bool stopping;
};

/* lane.c */
int lanes_open(struct net *n, struct err *e);
void lanes_close(struct net *n);
void lane_heard(struct net *n, enum lane_id id, CURL *easy); /* an answer came */
struct lane *lane_get(struct net *n, enum lane_id id); /* NULL: out of memory */
void lanes_renew(struct net *n); /* nothing runs on them: without their connections */
void lane_socket(struct net *n, struct lane *l, int fd, unsigned events);
void lanes_run(struct net *n, enum lane_id first, enum lane_id last);
int64_t lanes_due(const struct net *n); /* -1 none */

/* xfer.c */
void xfers_settle(struct net *n); /* what had to wait for libcurl to return */
void xfer_ended(struct net *n, CURL *easy, CURLcode rc);
void xfers_drop(struct net *n);
void xfer_drop_values(struct net_req *r); /* of its headers */

/* xfer_setup.c: an easy handle with all options of its request; callbacks of
 * libcurl come in through these */
int xfer_setup(struct xfer *x, struct err *e);
bool xfer_may_repeat(struct xfer *x, CURLcode rc);
void xfer_teardown(struct xfer *x);
size_t xfer_on_head(char *line, size_t size, size_t n, void *ctx);
size_t xfer_on_body(char *data, size_t size, size_t n, void *ctx);

/* silence.c: a transfer is about to end because nothing came; a handle is made */
void silence_noted(struct xfer *x);
void silence_setup(struct xfer *x);

/* owner.c: 0, or the port that it is for has lost its process */
int owner_check(struct xfer *x, struct err *e);
void owners_free(struct net *n);

/* answer.c: what an ended transfer says */
void answer_fill(struct xfer *x, CURLcode rc, struct net_result *r);

/* timer.c */
void timers_run(struct net *n);
int64_t timers_due(const struct net *n); /* -1 none */
void timers_free(struct net *n);

#endif
