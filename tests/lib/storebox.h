/* A store under test: a folder of its own, calls that wait for their answer. */
#ifndef CCT_TEST_STOREBOX_H
#define CCT_TEST_STOREBOX_H

#include <cct/store.h>

struct storebox {
    struct store *s;
    struct mq *mq;
    struct msg *held; /* taken from mq, not given out yet */
    uint64_t next;
    struct st_reply *opened; /* the ST_OPENED of the start */
};

/* Start on dir (NULL = memory) and wait until it is open. */
void storebox_start(struct storebox *b, const char *dir);
void storebox_start_with(struct storebox *b, const struct store_opts *o);
void storebox_stop(struct storebox *b);
/* Start in a new folder, whose name comes back in *dir; it must open well. */
void storebox_fresh(struct storebox *b, char **dir);
/* Stop, and remove that folder and its name. */
void storebox_end(struct storebox *b, char *dir);
void storebox_again(struct storebox *b, const char *dir); /* stopped, and started again */
/* Statements on a database's file, behind the store's back. */
void storebox_sql(const char *path, const char *sql);
/* Where the next call shall answer to. */
struct st_to storebox_to(struct storebox *b);
/* The answer of the last storebox_to(); aborts after 30 s. Free with msg_free(). */
struct st_reply *storebox_wait(struct storebox *b);
/* ... which must be a good one. */
struct st_reply *storebox_ok(struct storebox *b);
/* It must have this code, and a sentence when it is not 0. */
void storebox_says(struct storebox *b, int code);
/* The next answer of any kind. */
struct st_reply *storebox_any(struct storebox *b);

/* Shortcuts that abort on failure: a row, a run in it, an append of text with one
 * event, the number of stored bytes. */
uint64_t storebox_sandbox(struct storebox *b, const char *sandbox_id);
uint64_t storebox_run(struct storebox *b, uint64_t sandbox, const char *session);
char *storebox_project(struct storebox *b, const char *name); /* its id, a new string */
void storebox_append(struct storebox *b, uint64_t run, uint64_t offset, const char *text,
                     struct st_to to);
/* A database of an earlier schema in dir, with one sandbox ("kept", of project "acme"). */
void storebox_old(const char *dir, int version);
/* A fresh folder below /tmp, for tmpdir_remove(). New string. */
char *storebox_dir(void);

#endif
