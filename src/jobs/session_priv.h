/* Inside of a durable session: one struct, its parts in one file each.
 *
 *   session.c            lifecycle, target, row, states of the VM
 *   session_script.c     pure: scripts, names and answers of the session folder
 *   session_provision.c  first start and restart of the CLI
 *   session_upload.c     what belongs into the folder
 *   session_place.c      system prompt and skills, where the tool looks for them
 *   session_checkout.c   the repository, before the CLI starts
 *   session_follow.c     backlog, tail, loss
 *   session_look.c       what the folder says, before reading and at the end
 *   session_runs.c       runs of one-run tools, as they begin and end
 *   session_sum.c        are they the log's own bytes? what silence brings
 *   session_quiet.c      a working agent that prints nothing for long
 *   session_life.c       the runner: find it, start it, wake it, see it end
 *   session_open.c       the store's run, its last turn once more, its usage
 *   session_order.c      the order of what stands in a run's log
 *   session_out.c        raw bytes -> decoder -> events, row
 *   session_keep.c       bytes and events -> store
 *   session_items.c      events -> screen, in batches
 *   session_lines.c      many lines of plain text at once, in the place of an event each
 *   session_price.c      what tokens cost where the agent does not say it
 *   session_relay.c      queue -> inbox -> delivered: claims the next one, tells its state
 *   session_publish.c    one message into the inbox
 *   session_taken.c      was it taken in? the sandbox is asked
 *   session_ask.c        questions of the agent that are open
 *   session_answer.c     answers to them -> inbox
 *   session_interrupt.c  the tool's own request, then SIGINT
 *   session_turn.c       whose turn it is: echoes, the answer
 *   session_wait.c       who waits for an answer, and which turn's it is
 *   session_show.c       the transcript for the screen
 *   session_logs.c       raw bytes and events for `logs`
 *   session_others.c     what other instances say, as we hear of it
 *   session_pair.c       designer and checker take turns; session_pair_run.c: how one is run
 *   session_raw.c        an adopted process in the place of all that; session_input.c: its
 *                        input
 *
 * Everything runs on the net thread. Calls to envd are cancelled by envd_free(), those
 * to the store dropped by jobs_store_forget(): no callback comes after session_free(). */
#ifndef CCT_JOBS_SESSION_PRIV_H
#define CCT_JOBS_SESSION_PRIV_H

#include "session_script.h"

#include <cct/agent.h>
#include <cct/config/tools.h>
#include <cct/jobs/session.h>
#include <cct/model/usage_sum.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>

enum follow_state {
    FO_OFF,     /* nobody asked yet */
    FO_TARGET,  /* asking the control plane where it is */
    FO_PROBE,   /* looking into the folder */
    FO_OPEN,    /* the store's run, then its last turn once more */
    FO_BACKLOG, /* ranged reads */
    FO_TAIL,    /* live */
    FO_HOLD,    /* we lag: closed until store and screen have drained */
    FO_ASK,     /* lost: paused, gone or only the network? */
    FO_WAIT,    /* backing off after a loss */
    FO_ENDED,   /* the CLI is gone and everything was read */
    FO_STOPPED  /* VM paused, killed or not there yet */
};
/* From here on the index of notices that are only on the screen, one each. */
#define SESSION_SAY_INDEX 0xffff0000u
/* Index of the messages that we put into the log of a tool without echoes: behind
 * everything the decoder makes of one line. */
