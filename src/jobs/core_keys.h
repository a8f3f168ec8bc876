/* Keys inside of the jobs: core_keys.c reads and opens stored ones, core_keyops.c changes
 * them, core_choice.c says which is in force. */
#ifndef CCT_JOBS_CORE_KEYS_H
#define CCT_JOBS_CORE_KEYS_H

#include "core_priv.h"

#include <cct/keys.h>
#include <cct/secrets/vault.h>

struct keyop;
struct keytest;
struct stretch;
struct keys {
    struct jobs *j;
    char *api;                /* keys_api() */
    struct st_keys *stored;   /* NULL: not read, or it cannot be */
    struct err read_err;
    char *lost; /* keys_lost() */
    struct secret *data_key;  /* NULL: locked, or there is no vault */
    struct err locked;        /* why, when there is a vault */
    struct secret *passphrase;
    bool known, opening;      /* rows were read; Argon2 runs for the data key */
    int64_t touched;          /* boot ms: somebody was at the screen */
    bool told, told_opening;  /* what main heard of the vault */
    char *told_locked;
    bool undecided;           /* the account's change waits for something to end */
    uint64_t timer, unlock_req;
    struct stretch *stretch;
    struct keyop *stretch_for; /* NULL: for opening */
    ARR(struct keyop *) ops;
    ARR(struct keytest *) tests;
};
extern const char *const keys_locked_text;

/* Read the rows again; `anew` even when the revision is the same. */
void keys_look(struct keys *k, bool anew);
/* Argon2 on its own thread; keyop_stretched(op) or the vault's opening follows. */
int keys_stretch(struct keys *k, const struct vault_kdf *kdf, const struct secret *passphrase,
                 struct keyop *op, struct err *e);

void keyop_start(struct keys *k, struct cmd *c);
void keyop_rows(struct keys *k, const struct err *e);
void keyop_stretched(struct keyop *op, const struct vault_kdf *kdf, struct secret *key,
                     const char *error);
void keyop_release(struct keys *k);

/* --- core_keytest.c */
void keytest_start(struct keys *k, struct cmd *c);
void keytest_release(struct keys *k);

/* --- core_account.c, for core_choice.c ------------------------------------------- */
/* Go on with that account; sessions of the same one under another address move along. */
void account_use(struct jobs *j, const struct e2b_account *a);
/* There is none, for that reason. */
void account_none(struct jobs *j, enum link_state st, const struct err *e);
void account_text(struct jobs *j, const struct e2b_account *a); /* what is told of it */
void account_retire(struct jobs *j); /* the client: until its calls have ended */

#endif
