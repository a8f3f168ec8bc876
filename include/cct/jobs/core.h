/* Jobs: state machines on the net thread that survive a restart, because their state
 * is rows in the store. core.c owns the table of sandboxes (the truth about state),
 * the account, the polling and the kill-all; session*.c own the durable agent sessions
 * (cct/jobs/session.h). Everything here but jobs_new/jobs_free is for the net thread. */
#ifndef CCT_JOBS_CORE_H
#define CCT_JOBS_CORE_H

#include <cct/e2b.h>
#include <cct/envd.h>
#include <cct/model/event.h>
#include <cct/model/ledger.h>
#include <cct/model/reconcile.h>
#include <cct/net.h>
#include <cct/store.h>
#include <cct/util/map.h>

struct key_found;
struct keys_outside;
struct session;
struct tools; /* the tool registry, cct/config/tools.h */
struct models; /* their prices, cct/config/models.h */

struct jobs_opts {
    struct net *net;
    struct store *store;
    struct mq *events;     /* to the main thread: EV_* */
    const char *project;
    const char *owner;     /* unique per process: claims and leases */
    bool follow_all;       /* keep the stream of every live session of ours */
    bool pictures;         /* who looks draws pictures: lines that none would have shown may be
                              left out of EV_ITEMS (ITEM_SKIP), the store has them */
    bool readonly;
    bool local, local_unsafe; /* the embedded provider whatever keys exist */
    bool start_local;      /* may start it when none runs */
    bool local_private_net; /* then with private networks */
    const struct keys_outside *outside; /* any key here or stored: the cloud, unless local */
    const char *project_folder;  /* of the .cc-tui that chose the project, or NULL */
    const char *config_dir;      /* where the vault's key file lies */
    const struct secret *passphrase; /* of the vault, or NULL */
    bool keys_only;        /* stored keys are looked after, no service is asked */
    bool first_demo;       /* local and nothing made here yet: create one demo sandbox */
    const char *runtime_dir, *state_dir; /* the provider's; NULL = its own defaults */
    int poll_ms;           /* list interval while active; 0 = 3000 */
    int keepalive_s;       /* sign of life asked of streams; 0 = 15; dead after 2.5 x */
    int vault_idle_s;      /* locked after so long without CMD_TOUCH; 0 = never */
    int kill_all_grace_s;
    struct usage_limits usage_limits;
    int kill_wait_ms;      /* a delete is tried, then its proof is looked for, so long;
                              0 = 30 s */
    int quiet_ms;          /* a working agent puts nothing out so long, then its row says so;
                              0 = 60 s */
    const struct tools *tools; /* borrowed, constant after start */
    const struct models *models; /* likewise; NULL: none is known */
};
struct jobs {
    struct jobs_opts o;
    struct e2b *e2b;       /* NULL until an account is known */
    struct sandbox_table table;
    struct map *sessions;  /* sandboxes.id -> struct session */
    struct map *waiting;   /* req_id of a store call -> struct jobs_wait */
    uint64_t next_req;     /* for store calls of our own */
    struct server_clock clock;
    bool used;             /* an agent has used something since the screen had its sums */
    bool leaving;          /* no stream is opened any more */
    int goodbyes;          /* last requests without an answer yet */
    /* A service refused the key of that row's agent: which, and what to do; new string, or
     * NULL. The core's. */
    char *(*key_refused)(struct jobs *j, const struct sandbox *row);
    struct jobs_priv *priv; /* core.c's: poll, kill-all, account */
};

/* --- life ------------------------------------------------------------------ */
/* The options' strings are borrowed until jobs_free. Main thread, before net_start with
 * the hooks of jobs_hooks(); everything else happens on the net thread, where the queue
 * of net brings commands (cct/jobs/command.h) and answers of the store. The caller asks
 * the store for ST_OPENED on that queue; jobs reads the rest itself. jobs_free after
 * net_stop. */
struct net_hooks;
/* Where the account of that key (keys_choose's answer) lives: "local", or the API's host and
 * the key's mark. Rows of other places stay in the store, out of sight, until a list of
 * this place names them. New string. */
char *jobs_place(bool local, const char *api, const struct key_found *k, const struct err *e);
struct jobs *jobs_new(const struct jobs_opts *o);
struct net_hooks jobs_hooks(struct jobs *j);
void jobs_free(struct jobs *j);

/* --- rows ------------------------------------------------------------------ */
struct sandbox *jobs_row(struct jobs *j, uint64_t id);          /* NULL if unknown */
/* The row was changed in place: persist it and tell the main thread (coalesced to one
 * EV_SANDBOXES per turn of the loop). Text put into rows must be cleaned first. */
void jobs_row_changed(struct jobs *j, struct sandbox *row);
/* State error with its text, which is cleaned here; keeps vm_up as given. */
void jobs_row_error(struct jobs *j, struct sandbox *row, bool vm_up, const char *text);
/* A session looked into its sandbox: no agent was started there, or one was (told where the
 * row still says that it starts). What was left half made goes on. */
void jobs_agent_missing(struct jobs *j, uint64_t row);
void jobs_agent_found(struct jobs *j, uint64_t row);

/* --- answers ----------------------------------------------------------------- */
/* Any EV_* message, taken. The texts of an EV_DONE are cleaned here, others before. */
void jobs_post(struct jobs *j, void *ev);
void jobs_done(struct jobs *j, uint64_t req_id, const struct err *e, uint64_t sandbox);
/* Bytes for the sink of a request, taken; stream as in struct ev_chunk. */
void jobs_chunk(struct jobs *j, uint64_t req_id, int stream, char *take, size_t len);
/* Line for the events pane, also stored. */
void jobs_say(struct jobs *j, int level, uint64_t sandbox, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same about a budget, of which the user may want to be notified. */
void jobs_say_budget(struct jobs *j, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* --- store calls with a callback --------------------------------------------- */
/* Gives the `to` for a store_* call; fn runs on the net thread with the answer
 * (borrowed). `owner` tags it so that jobs_store_forget() drops late answers. */
typedef void (*jobs_store_fn)(void *ctx, struct st_reply *r);
struct st_to jobs_store(struct jobs *j, jobs_store_fn fn, void *ctx, const void *owner);
void jobs_store_forget(struct jobs *j, const void *owner);

/* Server time now. */
int64_t jobs_now(const struct jobs *j);

/* --- details --------------------------------------------------------------------- */
/* GET of one sandbox, for what no list says. They go out one by one, a few in a second,
 * so that any number of rows is no storm; `first`: ahead of those that wait. Returns a
 * cancel id. */
uint64_t jobs_ask(struct jobs *j, const char *sandbox_id, bool first, e2b_fn fn, void *ctx);
void jobs_ask_cancel(struct jobs *j, uint64_t id);
/* The control plane does not know this one (404): gone if the last list lacked it too,
 * else the next list, which is asked for, decides. */
void jobs_row_missing(struct jobs *j, struct sandbox *row);

#endif