#define SESSION_ECHO_INDEX (1u << 25)
/* What a pair's turn came to, behind its end. */
#define SESSION_COST_INDEX (SESSION_ECHO_INDEX + (1u << 20))
/* Place of an event in a run's log. */
struct session_key {
    uint64_t offset;
    uint32_t index;
    bool any;
};
struct session_sum { /* of bytes of the log */
    uint64_t from, len;
    uint32_t crc;
};
struct follow {
    enum follow_state state;
    bool again;                   /* look again as soon as the current step is done */
    int attempt;                  /* losses in a row */
    bool asked;                   /* the control plane, since the way was last up */
    int64_t unknown_until;        /* mono ms: the control plane did not know it */
    int64_t tail_since, ended_at; /* mono ms */
    uint64_t call, stream, timer;
    int tail_pid;
    uint64_t runs_stream, runs_call; /* one-run tools: the file runs, live */
    int runs_pid;
    struct buf runs_text;            /* its last lines: not yet whole, or too early */
    struct buf held;                 /* bytes of the run behind one whose end is being told */
    struct session_run_end runs_end; /* an end whose stderr is being read */
    struct session_probe p;          /* the last one */
    bool said_cut, said_full, said_missing, said_loss, buried;
    bool missing;       /* no agent was started there */
    uint64_t gap;       /* bytes before the log began anew, to be said */
    bool wrong;         /* what came to us is not what the log holds */
    struct session_sum sum, sum_asked, sum_next; /* unchecked; being checked; since then */
    uint64_t sum_call, quiet_timer;
    int64_t heard_ms, sum_ms; /* mono: last bytes, last question */
    bool partial_done;        /* the unfinished line is on the screen */
    int64_t bump;       /* times the log was found cut within one epoch */
    uint64_t runs_done; /* ends of runs up to this one were decoded */
    uint64_t runs_old;  /* runs up to this one ended in a log before this one */
};
struct late_echo { /* of a message taken in while no run was open */
    uint64_t run, at;
    char *text, *key;
};
struct out {
    struct store_run run;
    bool open;          /* run is known, the decoder stands at pos */
    bool feeding_again; /* stored bytes: their events are stored too */
    bool caught_up;     /* at the live end */
    bool store_down, said_down;
    struct err down; /* why nothing can be kept, or read, now */
    uint64_t store_timer;
    bool opening, summed; /* session_open.c */
    bool by_list;         /* the price of the event at hand is of the list */
    int64_t open_epoch;
    uint64_t open_at, began; /* next byte of what is read again; the decoder's first one */
    void (*open_done)(struct session *s);
    struct agent_dec *dec;
    uint64_t pos;       /* next byte wanted */
    uint64_t line_base; /* lines before the decoder's first one */
    uint64_t turn_line;
    struct buf raw; /* read, not yet handed to the store; ends at pos */
    ARR(struct st_event) ev; /* their json: the next `len` bytes of `json`, and a NUL */
    struct buf json;
    uint64_t echo_at; /* of the last one of our own, plus one; how many came there before */
    uint32_t echo_n;
    ARR(struct late_echo) late;
    uint64_t sent_to; /* end of what was handed over */
    uint64_t ended_at; /* where it stood when run.ended was stored */
    unsigned n_sent, n_acked;
    unsigned n_opened; /* how many times a run was: until the next, no byte goes by unseen */
    unsigned fresh_from; /* n_sent when the run was opened: earlier answers are history */
    uint64_t flush_timer, row_timer, items_timer;
    bool row_dirty;
    bool turn_told;      /* its end came, the end of its run has not yet */
    uint64_t exit_run;   /* whose end is being decoded */
    uint32_t exit_n;
    enum sb_agent agent; /* as decoded; the row follows it */
    char *last_line, *agent_session, *model; /* model: as the agent says it */
    struct usage_sum sum;       /* over all runs of the session */
    struct session_key counted; /* usage up to this key is in it */
    ARR(uint64_t) to_sum;       /* runs whose stored events are being added */
    struct session_key sum_at;  /* last one looked at in the first of them */
    struct session_key seen;    /* newest event that had its effect */
    struct ev_items *items;     /* batch for the screen */
    int64_t items_at;           /* mono ms of the last post */
    struct {                    /* lines that come behind it, the newest of them */
        struct buf text;
        uint64_t offset, line;  /* of the first one */
        size_t n;
        bool cut;               /* some in front of it were left out */
    } lines;
};
enum relay_step { RE_IDLE, RE_CLAIM, RE_PUBLISH, RE_SENT };
struct relay {
    enum relay_step step;
    struct message msg;    /* in flight, id 0 = none */
    char name[96], id[80]; /* in the inbox */
    int attempt, checks;
    bool turn_seen; /* a turn began after it was published */
    bool moving;    /* it may be in the inbox */
    bool leaving;   /* we stop when the Move is answered */
    bool again;     /* asked for while the store is asked for a message */
    bool said_unclaimed;
    unsigned opened; /* out.n_opened when it was published */
    bool lost;      /* its turn's begin may be among output that is missing */
    uint64_t timer, call;
    bool interrupting;
    uint64_t int_req, int_timer, int_call; /* of it; int_req 0: nobody waits for its end */
    uint64_t echo_id, echo_at; /* another one's message, echoed when it is us who deliver it */
    uint64_t hurry;  /* message that a turn is to be interrupted for */
    bool hurry_asked;
    char int_id[24];
};
struct asks {
    ARR(struct session_ask *) v; /* oldest first, by their places in the log */
    struct map *ids;             /* id -> the one in v */
    size_t unanswered, bytes;    /* of those in v; their text */
    ARR(struct ask_request) requests;
    uint64_t timer, reach, tell;
    int64_t told_at; /* mono ms */
    bool known; /* what is in v is all there is, and what was answered */
    bool dirty, full; /* full: a question was left out, which was said */
};
struct echo {
    char *text;
    bool fresh; /* it was never stored */
    uint64_t at; /* its place (session_wait_place()) */
};
struct waiter { /* send --wait */
    uint64_t message, req_id;
    char *id;      /* of the message in the sandbox, once known: how each begins */
    bool in_turn;  /* the next turn that ends is its own */
    uint64_t from; /* ... at that place or behind */
    bool missed;   /* ... or it has gone by */
};
enum { OTHERS_TURNS = 16 };
struct others_turn { /* one that began live, with a message of another instance */
    uint64_t at;     /* its place */
    uint64_t offset; /* of the event of its begin */
    uint32_t index;
    int64_t ms; /* mono: when */
    bool seen;  /* its message is on the screen */
};
struct turn_end {
    uint64_t at; /* its place */
    int outcome, exit_code;
    char *text;
};
struct waits {
    ARR(struct waiter) v;
    ARR(struct turn_end) turns; /* the last that ended while somebody waited */
    uint64_t message, call, timer; /* one whose place is asked for */
    int tries;
};
struct show {
    bool on, loading;
    unsigned barrier;          /* n_sent that must be acked before the load */
    struct session_key loaded; /* newest key that the load has brought */
    bool busy, whole;          /* a part elsewhere is being loaded; in the place of all */
    bool begin;                /* then the first part, in the place of all */
    uint64_t at_offset;        /* the key that it was asked for */
    uint32_t at_index;
    struct map *keys; /* messages on the screen, and delivered ones */
    ARR(struct item) said; /* the last notices, which are nowhere but on the screen */
    uint64_t said_run;     /* of this run */
};
struct session {
    struct jobs *j;
    uint64_t row;
    char *name;              /* of the folder */
    const struct tool *tool; /* NULL: not known on this machine */
    const struct agent_adapter *ad;
    struct envd *envd;
    char *home, *dir; /* absolute, once known */
    uint64_t get_call;
    int runner_pid;           /* 0 = not known */
    uint64_t life, life_call; /* stream that ends with the runner; looking for it */
    bool life_wake;           /* a wake line waits for it */
    int life_attempt;         /* ends soon after its begin, in a row */
    int64_t life_since;       /* mono ms */
    uint64_t life_timer;
    struct buf life_err;      /* what it said on stderr */
    bool sigint_sent;
    struct follow fo;
    struct out out;
    struct relay re;
    struct asks asks;
    struct waits waits;
    ARR(struct echo) echoes; /* whose messages are being looked up */
    char echo_key[80];
    bool turn_echoed; /* the turn at hand took a message in */
    struct {
        struct others_turn v[OTHERS_TURNS]; /* the last ones, in any order */
        unsigned n;
        uint64_t timer;
    } others;
    uint64_t due, due_from; /* taken in without an echo, its turn's begin is still to be
                               read, behind that byte; 0 = none */
    struct buf answer; /* text of the current turn */
    bool answer_lines; /* it is what a command put out, not an agent's words */
    char *answer_id;
    struct {
        uint64_t at;
        int outcome, exit_code;
    } ended; /* the last one: where, and how */
    struct show sh;
    ARR(struct reader *) readers;
    struct {
        int64_t heard; /* mono ms */
        uint64_t timer;
    } quiet;
    uint16_t said;          /* notices so far: two at one byte are two */
    struct provision *prov; /* a start or restart under way */
    bool prov_begun;        /* it is at work in the folder */
    bool prov_ready;        /* its CLI runs, the first prompt is on its way */
    struct session_pair *pair; /* several agents take turns; else NULL */
    struct session_raw *raw; /* an adopted process: no folder, no runner */
};

