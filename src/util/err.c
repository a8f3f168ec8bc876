/* Errors as values: code, system number and one sentence. */
#include <cct/util/err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text cut by the fixed size must not end inside a UTF-8 sequence. */
static void trim_partial(char *text)
{
    size_t n = strlen(text), i = n;

    while (i > 0 && n - i < 3 && ((unsigned char)text[i - 1] & 0xC0) == 0x80)
        i--;
    if (i == 0 || (unsigned char)text[i - 1] < 0xC0)
        return;
    unsigned char lead = (unsigned char)text[i - 1];
    size_t want = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (n - i < want)
        text[i - 1] = '\0';
}

static void put_text(struct err *e, const char *text, size_t len)
{
    if (len >= sizeof(e->text))
        len = sizeof(e->text) - 1;
    memcpy(e->text, text, len);
    e->text[len] = '\0';
    trim_partial(e->text);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (!e)
        return code;
    char text[sizeof(e->text)]; /* arguments may point into e->text */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    e->code = code;
    e->sys = 0;
    put_text(e, text, strlen(text));
    return code;
}

static int code_of_errno(int sys)
{
    switch (sys) {
    case ENOENT:
    case ENOTDIR:
        return ERR_NOTFOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_PERM;
    case ENOSPC:
    case EDQUOT:
        return ERR_FULL;
    case EMFILE:
    case ENFILE:
    case EFBIG:
        return ERR_LIMIT;
    case EAGAIN:
    case EBUSY:
        return ERR_BUSY;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EPIPE:
        return ERR_NETWORK;
    case ENOSYS:
    case EOPNOTSUPP:
        return ERR_UNSUPPORTED;
    case ECANCELED:
        return ERR_CANCELLED;
    default:
        return ERR_IO;
    }
}

int err_sys(struct err *e, int code, const char *fmt, ...)
{
    int sys = errno;

    if (code == 0)
        code = code_of_errno(sys);
    if (!e)
        return code;
    char text[sizeof(e->text)], reason[96];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    size_t used = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    /* a long subject must not push the cause out of the text */
    const char *why = strerror_r(sys, reason, sizeof(reason));
    size_t room = sizeof(text) - 1 - 2 - strlen(why);
    if (used > room) {
        used = room;
        text[used] = '\0';
        trim_partial(text);
        used = strlen(text);
    }
    snprintf(text + used, sizeof(text) - used, ": %s", why);
    e->code = code;
    e->sys = sys;
    put_text(e, text, strlen(text));
    errno = sys;
    return code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (!e)
        return ERR_BUG;
    char text[sizeof(e->text) * 2];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(e->text), fmt, ap);
    va_end(ap);
    size_t used = n < 0 ? 0 : strlen(text);
    snprintf(text + used, sizeof(text) - used, ": %s", e->text);
    put_text(e, text, strlen(text));
    if (e->code == 0)
        e->code = ERR_BUG;
    return e->code;
}

void err_clear(struct err *e)
{
    e->code = 0;
    e->sys = 0;
    e->text[0] = '\0';
}

const char *err_name(int code)
{
    static const char *const names[] = {
        "ok",        "invalid",     "io",      "notfound", "auth",     "perm",
        "limit",     "network",     "timeout", "proto",    "conflict", "busy",
        "cancelled", "unsupported", "full",    "corrupt",  "server",   "bug",
    };
    if (code > 0 || -code >= (int)(sizeof(names) / sizeof(names[0])))
        return "unknown";
    return names[-code];
}
