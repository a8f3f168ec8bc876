/* The session of an adopted process: no folder, no runner, a live stream in their place. */
#ifndef CCT_JOBS_SESSION_RAW_H
#define CCT_JOBS_SESSION_RAW_H

#include "foreign_priv.h"
#include "session_priv.h"

struct session_raw {
    int pid;
    uint64_t ident;
    struct procwatch *w;
    struct lanes lanes;
    uint64_t timer, part_timer; /* lease or look; an unfinished line */
    bool holds;                 /* the lease */
    bool live, over, saw_pty, looked;
    int64_t lost_at;            /* wall ms; 0 = never connected */
    uint64_t dropped;
    int64_t dropped_from;
    /* input under way */
    struct reach reach;
    struct envd *envd;          /* for input while nothing is followed */
    uint64_t call;
    bool as_pty, tried_other;
    char *text;
    uint64_t from; /* what comes of it ends at that place or behind (session_wait_place()) */
};

/* --- session_raw.c, session_input.c ---------------------------------------------- */
void session_raw_init(struct session *s, const struct sandbox *row); /* when it is one */
void session_raw_free(struct session *s);
void session_raw_go(struct session *s); /* follow, or read what another instance keeps */
void session_raw_close(struct session *s);
bool session_raw_takes_input(const struct session *s); /* now */
void session_raw_echo(struct session *s, const char *text, const char *key);
void session_raw_send(struct session *s, const char *text); /* then session_relay_input */
void session_input_release(struct session_raw *r); /* what is under way is dropped */

#endif
