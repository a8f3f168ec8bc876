/* Inside of the jobs' core; net thread only.
 *
 *   core.c           life, dispatch, answers, calls to the store
 *   core_rows.c      the table: ids, persistence, what the main thread is told
 *   core_account.c   the account in use; link state
 *   core_choice.c    which key is in force, and what follows when that changes
 *   core_keys.c      stored keys: read, opened; core_keyops.c changes them
 *   core_keytest.c   trying a provider's key
 *   core_projects.c  projects: the current one, its variables, changes
 *   core_local.c     finding and starting the embedded provider
 *   core_poll.c      the list: when it is asked for
 *   core_listed.c    what a list changes
 *   core_detail.c    single sandboxes asked for by id, slowly
 *   core_metrics.c   the load of what runs, for the screen
 *   core_create.c    a sandbox is asked for; core_created.c: lost answers, provisioning, the end
 *                    of it; core_env.c: the environment
 *   core_kill.c      one sandbox
 *   core_orders.c    kills that were confirmed and are still open
 *   core_killall.c   everything; core_killrun.c its deletes, core_killproof.c the proof
 *   core_actions.c   what the user wants, and who does it; agent, names, views
 *   core_pause.c     time, pause, resume
 *   core_messages.c  may it be sent; to one, or one message to several
 *   core_pair.c      designer and checker: begin, keys of both, the user's word
 *   core_usage.c     the ledger: intervals told, sums; core_reckon.c sets it right by what the
 *                    service tells, core_budget.c compares it with budgets
 *   core_times.c     time asked for against time given
 *   core_looks.c     templates, builds and system logs, as lines of JSON
 *   core_builds.c    builds of templates (builds_priv.h)
 *   core_export.c    transcripts as files; search
 *   shell.c          a terminal or a command in a sandbox, started by the user
 *   file*.c          files of a sandbox: lists, reading, download, upload, changes
 *   foreign*.c       processes that cc-tui did not start (foreign_priv.h) */
#ifndef CCT_JOBS_CORE_PRIV_H
#define CCT_JOBS_CORE_PRIV_H

#include <cct/jobs/command.h>
#include <cct/jobs/core.h>
#include <cct/jobs/session.h>
#include <cct/keys.h>
#include <cct/util/arr.h>

struct act;
struct adoption;
struct ask;
struct create;
struct export;
struct kill;
struct keys;
struct killall;
struct lister;
struct mailing;
struct looks;
struct tbuilds;
struct projects;
struct metrics;
struct local;
struct prockill;
struct procwatch;
struct shell;
struct filejob;
struct tool;

struct budget;
struct reckon;
/* Who waits for an answer of the store, in jobs.waiting by its number. */
struct jobs_wait {
    jobs_store_fn fn;
    void *ctx;
    const void *owner;
};
struct asked {
    uint64_t row;
    int64_t at, end; /* server time */
};
/* Where the link stands, as last told. */
struct link {
    enum link_state state;
    char *text, *account;
    int64_t total_running, listed_at;
    struct server_clock clock;
    bool told;
};
/* A confirmed kill of which the end was not seen: of an earlier life, or of a create
 * whose answer was lost. What it names is killed when a list shows it. */
struct order {
    struct st_intent in;
    uint64_t key;
    size_t told;    /* sandboxes it ended */
    size_t running; /* kills without an end */
    int failures;
    bool said, by_other;
    bool waited;    /* its process was at work when we looked */
    int64_t since;  /* mono, when it was taken up */
};
/* Sums of the ledger for the screen. */
struct usage_feed {
    int64_t next_told;  /* mono: running ones are told to the ledger again */
    int64_t next_sums;  /* mono: not before */
    int64_t day_ends;   /* service's time: then they are others in any case */
    bool dirty, asked;
    char *range;        /* NULL: this week */
    ARR(struct sums *) sums; /* that the store was asked for */
};
/* Ids of rows that the store could not take: above all it gives, still exact in JSON. */
#define CORE_LOCAL_IDS (1ull << 50)

