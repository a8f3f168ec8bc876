/* Plain data: sandboxes, sessions, messages. No locks, no I/O. Structs are owned
 * by whoever holds them; the model's own copies belong to the main thread. All
 * text fields of the model passed the cleaner. Times: wall ms UTC, 0 = unknown. */
#ifndef CCT_MODEL_SANDBOX_H
#define CCT_MODEL_SANDBOX_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The five documented states. */
enum sb_state { SB_CREATING, SB_RUNNING, SB_PAUSED, SB_KILLED, SB_ERROR, SB_STATE_COUNT };
/* The four documented steps of making one, while it is being made. */
enum sb_step { STEP_NONE, STEP_TEMPLATE, STEP_ENV, STEP_VM, STEP_AGENT, STEP_LAST = STEP_AGENT };
/* Why a killed one is gone. */
enum sb_gone { GONE_NONE, GONE_HERE, GONE_TIMEOUT, GONE_ELSEWHERE, GONE_EARLY };
/* What the agent does; from its own stream only. */
enum sb_agent {
    AG_NONE,     /* no session known (foreign sandbox) */
    AG_STARTING, /* runner or CLI being started */
    AG_WORKING, AG_ASKS, AG_IDLE,
    AG_EXITED,   /* ended well, VM still up */
    AG_FAILED,   /* ended in failure: the sandbox's state becomes error */
    AG_UNKNOWN   /* not heard from yet */
};

/* One of a list that ends with k NULL; NULL is an empty list. */
struct kv {
    char *k, *v;
};
const char *kv_get(const struct kv *list, const char *key); /* borrowed; NULL when absent */
struct kv *kv_dup(const struct kv *list);
void kv_free(struct kv *list); /* not for secrets: nothing is wiped */

/* The service's clock, as told once and carried on by the clock that also runs while the
 * machine sleeps: setting the machine's own clock changes nothing. server_ms 0: unknown. */
struct server_clock {
    int64_t server_ms, boot_ms;
};
/* Its time at boot_ms; `wall_ms` where it is unknown. */
int64_t server_clock_at(const struct server_clock *c, int64_t boot_ms, int64_t wall_ms);
/* What it does with its machine; percent of all of it, MiB; -1 = not told. */
struct sandbox_load {
    bool known;
    int cpu_pct, mem_pct;
    int disk_used_mb, disk_total_mb;
};

struct pair; /* cct/model/pair.h */
struct sandbox {
    uint64_t id;         /* our row (sandboxes.id); stable, never reused */
    char *sandbox_id;    /* E2B's sandboxID; NULL while creating */
    char *session;       /* our session name, or NULL (foreign) */
    char *name, *tool, *project;
    char *template_id, *alias;
    char *branch;        /* of its repository, as chosen at its creation, or NULL */
    char *tags;          /* the user's words for it, a space between them; NULL = none */
    char *account;       /* where it lives: "local", or the API's host */
    char *mark;          /* metadata mark of the create, to find a lost answer */
    enum sb_state state;
    enum sb_gone gone;
    enum sb_agent agent;
    char *reason;        /* text of an error, or how it was killed */
    char *odd;           /* the provider's own word where it is neither running nor paused */
    bool foreign;        /* not made by cc-tui, nor adopted */
    bool adopted;        /* not made by cc-tui, ours by the user's word; its session, if any,
                            is a process (cct/model/process.h) */
    bool vm_up;          /* with SB_ERROR: the VM still runs and bills */
    bool unlisted;       /* running by our record, absent from the last list */
    bool not_isolated;   /* local provider without namespaces */
    bool protect;        /* left alone by kill-all */
    bool pending;        /* an action of ours is under way (kill, timeout) */
    bool changing;       /* ... and it is not a kill */
    int64_t started_at, end_at, ended_at, seen_at, created_at;
    int64_t vouched_at;  /* unlisted, but looked up by its id it was there; 0 = it was not */
    int64_t agent_since; /* since when `agent` holds */
    int64_t quiet_since; /* it works and has put nothing out since then; 0 = not long enough to
                            be told; never stored */
    int cpu_count;
    int memory_mb, disk_mb;
    double usd_per_s;    /* while it runs, NaN: unpriced; set where the model is told of it,
                            never stored */
    struct sandbox_load load; /* while it runs and is looked at; never stored */
    enum sb_step step;   /* it stands at; never stored */
    char *step_text;     /* what is done in it: "cloning github.com/acme/web"; or NULL */
    struct kv *meta;     /* metadata, ends with k == NULL; may be NULL */
    char *last_line;     /* newest line of the agent, one line */
    double cost_usd;     /* agent's own figures so far; NaN = unpriced */
    int64_t tokens_in, tokens_out;
    struct pair *pair;   /* designer and checker at work in it, without their texts; or NULL */
    void *block;         /* of a snapshot: its texts and metadata stand there; else NULL */
    uint64_t rev;        /* grows with every change (model's copy) */
};

void sandbox_release(struct sandbox *s);
void sandbox_copy(struct sandbox *dst, const struct sandbox *src); /* deep */
/* Deep, too, but only to be read, handed on and released: all texts are in one block, so that
 * thousands of rows are made and freed in the time of hundreds. No text of it may be replaced. */
