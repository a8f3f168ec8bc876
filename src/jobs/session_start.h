/* Starting a session's CLI, and starting it again: what belongs into its folder and its home,
 * the repository, the CLI itself. */
#ifndef CCT_JOBS_SESSION_START_H
#define CCT_JOBS_SESSION_START_H

#include "session_priv.h"

#include <cct/secrets/secret.h>

enum { PROVISION_FILES = 12 };
struct secret_kv {
    char *k;
    struct secret *v;
};
struct file { /* an upload */
    struct session *s;
    const char *name;
    uint64_t call;
};
struct provision {
    bool restart, prompt_waits;
    uint64_t req_id, timer, starts;
    session_fn fn;
    void *ctx;
    char *command, *model, *system_prompt, *skills, *ask;
    size_t skills_len;
    char *repo, *branch, *repo_key_name;
    struct secret *repo_key;
    struct buf git; /* last line of what git tells of its progress */
    uint64_t git_timer, git_call;
    ARR(struct secret_kv) env;
    struct file files[PROVISION_FILES];
    size_t n_files, left;
    struct err err; /* first failed upload */
    uint64_t call;
};

/* --- session_provision.c --------------------------------------------------------- */
void session_provision_release(struct session *s);
void session_provision_left(struct session *s, const struct err *e); /* its request ends */
/* The folder was looked at and no CLI lives: a restart that waits may begin. */
void session_provision_go(struct session *s);
void session_provision_start(struct session *s); /* the folder is complete */
void session_provision_fail(struct session *s, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void session_provision_alive(struct session *s); /* it still runs */
void session_provision_stop(struct session *s, const char *why);
/* The first prompt is in the inbox, or cannot be for now. */
void session_provision_sent(struct session *s);
/* The runner ended in failure: it could not start the CLI. */
void session_provision_runner_ended(struct session *s, const char *why);

/* --- session_upload.c ------------------------------------------------------------ */
void session_upload(struct session *s);
struct session_cli session_cli_of(const struct session *s, const char *resume_id);
bool session_upload_cli(const struct session *s); /* its cli.sh is written anew */

/* --- session_place.c ------------------------------------------------------------- */
/* The folder is complete: what belongs elsewhere, then the repository, then the start. */
void session_place(struct session *s);

/* --- session_checkout.c ---------------------------------------------------------- */
void session_checkout(struct session *s); /* then session_provision_start() */
/* What git said, in one line for a person: cleaned, without addresses' passwords and without
 * the key. New string. */
char *session_git_says(const char *text, size_t len, const char *key);

#endif