struct jobs_priv {
    /* core.c */
    ARR(struct cmd *) held;     /* until rows are loaded and the account is known */
    bool rows_loaded, account_known, stopping;
    bool look_only;             /* the user asked for it: nothing is changed */
    struct err net_err;         /* libcurl cannot be had */
    ARR(struct order) orders;   /* kills that were confirmed and are still open */
    uint64_t order_key;
    /* core_rows.c */
    struct map *dirty;          /* id -> persist too? (1 post, 2 persist) */
    struct map *places;         /* id, or id of the VM -> where its row was */
    struct map *inserts;        /* rows that wait for their id */
    uint64_t flush_timer, local_ids;
    bool said_unstored;
    /* core_account.c */
    struct link link;
    struct err account_err;
    char *place;                /* jobs_place() */
    struct key_found key;       /* in force, or meant; without the key itself */
    bool chosen;                /* the order was asked once */
    struct keys *keys;
    struct projects *projects;
    ARR(struct e2b *) old;      /* clients of earlier addresses, until their calls ended */
    uint64_t old_timer;
    struct local *local;
    /* core_detail.c */
    ARR(struct ask *) asks;     /* waiting and under way, in order */
    uint64_t ask_ids, ask_timer;
    int64_t ask_next;           /* mono: not before */
    int64_t quiet_until;        /* mono: the service asked for so much patience */
    /* the rest */
    struct lister *poll;
    struct looks *looks;
    struct tbuilds *tbuilds;
    struct map *warned;         /* row id -> warning given + 1 */
    struct metrics *metrics;
    struct usage_feed usage;
    struct budget *budget;
    struct reckon *reckon;
    ARR(struct asked) asked;    /* times of new sandboxes that no list has told yet */
    ARR(struct create *) creates;
    ARR(struct resume *) resumes;
    int64_t create_next;        /* mono: the next of several may go out */
    ARR(struct act *) acts;
    ARR(struct mailing *) mailings;
    ARR(struct export *) exports;
    ARR(struct search *) searches;
    ARR(struct kill *) kills;
    uint64_t proof_call;        /* the list that these wait for */
    struct e2b *proof_client;
    struct killall *ka;
    /* foreign*.c */
    struct map *foreign;        /* row id -> struct foreign */
    ARR(struct procwatch *) watches;
    ARR(struct prockill *) prockills;
    ARR(struct adoption *) adoptions;
    ARR(struct shell *) shells;
    ARR(struct filejob *) files;
    ARR(struct file_sync *) syncs; /* file_sync.c */
    uint64_t next_sync;
};

/* --- core.c --------------------------------------------------------------------- */
/* Runs what waited for the account and the rows. */
void core_run_held(struct jobs *j);
void core_done_err(struct jobs *j, uint64_t req_id, uint64_t sandbox, int code, const char *fmt,
                   ...) __attribute__((format(printf, 5, 6)));

/* --- core_usage.c --------------------------------------------------------------- */
/* A row that is kept has changed. */
void core_usage_row(struct jobs *j, const struct sandbox *row);
void core_usage_listed(struct jobs *j, bool first);
void core_usage(struct jobs *j, const struct cmd *c);
/* Sums for the screen, when it is time for them and something may be another. */
void core_usage_show(struct jobs *j);
void core_usage_release(struct jobs *j);
/* USD a second while it runs; NaN: unpriced. */
double core_usage_rate(const struct jobs *j, const struct sandbox *row);

/* --- core_budget.c -------------------------------------------------------------- */
struct ledger_report;
/* Fills in the budgets of the projects. */
void core_budget_projects(const struct jobs *j, struct ledger_report *r);
/* What is to be told of these sums, or done. */
void core_budget_look(struct jobs *j, const struct ledger_report *r);
void core_budget_release(struct jobs *j);

/* --- core_reckon.c -------------------------------------------------------------- */
void core_reckon_listed(struct jobs *j, bool first);
void core_reckon_release(struct jobs *j);

