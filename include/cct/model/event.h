/* Everything that changes the model arrives as one of these messages on the main
 * thread's queue; model_apply() is the only way to change it. Payloads are owned
 * by the message. */
#ifndef CCT_MODEL_EVENT_H
#define CCT_MODEL_EVENT_H

#include <cct/model/question.h>
#include <cct/model/process.h>
#include <cct/model/project.h>
#include <cct/model/sandbox.h>
#include <cct/model/tbuild.h>
#include <cct/util/err.h>
#include <cct/util/mq.h>

enum ev_type {
    EV_SANDBOXES = 1, /* rows changed or new: struct ev_sandboxes */
    EV_ITEMS,         /* transcript changes of one sandbox: struct ev_items */
    EV_MESSAGE,       /* a chat message is new or changed: struct ev_message */
    EV_LINK,          /* account or link state: struct ev_link */
    EV_EVENT,         /* a line for the events pane: struct ev_event */
    EV_KILL,          /* kill-all question, progress, report: struct ev_kill */
    EV_DONE,          /* a request ended: struct ev_done */
    EV_LOADED,        /* stored state was read: first rows are complete */
    EV_PROCS,         /* processes of one sandbox: struct ev_procs */
    EV_BROADCAST,     /* a message to several was committed: struct ev_broadcast */
    EV_HITS,          /* what a search found: struct ev_hits */
    EV_PROJECTS,      /* projects and which is current: struct ev_projects */
    EV_VIEW,          /* sandboxes of the project, or of all: struct ev_view */
    EV_ASKS,          /* open questions of one sandbox: struct ev_asks */
    EV_USAGE,         /* sums of the ledger: struct ev_usage */
    EV_BUILDS,        /* builds of templates, all of them: struct ev_builds */
    EV_VAULT          /* stored keys can be opened or not: struct ev_vault */
};

struct ledger_report; /* cct/model/ledger.h */
struct ev_usage {
    struct msg m; /* m.req_id says to which question */
    struct ledger_report *report;
};
struct ev_builds {
    struct msg m;
    struct tbuild *v; /* oldest first */
    size_t n;
};
struct ev_sandboxes {
    struct msg m;
    struct sandbox *v;
    size_t n;
    bool full; /* v is the whole table */
    bool figures; /* nothing but how busy they are is new: it can wait for the next picture */
};
/* Edit operations on a transcript, in order; applying one twice changes nothing. */
enum item_op { ITEM_PUT /* insert or replace by (offset,index) or id */,
               ITEM_APPEND, /* add text to the item with this id */
               ITEM_SKIP /* put it; what comes before it is forgotten, the store has it */ };
struct ev_items {
    struct msg m;
    uint64_t sandbox;
    bool reset;       /* forget what is held, then apply (load, new epoch) */
    bool prepend;     /* older items, to go in front */
    bool unshown;     /* nobody looks at it any more; nothing else is in it */
    bool newer;       /* items behind those that are held, while there are newer ones still */
    bool more_before; /* the store has still older ones */
    bool more_after;  /* reset, newer: and still newer ones */
    bool placed;      /* prepend, newer: they fit this key at that end, or it moved meanwhile */
    uint64_t at_offset;
    uint32_t at_index;
    struct item *v;
    uint8_t *op;      /* enum item_op per item */
    size_t n;
};
struct ev_message {
    struct msg m;
    struct message msg;
};
enum link_state { LINK_CONNECTING, LINK_OK, LINK_SLOW, LINK_DOWN, LINK_AUTH, LINK_LIMITED };
struct ev_link {
    struct msg m;
    enum link_state state;
    char *text;    /* why, with the next step; NULL when ok */
    char *account; /* "local provider", "E2B key ****4f2a (environment)" */
    bool local, unsafe;
    struct server_clock clock;
    int64_t listed_at;     /* service's time of the last complete list, 0 = none yet */
    int64_t total_running;    /* X-Total-Running or -1 */
};
struct ev_event {
    struct msg m;
    int64_t time_ms;
    int level; /* 0 info 1 warn 2 error */
    uint64_t sandbox; /* or 0 */
    char *text;
    bool budget; /* one is used up, or nearly, and the user wants to be called for it */
};
/* Kill-all. `phase` LISTING -> ARMED -> RUNNING -> VERIFYING -> REPORT. */
enum kill_phase { KILL_LISTING, KILL_ARMED, KILL_RUNNING, KILL_VERIFYING, KILL_REPORT,
                  KILL_CANNOT /* the list could not be had: text */ };
