/* Agent sessions over a network that breaks: a provider (the local one over plain HTTP, or
 * faultd over TLS and HTTP/2), a chaos proxy each in front of its control plane and its data
 * plane, and the facade that knows nothing but the proxies. */
#ifndef CCT_TESTS_CHAOSBED_H
#define CCT_TESTS_CHAOSBED_H

#include "appbed.h"
#include "faultproc.h"
#include "localbed.h"

#include <cct/e2b.h>
#include <cct/util/buf.h>

struct chaosbed {
    struct localbed *local;    /* or */
    struct faultd *fake;
    struct faultd *api, *data; /* the proxies */
    struct e2b_account account; /* of the provider itself */
    struct direct *direct;
    struct appbed *app;
    uint64_t row;              /* of the session under test */
    char *sandbox_id;
    struct buf raw;            /* what cc-tui stored of the agent's output, so far */
    struct buf truth;          /* out.log in the sandbox, read past the proxies */
};
/* Can faultd run processes here? Without that there is only the local provider. */
bool chaosbed_tls_possible(void);
/* Starts all of it; the account is in force and the first list is there. NULL with *e. */
struct chaosbed *chaosbed_new(bool tls, const struct app_opts *o, struct err *e);
void chaosbed_free(struct chaosbed *b);
/* One command to a proxy (tests/faultd/proxy.c); the test ends when it is refused. */
void chaosbed_do(struct faultd *proxy, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A shell session; `emit TAG N SLEEP` is defined in it and prints "<TAG-1>".."<TAG-N>",
 * one a line. False with *e. */
bool chaosbed_session(struct chaosbed *b, struct err *e);
/* Wait for all of these requests to end, false after ms; each must have ended well. */
bool chaosbed_ended(struct chaosbed *b, const uint64_t *req, size_t n, int64_t ms, struct err *e);
/* Past the proxies: the agent's log so far into truth; kill the sandbox. */
bool chaosbed_truth(struct chaosbed *b, struct err *e);
bool chaosbed_kill(struct chaosbed *b, struct err *e);
/* Bring raw and truth up to date. */
bool chaosbed_read(struct chaosbed *b, struct err *e);
/* Lines <TAG-1>..<TAG-N>: each once in the agent's log, in what is stored and on the
 * screen (of the newest page); false with a sentence in *e. */
bool chaosbed_lines(struct chaosbed *b, const char *tag, int n, struct err *e);
/* The stored bytes are the beginning of the log in the sandbox, or all of it. */
bool chaosbed_same(struct chaosbed *b, struct err *e);
/* What the screen would tell, to stderr, for who looks into a failure. */
void chaosbed_explain(const struct chaosbed *b, int seed);
/* A stream of numbers: the same seed, the same numbers. */
uint64_t chaos_random(uint64_t *state);

#endif