void sandbox_snapshot(struct sandbox *dst, const struct sandbox *src);
const char *sb_state_name(enum sb_state s);   /* "creating" ... */
int sb_state_parse(const char *s);            /* or -1 */
const char *sb_agent_name(enum sb_agent a);   /* "working", "asks you", ... */
int sb_agent_parse(const char *s);
const char *sb_step_name(enum sb_step s);     /* "template", "environment", "sandbox", "agent" */
const char *sb_gone_text(enum sb_gone g);     /* "timed out", "killed by you", ... */
/* What it costs now, USD per hour; 0 when it does not run, or has no known price. */
double sandbox_usd_per_hour(const struct sandbox *s);
bool sandbox_is_unpriced(const struct sandbox *s); /* it runs, and has no known price */
/* Ours, and it costs something (or nobody knows) while its agent does nothing. */
bool sandbox_idles(const struct sandbox *s);
/* Generated name "adjective-noun" style from random words, [a-z0-9-]. */
char *sandbox_new_name(void);
/* The user's words for a sandbox, at most SANDBOX_TAGS of them, each 1..24 of [A-Za-z0-9_.-], to
 * dst as they are kept: in the order given, each once, one space between. False: one is none. */
enum { SANDBOX_TAGS = 8, SANDBOX_TAGS_BYTES = SANDBOX_TAGS * 25 };
bool sandbox_tags(const char *text, char dst[SANDBOX_TAGS_BYTES]);
bool sandbox_has_tag(const struct sandbox *s, const char *tag);
/* A name the user may give: 1..64 of [A-Za-z0-9_-] (metadata's alphabet). */
bool sandbox_name_ok(const char *s);

/* --- chat ----------------------------------------------------------------- */
enum msg_state {
    MSG_QUEUED,      /* committed here, waits for the agent to be idle */
    MSG_SENT,        /* published in the sandbox's inbox */
    MSG_DELIVERED,   /* the agent's own stream shows it was taken in */
    MSG_FAILED,      /* could not be sent; error has the reason */
    MSG_UNCONFIRMED, /* the CLI died in between: the user decides */
    MSG_CANCELLED
};
/* How it is to go, a set of bits. */
enum send_how {
    SEND_NOW = 1, /* in front of the queue, and what the agent does is interrupted for it */
    SEND_FILL = 2 /* with message_fill() */
};
struct message {
    uint64_t id;      /* sandboxMessages.id */
    char *key;        /* random id, the inbox file's name and dedupe key */
    uint64_t sandbox; /* struct sandbox.id */
    char *text;       /* as the user gave it */
    enum msg_state state;
    bool claimed;     /* queued: some instance hands it over, or ended while it did */
    char *error;
    int64_t created_at, sent_at, delivered_at;
};
void message_release(struct message *m);
void message_copy(struct message *dst, const struct message *src);
const char *msg_state_name(enum msg_state s);
int msg_state_parse(const char *s);
/* {name} {branch} {project} in a text as the sandbox has them; {{name}} stands for itself. New
 * string; NULL with *e when it has no such thing. */
char *message_fill(const char *text, const struct sandbox *s, struct err *e);
bool message_has_words(const char *text);

/* --- transcript ------------------------------------------------------------ */
/* What the output pane shows of one session: items made from agent events and
 * messages, keyed so that a repeated event changes nothing. */
enum item_kind { ITEM_USER, ITEM_TEXT, ITEM_THINKING, ITEM_TOOL, ITEM_NOTICE, ITEM_ASK,
                 ITEM_TURN_END, ITEM_RAW, ITEM_SYSTEM };
struct text_run;
struct item {
    enum item_kind kind;
    uint64_t offset;   /* event key (run offset, index); 0,0 for local items */
    uint32_t index;
    char *id;          /* block_id or call_id or message key */
    int64_t time_ms;
    char *who;         /* "you", tool name, "system" */
    char *title;       /* tool: one line */
    char *text;        /* cleaned, LF between lines */
    size_t text_len;
    struct text_run *runs; /* colour runs of text (cct/text/clean.h) */
    size_t n_runs;
    char *input;       /* tool: cleaned JSON text */
    int state;         /* tool: enum agent_tool_state; user: enum msg_state;
                          notice: enum agent_level; turn end: enum agent_outcome */
    int exit_code;     /* tool: -1 unknown */
    bool streaming;    /* text still growing */
    uint64_t last_offset; /* newest event key that went into it; 0,0 = its first */
    uint32_t last_index;
    uint32_t rev;      /* grows when this item changes: wrap caches use it */
};
void item_release(struct item *it); /* empty afterwards */
/* Items of one session, oldest first; bounded: the oldest go when the text of
 * all exceeds the limit (they stay in the store). */
struct transcript {
    struct item *v;
    size_t n, cap;
    uint64_t base;     /* number of items dropped in front: item i is base + i */
    size_t bytes;      /* text held */
    uint64_t rev;
    uint32_t item_rev;    /* last one given to an item: no two items have the same */
    uint64_t last_offset; /* newest event key applied */
    bool more_before;     /* the store has older items */
    bool more_after;      /* ... and newer ones: what comes live is not here, but there */
    uint32_t resets;      /* how often all was replaced */
    uint32_t loads;       /* how many answers came to what was asked of the store */
    struct map *by_id;    /* places by kind and id; NULL: to be made anew */
};
void transcript_init(struct transcript *t);
void transcript_release(struct transcript *t);
/* Keys of the oldest and of the newest event that is held; without any, what stands behind,
 * and before, them all. */
void transcript_first_key(const struct transcript *t, uint64_t *offset, uint32_t *index);
void transcript_last_key(const struct transcript *t, uint64_t *offset, uint32_t *index);

#endif
