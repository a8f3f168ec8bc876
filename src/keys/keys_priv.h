/* Shared by the files of src/keys only.
 *
 *   keys.c      the one order
 *   outside.c   environment, E2B CLI's file
 *   provider.c  keys of agents' providers
 *   preflight.c what an agent would get, before it is made
 *   stored.c    pastes, sealing, opening */
#ifndef CCT_KEYS_PRIV_H
#define CCT_KEYS_PRIV_H

#include <cct/keys.h>

enum { KEY_BYTES_MAX = 4096 };

/* Visible ASCII and of a length that a key may have. */
bool keys_visible(const char *s, size_t len);
/* A project's key that a folder chose wants a yes: 0, or ERR_AUTH with what to do. */
/* --- provider.c */
const char *const *keys_names_of(const char *provider); /* of variables; ends with NULL */
const struct secret *keys_in_environment(const char *provider);
const struct st_key *keys_level_row(const struct keys_at *at, enum key_source level,
                                    const char *provider); /* NULL: none, or no stored level */
bool keys_level_has(const struct keys_at *at, enum key_source level, const char *provider);
/* --- stored.c: the provider whose form this key has, or NULL */
const char *keys_form_of(const struct secret *key);
bool keys_sendable(const struct secret *key); /* visible characters, blanks around them aside */
/* --- keys.c */
int keys_need_yes(const struct keys_at *at, const struct st_key *row, struct err *e);

#endif
