/* The provider: sandboxes and their life, behind the two ports. One thread, one
 * event loop; nothing here waits for a sandbox, every wait has a deadline. */
#ifndef CCT_LOCAL_PROVIDER_H
#define CCT_LOCAL_PROVIDER_H

#include <cct/local/boxstore.h>
#include <cct/local/cgroup.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stdint.h>

#define PROV_MAX_RUNNING 64     /* by default; past it create answers 429 */
#define PROV_MAX_HIDDEN 4       /* template builds at a time */
#define PROV_IDLE_EXIT_MS 60000 /* ends itself this long after the last use */
#define PROV_CPU 2
#define PROV_MEM_MB 1024

struct event;
struct event_base;
struct http_srv;
struct tpl_store;
struct tunnel;
struct map;
struct sbox;

struct provider {
    struct event_base *base;
    char *state_dir, *runtime_dir, *exe;
    char key[48];
    bool unsafe;      /* no namespaces, asked for by the user */
    bool private_net; /* sandboxes do not share the host's network */
    int max_running;
    struct cgroup_base groups;
    struct map *boxes; /* id -> struct sbox, in every phase */
    struct tpl_store *tpl;
    struct http_srv *ctl;
    struct tunnel *tunnel;
    struct lifelog *life;    /* what happened to sandboxes; NULL: is not kept */
    struct event *tick;      /* next expiry, renewal, idle exit */
    size_t adopting;         /* records still being looked at */
    int64_t used_ms;         /* monotonic: last time somebody was here */
    int64_t renewed_ms;      /* monotonic: dead-man timers moved */
    int64_t wall_minus_boot; /* as it was: a change is a jump of the wall clock */
    bool layers_tried;       /* whether roots of layers work here, and ... */
    char *layers_refused;    /* ... the sentence when they do not */
    bool stopping;           /* all sandboxes are being ended, then the loop */
};

enum sbox_phase { SBOX_CREATING, SBOX_LIVE, SBOX_CHANGING, SBOX_KILLING };

/* Answer of an operation: the sandbox, valid during the call, or NULL with *e. Of a
 * kill: NULL, and `e` is NULL when it is gone. */
typedef void (*sbox_done)(void *arg, struct sbox *b, const struct err *e);

struct sbox_ready;
struct sbox_net;

struct sbox {
    struct provider *p;
    struct sbox_rec rec;
    enum sbox_phase phase;
    int pidfd;
    int status_fd;        /* -1 once the init runs */
    struct event *death;  /* pidfd is readable */
    struct event *status; /* set-up failed or the init was executed */
    struct event *kill_timer;
    struct initcall *call; /* of the operation under way */
    sbox_done done;        /* of the operation under way */
    void *done_arg;
    sbox_done killed; /* of a kill */
    void *killed_arg;
    char *start_cmd, *ready_cmd; /* to be run before it is live, or NULL */
    struct sbox_ready *ready;    /* the run of them under way */
    struct sbox_net *net;        /* its private network is not up yet */
    bool is_healthy;             /* its init has answered */
    char why[256];               /* text of a failed set-up */
    bool is_new;                 /* made by us, and clients may see it */
    bool is_unsaved;             /* its record could not be written */
    bool is_told;                /* its making is in the provider's lifelog */
    const char *reason; /* of the pause or kill under way: "timeout", "stop"; or NULL */
};

/* What a finished template build gives to the sandboxes made from it. */
struct tpl_image {
    char **layers; /* names below STATE/layers, lowest first; none: built-in */
    size_t n_layers;
    struct cJSON *env;                            /* object of strings, or NULL */
    char *workdir, *user, *start_cmd, *ready_cmd; /* each may be NULL */
};

