/* Requests by libcurl itself, none of the product's code in between: for tests of the
 * servers that tests use. Who uses it is linked with -lcurl (see Makefile). */
#ifndef CCT_TESTS_CURLASK_H
#define CCT_TESTS_CURLASK_H

#include <cct/util/buf.h>
#include <curl/curl.h>

struct ask {
    const char *url, *method, *body; /* method NULL: GET; body NULL: none */
    size_t len;                      /* of body; 0: it is a string */
    const char *head[8];             /* header lines, NULL at the end */
    const char *ca, *resolve;        /* file; "name:port:address" */
    bool h1;                         /* else HTTP/2 where TLS offers it */
    int give_up_ms;                  /* 0: 20 s */
};
struct reply {
    CURLcode rc;
    long status, version; /* CURL_HTTP_VERSION_... */
    struct buf head, body;
};

/* One request; reply_release() it. easy NULL: on a connection of its own; else that
 * handle's connection is used when it still can be. */
struct reply ask(CURL *easy, const struct ask *q);
void reply_release(struct reply *r);
/* n times the same request at once on one connection; how many were answered with `status`. */
int ask_many(const struct ask *q, int n, long status);
/* Value of a header, "" when absent; borrowed until the next call. */
const char *reply_header(const struct reply *r, const char *name);

#endif
