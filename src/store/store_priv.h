/* Shared by the files of src/store only. Everything here runs on the db thread but
 * for the fields that store.c marks as shared. */
#ifndef CCT_STORE_PRIV_H
#define CCT_STORE_PRIV_H

#include <cct/store.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/types.h>

enum { STORE_SCHEMA = 5 /* user_version this program writes */ };

enum st_op {
    OP_SANDBOXES,
    OP_PUT_SANDBOX,
    OP_OWNED,
    OP_DEL_SANDBOX,
    OP_RUN_OPEN,
    OP_APPEND,
    OP_RUN_END,
    OP_EVENTS,
    OP_EVENTS_SUMMED,
    OP_RAW,
    OP_MESSAGE_ADD,
    OP_MESSAGES_ADD,
    OP_MESSAGES,
    OP_MESSAGE,
    OP_MESSAGE_CLAIM,
    OP_MESSAGE_UNCLAIM,
    OP_MESSAGE_STATE,
    OP_ANSWER_ADD,
    OP_ANSWER_SENT,
    OP_ANSWERS,
    OP_LEASE,
    OP_LEASE_DROP,
    OP_INTENT_ADD,
    OP_INTENT_DONE,
    OP_INTENTS,
    OP_LOG_ADD,
    OP_LOG,
    OP_START,
    OP_START_PUT,
    OP_PAIR,
    OP_PAIR_PUT,
    OP_KEYS,
    OP_PROJECT,
    OP_PROJECT_RENAME,
    OP_PROJECT_FOLDER,
    OP_PROJECTS,
    OP_PROJECT_PUT,
    OP_PROJECT_DEL,
    OP_PROJECT_USED,
    OP_PROJECT_VAR,
    OP_PROJECT_VAR_DEL,
    OP_PRESET,
    OP_FILTER,
    OP_VAULT_PUT,
    OP_KEY_PUT,
    OP_KEY_DEL,
    OP_SEARCH,
    OP_RUNS,
    OP_SIGHTINGS,
    OP_LEDGER,
    OP_LEDGER_FORGET,
    OP_DOUBTS,
    OP_RUNS_TOLD,
    OP_BUDGET_TOLD,
    OP_BUILDS,
    OP_BUILD_PUT,
    OP_BUILD_DEL,
    OP_PRUNE
};

/* One request. What the fields mean is the operation's own business. */
struct st_req {
    struct msg m; /* type: enum st_op */
    struct st_to to;
    uint64_t id, offset;
    int64_t n1, n2;
    bool flag;
    char *s1, *s2, *s3;
    struct st_keys *keys;
    struct project *project;
    struct sandbox *sandbox;
    struct pair *pair;
    struct st_append *append;
    struct st_letter *letters;
    size_t n_letters;
    struct st_sighting *sightings;
    size_t n_sightings;
    struct ledger_query *ledger;
    struct tbuild *build;
    struct span *spans;
    size_t n_spans;
};

enum { STORE_STMT_PLACES = 128 };
struct st_stmt {
    const char *sql; /* a literal: found again by its address */
    sqlite3_stmt *p;
};

/* Background work on old rows (store_prune.c). */
struct st_prune {
    bool active;
    int stage;
    int64_t next_ms; /* monotonic; when it begins again by itself */
    struct st_to *waiting;
    size_t n_waiting;
};

/* Appends of the present transaction that are not written yet. */
struct st_open_run {
    uint64_t run, stored, turn_offset, turn_line; /* run 0: none */
    struct buf raw;                               /* ends at stored */
};

/* Which file it is, and that nobody has written to it since. */
struct st_file_id {
    uint64_t inode, size;
    int64_t written_s, written_ns;
};

