/* The store: SQLite (WAL, private modes) behind a message API. One db thread owns
 * the connections; every function below posts a request and returns at once. The
 * answer comes as a `struct st_reply` on the queue named in the call (NULL = no
 * answer wanted), with the caller's req_id. Any thread may call.
 *
 * Several processes may use one database: transactions are short, rows are keyed so
 * that writing one twice changes nothing, and claims and leases are atomic updates.
 * A damaged file is copied aside and a new one begun; a newer schema opens
 * read-only; both are said in ST_OPENED. What fails later with nobody asking, in ST_TROUBLE. */
#ifndef CCT_STORE_H
#define CCT_STORE_H

#include <cct/model/ledger.h>
#include <cct/model/project.h>
#include <cct/model/sandbox.h>
#include <cct/util/err.h>
#include <cct/util/mq.h>

struct store;
struct store_opts {
    const char *dir;        /* data folder; the file is cc-tui.db in it. NULL: memory
                               only (said so by the caller) */
    int retention_days;     /* rows of killed sandboxes older than this go, and builds but for
                               the newest of each template; 0 = never */
    int64_t max_bytes;      /* raw bytes kept in all; the oldest ended runs go first;
                               0 = no limit */
    bool vacuum;            /* give free pages back in the background */
    void (*slow_end)(void); /* store_stop() waits for the disk for long: said once; or NULL */
};

enum st_type {
    ST_OPENED = 0x100, /* err: 0, or what was wrong; readonly; text to show. Comes again
                          (req_id 0) when damage is met later: rows held before are
                          unknown in the new file, their ids do not meet new ones */
    ST_SANDBOXES,      /* all rows kept */
    ST_RUN,            /* a run: found, created, ended */
    ST_APPENDED,       /* raw bytes and rows are durable up to `stored` */
    ST_EVENTS,         /* stored agent events, JSON per event */
    ST_RAW,            /* raw bytes from an offset */
    ST_MESSAGE,        /* one message (added, claimed, changed); msg.id 0: none */
    ST_MESSAGES,
    ST_PAIR,           /* a pair, or NULL; msg: of its present turn, id 0: none */
    ST_LEASE,          /* got: ours until now + ttl */
    ST_INTENTS,        /* open kill intents */
    ST_EVLOG,          /* lines of the events pane */
    ST_KEYS,           /* the vault's head and its rows; got = they changed; text: why
                          the database that had them may not be this one, or NULL */
    ST_PROJECT,        /* text: the project's id */
    ST_HITS,           /* what a search found, newest first; got = all that was said before is
                          in the index; more_before: there are older ones */
    ST_RUNS,           /* runs of a sandbox, oldest first */
    ST_OK,
    ST_PROJECTS,       /* projects; NULL and got false: they are as before */
    ST_ANSWERS,        /* answers to questions */
    ST_LEDGER,         /* sums of the ledger */
    ST_DOUBTS,         /* sandboxes of which the ledger does not know how a run ended */
    ST_BUILDS,         /* builds of templates; got: they may be others than before */
    ST_BUDGET,         /* got: it is told for the first time */
    ST_TROUBLE         /* on the queue of ST_OPENED, req_id 0: err says what goes wrong in the
                          background; nothing that was asked for is touched by it */
};

