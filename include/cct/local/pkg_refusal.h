/* Package managers in a sandbox. The host's programs are mounted read-only, so an
 * installation would fail half-way; instead these names, which come first in the
 * sandbox's PATH, lead to this binary. Changes are refused with one sentence and
 * exit status 100; what only reads is handed on to the real program. */
#ifndef CCT_LOCAL_PKG_REFUSAL_H
#define CCT_LOCAL_PKG_REFUSAL_H

#include <stdbool.h>

extern const char *const pkg_refusal_names[]; /* ends with NULL */

/* Does this binary act under that name? */
bool pkg_refusal_is(const char *name);
/* Would the command line (without the name) change anything? */
bool pkg_refusal_wants(const char *name, int argc, char **argv);
/* The whole program; returns the exit status if it does at all. */
int pkg_refusal_main(const char *name, int argc, char **argv);

#endif
