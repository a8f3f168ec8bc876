/* Which key is in force, and what it hides. */
#ifndef CCT_KEYS_H
#define CCT_KEYS_H

#include <cct/secrets/secret.h>
#include <cct/util/err.h>

enum key_source { KEY_NONE, KEY_ENV, KEY_PROJECT, KEY_USER, KEY_E2B_CLI };
struct key_found {
    enum key_source source;
    struct secret *key;     /* owned; NULL with KEY_NONE */
    char *hidden;           /* what it shadows: "hides ****9f21 (E2B CLI config)" or NULL */
    char *team_id;          /* from the CLI's config, or NULL */
};
/* Takes the keys of E2B and of the providers out of the environment, so that no child,
 * no later code and no /proc/PID/environ has them; what was taken before is forgotten.
 * Main, before any thread. The functions below know what was taken and nothing else. */
void keys_take_env(void);
/* E2B key by the documented order: environment, project, user, E2B CLI's file
 * (~/.e2b/config.json v1 and v2, regular file of ours). Reads that file: main, while
 * the program starts. A bad file is an error in
 * *e (code set) with KEY_NONE or a better source still found; a set but unusable
 * variable is an error with KEY_NONE, it never falls back to another key. */
void keys_find_e2b(struct key_found *k, struct err *e);
void key_found_release(struct key_found *k);
const char *key_source_name(enum key_source s); /* "environment", "E2B CLI config" */
/* Provider keys for a tool (anthropic, openai, ...): as taken from the environment.
 * `needs` ends with NULL; one of them is enough. Returned list holds every name
 * under which a tool may look for a key that was found, and ends with k NULL; values
 * are plain and must be wiped by keys_env_free. *missing: "a or b" when none
 * of the needed ones was found, else NULL. */
struct kv;
struct kv *keys_provider_env(const char *const *needs, char **missing);
void keys_env_free(struct kv *env);

#endif
