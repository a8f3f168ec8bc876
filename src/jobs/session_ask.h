/* Questions of a session's agent, and the answers to them. */
#ifndef CCT_JOBS_SESSION_ASK_H
#define CCT_JOBS_SESSION_ASK_H

#include "session_priv.h"

#include <cct/model/question.h>

struct session_ask {  /* an open question */
    struct session *s;
    struct st_ask at;
    char *id, *tool, *title, *input, *choices; /* as the agent has them */
    struct question q; /* in words; question NULL until it is first told */
    int64_t since;
    bool answered, ours, adding; /* ours: given here */
    int choice;
    char *text;
    int64_t sent_at;  /* in the inbox, 0 = not yet */
    int attempt, wakes;
    uint64_t call, timer;
};
struct ask_request {  /* somebody answers */
    uint64_t req_id;
    char *id, *text;  /* id NULL: the oldest */
    int choice;
    bool committed;
    struct st_ask at; /* once it is */
};
#define SESSION_ASK_CLOSED \
    "the question is not open any more: the agent did not wait for the answer"

/* --- session_ask.c --------------------------------------------------------------- */
void session_ask_release(struct session *s);
void session_ask_forget(struct session *s); /* the decoder begins anew */
void session_ask_event(struct session *s, const struct agent_event *ev);
void session_ask_settle(struct session *s); /* ... has had all its effects */
/* A working agent asks while a question waits for the user, and the other way round. */
enum sb_agent session_ask_state(const struct session *s, enum sb_agent a);
void session_ask_ready(struct session *s); /* at the live end */
void session_ask_over(struct session *s);  /* the CLI is gone, all was read */
void session_ask_stop(struct session *s, const char *why); /* NULL: for a moment */
void session_ask_changed(struct session *s);
struct session_ask *session_ask_at(struct session *s, uint64_t offset, uint32_t index);
/* The label of the choice, or what was typed; new string, NULL when nothing was answered. */
char *session_ask_words(const struct session_ask *a);

/* --- session_answer.c ------------------------------------------------------------ */
int session_answer_encode(const struct session_ask *a, int choice, const char *text,
                          struct buf *out, struct err *e);
void session_answer_commit(struct session *s); /* the requests that waited */
bool session_answer_use(struct session *s, const struct st_answer *row); /* true: it is news */
void session_answer_missed(struct session *s, const struct st_reply *r); /* all answers */
void session_answer_publish(struct session_ask *a); /* when it is due and possible */
void session_answer_settled(struct session_ask *a, const struct err *e); /* its requests end */
void session_answer_end(struct session *s, const struct err *e); /* all requests end */

#endif
