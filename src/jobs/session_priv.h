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
 *   session_out.c        raw bytes -> decoder -> store, row, items
 *   session_lines.c      many lines of plain text at once, in the place of an event each
 *   session_price.c      what tokens cost where the agent does not say it
 *   session_relay.c      queue -> inbox -> delivered
 *   session_ask.c        questions of the agent that are open
 *   session_answer.c     answers to them -> inbox
 *   session_interrupt.c  the tool's own request, then SIGINT
 *   session_turn.c       whose turn it is: echoes, waiters for an answer
 *   session_show.c       the transcript for the screen
 *   session_logs.c       raw bytes and events for `logs`
 *   session_pair.c       designer and checker take turns; session_pair_run.c: how one is run
 *   session_raw.c        an adopted process in the place of all that; session_input.c: its
 *                        input
 *
 * Everything runs on the net thread. Calls to envd are cancelled by envd_free(), those
 * to the store dropped by jobs_store_forget(): no callback comes after session_free(). */
#ifndef CCT_JOBS_SESSION_PRIV_H
#define CCT_JOBS_SESSION_PRIV_H

#include <cct/agent.h>
#include <cct/config/tools.h>
#include <cct/jobs/session.h>
#include <cct/jobs/session_layout.h>
#include <cct/model/pair.h>
#include <cct/model/question.h>
#include <cct/model/usage_sum.h>
#include <cct/secrets/secret.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>

/* --- session_script.c: the folder's text forms ----------------------------------- */

struct session_run_end {
    uint64_t run;    /* its number, from 1 */
    uint64_t offset; /* size of out.log when the run ended */
    int code;        /* -1: lost */
    bool interrupted; /* by us, with a signal */
};
struct session_run_line { /* of the file runs */
    bool start, interrupt; /* else an end */
    uint64_t run, offset, err_offset;
    int code;         /* of an end; -1: lost */
    char message[80]; /* of a start: its id, or "-" */
};
bool session_run_line(struct session_run_line *r, const char *line);
/* What one look into the folder said. */
struct session_probe {
    bool found;   /* the folder is there */
    bool started; /* a keeper has worked here */
    bool alive;   /* its keeper lives */
    bool has_cli; /* cli.sh is there */
    bool exited;  /* `exit` is published: both logs are complete */
    bool lost;
    int exit_code;
    int64_t epoch;
    uint64_t size;      /* of out.log */
    uint64_t starts;    /* runs begun so far */
    uint64_t runs_size; /* of the file runs */
    bool diskfull;
    uint64_t cut_at; /* offset of the cap's mark in out.log, 0 = not cut */
    char *home, *error, *err_tail, *model;
    uint64_t err_run, interrupted; /* runs: whose err_tail is; last one that we interrupted */
    struct session_run_line last;  /* start of the last run; run 0: none */
    char *sum; /* of the range asked for, as cksum prints it */
    ARR(struct session_run_end) ends;
};
extern const char session_probe_script[];   /* $1 = session name, $2 $3 = range to sum up */
extern const char session_sum_script[];     /* $1 = file, $2 $3 = first byte (from 0), count */
extern const char session_prepare_script[]; /* $1 = session name, $2.. = programs to find */
extern const char session_install_script[]; /* $1 = session folder, $2.. = files */
extern const char session_place_script[];   /* $1 = folder, $2 = skills' folder or "", $3 =
                                               file for the system prompt or "" */
extern const char session_checkout_script[]; /* $1 = url, $2 = branch or "", $3 = folder, $4 =
                                                session name */
extern const char session_await_script[];   /* $1 = folder, $2 = runs before, $3 = mode */
extern const char session_taken_script[];   /* $1 = folder, $2 = begin of a message id */
extern const char session_sigint_script[];  /* $1 = folder, $2 = mode */
void session_probe_parse(struct session_probe *p, const char *text, size_t len);
void session_probe_release(struct session_probe *p);
bool session_probe_running(const struct session_probe *p); /* the last run has not ended */
/* 'it'\''s' */
void session_quote(struct buf *out, const char *word);
/* cli.sh: cd home, exec the words; command: that one by sh -c instead; driver: the
 * shell driver in the folder; resume, resume_id: the tool's own resume, when the id is
 * not NULL. */
