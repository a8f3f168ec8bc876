/* Shared by the files of src/keys only.
 *
 *   keys.c      the one order
 *   outside.c   environment, E2B CLI's file
 *   provider.c  keys of agents' providers
 *   stored.c    pastes, sealing, opening */
#ifndef CCT_KEYS_PRIV_H
#define CCT_KEYS_PRIV_H

#include <cct/keys.h>

enum { KEY_BYTES_MAX = 4096 };

/* What was taken out of the environment under that name, or NULL. */
const struct secret *keys_taken(const char *name);
/* Visible ASCII and of a length that a key may have. */
bool keys_visible(const char *s, size_t len);
/* A project's key that a folder chose wants a yes: 0, or ERR_AUTH with what to do. */
int keys_need_yes(const struct keys_at *at, const struct st_key *row, struct err *e);

#endif
