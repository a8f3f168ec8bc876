/* Who looks at a session: its transcript on the screen, readers of its log. */
#ifndef CCT_JOBS_SESSION_SHOW_H
#define CCT_JOBS_SESSION_SHOW_H

#include "session_priv.h"

/* --- session_show.c -------------------------------------------------------------- */
void session_show_release(struct session *s);
void session_show_acked(struct session *s);                 /* the store moved on */
void session_show_echo(struct session *s, const char *key); /* an echo took its place */
void session_show_message(struct session *s, const struct message *m);
void session_show_messages(struct session *s);
/* A notice that stands nowhere else: it comes back with each load. */
void session_show_said(struct session *s, const struct item *it);
/* May this live event go to the screen, or has the load brought it? */
bool session_show_live(struct session *s, const struct agent_event *ev);

/* --- session_logs.c -------------------------------------------------------------- */
struct reader { /* logs */
    uint64_t req_id;
    bool events, follow, busy, again;
    uint64_t run, off;
    uint64_t back; /* from that many bytes before the end on, when the run is known */
    uint32_t idx, before; /* before: the next of those before the output */
    uint64_t timer;
    struct session *s;
};
void session_logs_release(struct session *s);
void session_logs_fail(struct session *s, const struct err *e); /* no more of any */
void session_logs_go(struct session *s); /* the store has more, or the end was reached */

/* --- session_others.c ------------------------------------------------------------ */
/* A turn began, live, with a message of another instance; of an agent without echoes. */
void session_others_began(struct session *s, const struct agent_event *begin);
/* It begins such a turn, whose message is not there yet; before: what stands in front of it. */
bool session_others_early(const struct session *s, const struct st_event *ev,
                          const struct session_key *before);
/* Where the first of them behind that place began; false: not known. */
bool session_others_place(const struct session *s, uint64_t from, uint64_t *offset);
void session_others_forget(struct session *s); /* another log begins */
void session_others_release(struct session *s);

#endif