/* --- core_rows.c ---------------------------------------------------------------- */
void core_rows_init(struct jobs *j);
void core_rows_release(struct jobs *j);
void core_rows_load(struct jobs *j, struct st_reply *r);
/* A row without id yet: gets one from the store; then fn (may be NULL). */
typedef void (*core_row_fn)(void *ctx, struct jobs *j, uint64_t id, const struct err *e);
void core_row_insert(struct jobs *j, const struct sandbox *row, core_row_fn fn, void *ctx);
/* Changed in what is not kept: the main thread is told. */
void core_row_shown(struct jobs *j, struct sandbox *row);
void core_row_figures(struct jobs *j, struct sandbox *row); /* in how busy it is alone */
/* NULL: it has no row. */
struct sandbox *core_row_of_vm(struct jobs *j, const char *sandbox_id);
void core_row_remove(struct jobs *j, uint64_t id);
void core_rows_flush(struct jobs *j);
void core_rows_clear(struct jobs *j); /* out of sight, not out of the store; told */
void core_row_step_over(struct sandbox *row); /* it is made, or will not be */
void core_row_set(char **field, const char *value); /* replaces a text, cleaned */
bool core_is_plain(const char *s); /* printable ASCII alone */
/* The row's state or VM changed: its session is told, streams of ours are kept. */
void core_row_state(struct jobs *j, struct sandbox *row);
/* Up as far as we know: running, paused, creating, or error with a VM. */
bool core_row_live(const struct sandbox *row);
const char *core_row_name(const struct sandbox *row); /* as a person knows it */

/* --- core_account.c ------------------------------------------------------------- */
void core_account_start(struct jobs *j);
/* The stored keys are known, or have changed. */
void core_account_keys(struct jobs *j);
void core_account_release(struct jobs *j);
/* The account could not be reached: a local provider may have moved. */
void core_account_lost(struct jobs *j);
/* Addresses of the local provider are known (or e says why not). */
void core_account_local(struct jobs *j, const struct e2b_account *a, const struct err *e);
/* Cancel a call where it was made; an older client may be gone, its calls with it. */
void core_call_cancel(struct jobs *j, struct e2b *client, uint64_t call);
bool core_is_local(const struct jobs *j);
const char *core_account_text(const struct jobs *j);
void core_link(struct jobs *j, enum link_state st, const char *text);
/* Link state from a failed call. */
void core_link_err(struct jobs *j, const struct err *e);

/* --- core_keys.c ---------------------------------------------------------------- */
void core_keys_start(struct jobs *j);
void core_keys_release(struct jobs *j);
void core_keys_cmd(struct jobs *j, struct cmd *c);
bool core_keys_settled(const struct jobs *j); /* read, and no Argon2 runs for them */
struct keys_at core_keys_at(const struct jobs *j);
/* The plain key of a row; NULL with *e, which names level and last four. */
struct secret *core_keys_open(struct jobs *j, const struct st_key *row, struct err *e);
const struct st_key *core_keys_row(struct jobs *j, const char *project, const char *provider,
                                   const char *api);
/* Whose environment. `restart`: the sandbox has the variables that are no secret since it was
 * made, and keeps those. */
struct core_env_q {
    const struct tool *t;
    const char *model;    /* NULL: the tool's own */
    const char *project;  /* the sandbox's */
    bool restart;
    const struct kv *own; /* given with the sandbox */
    const char *own_names; /* of a restart: core_env_own_names() of then, or NULL */
};
/* Environment of an agent, see core_tool_env(). */
struct kv *core_keys_env(struct jobs *j, const struct core_env_q *q, char **missing,
                         struct err *e);

/* What to say of the key that the row's agent was refused with; new string, or NULL. */
char *core_keys_refused(struct jobs *j, const struct sandbox *row);

/* GitHub's key for a checkout; none for other places, and none may be set. */
struct core_repo_key {
    struct secret *key; /* or NULL */
    char *name;         /* "GitHub key ****abcd (user key)" */
};
/* 0, or a code: the key in force cannot be used. */
int core_keys_repo(struct jobs *j, const char *repo, const struct kv *own, struct core_repo_key *k,
                   struct err *e);
void core_repo_key_release(struct core_repo_key *k);

