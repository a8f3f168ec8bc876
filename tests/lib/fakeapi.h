/* A control plane on loopback with N running sandboxes, that lists and deletes, each
 * after a given time, and notes when; how busy they are is another thing at each question. For
 * measuring the client. */
#ifndef CCT_TESTS_FAKEAPI_H
#define CCT_TESTS_FAKEAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fakeapi_opts {
    int n;                        /* sandboxes "ibench00000000000000NNN" */
    int list_ms;                  /* time of a list; negative: never answers anything */
    int delete_min_ms, delete_max_ms; /* time of a delete, spread evenly by number */
    int64_t end_at_ms;            /* 0 = in an hour */
};
struct fakeapi;
struct fakeapi *fakeapi_start(const struct fakeapi_opts *o);
void fakeapi_stop(struct fakeapi *f);
int fakeapi_port(const struct fakeapi *f);
/* Forget the deletes: all sandboxes are there again. */
void fakeapi_reset(struct fakeapi *f);
/* Id of sandbox i into dst. */
void fakeapi_id(char *dst, size_t size, int i);
/* Lists asked for so far. */
int fakeapi_lists(struct fakeapi *f);
int fakeapi_loads(struct fakeapi *f); /* how often it was asked how busy they are */
/* The deletes since the reset: how many, from the first one's arrival to the last answer,
 * and the slowest answer by plan. */
struct fakeapi_kill {
    int deletes, left;
    int64_t spread_us; /* first arrival to last arrival */
    int64_t total_us;
    int64_t slowest_us;
};
struct fakeapi_kill fakeapi_deletes(struct fakeapi *f);

#endif
