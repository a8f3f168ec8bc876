/* The facade for the screen and the commands: actions in, model out. Everything here
 * is called on the main thread and returns at once; work happens on the net and db
 * threads and comes back as events (cct/model/event.h). No feature exists twice: what
 * the screen can do, a command can do through the same call. */
#ifndef CCT_APP_H
#define CCT_APP_H

#include <cct/model/ledger.h>
#include <cct/model/model.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stdint.h>

struct app;
struct ev_done;
struct ev_progress;
struct ev_shell;
struct app_opts {
    bool local;            /* --local: the embedded provider whatever keys exist */
    bool local_unsafe;     /* --local-unsafe */
    bool local_private_net; /* a provider we start gives sandboxes private networks */
    bool readonly;
    bool first_demo;       /* local, no sandbox yet: create one demo sandbox */
    bool start_local;      /* may start the provider when none runs */
    bool follow_all;       /* the screen: keep every session's stream; commands: only
                              what app_follow names */
    bool pictures;         /* of what floods in, EV_ITEMS may have the newest alone */
    bool keys_only;        /* for stored keys alone: no service is asked */
    const char *project;   /* current project, NULL = the one used last, else "default" */
    const char *project_folder; /* of the .cc-tui file that chose it, or NULL */
    struct secret *passphrase;  /* of the vault; taken by app_new; NULL = none */
    const char *data_dir, *config_dir, *state_dir, *runtime_dir; /* NULL = fs_place */
    const char *ca_file;
    int poll_ms;           /* list interval while visible; 0 = 3000 */
    int keepalive_s;       /* sign of life asked of streams; 0 = 15; dead after 2.5 x */
    int retention_days;
    int64_t max_store_bytes;
    bool vacuum;
    void (*slow_end)(void); /* as store_opts has it */
    int vault_idle_s;      /* the vault is locked when so long no key was pressed; 0 = never */
    int kill_all_grace_s;
    struct usage_limits usage_limits;
    int kill_wait_ms;      /* deletes are tried, then proof is looked for, so long; 0 = 30 s */
};

/* Prepare queues and objects; no thread, no file, no network yet. */
struct app *app_new(const struct app_opts *o, struct err *e);
/* One that only shows what it is fed: no thread, no file, no network; what is asked of it ends
 * in an error that says `why`. */
struct app *app_new_shown(const struct app_opts *o, const char *why, struct err *e);
/* Taken: applied by the next app_drain(). */
void app_feed(struct app *a, struct msg *take);
/* Start the db thread (stored rows arrive as EV_SANDBOXES, then EV_LOADED). */
int app_start(struct app *a, struct err *e);
/* Start the net thread: for the screen after its first paint, so that libcurl is not
 * loaded before; commands call it at once. */
int app_go_online(struct app *a, struct err *e);
/* Ordered stop: net, then db; bounded to about 1 s. Sandboxes live on. */
void app_stop(struct app *a);
void app_free(struct app *a);

/* eventfd: readable when app_drain() has something to do. */
int app_fd(const struct app *a);
/* Apply what waits (at most budget_ms; 0 = all). True if the model changed. */
bool app_drain(struct app *a, int budget_ms);
/* Also shown each event before it is applied (commands wait for their EV_DONE). */
void app_observe(struct app *a, void (*fn)(void *ctx, const struct msg *ev), void *ctx);
const struct model *app_model(const struct app *a);
/* What lives on when the program ends, and how to come back to it; new string, NULL: nothing. */
char *app_goodbye(const struct app *a);

/* --- actions: each returns a req_id; exactly one EV_DONE carries it ---------- */