struct store_run {
    uint64_t id;
    uint64_t sandbox;      /* sandboxes.id */
    char session[64];
    int64_t epoch;         /* grows when the log in the sandbox began anew */
    uint64_t stored;       /* raw bytes committed: next offset wanted */
    uint64_t turn_offset;  /* where a decoder resumes (start of the last turn's line) */
    uint64_t turn_line;    /* number of lines before turn_offset */
    int exit_code;         /* -1 = not known; valid when ended */
    int exit_signal;
    bool ended;
};
/* What an event adds to the ledger, when it is stored for the first time. */
struct st_use {
    bool ends;   /* nothing: a process of this role has ended, its totals begin anew */
    char *total; /* the figures are all that was used under this id; NULL: what is new */
    char *role;  /* who of several agents, or NULL */
    char *model, *rate_date; /* of the price, NULL: the agent's own figure */
    int64_t time_ms;
    int64_t in_tokens, cache_read, cache_write, out_tokens;
    double cost_usd; /* NaN: unpriced */
};
void st_use_free(struct st_use *u);
struct st_event {
    uint64_t offset;
    uint32_t index;
    char *json;
    size_t len;
    struct st_use *use; /* or NULL; in answers NULL */
    /* Lines of plain text instead of JSON, each a key (its offset, 0). In an append: `len` of
     * its raw bytes from `offset` on are whole ones; json NULL. In an answer: json is one of
     * them, as it came but for its LF. line: the number of the (first) one. */
    bool plain;
    uint64_t line;
};
/* Where something was said. */
struct st_hit {
    uint64_t id;           /* grows with time: older ones are asked for by it */
    uint64_t sandbox, run; /* run: store_run.id */
    uint64_t offset;       /* key of the event in that run */
    uint32_t index;
    int64_t time_ms;
    char *name, *sandbox_id; /* of the sandbox; may be NULL */
    char *who;             /* "you", "agent", "tool" */
    char *text;            /* a part of it, cleaned; each match stands between \x02 and \x03 */
};
void st_hit_release(struct st_hit *h);
/* A question: the place of its event. */
struct st_ask {
    uint64_t run, offset;
    uint32_t index;
};
struct st_answer {
    uint64_t offset;
    uint32_t index;
    int choice;        /* -1: text alone */
    char *text;
    int64_t created_at, sent_at; /* 0: it is not in the sandbox yet */
};
struct st_log {
    int64_t time_ms;
    int level;
    uint64_t sandbox;
    char *text;
};
struct st_intent {
    uint64_t id;
    int64_t time_ms;
    bool account;
    char *project; /* scope, in the caller's own words */
    char *target;  /* a single sandbox's mark or id; NULL = all of the scope */
};
/* A key as it lies in `apiKeys` (the user's) or `projectProviderKeys`: sealed by the
 * caller, nothing of it in clear but the last four characters. A secret variable of a
 * project (`projectVariables`) has the same form: ST_VARIABLE for the provider, and its
 * name in api. */
#define ST_VARIABLE "variable"
struct st_key {
    char *project;      /* id of the project; NULL: the user's */
    char *project_name; /* as it is called now; set in answers */
    char *provider;     /* "e2b", "anthropic", ..., ST_VARIABLE */
    char *api;          /* service it was added for, "" where there is only one */
    char *mark;         /* tells accounts apart, see key_mark() */
    char last4[5];      /* "" for short keys */
    int version;        /* of the sealed form */
    char *sealed;
    size_t sealed_len;
    int64_t created_at;
};
/* How the data key that sealed them is protected. uid "": there is no vault yet. */
struct st_vault {
    char uid[33];
    int64_t revision;   /* grows with each change of the vault or of a key */
    bool passphrase;    /* else a key file */
    char *proof;        /* tells the right data key from a wrong one */
    size_t proof_len;
    int64_t ops, mem;   /* Argon2id; with a passphrase */
    char *salt, *sealed;
    size_t salt_len, sealed_len;
};
struct st_keys {
    struct st_vault vault;
    struct st_key *v;   /* all levels, all projects */
    size_t n;
    char *project;      /* id of the project asked for; NULL: it has no row yet */
    bool folder_ok;     /* the folder asked for may choose this project's keys */
};
/* Every project that is known: those with a row, then names that only sandboxes carry, and
 * the one asked for, which may be no more than a name yet (id NULL). */
struct st_projects {
    int64_t revision;   /* grows with each change */
    struct project *v;  /* the user's presets are in each */
    size_t n, current;  /* current: the one asked for, always one of them */
    struct saved_filter *filters; /* by name; of no project */
    size_t n_filters;
};
void st_projects_free(struct st_projects *p);
void st_key_release(struct st_key *k);
void st_key_copy(struct st_key *dst, const struct st_key *src);
void st_keys_free(struct st_keys *k);

/* A sandbox whose runs since `from` have an end, or a begin, that nobody saw. */
struct st_doubt {
    char *sandbox_id;
    int64_t from;
};
/* One answer; which members are set depends on m.type. Freed by msg_free. */
struct st_reply {
    struct msg m;
    struct err err;
    bool readonly, got, more_before, called_off;
    char *text;
    struct sandbox *sandboxes;
    size_t n_sandboxes;
    struct store_run run;
    uint64_t stored;
    struct st_event *events;
    size_t n_events;
    char *raw;
    size_t raw_len;
    struct message msg;
    struct message *messages;
    size_t n_messages;
    struct st_log *log;
    size_t n_log;
    struct st_intent *intents;
    size_t n_intents;
    struct st_keys *keys;
    struct st_answer *answers;
    size_t n_answers;
    struct st_hit *hits;
    size_t n_hits;
    struct store_run *runs;
    size_t n_runs;
    struct st_projects *projects;
    struct pair *pair;
    struct ledger_report *report;
    struct st_doubt *doubts;
    size_t n_doubts;
    struct tbuild *builds; /* cct/model/tbuild.h */
    size_t n_builds;
};