/* What a create asks for; everything is borrowed during the call. */
struct sbox_new {
    const struct tpl_image *image; /* NULL: host programs and an empty home */
    const char *build_layer;       /* layer that takes all writes, or NULL: its own */
    bool hidden;                   /* of a build: in no list, not counted */
    const char *template_id, *alias;
    const char *build_id; /* or NULL: of no build */
    int cpu, mem_mb;      /* 0: the defaults */
    int64_t timeout_s;
    bool auto_pause, auto_resume, internet;
    bool auto_pause_cold;               /* the pause at the end drops all processes */
    bool internet_asked;                /* the client said something about it */
    const struct cJSON *network;        /* as the client sent it, checked, or NULL */
    const struct cJSON *metadata, *env; /* objects of strings, or NULL */
};

/* Sandboxes that clients may see (live, or between two states). NULL: none. */
struct sbox *sbox_find(const struct provider *p, const char *id);
bool sbox_is_visible(const struct sbox *b);
size_t sbox_count_running(const struct provider *p); /* with those being made */
size_t sbox_count_hidden(const struct provider *p);

/* Each calls `done` once, later, unless it fails at once (negative, *e set). */
int sbox_create(struct provider *p, const struct sbox_new *n, sbox_done done, void *arg,
                struct err *e);
/* Run the image's start command, then its ready command until that ends with 0.
 * `done` comes once and never at once: with the sandbox, or with NULL and the
 * reason (also when it ends meanwhile); the sandbox lives on in both cases. The
 * image is borrowed during the call. One at a time for a sandbox. */
void sbox_run_ready(struct sbox *b, const struct tpl_image *image, sbox_done done, void *arg);
/* Without `memory` every process of the sandbox is ended, its files stay: as after
 * a reboot. */
int sbox_pause(struct sbox *b, bool memory, sbox_done done, void *arg, struct err *e);
int sbox_resume(struct sbox *b, int64_t timeout_s, bool memory, sbox_done done, void *arg,
                struct err *e);
void sbox_kill(struct sbox *b, sbox_done done, void *arg); /* done may be NULL */
/* Take a process into the table and ask for its health; `done` comes with it.
 * Moves rec's metadata and both descriptors in (status_fd may be -1). */
struct sbox *sbox_make(struct provider *p, const struct sbox_rec *take, int pidfd,
                       int status_fd, int timeout_ms, sbox_done done, void *arg);
/* Move the end (wall ms) of a running sandbox because a client asked for it. */
void sbox_move_end(struct sbox *b, int64_t end_ms);
/* Take over or clean up what an earlier provider left; `adopting` counts down. */
void sbox_adopt_all(struct provider *p, void (*ready)(struct provider *p));
/* Expire what is due by CLOCK_BOOTTIME, whatever the wall clock does; ends that
 * are shown are moved with the wall clock. Returns ms until the next one is due
 * (at most 15 s). */
int64_t sbox_expire(struct provider *p);
void sbox_kill_all(struct provider *p);
void sbox_free_all(struct provider *p); /* forget them; they go on running */
/* Remove a sandbox's record, socket and files; the slow part in a child. */
void sbox_remove_files(struct provider *p, const char *id, const char *sock);
/* Remove the groups of a sandbox, its last processes with them; what takes time
 * is done in a child. "" is fine. */
void sbox_remove_group(const char *path);
/* Bring a sandbox that was taken over into the state of its record. */
void sbox_settle(struct sbox *b);
/* Move the dead-man timers on: of paused sandboxes, and of those whose last call
 * was lost. */
void sbox_renew(struct provider *p);
/* End every process of an unisolated sandbox. Blocks shortly; own process only. */
void sbox_kill_tree(pid_t root);
/* The same for a sandbox without a readable record, found by its id. */
void sbox_end_lost(const char *id);

/* fork() for work that may block: the child has none of our descriptors. A failure is
 * logged. */
pid_t provider_fork(void);
void provider_remove_tree(const char *path); /* in a child; does not wait */

/* Arm the tick anew after something changed. */
void provider_touch(struct provider *p);

#endif