struct app_create {
    const char *tool;        /* "demo", "claude", "shell" */
    const char *template_id; /* NULL = the tool's */
    const char *name;        /* NULL = generated */
    const char *prompt;      /* NULL = none */
    const char *command;     /* shell tool: run this as the CLI, NULL = interactive */
    int timeout_s;           /* 0 = 900 */
    bool pause_at_end;
    const struct kv *env;    /* ends with k NULL, may be NULL */
    const char *env_file;    /* cct/model/env_file.h; below env; or NULL */
    const char *model;       /* NULL = the tool's, or its own default */
    const char *repo, *branch;      /* cct/model/repo.h; or NULL */
    const char *system_prompt;      /* text; NULL = the project's */
    const char *ask;         /* "yes": permission questions come to the user; "no"; NULL = the
                                tool's policy */
    const char *const *skills;      /* folders and files here, cct/jobs/skills.h, besides the
                                       project's; or NULL */
    int copies;              /* 0 = 1; see app_create_copies() */
    bool only_try;           /* EV_DONE tells what is known before; nothing is made */
    const struct app_pair *pair; /* two agents take turns at `prompt`; tool is not asked for */
};
/* A role's tool, model (NULL: the tool's own) and instructions (NULL: ours). */
struct app_pair {
    struct {
        const char *tool, *model, *prompt;
    } side[2]; /* enum pair_role, cct/model/pair.h */
    int rounds; /* 0 = the usual number */
};
enum { APP_COPIES_MAX = 20 };
/* What is not said (NULL, 0) as a preset or a project's defaults have it; borrowed. */
struct project_choice;
void app_choice_fill(struct app_create *n, const struct project_choice *c);
/* What is wrong with it, before anything is spent: 0, or ERR_INVALID / ERR_AUTH ... with the
 * field's name in *field: "name", "tool", "key", "model", "template", "timeout", "env",
 * "env_file", "repo", "branch", "prompt", "system_prompt", "skills", "copies", "ask". Reads no
 * file: see app_look_at_files(). */
int app_check_create(struct app *a, const struct app_create *c, const char **field,
                     struct err *e);
/* Have the files that it names looked at, `anew` even when they were before: true when it is
 * known how they are, or it names none; else the answer comes with app_drain(). What is wrong
 * with them app_check_create() tells then. */
bool app_look_at_files(struct app *a, const struct app_create *c, bool anew);
/* The files it names are read now. done_when_ready: EV_DONE comes when the agent was started,
 * else with the id. */
uint64_t app_create(struct app *a, const struct app_create *c, bool done_when_ready);
/* As many as `copies` says, called NAME-1 to NAME-n; one is called NAME. Each is a create of
 * its own that ends in its own EV_DONE: when one fails the others go on. Their number. */
size_t app_create_copies(struct app *a, const struct app_create *c, bool done_when_ready,
                         uint64_t reqs[APP_COPIES_MAX]);
/* EV_DONE when committed; with `wait` when the turn that answers it ended (text and
 * outcome set). Refused: empty, over LIM_MESSAGE_BYTES, killed, paused. */
uint64_t app_send(struct app *a, uint64_t sandbox, const char *text, bool wait);
/* The same with bits of enum send_how. */
uint64_t app_send_how(struct app *a, uint64_t sandbox, const char *text, bool wait, int how);
/* A message with the text of files of this machine (paths ends with NULL; "~/" is home)
 * behind it. Reads them. New string; NULL with *e: one is missing or no text, or all of it is
 * too long for a message. */
char *app_text_with_files(const char *text, const char *const *paths, struct err *e);
bool app_is_text(const char *s, size_t len); /* UTF-8 without controls */
char *app_own_path(const char *path);        /* "~/x" in the user's home; new string */
/* One message to several, of which each gets it once: committed for all that can take it,
 * together. EV_BROADCAST has the receipts, then EV_DONE comes, ERR_CONFLICT when some could
 * not; what becomes of each message is told by EV_MESSAGE. */
uint64_t app_broadcast(struct app *a, const uint64_t *ids, size_t n, const char *text, int how);
/* Edit/cancel a message that is still queued. */
uint64_t app_message_cancel(struct app *a, uint64_t message);
/* Resend one that failed or is unconfirmed. */
uint64_t app_message_retry(struct app *a, uint64_t message);
/* Answer an agent's question (struct question's id; NULL: its oldest that waits): the place
 * of a choice from 0 on, or -1 and text. EV_DONE when the answer lies in the sandbox;
 * ERR_CONFLICT: another answer was first, or the agent did not wait; ERR_INVALID: this is
 * no answer to it. What is open is in the model for followed sandboxes. */