/* Start the db thread; opening and migrating happen there (ST_OPENED on `reply`). */
struct store *store_start(const struct store_opts *o, struct mq *reply, struct err *e);
/* Commit what is queued, truncate the WAL, end the thread. A life that only noted what it saw
 * leaves a short WAL to the next one instead. Reads that wait are answered with
 * ERR_CANCELLED. */
void store_stop(struct store *s);
/* True while more than the bound of bulk data waits: followers pause. */
bool store_busy(struct store *s);

/* Who wants the answer. */
struct st_to {
    struct mq *mq;
    uint64_t req_id;
};

void store_sandboxes(struct store *s, struct st_to to);
/* Insert (id 0) or update; the answer ST_SANDBOXES holds the one row as it stands now,
 * with its id. An insert whose sandbox_id or mark has a row already changes nothing but
 * a missing sandbox_id and answers with that row. An update of a row that is gone fails
 * with ERR_NOTFOUND. */
void store_put_sandbox(struct store *s, const struct sandbox *sb, struct st_to to);
/* The user's word whose a sandbox is that cc-tui did not make: foreign, adopted, project,
 * name, session, tool. Only this changes them in a row that is foreign or adopted; an
 * ordinary update leaves them as stored (another instance may have said so) and its answer
 * tells. Answers like an update. */
void store_own_sandbox(struct store *s, const struct sandbox *sb, struct st_to to);
/* Rows that are foreign or adopted, with `all` those that live, too, when another connection has
 * changed the database since they were asked for; else none. */
void store_owned(struct store *s, bool all, struct st_to to);
/* Remove a row with its runs, events and messages. */
void store_del_sandbox(struct store *s, uint64_t id, struct st_to to);
/* Find or create the run (sandbox, session, epoch). epoch -1: the newest there is,
 * nothing is created (run.id 0: none). */
void store_run_open(struct store *s, uint64_t sandbox, const char *session, int64_t epoch,
                    struct st_to to);
/* Raw bytes [offset, offset+len) of a run and the events decoded from them, in one
 * transaction. Bytes below run.stored are skipped (another instance was faster);
 * offset > stored is refused (ERR_CONFLICT, `stored` tells). Takes raw and events
 * (and each event's json). turn_* update where a decoder resumes. Writers batch:
 * several appends may share a commit (<= 50 ms or 100 rows). */
struct st_append {
    uint64_t run, offset;
    char *raw;
    size_t len;
    struct st_event *events;
    size_t n_events;
    char *json; /* all the events' json lies in it; NULL: each is an allocation of its own */
    uint64_t turn_offset, turn_line;
};
void store_append(struct store *s, struct st_append *take, struct st_to to);
void store_run_end(struct store *s, uint64_t run, int code, int sig, struct st_to to);
/* Events of a run (store_run.id) with key >= (offset, index), oldest first, at most
 * `limit`. before: the last `limit` events in front of (offset, index), still oldest
 * first; from UINT64_MAX the newest. more_before: older ones exist. */
void store_events(struct store *s, uint64_t run, uint64_t offset, uint32_t index,
                  bool before, size_t limit, struct st_to to);
/* Of these the ones that sums are made of: what was used, ends of turns and processes, and
 * what a session is. Answers like store_events(), more_before is not told. */
void store_events_summed(struct store *s, uint64_t run, uint64_t offset, uint32_t index,
                         size_t limit, struct st_to to);
/* At most `max` raw bytes from offset on, as far as they are kept without a gap. */
void store_raw(struct store *s, uint64_t run, uint64_t offset, size_t max, struct st_to to);

/* The ledger (cct/model/ledger.h). Sightings move the intervals of their sandboxes on; what
 * is told twice, by one instance or by two, counts once. The price holds for intervals that
 * begin. */
struct st_sighting {
    uint64_t sandbox;
    struct sighting g;
    double usd_per_s; /* NaN: unpriced */
};
void store_sightings(struct store *s, const struct st_sighting *v, size_t n,
                     const char *rate_date);
void store_ledger(struct store *s, const struct ledger_query *q, struct st_to to);
/* The log of this run is read from its begin once more, under another run: what its events
 * below that offset have added is taken out. */