/* --- core_projects.c ------------------------------------------------------------ */
void core_projects_start(struct jobs *j);
void core_projects_release(struct jobs *j);
void core_projects_cmd(struct jobs *j, struct cmd *c);
void core_projects_look(struct jobs *j); /* read the list, if it has changed */
bool core_projects_known(const struct jobs *j);
const char *jobs_project(const struct jobs *j);      /* name of the current one */
const char *core_project_id(const struct jobs *j);   /* NULL: it has no row yet */
const char *core_project_id_of(const struct jobs *j, const char *name);
const char *core_project_ref(const struct jobs *j);  /* for calls of the store */
const char *core_project_folder(const struct jobs *j); /* of the .cc-tui that chose it */
/* NULL: the current one. Borrowed until the next turn of the loop. */
const struct project *core_project(const struct jobs *j, const char *name_or_id);
/* The current one gets its row: it is used. */
void core_project_ensure(struct jobs *j);
/* Name of the project that a sandbox says it is of, as it is called now; new string or NULL. */
char *core_project_of_meta(const struct jobs *j, const struct kv *meta);
/* Variables of a project, `plain` and `secrets` alike or only one kind; ends with k NULL, for
 * keys_env_free(). NULL with *e: a secret one cannot be opened. */
struct kv *core_project_env(struct jobs *j, const char *project, bool plain, bool secrets,
                            struct err *e);
int core_variable_check(const char *name, size_t len, struct err *e);

/* --- core_local.c --------------------------------------------------------------- */
/* Find it, else start it when allowed; core_account_local() gets the outcome. */
void core_local_open(struct jobs *j);
void core_local_release(struct jobs *j);

/* --- core_poll.c ---------------------------------------------------------------- */
void core_poll_init(struct jobs *j);
void core_poll_release(struct jobs *j);
void core_poll_start(struct jobs *j);
/* Another account: what is under way is dropped, the next list is the first. */
void core_poll_reset(struct jobs *j);
/* A list soon (ms from now), at the latest. */
void core_poll_soon(struct jobs *j, int64_t ms);
void core_poll_refresh(struct jobs *j, uint64_t req_id);
/* Rows got their ids: answer who waited for them. */
void core_poll_settled(struct jobs *j);
void core_poll_active(struct jobs *j, bool active);
/* A complete list from whomever asked for it: reconcile and tell. */
void core_poll_apply(struct jobs *j, const struct e2b_result *r);
/* The first list is another's: ours need not be asked for at the same time. */
void core_poll_yield(struct jobs *j);
size_t core_poll_lists(const struct jobs *j); /* complete ones in a row, none odd */

/* --- core_listed.c -------------------------------------------------------------- */
/* Reconcile with a complete list, and what follows; the service's clock is read from it.
 * True when a row changed. */
bool core_listed(struct jobs *j, const struct e2b_result *r, bool suspicious, bool first);
/* An unlisted row is there all the same: its details say so. */
void core_row_vouch(struct jobs *j, struct sandbox *row, const struct e2b_sandbox *v);
size_t core_listed_up(const struct jobs *j); /* rows that are up as far as we know */
void core_row_say_gone(struct jobs *j, const struct sandbox *row);
int poll_warning(int64_t left_ms); /* 0 none, 1 below 5 minutes, 2 below 2 */
/* The service's time by an answer's Date, or `believed` where that is near enough. */
int64_t poll_server_time(int64_t date_ms, int64_t believed_ms);

/* --- core_detail.c -------------------------------------------------------------- */
void core_ask_release(struct jobs *j);
/* Absent from the list for the first time: looked up by its id, once. */
void core_row_vanished(struct jobs *j, const struct sandbox *row);
/* A list of so many pages was asked for: details wait their turn. */
void core_pace_list(struct jobs *j, int pages);
void core_pace_hold(struct jobs *j, int64_t ms); /* Retry-After, or -1 */
/* Takes a place `cost` ms wide in the row that begins at *next; how long until it comes.
 * Pure. */
int64_t pace_take(int64_t *next, int64_t now, int64_t cost);

/* Pure parts. */
int64_t poll_interval(int64_t base_ms, bool active, int64_t quiet_ms);
bool poll_suspicious(size_t listed, size_t known_up, int empties, int64_t empty_ms);
/* From the begin of one list to the next, at least. */
int64_t poll_apart(int64_t base_ms, int pages);
/* After so many failures in a row. */
int64_t poll_backoff(const struct err *e, int attempt, int64_t base_ms, bool active);

