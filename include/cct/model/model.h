/* The model: what the screen shows. Main thread only. Borrowed pointers live
 * until the next model_apply(). */
#ifndef CCT_MODEL_MODEL_H
#define CCT_MODEL_MODEL_H

#include <cct/model/event.h>

struct model_event {
    int64_t time_ms;
    int level;
    uint64_t sandbox;
    char *text;
};
struct broadcast {
    uint64_t req_id; /* of the request that sent it */
    struct receipt *v;
    size_t n;
};
struct model {
    struct sandbox *sandboxes; /* insertion order; panes sort ids of their own */
    size_t n_sandboxes;
    uint64_t rev;              /* grows with any change but of figures */
    uint64_t sandboxes_rev, events_rev, link_rev, kill_rev, messages_rev, procs_rev, hits_rev;
    uint64_t asks_rev;
    uint64_t shape_rev;        /* grows when rows come or go, or others are in view */
    bool loaded;               /* stored state arrived */
    /* link and account */
    enum link_state link;
    char *link_text, *account;
    bool local, unsafe;
    struct server_clock clock;
    int64_t listed_at, total_running;
    char *project;             /* current project's name; NULL until it is known */
    struct saved_filter *filters; /* by name */
    size_t n_filters;
    struct project *projects;
    size_t n_projects, project_at; /* place of the current one */
    bool project_by_folder;    /* a .cc-tui file chose it */
    bool all_projects;         /* shown are the sandboxes of all, else of the current one */
    uint64_t projects_rev;
    /* stored keys, as far as the jobs have told */
    bool vault_passphrase, vault_opening;
    char *vault_locked;        /* why they cannot be opened, or NULL */
    uint64_t vault_rev;
    /* events pane: ring, oldest first */
    struct model_event *events;
    size_t n_events;
    /* chat */
    struct message *messages;
    size_t n_messages;
    struct broadcast *broadcasts; /* the newest, oldest first */
    size_t n_broadcasts;
    /* questions of all agents, oldest first */
    struct question *asks;
    size_t n_asks;
    struct ev_kill *kill;      /* newest kill-all state, or NULL */
    struct tbuild *builds;     /* of templates; oldest first */
    size_t n_builds;
    uint64_t builds_rev;
    struct ledger_report *usage; /* newest sums, or NULL */
    uint64_t usage_rev;
    uint64_t usage_asked;      /* grows with those sums that somebody asked for */
    uint64_t figures_rev;      /* grows with figures that nobody waits for: sums that come by
                                  themselves, how busy sandboxes are; they bring no picture, but
                                  are in the next one, at the next minute at the latest */
    struct ev_hits *hits;      /* newest answer to a search, or NULL */
    struct model_priv *priv;
};

struct model *model_new(void);
void model_free(struct model *m);
/* Apply one event: its payload moves into the model, the caller frees the rest. Unknown
 * types are ignored. */
void model_apply(struct model *m, struct msg *ev);
const struct sandbox *model_sandbox(const struct model *m, uint64_t id);
/* Ids of the rows that changed since *since, which is brought up to date; the same one may be
 * among them twice. False: too many did, or rows came, went or others are in view: look at all. */
enum { MODEL_CHANGES = 64 };
bool model_changes(const struct model *m, uint64_t *since, uint64_t ids[MODEL_CHANGES], size_t *n);
/* Transcript of a sandbox; NULL when nothing was loaded. */
const struct transcript *model_transcript(const struct model *m, uint64_t sandbox);
/* Its processes, as far as they were asked for; NULL when never. */
const struct procs *model_procs(const struct model *m, uint64_t sandbox);
/* NULL: it was not heard of, or is one of the oldest. */
const struct message *model_message(const struct model *m, uint64_t id);
const struct broadcast *model_broadcast(const struct model *m, uint64_t req_id);
/* The oldest open question of a sandbox, one that waits for the user before others; NULL:
 * none is known. */
const struct question *model_ask(const struct model *m, uint64_t sandbox);
/* Whether its questions are known, that none is open too. */
bool model_asks_known(const struct model *m, uint64_t sandbox);
const struct tbuild *model_build(const struct model *m, uint64_t id); /* NULL: it is gone */
/* The current project with all that is known of it; NULL until it was read. */
const struct project *model_project(const struct model *m);
/* Shown in the present view: of the current project, of none, or not made by cc-tui. */
bool model_in_view(const struct model *m, const struct sandbox *s);
/* How many that may still bill are of other projects, out of view. */
size_t model_elsewhere(const struct model *m);
/* Count of rows in view by state and by what the agents do. */
void model_counts(const struct model *m, size_t by_state[SB_STATE_COUNT], size_t *asks,
                  size_t *working, size_t *idle);
/* The list cannot be had: rows are what was seen last. */
bool model_is_stale(const struct model *m);
/* USD per hour of everything in view that runs; *unpriced (may be NULL): so many of them have
 * no known price and are not in it. */
double model_usd_per_hour(const struct model *m, size_t *unpriced);

#endif
