/* Errors: a code for the program, a sentence for the person.
 *
 * Functions return 0 or a negative `enum err_code` and fill `struct err` once,
 * where the cause is first known; callers going up may put context in front.
 * Text: what failed first, subject in quotes, then the cause; lower case, no
 * full stop. Any thread; nothing here allocates. */
#ifndef CCT_UTIL_ERR_H
#define CCT_UTIL_ERR_H

enum err_code {
    ERR_OK = 0,
    ERR_INVALID = -1,     /* the user's input or a config value is wrong */
    ERR_IO = -2,          /* a file, pipe or tty failed; `sys` has errno */
    ERR_NOTFOUND = -3,    /* the named thing does not exist */
    ERR_AUTH = -4,        /* key or token missing or refused */
    ERR_PERM = -5,        /* known, but not allowed */
    ERR_LIMIT = -6,       /* a cap of ours or of the plan was reached */
    ERR_NETWORK = -7,     /* could not reach, or the connection broke */
    ERR_TIMEOUT = -8,     /* no answer in time */
    ERR_PROTO = -9,       /* the peer said something that makes no sense */
    ERR_CONFLICT = -10,   /* state does not allow it now (409) */
    ERR_BUSY = -11,       /* try again later (429 with a time, 503, lock) */
    ERR_CANCELLED = -12,  /* called off by the user or at shutdown */
    ERR_UNSUPPORTED = -13,/* not possible here */
    ERR_FULL = -14,       /* disk or quota full */
    ERR_CORRUPT = -15,    /* stored data is damaged */
    ERR_SERVER = -16,     /* 5xx of a service */
    ERR_BUG = -17,        /* our own fault */
    ERR_UNTRUSTED = -18   /* the peer's certificate is refused: trying again is no use */
};

struct err {
    int code;       /* enum err_code; 0 when nothing was set */
    int sys;        /* errno, HTTP status, or 0 */
    char text[512]; /* one sentence, UTF-8, never holds a key */
};

/* Set `*e` (may be NULL) and return `code`, so that callers can `return`. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same with errno's text appended after ": " and kept in `sys`. The code is
 * chosen from errno when `code` is 0 (ENOENT not found, ENOSPC full, ...). */
int err_sys(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Put "context: " in front of the text; returns e's code (ERR_BUG if unset). */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void err_clear(struct err *e);
/* Short stable name of a code for JSON and logs ("auth", "network", ...). */
const char *err_name(int code);

#endif