/* --- core_metrics.c --------------------------------------------------------------- */
struct e2b_metric;
void core_metrics_listed(struct jobs *j); /* after each good list */
void core_metrics_active(struct jobs *j, bool active);
void core_metrics_release(struct jobs *j);
struct sandbox_load core_metrics_load(const struct e2b_metric *m); /* as it is shown. Pure */

/* --- core_times.c ----------------------------------------------------------------- */
bool time_is_cut(int64_t asked_end, int64_t end_at); /* pure */
/* The row's end is the service's own word: told when it is earlier than asked for. */
void core_time_given(struct jobs *j, const struct sandbox *row, int64_t asked_end);
void core_time_asked(struct jobs *j, uint64_t row, int seconds); /* a list will tell */
void core_time_listed(struct jobs *j);
void core_times_release(struct jobs *j);

/* --- core_env.c ----------------------------------------------------------------- */
/* Tool's own variables, then the provider keys it needs for that model, the project's
 * variables, the user's. *missing: the
 * providers none of which has a key, or NULL. NULL with *e when there is a key that cannot
 * be used. */
/* Which of the variables that are given with a sandbox stand above a key or a secret variable
 * of the project: in one text, as metadata holds it, or NULL. */
char *core_env_own_names(const struct kv *own, const struct project *p);
struct kv *core_env_join(const struct kv *below, const struct kv *above);
struct kv *core_tool_env(const struct keys_at *at, const struct secret *data_key,
                         const struct core_env_q *q, const struct kv *vars,
                         char **missing, struct err *e);

/* --- core_create.c, core_created.c ---------------------------------------------- */
/* It was sent, and what became of it was not told. */
bool core_answer_lost(const struct e2b_result *r);
void core_create(struct jobs *j, struct cmd *c); /* takes c->create */
void core_create_release(struct jobs *j);
/* After each complete list: lost answers found, interrupted ones of an earlier life. */
void core_create_listed(struct jobs *j);
void core_create_demo(struct jobs *j);
/* A create of this row is under way here and there is nothing to delete yet: it is killed
 * as soon as there is; fn once, with the outcome: killed, or nothing was there. False: it
 * is for the caller to delete (a provisioning that goes on is told so). The row is left
 * to the caller, who has the proof. */
typedef void (*core_kill_fn)(void *ctx, const struct err *e, bool already_gone);
bool core_create_kill(struct jobs *j, const struct sandbox *row, core_kill_fn fn, void *ctx);
void core_create_kill_drop(struct jobs *j, void *ctx);
bool core_create_runs(const struct jobs *j, uint64_t row); /* this row is made here, now */

/* --- core_resume.c -------------------------------------------------------------- */
struct start_lease { /* zeroed: not held */
    struct jobs *j;
    uint64_t row, timer;
};
/* Held, and renewed, until its end; from a row that another instance may see on. */
void core_start_lease(struct start_lease *l, struct jobs *j, uint64_t row);
void core_start_lease_end(struct start_lease *l);
/* What a start needs but for keys and variables, as text and back (NULL: it is none). */
char *core_start_text(const struct cmd_create *q);
struct cmd_create *core_start_parse(const char *text);
void core_resume_release(struct jobs *j);

/* --- core_kill.c ---------------------------------------------------------------- */
void core_kill(struct jobs *j, uint64_t req_id, uint64_t sandbox);
/* Without looking first: `done` once, with the proof or without. */
typedef void (*core_killed_fn)(struct jobs *j, uint64_t ctx, const char *id, const struct err *e);
void core_kill_at_once(struct jobs *j, const struct sandbox *row, core_killed_fn done,
                       uint64_t ctx);