uint64_t app_answer(struct app *a, uint64_t sandbox, const char *question, int choice,
                    const char *text);
uint64_t app_interrupt(struct app *a, uint64_t sandbox);
/* Start the agent again in a live VM (CLI's own resume where it has one). */
uint64_t app_restart_agent(struct app *a, uint64_t sandbox);
/* A new task for a pair that has come to its end, in its sandbox and transcript. Of `c` roles,
 * rounds and prompt count; keys of other providers than before are not there. */
uint64_t app_pair_in(struct app *a, uint64_t sandbox, const struct app_create *c);
/* Stop, resume, accept or reject the pair in a sandbox: PAIR_STOP .. PAIR_REJECT. rounds: of
 * a resume, so many more; note: why it is rejected. How a pair stands is in its sandbox's
 * row; it works as long as somebody follows it. */
uint64_t app_pair_do(struct app *a, uint64_t sandbox, int kind, int rounds, const char *note);
uint64_t app_kill(struct app *a, uint64_t sandbox);
/* By E2B id for ones that are only in the list (headless). */
uint64_t app_set_timeout(struct app *a, uint64_t sandbox, int seconds_from_now);
uint64_t app_pause(struct app *a, uint64_t sandbox);
uint64_t app_resume(struct app *a, uint64_t sandbox, int timeout_s);
/* Pause what is in view and idle for longer than that at `now`, the service's time; how many. */
enum { APP_IDLE_S = 300 }; /* where no time is said */
size_t app_pause_idle(struct app *a, int64_t now, int64_t seconds);
uint64_t app_rename(struct app *a, uint64_t sandbox, const char *name);
uint64_t app_tag(struct app *a, uint64_t sandbox, const char *tags); /* all of them; "": none */
void app_protect(struct app *a, uint64_t sandbox, bool on);
/* Remove a killed or errored row (VM gone) from the list. */
uint64_t app_forget(struct app *a, uint64_t sandbox);

/* Kill all: open lists afresh (EV_KILL LISTING, then ARMED or CANNOT); confirm
 * freezes the ids and goes (RUNNING..REPORT). `expected` = number shown, refused if it
 * differs; SIZE_MAX: none was. retry acts on what failed. The EV_DONE of confirm comes
 * with the report. */
enum { APP_NUMBER_FROM = 10 }; /* so many are killed by typing their number, not by a key */
uint64_t app_kill_all_open(struct app *a, bool account_scope);
uint64_t app_kill_all_confirm(struct app *a, bool account_scope, size_t expected);
void app_kill_all_cancel(struct app *a);
uint64_t app_kill_all_retry(struct app *a);

/* Load a transcript and keep it live (EV_ITEMS); the screen names what it shows. */
void app_follow(struct app *a, uint64_t sandbox);
void app_unfollow(struct app *a, uint64_t sandbox);
/* Older items from the store (EV_ITEMS with prepend). */
void app_load_older(struct app *a, uint64_t sandbox);
/* Where the transcript's more_after says so: newer ones (EV_ITEMS with newer). */
void app_load_newer(struct app *a, uint64_t sandbox);
/* The begin of all, in the place of what is held; app_follow() brings the end back. */
void app_load_begin(struct app *a, uint64_t sandbox);
/* Nobody takes the pieces of any request any more: no callback comes, whatever goes on. */
void app_leave(struct app *a);
/* A fresh list now. EV_DONE when it arrived. */
uint64_t app_refresh(struct app *a);
/* Screen visible and recently used: sets the poll interval. */
void app_active(struct app *a, bool active);
/* Raw bytes of the agent's stdout from `from` on, as stored and then live, to fn on
 * the main thread (inside app_drain); a negative `from` counts from the end of what is
 * stored when it is asked. Ends (EV_DONE) at the present end, or with follow when the
 * session ended. */