struct kill_target {
    char *sandbox_id, *name;
    enum sb_state state;
    int result; /* 0 waiting, 1 killed, 2 already gone, 3 failed, 4 still alive,
                   5 protected: left alone */
    char *reason;
};
struct ev_kill {
    struct msg m;
    enum kill_phase phase;
    bool account_scope;
    char *project, *account;
    size_t by_state[SB_STATE_COUNT];
    size_t n_project, n_account; /* how many each scope would end */
    size_t n_protected;          /* left alone */
    size_t n_foreign;            /* of n_account: not started by cc-tui */
    uint64_t set;                /* stands for the ids that would go: others, another number */
    double usd_per_hour;
    struct kill_target *v;
    size_t n;
    size_t killed, already_gone, failed, still_alive;
    struct kill_target *newcomers; /* started meanwhile in the scope: named, not touched */
    size_t n_newcomers;
    bool verified; /* what is said was seen in a complete list asked for afterwards */
    char *text;
};
struct ev_done {
    struct msg m; /* m.req_id says which */
    struct err err; /* code 0 = done */
    uint64_t sandbox;
    char *sandbox_id; /* create: the new id */
    char *text;       /* send --wait: the answer */
    int outcome;      /* send --wait: enum agent_outcome */
    int exit_code;    /* send --wait: the CLI's own, -1 unknown; watch: the process's */
};

/* Replaces what was known; what is watched in it has its output as EV_ITEMS. */
struct ev_procs {
    struct msg m;
    uint64_t sandbox;
    struct procs p;
};

/* What became of a message to several, one receipt for each; m.req_id is the request's. */
struct receipt {
    uint64_t sandbox;
    uint64_t message; /* its state comes as EV_MESSAGE; 0: it was not taken */
    char *name;       /* of the sandbox, or NULL */
    char *error;      /* why it was not */
};
void receipt_release(struct receipt *r);
struct ev_broadcast {
    struct msg m;
    struct receipt *v;
    size_t n;
};

/* Where something was said; id grows with time. */
struct found {
    uint64_t id, sandbox, run, offset;
    uint32_t index;
    int64_t time_ms;
    char *name, *sandbox_id; /* of the sandbox; may be NULL */
    char *who;  /* "you", "agent", "tool" */
    char *text; /* a part of it, cleaned; each match between \x02 and \x03 */
};
/* Newest first; replaces the answer of the question before. */
struct ev_hits {
    struct msg m; /* m.req_id says to which question */
    bool complete; /* all that was said before was looked at */
    bool more;     /* there are older ones */
    struct found *v;
    size_t n;
};

/* Replaces what was known. */
struct ev_projects {
    struct msg m;
    struct project *v;
    size_t n, current;
    bool by_folder; /* a .cc-tui file chose it */
    struct saved_filter *filters;
    size_t n_filters;
};
struct ev_view {
    struct msg m;
    bool all;
};
struct ev_vault {
    struct msg m;
    bool passphrase; /* it is what opens them */
    bool opening;    /* one was given and is being tried */
    char *locked;    /* why they cannot be opened, or NULL */
};

/* All questions of the sandbox that are open; replaces. Comes when they change, and once
 * when they are known. */
struct ev_asks {
    struct msg m;
    uint64_t sandbox;
    struct question *v; /* oldest first */
    size_t n;
};

/* New, zeroed event with its free function set. */
void *ev_new(enum ev_type t);
/* A zeroed item at the end, with its operation; the only way to grow a list of items. */
struct item *ev_items_add(struct ev_items *ev, enum item_op op);

#endif