bool core_kill_runs(const struct jobs *j, const struct sandbox *row); /* by either way */
void core_kill_release(struct jobs *j);
/* By id, or by mark while it has none; NULL: it has left the table. */
struct sandbox *core_kill_row(struct jobs *j, const char *id, const char *mark);
/* Row of a VM that a complete list lacks after it was told to go. */
void core_kill_gone(struct jobs *j, struct sandbox *row);
/* It was told to go and did not. */
void core_kill_left(struct jobs *j, struct sandbox *row, const char *why);
/* Does this list prove what is absent from it? One with fewer running sandboxes than its
 * head counted does not, nor one without the count where there was one (had: so far). */
bool kill_list_proves(const struct e2b_result *r, bool had_count);
bool kill_is_listed(const struct e2b_result *r, const char *id, const char *mark);

/* --- core_orders.c -------------------------------------------------------------- */
void core_orders_load(struct jobs *j);
void core_orders_release(struct jobs *j);
/* After each complete list. */
void core_kill_intents(struct jobs *j);
/* Kill what has this mark whenever it appears. */
void core_order_mark(struct jobs *j, const char *mark);
/* Scope of a kill-all as stored: "PLACE/PROJECT", "PLACE/" for the account. New string. */
char *kill_scope(const char *place, const char *project);
/* Does it name this row, and may that go? Pure. */
bool kill_intent_covers(const struct st_intent *in, const struct sandbox *row);

/* --- core_killall.c, core_killrun.c, core_killproof.c ----------------------------- */
struct ka_target {
    struct jobs *j;
    struct kill_target t;
    char *mark;         /* of a row of ours */
    uint64_t row, call; /* row 0: it had no number yet */
    struct e2b *client; /* of the call */
    uint64_t probe;     /* direct look that is under way */
    int64_t answered;   /* mono: its last delete */
    int round;          /* number of deletes sent */
    int absent;         /* looks in a row without it */
    bool listed;        /* at the last look */
    bool creating;      /* its create ends it */
    bool refused;       /* a clear no: it was not ended by us */
};
struct killall {
    struct jobs *j;
    enum kill_phase phase;
    bool account, frozen, committed, gone_on, verified;
    bool held;          /* none was listed, once */
    bool had_count;     /* lists of this service count what runs */
    int64_t until;      /* mono: verification ends */
    int64_t asked;      /* mono: the last list was */
    int looks;
    int need;           /* looks without it that prove that a target is gone */
    uint64_t list_call, timer, post_timer, go_timer, early_timer;
    struct e2b *client; /* of the list */
    uint64_t open_req, req; /* of open; of confirm or retry */
    uint64_t intent;
    int wait_s;         /* seconds left to call it off */
    size_t n_project, n_account, n_protected, n_foreign, by_state[SB_STATE_COUNT];
    uint64_t set;       /* stands for those that would go */
    double usd_per_hour;
    size_t next;        /* target to be sent next */
    size_t pending;     /* deletes without an answer */
    size_t probes;      /* direct looks without an answer */
    ARR(struct ka_target *) targets;
    ARR(struct kill_target) newcomers; /* in the scope, made since: nobody agreed to them */
    char *text;
};
void core_killall_open(struct jobs *j, uint64_t req_id, bool account);
void core_killall_confirm(struct jobs *j, uint64_t req_id, bool account, int64_t expected,
                          uint64_t set); /* of the question that was answered; 0 = any */
void core_killall_cancel(struct jobs *j);
void core_killall_retry(struct jobs *j, uint64_t req_id);
void core_killall_release(struct jobs *j);
bool core_killall_busy(const struct jobs *j); /* no create starts meanwhile */
bool core_killall_lists(const struct jobs *j); /* its list is on its way */
void core_killall_listed(struct jobs *j);     /* the table was renewed */
/* Would this row go, in this scope? Pure. */
bool killall_in_scope(const struct sandbox *row, bool account, const char *project);
const char *killall_project(const struct jobs *j);
int killall_wait_ms(const struct jobs *j);    /* for deletes, and again for the proof */
int killall_look_ms(int64_t until);           /* for one list of the proof */
struct sandbox *killall_row(const struct ka_target *t); /* NULL: it has left the table */
size_t killall_count(const struct killall *k, int result);
void killall_post(struct killall *k);         /* progress, coalesced */
void killall_post_now(struct killall *k);
void killall_run(struct killall *k);          /* delete every target that waits */
void killall_again(struct ka_target *t);      /* one more delete of one that lives */
void killall_pending(struct ka_target *t, bool on);
void killall_verify(struct killall *k);       /* all were answered, or it took long */
void killall_stop(struct killall *k);         /* cancels what runs */
/* Which result a target has after the last list; refused: the service would not. Pure. */
int killall_final(int result, bool listed, bool refused);