void store_ledger_forget(struct store *s, uint64_t run, uint64_t below);

/* Sandboxes of that account in doubt, those of the last days that were not settled yet. */
void store_doubts(struct store *s, const char *account, int64_t now, size_t limit,
                  struct st_to to);
/* The service has told how runs of that sandbox went from `from` on (cct/model/ledger.h,
 * ledger_life()): they take the place of what was guessed. settled: it will not tell more. */
void store_runs_told(struct store *s, const char *sandbox_id, int64_t from, const struct span *v,
                     size_t n, bool settled, struct st_to to);
/* Percent `pct` of a budget is reached in the period that began at `begin`; project NULL: of
 * all. Once told, by whomever, it is never new again. */
void store_budget_told(struct store *s, const char *period, int64_t begin, const char *project,
                       int pct, struct st_to to);

/* All runs of a sandbox, whatever session. */
void store_runs(struct store *s, uint64_t sandbox, struct st_to to);

/* Full text search over what users and agents said and what tools were called. words: as
 * typed; words and "phrases" that must all be there, the last word may be a begin (or any: beg*), -word
 * must not be there, in:NAME is the name or id of a sandbox; any text is a valid question. sandbox 0: of all; at most `limit` hits
 * older than the hit `before` (0: the newest). whole: what was written shortly before is
 * indexed first however long that takes (a minute at most), else for a few ms. */
void store_search(struct store *s, const char *words, uint64_t sandbox, size_t limit,
                  uint64_t before, bool whole, struct st_to to);

/* Chat. add: FULL durable before the answer; key is made here. */
void store_message_add(struct store *s, uint64_t sandbox, const char *text, struct st_to to);
/* The same, but in front of what is queued there. */
void store_message_add_first(struct store *s, uint64_t sandbox, const char *text,
                             struct st_to to);
/* Several in one transaction, all or none: the answer has them in the order given. `first`:
 * each in front of its queue. */
struct st_letter {
    uint64_t sandbox;
    char *text;
};
void store_messages_add(struct store *s, const struct st_letter *v, size_t n, bool first,
                        struct st_to to);
/* The newest `limit` messages of a sandbox (0: of all), oldest first; of one sandbox also,
 * however old, those that are SENT or claimed, for they hold back all others, and the oldest
 * that is queued. */
void store_messages(struct store *s, uint64_t sandbox, size_t limit, struct st_to to);
/* One of them as it stands now; msg.id 0: there is none of that id. */
void store_message(struct store *s, uint64_t id, struct st_to to);
/* First queued message of the sandbox, if no other is SENT and nobody else's claim
 * holds: marked as claimed by `owner` for ttl_ms. Answer ST_MESSAGE; got = it is ours. */
void store_message_claim(struct store *s, uint64_t sandbox, const char *owner, int ttl_ms,
                         struct st_to to);
/* The owner does not publish what it has claimed there: another one may, at once. */
void store_message_unclaim(struct store *s, uint64_t sandbox, const char *owner);
/* Compare-and-set of the state (only from `from`); error may be NULL. The answer has the
 * message as it stands now; got = it was changed. A message that somebody is publishing
 * (claimed) cannot be cancelled. FULL durable before the answer. */
void store_message_state(struct store *s, uint64_t id, enum msg_state from, enum msg_state to_state,
                         const char *error, struct st_to to);

/* Answers to an agent's questions, FULL durable. add: got = it is ours; else somebody was
 * faster. The answer to add and sent has the one in force. */
void store_answer_add(struct store *s, const struct st_ask *a, int choice, const char *text,
                      struct st_to to);
void store_answer_sent(struct store *s, const struct st_ask *a, struct st_to to);
void store_answers(struct store *s, uint64_t run, struct st_to to); /* all of a run */

/* Pairs (cct/model/pair.h), one for a sandbox. put: a step, on top of revision p->rev (0:
 * there is none yet), together with the message that it sends (NULL: none); call_off: the
 * message of that turn (0: none) is cancelled while nobody is publishing it, and `waiting`
 * ends with it when it is the last one; called_off tells. got = it was stored; the pair as
 * it stands now comes in any case. FULL durable. */
struct pair;
void store_pair(struct store *s, uint64_t sandbox, struct st_to to);
void store_pair_put(struct store *s, const struct pair *p, const char *message, int call_off,
                    struct st_to to);

/* How the agent of a sandbox is started, as long as it is not: any text; NULL: it runs, or
 * never will. store_start_of: text, NULL when there is none. */
