/* Our terminal, or our pipes, joined with a terminal or a command in a sandbox until that ends
 * or is left. On the main thread, with a loop of its own: events of everything else are applied
 * meanwhile (app_drain), as in any other loop. SIGWINCH, SIGTERM, SIGHUP, SIGINT, SIGQUIT,
 * SIGTSTP and SIGCONT are blocked by the caller before any thread starts. */
#ifndef CCT_APP_PASSAGE_H
#define CCT_APP_PASSAGE_H

#include <cct/app.h>

enum { PASSAGE_NO_KEY = -1, PASSAGE_KEY_BAD = -2 };

struct passage_opts {
    uint64_t sandbox;
    const char *const *argv; /* as in struct app_shell */
    const struct kv *env;    /* TERM and LANG come to it when a terminal is joined */
    int pid;
    uint64_t ident;
    int leave_key;   /* a control byte, or PASSAGE_NO_KEY */
    bool quiet;      /* nothing is said of how to leave */
    const char *name; /* of the sandbox, for what is said */
    const char *typed; /* `typed_len` bytes that were typed for it before: the first of its input */
    size_t typed_len;
};
struct passage_end {
    struct err err;  /* code 0: it ended with `status`, or was left */
    int status;      /* exit code; 128 + n: by signal n; -1 not known */
    bool live;       /* it was connected */
    bool left;       /* it goes on in the sandbox */
    int signal;      /* that ended us, not it; 0 = none */
    bool reader_gone; /* nobody reads our output any more */
    bool hung_up;    /* our terminal is gone */
    bool hole;       /* bytes of input were lost */
    int pid;         /* 0: it was never there */
    uint64_t ident;
};
/* On a terminal when stdin and stdout are one, else by pipes. */
void passage_run(struct app *a, const struct passage_opts *o, struct passage_end *end);
bool passage_has_terminal(void);

/* "^]" or "none" to leave_key; PASSAGE_KEY_BAD when it is neither. And back, "^]". */
int passage_key_parse(const char *name);
void passage_key_format(int key, char dst[8]);

/* --- looking for that key, by itself so that it can be tested ------------------------ */
struct keyhunt { /* zeroed at the start */
    char tail[8];    /* end of what came before */
    bool pasting;    /* inside a bracketed paste, where nothing is a key */
};
/* Where the key begins in what the terminal sent, in the form of a byte or of the two keyboard
 * protocols; len when it is not there. *span: how long it is. */
size_t keyhunt_feed(struct keyhunt *h, int key, const char *data, size_t len, size_t *span);

#endif
