/* What the facade is told of a terminal or a command in a sandbox, beside its output (EV_CHUNK)
 * and its end (EV_DONE with exit_code: 128 + n for a signal). */
#ifndef CCT_JOBS_SHELL_H
#define CCT_JOBS_SHELL_H

#include <cct/util/mq.h>

enum shell_news {
    SHELL_LIVE,  /* connected: pid, and ident once it is known */
    SHELL_LOST,  /* not connected, it is tried again */
    SHELL_TAKEN, /* n bytes of input are out of the way: there, or dropped and told so */
    SHELL_HOLE   /* input was dropped */
};
struct ev_shell {
    struct msg m; /* type EV_SHELL, req_id of the shell */
    enum shell_news news;
    int pid;
    uint64_t ident;
    size_t n;
};
enum { EV_SHELL = 65 };

/* Bytes that may be under way in one direction before the other side has taken them: enough
 * for a fast link, and little enough for ^C to be felt on a slow one. */
enum { SHELL_WINDOW = 64 << 10 };

#endif