void store_start_put(struct store *s, uint64_t sandbox, const char *recipe, struct st_to to);
void store_start_of(struct store *s, uint64_t sandbox, struct st_to to);

/* Builds of templates (cct/model/tbuild.h), all of them, oldest first. only_changed: nothing
 * (got false) when no other connection has changed the database since they were asked for.
 * put inserts (id 0) or updates, and answers with the row as it stands then: one that was
 * called off stays so. */
struct tbuild;
void store_builds(struct store *s, bool only_changed, struct st_to to);
void store_build_put(struct store *s, const struct tbuild *b, struct st_to to);
void store_build_del(struct store *s, uint64_t id, struct st_to to);

/* Job leases for several instances: name, owner (unique per process), ttl. */
void store_lease(struct store *s, const char *name, const char *owner, int ttl_ms,
                 struct st_to to);
void store_lease_drop(struct store *s, const char *name, const char *owner);

/* Kill intents: committed before the first DELETE. add answers ST_INTENTS
 * with the new one; done forgets it. */
void store_intent_add(struct store *s, bool account, const char *project, const char *target,
                      struct st_to to);
void store_intent_done(struct store *s, uint64_t id, struct st_to to);
void store_intents(struct store *s, struct st_to to);

/* Keys. The rows, the id of `project` (name or id; NULL: the one used last, else "default") and whether `folder` was trusted with
 * it (may be NULL); keys is NULL and got false when the revision is still `known`. */
void store_keys(struct store *s, const char *project, const char *folder, int64_t known,
                struct st_to to);
/* The project's id, which it keeps for life; it gets a row at its first use. */
void store_project(struct store *s, const char *name, struct st_to to);
/* ERR_CONFLICT when the new name is another project's. Its sandboxes and the kills that are
 * open carry the new name from then on. */
void store_project_rename(struct store *s, const char *id, const char *name, struct st_to to);
/* All of them; `name`, or its id, is current; NULL: the one used last, else "default".
 * Nothing when the revision is still `known` (-1: in any case). */
void store_projects(struct store *s, const char *name, int64_t known, struct st_to to);
/* Prompt, skills and defaults of the project p->id. FULL durable, like the others below. */
void store_project_put(struct store *s, const struct project *p, struct st_to to);
/* The project with its keys, variables and presets; ERR_CONFLICT while sandboxes of it live,
 * and ended ones keep its name. */
void store_project_del(struct store *s, const char *id, struct st_to to);
void store_project_used(struct store *s, const char *id, struct st_to to); /* now */
/* A variable that is no secret; in the place of a secret one, too. Secret ones go by
 * store_key_put(). */
void store_project_var(struct store *s, const char *id, const char *name, const char *value,
                       struct st_to to);
/* Of either kind; ERR_NOTFOUND when there is none. */
void store_project_var_del(struct store *s, const char *id, const char *name, struct st_to to);
/* project NULL: the user's. Insert or replace; c NULL: remove, ERR_NOTFOUND when there is
 * none. */
void store_preset(struct store *s, const char *project, const char *name,
                  const struct project_choice *c, struct st_to to);
/* A filter of the list under a name: insert or replace; words NULL: remove, ERR_NOTFOUND when
 * there is none. It comes with the projects. */
void store_filter(struct store *s, const char *name, const char *words, struct st_to to);
/* The .cc-tui of this folder may choose the keys of the project. */
void store_project_folder(struct store *s, const char *id, const char *folder, struct st_to to);
/* Begin the vault (revision 0), or seal it anew: head and all rows are replaced in one
 * transaction, if the revision is still that of `take`; else ERR_CONFLICT. FULL durable. */
void store_vault_put(struct store *s, struct st_keys *take, struct st_to to);
/* Insert or replace the key of this level, project, provider and api. `vault`: uid of the
 * vault that sealed it, ERR_CONFLICT when it is another one by now. FULL durable. */
void store_key_put(struct store *s, const char *vault, const struct st_key *k, struct st_to to);
/* ERR_NOTFOUND when there is none. The row's bytes are overwritten. FULL durable. */
void store_key_del(struct store *s, const char *project, const char *provider, const char *api,
                   struct st_to to);

/* Events pane. */
void store_log_add(struct store *s, int level, uint64_t sandbox, const char *text);
void store_log(struct store *s, size_t limit, struct st_to to);
/* Apply retention now (also done by itself in the background after opening). */
void store_prune(struct store *s, struct st_to to);

#endif
