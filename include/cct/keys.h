/* Which key is in force, and what it hides. One order for E2B and for the providers of
 * agents: environment, project, user; for E2B then the E2B CLI's file. The nearest level
 * that has a key wins, even when that key cannot be used: nothing falls back in silence. */
#ifndef CCT_KEYS_H
#define CCT_KEYS_H

#include <cct/secrets/secret.h>
#include <cct/store.h>
#include <cct/util/err.h>

enum key_source { KEY_NONE, KEY_ENV, KEY_PROJECT, KEY_USER, KEY_E2B_CLI };
const char *key_source_name(enum key_source s); /* "environment", "E2B CLI config" */

/* --- outside of the vault -------------------------------------------------------- */

/* Takes the keys of E2B and of the providers out of the environment, so that no child,
 * no later code and no /proc/PID/environ has them; what was taken before is forgotten.
 * Main, before any thread. The functions below know what was taken and nothing else. */
void keys_take_env(void);
/* The same for one more variable, of a tool whose key is of none of our providers; a second
 * time changes nothing. Main, before any thread. */
void keys_take_variable(const char *name);
/* E2B's: the variable, and the E2B CLI's file (~/.e2b/config.json v1 and v2, a regular
 * file of ours). A set but unusable variable has env_err; it is still the user's word. */
struct keys_outside {
    struct secret *env, *cli;
    char *team_id; /* from the CLI's file, or NULL */
    struct err env_err, cli_err;
};
/* Reads that file: main, while the program starts. Constant afterwards, any thread. */
void keys_look_outside(struct keys_outside *o);
void keys_outside_release(struct keys_outside *o);
/* The service that the variables E2B_API_URL and E2B_DOMAIN lead to, without a slash at
 * the end; new string. "own": it is E2B's own. */
char *keys_api(void);
const char *keys_domain(void);
bool keys_api_is_own(const char *api);
/* An address with a password in it is refused before it is shown or stored. */
int keys_api_check(const char *api, struct err *e);

/* --- the order ---------------------------------------------------------------------- */

/* Where we stand. stored may be NULL: nothing is stored, or it is not known yet. */
struct keys_at {
    const struct keys_outside *outside;
    const struct st_keys *stored;
    const char *api;      /* keys_api() */
    const char *project;  /* its name */
    bool by_folder;       /* a .cc-tui file chose the project: its keys want a yes */
    const char *lost;     /* keys_lost(): none is not the same as none any more */
    const char *locked;   /* why stored keys cannot be opened now, or NULL */
};
struct key_found {
    enum key_source source;
    struct secret *key;         /* one more holder; NULL for a stored one, see row */
    const struct st_key *row;   /* the stored one, borrowed from at->stored, or NULL */
    char mask[16], mark[12];
    char *hidden;               /* "hides ****9f21 (user key), ..." or NULL */
    char *team_id;
};
/* E2B's key. A level whose key is unusable is an error in *e with KEY_NONE: it names the
 * level and says what to do. A bad CLI file beside a better key is an error in *e, too,
 * with that key found. Opens nothing. */
/* What to say when keys were stored, but the database that had them is not there (`trouble`,
 * as ST_KEYS tells): a new string, or NULL. Whoever meant a key gets nothing in its place. */
char *keys_lost(const char *trouble, const char *config_dir);
void keys_choose(const struct keys_at *at, struct key_found *k, struct err *e);
void key_found_release(struct key_found *k);
/* Tells accounts apart in stored rows: a part of the key's hash; "short" for keys that
 * could be guessed from that. dst has 12 bytes. */
void key_mark(const struct secret *key, char *dst);
/* "****9f21", "****" */
void key_row_mask(const struct st_key *row, char *dst);
enum key_source key_row_source(const struct st_key *row);
/* Key of that level, provider and api; NULL: none. */
const struct st_key *keys_row(const struct st_keys *k, const char *project, const char *provider,
                              const char *api);

/* --- providers of agents ---------------------------------------------------------------- */

extern const char *const key_providers[]; /* "e2b" first; ends with NULL */
bool key_provider_ok(const char *provider);
/* Provider whose key a variable of that name holds ("GH_TOKEN": "github"), or NULL. */
const char *keys_variable_of(const char *name);
/* The variable holds a key: of a provider, or one that a tool needs. */
bool keys_in_variable(const char *name);
/* What was taken out of the environment under that name, or NULL. */
const struct secret *keys_taken(const char *name);
/* First level at which one of `needs` (ends with NULL) has a key: where an agent's key
 * comes from. KEY_NONE with *missing "a or b" (new string; may be NULL). */
enum key_source keys_provider_source(const struct keys_at *at, const char *const *needs,
                                     char **missing);
/* --- before something is made --------------------------------------------------------- */

/* What an agent needs: one of `needs` (ends with NULL) or of the variables `needs_env` (may be
 * NULL); none of either: no key. Under label's name in sentences. own: variables that are
 * given with the sandbox, vars: those of the project (may be NULL; no value: it is empty). */
struct key_need {
    const char *label;
    const char *const *needs;
    char *const *needs_env;
    const struct kv *own, *vars;
};
/* The variable of `list` that gives what is needed, or NULL; *provider: whose key that is,
 * NULL for one of needs_env. */
const struct kv *keys_given(const struct key_need *n, const struct kv *list,
                            const char **provider);
enum key_state {
    KEY_READY,    /* or none is needed */
    KEY_HIDES,    /* ready, and in front of another key: say so */
    KEY_DOUBTFUL, /* ready, but its form is that of another provider: say so */
    KEY_LACKS,    /* there is none where it would count */
    KEY_UNUSABLE  /* the level in force has one that cannot be used: nothing falls back */
};
struct key_check {
    enum key_state state;
    enum key_source source; /* KEY_NONE: given with the sandbox, or none */
    const char *provider;   /* of the key, or the first that is lacking; NULL: none needed */
    const char *variable;   /* that holds it, of none of the providers; or NULL */
    char mask[16];
    char *text; /* provider, level, last four; what is hidden; else what is wrong and what to
                   do. Never NULL */
};
/* From LACKS on nothing is made. Opens nothing, and asks no service. */
void keys_preflight(const struct keys_at *at, const struct key_need *n, struct key_check *c);
void key_check_release(struct key_check *c);
/* A service refused the key that an agent had: which one, and what to do. New string. */
char *keys_refused(const struct keys_at *at, const struct key_need *n);

/* Every name under which a tool may look for the keys of that level; the list ends with k
 * NULL, values are plain and must be wiped by keys_env_free. `data_key` opens stored ones.
 * NULL with *e when the level's key cannot be used (locked, wants a yes, damaged). */
struct kv *keys_provider_env(const struct keys_at *at, const struct secret *data_key,
                             const char *const *needs, struct err *e);
void keys_env_free(struct kv *env); /* any list with secrets in it; values may be NULL */

/* --- storing ------------------------------------------------------------------------------ */

/* A key as people paste it: blanks, a newline, quotes, `export NAME=` around it. NULL with
 * ERR_INVALID and what is wrong; the text is never repeated. */
struct secret *keys_clean(const char *text, size_t len, const char *provider, struct err *e);
/* The row of a key: sealed, with its mask and mark. */
void keys_seal(struct st_key *row, const struct secret *data_key, const char *project,
               const char *provider, const char *api, const struct secret *key);
/* Open a row; what it shows in clear must be the key's own. */
struct secret *keys_open(const struct st_key *row, const struct secret *data_key, struct err *e);

#endif