struct store {
    /* shared */
    struct mq *in;
    pthread_t thread;
    _Atomic int64_t pending; /* bytes posted and not yet dealt with */
    _Atomic int64_t requests;
    /* set before the thread starts */
    char *dir, *path;
    struct mq *opened;
    int retention_days;
    int64_t max_bytes;
    bool vacuum;
    void (*slow_end)(void); /* see store_opts; main's */
    /* db thread */
    sqlite3 *db;
    bool readonly, memory, no_wal, full_sync;
    int64_t owned_version; /* of the data when store_owned was answered last */
    int64_t builds_version; /* likewise for store_builds */
    int last_error; /* SQLite's number of the last error */
    ino_t inode;    /* of the open file */
    bool untouched;    /* nobody has written to the file since a cc-tui left it in order */
    bool light_log;    /* what the log held at opening may stay in it */
    bool heavy, others; /* we, somebody else wrote what must not stay in the log */
    struct st_file_id begun_db; /* once it was open */
    int64_t begun_version;
    uint64_t begun_log;
    char *trouble;  /* why what was stored may not be here; NULL = nothing is known of it */
    ARR(struct st_stmt) stmts; /* one for each place that asks */
    uint16_t stmt_places[STORE_STMT_PLACES]; /* where they were found, by their address */
    struct st_req **batch; /* writes that share the next commit */
    struct st_reply **answers;
    size_t n_batch, cap_batch, batch_rows, batch_bytes;
    bool batch_now, batch_full;
    int64_t last_commit;
    int64_t log_ms; /* when the log may go into the database */
    int log_pages, log_begun; /* in it; of these the disk was asked to write */
    int64_t log_again_ms;     /* it could not: not tried before */
    bool log_fails;           /* since it was said */
    struct err log_trouble;   /* to be said */
    int log_fd;     /* of the log, or -1 */
    int64_t check_ms; /* when the background check goes on; INT64_MAX = done */
    int check_table, check_tries;
    int64_t search_ms; /* when the index goes on; INT64_MAX = when something is written */
    struct st_prune prune;
    struct st_open_run open_run;
};

/* --- store_sql.c: sqlite with less words ----------------------------------------- */

/* The prepared statement of a literal, reset, with `args` bound by `types`: i int64_t,
 * t text or NULL, d double (NaN = NULL), b blob (const void *, size_t), s text with a
 * length (const char *, size_t). NULL with *e. */
sqlite3_stmt *st_query(struct store *s, struct err *e, const char *sql, const char *types, ...);
/* Prepare, bind, run to the end; 0 or a code. */
int st_run(struct store *s, struct err *e, const char *sql, const char *types, ...);
/* Next row: 1, at the end 0, else a code. Resets the statement unless 1. */
int st_step(struct store *s, sqlite3_stmt *q, struct err *e);
/* One int64 of the first row, `none` when there is no row. 0 or a code. */
int st_number(struct store *s, struct err *e, int64_t none, int64_t *out, const char *sql,
              const char *types, ...);
/* Several statements without results, not kept prepared. */
int st_exec(struct store *s, const char *sql, struct err *e);
/* What went wrong in the connection's last call, in our words. */
int st_error(struct store *s, struct err *e, int rc);
void st_finalize(struct store *s);
int st_begin(struct store *s, bool full, struct err *e);
int st_commit(struct store *s, struct err *e);
void st_rollback(struct store *s);
char *st_text(sqlite3_stmt *q, int col); /* copy, NULL stays NULL */

/* --- store_open.c ----------------------------------------------------------------- */

/* Ends with a usable connection in any case; what was wrong is in r. */
void st_open(struct store *s, struct st_reply *r);
/* The name of a file that was put aside as damaged, this time or earlier: a new string, or
 * NULL when there is none. */
char *st_aside(const struct store *s);
/* Damage was met while at work: put the file aside, begin a new one. */
void st_open_again(struct store *s, struct st_reply *r);
void st_close(struct store *s);
/* A part of the full check; called when nothing else waits. ERR_CORRUPT: damage. */
int st_check_step(struct store *s, struct err *e);

/* --- store_log.c ------------------------------------------------------------------- */

void st_log_begin(struct store *s); /* a new connection */
void st_log_end(struct store *s);
int64_t st_log_due(const struct store *s); /* INT64_MAX: there is not enough in it */
/* Now: nobody waits. A code when it cannot: once, until it could again. */
int st_log_step(struct store *s, struct err *e);

/* --- store_left.c ------------------------------------------------------------------ */

/* Under the lock, before the database is opened: sets untouched and light_log. */
void st_left_read(struct store *s, int lock);
void st_left_begin(struct store *s); /* once it is open and in order */
/* May the log stay as it is? Else st_left_void before it goes into the file. */
bool st_left_light(struct store *s);
void st_left_void(struct store *s);
void st_left_write(struct store *s, bool light); /* after it was closed */

/* --- store_prune.c ---------------------------------------------------------------- */

/* Delete a bounded number of old rows, give pages back; false: nothing left to do. */
bool st_prune_step(struct store *s, struct err *e);

/* --- operations: 0 or a code with r->err set; r's members are the answer ----------- */

