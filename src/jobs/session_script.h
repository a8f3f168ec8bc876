/* The session folder's text forms: the scripts we run beside it, the names we give in it,
 * and what they answer. Pure, no I/O. */
#ifndef CCT_JOBS_SESSION_SCRIPT_H
#define CCT_JOBS_SESSION_SCRIPT_H

#include <cct/jobs/session_layout.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>

struct session_run_end {
    uint64_t run;    /* its number, from 1 */
    uint64_t offset; /* size of out.log when the run ended */
    int code;        /* -1: lost */
    bool interrupted; /* by us, with a signal */
};
struct session_run_line { /* of the file runs */
    bool start, interrupt; /* else an end */
    uint64_t run, offset, err_offset;
    int code;         /* of an end; -1: lost */
    char message[80]; /* of a start: its id, or "-" */
};
bool session_run_line(struct session_run_line *r, const char *line);
/* What one look into the folder said. */
struct session_probe {
    bool found;   /* the folder is there */
    bool started; /* a keeper has worked here */
    bool alive;   /* its keeper lives */
    bool has_cli; /* cli.sh is there */
    bool exited;  /* `exit` is published: both logs are complete */
    bool lost;
    int exit_code;
    int64_t epoch;
    uint64_t size;      /* of out.log */
    uint64_t starts;    /* runs begun so far */
    uint64_t runs_size; /* of the file runs */
    bool diskfull;
    uint64_t cut_at; /* offset of the cap's mark in out.log, 0 = not cut */
    char *home, *error, *err_tail, *model;
    uint64_t err_run, interrupted; /* runs: whose err_tail is; last one that we interrupted */
    struct session_run_line last;  /* start of the last run; run 0: none */
    char *sum; /* of the range asked for, as cksum prints it */
    ARR(struct session_run_end) ends;
};
/* Variable that holds GitHub's key, in the environment of the one git process. */
#define SESSION_GIT_KEY "CC_TUI_GIT_KEY"
extern const char session_probe_script[];   /* $1 = session name, $2 $3 = range to sum up */
extern const char session_sum_script[];     /* $1 = file, $2 $3 = first byte (from 0), count */
extern const char session_prepare_script[]; /* $1 = session name, $2.. = programs to find */
extern const char session_install_script[]; /* $1 = session folder, $2.. = files */
extern const char session_place_script[];   /* $1 = folder, $2 = skills' folder or "", $3 =
                                               file for the system prompt or "" */
extern const char session_checkout_script[]; /* $1 = url, $2 = branch or "", $3 = folder, $4 =
                                                session name */
extern const char session_await_script[];   /* $1 = folder, $2 = runs before, $3 = mode */
extern const char session_taken_script[];   /* $1 = folder, $2 = begin of a message id */
extern const char session_sigint_script[];  /* $1 = folder, $2 = mode */
void session_probe_parse(struct session_probe *p, const char *text, size_t len);
void session_probe_release(struct session_probe *p);
bool session_probe_running(const struct session_probe *p); /* the last run has not ended */
/* 'it'\''s' */
void session_quote(struct buf *out, const char *word);
/* cli.sh: cd home, exec the words; command: that one by sh -c instead; driver: the
 * shell driver in the folder; resume, resume_id: the tool's own resume, when the id is
 * not NULL. */
struct session_cli {
    char *const *argv, *const *resume;
    const char *command, *resume_id;
    bool driver;
    const char *model_flag, *prompt_flag; /* of the tool, for the files of those names */
    const char *model;                    /* when none was chosen; or NULL */
    char *const *ask_argv; /* in argv's place while the file `ask` says yes; or NULL */
    bool asks;             /* when there is no such file */
};
void session_cli_script(struct buf *out, const struct session_cli *c);
/* The program is our driver of OpenCode's server, which lies in the folder. */
bool session_cli_drives(char *const *argv);
/* 13 digits, '-', id; characters that the folder's names do not allow become '_'. */
void session_inbox_name(char *dst, size_t size, int64_t ms, const char *id);
/* The same text but for white space at both ends. */
bool session_same_text(const char *a, const char *b);
/* The runner of a folder in the answer of envd's process list; 0 = none. */
int session_runner_pid(const char *list_json, size_t len, const char *dir);
enum session_taken { TAKEN_NO, TAKEN_YES, TAKEN_UNSURE };
/* First word of the taken script's answer; *ended: the CLI's end is published; *from: the place
 * of its turn (session_wait_place()) is not before that one, 0: not known. */
enum session_taken session_taken_parse(const char *text, bool *ended, uint64_t *from);

#endif
