/* Connect's JSON form: see the header. */
#include <cct/local/connect_json.h>
#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    int http;
} codes[] = {
    [CONNECT_OK] = {"ok", 200},
    [CONNECT_CANCELED] = {"canceled", 499},
    [CONNECT_UNKNOWN] = {"unknown", 500},
    [CONNECT_INVALID_ARGUMENT] = {"invalid_argument", 400},
    [CONNECT_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
    [CONNECT_NOT_FOUND] = {"not_found", 404},
    [CONNECT_ALREADY_EXISTS] = {"already_exists", 409},
    [CONNECT_PERMISSION_DENIED] = {"permission_denied", 403},
    [CONNECT_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
    [CONNECT_FAILED_PRECONDITION] = {"failed_precondition", 400},
    [CONNECT_ABORTED] = {"aborted", 409},
    [CONNECT_OUT_OF_RANGE] = {"out_of_range", 400},
    [CONNECT_UNIMPLEMENTED] = {"unimplemented", 501},
    [CONNECT_INTERNAL] = {"internal", 500},
    [CONNECT_UNAVAILABLE] = {"unavailable", 503},
    [CONNECT_DATA_LOSS] = {"data_loss", 500},
    [CONNECT_UNAUTHENTICATED] = {"unauthenticated", 401},
};

int connect_code_http(enum connect_code code)
{
    return codes[code].http;
}

enum connect_code connect_code_from_errno(int err)
{
    switch (err) {
    case ENOENT:
        return CONNECT_NOT_FOUND;
    case EEXIST:
        return CONNECT_ALREADY_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return CONNECT_PERMISSION_DENIED;
    case ENOTDIR:
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
        return CONNECT_INVALID_ARGUMENT;
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
        return CONNECT_RESOURCE_EXHAUSTED;
    default:
        return CONNECT_INTERNAL;
    }
}

void connect_head(unsigned char dst[CONNECT_HEAD_BYTES], unsigned flags, size_t len)
{
    dst[0] = (unsigned char)flags;
    dst[1] = (unsigned char)(len >> 24);
    dst[2] = (unsigned char)(len >> 16);
    dst[3] = (unsigned char)(len >> 8);
    dst[4] = (unsigned char)len;
}

long connect_frame_parse(const char *p, size_t len, size_t max, struct connect_frame *f)
{
    if (len < CONNECT_HEAD_BYTES)
        return 0;
    const unsigned char *u = (const unsigned char *)p;
    size_t n = (size_t)u[1] << 24 | (size_t)u[2] << 16 | (size_t)u[3] << 8 | (size_t)u[4];
    if (n > max)
        return -1;
    if (len - CONNECT_HEAD_BYTES < n)
        return 0;
    f->flags = u[0];
    f->body = p + CONNECT_HEAD_BYTES;
    f->len = n;
    return (long)(n + CONNECT_HEAD_BYTES);
}

enum connect_code connect_request_body(const char *p, size_t len, struct connect_frame *f,
                                       const char **why)
{
    long used = connect_frame_parse(p, len, len, f);
    if (used <= 0) {
        *why = len == 0 ? "the request holds no message" : "the request's message is cut short";
        return CONNECT_INVALID_ARGUMENT;
    }
    if (f->flags & CONNECT_FLAG_COMPRESSED) {
        *why = "the message is compressed; send it plain";
        return CONNECT_UNIMPLEMENTED;
    }
    if (f->flags != 0 || (size_t)used != len) {
        *why = "the request must hold exactly one message";
        return CONNECT_INVALID_ARGUMENT;
    }
    return CONNECT_OK;
}

bool connect_timeout_parse(const char *header, int64_t *ms)
{
    *ms = -1;
    if (header == NULL)
        return true;
    size_t n = strlen(header);
    if (n == 0 || n > 10 || strspn(header, "0123456789") != n)
        return false;
    *ms = 0;
    for (size_t i = 0; i < n; i++)
        *ms = *ms * 10 + (header[i] - '0');
    return true;
}

bool connect_type_is(const char *header, const char *type)
{
    size_t n = strlen(type);
    if (header == NULL || strncasecmp(header, type, n) != 0)
        return false;
    return header[n] == '\0' || header[n] == ';' || header[n] == ' ';
}

void connect_error_json(struct buf *b, enum connect_code code, const char *message)
{
    struct jw w;
    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_str(&w, "code", codes[code].name);
    jw_str(&w, "message", message);
    jw_end(&w);
}

void connect_end_json(struct buf *b, enum connect_code code, const char *message)
{
    if (code == CONNECT_OK) {
        buf_adds(b, "{}");
        return;
    }
    buf_adds(b, "{\"error\":");
    connect_error_json(b, code, message);
    buf_addc(b, '}');
}
