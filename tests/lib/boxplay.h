/* A sandbox that is played: one server on loopback that is the control plane and the
 * data plane of one running session, whose log and whose tails a test makes up. Streams
 * may do what no right server does. */
#ifndef CCT_TESTS_BOXPLAY_H
#define CCT_TESTS_BOXPLAY_H

#include "jobsbed.h"
#include "miniserver.h"

#include <cct/util/buf.h>
#include <stdatomic.h>

#define BOXPLAY_ID "iplayed0000000000000"

struct boxplay;
/* The n-th tail (from 1) asks for the log from a byte on. Runs on the server's thread. */
typedef void (*boxplay_fn)(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth);

struct boxplay {
    struct mini *srv;
    boxplay_fn tail;
    struct buf log;         /* what the agent prints in all */
    atomic_size_t there;    /* so much of it is in the file by now */
    atomic_bool gone;       /* the sandbox was killed: 502 and 404 */
    atomic_bool exited;     /* the agent's end is published */
    atomic_bool no_runner;  /* connecting to it fails every time */
    atomic_int pad;         /* ranges are answered from so many bytes before */
    atomic_int tails, looks, sums, reads, healths, gets, others, connects;
};
struct boxplay *boxplay_start(boxplay_fn tail);
void boxplay_stop(struct boxplay *b);
/* Add numbered lines "<1> ..." to the log, each of about `width` bytes; all are there. */
void boxplay_lines(struct boxplay *b, int n, int width);
/* Offset of the begin of line n (from 1). */
size_t boxplay_line_at(struct boxplay *b, int n);
/* Jobs with this as their account; a row of the shell tool; shown and followed. */
struct jobsbed *boxplay_jobs(struct boxplay *b, int keepalive_s);
uint64_t boxplay_row(struct jobsbed *j);

/* Parts of a stream's answer, in the order of the calls. */
void boxplay_head(struct mini_conn *c);
void boxplay_json(struct mini_conn *c, int flags, const char *json);
void boxplay_begin(struct mini_conn *c); /* head and start event */
void boxplay_out(struct mini_conn *c, const char *data, size_t len);
/* One event of the log's bytes [from, to). */
void boxplay_log(struct boxplay *b, struct mini_conn *c, size_t from, size_t to);
/* Keepalives, one in ms, n times. */
void boxplay_keep(struct mini_conn *c, int n, int ms);

#endif