uint64_t app_raw(struct app *a, uint64_t sandbox, int64_t from, bool follow,
                 void (*fn)(void *ctx, const char *data, size_t len), void *ctx);
/* No more of that app_raw() or app_events(): fn is not called again, no EV_DONE comes. */
void app_logs_end(struct app *a, uint64_t sandbox, uint64_t req);
/* The same as agent events in JSON, one line each (`logs --json`). */
uint64_t app_events(struct app *a, uint64_t sandbox, bool follow,
                    void (*fn)(void *ctx, const char *json, size_t len), void *ctx);

/* The transcript as kept here (cct/model/export.h): to a new file at `path` (EV_DONE: its
 * name), or with path NULL in pieces to fn. A name that is taken is ERR_CONFLICT. */
uint64_t app_export(struct app *a, uint64_t sandbox, int format, const char *path,
                    void (*fn)(void *ctx, const char *data, size_t len), void *ctx);
/* Sums of the ledger over a time as ledger_range() takes it (how: enum usage_how): EV_USAGE
 * with this req_id. The screen gets sums by itself too, at most once a minute. */
uint64_t app_usage(struct app *a, const char *range, int how);
/* The same as a CSV table in a new file (cct/model/ledger.h): EV_DONE with its name; one that
 * is taken is ERR_CONFLICT. */
uint64_t app_usage_export(struct app *a, const char *range, const char *path);
/* What was said anywhere (sandbox 0), newest first, as store_search() takes it: EV_HITS with
 * the same req_id, also kept in the model; then EV_DONE. */
uint64_t app_search(struct app *a, const char *words, uint64_t sandbox, size_t limit,
                    uint64_t before, bool whole);

/* --- sandboxes that cc-tui did not make, and processes in any ------------------ */

/* Somebody looks at its processes (EV_PROCS, renewed every few seconds): say so again
 * with false when nobody does. A sandbox that does not run is asked nothing. */
void app_procs(struct app *a, uint64_t sandbox, bool on);
uint64_t app_proc_list(struct app *a, uint64_t sandbox); /* once: EV_PROCS, EV_DONE */
/* The live output of a process, from now on and not kept, in the place of the sandbox's
 * transcript; one at a time in a sandbox. ident: of struct proc, 0 = whatever has the pid. */
uint64_t app_proc_watch(struct app *a, uint64_t sandbox, int pid, uint64_t ident);
/* The same as bytes: stream 0 stdout, 1 stderr, 2 terminal, -1 a remark (what was not seen).
 * EV_DONE at its end with exit_code (128 + n for a signal); it may not be known (-1). */
uint64_t app_proc_bytes(struct app *a, uint64_t sandbox, int pid, uint64_t ident,
                        void (*fn)(void *ctx, int stream, const char *data, size_t len),
                        void *ctx);
/* SIGTERM, or SIGKILL with `hard`, when a fresh list still has that process under the pid.
 * EV_DONE when it is gone from the list, or says that it is not. */
uint64_t app_proc_kill(struct app *a, uint64_t sandbox, int pid, uint64_t ident, bool hard);
/* A foreign sandbox becomes ours: name, project (NULL: as it is, the current one). With a
 * pid that process's output is kept from now on and messages go to its input. Again: other
 * name, project or process. */
struct app_adopt {
    const char *name, *project;
    int pid;        /* 0 = the sandbox alone */
    uint64_t ident; /* 0 = whatever has the pid */
};
uint64_t app_adopt(struct app *a, uint64_t sandbox, const struct app_adopt *how);
uint64_t app_unadopt(struct app *a, uint64_t sandbox);

/* --- a terminal or a command in a sandbox ------------------------------------------- */

