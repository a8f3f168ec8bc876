/* Strict parser of HTTP/1.x request heads and chunked bodies. It stands in front
 * of both ports of the provider and refuses everything two readers could
 * understand differently: bare line feeds, `Host :`, folded lines, a missing or
 * second Host, two lengths, a length beside chunks, odd chunk sizes.
 * Pure functions of bytes; nothing is allocated, slices point into the input. */
#ifndef CCT_LOCAL_HTTP_HEAD_H
#define CCT_LOCAL_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX (64u << 10)   /* request line and headers together */
#define HTTP_TARGET_MAX (16u << 10) /* path and query */
#define HTTP_FIELDS_MAX 128u

struct http_slice {
    const char *p;
    size_t len;
};

struct http_field {
    struct http_slice name, value;
};

struct http_head {
    struct http_slice method, target; /* target: origin form, starts with '/' */
    int minor;                        /* HTTP/1.minor, 0 or 1 */
    struct http_field fields[HTTP_FIELDS_MAX];
    size_t n_fields;
    struct http_slice host;
    int64_t content_length; /* -1 when absent */
    bool chunked;
    bool keep_alive; /* what the client wishes, by version and header */
    bool expect_continue;
    int status;      /* when refused: 4xx or 5xx ... */
    const char *why; /* ... and the sentence for it (static) */
};

/* Parse at p[0..len). Returns the bytes of the head (> 0), 0 when more are
 * needed, -1 when refused (status and why are set; the connection must close). */
long http_head_parse(struct http_head *h, const char *p, size_t len);
/* Value of a field by name (any case), or NULL. The parser made sure that those
 * which decide something occur once. */
const struct http_slice *http_head_get(const struct http_head *h, const char *name);
bool http_slice_is(const struct http_slice *s, const char *text);
bool http_slice_is_nocase(const struct http_slice *s, const char *text);
/* The rules that keep web pages out: Host is 127.0.0.1:port or localhost:port, no
 * Origin, no OPTIONS, no Upgrade. False with status and why set. */
bool http_head_guard(struct http_head *h, unsigned port);

/* --- chunked bodies ------------------------------------------------------- */
#define HTTP_CHUNK_EXT_MAX 256u      /* bytes after ';' in one chunk's line */
#define HTTP_TRAILERS_MAX (8u << 10) /* of all trailers together */

struct http_chunks {
    int state;
    int digits;
    unsigned skipped; /* bytes of this extension, or of the trailers */
    uint64_t left;
};
/* Receives decoded body bytes; false stops the scan with an error. */
typedef bool (*http_chunk_fn)(void *arg, const char *p, size_t len);

void http_chunks_init(struct http_chunks *c);
/* Look at p[0..len); *used = bytes that belong to the body's framing or data.
 * 1 = the body ended, 0 = more is needed, -1 = malformed or stopped. Extensions
 * and trailers are read as strictly as the rest and then dropped: nothing here
 * has a use for them, and both readers of a body must agree on its end. `fn` may
 * be NULL. */
int http_chunks_scan(struct http_chunks *c, const char *p, size_t len, size_t *used,
                     http_chunk_fn fn, void *arg);

#endif