struct session_cli {
    char *const *argv, *const *resume;
    const char *command, *resume_id;
    bool driver;
    const char *model_flag, *prompt_flag; /* of the tool, for the files of those names */
    const char *model;                    /* when none was chosen; or NULL */
    char *const *ask_argv; /* in argv's place while the file `ask` says yes; or NULL */
    bool asks;             /* when there is no such file */
};
void session_cli_script(struct buf *out, const struct session_cli *c);
/* The program is our driver of OpenCode's server, which lies in the folder. */
bool session_cli_drives(char *const *argv);
/* 13 digits, '-', id; characters that the folder's names do not allow become '_'. */
void session_inbox_name(char *dst, size_t size, int64_t ms, const char *id);
/* The same text but for white space at both ends. */
bool session_same_text(const char *a, const char *b);
/* The runner of a folder in the answer of envd's process list; 0 = none. */
int session_runner_pid(const char *list_json, size_t len, const char *dir);
enum session_taken { TAKEN_NO, TAKEN_YES, TAKEN_UNSURE };
/* First word of the taken script's answer; *ended: the CLI's end is published. */
enum session_taken session_taken_parse(const char *text, bool *ended);

/* --- state ----------------------------------------------------------------------- */

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
/* Variable that holds GitHub's key, in the environment of the one git process. */
#define SESSION_GIT_KEY "CC_TUI_GIT_KEY"
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
    uint64_t open_at;
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
    uint64_t hurry;  /* message that a turn is to be interrupted for */
    bool hurry_asked;
    char int_id[24];
};
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
};
struct waiter { /* send --wait */
    uint64_t message, req_id;
    char *text; /* of the message, once known */
    bool in_turn;
    bool missed; /* ... whose end may have gone by */
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
struct reader { /* logs */
    uint64_t req_id;
    bool events, follow, busy, again;
    uint64_t run, off;
    uint64_t back; /* from that many bytes before the end on, when the run is known */
    uint32_t idx, before; /* before: the next of those before the output */
    uint64_t timer;
    struct session *s;
};
enum { PROVISION_FILES = 12 };
struct secret_kv {
    char *k;
    struct secret *v;
};
struct file { /* an upload */
    struct session *s;
    const char *name;
    uint64_t call;
};
struct provision {
    bool restart, prompt_waits;
    uint64_t req_id, timer, starts;
    session_fn fn;
    void *ctx;
    char *command, *model, *system_prompt, *skills, *ask;
    size_t skills_len;
    char *repo, *branch, *repo_key_name;
    struct secret *repo_key;
    struct buf git; /* last line of what git tells of its progress */
    uint64_t git_timer, git_call;
    ARR(struct secret_kv) env;
    struct file files[PROVISION_FILES];
    size_t n_files, left;
    struct err err; /* first failed upload */
    uint64_t call;
};

/* A wish of the user's about a pair that is not carried out yet. */
struct pair_wish {
    struct pair_event ev;
    char *text;         /* of ev */
    struct pair *fresh; /* PAIR_BEGIN: roles and task of a new one; else NULL */
    uint64_t req_id;
};
struct session_pair {
    struct pair *p;       /* as stored; NULL: there is none */
    bool loaded, busy;    /* it was read; the store is asked or told */
    struct pair_act act;  /* of the step under way */
    bool wished;          /* which the user asked for */
    ARR(struct pair_wish) wishes;
    /* the turn at hand, as decoded: its message, its CLI's session and model, its words so
     * far */
    char *message, *session, *answer_id, *model;
    struct buf answer;
    struct { /* the last one that ended; message NULL: none since we came */
        char *message, *text;
        enum agent_outcome outcome;
        char *session; /* to go on with; NULL: none, or taken over */
        int role;
        bool stored; /* it was read once more: perhaps of an earlier pair */
    } end;
    struct pair_side sums[PAIR_ROLES]; /* tokens and cost; and sessions to go on with */
    struct pair_side now;              /* tokens and cost of the turn at hand */
    uint64_t timer;
    int int_turn;     /* that is to end; 0: none */
    uint64_t int_req; /* the wish that waits for it */
    int int_tries, int_next;
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
    ARR(struct waiter) waiters;
    ARR(struct echo) echoes; /* whose messages are being looked up */
    char echo_key[80];
    bool turn_echoed; /* the turn at hand took a message in */
    uint64_t due, due_from; /* taken in without an echo, its turn's begin is still to be
                               read, behind that byte; 0 = none */
    struct buf answer; /* text of the current turn */
    char *answer_id;
    struct {
        int outcome, exit_code;
    } ended; /* how the last one did */
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

/* --- session_provision.c --------------------------------------------------------- */
void session_provision_release(struct session *s);
/* The folder was looked at and no CLI lives: a restart that waits may begin. */
void session_provision_go(struct session *s);
void session_provision_start(struct session *s); /* the folder is complete */
void session_provision_fail(struct session *s, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void session_provision_alive(struct session *s); /* it still runs */
void session_provision_stop(struct session *s, const char *why);
/* The first prompt is in the inbox, or cannot be for now. */
void session_provision_sent(struct session *s);
/* The runner ended in failure: it could not start the CLI. */
void session_provision_runner_ended(struct session *s, const char *why);

/* --- session_upload.c ------------------------------------------------------------ */
void session_upload(struct session *s);
struct session_cli session_cli_of(const struct session *s, const char *resume_id);
bool session_upload_cli(const struct session *s); /* its cli.sh is written anew */

/* --- session_place.c ------------------------------------------------------------- */
/* The folder is complete: what belongs elsewhere, then the repository, then the start. */
void session_place(struct session *s);

/* --- session_checkout.c ---------------------------------------------------------- */
void session_checkout(struct session *s); /* then session_provision_start() */
/* What git said, in one line for a person: cleaned, without addresses' passwords and without
 * the key. New string. */
char *session_git_says(const char *text, size_t len, const char *key);

/* --- session_follow.c ------------------------------------------------------------ */
void session_follow_stop(struct session *s, enum follow_state st);
void session_follow_ended(struct session *s); /* FO_ENDED, and a look now and then */
/* Look again now: the runner's stream ended, a restart happened. */
void session_follow_again(struct session *s);
/* Bytes at the decoder's place, and those that waited for the end of a run. */
void session_follow_feed(struct session *s, const char *data, size_t len);
void session_follow_held(struct session *s);
void session_follow_drained(struct session *s); /* the store has taken some */
/* The store does not go with us: begin at what it has. */
void session_follow_reset(struct session *s);

void session_follow_read(struct session *s); /* the backlog, then the live end */
void session_follow_lost(struct session *s, const struct err *e);
void session_follow_wait(struct session *s, int64_t ms); /* then look again */

/* --- session_look.c -------------------------------------------------------------- */
void session_look(struct session *s);
/* Ends of runs that lie at the decoder's place are decoded; where the next one lies. */
void session_look_ends(struct session *s);
uint64_t session_look_next_end(const struct session *s);
void session_look_finish(struct session *s); /* the CLI is gone and all was read */

/* --- session_quiet.c ------------------------------------------------------------- */
void session_quiet_heard(struct session *s); /* output came, or a turn begins */
void session_quiet_close(struct session *s);

/* --- session_runs.c -------------------------------------------------------------- */
/* For tools that run once per message: where runs begin and end, as it happens. */
void session_runs_follow(struct session *s);
void session_runs_close(struct session *s);
/* Of the file of runs, as it grows; and what of it had to wait. */
void session_runs_feed(struct session *s, const char *data, size_t len);
void session_runs_go(struct session *s);
/* The run that ended with a status (fo.runs_end): its stderr, NULL: it cannot be had. */
void session_runs_ended(struct session *s, const char *err, size_t len);

/* --- session_sum.c --------------------------------------------------------------- */
void session_sum_add(struct session *s, const char *data, size_t len); /* before they are fed */
void session_sum_range(struct session *s, char from[32], char len[32]);
/* The sandbox's sum of that range; false: it is not what we have. */
bool session_sum_agrees(struct session *s, const char *text);
void session_sum_close(struct session *s);

/* --- session_life.c -------------------------------------------------------------- */
/* Hold the stream of the folder's runner: it ends with the keeper, and its pid takes the
 * wake lines. One is started when there is none; it never starts a CLI. */
void session_life(struct session *s);
void session_life_close(struct session *s);
/* Start the runner that starts the CLI; env ends with k NULL. */
void session_life_start(struct session *s, const struct kv *env);
/* Tell the runner to look into the inbox. */
void session_life_wake(struct session *s);

/* --- session_open.c -------------------------------------------------------------- */
/* Open the run of an epoch, bring the decoder to where the store is; then `done`. */
void session_open(struct session *s, int64_t epoch, void (*done)(struct session *s));

/* --- session_order.c ------------------------------------------------------------- */

/* Messages, and ends of runs that printed nothing, stand at the first byte with a large index
 * while there is nothing else: what comes later at that byte stands behind them. */
bool session_before_output(uint64_t offset, uint32_t index);
bool session_key_reaches(const struct session_key *k, uint64_t offset, uint32_t index);
bool session_key_newer(struct session_key *last, const struct agent_event *ev);

/* --- session_out.c --------------------------------------------------------------- */
void session_out_init(struct session *s);
void session_out_release(struct session *s);
void session_out_close(struct session *s); /* forget the run; open it again later */
void session_out_feed(struct session *s, const char *data, size_t len);
void session_out_exit(struct session *s, const struct session_run_end *e);
void session_out_flush(struct session *s);
/* What the agent says of its own session; other events are left alone. */
void session_out_session(struct session *s, const struct agent_event *ev);
/* The run is known and the decoder stands at its place: what waited for that. */
void session_out_opened(struct session *s);
/* An event of our own between two bytes of the log, stored with it. */
void session_out_echo(struct session *s, uint64_t at, const char *text, const char *key);
/* An event of our own with its place given. */
void session_out_note(struct session *s, const struct agent_event *ev);
bool session_out_lags(struct session *s);
/* Show the line that has not ended yet; its end will take its place. */
void session_out_partial(struct session *s);
void session_out_put(struct session *s, struct item *it); /* local item; moved from */
void session_out_row(struct session *s);                  /* row soon */
void session_out_row_now(struct session *s); /* what is due, at once */
void session_out_unshown(struct session *s);              /* drop the batch for the screen */
void session_out_shown(struct session *s); /* the load is out: now what came meanwhile */
/* Each event once, in order: what it says of usage goes into the sums. */
void session_out_usage(struct session *s, const struct agent_event *from);
void session_out_unsum(struct session *s); /* the run is read once more: count anew */
void session_out_event(void *ctx, const struct agent_event *ev); /* the decoder's sink */
void session_out_follow(struct session *s, const struct agent_event *ev); /* row, state */
void session_out_lines_soon(struct session *s); /* there are lines for the screen */

/* --- session_lines.c ------------------------------------------------------------- */
bool session_lines(void *ctx, const struct agent_lines *l); /* the decoder's other sink */
void session_lines_settle(struct session *s, struct ev_items *into); /* those for the screen */
void session_lines_drop(struct session *s);

/* --- session_price.c ------------------------------------------------------------- */
void session_price(struct session *s, struct agent_event *ev); /* each event before it is kept */
/* What it adds to the ledger; of a USAGE or of the end of a process. */
struct st_use *session_use(struct session *s, const struct agent_event *ev);

/* --- session_relay.c ------------------------------------------------------------- */
void session_relay_release(struct session *s);
/* Another one's, which never told the store so. */
void session_relay_was_sent(struct session *s, uint64_t id);
void session_relay_delivered(struct session *s, uint64_t id);
/* The one in flight was read by the agent's program, which has ended or not. */
void session_relay_taken(struct session *s, bool ended);
void session_relay_stop(struct session *s, bool gone, const char *why);
void session_relay_leave(struct session *s); /* we stop soon */
void session_relay_ended(struct session *s); /* the CLI is gone */
void session_relay_turn(struct session *s, const struct agent_event *ev);

/* What became of the message that went to an adopted process's input. */
enum session_input { INPUT_TAKEN, INPUT_REFUSED, INPUT_UNKNOWN };
void session_relay_input(struct session *s, enum session_input how, const char *why);

/* --- session_interrupt.c --------------------------------------------------------- */
void session_interrupt_done(struct session *s, const struct err *e); /* err NULL: it worked */
void session_hurry_go(struct session *s); /* the queue waits for the agent */

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

/* --- session_turn.c -------------------------------------------------------------- */
void session_turn_release(struct session *s);
/* Each live event, before it is shown; returns the key of the message it echoes (borrowed
 * until the next call) or NULL. */
const char *session_turn_event(struct session *s, const struct agent_event *ev);
/* Echo in bytes that were stored before: the state of its message may lag behind. */
void session_turn_old_echo(struct session *s, const char *text, bool fresh);
/* A run began with this message as its input. */
void session_turn_run(struct session *s, const char *id, uint64_t offset);
void session_turn_delivered(struct session *s, uint64_t message);
/* The sandbox says that it was taken in, and its turn is not read yet: that one is its
 * answer, not the end of an earlier one that we read late. */
void session_turn_due(struct session *s, uint64_t message);
/* Taken in without an echo that we knew: its turn may be over. */
void session_turn_missed(struct session *s, uint64_t message);
void session_turn_fail(struct session *s, uint64_t message, const struct err *e);
void session_turn_fail_all(struct session *s, const struct err *e);
/* Of messages that were not handed over yet. */
void session_turn_fail_waiting(struct session *s, const struct err *e);
void session_turn_ended(struct session *s);
/* No agent was ever started there, as far as the last look told: nobody answers. */
void session_turn_missing(struct session *s);
/* Its log got shorter, or is read anew: who waits for an answer is told so. */
void session_turn_lost(struct session *s);
void session_turn_look(struct session *s); /* a message may have been cancelled */

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
void session_logs_release(struct session *s);
void session_logs_go(struct session *s); /* the store has more, or the end was reached */

/* --- session_pair.c, session_pair_run.c ------------------------------------------ */
void session_pair_init(struct session *s); /* when its tool is one */
void session_pair_release(struct session *s);
bool session_pair_ready(const struct session *s); /* a message may be relayed */
/* The script that runs the turn of message m, known as `id` in the sandbox. */
int session_pair_script(struct session *s, const struct message *m, const char *id,
                        struct buf *out, struct err *e);
/* Each event, also of bytes that are read once more. */
void session_pair_event(struct session *s, const struct agent_event *ev);
/* What a usage event adds to what its role has used. */
void session_pair_usage(struct session *s, const struct agent_event *ev, const struct usage *g);
void session_pair_cost(struct session *s, const struct agent_event *end);
/* The model of the turn at hand, which is of that role; borrowed, NULL: not known. */
const char *session_pair_model(const struct session *s, const char *role);
void session_pair_unsum(struct session *s);
void session_pair_go(struct session *s); /* something changed: look what is to be done */

/* --- session_raw.c, session_input.c ---------------------------------------------- */
void session_raw_init(struct session *s, const struct sandbox *row); /* when it is one */
void session_raw_free(struct session *s);
void session_raw_go(struct session *s); /* follow, or read what another instance keeps */
void session_raw_close(struct session *s);
bool session_raw_takes_input(const struct session *s); /* now */
void session_raw_echo(struct session *s, const char *text, const char *key);
void session_raw_send(struct session *s, const char *text); /* then session_relay_input */

#endif