/* cct/app/passage.h joins it with the terminal that we have. */
struct app_shell {
    const char *const *argv; /* ends with NULL; NULL: a login shell */
    const struct kv *env;    /* ends with k NULL, or NULL */
    int pid;                 /* not 0: come back to this one */
    uint64_t ident;          /* of struct proc, 0 = whatever has the pid */
    bool pty;
    int cols, rows;          /* of the pty */
};
struct app_shell_cb {
    /* 0 stdout, 1 stderr, 2 terminal, -1 a remark; it counts as shown with app_shell_took(). */
    void (*on_data)(void *ctx, int stream, const char *data, size_t len);
    /* What became of it: cct/jobs/shell.h. */
    void (*on_news)(void *ctx, const struct ev_shell *news);
    void (*on_end)(void *ctx, const struct ev_done *end);
    void *ctx;
};
/* EV_DONE at its end, exit_code 128 + n for a signal, -1 not known; ERR_CANCELLED: it was left.
 * Refused for a sandbox that does not run: nothing is ever resumed for it. */
uint64_t app_shell(struct app *a, uint64_t sandbox, const struct app_shell *what,
                   const struct app_shell_cb *cb);
/* No more than SHELL_WINDOW bytes that were not told as taken. Wipe your own copy. */
void app_shell_input(struct app *a, uint64_t shell, const char *data, size_t len);
void app_shell_eof(struct app *a, uint64_t shell);
void app_shell_took(struct app *a, uint64_t shell, size_t n);
void app_shell_size(struct app *a, uint64_t shell, int cols, int rows);
/* No callback comes any more. The process goes on, or with `end` gets SIGTERM. */
void app_shell_leave(struct app *a, uint64_t shell, bool end);

/* --- files of a sandbox ------------------------------------------------------------- */

struct file_list;
struct app_file {
    int op;            /* enum file_op, cct/model/files.h, which says what comes and who is needed */
    const char *path, *to; /* there; NULL = "." , the home of its user */
    const char *local; /* here, relative to where we were started */
    bool over;         /* what has that name is replaced; without it ERR_CONFLICT */
    uint64_t max;
};
struct app_file_cb { /* any may be NULL */
    void (*on_list)(void *ctx, const struct file_list *l);
    void (*on_data)(void *ctx, const char *data, size_t len);
    void (*on_progress)(void *ctx, const struct ev_progress *p);
    void (*on_end)(void *ctx, const struct ev_done *end);
    void *ctx;
};
/* EV_DONE at its end, text: what was written. One that does not run is refused. */
uint64_t app_file(struct app *a, uint64_t sandbox, const struct app_file *f,
                  const struct app_file_cb *cb);
/* No callback comes any more; what is under way is called off, half files go. */
void app_file_cancel(struct app *a, uint64_t req);

/* --- templates, builds, system logs ------------------------------------------- */

/* Lines of JSON (one object and LF each) to fn on the main thread, then EV_DONE.
 * Templates; builds of one template (id or name; NULL: of all); the log and the states of
 * a build ("template[:build or tag]", else the newest) until it ended: EV_DONE is an error
 * when it did not end well; the system's log of a sandbox. */
typedef void (*app_lines_fn)(void *ctx, const char *json, size_t len);
uint64_t app_templates(struct app *a, app_lines_fn fn, void *ctx);
uint64_t app_builds(struct app *a, const char *template_name, app_lines_fn fn, void *ctx);
uint64_t app_build_follow(struct app *a, const char *which, app_lines_fn fn, void *ctx);
uint64_t app_system_logs(struct app *a, uint64_t sandbox, bool follow, app_lines_fn fn, void *ctx);
/* A follower that is not wanted any more: its EV_DONE comes, cancelled. */
void app_build_unfollow(struct app *a, uint64_t req);

/* --- building templates (cct/model/tbuild.h; rows: model->builds) -------------------- */

struct kv;
struct app_build {
    const char *name;         /* of the template, perhaps with :TAG */
    const char *where;        /* a folder or a file; NULL: the tool's own recipe */
    const char *tool;         /* what it is for; may be NULL */
    const char *const *tags;  /* end with NULL, or NULL */
    const struct kv *args;    /* likewise: values of a Dockerfile's ARGs; stored nowhere */
    int cpu_count, memory_mb; /* 0: the recipe's, or the service's */
    bool no_cache;
};
/* EV_DONE when the service has begun, or with `wait` at its end: an error when that is not
 * good. Lines of JSON as app_build_follow() gives them, and of what is done before, go to fn
 * (may be NULL). It goes on when this program ends, and is followed by the next one. */
