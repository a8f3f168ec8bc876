/* Plain keys in memory: locked, not dumped, wiped.
 * A `struct secret` has one owner and may be handed to another thread whole. */
#ifndef CCT_SECRETS_SECRET_H
#define CCT_SECRETS_SECRET_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>

/* First call of main(), before any thread: starts libsodium, makes the process
 * non-dumpable, sets RLIMIT_CORE to 0. */
int secrets_init(struct err *e);
/* False when memory could not be locked (RLIMIT_MEMLOCK): the caller says so. */
bool secrets_memory_locked(void);

struct secret;
/* Copies into locked memory and registers the value with the log's redactor. */
struct secret *secret_new(const char *value, size_t len);
/* What opens one sandbox of many: the redactor knows the newest. */
struct secret *secret_new_token(const char *value, size_t len);
/* Bytes that are no text and never meet the log (a data key, a passphrase): not
 * registered there. p NULL: zeroes, to be filled in place by who made it. */
struct secret *secret_new_bytes(const void *p, size_t len);
/* One more holder of the same memory; NULL gives NULL. */
struct secret *secret_dup(const struct secret *s);
void secret_free(struct secret *s); /* the last holder wipes; NULL is fine */
/* NUL-terminated; borrowed. */
const char *secret_value(const struct secret *s);
size_t secret_len(const struct secret *s);
/* "****abcd" into dst (>= 9 bytes); keys under 12 characters show no tail. */
void secret_mask(const struct secret *s, char *dst);
/* Overwrite memory in a way the compiler keeps. */
void secret_wipe(void *p, size_t len);
/* Take a variable out of the environment: its value as a secret (NULL when unset
 * or empty), and the process's own copy is overwritten and unset. */
struct secret *secret_take_env(const char *name);

#endif
