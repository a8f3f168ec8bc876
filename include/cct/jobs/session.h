/* A durable agent session of one sandbox: provision, follow, relay,
 * interrupt, restart. Net thread only. Reads and writes the session folder in the
 * sandbox as cct/jobs/session_layout.h says; never lets the agent wait for us. */
#ifndef CCT_JOBS_SESSION_H
#define CCT_JOBS_SESSION_H

#include <cct/jobs/core.h>
#include <cct/model/agent_event.h>

/* Session of a row of ours; created when missing, NULL for a row that is unknown or has
 * no session (foreign). It is in jobs.sessions until session_free(). The target (base
 * URL, token) comes from create's answer, or by e2b_get (never by connect). */
struct session *session_of(struct jobs *j, uint64_t row);
/* Closes streams; the agent lives on. Not from inside a callback of the session. */
void session_free(struct session *s);
/* We stop: end what follows the session in the sandbox. Its answers count down
 * jobs.goodbyes. */
void session_leave(struct session *s);

/* Whoever starts an agent, or starts it again, holds the lease of this and the row's id. */
#define SESSION_LEASE "restart-"

/* Provision, after the VM is up: upload runner, start it, send
 * the first prompt (committed first, like any message). fn once: err NULL when the CLI
 * runs and the prompt lies in its inbox, else which step failed on what. fn may be NULL.
 * Env values may be secret: copied to locked memory until used, never written to the
 * sandbox's files. The create answer's token is taken from `vm`. */
struct session_start {
    const char *tool, *command; /* command: shell tool's own CLI, or NULL */
    const char *prompt;         /* or NULL */
    const struct kv *env;
    const struct e2b_sandbox *vm; /* NULL: it is being looked at already */
    const char *model;         /* or NULL */
    const char *system_prompt; /* text, or NULL */
    const char *ask;           /* "yes", "no", or NULL: the tool's policy */
    const char *skills;        /* a tar archive, or NULL */
    size_t skills_len;
    const char *repo, *branch; /* cct/model/repo.h; or NULL */
    const struct secret *repo_key; /* for github.com alone: that one git process has it in its
                                      environment, nothing else in the sandbox; or NULL */
    const char *repo_key_name;     /* "GitHub key ****abcd (user key)", for a refusal */
};
typedef void (*session_fn)(void *ctx, const struct err *e);
void session_provision(struct session *s, const struct session_start *q, session_fn fn,
                       void *ctx);
/* Keep the stream: backlog by ranged reads, then tail; on loss ask, back off, go on at
 * the exact byte. Idempotent. Posts EV_ITEMS, agent state and last line to the row. */
void session_follow(struct session *s);
bool session_current(const struct session *s); /* at the live end */
/* Someone looks: send the transcript (stored items, EV_ITEMS reset) and go on live. */
void session_show(struct session *s, bool on);
/* What stands before that key goes in front of it (EV_ITEMS prepend). */
void session_load_older(struct session *s, uint64_t offset, uint32_t index);
/* What stands behind it goes behind it (EV_ITEMS newer); whole: what begins there takes the
 * place of all (reset). Where it reaches the newest, those are shown as by session_show(). */
void session_load_newer(struct session *s, uint64_t offset, uint32_t index, bool whole);
/* A stored event, as the store answers it; 0, or ERR_INVALID. Released by the caller. */
int session_stored_event(struct agent_event *ev, const struct st_event *e);
/* A page of events as the store has them (by offset and index): messages and ends of runs that
 * stand before the first byte of output come before it. Any thread. */
void session_put_in_order(struct st_event *v, size_t n);
/* The VM changed state (reconcile): paused or gone stops streams within 2 s; running
 * again resumes. */
void session_vm_state(struct session *s, enum sb_state st);
/* jobs.e2b was replaced (other key or address): forget where the sandbox is and ask
 * anew. For each session, while the old client still lives. */
void session_relocate(struct session *s);
/* The machine slept: who waited to try again does so now. */
void session_woke(struct session *s);

/* Chat: the message is committed already (store_message_add); try to relay what is
 * queued. Called by core after an add, and by itself when the agent gets idle. */
void session_relay(struct session *s);
/* Report the end of the turn that answers message `id` to req_id (send --wait). */
void session_wait_turn(struct session *s, uint64_t message, uint64_t req_id);
/* Answer a question (struct question's id; NULL: the oldest that waits) by the place of a
 * choice from 0 on, or -1 and text. EV_DONE when the answer lies in the sandbox. */
void session_answer(struct session *s, uint64_t req_id, const char *id, int choice,
                    const char *text);
void session_interrupt(struct session *s, uint64_t req_id);
/* Message `id` was put in front of the queue: a turn that keeps it waiting is interrupted,
 * once, as soon as the agent is known to be in one. */
void session_hurry(struct session *s, uint64_t id);
/* The user's word about the pair in it (cct/model/pair.h): PAIR_STOP .. PAIR_REJECT. */
struct pair;
struct pair_event;
void session_pair_wish(struct session *s, const struct pair_event *ev, uint64_t req_id);
/* A new task, and roles, for the pair in it, which has come to its end. */
void session_pair_again(struct session *s, struct pair *take, uint64_t req_id);
/* A new CLI in the same folder, with its own resume where it has one. `env` as in
 * session_start: the dead one took its keys along. */
void session_restart(struct session *s, const struct kv *env, uint64_t req_id);

/* Raw bytes / event JSON (one object and LF each) for `logs`, as they become durable:
 * EV_CHUNK messages with req_id, then EV_DONE: at the present end, or with follow when
 * the session ended. */
struct ev_chunk {
    struct msg m; /* type EV_CHUNK */
    int stream; /* of a watched process: enum envd_stream, or CHUNK_NOTE; else 0 */
    char *data;
    size_t len;
};
enum { CHUNK_NOTE = -1 /* a remark of ours */ };
enum { EV_CHUNK = 64 };
/* from: below 0 it counts from the end of what is stored. */
void session_raw(struct session *s, uint64_t req_id, int64_t from, bool follow);
void session_events(struct session *s, uint64_t req_id, bool follow);
void session_logs_end(struct session *s, uint64_t req_id); /* no more of that one */

#endif