/* --- core_looks.c, core_looks_json.c --------------------------------------------- */
void core_look(struct jobs *j, struct cmd *c); /* CMD_TEMPLATES .. CMD_SYSTEM_LOGS */
void core_looks_release(struct jobs *j);
void core_look_leave(struct jobs *j, uint64_t req_id); /* that request ends, cancelled */

/* --- core_builds.c ---------------------------------------------------------------- */
void core_builds_cmd(struct jobs *j, struct cmd *c); /* CMD_BUILD .. CMD_BUILD_WORKED */
void core_builds_listed(struct jobs *j); /* after each good list: rows, what was left behind */
void core_builds_leave(struct jobs *j);  /* the account changes */
void core_builds_release(struct jobs *j);

/* --- core_actions.c ------------------------------------------------------------- */
void core_action(struct jobs *j, struct cmd *c);
void core_actions_release(struct jobs *j);

/* --- core_pause.c --------------------------------------------------------------- */
/* CMD_TIMEOUT, CMD_PAUSE, CMD_RESUME */
void core_pause_action(struct jobs *j, struct cmd *c, struct sandbox *row);

/* --- core_messages.c ------------------------------------------------------------- */
/* 0, or why the sandbox cannot be sent this. */
int core_may_send(const struct sandbox *row, const char *text, bool wait, struct err *e);
void core_post_message(struct jobs *j, const struct message *m);
void core_send(struct jobs *j, struct cmd *c, struct sandbox *row);
void core_message_cmd(struct jobs *j, struct cmd *c); /* CMD_MESSAGE_CANCEL, _RETRY */
void core_broadcast(struct jobs *j, const struct cmd *c);
void core_messages_release(struct jobs *j);

/* --- core_export.c --------------------------------------------------------------- */
void core_export(struct jobs *j, struct cmd *c, const struct sandbox *row);
void core_search(struct jobs *j, struct cmd *c);
void core_exports_release(struct jobs *j);
/* --- core_pair.c ------------------------------------------------------------------ */
/* core_keys_env() for both roles; tool and model of q are theirs. */
struct kv *core_pair_env(struct jobs *j, const struct pair *p, const struct core_env_q *q,
                         char **missing, struct err *e);
const char *core_pair_template(struct jobs *j, const struct pair *p); /* both are to be in it */
/* Store a new pair with its first message. */
void core_pair_begin(struct jobs *j, struct pair *p, uint64_t sandbox, struct st_to to);
void core_pair_action(struct jobs *j, struct cmd *c, struct sandbox *row);

/* --- shell.c --------------------------------------------------------------------- */
void core_shell(struct jobs *j, struct cmd *c); /* CMD_SHELL .. CMD_SHELL_LEAVE */
void core_shell_release(struct jobs *j);

/* --- file.c ---------------------------------------------------------------------- */
void core_file(struct jobs *j, struct cmd *c); /* CMD_FILE, CMD_FILE_CANCEL */
void core_files_release(struct jobs *j);

/* --- foreign.c ------------------------------------------------------------------- */
void core_foreign_init(struct jobs *j);
void core_foreign_stop(struct jobs *j);
void core_foreign_release(struct jobs *j);
void core_foreign_action(struct jobs *j, const struct cmd *c); /* its row is there */
void core_foreign_drop(struct jobs *j, uint64_t row);          /* the row goes */
void core_foreign_state(struct jobs *j, const struct sandbox *row);
void core_foreign_relocate(struct jobs *j); /* while the old client still lives */
void core_foreign_listed(struct jobs *j);   /* a complete list was applied */
/* Somebody looks at its output; a session that it gets later is shown then. */
void core_foreign_shown(struct jobs *j, uint64_t row, bool on);

#endif
