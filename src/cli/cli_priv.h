/* What the commands share: telling, asking, and the running application. */
#ifndef CCT_CLI_PRIV_H
#define CCT_CLI_PRIV_H

#include <cct/app.h>
#include <cct/cli.h>
#include <cct/util/arr.h>
#include <signal.h>
#include <stdio.h>

/* The commands; each returns its exit status. */
#define CLI_DECLARE(id, fn, name, aliases, args, least, most, flags, help) int fn(struct cli *c);
CLI_COMMANDS(CLI_DECLARE)
#undef CLI_DECLARE

/* --- telling (print.c): text is cleaned, whatever it repeats ------------------- */
/* On stdout; bytes of the text as it was meant. */
int cli_out(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_err(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* on stderr */
/* From now on talk goes where the data goes, one line after the other, without our name. */
void cli_talk_on_stdout(void);
/* A remark on stderr with its newline, not with -q. */
void cli_say(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* cli_tell() (cct/cli.h) of an error; returns its exit status. */
int cli_fail(const struct err *e);
/* The same for wrong usage: CLI_USAGE. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* JSON, and a newline: what a terminal would act on is escaped, so it says the same. Of a
 * part that ends between two characters, and without the newline. */
void cli_out_json(struct buf *b);
void cli_out_json_part(const char *json, size_t len);
/* As it is: raw output that was asked for, what is clean already; colours of our own. */
void cli_out_bytes(const char *data, size_t len);
void cli_stream_bytes(FILE *f, const char *data, size_t len);
void cli_out_sgr(const char *ours);
void cli_err_sgr(const char *ours);

/* --- asking, reading (cli.c) ---------------------------------------------------- */
/* May we ask? A terminal on both sides and no --no-input. */
bool cli_can_ask(const struct cli *c);
/* y/N on stderr; reads one line. */
bool cli_ask(const char *question);
/* In the line mode, where the screen would: the number is typed for that many. */
bool cli_ask_number(const char *question, size_t n);
/* Colours on stdout: --no-color > NO_COLOR > CLICOLOR_FORCE > terminal. */
bool cli_color(const struct cli *c);
/* The text of an argument or, for "-", of stdin up to the limit of a message; new
 * string, NULL with *e. One newline at the end of stdin is not part of it. */
char *cli_text_arg(const char *arg, struct err *e);
/* The text of a file, with the same limit; new string, NULL with *e. */
char *cli_text_file(const char *path, struct err *e);

/* --env NAME=VALUE ... into a list with room for all of them (new.c); 0 or ERR_INVALID. */
int cli_take_env(const struct cli *c, struct kv *env, struct err *e);
void cli_free_env(struct kv *env);

int cli_kill_process(struct cli *c); /* kill --process (process.c) */
/* send to several, or to all: the first n arguments name them (broadcast.c) */
int cli_broadcast(struct cli *c, int n, const char *text);

/* How the stored keys' data key is kept (keys.c); new string. *good: it is there. */
struct cli_app;
char *cli_keys_protection(struct cli_app *a, bool *good);

/* A member "pair" (pair.c). */
struct jw;
struct pair;
void cli_pair_json(struct jw *w, const struct pair *p);

/* --- secrets from a person or a program (ask.c) --------------------------------- */
struct secret;
/* One line from the terminal, not shown; NULL with *e (ERR_CANCELLED after Ctrl-C). */
struct secret *cli_secret_prompt(const char *prompt, struct err *e);
/* All that comes from a descriptor, up to its end. */
struct secret *cli_secret_read(int fd, struct err *e);
/* What a shell command prints. */
struct secret *cli_secret_command(const char *command, struct err *e);
/* A secret from --command, else from stdin or, where that is a terminal, asked for. */
struct secret *cli_secret_from(const struct cli *c, const char *prompt, struct err *e);
/* Arguments from `first` on may hold one: they are wiped, and it is said what to do. */
int cli_refuse_secret_argument(struct cli *c, int first, const char *how);
/* A new passphrase: from --passphrase-fd (with the one in force on a line in front of it:
 * *old), else asked for twice. */
struct secret *cli_new_passphrase(const struct cli *c, struct secret **old, struct err *e);

/* --- tables and lines (table.c) ------------------------------------------------- */
enum { CLI_TABLE_MAX = 10 };
/* Columns with a heading each; cells are taken, cleaned on the way out. */
struct cli_table {
    int columns;
    const char *heads[CLI_TABLE_MAX];
    ARR(char *) cells;
};
void cli_table_add(struct cli_table *t, char *take_cell);
void cli_table_add_whole(struct cli_table *t, char *take_cell); /* it is not cut: for the last */
void cli_table_print(struct cli_table *t); /* and empties it */
/* Each line of `text` to fn. */
void cli_each_line(const char *text, size_t len,
                   void (*fn)(void *ctx, const char *line, size_t len), void *ctx);
/* Lines of JSON objects as one JSON array on stdout. */
void cli_print_array(const char *lines, size_t len);
/* `logs --system` */
int cli_system_logs(struct cli *c);

/* INT, TERM and HUP are read from the descriptor that comes back (the caller's; -1: none can be
 * had) and interrupt what waits to be written to stdout; a reader that goes is no signal. On the
 * main thread, before any other starts, so that only we get them. */
int cli_signals_open(void);
/* For app_opts.slow_end: says that the disk is waited for, and signals end the program again. */
void cli_slow_end(void);
/* For app_drain(): what comes faster than it is printed must not keep signals out. */
enum { CLI_DRAIN_MS = 50 };
/* A signal came: what does not go out at once is dropped from here on, until the program goes
 * on after all. */
void cli_out_stop(void);
void cli_out_go_on(void);
bool cli_out_gone(void); /* nobody reads it any more, or it cannot be written */
bool cli_out_stopped(void);
/* The exit status after that: 128 + the signal, unless it says so already. */
int cli_out_status(int status);

/* --- the application (session.c) --------------------------------------------- */
/* One of several requests that are waited for together. */
struct cli_wait {
    uint64_t req;
    bool done;
    struct err err;
    uint64_t sandbox;
};
struct cli_app {
    struct app *app;
    const struct cli *c;
    int sigfd;
    int signal;      /* that ended the waiting, or 0 */
    uint64_t wanted; /* EV_DONE looked for */
    bool done;
    struct err err;  /* of the request that ended */
    uint64_t sandbox;
    char *sandbox_id, *text;
    int outcome, exit_code;
    bool asked;      /* for the vault's passphrase */
    struct cli_wait *waits; /* borrowed while they are waited for */
    size_t n_waits;
    const struct app_create *create; /* whose files are waited for */
    bool progress;   /* tell kill-all's progress on stderr */
    uint64_t asks_of; /* tell what the agent of this sandbox asks meanwhile; 0 = nobody's */
    struct map *told; /* ids of the questions that were told */
    void (*see)(void *ctx, const struct msg *ev); /* shown each event, too; may be NULL */
    void *see_ctx;
};
/* The line mode lends its application to the commands that it runs, one after the other. While
 * one of them waits the lines go on being read and news go on being told. */
struct cli_shared {
    struct app *app;
    int sigfd;
    int (*input)(void *ctx);  /* descriptor that lines come from; -1: no more of them */
    int (*wanted)(void *ctx); /* the same to wait for; -1: not now */
    bool (*read)(void *ctx, bool ready); /* it has something; true: the command is to be left */
    int (*turn)(void *ctx);   /* events were applied; ms until it wants to be called anyway, or -1 */
    void (*signalled)(void *ctx, int sig);
    void (*observe)(void *ctx, const struct msg *ev);
    /* The line typed as an answer to this, or NULL: nobody answers. New string. */
    char *(*ask)(void *ctx, const char *question);
    const char *(*numbered)(void *ctx, const char *word); /* id of a sandbox by its number, or NULL */
    bool (*follows)(void *ctx, uint64_t sandbox); /* its transcript stays loaded */
    void *ctx;
};
void cli_share(const struct cli_shared *s); /* borrowed; NULL: no longer */
const struct cli_shared *cli_shared(void);  /* NULL: each command is a program of its own */
/* Start everything; follow_all stays off. 0 or a negative code. */
int cli_app_open(struct cli_app *a, const struct cli *c, struct err *e);
/* The same without a service: stored rows and keys are read, nothing is asked. With
 * `change` the stored keys can be changed. */
int cli_app_open_keys(struct cli_app *a, const struct cli *c, bool change, struct err *e);
/* The same for what is stored alone: no key is needed, nothing is asked of a service. */
int cli_app_open_stored(struct cli_app *a, const struct cli *c, struct err *e);
/* Ask for the vault's passphrase, once, and open it. */
int cli_app_unlock(struct cli_app *a, struct err *e);
/* End it in order. */
void cli_app_close(struct cli_app *a);
/* Wait for the end of a request: 0 or its error; ERR_CANCELLED after SIGINT. */
int cli_app_wait(struct cli_app *a, uint64_t req, struct err *e);
/* Wait until all have ended; their errors stand in them. */
int cli_app_wait_all(struct cli_app *a, struct cli_wait *v, size_t n, struct err *e);
/* Let events come until `ready` says so, at most ms (-1 = no limit). ERR_TIMEOUT. */
int cli_app_until(struct cli_app *a, bool (*ready)(struct cli_app *a), int ms, struct err *e);
/* Stay until the newest message to a sandbox was put into it: once we are gone nobody may
 * be there to do it. *queued: the agent was busy for too long to wait for. */
int cli_app_hand_over(struct cli_app *a, uint64_t sandbox, bool *queued, struct err *e);
/* Exit status for what *e says; 128 + signal when one came. */
int cli_app_fail(const struct cli_app *a, const struct err *e);
/* Say so when the service gave a sandbox less time than asked for. */
void cli_app_tell_time(const struct cli_app *a, uint64_t sandbox, int seconds);
/* A fresh list, so that the model is complete. */
int cli_app_refresh(struct cli_app *a, struct err *e);
/* A list: between typed lines the one that is kept up to date. */
int cli_app_known(struct cli_app *a, struct err *e);
/* Until it is known how the files are that it names; what is wrong app_check_create() tells. */
int cli_app_files(struct cli_app *a, const struct app_create *n, struct err *e);
/* Sandbox by id, begin of an id (6 and more), or name. A name of several live ones is
 * refused with the candidates. NULL with *e. Borrowed until the next wait. */
const struct sandbox *cli_app_find(struct cli_app *a, const char *name, struct err *e);
/* What commands call it in their remarks: its id, between typed lines its name. */
const char *cli_called(const struct cli *c, const struct sandbox *s);
/* Has a VM, or will have: what `ls` shows and `kill` means. */
bool cli_is_up(const struct sandbox *s);
/* Open, refresh and find: the begin of most commands. NULL with *status set and said. */
const struct sandbox *cli_app_begin(struct cli_app *a, const struct cli *c, const char *name,
                                    int *status);

/* --- projects.c */
/* Open for a change of stored things; project NULL: the current one. False: told, *status. */
struct cli_app;
bool cli_open_to_change(struct cli_app *a, struct cli *c, const char *project, int *status);
/* Wait for that change, say how it went, close; the exit status. */
int cli_end_change(struct cli_app *a, const struct cli *c, uint64_t req, const char *done);
/* --- presets.c */
struct project_choice;
struct project_preset;
/* TEXT, @FILE or - into the field; an empty one takes it away. 0 or a code. */
int cli_put_text(char **field, const char *value, struct err *e);
/* One of the settings that presets and a project's defaults have; false: it is none, *rc what
 * came of it. */
bool cli_put_choice(struct project_choice *d, const char *name, const char *value, int *rc,
                    struct err *e);
void cli_choice_json(struct jw *w, const struct project_choice *d);
void cli_choice_text(const char *lead, const struct project_choice *d);
void cli_preset_json(struct jw *w, const struct project_preset *p);
void cli_preset_text(const struct project_preset *p);

/* --- decode.c: by the name of a tool or of a decoder; NULL with *e */
struct agent_adapter;
const struct agent_adapter *cli_adapter(const char *name, struct err *e);

/* --- spoken.c: an entry of a transcript in words, for line mode and replay */
struct item;
/* There is something to say of it. */
bool cli_spoken(const struct item *it);
/* `who` names the agent where the item does not. At most so many lines of text (SIZE_MAX: all,
 * and the output of tools); how many were left out. Cleaned by the model, LF between lines. */
size_t cli_spoken_text(const struct item *it, const char *who, size_t most, struct buf *b);

/* --- cli.c: run the function of the command, whose output is not flushed */
int cli_call(struct cli *c);

/* --- config.c */
/* All files of the configuration; what is wrong in them becomes notes. */
void cli_config_look(const struct cli *c);

#endif