typedef int st_op_fn(struct store *s, const struct st_req *q, struct st_reply *r);
/* store_rows.c */
st_op_fn st_op_sandboxes, st_op_put_sandbox, st_op_owned, st_op_del_sandbox;
/* store_chat.c */
st_op_fn st_op_message_add, st_op_messages_add, st_op_messages, st_op_message, st_op_message_claim,
    st_op_message_unclaim, st_op_message_state;
st_op_fn st_op_lease, st_op_lease_drop, st_op_intent_add, st_op_intent_done, st_op_intents;
st_op_fn st_op_log_add, st_op_log;
/* store_answers.c */
st_op_fn st_op_answer_add, st_op_answer_sent, st_op_answers;
/* The message with this key: 1 when there is one, else 0 or a code. */
int st_message_by_key(struct store *s, const char *key, struct st_reply *r);
/* store_pair.c */
st_op_fn st_op_pair, st_op_pair_put, st_op_start, st_op_start_put;
int st_pairs_attach(struct store *s, struct st_reply *r); /* to the answer's sandboxes */
/* store_builds.c */
st_op_fn st_op_builds, st_op_build_put, st_op_build_del;
/* store_keys.c */
st_op_fn st_op_keys, st_op_project, st_op_project_folder, st_op_vault_put, st_op_key_put,
    st_op_key_del;
/* store_projects.c */
st_op_fn st_op_projects, st_op_project_rename, st_op_project_put, st_op_project_del,
    st_op_project_used, st_op_project_var, st_op_project_var_del, st_op_preset;
/* store_filters.c */
st_op_fn st_op_filter;
int st_filters(struct store *s, struct st_projects *p, struct err *e);
/* Id of the project of that id or name (NULL: used last), left NULL when there is none. */
int st_project_of(struct store *s, const char *name, char **uid, struct err *e);
int st_projects_changed(struct store *s, struct err *e); /* the number that tells grows */
/* store_runs.c */
st_op_fn st_op_run_open, st_op_append, st_op_run_end, st_op_raw, st_op_runs;
/* At most `max` raw bytes of a run from `at` on, up to the first gap; appended. */
int st_raw_bytes(struct store *s, uint64_t run, uint64_t at, size_t max, struct buf *out,
                 struct err *e);
/* store_append.c */
/* Rows for an append's events; had: the raw bytes that were stored before it. */
int st_put_events(struct store *s, const struct st_append *a, uint64_t had, struct err *e);
/* store_events.c */
st_op_fn st_op_events, st_op_events_summed;
/* Lines of plain text: a row that says which raw bytes they are, or, where those are not kept,
 * has them itself. had: what was stored before this append. */
int st_lines_put(struct store *s, const struct st_append *a, const struct st_event *ev,
                 uint64_t had, bool raw_kept, struct err *e);
/* Is the line that begins there one of those that another instance has stored so? */
int st_lines_hold(struct store *s, uint64_t run, uint64_t offset, bool *there, struct err *e);
/* Raw bytes are about to go: some of the rows that rely on them take theirs over; *left: there
 * may be more. */
int st_lines_take_over(struct store *s, int64_t run, bool *left, struct err *e);

/* --- store_ledger.c ---------------------------------------------------------------- */

/* In the transaction that stores the event for the first time. */
int st_ledger_use(struct store *s, uint64_t run, const struct st_event *ev, struct err *e);
st_op_fn st_op_sightings, st_op_ledger_forget;

/* store_ledger_sums.c */
st_op_fn st_op_ledger;
int st_ledger_rename(struct store *s, const char *old, const char *name, struct err *e);

/* store_ledger_told.c */
st_op_fn st_op_doubts, st_op_runs_told, st_op_budget_told;

/* --- store_search.c ---------------------------------------------------------------- */

/* In the transaction that stores the event: it is to be found later. */
int st_search_note(struct store *s, uint64_t run, const struct st_event *ev, struct err *e);
void st_search_soon(struct store *s); /* there may be something to index */
/* Index some of what waits, in a transaction of its own. */
int st_search_step(struct store *s, struct err *e);
/* Take some of a run's texts out of the index. */
int st_search_forget(struct store *s, int64_t run, int64_t at_once, bool *left, struct err *e);
st_op_fn st_op_search;

/* Write what appends have left open: before any other operation and before the commit. */
int st_settle(struct store *s, struct err *e);
void st_unsettle(struct store *s); /* forget it: rolled back */

/* store.c */
struct st_reply *st_reply_new(enum st_type t, uint64_t req_id);

#endif