uint64_t app_build(struct app *a, const struct app_build *b, bool wait, app_lines_fn fn, void *ctx);
/* The newest build of that id (0: of that name) once more, from its recipe as it is now. args:
 * as above; an error tells which are lacking. */
uint64_t app_build_again(struct app *a, uint64_t id, const char *name, const struct kv *args,
                         bool wait, app_lines_fn fn, void *ctx);
/* Before the service has begun nothing is built; afterwards it cannot be told to stop, and
 * only the following ends (the row says so). */
uint64_t app_build_cancel(struct app *a, uint64_t id, const char *name);
/* The template with all of its builds; refused while sandboxes of it live. */
uint64_t app_build_delete(struct app *a, uint64_t id, const char *name);
/* Tags (end with NULL) for "name:tag", or with `away` taken from "name". */
uint64_t app_build_tag(struct app *a, const char *target, const char *const *tags, bool away);
/* That text becomes a new file; EV_DONE has its path. */
uint64_t app_build_export(struct app *a, const char *path, const char *text);
/* Rows of this account as lines of JSON, oldest first. */
uint64_t app_build_rows(struct app *a, app_lines_fn fn, void *ctx);

void app_event_add(struct app *a, int level, uint64_t sandbox, const char *text);

/* --- keys (cct/keys.h) ------------------------------------------------------------ */

/* Where we stand in the order of keys; NULL until the stored ones were read. Borrowed until
 * the next drain. */
struct keys_at;
struct secret;
const struct keys_at *app_keys(const struct app *a);
const char *app_config_dir(const struct app *a);
/* Stored keys are protected by a passphrase. */
bool app_vault_by_passphrase(const struct app *a);
/* The keys of each provider as they stand in the current project, for the screen; provider
 * NULL ends. Valid until the next call. NULL until the stored ones were read. */
struct app_key {
    const char *provider;
    char user[16], project[16]; /* "****9f21" of what is stored there, or "" */
    bool works;                 /* one is in force and can be used */
    char *text;                 /* which, and what it hides; else what is wrong */
};
const struct app_key *app_key_list(struct app *a);
/* What was pasted as a key of that provider, without what people paste around it; NULL with
 * *e. Takes it. */
struct secret *app_key_clean(struct secret *take, const char *provider, struct err *e);
/* EV_DONE when it is open: ERR_AUTH, the passphrase is wrong. */
uint64_t app_unlock(struct app *a, struct secret *take);
/* Forget the data key and its passphrase; the E2B key in use stays, for kill-all above all.
 * Only a vault with a passphrase can be locked. */
uint64_t app_lock(struct app *a);
void app_touch(struct app *a); /* somebody is there */
/* Store a key for the user, or for the current project; it is sealed first. */
uint64_t app_key_add(struct app *a, const char *provider, bool project, struct secret *take);
uint64_t app_key_rm(struct app *a, const char *provider, bool project);
/* Try the key in force of an agent's provider (not E2B's: app_refresh) at the provider's own
 * host: EV_DONE with the text that it works, or what is wrong. */
uint64_t app_key_test(struct app *a, const char *provider);
/* This folder's .cc-tui may choose the project's keys. */
uint64_t app_key_trust(struct app *a);
/* Seal everything anew: by that passphrase, NULL: by a key file. */
uint64_t app_key_protect(struct app *a, struct secret *take);

/* --- projects (cct/model/project.h) ------------------------------------------------ */

/* What is known of them is in the model (model_project() is the current one). `project`: a
 * name or an id. From a switch on, new sandboxes are of that project, its keys count, and it
 * is the one used last; it is made when there is none. Refused while everything is killed. */