/* --- session.c ------------------------------------------------------------------- */
struct sandbox *session_row(struct session *s);
const char *session_who(const struct session *s); /* the agent's name */
/* A notice about the session: events pane, and the transcript when it is shown. */
void session_say(struct session *s, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void session_agent(struct session *s, enum sb_agent a);
void session_failed(struct session *s, const char *text);
void session_lives(struct session *s); /* its row is no longer one of an agent that ended */
/* Target from an answer of the control plane; 0 or a code. */
int session_target(struct session *s, const struct e2b_sandbox *vm, struct err *e);
void session_drop_target(struct session *s); /* its calls end without an answer */
void session_set_home(struct session *s, const char *home);
char *session_path(const struct session *s, const char *name);
/* Where this cc-tui writes what then gets its name in the inbox. */
char *session_tmp_path(const struct session *s, const char *id);
/* What it is doing, for the row of a sandbox that is being made; NULL: nothing more. */
void session_step(struct session *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* sh -c SCRIPT sh args... (ends with NULL), at most ms. */
uint64_t session_sh(struct session *s, const char *script, const char *const *args, int ms,
                    void (*fn)(void *ctx, const struct envd_run_result *r), void *ctx);
void session_cancel_timer(struct session *s, uint64_t *timer);
void session_timer(struct session *s, uint64_t *timer, int64_t ms, void (*fn)(void *ctx));
bool session_readonly(const struct session *s);

#endif
