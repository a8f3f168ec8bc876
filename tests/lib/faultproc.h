/* Runs tests/faultd (see tests/faultd/faultd.h) as a child of the test. */
#ifndef CCT_TESTS_FAULTPROC_H
#define CCT_TESTS_FAULTPROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct faultd;
/* Arguments end with NULL. The program is $B/faultd. */
struct faultd *faultd_start(const char *const *args);
/* The same with --tls-dir: a folder of its own, gone after faultd_stop. */
struct faultd *faultd_start_tls(const char *const *args);
const char *faultd_ca(const struct faultd *f); /* the CA's file; NULL without TLS */
/* Whether --listen6 can work on this machine. */
bool faultd_has_ipv6(void);
/* The chaos proxy in front of `url`. */
struct faultd *faultd_proxy(const char *url);
/* "http://127.0.0.1:PORT", with TLS "https://localhost:PORT". */
const char *faultd_url(const struct faultd *f);
/* One plain HTTP request to it (with TLS: for /_faultd/ alone), body of the answer as a new
 * string; NULL when it failed. */
char *faultd_http(const struct faultd *f, const char *method, const char *path,
                  const char *body);
/* Same as POST /_faultd/config. */
bool faultd_config(const struct faultd *f, const char *json);
/* One command line to the proxy; true on "ok" and numbers of stat. */
bool faultd_command(const struct faultd *f, const char *line, char *answer, size_t size);
/* May sandboxes run processes on this machine? */
bool faultd_can_run(void);
int faultd_pid(const struct faultd *f);
void faultd_stop(struct faultd *f);

/* --- what most tests of the application want ------------------------------------------------ */

/* faultd_start(), and the environment names it as the service. Fails the test. */
struct faultd *faultd_serve(const char *const *args);
/* Requests that it was sent since its log was begun; method and path as fnmatch() has them.
 * first, last: when, in its ms. */
struct faultd_asked {
    size_t n;
    int64_t first, last;
};
struct faultd_asked faultd_asked(const struct faultd *f, const char *method, const char *path);
/* How many sandboxes there are, paused ones too. */
int64_t faultd_left(const struct faultd *f);

#endif