struct project;
struct project_choice;
uint64_t app_project_switch(struct app *a, const char *project);
/* Show the sandboxes of all projects, or of the current one (EV_VIEW). */
void app_project_view(struct app *a, bool all);
uint64_t app_project_add(struct app *a, const char *name);
/* Keys, variables and presets stay with it; its sandboxes carry the new name. */
uint64_t app_project_rename(struct app *a, const char *project, const char *name);
/* With its keys, variables and presets; refused while sandboxes of it live. */
uint64_t app_project_rm(struct app *a, const char *project);
/* Prompt, skills and defaults of the current one: all of them. */
uint64_t app_project_set(struct app *a, const struct project *settings);
/* A variable of the current one's new sandboxes; value NULL: away, whatever it was. A secret
 * one is sealed first, and goes to agents alone. */
uint64_t app_project_var(struct app *a, const char *name, const char *value);
uint64_t app_project_secret(struct app *a, const char *name, struct secret *take);
/* Choices under a name, for the current project or for all (of_user); NULL: away. */
uint64_t app_preset(struct app *a, const char *name, bool of_user, const struct project_choice *p);
/* A filter of the list under a name, for every project; words NULL: away. */
uint64_t app_filter(struct app *a, const char *name, const char *words);

/* --- before a sandbox is made: what a form shows, nothing is spent ------------------ */

/* Ask for the templates and for how stored keys stand; the answers come with app_drain(),
 * which then says that something changed. */
void app_prepare(struct app *a);
struct app_template {
    char *name, *id; /* name: without the team in front, or the id */
    char *status;    /* of the newest build: "ready", "building", "error" ... */
    bool ready;      /* there is a finished build: it can be chosen */
    int cpu_count, memory_mb;
};
struct app_templates {
    struct app_template *v; /* by name; the ready ones first */
    size_t n, n_ready, n_building, n_failed;
    bool known;
    char *error;            /* why the list cannot be had, or NULL */
};
const struct app_templates *app_template_list(const struct app *a);
/* By name or id; NULL: not listed (public ones of others are not). */
const struct app_template *app_template_find(const struct app *a, const char *name);

/* How the agent's key stands: provider, level and last four; what is wrong, and what to do. */
enum app_key_state { APP_KEY_NONE /* it needs none */, APP_KEY_ASKING, APP_KEY_GOOD,
                     APP_KEY_HIDES /* it counts, and another one does not */, APP_KEY_BAD };
struct app_key_look {
    enum app_key_state state;
    bool hides;     /* or its form is strange: worth a word even while it is being opened */
    char text[500];
};
/* For that tool and model (NULL: its own); env: what is given with the sandbox. */
void app_key_look(struct app *a, const char *tool, const char *model, const struct kv *env,
                  struct app_key_look *out);
/* Both keys of what is to be made, with what its file of variables gives as far as that was
 * looked at. */
void app_create_keys(struct app *a, const struct app_create *c, struct app_key_look *agent,
                     struct app_key_look *repo);
/* GitHub's, for a repository: APP_KEY_NONE at other places; without one APP_KEY_GOOD says
 * that only public ones can be had. */
void app_repo_key_look(struct app *a, const char *repo, const struct kv *env,
                       struct app_key_look *out);

/* Models that the tool takes, with their list prices (NaN: unpriced); word NULL ends. The
 * first is the tool's own choice where it has one. Borrowed until the next call. */
struct app_model {
    char *word;
    const char *label, *date; /* or NULL */
    double input, output;     /* USD for 1M tokens */
};
const struct app_model *app_models(struct app *a, const char *tool);

/* Tools that may be chosen, for forms and completion: name NULL ends. */
struct app_tool {
    const char *name, *label, *template_id;
    const char *model;     /* its own choice; NULL: it chooses for itself */
    bool local_only;
    bool takes_model, takes_prompt, takes_skills;
    bool can_ask, asks;    /* permission questions: at all, when nothing else is said */
    char *missing_key; /* provider whose key is missing, or a variable; or NULL */
};
/* Which key an agent of that tool and model (NULL: the tool's) would get, with the variables
 * that are given; for the form and for `new`. For key_check_release(). */
struct key_check;
void app_key_check(struct app *a, const char *tool, const char *model, const struct kv *env,
                   struct key_check *out);
const struct app_tool *app_tools(struct app *a);

#endif
