/* The Connect protocol's JSON form, server side: envelopes, error codes, the
 * time-out header. Pure functions over bytes; written apart from the client's
 * codec on purpose, so that neither can hide a mistake of the other. */
#ifndef CCT_LOCAL_CONNECT_JSON_H
#define CCT_LOCAL_CONNECT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum connect_code {
    CONNECT_OK = 0,
    CONNECT_CANCELED,
    CONNECT_UNKNOWN,
    CONNECT_INVALID_ARGUMENT,
    CONNECT_DEADLINE_EXCEEDED,
    CONNECT_NOT_FOUND,
    CONNECT_ALREADY_EXISTS,
    CONNECT_PERMISSION_DENIED,
    CONNECT_RESOURCE_EXHAUSTED,
    CONNECT_FAILED_PRECONDITION,
    CONNECT_ABORTED,
    CONNECT_OUT_OF_RANGE,
    CONNECT_UNIMPLEMENTED,
    CONNECT_INTERNAL,
    CONNECT_UNAVAILABLE,
    CONNECT_DATA_LOSS,
    CONNECT_UNAUTHENTICATED
};

#define CONNECT_FLAG_COMPRESSED 0x01u
#define CONNECT_FLAG_END 0x02u
#define CONNECT_HEAD_BYTES 5

/* The status of a unary answer that fails so. */
int connect_code_http(enum connect_code code);
/* The code that tells a client what errno means for its request. */
enum connect_code connect_code_from_errno(int err);

/* Five bytes in front of every message: flags, length in network order. */
void connect_head(unsigned char dst[CONNECT_HEAD_BYTES], unsigned flags, size_t len);

struct connect_frame {
    unsigned flags;
    const char *body; /* into the caller's bytes */
    size_t len;
};
/* Cut the first envelope off p[0..len). Bytes used, 0 when more are needed, or
 * negative when the length says more than `max`. */
long connect_frame_parse(const char *p, size_t len, size_t max, struct connect_frame *f);
/* The one envelope of a server-stream request: CONNECT_OK, or the code and a
 * sentence (static text) when there is none, more than one, or a compressed one. */
enum connect_code connect_request_body(const char *p, size_t len, struct connect_frame *f,
                                       const char **why);

/* Connect-Timeout-Ms: absent (NULL) gives -1, else milliseconds. False when it
 * is no number or has more than 10 digits. 0 is "already over", not "none". */
bool connect_timeout_parse(const char *header, int64_t *ms);
/* "application/json; charset=utf-8" matches "application/json". */
bool connect_type_is(const char *header, const char *type);

/* {"code":"...","message":"..."} and the payload of an end-of-stream envelope:
 * {} or {"error":{...}}. */
void connect_error_json(struct buf *b, enum connect_code code, const char *message);
void connect_end_json(struct buf *b, enum connect_code code, const char *message);

#endif
